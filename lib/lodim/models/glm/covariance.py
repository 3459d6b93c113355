"""Covariance of the estimates: of the model, or robust ("sandwich": White 1980; MacKinnon 1985).

With bread B, the inverse of the information times phi, and slopes u of the rows' log-likelihoods:

    nonrobust  phi B
    HC0        B X' diag(u^2) X B            HC1  times n / (n - q)
    HC2        u^2 / (1 - h)                 HC3  u^2 / (1 - h)^2, h the leverage
    cluster    sums of u_i x_i over clusters; times G / (G - 1) (n - 1) / (n - q)

Where the likelihood has no maximum, the information has null directions: nothing is known along
them, and B is the inverse across them (the limit of the likelihood; Geyer 2009).
"""

import numpy as np

from lodim.models.glm.likelihood import newton_weights, score_residuals, working_weights

FLAT = 1e-11  # share of the largest eigenvalue up to which information is none
WHOLE = 1e-10  # what a leverage of one may lack


def information(family, X, weight, mean):
    """Information times phi of the coefficients, score by score, (S q, S q)."""
    if family.name != "multinomial":
        return X.T @ (working_weights(family, weight, mean)[:, None] * X)
    q, S = X.shape[1], mean.shape[1] - 1
    out = np.empty((S, q, S, q))
    for k in range(S):
        for j in range(k + 1):
            p = mean[:, k + 1] * ((k == j) - mean[:, j + 1])
            block = X.T @ ((weight * p)[:, None] * X)
            out[k, :, j, :] = block
            out[j, :, k, :] = block.T
    return out.reshape(S * q, S * q)


def flat_information(family, X, y, weight, mean):
    """Eigenvalue of the information up to which separated data know nothing along its vector.

    A share of the largest there, or in the model with an intercept alone: where all rows are
    separated the information vanishes along all directions alike.
    """
    score = family.null_score(y, weight / weight.sum(), np.zeros((len(y), family.n_scores)))
    each = [information(family, X, weight, at) for at in (mean, family.mean(score))]
    return FLAT * max(np.linalg.eigvalsh(H).max(initial=0.0) for H in each)


def newton_step(family, X, y, weight, mean, gradient):
    """Inverse information times a gradient, (S q,)."""
    if family.name == "multinomial":
        return np.linalg.lstsq(information(family, X, weight, mean), gradient, rcond=None)[0]
    curvature = newton_weights(family, y, weight, mean)
    R = np.linalg.qr(np.sqrt(curvature)[:, None] * X, mode="r")
    if np.abs(np.diag(R)).min(initial=1.0) <= 1e-13 * np.abs(R).max(initial=0.0):
        return np.linalg.lstsq(R.T @ R, gradient, rcond=None)[0]
    return np.linalg.solve(R, np.linalg.solve(R.T, gradient))


def slopes(family, y, weight, mean):
    """Slopes of the rows' log-likelihoods times phi by their scores, (n, S)."""
    if family.name != "multinomial":
        return score_residuals(family, y, weight, mean)[:, None]
    return weight[:, None] * (np.equal.outer(y, np.arange(mean.shape[1])) - mean)[:, 1:]


def bread(family, X, weight, mean, flat=None):
    """B (S q, S q), and the null directions (S q, k): of separated data, flat up to `flat`."""
    if flat is not None:
        value, vector = np.linalg.eigh(information(family, X, weight, mean))
        known = value > flat
        inverse = (vector[:, known] / value[known]) @ vector[:, known].T
        return inverse, vector[:, ~known]
    if family.name == "multinomial":
        inverse = np.linalg.pinv(information(family, X, weight, mean), hermitian=True)
        return inverse, np.zeros((len(inverse), 0))
    R = np.linalg.qr(np.sqrt(working_weights(family, weight, mean))[:, None] * X, mode="r")
    invertible = np.abs(np.diag(R)).min(initial=1.0) > 0
    root = np.linalg.inv(R) if invertible else np.linalg.pinv(R)
    return root @ root.T, np.zeros((len(R), 0))


def leverage(X, B, curvature):
    """Diagonal of the hat matrix, (n,)."""
    return np.clip(curvature * ((X @ B) * X).sum(axis=1), 0.0, 1.0)


def robust(kind, X, B, residual, h, clusters):
    """Robust covariance of the estimates, (S q, S q); NaN where it is not defined.

    X : (n, q); residual : (n, S) slopes; h : (n,) leverages; clusters : (n,) codes
    """
    n, q = X.shape
    if n <= q or (kind in ("HC2", "HC3") and h.max(initial=0.0) > 1.0 - WHOLE):
        return np.full(B.shape, np.nan)
    each = (residual[:, :, None] * X[:, None, :]).reshape(n, len(B))
    factor = 1.0
    if kind == "cluster":
        _, code = np.unique(clusters, return_inverse=True)
        G = code.max(initial=0) + 1
        summed = np.zeros((G, len(B)))
        np.add.at(summed, code, each)
        each, factor = summed, G / (G - 1.0) * (n - 1.0) / (n - q)
    elif kind == "HC1":
        factor = n / (n - q)
    elif kind in ("HC2", "HC3"):
        each = each / (1.0 - h)[:, None] ** (0.5 if kind == "HC2" else 1.0)
    half = each @ B
    return factor * (half.T @ half)
