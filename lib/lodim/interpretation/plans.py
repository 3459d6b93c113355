"""Plans for effects: rows to predict, and functions that compute effects from predictions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lodim.engine import row_keys
from lodim.errors import ArgumentError
from lodim.interpretation import accumulated_local_effects as ale
from lodim.interpretation.rows import Rows

GRID = 20  # number of values for partial dependence, in addition to the smallest
SAMPLE = 500  # number of rows over which partial dependence is averaged
STEP = 1e-3  # difference of the two values for a slope, in standard deviations


@dataclass(frozen=True)
class Plan:
    """Plan to compute an effect: rows to predict, and a function: predictions -> effect."""

    values: list  # the q points: numbers, levels, pairs of numbers, or contrasts
    changed: list[Rows]  # rows in which feature values were changed
    reduce: Callable  # list of predictions, each (n, K) -> effect (q, K)


def local_effects(rows, feature, others):
    """Return a Plan (rows to predict, function of predictions) for an accumulated local effect.

    feature : Feature, the column to change
    others : list of other Features, to sort levels by similarity"""
    rows, x, at = known_rows(rows, feature)
    if feature.levels is not None:
        used, code = np.unique(x.astype(int), return_inverse=True)
        L = len(used)
        order = np.arange(L)
        if not rows.columns[feature.name].ordered and L > 2:
            by = [(other.values[at], len(other.levels or ())) for other in others]
            order = ale.order_of_levels(code, L, by)
        rank = np.argsort(order)[code]
        around = [used[order][np.clip(rank + i, 0, L - 1)] for i in (-1, 0, 1)]

        def reduce(answers):
            before, own, after = answers
            up = np.where((rank == L - 1)[:, None], np.nan, after - own)
            down = np.where((rank == 0)[:, None], np.nan, own - before)
            return ale.by_levels(up, down, rank, rows.weight, L)

        changed = [rows.with_values(feature, codes) for codes in around]
        return Plan([feature.levels[k] for k in used[order]], changed, reduce)
    edges = ale.edges_of(x, rows.weight, ale.BINS)
    if len(edges) < 2:
        return Plan([*edges], [rows], lambda answers: np.zeros((1, answers[0].shape[1])))
    at = ale.bins_of(x, edges)
    ends = [rows.with_values(feature, edges[at + i]) for i in (0, 1)]
    bins = at, rows.weight, len(edges) - 1
    return Plan([*edges], ends, lambda answers: ale.accumulate(answers[1] - answers[0], *bins))


def interaction(rows, features):
    """Return a Plan (rows to predict, function of predictions) for two Features' interaction."""
    for feature in features:
        if feature.levels is not None:
            has = f"{feature.name!r} has levels"
            cure = f"give by={feature.name!r} for the effect of the other feature at each level"
            raise ArgumentError(f"a pair needs two numeric features, but {has}: {cure}")
    known = np.isfinite([feature.values for feature in features]).all(axis=0)
    at = np.flatnonzero(known)
    rows, xs = rows.take(at), [feature.values[at] for feature in features]
    edges = [ale.edges_of(x, rows.weight, ale.PAIR_BINS) for x in xs]
    if min(map(len, edges)) < 2:
        flat = [f.name for f, e in zip(features, edges, strict=True) if len(e) < 2]
        raise ArgumentError(f"{flat[0]!r} does not vary: it has no effect with another feature")
    cell = np.stack([ale.bins_of(x, e) for x, e in zip(xs, edges, strict=True)], axis=1)
    (one, other), corners = features, []
    for i, j in np.ndindex(2, 2):
        changed = rows.with_values(one, edges[0][cell[:, 0] + i])
        corners.append(changed.with_values(other, edges[1][cell[:, 1] + j]))
    shape = len(edges[0]) - 1, len(edges[1]) - 1
    beside = np.zeros((shape[0] + 1, shape[1] + 1), bool)  # points next to a cell with rows
    for i, j in np.ndindex(2, 2):
        beside[cell[:, 0] + i, cell[:, 1] + j] = True

    def reduce(answers):
        low, left, right, high = answers
        effect = ale.second_order(high - left - right + low, cell, rows.weight, shape)
        effect[~beside] = np.nan
        return effect.reshape(-1, effect.shape[2])

    values = [(a, b) for a in edges[0] for b in edges[1]]
    return Plan(values, corners, reduce)


def dependence(rows, feature, drawn):
    """Return a Plan (rows to predict, function of predictions) for partial dependence on a Feature.

    drawn : positions of the `rows` whose predictions are averaged, with each of a grid of values"""
    known, x, _ = known_rows(rows, feature)
    values = np.arange(len(feature.levels or ()), dtype=float)
    if feature.levels is None:
        values = ale.edges_of(x, known.weight, GRID)
    each = rows.take(np.tile(drawn, len(values)))
    weight = rows.weight[drawn]

    def reduce(answers):
        cube = answers[0].reshape(len(values), len(drawn), -1)
        W = np.where(np.isfinite(cube).all(axis=2), weight, 0.0)
        return np.einsum("vn,vnk->vk", W, np.nan_to_num(cube)) / W.sum(axis=1, keepdims=True)

    changed = [each.with_values(feature, np.repeat(values, len(drawn)))]
    names = [*values] if feature.levels is None else list(feature.levels)
    return Plan(names, changed, reduce)


def slopes(rows, feature):
    """Return a Plan (rows to predict, function of predictions) for a Feature's mean slope.

    rows : Rows; levels have, instead of a slope, mean differences from the most frequent level"""
    rows, x, _ = known_rows(rows, feature)
    if feature.levels is not None:
        count = np.bincount(x.astype(int), rows.weight, len(feature.levels))
        reference, *others = [k for k in np.argsort(-count, kind="stable") if count[k] > 0.0]
        names = [f"{feature.levels[k]} - {feature.levels[reference]}" for k in others]
        changed = [rows.with_values(feature, float(k)) for k in (reference, *others)]

        def contrasts(answers):
            each = [_mean(one - answers[0], rows.weight) for one in answers[1:]]
            return np.array(each).reshape(-1, answers[0].shape[1])

        return Plan(names, changed, contrasts)
    share = rows.weight / rows.weight.sum()
    step = STEP * np.sqrt(share @ (x - share @ x) ** 2) or 1.0
    changed = [rows.with_values(feature, x + side * 0.5 * step) for side in (-1.0, 1.0)]

    def slope(answers):
        return _mean((answers[1] - answers[0]) / step, rows.weight)[None]

    return Plan(["per unit"], changed, slope)


def known_rows(rows, feature):
    """Return the Rows with a value of a Feature, these values (m,), and the positions (m,)."""
    at = np.flatnonzero(np.isfinite(feature.values))
    if not at.size:
        raise ArgumentError(f"every row of the data has a missing value of {feature.name!r}")
    return rows.take(at), feature.values[at], at


def drawn_rows(fit, rows, seed):
    """Return the positions of at most 500 random rows, instead of all rows, to save time."""
    batch = rows.batch(fit._reader)
    if batch.n <= SAMPLE:
        return batch.rows
    return batch.rows[row_keys.drawn(row_keys.of_batch(batch, 0)[0], SAMPLE, seed)]


def _mean(values, weight):
    known = np.isfinite(values).all(axis=1)
    return weight[known] @ values[known] / weight[known].sum()
