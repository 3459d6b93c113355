"""A fit that needs no more than the columns of its active features."""

from dataclasses import replace

import numpy as np

from lodim.design.restrict import restrict


def shrink(fit):
    """The fit on a design that holds the terms with active features alone."""
    t = fit.estimates
    design, kept = restrict(fit.design, t.features)
    if len(kept) == len(fit.design.names):
        return fit
    return type(fit)(
        design=design, family=fit.family, settings=fit.settings, log=fit.log,
        estimates=replace(t, features=np.searchsorted(kept, t.features)),
        calibration=fit.calibration, typical=fit.typical, labels=fit.labels,
        selection=fit.selection, n=fit.n,
        null_deviance=fit.null_deviance, call=f"{fit.call}.shrink()", arguments=fit.arguments,
        chosen=fit.chosen,
    )  # fmt: skip
