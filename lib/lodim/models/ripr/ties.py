"""Ties: values that differ only by rounding are equal, and ties are broken by rules.

Values, ratios, shares and losses have errors in their last digits, which noise, the order of rows
and the kind of processor move. So the least and the largest of them are chosen among all that are
as small or as large up to these errors.
"""

import numpy as np

GAP = 2.0**-26  # of the typical size of a feature: values that are nearer are one
FINE = 1e-8  # of the largest size: less is rounding of values that most rows have
EQUAL = 1e-6  # log ratios, scores and shares that are nearer are equal
DIGITS = 9  # of masses and means, by which views are ordered


def merge_close(X, counted):
    """Return features X (n, p) in which values that differ by rounding alone are one.

    What rounding is, the rows that are counted (n,) bool say alone, and theirs are the values.
    """
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
    """Features Q (m, p) in which a value that differs from one of X (n, p) by rounding is that."""
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
    """Return the tolerance (n,) within which values (n,) are equal, by their sizes."""
    if not len(value):
        return np.zeros(0)
    size = np.abs(value - np.median(value))
    large = size[size > FINE * size.max()]
    return GAP * (size + (np.median(large) if len(large) else 0.0))


def argmin(values, tolerance=EQUAL):
    """Return the first position along the last axis that is minimal up to a tolerance."""
    return (values <= values.min(axis=-1, keepdims=True) + tolerance).argmax(axis=-1)


def argmin_shares(values):
    """Along the last axis, equal shares of all positions that are tied for the least."""
    tied = values <= values.min(axis=-1, keepdims=True) + EQUAL
    return tied / tied.sum(axis=-1, keepdims=True)


def descending(values):
    """Return positions of values (n,), the largest first; equals keep their order."""
    return np.argsort(-np.round(values, DIGITS), kind="stable")
