"""The training rows as the stages of boosting see them."""

from dataclasses import dataclass

import numpy as np

from lodim import tiles
from lodim.engine import available_threads
from lodim.models.gbmap.rotation import Rotation, rotation_of

SAMPLE = 16_384  # rows on which starts are followed first, where there are over four times as many


@dataclass(frozen=True)
class Training:
    """Rows, and what is known of them before the first stage.

    X : tiles of the features, or of their rotation
    y, weight : (n,); weights sum to one
    score : (n, K), of the offset, the null model and the learners so far; updated in place
    level : (K,), what the null model adds to the offset, in units of scale
    scale : standard deviation of a numeric response beside its offset, else 1
    p : number of features that vary
    spread : sd of each start's weight, zero for a column that is constant
    sample, sample_X : positions of random rows and their tiles, None where rows are few
    rotation : that made X of wide data, or None
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    score: np.ndarray
    level: np.ndarray
    scale: float
    p: int
    spread: np.ndarray
    sample: np.ndarray | None
    sample_X: np.ndarray | None
    rotation: Rotation | None
    threads: int

    @classmethod
    def of(cls, batch, family, settings):
        """The rows of a batch before the first stage."""
        weight, base = batch.weight, batch.base(family.n_scores)
        scale = _scale(batch.y - base[:, 0], weight) if family.name == "gaussian" else 1.0
        score = family.null_score(batch.y, weight, base)
        level = (score - base)[0] / scale
        X, rotation = batch.X, None
        varies = np.einsum("tpi,tpi->p", X, X) > 0
        p = max(1, int(varies.sum()))
        if p > batch.n and settings.l1_ratio == 0.0:
            rotation = rotation_of(batch)
            X = rotation.X
            varies = np.ones(X.shape[1])
        sample, sample_X = _sample(X, weight, settings.seed)
        threads = settings.threads or available_threads()
        return cls(
            X, batch.y, weight, score, level, scale, p, varies / np.sqrt(p), sample, sample_X,
            rotation, threads,
        )  # fmt: skip


def _sample(X, weight, seed):
    """Positions of SAMPLE random rows that count, and their tiles; None, None of few rows."""
    if weight.size <= 4 * SAMPLE:
        return None, None
    counted = np.flatnonzero(weight)
    size = min(SAMPLE, counted.size)
    sample = np.sort(np.random.default_rng(seed).choice(counted, size, replace=False))
    return sample, tiles.pack(tiles.rows(X, sample), X.dtype)


def _scale(residual, weight):
    """Standard deviation, one if there is none."""
    sd = np.sqrt(weight @ (residual - weight @ residual) ** 2)
    return sd if sd > 0 else 1.0
