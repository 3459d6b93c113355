"""Find aliased columns, which are linear combinations of earlier columns."""

import numpy as np

TOLERANCE = 1e-7  # smallest share of a column not explained by others, as in R's glm
ROUNDING = 1e-12  # coefficients below this share of the largest are rounding errors


def independent(X):
    """Return the positions (q,) of the columns of X (n, p) that are not aliased, and combinations.

    An aliased column is a linear combination of earlier columns: aliased column j is X[:, kept] @
    combination[:, j], for combination (q, p - q)."""
    R = np.linalg.qr(X, mode="r")
    size = np.linalg.norm(R, axis=0)
    # The diagonal of R is the part of each column that earlier columns do not explain.
    if len(R) == X.shape[1] and (np.abs(np.diag(R)) > TOLERANCE * size).all():
        return np.arange(X.shape[1]), np.zeros((X.shape[1], 0))
    basis, kept = np.zeros((len(R), len(R))), []
    for j in range(X.shape[1]):
        rest = R[:, j]
        for _ in range(2):  # twice, to remove rounding errors
            rest = rest - basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        if len(kept) < len(R) and np.linalg.norm(rest) > TOLERANCE * size[j]:
            basis[:, len(kept)] = rest / np.linalg.norm(rest)
            kept.append(j)
    aliased = np.setdiff1d(np.arange(X.shape[1]), kept)
    combination = np.linalg.lstsq(R[:, kept], R[:, aliased], rcond=None)[0]
    # Far from the data, tiny coefficients would make rows look not estimable.
    rounding = np.abs(combination) <= ROUNDING * np.abs(combination).max(axis=0, initial=0.0)
    return np.array(kept, np.int64), np.where(rounding, 0.0, combination)
