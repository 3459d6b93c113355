"""Cross-validation of a model over a grid of its settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal

import numpy as np
import pandas as pd

from lodim import text
from lodim.checks import as_seed, as_threads, one_of, whole
from lodim.design.batch import SplitsInPlace, split, with_positive_weight
from lodim.design.frame import as_given
from lodim.errors import ArgumentError
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import model_of, prepare, with_own
from lodim.fitting.model import lambda_grid
from lodim.fitting.saved import MEASURE
from lodim.report.tables import Table, listing, significant
from lodim.selection.folds import BLOCK_ROWS, as_folds, assign, assign_in_place
from lodim.selection.grid import checked_settings, points_of, summarize
from lodim.selection.racing import LOSSES, fold_means, grid_losses
from lodim.selection.tuning import grid_ends, side_by_side
from lodim.typing import Data, FitT, FitT_co, Model, P, RowValues, Values

N_LAMBDA = 25  # number of penalties of a default grid


@with_known_arguments
def cv(
    model: Model[P, FitT],
    formula: str,
    data: Data,
    grid: Mapping[str, Any] | pd.DataFrame | None = None,
    folds: int | Values = 10,
    groups: RowValues | None = None,
    loss: Literal["deviance", "class", "mae"] = "deviance",
    rule: Literal["min", "1se"] = "min",
    n_lambda: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = None,
    *args: P.args,
    **arguments: P.kwargs,
) -> "CV[FitT]":
    """Cross-validate a model over a grid of its settings, and refit it with the best settings.

    Parameters
    ----------
    model : model function
        Model function, such as `lodim.gbmap`.
    formula, data, **arguments
        Arguments of the model.
    grid : mapping or DataFrame, optional
        Values to try, by argument, in all combinations: `{"m": [2, 5, 10], "beta": [1, 10]}`. A
        DataFrame has one row per combination (point), simplest first.

        - Default: `n_lambda` values of the model's first penalty, unless this penalty is given.
        - Default for costnet: prices of its models. ripr also tries None, its own choice (as NaN).
        - Penalties that a fit needs and the grid lacks: default values.
        - Number of stages (`m` of gbmap) without a value: chosen for each point.
    folds : int or array (n,), default=10
        Number of random folds, balanced by class, or the fold of each row of `data`. A fold without
        a row of positive weight is not held out.
    groups : column name or array (n,), optional
        Rows with equal values, such as all rows of one patient, are held out together, also in
        inner folds of the model. For glm the default is `clusters`.
    loss : {"deviance", "class", "mae"}, default="deviance"
        Held-out loss: deviance, share of misclassified rows, or mean absolute residual. The
        deviance of one row is limited, for classes to its value at probability 1e-5, for numbers to
        an error of the response's range. To set the model's own `loss`, put it in the grid.
    rule : {"min", "1se"}, default="min"
        Settings of `best`: lowest mean loss, or the simplest within one standard error of it (large
        penalties, few stages, small budgets, and values of other settings that are listed first).
    n_lambda : int, default=25
        Number of penalties of the default grid; for costnet of its path.
    seed : int, default=0
        Seed of the random folds, and of the model if it takes a seed.
    n_jobs : int, optional
        Number of threads. Default: all; for up to 2,000 rows only one, except for gbmap.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    CV

    Raises
    ------
    ArgumentError
        If an argument is out of range or has no effect, or the grid names no setting of the model.
    FormulaError, DataError

    See Also
    --------
    CV, path

    Notes
    -----
    Features are centred and scaled within each fold. Knots, levels and means that the formula
    learned come from the features of all rows; `compare` learns them within the folds.

    The standard error of the mean loss is its weighted SD over K folds / sqrt(K - 1), as in glmnet.

    If the number of stages is not given, a point stops early if its loss is clearly above the
    lowest or hardly falls; its row shows the best number so far. For streamed data of more than
    65,536 rows, folds are random blocks of rows, and features keep the scale of all rows.

    Examples
    --------
    >>> import lodim as ld
    >>> grid = {"lambda_": [0.01, 1.0, 0.1]}
    >>> cv = ld.cv(ld.gbmap, "mpg ~ .", ld.data("autompg"), grid=grid, m=2, folds=3, rule="1se")
    >>> cv.tidy()["lambda_"].tolist()
    [1.0, 0.1, 0.01]
    >>> cv.best.settings.lambda_ == cv.lambda_1se
    True
    """
    of = model_of(model)
    _check_call(of, grid, loss, rule, n_jobs, arguments)
    seed, folds = as_seed(seed), as_folds(folds)
    of_path = {} if n_lambda is None else {"n_lambda": n_lambda}
    arguments = with_own(of, arguments, seed=seed, **of_path)
    n = whole("n_lambda", N_LAMBDA if n_lambda is None else n_lambda, least=2)
    problem = prepare(of, formula, data, arguments, groups=groups)
    problem.design.check_response("cv")
    if loss == "class" and problem.design.levels is None:
        raise ArgumentError("loss='class' needs a response with classes; this response is numeric")
    found, given = None, {} if grid is None else grid
    if grid is None:
        grid, found = problem.model.cv_grid(problem, n)
        _check_not_given(grid, arguments)
    points = _with_penalties(points_of(grid, problem.model), problem, n)
    if n_lambda is not None:
        _check_penalties(given, points, problem)
    settings = checked_settings(problem, points)
    splits = _splits(problem, folds, seed)
    jobs = n_jobs or side_by_side(problem)
    losses = grid_losses(problem, splits, settings, loss, jobs)
    least = [1 + int(np.argmin(fold_means(rows))) for rows in losses]
    frame, chosen = summarize(problem, points, settings, losses, least)
    where_min = int(frame["mean"].idxmin())
    limit = frame["mean"][where_min] + frame["se"][where_min]
    where_1se = int(np.flatnonzero(frame["mean"] <= limit)[0])
    varied = tuple(map(str, points[0]))
    of_best = chosen[where_min if rule == "min" else where_1se]
    own = tuple(n for n in frame if hasattr(problem.settings, n))
    made = [n for n in own if n in varied or getattr(problem.settings, n) is None]
    settled = problem.settle(of_best, given=own, chosen=dict.fromkeys(made, ()))
    settled = problem.model.validate(settled)
    tried = frame if loss == "deviance" else frame.assign(**{MEASURE: loss})
    best = of.run(settled, selection=tried, found=found)
    of_penalties = tuple(of.penalties), of.stage_setting, of.shared_setting
    held_out = _held_out(problem.batch, folds, groups, arguments)
    ends = grid_ends(problem, frame, [n for n in frame if n in varied], where_min)
    where = where_min, where_1se, rule, loss
    return CV(problem.call, frame, varied, *where, best, *of_penalties, held_out, ends)


def _splits(problem, folds, seed):
    if problem.batch.out_of_core:
        return SplitsInPlace(problem.batch, assign_in_place(problem.batch, folds, seed))
    batch = with_positive_weight(problem.batch)
    fold = assign(batch, folds, problem.design.levels, seed)
    return [split(batch, fold == k, problem.standardize) for k in range(fold.max() + 1)]


def _held_out(batch, folds, groups, arguments):
    """Return a text about the rows that cross-validation holds out together; "" for single rows.

    folds : number of folds, or the fold of each row
    groups : group of each row, or the name of a column with it, or None"""
    if batch.out_of_core:
        what = "as given" if np.ndim(folds) else f"blocks of {BLOCK_ROWS:,} rows"
        return f"{what}; features keep the centre and scale of all rows"
    if batch.units is None:
        return ""
    what, given = ("groups", groups) if groups is not None else ("clusters", arguments["clusters"])
    return f"whole {what}{f' ({given})' if isinstance(given, str) else ''}"


def _check_call(of, grid, loss, rule, n_jobs, arguments):
    one_of("loss", loss, ("deviance", *LOSSES))
    one_of("rule", rule, ("min", "1se"))
    if n_jobs is not None:
        as_threads(n_jobs, "n_jobs")
    if grid is not None and not isinstance(grid, Mapping | pd.DataFrame):
        raise ArgumentError(f"grid must be a dict of values by setting, or a frame, not {grid!r}")
    names = [field.name for field in fields(of.settings)]
    for name in () if grid is None else grid:
        if name not in names:
            raise ArgumentError(f"the grid must only have {', '.join(names)}, not {name!r}")
        if name in arguments:
            what = f"{name!r} is given in the grid and as an argument"
            raise ArgumentError(f"{what}: leave one of them out")


@dataclass(frozen=True, repr=False)
class CV(Generic[FitT_co]):
    """Held-out losses over a grid of settings, and the fit with the best settings.

    Attributes
    ----------
    call : str
        The call of the model.
    frame : DataFrame
        One row per grid point: settings, number of stages (`m` of gbmap), held-out `mean` and `se`.
    grid : tuple of str
        Names of the settings that vary.
    index_min, index_1se : int
        Rows of `frame`: lowest mean loss, and simplest settings within one standard error of it.
    rule, loss : str
        Arguments of `cv`.
    best : Fit
        Fit to all rows with the settings chosen by `rule`.
    penalties, stages, budget
        Names of the model's penalties (tuple), of its number of stages, and of the setting whose
        values share one fit (`budget` of costnet). The last two may be None.
    held_out : str
        Groups or blocks of rows that folds hold out as a whole; empty for single random rows.
    grid_ends : tuple of str
        Texts on settings whose best value is at an end of the grid, which could be extended.

    See Also
    --------
    cv, Path

    Examples
    --------
    >>> import lodim as ld
    >>> cv = ld.cv(ld.gbmap, "mpg ~ .", ld.data("autompg"), grid={"m": [1, 2]}, lambda_=0.1)
    >>> cv.best.settings.m
    2
    """

    call: str
    frame: pd.DataFrame
    grid: tuple[str, ...]
    index_min: int
    index_1se: int
    rule: str
    loss: str
    best: FitT_co
    penalties: tuple[str, ...]
    stages: str | None
    budget: str | None
    held_out: str = ""
    grid_ends: tuple[str, ...] = ()

    @property
    def lambda_min(self) -> float:
        """Penalty with the lowest mean held-out loss."""
        return self._value(self.penalties, self.index_min)

    @property
    def lambda_1se(self) -> float:
        """Largest penalty within one standard error of the lowest mean held-out loss."""
        return self._value(self.penalties, self.index_1se)

    @property
    def budget_min(self) -> float:
        """Budget with the lowest mean held-out loss, for a model with prices."""
        return self._value((self.budget,), self.index_min)

    @property
    def budget_1se(self) -> float:
        """Smallest budget within one standard error of the lowest mean held-out loss."""
        return self._value((self.budget,), self.index_1se)

    def _value(self, names, index):
        """Return a setting's value in row `index` of the grid: the first of `names` in the grid.

        If none is in the grid, return names[0] of the fit `best`, or raise ArgumentError."""
        for name in names:
            if name in self.frame:
                return float(self.frame[name][index])
        value = getattr(self.best.settings, next(iter(names), None) or "", None)
        if value is None:
            tried = " and ".join(self.grid) or "no setting: the model has none to choose"
            raise ArgumentError(f"this cv was over {tried}")
        return float(value)

    @property
    def _frame_kind(self):
        return self.best._frame_kind

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return a copy of `frame`: the points of the grid with their held-out losses.

        See Also
        --------
        plot

        Examples
        --------
        >>> import lodim as ld
        >>> cv = ld.cv(ld.gbmap, "mpg ~ .", ld.data("autompg"), grid={"m": [1, 2]}, lambda_=0.1)
        >>> cv.tidy().columns.tolist()
        ['m', 'mean', 'se']
        """
        return self.frame.copy()

    def plot(self, ax: Any = None) -> Any:
        """Draw the held-out loss, with error bars, against the first setting of the grid.

        Parameters
        ----------
        ax : Axes, optional

        Returns
        -------
        Axes

        See Also
        --------
        tidy, lodim.Path.plot

        Examples
        --------
        >>> import lodim as ld
        >>> cv = ld.cv(ld.gbmap, "mpg ~ .", ld.data("autompg"), grid={"m": [1, 2]}, lambda_=0.1)
        >>> ax = cv.plot()
        """
        from lodim.selection.plots import cv_curve

        return cv_curve(self, ax)

    def __repr__(self):
        show = self.frame.loc[[self.index_min, self.index_1se]].copy()
        show.index = ["min", "1se"]
        formats = dict.fromkeys(show.columns, _shown)
        points = text.counted(len(self.frame), "setting")
        lines = [f"Loss: {self.loss}; {points}; `best` by rule '{self.rule}'"]
        lines += [f"Folds: {self.held_out}"] if self.held_out else []
        lines += [f"Lowest loss at an end of the grid: {end}" for end in self.grid_ends]
        return listing(f"cv of {self.call}", lines, Table("", show, formats))


def _shown(value):
    if not np.ndim(value) and pd.isna(value):
        return "None"
    return significant(value) if isinstance(value, float) else str(value)


def _check_not_given(grid, arguments):
    for name, values in grid.items():
        value = arguments.get(name)
        if isinstance(value, int | float) and [value] != list(values):
            what = f"{name}={value!r} is given, but cv() tries values of {name}"
            raise ArgumentError(f"{what}: leave it out, or give grid={{{name!r}: [{value!r}]}}")


def _check_penalties(given, points, problem):
    made = [name for name in problem.model.penalties if name in points[0] and name not in given]
    if not (hasattr(problem.settings, "n_lambda") or (made and len(points) > 1)):
        why = "as there is no grid of penalties"
        raise ArgumentError(f"n_lambda has no effect here, {why}: leave it out")


def _with_penalties(points, problem, n):
    """Add default values of penalties to the points of a grid; return the new list of points.

    A penalty that the model needs, and that has no value, gets n values, combined with each point.
    points : list of dicts setting -> value"""
    for name, penalty in problem.model.penalties.items():
        if penalty.needed and name not in points[0] and getattr(problem.settings, name) is None:
            values = lambda_grid(problem, name, n).tolist()
            points = [{name: value} | point for value in values for point in points]
    return points
