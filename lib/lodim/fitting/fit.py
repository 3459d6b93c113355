"""Fit: the result of a model function, with the methods that all models share."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from inspect import isfunction
from typing import Any, Self

import numpy as np
import pandas as pd

from lodim import family as families
from lodim import forms
from lodim.checks import flag, share
from lodim.classification import auc, macro_auc
from lodim.design.batch import subset
from lodim.design.design import Design
from lodim.design.frame import PANDAS, as_given, in_pandas, with_columns
from lodim.engine.blocks import available_threads
from lodim.errors import ArgumentError, DataWarning, warn
from lodim.family.family import hits
from lodim.fitting import saved, storage
from lodim.fitting.delegates import Delegates
from lodim.fitting.registry import model_function, model_module
from lodim.fitting.streamed import evaluation, streaming
from lodim.formula import formula
from lodim.report import phrases
from lodim.report import tables as report
from lodim.text import first_few, shown
from lodim.typing import Data, FilePath, NewLevels, Offset

FRAME_METHODS = {"predict", "augment", "evaluate", "tidy", "glance"}  # return frames
ROW_METHODS = {"predict", "augment"}  # methods that return one row per row of data
ARRAY = "<array>"  # replaces arrays in `arguments`, which a fit does not keep
ROUNDING = 1e-12  # explained shares below this are rounding errors


class Fit(Delegates):
    """Fitted model: the result of a model function.

    predict(), augment() and evaluate() return frames of the same package as their `data`. tidy()
    and glance() use the package of the training data. Other methods return pandas frames."""

    name: str
    _estimate_name: str  # axis label of tidy()'s estimates
    types: tuple[str, ...] = ("response", "link", "class", "prob")
    _without_offset: tuple[str, ...] = ()  # types of predictions that do not use the offset
    _predicts_steps = False  # whether predictions are step functions
    _n_free: int | None = None  # parameters estimated from the rows, if the model can count them
    _biased_by: str | None = None  # phrase: why estimates are biased
    family: Any  # Gaussian, Binomial, ...
    settings: Any  # frozen record of the model's arguments, all chosen
    estimates: Any  # frozen record of the model's estimates
    log: dict[str, Any]
    null_deviance: float

    # Saved fields of every fit, besides those of its class; see `forms`
    design: Design = saved.DESIGN  # what the formula learned from the data
    selection: pd.DataFrame | None = forms.optional(saved.FRAME)  # table of tried settings, if any
    call: str = forms.text()
    # Arguments of the call that `update` repeats, with chosen settings
    arguments: dict[str, Any] = saved.ARGUMENTS
    # Chosen settings, with the choice by each set of random folds
    chosen: dict[str, Any] = forms.entries(forms.several(None, saved.ANY_NUMBER))

    def __init__(self, **fields):
        vars(self).update(fields)
        self.family = families.family_of(self.design)

    # Provided by each model --------------------------------------------------------------------

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        forms.take_forms(cls)
        for name, method in vars(cls).items():
            # Functions shared by classes are renamed, so that tracebacks show `class.name`.
            while isfunction(method) and "." not in method.__qualname__:
                method.__module__, method.__name__ = cls.__module__, name
                method.__qualname__ = f"{cls.__qualname__}.{name}"
                method = getattr(method, "__wrapped__", None)
        for name in FRAME_METHODS & set(vars(cls)):
            method = vars(cls)[name]
            setattr(cls, name, as_given(streaming(method) if name in ROW_METHODS else method))

    @abstractmethod
    def _score(self, batch):
        """Return the linear predictors (n, K) of a Batch's rows, with the offset."""

    @property
    @abstractmethod
    def df(self) -> int:
        """Size of the model, such as its number of coefficients; each model defines it."""

    @abstractmethod
    def tidy(self) -> pd.DataFrame:
        """Return a data frame with one row per estimate, and at least columns term and estimate."""

    def _summary(self, full):
        """Return the Report for summary(full=full); by default it has a table of tidy()."""
        frame = self._of_tables().set_index("term").rename_axis(None)
        table = report.Table("Estimates", frame, dict.fromkeys(frame, report.significant))
        return report.Report(f"Results of {self.name}", phrases.header(self), [table], (), full)

    def _listing(self):
        """Return the lines of text and the Table that are shown when the fit is printed."""
        lines = [f"Family: {self.family.name}{phrases.levels(self)}", phrases.rows(self)]
        table = self._of_tables().set_index("term")[["estimate"]].rename_axis(None)
        return lines, report.Table("", table, {"estimate": report.significant})

    def _glance(self, sizes, ends):
        """Return the one-row frame of glance(): size and quality of the fit.

        sizes : dict column -> value, to add before the deviances; ends : dict to add at the end"""
        row = {"family": self.family.name, "n": self.n, "n_dropped": self.design.n_dropped}
        row |= {"p": len(self.design.names)} | sizes
        row |= {"deviance": self._deviance, "null_deviance": self._null_deviance}
        row |= {"dev_ratio": self.dev_ratio, "converged": self.converged}
        return pd.DataFrame([row | ends])

    def _complexity(self) -> dict[str, Any]:
        """Return the size of the model as a dict, such as {"features": 3, "learners": 10}."""
        return {"features": self.df}

    def _check_fields(self) -> None:
        """Raise ValueError unless the fields of a fit from a file are consistent."""
        saved.check_call(self)

    @property
    def _reader_columns(self):
        """Positions (q,) of the features that predictions need."""
        return np.arange(len(self.design.names))

    @property
    def _conformity(self):
        """Names of the conformity scores that `lodim.conformal` can use, the default first."""
        if self.levels is not None:
            return ("lac", "aps")
        return ("normalized", "absolute") if self.family.link == "log" else ("absolute",)

    def _spread_of_rows(self, batch):
        """Return standard deviations (n,) of the rows' responses, up to a constant factor."""
        return self.family.spread(self.family.mean(self._score(batch)))

    def _selected_features(self):
        """Return the positions (s,) of the features that the model selected."""
        raise NotImplementedError

    def _selected_views(self):
        """Return the model's views (sets of features), as a list of arrays of feature positions."""
        return []

    # Shared by all models ----------------------------------------------------------------------

    @property
    def _frame_kind(self):
        """Package of the frames that tidy() and glance() return, such as "polars"."""
        return self.design.frame_kind

    @property
    def levels(self) -> tuple[Any, ...] | None:
        """Classes of the response in order, or None for a numeric response."""
        return self.design.levels

    @as_given
    @streaming
    def predict(
        self,
        data: Data,
        type: Any = "response",  # each model says which types it has
        *,
        offset: Any = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Predict the response for the rows of `data`, in their order and with their index.

        Parameters
        ----------
        data : frame
            New data, with the columns of the formula's right side and the offset, if any.
        type : str, default="response"
            "response": mean (or quantile); for two classes the probability of the second class,
            for several classes one column per class. "link": linear predictors. "class": most
            probable class. "prob": probability per class. The attribute `types` lists all types.
        offset : array (n,) or column name, optional
        new_levels : {"error", "missing"}, default="error"
            Treatment of levels that the training rows lacked. Those that the training data declared
            as categories always count as missing.
        threshold : float, optional
            With type="class" and two classes, smallest probability for which the second class is
            predicted. If a missed case costs c times a false alarm, use 1 / (1 + c).

        Returns
        -------
        Series or DataFrame
            Same kind as `data`. Rows with missing input get NaN (None for classes; null in polars),
            unless the model was fitted with missing="indicator" or "keep".

        See Also
        --------
        augment, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.predict(cars[:2]).round(1).tolist()
        [15.4, 14.2]
        """
        return self._predict_rows(data, type, offset, new_levels, threshold)

    def _predict_rows(self, data, type, offset, new_levels, threshold):
        """Return the result of predict(), with the same arguments, as a pandas frame or Series."""
        if type in ("class", "prob") and self.levels is None:
            needs = "needs a response with classes; this response is numeric"
            raise ArgumentError(f"type={type!r} {needs}")
        if offset is None and type in self._without_offset and self.design.offset_given:
            offset = 0.0
        self._check_threshold(threshold, type)
        batch = self._reader.apply(data, offset=offset, new_levels=new_levels)
        if threshold is None:
            return self._in_all_rows(batch, *self._predict(batch, type))
        classes = self._classes(self._score(batch), threshold)
        return self._in_all_rows(batch, classes, self.design.response.name)

    def _check_threshold(self, threshold, type):
        if threshold is None:
            return
        if len(self.levels or ()) != 2:
            has = "is numeric" if self.levels is None else f"has {len(self.levels)} classes"
            needs = "threshold= needs a response with two classes"
            raise ArgumentError(f"{needs}; this response {has}")
        if type != "class":
            raise ArgumentError(f"threshold= needs type='class', not {type!r:.80}")
        share("threshold", threshold)

    def _classes(self, score, threshold=None):
        """Return the predicted classes (n,); None where linear predictors are NaN.

        score : (n, K) linear predictors
        threshold : least probability for the second of two classes; None predicts the likeliest"""
        if threshold is not None:
            probability = self.family.mean(score)
            code = (probability if probability.ndim == 1 else probability[:, 1]) >= threshold
        else:
            code = self.family.ranking(score).argmax(axis=1)
        classes = np.array(self.levels, dtype=object)[code.astype(int)]
        classes[np.isnan(score).any(axis=1)] = None
        return classes

    def _predict(self, batch, type):
        """Return predictions (n,) or (n, q) of a `type` for a Batch, and their name or q names."""
        score, name = self._score(batch), self.design.response.name
        if type == "class":
            return self._classes(score), name
        if type == "prob" and score.shape[1] == 1:
            p = self.family.mean(score)
            return np.column_stack([1.0 - p, p]), list(self.levels)
        if type == "link":
            several = score.shape[1] > 1
            return (score, self.family.score_names(self.levels)) if several else (score[:, 0], name)
        mean = self.family.mean(score)
        return mean, (name if mean.ndim == 1 else list(self.levels))

    def _in_all_rows(self, batch, values, names):
        """Return values of the complete rows as a Series or frame of all rows.

        values : (n,) or (n, columns)
        batch : Batch of the complete rows; other rows are NaN, or None among objects"""
        gap = None if values.dtype == object else np.nan
        full = np.full((len(batch.index), *values.shape[1:]), gap)
        full[batch.rows] = values
        # If rows are missing, classes stay objects, so that None does not become NaN; else they get
        # the dtype of their labels (numbers, bool).
        form = pd.Series if full.ndim == 1 else pd.DataFrame
        named = {"name": names} if full.ndim == 1 else {"columns": names}
        out = form(full, index=batch.index, dtype=full.dtype, **named)
        return out if out.isna().any(axis=None) else out.infer_objects()

    def coef(self) -> pd.Series:
        """Return the estimates of tidy() as a Series indexed by term.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.coef().round(4).to_dict()
        {'(Intercept)': -14.198, 'weight': -0.0067, 'model_year': 0.7566}
        """
        frame = self._of_tables()
        keys = [c for c in ("level", "term") if c in frame]
        return frame.set_index(keys)["estimate"]

    @as_given
    @streaming
    def augment(
        self,
        data: Data,
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
        output: FilePath | None = None,
    ) -> pd.DataFrame:
        """Return `data` with additional columns of predictions and residuals.

        Parameters
        ----------
        data : frame
            Rows with the columns of the formula, including the response, which may be missing.
        offset, new_levels
            As in `predict`.

        Returns
        -------
        DataFrame
            `data` with .fitted (one per class), .resid, .loss (deviance), and for classes .class.

        See Also
        --------
        predict, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.augment(cars[:2])[["mpg", ".fitted", ".resid"]].round(2)
            mpg  .fitted  .resid
        0  18.0    15.41    2.59
        1  15.0    14.15    0.85
        """
        return self._augment_rows(data, offset, new_levels)

    def _augment_rows(self, data, offset, new_levels):
        new = self._new_columns(data, offset, new_levels)
        return with_columns(data, new, PANDAS) if isinstance(data, pd.DataFrame) else new

    def _new_columns(self, data, offset, new_levels):
        """Return the columns that augment() adds to the rows of `data`."""
        batch = self._reader.apply(data, offset=offset, response=True, new_levels=new_levels)
        return self._columns_of(batch)

    def _columns_of(self, batch):
        """Return the columns that augment() adds to all rows of a Batch with the response."""
        known, score = self._answered(batch)
        new = {
            ".fitted": self._in_all_rows(batch, *self._predict(batch, "response")),
            ".resid": self._in_all_rows(known, self.family.residual(known.y, score), ".resid"),
            ".loss": self._in_all_rows(known, self.family.deviance(known.y, score), ".loss"),
        }
        if self.levels is not None:
            new[".class"] = self._in_all_rows(batch, *self._predict(batch, "class"))
        if new[".fitted"].ndim == 2:
            fitted = new.pop(".fitted")
            new = {f".fitted[{k}]": fitted[k] for k in fitted} | new
        return pd.DataFrame(new, index=batch.index)

    @as_given
    def evaluate(
        self, data: Data, *, offset: Offset | None = None, new_levels: NewLevels = "error"
    ) -> pd.DataFrame:
        """Return mean losses and other measures of the predictions for data with known responses.

        Parameters
        ----------
        data : frame
            Rows without a response or a prediction are ignored.
        offset, new_levels
            As in `predict`.

        Returns
        -------
        DataFrame
            One row. n: number of rows of positive weight. deviance: mean per row. dev_ratio:
            explained share of the null deviance of `data` (D2; for squared error R2; NaN if the
            response is constant). For classes also accuracy (a tie of k classes counts 1/k),
            log_loss and auc (NaN for one class; for several, the mean of each against the others).

        Raises
        ------
        DataError
            If no row is complete, or a column is missing or of another kind.

        See Also
        --------
        predict, augment

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.evaluate(cars).round(3)
             n  deviance  dev_ratio
        0  398    11.708      0.808
        """
        return evaluation(self, data, offset, new_levels)

    def _measures(self, batch, score):
        """Return measures other than row means, like {"auc": 0.9}; score : (n, K) predictors."""
        if self.levels is None:
            return {}
        if score.shape[1] == 1:
            return {"auc": auc(batch.y == 1, score[:, 0], batch.weight)}
        return {"auc": macro_auc(batch.y, self.family.mean(score), batch.weight)}

    def _losses(self, batch, score):
        """Return a dict name -> losses (n,) for evaluate(); score : (n, K) linear predictors."""
        deviance = self.family.deviance(batch.y, score)
        if self.levels is None:
            return {"deviance": deviance}
        hit = hits(batch.y, self.family.ranking(score))
        return {"deviance": deviance, "accuracy": hit, "log_loss": deviance / 2.0}

    @as_given
    def glance(self) -> pd.DataFrame:
        """Return one row: family, n, n_dropped, p, df, mean deviances, dev_ratio, converged.

        See Also
        --------
        tidy, summary
        """
        return self._glance({"df": self.df}, {})

    @property
    def converged(self) -> bool:
        """Whether the optimizer met its tolerance in every stage."""
        return bool(np.all(self.log["converged"]))

    @property
    def dev_ratio(self) -> float:
        """Explained share of the null deviance; NaN if the null deviance is zero."""
        return float(self._explained(self._deviance))

    @property
    def _deviance(self):
        return self.log["deviance"][-1]

    @property
    def _threads(self):
        return self.settings.threads or available_threads()

    @property
    def _engine(self):
        # Moving new rows to a GPU takes longer than computing on the CPU, so only on request.
        return "cuda" if self.settings.engine == "cuda" else "cpu"

    @property
    def _null_deviance(self):
        return self.null_deviance

    def _explained(self, deviance):
        """Return the explained share of the null deviance, for one deviance or an array of them."""
        with np.errstate(over="ignore"):
            share = 1.0 - np.divide(deviance, self._null_deviance or np.nan)
        return np.where(np.abs(share) < ROUNDING, 0.0, share)[()]

    def _held_out_deviance(self):
        """Return the cross-validated deviance of the tried settings closest to those of the fit.

        The result is None without cross-validation, or if its loss was not the deviance."""
        return None if self.selection is None else saved.nearest_loss(self.selection, self.settings)

    def _answered(self, batch):
        """Return a Batch of the rows with response and prediction, and their linear predictors."""
        score = self._score(batch)
        known = ~(np.isnan(batch.y) | np.isnan(score).any(axis=1))
        if known.all():
            return batch, score
        at = np.flatnonzero(known)
        return subset(batch, at), score[at]

    def summary(self, *, full: bool = False) -> report.Report:
        """Return a report that prints as text, as HTML in notebooks, or as LaTeX by `as_latex()`.

        Parameters
        ----------
        full : bool, default=False
            Show all rows of long tables; by default 15 rows of tables with more than 30 rows.

        See Also
        --------
        tidy, glance, report

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> print(fit.summary().as_text().splitlines()[2].strip())
        Response:                          mpg  Null deviance:                   24253
        """
        flag("full", full)
        told = self._summary(full)
        said = [f"{line}." for line in phrases.dropped(self)] + phrases.missing(self.design)
        said += phrases.sampled(self) + phrases.parameters(self)
        said += phrases.wild(self.design) + phrases.heavy_tails(self.design)
        header, note = phrases.with_held_out(self, told.header)
        return replace(told, header=header, notes=(*told.notes, *note, *said))

    @property
    def model(self) -> Callable[..., Self]:
        """Function that fits this model, such as `lodim.gbmap`."""
        return model_function(self.name)

    @property
    def _penalties(self):
        return tuple(model_module(self.name).MODEL.penalties)

    def update(self, data: Data, **changes: Any) -> Self:
        """Fit the same model to `data`, with some arguments or the formula changed.

        Parameters
        ----------
        data : frame
        changes
            Arguments of the model function. As in R, dots in `formula=". ~ . - x"` stand for the
            sides of this fit's formula; in "y ~ .", without a left dot, for all columns. Arrays of
            the call must be given again (else an ArgumentError), since a fit does not keep them.

        Returns
        -------
        Fit
            Fit of the same class.

        See Also
        --------
        lodim.cv

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.update(cars, formula=". ~ . + origin").design.names
        ('weight', 'model_year', 'origin[Japan]', 'origin[USA]')
        """
        arguments = {"formula": self.design.formula} | self._call_arguments(changes)
        arguments["formula"] = formula.update(self.design.formula, arguments["formula"])
        fit = self.model(data=data, **arguments)
        known = getattr(fit, "levels", None) or self.levels or ()  # several responses: no levels
        lost = [level for level in self.levels or () if level not in known]
        name = getattr(self.design.response, "name", None)
        if lost and name == getattr(fit.design.response, "name", None):
            what = f"no row of data has {name} = {first_few(lost)}"
            warn(f"{what}, unlike those of the old fit; the new fit never predicts it", DataWarning)
        return fit

    def _call_arguments(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Return the call's arguments with changes; ArgumentError if an array was not kept."""
        arguments = self.arguments | changes
        for family, (name, *_) in families.PARAMETERS.items():
            if name not in changes and arguments.get("family") != family:
                arguments.pop(name, None)
        for name, value in arguments.items():
            if isinstance(value, str) and value == ARRAY:
                what = f"{name} was an array, a function or an object, which a fit does not store"
                raise ArgumentError(f"{what}: give {name}= again")
        return arguments

    def _of_tables(self):
        """Return the estimates to print and for coef(), in pandas: tidy() unless overridden."""
        return in_pandas(self.tidy)()

    def _comparable(self, reference):
        """Return tidy() of this bootstrap replicate, aligned with the original fit `reference`."""
        return self._of_tables()

    def save(self, path: FilePath) -> None:
        """Write the fit to one file, which `lodim.load` reads. No code is stored.

        Every file holds column names, levels, means, standard deviations and spline boundaries.
        All except `costnet` also hold parts of training rows: `gbmap` those for neighbours (none
        with control={"reference_rows": 0}), `glm` those for diagnostic plots (none with
        control={"diagnostic_rows": 0}), `proset` the prototypes, `melm` the coordinates, `ripr` all
        rows. Row labels come from the data's index; reset_index() removes them.

        Parameters
        ----------
        path : path
            An existing file, or the target of a link, is replaced in one step and keeps its mode.

        Raises
        ------
        StoreError
            If the file cannot be written, or the fit holds an object that cannot be stored.

        See Also
        --------
        lodim.load

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/cars.lodim")
        """
        storage.write(path, self.name, forms.write(self))

    def __repr__(self):
        lines, *tables = self._listing()
        lines = [*lines, *phrases.held_out(self), *phrases.dropped(self)]
        return report.listing(self.call, lines, *tables)

    def _repr_html_(self):
        return self.summary().as_html()


forms.take_forms(Fit)


def check_fit(fit):
    """Raise ArgumentError unless `fit` is a Fit. The fits of several responses are not a Fit."""
    if not isinstance(fit, Fit):
        words = "a fit of one response, such as gbmap() returns"
        cure = f": give {fit.__name__}(formula, data)" if isfunction(fit) else ""
        raise ArgumentError(f"the first argument must be {words}, not {shown(fit)}{cure}")
