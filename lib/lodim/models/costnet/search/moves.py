"""Moves of a local search: a model drops and adds candidates (columns), within a budget."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.models.costnet.search import sweep
from lodim.models.costnet.search.candidates import Criterion, SearchSpace, affordable
from lodim.models.costnet.search.refit import Refits
from lodim.models.costnet.search.rows import SearchData, screened_nodes

MIN_FALL = 1e-6  # smallest decrease of the criterion that counts


@dataclass(frozen=True, eq=False)
class SearchState:
    """Model in a search: the candidates whose columns the model has, its price and criterion."""

    used: np.ndarray  # (m,) bool, candidate nodes whose columns it has
    price: float  # with everything that the candidates need
    deviance: float  # weighted mean over the rows
    df: int  # rank of its columns (times K - 1 for K classes)
    value: float  # criterion: deviance plus a charge per coefficient


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """Model (SearchState) proposed by a search rule, with the rule and its penalty."""

    state: SearchState
    rule: str
    lambda_: float = np.nan  # penalty of its path, if it has one
    path: Any = None  # PenaltyPath whose nonzero columns it has, or None
    place: int = -1  # position on the path
    relax: float = 1.0  # share of the unpenalized refit in its coefficients
    choice: tuple | None = None  # sources (S,) of a path's model; None: best model within the price


class Search:
    """Data that all rules share: candidates with prices, refits, a criterion and a budget.

    refits : Refits of the searched rows; final : Refits of all rows, usually the same"""

    def __init__(
        self, batch, family, network, budget, criterion, path=None, threads=None, monotone=None
    ):
        """Prepare a search for models of the rows `batch`.

        network : Network of columns and prices; budget : highest price; criterion : such as "bic"
        path : PenaltyPath that ranks the columns if they are too many, or None
        monotone : (p,) required signs, 1, -1 or 0 for none; or None"""
        self.budget = budget
        self.space = SearchSpace(network, budget, screened_nodes(batch, family, network, path))
        data = SearchData.from_batch(batch, family, self.space.columns, threads, monotone)
        sample = data.sample()
        self.refits = self.final = Refits(sample)
        if sample is not data:
            self.final = Refits(data, warm_start=self.refits)
        p, null_deviance = batch.X.shape[1], self.refits.null.deviance
        self.criterion = Criterion(criterion, sample, null_deviance, p)

    def state(self, used):
        """Refit a model; return a SearchState, with criterion inf if it has too many columns.

        used : (m,) bool, candidates (columns or terms) of the model"""
        on, price = self.space.columns_of(used), self.space.price(used)
        df = self.refits.rank(on) * self.refits.data.df_per_column
        if df > self.criterion.max_df and df > 0:
            return SearchState(used, price, np.inf, df, np.inf)
        deviance = self.refits(on).deviance
        return SearchState(used, price, deviance, df, float(self.criterion(deviance, df)))


class Moves:
    """Possible moves from a model: drop one set of candidates and add another.

    drop, add : (a, m) and (b, m) bool, sets of candidates (columns or terms)
    price : (a, b) sum of costs after each move
    value : (a, b) predicted criterion after each move, inf if impossible"""

    def __init__(self, search, state, budget, drop=True):
        """Find moves from a SearchState within a budget; drop : whether they may drop columns."""
        space, data = search.space, search.refits.data
        on = space.columns_of(state.used)
        at = search.refits.quadratic(on)
        known = at.gram.copy(), at.target.copy(), np.diag(at.gram).copy()
        model = sweep.SweptModel(*known, sweep.enter(*known, search.refits.open(on)))
        drops = _drop_sets(space, state.used) if drop else np.zeros((1, len(space)), bool)
        adds, lead = _add_sets(space, state.used)
        rest = state.used & ~drops
        alone = (space.cost * (rest @ space.incidence > 0.0)).sum(axis=1)
        price = np.column_stack([alone, space.prices_with(rest)[:, lead]])
        allowed = np.column_stack([np.ones(len(rest), bool), space.compatible(rest)[:, lead]])
        if space.network.set_cost is None:
            allowed &= affordable(price, budget)
        sets = _column_sets(space, drops), _column_sets(space, adds)
        allowed = np.ascontiguousarray(allowed)  # columns that are picked lie otherwise
        gain, rank = sweep.gains(model, *sets, allowed, data.sign)
        df = (model.within.sum() + rank) * data.df_per_column
        self.value = np.where(allowed, search.criterion(state.deviance - gain, df), np.inf)
        self.used, self.drop, self.add, self.price = state.used, drops, adds, price

    def after(self, a, b):
        """Return the model, (m,) bool, after a move that drops set number a and adds number b."""
        return self.used & ~self.drop[a] | self.add[b]


def local_search(search, state, budget):
    """Improve a model step by step; return a list of SearchStates, one per step.

    search : Search; state : SearchState of the first model; budget : highest price"""
    states = []
    for _ in range(20):
        better = _best_move(search, state, budget) or _best_switch(search, state, budget)
        if better is None:
            break
        state = better
        states.append(state)
    return states


def _best_move(search, state, budget):
    """Return the best model one move away from `state` within a budget; None if none is better.

    search : Search; state, result : SearchState; budget : highest price"""
    moves = Moves(search, state, budget)
    order = np.argsort(moves.value, axis=None)
    # A user's cost function is called for at most 200 moves.
    for k in order[: 200 if search.space.network.set_cost else 1]:
        a, b = np.unravel_index(k, moves.value.shape)
        if not moves.value[a, b] < state.value - MIN_FALL:
            break
        used = moves.after(a, b)
        if affordable(search.space.price(used), budget):
            new = search.state(used)
            return new if new.value < state.value - MIN_FALL else None
    return None


def _drop_sets(space, used):
    """Return sets of candidates that a move may drop, (a, m) bool.

    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    m = len(space)
    sets = [np.zeros(m, bool), *np.eye(m, dtype=bool)[used]]
    # All candidates that need one purchase; it may have no columns itself.
    for needing in (space.incidence[used] > 0.0).T:
        if needing.sum() > 1:
            branch = np.zeros(m, bool)
            branch[np.flatnonzero(used)[needing]] = True
            sets.append(branch)
    # In the order of np.unique, which is slower for few rows.
    distinct = sorted({row.tobytes() for row in sets})
    return np.frombuffer(b"".join(distinct), bool).reshape(len(distinct), m)


def _add_sets(space, used):
    """Return sets of candidates that a move may add, (b, m) bool; the first is empty.

    Each other set is a candidate, alone or with its needs; also return these candidates, (b - 1,).
    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    m = len(space)
    lead = np.flatnonzero(~used)
    alone = np.zeros((1 + len(lead), m), bool)
    alone[1 + np.arange(len(lead)), lead] = True
    missing = space.requires[lead] & ~used
    incomplete = missing.any(axis=1)
    # A candidate with all others that it needs.
    whole = (alone[1:] | missing)[incomplete]
    return np.vstack([alone, whole]), np.append(lead, lead[incomplete])


def _column_sets(space, sets):
    """Convert r sets of the m candidates of a SearchSpace, (r, m) bool, to ColumnSets."""
    row, candidate = np.nonzero(sets)
    first, size = space.start[candidate], np.diff(space.start)[candidate]
    before = np.cumsum(size) - size
    at = np.arange(size.sum()) + np.repeat(first - before, size)
    per_row = np.bincount(row, size, len(sets)).astype(np.int64)
    return sweep.ColumnSets(np.append(0, np.cumsum(per_row)), space.at[at])


def _best_switch(search, state, budget):
    """Return the best model that takes one quantity from another node, or None if none is better.

    search : Search; state, result : SearchState; budget : highest price"""
    best = state
    for used in source_switches(search.space, state.used):
        if not used.any() or not affordable(search.space.price(used), budget):
            continue
        new = search.state(used)
        if (round(new.value - best.value, 6), new.price) < (0.0, best.price):
            best = new
    return None if best is state else best


def source_switches(space, used):
    """Yield models, (m,) bool, that take one quantity, such as blood pressure, from another node.

    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    base = space.network.base[space.candidates]
    for s, source in enumerate(space.source.T):
        mine = used & (source >= 0)
        if not mine.any():
            continue
        current, others = source[mine][0], np.delete(space.source, s, axis=1)
        for other in np.setdiff1d(source, [-1, current]):
            new = used & ~mine
            for g in np.flatnonzero(mine):
                same = base == (other if base[g] == current else base[g])
                new |= same & (source == other) & (others == others[g]).all(axis=1)
            yield new
