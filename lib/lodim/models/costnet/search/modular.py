"""A budget under a submodular cost: iterated modular upper bounds (Iyer and Bilmes 2013)."""

from dataclasses import replace

import numpy as np

from lodim.models.costnet.graph.network import Network
from lodim.models.costnet.search import greedy
from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import WORTH

ROUNDS = 5


def search(asked, budget, start):
    """States within a budget, from the State `start` on.

    The cost of a purchase X and what differs from it is bounded from above by two sums of a price
    for each good (Eq. 6.1 of the thesis, made modular); both equal the cost at X itself. The best
    purchase that the budget pays for by such a sum is within it by the true cost as well, and is
    where the next bounds are taken, until no purchase is better.
    """
    found, state = [], start
    for _ in range(ROUNDS):
        best = state
        for prices, spent in upper_bounds(asked.market, state.used):
            left = budget - spent
            inner = replace(asked, market=_additive(asked.market, prices), budget=left)
            for each in greedy.search(inner):
                new = asked.state(each.used)
                if within(new.price, budget):
                    found.append(new)
                    best = min(best, new, key=lambda s: s.value)
        if not best.value < state.value - WORTH:
            break
        state = best
    return found


def upper_bounds(market, used):
    """Two pairs (prices (m,), constant): cost of Y <= constant + the prices of Y's goods.

    With j in X priced at what it adds to the rest of X, or of all goods; and other j at what they
    cost alone, or beside X.
    """
    m = len(market)
    single, everything = np.eye(m, dtype=bool), np.ones(m, bool)
    total, whole = market.price(used), market.price(everything)
    alone, beside, last, end = (np.zeros(m) for _ in range(4))
    for j in range(m):
        if used[j]:
            last[j] = total - market.price(used & ~single[j])
            end[j] = whole - market.price(everything & ~single[j])
        else:
            alone[j] = market.price(single[j])
            beside[j] = market.price(used | single[j]) - total
    return [
        (np.maximum(last + alone, 0.0), total - last.sum()),
        (np.maximum(end + beside, 0.0), total - end.sum()),
    ]


def _additive(market, prices):
    """The market where each good has a price and needs nothing."""
    m = len(market)
    goods = Network(
        names=tuple(market.network.names[v] for v in market.goods), cost=prices,
        parents=((),) * m, columns=tuple(market.network.columns[v] for v in market.goods),
        series=np.full(m, -1), base=market.network.base[market.goods],
    )  # fmt: skip
    return replace(
        market, network=goods, goods=np.arange(m), paid=np.eye(m), cost=prices, own=prices
    )
