"""The price list of a fit as frames: its models, their terms, and what must be bought."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.models.costnet.graph.build import derived
from lodim.models.costnet.penalty.groups import groups
from lodim.models.costnet.penalty.problem import Trace
from lodim.models.costnet.search.frontier import Ladder

INTERCEPT = "(Intercept)"
PENALIZED = "penalized"  # the rule of a model that is not refitted
DIGITS = 12  # of a sum of prices: .1 + .2 is .3


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a fit knows.

    trace : Trace of the group penalty
    ladder : Ladder of all rules; None where a lambda_ was given
    lasso : Ladder of the weighted lasso alone, to compare with; None likewise
    """

    trace: Trace
    ladder: Ladder | None
    lasso: Ladder | None


@dataclass(frozen=True, eq=False)
class Step:
    """One model, on standardized columns.

    number : its place on the price list, from 1; 0 for a penalized model
    cost : price of all that it needs
    intercept (K,), coef (p, K)
    bought : (V,) bool, nodes of the network that it needs
    deviance : weighted mean over the training rows
    df : number of columns with a coefficient; of several classes a column counts once
    lambda_ : penalty of the trace that selected its terms; NaN where none of these did
    rule : that found it
    bound : no model of its price has a lower deviance; NaN where that is not known
    """

    number: int
    cost: float
    intercept: np.ndarray
    coef: np.ndarray
    bought: np.ndarray
    deviance: float
    df: int
    lambda_: float
    rule: str
    bound: float

    @property
    def used(self):
        """Columns of X that the model reads."""
        return np.flatnonzero(self.coef.any(axis=1))


@dataclass(frozen=True, eq=False)
class Paid:
    """What the L penalized models need: bought (L, V) bool, and its price, cost (L,)."""

    bought: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, trace, network, closure):
        """What the models of a path need, by the copies that have coefficients."""
        node = groups(network, closure, trace.coef.shape[1]).node
        bought = np.zeros((len(trace.lambdas), len(network)), bool)
        for k, latent in enumerate(trace.latent):
            used = node[latent.any(axis=1)]
            bought[k, used[used >= 0]] = True
            bought[k] = network.closed(bought[k])
        return cls(bought, np.array([rounded(network.price(on)) for on in bought]))


def rounded(price):
    """A price as it was meant: without what the sum of floats has added."""
    return float(f"{price:.{DIGITS}g}")


def of_ladder(ladder, k):
    """Model k of a price list."""
    coef, bound = np.ascontiguousarray(ladder.coef[k]), float(ladder.bound[k])
    # Other rules have penalties of their own, which are no place on the path that a fit shows.
    own = ladder.rule[k] == "group"
    return Step(
        number=k + 1, cost=rounded(ladder.cost[k]), intercept=ladder.intercept[k], coef=coef,
        bought=ladder.bought[k], deviance=float(ladder.deviance[k]), df=int(ladder.df[k]),
        lambda_=float(ladder.lambda_[k]) if own else np.nan, rule=ladder.rule[k],
        bound=bound if bound > 0.0 else np.nan,
    )  # fmt: skip


def of_trace(trace, k, paid):
    """Penalized model k of a path, and what it needs."""
    # In one order of memory, whatever solved or saved it: sums then have the same bits.
    coef = np.ascontiguousarray(trace.coef[k])
    df = np.count_nonzero(coef.any(axis=1))
    return Step(
        number=0, cost=float(paid.cost[k]), intercept=trace.intercept[k], coef=coef,
        bought=paid.bought[k], deviance=float(trace.deviance[k]), df=df,
        lambda_=float(trace.lambdas[k]), rule=PENALIZED, bound=np.nan,
    )  # fmt: skip


def place(step, trace):
    """Where a model is: whether on the price list, and at which position."""
    if step.number:
        return [True, step.number - 1]
    return [False, int(np.argmin(np.abs(trace.lambdas - step.lambda_)))]


def at_place(place, estimates, paid):
    """The model at a place that `place` has told."""
    listed, k = place
    return of_ladder(estimates.ladder, k) if listed else of_trace(estimates.trace, k, paid)


def original(step, mean, scale):
    """Intercept (K,) and coefficients (p, K) in units of the data."""
    coef = step.coef / scale[:, None]
    return step.intercept - mean @ coef, coef


def score(step, kept, X, n):
    """Scores (n, K) of tiles X that hold the columns `kept` alone, without an offset."""
    # Row by row in the same order, wherever a row stands.
    out = np.einsum("tqr,qk->trk", X, step.coef[kept])
    return out.reshape(-1, out.shape[2])[:n] + step.intercept


# Frames -------------------------------------------------------------------------------------------


def listed(fit):
    """All models of the price list, the cheapest first; none where a fit has one lambda_."""
    ladder = fit.estimates.ladder
    return [] if ladder is None else [of_ladder(ladder, k) for k in range(len(ladder.cost))]


def models(fit):
    """The models that a fit shows: the price list, or the penalized one that it has or is at."""
    return listed(fit) if fit.step.number else [fit.step]


def prices(fit, found=None):
    """A row a model, by default of the price list; see `CostnetFit.prices`."""
    found = listed(fit) if found is None else found
    frame = pd.DataFrame(
        {
            "cost": [m.cost for m in found],
            "df": [m.df for m in found],
            "deviance": [m.deviance for m in found],
            "dev_ratio": [fit._explained(m.deviance) for m in found],
            "dev_ratio_bound": [fit._explained(m.bound) for m in found],
            "rule": [m.rule for m in found],
            "lambda_": [m.lambda_ for m in found],
        },
        index=pd.RangeIndex(1, len(found) + 1, name="step"),
    )
    had: dict = {}
    new, dropped = [], []
    for m in found:
        has = things(fit, m)
        new.append(", ".join(name for name in has if name not in had))
        dropped.append(", ".join(name for name in had if name not in has))
        had = has
    frame["new"], frame["dropped"] = new, dropped
    frame["chosen"] = [m.number == fit.step.number for m in found]
    return frame


def things(fit, step):
    """What a model needs that has a price: a dict of names to prices, in the network's order."""
    network = fit.settings.network
    on = np.flatnonzero(step.bought & (network.cost > 0))
    return {network.names[v]: float(network.cost[v]) for v in on}


def bought(fit):
    """What must be bought for the model of a fit; see `CostnetFit.bought`."""
    network, step = fit.settings.network, fit.step
    made = derived(fit.design)
    series = [name for name, _ in fit.settings.alternatives]
    rows: dict = {}
    for v in np.flatnonzero(step.bought):
        name = network.names[v]
        if name in made and network.cost[v] == 0.0:
            continue
        needed = [network.names[u] for u in network.children[v] if step.bought[u]]
        row = rows.setdefault(name, {"price": float(network.cost[v]), "in_model": False, "by": {}})
        row["in_model"] |= bool(step.coef[list(network.columns[v])].any())
        row["by"] |= dict.fromkeys(needed)
        row["serves"] = series[network.series[v]] if network.series[v] >= 0 else ""
    rows = {name: row for name, row in rows.items() if row["price"] > 0.0 or row["in_model"]}
    frame = pd.DataFrame(
        {
            "price": [row["price"] for row in rows.values()],
            "in_model": [row["in_model"] for row in rows.values()],
            "needed_by": [", ".join(row["by"]) for row in rows.values()],
            "serves": [row["serves"] for row in rows.values()],
        },
        index=pd.Index(list(rows), name="thing", dtype=object),
    )
    return frame if (network.series >= 0).any() else frame.drop(columns="serves")


def terms(fit, step=None):
    """Intercept and coefficients of one model: (level,) term, estimate, std_estimate."""
    step, d = step or fit.step, fit.design
    intercept, coef = original(step, d.mean, d.scale)
    K = len(intercept)
    frame = pd.DataFrame({"term": [INTERCEPT, *d.names] * K})
    if K > 1:
        frame.insert(0, "level", np.repeat(np.array(fit.levels, object), len(d.names) + 1))
    frame["estimate"] = np.vstack([intercept, coef]).T.ravel()
    frame["std_estimate"] = np.vstack([np.full(K, np.nan), step.coef]).T.ravel()
    return frame


def tidy(fit):
    """The terms of every model of the price list; see `CostnetFit.tidy`."""
    found = models(fit)
    parts = [terms(fit, m) for m in found]
    frame = pd.concat(parts, ignore_index=True)
    sizes = [len(part) for part in parts]
    said = {
        "step": range(1, len(found) + 1),
        "cost": [m.cost for m in found],
        "rule": [m.rule for m in found],
        "lambda_": [m.lambda_ for m in found],
        "chosen": [m.number == fit.step.number for m in found],
    }
    for k, (name, values) in enumerate(said.items()):
        frame.insert(k, name, np.repeat(np.array(list(values)), sizes))
    return frame


def path(fit):
    """A row a penalty; see `CostnetFit.path`."""
    trace = fit.estimates.trace
    found = [of_trace(trace, k, fit.paid) for k in range(len(trace.lambdas))]
    return pd.DataFrame(
        {
            "lambda_": trace.lambdas,
            "df": [m.df for m in found],
            "cost": fit.paid.cost,
            "dev_ratio": fit._explained(trace.deviance),
            "gap": trace.gap,
            "converged": trace.converged,
        }
    )
