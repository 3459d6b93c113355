"""The best model that a budget pays for, with the proof: for small problems."""

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.costnet.search import sweep
from lodim.models.costnet.search.bounds import Relaxation
from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import Search, State

MOST_GOODS = 15  # of which all subsets are looked at
MOST_PROGRAM = 60  # goods of a mixed-integer program
MOST_CUTS = 1000
TOL = 1e-9  # share of the null deviance


def optimum(search: Search, budget: float) -> State:
    """The state of least deviance within a budget."""
    market, training = search.market, search.refits.training
    if len(market) <= MOST_GOODS and search.refits is search.final:
        return exhaustive(search, budget)
    numeric = training.family.name == "gaussian" and market.network.set_cost is None
    if not numeric or len(market) > MOST_PROGRAM or market.screened:
        most = MOST_PROGRAM if numeric else MOST_GOODS
        raise ArgumentError(
            f"rules='exact' looks at no more than {MOST_GOODS} features, or {MOST_PROGRAM} with a "
            f"numeric response and a price for each; the budget pays for {len(market)}: lower it "
            f"until these are {most}, or leave it to the other rules"
        )
    return best_subset(search, budget)


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
    at, owns = _independent(market, refits.at_null.gram)
    gram, target = refits.at_null.gram[np.ix_(at, at)], refits.at_null.target[at, 0]
    relaxation = Relaxation.of(gram, target, null)
    if relaxation.vacuous:
        raise DataError("rules='exact' needs features of which none is a sum of others")
    best, share, cuts = search.state(np.zeros(m, bool)), np.full(m, 0.5), []
    for _ in range(MOST_CUTS):
        c, h = relaxation.cut(relaxation.solve(np.minimum(1.0, owns @ share)))
        cuts.append((c, owns.T @ h))
        least, used = _master(market, budget, cuts)
        if least >= best.deviance - TOL * null:
            return best
        best, share = min(best, search.state(used), key=lambda s: s.deviance), used.astype(float)
    raise DataError(
        f"rules='exact' has proved nothing in {MOST_CUTS} rounds: lower the budget, or leave it to "
        "the other rules"
    )


def _independent(market, gram):
    """Columns (r,) that goods own but for those their others determine, and whose: (r, m) 0 or 1.

    Of a category's levels one is left out: the fit is the same, and the relaxation needs it.
    """
    kept = []
    for g in range(len(market)):
        mine: list[int] = []
        for j in market.at[market.start[g] : market.start[g + 1]]:
            if sweep.rank(gram, np.array([*mine, j])) > len(mine):
                mine.append(int(j))
        kept.append(mine)
    at = np.unique(np.concatenate(kept)).astype(np.int64)  # copies own the same columns
    owns = np.zeros((len(at), len(market)))
    for g, mine in enumerate(kept):
        owns[np.searchsorted(at, mine), g] = 1.0
    return at, owns


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
