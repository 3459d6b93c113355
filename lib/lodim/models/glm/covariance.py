"""Covariance of the estimates: of the model, or robust ("sandwich": White 1980; MacKinnon 1985).

With bread B, the inverse of the information times phi, and score residuals u of the rows:

    nonrobust  phi B
    HC0        B X' diag(u^2) X B            HC1  times n / (n - q)
    HC2        u^2 / (1 - h)                 HC3  u^2 / (1 - h)^2, h the leverage
    cluster    sums of u_i x_i over clusters; times G / (G - 1) (n - 1) / (n - q)
"""

import numpy as np

from lodim.models.glm.likelihood import score_residuals, working_weights


def bread(X, curvature):
    """Inverse of X' diag(curvature) X, (q, q)."""
    R = np.linalg.qr(np.sqrt(curvature)[:, None] * X, mode="r")
    inverse = np.linalg.inv(R) if np.abs(np.diag(R)).min(initial=1.0) > 0 else np.linalg.pinv(R)
    return inverse @ inverse.T


def class_bread(X, weight, probability):
    """Inverse of the information of K - 1 scores, ((K - 1) q, (K - 1) q), the first class zero."""
    q, S = X.shape[1], probability.shape[1] - 1
    information = np.empty((S, q, S, q))
    for k in range(S):
        for j in range(k + 1):
            p = probability[:, k + 1] * ((k == j) - probability[:, j + 1])
            block = X.T @ ((weight * p)[:, None] * X)
            information[k, :, j, :] = block
            information[j, :, k, :] = block.T
    return np.linalg.pinv(information.reshape(S * q, S * q), hermitian=True)


def leverage(X, B, curvature):
    """Diagonal of the hat matrix, (n,)."""
    return np.clip(curvature * np.einsum("ij,jk,ik->i", X, B, X, optimize=True), 0.0, 1.0)


def robust(kind, X, B, residual, h, clusters):
    """Robust covariance of the estimates, (S q, S q).

    X : (n, q); residual : (n, S) score residuals; h : (n,) leverages; clusters : (n,) codes
    """
    n, q = X.shape
    S = residual.shape[1]
    slopes = (residual[:, :, None] * X[:, None, :]).reshape(n, S * q)  # of the log-likelihood
    factor = 1.0
    if kind == "cluster":
        _, code = np.unique(clusters, return_inverse=True)
        G = code.max(initial=0) + 1
        summed = np.zeros((G, S * q))
        np.add.at(summed, code, slopes)
        slopes, factor = summed, G / (G - 1.0) * (n - 1.0) / (n - q)
    elif kind == "HC1":
        factor = n / (n - q)
    elif kind in ("HC2", "HC3"):
        slopes = slopes / np.maximum(1.0 - h, 1e-12)[:, None] ** (0.5 if kind == "HC2" else 1.0)
    half = slopes @ B
    return factor * (half.T @ half)


def model_parts(family, X, y, weight, score):
    """Bread, score residuals (n, S) and leverages (n,) or None at the scores (n, K) of a fit."""
    mean = family.mean(score)
    if family.name == "multinomial":
        observed = np.equal.outer(y, np.arange(family.n_scores))
        residual = weight[:, None] * (observed - mean)[:, 1:]
        return class_bread(X, weight, mean), residual, None
    curvature = working_weights(family, weight, mean)
    B = bread(X, curvature)
    residual = score_residuals(family, y, weight, mean)[:, None]
    return B, residual, leverage(X, B, curvature)
