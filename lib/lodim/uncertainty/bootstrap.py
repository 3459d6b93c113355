"""The bootstrap of a fit, with random exponential weights of the rows."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from lodim import progress as bars
from lodim.checks import as_seed, as_threads, flag, whole
from lodim.engine.blocks import available_threads, single_blas
from lodim.errors import ArgumentError, ConvergenceWarning
from lodim.fitting.argument_names import with_known_arguments
from lodim.selection.tuning import FEW_ROWS
from lodim.text import counted
from lodim.typing import Data, FitT, RowValues
from lodim.uncertainty.refits import RandomWeights, held_problem, refit_from_scratch, reweighted
from lodim.uncertainty.replicates import Bootstrap

MOST_BYTES = 2**28  # limit for the estimates of all replicates, in bytes


@with_known_arguments
def bootstrap(
    fit: FitT,
    data: Data,
    *,
    n: int = 200,
    statistic: Callable[[FitT], Any] | None = None,
    groups: RowValues | None = None,
    seed: int = 0,
    reselect: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
    **arguments: Any,
) -> Bootstrap[FitT]:
    """Bootstrap a fit by random weights of its rows.

    Each replicate refits the model to the same rows, with independent standard exponential weights
    (times the weights of the rows): the fractional-random-weight bootstrap of Xu et al. (2020).
    No weight is zero, so no level or class is lost, unlike with resampling.

    Parameters
    ----------
    fit : Fit
        Fit of one response, of any model.
    data : frame
        The training rows of the fit.
    n : int, default=200
        Number of replicates: 200 for standard errors and 95% intervals, 1,000 for higher levels.
        95% intervals need at least 39, 99% intervals 199.
    statistic : callable, optional
        Function of a fit that returns a number, an array (k,), a dict or a Series of numbers.
        Default: the estimates of `tidy()`, zero for a term that is absent from a replicate; for
        `melm` the loadings after a Procrustes rotation to the fit's loadings.
    groups : column name or array (N,), optional
        Rows with equal values share a weight. By default the groups (for glm, clusters) of the fit.
    seed : int, default=0
        Seed of the weights. Results do not depend on `threads` or the order of rows.
    reselect : bool, default=False
        Repeat the choice of settings in each replicate, except for settings that you gave. If
        False, all settings, and the knots, levels and means that the formula learned, are fixed.
    threads : int, optional
        Number of replicates fitted in parallel. Default: all threads, or one up to 2,000 rows.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    **arguments
        Arguments of the fit's call that were arrays, such as `weights`; a fit does not keep them.

    Returns
    -------
    Bootstrap

    Raises
    ------
    ArgumentError, DataError
        If `fit` has several responses, an array is missing, the statistic is not numeric, or `data`
        are not the training rows.

    See Also
    --------
    Bootstrap, conformal, effects

    Notes
    -----
    The intervals do not account for the bias of a penalty, for a wrong model, or (without
    `reselect`) for the choice of settings. After a selection of features no bootstrap guarantees
    coverage. In small samples intervals are too short. If classes are separated, estimates of `glm`
    are NaN. Measured coverages: benchmarks/results/coverage_bootstrap.csv.

    References
    ----------
    Xu, Gotwalt, Hong, King & Meeker (2020). Applications of the fractional-random-weight bootstrap.
    The American Statistician 74, 345-358.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> boot = ld.bootstrap(fit, cars, n=60)
    >>> boot.tidy()[["term", "estimate", "conf_low", "conf_high"]].round(3)
             term  estimate  conf_low  conf_high
    0      weight    -0.007    -0.008     -0.007
    1  model_year     0.720     0.611      0.821
    """
    n, seed = whole("n", n, least=2), as_seed(seed)
    flag("reselect", reselect)
    if statistic is not None and not callable(statistic):
        raise ArgumentError(f"statistic must be a function of a fit, not {statistic!r:.80}")
    problem = held_problem(fit, data, groups, arguments)
    draws = RandomWeights.from_batch(problem.batch, len(problem.design.levels or ()), n, seed)
    jobs = 1 if problem.batch.n <= FEW_ROWS else available_threads()
    jobs = jobs if threads is None else as_threads(threads)
    ask = partial(_estimates, fit) if statistic is None else partial(_numbers, statistic)

    def replicate(k, bar):
        weights = draws.of_rows(k)
        if reselect:
            one = refit_from_scratch(fit, data, problem.batch, weights, groups, arguments)
        else:
            one = reweighted(problem, fit, weights)
        bar.update(1)
        return one, ask(one)

    failures = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)  # are counted
    with failures, single_blas(), bars.bar(n, "replicates") as bar:
        work = (delayed(replicate)(k, bar) for k in range(n))
        fits, asked = zip(*Parallel(n_jobs=jobs, backend="threading")(work), strict=True)
    terms, estimate, values = _aligned(ask(fit), asked, 0.0 if statistic is None else np.nan)
    units = f"{draws.n_units} rows"
    if problem.batch.units is not None:
        units = f"{counted(draws.n_units, 'group')} of rows"
    return Bootstrap(
        fit=fit,
        terms=terms,
        estimate=estimate,
        values=values,
        seed=seed,
        reselect=bool(reselect),
        n_units=draws.n_units,
        units=units,
        n_failed=sum(not one.converged for one in fits),
        fits=fits if _bytes(fits[0].estimates) * n <= MOST_BYTES else (),
        default=statistic is None,
    )


# What is asked of each fit ------------------------------------------------------------------------


def _estimates(reference, refit):
    """Return the estimates of `refit`, a Fit, as a Series by term.

    reference : original fit, to whose dimensions those of a refitted melm are rotated"""
    frame = refit._comparable(reference)
    keys = [c for c in ("level", "dimension", "term") if c in frame]
    index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else pd.Index(frame["term"])
    return pd.Series(frame["estimate"].to_numpy(float), index)


def _numbers(statistic, refit):
    """Return the numbers that a user's function, `statistic`, computes from a refit: a Series."""
    value = statistic(refit)
    try:
        if isinstance(value, pd.Series):
            series = value.astype(float)
        elif isinstance(value, Mapping):
            series = pd.Series(dict(value), dtype=float)
        else:
            array = np.asarray(value, dtype=float)
            names = [f"[{k}]" for k in range(array.size)] if array.ndim else ["statistic"]
            series = pd.Series(np.atleast_1d(array), names)
    except (TypeError, ValueError):
        series = pd.Series(dtype=float)
    if not len(series) or not series.index.is_unique:
        words = "a number, an array (k,), or a dict or Series of numbers by name"
        raise ArgumentError(f"statistic must return {words}, not {value!r:.80}")
    return series.rename_axis(series.index.names if series.index.nlevels > 1 else "term")


def _aligned(estimate, replicates, absent):
    """Align an estimate with n replicates, which may have other terms.

    Return all q terms, the values of the Series `estimate` (q,), and of the replicates (n, q).
    replicates : n Series; absent : value of a term that a Series lacks"""
    terms = estimate.index
    for one in replicates:
        if not one.index.equals(terms):
            terms = terms.append(one.index.difference(terms, sort=False))
    known = (one.reindex(terms, fill_value=absent) for one in (estimate, *replicates))
    values = np.array([one.to_numpy(float) for one in known])
    return terms, values[0], values[1:]


def _bytes(record):
    if isinstance(record, np.ndarray):
        return record.nbytes
    if isinstance(record, dict | list | tuple):
        return sum(map(_bytes, record.values() if isinstance(record, dict) else record))
    return sum(map(_bytes, vars(record).values())) if hasattr(record, "__dataclass_fields__") else 0
