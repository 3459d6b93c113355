"""Kernels: conditional predictions of Gaussian components, and distances over known columns."""

import numpy as np

from lodim.engine.compiled import njit

LEAST = 1e-4  # probability below which a class counts as this probable in an expected log-loss


@njit(cache=True, nogil=True, error_model="numpy")
def factorize(cov, columns, L):
    """Write the Cholesky factor of cov[columns, columns] to L; return its log determinant."""
    log_det = 0.0
    for i in range(len(columns)):
        for j in range(i + 1):
            total = cov[columns[i], columns[j]]
            for t in range(j):
                total -= L[i, t] * L[j, t]
            if i == j:
                L[i, i] = np.sqrt(max(total, 1e-9))
                log_det += np.log(L[i, i])
            else:
                L[i, j] = total / L[j, j]
    return 2.0 * log_det


@njit(cache=True, nogil=True, error_model="numpy")
def conditionals(V, columns, mixture, joint, centre):
    """Log joint density (Z, m) of points V (t, m) at some columns, and conditional means of y.

    mixture : arrays (log_share, mean, cov, cross, y_mean), and the temperature
    """
    log_share, mean, cov, cross, y_mean, temperature = mixture
    Z, t, m = len(log_share), len(columns), V.shape[1]
    L, u, b = np.empty((t, t)), np.empty((t, m)), np.empty(t)
    numeric = len(cross) > 0
    for z in range(Z):
        constant = -0.5 * factorize(cov[z], columns, L)
        joint[z] = 0.0
        for i in range(t):
            u[i] = V[i] - mean[z, columns[i]]
            for j in range(i):
                for k in range(m):
                    u[i, k] -= L[i, j] * u[j, k]
            scale = 1.0 / L[i, i]
            for k in range(m):
                u[i, k] *= scale
                joint[z, k] += u[i, k] * u[i, k]
        for k in range(m):
            joint[z, k] = log_share[z] + temperature * (constant - 0.5 * joint[z, k])
        if numeric:
            centre[z] = y_mean[z]
            for i in range(t):
                b[i] = cross[z, columns[i]]
                for j in range(i):
                    b[i] -= L[i, j] * b[j]
                b[i] /= L[i, i]
                for k in range(m):
                    centre[z, k] += b[i] * u[i, k]


@njit(cache=True, nogil=True, error_model="numpy")
def to_shares(joint):
    """Turn log joint densities (Z, m) into shares of the components, in place."""
    for k in range(joint.shape[1]):
        most, total = joint[:, k].max(), 0.0
        for z in range(len(joint)):
            joint[z, k] = np.exp(joint[z, k] - most)
            total += joint[z, k]
        for z in range(len(joint)):
            joint[z, k] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def point_losses(V, y, columns, mixture, label, out):
    """Loss (m,) of the prediction at some columns of points V (t, m): -log p(y), or (y - m)^2."""
    Z, m = len(label), V.shape[1]
    joint, centre = np.empty((Z, m)), np.empty((Z, m))
    conditionals(V, columns, mixture, joint, centre)
    to_shares(joint)
    for k in range(m):
        total = 0.0
        for z in range(Z):
            if label[z] < 0:
                total += joint[z, k] * centre[z, k]
            elif label[z] == y[k]:
                total += joint[z, k]
        out[k] = (y[k] - total) ** 2 if label[0] < 0 else -np.log(max(total, LEAST))


@njit(cache=True, nogil=True, error_model="numpy")
def candidate_losses(x, X, points, y, columns, start, mixture, label):
    """Loss (C, k) of each candidate set of columns at each point.

    A point is the query x (p,), with the values of row points[i] of X in the columns that x lacks.
    Candidate c has the columns[start[c]:start[c + 1]].
    """
    C, m = len(start) - 1, len(points)
    out, V = np.empty((C, m)), np.empty((X.shape[1], m))
    for c in range(C):
        chosen = columns[start[c] : start[c + 1]]
        for i, j in enumerate(chosen):
            for k in range(m):
                V[i, k] = X[points[k], j] if np.isnan(x[j]) else x[j]
        point_losses(V[: len(chosen)], y, chosen, mixture, label, out[c])
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def squared_distances(x, X, columns):
    """Mean squared differences (n,) over some columns, without those that a row lacks."""
    out = np.zeros(len(X))
    for i in range(len(X)):
        total, count = 0.0, 0
        for j in columns:
            step = X[i, j] - x[j]
            if not np.isnan(step):
                total += step * step
                count += 1
        out[i] = total / count if count else (np.inf if len(columns) else 0.0)
    return out
