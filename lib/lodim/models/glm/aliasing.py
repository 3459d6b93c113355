"""Aliased columns: those that are linear combinations of the columns before them."""

import numpy as np

TOLERANCE = 1e-7  # share of a column that others must leave, as in R's lm and glm
ROUNDING = 1e-12  # share of the largest coefficient of a combination: less is rounding


def independent(X):
    """Positions of the columns of X (n, p) that are not aliased, and how the others are made.

    Returns
    -------
    kept : (q,) int
    combination : (q, p - q)
        Each aliased column is X[:, kept] @ its column of this, as far as the columns before it go.
    """
    R = np.linalg.qr(X, mode="r")
    size = np.linalg.norm(R, axis=0)
    # The diagonal of R is what the columns before leave of each, up to the first that is aliased.
    if len(R) == X.shape[1] and (np.abs(np.diag(R)) > TOLERANCE * size).all():
        return np.arange(X.shape[1]), np.zeros((X.shape[1], 0))
    basis, kept = np.zeros((len(R), len(R))), []
    for j in range(X.shape[1]):
        rest = R[:, j]
        for _ in range(2):  # once more for what rounding has left
            rest = rest - basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        if len(kept) < len(R) and np.linalg.norm(rest) > TOLERANCE * size[j]:
            basis[:, len(kept)] = rest / np.linalg.norm(rest)
            kept.append(j)
    aliased = np.setdiff1d(np.arange(X.shape[1]), kept)
    combination = np.linalg.lstsq(R[:, kept], R[:, aliased], rcond=None)[0]
    # Far from the data a column that has no part in it would make rounding look like a gap.
    rounding = np.abs(combination) <= ROUNDING * np.abs(combination).max(axis=0, initial=0.0)
    return np.array(kept, np.int64), np.where(rounding, 0.0, combination)
