"""Bootstrap replicates of a fit, and intervals based on them."""

from dataclasses import dataclass, field
from typing import Any, Generic, Literal

import numpy as np
import pandas as pd

from lodim.checks import flag, one_of, share, whole
from lodim.design.frame import as_given, in_pandas
from lodim.errors import ArgumentError, no_row_warnings
from lodim.report.phrases import modelled
from lodim.report.tables import FitResult, Report, Table, listing
from lodim.text import counted, join_words
from lodim.typing import Data, FitT_co, NewLevels, Offset

LEVEL = 0.95
SCALES = {"mean": "response", "link": "link"}
TOP = 20
FEW_UNITS = 50  # with fewer rows or groups, bootstrap intervals are clearly too short


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap(FitResult, Generic[FitT_co]):
    """Bootstrap replicates of a fit, and intervals based on them.

    Attributes
    ----------
    fit : Fit
        Fit to all rows with their own weights.
    terms : Index (q,)
        Names of the estimates: term, or level (or dimension) and term.
    estimate : array (q,)
    values : array (n, q)
        Estimates of the replicates; `replicates` returns them as a frame.
    seed, reselect
        Arguments of `bootstrap`.
    n_units, units : int, str
        Number of rows (or groups that share a weight), and a text such as "398 rows".
    n_failed : int
        Number of replicates that did not converge; they are included.
    fits : tuple of Fit
        Fits of the replicates; empty if their estimates would take over 256 MB.
    default : bool
        Whether the statistic is the default, the model's estimates.

    See Also
    --------
    bootstrap, Effects

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> boot = ld.bootstrap(ld.glm("mpg ~ weight + model_year", cars), cars, n=40)
    >>> boot.replicates.shape
    (40, 3)
    """

    fit: FitT_co
    terms: pd.Index
    estimate: np.ndarray
    values: np.ndarray
    seed: int
    reselect: bool
    n_units: int
    units: str
    n_failed: int
    fits: tuple[FitT_co, ...] = field(default=())
    default: bool = True

    @property
    def n(self) -> int:
        """Number of replicates."""
        return len(self.values)

    @property
    def replicates(self) -> pd.DataFrame:
        """Frame of estimates: one row per replicate, one column per estimate, NaN if absent."""
        return pd.DataFrame(self.values, columns=self.terms)

    @as_given
    def tidy(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return standard error, bias and percentile confidence limits of each estimate.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level; an ArgumentError if it needs more replicates.

        Returns
        -------
        DataFrame
            Columns: level or dimension (if any), term, estimate, std_error (standard deviation of
            the replicates), bias (mean of the replicates minus the estimate), conf_low, conf_high.

        See Also
        --------
        summary, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> boot = ld.bootstrap(ld.glm("mpg ~ weight + model_year", cars), cars, n=40)
        >>> boot.tidy(level=0.9)[["term", "conf_low", "conf_high"]].round(2)
                  term  conf_low  conf_high
        0  (Intercept)    -21.87      -7.14
        1       weight     -0.01      -0.01
        2   model_year      0.67       0.85
        """
        low, high = percentile(self.values, self._level(level))
        frame = self.terms.to_frame(index=False).rename(columns={0: "term"})
        frame["estimate"], frame["std_error"] = self.estimate, standard_errors(self.values)
        frame["bias"] = pd.DataFrame(self.values).mean().to_numpy() - self.estimate
        return frame.assign(conf_low=low, conf_high=high)

    @as_given
    def predict(
        self,
        data: Data,
        type: Literal["interval"] = "interval",
        *,
        of: Literal["mean", "link"] = "mean",
        level: float = LEVEL,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
    ) -> pd.DataFrame:
        """Return predictions with a band that contains the share `level` of replicates.

        The band is for the mean of the response, not for new observations (see `lodim.conformal`).

        Parameters
        ----------
        data, offset, new_levels
            Arguments of the fit's `predict`.
        type : {"interval"}
        of : {"mean", "link"}, default="mean"
            Mean of the response (probabilities for classes), or the prediction on the link scale.
        level : float, default=0.95

        Returns
        -------
        DataFrame
            Columns fit, lower and upper, with a row per row of `data`; with more than two classes,
            these columns for each class. NaN if an input is missing.

        Raises
        ------
        ArgumentError
            If the formula has no response, the level needs more replicates, or fits were not kept.

        See Also
        --------
        tidy, lodim.conformal

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> boot = ld.bootstrap(ld.glm("mpg ~ weight + model_year", cars), cars, n=40)
        >>> boot.predict(cars[:2]).columns.tolist()
        ['fit', 'lower', 'upper']
        """
        one_of("type", type, ("interval",))
        one_of("of", of, SCALES)
        level, keywords = self._level(level), {"offset": offset, "new_levels": new_levels}
        if self.fit.design.response is None:
            raise ArgumentError("the formula has no response: there is no mean to predict")
        center = in_pandas(self.fit.predict)(data, SCALES[of], **keywords)
        with no_row_warnings():
            predict = [in_pandas(one.predict) for one in self._kept()]
            each = np.array([one(data, SCALES[of], **keywords) for one in predict])
        limits = percentile(each.reshape(len(each), -1), level).reshape(2, *each.shape[1:])
        if isinstance(center, pd.Series):
            return pd.DataFrame({"fit": center, "lower": limits[0], "upper": limits[1]})
        parts = np.stack([center.to_numpy(), *limits], axis=2).reshape(len(center), -1)
        columns = pd.MultiIndex.from_product([center.columns, ["fit", "lower", "upper"]])
        return pd.DataFrame(parts, index=center.index, columns=columns)

    def summary(self, *, level: float | None = None, full: bool = False) -> Report:
        """Return a report: estimates with limits, and notes on what the limits do not cover.

        Parameters
        ----------
        level : float, optional
            Default: 0.95, or the highest level that fewer than 39 replicates allow.
        full : bool, default=False
            Show all rows of tables with more than 30 rows.

        See Also
        --------
        tidy, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> boot = ld.bootstrap(ld.glm("mpg ~ weight + model_year", cars), cars, n=40)
        >>> print(boot.summary().as_text().splitlines()[0].strip())
        Bootstrap of glm
        """
        flag("full", full)
        level = self._widest() if level is None else level
        shown = in_pandas(self.tidy)(level=level).set_index("term").rename_axis(None)
        rows = {"Model": self.fit.name}
        rows |= {"Response": modelled(self.fit)} if self.fit.design.response else {}
        rows |= {"Replicates": str(self.n), "Weights": f"exponential, of {self.units}"}
        rows |= {"Settings": "chosen again" if self.reselect else "held", "Seed": str(self.seed)}
        rows["Limits"] = f"percentile, {100.0 * level:g}%"
        table, title = Table("Estimates", shown), f"Bootstrap of {self.fit.name}"
        return Report(title, tuple(rows.items()), [table], self._notes(), full)

    def plot(self, ax: Any = None, *, top: int = TOP, level: float | None = None) -> Any:
        """Draw estimates with their intervals, the largest on top.

        Estimates of features are shown per standard deviation; other statistics unchanged.

        Parameters
        ----------
        ax : Axes, optional
        top : int, default=20
            Largest number of estimates drawn.
        level : float, optional
            Default: 0.95, or the highest level that fewer than 39 replicates allow.

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
        >>> boot = ld.bootstrap(ld.glm("mpg ~ weight + model_year", cars), cars, n=40)
        >>> ax = boot.plot()
        """
        from lodim.uncertainty.plots import draw_bootstrap

        level = self._widest() if level is None else level
        return draw_bootstrap(self, ax, top=whole("top", top), level=level)

    # Shared by the above --------------------------------------------------------------------------

    def _level(self, level):
        level = share("level", level)
        least = int(np.ceil(2.0 / (1.0 - level) - 1e-9)) - 1
        if self.n < least:
            raise ArgumentError(
                f"level={level:g} needs at least {least} replicates, not {self.n}: use "
                f"level={self._widest():g}, or bootstrap(..., n={least})"
            )
        return level

    def _kept(self):
        if not self.fits:
            raise ArgumentError(
                f"the fits of {self.n} replicates need more than 256 MB and are not stored: use "
                "fewer replicates, or compute the results by statistic="
            )
        return self.fits

    def _notes(self):
        notes = []
        if not self.reselect and self.fit.selection is not None:
            chosen = join_words(self.fit.chosen) if self.fit.chosen else "settings"
            notes.append(
                f"{chosen} fixed at the choice of cross-validation: the intervals do not include "
                "the uncertainty of this choice (reselect=True does)."
            )
        if self.fit._biased_by:
            notes.append(
                f"All replicates are biased by {self.fit._biased_by}, like the fit: the "
                "intervals are around the penalized estimates and may miss the true values."
            )
        if self.n_units < FEW_UNITS:
            notes.append(
                f"With only {self.units}, intervals are too short (for a slope from 10 to 50 "
                "rows, 90% intervals contain the true value in about 75 to 85% of samples)."
            )
        notes += self._on_terms()
        if self.n_failed:
            notes.append(f"{self.n_failed} of {self.n} replicates did not converge.")
        return notes

    def _on_terms(self):
        """Return notes on terms that replicates did not select, or that have no estimate."""
        zero, unknown, q, notes = self.values == 0.0, np.isnan(self.values), len(self.terms), []
        if self.default:
            some = int((zero.any(axis=0) & ~zero.all(axis=0)).sum())
            varies = ~self.terms.get_level_values(-1).isin(self.fit.design.constant)
            never = int((zero.all(axis=0) & (self.estimate == 0.0) & varies).sum())
            if some:
                what = f"{counted(some, 'term')} of {q} not selected in every replicate, and zero"
                notes.append(f"{what} there: after selection no coverage is guaranteed.")
            if never:
                what = f"{counted(never, 'term')} of {q} never selected, which limits from 0 to 0 "
                what += "show; this does not mean that there is no effect"
                notes.append(f"{what}. After selection no coverage is guaranteed.")
        none = int((unknown.all(axis=0) & np.isnan(self.estimate)).sum())
        some = int(unknown.any(axis=0).sum()) - none
        if none:
            why = ", as the response is separated" if self.default and self.fit._separated else ""
            notes.append(f"{counted(none, 'term')} of {q} without a finite estimate{why}.")
        if some:
            notes.append(f"{counted(some, 'term')} of {q} NaN in some replicates, left out there.")
        return notes

    def _widest(self):
        """Return the level of printed limits: 0.95, or the highest that n replicates allow."""
        return min(LEVEL, np.floor(1000.0 * (self.n - 1) / (self.n + 1)) / 1000.0)

    def __repr__(self):
        how = "settings chosen again" if self.reselect else "settings held"
        lines = [f"{self.n} replicates, exponential weights of {self.units}; {how}"]
        level = self._widest()
        lines.append(f"{100.0 * level:g}% percentile intervals")
        shown = in_pandas(self.tidy)(level=level).set_index("term").rename_axis(None)
        table = Table("", shown, notes=self._notes())
        return listing(f"bootstrap of {self.fit.call}", lines, table, whole="tidy()")


def percentile(replicates, level):
    """Return limits (2, q) that contain the share `level` of replicates (R, q), ignoring NaN."""
    shares, out = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level]), []
    for column in replicates.T:
        known = column[np.isfinite(column)]
        out.append(np.quantile(known, shares, method="weibull") if known.size else [np.nan] * 2)
    return np.array(out).T


def standard_errors(replicates):
    return pd.DataFrame(replicates).std().to_numpy()
