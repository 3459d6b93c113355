"""What the plot of a bootstrap shows."""

import numpy as np

from lodim.design.frames import in_pandas
from lodim.errors import ArgumentError
from lodim.plot.forest import forest
from lodim.plot.lettering import literal
from lodim.report.phrases import term_labels


@literal
def draw(boot, ax=None, *, top, level, kind):
    """Estimates with their intervals, per standard deviation of the feature where there is one."""
    frame, xlabel = in_pandas(boot.tidy)(level=level, kind=kind), "statistic"
    if boot.default:
        design = boot.fit.design
        per_sd = frame["term"].map(dict(zip(design.names, design.scale, strict=True)))
        # An intercept is of another size, and no effect; views of ripr have no unit.
        named = bool(per_sd.notna().any())
        frame, per_sd = (v[per_sd.notna()] if named else v for v in (frame, per_sd))
        xlabel = boot.fit._estimate_name + " per SD" * named
        for name in ("estimate", "conf_low", "conf_high") if named else ():
            frame[name] *= per_sd
    frame = frame[np.isfinite(frame["conf_low"]) & np.isfinite(frame["estimate"])]
    if frame.empty:
        raise ArgumentError("there is no estimate to draw")
    largest = frame["estimate"].abs().sort_values(ascending=False, kind="stable").index[:top]
    frame = frame.loc[largest]
    ends = frame["estimate"], frame["conf_low"], frame["conf_high"]
    xlabel += f", with {100.0 * level:g} % interval"
    names = term_labels(frame)
    if "dimension" in frame:
        names = [f"{d}: {t}" for d, t in zip(frame["dimension"], names, strict=True)]
    return forest(names, *ends, xlabel, ax)
