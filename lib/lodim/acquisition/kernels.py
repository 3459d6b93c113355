"""Compiled loops: predictions of a Gaussian mixture from known values, and distances of rows."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative, log1p_unit

LEAST = 1e-4  # probability below which a class counts as this probable in an expected log-loss
LOG2 = np.log(2.0)


@njit(cache=True, nogil=True, error_model="numpy")
def condition(x, known, rest, mixture):
    """Condition a Gaussian mixture on a row's known values; return the conditional moments.

    x : (features,) values of the row
    known : positions of known features; rest : positions of features that may become known
    mixture : `Mixture.arrays`
    Return the argument `given` of `extend` and `candidate_losses`."""
    log_share, mean, cov, cross, y_mean, y_var, _ = mixture
    Z, s, numeric = len(log_share), len(known), len(cross) > 0
    density, centre, residual = np.zeros(Z), y_mean.copy(), y_var.copy()
    shifted, slope, left = mean.copy(), cross.copy(), np.empty_like(cov)
    L, A, u, b = np.zeros((s, s)), np.empty((len(x), s)), np.empty(s), np.zeros(s)
    for z in range(Z):
        for i in range(s):
            for j in range(i + 1):
                total = cov[z, known[i], known[j]]
                for r in range(j):
                    total -= L[i, r] * L[j, r]
                L[i, j] = np.sqrt(max(total, 1e-9)) if i == j else total / L[j, j]
            u[i] = x[known[i]] - mean[z, known[i]]
            if numeric:
                b[i] = cross[z, known[i]]
            for r in range(i):
                u[i] -= L[i, r] * u[r]
                b[i] -= L[i, r] * b[r]
            u[i] /= L[i, i]
            b[i] /= L[i, i]
            density[z] -= np.log(L[i, i]) + 0.5 * u[i] ** 2
            centre[z] += b[i] * u[i]
            residual[z] -= b[i] ** 2
        for i in rest:
            for j in range(s):
                total = cov[z, i, known[j]]
                for r in range(j):
                    total -= A[i, r] * L[j, r]
                A[i, j] = total / L[j, j]
                shifted[z, i] += A[i, j] * u[j]
                if numeric:
                    slope[z, i] -= A[i, j] * b[j]
        for i in rest:
            for j in rest[rest <= i]:
                total = cov[z, i, j]
                for r in range(s):
                    total -= A[i, r] * A[j, r]
                left[z, i, j] = total
    # Number of known features, their log density up to a constant, moments of the rest and of y.
    return s, density, shifted, left, slope, centre, residual


@njit(cache=True, nogil=True, error_model="numpy")
def extend(V, columns, given, mixture, joint, centre, residual):
    """Condition a Gaussian mixture on values V (features, rows) of more features; fill the results.

    columns : positions of these features
    given : result of `condition` for the features known before
    mixture : `Mixture.arrays`
    joint : result (components, rows), log(share * density)
    centre : result (components, rows), means of a numeric response
    residual : result (components,), its variances"""
    # `mixture[-1]` determines the factor of log densities, which is at most 1.
    log_share, scales = mixture[0], mixture[-1]
    s, density, mean, cov, cross, y_mean, y_var = given
    t, m = len(columns), V.shape[1]
    factor = scales[0] / (1.0 + scales[1] * max(s + t - 1, 0))
    L, u, b = np.empty((t, t)), np.empty((t, m)), np.zeros(t)
    for z in range(len(joint)):
        joint[z], centre[z] = log_share[z] + factor * density[z], y_mean[z]
        residual[z] = y_var[z]
        for i in range(t):
            if len(cross):
                b[i] = cross[z, columns[i]]
            for j in range(i + 1):
                total = cov[z, columns[i], columns[j]]
                for r in range(j):
                    total -= L[i, r] * L[j, r]
                L[i, j] = np.sqrt(max(total, 1e-9)) if i == j else total / L[j, j]
            for k in range(m):
                u[i, k] = V[i, k] - mean[z, columns[i]]
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
def to_shares(joint, log_share, contamination):
    """Turn log(share * density) of mixture components into their probabilities, in place.

    joint : (components, rows), overwritten; log_share : (components,) logs of shares of all rows
    contamination : share of outliers, whose features say nothing about their component"""
    most, total = joint[0].copy(), np.zeros(joint.shape[1])
    for z in range(1, len(joint)):
        for k in range(len(most)):
            most[k] = max(most[k], joint[z, k])
    for z in range(len(joint)):
        for k in range(len(most)):
            joint[z, k] = exp_negative(joint[z, k] - most[k])
            total[k] += joint[z, k]
    keep = 1.0 - contamination
    for z in range(len(joint)):
        prior = contamination * np.exp(log_share[z])
        for k in range(len(most)):
            joint[z, k] = keep * joint[z, k] / total[k] + prior


@njit(cache=True, nogil=True, error_model="numpy")
def observed_losses(joint, centre, y, label, log_share, contamination, out):
    """Fill `out` (rows,) with log-losses of class codes y, or squared errors of numbers y.

    joint : (components, rows) log(share * density); overwritten
    centre : (components, rows) means of a numeric y
    label : (components,) classes; -1 for a numeric y
    log_share : (components,) log of each component's share
    contamination : share of outliers"""
    to_shares(joint, log_share, contamination)
    for k in range(joint.shape[1]):
        total = 0.0
        for z in range(len(joint)):
            if label[z] < 0:
                total += joint[z, k] * centre[z, k]
            elif label[z] == y[k]:
                total += joint[z, k]
        out[k] = (y[k] - total) ** 2 if label[0] < 0 else -np.log(max(total, LEAST))


@njit(cache=True, nogil=True, error_model="numpy")
def _log(v):
    """Return log(v) for 1e-4 <= v <= 1, by operations that vectorize."""
    total = 0.0
    for k in (8, 4, 2, 1):
        small = v < 0.5**k
        v, total = v * 2.0**k if small else v, total - k * LOG2 if small else total
    return total - log1p_unit(1.0 / v - 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def expected_losses(joint, centre, residual, label, log_share, contamination, out):
    """Fill `out` (rows,) with expected losses: entropies of classes, or variances of a numeric y.

    joint : (components, rows) log(share * density); overwritten
    centre, residual : means (components, rows) and variances (components,) of a numeric y
    label : (components,) classes; -1 for a numeric y
    log_share : (components,) log of each component's share
    contamination : share of outliers"""
    to_shares(joint, log_share, contamination)
    m = len(out)
    out[:] = 0.0
    if label[0] < 0:
        mean = (joint * centre).sum(axis=0)
        for z in range(len(joint)):
            for k in range(m):
                out[k] += joint[z, k] * (residual[z] + (centre[z, k] - mean[k]) ** 2)
        return
    share = np.zeros((label.max() + 1, m))
    for z in range(len(joint)):
        for k in range(m):
            share[label[z], k] += joint[z, k]
    for c in range(len(share)):
        for k in range(m):
            out[k] -= share[c, k] * _log(max(share[c, k], LEAST))


@njit(cache=True, nogil=True, error_model="numpy")
def candidate_losses(V, columns, start, given, mixture, label):
    """Return a row's expected loss after each purchase, (sets of features, possible rows).

    V : (features, possible rows) values that the row may have
    columns, start : set c has the features columns[start[c]:start[c + 1]]
    given : result of `condition` for the known features
    mixture : `Mixture.arrays`
    label : (components,) classes; -1 for a numeric response"""
    C, Z, m, contamination = len(start) - 1, len(label), V.shape[1], mixture[-1][2]
    out = np.empty((C, m))
    joint, centre, residual = np.empty((Z, m)), np.empty((Z, m)), np.empty(Z)
    for c in range(C):
        chosen = columns[start[c] : start[c + 1]]
        extend(V[chosen], chosen, given, mixture, joint, centre, residual)
        expected_losses(joint, centre, residual, label, mixture[0], contamination, out[c])
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def squared_distances(x, V, columns):
    """Return the mean squared difference between each training row and a row x, (rows,).

    V : (features, rows) training rows
    columns : positions of the features to compare; values missing in either row are skipped"""
    out, count = np.zeros(V.shape[1]), np.zeros(V.shape[1])
    for j in columns:
        for i in range(V.shape[1]):
            step = V[j, i] - x[j]
            known = step == step
            out[i] += step * step if known else 0.0
            count[i] += known
    for i in range(len(out)):
        out[i] = out[i] / count[i] if count[i] else (np.inf if len(columns) else 0.0)
    return out
