"""Twins: columns that are multiples of each other, of which a penalty may use any."""

from dataclasses import replace

import numpy as np

from lodim.models.costnet.search.sweep import ALIASED


def canonicalize_duplicates(path, search):
    """A PenaltyPath with the coefficients of twins moved to the first of them by name.

    Twins are candidates of one column each that cost the same and need the same, so that no model
    changes by it, nor its price. Which of them a solver selects depends on order and rounding.
    """
    space, gram = search.space, search.refits.at_null.gram
    moves = [
        (space.columns[first], space.columns[other], gram[first, other] / gram[first, first])
        for first, other in _twins(space, gram)
    ]
    if not moves:
        return path
    coef = path.coef.copy()
    for first, other, ratio in moves:
        coef[:, first] += ratio * coef[:, other]
        coef[:, other] = 0.0
    return replace(path, coef=coef)


def _twins(space, gram):
    """Pairs of columns, as searches number them: the first by name, and a twin of it."""
    single = np.flatnonzero(np.diff(space.start) == 1)
    names = [space.network.names[v] for v in space.candidates]
    order = sorted(single, key=lambda g: (names[g], g))
    column, moved = space.at[space.start[:-1]], set()
    variance = np.diag(gram)
    for place, first in enumerate(order):
        i = column[first]
        if first in moved or not variance[i] > 0.0:
            continue
        later = np.array([g for g in order[place + 1 :] if g not in moved], int)
        j = column[later]
        same = gram[i, j] ** 2 >= (1.0 - ALIASED) * variance[i] * variance[j]
        for other in later[same & (variance[j] > 0.0)]:
            if _exchangeable(space, first, other):
                moved.add(other)
                yield i, column[other]


def _exchangeable(space, first, other):
    """Whether two candidates cost the same and need the same, and nothing needs either."""
    network = space.network
    if network.set_cost is not None or (space.source[first] != space.source[other]).any():
        return False
    own, its = space.candidates[first], space.candidates[other]
    if network.cost[own] != network.cost[its] or network.children[own] or network.children[its]:
        return False
    mine, theirs = network.needs[own].copy(), network.needs[its].copy()
    mine[own] = theirs[its] = False
    return bool((mine == theirs).all())
