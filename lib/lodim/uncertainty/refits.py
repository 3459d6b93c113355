"""The same fit to the same rows under other weights."""

import inspect
from dataclasses import replace

import numpy as np

from lodim.design.batch import Batch
from lodim.design.response import is_balanced
from lodim.errors import ArgumentError, DataError
from lodim.fitting.fit import Fit
from lodim.fitting.fit_model import in_memory, model_of, prepare
from lodim.formula.formula import leave_out, parse
from lodim.uncertainty.part_fits import on_one_thread, settled

ALIKE = 1e-6  # relative difference of means and deviances of the same rows


def held_problem(fit, data, groups, arguments):
    """The Problem that a fit has solved, all that it has chosen held: a DataError of other rows.

    arguments : of its call that were arrays, which a fit does not keep
    """
    if not isinstance(fit, Fit):
        raise ArgumentError(
            f"fit must be a fit of one response, such as gbmap() returns, not {fit!r:.60}"
        )
    if len(parse(fit.design.formula).responses) > 1:
        raise ArgumentError("fit is one of several responses: fit this response by itself")
    model, options = model_of(fit.model), fit._call_arguments(arguments)
    problem = prepare(model, fit.design.formula, data, options, groups=groups)
    problem = replace(problem, batch=in_memory("bootstrap()", problem.batch))
    _check_same_rows(problem, fit)
    return on_one_thread(settled(problem, fit))


def _check_same_rows(problem, fit):
    """Raise unless a problem's rows are those that a fit was made from."""
    ours, theirs, differs = problem.design, fit.design, ""
    if ours.names != theirs.names:
        differs = "the formula makes other features of them"
    elif ours.n_dropped != theirs.n_dropped:
        differs = f"{ours.n_dropped} rows miss a value, {theirs.n_dropped} did"
    elif ours.levels != theirs.levels:
        differs = f"classes are {ours.levels}, they were {theirs.levels}"
    else:
        apart = np.abs(ours.mean - theirs.mean) > ALIKE * (np.abs(theirs.mean) + theirs.scale)
        apart |= np.abs(ours.scale - theirs.scale) > ALIKE * theirs.scale
        if apart.any():
            differs = f"{ours.names[np.flatnonzero(apart)[0]]!r} has another mean or spread"
        elif hasattr(fit, "null_deviance"):
            null = problem.null_deviance()
            if abs(null - fit.null_deviance) > ALIKE * max(abs(fit.null_deviance), 1e-300):
                differs = "the response has another mean or spread"
    if differs:
        raise DataError(
            f"data are not the rows (and weights) that the fit was made from: {differs}. Fit the "
            "model to these data first"
        )


def reweighted(problem, fit, weights):
    """The fit of a problem under other weights (n,), settings and design as they are."""
    point = replace(problem, batch=replace(problem.batch, weights=weights))
    found = problem.model.reweigh(point, fit)
    return problem.model.run(point, warm_start=fit.estimates, for_path=True, found=found)


def anew(fit, data, batch: Batch, weights, groups, arguments):
    """The fit of the whole call under other weights (n,), what it left open chosen again."""
    formula, arguments = fit.design.formula, fit._call_arguments(arguments)
    own = inspect.signature(fit.model).parameters
    # A dot stood for other columns.
    balanced = fit.design.weights is None and is_balanced(arguments["weights"], ())
    named = None if balanced else arguments["weights"]
    formula = leave_out(formula, named, None if "groups" in own else groups)
    if groups is not None and "groups" in own:
        arguments["groups"] = groups
    if "threads" in own:
        arguments["threads"] = 1
    full = np.full(len(batch.index), np.nan)
    full[batch.rows] = weights
    return fit.model(formula, data, **arguments | {"weights": full, "progress": False})
