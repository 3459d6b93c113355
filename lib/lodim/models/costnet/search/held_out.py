"""Selection of the best model at each price by cross-validation."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lodim.engine import tiles
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.frontier import MIN_IMPROVEMENT, estimates_of
from lodim.models.costnet.search.moves import CandidateModel, SearchState
from lodim.models.costnet.search.rules import computable_from, path_selections, selections_along

STEP = 3  # every third penalty of a path is tried


class RuleResults:
    """Models found in some of the rows by search rules, such as "greedy".

    search : Search in these rows; paths : dict from rule to PenaltyPath
    listed : CandidateModels, the best models by increasing price"""

    def __init__(self, search, paths, listed):
        self.search, self.paths, self.listed = search, paths, listed
        self._known: dict = {}  # results of `models_along`

    @cached_property
    def used_by_rule(self):
        """Dict from rule to the candidates of the L models on its penalty path, (L, m) bool."""
        space = self.search.space
        return {rule: selections_along(space, path) for rule, path in self.paths.items()}

    def models_along(self, rule, choice):
        """Return the candidates (L, m) and prices (L,) of the L models on a penalty path.

        rule : rule that fitted the path, "group" or "lasso"
        choice : tuple, the node (source) that supplies each of S quantities, -1 for none"""
        if (rule, choice) not in self._known:
            space = self.search.space
            # Candidates that need another source are left out.
            used = self.used_by_rule[rule] & computable_from(space, choice)
            self._known[rule, choice] = used, np.array([space.price(one) for one in used])
        return self._known[rule, choice]


def counterpart(model, results):
    """Return the model in `results` that corresponds to `model`; None without one.

    It is of the same kind: the null model, a model of the same penalty path, or the best of all.
    It costs at most as much as `model`.
    model : CandidateModel; results : RuleResults of other rows, such as all but one fold"""
    if model.rule == "null":
        return replace(model, state=results.search.state(model.state.used))
    budget = model.state.price
    if model.choice is None:  # the best model that costs at most as much
        return [c for c in results.listed if affordable(c.state.price, budget)][-1]
    # The smallest penalty, not below that of `model`, at which the price is low enough.
    used, price = results.models_along(model.rule, model.choice)
    paid = np.flatnonzero(affordable(price[: model.place // STEP + 1], budget))
    if not len(paid):
        return None
    state, place = _state(results.search, used[paid[-1]], model.relax), int(paid[-1])
    return state and replace(model, state=state, path=results.paths[model.rule], place=place)


def _state(search, used, relax):
    """Return the SearchState of candidates `used`, (m,) bool; None if they have too many columns.

    search : Search; relax : share of unpenalized estimates, 0 for no refit"""
    if relax == 0.0:
        return SearchState(used, search.space.price(used), np.nan, -1, np.nan)
    state = search.state(used)
    return state if np.isfinite(state.value) else None


def models_to_compare(results, relax=None):
    """Return CandidateModels to compare by held-out loss, the null model first.

    results : RuleResults; relax : share of unpenalized estimates, or None for 0, 0.5 and 1"""
    search = results.search
    nothing = search.state(np.zeros(len(search.space), bool))
    out = [CandidateModel(nothing, "null")]
    out += [candidate for candidate in results.listed if candidate.rule != "null"]
    for rule, path in results.paths.items():
        for place, choice, used in path_selections(search.space, path):
            if place % STEP or not affordable(search.space.price(used), search.budget):
                continue
            for share in (1.0, 0.5, 0.0) if relax is None else [relax]:  # shares of the refit
                state = _state(search, used, share)
                if state:
                    where = float(path.lambdas[place]), path, place
                    out.append(CandidateModel(state, rule, *where, share, choice))
    return out


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Deviances of n held-out rows under V models, by cross-validation."""

    rows: np.ndarray  # (V, n) deviance, averaged over sets of random folds; inf if unknown
    weight: np.ndarray  # (n,) row weights that sum to one
    draws: np.ndarray  # (V, D) weighted mean for each of D sets of folds
    units: np.ndarray  # (n,) number of the row or group that is held out together

    @classmethod
    def from_folds(cls, models, fold_results, tests, family, n_draws):
        """Evaluate models by cross-validation; return a HeldOut.

        models : list of V CandidateModels; tests : list of Batches, the rows of each fold
        fold_results : RuleResults for each fold, found without its rows
        n_draws : number of divisions into folds, one after the other in `tests`"""
        # Only held-out rows are numbered.
        known = np.unique(np.concatenate([test.rows for test in tests]))
        n = len(known)
        total, times, weight = np.zeros((len(models), n)), np.zeros(n), np.zeros(n)
        draws, sizes = np.zeros((len(models), n_draws)), np.zeros(n_draws)
        units = known.astype(float)
        for k, (results, test) in enumerate(zip(fold_results, tests, strict=True)):
            loss, draw = _losses(models, results, test, family), k * n_draws // len(tests)
            mass = test.row_weights
            on = mass > 0.0  # ignore infinite losses of rows without weight
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
        return self.rows @ self.weight

    def error(self, v):
        """Return the standard error, over rows or groups, of model v's mean held-out deviance."""
        sums = np.bincount(self.units, self.weight * (self.rows[v] - self.rows[v] @ self.weight))
        return float(np.sqrt(sums @ sums))


def _losses(models, results, test, family):
    """Return the deviances (V, n) of n held-out rows under V models fitted to other rows.

    models : CandidateModels; results : RuleResults of other rows; test : Batch of held-out rows"""
    X = tiles.unpack(test.X, test.n).astype(np.float64)
    offset, space, known = test.offset_matrix(family.n_scores), results.search.space, {}
    most = family.most_deviance(np.append(results.search.refits.data.given[0], test.y))
    out = np.full((len(models), test.n), np.inf)
    for v, model in enumerate(models):
        made = counterpart(model, results)
        if made is None:
            continue
        key = made.state.used.tobytes(), made.relax, made.relax < 1.0 and (made.rule, made.place)
        if key not in known:
            on = space.columns[space.columns_of(made.state.used)]
            intercept, coef = estimates_of(results.search.final, space, made)
            score = offset + intercept + X[:, on] @ coef
            known[key] = np.minimum(family.deviance(test.y, score), most)
        out[v] = known[key]
    return out


def select_held_out(search, models, held_out):
    """Return positions of the models with lower held-out loss than all cheaper ones, by price.

    search : Search with the criterion; held_out : HeldOut of `models`, a list of CandidateModels"""
    value = search.criterion(held_out.mean, 0)
    price = np.array([float(f"{model.state.price:.9g}") for model in models])
    out: list[int] = []
    for each in np.unique(price):
        of = np.flatnonzero(price == each)
        # Models within 0.05 of the lowest criterion are tied, and the first wins.
        best = int(of[np.flatnonzero(value[of] <= value[of].min() + 0.05)[0]])
        if not out or value[best] < value[out[-1]] - MIN_IMPROVEMENT:
            out.append(best)
    return out
