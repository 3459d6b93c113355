"""Measures of predicted probabilities: how well they rank the rows, and whether they are right."""

import numpy as np

Z = 1.959963984540054  # of a 95% interval


def pairs_in_order(positive, score, weight):
    """Return the weight of each row's pairs with rows of the other class: those in order, and all.

    A pair weighs the product of its rows' weights; a pair of equal scores is half in order.

    Parameters
    ----------
    positive : (n,) bool
    score, weight : (n,)

    Returns
    -------
    array (n,), array (n,)
    """
    in_order, pairs = np.zeros(len(score)), np.zeros(len(score))
    for here, sign in ((positive, 1.0), (~positive, -1.0)):
        order = np.argsort(sign * score[~here], kind="stable")
        others, sums = sign * score[~here][order], np.append(0.0, np.cumsum(weight[~here][order]))
        below, up_to = (
            sums[np.searchsorted(others, sign * score[here], side)] for side in ("left", "right")
        )
        in_order[here] = weight[here] * 0.5 * (below + up_to)
        pairs[here] = weight[here] * sums[-1]
    return in_order, pairs


def auc(positive, score, weight):
    """Return the area under the ROC curve: the share of the pairs of rows that are in order.

    NaN if one of the two classes has no row. The arguments are those of `pairs_in_order`.
    """
    in_order, pairs = pairs_in_order(positive, score, weight)
    total = pairs[positive].sum()
    return float(in_order[positive].sum() / total) if total > 0 else np.nan


def macro_auc(code, probability, weight):
    """Return the mean over classes of the AUC of each class against all others.

    Classes without a row do not count; NaN if there is only one class.

    Parameters
    ----------
    code, weight : (n,)
    probability : (n, K)
    """
    areas = np.array([auc(code == k, p, weight) for k, p in enumerate(probability.T)])
    known = areas[~np.isnan(areas)]
    return float(known.mean()) if known.size else np.nan


def wilson(share, n):
    """Return the ends of Wilson's 95% interval of a share of n independent rows."""
    z2 = Z**2 / n
    centre = (share + 0.5 * z2) / (1.0 + z2)
    reach = np.sqrt(share * (1.0 - share) * z2 + 0.25 * z2**2) / (1.0 + z2)
    return centre - reach, centre + reach


def reliability(probability, hit, weight, bins):
    """Return the mean probability and the observed share in groups of rows, cut at quantiles.

    Rows of equal probability are in one group, so that there may be fewer groups than `bins`.

    Parameters
    ----------
    probability : (n,)
    hit : (n,) bool
        Whether the row is of the class.
    weight : (n,), above 0
    bins : int

    Returns
    -------
    dict of arrays (at most bins,)
        predicted, observed, low and high (Wilson's 95% interval of the latter), rows.
    """
    how = {"weights": weight, "method": "inverted_cdf"}
    cuts = np.quantile(probability, np.arange(1, bins) / bins, **how)
    group = np.unique(np.searchsorted(cuts, probability, "left"), return_inverse=True)[1]
    total = np.bincount(group, weight)
    predicted, observed = (np.bincount(group, weight * x) / total for x in (probability, hit))
    low, high = wilson(observed, total**2 / np.bincount(group, weight**2))  # rows of equal weight
    return {
        "predicted": predicted,
        "observed": observed,
        "low": low,
        "high": high,
        "rows": np.bincount(group),
    }
