"""Search rules: each proposes models; the best proposal at each price is selected elsewhere."""

import heapq
from dataclasses import replace
from itertools import count, islice, product

import numpy as np

from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.moves import (
    MIN_FALL,
    CandidateModel,
    Moves,
    local_search,
    source_switches,
)
from lodim.models.costnet.search.sweep import ALIASED


def lasso_groups(network, p, monotone=None):
    """Return a lasso penalty as Groups, weighted by the prices of the columns and their needs.

    network : Network with the prices; p : number of columns
    monotone : (p,) required signs, 1, -1 or 0 for none; or None"""
    # A free column gets the lowest price of another column, or 1.
    cost = np.full(p, np.inf)
    for v, columns in enumerate(network.columns):
        if columns:
            at, needed = list(columns), network.needs[v]
            alone = network.price(needed) if network.set_cost else network.cost[needed].sum()
            cost[at] = np.minimum(cost[at], alone)  # the cheapest of several copies
    cost[np.isinf(cost)] = 0.0  # columns of no node
    owned, paid = [j for columns in network.columns for j in columns], cost[cost > 0.0]
    cost[owned] = np.where(cost[owned] > 0.0, cost[owned], paid.min() if paid.size else 1.0)
    return Groups.weighted_lasso(cost, monotone)


def path_supports(search, path, rule):
    """Refit the models of a PenaltyPath without a penalty; return CandidateModels.

    search : Search that refits them; rule : name, such as "lasso", of the rule with this path"""
    candidate_models: dict[bytes, CandidateModel] = {}
    for place, _, used in path_selections(search.space, path):
        key, at = used.tobytes(), {"lambda_": float(path.lambdas[place]), "place": place}
        if key in candidate_models:
            candidate_models[key] = replace(candidate_models[key], **at)
            continue
        state = search.state(used)
        if np.isfinite(state.value) and affordable(state.price, search.budget):
            candidate_models[key] = CandidateModel(state, rule, path=path, **at)
    return list(candidate_models.values())


def path_selections(space, path):
    """Yield (position, choice, used) for each model of a PenaltyPath and each choice of sources.

    choice : tuple, the node (source) that supplies each of S quantities, -1 for none
    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    for place, used in enumerate(selections_along(space, path)):
        for choice in choices_of_sources(space, used):
            yield place, choice, used & computable_from(space, choice)


def selections_along(space, path):
    """Return which candidates of `space` have a nonzero column in each model of a path, (L, m)."""
    owns = np.zeros((len(space), path.coef.shape[1]), bool)
    owner = np.repeat(np.arange(len(space)), np.diff(space.start))
    owns[owner, space.columns[space.at]] = True
    size = np.abs(path.coef)  # nearly equal free columns have huge coefficients
    # Coefficients below 1e-4 of the largest priced one count as zero.
    least = 1e-4 * size[:, owns[space.single_price > 0.0].any(axis=0)].max(initial=0.0)
    large = (size > least).any(axis=2)
    return np.array([(owns & on).any(axis=1) for on in large])


def choices_of_sources(space, used):
    """Iterate over a model's choices of sources (columns or purchases), 64 at most.

    A choice is a tuple, per quantity (such as pulse) the Network position of its source, or -1.
    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    choices = [np.unique(s[s >= 0]).tolist() or [-1] for s in space.source[used].T]
    return islice(product(*choices), 64)


def computable_from(space, choice):
    """Return which candidates of a SearchSpace need no source except the chosen ones, (m,) bool.

    choice : tuple, the node (source) that supplies each of S quantities, -1 for none"""
    return ((space.source == np.array(choice, int)) | (space.source < 0)).all(axis=1)


# Twins: columns that are multiples of each other -------------------------------------------------


def canonicalize_duplicates(path, search):
    """Move coefficients of duplicate columns to the first by name; return the new PenaltyPath.

    Duplicates are multiples of each other with equal prices and needs.
    search : Search with these columns and terms"""
    space, gram, sign = search.space, search.refits.at_null.gram, search.refits.data.sign
    moves = [
        (space.columns[first], space.columns[other], gram[first, other] / gram[first, first])
        for first, other in _twins(space, gram)
        if sign[first] == sign[other] * np.sign(gram[first, other])
    ]
    if not moves:
        return path
    coef = path.coef.copy()
    for first, other, ratio in moves:
        coef[:, first] += ratio * coef[:, other]
        coef[:, other] = 0.0
    return replace(path, coef=coef)


def _twins(space, gram):
    """Yield pairs of positions of duplicate columns, the first by name before the other.

    space : SearchSpace; gram : (q, q) products of centred columns"""
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
    """Return whether two candidates (positions) of a SearchSpace have equal prices and needs."""
    network = space.network
    if network.set_cost is not None or (space.source[first] != space.source[other]).any():
        return False
    own, its = space.candidates[first], space.candidates[other]
    if network.cost[own] != network.cost[its] or network.children[own] or network.children[its]:
        return False
    mine, theirs = network.needs[own].copy(), network.needs[its].copy()
    mine[own] = theirs[its] = False
    return bool((mine == theirs).all())


def forward_selection(search):
    """Build models by adding and exchanging columns and terms; return CandidateModels.

    search : Search with these columns and terms, and with a budget"""
    states, tie = [], count()
    # A heap of (price, predicted criterion, tie breaker, selection as an (m,) mask).
    queue = [(0.0, np.inf, next(tie), np.zeros(len(search.space), bool))]
    best, seen = np.inf, set()
    for _ in range(200):
        if not queue:
            break
        # Of the cheapest selections, the most promising two are refitted.
        first, cheapest = queue[0][0], []
        while queue and queue[0][0] <= 1.03 * first:
            price, value, _, used = heapq.heappop(queue)
            if used.tobytes() not in seen:
                seen.add(used.tobytes())
                cheapest.append((value, price, len(cheapest), used))
        level = [search.state(used) for *_, used in heapq.nsmallest(2, cheapest)]
        states += level
        state = min(level, key=lambda state: state.value, default=None)
        if state is None or not state.value < best - MIN_FALL:
            continue
        better = local_search(search, state, state.price)
        states += better
        state = better[-1] if better else state
        best = min(best, state.value)
        for price, value, used in _additions(search, state):
            heapq.heappush(queue, (price, value, next(tie), used))
        for new in map(search.state, source_switches(search.space, state.used)):
            if new.value < state.value - MIN_FALL and affordable(new.price, search.budget):
                heapq.heappush(queue, (new.price, new.value, next(tie), new.used))
    return [CandidateModel(state, "greedy") for state in states]


def _additions(search, state):
    """Yield (price, predicted criterion, used) of larger models that may be better.

    search : Search; state : SearchState of a model; used : (m,) bool, candidates of the larger"""
    # At most two models per price.
    moves = Moves(search, state, search.budget, drop=False)
    value, by_function = moves.value[0], search.space.network.set_cost is not None
    kept: dict[float, int] = {}
    for b in np.argsort(value, kind="stable"):
        if not value[b] < state.value - MIN_FALL:
            break
        used = moves.after(0, b)
        price = search.space.price(used) if by_function else float(moves.price[0, b])
        key = float(f"{price:.6g}")
        if kept.get(key, 0) < 2 and affordable(price, search.budget):  # two selections per price
            kept[key] = kept.get(key, 0) + 1
            yield price, float(value[b]), used
