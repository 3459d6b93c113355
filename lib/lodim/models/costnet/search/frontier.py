"""Frontier of a costnet fit: the best model at each price."""

from dataclasses import fields, replace
from itertools import chain

import numpy as np

from lodim import forms
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.moves import (
    MIN_FALL,
    CandidateModel,
    Moves,
    source_switches,
)

MIN_IMPROVEMENT = 0.5  # smallest decrease of the criterion by a more expensive model


@forms.record
class CostFrontier:
    """The best models by price: M models of p standardized columns.

    K : number of linear predictors; V : number of nodes (columns, terms and other purchases)"""

    # Each model has a lower loss than all cheaper ones: held-out loss, or deviance and criterion.
    cost: np.ndarray = forms.ascending(forms.real("M", least=0))  # price to be paid
    intercept: np.ndarray = forms.real("M", "K")
    coef: np.ndarray = forms.real("M", "p", "K")
    bought: np.ndarray = forms.flags("M", "V")  # nodes that are paid for
    deviance: np.ndarray = forms.squares("M")
    df: np.ndarray = forms.whole("M", most="p")  # number of columns with a coefficient
    lambda_: np.ndarray = forms.real("M", least=0, nan=True)  # NaN if the rule has none
    rule: tuple[str, ...] = forms.several("M")  # search rule that found the model
    criterion: np.ndarray = forms.squares("M", nan=True)  # NaN if the model is not refitted
    relax: np.ndarray = forms.real("M", least=0, most=1)  # share of the unpenalized refit
    held_out: np.ndarray = forms.squares("M", "D")  # for each of D sets of folds; may be empty
    error: np.ndarray = forms.squares("M", nan=True)  # standard error of their mean

    @classmethod
    def from_candidates(cls, search, network, candidate_models, held_out=None, error=None):
        """Make a CostFrontier of `candidate_models`, CandidateModels sorted by price.

        search : Search that found them; network : Network of the user's items and prices
        held_out : (models, D) held-out deviances for D divisions into folds, or None
        error : (models,) standard errors of their means, or None"""
        space, states = search.space, [candidate.state for candidate in candidate_models]
        models = [blend(search.final, space, candidate) for candidate in candidate_models]
        intercept, parts, deviance = zip(*models, strict=True)
        coef = np.zeros((len(models), search.final.data.X.shape[1], len(intercept[0])))
        for full, state, part in zip(coef, states, parts, strict=True):
            full[space.columns[space.columns_of(state.used)]] = part
        nodes = [space.nodes(state.used)[: len(network)] for state in states]
        return cls(
            cost=np.array([state.price for state in states]),
            intercept=np.array(intercept),
            coef=coef,
            bought=np.array([network.closed(on) for on in nodes]),
            deviance=np.array(deviance),
            df=coef.any(axis=2).sum(axis=1),
            lambda_=np.array([candidate.lambda_ for candidate in candidate_models]),
            rule=tuple(candidate.rule for candidate in candidate_models),
            criterion=np.array([state.value for state in states]),
            relax=np.array([candidate.relax for candidate in candidate_models]),
            held_out=np.zeros((len(states), 0)) if held_out is None else held_out,
            error=np.full(len(states), np.nan) if error is None else error,
        )

    def __len__(self):
        return len(self.cost)

    def index_within(self, budget):
        """Return the index of the best model within the budget; 0, the cheapest one, if none is."""
        paid = [k for k, cost in enumerate(self.cost) if affordable(cost, budget)]
        return paid[-1] if paid else 0

    def within(self, budget):
        """Return the frontier without models that cost more than a budget."""
        M = 1 + self.index_within(budget)
        return replace(self, **{f.name: getattr(self, f.name)[:M] for f in fields(self)})

    def best(self, priced, draw=None):
        """Return the index of the model with the lowest held-out loss.

        priced : whether to return instead the cheapest model within one standard error of it
        draw : position of the division into folds to use, or None for the mean of all"""
        mean = self.held_out.mean(axis=1) if draw is None else self.held_out[:, draw]
        least = int(np.argmin(mean))
        limit = mean[least] + (self.error[least] if priced else 0.0)
        return int(np.flatnonzero(mean <= limit)[0])


def select_frontier(search, candidate_models, relax=1.0, by_deviance=True):
    """Return the CandidateModels with a lower criterion than all cheaper ones, sorted by price.

    search : Search; candidate_models : list of CandidateModels
    relax : share of the unpenalized estimates in models of a penalty path; the rest is penalized
    by_deviance : whether the deviance must be lower, too"""
    nothing = search.state(np.zeros(len(search.space), bool))
    out: list = []
    rule_results = [CandidateModel(nothing, "null")]
    for candidate in candidate_models:
        state = candidate.state
        if relax < 1.0 and candidate.path is not None and np.isfinite(state.value):
            candidate = replace(candidate, relax=relax)
            deviance = blend(search.refits, search.space, candidate)[2]
            value = float(search.criterion(deviance, state.df))
            candidate = replace(candidate, state=replace(state, deviance=deviance, value=value))
        rule_results.append(candidate)
    for candidate in sorted(rule_results, key=lambda c: (c.state.price, c.state.value)):
        state = candidate.state
        same = out and affordable(state.price, out[-1].state.price)
        least = MIN_FALL if same else MIN_IMPROVEMENT
        cheaper = out[:-1] if same else out
        fits = not (by_deviance and cheaper) or state.deviance < cheaper[-1].state.deviance
        if not out or (fits and state.value < out[-1].state.value - least):
            out = [*cheaper, candidate]
        elif same and fits and abs(state.value - out[-1].state.value) <= MIN_FALL:
            other = simplicity(search.space, out[-1].state.used)
            if simplicity(search.space, state.used) < other:
                out[-1] = candidate
    return [c if c.relax < 1.0 else replace(c, state=_simplest(search, c.state)) for c in out]


def blend(refits, space, candidate):
    """Mix penalized and unpenalized estimates; return (intercept (K,), coef (r, K), deviance).

    refits : Refits with the unpenalized models; space : SearchSpace with the candidates
    candidate : CandidateModel, whose `relax` is the share of the unpenalized estimates"""
    intercept, coef = estimates_of(refits, space, candidate)
    on = space.columns_of(candidate.state.used)
    # The deviance of a gaussian refit has rounding errors: it is computed again from the rows.
    if candidate.relax == 1.0 and refits.data.family.name != "gaussian":
        return intercept, coef, refits(on).deviance
    return intercept, coef, refits.data.deviance(intercept, on, coef)


def estimates_of(refits, space, candidate):
    """Return the intercept (K,) and the coefficients (r, K) of a CandidateModel.

    refits : Refits with the unpenalized models; space : SearchSpace with the candidates"""
    on, relax = space.columns_of(candidate.state.used), candidate.relax
    if relax == 1.0:
        fit = refits(on)
        return fit.intercept, fit.coef
    intercept = candidate.path.intercept[candidate.place]
    coef = candidate.path.coef[candidate.place][space.columns[on]]
    if relax > 0.0:
        fit = refits(on)
        intercept = relax * fit.intercept + (1.0 - relax) * intercept
        coef = relax * fit.coef + (1.0 - relax) * coef
    return intercept, coef


# Ties ---------------------------------------------------------------------------------------------


def simplicity(space, used):
    """Return a sort key for models: the number of items that a model needs, then their names.

    space : SearchSpace; used : (m,) bool, candidates (columns or terms) of the model"""
    network = space.network
    paid = np.unique(network.base[network.closed(space.nodes(used))])
    return len(paid), sorted(network.names[v] for v in paid)


def _simplest(search, state):
    """Return a SearchState of equal price and criterion that needs fewer items; or else `state`."""
    space, best = search.space, state
    while True:
        least, rivals = simplicity(space, best.used), []
        moves = Moves(search, best, best.price)
        near = np.argwhere(np.abs(moves.value - best.value) <= MIN_FALL)
        after = (moves.after(a, b) for a, b in near)
        for used in chain(after, source_switches(space, best.used)):
            order = simplicity(space, used)
            price = space.price(used)
            same = affordable(price, best.price) and affordable(best.price, price)
            if order < least and same:
                rivals.append((order, used))
        # The refit checks the criterion that the quadratic predicted.
        states = (search.state(used) for _, used in sorted(rivals, key=lambda pair: pair[0]))
        new = next((s for s in states if abs(s.value - state.value) <= MIN_FALL), None)
        if new is None:
            return best
        best = new
