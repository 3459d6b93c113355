"""Ties: values that differ only by rounding count as equal, and ties are broken by rules."""

import numpy as np

EQUAL = 1e-6  # tolerance of log ratios, scores and shares
DIGITS = 9  # digits of shares and means that order views


def merge_close(X, counted):
    """Return X (n, p) with values of a feature that differ only by rounding made equal.

    counted : (n,) bool, the rows that set the values; the other rows only adopt these"""
    own = X[counted]
    for x in own.T:
        order = np.argsort(x, kind="stable")[: np.count_nonzero(~np.isnan(x))]
        value = x[order]
        new = np.append(True, np.diff(value) > _tolerance(value)[1:])[: len(value)]
        x[order] = value[new][np.cumsum(new) - 1]
    out = X.copy()
    out[counted], out[~counted] = own, match_close(X[~counted], own)
    return out


def match_close(Q, X):
    """Replace values of Q by nearly equal ones in the same column of X, if any; return a copy."""
    out = Q.copy()
    for q, x in zip(out.T, X.T, strict=True):
        value = np.unique(x[~np.isnan(x)])
        gap, above = _tolerance(value), np.searchsorted(value, q)
        for side in (1, 0) if len(value) else ():
            at = (above - side).clip(0, len(value) - 1)
            same = np.abs(q - value[at]) <= gap[at]
            q[same] = value[at[same]]
    return out


def _tolerance(value):
    """Return the difference up to which another value equals each `value` of a feature."""
    if not len(value):
        return np.zeros(0)
    size = np.abs(value - np.median(value))
    large = size[size > 1e-8 * size.max()]  # smaller sizes are rounding errors
    return 2.0**-26 * (size + (np.median(large) if len(large) else 0.0))


def argmin(values, tolerance=EQUAL):
    """Return positions of minima along the last axis; of values within `tolerance`, the first."""
    return (values <= values.min(axis=-1, keepdims=True) + tolerance).argmax(axis=-1)


def argmin_shares(values):
    """Return 1 at the minimum along the last axis, 0 elsewhere; nearly equal minima share the 1."""
    tied = values <= values.min(axis=-1, keepdims=True) + EQUAL
    return tied / tied.sum(axis=-1, keepdims=True)


def descending(values):
    return np.argsort(-np.round(values, DIGITS), kind="stable")
