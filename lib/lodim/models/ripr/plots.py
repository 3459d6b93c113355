"""Plots of a RiprFit; `lodim.plot.axes` and `lodim.plot.panels` draw the shapes."""

import numpy as np

from lodim.checks import whole
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.models.ripr.ensemble import CLUSTERS
from lodim.models.ripr.explanation import level_names, one_row, view_values
from lodim.models.ripr.report import ERROR, voting, voting_loss
from lodim.plot import bars, lines, panels
from lodim.plot.panels import View
from lodim.plot.points import Key


def view(fit, ax, *, row=None, data=None, top=6):
    """Draw training rows (or `data`) in the first `top` feature sets, and `row` as a star."""
    whole("top", top, most=6)  # more are unreadable side by side
    e = fit.estimates
    if not len(e):
        raise ArgumentError("the fit has no view to draw")
    X, value, served = _rows(fit, data)
    star = None
    if row is not None:
        batch = one_row(fit, row)
        star = e.rows(batch)[0], int(fit._answers(batch).view[0]), batch.index[0]
    first = list(range(min(top, len(e))))
    if star is not None and star[1] >= len(first):
        first[-1] = star[1]  # always show the query's view
    views = [_view(fit, j, X, served, star, data is None) for j in first]
    if e.task == CLUSTERS:
        key = Key("cluster", tuple(e.cluster_names), 0.0, 1.0)
    else:
        key = Key.from_response(fit.design.response.name, fit.levels, value)
    name = None if row is None else f"row {star[2]}"
    return panels.side_by_side(views, value, key, ax, star=name)


def shares(fit, ax):
    """Draw each feature set's share of rows and its error, in the order of tidy()."""
    frame = in_pandas(fit.tidy)()
    pairs = zip(frame["estimate"], frame["error"], strict=True)
    texts = [
        f"{100 * share:.0f}%" + (f", {_error(fit, error)}" if np.isfinite(error) else "")
        for share, error in pairs
    ]
    return bars.shares(list(frame["term"]), frame["estimate"], texts, ax)


def objective(fit, ax):
    """Draw the leave-one-out loss by number of views, or an assignment's objective by round."""
    if not voting(fit):
        return lines.steps(fit.log["objective"], 1, ("round", "objective"), ax)
    names = "number of views", f"leave-one-out {voting_loss(fit)}"
    return lines.steps(fit.log["objective"], 0, names, ax)


def _rows(fit, data):
    """Return (X, response or cluster, predicting view) of rows `data`; None for training rows."""
    e = fit.estimates
    if data is None:
        X, served, y = (values[e.weight > 0] for values in (e.X, e.assigned_view, e.y))
    else:
        batch = fit.design.rows_to_show(data)
        X, served, y = e.rows(batch), fit._answers(batch).view, batch.y
    if e.task == CLUSTERS:
        where = e.assign(X, served)[0]
        y = np.where(where < 0, np.nan, where)
    return X, y, served


def _view(fit, j, X, served, star, training):
    """Return a panel of a plot (View) with the rows X in feature set number j.

    served : (n,) number of the set that predicts each row; training : whether X are training rows
    star : None, or (features, number of the set, label) of a row to mark"""
    e = fit.estimates
    at = e.columns(j)
    chosen, near, place = False, None, None
    if star is not None:
        chosen, place = star[1] == j, _drawn(fit, j, star[0][None])[0]
    if chosen and training and e.task != CLUSTERS and len(at) > 1:
        near = e.nearest(j, star[0][None], min(e.k, 10))[1][0]
        near = np.searchsorted(np.flatnonzero(e.weight > 0), near[near >= 0])
    levels = tuple(tuple(level_names(fit, e.features[a])) if e.is_factor(a) else () for a in at)
    x, names, error = _drawn(fit, j, X), fit.view_features[j], fit.record.error[j]
    title = f"view {j + 1}: {100 * e.share[j]:.0f}% of the rows"
    title += f"\n{_error(fit, error)}" if np.isfinite(error) else ""
    return View(x, names, served == j, title, levels, star=place, chosen=chosen, near=near)


def _drawn(fit, j, X):
    """Return X in feature set j, (rows, features): numbers in original units, factors as codes."""
    e = fit.estimates
    each = zip(e.columns(j), view_values(fit, X, j), strict=True)
    return np.column_stack([X[:, a] if e.is_factor(a) else x for a, x in each]).astype(float)


def _error(fit, error):
    name = ERROR[fit.estimates.task][0]
    return f"{name if name.isupper() else name.lower()} {error:.3g}"


KINDS = {"view": view, "shares": shares, "objective": objective}
