"""The best model within a budget, by trying all selections of candidates."""

import numpy as np

from lodim.models.costnet.search.candidates import affordable


def exhaustive(search, budget):
    """Return the model (SearchState) of lowest deviance within a budget.

    A selection is not refitted if an affordable one has one candidate more, since a further column
    never increases the deviance."""
    space, m = search.space, len(search.space)
    subsets = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 > 0
    subsets = subsets[[_has_single_sources(space, used) for used in subsets]]
    prices = np.array([space.price(used) for used in subsets])
    states = (search.state(used) for used in _maximal(subsets[affordable(prices, budget)]))
    return min(states, key=lambda state: state.deviance)


def _has_single_sources(space, used):
    """Whether the nodes `used` need at most one source of each set of alternatives."""
    return all(len(np.unique(column[column >= 0])) <= 1 for column in space.source[used].T)


def _maximal(subsets):
    """Yield the subsets that no other subset extends by one more element."""
    known = {row.tobytes() for row in subsets}
    for row in subsets:
        larger = np.repeat(row[None], len(row), axis=0)
        larger[np.arange(len(row)), np.arange(len(row))] = True
        if not any(other.tobytes() in known for other in larger[~row]):
            yield row
