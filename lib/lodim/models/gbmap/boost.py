"""Boosting: one weak learner after another, each fitted to what the earlier ones left."""

import numpy as np
from scipy.special import expit, logsumexp

from lodim import tiles
from lodim.engine import available_threads
from lodim.models.gbmap import boosts as rows
from lodim.models.gbmap.boosts import Boosts
from lodim.models.gbmap.kernels import LOGISTIC, SQUARED
from lodim.models.gbmap.objective import Stage
from lodim.models.gbmap.settings import ACTIVATIONS
from lodim.objective import ElasticNet
from lodim.solve import lbfgs

DRAWS = 8  # random starts scored for each restart; the best of them is followed


def grow(batch, family, settings, watch=None, warm=None):
    """Fit boosts one by one: yields (learners, log, score of the rows of `watch`) after each.

    Stage j minimizes Eq. 3 of Patron et al. (2024) for b = -1 and b = +1 side by side and keeps
    the lower objective. With K > 2 classes a boost has one learner a class, fitted in turn: given
    the other scores, the softmax likelihood of one score is a logistic one with an offset.
    `warm` are Boosts whose learners are tried as starts of the same stage.
    """
    n, X = batch.n, batch.X
    weight = np.full(n, 1.0 / n) if batch.weights is None else batch.weights / batch.weights.sum()
    score = offset_of(batch, family)
    null = family.null_score(batch.y, weight, score) - score
    scale = _scale(batch.y - score[:, 0], weight) if family.name == "gaussian" else 1.0
    weight_tiles = tiles.pad(weight, len(X))
    watched = None if watch is None else offset_of(watch, family)
    rng = np.random.default_rng(settings.seed)
    threads = settings.threads or available_threads()
    stage = 0
    while True:
        stage += 1
        learners, log = [], []
        for k in range(family.n_scores):
            y, base = (tiles.pad(v, len(X)) for v in _margin(family, batch.y, score, k, scale))
            objective = _objective(X, y, base, weight_tiles, family, settings, threads)
            level = null[0, k] / scale if stage == 1 else 0.0
            theta, sign = _draw_starts(rng, X.shape[1], level, settings.n_starts)
            theta, sign = _add_warm(theta, sign, warm, stage, k)
            theta, sign, entry = _fit_stage(objective, theta, sign, settings)
            one = Boosts(
                theta[None], np.array([sign]), np.array([k]), np.array([stage]),
                float(settings.beta), ACTIVATIONS[settings.activation], scale, family.n_scores,
            )  # fmt: skip
            score += rows.score(one, X, n, threads)
            if watch is not None:
                watched = watched + rows.score(one, watch.X, watch.n, threads)
            learners.append(one)
            log.append(entry)
        log = {name: np.array([entry[name] for entry in log]) for name in log[0]}
        log["deviance"] = np.full(family.n_scores, weight @ family.deviance(batch.y, score))
        yield join(learners), log, watched


def collect(parts):
    """One record of the learners of several stages, and one log with an entry a learner."""
    learners, logs = zip(*parts, strict=True)
    return join(learners), {name: np.concatenate([log[name] for log in logs]) for name in logs[0]}


def join(learners):
    """One record of several learners."""
    first = learners[0]
    parts = {
        name: np.concatenate([getattr(one, name) for one in learners])
        for name in ("theta", "sign", "target", "stage")
    }
    return Boosts(
        **parts, beta=first.beta, activation=first.activation, scale=first.scale,
        n_scores=first.n_scores,
    )  # fmt: skip


def offset_of(batch, family):
    """Offset of each row and score, (n, K); zero where none is given."""
    out = np.zeros((batch.n, family.n_scores))
    if batch.offset is not None:
        out += batch.offset.reshape(batch.n, -1)
    return out


def _scale(residual, weight):
    """Standard deviation of a numeric response beside its offset, one if it has none."""
    sd = np.sqrt(weight @ (residual - weight @ residual) ** 2)
    return sd if sd > 0 else 1.0


def _margin(family, y, score, k, scale):
    """Response and score of the one-score problem for score k."""
    if family.name == "gaussian":
        return y / scale, score[:, 0] / scale
    if family.name == "binomial":
        return y, score[:, 0]
    others = np.delete(score, k, axis=1)
    return (y == k).astype(float), score[:, k] - logsumexp(others, axis=1)


def _objective(X, y, base, weight, family, settings, threads):
    """The stage's objective as a function of the signs b."""
    penalized = np.ones(2 + X.shape[1], bool)
    penalized[:2] = False, settings.penalize_intercept
    penalty = ElasticNet.over(penalized, settings.lambda_, settings.l1_ratio)
    loss = SQUARED if family.name == "gaussian" else LOGISTIC
    shape = float(settings.beta), ACTIVATIONS[settings.activation], loss
    return lambda sign: Stage(X, y, base, weight, sign, shape, penalty, threads)


def _draw_starts(rng, p, level, n_starts):
    """Random starts for both signs: w ~ N(0, I / p), so that w'x has unit variance for any p."""
    draws = DRAWS * n_starts
    theta = rng.standard_normal((draws, 2 + p))
    theta[:, 2:] /= np.sqrt(max(1, p))
    sign = np.repeat([1.0, -1.0], draws)
    theta = np.concatenate([theta, theta])
    theta[:, 0] = level - 0.6 * sign  # 0.6 is about the mean of g over standard normal w'x
    return theta, sign


def _add_warm(theta, sign, warm, stage, k):
    """Starts and the learner that a neighbouring fit has in the same place."""
    if warm is None:
        return theta, sign
    same = (warm.stage == stage) & (warm.target == k)
    return np.concatenate([theta, warm.theta[same]]), np.concatenate([sign, warm.sign[same]])


def _fit_stage(objective, theta, sign, settings):
    """Follow the best starts of each sign: the best end's theta and b, and how it ended."""
    value, _ = objective(sign)(theta, np.arange(len(sign)))
    keep = []
    for b in (1.0, -1.0):
        of = np.flatnonzero(sign == b)
        keep += list(of[np.argsort(value[of], kind="stable")[: settings.n_starts]])
    sign = sign[keep]
    end = lbfgs(
        objective(sign), theta[keep], max_iter=settings.max_iter, tol=settings.tol,
        ftol=settings.ftol,
    )  # fmt: skip
    best = int(np.argmin(end.value))
    entry = {
        "objective": end.value[best], "grad_norm": end.grad_norm[best],
        "n_iter": end.n_iter[best], "converged": end.converged[best], "n_eval": 1 + end.n_eval,
    }  # fmt: skip
    return end.theta[best], sign[best], entry


def lambda_max(batch, family, settings):
    """Penalty of (nearly) the null model.

    With an L1 share every projection is zero from max_k |g_k| p / l1_ratio up, g the gradient of
    the loss at w = 0, for g' <= 1. A ridge never gets there: then the penalty at which a first
    step of the first boost would lower the null loss by 1 %.
    """
    n, p = batch.n, max(1, batch.X.shape[1])
    weight = np.full(n, 1.0 / n) if batch.weights is None else batch.weights / batch.weights.sum()
    offset = offset_of(batch, family)
    null = family.null_score(batch.y, weight, offset)
    scale = _scale(batch.y - offset[:, 0], weight) if family.name == "gaussian" else 1.0
    largest, squares = 0.0, 0.0
    for k in range(family.n_scores):
        y, base = _margin(family, batch.y, null, k, scale)
        slope = 2.0 * (base - y) if family.name == "gaussian" else expit(base) - y
        r = tiles.pad(weight * slope, len(batch.X))
        gradient = np.einsum("tpi,ti->p", batch.X, r, optimize=True)
        largest = max(largest, np.abs(gradient).max(initial=0.0))
        squares = max(squares, gradient @ gradient)
    if settings.l1_ratio >= 0.01:
        return float(max(largest * p / settings.l1_ratio, 1e-8))
    null_loss = weight @ family.deviance(batch.y, null) / (scale**2 if scale != 1.0 else 1.0)
    return float(max(p * squares / (4 * 0.01 * max(null_loss, 1e-12)), 1e-8))
