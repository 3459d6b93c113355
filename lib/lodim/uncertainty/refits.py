"""Refits of a model to the same rows with other weights, or to parts of the rows."""

import inspect
import warnings
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from lodim import progress
from lodim.design.batch import Batch, split_and_scaling, subset, with_positive_weight
from lodim.design.rows import is_balanced
from lodim.engine import row_keys, tiles
from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError, DataError, warn
from lodim.fitting.fit import check_fit
from lodim.fitting.fit_model import in_memory, model_of, prepare
from lodim.formula.formula import leave_out, parse
from lodim.text import counted


def settled(problem, fit):
    """Return a problem (data and settings) with all settings of `fit`, so none is chosen again."""
    # Settings that a fit does not keep, such as ripr's limits, stay as in the problem.
    known = {name: value for name, value in vars(fit.settings).items() if value is not None}
    return problem.settle(replace(problem.settings, **known))


def on_one_thread(problem):
    if not hasattr(problem.settings, "threads"):
        return problem
    return replace(problem, settings=replace(problem.settings, threads=1))


def fit_parts(problem, held_out, use, *, choose, light, jobs, what):
    """Fit the model without each set of held-out rows; return a list of results of `use`.

    held_out : list of (n,) bool
    use : function of a fit and the Batch of its held-out rows
    choose : whether fits choose settings left open
    light : whether to leave out slow results, if not `choose`"""
    problem = on_one_thread(problem) if jobs > 1 else problem

    def one(out, bar):
        (train, rest), *scaling = split_and_scaling(problem.batch, out, problem.standardize)
        own = replace(problem, design=problem.design.rescaled(*scaling)).with_rows(train)
        fit = problem.model.fit(own) if choose else problem.model.run(own, for_path=light)
        bar.update(1)
        return use(fit, as_read(fit, rest))

    recorded = warnings.catch_warnings(record=True, action="always")
    with recorded as said, single_blas(), progress.bar(len(held_out), what) as bar:
        work = (delayed(one)(out, bar) for out in held_out)
        found = Parallel(n_jobs=jobs, backend="threading")(work)
    for category in dict.fromkeys(each.category for each in said):
        texts = [str(each.message) for each in said if each.category is category]
        warn(f"{len(texts)} of {len(held_out)} fits to parts of the rows say: {texts[0]}", category)
    return found


def as_read(fit, batch):
    """Return the batch (rows as numbers) with only the features that the fit needs to predict."""
    kept = fit._reader_columns
    if len(kept) == batch.X.shape[1]:
        return batch
    every = np.arange(batch.n)
    return subset(batch, every, tiles.unpack(batch.X, batch.n)[:, kept])


@dataclass(frozen=True)
class RandomWeights:
    """Random factors of row weights in bootstrap replicates: exponential, equal within a group."""

    base: np.ndarray  # (n,) weights of the rows
    # (n,) number of each row's group, in an order that the content decides; -1: weight zero
    unit: np.ndarray
    n_units: int  # number of groups, or of rows without groups
    seeds: list[np.random.SeedSequence]  # one per replicate

    @classmethod
    def from_batch(cls, batch, n_classes, n, seed):
        some, at = with_positive_weight(batch), batch.positive_weight
        key = row_keys.of_batch(some, n_classes)[0]
        units = at if some.units is None else some.units
        code = np.unique(units, return_inverse=True)[1]
        of_unit = np.bincount(code, key) / np.bincount(code)
        rank = np.empty(len(of_unit), np.int64)
        rank[row_keys.shuffled(of_unit, seed)] = np.arange(len(of_unit))
        unit = np.full(batch.n, -1)
        unit[at] = rank[code]
        return cls(batch.row_weights, unit, len(of_unit), np.random.SeedSequence(seed).spawn(n))

    def of_rows(self, k):
        """Return the weights (n,) of the rows in replicate k."""
        draw = np.random.default_rng(self.seeds[k]).exponential(size=self.n_units)
        return self.base * np.append(draw / draw.mean(), 0.0)[self.unit]


ALIKE = 1e-6  # tolerance for relative differences of means and deviances of the same rows


def held_problem(fit, data, groups, arguments):
    """Return a fit's Problem (data and settings) for bootstrap replicates, one thread each.

    data : training rows of `fit`; other rows raise DataError
    groups : column or array, rows with equal values share a weight; or None
    arguments : dict of arrays in the call of `fit`, such as weights"""
    check_fit(fit)
    if len(parse(fit.design.formula).responses) > 1:
        raise ArgumentError("fit is one of several responses: fit this response by itself")
    model, options = model_of(fit.model), fit._call_arguments(arguments)
    problem = prepare(model, fit.design.formula, data, options, groups=groups)
    problem = replace(problem, batch=in_memory("bootstrap()", problem.batch))
    ours, theirs, differs = problem.design, fit.design, ""
    if ours.names != theirs.names:
        differs = "the formula has other features for these rows"
    elif ours.n_dropped != theirs.n_dropped:
        differs = f"missing values are in {counted(ours.n_dropped, 'row')}, not {theirs.n_dropped}"
    elif ours.levels != theirs.levels:
        differs = f"classes are {ours.levels}, not {theirs.levels}"
    else:
        apart = np.abs(ours.mean - theirs.mean) > ALIKE * (np.abs(theirs.mean) + theirs.scale)
        apart |= np.abs(ours.scale - theirs.scale) > ALIKE * theirs.scale
        if apart.any():
            name = ours.names[np.flatnonzero(apart)[0]]
            differs = f"{name!r} has another mean or standard deviation"
        elif hasattr(fit, "null_deviance"):
            null = problem.null_deviance()
            if abs(null - fit._null_deviance) > ALIKE * max(abs(fit._null_deviance), 1e-300):
                differs = "the response has another mean or standard deviation"
    if differs:
        what = "data must be the rows (and weights) that the model was fitted to"
        raise DataError(f"{what}: {differs}. Fit the model to these data first")
    return on_one_thread(settled(problem, fit))


def reweighted(problem, fit, weights):
    """Refit `fit` with other row weights (n,); settings and coding of features stay the same."""
    point = problem.with_rows(replace(problem.batch, weights=weights))
    found = problem.model.reweigh(point, fit)
    return problem.model.run(point, warm_start=fit.estimates, for_path=True, found=found)


def refit_from_scratch(fit, data, batch: Batch, weights, groups, arguments):
    """Repeat a fit with other weights, and choose open settings again; return the new fit.

    data : training rows of `fit`
    batch : Batch of its complete rows
    weights : weight of each row in `batch`
    groups : column or array, or None
    arguments : dict of arrays in the call of `fit`"""
    formula, arguments = fit.design.formula, fit._call_arguments(arguments)
    own = inspect.signature(fit.model).parameters
    # The dot of the formula must not include columns of weights or groups.
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
