"""The prototypes that decide an estimate: Algorithm 4.1 of Ruf (2022), and its like for numbers."""

import numpy as np


def dominant_for_classes(impact, code, prior):
    """Which prototypes are in the dominant set, (M,) bool.

    The most impactful ones, of equal impact all or none, with which the leading class stays ahead
    of the second whatever classes the others are of. Empty where no class leads.

    Parameters
    ----------
    impact : (M,) w_j G_j(x); code : (M,) int, classes; prior : (K,) probabilities of the null model
    """
    order, last = _ranks(impact)
    each = np.eye(len(prior))[code[order]] * impact[order, None]
    q = prior + np.cumsum(each, axis=0)[last]
    second, first = np.partition(q, len(prior) - 2, axis=1)[:, -2:].T
    return _up_to(order, last, first - second > _rest(impact[order])[last])


def dominant_for_numbers(impact, y):
    """The same for a numeric response, (M,) bool.

    The most impactful prototypes with which the estimate stays on its side of the null model's
    mean, whatever targets (within the range of all prototypes') the others have.

    Parameters
    ----------
    impact : (M,); y : (M,) targets less the mean of the null model
    """
    order, last = _ranks(impact)
    moved = np.cumsum(impact[order] * y[order])[last]
    least, most = min(y.min(initial=0.0), 0.0), max(y.max(initial=0.0), 0.0)
    rest = _rest(impact[order])[last]
    return _up_to(order, last, (moved + rest * least > 0) | (moved + rest * most < 0))


def _ranks(impact):
    """Positions by falling impact, and where in them each rank of equal impacts ends."""
    order = np.argsort(-impact, kind="stable")
    falls = np.diff(impact[order]) < 0
    return order, np.flatnonzero(np.append(falls, len(impact) > 0))


def _rest(impact):
    """What is left after each, summed from the end: exactly zero after the last."""
    return np.append(np.cumsum(impact[::-1])[::-1][1:], 0.0)


def _up_to(order, last, decided):
    dominant = np.zeros(len(order), bool)
    if decided.any():
        dominant[order[: last[np.argmax(decided)] + 1]] = True
    return dominant
