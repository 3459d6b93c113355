"""Exchanges: what a model gains by goods that come and goods that go, within a budget."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.models.costnet.search import sweep
from lodim.models.costnet.search.candidates import within

MIN_FALL = 1e-6  # least fall of the criterion that counts as one
ROUNDS = 20
LOOKS = 200  # exchanges whose price a user's cost function is asked for, the best first


@dataclass(frozen=True, eq=False)
class State:
    """A purchase `used` (m,) bool, its price, deviance, coefficients and criterion.

    df : number of coefficients that the rows determine, the rank of its columns (for K classes
        times K - 1)
    """

    used: np.ndarray
    price: float
    deviance: float
    df: int
    value: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A purchase that a rule found, refitted; lambda_ and its place in the rule's trace, or NaN."""

    state: State
    rule: str
    lambda_: float = np.nan
    trace: Any = None
    place: int = -1


@dataclass(frozen=True, eq=False)
class Search:
    """What a search works with.

    market : Market
    refits : Refits of the rows that are searched; final : of all rows, mostly the same
    criterion : Criterion
    budget : float, infinite where there is none
    """

    market: Any
    refits: Any
    final: Any
    criterion: Any
    budget: float

    def state(self, used):
        """The State of a purchase, refitted."""
        on = self.market.on(used)
        fit = self.refits(on)
        df = fit.rank * self.refits.training.df_per_column
        value = float(self.criterion(fit.deviance, df))
        return State(used, self.market.price(used), fit.deviance, df, value)


@dataclass(frozen=True, eq=False)
class Offers:
    """Exchanges of a state: goods that go (a, m) bool for goods that come (b, m) bool.

    value : (a, b) criterion after each, infinite where it is not possible
    price : (a, b) its price by the sum of costs
    """

    going: np.ndarray
    coming: np.ndarray
    value: np.ndarray
    price: np.ndarray

    def after(self, used, a, b):
        """The purchase after an exchange."""
        return used & ~self.going[a] | self.coming[b]


def offers(search, state, budget, goes=True, comes=True):
    """All exchanges of a state within a budget; without `goes` or `comes` nothing does.

    One good or, with all that need it, one branch may go; one good, by itself or with what it
    needs, may come. Their gains are exact for a numeric response, else those of the quadratic at
    the state's refit.
    """
    market, training = search.market, search.refits.training
    on = market.on(state.used)
    at = search.refits.near(on)
    gram, target, variance = at.gram.copy(), at.target.copy(), np.diag(at.gram).copy()
    columns = sweep.enter(gram, target, variance, on)
    nothing = np.zeros((1, len(market)), bool), np.empty(0, np.int64)
    going = _going(market, state.used) if goes else nothing[0]
    coming, lead = _coming(market, state.used) if comes else nothing
    rest = state.used & ~going
    price = market.prices_with(rest)
    alone = (market.cost * (rest @ market.paid > 0.0)).sum(axis=1)
    price = np.column_stack([alone, price[:, lead]])
    allowed = np.column_stack([np.ones(len(rest), bool), market.agree(rest)[:, lead]])
    if market.network.set_cost is None:
        allowed &= within(price, budget)
    gain, rank = sweep.gains(
        gram, target, variance, columns, *_sets(market, going), *_sets(market, coming), allowed
    )
    df = (columns.sum() + rank) * training.df_per_column
    value = np.where(allowed, search.criterion(state.deviance - gain, df), np.inf)
    return Offers(going, coming, value, price)


def polish(search, state, budget):
    """The states on the way to one that no exchange within the budget makes better."""
    found = []
    for _ in range(ROUNDS):
        better = _best(search, state, budget) or _other_source(search, state, budget)
        if better is None:
            break
        state = better
        found.append(state)
    return found


def _best(search, state, budget):
    """The state after the best exchange, or None where none is better."""
    found = offers(search, state, budget)
    order = np.argsort(found.value, axis=None)
    for k in order[: LOOKS if search.market.network.set_cost else 1]:
        a, b = np.unravel_index(k, found.value.shape)
        if not found.value[a, b] < state.value - MIN_FALL:
            return None
        used = found.after(state.used, a, b)
        if not within(search.market.price(used), budget):
            continue
        new = search.state(used)
        return new if new.value < state.value - MIN_FALL else None
    return None


def _going(market, used):
    """(a, m) bool: nothing; each good; each branch of goods that need one and the same."""
    m = len(market)
    sets = [np.zeros(m, bool)]
    for g in np.flatnonzero(used):
        sets.append(np.arange(m) == g)
    # Of what is paid, also that of which no column is used: the branch that hangs on it may go.
    for needing in (market.paid[used] > 0.0).T:
        if needing.sum() > 1:
            branch = np.zeros(m, bool)
            branch[np.flatnonzero(used)[needing]] = True
            sets.append(branch)
    # In the order of np.unique, which takes several times as long for a few rows.
    distinct = sorted({row.tobytes() for row in sets})
    return np.frombuffer(b"".join(distinct), bool).reshape(len(distinct), m)


def _coming(market, used):
    """(b, m) bool: nothing; each good; each with what it needs. And the good, but of nothing."""
    m = len(market)
    lead = np.flatnonzero(~used)
    alone = np.zeros((1 + len(lead), m), bool)
    alone[1 + np.arange(len(lead)), lead] = True
    missing = market.requires[lead] & ~used
    whole = (alone[1:] | missing)[missing.any(axis=1)]
    return np.vstack([alone, whole]), np.append(lead, lead[missing.any(axis=1)])


def _sets(market, chosen):
    """Columns of sets of goods (r, m) bool, as starts and positions."""
    row, good = np.nonzero(chosen)
    first, size = market.start[good], np.diff(market.start)[good]
    before = np.cumsum(size) - size
    at = np.arange(size.sum()) + np.repeat(first - before, size)
    per_row = np.bincount(row, size, len(chosen)).astype(np.int64)
    return np.append(0, np.cumsum(per_row)), market.at[at]


def _other_source(search, state, budget):
    """The state with another source of one series, where better, or as good for less; or None."""
    best = state
    for s in range(search.market.source.shape[1]):
        for used in switched(search.market, state.used, s):
            if not used.any() or not within(search.market.price(used), budget):
                continue
            new = search.state(used)
            if (round(new.value - best.value, 6), new.price) < (0.0, best.price):
                best = new
    return None if best is state else best


def switched(market, used, s):
    """The purchases with each other source of series s, as far as its goods are there for it."""
    mine = used & (market.source[:, s] >= 0)
    if not mine.any():
        return
    base = market.network.base[market.goods]
    current = market.source[mine, s][0]
    others = np.delete(market.source, s, axis=1)
    for other in np.unique(market.source[:, s]):
        if other in (-1, current):
            continue
        new = used & ~mine
        for g in np.flatnonzero(mine):
            same = base == (other if base[g] == current else base[g])
            new |= same & (market.source[:, s] == other) & (others == others[g]).all(axis=1)
        yield new
