"""Models of a costnet fit, along prices (the frontier) or penalties (the path); tables of them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim import forms
from lodim.errors import ArgumentError
from lodim.models.costnet.penalty.problem import PenaltyPath
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.frontier import CostFrontier
from lodim.prices.build import derived_names
from lodim.report.numbers import is_number

INTERCEPT = "(Intercept)"
PENALIZED = "penalized"  # rule of a penalized model without a refit


@forms.record
class Estimates:
    """Estimates of a fit: a penalized path, and the best models by price (the frontier) or None."""

    path: PenaltyPath = forms.part(PenaltyPath)
    frontier: CostFrontier | None = forms.optional(forms.apart(forms.part(CostFrontier)))


@forms.record
class Purchases:
    """Items bought by each of L penalized models, and their total prices."""

    bought: np.ndarray = forms.flags("L", "V")  # for the V nodes of the dependency graph
    cost: np.ndarray = forms.real("L", least=0)

    @classmethod
    def from_path(cls, path, network):
        """Return the items that each model of a PenaltyPath buys in a Network, and total prices."""
        # The first coefficients are those of the graph's nodes, in order; see Groups.
        node = np.repeat(np.arange(len(network)), [len(columns) for columns in network.columns])
        bought = np.zeros((len(path.lambdas), len(network)), bool)
        for k, latent in enumerate(path.latent[:, : len(node)]):
            bought[k, node[latent.any(axis=1)]] = True
            bought[k] = network.closed(bought[k])
        return cls(bought, np.array([rounded(network.price(on)) for on in bought]))


@dataclass(frozen=True, eq=False)
class ListedModel:
    """Model of a frontier (best models by price) or of a penalized path, for standardized data."""

    cost: float  # price of everything that it needs
    intercept: np.ndarray  # (K,)
    coef: np.ndarray  # (p, K)
    bought: np.ndarray  # (V,) bool, nodes of the dependency graph that it needs
    deviance: float  # weighted mean over the training rows
    df: int  # number of columns with a coefficient
    lambda_: float  # penalty of the path that selected its terms, or NaN
    number: int = 0  # on the frontier, from 1; 0 for a penalized model
    rule: str = PENALIZED  # search rule that found it
    relax: float = 0.0  # share of the unpenalized refit in its coefficients
    held_out: float = np.nan  # mean deviance of held-out rows, or NaN

    @classmethod
    def from_frontier(cls, frontier, k):
        rule = frontier.rule[k]
        # Other rules have their own penalties, which are not on the path of the fit.
        lambda_ = float(frontier.lambda_[k]) if rule == "group" else np.nan
        return cls(
            number=k + 1,
            cost=rounded(frontier.cost[k]),
            intercept=frontier.intercept[k],
            coef=np.ascontiguousarray(frontier.coef[k]),
            bought=frontier.bought[k],
            deviance=float(frontier.deviance[k]),
            df=int(frontier.df[k]),
            lambda_=lambda_,
            rule=rule,
            relax=float(frontier.relax[k]),
            held_out=float(frontier.held_out[k].mean()) if frontier.held_out.size else np.nan,
        )

    @classmethod
    def from_path(cls, path, k, paid):
        """Make a ListedModel of model k of a PenaltyPath; paid : Purchases of all its models."""
        # A fixed memory order, so that sums have the same bits for any solver.
        coef = np.ascontiguousarray(path.coef[k])
        return cls(
            cost=float(paid.cost[k]),
            intercept=path.intercept[k],
            coef=coef,
            bought=paid.bought[k],
            deviance=float(path.deviance[k]),
            df=np.count_nonzero(coef.any(axis=1)),
            lambda_=float(path.lambdas[k]),
        )

    @property
    def used(self):
        return np.flatnonzero(self.coef.any(axis=1))

    def score(self, kept, X, n):
        """Return linear predictors (n, K), without offset; X, in tiles, has only columns `kept`."""
        # Row by row in a fixed order, so that results do not depend on the row's position.
        out = np.einsum("tqr,qk->trk", X, self.coef[kept])
        return out.reshape(-1, out.shape[2])[:n] + self.intercept


def rounded(price):
    return float(f"{price:.12g}")


def listed_models(fit):
    """Return all models of the frontier, the cheapest first; an empty list without a frontier."""
    frontier = fit.estimates.frontier
    return [ListedModel.from_frontier(frontier, k) for k in range(len(frontier or ()))]


def shown_models(fit):
    """Return the models that printing a fit shows: its frontier, or its one penalized model."""
    return listed_models(fit) if fit.step.number else [fit.step]


def check_listed(fit):
    if fit.estimates.frontier is None:
        raise ArgumentError("a fit with lambda_ has no frontier: fit without lambda_")


def index_of_budget(fit, budget):
    """Return the index on the frontier of the best model that costs at most `budget`."""
    if not is_number(budget) or not budget >= 0:
        raise ArgumentError(f"budget must be a number of at least 0, not {budget!r}")
    check_listed(fit)
    if not affordable(budget, fit.limit):
        raise ArgumentError(
            f"budget must be at most {fit.limit:g}, the budget of the search, not {budget:g}: "
            "fit again with a larger budget, or without one"
        )
    return fit.estimates.frontier.index_within(float(budget))


def index_of_lambda(fit, lambda_):
    """Return the index on the path of the penalized model whose penalty is nearest to `lambda_`."""
    if not is_number(lambda_) or not 0 <= lambda_ < np.inf:
        raise ArgumentError(f"lambda_ must be a number of at least 0, not {lambda_!r}")
    path = fit.estimates.path
    logs = np.log(np.maximum(path.lambdas, 1e-300))
    k = int(np.argmin(np.abs(logs - np.log(max(float(lambda_), 1e-300)))))
    step = ListedModel.from_path(path, k, fit.paid)
    if not affordable(step.cost, fit.limit):
        raise ArgumentError(
            f"the penalized model of lambda {step.lambda_:.4g} costs {step.cost:g}, more than "
            f"the budget of {fit.limit:g}: give a larger lambda_, or fit without a budget"
        )
    return k


def changes(fit, models):
    """Yield two lists of item names per model: new since the model before, and dropped from it."""
    network, before = fit.settings.network, {}
    for model in models:
        on = np.flatnonzero(model.bought & (network.cost > 0))
        now = dict.fromkeys(network.names[v] for v in on)
        yield [n for n in now if n not in before], [n for n in before if n not in now]
        before = now


# Frames -------------------------------------------------------------------------------------------


def prices(fit, models=None):
    """Return a table of price, deviance, purchases etc. of ListedModels (None: the frontier's)."""
    models = listed_models(fit) if models is None else models
    steps = pd.RangeIndex(1, len(models) + 1, name="step")
    names = ("cost", "df", "deviance", "rule", "lambda_", "relax")
    frame = pd.DataFrame({name: [getattr(m, name) for m in models] for name in names}, steps)
    frame.insert(3, "dev_ratio", [fit._explained(m.deviance) for m in models])
    frame.insert(4, "dev_ratio_held_out", [fit._explained(m.held_out) for m in models])
    new_and_dropped = list(changes(fit, models))
    for k, name in enumerate(("new", "dropped")):
        frame[name] = [", ".join(pair[k]) for pair in new_and_dropped]
    frame["chosen"] = [m.number == fit.step.number for m in models]
    return frame


def bought(fit):
    network, model = fit.settings.network, fit.step
    derived = derived_names(fit.design)
    series = [name for name, _ in fit.settings.alternatives]
    rows: dict = {}
    for v in np.flatnonzero(model.bought):
        name = network.names[v]
        if name in derived and network.cost[v] == 0.0:
            continue
        needed = [network.names[u] for u in network.children[v] if model.bought[u]]
        empty = {"price": float(network.cost[v]), "in_model": False, "needed_by": {}}
        row = rows.setdefault(name, empty)
        row["in_model"] |= bool(model.coef[list(network.columns[v])].any())
        row["needed_by"] |= dict.fromkeys(needed)
        row["serves"] = series[network.series[v]] if network.series[v] >= 0 else ""
    rows = {name: row for name, row in rows.items() if row["price"] > 0.0 or row["in_model"]}
    for row in rows.values():
        row["needed_by"] = ", ".join(row["needed_by"])
    names = ["price", "in_model", "needed_by"] + ["serves"] * bool((network.series >= 0).any())
    columns = {name: [row[name] for row in rows.values()] for name in names}
    return pd.DataFrame(columns, index=pd.Index(list(rows), name="item", dtype=object))


def terms(fit, model=None):
    """Return a table of a model's coefficients per unit and per SD, by term (and class)."""
    model, d = model or fit.step, fit.design
    coef, K = model.coef / d.scale[:, None], len(model.intercept)
    intercept = model.intercept - d.mean @ coef
    frame = pd.DataFrame({"term": [INTERCEPT, *d.names] * K})
    if K > 1:
        frame.insert(0, "level", np.repeat(np.array(fit.levels, object), len(d.names) + 1))
    frame["estimate"] = np.vstack([intercept, coef]).T.ravel()
    frame["std_estimate"] = np.vstack([np.full(K, np.nan), model.coef]).T.ravel()
    return frame


def tidy(fit):
    models = shown_models(fit)
    parts = [terms(fit, m) for m in models]
    of_models = prices(fit, models)[["cost", "rule", "lambda_", "chosen"]].reset_index()
    of_models = of_models.loc[of_models.index.repeat(len(parts[0]))]
    both = of_models.reset_index(drop=True), pd.concat(parts, ignore_index=True)
    return pd.concat(both, axis=1)


def path(fit):
    path = fit.estimates.path
    return pd.DataFrame(
        {
            "lambda_": path.lambdas,
            "df": np.count_nonzero(path.coef.any(axis=2), axis=1),
            "cost": fit.paid.cost,
            "dev_ratio": fit._explained(path.deviance),
            "gap": path.gap,
            "converged": path.converged,
        }
    )
