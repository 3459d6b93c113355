"""Ties: of purchases that are as dear and as good, that of the fewest things, first by name."""

import numpy as np

from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import WORTH, offers, switched


def simplicity(market, used):
    """By what purchases are put in order: how many things they pay for, and their names."""
    network = market.network
    paid = np.unique(network.base[network.closed(market.nodes(used))])
    return len(paid), sorted(network.names[v] for v in paid)


def settled(search, state):
    """The first of the states that exchanges make of a state at its price and criterion."""
    market, best = search.market, state
    while True:
        own, rivals = simplicity(market, best.used), []
        for used in _exchanged(search, best):
            order = simplicity(market, used)
            if order < own and equal(market.price(used), best.price):
                rivals.append((order, used))
        # The refit has the last word on what its quadratic has promised.
        states = (search.state(used) for _, used in sorted(rivals, key=lambda pair: pair[0]))
        new = next((s for s in states if abs(s.value - state.value) <= WORTH), None)
        if new is None:
            return best
        best = new


def equal(price, other):
    """Whether two prices differ by rounding alone."""
    return within(price, other) and within(other, price)


def _exchanged(search, state):
    """Purchases that promise the criterion of a state for what it costs."""
    found = offers(search, state, state.price)
    for a, b in np.argwhere(np.abs(found.value - state.value) <= WORTH):
        yield found.after(state.used, a, b)
    for s in range(search.market.source.shape[1]):
        yield from switched(search.market, state.used, s)
