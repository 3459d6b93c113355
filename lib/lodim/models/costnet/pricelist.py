"""The price list of a fit as frames: its models, their terms, and what must be bought."""

import numpy as np
import pandas as pd

from lodim.models.costnet import steps
from lodim.models.costnet.graph.build import derived

INTERCEPT = "(Intercept)"


def listed(fit):
    """All models of the price list, the cheapest first; none where a fit has one lambda_."""
    ladder = fit.estimates.ladder
    return [] if ladder is None else [steps.of_ladder(ladder, k) for k in range(len(ladder.cost))]


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
    intercept, coef = steps.original(step, d.mean, d.scale)
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
    found = [steps.of_trace(trace, k, fit.paid) for k in range(len(trace.lambdas))]
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
