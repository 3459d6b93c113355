"""Votes of the nearest rows in the views, and what they say of each row beside the mean."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels, losses
from lodim.models.ripr.views import features, spread_codes
from lodim.models.ripr.vote.kernels import cell_sums, vote_sums
from lodim.progress import steps

PRIOR_ROWS = 2.0  # of the shares of all rows (or of their mean), which join those of a vote


@dataclass(frozen=True, eq=False)
class Voters:
    """The rows that vote.

    A : (n, q) places on axes, NaN where missing
    category_distance : (q,), see `Axes.category_distance`
    target : (n, C) indicators of the classes, or the response less its mean in units of its spread
    weight : (n,) in units of their mean
    prior : (C,) mean of the target
    mean, spread : of a numeric response
    """

    A: np.ndarray
    category_distance: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    prior: np.ndarray
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of_classes(cls, A, category_distance, y, weight, n_classes):
        """Voters of classes y (n,), codes."""
        weight = weight / weight.mean()
        target = (y[:, None] == np.arange(n_classes)).astype(np.float64)
        prior = np.maximum(np.einsum("i,ic->c", weight, target) / weight.sum(), 1e-12)
        return cls(A, category_distance, target, weight, prior)

    @classmethod
    def of_numbers(cls, A, category_distance, y, weight):
        """Voters of numbers y (n,), in units of their standard deviation from their mean."""
        weight = weight / weight.mean()
        mean = weight @ y / weight.sum()
        spread = np.sqrt(weight @ (y - mean) ** 2 / weight.sum()) or 1.0
        target = ((y - mean) / spread)[:, None]
        return cls(A, category_distance, target, weight, np.zeros(1), float(mean), float(spread))

    def at(self, rows):
        """These rows alone, with the prior of all."""
        return replace(self, A=self.A[rows], target=self.target[rows], weight=self.weight[rows])

    @property
    def goal(self):
        """Targets with doubt: of classes `smoothed_targets`, which no sure answer attains."""
        if not self.classes:
            return self.target
        return smoothed_targets(self.target.argmax(axis=1), self.target.shape[1])

    @property
    def classes(self):
        """Whether the target are classes."""
        return self.target.shape[1] > 1

    def sums(self, views, k, Q=None, threads=1):
        """Sums (views, m, C + 1) of weighted targets, and of weights, over the k nearest rows.

        Of rows Q (m, q), or of the voters, each without itself.
        """
        values = self.weight[:, None] * np.column_stack([self.target, np.ones(len(self.A))])
        Q, own = (self.A, np.arange(len(self.A))) if Q is None else (Q, np.full(len(Q), -1))
        out = np.empty((len(views), len(Q), values.shape[1]))
        levels = np.array(
            [(self.category_distance[features(view)] > 0.0).all() for view in views], bool
        )
        rest = np.flatnonzero(~levels)
        if len(rest):
            self._near_places(out, rest, views, k, Q, own, values, threads)
        for j in np.flatnonzero(levels):
            at = features(views[j])
            cells = _cells(Q[:, at], self.A[:, at], values)
            more = (cells[0], *cells[1:3], self.category_distance[at], own, k, values, cells[3])
            for_blocks(cell_sums, len(Q), out[j], *more, threads=threads)
        return out

    def _near_places(self, out, some, views, k, Q, itself, values, threads):
        """Fill sums of the views `some`, in which places are near each other."""
        category_distance = self.category_distance
        refs = spread_codes(self.A, category_distance)
        rows = spread_codes(Q, category_distance)
        caps = _scaled(category_distance, refs)
        rows, refs = (
            np.where(Z == kernels.MISSING, np.float32(np.nan), Z)
            for Z in losses.single_precision(rows, refs)
        )
        order = [np.argsort(x, kind="stable") for x in refs]
        distinct = [
            len(np.unique(x)) * (most == 0) for x, most in zip(refs, category_distance, strict=True)
        ]
        for j in steps(some, len(some), "neighbours in views"):
            at = sorted(features(views[j]), key=lambda f: (-distinct[f], f))
            by = order[at[0]]
            by = by[~np.isnan(refs[np.ix_(at, by)]).any(axis=0)]
            place = np.full(len(refs[0]) + 1, -1)
            place[by] = np.arange(len(by))
            columns = np.ascontiguousarray(refs[np.ix_(at, by)])
            more = (rows[at], columns, caps[at], place[itself], k, values[by])
            for_blocks(vote_sums, len(Q), out[j], *more, threads=threads)

    def evidence(self, sums):
        """What sums (..., C + 1) say beside the prior, (..., C): log ratios of classes, or numbers.

        The prior joins as PRIOR_ROWS rows; zeros where nobody votes.
        """
        total = sums[..., -1:] + PRIOR_ROWS
        if not self.classes:
            return sums[..., :-1] / total
        return np.log((sums[..., :-1] / self.prior + PRIOR_ROWS) / total)


def smoothed_targets(code, n_classes):
    """Targets (m, K): the row's class but for one row in n + 2, which the others share."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out


def _cells(Q, A, values):
    """Cells of levels that rows Q (m, D) and A (n, D) are in.

    Returns
    -------
    cell : array (m,), -1 of a row that misses a level
    places : array (cells, D)
    count, total : arrays (cells,) and (cells, C), of rows A and of their values (n, C)
    """
    both = np.concatenate([Q, A])
    known = ~np.isnan(both).any(axis=1)
    codes = np.where(known[:, None], both, 0.0).astype(np.int64) + 1
    _, first, cell = np.unique(
        np.ravel_multi_index(codes.T, codes.max(axis=0) + 1), return_index=True, return_inverse=True
    )
    m, refs = len(Q), cell[len(Q) :][known[len(Q) :]]
    count = np.bincount(refs, minlength=len(first))
    value = values[known[m:]]
    total = np.column_stack([np.bincount(refs, v, len(first)) for v in value.T])
    return np.where(known[:m], cell[:m], -1), codes[first] - 1, count, total


def _scaled(category_distance, refs):
    """Distances of levels in the unit of single precision, (q,)."""
    return np.ldexp(category_distance, -2 * losses.unit_digits(refs)).astype(np.float32)
