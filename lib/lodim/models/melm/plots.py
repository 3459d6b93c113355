"""What each kind of plot of a MelmFit shows; `lodim.plot.biplot` and `lodim.plot.ranking` draw."""

from dataclasses import replace

import numpy as np

from lodim.checks import flag, one_of
from lodim.errors import ArgumentError, DataError
from lodim.models.melm.classify.rule import learn_rule
from lodim.models.melm.report import NEAR
from lodim.plot import axes as plot
from lodim.plot import biplot, ranking
from lodim.plot.biplot import Arrows, Ground, Rows
from lodim.plot.legend import HELD, Legend

GRID = 140  # places along each side of the plane
LINE = 600  # places along a line, beside those of the rows
MOST_ROWS = 5000  # rows that are drawn
LOADINGS, CORRELATIONS = "loadings", "correlations"


def draw(fit, kind, ax, **arguments):
    """Draw a kind of plot on ax and return the Axes."""
    kinds = {"view": view, "loadings": loadings, "starts": starts}
    return plot.draw(kinds, kind, fit, ax, arguments)


def view(fit, ax, *, data=None, dimensions=None, arrows=LOADINGS, top=8, contours=True):
    """Rows in the view, with densities, boundary, and the `top` longest arrows.

    Of three dimensions rows and arrows alone.
    """
    own = _rows(fit, None)
    rows = own if data is None else _rows(fit, data)
    of = _dimensions(fit, dimensions)
    legend = Legend("" if fit.levels is None else fit.design.response.name, fit.levels)
    if fit.levels is not None and not np.isfinite(rows.code).all() and data is None:
        raise ArgumentError("this fit keeps no rows: give data")
    if arrows is not None and not (isinstance(arrows, str) and arrows in (LOADINGS, CORRELATIONS)):
        raise ArgumentError(
            f"arrows must be {LOADINGS}, {CORRELATIONS} or None, not {arrows!r:.80}"
        )
    made = _arrows(fit, arrows, top, of)
    names, drawn = _names(fit, of), Rows(rows.xy[:, of], rows.code)
    if len(of) == 3:
        return biplot.space(drawn, legend, names, ax, arrows=made)
    rule = _along(fit, of)
    if len(of) == 1:
        return _line(fit, rule, drawn, own.xy[:, of], legend, names[0], ax, made)
    ax = plot._axes(ax, biplot.SIZE)
    ends = biplot.frame(np.vstack([own.xy[:, of], drawn.xy]), biplot.sides(ax))
    ground = _ground(fit, rule, ends) if flag("contours", contours) else None
    return biplot.plane(drawn, legend, names, ax, ends=ends, ground=ground, arrows=made)


def loadings(fit, ax, *, top=15, of=LOADINGS):
    """The features of the longest arrows, a mark for each dimension."""
    one_of("of", of, (LOADINGS, CORRELATIONS))
    made = _arrows(fit, of, top, np.arange(fit.estimates.k))
    label = {
        LOADINGS: "loading: change of the coordinate per SD of the feature",
        CORRELATIONS: "correlation of feature and coordinate",
    }[of]
    return ranking.lollipops(made.names, made.to, fit.axes, label, ax)


def starts(fit, ax):
    """The divergence that each start of the search ended in."""
    frame = fit.starts()
    best = frame["divergence"].iloc[0]
    return ranking.ends_of_starts(
        frame["start"].tolist(), frame["divergence"].to_numpy(), best - NEAR * abs(best), ax
    )


# What the kinds share ----------------------------------------------------------------------------


def _rows(fit, data):
    """Coordinates and classes of the rows to draw: those of data, or the training rows kept."""
    if data is None:
        rows = fit.estimates.rule.rows
        xy, code = rows.Z, rows.code.astype(float)
    else:
        batch, code = _batch(fit, data)
        xy = fit.coordinates(batch)
        if not batch.n:
            raise DataError("no complete row to draw")
    if len(xy) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(len(xy), MOST_ROWS, replace=False))
        xy, code = xy[keep], code[keep]
    return Rows(xy, code)


def _batch(fit, data):
    """Rows of data, and their classes, NaN where data has no response."""
    if fit.levels is None:
        batch = fit.design.apply(data)
        return batch, np.zeros(batch.n)
    if not fit.design.has_response(data):
        batch = fit.design.apply(data)
        return batch, np.full(batch.n, np.nan)
    batch = fit.design.apply(data, response=True)
    return batch, batch.y


def _dimensions(fit, dimensions):
    """Positions of the dimensions to draw, from numbers that start at 1."""
    k = fit.estimates.k
    if dimensions is None:
        return np.arange(min(k, 3 if k == 3 else 2))
    try:
        given = np.atleast_1d(np.asarray(dimensions))
    except ValueError:  # lists of unlike lengths
        given = np.empty(0)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and 1 <= len(given) <= 3
    if not whole or len(set(given.tolist())) < len(given) or given.min() < 1 or given.max() > k:
        raise ArgumentError(
            f"dimensions must be one to three different ones of 1 to {k}, not {dimensions!r}"
        )
    return given - 1


def _arrows(fit, what, top, of):
    """The `top` longest arrows along some dimensions."""
    if what is None:
        return None
    v = fit.estimates
    to = (v.V * v.deviation[:, None] if what == LOADINGS else v.correlation)[:, of]
    order = np.argsort(-np.linalg.norm(to, axis=1), kind="stable")[:top]
    order = order[np.linalg.norm(to[order], axis=1) > 0.0]
    said = "loading per SD" if what == LOADINGS else "correlation"
    if len(order) < len(to):
        said += f",\n{len(order)} largest of {len(to)}"
    return Arrows([fit.design.names[j] for j in order], to[order], said)


def _names(fit, of):
    """Names of the axes; without a response with their share of the variance."""
    v = fit.estimates
    if fit.levels is not None:
        return [fit.axes[j] for j in of]
    share = v.spread**2 / (v.total or np.nan)
    return [f"{fit.axes[j]} ({100.0 * share[j]:.1f} % of the variance)" for j in of]


def _along(fit, of):
    """The rule of some of the dimensions alone: of their own densities."""
    rule = fit.estimates.rule
    if of.tolist() == list(range(fit.estimates.k)):
        return rule
    rows, plain = rule.rows, replace(fit.settings, classifier="kde", n_neighbours=None)
    Z, classes = np.ascontiguousarray(rows.Z[:, of]), (rule.n_classes, rule.n_scores)
    return learn_rule(plain, Z, rows.code, rows.share, rule.present, *classes)


def _ground(fit, rule, ends):
    """Densities and chosen classes over the plane, and the levels of the contours."""
    x, y = (np.linspace(*wide, GRID) for wide in ends.T)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    f = np.exp(rule.log_density(places, fit._threads))
    own = np.exp(rule.log_density(rule.rows.Z, fit._threads))
    score = None if fit.levels is None else rule.class_scores(places, fit._threads)
    return Ground(
        x, y, f.reshape(len(y), len(x), -1), _levels(own, rule.rows),
        None if score is None else score.reshape(len(y), len(x), -1),
        0.1 * float(own.sum(axis=1).min()),
    )  # fmt: skip


def _levels(own, rows):
    """Densities (C, 2) above which the shares HELD of a class's rows are; own (m, C) of rows."""
    out = np.empty((own.shape[1], len(HELD)))
    for c in range(own.shape[1]):
        of = rows.code == c
        out[c] = np.quantile(
            own[of, c], 1.0 - np.array(HELD), weights=rows.weight[of], method="inverted_cdf"
        )
    return out


def _line(fit, rule, rows, own, legend, name, ax, made):
    ax = plot._axes(ax, biplot.SIZE)
    ends = biplot.frame(np.vstack([own, rows.xy]))[:, 0]
    # Where a class is narrow beside the distance of two, its peak is at its rows alone.
    x = np.union1d(np.linspace(*ends, LINE), own[(own >= ends[0]) & (own <= ends[1])])
    f = np.exp(rule.log_density(x[:, None], fit._threads))
    best = None
    if fit.levels is not None:
        best = rule.class_scores(x[:, None], fit._threads).argmax(axis=1)
        best[f.sum(axis=1) < 1e-3 * f.max()] = -1
    return biplot.line(rows, legend, name, ax, x=x, density=f, best=best, arrows=made)
