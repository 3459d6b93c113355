"""Volumes of clusters in all features: Fiterau (2014), Table 2.2.

A cluster of k-means takes its enclosing ellipsoid; one of ripr its enclosing cylinder, whose base
is the ellipsoid that encloses its rows in the features of its view, and whose other sides are the
ranges of its rows. A row is WIDE in each direction, so that a cluster in which a feature does not
vary has a volume.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

WIDE = 0.005  # of the range of a feature
KINDS = ("least", "covariance", "parallel")  # of ellipsoids
ROUNDS, CLOSE = 5000, 1e-3


def widened(P):
    """Rows P (n, d), each as the 2d ends of a cross."""
    ends = WIDE * np.concatenate([np.eye(P.shape[1]), -np.eye(P.shape[1])])
    return (P[:, None, :] + ends).reshape(-1, P.shape[1])


def least_weights(P):
    """Weights (n,) of points P (n, d) whose covariance has the shape of the least ellipsoid.

    Khachiyan's algorithm with away steps (Todd and Yildirim 2007), from the points that are the
    farthest in some direction: the others, nearly all, would have to be taken away one by one.
    """
    n, d = P.shape
    Q, Z = np.column_stack([P, np.ones(n)]), np.linalg.qr(P - P.mean(axis=0))[0]
    ends = (Z @ np.random.default_rng(0).standard_normal((d, 10 * d))).argmax(axis=0)
    u = np.bincount(ends, minlength=n) / len(ends)
    for _ in range(ROUNDS):
        far = np.einsum("ij,ij->i", Q, np.linalg.solve((Q.T * u) @ Q, Q.T).T)
        out, inside = far.argmax(), np.where(u > 1e-12, far, np.inf).argmin()
        if max(far[out] - d - 1, d + 1 - far[inside]) < CLOSE * (d + 1):
            break
        j = out if far[out] - d - 1 >= d + 1 - far[inside] else inside
        step = (far[j] - d - 1) / ((d + 1) * (far[j] - 1)) if far[j] > 1 else -np.inf
        step = max(step, -u[j] / (1 - u[j]))
        u *= 1.0 - step
        u[j] += step
    return u


def log_ellipsoid(P, kind):
    """Log volume of an ellipsoid that holds points P (n, d).

    That of the least volume; or the smallest that has the shape of the covariance; or of the
    variances, with axes parallel to the features.
    """
    n, d = P.shape
    u = least_weights(P) if kind == "least" else np.full(n, 1.0 / n)
    Z = P - u @ P
    S = (Z.T * u) @ Z
    S = np.diag(np.diag(S)) if kind == "parallel" else S
    farthest = np.einsum("ij,ij->i", Z, np.linalg.solve(S, Z.T).T).max()
    ball = d / 2 * np.log(np.pi) - gammaln(d / 2 + 1)
    return ball + 0.5 * np.linalg.slogdet(S)[1] + d / 2 * np.log(farthest)


def log_volume(X, rows, f, kind="least"):
    """Log volume of a cluster of rows: an ellipsoid in features f, the ranges in the others."""
    sides = np.ptp(np.delete(X[rows], f, axis=1), axis=0) + 2 * WIDE
    return log_ellipsoid(widened(X[np.ix_(rows, f)]), kind) + np.log(sides).sum()


def total_and_mean(X, clusters, kind):
    """Log of the summed volumes, and mean log volume, of (rows, features) of clusters."""
    logs = [log_volume(X, rows, f, kind) for rows, f in clusters]
    return logsumexp(logs), np.mean(logs)
