"""Backward: what is left of the models of a price list without one thing each."""

import heapq
from itertools import count

from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import WORTH, offers, polish

MOST = 40  # states that are polished


def search(asked, states):
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
        new = [end] if end.value < _known(front, end.price) - WORTH else []
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
