"""Intervals or sets of classes for new rows, by fits to parts of the data."""

from itertools import compress
from typing import Any, Generic, Literal

import numpy as np
import pandas as pd

from lodim import forms
from lodim.checks import share
from lodim.design.batch import subset
from lodim.design.frame import as_given, in_pandas
from lodim.diagnostics.features import moved_means, shifts_in_words
from lodim.errors import DataError, DataWarning, warn
from lodim.fitting import saved, storage
from lodim.report.tables import Report, Table, listing, significant
from lodim.typing import Data, FilePath, FitT_co, NewLevels, Offset, RowValues
from lodim.uncertainty.conformity import HeldOut, Sayings
from lodim.uncertainty.guarantee import Guarantee, groups_of, measured

COLUMNS = ("fit", "lower", "upper")
RANGE = {  # of the responses of a family that are numbers
    "poisson": (0.0, np.inf),
    "gamma": (0.0, np.inf),
    "binomial": (0.0, 1.0),
}
# Of the columns of tidy() in the print
LABELS = {"level": "Level", "class": "Class", "score": "Score", "width": "Mean width"}
LABELS |= {"size": "Mean size", "empty": "Empty sets"}
MANY_KNOWN = 0.25  # share of rows recognized: more than repeated values explain


@forms.record
class Conformal(Generic[FitT_co]):
    """Intervals or sets of classes for new rows, by fits to parts of the data.

    Attributes
    ----------
    fit : Fit
        To all rows (of method "split" to those that were not held out); its predictions are shown.
    full : Fit or None
        The same; None of method "split", whose one fit is among `fits`.
    fits : tuple of Fit
        Without the rows of each fold.
    held_out : HeldOut
        Score, fold and weight of each row that was held out.
    says : Sayings
        The score, the level and the seed.
    guarantee : Guarantee
        How it was made.
    table : DataFrame
        What tidy() returns.

    See Also
    --------
    conformal, Bootstrap

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> known, new = cars[::2], cars[1::2]
    >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
    >>> intervals.level
    0.9
    """

    full: FitT_co | None = forms.optional(saved.ANY_FIT)
    fits: tuple[FitT_co, ...] = forms.several("F", saved.ANY_FIT)
    held_out: HeldOut = forms.part(HeldOut)
    says: Sayings = forms.part(Sayings)
    guarantee: Guarantee = forms.part(Guarantee)
    table: pd.DataFrame = saved.FRAME

    name = "conformal"

    def _check_fields(self):
        """Raise a ValueError unless all is of one model and response."""
        fit, classes, by = self.fit, self.held_out.of_class, self.guarantee.by
        if {(type(one), one.levels) for one in self.fits} != {(type(fit), fit.levels)}:
            raise ValueError("the fits are not of one model and response")
        if self.says.of_classes != (fit.levels is not None):
            raise ValueError(f"the score {self.says.score!r} is not one for the response")
        if (by is None) != (classes is None) or (by and classes.max() >= len(fit.levels or ())):
            raise ValueError("the rows held out are not of the classes of the response")
        named = {"level", "score", *(("size", "empty") if fit.levels else ("width",))}
        number = self.table[list(named)]
        if {*self.table} - named != ({"class"} if by else set()):
            raise ValueError(f"table has columns {list(self.table)}")
        numeric = {column.kind for column in number.dtypes} <= {*"fiu"}
        if not (len(number) and numeric and number.notna().all(axis=None)):
            raise ValueError("table has values that are no numbers")

    @property
    def fit(self) -> FitT_co:
        """The fit whose predictions are shown."""
        return self.fits[0] if self.full is None else self.full

    @property
    def level(self) -> float:
        """Share of new rows that is to be covered."""
        return self.says.level

    @property
    def _frame_kind(self):
        return self.fit._frame_kind

    @as_given
    def predict(
        self,
        data: Data,
        level: float | None = None,
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
    ) -> pd.DataFrame:
        """The interval of each row of `data`, or its set of classes.

        Parameters
        ----------
        data : frame
            New data; needs the columns that the fits read.
        level : float, optional
            Share of new rows that is to be covered; by default that of the call.
        offset : array (n,) or column name, optional
        new_levels : {"error", "missing"}
            What a level that training had not is, as `Fit.predict` says.

        Returns
        -------
        DataFrame
            A row for each row of `data`, with its index. fit, the prediction of the fit to all
            rows, lower and upper; or a column for each class, True where it is in the set, and .set
            with these in words. NaN (None for sets) where an input is missing.

        Raises
        ------
        ArgumentError, DataError

        Warns
        -----
        DataWarning
            There are too few rows held out for the level, so that nothing is ruled out. Or at least
            20 rows are given that are not exchangeable with those of the call: the mean of a
            feature differs by a quarter of a standard deviation or more, and by more than chance
            (false alarms have a probability of at most about 0.001; `Fit.check` finds the same).
            Not tested if the call had groups.

        See Also
        --------
        coverage, lodim.bootstrap

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> intervals.predict(new[:2], level=0.8).round(0)
            fit  lower  upper
        1  14.0   10.0   18.0
        3  14.0   10.0   18.0
        """
        level = self._checked(level)
        answers, batch = self._answers(data, offset, new_levels)
        self._warn_of_drift(batch)
        if self.says.of_classes:
            inside = self.held_out.sets(np.moveaxis(answers, 1, 2), level)
            values = np.column_stack([inside.astype(object), self._words(inside)])
            return self.fit._in_all_rows(batch, values, [*self.fit.levels, ".set"])
        limits = self._limits(answers, level)
        shown = self.fit.family.mean(self.fit._score(batch))
        return self.fit._in_all_rows(batch, np.column_stack([shown, *limits]), list(COLUMNS))

    @as_given
    def coverage(
        self,
        data: Data,
        by: RowValues | None = None,
        *,
        level: float | None = None,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
    ) -> pd.DataFrame:
        """How many responses of some rows are covered, and how much is left open.

        Parameters
        ----------
        data : frame
            With known responses, and of rows that no fit has seen; those of training are covered
            too often. Rows without a response or an input are left out.
            A warning is given if more than a quarter of these rows were held out themselves. They
            are recognized by their scores, unless more than 1% of the scores are tied or the method
            is "jackknife+"; with "split", the rows that were fitted are not recognized.
        by : column name or array (n,), optional
            A row for each of its values; of a number with more than 10 values, for each quarter.
        level : float, optional
            By default that of the call.
        offset : array (n,) or column name, optional
        new_levels : {"error", "missing"}
            What a level that training had not is: refused, or rows with it are left out.

        Returns
        -------
        DataFrame
            n; coverage, the share of the rows (by weight, where weights are a column) that is
            covered; std_error of it, and conf_low and conf_high, Wilson's 95 % interval, as of so
            many independent rows; width, the mean of the intervals; for classes size, the mean of
            the sets, and empty, the share of empty sets. Pass the response as `by` for the coverage
            of each class.

        Raises
        ------
        ArgumentError, DataError
            No row is complete, or there is no such column.

        Warns
        -----
        DataWarning
            Many of the rows are those that the intervals or sets were made from.

        See Also
        --------
        predict, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> intervals.coverage(new, by="origin")[["origin", "n"]]
           origin    n
        0  Europe   37
        1   Japan   43
        2     USA  119
        """
        level = self._checked(level)
        answers, batch = self._answers(data, offset, new_levels, response=True)
        y = batch.y
        if self.says.of_classes:
            inside = self.held_out.sets(np.moveaxis(answers, 1, 2), level)
            covered, size = inside[np.arange(len(y)), y.astype(int)], inside.sum(axis=1)
            means = {"size": size, "empty": size == 0}
        else:
            low, high = self._limits(answers, level)
            covered, means = (low <= y) & (y <= high), {"width": high - low}
        weight = batch.row_weights
        groups = {None: np.arange(len(y))} if by is None else groups_of(data, by, batch)
        rows = [
            measured(covered[i], weight[i], {name: v[i] for name, v in means.items()})
            for i in groups.values()
        ]
        if not sum(row["n"] for row in rows):
            raise DataError("no complete row to measure coverage on")
        self._warn_of_training_rows(answers, y)
        index = None if by is None else pd.Index(groups, name=by if isinstance(by, str) else "by")
        frame = pd.DataFrame(rows, index=index)
        return frame if by is None else frame.reset_index()

    @as_given
    def tidy(self) -> pd.DataFrame:
        """What some levels come to.

        Returns
        -------
        DataFrame
            level; with by="class", class; score, that of held-out rows which the share `level` does
            not exceed; width, the mean of their intervals by the fits without them; for classes
            size, the mean of their sets, and empty, the share of empty sets.

        See Also
        --------
        summary

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> intervals.tidy().columns.tolist()
        ['level', 'score', 'width']
        """
        return self.table.copy()

    def plot(
        self,
        kind: Literal["intervals", "coverage"] | None = None,
        ax: Any = None,
        **arguments: Any,
    ) -> Any:
        """Draw what is left open, and return the Axes.

        Parameters
        ----------
        kind : {"intervals", "coverage"}
            "intervals": responses and intervals against the prediction, those not covered in red;
            of classes the share of the rows of each class by the size of their set. "coverage":
            the coverage of groups of rows, with its error, beside the level.
        ax : Axes, optional
        **arguments
            `data`, new rows with known responses (needed); `level`; `by`, of "coverage" (needed),
            a column or array; `top`, of "intervals" the number of rows that are drawn at most (200,
            evenly along the prediction).

        Returns
        -------
        Axes

        Raises
        ------
        ArgumentError
            There is no such kind of plot, or it takes no such argument.

        See Also
        --------
        coverage

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> ax = intervals.plot(data=new)
        """
        from lodim.uncertainty.plots import draw_conformal

        return draw_conformal(self, kind, ax, **arguments)

    def summary(self) -> Report:
        """The printed report: how it was made, what is promised, and what levels come to.

        Returns
        -------
        Report

        See Also
        --------
        tidy, coverage

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> print(intervals.summary().as_text().splitlines()[0].strip())
        Conformal prediction
        """
        guarantee = self.guarantee
        header = {"Model": self.fit.name, "Response": self.fit.design.response.name}
        header |= {"Method": guarantee.method, "Fits": str(len(self.fits))}
        header |= {"Score": self.says.score}
        header[f"{guarantee.unit.title()}s held out"] = str(guarantee.n_units)
        notes = tuple(f"{line}." for line in (self.fit.call, *self.guarantee.words(self.level)))
        return Report("Conformal prediction", tuple(header.items()), [self._shown()], notes)

    def save(self, path: FilePath) -> None:
        """Write all fits and scores to one file; `lodim.load` reads it. No code is stored.

        What it holds of training rows is what the fits hold (`help` of the model says), and the
        score, the fold and the weight of each row, without labels.

        Parameters
        ----------
        path : path
            An existing file is replaced in one step.

        Raises
        ------
        StoreError
            The file cannot be written, or a fit holds what no file can.

        See Also
        --------
        lodim.load

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> known, new = cars[::2], cars[1::2]
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=2, lambda_=0.1)
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     intervals.save(Path(folder) / "cars.lodim")
        ...     back = ld.load(Path(folder) / "cars.lodim")
        >>> back.predict(new).equals(intervals.predict(new))
        True
        """
        storage.write(path, self.name, forms.write(self))

    def __repr__(self):
        lines = [self.guarantee.made(), f"Score: {self.says.score}"]
        lines += self.guarantee.words(self.level)
        return listing(f"conformal of {self.fit.call}", lines, self._shown())

    def _repr_html_(self):
        return self.summary().as_html()

    def _shown(self):
        frame = self.table.rename(columns=LABELS).set_index("Level")
        formats = dict.fromkeys(frame, significant) | {"Class": str, "Empty sets": ".1%"}
        formats = {name: formats[name] for name in frame}
        return Table("", frame.rename_axis(None), formats)

    def _checked(self, level):
        """The level asked for, with a warning where there are too few rows for it."""
        level = self.level if level is None else share("level", level)
        for name, held in self._compared():
            if not np.isfinite(held.quantile(level)) and level > held.most:
                what, most = self.guarantee.unit, np.floor(1e3 * held.most) / 1e3
                n = self.guarantee.n_units if name is None else len(held.fold)
                whose = "nothing" if name is None else f"class {name!r} nowhere"
                warn(
                    f"level {level:g} rules {whose} out: it needs more {what}s held out than {n}, "
                    f"whose highest level is {most:g}",
                    DataWarning,
                )
        return level

    def _compared(self):
        """The held-out rows that new ones are compared with: (class or None, HeldOut) pairs."""
        if self.held_out.of_class is None:
            return [(None, self.held_out)]
        return [(name, self.held_out.of(c)) for c, name in enumerate(self.fit.levels)]

    def _warn_of_training_rows(self, answers, y):
        """Warn where rows with responses y (m,) were held out themselves."""
        of_fits = np.array([self.says.scores(of_fit, y) for of_fit in answers])
        share_known = self.held_out.contains(of_fits)
        if share_known > MANY_KNOWN:
            warn(
                f"{share_known:.0%} of the rows are rows that this was made from: they are covered "
                "too often; measure coverage on new rows",
                DataWarning,
            )

    def _warn_of_drift(self, batch):
        """Warn if the rows of a batch are not exchangeable with those of the call."""
        if self.guarantee.unit != "row":  # rows of a group are alike: few groups look like drift
            return
        moved = moved_means(self.fit, batch)
        if isinstance(moved, dict) and moved:
            warn(
                "the new rows differ from those that this was made from, so that coverage is not "
                f"guaranteed: means moved, in standard deviations: {shifts_in_words(moved)}; "
                "measure coverage() on such rows, or make it from rows like these",
                DataWarning,
            )

    def _answers(self, data, offset, new_levels, response=False):
        """What each fit says of the rows that all read, (K, q, m), and these as `fit` has them.

        Where a fit has no answer its band is without end, and no class is ruled out.
        """
        how = {"offset": offset, "new_levels": new_levels}
        full = self.fit._reader.apply(data, response=response, **how)
        rows = full.rows if not response else full.rows[~np.isnan(full.y)]
        batches = [fit._reader.apply(data, **how) for fit in self.fits]
        for batch in batches:
            rows = np.intersect1d(rows, batch.rows)
        full = _at(full, rows)
        u = self.says.uniforms(self.fit, full)
        pairs = zip(self.fits, batches, strict=True)
        answers = np.array([self.says.of_rows(fit, _at(b, rows), u) for fit, b in pairs])
        if self.says.of_classes:
            return np.where(np.isnan(answers), -np.inf, answers), full
        unknown = np.isnan(answers).any(axis=1)
        for at, value in enumerate((-np.inf, np.inf, 1.0)):
            answers[:, at][unknown] = value
        return answers, full

    def _beside(self, data, level):
        """predict() of the rows of `data` that are complete, and their responses (n,), or codes."""
        rows = self.fit._reader.apply(data, response=True)
        frame = in_pandas(self.predict)(data, level)
        y = np.full(len(frame), np.nan)
        y[rows.rows] = rows.y
        known = ~np.isnan(y) & frame.iloc[:, 0].notna().to_numpy()
        return frame[known], y[known]

    def _limits(self, answers, level):
        """Lower and upper limits (m,) of rows, by what the fits say of them (K, 3, m)."""
        low, high, step = np.moveaxis(answers, 1, 0)
        lower, upper = (
            -self.held_out.upper(-low, step, level),
            self.held_out.upper(high, step, level),
        )
        crossed = lower > upper  # of a low level the limits may have passed each other
        lower[crossed] = upper[crossed] = 0.5 * (lower[crossed] + upper[crossed])
        limits = RANGE.get(self.fit.family.name, (-np.inf, np.inf))
        return np.clip(lower, *limits), np.clip(upper, *limits)

    def _words(self, inside):
        """Sets (m, C) in words, (m,) object."""
        levels = list(map(str, self.fit.levels))
        words = ["{" + ", ".join(compress(levels, row)) + "}" for row in inside]
        return np.array(words, dtype=object)


def _at(batch, rows):
    """The part of a batch with the rows of the data at these positions."""
    if np.array_equal(batch.rows, rows):
        return batch
    return subset(batch, np.searchsorted(batch.rows, rows))
