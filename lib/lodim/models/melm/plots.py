"""Plots of a MelmFit; `lodim.plot` draws the shapes."""

from dataclasses import replace

import numpy as np

from lodim.checks import flag, one_of
from lodim.errors import ArgumentError, DataError
from lodim.models.melm.report import SIMILAR_END
from lodim.models.melm.rule import fit_rule
from lodim.plot import axes, bars, biplot, legend

GRID = 140  # points along each side of the plane
LINE = 600  # points along a line, in addition to the rows
MOST_ROWS = 5000  # most rows that are drawn
LOADINGS, CORRELATIONS = "loadings", "correlations"


def view(fit, ax, *, data=None, dimensions=None, arrows=LOADINGS, top=8, contours=True):
    """Draw projected rows, densities and boundaries of classes, and arrows of features.

    data : rows to draw, None for the training rows; dimensions : numbers of one to three axes
    arrows : "loadings", "correlations" or None; top : number of arrows, longest first
    contours : whether to draw densities and boundaries"""
    v, which, training = fit.estimates, _dimensions(fit, dimensions), _rows(fit, None)
    rows = training if data is None else _rows(fit, data)
    classes = legend.Legend("" if fit.levels is None else fit.design.response.name, fit.levels)
    if arrows is not None and not (isinstance(arrows, str) and arrows in (LOADINGS, CORRELATIONS)):
        raise ArgumentError(
            f"arrows must be {LOADINGS}, {CORRELATIONS} or None, not {arrows!r:.80}"
        )
    longest = None if arrows is None else _longest_arrows(fit, arrows, top, which)
    rows, labels = biplot.Rows(rows.xy[:, which], rows.code), [fit.axes[j] for j in which]
    if fit.levels is None:
        share = 100.0 * v.spread**2 / (v.total or np.nan)
        labels = [f"{fit.axes[j]} ({share[j]:.1f}% of the variance)" for j in which]
    if len(which) == 3:
        return biplot.space(rows, classes, labels, ax, arrows=longest)
    rule, near = v.rule, training.xy[:, which]
    if which.tolist() != list(range(v.k)):  # classify in the dimensions that are drawn
        kept, plain = rule.rows, replace(fit.settings, classifier="kde")
        Z, sizes = np.ascontiguousarray(kept.Z[:, which]), (rule.n_classes, rule.n_scores)
        rule = fit_rule(plain, Z, kept.code, kept.share, rule.present, *sizes)
    ax = axes.ensure_axes(ax, axes.SIZE)
    if len(which) == 1:
        curves = _curves(fit, rule, rows, near)
        return biplot.line(rows, classes, labels[0], ax, arrows=longest, **curves)
    ends = biplot.frame(np.vstack([near, rows.xy]), biplot.aspect(ax))
    ground = _ground(fit, rule, ends) if flag("contours", contours) else None
    return biplot.plane(rows, classes, labels, ax, ends=ends, ground=ground, arrows=longest)


def loadings(fit, ax, *, top=15, of=LOADINGS):
    """Draw the `top` largest loadings (or correlations) of features, a mark per dimension."""
    one_of("of", of, (LOADINGS, CORRELATIONS))
    longest = _longest_arrows(fit, of, top, np.arange(fit.estimates.k))
    label = "correlation of feature and coordinate"
    if of == LOADINGS:
        label = "loading: change of the coordinate per SD of the feature"
    label += axes.count_line(len(longest.names), len(fit.design.names))
    return bars.lollipops(longest.names, longest.to, fit.axes, label, ax)


def starts(fit, ax):
    """Draw the divergence (or entropy) that each start reached, sorted, with a colour per kind."""
    frame, ax = fit.starts(), axes.ensure_axes(ax, (7.0, 4.0))
    best, rank = frame["divergence"].iloc[0], np.arange(1, len(frame) + 1)
    style = {"s": 42, "edgecolor": "white", "linewidths": 0.5, "zorder": 3}
    for j, kind in enumerate(frame["start"].unique()):
        of_kind = (frame["start"] == kind).to_numpy()
        marker = {"color": axes.colour(j), "marker": axes.mark(j), "label": str(kind)}
        ax.scatter(rank[of_kind], frame["divergence"][of_kind], **marker, **style)
    near = best - SIMILAR_END * abs(best)
    ax.axhline(best, color=axes.BLUE, lw=0.8, ls="--", zorder=1)
    ax.axhspan(near, best, color=axes.BLUE, alpha=0.08, lw=0, zorder=0)
    place = {"xycoords": ax.get_yaxis_transform(), "xytext": (-3, 3), "ha": "right"}
    style = {"textcoords": "offset points", "fontsize": 8, "color": axes.GREY}
    ax.annotate("within 5% of the largest", (1.0, near), **place, **style)
    measure = "entropy" if fit.levels is None else "divergence"
    ax.set_xlabel(f"starting point, in the order of the {measure} reached")
    ax.set_ylabel(f"{measure} reached")
    axes.whole_ticks(ax)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes.tidy(ax)


# What the kinds share ----------------------------------------------------------------------------


def _rows(fit, data):
    """Return at most 5,000 rows of `data`, or training rows if it is None, as biplot.Rows."""
    if data is None:
        xy, code = fit.estimates.rule.rows.Z, fit.estimates.rule.rows.code.astype(float)
    else:
        batch = fit.design.rows_to_show(data)
        if not batch.n:
            raise DataError("no complete row to draw")
        xy = fit._coordinates(batch)
        code = np.zeros(batch.n) if fit.levels is None else batch.y
    if len(xy) > MOST_ROWS:
        keep = np.sort(np.random.default_rng(0).choice(len(xy), MOST_ROWS, replace=False))
        xy, code = xy[keep], code[keep]
    return biplot.Rows(xy, code)


def _dimensions(fit, dimensions):
    """Return the positions, from 0, of the dimensions to draw; checks the user's numbers."""
    k = fit.estimates.k
    if dimensions is None:
        return np.arange(min(k, 3 if k == 3 else 2))
    try:
        numbers = np.atleast_1d(np.asarray(dimensions))
    except ValueError:  # lists of different lengths
        numbers = np.empty(0)
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu" and 1 <= len(numbers) <= 3
    if not whole or len(set(numbers.tolist()) & set(range(1, k + 1))) < len(numbers):
        raise ArgumentError(
            f"dimensions must be one to three different numbers from 1 to {k}, not {dimensions!r}"
        )
    return numbers - 1


def _longest_arrows(fit, what, top, dimensions):
    """Return Arrows of the `top` longest loadings or correlations (`what`) in some dimensions."""
    v = fit.estimates
    to = (v.V * v.deviation[:, None] if what == LOADINGS else v.correlation)[:, dimensions]
    order = np.argsort(-np.linalg.norm(to, axis=1), kind="stable")[:top]
    order = order[np.linalg.norm(to[order], axis=1) > 0.0]
    label = "loading per SD" if what == LOADINGS else "correlation"
    if len(order) < len(to):
        label += f",\n{len(order)} largest of {len(to)}"
    return biplot.Arrows([fit.design.names[j] for j in order], to[order], label)


def _ground(fit, rule, ends):
    """Return a Ground: densities and scores of classes by `rule`, on a rectangular grid.

    ends : (2, 2) smallest coordinates of the grid, then largest ones"""
    x, y = (np.linspace(*limits, GRID) for limits in ends.T)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    threads, shape = fit.settings.n_threads, (len(y), len(x), -1)
    density = np.exp(rule.log_density(places, threads)).reshape(shape)
    of_rows = np.exp(rule.log_density(rule.rows.Z, threads))
    score = None
    if fit.levels is not None:
        score = rule.class_scores(places, threads).reshape(shape)
    floor = 0.1 * float(of_rows.sum(axis=1).min())
    return biplot.Ground(x, y, density, _contour_levels(of_rows, rule.rows), score, floor)


def _contour_levels(density, rows):
    """Return density levels (C, 2) that 90% and 50% of a class's rows exceed; rows : Rows (n)."""
    levels, quantiles = np.empty((density.shape[1], len(legend.HELD))), 1.0 - np.array(legend.HELD)
    for c in range(density.shape[1]):
        of_class = rows.code == c
        options = {"weights": rows.weight[of_class], "method": "inverted_cdf"}
        levels[c] = np.quantile(density[of_class, c], quantiles, **options)
    return levels


def _curves(fit, rule, rows, shown):
    """Return the curves of a one-dimensional view: a dict of "x", "density" and "best".

    x : (n,) points on the axis; density : (n, C) class densities
    best : (n,) likeliest class, -1 far from all rows; None without classes
    rule : Rule that classifies; rows : biplot.Rows to draw
    shown : (m, 1) coordinates of training rows"""
    ends = biplot.frame(np.vstack([shown, rows.xy]))[:, 0]
    # A class narrower than the spacing has its peak only at its rows.
    x = np.union1d(np.linspace(*ends, LINE), shown[(shown >= ends[0]) & (shown <= ends[1])])
    f = np.exp(rule.log_density(x[:, None], fit.settings.n_threads))
    best = None
    if fit.levels is not None:
        best = rule.class_scores(x[:, None], fit.settings.n_threads).argmax(axis=1)
        best[f.sum(axis=1) < 1e-3 * f.max()] = -1
    return {"x": x, "density": f, "best": best}


KINDS = {"view": view, "loadings": loadings, "starts": starts}
