"""Joint fit: after boosting, optimize all learners together by L-BFGS."""

from dataclasses import replace
from itertools import islice

import numpy as np

from lodim.engine.blocks import dot, single_blas, sum_blocks, sum_spans
from lodim.engine.tiles import varies
from lodim.models.gbmap import boost
from lodim.models.gbmap.cpu_kernels import joint_gradient
from lodim.models.gbmap.newton import rounded
from lodim.models.gbmap.objective import penalize, precision_of
from lodim.models.gbmap.settings import most_learners
from lodim.models.gbmap.starts import minimize
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import SPACING

MEMORY = 20  # steps that L-BFGS remembers


class JointObjective:
    """Loss plus ridge penalty of the summed learners, as a function of all their parameters."""

    scaled = False

    def __init__(self, state, learners, ridge):
        self._X, *self._rows = state.joint_rows()
        self.sign = learners.sign
        self._shape = self.sign, learners.target, float(learners.beta), state.loss
        self._how = {"threads": state.settings.n_threads, "runs": state.runs}
        self._ridge = ridge
        self.l1, self.precision = np.zeros(ridge.size * len(learners)), precision_of(self._X.dtype)

    def _sums(self, theta):
        theta = theta.reshape(len(self.sign), -1)
        shape, rest = (len(theta), 2 + theta.shape[1]), (*self._rows, theta, *self._shape)
        return theta, sum_blocks(joint_gradient, self._X, shape, *rest, **self._how)

    def __call__(self, theta, active):
        theta, sums = self._sums(theta)
        value = sums[0, 0] + ((theta**2) @ self._ridge).sum()
        gradient = sums[:, 2:] + 2.0 * self._ridge * theta
        return np.array([value]), gradient.reshape(1, -1)

    def standard_error(self, theta, weight):
        """Return the standard error of the mean loss at theta, for row weights (n,)."""
        loss, squares = self._sums(theta)[1][0, :2]
        return np.sqrt(max(squares - loss**2 * dot(weight, weight), 0.0))


def fit_stages(batch, family, settings, eval_batch=None, warm_start=None):
    """Fit weak learners; yield (learners, optimizer results, linear predictors of `eval_batch`).

    If `settings.joint`, yield once, with all learners; otherwise after each step, without end.
    eval_batch : other rows to predict, or None
    warm_start : WeakLearners of another fit to start from, or None"""
    if not settings.joint:
        yield from boost.fit_stages(batch, family, settings, eval_batch, warm_start)
        return
    boosts = boost.fit_stages(batch, family, settings, warm_start=warm_start)
    parts = [part[:2] for part in islice(boosts, settings.m)]
    learners, log = joint_refit(batch, family, settings, *boost.combine(parts))
    score = None
    if eval_batch is not None:
        score = eval_batch.offset_matrix(family.n_scores)
        score = boost.with_learners(score, learners, eval_batch, settings.n_threads)
    yield learners, log, score


def combine(parts):
    """Join `parts`, pairs (learners, log) of successive boosts, into one pair."""
    return parts[0] if "refit" in parts[0][1] else boost.combine(parts)


def joint_refit(batch, family, settings, learners, log, round_start=True):
    """Optimize the parameters of all `learners` together, signs fixed; return learners and log.

    log : dict of the boosting steps' results, returned with those of the joint fit added
    round_start : whether to round the start values"""
    state = BoostState.from_batch(batch, family, settings)
    level, start = np.zeros((len(learners), 1)), learners.theta.copy()
    first = [np.flatnonzero(learners.target == k)[0] for k in range(family.n_functions)]
    if family.shared_slopes:
        state.shift[:] = learners.shift.sum(axis=0)
    level[first, 0] = state.intercept
    start[:, :1] -= level
    if state.rotation is not None:
        start = state.rotation.project(start)
    ridge = penalize(settings, state.X.shape[1], state.p).ridge
    together = JointObjective(state, learners, ridge)
    least = 0.0 if settings.monotone is None else 1e-8
    stop = {"tol": settings.tol or least, "ftol": settings.ftol or least}
    if settings.monotone is None and settings.tol is None and settings.ftol is None:
        if family.link == "log":  # their rows' losses vary more than the model can explain
            error = state.standard_error(0, replace(learners, theta=start))
        else:
            error = together.standard_error(start, state.weight)
        # A gain of 0.03 standard errors by ten further steps does not matter.
        stop["resolution"] = max(0.03 * error, boost.LEAST_RESOLVED)
    first_guess = rounded(start, state.unit) if round_start else start
    how = {"max_iter": settings.max_iter, "memory": MEMORY, "spacing": SPACING}
    end = minimize(together, first_guess.reshape(1, -1), state, **how, **stop)
    theta = end.theta.reshape(start.shape)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    learners = replace(learners, theta=theta)
    state.add(learners, batch.X)
    if family.shared_slopes:
        state.move_boundaries()
        shift = np.zeros_like(learners.shift)
        shift[0] = state.shift
        learners = replace(learners, shift=shift)
    ended = {name: getattr(end, name)[0].item() for name in ("value", "grad_norm", "n_iter")}
    ended |= {"converged": bool(end.converged[0]), "n_eval": end.n_eval}
    ended |= {"deviance": state.deviance(), "gain": np.nan}
    log = log | {"converged": np.full(len(learners), ended["converged"]), "refit": ended}
    theta[:, :1] += level

    # Learners get mean 0 over the rows, except the first of each class, which gets the other means.
    def work(X, weight):
        return weight @ learners.embedding(X, len(weight), settings.n_threads)

    with single_blas():
        mean = sum_spans(work, batch.X, batch.n, batch.weight) / learners.scale
    for k, j in enumerate(first):
        others = np.flatnonzero(learners.target == k)[1:]
        theta[others, 0] -= mean[others]
        theta[j, 0] += mean[others].sum()
    if len(first) > 1:
        theta[first, 0] -= mean.sum() / len(first)
    return learners, log


def reweigh(problem, fit):
    """Repeat the joint fit of all learners in `fit` with the row weights of `problem`.

    Start at the old parameters. Return (learners, results), or None if `fit` is not joint."""
    if not fit.settings.joint:
        return None
    data = problem.batch, problem.family, problem.settings
    return joint_refit(*data, fit.estimates, fit.log, round_start=False)


def count_learners(batch, K):
    """Return the default m (boosts, each of K learners) of a joint fit; 0 if rows are too few."""
    return most_learners(batch.n_positive, int(varies(batch.X).sum()), K)
