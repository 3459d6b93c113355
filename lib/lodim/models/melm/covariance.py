"""Covariances of classes: as they are (the default), or shrunk by Ledoit & Wolf (2004).

A weight counts rows: a row of weight two is two rows.
"""

import numpy as np

EMPIRICAL, LEDOIT_WOLF = "empirical", "ledoit-wolf"
COVARIANCES = (EMPIRICAL, LEDOIT_WOLF)


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


ESTIMATORS = {EMPIRICAL: empirical, LEDOIT_WOLF: ledoit_wolf}
