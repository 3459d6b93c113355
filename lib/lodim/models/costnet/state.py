"""What a CostnetFit is made of as plain values and arrays, and back."""

from dataclasses import fields

import numpy as np

from lodim import forms
from lodim.fitting.saved import read_shared_state
from lodim.models.costnet.graph.network import Network
from lodim.models.costnet.penalty.problem import PenaltyPath
from lodim.models.costnet.price_list import Estimates, ListedModel, Purchases
from lodim.models.costnet.search.frontier import CostFrontier
from lodim.models.costnet.settings import Settings

PLAIN = ("limit", "total", "lightest", "n", "null_deviance")  # kept as they are


def to_state(fit):
    """Everything that `read` needs. A cost function stays behind: the prices it gave are there."""
    e, s = fit.estimates, fit.settings
    settings = {f.name: getattr(s, f.name) for f in fields(s) if f.name != "network"}
    if callable(s.costs):
        settings["costs"] = None
    return fit._shared_state() | {
        "settings": settings,
        "network": {k: v for k, v in _fields(s.network).items() if k != "set_cost"},
        "path": _fields(e.path),
        "frontier": _fields(e.frontier),
        "lasso": _fields(e.lasso),
        "paid": _fields(fit.paid),
        "step": fit.step.position(e.path),
        **{name: getattr(fit, name) for name in PLAIN},
    }


def read(state):
    """What CostnetFit is called with, from what `to_state` has written."""
    common = read_shared_state(state, "costnet")
    network = _network(state["network"])
    _check(state, network, len(common["design"].names), common["family"].n_scores)
    frontiers = map(_frontier, (state["frontier"], state["lasso"]))
    estimates = Estimates(PenaltyPath(**state["path"]), *frontiers)
    paid = Purchases(**state["paid"])
    return common | {
        "estimates": estimates,
        "paid": paid,
        "settings": forms.make(Settings, state["settings"], "settings", network=network),
        "step": ListedModel.from_position(state["step"], estimates, paid),
        **{name: state[name] for name in PLAIN},
    }


def _fields(record):
    """The fields of a record, without what it has computed since; None of none."""
    if record is None:
        return None
    return {f.name: getattr(record, f.name) for f in fields(record)}


def _frontier(state):
    """The CostFrontier of a state; None of none."""
    return None if state is None else CostFrontier(**state | {"rule": tuple(state["rule"])})


def _network(state):
    """The network of a state; raises ValueError where its parts do not fit each other."""
    tuples = {k: tuple(map(tuple, state[k])) for k in ("parents", "columns")}
    values = state | tuples | {"names": tuple(state["names"])}
    network = forms.make(Network, values, "network", set_cost=None)
    numbers = forms.several("V", forms.several(None, forms.whole()))
    known = {
        "names": forms.several("V"),
        "cost": forms.real("V", least=0),
        "parents": numbers,
        "columns": numbers,
        "series": forms.whole("V", least=-1),
        "base": forms.whole("V", most=len(network) - 1),
    }
    forms.check(network, known, "network")
    for v, parents in enumerate(network.parents):
        if any(u >= v for u in parents):
            raise ValueError(f"node {v} of the network has parents {parents}")
    return network


def _check(state, network, p, K):
    """Raise ValueError unless parts of a state fit each other, a network, p columns, K scores."""
    V = len(network)
    if any(j >= p for columns in network.columns for j in columns):
        raise ValueError(f"the network has columns beyond {p}")
    several = len(state["settings"]["alternatives"] or ())
    if V and network.series.max() >= several:
        raise ValueError(f"the network has more than {several} series of alternatives")
    known = {
        "path": _path_form(p, K),
        "frontier": forms.optional(_frontier_form("M", p, K, V)),
        "lasso": forms.optional(_frontier_form("N", p, K, V)),
        "paid": forms.part({"bought": forms.flags("L", V), "cost": forms.real("L", least=0)}),
        "limit": forms.real(least=0, most=np.inf),
        "total": forms.real(least=0),
        "lightest": forms.real(least=0, most=1),
        "n": forms.whole(least=1),
        "null_deviance": forms.squares(),
    }
    sizes = forms.check(state, known)
    listed, _ = state["step"]
    last = sizes.get("M", 0) - 1 if listed else sizes["L"] - 1
    for form, value in zip((forms.flags(), forms.whole(most=last)), state["step"], strict=True):
        form(value, "step", {})


def _path_form(p, K):
    """The form of a penalized path of L models."""
    path = {
        "lambdas": forms.real("L", least=0),
        "intercept": forms.real("L", K),
        "coef": forms.real("L", p, K),
        "latent": forms.real("L", "q", K),
        **dict.fromkeys(("deviance", "objective", "gap"), forms.squares("L")),
        "n_iter": forms.whole("L"),
        "converged": forms.flags("L"),
        "null_deviance": forms.squares(),
    }
    return forms.part(path)


def _frontier_form(M, p, K, V):
    """The form of a frontier of M models."""
    frontier = {
        "cost": forms.ascending(forms.real(M, least=0)),
        "intercept": forms.real(M, K),
        "coef": forms.real(M, p, K),
        "bought": forms.flags(M, V),
        "deviance": forms.squares(M),
        "df": forms.whole(M, most=p),
        "lambda_": forms.real(M, least=0, nan=True),
        "rule": forms.several(M),
        "criterion": forms.squares(M, nan=True),
        "bound": forms.real(M, least=-np.inf, most=forms.SQUARE, nan=True),
        "relax": forms.real(M, least=0, most=1),
        "held_out": forms.squares(M, f"D{M}"),
        "error": forms.squares(M, nan=True),
    }
    return forms.part(frontier)
