"""The bootstrap of a fit: fractional random weights, and what it says of estimates."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from lodim import progress as bars
from lodim.checks import flag, one_of, share, whole
from lodim.design.frames import as_given
from lodim.engine.blocks import available_threads, single_blas
from lodim.errors import ArgumentError, ConvergenceWarning, DataWarning, ExtrapolationWarning
from lodim.report.phrases import modelled
from lodim.report.tables import Report, Table, listing
from lodim.text import counted, join_words
from lodim.uncertainty.intervals import KINDS, accelerations, bca, biases, percentile
from lodim.uncertainty.intervals import standard_errors as errors_of
from lodim.uncertainty.random_weights import RandomWeights
from lodim.uncertainty.refits import anew, held_problem, reweighted

FEW_ROWS = 2000  # up to here threads lose more to each other than they gain
MOST_BYTES = 2**28  # of the replicates' estimates, all together, that are kept
LEVEL = 0.95
SCALES = {"mean": "response", "link": "link"}
TOP = 20
FEW_UNITS = 50  # below which intervals of replicates are clearly too short


def bootstrap(
    fit: Any,
    data: Any,
    *,
    n: int = 200,
    statistic: Callable[[Any], Any] | None = None,
    groups: Any = None,
    seed: int = 0,
    reselect: bool = False,
    threads: int | None = None,
    progress: bool = False,
    **arguments: Any,
) -> "Bootstrap":
    """Bootstrap a fit by random weights of its rows.

    Each of `n` replicates fits the model anew to the same rows, each with a weight drawn from the
    standard exponential distribution (times its own), of mean one: the fractional-random-weight
    bootstrap of Xu et al. (2020). No weight is zero, so that unlike by resampling no level of a
    factor and no class vanishes.

    Parameters
    ----------
    fit : Fit
        Of any model; of several responses, that of one which was fitted by itself.
    data : frame
        The rows that the fit was made from; others are refused.
    n : int
        Replicates. 200 do for standard errors and 90 or 95 % intervals; the limits of kind "bca",
        and of higher levels, are worth 1,000.
    statistic : callable, optional
        What is asked of each fit: a function that takes a fit and returns a number, an array (k,),
        a dict or a Series of numbers. What it computes from data of its own is not weighted.
        Default: the estimates of `tidy()`, of `costnet` those of the model that `predict` uses, of
        `melm` the loadings after the view was turned (orthogonal Procrustes) to that of the fit.
        A term that a replicate lacks is then zero.
    groups : column name or array (N,), optional
        Rows of equal values, such as those of a patient, share a weight. By default the groups, or
        of glm the clusters, that the fit was given.
    seed : int
        Of the weights. Equal seeds give equal bits, whatever `threads` is; where rows stand in
        `data` makes no difference.
    reselect : bool
        Whether each replicate makes the whole call again, and so chooses anew what the call left
        open (penalty, number of boosts, ...): intervals then cover that choice, at the price of it.
        By default all settings are held, features keep their scales, and fits start from `fit`
        where the model can.
    threads : int, optional
        Replicates at a time: by default all threads that are available, and one up to 2,000 rows.
    progress : bool
        Show a progress bar (needs tqdm).
    **arguments
        Arguments of the fit's call that were arrays, such as `weights`, which a fit does not keep.

    Returns
    -------
    Bootstrap

    Raises
    ------
    ArgumentError
        `fit` is of several responses, an array of its call is missing, or the statistic is not
        numbers.
    DataError
        `data` are not the rows that the fit was made from.

    See Also
    --------
    Bootstrap, conformal, effects

    Notes
    -----
    What the intervals do not cover: what a penalty takes from estimates, since each replicate is
    shrunken as the fit is (they are around the shrunken estimate, not the truth); the choice of
    settings, unless `reselect`; the choice of features beyond what replicates choose themselves
    (after selection no bootstrap has a guaranteed coverage); few rows, or groups, by which they are
    too short (print says so below 50); and a model that is wrong for the data. Where classes are
    separated `glm` has no finite estimate, and estimates are NaN.
    benchmarks/results/coverage_bootstrap.csv has coverages that were measured.

    Limits of kind "bca" are for estimates that follow the weights smoothly, as those of `glm` and
    of most statistics of it do. Where a fit jumps, as by boosting or a choice of features, its
    replicates lie around what their mean estimates, and not around the fit: "bca" then moves the
    limits the wrong way (mean slopes of `gbmap`: 90 % limits held the truth in 67 to 77 % of 60
    data sets, those of kind "percentile" in 92 to 98 %).

    They are those of Efron (1987), the acceleration by the covariances of each
    row's weight and the statistic over the replicates (Efron 2014). Exponential weights have the
    third central moment 2, where the counts of resampled rows have 1; what this adds to the
    skewness of the replicates is taken back, to the same order. Of more than n^3 / 1000 rows the
    acceleration, which is then next to nothing, is taken for zero.

    References
    ----------
    Xu, Gotwalt, Hong, King & Meeker (2020). Applications of the fractional-random-weight bootstrap.
    The American Statistician 74, 345-358.

    Efron (1987). Better bootstrap confidence intervals. JASA 82, 171-185.

    Efron (2014). Estimation and accuracy after model selection. JASA 109, 991-1007.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> boot = ld.bootstrap(fit, cars, n=60)
    >>> boot.tidy()[["term", "estimate", "conf_low", "conf_high"]].round(3)
             term  estimate  conf_low  conf_high
    0      weight    -0.007    -0.008     -0.007
    1  model_year     0.720     0.635      0.827
    """
    n, seed = whole("n", n, least=2), whole("seed", seed, least=0)
    flag("reselect", reselect)
    flag("progress", progress)
    if statistic is not None and not callable(statistic):
        raise ArgumentError(f"statistic must be a function of a fit, not {statistic!r:.80}")
    problem = held_problem(fit, data, groups, arguments)
    draws = RandomWeights.from_batch(problem.batch, len(problem.design.levels or ()), n, seed)
    jobs = 1 if problem.batch.n <= FEW_ROWS else available_threads()
    jobs = jobs if threads is None else whole("threads", threads)
    ask = _estimates_as(fit) if statistic is None else _statistic(statistic)

    def replicate(k, bar):
        weights = draws.of_rows(k)
        if reselect:
            one = anew(fit, data, problem.batch, weights, groups, arguments)
        else:
            one = reweighted(problem, fit, weights)
        bar.update(1)
        return one, ask(one)

    with warnings.catch_warnings(), single_blas(), bars.showing(progress):
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
        with bars.bar(n, "bootstrap") as bar:
            work = (delayed(replicate)(k, bar) for k in range(n))
            fits, asked = zip(*Parallel(n_jobs=jobs, backend="threading")(work), strict=True)
    terms, estimate, values = _aligned(ask(fit), asked, 0.0 if statistic is None else np.nan)
    return Bootstrap(
        fit=fit,
        terms=terms,
        estimate=estimate,
        values=values,
        acceleration=accelerations(values, draws.of_units),
        seed=seed,
        reselect=bool(reselect),
        n_units=draws.n_units,
        units=f"{draws.n_units} rows" if problem.batch.units is None else
        f"{counted(draws.n_units, 'group')} of rows",
        n_failed=sum(not one.converged for one in fits),
        fits=fits if _bytes(fits[0].estimates) * n <= MOST_BYTES else (),
        default=statistic is None,
    )  # fmt: skip


# What is asked of each fit ------------------------------------------------------------------------


def _estimates_as(reference):
    """The function of a fit that gives its estimates, as comparable with those of another."""

    def estimates(one):
        frame = one._comparable(reference)
        keys = [c for c in ("level", "dimension", "term") if c in frame]
        index = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else pd.Index(frame["term"])
        return pd.Series(frame["estimate"].to_numpy(float), index)

    return estimates


def _statistic(function):
    """A user's function of a fit as one that gives a Series."""

    def numbers(one):
        value = function(one)
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
            raise ArgumentError(
                "statistic must return a number, an array (k,), or a dict or Series of numbers "
                f"under names of their own, not {value!r:.80}"
            )
        return series.rename_axis(series.index.names if series.index.nlevels > 1 else "term")

    return numbers


def _aligned(estimate, replicates, absent):
    """Names of all terms, estimates (q,) and values (n, q); `absent` of what a fit lacks."""
    terms = estimate.index
    for one in replicates:
        if not one.index.equals(terms):
            terms = terms.append(one.index.difference(terms, sort=False))
    known = [one if one.index.equals(terms) else one.reindex(terms, fill_value=absent)
             for one in (estimate, *replicates)]  # fmt: skip
    values = np.array([one.to_numpy(float) for one in known])
    return terms, values[0], values[1:]


def _band(center, each, level):
    """Predictions (N,) or (N, K) as a frame, with limits by those of n replicates, (n, ...)."""
    limits = percentile(each.reshape(len(each), -1), level).reshape(2, *each.shape[1:])
    if isinstance(center, pd.Series):
        columns = {"fit": center, "lower": limits[0], "upper": limits[1]}
        return pd.DataFrame(columns, index=center.index)
    parts = np.stack([center.to_numpy(), *limits], axis=2).reshape(len(center), -1)
    columns = pd.MultiIndex.from_product([center.columns, ["fit", "lower", "upper"]])
    return pd.DataFrame(parts, index=center.index, columns=columns)


def _bytes(record):
    """Memory of the arrays of a record and of the records in it."""
    if isinstance(record, np.ndarray):
        return record.nbytes
    if isinstance(record, dict | list | tuple):
        return sum(map(_bytes, record.values() if isinstance(record, dict) else record))
    return sum(map(_bytes, vars(record).values())) if hasattr(record, "__dataclass_fields__") else 0


# What it says -------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap:
    """Replicates of a fit, and the intervals that follow from them.

    Attributes
    ----------
    fit : Fit
        The fit to all rows under their own weights.
    terms : Index (q,)
        Names of the estimates: term, or level (dimension) and term.
    estimate : array (q,)
    values : array (n, q)
        Of the replicates; `replicates` has them as a frame.
    acceleration : array (q,)
        Of "bca".
    seed : int
    reselect : bool
        As they were given.
    n_units : int
        Number of what was weighted: rows of weight above zero, or groups of them.
    units : str
        What was weighted, in words.
    n_failed : int
        Replicates that did not converge. They are counted in.
    fits : tuple of Fit
        The replicates' fits, for `predict` and `lodim.effects`; empty where their estimates would
        take more than 256 MB. They are light, as those of a path.
    default : bool
        Whether the statistic is the model's estimates.

    See Also
    --------
    bootstrap, Effects

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> boot = ld.bootstrap(fit, cars, n=40)
    >>> boot.replicates.shape
    (40, 2)
    """

    fit: Any
    terms: pd.Index
    estimate: np.ndarray
    values: np.ndarray
    acceleration: np.ndarray
    seed: int
    reselect: bool
    n_units: int
    units: str
    n_failed: int
    fits: tuple[Any, ...] = field(default=())
    default: bool = True

    @property
    def n(self) -> int:
        """Number of replicates."""
        return len(self.values)

    @property
    def replicates(self) -> pd.DataFrame:
        """A row a replicate and a column an estimate; of one that a replicate lacks, NaN."""
        return pd.DataFrame(self.values, columns=self.terms)

    @property
    def _frame_kind(self):
        return self.fit._frame_kind

    @as_given
    def tidy(self, *, level: float = LEVEL, kind: str = "percentile") -> pd.DataFrame:
        """A row an estimate, with its standard error, bias and confidence limits.

        Parameters
        ----------
        level : float
            Of the limits.
        kind : {"percentile", "bca"}
            Quantiles of the replicates; or bias-corrected and accelerated ones, see
            `lodim.bootstrap`.

        Returns
        -------
        DataFrame
            (level or dimension,) term, estimate, std_error (the standard deviation of the
            replicates), bias (their mean less the estimate), conf_low, conf_high.

        Raises
        ------
        ArgumentError
            So high a level needs more replicates.

        See Also
        --------
        summary, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> boot = ld.bootstrap(fit, cars, n=40)
        >>> boot.tidy(level=0.9)[["term", "conf_low", "conf_high"]].round(2)
                 term  conf_low  conf_high
        0      weight     -0.01      -0.01
        1  model_year      0.66       0.82
        """
        one_of("kind", kind, KINDS)
        level = self._level(level)
        if kind == "percentile":
            low, high = percentile(self.values, level)
        else:
            low, high = bca(self.values, self.estimate, self.acceleration, level)
        frame = self.terms.to_frame(index=False).rename(columns={0: "term"})
        frame["estimate"], frame["std_error"] = self.estimate, errors_of(self.values)
        frame["bias"] = biases(self.values, self.estimate)
        return frame.assign(conf_low=low, conf_high=high)

    @as_given
    def predict(
        self,
        data: Any,
        type: str = "interval",
        *,
        of: str = "mean",
        level: float = LEVEL,
        offset: Any = None,
        new_levels: str = "error",
    ) -> pd.DataFrame:
        """Predictions of the fit, and the band in which the share `level` of its replicates lies.

        It is a band of the mean, not of new observations: for these see `lodim.conformal`.

        Parameters
        ----------
        data, offset, new_levels
            As the fit's `predict` takes them.
        type : {"interval"}
        of : {"mean", "link"}
            The mean of the response (of classes the probabilities), or the score.
        level : float

        Returns
        -------
        DataFrame
            fit, lower and upper, with the rows of `data`; of more than two classes under each class
            such three columns. NaN where an input is missing.

        Raises
        ------
        ArgumentError
            The formula has no response, so high a level needs more replicates, or these are not
            kept (`fits`).

        See Also
        --------
        tidy, lodim.conformal

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> boot = ld.bootstrap(fit, cars, n=40)
        >>> boot.predict(cars[:2]).columns.tolist()
        ['fit', 'lower', 'upper']
        """
        one_of("type", type, ("interval",))
        one_of("of", of, SCALES)
        level, keywords = self._level(level), {"offset": offset, "new_levels": new_levels}
        if self.fit.design.response is None:
            raise ArgumentError("the formula has no response: there is no mean to predict")
        center = self.fit.predict(data, SCALES[of], **keywords)
        with warnings.catch_warnings():
            for category in (ExtrapolationWarning, DataWarning):  # the fit has told
                warnings.simplefilter("ignore", category)
            each = np.array([one.predict(data, SCALES[of], **keywords) for one in self._kept()])
        return _band(center, each, level)

    def summary(
        self, *, level: float = LEVEL, kind: str = "percentile", full: bool = False
    ) -> Report:
        """The printed report: estimates with their limits, and what these do not cover.

        Parameters
        ----------
        level, kind
            Of the limits, as `tidy` takes them.
        full : bool
            Whether the table is whole; else of more than 30 rows some are shown.

        Returns
        -------
        Report

        See Also
        --------
        tidy, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> boot = ld.bootstrap(fit, cars, n=40)
        >>> print(boot.summary().as_text().splitlines()[0].strip())
        Bootstrap of gbmap
        """
        flag("full", full)
        shown = self.tidy(level=level, kind=kind).set_index("term").rename_axis(None)
        about = [("Response", modelled(self.fit))] if self.fit.design.response else []
        rows = (
            ("Model", self.fit.name), *about,
            ("Replicates", str(self.n)), ("Weights", f"exponential, of {self.units}"),
            ("Settings", "chosen anew" if self.reselect else "held"), ("Seed", str(self.seed)),
            ("Limits", f"{kind}, {100.0 * level:g} %"),
        )  # fmt: skip
        table, title = Table("Estimates", shown), f"Bootstrap of {self.fit.name}"
        return Report(title, rows, [table], self._notes(kind), full)

    def plot(
        self,
        ax: Any = None,
        *,
        top: int = TOP,
        level: float = LEVEL,
        kind: str = "percentile",
    ) -> Any:
        """Draw estimates with their intervals, the largest on top.

        Estimates of features are per standard deviation of the feature; what a user's statistic
        returns is drawn as it is.

        Parameters
        ----------
        ax : Axes, optional
        top : int
            How many of the largest estimates are drawn.
        level, kind
            As `tidy` takes them.

        Returns
        -------
        Axes

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
        >>> boot = ld.bootstrap(fit, cars, n=40)
        >>> ax = boot.plot()
        """
        from lodim.uncertainty.forest_plot import draw

        top = whole("top", top)
        return draw(self, ax, top=top, level=level, kind=kind)

    # Shared by the above --------------------------------------------------------------------------

    def _level(self, level):
        """A level that the replicates are enough for."""
        level = share("level", level)
        least = int(np.ceil(2.0 / (1.0 - level) - 1e-9)) - 1
        if self.n < least:
            raise ArgumentError(
                f"level={level:g} needs {least} replicates or more, and here are {self.n}"
            )
        return level

    def _kept(self):
        """The replicates' fits."""
        if not self.fits:
            raise ArgumentError(
                f"the fits of {self.n} replicates take more than 256 MB and are not kept: take "
                "fewer replicates, or give what is asked of them as `statistic`"
            )
        return self.fits

    def _notes(self, kind="percentile"):
        """What the intervals do not cover, and what went wrong, in sentences."""
        notes = []
        if kind == "bca" and not self.fit._estimates_are_smooth:
            notes.append(
                f"Estimates of {self.fit.name} may jump where weights change a little: limits of "
                "kind 'bca' then hold the truth too seldom; take kind='percentile'."
            )
        if not self.reselect and self.fit.selection is not None:
            chosen = join_words(self.fit.chosen) if self.fit.chosen else "settings"
            notes.append(
                f"{chosen} held as cross-validation chose: the intervals do not cover that choice "
                "(reselect=True does)."
            )
        if self.fit._biased_by:
            notes.append(
                f"Every replicate is biased by {self.fit._biased_by} as the fit is: the intervals "
                "are around what it estimates, not around the truth."
            )
        if self.n_units < FEW_UNITS:
            notes.append(
                f"{self.units} are few: intervals are too short (of a slope by 10 to 50 rows those "
                "of 90 % hold the truth in about 75 to 85 % of samples)."
            )
        notes += [*self._on_zeros(), *self._on_unknown()] if self.default else self._on_unknown()
        if self.n_failed:
            notes.append(f"{self.n_failed} of {self.n} replicates did not converge.")
        return notes

    def _on_zeros(self):
        """Of terms that are not chosen, in sentences."""
        zero, q = self.values == 0.0, len(self.terms)
        some, notes = int((zero.any(axis=0) & ~zero.all(axis=0)).sum()), []
        varies = ~self.terms.get_level_values(-1).isin(self.fit.design.constant)
        never = int((zero.all(axis=0) & (self.estimate == 0.0) & varies).sum())
        if some:
            notes.append(
                f"{counted(some, 'term')} of {q} not chosen in every replicate, and zero there: "
                "after selection no coverage is guaranteed."
            )
        if never:
            notes.append(
                f"{counted(never, 'term')} of {q} never chosen: limits from 0 to 0 say that, and "
                "not that there is no effect; after selection no coverage is guaranteed."
            )
        return notes

    def _on_unknown(self):
        """Of terms without an estimate, in sentences."""
        unknown, q, notes = np.isnan(self.values), len(self.terms), []
        infinite = self.default and self.fit._separated
        none = int((unknown.all(axis=0) & np.isnan(self.estimate)).sum())
        some = int(unknown.any(axis=0).sum()) - none
        if none:
            why = ", as the classes are separated" if infinite else ""
            notes.append(f"{counted(none, 'term')} of {q} without a finite estimate{why}.")
        if some:
            notes.append(f"{counted(some, 'term')} of {q} NaN in some replicates, left out there.")
        return notes

    def _repr_html_(self):
        return self.summary(level=self._widest()).as_html()

    def _widest(self):
        """The level that is printed: LEVEL, or what the replicates are enough for."""
        return LEVEL if self.n >= 39 else 1.0 - 2.0 / (self.n + 1)

    def __repr__(self):
        how = "settings chosen anew" if self.reselect else "settings held"
        lines = [f"{self.n} replicates, exponential weights of {self.units}; {how}"]
        level = self._widest()
        lines.append(f"{100.0 * level:.3g} % percentile intervals")
        shown = self.tidy(level=level).set_index("term").rename_axis(None)
        table = Table("", shown, notes=self._notes())
        return listing(f"bootstrap of {self.fit.call}", lines, table, whole="tidy()")
