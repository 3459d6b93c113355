"""The best model that a budget pays for, exactly: for small problems, and to judge the rules by."""

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.costnet.exchange import Search, State
from lodim.models.costnet.market import within
from lodim.models.costnet.relaxation import Relaxation

MOST_GOODS = 15  # of which all subsets are looked at
MOST_CUTS = 1000
TOL = 1e-9  # share of the null deviance


def exhaustive(search: Search, budget: float) -> State:
    """The state of least deviance within a budget, by looking at all of them.

    Of purchases of one price range only those to which nothing can be added need a look, since a
    further column never raises the deviance; but with alternatives all are looked at.
    """
    market = search.market
    m = len(market)
    if m > MOST_GOODS:
        raise ArgumentError(f"all subsets of at most {MOST_GOODS} nodes are looked at, not of {m}")
    subsets = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 > 0
    subsets = subsets[[_single_sources(market, used) for used in subsets]]
    if market.network.set_cost is None:
        prices = (subsets @ market.paid > 0.0) @ market.cost
    else:
        prices = np.array([market.price(used) for used in subsets])
    states = (search.state(used) for used in _maximal(subsets[within(prices, budget)]))
    return min(states, key=lambda state: state.deviance)


def _single_sources(market, used):
    """Whether a purchase needs at most one source of each series."""
    sources = market.source[used]
    return all(len(np.unique(column[column >= 0])) <= 1 for column in sources.T)


def _maximal(subsets):
    """The subsets to which none of the others adds one more element."""
    known = {row.tobytes() for row in subsets}
    for row in subsets:
        larger = np.repeat(row[None], len(row), axis=0)
        larger[np.arange(len(row)), np.arange(len(row))] = True
        if not any(other.tobytes() in known for other in larger[~row]):
            yield row


def best_subset(search: Search, budget: float) -> State:
    """The state of least deviance within a budget, by mixed-integer programming.

    minimize eta over eta, s in {0, 1}^m (goods that are used), z in {0, 1}^B (things that are
    paid for), subject to z_i >= s_j for each thing i that good j needs, cost'z <= budget, one
    source of each series, and eta >= c_k - h_k's for all cuts k of the perspective relaxation. A
    solution gives a new cut, exact there, until eta reaches the deviance of one (outer
    approximation, Duran and Grossmann 1986). In CVXPY, solved by HiGHS.
    """
    market, refits = search.market, search.final
    if refits.training.family.name != "gaussian" or market.network.set_cost is not None:
        raise ArgumentError("best_subset takes a numeric response and a sum of costs")
    null, m = refits.null.deviance, len(market)
    relaxation = Relaxation.of(refits.at_null.gram, refits.at_null.target[:, 0], null)
    if relaxation.vacuous:
        raise DataError("best_subset needs features of which none is a sum of others")
    owns = np.zeros((len(market.columns), m))
    for g in range(m):
        owns[market.at[market.start[g] : market.start[g + 1]], g] = 1.0
    best, share, cuts = search.state(np.zeros(m, bool)), np.full(m, 0.5), []
    for _ in range(MOST_CUTS):
        c, h = relaxation.cut(relaxation.solve(np.minimum(1.0, owns @ share)))
        cuts.append((c, owns.T @ h))
        least, used = _master(market, budget, cuts)
        if least >= best.deviance - TOL * null:
            break
        best, share = min(best, search.state(used), key=lambda s: s.deviance), used.astype(float)
    return best


def _master(market, budget, cuts):
    """The least eta under some cuts, and the goods (m,) bool that have it."""
    import cvxpy as cp  # a second to import, and rarely used

    m, B = market.paid.shape
    s, z, eta = cp.Variable(m, boolean=True), cp.Variable(B, boolean=True), cp.Variable()
    good, thing = np.nonzero(market.paid)
    rules = [z[thing] >= s[good], market.cost @ z <= budget]
    for sources in market.source.T:
        serving = np.unique(sources[sources >= 0])
        u = cp.Variable(len(serving), boolean=True)
        needing = np.flatnonzero(sources >= 0)
        rules += [cp.sum(u) <= 1, s[needing] <= u[np.searchsorted(serving, sources[needing])]]
    levels, slopes = np.array([c for c, _ in cuts]), np.array([h for _, h in cuts])
    problem = cp.Problem(cp.Minimize(eta), [*rules, eta >= levels - slopes @ s])
    problem.solve(solver=cp.HIGHS)
    return float(eta.value), np.asarray(s.value) > 0.5
