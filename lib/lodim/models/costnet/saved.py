"""What a CostnetFit is made of as plain values and arrays, and back."""

from dataclasses import fields

import numpy as np

from lodim.fit import shared
from lodim.models.costnet import steps
from lodim.models.costnet.grow import Estimates
from lodim.models.costnet.ladder import Ladder
from lodim.models.costnet.network import Network
from lodim.models.costnet.penalized import Trace
from lodim.models.costnet.settings import Settings

PLAIN = ("limit", "total", "lightest", "n", "null_deviance")  # kept as they are


def to_state(fit):
    """Everything that `read` needs. A cost function stays behind: the prices it gave are there."""
    e, s = fit.estimates, fit.settings
    settings = {f.name: getattr(s, f.name) for f in fields(s) if f.name != "network"}
    if callable(s.costs):
        settings["costs"] = None
    return fit.shared_state() | {
        "settings": settings,
        "network": {k: v for k, v in _fields(s.network).items() if k != "set_cost"},
        "trace": _fields(e.trace), "ladder": _fields(e.ladder), "lasso": _fields(e.lasso),
        "paid": _fields(fit.paid), "step": steps.place(fit.step, e.trace),
        **{name: getattr(fit, name) for name in PLAIN},
    }  # fmt: skip


def read(state):
    """What CostnetFit is called with, from what `to_state` has written."""
    common = shared(state)
    network = _network(state["network"])
    estimates = Estimates(
        trace=Trace(**state["trace"]), ladder=_ladder(state["ladder"]),
        lasso=_ladder(state["lasso"]),
    )  # fmt: skip
    paid = steps.Paid(**state["paid"])
    _check(estimates, network, paid, len(common["design"].names), common["family"].n_scores)
    return common | {
        "estimates": estimates, "paid": paid,
        "settings": Settings(**state["settings"], network=network),
        "step": steps.at_place(state["step"], estimates, paid),
        **{name: state[name] for name in PLAIN},
    }  # fmt: skip


def _fields(record):
    """The fields of a record, without what it has computed since; None of none."""
    if record is None:
        return None
    return {f.name: getattr(record, f.name) for f in fields(record)}


def _ladder(state):
    return None if state is None else Ladder(**state | {"rule": tuple(state["rule"])})


def _network(state):
    """The network of a state; raises ValueError where its parts do not fit each other."""
    tuples = {k: tuple(map(tuple, state[k])) for k in ("parents", "columns")}
    network = Network(**state | tuples | {"names": tuple(state["names"])})
    V = len(network)
    arrays = (network.cost, network.series, network.base)
    if not V == len(network.parents) == len(network.columns) or any(
        a.shape != (V,) for a in arrays
    ):
        raise ValueError(f"a network of {V} names does not fit its costs and parents")
    for v, parents in enumerate(network.parents):
        if not all(isinstance(u, int) and 0 <= u < v for u in parents):
            raise ValueError(f"node {v} of the network has parents {parents}")
    if V and not (network.base.min() >= 0 and network.base.max() < V):
        raise ValueError("the network has a copy of a node that is not there")
    return network


def _check(estimates, network, paid, p, K):
    """Raise ValueError unless arrays have the shapes of p columns, K scores and the network."""
    V, L = len(network), len(estimates.trace.lambdas)
    at = {column for columns in network.columns for column in columns}
    if not all(isinstance(j, int) and 0 <= j < p for j in at):
        raise ValueError(f"the network has columns beyond {p}")
    shapes = [("trace.coef", estimates.trace.coef, (L, p, K)),
              ("trace.intercept", estimates.trace.intercept, (L, K)),
              ("trace.deviance", estimates.trace.deviance, (L,)),
              ("paid.bought", paid.bought, (L, V)), ("paid.cost", paid.cost, (L,))]  # fmt: skip
    for name in ("ladder", "lasso"):
        ladder = getattr(estimates, name)
        if ladder is not None:
            M = len(ladder.cost)
            shapes += [(f"{name}.coef", ladder.coef, (M, p, K)),
                       (f"{name}.intercept", ladder.intercept, (M, K)),
                       (f"{name}.bought", ladder.bought, (M, V)),
                       (f"{name}.deviance", ladder.deviance, (M,))]  # fmt: skip
            if len(ladder.rule) != M:
                raise ValueError(f"{name} has {len(ladder.rule)} rules for {M} models")
    for name, value, shape in shapes:
        if not isinstance(value, np.ndarray) or value.shape != shape:
            raise ValueError(f"{name} has shape {np.shape(value)}, not {shape}")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
