"""Greedy searches for the best models at each price: forward and backward."""

import heapq
from itertools import count

import numpy as np

from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.moves import (
    MIN_FALL,
    local_search,
    possible_moves,
    source_switches,
)

LEVEL = 0.03  # relative difference of prices on the same level
MOST_LEVELS = 200
KEPT = 2  # selections per price that a state adds to the queue
TRIED = 2  # selections of a level that are refitted
MOST_BACKWARD = 40  # most states that the backward search improves


def forward_selection(search):
    """Return the models (SearchStates) that are found by adding one candidate after the other.

    A queue holds selections of candidates. Each step takes those of the lowest price and refits the
    two most promising, up to 200 times. If the better model beats all cheaper ones, it is improved
    by moves within its price, and its extensions by one candidate enter the queue."""
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
    return states


def _next_level(search, queue, seen):
    """Remove the selections of about the lowest price from the queue, and return the best two.

    These have the best predicted criterion, and are refitted. A selection is a set of candidates;
    those in `seen` were removed before, and are ignored."""
    first, waiting = queue[0][0], []
    while queue and queue[0][0] <= first * (1.0 + LEVEL):
        price, value, _, used = heapq.heappop(queue)
        key = used.tobytes()
        if key not in seen:
            seen.add(key)
            waiting.append((value, price, len(waiting), used))
    return [search.state(used) for *_, used in heapq.nsmallest(TRIED, waiting)]


def _price_of(search, used, by_sum):
    """Return the price of the candidates `used`, by a cost function if there is one, or by_sum."""
    by_function = search.space.network.set_cost is not None
    return search.space.price(used) if by_function else float(by_sum)


def _additions(search, state):
    """Yield (price, predicted criterion, selection) for candidates whose addition improves a model.

    A candidate is added with all that it needs; at most two additions per price are yielded."""
    moves = possible_moves(search, state, search.budget, drop=False)
    value, by_sum = moves.value[0], moves.price[0]
    kept: dict[float, int] = {}
    for b in np.argsort(value, kind="stable"):
        if not value[b] < state.value - MIN_FALL:
            break
        used = moves.after(state.used, 0, b)
        price = _price_of(search, used, by_sum[b])
        key = float(f"{price:.6g}")
        if kept.get(key, 0) < KEPT and affordable(price, search.budget):
            kept[key] = kept.get(key, 0) + 1
            yield price, float(value[b]), used


def _switches(search, state):
    """Yield (price, criterion, selection) for changes of a source that improve a model.

    A source is one of several alternatives. More expensive sources are tried only here."""
    for s in range(search.space.source.shape[1]):
        for used in source_switches(search.space, state.used, s):
            new = search.state(used)
            if new.value < state.value - MIN_FALL and affordable(new.price, search.budget):
                yield new.price, new.value, new.used


# Backward -----------------------------------------------------------------------------------------


def backward_elimination(search, states):
    """Return models (SearchStates) that are better than all given ones of at most their price.

    From each of the best models by price, every candidate (a column with its needs) is dropped in
    turn. The most promising result is improved by moves within its price. Forward selection alone
    misses models just below an expensive candidate."""
    better, tie, queue, seen = [], count(), [], {state.used.tobytes() for state in states}
    front = new = _front(states)
    for _ in range(MOST_BACKWARD):
        for state in new:
            for price, value, used in _deletions(search, state):
                if used.tobytes() not in seen:
                    seen.add(used.tobytes())
                    heapq.heappush(queue, (value - _best_value(front, price), next(tie), used))
        if not queue:
            break
        start = search.state(heapq.heappop(queue)[2])
        end = [start, *local_search(search, start, start.price)][-1]
        new = [end] if end.value < _best_value(front, end.price) - MIN_FALL else []
        better += new
        front = _front([*front, *new])
    return better


def _front(states):
    """Return the models that are better than all others of the same or a lower price, by price."""
    out: list = []
    for state in sorted(states, key=lambda state: (state.price, state.value)):
        if not out or state.value < out[-1].value:
            out.append(state)
    return out


def _best_value(front, price):
    """Return the smallest criterion of the models `front` up to a price."""
    return min(state.value for state in front if affordable(state.price, price))


def _deletions(search, state):
    """Return (price, predicted criterion, selection) after dropping candidates from a model.

    Only the best selection for each price is returned."""
    moves = possible_moves(search, state, state.price, add=False)
    best: dict[str, tuple] = {}
    for a, value in enumerate(moves.value[:, 0].tolist()):
        used = moves.after(state.used, a, 0)
        price = _price_of(search, used, moves.price[a, 0])
        known = best.get(f"{price:.6g}")
        if known is None or value < known[1]:
            best[f"{price:.6g}"] = price, value, used
    return best.values()
