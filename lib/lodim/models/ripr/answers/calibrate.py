"""From evidence to probabilities: two factors, by the training rows without themselves."""

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers.answers import ABSENT

START = (0.5, 0.5)
MOST = 10.0  # of a factor, where every row is right
SWEEPS, HALVINGS = 30, 40


def factors(evidence, y, weight):
    """t (2,) >= 0 of least deviance of p = softmax(-t_0 ratio + t_1 vote), in chosen views.

    Of n rows of a class, one in n + 2 is taken to be of another, as Platt (1999) does: else rows
    that are all answered rightly would make every answer certain. The deviance is convex in t; each
    factor in turn is halved in on. START where no row has an answer.
    """
    parts, weight, code = _chosen(evidence, y, weight)
    target = targets(code, parts.shape[2])
    t = np.array(START)
    for _ in range(SWEEPS if len(code) else 0):
        before = t.copy()
        for a in (0, 1):
            t[a] = _root(parts, weight, target, t, a)
        if np.abs(t - before).max() < 1e-4:
            break
    return t


def targets(code, n_classes):
    """What a class is taken to be, (m, K): its own but for one row in n + 2, shared by the rest."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out


def _root(parts, weight, target, t, a):
    """The factor at which the slope of the deviance is zero, from 0 to MOST."""
    own = (target * parts[a]).sum(axis=1)

    def slope(value):
        z = value * parts[a] + t[1 - a] * parts[1 - a]
        return weight @ ((softmax(z, axis=1) * parts[a]).sum(axis=1) - own)

    low, high = 0.0, MOST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def _chosen(evidence, y, weight):
    """(2, m, K) evidence in the chosen views, and weights and classes of rows that have them."""
    least = evidence.least
    known = np.flatnonzero(np.isfinite(least).any(axis=1) & np.isfinite(y) & (weight > 0))
    view = ties.least(least[known]) if least.shape[1] else known
    parts = [-np.minimum(evidence.ratio[known, view], ABSENT), evidence.vote[known, view]]
    return np.array(parts), weight[known], y[known].astype(int)
