"""Boosting: one weak learner after another, each fitted to what the earlier ones left."""

from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
from scipy.special import expit

from lodim.checks import MOST
from lodim.engine import tiles
from lodim.engine.blocks import count_blocks, on_host, sum_blocks
from lodim.models.gbmap.kernels.cpu import (
    IDENTITY,
    LOGISTIC,
    SOFTPLUS,
    SQUARED,
    hessian,
    loss_gradient,
)
from lodim.models.gbmap.kernels.descent import descend
from lodim.models.gbmap.kernels.newton import newton
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.settings import WIDE
from lodim.models.gbmap.starts import draw_starts
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import Minimum, lbfgs
from lodim.solve.objective import ElasticNet, Preconditioned, add_ridge

MAX_PRECONDITIONED = 512  # parameters up to which the sample's curvature is worth its cost
UNRESOLVED = 0.2  # share of d / n, by which the least loss of n rows lies below that of all rows
ROUND = 40  # evaluations after which the curvature is taken anew
SCREENING_FTOL = 1e-5  # relative fall of the loss at which starts can be compared
LEAST_GAIN = 1e-5  # share of the objective below which what a learner gains is nothing
NO_FACTOR = np.empty((0, 0, 0))  # of coordinates that are not scaled
TIED = 1e-9  # relative difference of two objectives that says nothing


class BoostObjective:
    """Eq. 3 of Patron et al. (2024) for q weak learners that share each pass over X.

    Parameters
    ----------
    X : tiles (n_tiles, p, 64)
    y, score, weight : tiles (n_tiles, 64)
        Response, score of the earlier learners and offset, weights that sum to one.
    sign : array (q,)
        b of each learner.
    shape : (beta, activation, loss)
        Softness of the softplus and the codes of `kernels.cpu`.
    penalty : ElasticNet over theta = (a, intercept of w, w)
    """

    scaled = False

    def __init__(self, X, y, score, weight, sign, shape, penalty, threads):
        self._X, self._columns = X, (y, score, weight)
        self._sign, self._shape, self._threads = sign, shape, threads
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = 4.0 * float(np.finfo(X.dtype).eps)
        few_rows = on_host(X) and count_blocks(X) == 1
        self.compiled_loop = self._descend if few_rows else None
        narrow = X.shape[1] < WIDE and shape[1] == SOFTPLUS and not penalty.l1.any()
        self.compiled_newton = self._newton if few_rows and narrow else None

    def __call__(self, theta, active):
        q, d = theta.shape
        rest = *self._columns, theta, active, self._sign, *self._shape
        sums = sum_blocks(loss_gradient, self._X, (q, 1 + d), *rest, threads=self._threads)
        value, gradient = np.ascontiguousarray(sums[:, 0]), sums[:, 1:]
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def _descend(self, theta, max_iter, tol, ftol, memory, factor=None):
        """`lbfgs` with passes over one block of rows, compiled."""
        scaled = factor is not None
        options = factor if scaled else NO_FACTOR, scaled, theta, max_iter, tol, ftol, memory
        penalty = self._ridge, self.l1, self.precision
        return descend(self._X, *self._columns, self._sign, *self._shape, *penalty, *options)

    def _newton(self, theta, max_iter, tol, ftol):
        """Newton's method over one block of rows, compiled."""
        rows, shape = (self._X, *self._columns), (self._sign, *self._shape)
        return newton(*rows, *shape, self._ridge, self.precision, theta, max_iter, tol, ftol)

    def hessian(self, theta):
        """A positive semidefinite matrix near each learner's Hessian, (q, d, d); X on the host."""
        q, d = theta.shape
        rest = *self._columns, theta, self._sign, *self._shape
        lower = sum_blocks(hessian, self._X, (q, d, d), *rest, threads=self._threads)
        H = np.tril(lower) + np.tril(lower, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H


def fit_stages(batch, family, settings, eval_batch=None, warm_start=None):
    """Fit boosts one by one: yields (learners, log, score of the rows of `eval_batch`) after each.

    Stage j minimizes Eq. 3 of Patron et al. (2024) for b = -1 and b = +1 side by side and keeps
    the lower objective. With K > 2 classes a boost has one learner a class, fitted in turn: given
    the other scores, the softmax likelihood of one score is a logistic one with an offset.
    `warm_start` are WeakLearners that are tried as starts of the same stage.
    """
    state, threads = BoostState.from_batch(batch, family, settings), settings.n_threads
    eval_score = None if eval_batch is None else eval_batch.offset_matrix(family.n_scores)
    rng = np.random.default_rng(0)  # not of `seed`: starts belong to the data
    for stage in count(1):
        learners, logs = [None] * family.n_scores, [{}] * family.n_scores
        for k in state.class_order:
            learner, logs[k] = _fit_learner(state, stage, k, rng, warm_start)
            state.add(learner, batch.X)
            if stage == 1:  # the training score has the null model already
                learner.theta[0, 0] += state.intercept[k]
            if eval_batch is not None:
                eval_score = eval_score + learner.score(eval_batch.X, eval_batch.n, threads)
            learners[k] = learner
        log = {name: np.array([entry[name] for entry in logs]) for name in logs[0]}
        log["deviance"] = np.full(family.n_scores, state.deviance())
        yield WeakLearners.concatenate(learners), log, eval_score


def combine(parts):
    """One record of the learners of several stages, and one log with an entry a learner.

    Learners that add nothing are left out, but for those of the first stage.
    """
    learners, logs = zip(*parts, strict=True)
    every = WeakLearners.concatenate(learners)
    keep = every.w.any(axis=1) | (every.stage == 1) | (every.activation == IDENTITY)
    log = {name: np.concatenate([log[name] for log in logs])[keep] for name in logs[0]}
    return every.select(keep), log


def _fit_learner(state, stage, k, rng, warm_start):
    """The learner of score k in a stage, and how its fit ended."""
    settings = state.settings
    penalty = penalize(settings, state.X.shape[1], state.p)
    objective = _objective(state, state.rows(k), penalty)
    sampled = objective
    if state.sample is not None:
        sampled = _objective(state, state.sample_rows(k), penalty)
    n_starts = settings.n_starts if warm_start is None else 1  # beside the neighbour's learner
    ridge = penalty.ridge[-1]
    starts = draw_starts(*state.start_rows(k), ridge, settings.softplus, n_starts, rng)
    starts = _add_warm_start(*starts, warm_start, stage, k, state)
    theta, sign, entry = _minimize(objective, sampled, *starts, state)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    place = np.array([k]), np.array([stage])
    shape = *settings.shape, state.scale, state.family.n_scores
    return WeakLearners(theta, np.array([sign]), *place, *shape), entry


def penalize(settings, width, p):
    """The penalty of a learner's theta = (a, intercept of w, w), w (width,), p of them varying."""
    penalized = np.ones(2 + width)
    # With the identity `a` takes over the intercept of w at no cost: its penalty is but a kink.
    penalized[:2] = 0.0, settings.penalize_intercept and settings.softplus
    n_penalized = p + settings.penalize_intercept
    return ElasticNet.over(penalized / n_penalized, settings.lambda_, settings.l1_ratio)


def _objective(state, rows, penalty):
    """The stage's objective on some rows as a function of the signs b."""
    loss = SQUARED if state.family.name == "gaussian" else LOGISTIC
    shape, threads = (*state.settings.shape, loss), state.settings.n_threads
    return partial(BoostObjective, *rows, shape=shape, penalty=penalty, threads=threads)


def _add_warm_start(theta, sign, warm_start, stage, k, state):
    """Starts and the learner that a neighbouring fit has in the same place."""
    if warm_start is None:
        return theta, sign
    near = warm_start.select((warm_start.stage == stage) & (warm_start.target == k))
    learner = near.theta if state.rotation is None else state.rotation.project(near.theta)
    learner[:, 0] -= state.intercept[k] if stage == 1 else 0.0
    return np.concatenate([theta, learner]), np.concatenate([sign, near.sign])


def _minimize(objective, sampled, theta, sign, state):
    """Follow starts to their ends: the lowest end's theta (1, d) and b, and how it ended.

    A sample of the rows, or all of few, leads to ends that can be told apart; the best of each sign
    goes on over all rows. Where none lowers the loss, as under a penalty beside which the starts
    were far out, the learner that adds nothing takes their place.
    """
    settings, exact = state.settings, state.exact
    preconditioned = settings.l1_ratio == 0.0 and theta.shape[1] <= _most_preconditioned(settings)
    stop = {"max_iter": settings.max_iter} | settings.tolerances(exact, preconditioned)
    sign, theta, value, n_eval = _screen(sampled(sign), sign, theta, stop, exact)
    # Of a loss near zero no share counts, but of one: that of a standardized response.
    stop["ftol"] /= min(max(value.min(), 1e-6), 1.0)
    curved = sampled(sign) if preconditioned else None
    end = _refine(objective(sign), curved, theta, stop, exact)
    null = _null_learners(sign, theta.shape[1], settings)
    null_value = objective(sign)(null, np.arange(1))[0][0]
    if end.value.min() > null_value:
        end = lbfgs(objective(sign), null, **stop)
    lowest = end.value.min()
    tied = end.value <= lowest + TIED * abs(lowest)
    best = int(np.argmax(tied & (end.converged | ~end.converged[tied].any())))  # b = 1 if both do
    gains = null_value - lowest > max(stop["ftol"], LEAST_GAIN * settings.softplus) * null_value
    entry = {
        "objective": end.value[best],
        "grad_norm": end.grad_norm[best],
        "n_iter": end.n_iter[best],
        "converged": end.converged[best] or not gains,
        "n_eval": n_eval + end.n_eval + 1,
    }
    return (end.theta if gains else null)[[best]], sign[best], entry


def _most_preconditioned(settings):
    """Parameters up to which the curvature is worth its cost: more for an exact end."""
    rough = settings.ftol is not None and settings.ftol >= 1e-6
    return WIDE if rough else MAX_PRECONDITIONED


def _screen(objective, sign, theta, stop, exact):
    """The best learner of each sign, as far as the objective's rows can tell.

    Signs (2,), learners (2, d), their objectives (2,), and passes over all rows.
    """
    ftol = SCREENING_FTOL if exact else UNRESOLVED * theta.shape[1] / objective.n
    end = _descend(objective, theta, **stop | {"ftol": max(stop["ftol"], ftol)})
    groups = [np.flatnonzero(sign == b) for b in np.unique(sign)[::-1]]  # b = 1 first
    best = np.array([group[np.argmin(end.value[group])] for group in groups])
    return sign[best], end.theta[best], end.value[best], end.n_eval if exact else 0


def _descend(objective, theta, **stop):
    """The ends of learners by Newton's method where a Hessian is cheap, else by L-BFGS.

    Newton's way from a start depends on its last bits no more than the start does; L-BFGS makes of
    two starts that rounding has set apart, after dozens of steps, two ends.
    """
    if objective.compiled_newton:
        return Minimum(*objective.compiled_newton(theta, **stop))
    return lbfgs(objective, theta, **stop)


def _refine(objective, sampled, theta, stop, exact):
    """The end on all rows of what a sample led to, by the sample's curvature if it is given.

    An exact end is sought in rounds, each with the curvature where it begins.
    """
    if sampled is None or objective.compiled_newton:
        return _descend(objective, theta, **stop)
    most = ROUND if exact else stop["max_iter"]
    n_iter, n_eval, left = 0, 0, stop["max_iter"]
    while True:
        scaled = Preconditioned(objective, sampled.hessian(theta))
        limits = stop | {"max_iter": min(left, most)}
        end = lbfgs(scaled, scaled.to(theta), **limits, best_only=not exact)
        theta, n_iter = scaled.back(end.theta), n_iter + end.n_iter
        n_eval, left = n_eval + end.n_eval, left - end.n_eval
        if left <= 0 or not exact or end.converged.all():
            return replace(end, theta=theta, n_iter=n_iter, n_eval=n_eval)


def _null_learners(sign, d, settings):
    """Learners with w = 0 whose a undoes b g(0), (q, d)."""
    theta = np.zeros((len(sign), d))
    if settings.softplus:
        theta[:, 0] = -sign * np.log(2.0) / settings.beta
    return theta


def lambda_max(batch, family, settings):
    """Penalty of (nearly) the null model.

    The loss is convex in the score and g' is at most 1, so a boost lowers the null loss by at most
    sum_k s_k |w_k|, s_k = sum_i weight_i |l'_i x_ik| (without the bars for the identity). Hence
    with an L1 share every projection is zero from max_k s_k p / l1_ratio up; under a ridge alone a
    boost gains at most p sum_k s_k^2 / (4 lambda): lambda_max makes that, summed over the boosts, 1
    % of the null loss.
    """
    state = BoostState.from_batch(batch, family, replace(settings, engine="cpu"))
    p = state.p + settings.penalize_intercept
    largest, squares = 0.0, 0.0
    for k in range(family.n_scores):
        y, base = state.margin(k)
        slope = 2.0 * (base - y) if family.name == "gaussian" else expit(base) - y
        r, X = tiles.pad(state.weight * slope, len(state.X)), state.X
        if settings.softplus:
            X, r = np.abs(X), np.abs(r)
        bound = np.einsum("tpi,ti->p", X, r, optimize=True)
        largest = max(largest, np.abs(bound).max(initial=0.0))
        squares = max(squares, bound @ bound)
    if settings.l1_ratio >= 0.01:
        # Above the bound by rounding, so that a path begins at zero.
        return float(np.clip(1.000001 * largest * p / settings.l1_ratio, 1e-8, MOST))
    loss = state.deviance() / state.scale**2
    gain = 0.01 / (settings.m or 1)
    return float(np.clip(p * squares / (4.0 * gain * max(loss, 1e-12)), 1e-8, MOST))
