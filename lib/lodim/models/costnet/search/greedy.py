"""Forward selection: a greedy search for the best models at each price.

In functions, `search` is the Search: candidates with prices, refitted models and a criterion."""

import heapq
from itertools import count

import numpy as np

from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.moves import (
    MIN_FALL,
    CandidateModel,
    local_search,
    possible_moves,
    source_switches,
)

LEVEL = 0.03  # relative difference of prices on the same level
MOST_LEVELS = 200
KEPT = 2  # selections per price that a state adds to the queue
TRIED = 2  # selections of a level that are refitted


def forward_selection(search):
    """Return the candidate models that are found by adding one candidate after the other.

    A queue holds selections of candidates. Each step takes the cheapest selections and refits the
    two most promising, up to 200 times. If the better model beats all cheaper ones, it is improved
    by exchanging candidates at no higher price. Its extensions by one candidate enter the queue."""
    states, tie = [], count()
    queue = [(0.0, np.inf, next(tie), np.zeros(len(search.space), bool))]
    best, seen = np.inf, set()
    for _ in range(MOST_LEVELS):
        if not queue:
            break
        level = _next_level(search, queue, seen)
        states += level
        state = min(level, key=lambda state: state.value, default=None)
        if state is None or not state.value < best - MIN_FALL:
            continue
        better = local_search(search, state, state.price)
        states += better
        state = better[-1] if better else state
        best = min(best, state.value)
        for price, value, used in (*_additions(search, state), *_switches(search, state)):
            heapq.heappush(queue, (price, value, next(tie), used))
    return [CandidateModel(state, "greedy") for state in states]


def _next_level(search, queue, seen):
    """Remove the cheapest selections from the queue; refit and return the two most promising.

    Selections within 3% of the lowest price are removed. The two have the lowest predicted
    criterion. A selection is a set of candidates; those in `seen` are ignored."""
    first, waiting = queue[0][0], []
    while queue and queue[0][0] <= first * (1.0 + LEVEL):
        price, value, _, used = heapq.heappop(queue)
        key = used.tobytes()
        if key not in seen:
            seen.add(key)
            waiting.append((value, price, len(waiting), used))
    return [search.state(used) for *_, used in heapq.nsmallest(TRIED, waiting)]


def _additions(search, state):
    """Yield (price, predicted criterion, selection) for candidates whose addition improves `state`.

    A candidate is added with all that it needs; at most two additions per price are yielded."""
    moves = possible_moves(search, state, search.budget, drop=False)
    value, by_function = moves.value[0], search.space.network.set_cost is not None
    kept: dict[float, int] = {}
    for b in np.argsort(value, kind="stable"):
        if not value[b] < state.value - MIN_FALL:
            break
        used = moves.after(state.used, 0, b)
        price = search.space.price(used) if by_function else float(moves.price[0, b])
        key = float(f"{price:.6g}")
        if kept.get(key, 0) < KEPT and affordable(price, search.budget):
            kept[key] = kept.get(key, 0) + 1
            yield price, float(value[b]), used


def _switches(search, state):
    """Yield (price, criterion, selection) if another source of a series improves model `state`.

    A series is a set of alternative sources. More expensive sources are tried only here."""
    for s in range(search.space.source.shape[1]):
        for used in source_switches(search.space, state.used, s):
            new = search.state(used)
            if new.value < state.value - MIN_FALL and affordable(new.price, search.budget):
                yield new.price, new.value, new.used
