"""Plots of a ProsetFit."""

import numpy as np

from lodim.checks import among
from lodim.design.frame import one_row
from lodim.errors import ArgumentError
from lodim.models.proset.explain.query import (
    active_names,
    active_values,
    by_importance,
    original_units,
    read_query,
    select_features,
    zero_offset,
)
from lodim.models.proset.explain.reference import reference_values
from lodim.models.proset.explain.shapley import REFERENCE
from lodim.models.proset.prototypes import estimates_at
from lodim.plot import axes, bars, points
from lodim.report.phrases import per

STRANGE = 1  # percentile of familiarity below which a surface is veiled
GRID = 121  # points of a surface along each axis


def weights(fit, ax, *, top=20):
    """Draw the weights of the `top` most important features, by batch."""
    active = by_importance(fit)
    on = active[:top]
    if not len(on):
        raise ArgumentError("no feature has a weight above zero, so there is nothing to draw")
    names = [active_names(fit)[k] for k in on]
    xlabel = f"feature weight {per(fit)}" + axes.count_line(len(on), len(active))
    return bars.weights(names, fit.estimates.v[:, on], xlabel, ax)


def map_(fit, ax, *, data=None, row=None, batch=1, named=0):
    """Draw a batch of prototypes, `data` and one `row` by PCA; label the `named` largest ones."""
    t = fit.estimates
    if batch not in range(1, t.n_batches + 1) or not len(t.of_batch(batch)):
        raise ArgumentError(f"batch {batch!r} has no prototypes to map")
    of = t.of_batch(batch)
    to_plane, names = BatchMap(t.x[of], t.w[of], t.v[batch - 1]), []
    title = f"batch {batch}: similarity falls as exp(-d²/2) with the distance d"
    for k, loading in enumerate(to_plane.axes.T[:2]):
        largest = np.argsort(-np.abs(loading), kind="stable")[:2]
        signed = [(active_names(fit)[a], loading[a]) for a in largest if abs(loading[a]) > 0.2]
        features = "  ".join(f"{'+−'[int(weight < 0)]} {name}" for name, weight in signed)
        names.append(f"PC {k + 1} ({100 * to_plane.share[k]:.0f}%):  {features}")
    names += ["(no second direction)"] * (2 - len(names))
    return _plane(fit, ax, to_plane, names, of, data, row, named, title)


def scatter(fit, ax, *, features=None, data=None, row=None, named=0):
    """Draw prototypes, `data` and one `row` in two active features; label `named` prototypes."""
    two = _two_features(fit, features)
    names = [active_names(fit)[k] for k in two]
    of = np.arange(len(fit.estimates))
    return _plane(fit, ax, lambda x: original_units(fit, x)[:, two], names, of, data, row, named)


def surface(fit, ax, *, features=None, reference=None, level=None):
    """Draw estimates, or the probability of class `level`, over two active features.

    features : two names; None for the most important
    reference : row with values of the other features; None for the typical training row
    level : None for the second of two classes, or the likeliest of several"""
    t, names, response = fit.estimates, active_names(fit), fit.design.response
    two, r = _two_features(fit, features), reference_values(fit, reference)
    x, y, Z, mass = surface_over(fit, two, r)
    at = original_units(fit, r[None])[0]
    rest = [k for k in by_importance(fit) if k not in two]
    title = [f"{names[k]} = {at[k]:.4g}" for k in rest[:3]]
    title += [f"{len(rest) - 3} more at the reference"] if len(rest) > 3 else []
    edge = None
    if fit.calibration is not None:
        beyond = mass - fit.calibration.familiarity[STRANGE]
        if (beyond <= 0).any():
            edge = beyond, f"less familiar than {100 - STRANGE}%\nof the training rows"
    more = {
        "points": points.Points(original_units(fit, t.x)[:, two], t.y, t.w),
        "edge": edge,
        "star": ("reference", at[two]),
        "title": ", ".join(title),
    }
    labels = [names[k] for k in two]
    if fit.levels is None:
        if level is not None:
            raise ArgumentError("level= needs a response with classes; this response is numeric")
        key = points.Key.from_response(response.name, None, Z[..., 0].ravel(), "weight")
        return points.surface(x, y, Z[..., 0], key, labels, ax, **more)
    if level is None and len(fit.levels) > 2:
        key = points.Key(response.name, fit.levels, 0.0, 1.0, "weight")
        return points.classes(x, y, Z, key, labels, ax, **more)
    k = among("level", fit.levels[-1] if level is None else level, fit.levels)
    key = points.Key(f"P({response.event(fit.levels[k])})", None, 0.0, 1.0, "weight")
    return points.surface(x, y, Z[..., k], key, labels, ax, level=0.5, **more)


def shapley(fit, ax, *, data, row=0, reference=None, level=None, top=15):
    """Draw the `top` Shapley values of a row of `data` relative to `reference`, for a `level`."""
    one = one_row(data, row)
    offset = zero_offset(fit) if fit.design.offset is None else None
    frame = fit.shapley(one, reference=reference, offset=offset)
    if fit.levels is None:
        if level is not None:
            raise ArgumentError("level= needs a response with classes; this response is numeric")
    elif len(fit.levels) == 2:
        shown = fit.levels[1]
        if level is not None and not (isinstance(level, type(shown)) and level == shown):
            raise ArgumentError(f"level must be {shown!r} for two classes, not {level!r:.80}")
        level = shown
    else:
        if level is None:
            level = frame.groupby("level", sort=False)["shapley"].sum().idxmax()
        frame = frame[frame["level"] == fit.levels[among("level", level, fit.levels)]]
    response = fit.design.response
    estimate = response.name if level is None else f"P({response.event(level)})"
    if frame["shapley"].isna().any():
        raise ArgumentError(f"row {one.index[0]} has missing values: it cannot be explained")
    values = frame.set_index("term")["shapley"]
    baseline, values = values[REFERENCE], values.drop(REFERENCE)
    n_all = len(values)
    values = values.loc[values.abs().sort_values(ascending=False, kind="stable").index[:top]]
    title = f"row {one.index[0]}: {estimate} from {baseline:.3g} to {frame['shapley'].sum():.3g}"
    names = [_with_value(one, name) for name in values.index]
    xlabel = f"Shapley value, on {estimate}" + axes.count_line(len(values), n_all)
    return bars.bars(names, values.to_numpy(), xlabel, ax, title=title)


# Prototypes in a plane ---------------------------------------------------------------------------


def _plane(fit, ax, to_plane, names, positions, data, row, named, title=None):
    """Draw prototypes in a plane, and if given, rows `data` and one `row` (frames).

    to_plane : function that maps active features (n, A) to the plane (n, 2); names : axis labels
    positions : prototypes to draw; named : number of them to label, largest first"""
    t, levels = fit.estimates, fit.levels
    size, meaning, star, faint = t.w[positions], "prototype weight", None, None
    if row is not None:
        query = read_query(fit, row, zero_offset(fit))
        size, meaning = fit._impacts(query.batch)[0, positions], "impact"
        star = (f"row {query.label}", to_plane(query.x[None])[0])
    values = shown = t.y[positions] if levels is not None else t.y[positions] * t.scale + t.level[0]
    if data is not None:
        batch = fit.design.rows_to_show(data, offset=zero_offset(fit))
        faint = points.Points(to_plane(active_values(fit, batch)), batch.y)
        shown = np.concatenate([values, batch.y])
    key = points.Key.from_response(fit.design.response.name, levels, shown, meaning)
    largest = np.argsort(-size, kind="stable")[:named]
    tags = {int(k): str(fit.labels[positions[k]]) for k in largest}
    prototypes = points.Points(to_plane(t.x[positions]), values, size)
    more = {"faint": faint, "star": star, "title": title, "tags": tags}
    return points.plane(prototypes, key, names, ax, **more, square=title is not None)


class BatchMap:
    """Map of rows to a plane: the first two weighted principal components of a batch's prototypes.

    x : (J, A) active features of the prototypes; w : (J,) weights; v : (A,) feature weights"""

    def __init__(self, x, w, v):
        # Features are scaled by v (Eq. 4.1), centred by w (Eq. 4.2) and rotated (Eq. 4.4).
        Z = x * v
        self._v, self._centre = v, w @ Z / w.sum()
        # The right singular vectors of W^(1/2) Z are the eigenvectors of Z' W Z, but more accurate.
        s, U = np.linalg.svd(np.sqrt(w)[:, None] * (Z - self._centre), full_matrices=False)[1:]
        rank = int((s > 1e-10 * max(s.max(initial=0.0), 1e-300)).sum())
        axes = U[:rank].T
        # Signs of directions are arbitrary: the largest entry is made positive.
        largest = np.abs(axes).argmax(axis=0) if rank else np.zeros(0, int)
        # (A, R) directions in decreasing order of variance, and (R,) shares of the variance.
        self.axes = axes * np.where(axes[largest, np.arange(rank)] < 0, -1.0, 1.0)
        self.share = s[:rank] ** 2 / max((s**2).sum(), 1e-300)

    def __call__(self, x):
        """Map points x (n, A) to the first two principal axes, (n, 2); 0 without a second axis."""
        plane = np.zeros((len(x), 2))
        scores = (x * self._v - self._centre) @ self.axes[:, :2]
        plane[:, : scores.shape[1]] = scores
        return plane


# Surfaces ----------------------------------------------------------------------------------------


def surface_over(fit, two, r):
    """Evaluate a fit on a grid over two features; return (x, y, estimates, familiarity).

    x, y : (G,) values of the features in original units; estimates : (G, G, K)
    familiarity : (G, G) sum of weighted similarities with the prototypes
    two : positions of the features among the active ones
    r : (A,) standardized active features of a reference row"""
    t, d = fit.estimates, fit.design
    on = t.features[two]
    low = np.minimum(t.x[:, two].min(axis=0), r[two])
    high = np.maximum(t.x[:, two].max(axis=0), r[two])
    room = 0.08 * np.maximum(high - low, 1e-9)
    grid = np.linspace(low - room, high + room, GRID).T
    x = np.repeat(r[None], GRID * GRID, axis=0)
    x[:, two] = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
    Z, mass = estimates_at(t, x, fit._threads)
    first, second = grid * d.scale[on, None] + d.mean[on, None]
    return first, second, Z.reshape(GRID, GRID, -1), mass.reshape(GRID, GRID)


def _two_features(fit, features):
    """Return the positions of two active `features`, by default the two most important ones."""
    two = select_features(fit, 2 if features is None else features)
    if len(two) != 2 or two[0] == two[1]:
        count = f"this fit has {fit.df}" if features is None else f"not {features!r}"
        raise ArgumentError(f"features must be two different active features; {count}")
    return two


def _with_value(one, name):
    if name not in one:
        return name
    value = one[name].iloc[0]
    return f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"


KINDS = dict(weights=weights, map=map_, scatter=scatter, surface=surface, shapley=shapley)
