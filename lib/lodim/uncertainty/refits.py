"""Refits to the same rows with other weights, and to parts of the rows."""

import inspect
import warnings
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from lodim import progress
from lodim.design.batch import Batch, split_and_scaling, subset
from lodim.design.rows import is_balanced
from lodim.engine import row_keys, tiles
from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError, DataError, warn
from lodim.fitting.fit import Fit
from lodim.fitting.fit_model import in_memory, model_of, prepare
from lodim.formula.formula import leave_out, parse


def settled(problem, fit):
    """Return the problem with all settings of a fit, including chosen ones, fixed."""
    # What a fit does not keep, as ripr's limits, is as the problem has it.
    known = {name: value for name, value in vars(fit.settings).items() if value is not None}
    return problem.settle(replace(problem.settings, **known))


def on_one_thread(problem):
    """Return the problem for one thread."""
    if not hasattr(problem.settings, "threads"):
        return problem
    return replace(problem, settings=replace(problem.settings, threads=1))


def part(problem, held_out):
    """Return the problem without the rows held out (n,) bool, and these as a batch.

    Features are centred and scaled by the remaining rows, in the batches and in the design.
    """
    (train, test), mean, scale = split_and_scaling(problem.batch, held_out, problem.standardize)
    return replace(problem, batch=train, design=problem.design.rescaled(mean, scale)), test


def fit_parts(problem, held_out, use, *, choose, light, jobs, what):
    """Return the results of `use` for fits without some rows.

    problem : Problem
    held_out : list of (n,) bool, rows left out of each fit
    use : callable(fit, Batch of the rows left out)
    choose : whether each fit chooses open settings; else they are all known
    light : what other fits leave out: `for_path` of `Model.run`
    jobs : number of parallel fits, with a thread each
    what : label of the progress
    """
    problem = on_one_thread(problem) if jobs > 1 else problem

    def one(out, bar):
        own, rest = part(problem, out)
        fit = problem.model.fit(own) if choose else problem.model.run(own, for_path=light)
        bar.update(1)
        return use(fit, as_read(fit, rest))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with single_blas(), progress.bar(len(held_out), what) as bar:
            work = (delayed(one)(out, bar) for out in held_out)
            found = Parallel(n_jobs=jobs, backend="threading")(work)
    _warn_once(said, len(held_out))
    return found


def _warn_once(said, n_fits):
    """Issue one warning of each kind raised by fits to parts of the rows."""
    for category in dict.fromkeys(each.category for each in said):
        texts = [str(each.message) for each in said if each.category is category]
        warn(f"{len(texts)} of {n_fits} fits to parts of the rows say: {texts[0]}", category)


def as_read(fit, batch):
    """Return rows of a fit's design as its reader gives them, possibly with fewer features."""
    kept = fit._reader_columns
    if len(kept) == batch.X.shape[1]:
        return batch
    every = np.arange(batch.n)
    return subset(batch, every, tiles.unpack(batch.X, batch.n)[:, kept])


@dataclass(frozen=True)
class RandomWeights:
    """Standard exponential weights of mean one, times the rows' own.

    No weight is zero, so that no level, class or group vanishes from a replicate (Xu et al. 2020).

    base : (n,) weights of the rows
    unit : (n,) unit of each row; rows of a group (or cluster) share a weight. Units are ordered by
        the content of their rows, so that the order of rows has no effect; -1 for weight zero
    n_units : int
    seeds : of each replicate
    """

    base: np.ndarray
    unit: np.ndarray
    n_units: int
    seeds: list[np.random.SeedSequence]

    @classmethod
    def from_batch(cls, batch, n_classes, n, seed):
        """Return the weights of n replicates of the rows of a batch."""
        base = batch.row_weights
        key, at = row_keys.of_batch(batch, n_classes)[0], batch.positive_weight
        units = np.arange(batch.n) if batch.units is None else batch.units
        code = np.unique(units[at], return_inverse=True)[1]
        of_unit = np.bincount(code, key[at]) / np.bincount(code)
        rank = np.empty(len(of_unit), np.int64)
        rank[row_keys.shuffled(of_unit, seed)] = np.arange(len(of_unit))
        unit = np.full(batch.n, -1)
        unit[at] = rank[code]
        return cls(base, unit, len(of_unit), np.random.SeedSequence(seed).spawn(n))

    def of_units(self, k):
        """Return weights (n_units,) of replicate k, of mean one."""
        draw = np.random.default_rng(self.seeds[k]).exponential(size=self.n_units)
        return draw / draw.mean()

    def of_rows(self, k):
        """Return weights (n,) of replicate k."""
        return self.base * np.append(self.of_units(k), 0.0)[self.unit]


ALIKE = 1e-6  # relative difference of means and deviances of the same rows


def held_problem(fit, data, groups, arguments):
    """Return the Problem that a fit has solved, with fixed settings; DataError for other rows.

    arguments : arguments of its call that were arrays, which a fit does not keep
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
    """Raise unless a problem's rows are the training rows of a fit."""
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
    """Return the fit of a problem with other weights (n,), settings and design unchanged."""
    point = replace(problem, batch=replace(problem.batch, weights=weights))
    found = problem.model.reweigh(point, fit)
    return problem.model.run(point, warm_start=fit.estimates, for_path=True, found=found)


def refit_from_scratch(fit, data, batch: Batch, weights, groups, arguments):
    """Return the fit of the whole call with other weights (n,), choosing open settings again."""
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
