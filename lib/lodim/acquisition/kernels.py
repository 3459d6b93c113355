"""Kernels: conditional predictions of Gaussian components, and distances over known columns."""

import numpy as np

from lodim.engine.compiled import njit

LEAST = 1e-4  # probability below which a class counts as this probable in an expected log-loss


@njit(cache=True, nogil=True, error_model="numpy")
def condition(x, known, mixture):
    """Condition Z Gaussian components on the values of x (p,) at the `known` columns (s,).

    Return the known columns, then per component: Cholesky factor of their covariance (Z, s, s),
    whitened values (Z, s), whitened covariances with a numeric response (Z, s), log density (Z,)
    and conditional mean of the response (Z,). `mixture` is `Mixture.arrays`."""
    log_share, mean, cov, cross, y_mean, _, _ = mixture
    Z, s = len(log_share), len(known)
    L, u, b = np.zeros((Z, s, s)), np.empty((Z, s)), np.zeros((Z, s))
    density, centre = np.zeros(Z), y_mean.copy()
    for z in range(Z):
        for i in range(s):
            for j in range(i + 1):
                total = cov[z, known[i], known[j]]
                for r in range(j):
                    total -= L[z, i, r] * L[z, j, r]
                L[z, i, j] = np.sqrt(max(total, 1e-9)) if i == j else total / L[z, j, j]
            u[z, i] = x[known[i]] - mean[z, known[i]]
            if len(cross):
                b[z, i] = cross[z, known[i]]
            for r in range(i):
                u[z, i] -= L[z, i, r] * u[z, r]
                b[z, i] -= L[z, i, r] * b[z, r]
            u[z, i] /= L[z, i, i]
            b[z, i] /= L[z, i, i]
            density[z] -= np.log(L[z, i, i]) + 0.5 * u[z, i] ** 2
            centre[z] += b[z, i] * u[z, i]
    return known, L, u, b, density, centre


@njit(cache=True, nogil=True, error_model="numpy")
def extend(V, columns, conditioned, mixture, joint, centre, residual):
    """Add columns to the known ones, for m rows: densities, and mean and variance of y given them.

    V : values (t, m) of the rows at the further `columns` (t,)
    conditioned : result of `condition` for the known columns, whose values all rows share
    joint : result (Z, m), log of weight times density of each of Z components; the log density is
        multiplied by the mixture's temperature
    centre, residual : results (Z, m) and (Z,), mean and variance of y in each component
    """
    log_share, mean, cov, cross, _, y_var, scales = mixture
    known, Lk, uk, bk, density, centre_known = conditioned
    s, t, m = len(known), len(columns), V.shape[1]
    factor = scales[0] / (1.0 + scales[1] * max(s + t - 1, 0))
    A, L = np.empty((t, s)), np.empty((t, t))
    u, b = np.empty((t, m)), np.empty(t)
    for z in range(len(joint)):
        joint[z], centre[z] = log_share[z] + factor * density[z], centre_known[z]
        residual[z] = y_var[z] - (bk[z] ** 2).sum()
        for i in range(t):
            shift, b[i] = mean[z, columns[i]], 0.0
            if len(cross):
                b[i] = cross[z, columns[i]]
            for j in range(s):
                total = cov[z, columns[i], known[j]]
                for r in range(j):
                    total -= A[i, r] * Lk[z, j, r]
                A[i, j] = total / Lk[z, j, j]
                shift += A[i, j] * uk[z, j]
                b[i] -= A[i, j] * bk[z, j]
            for j in range(i + 1):
                total = cov[z, columns[i], columns[j]]
                for r in range(s):
                    total -= A[i, r] * A[j, r]
                for r in range(j):
                    total -= L[i, r] * L[j, r]
                L[i, j] = np.sqrt(max(total, 1e-9)) if i == j else total / L[j, j]
            for k in range(m):
                u[i, k] = V[i, k] - shift
            for j in range(i):
                b[i] -= L[i, j] * b[j]
                for k in range(m):
                    u[i, k] -= L[i, j] * u[j, k]
            scale, constant = 1.0 / L[i, i], np.log(L[i, i])
            b[i] *= scale
            residual[z] -= b[i] ** 2
            for k in range(m):
                u[i, k] *= scale
                joint[z, k] -= factor * (constant + 0.5 * u[i, k] * u[i, k])
                centre[z, k] += b[i] * u[i, k]


@njit(cache=True, nogil=True, error_model="numpy")
def to_shares(joint):
    """Replace log joint densities (Z, m), in place, by posterior probabilities of Z components."""
    for k in range(joint.shape[1]):
        most, total = joint[:, k].max(), 0.0
        for z in range(len(joint)):
            joint[z, k] = np.exp(joint[z, k] - most)
            total += joint[z, k]
        for z in range(len(joint)):
            joint[z, k] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def joint_losses(joint, centre, y, label, out):
    """Write the loss of predicting y (m,) to `out` (m,): log-loss, or squared error of a number.

    joint, centre (Z, m) are results of `extend`; joint is changed in place. label (Z,) is the class
    of each component, or -1 for a numeric response."""
    to_shares(joint)
    for k in range(joint.shape[1]):
        total = 0.0
        for z in range(len(joint)):
            if label[z] < 0:
                total += joint[z, k] * centre[z, k]
            elif label[z] == y[k]:
                total += joint[z, k]
        out[k] = (y[k] - total) ** 2 if label[0] < 0 else -np.log(max(total, LEAST))


@njit(cache=True, nogil=True, error_model="numpy")
def expected_losses(joint, centre, residual, label, out):
    """Write the expected loss of m predictions to `out` (m,): entropy, or variance of a number.

    joint, centre (Z, m) and residual (Z,) are results of `extend`; joint is changed in place. label
    (Z,) is the class of each component, or -1 for a numeric response."""
    to_shares(joint)
    share = np.empty(label.max() + 1)
    for k in range(joint.shape[1]):
        out[k] = 0.0
        if label[0] < 0:
            mean = 0.0
            for z in range(len(joint)):
                mean += joint[z, k] * centre[z, k]
            for z in range(len(joint)):
                out[k] += joint[z, k] * (residual[z] + (centre[z, k] - mean) ** 2)
        else:
            share[:] = 0.0
            for z in range(len(joint)):
                share[label[z]] += joint[z, k]
            for value in share:
                out[k] -= value * np.log(max(value, LEAST))


@njit(cache=True, nogil=True, error_model="numpy")
def candidate_losses(x, known, X, points, columns, start, mixture, label):
    """Return the expected loss (C, k) after buying each of C sets of columns, for each of k rows.

    For row i, the query x (p,) keeps its values at the `known` columns, and gets the values of row
    points[i] of X at the bought ones. Set c has the columns[start[c]:start[c + 1]]."""
    C, Z, m = len(start) - 1, len(label), len(points)
    out, V = np.empty((C, m)), np.empty((X.shape[1], m))
    joint, centre, residual = np.empty((Z, m)), np.empty((Z, m)), np.empty(Z)
    conditioned = condition(x, known, mixture)
    for c in range(C):
        chosen = columns[start[c] : start[c + 1]]
        for i, j in enumerate(chosen):
            for k in range(m):
                V[i, k] = X[points[k], j]
        extend(V[: len(chosen)], chosen, conditioned, mixture, joint, centre, residual)
        expected_losses(joint, centre, residual, label, out[c])
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def squared_distances(x, X, columns):
    """Return mean squared differences (n,) of x from each row of X, over `columns`.

    Columns in which a row is NaN are left out; if these are all, the result is inf."""
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
