"""Boosting: one weak learner after another, each fitted to what the earlier ones left."""

from dataclasses import replace
from itertools import count

import numpy as np
from scipy.special import expit

from lodim.checks import MOST
from lodim.engine import tiles
from lodim.engine.blocks import sum_blocks
from lodim.models.gbmap import learners as rows
from lodim.models.gbmap.kernels.cpu import IDENTITY, LOGISTIC, SQUARED, curvature, loss_gradient
from lodim.models.gbmap.learners import Boosts
from lodim.models.gbmap.settings import ACTIVATIONS
from lodim.models.gbmap.starts import draw_starts
from lodim.models.gbmap.training import Training
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import ElasticNet, Preconditioned, add_ridge

MOST_CURVED = 512  # parameters up to which the curvature of the sample is worth its cost
UNRESOLVED = 0.2  # share of d / n, by which the least loss of n rows lies below that of all rows
ROUND = 40  # evaluations after which the curvature is taken anew
LEAD = 1e-5  # relative fall of the loss at which starts have led far enough to be compared
ADDS = 1e-5  # share of the objective below which what a learner gains is nothing
TIED = 1e-9  # relative difference of two objectives that says nothing


class Stage:
    """Eq. 3 of Patron et al. (2024) for q weak learners that share each pass over X.

    Parameters
    ----------
    X : tiles (n_tiles, p, 64)
    y, score, weight : tiles (n_tiles, 64)
        Response, score of the earlier learners and offset, weights that sum to one.
    sign : array (q,)
        b of each learner.
    shape : (beta, activation, loss)
        Softness of the softplus and the codes of `kernels`.
    penalty : ElasticNet over theta = (a, intercept of w, w)
    """

    scaled = False

    def __init__(self, X, y, score, weight, sign, shape, penalty, threads):
        self._data = X, y, score, weight
        self._sign, self._shape, self._threads = sign, shape, threads
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = 4.0 * float(np.finfo(X.dtype).eps)

    def __call__(self, theta, active):
        X, y, score, weight = self._data
        q, d = theta.shape
        sums = sum_blocks(
            loss_gradient, X, (q, 1 + d), y, score, weight, theta, active, self._sign,
            *self._shape, threads=self._threads,
        )  # fmt: skip
        value, gradient = np.ascontiguousarray(sums[:, 0]), sums[:, 1:]
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def hessian(self, theta):
        """A positive semidefinite matrix near each learner's Hessian, (q, d, d); X on the host."""
        X, y, score, weight = self._data
        q, d = theta.shape
        lower = sum_blocks(
            curvature, X, (q, d, d), y, score, weight, theta, self._sign, *self._shape,
            threads=self._threads,
        )  # fmt: skip
        H = np.tril(lower) + np.tril(lower, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H


def fit_stages(batch, family, settings, eval_batch=None, warm_start=None):
    """Fit boosts one by one: yields (learners, log, score of the rows of `eval_batch`) after each.

    Stage j minimizes Eq. 3 of Patron et al. (2024) for b = -1 and b = +1 side by side and keeps
    the lower objective. With K > 2 classes a boost has one learner a class, fitted in turn: given
    the other scores, the softmax likelihood of one score is a logistic one with an offset.
    `warm_start` are Boosts whose learners are tried as starts of the same stage.
    """
    training = Training.of(batch, family, settings)
    watched = None if eval_batch is None else eval_batch.offset_matrix(family.n_scores)
    rng = np.random.default_rng(0)  # not of `seed`: starts belong to the data
    for stage in count(1):
        learners, log = [None] * family.n_scores, [{}] * family.n_scores
        for k in training.class_order:
            one, entry = _boost(training, family, settings, stage, k, rng, warm_start)
            training.add(one, batch.X)
            if stage == 1:  # the training score has the null model already
                one.theta[0, 0] += training.level[k]
            if eval_batch is not None:
                watched = watched + rows.score(one, eval_batch.X, eval_batch.n, training.threads)
            learners[k], log[k] = one, entry
        log = {name: np.array([entry[name] for entry in log]) for name in log[0]}
        log["deviance"] = np.full(family.n_scores, training.deviance(family))
        yield join(learners), log, watched


def _boost(training, family, settings, stage, k, rng, warm_start):
    """The learner of score k in a stage, and how its fit ended."""
    penalty = _penalty(training, settings)
    full = _objective(*training.whole(family, k), family, settings, training, penalty)
    part = full
    if training.sample is not None:
        part = _objective(*training.part(family, k), family, settings, training, penalty)
    followed = settings.n_starts if warm_start is None else 1  # beside the neighbour's learner
    theta, sign = draw_starts(
        *training.start_rows(family, k), penalty.ridge[-1], settings.activation == "softplus",
        followed, rng,
    )  # fmt: skip
    theta, sign = _add_warm_start(theta, sign, warm_start, stage, k, training)
    theta, sign, entry = _fit_stage(full, part, theta, sign, settings, training)
    if training.rotation is not None:
        theta = training.rotation.lengthen(theta)
    one = Boosts(
        theta, np.array([sign]), np.array([k]), np.array([stage]), float(settings.beta),
        ACTIVATIONS[settings.activation], training.scale, family.n_scores,
    )  # fmt: skip
    return one, entry


def combine(parts):
    """One record of the learners of several stages, and one log with an entry a learner.

    Learners that add nothing are left out, but for those of the first stage.
    """
    learners, logs = zip(*parts, strict=True)
    every = join(learners)
    adds = every.theta[:, 2:].any(axis=1) | (every.stage == 1) | (every.activation == IDENTITY)
    log = {name: np.concatenate([log[name] for log in logs])[adds] for name in logs[0]}
    return every.taken(adds), log


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


def _penalty(training, settings):
    """The penalty of one learner's theta = (a, intercept of w, w)."""
    penalized = np.ones(2 + training.X.shape[1])
    # With the identity `a` takes over the intercept of w at no cost: its penalty is but a kink.
    penalized[:2] = 0.0, settings.penalize_intercept and settings.activation != "identity"
    n_penalized = training.p + settings.penalize_intercept
    return ElasticNet.over(penalized / n_penalized, settings.lambda_, settings.l1_ratio)


def _objective(X, y, base, weight, family, settings, training, penalty):
    """The stage's objective on the rows of some tiles as a function of the signs b."""
    loss = SQUARED if family.name == "gaussian" else LOGISTIC
    shape = float(settings.beta), ACTIVATIONS[settings.activation], loss
    return lambda sign: Stage(X, y, base, weight, sign, shape, penalty, training.threads)


def _add_warm_start(theta, sign, warm_start, stage, k, training):
    """Starts and the learner that a neighbouring fit has in the same place."""
    if warm_start is None:
        return theta, sign
    same = (warm_start.stage == stage) & (warm_start.target == k)
    learner = warm_start.theta[same]
    if training.rotation is not None:
        learner = training.rotation.shorten(learner)
    learner[:, 0] -= training.level[k] if stage == 1 else 0.0
    return np.concatenate([theta, learner]), np.concatenate([sign, warm_start.sign[same]])


def _fit_stage(full, part, theta, sign, settings, training):
    """Follow starts to their ends: the lowest end's theta (1, d) and b, and how it ended.

    A part of the rows, or all of few, leads to ends that can be told apart; the best of each sign
    goes on over all rows. Where none lowers the loss, as under a penalty beside which the starts
    were far out, the learner that adds nothing takes their place.
    """
    exact = training.exact
    curved = settings.l1_ratio == 0.0 and theta.shape[1] <= MOST_CURVED
    stop = {"max_iter": settings.max_iter} | settings.tolerances(exact, curved)
    sign, theta, value, n_eval = _lead(part(sign), sign, theta, stop, exact)
    # Of a loss near zero no share counts, but of one: that of a standardized response.
    stop["ftol"] /= min(max(value.min(), 1e-6), 1.0)
    end = _refine(full(sign), part(sign) if curved else None, theta, stop, exact)
    nothing = _nothing(sign, theta.shape[1], settings)
    null = full(sign)(nothing, np.arange(1))[0][0]
    if end.value.min() > null:
        end = lbfgs(full(sign), nothing, **stop)
    lowest = end.value.min()
    tied = end.value <= lowest + TIED * abs(lowest)
    best = int(np.argmax(tied & (end.converged | ~end.converged[tied].any())))  # b = 1 if both do
    adds = null - lowest > max(stop["ftol"], ADDS * (settings.activation == "softplus")) * null
    entry = {
        "objective": end.value[best], "grad_norm": end.grad_norm[best],
        "n_iter": end.n_iter[best], "converged": end.converged[best] or not adds,
        "n_eval": n_eval + end.n_eval + 1,
    }  # fmt: skip
    return (end.theta if adds else nothing)[[best]], sign[best], entry


def _lead(objective, sign, theta, stop, exact):
    """The best learner of each sign, as far as the objective's rows can tell.

    Signs (2,), learners (2, d), their objectives (2,), and passes over all rows.
    """
    least = LEAD if exact else UNRESOLVED * theta.shape[1] / objective.n
    end = lbfgs(objective, theta, **stop | {"ftol": max(stop["ftol"], least)})
    keep = _best_of_each(sign, end.value)
    return sign[keep], end.theta[keep], end.value[keep], end.n_eval if exact else 0


def _refine(objective, part, theta, stop, exact):
    """The end on all rows of what a part of them led to, by the part's curvature if it is given.

    An exact end is sought in rounds, each with the curvature where it begins.
    """
    if part is None:
        return lbfgs(objective, theta, **stop)
    most = ROUND if exact else stop["max_iter"]
    n_iter, n_eval, left = 0, 0, stop["max_iter"]
    while True:
        curved = Preconditioned(objective, part.hessian(theta))
        limits = stop | {"max_iter": min(left, most)}
        end = lbfgs(curved, curved.to(theta), **limits, race=not exact)
        theta, n_iter = curved.back(end.theta), n_iter + end.n_iter
        n_eval, left = n_eval + end.n_eval, left - end.n_eval
        if left <= 0 or not exact or end.converged.all():
            return replace(end, theta=theta, n_iter=n_iter, n_eval=n_eval)


def _nothing(sign, d, settings):
    """Learners with w = 0 whose a undoes b g(0), (q, d)."""
    theta = np.zeros((len(sign), d))
    if settings.activation == "softplus":
        theta[:, 0] = -sign * np.log(2.0) / settings.beta
    return theta


def _best_of_each(sign, value):
    """Positions of the lowest value of each sign, b = 1 first."""
    signs = np.unique(sign)[::-1]
    return np.array([np.flatnonzero(sign == b)[np.argmin(value[sign == b])] for b in signs])


def lambda_max(batch, family, settings):
    """Penalty of (nearly) the null model.

    The loss is convex in the score and g' is at most 1, so a boost lowers the null loss by at most
    sum_k s_k |w_k|, s_k = sum_i weight_i |l'_i x_ik| (without the bars for the identity). Hence
    with an L1 share every projection is zero from max_k s_k p / l1_ratio up; under a ridge alone a
    boost gains at most p sum_k s_k^2 / (4 lambda): lambda_max makes that, summed over the boosts, 1
    % of the null loss.
    """
    training = Training.of(batch, family, replace(settings, engine="cpu"))
    p = training.p + settings.penalize_intercept
    largest, squares = 0.0, 0.0
    for k in range(family.n_scores):
        y, base = training.margin(family, k)
        slope = 2.0 * (base - y) if family.name == "gaussian" else expit(base) - y
        r = tiles.pad(training.weight * slope, len(training.X))
        X = training.X
        if settings.activation != "identity":
            X, r = np.abs(X), np.abs(r)
        reach = np.einsum("tpi,ti->p", X, r, optimize=True)
        largest = max(largest, np.abs(reach).max(initial=0.0))
        squares = max(squares, reach @ reach)
    if settings.l1_ratio >= 0.01:
        # Above the bound by rounding, so that a path begins at zero.
        return float(np.clip(1.000001 * largest * p / settings.l1_ratio, 1e-8, MOST))
    loss = training.deviance(family) / training.scale**2
    gain = 0.01 / (settings.m or 1)
    return float(np.clip(p * squares / (4.0 * gain * max(loss, 1e-12)), 1e-8, MOST))
