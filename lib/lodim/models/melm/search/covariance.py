"""Covariances of classes: as they are, or shrunk by the rule of Ledoit & Wolf (2004).

"ledoit-wolf" shrinks in the coordinates of the features, towards a multiple of the identity: the
authors' default. "pooled" shrinks in coordinates that are white within classes, towards a multiple
of the pooled covariance: like the empirical one it goes along with affine maps of the data, and
unlike it does not follow a class into directions in which it happens to be flat. A weight counts
rows: a row of weight two is two rows.
"""

import numpy as np

EMPIRICAL, LEDOIT_WOLF, POOLED = "empirical", "ledoit-wolf", "pooled"
COVARIANCES = (EMPIRICAL, LEDOIT_WOLF, POOLED)
FLOOR = 1e-4  # of the variance within classes: a class that is flatter is given this


def empirical(X, weight):
    """Maximum-likelihood covariance, (n, p) -> (p, p)."""
    centred = X - weight @ X / weight.sum()
    return (centred.T * weight) @ centred / weight.sum()


def ledoit_wolf(X, weight):
    """(1 - s) cov + s (tr cov / p) I with the s of least expected squared error."""
    n, p = weight.sum(), X.shape[1]
    centred = X - weight @ X / n
    cov = (centred.T * weight) @ centred / n
    mean = np.trace(cov) / p
    distance = (cov**2).sum() - p * mean**2
    fourth = weight @ (centred**2).sum(axis=1) ** 2 / n
    error = min(distance, (fourth - (cov**2).sum()) / n)
    s = error / distance if error > 0.0 else 0.0
    return (1.0 - s) * cov + s * mean * np.eye(p)


def estimated(X, weight, kind, into):
    """Covariance of the rows X (n, p) of a class in white coordinates X into, (r, r).

    Eigenvalues below FLOOR are raised to it: a direction in which one class is constant would have
    an infinite divergence.
    """
    if kind == LEDOIT_WOLF:
        cov = into.T @ ledoit_wolf(X, weight) @ into
    else:
        # Of white rows: where features almost depend on each other theirs has lost its digits.
        cov = (ledoit_wolf if kind == POOLED else empirical)(X @ into, weight)
    values, vectors = np.linalg.eigh(cov)
    if values[0] >= FLOOR:
        return cov
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T
