"""Measures of predicted probabilities: ranking (AUC) and calibration."""

import numpy as np

Z = 1.959963984540054  # normal quantile of a 95% interval


def pairs_in_order(positive, score, weight):
    """Count pairs in which a positive row has a higher score than a negative row, for an AUC.

    positive : (n,) bool
    Return each row's weighted number of such pairs, and of all its pairs, (n,) each."""
    # A pair weighs the product of its rows' weights; equal scores count half.
    in_order, pairs = np.zeros(len(score)), np.zeros(len(score))
    for here, sign in ((positive, 1.0), (~positive, -1.0)):
        order = np.argsort(sign * score[~here], kind="stable")
        others, sums = sign * score[~here][order], np.append(0.0, np.cumsum(weight[~here][order]))
        signed = sign * score[here]
        below, up_to = (sums[np.searchsorted(others, signed, side)] for side in ("left", "right"))
        in_order[here] = weight[here] * 0.5 * (below + up_to)
        pairs[here] = weight[here] * sums[-1]
    return in_order, pairs


def auc(positive, score, weight):
    """Return the area under the ROC curve of a score; NaN if all or no rows are `positive`."""
    in_order, pairs = pairs_in_order(positive, score, weight)
    total = pairs[positive].sum()
    return float(in_order[positive].sum() / total) if total > 0 else np.nan


def macro_auc(code, probability, weight):
    """Return the mean AUC over classes, each against all others; NaN if rows are of one class only.

    code : (n,) class codes; probability : (n, K); column k is the score for class k"""
    areas = np.array([auc(code == k, p, weight) for k, p in enumerate(probability.T)])
    known = areas[~np.isnan(areas)]
    return float(known.mean()) if known.size else np.nan


def wilson(share, n):
    """Return Wilson's 95% limits (low, high) of a proportion; share : observed in n rows."""
    z2 = Z**2 / n
    centre = (share + 0.5 * z2) / (1.0 + z2)
    reach = np.sqrt(share * (1.0 - share) * z2 + 0.25 * z2**2) / (1.0 + z2)
    return centre - reach, centre + reach


def reliability(probability, hit, weight, bins):
    """Compare predicted and observed shares of a class in groups of similar predictions.

    probability : (n,) predicted probability of the class
    hit : (n,) bool, whether the row has the class
    bins : largest number of groups
    Return a dict of arrays: "predicted", "observed", its 95% limits "low", "high", and "rows"."""
    # Bins are between quantiles of the probability; the limits are Wilson's.
    how = {"weights": weight, "method": "inverted_cdf"}
    cuts = np.quantile(probability, np.arange(1, bins) / bins, **how)
    group = np.unique(np.searchsorted(cuts, probability, "left"), return_inverse=True)[1]
    total = np.bincount(group, weight)
    predicted, observed = (np.bincount(group, weight * x) / total for x in (probability, hit))
    low, high = wilson(observed, total**2 / np.bincount(group, weight**2))  # effective numbers
    return dict(predicted=predicted, observed=observed, low=low, high=high, rows=np.bincount(group))
