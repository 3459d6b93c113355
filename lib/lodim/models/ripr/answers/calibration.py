"""Calibration of the method "assignment": from distance ratios and votes to probabilities."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers import knn
from lodim.models.ripr.vote.voters import smoothed_targets

INITIAL_SCALE = (0.5, 0.5)
MOST_SCALE = 10.0  # largest factor, if all rows are predicted correctly


def calibrate(evidence, y, weight):
    """Return factors t (2,) >= 0 with the lowest deviance of p = softmax(-t_0 ratio + t_1 vote).

    `evidence` has a log distance ratio and a log share of votes per class. As in Platt (1999),
    targets are not exactly 0 and 1; otherwise a perfect fit would have infinite factors."""
    parts, weight, code = _evidence_in_chosen_view(evidence, y, weight)
    target, weight = smoothed_targets(code, parts.shape[2]), weight / max(weight.sum(), 1e-300)

    def deviance(t):
        log_p = log_softmax(np.tensordot(t, parts, 1), axis=1)
        rest = weight[:, None] * (np.exp(log_p) - target)
        return -float((weight[:, None] * target * log_p).sum()), (parts * rest).sum(axis=(1, 2))

    bounds = [(0.0, MOST_SCALE)] * 2
    return minimize(deviance, INITIAL_SCALE, jac=True, bounds=bounds, tol=1e-12).x


def _evidence_in_chosen_view(evidence, y, weight):
    """Return the evidence (2, m, K) in the feature set that predicts each row, weights and classes.

    The two parts are log distance ratios and log shares of votes. Rows without either are left out.
    """
    least = evidence.least
    known = np.flatnonzero(np.isfinite(least).any(axis=1) & np.isfinite(y) & (weight > 0))
    view = ties.argmin(least[known]) if least.shape[1] else known
    parts = [-np.minimum(evidence.ratio[known, view], knn.ABSENT), evidence.vote[known, view]]
    return np.array(parts), weight[known], y[known].astype(int)
