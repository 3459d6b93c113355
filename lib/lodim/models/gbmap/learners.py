"""Weak learners of a gbmap fit, and effects: the slopes of its features, averaged over rows."""

from dataclasses import replace
from functools import partial

import numpy as np

from lodim import forms
from lodim.engine.blocks import over_rows, over_spans, place, single_blas
from lodim.engine.tiles import TILE, TILES_PER_BLOCK, unpack
from lodim.engine.workers import WorkerTiles
from lodim.export.expression import call, weighted
from lodim.models.gbmap.cpu_kernels import IDENTITY, SOFTPLUS, forward

CHUNK = 16 * TILES_PER_BLOCK  # tiles per chunk; bounds the memory of predictions
BY_LEARNER = ("theta", "sign", "target", "stage", "shift")  # fields with one entry per learner


LOG = {  # fields of the log, with one entry per learner
    "objective": forms.real("M"),
    "deviance": forms.squares("M", nan=True),
    "grad_norm": forms.real("M"),
    "n_iter": forms.whole("M"),
    "n_eval": forms.whole("M"),
    "converged": forms.flags("M"),
    "newton": forms.flags("M"),
}


REFIT_LOG = {  # fields of the log of a joint fit
    "value": forms.squares(),
    "grad_norm": forms.squares(),
    "n_iter": forms.whole(),
    "converged": forms.flags(),
    "n_eval": forms.whole(),
    "deviance": forms.squares(),
    "gain": forms.real(nan=True),
}


@forms.record
class WeakLearners:
    """M weak learners, f_j(x) = scale (a_j + b_j g(intercept_j + w_j'x)), with a softplus g.

    Methods take the features of n rows in blocks of 64, `tiles` (n_tiles, p, 64)."""

    # `engine` is "cpu" or "cuda".

    # (M, 2 + p) parameters a, intercept and w, for standardized features x
    theta: np.ndarray = forms.real("M", "2 + p")
    # sign, target, stage: (M,) signs b, class (linear predictor), and boosting step from 1
    sign: np.ndarray = forms.real("M", least=-1, most=1)
    target: np.ndarray = forms.whole("M", most="functions - 1")
    stage: np.ndarray = forms.ascending(forms.whole("M", least=1))
    beta: float = forms.real(least=forms.TINY)
    activation: int = forms.choice(SOFTPLUS, IDENTITY)
    # standard deviation of a numeric response, otherwise 1
    scale: float = forms.real(least=forms.TINY)
    n_scores: int = forms.size("functions")
    # (M, T) constants added to the T linear predictors of ordered classes; else T = 0
    shift: np.ndarray = forms.real("M", "boundaries")

    @classmethod
    def concatenate(cls, parts):
        arrays = {f: np.concatenate([getattr(part, f) for part in parts]) for f in BY_LEARNER}
        return replace(parts[0], **arrays)

    def _check_fields(self):
        if not (len(self.stage) and self.stage[0] == 1 and (np.abs(self.sign) == 1.0).all()):
            raise ValueError("there is no first boost, or a learner has a sign not +-1")

    def __len__(self):
        return len(self.sign)

    @property
    def w(self):
        return self.theta[:, 2:]

    def select(self, keep):
        return replace(self, **{f: getattr(self, f)[keep] for f in BY_LEARNER})

    def negative(self):
        theta = np.hstack([-self.theta[:, :1], self.theta[:, 1:]])
        return replace(self, theta=theta, sign=-self.sign)

    def score(self, tiles, n, threads=1, engine="cpu"):
        """Return the K linear predictors of n rows in `tiles`, (n, K), without the offset."""
        total = self.sums(tiles, n, threads, engine)
        return total + self.shift.sum(axis=0) if self.shift.shape[1] else total

    def sums(self, tiles, n, threads=1, engine="cpu"):
        """Return the K sums of learners at n rows in `tiles`, (n, K), without thresholds."""
        return self._in_chunks(tiles, n, self.target, self.n_scores, threads, engine)

    def embedding(self, tiles, n, threads=1, engine="cpu"):
        """Return the value of each learner at the first n rows in `tiles`, (n, M)."""
        return self._in_chunks(tiles, n, np.arange(len(self)), len(self), threads, engine)

    def slopes(self, tiles, n, threads=1):
        """Return each learner's derivative by w_j'x, the weighted sum of its features, (n, M).

        tiles : (n_tiles, p, 64) features, of which the first n rows count"""
        return self._forward(tiles, n, np.arange(len(self)), len(self), True, threads)

    def active(self, slopes):
        """Return where learners are steep, (n, M) bool: |slopes| over half their largest value."""
        return slopes * self.sign > 0.5 * self.scale

    def gradients(self, slopes):
        """Return the K linear predictors' gradients by the features, each (n, p), from `slopes`."""
        groups = [self.target == k for k in range(self.n_scores)]
        return [slopes[:, group] @ self.w[group] for group in groups]

    def projections(self, tiles, n):
        """Return the projections intercept_j + w_j'x of the first n rows in `tiles`, (n, M)."""
        E = replace(self, activation=IDENTITY, scale=1.0).embedding(tiles, n)
        return (E - self.theta[:, 0]) * self.sign

    def add_to(self, out, tiles, into, derivative=False, threads=1, runs=None):
        """Add values of the learners to out (n_tiles, width, 64).

        into : (M,) column of `out` for each learner
        derivative : whether to add the learners' derivatives instead of their values
        runs : list of ranges (lo, hi) of blocks of 4,096 rows to use; None for all"""
        shape = self.beta, self.activation, derivative
        how = {"threads": threads, "runs": runs}
        over_rows(forward, tiles, self.theta, self.sign, *shape, into, out, **how)

    def _forward(self, tiles, n, into, width, derivative, threads):
        out = np.zeros((len(tiles), width, TILE))
        self.add_to(out, tiles, into, derivative, threads)
        return self.scale * unpack(out, n)

    def _in_chunks(self, tiles, n, into, width, threads, engine):
        if isinstance(tiles, WorkerTiles):
            return self._forward(tiles, n, into, width, False, threads)
        out = np.empty((n, width))
        for rows, part in _chunks(tiles, n):
            part = place(part, engine)
            out[rows] = self._forward(part, rows.stop - rows.start, into, width, False, threads)
        return out


@forms.record
class Effects:
    """Slopes of a fit, averaged over the training rows, for standardized features."""

    # mean, mean_abs: of slopes and absolute slopes, per linear predictor (one for ordered classes)
    # and feature; NaN in fits from `GbmapFit.first`
    mean: np.ndarray = forms.real("functions", "p", nan=True)
    mean_abs: np.ndarray = forms.real("functions", "p", nan=True)
    # share of rows on the rising side of each learner's softplus
    active: np.ndarray = forms.real("M", least=0, most=1)

    @classmethod
    def from_batch(cls, learners, batch, threads):
        """Return Effects: weighted averages, over rows of `batch`, of the slopes of `learners`."""
        work, rows = partial(effect_sums, learners), (batch.X, batch.n, batch.weight)
        with single_blas():
            parts = over_spans(work, *rows, threads=threads)
            slope, active, mean_abs = (sum(part) for part in zip(*parts, strict=True))
            mean = np.concatenate(learners.gradients(slope[None]))
        # By rounding, weights may sum to slightly more than one.
        return cls(mean, mean_abs, np.minimum(active, 1.0))


def effect_sums(learners, tiles, weight):
    """Return the slopes, activities and absolute gradients of learners, as weighted sums over rows.

    Slopes (M,) are derivatives by w'x; activities (M,) count rows with a large slope.
    Gradients (K, p) are those of the linear predictors by the features in `tiles`."""
    slope, active, size = 0.0, 0.0, 0.0
    for rows, part in _chunks(tiles, len(weight), learners.n_scores * tiles.shape[1]):
        w = weight[rows]
        slopes = learners.slopes(part, len(w))
        slope = slope + w @ slopes
        active = active + w @ learners.active(slopes)
        size = size + np.array([w @ np.abs(g, out=g) for g in learners.gradients(slopes)])
    return slope, active, size


def _chunks(tiles, n, width=1):
    """Yield the rows in chunks that fit in memory: (slice of rows, their blocks of 64 rows).

    n : number of rows in `tiles`; width : how many numbers the caller stores per row"""
    step = max(1, CHUNK // (1 + width // 16))
    for lo in range(0, len(tiles), step):
        yield slice(lo * TILE, min(n, (lo + step) * TILE)), tiles[lo : lo + step]


def score_nodes(learners, features, offset):
    """Return WeakLearners' K linear predictors for export, expressions of `features`, `offset`."""
    bias, parts = [0.0] * learners.n_scores, [([1.0], [offset]) for _ in range(learners.n_scores)]
    for j, theta in enumerate(learners.theta):
        name, size = f"projection {j + 1}", learners.scale * learners.sign[j]
        if learners.activation == SOFTPLUS:
            z = weighted(learners.beta * theta[1], learners.beta * theta[2:], features, name)
            learner = call("softplus", z)
            size = size / learners.beta
        else:
            learner = weighted(theta[1], theta[2:], features, name)
        k = learners.target[j]
        bias[k] += learners.scale * theta[0]
        parts[k][0].append(size)
        parts[k][1].append(learner)
    if learners.shift.shape[1]:
        bias = [bias[0] + shift for shift in learners.shift.sum(axis=0)]
        parts = parts * len(bias)
    return [weighted(b, *part, "score") for b, part in zip(bias, parts, strict=True)]
