"""Greedy searches for the models of a price list: forward, backward, and by modular bounds."""

import heapq
from dataclasses import replace
from itertools import count

import numpy as np

from lodim.models.costnet.graph.network import Network
from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import MIN_FALL, offers, polish, switched

LEVEL = 0.03  # prices this share apart are one level
MOST_LEVELS = 200
KEPT = 2  # offers of a price that a state hands on
TRIED = 2  # handed-on purchases of a level that are refitted


def forward_selection(asked):
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
        if state is None or not state.value < best - MIN_FALL:
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
        if not value[b] < state.value - MIN_FALL:
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
            if new.value < state.value - MIN_FALL and within(new.price, asked.budget):
                yield new.price, new.value, new.used


MOST = 40  # states that are polished


def backward_elimination(asked, states):
    """Better states at the prices below those of some, as a Search asks for them.

    Of each state that is better than all cheaper ones, every good goes by itself (or a branch that
    needs one and the same). The best that is left at each price is polished by exchanges within
    it, those first that fall least short of what is known at their price; where that becomes
    better than all up to there, goods go from it in turn. Growth alone misses models just below a
    dear good: it arrives there from cheaper ones, and looks at few of prices that are close.
    """
    found, tie, pool, seen = [], count(), [], {state.used.tobytes() for state in states}
    front = new = _front(states)
    for _ in range(MOST):
        for state in new:
            for price, value, used in _left(asked, state):
                if used.tobytes() not in seen:
                    seen.add(used.tobytes())
                    heapq.heappush(pool, (value - _known(front, price), next(tie), used))
        if not pool:
            break
        start = asked.state(heapq.heappop(pool)[2])
        end = [start, *polish(asked, start, start.price)][-1]
        new = [end] if end.value < _known(front, end.price) - MIN_FALL else []
        found += new
        front = _front([*front, *new])
    return found


def _front(states):
    """The states that are better than all that cost as much or less, by price."""
    out: list = []
    for state in sorted(states, key=lambda state: (state.price, state.value)):
        if not out or state.value < out[-1].value:
            out.append(state)
    return out


def _known(front, price):
    """The least value of a front up to a price."""
    return min(state.value for state in front if within(state.price, price))


def _left(asked, state):
    """Price, criterion and purchase: the best at each price of a state without something."""
    found = offers(asked, state, state.price, comes=False)
    best: dict[str, tuple] = {}
    for a in range(len(found.going)):
        used = found.after(state.used, a, 0)
        price = float(found.price[a, 0])
        if asked.market.network.set_cost is not None:
            price = asked.market.price(used)
        known = best.get(f"{price:.6g}")
        if known is None or found.value[a, 0] < known[1]:
            best[f"{price:.6g}"] = price, float(found.value[a, 0]), used
    return best.values()


ROUNDS = 5


def modular_selection(asked, budget, start):
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
            for each in forward_selection(inner):
                new = asked.state(each.used)
                if within(new.price, budget):
                    found.append(new)
                    best = min(best, new, key=lambda s: s.value)
        if not best.value < state.value - MIN_FALL:
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
