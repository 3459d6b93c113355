"""The table of all prototypes with their features."""

import numpy as np
import pandas as pd

from lodim.errors import DataError
from lodim.models.proset.explain.breakdown import apart
from lodim.models.proset.explain.query import active_names, importance, original, targets


def export(fit, data=None):
    """A row a prototype; see `Explained.export`."""
    t, order = fit.estimates, importance(fit)
    frame = pd.DataFrame({"batch": t.batch, "row": pd.Series(fit.labels, dtype=object)})
    frame["members"] = np.bincount(t.member_of, minlength=len(t))
    frame["target"], frame["prototype_weight"] = targets(fit), t.w
    names = apart([active_names(fit)[k] for k in order], frame.columns)
    parts = [frame, pd.DataFrame(original(fit, t.x)[:, order], columns=names)]
    if data is not None:
        parts.append(_others(fit, data, [*frame.columns, *names]))
    whole = pd.concat(parts, axis=1)
    heaviest = np.lexsort([-t.w, t.batch])
    return whole.iloc[heaviest].reset_index(drop=True)


def _equal(column, values):
    """Whether a column, or columns of one name, are these numbers (J,)."""
    try:
        given = column.to_numpy(float)
    except (TypeError, ValueError):
        return False
    return given.shape == values.shape and np.allclose(given, values)


def _others(fit, data, taken):
    """The columns of the training data that are no active feature, at the prototypes' rows."""
    t = fit.estimates
    if not isinstance(data, pd.DataFrame) or len(data) <= t.row.max(initial=-1):
        raise DataError("data must be the pandas DataFrame that the fit was made of")
    rows = data.iloc[t.row]
    if [str(v) for v in rows.index] != [str(v) for v in fit.labels]:
        raise DataError("the row labels of data are not those of the data the fit was made of")
    active, names = original(fit, t.x), active_names(fit)
    for k, name in enumerate(names):
        if name in data and not _equal(rows[name], active[:, k]):
            raise DataError(f"{name!r} in data has other values than in the data of the fit")
    answer = fit.design.response
    left_out = {*active_names(fit), *(() if answer.called else (answer.name,))}
    rows = rows[[name for name in data if name not in left_out]].reset_index(drop=True)
    return rows.set_axis(apart(list(rows.columns), taken), axis=1)
