"""Training rows of a search for models, and the choice of columns for it in wide problems."""

from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import SPAN_ROWS, on_host, over_spans, rows_of_spans
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.family import has_classes, losses
from lodim.models.costnet.penalty.problem import rows_beside

ALL = slice(None)
MOST_ROWS = 100_000  # most rows in searches whose refits pass over the rows
MOST_COLUMNS = 500  # most columns of a search; twice as many for least squares


@dataclass(frozen=True, eq=False)
class SearchData:
    """Rows of a search, and the columns of X that are considered."""

    X: np.ndarray  # in blocks of 64 rows, never copied as a whole
    y: np.ndarray
    weight: np.ndarray  # sums to one
    offset: np.ndarray  # (n, K)
    family: Any
    loss: tuple  # in the form of compiled functions
    columns: np.ndarray  # (q,) columns of X; searches number them 0 to q - 1
    n_positive: int  # number of rows with positive weight
    total_weight: float  # sum of the given weights, at least n_positive
    threads: int | None
    sign: np.ndarray  # (q,) required signs 1 or -1, or 0 without one

    @classmethod
    def from_batch(cls, batch, family, columns=None, threads=None, monotone=None):
        """Return the rows of a batch, with all columns by default.

        monotone : required signs (p,) of the coefficients, or None"""
        columns = np.arange(batch.X.shape[1]) if columns is None else np.asarray(columns, np.int64)
        n = len(batch.positive_weight)
        total = n if batch.weights is None else max(n, float(batch.weights.sum()))
        rows = rows_beside(batch, family.n_scores)
        loss = family.kernel_loss(*rows[:2])
        signs = np.zeros(batch.X.shape[1]) if monotone is None else monotone
        sign = np.array(signs, np.int64)[columns]
        return cls(batch.X, *rows, family, loss, columns, n, total, threads, sign)

    def sample(self):
        """Return enough rows for a search: all of them, or a fixed sample of 100,000.

        A gaussian family uses all rows, since one Gram matrix gives all refits."""
        n_tiles, most = len(self.X), MOST_ROWS // TILE
        if self.family.name == "gaussian" or n_tiles <= most:
            return self
        drawn = np.sort(np.random.default_rng(0).permutation(n_tiles - 1)[:most])
        rows = (drawn[:, None] * TILE + np.arange(TILE)).ravel()
        weight, share = self.weight[rows], float(self.weight[rows].sum())
        return replace(
            self,
            X=self.X[drawn] if on_host(self.X) else tiles.pack(self.X.take(rows), self.X.dtype),
            y=self.y[rows],
            weight=weight / max(weight.sum(), 1e-300),
            offset=self.offset[rows],
            n_positive=int((weight > 0.0).sum()),
            total_weight=self.total_weight * share,
        )

    def sum(self, work, *args):
        """Return the sum of the tuples work(data, *args) over fixed ranges of rows, in order.

        work : function of the SearchData of a range; it must be defined at module level, since it
        may run on workers of a cluster"""
        if on_host(self.X) and len(self.y) <= SPAN_ROWS:
            return work(self, *args)
        return reduce(_added, self._pass(over_spans, work, args, threads=self.threads))

    def _pass(self, spans, work, args, **known):
        """Return work(data, *args) of each fixed range of rows, combined by a function `spans`."""
        of_span = partial(_of_span, work, args, self.family, self.loss, self.columns)
        rows = self.y, self.weight, self.offset
        return spans(of_span, self.X, len(self.y), *rows, **known)

    @property
    def df_per_column(self):
        """Degrees of freedom per column: K - 1 for K classes, otherwise 1."""
        return max(1, self.family.n_scores - 1)

    @cached_property
    def absent(self):
        """Classes without rows, (K,) bool."""
        return self.family.absent(self.y, self.weight)

    def blocks(self, on, ones=0):
        """Yield slices of r rows, and their values (ones + c, r) float64 of c columns `on`.

        ones : number of columns of ones that come first"""
        at, n = self.columns[on], len(self.y)
        if len(self.X) <= TILES_PER_BLOCK:
            yield slice(0, n), self._block[np.append(np.zeros(ones, np.int64), 1 + on)]
            return
        for start in range(0, len(self.X), TILES_PER_BLOCK):
            rows = slice(start * TILE, min(n, (start + TILES_PER_BLOCK) * TILE))
            flat = _flat(self.X[start : start + TILES_PER_BLOCK], at, ones)
            yield rows, flat[:, : rows.stop - rows.start]

    @cached_property
    def _block(self):
        """All columns (1 + q, n), after a column of ones, if all rows fit into one block."""
        return _flat(self.X, self.columns, 1)[:, : len(self.y)]

    def scores(self, intercept, on, coef):
        """Return linear predictors (n, K), given intercept (K,) and coefficients of columns `on`.

        The coefficients are (r, K) for r columns; offsets are added."""
        if not on_host(self.X):
            return self._pass(rows_of_spans, SearchData.scores, (intercept, on, coef))
        score = self.offset + intercept
        if len(on):
            for rows, X in self.blocks(on):
                score[rows] += (coef.T @ X).T
        return score

    def moments(self, on, scale, target):
        """Return X'SX (r, r), X's (r,) and X't (r, K) for r columns `on`.

        S = diag(s), where s (n,) is `scale`; t (n, K) is `target`."""
        q = len(on)
        XX, Xs = np.zeros((q, q)), np.zeros(q)
        Xt = np.zeros((q, target.shape[1]))
        root = np.sqrt(scale)
        for rows, X in self.blocks(on):
            rooted = X * root[rows]
            XX += rooted @ rooted.T
            Xs += X @ scale[rows]
            Xt += X @ target[rows]
        return XX, Xs, Xt

    def derivatives(self, score, rows=ALL):
        """Return minus the slopes (r, K) of half the deviance, and its curvature (r,), per row.

        They are derivatives in the linear predictors `score` (r, K), times the row weights. For K
        classes the curvature is the mean eigenvalue of the Hessian on scores that sum to zero."""
        weight, y = self.weight[rows], self.y[rows]
        if self.family.name == "gaussian":
            return (weight * (y - score[:, 0]))[:, None], weight
        if not has_classes(self.family):
            _, slope, curvature = losses.rows(self.loss, y, score[:, 0], weight)
            return -slope[:, None], curvature
        mean = self.family.mean(score)
        spread = mean * (1.0 - mean)
        if mean.ndim == 2:
            spread = spread.sum(axis=1) / (mean.shape[1] - 1)
        return self.residual(mean, rows), weight * spread

    def residual(self, mean, rows=ALL):
        """Return weighted differences (r, K) between classes (0 or 1) and probabilities `mean`."""
        weight, y = self.weight[rows, None], self.y[rows]
        if mean.ndim == 1:
            return weight * (y - mean)[:, None]
        out = -mean
        out[np.arange(len(y)), y.astype(np.int64)] += 1.0
        return weight * out

    def deviance(self, intercept, on, coef):
        """Return the weighted mean deviance of a model with coefficients (r, K) of columns `on`."""
        return float(self.sum(_deviance, intercept, on, coef)[0])


def _flat(X, columns, ones):
    """Return columns of X (t, p, 64), in blocks of 64 rows, as (ones + c, 64 t) float64.

    The first `ones` rows of the result are ones."""
    part = X if len(columns) == X.shape[1] else X[:, columns]  # avoids a copy of all columns
    out = np.ones((ones + len(columns), len(X) * TILE))
    out[ones:].reshape(len(columns), len(X), TILE)[:] = part.transpose(1, 0, 2)
    return out


def _of_span(work, args, family, loss, columns, X, y, weight, offset):
    """Return the result of work(data, *args) for the rows of a span (a fixed range of rows)."""
    n, signs = int(np.count_nonzero(weight)), np.zeros(len(columns), np.int64)
    data = SearchData(X, y, weight, offset, family, loss, columns, n, float(n), None, signs)
    return work(data, *args)


def _added(one, other):
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _deviance(data, intercept, on, coef):
    return (data.weight @ data.family.deviance(data.y, data.scores(intercept, on, coef)),)


def screened_nodes(batch, family, network, path):
    """Return the nodes of the dependency graph that a search considers, (V,) bool; None for all.

    Nodes of the penalized path's models come first, then those of the largest score statistic, each
    with everything it needs, up to 500 columns (1,000 for least squares)."""
    p, most = batch.X.shape[1], MOST_COLUMNS * (2 if family.name == "gaussian" else 1)
    if p <= most:
        return None
    strength = _score_statistic(batch, family)
    if path is not None:
        # Columns that enter the path earlier are more promising.
        used = path.coef.any(axis=2)
        first = np.where(used.any(axis=0), used.argmax(axis=0), p)
        strength = strength / strength.max() + np.where(first < p, 1.0 + p - first, 0.0)
    best = [max((strength[j] for j in columns), default=-np.inf) for columns in network.columns]
    kept, columns = np.zeros(len(network), bool), 0
    for v in np.argsort(best)[::-1]:
        new = np.flatnonzero(network.needs[v] & ~kept)
        columns += sum(len(network.columns[u]) for u in new)
        if columns > most:
            break
        kept[new] = True
    return kept


def _score_statistic(batch, family):
    """Return the score statistic of each of p columns at the null model, (p,).

    It says how much a column alone would improve the null model."""
    data = SearchData.from_batch(batch, family)
    gain, square = data.sum(_gains, family.null_intercept(data.y, data.weight, data.offset))
    return (gain**2).sum(axis=1) / np.maximum(square, 1e-300)


def _gains(data, intercept):
    """Return slopes (p, K) of the deviance at the null model, and columns' sums of squares (p,)."""
    residual, _ = data.derivatives(data.offset + intercept)
    p = data.X.shape[1]
    gain, square = np.zeros((p, residual.shape[1])), np.zeros(p)
    for rows, X in data.blocks(np.arange(p)):
        gain += X @ residual[rows]
        square += X**2 @ data.weight[rows]
    return gain, square
