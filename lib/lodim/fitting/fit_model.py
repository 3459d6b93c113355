"""fit_model(): the steps from a call of a model function to a fit, the same for all models."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from lodim import family as families
from lodim import progress
from lodim.checks import one_of
from lodim.design import summaries
from lodim.design.design import REAL, Design
from lodim.design.features import fits_memory, free_memory
from lodim.design.reading import Reading
from lodim.design.rows import INPUTS, RowInputs
from lodim.design.terms import check_ways
from lodim.engine.blocks import on_host, sum_rows
from lodim.errors import ArgumentError, DataWarning, warn
from lodim.fitting.argument_names import as_model, with_known_arguments
from lodim.fitting.fit import ARRAY
from lodim.fitting.model import PLAIN, Model, Problem
from lodim.fitting.registry import MODELS, model_module
from lodim.fitting.saved import as_tuples
from lodim.formula.formula import leave_out, parse
from lodim.report import phrases
from lodim.report.numbers import significant
from lodim.text import counted, shown, size_in_bytes
from lodim.typing import P, R

# Options of the design.
PARAMETERS = ("power", "quantile")  # of families
DESIGN = ("family", *PARAMETERS, *INPUTS, "standardize", "dtype", "missing", "sample")
WHOLE = 1e-3  # tolerance of whole numbers, as in R's glm for successes
MOST_OFFSET = 30.0  # largest range of the log exposure; larger ones are not logarithms
SCRATCH = "scratch"  # entry of `control` that names a folder


def fitted_by(model: Model) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that keeps a function's signature and help; calls of it fit `model`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(formula, data, **options):
            return fit_model(model, formula, data, options)

        return cast(Callable[P, R], with_known_arguments(call))

    return decorate


def fit_model(model, formula, data, options):
    """Return the fit of a Model; `options` are the keyword arguments of the call."""
    if model.several_responses and (n := len(parse(formula).responses)) > 1:
        problems = [prepare(model, formula, data, options, which=i) for i in range(n)]
        return model.fit_together(problems)
    return model.fit(prepare(model, formula, data, options))


def model_of(function):
    """Return the Model (name, abilities, steps) of a public function such as `lodim.gbmap`."""
    name = getattr(function, "__name__", None)
    module = model_module(name) if name in MODELS else None
    if getattr(module, str(name), None) is not function:
        what = f"a model function such as lodim.gbmap, not {shown(function)}{as_model(function)}"
        raise ArgumentError(f"the first argument must be {what}")
    return module.MODEL


def with_own(model, options, **others):
    """Return `options`, with those of `others` added that are among the settings of `model`."""
    own = {field.name for field in dataclasses.fields(model.settings)}
    return options | {name: value for name, value in others.items() if name in own}


def prepare(model, formula, data, options, which=None, groups=None):
    """Read the data of a model call and check its arguments; return a Problem (data and settings).

    options : dict of the call's keyword arguments
    which : position of the response, if several
    groups : column name, or values (n,); rows with equal values share a fold"""
    if groups is not None and "groups" in inspect.signature(model.function).parameters:
        options, groups = options | {"groups": groups}, None
    else:
        formula = leave_out(formula, groups)  # a later call with this formula has no groups
    own = _completed(model, options)
    client = _client(model, own.pop("client"))
    of_design = {name: own.pop(name) for name in DESIGN if name in own}
    if isinstance(of_design.get("dtype"), type) and of_design["dtype"] in REAL:
        of_design["dtype"] = np.dtype(of_design["dtype"]).name
    control, scratch = _control(model, own, own.pop("control"))
    if own.get("monotone") is not None:
        check_ways(own["monotone"])
    settings = model.settings(**own, **control)
    if of_design["family"] is not None:
        one_of("family", of_design["family"], model.families)
    one_of("missing", of_design["missing"], model.missing)
    given = {name: of_design.get(name) for name in INPUTS}
    inputs = RowInputs(**given if groups is None else given | {"groups": groups})
    seed = getattr(settings, "seed", 0)
    reading = Reading(of_design.get("sample"), seed, scratch, client)
    with progress.bar(1, "reading the data") as step:
        own_names = of_design.keys() - {*PARAMETERS, *INPUTS, "sample"}
        how = {name: of_design[name] for name in own_names} | model.learning
        how["parameters"] = {name: of_design.get(name) for name in PARAMETERS}
        how |= {"which": which, "reading": reading}
        design, batch = Design.learn(formula, data, inputs, **how)
        step.update(1)
    if "none" not in model.families:
        design.check_response(model.name)
    if not model.streams:
        batch = in_memory(model.name, batch)
    if model.many_rows is not None and batch.n > model.many_rows:
        what = f"{batch.n:,} rows x {len(design.names):,} features take minutes"
        progress.remark(f"{what}; sample=100_000 fits random rows in less time")
    # A fit keeps arguments to repeat the call; a marker replaces arrays.
    options = as_tuples(own) | of_design | {"control": control or None}
    arguments = {k: v if isinstance(v, PLAIN) else ARRAY for k, v in options.items()}
    standardize = of_design.get("standardize", True)
    family = families.family_of(design)
    problem = Problem(model, design, batch, family, settings, standardize, arguments)
    problem = model.validate(problem)
    warn_of_values(design, batch, family)
    return problem


def _completed(model, options):
    """Return `options` without `progress`, completed by the defaults of the model's function."""
    parameters = inspect.signature(model.function).parameters
    known = {k: p.default for k, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    known |= _without_numpy(options)
    del known["progress"]  # already used by `with_known_arguments`
    return known


def _without_numpy(options):
    """Return a dict in which NumPy's numbers and bools are those of Python."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}


def warn_of_values(design, batch, family):
    """Warn of values far outside all others in a Batch, and of counts that are not whole."""
    proportions = isinstance(family, families.Proportion)
    if family.counts or proportions:
        weights, name = batch.row_weights, design.response.name

        def fractions(i):
            totals = weights[i] * batch.y[i]  # the weights of rates may be their exposures
            return np.count_nonzero(_fractional(totals) & (proportions | _fractional(batch.y[i])))

        count = sum_rows(fractions, batch.n)
        where = f"in {count} of {batch.n} rows"
        if count and proportions:
            what = f"proportion times weight is not a whole number of successes {where}"
            warn(f"{what}: are the weights the numbers of trials of {name!r}?", DataWarning)
        elif count:
            what = f"the response {name!r} is not a whole number {where}, but family"
            cure = "with exposures, give counts and offset=, the logarithm of the exposure"
            cure += "; for amounts use family 'tweedie'"
            warn(f"{what} {family.name!r} is for counts: {cure}", DataWarning)
    if family.link == "log" and batch.offset is not None:
        used = batch.offset[batch.positive_weight]
        if np.ptp(used) > MOST_OFFSET:
            what = f"offset ranges from {significant(used.min())} to {significant(used.max())}"
            link = f"with the log link of family {family.name!r}, the means then differ by a factor"
            factor = f"of exp({significant(np.ptp(used))})"
            warn(f"{what}; {link} {factor}: give the logarithm of an exposure", DataWarning)
    notes = phrases.wild(design)
    if design.response is not None and design.levels is None:
        at, name = batch.positive_weight, design.response.name
        found = summaries.find_limits(batch.y[at][~np.isnan(batch.y[at])], name)
        if found is not None:
            notes.append(
                f"The response {name!r} has {counted(found.n, 'value')} far outside all others "
                f"({phrases.limits_in_words(found)}); the fit uses these values unchanged."
            )
    for note in notes:
        cure = "Correct such values, or make them missing; the method check(data) of a fit (such "
        cure += "as `best` of a comparison) names the rows."
        warn(f"{note} {cure}", DataWarning)


def _fractional(x):
    return np.abs(x - np.round(x)) > WHOLE


def _client(model, client):
    """Return `client`, or False if the model cannot run on Dask (error if a client is given)."""
    if model.on_workers:
        return client
    if client is not None:
        able = ", ".join(name for name in MODELS if model_module(name).MODEL.on_workers)
        raise ArgumentError(
            f"{model.name} does not run on the workers of a Dask cluster, as {able} do: leave "
            "client= out, and give sample= if the rows do not fit into memory here"
        )
    return False


def in_memory(what, batch):
    """Return the batch with X in memory; what : method to name in the error if X is too large."""
    if not batch.out_of_core:
        return batch
    n, p = batch.n, batch.X.shape[1]
    if fits_memory(n, p, batch.X.dtype):
        X = batch.X if on_host(batch.X) else batch.X.gather()
        return replace(batch, X=X, streamed=False)
    size = size_in_bytes(n * p * batch.X.dtype.itemsize)
    why = f"{what} needs all rows in memory: {n:,} rows with {p:,} columns need {size}"
    why += f", but only {size_in_bytes(free_memory())} are free; use fewer rows"
    raise ArgumentError(f"{why}, for instance by sample=100_000 of a model function")


def _control(model, arguments, control):
    """Split `control` of a model call into a dict of settings and the folder for scratch files.

    model : Model; arguments : dict of its other arguments, which `control` may not contain
    Raise ArgumentError if an entry of `control` is no setting."""
    if control is not None and not isinstance(control, dict):
        raise ArgumentError(f"control must be a dict, not {control!r}")
    names = {f.name for f in dataclasses.fields(model.settings)} - set(arguments)
    control = _without_numpy(control or {})
    scratch = control.pop(SCRATCH, None)
    unknown = sorted(set(control) - names)
    if unknown:
        allowed = ", ".join(sorted(names | {SCRATCH}))
        raise ArgumentError(f"control must only have the entries {allowed}, not {unknown[0]!r}")
    if model.shared_setting and isinstance(arguments[model.shared_setting], tuple):
        several = arguments[model.shared_setting]  # several values are for cross-validation only
        raise ArgumentError(f"{model.shared_setting} must be a number, not {several!r:.80}")
    return control, scratch
