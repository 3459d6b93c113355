"""How wide the kernels are that classify: what serves training rows best, each left out."""

import numpy as np
from scipy.special import log_softmax

from lodim.models.melm.classify import density

SAME = 1e-6  # of a loss: what is as near is no worse
WIDTHS = 2.0 ** np.arange(2.0, -2.25, -0.5)  # tried, in that of the search; of equals the widest


def left_out(rows, background, width, options, threads):
    """Scores (m, C) of training rows by Bayes' rule, each left out of the densities.

    options : of `density.learn`; width multiplies their gamma
    """
    o = options | {"gamma": width * options["gamma"]}
    made, tile, place = density.placed(rows.Z, rows.code, rows.weight, **o, cells=False)
    log_f = density.log_densities(made, rows.Z, threads, tile, place)
    if options["equal"]:
        # With the shares of classes as priors, that of the row's class is smaller by as much.
        own = np.arange(len(rows.Z)), rows.code
        rest = 1.0 - rows.weight / np.bincount(rows.code, rows.weight)[rows.code]
        log_f[own] -= np.log(np.maximum(rest, 1e-300))
    share = np.log(rows.size / rows.size.sum())
    return (made.log_prior if options["equal"] else share) + background.mixed(log_f, rows.Z)


def even(code, weight, equal):
    """Weights that sum to one, by which rows judge a rule: of equal classes if so asked."""
    weight = weight / np.bincount(code, weight)[code] if equal else weight
    return weight / max(weight.sum(), 1e-300)


def choose(rows, background, options, threads):
    """The width of least log-loss; of those that are equal but for rounding the widest."""
    own, share = np.arange(len(rows.Z)), even(rows.code, rows.share, options["equal"])
    loss = []
    for width in WIDTHS:
        score = left_out(rows, background, width, options, threads)
        loss.append(-(share @ log_softmax(score, axis=1)[own, rows.code]))
    return float(WIDTHS[np.flatnonzero(np.array(loss) <= (1.0 + SAME) * min(loss))[0]])
