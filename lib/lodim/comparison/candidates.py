"""Candidates of a comparison: models of lodim, functions of the user, and scikit-learn models."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lodim.checks import one_of
from lodim.design.rows import INPUTS
from lodim.errors import ArgumentError
from lodim.fitting.fit import Fit
from lodim.fitting.fit_model import model_of
from lodim.fitting.registry import MODELS, model_function
from lodim.selection.tuning import FEW_ROWS
from lodim.text import shown

LINEAR = "glm"  # the model of lodim that is a baseline
NULL = "null"
ALLOWED = (
    "a list of model functions or their names, or a dict of these by label, of pairs (function, "
    "dict of arguments), or of functions (formula, data) that return a fit"
)
TREES = 500  # number of trees of a forest, as in R's randomForest
MIN_PROBABILITY = 1e-15  # smaller probabilities are raised to this before taking logarithms
COUNTS = {"loss": "poisson"}
LOSSES = {  # arguments of boosting by family; None is the quantile
    **dict.fromkeys(("poisson", "negative_binomial", "tweedie"), COUNTS),
    "gamma": {"loss": "gamma"},
    "quantile": {"loss": "quantile", "quantile": None},
    "huber": {"loss": "absolute_error"},
}
PEERS = ("boosting", "forest")


@dataclass(frozen=True)
class Candidate:
    """One row of a comparison: a model, or a baseline."""

    label: str
    kind: str  # "model"; "call", a user's function; "peer", of scikit-learn; or "null"
    function: Callable | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def candidates(models, baselines, family, has_gaps=False):
    """Return a list of Candidates, the models and baselines that compare() fits.

    models : list of models, or dict label -> model; None for all except glm
    baselines : whether to add missing baselines, such as the null model
    family : name of the response's family
    has_gaps : whether features have missing values"""
    if models is None:
        ours = [(name, model_function(name)) for name in MODELS if name != LINEAR]
        chosen = [Candidate(n, "model", f) for n, f in ours if family in model_of(f).families]
    else:
        chosen = _candidates_of_models(models)
    if baselines:
        named = {c.label for c in chosen}
        more, linear = [Candidate(NULL, "null")], model_function(LINEAR)
        more += [Candidate(LINEAR, "model", linear)] * (family in model_of(linear).families)
        if has_peers():
            names = [name for name in PEERS if (name, family) != ("forest", "quantile")]
            more += [Candidate(name, "peer") for name in names]
        chosen += [c for c in more if c.label not in named]
    if len(chosen) < 2:
        raise ArgumentError(f"compare needs at least two models, not only {chosen[0].label}")
    for k, one in enumerate(chosen):
        if has_gaps and one.function is model_function(LINEAR):
            chosen[k] = replace(one, arguments={"missing": "indicator"} | one.arguments)
    return chosen


def _candidates_of_models(models):
    """Return the candidates that a user has listed in the argument `models` of compare()."""
    if isinstance(models, Mapping):
        pairs = list(models.items())
        for label, _ in pairs:
            if not isinstance(label, str) or not label:
                raise ArgumentError(f"labels of models must be text, not {label!r:.80}")
    elif isinstance(models, list | tuple):
        pairs = [(None, model) for model in models]
    else:
        raise ArgumentError(f"models must be {ALLOWED}, not {shown(models)}")
    if not pairs:
        raise ArgumentError(f"models must not be empty: it must be {ALLOWED}")
    found = [_one(label, model) for label, model in pairs]
    labels = [c.label for c in found]
    repeated = next((label for label in labels if labels.count(label) > 1), None)
    if repeated is not None:
        cure = "give a dict with a different label for each model"
        raise ArgumentError(f"two models are called {repeated!r}: {cure}")
    return found


def _one(label, model):
    if isinstance(model, Fit):
        what = f"models must be functions, not a fit of {model.name}, which was fitted to all rows"
        raise ArgumentError(f"{what}: give lodim.{model.name} or its name")
    function, arguments = model, {}
    if isinstance(model, tuple):
        if len(model) != 2 or not isinstance(model[1], Mapping):
            raise ArgumentError(f"models must be {ALLOWED}, not {model!r:.80}")
        function, arguments = model[0], dict(model[1])
    if isinstance(function, str):
        one_of("models", function, tuple(MODELS))
        function = model_function(function)
    if not callable(function):
        raise ArgumentError(f"models must be {ALLOWED}, not {shown(function)}")
    name = getattr(function, "__name__", "")
    if name in MODELS and function is model_function(name):
        _check_arguments(function, arguments)
        return Candidate(label or name, "model", function, arguments)
    if isinstance(model, tuple):
        what = "a pair (function, arguments) must have a model function of lodim"
        raise ArgumentError(f"{what}, not {function!r}")
    if label is None and not name.isidentifier():
        cure = "give models as a dict of label to function"
        raise ArgumentError(f"a function without a name needs a label: {cure}")
    return Candidate(label or name, "call", function)


def _check_arguments(function, arguments):
    known = inspect.signature(function).parameters
    for name in arguments:
        if name not in known or name in ("formula", "data"):
            raise ArgumentError(f"{function.__name__} has no argument {name!r}")
        if name in INPUTS and not isinstance(arguments[name], str | None):
            what = f"{name} must be the name of a column, not an array, as the rows are split"
            raise ArgumentError(f"{what}; give it to compare() itself")


def has_peers():
    return find_spec("sklearn") is not None


def peer_scores(name, X, y, weights, new, n_classes, family, seed, threads):
    """Fit a scikit-learn model to the rows X, y; predict the rows `new`.

    name : "boosting" or "forest"
    n_classes : number of classes, 0 for a numeric y
    Return linear predictors (m, K) for classes, or predicted values (m, 1) for a numeric y."""
    from sklearn import ensemble

    threads = 1 if len(X) <= FEW_ROWS else threads
    kind = "Classifier" if n_classes else "Regressor"
    if name == "boosting":
        loss = {} if n_classes else LOSSES.get(family.name, {})
        loss = {k: family.quantile if v is None else v for k, v in loss.items()}
        make = getattr(ensemble, f"HistGradientBoosting{kind}")
        estimator = make(random_state=seed, **loss)
    else:
        make = getattr(ensemble, f"RandomForest{kind}")
        estimator = make(TREES, random_state=seed, n_jobs=threads or -1)
    with threadpool_limits(threads):
        estimator.fit(X, y, sample_weight=weights)
        p = estimator.predict_proba(new) if n_classes else estimator.predict(new)[:, None]
    if not n_classes:
        return p
    if name == "forest":
        share = np.bincount(y.astype(int), weights, n_classes)
        p = (TREES * p + share / share.sum()) / (TREES + 1)
    p = np.maximum(p, MIN_PROBABILITY)
    if family.name == "ordinal":
        return family.score(p)
    logs = np.log(p)
    return logs[:, 1:] - logs[:, :1] if n_classes == 2 else logs
