"""Refits: unpenalized models of given sets of columns."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.models.costnet.search import sweep
from lodim.models.costnet.training_rows import next_least

SEPARATED = 1e-7  # ridge of IRLS relative to the scores' variance, for separated classes


@dataclass(frozen=True, eq=False)
class Refit:
    """Unpenalized model: intercept (K,), coefficients (r, K) and weighted mean deviance."""

    intercept: np.ndarray
    coef: np.ndarray
    deviance: float


class Quadratic:
    """Quadratic approximation of the deviance near a model.

    It is tr(w' gram w) - 2 tr(w' target) + constant for coefficients w (q, K).
    gram : (q, q) products of centred columns; target : (q, K) their products with the response
    mean : (q,) weighted means of the columns"""

    def __init__(self, data, intercept, on, coef):
        """Approximate the deviance near intercept (K,), coef (r, K) of columns `on` of `data`."""
        # Exact for a gaussian family; intercepts are optimal for any coefficients.
        theta = np.zeros((1 + len(data.columns), len(intercept)))
        theta[0], theta[1 + on] = intercept, coef
        _, slope, G = data.at_model(theta, np.arange(len(data.columns)), 1)
        total = max(G[0, 0, 0, 0], 1e-300)
        level = slope[:, 0] / total
        self.mean = G[0, 0, 0, 1:] / total
        self.gram = G[0, 0, 1:, 1:] - np.outer(self.mean, G[0, 0, 0, 1:])
        self.target = slope[:, 1:].T - np.outer(G[0, 0, 0, 1:], level)
        if len(on):
            self.target += self.gram[:, on] @ coef


class Refits:
    """Unpenalized models of the rows `data` (SearchData), fitted once per set of columns.

    null : Refit without columns; at_null : Quadratic approximation of the deviance near it
    warm_start : Refits of a sample of the rows, for starting values, or None"""

    def __init__(self, data, warm_start=None):
        nothing = np.empty(0, np.int64), np.zeros((0, data.n_scores))
        with single_blas():
            self.null = Refit(data.null, nothing[1], data.deviance(data.null, *nothing))
            self.at_null = Quadratic(data, data.null, *nothing)
        self.data, self.warm_start = data, warm_start
        self._models: dict[bytes, Refit] = {}
        self._ranks: dict[bytes, int] = {}

    def __call__(self, on):
        """Return the unpenalized model (Refit) of the columns `on`, fitted at the first call."""
        if not len(on):
            return self.null
        key = on.tobytes()
        if key not in self._models:
            self._models[key] = _fit_with_signs(self, on)
        return self._models[key]

    def open(self, on):
        """Return those columns `on` (positions) that sign constraints leave open, not at 0."""
        return on[self(on).coef.any(axis=1)] if self.data.sign.any() else on

    def rank(self, on):
        key = on.tobytes()
        if key not in self._ranks:
            self._ranks[key] = sweep.rank(self.at_null.gram, on)
        return self._ranks[key]

    def quadratic(self, on):
        """Return the Quadratic (approximation of the deviance) at the refit of the columns `on`."""
        if self.data.family.name == "gaussian":
            return self.at_null
        fit = self(on)
        return Quadratic(self.data, fit.intercept, on, fit.coef)


def _ridge(refits, on, size=0.0):
    """Return a ridge penalty (r, r) that makes the coefficients of columns `on` unique.

    refits : Refits; on : (r,) positions of the columns
    size : additional penalty, relative to the Gram matrix"""
    gram = refits.at_null.gram[np.ix_(on, on)]
    ridge = size * gram
    if refits.rank(on) == len(on):
        return ridge
    variance, swept = np.diag(gram).copy(), gram.copy()
    within = sweep.enter(swept, np.empty((len(on), 0)), variance, np.arange(len(on)))
    null = np.zeros((len(on), len(on)))[:, ~within]  # combinations of columns that are zero
    null[within], null[~within] = swept[np.ix_(within, ~within)], -np.eye((~within).sum())
    sized = np.where(variance > 0.0, variance, 1.0)[:, None] * null
    return ridge + sized @ np.linalg.solve(null.T @ sized, sized.T)


def _fit_with_signs(refits, on):
    """Return the Refit of the columns `on`, whose coefficients have their required signs."""
    fit = _least_squares if refits.data.family.name == "gaussian" else _newton
    if not refits.data.sign[on].any():
        return fit(refits, on)
    sign, open_, coef = refits.data.sign[on], np.full(len(on), True), np.zeros((len(on), 1))
    scale = np.sqrt(np.maximum(np.diag(refits.at_null.gram)[on], 1e-300))
    found = None
    for _ in range(10 * len(on)):  # active sets (Lawson and Hanson 1974, chapter 23)
        end, part = np.zeros_like(coef), fit(refits, on[open_]) if open_.any() else refits.null
        end[open_] = part.coef
        wrong = sign * end[:, 0] < 0.0
        if wrong.any():
            share = coef[wrong, 0] / (coef[wrong, 0] - end[wrong, 0])
            coef = coef + share.min() * (end - coef)
            stopped = np.flatnonzero(wrong)[share <= share.min()]
            coef[stopped], open_[stopped] = 0.0, False
            continue
        coef, found = end, replace(part, coef=end)
        pull = np.where(open_, 0.0, sign * _slopes(refits, on, part.intercept, coef) / scale)
        # A coefficient that gains less than 1e-12 of the null deviance stays at zero.
        if open_.all() or pull.max() ** 2 <= 1e-12 * refits.null.deviance:
            break
        open_[pull.argmax()] = True
    return found


def _slopes(refits, on, intercept, coef):
    """Return the slopes (r,): negative gradient of half the mean deviance in r coefficients.

    refits : Refits; on : (r,) positions of the columns; intercept (1,), coef (r, 1) : the model"""
    if refits.data.family.name == "gaussian":
        return (refits.at_null.target[on] - refits.at_null.gram[np.ix_(on, on)] @ coef)[:, 0]
    theta = np.vstack([intercept, coef])
    return _derivatives_at(refits.data, on, theta, np.zeros((len(theta), len(theta))))[1][1:, 0]


def _least_squares(refits, on):
    """Return the least-squares Refit of columns `on`, from the Gram matrix in `refits` (Refits)."""
    at, null = refits.at_null, refits.null
    gram, target = at.gram[np.ix_(on, on)], at.target[on]
    coef = np.linalg.solve(gram + _ridge(refits, on), target)
    gain = float((coef * (2.0 * target - gram @ coef)).sum())
    return Refit(null.intercept - at.mean[on] @ coef, coef, max(0.0, null.deviance - gain))


def _newton(refits, on, cold=False):
    """Fit the unpenalized model of columns `on` by Newton's method; return a Refit.

    refits : Refits; on : (r,) positions of columns; cold : whether to start at the null model"""
    data, null = refits.data, refits.null.intercept
    null = np.vstack([null, np.zeros((len(on), len(null)))])
    theta, near = null if cold else _start(refits, on, null), 1.0
    ridge = np.zeros((len(theta), len(theta)))  # no ridge for the intercept
    ridge[1:, 1:] = _ridge(refits, on, SEPARATED)
    value, slope, bend = _derivatives_at(data, on, theta, ridge)
    while value > 0.5 * refits.null.deviance and near > 1e-4:
        theta, near = null + 0.5 * (theta - null), 0.5 * near
        value, slope, bend = _derivatives_at(data, on, theta, ridge)
    negligible = 1e-16  # decrease of half the mean deviance that may remain
    last = negligible  # unknown before the first step
    least = data.loss[1]
    for _ in range(50):
        step = np.linalg.solve(bend, slope.ravel()).reshape(theta.shape)
        promise, size = 0.5 * float((step * slope).sum()), 1.0
        if promise * min(1.0, promise / last) ** 2 <= negligible:  # rest of steps is squared
            theta = theta + step
            return Refit(theta[0], theta[1:], data.deviance(theta[0], on, theta[1:]))
        last = promise
        while size > 1e-4:
            after = next_least(least, size)
            there = _derivatives_at(data, on, theta + size * step, ridge, after)
            if there[0] <= value:
                least = after
                break
            size *= 0.5
        else:
            if not cold:
                return _newton(refits, on, cold=True)
            break
        theta = theta + size * step
        value, slope, bend = there
    return Refit(theta[0], theta[1:], 2.0 * value - float((theta * (ridge @ theta)).sum()))


def _start(refits, on, null):
    """Return starting values (1 + r, K) for Newton's method: intercepts, then coefficients.

    refits : Refits; on : (r,) positions of the columns; null : (1 + r, K), the null model"""
    at = refits.at_null
    if refits.warm_start is not None:
        fit = refits.warm_start(on)
        near = np.vstack([fit.intercept, fit.coef])
        if null.shape[1] > 1:  # the mean over classes has no effect: keep that of the null model
            near += (null - near).mean(axis=1, keepdims=True)
        return near
    # One Newton step from the null model.
    gram = at.gram[np.ix_(on, on)]
    coef = np.linalg.solve(gram + _ridge(refits, on, SEPARATED), at.target[on])
    return np.vstack([null[0] - at.mean[on] @ coef, coef])


def _derivatives_at(data, on, theta, ridge, least=None):
    """Return value, negative gradient and Hessian of half the mean deviance plus a ridge penalty.

    data : SearchData; on : (r,) positions of the columns
    theta : (1 + r, K) intercepts and coefficients, the shape of the gradient
    ridge : (1 + r, 1 + r) matrix of the penalty
    least : lower limit for a row's second derivative, or None for the default"""
    # The penalty is tr(theta' ridge theta) / 2.
    K, size = data.n_scores, theta.size
    value, slope, G = data.at_model(theta, on, K**2, least)
    np.einsum("kkab->kab", G)[:] += ridge
    bend = G.transpose(2, 0, 3, 1).reshape(size, size)
    # A constant added to all classes' scores has no effect: give it a curvature.
    bend.flat[:: size + 1] += 1e-12
    slope = slope.T - ridge @ theta
    slope[:, data.absent] = 0.0  # classes without rows keep their coefficients
    return value + 0.5 * float((theta * (ridge @ theta)).sum()), slope, bend
