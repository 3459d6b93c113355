"""Cost-benefit greedy: from the best model at each price, to the best at the next."""

import heapq
from itertools import count

import numpy as np

from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import WORTH, offers, polish, switched

LEVEL = 0.03  # prices this share apart are one level
MOST_LEVELS = 200
KEPT = 2  # offers of a price that a state hands on
TRIED = 2  # handed-on purchases of a level that are refitted


def search(asked):
    """States of growing price, as a Search asks for them.

    Prices are visited from the lowest. At each, the best model that a cheaper one grew into by one
    good (with all that it still needs) is polished by exchanges within its price; where it is
    better than all cheaper ones, it hands on what each further good would make of it. So both the
    largest gain and the largest gain per cost are found, each at its own price. At most
    MOST_LEVELS prices are visited.
    """
    found, tie = [], count()
    pool = [(0.0, np.inf, next(tie), np.zeros(len(asked.market), bool))]
    best, seen = np.inf, set()
    for _ in range(MOST_LEVELS):
        if not pool:
            break
        level = _level(asked, pool, seen)
        found += level
        state = min(level, key=lambda state: state.value, default=None)
        if state is None or not state.value < best - WORTH:
            continue
        steps = polish(asked, state, state.price)
        found += steps
        state = steps[-1] if steps else state
        best = min(best, state.value)
        for price, value, used in (*_further(asked, state), *_switched(asked, state)):
            heapq.heappush(pool, (price, value, next(tie), used))
    return found


def _level(asked, pool, seen):
    """The refitted best of the purchases of about the lowest price, which leave the pool."""
    first, waiting = pool[0][0], []
    while pool and pool[0][0] <= first * (1.0 + LEVEL):
        price, value, _, used = heapq.heappop(pool)
        key = used.tobytes()
        if key not in seen:
            seen.add(key)
            waiting.append((value, price, len(waiting), used))
    return [asked.state(used) for *_, used in heapq.nsmallest(TRIED, waiting)]


def _further(asked, state):
    """Price, criterion and purchase of what one more good makes of a state, where better."""
    found = offers(asked, state, asked.budget, goes=False)
    value, by_sum = found.value[0], found.price[0]
    kept: dict[float, int] = {}
    for b in np.argsort(value, kind="stable"):
        if not value[b] < state.value - WORTH:
            break
        used = found.after(state.used, 0, b)
        price = float(by_sum[b])
        if asked.market.network.set_cost is not None:
            price = asked.market.price(used)
        key = float(f"{price:.6g}")
        if kept.get(key, 0) < KEPT and within(price, asked.budget):
            kept[key] = kept.get(key, 0) + 1
            yield price, float(value[b]), used


def _switched(asked, state):
    """Price, criterion and purchase of a state with another source of a series, where better.

    A dearer source comes in here: by itself it would rarely beat what the cheaper one serves.
    """
    for s in range(asked.market.source.shape[1]):
        for used in switched(asked.market, state.used, s):
            new = asked.state(used)
            if new.value < state.value - WORTH and within(new.price, asked.budget):
                yield new.price, new.value, new.used
