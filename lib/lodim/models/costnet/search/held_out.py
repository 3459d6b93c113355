"""Held-out losses: how well each model does in rows that it was fitted without, and the best."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.frontier import MIN_IMPROVEMENT, estimates_of
from lodim.models.costnet.search.moves import Proposal, SearchState
from lodim.models.costnet.search.rules import path_selections, selections_along, served_by

RELAX = (1.0, 0.5, 0.0)  # shares of the refit that are tried
STEP = 3  # of the penalties of a path every third is tried
TIE = 0.05  # difference of the criterion within which models of one price are as good


@dataclass(frozen=True, eq=False)
class Pool:
    """What the rules propose of some rows.

    search : Search
    paths : dict of rules to their PenaltyPath
    listed : list of Proposal, the price list by the criterion of the search
    """

    search: Any
    paths: dict
    listed: list
    known: dict = field(default_factory=dict)

    @cached_property
    def along(self):
        """Of each rule the selections (L, m) along its path."""
        space = self.search.space
        return {rule: selections_along(space, path) for rule, path in self.paths.items()}

    def models_along(self, rule, choice):
        """Selections (L, m) along the path of a rule with a choice of sources, and prices (L,)."""
        if (rule, choice) not in self.known:
            space = self.search.space
            used = self.along[rule] & served_by(space, choice)
            self.known[rule, choice] = used, np.array([space.price(one) for one in used])
        return self.known[rule, choice]


@dataclass(frozen=True, eq=False)
class Variant:
    """A model of all rows, and how the same is made of others.

    proposal : Proposal
    choice : sources (S,) of a model of a path; None of what the price list has within its price
    """

    proposal: Proposal
    choice: tuple | None = None

    def fitted_to(self, pool):
        """The same of the rows of another Pool; None where too few rows are left to refit it."""
        own = self.proposal
        if own.rule == "null":
            return replace(own, state=pool.search.state(own.state.used))
        budget = own.state.price
        if self.choice is None:
            return [c for c in pool.listed if affordable(c.state.price, budget)][-1]
        used, price = pool.models_along(own.rule, self.choice)
        paid = np.flatnonzero(affordable(price[: own.place // STEP + 1], budget))
        if not len(paid):
            return None
        state = _state(pool.search, used[paid[-1]], own.relax)
        return state and replace(own, state=state, path=pool.paths[own.rule], place=int(paid[-1]))


def _state(search, used, relax):
    """The SearchState of a selection, refitted where a share of the refit is asked for."""
    if relax == 0.0:
        return SearchState(used, search.space.price(used), np.nan, -1, np.nan)
    state = search.state(used)
    return state if np.isfinite(state.value) else None


def variants_of(pool, relax=None):
    """Variants of the null model, and of all that the rules of a pool propose within the budget.

    Of models of a path each with the shares `relax` of the refit, None being those of RELAX; those
    of the price list as they are.
    """
    search = pool.search
    nothing = search.state(np.zeros(len(search.space), bool))
    out = [Variant(Proposal(nothing, "null"))]
    out += [Variant(proposal) for proposal in pool.listed if proposal.rule != "null"]
    for rule, path in pool.paths.items():
        for place, choice, used in path_selections(search.space, path):
            if place % STEP or not affordable(search.space.price(used), search.budget):
                continue
            for share in RELAX if relax is None else [relax]:
                state = _state(search, used, share)
                if state:
                    where = float(path.lambdas[place]), path, place
                    out.append(Variant(Proposal(state, rule, *where, share), choice))
    return out


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Deviances of held-out rows by V models.

    rows : (V, n) of each row, the mean over the draws of the folds; inf where one cannot be made
    weight : (n,) of the rows, of sum one
    draws : (V, D) weighted mean of each draw
    units : (n,) int64, numbers from 0 of what is held out as a whole
    """

    rows: np.ndarray
    weight: np.ndarray
    draws: np.ndarray
    units: np.ndarray

    @classmethod
    def from_folds(cls, variants, pools, tests, family, n_draws):
        """Of variants, made of the Pool of each fold, in the rows held out by it.

        pools : iterable; tests : list of Batch, the folds of one draw after the other
        """
        # Of many rows few are held out: those alone are numbered.
        known = np.unique(np.concatenate([test.rows for test in tests]))
        n = len(known)
        total, times, weight = np.zeros((len(variants), n)), np.zeros(n), np.zeros(n)
        draws, sizes = np.zeros((len(variants), n_draws)), np.zeros(n_draws)
        units = known.astype(float)
        for k, (pool, test) in enumerate(zip(pools, tests, strict=True)):
            loss, draw = _losses(variants, pool, test, family), k * n_draws // len(tests)
            mass = test.row_weights
            on = mass > 0.0  # an infinite loss of a row that does not count is none
            at = np.searchsorted(known, test.rows)
            total[:, at] += loss
            times[at] += 1.0
            weight[at] = mass
            units[at] = test.rows if test.units is None else test.units
            draws[:, draw] += loss[:, on] @ mass[on]
            sizes[draw] += mass.sum()
        held = (times > 0.0) & (weight > 0.0)
        weight = weight[held] / weight[held].sum()
        _, unit = np.unique(units[held], return_inverse=True)
        return cls(total[:, held] / times[held], weight, draws / sizes, unit)

    @property
    def mean(self):
        """(V,) weighted mean over rows and draws."""
        return self.rows @ self.weight

    def error(self, v):
        """Standard error of the mean of a model, over rows, or over groups of them."""
        sums = np.bincount(self.units, self.weight * (self.rows[v] - self.rows[v] @ self.weight))
        return float(np.sqrt(sums @ sums))


def _losses(variants, pool, test, family):
    """(V, n) deviance of the rows of a batch by variants made of a Pool."""
    X = tiles.unpack(test.X, test.n).astype(np.float64)
    offset, space, known = test.offset_matrix(family.n_scores), pool.search.space, {}
    most = family.most_deviance(np.append(pool.search.refits.data.y, test.y))
    out = np.full((len(variants), test.n), np.inf)
    for v, variant in enumerate(variants):
        made = variant.fitted_to(pool)
        if made is None:
            continue
        key = made.state.used.tobytes(), made.relax, made.relax < 1.0 and (made.rule, made.place)
        if key not in known:
            on = space.columns[space.columns_of(made.state.used)]
            intercept, coef = estimates_of(pool.search.final, space, made)
            score = offset + intercept + X[:, on] @ coef
            known[key] = np.minimum(family.deviance(test.y, score), most)
        out[v] = known[key]
    return out


def select_held_out(search, variants, held_out):
    """Positions of variants of growing price, each better in held-out rows than all cheaper ones.

    Better is by MIN_IMPROVEMENT of the criterion without a charge. Of the variants of one price
    that differ by less than TIE the first is taken.
    """
    value = search.criterion(held_out.mean, 0)
    price = np.array([float(f"{v.proposal.state.price:.9g}") for v in variants])
    out: list[int] = []
    for each in np.unique(price):
        of = np.flatnonzero(price == each)
        best = int(of[np.flatnonzero(value[of] <= value[of].min() + TIE)[0]])
        if not out or value[best] < value[out[-1]] - MIN_IMPROVEMENT:
            out.append(best)
    return out
