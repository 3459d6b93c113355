"""Thresholds between ordered classes: their names, and the values of lowest mean deviance."""

from itertools import pairwise

import numpy as np

from lodim.engine.blocks import sum_rows
from lodim.engine.compiled import njit
from lodim.family.binomial import curvature, loss_slope

STEPS, HALVINGS, SETTLED = 50, 30, 1e-12  # limits of Newton's method; its last relative gain


def threshold_names(levels):
    """Return names of the thresholds between ordered classes `levels`, such as "low|high"."""
    return [f"{a}|{b}" for a, b in pairwise(levels)]


def tails(probability):
    """Return P(below) and P(above) each threshold, (n, K - 1), from class probabilities (n, K)."""
    return np.cumsum(probability[:, :-1], axis=1), np.cumsum(probability[:, :0:-1], axis=1)[:, ::-1]


def tied(present):
    """Return a group number per threshold; thresholds with no rows between them have the same.

    present : (K,) bool, which of the K classes have rows"""
    # Thresholds without rows between them form a group; thresholds below or above all rows join the
    # nearest group.
    return np.clip(np.cumsum(present)[:-1], 1, present.sum() - 1) - 1


def best_thresholds(sums, shares, thresholds):
    """Return the thresholds between ordered classes that minimize the mean loss.

    sums : function of the thresholds that returns the array of `threshold_sums`
    shares : (K,) total weight of each class
    thresholds : (K - 1,) starting values"""
    present = shares > 0.0
    if present.sum() < 2:
        return thresholds
    T = np.eye(present.sum() - 1)[tied(present)]
    loss, slope, H = _mean_loss(sums(thresholds), shares, thresholds)
    for _ in range(STEPS):
        step = -T @ np.linalg.lstsq(T.T @ H @ T, slope @ T, rcond=None)[0]
        if -slope @ step <= SETTLED * loss:
            return thresholds + step
        for _ in range(HALVINGS):
            at = thresholds + step
            tried = _mean_loss(sums(at), shares, at)
            if tried[0] <= loss:
                break
            step = 0.5 * step
        else:
            break
        thresholds, (loss, slope, H) = at, tried
    return thresholds


def threshold_sums(y, f, weight, thresholds):
    """Return the loss, slope and curvature at each threshold between ordered classes, (K - 1, 3).

    y, f : (n,) class codes and linear predictors
    thresholds : (K - 1,); f + threshold is the logit of a class above"""
    # A threshold has the logistic losses of the rows in its two adjacent classes.
    y, f = np.ascontiguousarray(y, np.float64), np.ascontiguousarray(f)
    return sum_rows(lambda i: _threshold_sums(y[i], f[i], weight[i], thresholds), len(y))


@njit(cache=True, nogil=True, error_model="numpy")
def _threshold_sums(y, f, weight, thresholds):
    out = np.zeros((thresholds.size, 3))
    for i in range(y.size):
        for side in range(2):
            s = int(y[i]) - side
            if 0 <= s < thresholds.size:
                score = f[i] + thresholds[s]
                value, slope = loss_slope(float(side), score, weight[i])
                out[s, 0] += value
                out[s, 1] += slope
                out[s, 2] += curvature(float(side), score, weight[i])
    return out


def _mean_loss(sums, shares, thresholds):
    """Return the mean loss with ordered classes, and its gradient and Hessian by the thresholds.

    sums : (K - 1, 3) array of `threshold_sums`
    shares : (K,) total weight of each class"""
    (loss, slope, bend), inner = sums.T, shares[1:-1]
    inside = np.flatnonzero(inner)
    inner, gap = inner[inside], thresholds[inside] - thresholds[inside + 1]
    if not (gap > 0.0).all():  # the thresholds are out of order
        return np.inf, slope, np.diag(bend)
    share = -np.expm1(-gap)
    change = np.eye(len(slope))[inside] - np.eye(len(slope))[inside + 1]  # of gaps
    fall = inner * (1.0 / share - 1.0)
    H = np.diag(bend) + (change.T * (fall / share)) @ change
    return loss.sum() - inner @ np.log(share), slope - fall @ change, H
