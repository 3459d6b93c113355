"""Information gain of a label where views vote: its row joins the votes of those it is near."""

import numpy as np
from scipy.special import log_softmax

from lodim.models.ripr.vote.answers import complete, distances, nearest, voters_of
from lodim.models.ripr.vote.kernels import WIDER


def information_gains(e, X):
    """Expected fall of the entropy of all rows X (m, a) once the class of each is known, (m,).

    The reach of the neighbours, and what all rows say beside the views, stay as they are. Rows
    without a view have no gain (NaN).
    """
    voters, r = voters_of(e), len(e)
    sums = voters.sums(e.views, e.k, X)  # (r, m, K + 1)
    reach = np.array([_reach(e, j, X) for j in range(r)])
    known = complete(e, X)
    entropy, p = _entropies(e, voters, sums)
    out = np.full(len(X), np.nan)
    for i in np.flatnonzero(known.any(axis=1)):
        weight = np.array([_weight(distances(e, j, X[i], X), reach[j]) for j in range(r)])
        weight[:, i] = 0.0
        after = 0.0
        for c in range(e.n_classes):
            more = sums.copy()
            more[:, :, c] += weight
            more[:, :, -1] += weight
            changed, _ = _entropies(e, voters, more)
            after += p[i, c] * (changed.sum() - changed[i])
        out[i] = entropy.sum() - after
    return out


def _reach(e, j, X):
    """Distance of rows X (m, a) to the last neighbour in view j, (m,); infinite without one."""
    distance, _ = nearest(e, j, X, e.k)
    return np.where(np.isfinite(distance), distance, -np.inf).max(axis=1, initial=-np.inf)


def _weight(distance, reach):
    """Weights (m,) of a row at some distances in votes of some reach, as `vote_sums` has them."""
    within = (distance <= reach) & (reach >= 0.0)
    most = WIDER * np.where(reach > 0.0, reach, 1.0) ** 2
    return np.where(within, 1.0 - np.where(within, distance, 0.0) ** 2 / most, 0.0)


def _entropies(e, voters, sums):
    """Entropies (m,) and probabilities (m, K) from sums of votes (r, m, K + 1)."""
    z = log_softmax(np.log(voters.prior) + e.scale[0] * voters.evidence(sums).sum(axis=0), axis=1)
    p = np.exp(z)
    return -(p * z).sum(axis=1), p
