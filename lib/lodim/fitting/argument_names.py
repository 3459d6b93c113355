"""Errors for unknown arguments, which suggest the argument that was probably meant."""

import functools
import inspect
import itertools
from collections.abc import Callable, Collection
from difflib import get_close_matches

from lodim.errors import ArgumentError
from lodim.fitting.registry import MODELS
from lodim.progress import showing
from lodim.text import join_words, shown
from lodim.typing import P, R

PENALTIES = ("lambda_", "lambda_v")
SYNONYMS: dict[tuple[str, ...], tuple[str, ...]] = {  # names elsewhere -> names in lodim
    ("n_estimators", "n_trees", "num_boost_round", "nrounds", "n_rounds"): ("m", "n_batches"),
    ("alpha",): (*PENALTIES, "l1_ratio", "level"),
    ("C", "lam", "lambda", "reg", "reg_lambda", "ridge", "penalty"): PENALTIES,
    ("nlambda", "n_alphas", "num_lambda"): ("n_lambda",),
    ("alphas", "lambda_path"): ("lambdas",),
    ("cv", "n_folds", "nfolds", "n_splits", "k_folds", "kfold"): ("folds",),
    ("scoring", "metric", "type_measure"): ("loss",),
    ("param_grid", "params", "tune_grid"): ("grid",),
    ("random_state", "random_seed", "rng"): ("seed",),
    ("n_jobs", "n_threads", "num_threads", "nthread", "n_workers", "cores"): ("threads", "n_jobs"),
    ("sample_weight", "weight", "w"): ("weights",),
    ("exposure",): ("offset (its logarithm)",),
    ("n_init", "n_restarts", "nstart"): ("n_starts",),
    ("n_components", "ndim", "dim", "d"): ("k", "max_dim"),
    ("n_neighbors", "n_neighbours"): ("k",),
    ("na_action", "missing_values", "impute"): ("missing",),
    ("verbose", "trace"): ("progress",),
    ("n_boot", "n_bootstrap", "n_resamples", "B", "R", "n_reps"): ("n",),
    ("confidence", "conf_level", "confidence_level", "coverage"): ("level",),
    ("scale", "normalize", "standardise"): ("standardize",),
    ("cost", "prices", "price"): ("costs",),
    ("cluster",): ("clusters", "groups"),
    ("group",): ("groups",),
    ("distribution", "dist", "objective"): ("family",),
    ("link",): ("family (each has one link)",),
    ("tau", "q", "quantiles"): ("quantile",),
    ("var_power", "variance_power"): ("power",),
    ("vcov", "cov_type"): ("covariance",),
    ("X", "df", "frame"): ("data",),
    ("max_iter", "tol", "ftol", "gtol", "n_iter", "solver_options"): ("control",),
}


def unknown_argument(function: str, name: str, known: Collection[str]) -> ArgumentError:
    """Return the error for an argument `name` that `function` lacks; suggest one of `known`."""
    ours = [own for names, own in SYNONYMS.items() if name in names]
    meant = [own for own in itertools.chain(*ours) if own.split()[0] in known and own != name]
    meant = meant or get_close_matches(name, known, n=1)
    hint = f"; did you mean {' or '.join(meant)}?" if meant else "; it has:"
    names = "It has: " * bool(meant) + ", ".join(known)
    return ArgumentError(f"{function}() has no argument {name!r}{hint} {names}")


def as_model(value: object) -> str:
    """Return advice like ": give lodim.glm" if `value` is a fit or a model's name, else ""."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    return f": give lodim.{name}" if isinstance(name, str) and name in MODELS else ""


def with_known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: show progress, and raise errors for unknown arguments.

    If `function` has `**arguments`, those of the model or fit passed first are known, too."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in own):
        own = [p for p in own if p.kind is not p.VAR_POSITIONAL]
        own = [p if p.default is p.empty else p.replace(kind=p.KEYWORD_ONLY) for p in own]
        signature = signature.replace(parameters=own)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in own)
    named = [p.name for p in own if p.kind is not p.VAR_KEYWORD]
    needed = [p.name for p in own if p.default is p.empty and p.name in named]
    n_positional = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in own)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        unknown = [name for name in kwargs if name not in named]
        if unknown:
            model = getattr(args[0], "model", args[0]) if open_ended and args else None
            of_model = inspect.signature(model).parameters if inspect.isfunction(model) else {}
            left = [name for name in unknown if name not in of_model]
            if left and (of_model or not open_ended):
                names = [*named, *(name for name in of_model if name not in named)]
                raise unknown_argument(function.__name__, left[0], names)
        absent = [name for name in needed[len(args) :] if name not in kwargs]
        if absent:
            given = join_words([shown(value) for value in args] or ["nothing"])
            words = f"needs {join_words(needed)}, in this order"
            cure = as_model(args[0]) if args and needed[0] == "model" else ""
            raise ArgumentError(f"{function.__name__}() {words}, not {given}{cure}")
        if len(args) > n_positional:
            takes = f"{function.__name__}() takes {n_positional} positional arguments"
            named_first = join_words(named[:n_positional])
            raise TypeError(f"{takes} but {len(args)} were given; it takes {named_first}")
        with showing(kwargs.get("progress"), function.__name__):
            return function(*args, **kwargs)

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
