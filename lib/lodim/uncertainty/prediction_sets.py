"""Prediction intervals, or sets of classes, for new rows, from fits to parts of the data."""

from itertools import compress
from typing import Any, Generic, Literal

import numpy as np
import pandas as pd

from lodim import forms
from lodim.checks import share
from lodim.classification import wilson
from lodim.design.batch import subset
from lodim.design.columns import as_float, as_levels
from lodim.design.frame import as_given, in_pandas, read_column, read_frame
from lodim.diagnostics.features import moved_means, shifts_in_words
from lodim.errors import ArgumentError, DataError, DataWarning, warn
from lodim.fitting import saved, storage
from lodim.report.tables import FitResult, Report, Table, listing, significant
from lodim.text import counted, join_words
from lodim.typing import Data, FilePath, FitT_co, NewLevels, Offset, RowValues
from lodim.uncertainty.conformity import ConformityScore, HeldOut

METHODS = ("cv+", "split", "jackknife+")


@forms.record
class Guarantee:
    """How conformal intervals or sets were made, which determines their guaranteed coverage."""

    method: str = forms.choice(*METHODS)
    n_fits: int = forms.size("F")  # fits, each without some rows
    n_units: int = forms.whole(least=1)  # held-out rows or groups
    unit: str = forms.choice("row", "group")
    chosen: tuple[str, ...] = forms.several(None)  # names of settings chosen by CV
    within: bool = forms.flags()  # whether each fit chose these settings from its own rows
    weighted: bool = forms.flags()  # whether rows have sampling weights
    by: str | None = forms.choice(None, "class")  # "class": each class has its own quantile

    def least(self, level):
        """Return the proven coverage at a nominal level (Barber et al. 2021, Theorems 1 and 4)."""
        alpha, n, K = 1.0 - level, self.n_units, self.n_fits
        if self.method == "split":
            return level
        slack = 0.0
        if self.method == "cv+":
            slack = min(2.0 * (1.0 - 1.0 / K) / (n / K + 1.0), (1.0 - K / n) / (K + 1.0))
        return max(0.0, 1.0 - 2.0 * alpha - slack)

    def made(self):
        """Return one line of text on the method, number of fits and held-out rows."""
        rows = counted(self.n_units, self.unit)
        return {
            "cv+": f"Method: CV+ with {self.n_fits} folds of {rows}",
            "jackknife+": f"Method: jackknife+, leaving out each of {rows}",
            "split": f"Method: split, one fit and {rows} held out",
        }[self.method]

    def words(self, level):
        """Return lines of text on the coverage that is guaranteed at a level."""
        new = "new rows" if self.unit == "row" else "rows of new groups"
        least = f"at least {_percent(self.least(level))} guaranteed"
        about = "" if self.method == "split" else f"about {_percent(level)} in practice"
        drawn = f"{self.unit}s" if self.unit == "row" else "whole groups"
        if self.by == "class":  # the theorem of cv+ counts all rows
            share, rows = about or least, "new rows of each class together"
        else:
            share, rows = ", ".join(filter(None, (least, about))), f"all {new} together"
        first = f"Coverage at level {level:g}: {share}, over {rows} (not within subgroups)"
        lines = [f"{first}, if they come from the same population as the {drawn} of the data"]
        if self.chosen and self.method != "split":
            how = "by each fit" if self.within else "once, on all rows, and fixed in the folds"
            lines.append(f"Chosen {how}: {join_words(self.chosen)}")
        if self.weighted:
            lines.append("Training rows have their weights, a new row has the mean weight")
        return lines


def _percent(share):
    return f"{100.0 * share:.1f}".removesuffix(".0") + "%"


COLUMNS = ("fit", "lower", "upper")
# Columns of tidy() -> headings in the printed table
LABELS = {"level": "Level", "class": "Class", "score": "Score", "width": "Mean width"}
LABELS |= {"size": "Mean size", "empty": "Empty sets"}
MANY_RECOGNIZED = 0.25  # share of recognized rows above which a warning is raised


@forms.record
class Conformal(FitResult, Generic[FitT_co]):
    """Prediction intervals or sets of classes, computed from fits to parts of the data.

    Attributes
    ----------
    fit : Fit
        Fit that makes the predictions: to all rows or, for "split", to the rows not held out.
    full : Fit or None
        Fit to all rows; None for method "split", which only has the fit in `fits`.
    fits : tuple of Fit
        Fits, each without one fold.
    held_out : HeldOut
        Score, fold and weight of each held-out row.
    says : ConformityScore
        Kind of conformity score, its level and seed.
    guarantee : Guarantee
        Method and coverage guarantee.
    table : DataFrame
        Result of tidy().

    See Also
    --------
    conformal, Bootstrap

    Examples
    --------
    >>> import lodim as ld
    >>> intervals = ld.conformal(ld.glm, "mpg ~ .", ld.data("autompg"))
    >>> intervals.level
    0.9
    """

    full: FitT_co | None = forms.optional(saved.ANY_FIT)
    fits: tuple[FitT_co, ...] = forms.several("F", saved.ANY_FIT)
    held_out: HeldOut = forms.part(HeldOut)
    says: ConformityScore = forms.part(ConformityScore)
    guarantee: Guarantee = forms.part(Guarantee)
    table: pd.DataFrame = saved.FRAME

    name = "conformal"

    def _check_fields(self):
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
        """Fit that makes the predictions: to all rows, or the only fit of method "split"."""
        return self.fits[0] if self.full is None else self.full

    @property
    def level(self) -> float:
        """Requested coverage on new rows."""
        return self.says.level

    @as_given
    def predict(
        self,
        data: Data,
        level: float | None = None,
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
    ) -> pd.DataFrame:
        """Return the interval, or the set of classes, for each row of `data`.

        Parameters
        ----------
        data : frame
            New data with the columns that the fits read.
        level : float, optional
            Coverage; default: the level of the call.
        offset : array (n,) or column name, optional
        new_levels : {"error", "missing"}, default="error"
            Treatment of new levels, as in `GlmFit.predict`.

        Returns
        -------
        DataFrame
            Columns fit, lower and upper; or one column per class, True if it is in the set, and
            .set, the set as text. NaN (None for sets) if an input is missing.

        Warns
        -----
        DataWarning
            If too few rows were held out for the level, or (not tested with groups) the mean of a
            feature in at least 20 new rows differs much from training.

        See Also
        --------
        coverage, lodim.bootstrap

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", cars[::2], m=2, lambda_=0.1)
        >>> intervals.predict(cars[1:4:2], level=0.8).round(0)
            fit  lower  upper
        1  14.0   10.0   18.0
        3  14.0   10.0   18.0
        """
        level = self._checked(level)
        answers, batch = self._answers(data, offset, new_levels)
        # Rows of a group are alike: few groups look like drift.
        moved = moved_means(self.fit, batch) if self.guarantee.unit == "row" else None
        if isinstance(moved, dict) and moved:
            what = "the new rows differ from the calibration rows, so that coverage is not "
            what += f"guaranteed: means changed, in standard deviations: {shifts_in_words(moved)}"
            cure = "measure coverage() on these rows, or calibrate with such rows"
            warn(f"{what}; {cure}", DataWarning)
        if self.says.of_classes:
            inside = self.held_out.sets(np.moveaxis(answers, 1, 2), level)
            levels = list(map(str, self.fit.levels))
            sets = ["{" + ", ".join(compress(levels, row)) + "}" for row in inside]
            values = np.column_stack([inside.astype(object), np.array(sets, object)])
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
        """Return coverage and mean size of intervals or sets for rows with known responses.

        Parameters
        ----------
        data : frame
            Complete rows that no fit has used; training rows would be covered too often.
        by : column name or array (n,), optional
            Groups of rows, one of missing values. Over 10 different numbers are cut into quarters.
        level : float, optional
            Coverage; default: the level of the call.
        offset : array (n,) or column name, optional
        new_levels : {"error", "missing"}, default="error"
            New levels raise an error, or their rows are dropped.

        Returns
        -------
        DataFrame
            Columns: n; coverage, the share of covered rows (weighted if weights are a column);
            std_error, conf_low and conf_high (Wilson's 95% interval for n independent rows); width
            of intervals; for classes mean size of sets, and empty, the share of empty sets.

        Raises
        ------
        ArgumentError, DataError
            If no row is complete, or there is no such column.

        Warns
        -----
        DataWarning
            If over a quarter of the rows seem to have been held out for calibration. There is no
            warning with "jackknife+", with over 1% ties, or for rows that the fit of "split" used.

        See Also
        --------
        predict, plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> intervals = ld.conformal(ld.glm, "mpg ~ .", cars[::2])
        >>> intervals.coverage(cars[1::2], by="origin")[["origin", "n"]]
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
        rows = []
        for i in groups.values():
            rows.append(measured(covered[i], weight[i], {k: v[i] for k, v in means.items()}))
        if not sum(row["n"] for row in rows):
            raise DataError("data must have a row without missing values to measure coverage")
        of_fits = np.array([self.says.scores(of_fit, y) for of_fit in answers])
        share_known = self.held_out.contains(of_fits)
        if share_known > MANY_RECOGNIZED:
            what = f"{share_known:.0%} of the rows were also used to calibrate"
            warn(f"{what}, so coverage is too high: measure it on new rows", DataWarning)
        index = None if by is None else pd.Index(groups, name=by if isinstance(by, str) else "by")
        frame = pd.DataFrame(rows, index=index)
        return frame if by is None else frame.reset_index()

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return scores and mean sizes of intervals or sets at several levels.

        Returns
        -------
        DataFrame
            Columns: level; class (with by="class"); score, the `level` quantile of held-out scores;
            width, mean width of held-out intervals; for classes size, mean size of sets, and empty,
            the share of empty sets.

        See Also
        --------
        summary

        Examples
        --------
        >>> import lodim as ld
        >>> intervals = ld.conformal(ld.glm, "mpg ~ .", ld.data("autompg"))
        >>> intervals.tidy().columns.tolist()
        ['level', 'score', 'width']
        """
        return self.table.copy()

    def plot(
        self, kind: Literal["intervals", "coverage"] | None = None, ax: Any = None, **arguments: Any
    ) -> Any:
        """Draw intervals, sets or coverage, and return the Axes.

        Parameters
        ----------
        kind : {"intervals", "coverage"}, default="intervals"
            "intervals": responses (red if uncovered) and intervals against the prediction; for
            classes the share of rows by size of their set. "coverage": coverage of groups.
        ax : Axes, optional
        **arguments
            `data`, new rows with known responses (required); `level`; `by`, column or array for
            "coverage" (required); `top`, largest number of rows in "intervals" (200). An unknown
            argument raises an ArgumentError.

        See Also
        --------
        coverage

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> ax = ld.conformal(ld.glm, "mpg ~ .", cars[::2]).plot(data=cars[1::2])
        """
        from lodim.uncertainty.plots import draw_conformal

        return draw_conformal(self, kind, ax, **arguments)

    def summary(self) -> Report:
        """Return a report: method, guarantee, and table of levels.

        See Also
        --------
        tidy, coverage

        Examples
        --------
        >>> import lodim as ld
        >>> intervals = ld.conformal(ld.glm, "mpg ~ .", ld.data("autompg"))
        >>> print(intervals.summary().as_text().splitlines()[0].strip())
        Conformal prediction
        """
        guarantee = self.guarantee
        header = {"Model": self.fit.name, "Response": self.fit.design.response.name}
        header |= {"Method": guarantee.method, "Fits": str(len(self.fits))}
        header |= {"Score": self.says.score}
        header[f"{guarantee.unit.title()}s held out"] = str(guarantee.n_units)
        notes = tuple(f"{line}." for line in (self.fit.call, *self._meaning()))
        return Report("Conformal prediction", tuple(header.items()), [self._shown()], notes)

    def save(self, path: FilePath) -> None:
        """Write all fits and scores to one file, which `lodim.load` reads. No code is stored.

        The file holds the same training data as the saved fits (see the model's help), and the
        score, fold and weight of each row, without row labels.

        Parameters
        ----------
        path : path
            An existing file is replaced in one step.

        Raises
        ------
        StoreError
            If the file cannot be written, or a fit cannot be stored.

        See Also
        --------
        lodim.load

        Examples
        --------
        >>> import lodim as ld
        >>> intervals = ld.conformal(ld.glm, "mpg ~ .", ld.data("autompg"))
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     intervals.save(f"{folder}/cars.lodim")
        """
        storage.write(path, self.name, forms.write(self))

    def __repr__(self):
        lines = [self.guarantee.made(), f"Score: {self.says.score}"]
        lines += self._meaning()
        return listing(f"conformal of {self.fit.call}", lines, self._shown())

    def _meaning(self):
        lines, family = self.guarantee.words(self.level), self.fit.family
        if family.name == "quantile":
            centre = f"their centre is the predicted quantile {family.quantile:g}"
            lines.append(f"Intervals are for a new response, not for its quantile; {centre}")
        size, score = self.table[self.says.size], self.table["score"]
        if np.isinf(size[np.isfinite(score)]).any():
            why = "a fit cannot predict some rows of its held-out fold"
            lines.append(f"Mean widths are infinite: {why}, such as those of a level only there")
        return lines

    def _shown(self):
        frame = self.table.rename(columns=LABELS)
        formats = dict.fromkeys(frame, significant) | {"Class": str, "Empty sets": ".1%"}
        return Table("", frame, {name: formats[name] for name in frame}, index=False)

    def _checked(self, level):
        """Return the coverage level to use; warn if too few rows were held out for it."""
        level = self.level if level is None else share("level", level)
        for name, held, _ in self.held_out.groups(self.fit.levels):
            if not np.isfinite(held.quantile(level)) and level > held.most:
                what, most = self.guarantee.unit, np.floor(1e3 * held.most) / 1e3
                n = self.guarantee.n_units if name is None else len(held.fold)
                of, effect = "", "intervals are infinite, and sets have all classes"
                if name is not None:
                    of, effect = f" of class {name!r}", "every set has this class"
                words = f"at most {most:g} for {n} held-out {what}s{of}"
                warn(f"level must be {words}, not {level:g}: {effect}", DataWarning)
        return level

    def _answers(self, data, offset, new_levels, response=False):
        """Return predictions by K fits for m rows that all fits can read, and a Batch of these.

        new_levels : "error" or "missing"
        response : whether to leave out rows without a response
        Predictions are low, high, step of intervals (K, 3, m), or scores of C classes (K, C, m)."""
        how = {"offset": offset, "new_levels": new_levels}
        full = self.fit._reader.apply(data, response=response, **how)
        rows = full.rows if not response else full.rows[~np.isnan(full.y)]
        batches = [fit._reader.apply(data, **how) for fit in self.fits]
        for batch in batches:
            rows = np.intersect1d(rows, batch.rows)
        full = _with_rows(full, rows)
        u = self.says.uniforms(self.fit, full)
        pairs = zip(self.fits, batches, strict=True)
        answers = np.array([self.says.of_rows(fit, _with_rows(b, rows), u) for fit, b in pairs])
        # Missing predictions become sets of all classes, or infinite intervals.
        if self.says.of_classes:
            return np.where(np.isnan(answers), -np.inf, answers), full
        unknown = np.isnan(answers).any(axis=1)
        for at, value in enumerate((-np.inf, np.inf, 1.0)):
            answers[:, at][unknown] = value
        return answers, full

    def _with_responses(self, data, level):
        """Return predict(data, level) as a pandas frame, and coded responses, of rows with both."""
        rows = self.fit._reader.apply(data, response=True)
        frame = in_pandas(self.predict)(data, level)
        y = np.full(len(frame), np.nan)
        y[rows.rows] = rows.y
        known = ~np.isnan(y) & frame.iloc[:, 0].notna().to_numpy()
        return frame[known], y[known]

    def _limits(self, answers, level):
        """Return the lower and the upper limits (m,) of prediction intervals of coverage `level`.

        answers : (K, 3, m) low, high, step of K fits; score t: low - t * step to high + t * step"""
        low, high, step = np.moveaxis(answers, 1, 0)
        lower = -self.held_out.upper(-low, step, level)
        upper = self.held_out.upper(high, step, level)
        crossed = lower > upper  # at low levels the limits may cross
        lower[crossed] = upper[crossed] = 0.5 * (lower[crossed] + upper[crossed])
        family = self.fit.family
        return np.clip(lower, family.least, family.most), np.clip(upper, family.least, family.most)


def _with_rows(batch, rows):
    if np.array_equal(batch.rows, rows):
        return batch
    return subset(batch, np.searchsorted(batch.rows, rows))


ERRORS = ("std_error", "conf_low", "conf_high")
FEW_VALUES = 10  # numbers with at most this many distinct values: each value is a group


def groups_of(data, by, batch):
    """Group the rows of a Batch; return a dict name -> positions of its rows.

    data : data from which the Batch was read
    by : column of `data`, or array, that defines the groups"""
    frame = read_frame(data)
    if isinstance(by, str):
        column = read_column(frame, by)
    else:
        column = read_column(read_frame({"by": by}), "by")
        n = len(column.codes if column.kind == "level" else column.values)
        if n != len(batch.index):
            raise ArgumentError(f"by has {n} entries, the data {len(batch.index)} rows")
    if column.kind == "number":
        values = as_float(column.values)[batch.rows]
        if len(np.unique(values[~np.isnan(values)])) > FEW_VALUES:
            # Many distinct numbers are divided at their quartiles.
            parts = pd.qcut(values, 4, duplicates="drop")
            names = [f"{one.left:.4g} to {one.right:.4g}" for one in parts.categories]
            return _by_label(names, parts.codes)
    column = as_levels(column)
    return _by_label(column.levels, column.codes[batch.rows])


def _by_label(levels, codes):
    levels = [*levels, "missing"]  # of code -1
    labels = np.array(levels, dtype=object)[codes]
    found = {level: np.flatnonzero(labels == level) for level in levels}
    return {level: rows for level, rows in found.items() if len(rows)}


def measured(covered, weight, means):
    """Return a dict of coverage, its standard error and limits, and weighted means.

    covered : (n,) bool, whether the interval or set contains the response
    means : dict name -> (n,) values to average"""
    n, total = int((weight > 0).sum()), weight.sum()
    if not total > 0:
        return {"n": n, "coverage": np.nan} | dict.fromkeys((*ERRORS, *means), np.nan)
    p, rows = weight @ covered / total, total**2 / (weight @ weight)  # effective number of rows
    errors = np.sqrt(p * (1.0 - p) / rows), *wilson(p, rows)
    averages = {name: np.average(values, weights=weight) for name, values in means.items()}
    return {"n": n, "coverage": p} | dict(zip(ERRORS, errors, strict=True)) | averages
