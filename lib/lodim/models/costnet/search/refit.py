"""Refits: the unpenalized model of a support, for as many supports as are asked for."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.models.costnet.search import sweep
from lodim.models.costnet.search.rows import SearchData

RIDGE = 1e-9  # of least squares, in units of each column's variance: collinear columns share
RIDGE_LIKELIHOOD = 1e-7  # of IRLS: ends separated classes near probabilities of 1 - 1e-7
MAX_ITER = 50
TOL = 1e-12  # fall of half the mean deviance that a further Newton step promises


@dataclass(frozen=True, eq=False)
class Refit:
    """A refitted model of some columns `on`.

    intercept : (K,); coef : (|on|, K); deviance : weighted mean
    """

    intercept: np.ndarray
    coef: np.ndarray
    deviance: float


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Deviance near a model as a function of coefficients alone, intercepts profiled out.

    deviance(w) = tr(w'gram w) - 2 tr(w'target) + a constant; exact for a gaussian family.

    gram : (q, q); target : (q, K)
    mean : (q,) of the columns, weighted by the curvature
    """

    gram: np.ndarray
    target: np.ndarray
    mean: np.ndarray

    @classmethod
    def from_model(cls, data, intercept, on, coef):
        """The Quadratic at a model with an intercept (K,) and coefficients (|on|, K)."""
        XX, Xs, Xr, total, level = data.sum(_moments, intercept, on, coef)
        total = max(total, 1e-300)
        mean, level = Xs / total, level / total
        gram = XX - np.outer(mean, Xs)
        target = Xr - np.outer(Xs, level)
        if len(on):
            target += gram[:, on] @ coef
        return cls(gram, target, mean)


def _moments(data, intercept, on, coef):
    """`SearchData.moments` of all columns at a model, and sums of curvatures and residuals."""
    score = data.scores(intercept, on, coef)
    scale, residual = data.curvature(score), data.residual(score)
    found = data.moments(np.arange(len(data.columns)), scale, residual)
    return *found, scale.sum(), residual.sum(axis=0)


@dataclass(frozen=True, eq=False)
class Refits:
    """Refits of the columns of SearchData, each support once.

    null : Refit without a column; at_null : the Quadratic there, which for a gaussian family
    gives every refit from one Gram matrix
    known, ranks : dicts of supports (as bytes) to the Refits made, and to their ranks
    near : Refits of a sample of the rows, whose coefficients are near; or None
    """

    data: SearchData
    null: Refit
    at_null: Quadratic
    known: dict
    ranks: dict
    near: "Refits | None" = None

    @classmethod
    def from_data(cls, data, near=None):
        """Refits of SearchData, no support fitted yet."""
        level = data.family.null_intercept(data.y, data.weight, data.offset)
        nothing = np.empty(0, np.int64), np.zeros((0, len(level)))
        with single_blas():
            rounded = data.offset[0] + level - data.offset[0]  # as it is within a row's score
            null = Refit(rounded, nothing[1], data.deviance(level, *nothing))
            at_null = Quadratic.from_model(data, level, *nothing)
        return cls(data, null, at_null, {}, {}, near)

    def __call__(self, on):
        """The Refit of the columns `on`, positions (r,) in increasing order."""
        if not len(on):
            return self.null
        on = np.asarray(on, np.int64)
        key = on.tobytes()
        if key not in self.known:
            fit = _least_squares if self.data.family.name == "gaussian" else _newton
            self.known[key] = Refit(*fit(self, on))
        return self.known[key]

    def rank(self, on):
        """Rank of columns beside an intercept, one less than the levels of a category."""
        on = np.asarray(on, np.int64)
        key = on.tobytes()
        if key not in self.ranks:
            self.ranks[key] = sweep.rank(self.at_null.gram, on)
        return self.ranks[key]

    def quadratic(self, on):
        """The Quadratic at the refit of some columns."""
        if self.data.family.name == "gaussian":
            return self.at_null
        fit = self(on)
        return Quadratic.from_model(self.data, fit.intercept, on, fit.coef)


def _ridge(gram, size):
    """Ridge of each column, `size` of its variance, (r,)."""
    diagonal = np.diag(gram)
    return size * np.where(diagonal > 0.0, diagonal, 1.0)


def _least_squares(refits, on):
    """Intercept (K,), coefficients (r, K) and deviance by the Gram matrix of all columns."""
    at, null = refits.at_null, refits.null
    gram, target = at.gram[np.ix_(on, on)], at.target[on]
    coef = np.linalg.solve(gram + np.diag(_ridge(gram, RIDGE)), target)
    gain = float((coef * (2.0 * target - gram @ coef)).sum())
    return null.intercept - at.mean[on] @ coef, coef, max(0.0, null.deviance - gain)


def _newton(refits, on):
    """The same by Newton's method (IRLS) with step halving, from the null model or a near one."""
    data, K = refits.data, len(refits.null.intercept)
    ridge = np.append(0.0, _ridge(refits.at_null.gram[np.ix_(on, on)], RIDGE_LIKELIHOOD))[:, None]
    theta = np.vstack([refits.null.intercept, np.zeros((len(on), K))])
    value = 0.5 * refits.null.deviance
    if refits.near is not None:
        fit = refits.near(on)
        near = np.vstack([fit.intercept, fit.coef])
        if K > 1:  # what all classes share changes nothing: it stays that of the null model
            near += (theta - near).mean(axis=1, keepdims=True)
        there = _objective(data, on, near, ridge)
        theta, value = (near, there) if there < value else (theta, value)
    for _ in range(MAX_ITER):
        gradient, hessian = data.sum(_derivatives, on, theta)
        gradient = gradient - ridge * theta
        # A constant added to the scores of all classes changes nothing: its curvature is given.
        hessian[np.diag_indices_from(hessian)] += np.repeat(ridge[:, 0], K) + 1e-12
        step = np.linalg.solve(hessian, gradient.ravel()).reshape(theta.shape)
        promise = 0.5 * float((step * gradient).sum())
        if promise <= TOL:
            break
        size = 1.0
        while size > 1e-4:
            trial = theta + size * step
            new = _objective(data, on, trial, ridge)
            if new <= value:
                break
            size *= 0.5
        else:
            break
        theta, value = trial, new
    return theta[0], theta[1:], 2.0 * value - float((ridge * theta * theta).sum())


def _objective(data, on, theta, ridge):
    """Half the mean deviance with the ridge (1 + r, 1) on theta (1 + r, K)."""
    deviance = data.deviance(theta[0], on, theta[1:])
    return 0.5 * (deviance + float((ridge * theta * theta).sum()))


def _derivatives(data, on, theta):
    """What `_gradient` and `_hessian` find at theta (1 + r, K)."""
    score = data.scores(theta[0], on, theta[1:])
    return _gradient(data, score, on), _hessian(data, score, on)


def _gradient(data, score, on):
    """Negative gradient of half the deviance in intercept and coefficients, (1 + r, K)."""
    residual = data.residual(score)
    out = np.empty((1 + len(on), residual.shape[1]))
    out[0], out[1:] = residual.sum(axis=0), 0.0
    for rows, X in data.blocks(on):
        out[1:] += X.T @ residual[rows]
    return out


def _hessian(data, score, on):
    """Hessian of half the deviance in theta (1 + r, K) raveled, (K + K r, K + K r)."""
    K, q = score.shape[1], 1 + len(on)
    p = data.family.mean(score) if K > 1 else None
    curve = data.weight[:, None] * p if K > 1 else data.curvature(score)[:, None]
    out, crossed = np.zeros((q, K, q, K)), np.zeros((q * K, q * K))
    for rows, X in data.blocks(on):
        X = np.column_stack([np.ones(len(X)), X])
        for k in range(K):
            out[:, k, :, k] += (X * curve[rows, k, None]).T @ X
        if K > 1:  # what the probabilities of two classes share
            root = np.sqrt(data.weight[rows])[:, None] * p[rows]
            Z = (X[:, :, None] * root[:, None, :]).reshape(len(X), -1)
            crossed += Z.T @ Z
    return out.reshape(q * K, q * K) - crossed
