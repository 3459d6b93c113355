"""Rules: where the models come from that a price list chooses among."""

from dataclasses import replace
from itertools import islice, product

import numpy as np

from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.greedy import (
    backward_elimination,
    forward_selection,
    modular_selection,
)
from lodim.models.costnet.search.moves import Proposal

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
    return Groups.weighted_lasso(np.where(np.isfinite(cost), cost, 0.0), network)


def reweighted_groups(groups, path, place):
    """Groups with costs divided by the norms at a place of a path (Candes et al. 2008)."""
    norm = groups.norms(path.latent[place])
    largest = norm.max(initial=0.0)
    if largest == 0.0:
        return groups
    return replace(groups, cost=groups.cost / (norm / largest + FLOOR))


def path_supports(search, path, rule):
    """Proposals of the supports along a path, each once, with the least lambda it has."""
    space, proposals = search.space, {}
    most = search.refits.data.n_positive
    owns = np.zeros((len(space), path.coef.shape[1]), bool)
    owner = np.repeat(np.arange(len(space)), np.diff(space.start))
    owns[owner, space.columns[space.at]] = True
    least = NEGLIGIBLE * np.abs(path.coef).max(initial=0.0)
    for place, lambda_ in enumerate(path.lambdas):
        large = (np.abs(path.coef[place]) > least).any(axis=1)
        for used in single_source_selections(space, (owns & large).any(axis=1)):
            key, at = used.tobytes(), {"lambda_": float(lambda_), "place": place}
            if key in proposals:
                proposals[key] = replace(proposals[key], **at)
            elif len(space.columns_of(used)) <= most and affordable(
                space.price(used), search.budget
            ):
                proposals[key] = Proposal(search.state(used), rule, path=path, **at)
    return list(proposals.values())


def single_source_selections(space, used):
    """Selections (m,) that have one source of each series, one for each choice of sources."""
    if not space.source.shape[1]:
        yield used
        return
    choices = [np.unique(s[s >= 0]) for s in space.source[used].T]
    choices = [sources if len(sources) else [-1] for sources in choices]
    for choice in islice(product(*choices), MOST_CHOICES):
        serves = (space.source == np.array(choice)) | (space.source < 0)
        yield used & serves.all(axis=1)


def reweighted_supports(search, batch, family, groups, proposals, penalty_path):
    """Proposals of the group penalty, reweighted from the best model that each round finds.

    `proposals` holds those of the plain penalty; penalty_path(batch, family, groups) solves.
    """
    out: list = []
    for _ in range(ROUNDS):
        if not proposals:
            break
        best = min(proposals, key=lambda c: c.state.value)
        # Norms are those of the last penalty, costs always the true ones.
        path = penalty_path(batch, family, reweighted_groups(groups, best.path, best.place))
        proposals = path_supports(search, path, "reweighted")
        out += proposals
    return out


def forward_proposals(search):
    """Proposals of forward selection by gain per price."""
    return [Proposal(state, "greedy") for state in forward_selection(search)]


def backward_proposals(search, proposals):
    """Proposals of what is left of those of all rules without one thing each."""
    states = [proposal.state for proposal in proposals]
    return [Proposal(state, "greedy") for state in backward_elimination(search, states)]


def modular_proposals(search, proposals, budgets):
    """Proposals of modular upper bounds at each budget, from the best that it pays for."""
    out = []
    for budget in budgets:
        paid = [c.state for c in proposals if affordable(c.state.price, budget)]
        if paid:
            best = min(paid, key=lambda state: state.value)
            out += [Proposal(s, "modular") for s in modular_selection(search, budget, best)]
    return out
