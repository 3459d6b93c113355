"""Training rows of a search for models, and the choice of columns for it in wide problems."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads, on_host, sum_tiles
from lodim.engine.tiles import TILE
from lodim.models.costnet.training_rows import TrainingRows, response_weights_offset

MOST_ROWS = 100_000  # most rows in searches whose refits pass over the rows
MOST_COLUMNS = 500  # most columns of a search; twice as many for least squares


@dataclass(frozen=True, eq=False)
class SearchData(TrainingRows):
    """Rows of a search, and the columns of X that are considered."""

    columns: np.ndarray  # (q,) columns of X; searches number them 0 to q - 1
    n_positive: int  # number of rows with positive weight
    total_weight: float  # sum of the given weights, at least n_positive
    sign: np.ndarray  # (q,) required signs 1 or -1, or 0 without one

    @classmethod
    def from_batch(cls, batch, family, columns=None, threads=None, monotone=None):
        """Return the rows of a batch for a model search.

        columns : positions of the columns to search, or None for all
        monotone : (p,) required signs, 1, -1 or 0 for none; or None"""
        columns = np.arange(batch.X.shape[1]) if columns is None else np.asarray(columns, np.int64)
        n = len(batch.positive_weight)
        signs = np.zeros(batch.X.shape[1]) if monotone is None else monotone
        return cls(
            batch.X,
            response_weights_offset(batch, family.n_scores),
            family,
            threads=available_threads() if threads is None else threads,
            spread=1.0,
            columns=columns,
            n_positive=n,
            total_weight=n if batch.weights is None else max(n, float(batch.weights.sum())),
            sign=np.array(signs, np.int64)[columns],
        )

    def sample(self):
        """Return at most 100,000 random rows, always the same; for a gaussian family, all rows."""
        n_tiles, most = len(self.X), MOST_ROWS // TILE
        if self.family.name == "gaussian" or n_tiles <= most:
            return self
        drawn = np.sort(np.random.default_rng(0).permutation(n_tiles - 1)[:most])
        rows = (drawn[:, None] * TILE + np.arange(TILE)).ravel()
        y, weight, offset = (values[rows] for values in self.given)
        share = float(weight.sum())
        return replace(
            self,
            X=self.X[drawn] if on_host(self.X) else tiles.pack(self.X.take(rows), self.X.dtype),
            given=(y, weight / max(share, 1e-300), offset),
            n_positive=int((weight > 0.0).sum()),
            total_weight=self.total_weight * share,
        )

    @cached_property
    def scores(self):
        return self.offset

    @property
    def df_per_column(self):
        return max(1, self.family.n_scores - 1)

    def at_model(self, theta, on, curvatures=0, least=None):
        """Return value, negative gradient (K, 1 + r) and moments of half a model's mean deviance.

        Moments (J, J, 1 + r, 1 + r) are sums of second derivatives times products of two columns.
        theta : (1 + r, K) intercepts and coefficients
        on : (r,) positions of the columns
        curvatures : number J^2 of second derivatives per row: 0, 1, or K^2 for pairs of scores
        least : lower limit for a row's second derivative, or None for the default"""
        columns = np.append(-1, self.columns[on])
        return self.derivatives(self.scores, columns, curvatures, theta.T, least)[:3]

    def deviance(self, intercept, on, coef):
        return 2.0 * self.at_model(np.vstack([intercept, coef]), on)[0]


def screened_nodes(batch, family, network, path):
    """Choose the nodes (columns, terms) that a search considers, (V,) bool, or None for all.

    batch : training rows; network : Network of the V nodes
    path : PenaltyPath that ranks the columns if they are too many, or None"""
    # Columns on the path come first, then the others by significance.
    p, most = batch.X.shape[1], MOST_COLUMNS * (2 if family.name == "gaussian" else 1)
    if p <= most:
        return None
    # The score statistic of adding each column alone to the null model.
    data, null = SearchData.from_batch(batch, family), np.zeros((family.n_scores, 1 + p))
    null[:, 0] = data.null
    slopes = data.derivatives(data.scores, np.arange(-1, p), step=null)[1][:, 1:]
    squares = sum_tiles(_squares, data.X, data.weight)
    strength = (slopes**2).sum(axis=0) / np.maximum(squares, 1e-300)
    if path is not None:
        # Columns that enter the path earlier are more promising.
        used = path.coef.any(axis=2)
        first = np.where(used.any(axis=0), used.argmax(axis=0), p)
        strength = strength / strength.max() + np.where(first < p, 1.0 + p - first, 0.0)
    best = [max((strength[j] for j in columns), default=-np.inf) for columns in network.columns]
    kept, size = np.zeros(len(network), bool), 0
    for v in np.argsort(best)[::-1]:
        new = np.flatnonzero(network.needs[v] & ~kept)
        size += sum(len(network.columns[u]) for u in new)
        if size > most:
            break
        kept[new] = True
    return kept


def _squares(X, weight):
    return np.einsum("tpi,tpi,ti->p", X, X, weight)
