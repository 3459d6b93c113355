"""Conformal prediction: intervals and sets for new rows, with a guarantee that needs no model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import flag, one_of, share, whole
from lodim.design.batch import subset
from lodim.design.frames import as_given
from lodim.errors import ArgumentError, DataError, DataWarning, warn
from lodim.fitting import storage
from lodim.fitting.spec import SPREAD, in_memory, prepare, with_own
from lodim.report.tables import Report, Table, listing, significant
from lodim.selection.cv import side_by_side
from lodim.selection.folds import assign, count_units
from lodim.uncertainty import conformal_state, scores
from lodim.uncertainty.coverage import groups_of, measured
from lodim.uncertainty.guarantee import METHODS, Guarantee
from lodim.uncertainty.part_fits import as_read, fit_parts, settled
from lodim.uncertainty.sayings import FROM_SPREAD, OF_CLASSES, OF_NUMBERS, Sayings
from lodim.uncertainty.scores import HeldOut

FOLDS = 10  # of cv+
LEVELS = (0.8, 0.9, 0.95)  # that print shows
COLUMNS = ("fit", "lower", "upper")
LEAST = {"poisson": 0.0, "gamma": 0.0}  # below which no response of a family can be


def conformal(
    model: Callable,
    formula: str,
    data: Any,
    *,
    level: float = 0.9,
    method: str = "cv+",
    score: str | None = None,
    folds: Any = None,
    groups: Any = None,
    reselect: bool = False,
    seed: int = 0,
    progress: bool = False,
    **arguments: Any,
) -> "Conformal":
    """Make intervals (of classes: sets) that hold the responses of a share `level` of new rows.

    They rest on residuals of rows that were held out, not on a distribution of the response. What
    is promised is *marginal* coverage: of a share of all new rows, if they are drawn as the rows of
    `data` were (are exchangeable with them). It is no promise for each kind of row: `coverage` by a
    column shows how these differ.

    Parameters
    ----------
    model : model function
        Such as `lodim.gbmap`.
    formula, data, **arguments
        As the model takes them. Weights are taken for those of a sample: rows count in quantiles as
        they weigh, and a new row as the mean of them; the guarantee is then approximate.
    level : float
        Share of new rows that is to be covered. `predict` takes others too.
    method : {"cv+", "split", "jackknife+"}
        "cv+": a fit without each of `folds` parts of the rows; covered is about `level`, by theorem
        at least 1 - 2 alpha, alpha = 1 - level, less a little (Barber et al. 2021, Theorem 4: what
        print says). "jackknife+": a fit without each row; at least 1 - 2 alpha, about `level`.
        "split": one fit without a part of the rows, which are the measure (Lei et al. 2018); at
        least `level`, by wider intervals, since fewer rows are fitted.
    score : str, optional
        What of a held-out row is kept. Of a numeric response "absolute": the residual, and
        intervals of about one width (default of most models); "normalized": over the standard
        deviation that the model has for the row (default of proset; of glm's counts and gamma);
        "quantile": the distance from the model's quantiles (Romano, Patterson and Candes 2019;
        default of proset with loss="density"), those of `level`, from which intervals of other
        levels are made too. Of classes "lac" (default): one less the probability of the class,
        which makes the smallest sets; "aps": the probability of all classes down to it (Romano,
        Sesia and Candes 2020), whose sets are larger, and more alike in coverage from row to row.
        It is randomized, by a number that depends on the features of a row and on `seed` alone: the
        same row has the same set always.
    folds : int or array (n,), optional
        Of "cv+", the number of folds (10), drawn at random within classes, or the fold of each row
        of `data`. Of "split", one of so many is held out: half of the rows (2) by default.
    groups : column name or array (n,), optional
        Rows of equal values, such as those of a patient, are held out together. What must be
        exchangeable is then groups: covered is a row drawn at random from a new group. All rows of
        a group count together as one (Lee, Barber and Willett 2023), so that 90 % need 9 groups.
    reselect : bool
        Of "cv+" and "jackknife+", whether each fit chooses the settings that are open for itself.
        By default they are chosen once, on all rows, and held, which costs a tenth. Held-out rows
        then had a part in the choice, and new rows have none: the theorem does not count that, and
        held-out residuals are a little too small where much is chosen by few rows. With "split"
        settings are always chosen without the rows held out.
    seed : int
        Of the folds, and of the model where it has one.
    progress : bool
        Show a progress bar (needs tqdm).

    Returns
    -------
    Conformal

    Raises
    ------
    ArgumentError
        An argument is out of range, the model has no such score, or the formula no response.
    FormulaError, DataError
        As of the model.

    See Also
    --------
    Conformal, bootstrap

    Notes
    -----
    With mu_k the fit without fold k, R_i the residual of row i by the fit without its own fold k(i)
    and q+ the ceil((1 - alpha)(n + 1))-th smallest value, q- the floor(alpha (n + 1))-th, the
    interval is q-(mu_k(i)(x) - R_i) to q+(mu_k(i)(x) + R_i): it grows where the fits disagree.
    Other scores are nested bands in the place of mu +- R (Gupta, Kuchibhotla and Ramdas 2022). A
    class is in the set where fewer than (1 - alpha)(n + 1) held-out scores are below its own by the
    fits k(i) (Romano, Sesia and Candes 2020). A set may be empty: no class is as probable as is
    usual; at a higher level it is not.

    A level above n / (n + 1) rules nothing out: intervals are infinite, with a warning. Where a fit
    has no answer for a row it is infinitely far off.

    A saved file holds, beside the fits, which hold what those of the model do, the score and the
    fold of each row.

    References
    ----------
    Barber, Candes, Ramdas & Tibshirani (2021). Predictive inference with the jackknife+. Annals of
    Statistics 49.
    Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018). Distribution-free predictive inference for
    regression. JASA 113.
    Romano, Patterson & Candes (2019). Conformalized quantile regression. NeurIPS.
    Sadinle, Lei & Wasserman (2019). Least ambiguous set-valued classifiers with bounded error
    levels. JASA 114.
    Romano, Sesia & Candes (2020). Classification with valid and adaptive coverage. NeurIPS.
    Gupta, Kuchibhotla & Ramdas (2022). Nested conformal prediction and quantile out-of-bag ensemble
    methods. Pattern Recognition 127.
    Lee, Barber & Willett (2023). Distribution-free inference with hierarchical data.

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> known, new = cars[::2], cars[1::2]
    >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=3, lambda_=0.1)
    >>> intervals.predict(new.head(2)).round(1)
        fit  lower  upper
    1  14.9    9.5   20.1
    3  15.4   10.1   20.5
    >>> intervals.coverage(new)[["n", "coverage", "width"]].round(2)
         n  coverage  width
    0  199      0.94  10.49
    """
    level = share("level", level)
    one_of("method", method, METHODS)
    flag("reselect", reselect)
    seed = whole("seed", seed, least=0)
    arguments = with_own(model, arguments, seed=seed) | {"progress": progress}
    problem = prepare(model, formula, data, arguments, groups=groups)
    problem = replace(problem, batch=in_memory("conformal()", problem.batch))
    if problem.design.response is None:
        raise ArgumentError(
            f"conformal needs a response on the left of '~'; the formula is {formula!r}"
        )
    if score is not None:
        one_of("score", score, OF_CLASSES if problem.design.levels else OF_NUMBERS)
    fold = _folds(problem, method, folds, seed)
    choose = reselect or method == "split"
    full, fits, parts = _fits(problem, fold, method, score, choose)
    says = Sayings(_known_score(full, score), level, seed)
    held, table = _held_out(problem, fold, says, full, fits, parts)
    unit = "row" if problem.batch.units is None else "group"
    n_units = count_units(subset(problem.batch, np.flatnonzero(fold >= 0)))
    chosen = tuple(full.chosen) if full.selection is not None else ()
    weighted = problem.batch.weights is not None
    told = Guarantee(method, len(fits), n_units, unit, chosen, choose, weighted)
    return Conformal(full, fits, held, says, told, table)


def _folds(problem, method, folds, seed):
    """Fold of each row (n,), below zero of those that no fit leaves out."""
    batch, n_units = problem.batch, count_units(problem.batch)
    if method != "cv+" and np.ndim(folds):
        raise ArgumentError(f"folds of method={method!r} must be a number, not an array")
    if method == "jackknife+" and folds is not None:
        raise ArgumentError("folds are of method='cv+' and 'split'; 'jackknife+' leaves out one")
    if n_units < 2:
        what = "row" if batch.units is None else "group"
        raise DataError(f"a single {what} counts: nothing can be held out")
    if folds is None:
        folds = {"cv+": min(FOLDS, n_units), "split": 2, "jackknife+": n_units}[method]
    fold = assign(batch, folds, problem.design.levels, seed)
    return np.where(fold > 0, -1, fold) if method == "split" else fold


def _fits(problem, fold, method, score, choose):
    """The fit whose predictions are shown, those without each fold, and the rows held out of each.

    Of "split" it is the one fit that there is.
    """
    how = {"use": lambda fit, rows: (fit, rows), "what": "conformal", "choose": choose}
    held_out = [fold == k for k in range(fold.max() + 1)]
    if method == "split":
        found = fit_parts(problem, held_out, light=False, jobs=1, **how)
        return found[0][0], *zip(*found, strict=True)
    full = problem.spec.fit(problem)
    light = SPREAD if _known_score(full, score) in FROM_SPREAD else True
    asked = problem if choose else settled(problem, full)
    found = fit_parts(asked, held_out, light=light, jobs=side_by_side(problem), **how)
    return full, *zip(*found, strict=True)


def _known_score(fit, score):
    """The score that is asked for, or the default of the fit's model."""
    known = fit._conformity
    if score is None:
        return known[0]
    if score not in known:
        raise ArgumentError(
            f"{fit.name} has no score {score!r} for this response; it has: {', '.join(known)}"
        )
    return score


def _held_out(problem, fold, says, full, fits, parts):
    """The HeldOut of the rows that count, and a table of what levels come to."""
    at, answers, y = [], [], []
    for k, (fit, rows) in enumerate(zip(fits, parts, strict=True)):
        where = np.flatnonzero(fold == k)
        keyed = rows if fit is full else as_read(full, subset(problem.batch, where))
        answers.append(says.of_rows(fit, rows, says.uniforms(full, keyed)))
        at.append(where)
        y.append(rows.y)
    at, answers, y = np.concatenate(at), np.concatenate(answers, axis=1), np.concatenate(y)
    known = np.flatnonzero(np.isin(at, problem.batch.positive_weight))
    at, answers, y = at[known], answers[:, known], y[known]
    batch = subset(problem.batch, at)
    weights = scores.weights(batch.row_weights, batch.units)
    held = HeldOut(fold[at], says.scores(answers, y), weights)
    levels = sorted({*LEVELS, says.level})
    rows = [(one, held.quantile(one), says.mean_size(answers, held, one)) for one in levels]
    return held, pd.DataFrame(rows, columns=["level", "score", says.size])


@dataclass(frozen=True, repr=False)
class Conformal:
    """Intervals or sets of classes for new rows, by fits to parts of the data.

    Attributes
    ----------
    fit : Fit
        To all rows (of method "split" to those that were not held out); its predictions are shown.
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

    fit: Any
    fits: tuple[Any, ...]
    held_out: HeldOut
    says: Sayings
    guarantee: Guarantee
    table: pd.DataFrame

    name = "conformal"

    @property
    def level(self) -> float:
        """Share of new rows that is to be covered."""
        return self.says.level

    @property
    def _frame_kind(self):
        return self.fit._frame_kind

    @as_given
    def predict(
        self, data: Any, level: float | None = None, *, offset: Any = None,
        new_levels: str = "error",
    ) -> pd.DataFrame:  # fmt: skip
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
            There are too few rows held out for the level, so that nothing is ruled out.

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
        if self.says.of_classes:
            inside = self.held_out.sets(np.moveaxis(answers, 1, 2), level)
            values = np.column_stack([inside.astype(object), self._words(inside)])
            return self.fit._spread(batch, values, [*self.fit.levels, ".set"])
        limits = self._limits(answers, level)
        shown = self.fit.family.mean(self.fit._score(batch))
        return self.fit._spread(batch, np.column_stack([shown, *limits]), list(COLUMNS))

    @as_given
    def coverage(
        self,
        data: Any,
        by: Any = None,
        *,
        level: float | None = None,
        offset: Any = None,
        new_levels: str = "error",
    ) -> pd.DataFrame:
        """How many responses of some rows are covered, and how much is left open.

        Parameters
        ----------
        data : frame
            With known responses, and of rows that no fit has seen; those of training are covered
            too often. Rows without a response or an input are left out.
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
            many independent rows; width, the mean of the intervals, or size, of the sets.

        Raises
        ------
        ArgumentError, DataError
            No row is complete, or there is no such column.

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
        else:
            low, high = self._limits(answers, level)
            covered, size = (low <= y) & (y <= high), high - low
        weight = batch.row_weights
        groups = {None: np.arange(len(y))} if by is None else groups_of(data, by, batch)
        rows = [measured(covered[i], size[i], weight[i], self.says.size) for i in groups.values()]
        if not sum(row["n"] for row in rows):
            raise DataError("no complete row to measure coverage on")
        index = None if by is None else pd.Index(groups, name=by if isinstance(by, str) else "by")
        frame = pd.DataFrame(rows, index=index)
        return frame if by is None else frame.reset_index()

    @as_given
    def tidy(self) -> pd.DataFrame:
        """What some levels come to.

        Returns
        -------
        DataFrame
            level; score, that of held-out rows which the share `level` does not exceed; width, the
            mean of their intervals by the fits without them, or size, of their sets.

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

    def plot(self, kind: str | None = None, ax=None, **arguments: Any):
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
        from lodim.uncertainty import conformal_plots

        return conformal_plots.draw(self, kind, ax, **arguments)

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
        header = [
            ("Model", self.fit.name), ("Response", self.fit.design.response.name),
            ("Method", self.guarantee.method), ("Fits", str(len(self.fits))),
            ("Score", self.says.score), (f"{self.guarantee.unit.title()}s held out",
            str(self.guarantee.n_units)),
        ]  # fmt: skip
        notes = tuple(f"{line}." for line in (self.fit.call, *self.guarantee.words(self.level)))
        return Report("Conformal prediction", header, [self._shown()], notes)

    def save(self, path: str | PathLike) -> None:
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
        storage.write(path, self.name, conformal_state.to_state(self))

    def __repr__(self):
        lines = [self.guarantee.made(), f"Score: {self.says.score}"]
        lines += self.guarantee.words(self.level)
        return listing(f"conformal of {self.fit.call}", lines, self._shown())

    def _repr_html_(self):
        return self.summary().as_html()

    def _shown(self):
        frame = self.table.rename(columns={"level": "Level", "score": "Score"})
        frame = frame.rename(columns={"width": "Mean width", "size": "Mean size"}).set_index(
            "Level"
        )
        return Table("", frame.rename_axis(None), dict.fromkeys(frame, significant))

    def _checked(self, level):
        """The level asked for, with a warning where there are too few rows for it."""
        level = self.level if level is None else share("level", level)
        if not np.isfinite(self.held_out.quantile(level)) and level > self.held_out.most:
            what, most = self.guarantee.unit, self.held_out.most
            warn(
                f"level {level:g} rules nothing out: it needs more {what}s held out than "
                f"{self.guarantee.n_units}, whose highest level is {np.floor(1e3 * most) / 1e3:g}",
                DataWarning,
            )
        return level

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
        frame = self.predict(data, level)
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
        least = LEAST.get(self.fit.family.name, -np.inf)
        return np.maximum(lower, least), np.maximum(upper, least)

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
