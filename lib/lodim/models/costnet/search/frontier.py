"""The price list: at each cost the best refitted model, and the rule that found it."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.models.costnet.search.candidates import within
from lodim.models.costnet.search.moves import MIN_FALL, Candidate, offers, switched

MIN_IMPROVEMENT = 0.5  # fall of the criterion below which a dearer model is not worth a mention


@dataclass(frozen=True, eq=False)
class Ladder:
    """M models of growing cost, each better by criterion and by deviance than all cheaper ones.

    cost : (M,) what must be paid
    intercept : (M, K); coef : (M, p, K) on standardized columns
    bought : (M, V) bool, the nodes that are paid for
    deviance : (M,) weighted mean
    df : (M,) int64, columns with a coefficient (the criterion charges their rank)
    lambda_ : (M,), NaN where the rule has none
    rule : (M,) names
    bound : (M,) no model of this cost or less has a deviance below it
    criterion : (M,), see Criterion
    """

    cost: np.ndarray
    intercept: np.ndarray
    coef: np.ndarray
    bought: np.ndarray
    deviance: np.ndarray
    df: np.ndarray
    lambda_: np.ndarray
    rule: tuple[str, ...]
    bound: np.ndarray
    criterion: np.ndarray

    def __len__(self):
        return len(self.cost)

    def at(self, budget):
        """Index of the best model that the budget pays for; the first, where it pays for none."""
        paid = [k for k, cost in enumerate(self.cost) if within(cost, budget)]
        return paid[-1] if paid else 0


def rungs(search, found, relax=1.0):
    """Candidates of growing price from the null model on, each better than all cheaper.

    Better is by MIN_IMPROVEMENT. Its deviance is lower too: nobody pays more for a model that
    fits worse, even with fewer coefficients. A proven optimum needs to be better alone. With relax
    below 1 they are judged as blended. Ties are settled by `simplicity`, but where a blend is tied
    to its support.
    """
    if relax < 1.0:
        found = [_judged(search, candidate, relax) for candidate in found]
    nothing = search.state(np.zeros(len(search.market), bool))
    out: list = []
    pool = [Candidate(nothing, "null"), *found]
    for candidate in sorted(pool, key=lambda c: (c.state.price, c.state.value)):
        same = out and within(candidate.state.price, out[-1].state.price)
        worth = MIN_FALL if same or candidate.rule == "exact" else MIN_IMPROVEMENT
        cheaper = out[:-1] if same else out
        fits = not cheaper or candidate.state.deviance < cheaper[-1].state.deviance
        if not out or (fits and candidate.state.value < out[-1].state.value - worth):
            out = [*cheaper, candidate]
        elif same and fits and _first(search.market, candidate, out[-1]):
            out[-1] = candidate
    return [
        c if relax < 1.0 and c.trace is not None else replace(c, state=settled(search, c.state))
        for c in out
    ]


def _first(market, candidate, other):
    """Whether a candidate is as good as another of its price, and simpler or earlier by name."""
    if abs(candidate.state.value - other.state.value) > MIN_FALL:
        return False
    return simplicity(market, candidate.state.used) < simplicity(market, other.state.used)


def build(search, network, chosen, relax, lower):
    """The ladder of some rungs.

    Parameters
    ----------
    search : Search
    network : Network
    chosen : list of Candidate, from `rungs`
    relax : float
        Share of the refit in the blend with the penalized estimates, of the rules that have such:
        1 is the refit alone (gamma = 1 - relax of glmnet).
    lower : callable(prices (M,)) -> (M,)
        Lower bounds of the deviance.

    Returns
    -------
    Ladder
    """
    p = search.final.training.X.shape[1]
    models = [_model(search, search.final, candidate, relax) for candidate in chosen]
    intercept, parts, deviance = zip(*models, strict=True)
    intercept, deviance = np.array(intercept), np.array(deviance)
    coef = np.zeros((len(chosen), p, intercept.shape[1]))
    for full, candidate, part in zip(coef, chosen, parts, strict=True):
        full[search.market.columns[search.market.on(candidate.state.used)]] = part
    cost = np.array([c.state.price for c in chosen])
    nodes = [search.market.nodes(c.state.used)[: len(network)] for c in chosen]
    return Ladder(
        cost=cost, intercept=intercept, coef=coef,
        bought=np.array([network.closed(on) for on in nodes]),
        deviance=deviance, df=coef.any(axis=2).sum(axis=1),
        lambda_=np.array([c.lambda_ for c in chosen]), rule=tuple(c.rule for c in chosen),
        bound=lower(cost), criterion=np.array([c.state.value for c in chosen]),
    )  # fmt: skip


def _judged(search, candidate, relax):
    """A candidate with the deviance and criterion of its blend with the penalized estimates."""
    state = candidate.state
    if candidate.trace is None or not np.isfinite(state.value):
        return candidate
    deviance = _model(search, search.refits, candidate, relax)[2]
    value = float(search.criterion(deviance, state.df))
    return replace(candidate, state=replace(state, deviance=deviance, value=value))


def _model(search, refits, candidate, relax):
    """Intercept (K,), coefficients (|on|, K) and deviance of a candidate, on the refits' rows."""
    market, training = search.market, refits.training
    on = market.on(candidate.state.used)
    fit = refits(on)
    if relax == 1.0 or candidate.trace is None:
        return fit.intercept, fit.coef, fit.deviance
    trace, k = candidate.trace, candidate.place
    intercept = relax * fit.intercept + (1.0 - relax) * trace.intercept[k]
    coef = relax * fit.coef + (1.0 - relax) * trace.coef[k][market.columns[on]]
    return intercept, coef, training.deviance(training.link(intercept, on, coef))


def simplicity(market, used):
    """By what purchases are put in order: how many things they pay for, and their names."""
    network = market.network
    paid = np.unique(network.base[network.closed(market.nodes(used))])
    return len(paid), sorted(network.names[v] for v in paid)


def settled(search, state):
    """The first of the states that exchanges make of a state at its price and criterion."""
    market, best = search.market, state
    while True:
        own, rivals = simplicity(market, best.used), []
        for used in _exchanged(search, best):
            order = simplicity(market, used)
            if order < own and equal(market.price(used), best.price):
                rivals.append((order, used))
        # The refit has the last word on what its quadratic has promised.
        states = (search.state(used) for _, used in sorted(rivals, key=lambda pair: pair[0]))
        new = next((s for s in states if abs(s.value - state.value) <= MIN_FALL), None)
        if new is None:
            return best
        best = new


def equal(price, other):
    """Whether two prices differ by rounding alone."""
    return within(price, other) and within(other, price)


def _exchanged(search, state):
    """Purchases that promise the criterion of a state for what it costs."""
    found = offers(search, state, state.price)
    for a, b in np.argwhere(np.abs(found.value - state.value) <= MIN_FALL):
        yield found.after(state.used, a, b)
    for s in range(search.market.source.shape[1]):
        yield from switched(search.market, state.used, s)
