"""Calibration of views (feature sets) that predict a row each: from evidence to probabilities."""

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

    The evidence (log distance ratio and log share of votes per class) is that of the view (set of
    features) that predicts the row. y are class codes, weight row weights. As in Platt (1999), one
    in n + 2 of the n rows of a class is assumed to be of another class; otherwise rows that are all
    predicted correctly would make probabilities 0 or 1. Returns (0.5, 0.5) if no row can be
    predicted.
    """
    parts, weight, code = _evidence_in_chosen_view(evidence, y, weight)
    target, weight = smoothed_targets(code, parts.shape[2]), weight / max(weight.sum(), 1e-300)

    def deviance(t):
        log_p = log_softmax(np.tensordot(t, parts, 1), axis=1)
        rest = weight[:, None] * (np.exp(log_p) - target)
        return -float((weight[:, None] * target * log_p).sum()), (parts * rest).sum(axis=(1, 2))

    bounds = [(0.0, MOST_SCALE)] * 2
    return minimize(deviance, INITIAL_SCALE, jac=True, bounds=bounds, tol=1e-12).x


def _evidence_in_chosen_view(evidence, y, weight):
    """Return evidence (2, m, K) in the view that predicts each row, row weights and class codes.

    A view is a set of features. The two parts of the evidence are log distance ratios and log
    shares of votes for K classes. Rows without a view or a class are left out."""
    least = evidence.least
    known = np.flatnonzero(np.isfinite(least).any(axis=1) & np.isfinite(y) & (weight > 0))
    view = ties.argmin(least[known]) if least.shape[1] else known
    parts = [-np.minimum(evidence.ratio[known, view], knn.ABSENT), evidence.vote[known, view]]
    return np.array(parts), weight[known], y[known].astype(int)
