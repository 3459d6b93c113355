"""Rules: where the purchases come from that a ladder chooses among."""

from dataclasses import replace
from itertools import islice, product

import numpy as np

from lodim.models.costnet.penalty.groups import singles
from lodim.models.costnet.search import exact, greedy
from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import Candidate

ROUNDS = 2  # of reweighting
FLOOR = 0.1  # share of the largest norm that is added to each, so that no group is lost for good
NEGLIGIBLE = 1e-4  # share of a path's largest coefficient: an interior point's zeros are smaller
MOST_CHOICES = 64  # choices of a source for each series that are tried for one support


def lasso_groups(network, p):
    """The weighted lasso's penalty: each column is charged all that its node needs, by itself."""
    cost = np.full(p, np.inf)
    for v, columns in enumerate(network.columns):
        if columns:
            at, needed = list(columns), network.needs[v]
            alone = network.price(needed) if network.set_cost else network.cost[needed].sum()
            cost[at] = np.minimum(cost[at], alone)  # of copies the cheapest
    return singles(np.where(np.isfinite(cost), cost, 0.0), network)


def reweighted(groups, trace, place):
    """Groups with costs divided by the norms at a place of a trace (Candes et al. 2008)."""
    square = (trace.latent[place] ** 2).sum(axis=1)[groups.member]
    norm = np.sqrt(np.add.reduceat(square, groups.start[:-1]))
    largest = norm.max(initial=0.0)
    if largest == 0.0:
        return groups
    return replace(groups, cost=groups.cost / (norm / largest + FLOOR))


def supports(search, trace, rule):
    """Candidates of the supports along a trace, each once, with the least lambda it has."""
    market, found = search.market, {}
    most = search.refits.training.counted
    owned = np.zeros((len(market), trace.coef.shape[1]), bool)
    owner = np.repeat(np.arange(len(market)), np.diff(market.start))
    owned[owner, market.columns[market.at]] = True
    least = NEGLIGIBLE * np.abs(trace.coef).max(initial=0.0)
    for place, lambda_ in enumerate(trace.lambdas):
        large = (np.abs(trace.coef[place]) > least).any(axis=1)
        chosen = (owned & large).any(axis=1)
        for used in purchases(market, chosen):
            key, at = used.tobytes(), {"lambda_": float(lambda_), "place": place}
            if key in found:
                found[key] = replace(found[key], **at)
            elif len(market.on(used)) <= most and within(market.price(used), search.budget):
                found[key] = Candidate(search.state(used), rule, trace=trace, **at)
    return list(found.values())


def purchases(market, chosen):
    """A support as purchases that have one source of each series: one for each choice of them."""
    if not market.source.shape[1]:
        yield chosen
        return
    choices = [np.unique(s[s >= 0]) for s in market.source[chosen].T]
    choices = [found if len(found) else [-1] for found in choices]
    for choice in islice(product(*choices), MOST_CHOICES):
        serves = (market.source == np.array(choice)) | (market.source < 0)
        yield chosen & serves.all(axis=1)


def grown(search):
    """Candidates of the cost-benefit greedy."""
    return [Candidate(state, "greedy") for state in greedy.forward_selection(search)]


def shortened(search, found):
    """Candidates that are left of those of all rules without one thing each, exchanged."""
    states = [candidate.state for candidate in found]
    return [Candidate(state, "greedy") for state in greedy.backward_elimination(search, states)]


def optima(search, budgets):
    """The Candidate of each budget that no other is better than."""
    return [Candidate(exact.optimum(search, budget), "exact") for budget in budgets]


def reweighting(search, batch, family, groups, found, path):
    """Candidates of the group penalty, reweighted from the best model that each round finds.

    `found` holds those of the plain penalty, and path(batch, family, groups) solves.
    """
    out: list = []
    for _ in range(ROUNDS):
        if not found:
            break
        best = min(found, key=lambda c: c.state.value)
        # Norms are those of the last penalty, costs always the true ones.
        found = supports(
            search, path(batch, family, reweighted(groups, best.trace, best.place)), "reweighted"
        )
        out += found
    return out


def bounded(search, found, budgets):
    """Candidates of modular upper bounds at each budget, from the best of `found` that it pays."""
    out = []
    for budget in budgets:
        paid = [c.state for c in found if within(c.state.price, budget)]
        if paid:
            best = min(paid, key=lambda state: state.value)
            out += [Candidate(s, "modular") for s in greedy.modular_selection(search, budget, best)]
    return out
