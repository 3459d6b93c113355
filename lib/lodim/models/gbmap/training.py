"""The training rows as the stages of boosting see them."""

from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import logsumexp

from lodim.engine import row_keys as keys
from lodim.engine import tiles
from lodim.engine.blocks import available_threads, dot, on_host, place
from lodim.models.gbmap import learners as rows
from lodim.models.gbmap.starts import derivatives

START_ROWS = 2048  # rows that starts are drawn from, at most
SAMPLE = 16_384  # rows on which starts are followed first, where there are over four times as many


@dataclass(frozen=True)
class Rotation:
    """An orthonormal basis V (p, r) of the span of the rows of X, and X V as tiles.

    A ridge never leaves that span, and |V u| = |u|: learners fitted to X V are those of X, at the
    price of r columns.
    """

    basis: np.ndarray
    X: np.ndarray

    def shorten(self, theta):
        """(a, intercept, w) -> (a, intercept, V'w), row by row."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis])

    def lengthen(self, theta):
        """(a, intercept, u) -> (a, intercept, V u), row by row."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis.T])


_ROTATIONS: WeakKeyDictionary = WeakKeyDictionary()  # a batch is fitted for many penalties


def rotation_of(batch):
    """The rotation of a batch, from the eigenvectors of X X'; made once for each batch."""
    rotation = _ROTATIONS.get(batch)
    if rotation is None:
        rows = tiles.unpack(batch.X, batch.n).astype(np.float64)
        values, U = np.linalg.eigh(rows @ rows.T)
        keep = values > 1e-12 * max(values[-1], 1e-300)
        basis = rows.T @ (U[:, keep] / np.sqrt(values[keep]))
        rotation = Rotation(basis, tiles.pack(rows @ basis, batch.X.dtype))
        _ROTATIONS[batch] = rotation
    return rotation


@dataclass(frozen=True)
class Training:
    """Rows, and what is known of them before the first stage.

    X : tiles of the features, or of their rotation, where their passes run
    y, weight : (n,), y in units of scale; weights sum to one
    score : tiles (n_tiles, K, 64) of the offset, the null model and the learners so far, in units
        of scale; updated in place. Where X is on a GPU it stays as it began, and `resident` has
        what becomes of it
    level : (K,), what the null model adds to the offset, in units of scale
    scale : standard deviation of a numeric response beside its offset, else 1
    p : number of features that vary
    sample, sample_X : positions of random rows and their tiles, always on the host; all rows where
        they are few and X is on a GPU, None where they are few and it is not
    start_at, start_key : positions, in the sample or among all rows, of those that starts are drawn
        from, and their keys
    class_order : (K,), in which the learners of a boost are fitted, the same under other names
    rotation : that made X of wide data, or None
    resident : Resident, the rows beside an X on a GPU, or None
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    score: np.ndarray
    level: np.ndarray
    scale: float
    p: int
    sample: np.ndarray | None
    sample_X: np.ndarray | None
    start_at: np.ndarray
    start_key: np.ndarray
    class_order: np.ndarray
    rotation: Rotation | None
    threads: int
    resident: Any = None

    @classmethod
    def of(cls, batch, family, settings):
        """The rows of a batch before the first stage."""
        weight, base = batch.weight, batch.offset_matrix(family.n_scores)
        scale = _scale(batch.y - base[:, 0], weight) if family.name == "gaussian" else 1.0
        score = family.null_score(batch.y, weight, base)
        level = (score - base)[0] / scale
        y, score = batch.y / scale, tiles.pack(score / scale)
        X, rotation = batch.X, None
        p = max(1, int(tiles.varies(X).sum()))
        if p > batch.n and settings.l1_ratio == 0.0:
            rotation = rotation_of(batch)
            X = rotation.X
        sample, sample_X = _sample(X, weight, settings.seed)
        start_at, start_key, class_order = _ordered(batch, sample, family)
        threads = settings.threads or available_threads()
        host, X, resident = X, place(X, settings.engine), None
        if not on_host(X):
            if sample is None:
                sample, sample_X = np.arange(batch.n), host
            from lodim.models.gbmap.kernels.resident import Resident  # loads CUDA

            resident = Resident.of(X, y, weight, score, family, sample)
        return cls(
            X, y, weight, score, level, scale, p, sample, sample_X,
            start_at, start_key, class_order, rotation, threads, resident,
        )  # fmt: skip

    def whole(self, family, k):
        """The one-score problem of score k: X, and tiles of response, score and weight."""
        if self.resident is not None:
            return self.X, *self.resident.margin(k), self.resident.weight
        y, base = self.margin(family, k)
        return _one_score(self.X, y, base, self.weight)

    def part(self, family, k):
        """The same of the sample, on the host."""
        y, base, weight = self._known(family, k)
        return _one_score(self.sample_X, y, base, weight)

    @property
    def exact(self):
        """Whether the rows are so few that starts are followed on all of them, to the last bit."""
        return self.sample is None or len(self.sample) == len(self.y)

    def start_rows(self, family, k):
        """Features of the rows that starts are drawn from, slope and curvature of loss, keys."""
        i = self.start_at
        y, base, weight = (v[i] for v in self._known(family, k))
        X = tiles.rows(self.X if self.sample is None else self.sample_X, i).astype(np.float64)
        weight = weight / weight.sum()
        return X, *derivatives(y, base, weight, family.name == "gaussian"), self.start_key

    def _known(self, family, k):
        """Response, score and weights of the sample for score k, or of all rows without one."""
        if self.sample is None:
            return *self.margin(family, k), self.weight
        i = self.sample
        score = tiles.rows(self.score, i) if self.resident is None else self.resident.sample_score()
        return *margin(family, self.y[i], score, k), self.weight[i] / self.weight[i].sum()

    def margin(self, family, k):
        """Response and score of the one-score problem for score k, (n,) each."""
        return margin(family, self.y, tiles.unpack(self.score, len(self.y)), k)

    def add(self, learner, X):
        """Add a learner, of the features that tiles X hold, to its score."""
        if self.resident is None:
            rows.add(learner, X, learner.target, self.score, threads=self.threads)
        elif self.rotation is None:
            self.resident.add(learner)
        else:
            self.resident.add(replace(learner, theta=self.rotation.shorten(learner.theta)))

    def deviance(self, family):
        """Weighted mean deviance of the rows, in units of the response."""
        score = self.score if self.resident is None else self.resident.score.copy_to_host()
        score = tiles.unpack(score, len(self.y))
        return self.scale**2 * dot(self.weight, family.deviance(self.y, score))


def _one_score(X, *columns):
    """X and per-row arrays as tiles of its dtype, in which the kernels work."""
    return X, *(tiles.pad(v, len(X), X.dtype) for v in columns)


def margin(family, y, score, k):
    """Response and score of the one-score problem for score k, of scores (n, K)."""
    if family.n_scores == 1:
        return y, score[:, 0]
    others = np.delete(score, k, axis=1)
    return (y == k).astype(float), score[:, k] - logsumexp(others, axis=1)


def _sample(X, weight, seed):
    """Positions of SAMPLE random rows that count, and their tiles; None, None of few rows."""
    if weight.size <= 4 * SAMPLE:
        return None, None
    counted = np.flatnonzero(weight)
    size = min(SAMPLE, counted.size)
    sample = np.sort(np.random.default_rng(seed).choice(counted, size, replace=False))
    return sample, tiles.pack(tiles.rows(X, sample), X.dtype)


def _ordered(batch, sample, family):
    """Up to START_ROWS positions among those of the sample, or all, their keys; order of classes.

    Weights above zero alone count, as if rows were repeated.
    """
    rows = np.arange(batch.n) if sample is None else sample
    weight = batch.weight[rows]
    at = np.flatnonzero(weight)
    if sample is not None:
        at = at[:: -(-len(at) // START_ROWS)]
    X, weight = tiles.rows(batch.X, rows[at]).astype(np.float64), weight[at]
    key = keys.keys(X, weight)
    order = np.arange(family.n_scores)
    if family.n_scores > 1:
        code = batch.y[rows[at]].astype(int)
        mean = np.bincount(
            code, weight * keys.keys(X, weight, code, family.n_scores), family.n_scores
        )
        order = np.argsort(mean / np.maximum(np.bincount(code, weight, family.n_scores), 1e-300))
    if sample is None and len(at) > START_ROWS:
        some = keys.drawn(key, START_ROWS, 0)
        at, key = at[some], key[some]
    return at, key, order


def _scale(residual, weight):
    """Standard deviation, one if there is none."""
    sd = np.sqrt(dot(weight, (residual - dot(weight, residual)) ** 2))
    return sd if sd > 0 else 1.0
