"""What the learners do over the training rows: effects of features, activity, reference rows."""

from dataclasses import dataclass

import numpy as np

from lodim.design.batch import subset
from lodim.models.gbmap import learners as rows


@dataclass(frozen=True)
class Effects:
    """Averages over the training rows, on standardized features.

    mean, mean_abs (K, p): local coefficient and its absolute value; active (M,): share of rows
    with w_j'x~ > 0.
    """

    mean: np.ndarray
    mean_abs: np.ndarray
    active: np.ndarray


@dataclass(frozen=True)
class Reference:
    """Training rows that neighbours are looked up among.

    embedding (r, M); score (r, K) without the offset; y (r,), a numeric one less its offset.
    """

    embedding: np.ndarray
    score: np.ndarray
    y: np.ndarray


def effects(boosts, batch, threads):
    """Weighted averages of the local coefficients and of the activation patterns."""
    weight = batch.weight
    mean = np.zeros((boosts.n_scores, batch.X.shape[1]))
    mean_abs, active = np.zeros_like(mean), np.zeros(len(boosts.sign))
    for part, X in rows.chunks(batch.X, batch.n, width=mean.size):
        w, size = weight[part], part.stop - part.start
        slope = rows.learner_slopes(boosts, X, size, threads)
        active += w @ (slope * boosts.sign > 0.5 * boosts.scale)
        for k in range(boosts.n_scores):
            of = boosts.target == k
            gradient = slope[:, of] @ boosts.theta[of, 2:]
            mean[k] += w @ gradient
            mean_abs[k] += w @ np.abs(gradient)
    # A sum of weights that add up to one may end a rounding error above it.
    return Effects(mean, mean_abs, np.minimum(active, 1.0))


def reference(boosts, batch, numeric, most, seed, threads):
    """At most `most` training rows of weight above zero, drawn at random where there are more."""
    counted = batch.positive_weight
    if counted.size > most:
        counted = np.sort(np.random.default_rng(seed).choice(counted, most, replace=False))
    if counted.size < batch.n:
        batch = subset(batch, counted)
    y = batch.y
    if numeric and batch.offset is not None:
        y = y - batch.offset.reshape(-1)
    E = rows.embedding(boosts, batch.X, batch.n, threads)
    score = np.zeros((batch.n, boosts.n_scores))
    for k in range(boosts.n_scores):
        score[:, k] = E[:, boosts.target == k].sum(axis=1)
    return Reference(E, score, y)
