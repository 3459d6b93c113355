"""The estimates of gbmap and what follows from them row by row."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.engine.blocks import over_rows, place
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.models.gbmap.kernels.cpu import IDENTITY, SOFTPLUS, forward

CHUNK = 16 * TILES_PER_BLOCK  # tiles worked on at a time: bounds the memory of every prediction


@dataclass(frozen=True)
class Boosts:
    """M weak learners f_j(x) = scale (a_j + b_j g(w_j'x~)), on standardized features.

    theta (M, 2 + p) holds (a, intercept of w, w); sign (M,) is b; target (M,) the score that the
    learner adds to; stage (M,) its boost, from 1; beta and activation define g; scale is the
    standard deviation of a numeric response, else 1; n_scores K.
    """

    theta: np.ndarray
    sign: np.ndarray
    target: np.ndarray
    stage: np.ndarray
    beta: float
    activation: int
    scale: float
    n_scores: int

    def check(self, p, n_scores):
        """Raise ValueError unless the fields fit each other, p features and the family."""
        known = {
            "theta": forms.real("M", 2 + p), "sign": forms.real("M", least=-1, most=1),
            "target": forms.whole("M", most=n_scores - 1),
            "stage": forms.ascending(forms.whole("M", least=1)),
            "beta": forms.real(least=forms.TINY), "activation": forms.choice(SOFTPLUS, IDENTITY),
            "scale": forms.real(least=forms.TINY), "n_scores": forms.choice(n_scores),
        }  # fmt: skip
        forms.check(self, known)
        if not (len(self.stage) and self.stage[0] == 1 and (np.abs(self.sign) == 1.0).all()):
            raise ValueError("there is no first boost, or a learner has a sign not +-1")

    def first(self, m):
        """The learners of the first m boosts."""
        return self.taken(self.stage <= m)

    def taken(self, keep):
        """The learners at True of keep (M,)."""
        parts = {f: getattr(self, f)[keep] for f in ("theta", "sign", "target", "stage")}
        return replace(self, **parts)


def _forward(boosts, tiles, n, into, width, derivative, threads):
    """Learners, or their derivatives, added into the columns `into` of (n, width)."""
    out = np.zeros((len(tiles), width, TILE))
    add(boosts, tiles, into, out, derivative, threads)
    return boosts.scale * out.transpose(0, 2, 1).reshape(-1, width)[:n]


def add(boosts, tiles, into, out, derivative=False, threads=1):
    """Add learners, or their derivatives, in units of scale to the columns `into` of out.

    out is (n_tiles, width, 64), changed in place.
    """
    over_rows(
        forward, tiles, boosts.theta, boosts.sign, boosts.beta,
        boosts.activation, derivative, into, out, threads=threads,
    )  # fmt: skip


def chunks(tiles, n, width=1):
    """Slices of rows and their tiles, so many that temporaries of `width` a row stay small."""
    step = max(1, CHUNK // (1 + width // 16))
    for lo in range(0, len(tiles), step):
        yield slice(lo * TILE, min(n, (lo + step) * TILE)), tiles[lo : lo + step]


def score(boosts, tiles, n, threads=1, engine="cpu"):
    """Sum of the learners, (n, K), without the offset: Eq. 1."""
    return _in_chunks(boosts, tiles, n, boosts.target, boosts.n_scores, threads, engine)


def embedding(boosts, tiles, n, threads=1, engine="cpu"):
    """Coordinates f_j(x), (n, M): Eq. 5."""
    M = len(boosts.sign)
    return _in_chunks(boosts, tiles, n, np.arange(M), M, threads, engine)


def _in_chunks(boosts, tiles, n, into, width, threads, engine):
    out = np.empty((n, width))
    for rows, part in chunks(tiles, n):
        part = place(part, engine)
        out[rows] = _forward(boosts, part, rows.stop - rows.start, into, width, False, threads)
    return out


def learner_slopes(boosts, tiles, n, threads=1):
    """b_j g'(w_j'x~) in units of the response, (n, M); above half in size where j is active."""
    M = len(boosts.sign)
    return _forward(boosts, tiles, n, np.arange(M), M, True, threads)


def pattern(boosts, tiles, n, threads=1):
    """Activation pattern w_j'x~ > 0, bool (n, M); all true where g is the identity."""
    return learner_slopes(boosts, tiles, n, threads) * boosts.sign > 0.5 * boosts.scale


def local(boosts, tiles, n, threads=1):
    """Gradient of each score in the standardized features, (n, K, p)."""
    slope = learner_slopes(boosts, tiles, n, threads)
    out = np.empty((n, boosts.n_scores, boosts.theta.shape[1] - 2))
    for k in range(boosts.n_scores):
        of = boosts.target == k
        out[:, k] = slope[:, of] @ boosts.theta[of, 2:]
    return out


def projections(boosts, tiles, n):
    """w_j'x~ of every row and learner, (n, M)."""
    linear = replace(boosts, activation=IDENTITY, scale=1.0)
    E = embedding(linear, tiles, n)
    return (E - boosts.theta[:, 0]) * boosts.sign


@dataclass(frozen=True)
class Effects:
    """Averages over the training rows, on standardized features.

    mean, mean_abs (K, p): local coefficient and its absolute value; active (M,): share of rows
    with w_j'x~ > 0.
    """

    mean: np.ndarray
    mean_abs: np.ndarray
    active: np.ndarray


def effects(boosts, batch, threads):
    """Weighted averages of the local coefficients and of the activation patterns."""
    weight = batch.weight
    mean = np.zeros((boosts.n_scores, batch.X.shape[1]))
    mean_abs, active = np.zeros_like(mean), np.zeros(len(boosts.sign))
    for part, X in chunks(batch.X, batch.n, width=mean.size):
        w, size = weight[part], part.stop - part.start
        slope = learner_slopes(boosts, X, size, threads)
        active += w @ (slope * boosts.sign > 0.5 * boosts.scale)
        for k in range(boosts.n_scores):
            of = boosts.target == k
            gradient = slope[:, of] @ boosts.theta[of, 2:]
            mean[k] += w @ gradient
            mean_abs[k] += w @ np.abs(gradient)
    # A sum of weights that add up to one may end a rounding error above it.
    return Effects(mean, mean_abs, np.minimum(active, 1.0))
