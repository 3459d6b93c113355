"""compare(): held-out losses of several models and baselines on the same folds."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim import family as families
from lodim.checks import as_seed, as_threads, flag, one_of
from lodim.comparison import inference, report
from lodim.comparison.candidates import Candidate, candidates
from lodim.comparison.held_out import COUNTS, Record, Task, fit_all, hold_out, null_scores
from lodim.comparison.inference import LEVEL, Rows
from lodim.design.batch import with_positive_weight
from lodim.design.design import Design
from lodim.design.frame import as_given, read_frame
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError, warn
from lodim.family.family import hits
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import warn_of_values
from lodim.formula.formula import parse
from lodim.report.tables import Report, Summarized
from lodim.selection.folds import as_folds, assign
from lodim.text import as_literal
from lodim.typing import Data, Family, NumberFamily, Offset, RowValues, Values

# A model function or its name, a pair of these and arguments, or a function of formula and data.
OneModel: TypeAlias = str | Callable[..., Any] | tuple[str | Callable[..., Any], Mapping[str, Any]]


@with_known_arguments
def compare(
    formula: str,
    data: Data,
    models: Sequence[OneModel] | Mapping[str, OneModel] | None = None,
    *,
    family: Family | NumberFamily | Literal["negative_binomial", "ordinal"] | None = None,
    power: float | None = None,
    quantile: float | None = None,
    folds: int | Values = 10,
    baselines: bool = True,
    groups: RowValues | None = None,
    weights: RowValues | None = None,
    offset: Offset | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> "Comparison":
    """Compare models and baselines on the same held-out rows.

    For each fold, each model is called once with the rows outside the fold, within which it chooses
    settings and features. So a comparison takes as long as `folds` calls of every model.

    Parameters
    ----------
    formula, data
        Formula and data, in memory (no files or lazy frames). Rows without a response, weight,
        offset or group are left out. Each model treats missing features as in a default call (glm
        and the models of scikit-learn use missing="indicator").
    models : list or dict, optional
        Model functions or their names; default: all models of lodim that suit the response. A dict
        by label may also have pairs (function, dict of arguments), and functions (formula, data)
        that return a fit and get no weights, offset or groups.
    family : str, optional
        Family of the response, by default as of the models: "poisson", "gamma", "tweedie" (with
        `power`), "quantile" (with `quantile`), "huber" or "ordinal". The deviance of this family
        compares all models. Models of lodim that do not have this family are listed as failed.
    power, quantile : float, optional
    folds : int or array (n,), default=10
        Number of random folds, balanced by class; or the fold of each row of `data`.
    baselines : bool, default=True
        Whether to add baselines: "null", which predicts the mean or the class shares of the
        training rows; "glm"; and, if scikit-learn is installed, "boosting" (histogram gradient
        boosting with defaults) and "forest" (500 trees; for classes also a tree without splits, so
        that no probability is 0). Both use lodim's features, in which categories are columns.
    groups : column name or array (n,), optional
        Rows with equal values, such as all rows of one patient, are held out together, also in
        inner folds of a model. Standard errors treat groups as sampling units.
    weights : column name or array (n,), optional
        Row weights, used in the fits and in all mean losses.
    offset : column name or array (n,), optional
        Known part of the linear predictor, also of the baselines "null" and "glm". Models without
        offsets, such as those of scikit-learn, are listed as failed.
    seed : int, default=0
        Seed of the folds and of the models.
    threads : int, optional
        Number of threads per model; default: all. With at most 2,000 rows, a comparison of more
        than 3 seconds uses as many processes instead, with one thread each and equal results.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    Comparison
        Table of losses, with each model's difference from the best model and its interval.

    Raises
    ------
    FormulaError, DataError
        If the data cannot be read, a fold holds out a whole class, or no model could be fitted.
    ArgumentError
        If an argument is out of range, or `models` has a fit (which has seen the held-out rows).

    Warns
    -----
    DataWarning
        If values are far outside all others, or counts are not whole numbers. The Comparison's
        fits to all rows do not repeat these warnings. Warnings of fits to folds are not shown.

    See Also
    --------
    Comparison, cv

    Notes
    -----
    Knots, levels, scales and imputed means are computed from the training rows of each fold. Only
    the classes of the response come from all rows.

    A model that refuses the data, or fails in a fold, is listed with the reason. A row that a model
    predicts as NaN gets the prediction of the null model; the printed table counts these rows. The
    table also names rows with 25% or more of a model's loss, such as rows with wild values.

    The training rows of folds overlap, so the usual standard errors are too small. Variances over
    rows (or groups) are multiplied by 1 + sum_k W_k / (1 - W_k), with W_k the share of fold k
    (Nadeau and Bengio 2003). The model confidence set at 5% (Hansen, Lunde and Nason 2011)
    determines which models are significantly worse than the best, for all pairs at once. Mean
    losses that differ by less than 1e-6 relatively are ties. Intervals and p-values are
    conservative; the vignette on uncertainty has the results of simulations.

    References
    ----------
    C. Nadeau and Y. Bengio (2003), Inference for the generalization error, Machine Learning 52.
    P. R. Hansen, A. Lunde and J. M. Nason (2011), The model confidence set, Econometrica 79.

    Examples
    --------
    >>> import lodim as ld
    >>> calls = {"two": (ld.gbmap, {"m": 2, "lambda_": 0.1}), "linear": "glm"}
    >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
    >>> table.tidy()["model"].tolist()
    ['two', 'linear']
    """
    flag("baselines", baselines)
    if family is not None:
        one_of("family", family, [name for name in families.FAMILIES if name != "none"])
    seed, folds = as_seed(seed), as_folds(folds)
    if threads is not None:
        threads = as_threads(threads)
    inputs = RowInputs(weights=weights, offset=offset, groups=groups)
    parse(formula)  # errors of a formula come first
    frame = read_frame(data)  # raises errors about files and lazy frames without reading them
    parameters = {"power": power, "quantile": quantile}
    call = {"family": family, **parameters}
    how = {"family": family, "parameters": parameters, "missing": "indicator"}
    with warnings.catch_warnings(record=True) as given:
        design, batch = Design.learn(formula, frame, inputs, **how)
        design.check_response("compare")
        task_family, batch = families.family_of(design), with_positive_weight(batch)
        warn_of_values(design, batch, task_family)
    for one in given:
        warn(str(one.message), one.category)
    chosen = candidates(models, baselines, design.family, design.n_incomplete > 0)
    fold = assign(batch, folds, design.levels, seed)
    told = [str(one.message) for one in given]
    rows = inputs, design, batch, fold, told
    task = Task(formula, data, *rows, task_family, parameters, seed, threads)
    records = hold_out(chosen, task)
    if not any(record.scores is not None for record in records.values()):
        label, record = next(iter(records.items()))
        raise DataError(f"no model could be fitted; {label}: {record.reason}")
    return Comparison(_call(formula, models, call, folds, baselines, inputs), task, chosen, records)


def _call(formula, models, options, folds, baselines, inputs):
    """Return a compare() call as text; options : dict of further arguments; inputs : RowInputs."""
    parts = [] if models is None else [f"models={report.listed(models)}"]
    parts += [] if np.ndim(folds) == 0 and folds == 10 else [f"folds={report.short(folds)}"]
    parts += [] if baselines else ["baselines=False"]
    given = options | vars(inputs)
    parts += [f"{name}={report.short(v)}" for name, v in given.items() if v is not None]
    return f"compare({as_literal(formula)}, data=df{''.join(', ' + part for part in parts)})"


@dataclass(repr=False)
class Comparison(Summarized):
    """Held-out losses of several models, and the differences between them.

    Attributes
    ----------
    call : str
    failed : dict of str to str
        Reason for each model that has no losses, by label.
    losses : DataFrame
        Held-out deviance of each used row of the data (rows) by each model (columns).
    best : Fit
        The best model of lodim, fitted to all rows on first access.

    See Also
    --------
    compare, cv

    Examples
    --------
    >>> import lodim as ld
    >>> calls = {"large": "glm", "small": lambda formula, data: ld.glm("mpg ~ weight", data)}
    >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
    >>> table.losses.shape
    (398, 2)
    """

    call: str
    _task: Task
    _candidates: list[Candidate]
    _records: dict[str, Record]
    _fits: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        task = self._task
        self._rows = Rows(task.batch.weight, task.fold, task.batch.units)
        self._known = [label for label, r in self._records.items() if r.scores is not None]
        family, y = task.family, task.batch.y
        self._scores = [self._records[label].scores for label in self._known]
        self._losses = np.stack([family.deviance(y, score) for score in self._scores], axis=1)
        self._ours = {c.label: c for c in self._candidates if c.kind in ("model", "call")}
        self._frame = self._table()

    @property
    def failed(self) -> dict[str, str]:
        """Reason for each model that has no losses, by label."""
        return {label: r.reason for label, r in self._records.items() if r.scores is None}

    @property
    def losses(self) -> pd.DataFrame:
        """Held-out deviance of each used row, (n, models), indexed by the data's row labels."""
        index = self._task.batch.index[self._task.batch.rows]
        return pd.DataFrame(self._losses, index=index, columns=self._known)

    @property
    def level(self) -> float:
        """Significance level, 0.05."""
        return LEVEL

    @property
    def not_significantly_worse(self) -> list[str]:
        """Labels of the best model and of models not significantly worse, the best first."""
        frame = self._frame
        return frame["model"][frame["p_value"] > LEVEL].tolist()

    @property
    def _frame_kind(self):
        return self._task.design.frame_kind

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return the table of models, one row per model, the best first and failed models last.

        Returns
        -------
        DataFrame
            - model: label
            - deviance: mean over held-out rows (for classes -2 log-likelihood)
            - dev_ratio: explained share of the null model's deviance (D2; for squared error R2)
            - accuracy (for classes), auc (for two classes, over pairs of rows held out together)
            - difference: deviance minus the best model's deviance
            - deviance_se, difference_se and so on: standard errors
            - conf_low, conf_high: simultaneous 95% intervals for all differences of two models
            - p_value: of the hypothesis that the model is as good as the best; small p-values mean
              significantly worse, with allowance for the number of models
            - features, parts, price: number of design columns, number of components of the fit,
              and price of the features; means over folds
            - part: name of the components, such as "learners"
            - seconds: time per fold, of fit and predictions

        See Also
        --------
        summary, plot

        Examples
        --------
        >>> import lodim as ld
        >>> calls = {"large": "glm", "small": lambda formula, data: ld.glm("mpg ~ weight", data)}
        >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
        >>> table.tidy()["model"].tolist()
        ['large', 'small']
        """
        return self._frame.copy()

    @property
    def best(self) -> Any:
        """The best model of lodim, fitted to all rows on first access; never the null model."""
        ours = self._ours.keys() & set(self._known)
        label = next((m for m in self._frame["model"] if m in ours), None)
        if label is None:
            raise ArgumentError("no model of lodim was compared, or all failed: see `failed`")
        return self.fit(label)

    def fit(self, model: str) -> Any:
        """Return the fit of a compared model of lodim to all rows.

        Parameters
        ----------
        model : str
            Label of the model; an ArgumentError if no model of lodim has this label.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> calls = {"large": "glm", "small": lambda formula, data: ld.glm("mpg ~ weight", data)}
        >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
        >>> table.fit("small").design.names
        ('weight',)
        """
        one_of("model", model, self._ours)
        if model not in self._fits:
            self._fits[model] = fit_all(self._ours[model], self._task)
        return self._fits[model]

    def summary(self) -> Report:
        """Return a report of all measures with standard errors, the settings, and failures.

        See Also
        --------
        tidy, plot

        Examples
        --------
        >>> import lodim as ld
        >>> calls = {"large": "glm", "small": lambda formula, data: ld.glm("mpg ~ weight", data)}
        >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
        >>> print(table.summary().as_text().splitlines()[0].strip())
        Comparison of Models on Held-out Rows
        """
        return report.summary(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the differences in held-out deviance from the best model, with 95% intervals.

        The intervals hold for all pairs of models together.

        Parameters
        ----------
        ax : Axes, optional

        Returns
        -------
        Axes

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> calls = {"large": "glm", "small": lambda formula, data: ld.glm("mpg ~ weight", data)}
        >>> table = ld.compare("mpg ~ .", ld.data("autompg"), calls, folds=3, baselines=False)
        >>> ax = table.plot()
        """
        from lodim.comparison import plots

        return plots.differences(self, ax)

    def __repr__(self):
        return report.listing_of(self)

    # The table ----------------------------------------------------------------------------------

    def _table(self):
        rows, losses = self._rows, self._losses
        mean, covariance = inference.means(losses, rows)
        best = int(np.argmin(mean))
        frame = pd.DataFrame({"model": self._known, "deviance": mean})
        frame["deviance_se"] = np.sqrt(np.diag(covariance))
        null = self._task.family.deviance(self._task.batch.y, null_scores(self._task))
        frame["dev_ratio"], frame["dev_ratio_se"] = inference.explained(losses, null, rows)
        for name, (value, error) in self._class_measures().items():
            frame[name], frame[f"{name}_se"] = value, error
        frame["difference"] = mean - mean[best]
        frame["difference_se"] = inference.pair_errors(covariance, mean)[best]
        frame["p_value"] = inference.confidence_set(mean, covariance, rows.degrees)
        half = inference.joint_quantile(mean, covariance, rows.degrees) * frame["difference_se"]
        low, high = frame["difference"] - half, frame["difference"] + half
        frame = frame.assign(conf_low=low, conf_high=high)
        records = [self._records[label] for label in self._known]
        for name in COUNTS:  # means over the folds; NaN if unknown
            sizes = [[size.get(name, np.nan) for size in r.needs] for r in records]
            frame[name] = np.mean(np.array(sizes, float), axis=1)
        frame["part"] = [r.needs[0].get("part", "") for r in records]
        frame["seconds"] = [r.seconds for r in records]
        frame = frame.sort_values("deviance", kind="stable", ignore_index=True)
        frame = frame.reindex(range(len(self._records)))
        frame.loc[len(self._known) :, "model"] = list(self.failed)
        return frame

    def _class_measures(self):
        """Return {"accuracy": (values, SEs)} of the models; for two classes also "auc"."""
        task, rows = self._task, self._rows
        y, levels = task.batch.y, task.levels
        if levels is None:
            return {}
        hit = np.stack([hits(y, task.family.ranking(s)) for s in self._scores], axis=1)
        mean, covariance = inference.means(hit, rows)
        found = {"accuracy": (mean, np.sqrt(np.diag(covariance)))}
        if len(levels) == 2:
            each = (inference.auc_of_folds(y == 1, s[:, 0], rows) for s in self._scores)
            areas, parts = zip(*each, strict=True)
            errors = np.sqrt(np.diag(rows.covariance(np.stack(parts, axis=1))))
            found["auc"] = np.array(areas), errors
        return found
