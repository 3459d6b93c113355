"""Fits to parts of the rows, with the settings of a fit to all of them or with their own."""

import warnings
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from lodim import progress
from lodim.design.batch import split_and_scaling, subset
from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.errors import warn


def settled(problem, fit):
    """Return the problem with the settings of a fit of it, those that it has chosen included.

    Fits of this problem choose nothing themselves: they have no `chosen`.
    """
    # What a fit does not keep, as ripr's limits, is as the problem has it.
    known = {name: value for name, value in vars(fit.settings).items() if value is not None}
    return problem.settle(replace(problem.settings, **known))


def on_one_thread(problem):
    """The problem, solved on one thread."""
    if not hasattr(problem.settings, "threads"):
        return problem
    return replace(problem, settings=replace(problem.settings, threads=1))


def part(problem, held_out):
    """The problem of the rows that are not held out (n,) bool, and those held out, as a batch.

    Features are centred and scaled anew by the rows that stay, in the batches and in the design.
    """
    (train, test), mean, scale = split_and_scaling(problem.batch, held_out, problem.standardize)
    return replace(problem, batch=train, design=problem.design.rescaled(mean, scale)), test


def fit_parts(problem, held_out, use, *, choose, light, jobs, what):
    """What `use` makes of the fits without some rows, a list.

    Parameters
    ----------
    problem : Problem
    held_out : list of (n,) bool
        Rows that are left out of each fit.
    use : callable(fit, Batch)
        Of a fit, and of the rows that were left out of it as it reads them.
    choose : bool
        Whether each fit chooses the settings that are open; else they are all known.
    light : bool or SPREAD
        What fits that choose nothing leave out: `for_path` of `Model.run`.
    jobs : int
        Fits made at a time, each by a thread of its own.
    what : str
        What progress is shown of.
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
    """One warning of each kind that fits to parts of the rows have given."""
    for category in dict.fromkeys(each.category for each in said):
        texts = [str(each.message) for each in said if each.category is category]
        warn(f"{len(texts)} of {n_fits} fits to parts of the rows say: {texts[0]}", category)


def as_read(fit, batch):
    """Rows of a fit's design as its reader gives them, which may have fewer features."""
    kept = fit._reader_columns
    if len(kept) == batch.X.shape[1]:
        return batch
    every = np.arange(batch.n)
    return subset(batch, every, tiles.unpack(batch.X, batch.n)[:, kept])
