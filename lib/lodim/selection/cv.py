"""Choice of settings by cross-validation: cv() for the user, choose() for a model's defaults."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from lodim import text
from lodim.checks import one_of, whole
from lodim.design.batch import SplitsInPlace, counted, split, subset
from lodim.design.frames import as_given
from lodim.engine import row_keys
from lodim.engine.blocks import SPAN_ROWS, available_threads
from lodim.errors import ArgumentError
from lodim.fitting.spec import prepare, with_own
from lodim.report.tables import Table, listing, significant
from lodim.selection.choice import central_count, centre, grid_ends, weights
from lodim.selection.folds import (
    BLOCK_ROWS,
    assign,
    assign_draws,
    assign_in_place,
    check_units,
    count_units,
)
from lodim.selection.path import lambda_grid
from lodim.selection.racing import (
    LOSSES,
    deviance,
    fold_means,
    grid_losses,
    ordered,
    paired_losses,
    rows_error,
    standard_error,
)

N_LAMBDA = 25  # penalties of a default grid
FEW_ROWS = 2000  # up to here threads of Python lose more to each other than they gain
QUICK_ROWS = 4000  # up to here choose() averages its folds; beyond, it holds out one of them
MOST_ROWS = 20_000  # rows that choose() looks at
FOLDS = 5  # of a draw of choose()
MOST_DRAWS = 2  # draws of the folds that choose() averages, where rows are few enough for it


def quick_splits(problem, draws=1, folds=FOLDS):
    """Training and held-out batches of folds, [(Batch, Batch)]; see `fold_splits`."""
    spec = problem.spec
    needed = [k for k, penalty in spec.penalties.items() if penalty.needed]
    names = filter(None, [*needed, spec.stage_setting, spec.shared_setting])
    check_units(problem.batch, " and ".join(names))
    levels, seed = problem.design.levels, problem.settings.seed
    return fold_splits(problem.batch, levels, seed, problem.standardize, draws, folds)


def fold_splits(batch, levels, seed, standardize, draws=1, folds=FOLDS):
    """Training and held-out batches of folds, [(Batch, Batch)].

    So many folds at most, as often as `draws`; beyond QUICK_ROWS rows one of them is held out, of
    at most MOST_ROWS rows. Rows of weight zero are in none.
    """
    batch = _few_rows(batch, levels, seed)
    n_folds = min(folds, count_units(batch))
    return [
        split(batch, fold == k, standardize)
        for fold in assign_draws(batch, n_folds, levels, seed, draws)
        for k in (range(fold.max() + 1) if batch.n <= QUICK_ROWS else [0])
    ]


def _few_rows(batch, levels, seed):
    """The rows of weight above zero, MOST_ROWS of them at most.

    Of more than SPAN_ROWS rows, of which X is not copied, they are drawn by their lengths.
    """
    if batch.n > SPAN_ROWS:
        some = min(MOST_ROWS, batch.n_positive)
        return subset(batch, np.sort(row_keys.sample_of(batch, some, seed)))
    batch = counted(batch)
    if batch.n <= MOST_ROWS:
        return batch
    key, _ = row_keys.of_batch(batch, len(levels or ()))
    return subset(batch, row_keys.drawn(key, MOST_ROWS, seed))


def side_by_side(problem):
    """Number of settings or folds to fit at a time, each on a thread of its own."""
    if problem.batch.n <= FEW_ROWS and not problem.spec.compiled_stages:
        return 1
    return getattr(problem.settings, "threads", None) or available_threads()


def count_draws(batch, most=None):
    """How often folds are drawn: `most` times (MOST_DRAWS), or fewer where rows are many."""
    if count_units(batch) <= FOLDS:  # each by itself, in every draw
        return 1
    return min(most or MOST_DRAWS, max(1, QUICK_ROWS // max(batch.n_positive, 1)))


def preference(problem, name, values, *, most_draws=None):
    """Standard errors by which the second of two values of a setting is better held out, from zero.

    Those of the difference of the deviances, between folds or between rows, whichever is larger.
    Zero where the second value is no better in the first draw of the folds: the others are then not
    looked at.
    """
    draws, jobs = count_draws(problem.batch, most_draws), side_by_side(problem)
    splits = quick_splits(problem, draws)
    settings = [replace(problem.settings, **{name: value}) for value in values]
    seen = np.zeros((0, 3))
    for part in (splits[: len(splits) // draws], splits[len(splits) // draws :]):
        if part:
            loss = _loss_of(problem, "deviance")
            gaps = paired_losses(problem, part, settings, loss, jobs)[1]
            seen = np.concatenate([seen, gaps])
        mean = fold_means(seen[None])[0]
        if mean >= 0.0:
            return 0.0
    error = max(standard_error(seen, mean, draws), rows_error(seen, draws))
    return float(-mean / error) if error > 0.0 else np.inf


def choose(problem, grid, *, most_draws=None, spread=0.5, parts=2, tie=0.0, runs=None):
    """The problem with settings chosen by held-out deviance, and the table of points tried.

    The centre is chosen of the points that held-out deviance cannot tell apart: a point weighs
    exp(-(loss - least loss) / s), s `spread` standard errors of the least loss. The weighted mean
    of the positions in each list is taken, rounded (of a penalty to `parts`), and then that of the
    number of stages, to the nearest of a list (`choice.central_count`). The point of least loss
    itself would jump, between settings that differ by much, where losses differ by rounding or by
    the draw of the folds.

    grid : dict of values by setting
    most_draws : draws of the folds that are averaged, MOST_DRAWS by default
    spread : standard errors by which losses may differ and weigh much the same
    parts : of a step between two penalties, in log: halves by default
    tie : the least s: losses that differ by less are as good as equal
    runs : a dict, which keeps fits of folds for a choice from another grid of the same problem
    """
    grid = {name: _values(name, values, problem.spec) for name, values in grid.items()}
    points = _points(grid, problem.spec)
    draws = count_draws(problem.batch, most_draws)
    splits, jobs = quick_splits(problem, draws), side_by_side(problem)
    settings = [_settings_at(problem, point) for point in points]
    losses = _losses(problem, splits, settings, "deviance", jobs, draws=draws, runs=runs)
    how = {"spread": spread, "parts": parts, "tie": tie}
    chosen, frame = _centre(problem, grid, points, losses, draws, **how)
    folds = [[_folds_of_draw(rows, d, draws) for rows in losses] for d in range(draws)]
    of_draws = [_centre(problem, grid, points, folds[d], **how)[0] for d in range(draws)]
    of_draws = of_draws if draws > 1 else []
    names = [name for name in frame if getattr(problem.settings, name, 0) is None]
    by_draw = {name: tuple(getattr(settings, name) for settings in of_draws) for name in names}
    return problem.settle(chosen, chosen=by_draw), frame


def _centre(problem, grid, points, losses, draws=1, *, spread, parts, tie):
    """Settings in the centre of a grid, by its losses, and the table of its points."""
    stages = problem.spec.stage_setting
    open_stages = stages and getattr(problem.settings, stages) is None
    weight = weights(losses, draws, open_stages, spread, tie)
    stage = [central_count(w) for w in weight]
    settings = [_settings_at(problem, point) for point in points]
    frame, settings = _summarize(problem, points, settings, losses, stage, draws)
    frame["weight"] = [w.sum() for w in weight]
    at, between = centre(grid, frame["weight"].to_numpy(), problem.spec.penalties, parts)
    return replace(settings[at], **between), frame


def _folds_of_draw(rows, d, draws):
    """The folds of one draw, of rows with the folds of all."""
    return [row[d * len(row) // draws : (d + 1) * len(row) // draws] for row in rows]


def _losses(problem, splits, settings, name, jobs, **options):
    """Held-out losses of the settings of points, by the loss of a name."""
    return grid_losses(problem, splits, settings, _loss_of(problem, name), jobs, **options)


def _settings_at(problem, point):
    """Settings of a point; None in it, where it is the default, is what a call without it has."""
    ours = {k for k, v in point.items() if v is None and problem.arguments.get(k, 0) is None}
    return replace(problem.settings, **{k: v for k, v in point.items() if k not in ours})


def _checked(problem):
    """The problem as a call with its settings has it: refused where they do not suit the data."""
    return problem.spec.validate(problem) if problem.spec.validate else problem


def _checked_settings(problem, points):
    """The settings of each point, checked; those that share a run are alike in all else."""
    run, known = problem.spec.stage_setting or problem.spec.shared_setting, {}
    out = []
    for point in points:
        rest = {name: value for name, value in point.items() if name != run}
        key = tuple(map(id, rest.values()))
        if key not in known:
            own = _settings_at(problem, rest)
            known[key] = _checked(replace(problem, settings=own)) if rest else problem
        out.append(_settings_at(known[key], {run: point[run]} if run in point else {}))
    return out


def _loss_of(problem, name):
    """The loss of a row by its name; the model may have its own deviance."""
    return problem.spec.cv_deviance or deviance if name == "deviance" else LOSSES[name]


def cv(
    model: Callable,
    formula: str,
    data: Any,
    *,
    grid: Mapping[str, Any] | pd.DataFrame | None = None,
    folds: Any = 10,
    groups: Any = None,
    loss: str = "deviance",
    rule: str = "min",
    n_lambda: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
    **arguments: Any,
) -> "CV":
    """Cross-validate a model over a grid of its settings, and refit the best.

    Parameters
    ----------
    model : model function
        Such as `lodim.gbmap`.
    formula, data, **arguments
        As the model takes them.
    grid : mapping or DataFrame, optional
        Values to try, by argument: `{"m": [2, 5, 10], "beta": [1, 10]}`; all combinations are
        tried. The 1-SE rule prefers large penalties, few stages, small budgets, and of others those
        that are listed first. A DataFrame has a row for each point to try, simplest first. A
        penalty that a fit needs, and that is neither given nor in the grid, joins it with the
        values that it has by default.
        Default: the model's (first) penalty, `lambda_` of gbmap and `lambda_v` of proset: as given
        among the arguments, else on a decreasing grid of `n_lambda` values from its lambda_max;
        the prices of the models of costnet, as budgets; of ripr further None (NaN in the frame),
        which leaves the choice of views to the model.
        A setting that counts stages (`m` of gbmap) and is not given is chosen for each point.
    folds : int or array (n,)
        Number of folds, drawn at random within classes, or the fold of each row of `data`; one
        without rows that count (by weight and response) is not held out.
    groups : column name or array (n,), optional
        Rows of equal values, such as those of a patient, are held out together, by these folds and
        by those that the model itself draws. A row without a group is refused. Of glm, where they
        are not given, `clusters` are such groups.
    loss : {"deviance", "class", "mae"}
        Held-out loss: deviance, share misclassified, mean absolute residual. (A model's own
        argument of that name, as of proset, stands in the grid: grid={"loss": ["density"]}.)
    rule : {"min", "1se"}
        Which settings `best` is refitted with: least mean loss, or the simplest within one
        standard error of it.
    n_lambda : int, optional
        Number of penalties of the default grid, 25 if not given; of costnet that of its path.
        Refused where no penalties are made.
    seed : int
        Of the folds, and of the model where it has one.
    n_jobs : int, optional
        Threads; by default all, and one up to 2,000 rows of models in which they would wait for
        each other: of all but gbmap.
        Folds hold their own copy of the features.
    progress : bool
        Show a progress bar (needs tqdm).

    Returns
    -------
    CV

    Raises
    ------
    ArgumentError
        An argument is out of range, or the grid names what is no setting of the model.
    FormulaError, DataError
        As of the model.

    See Also
    --------
    CV, path

    Notes
    -----
    Features are centred and scaled within each fold; what stands for missing ones is the mean of
    all rows. The mean weighs folds by their rows' weights;
    its standard error is the folds' weighted standard deviation over sqrt(K - 1), as in glmnet.
    Points race: where the number of stages is open, one that after every 10 stages (2 of proset) is
    more than two standard errors behind the best goes no further, nor one that after any stage is
    more than four behind and rises, nor one whose last 15 stages (2 of proset) have lowered its
    loss by no more than a twentieth of a standard error; its row shows the stages it had.
    Of streamed data of more than 65,536 rows whole blocks of 4,096 rows go to the folds, at random.
    Nothing is copied: held-out rows have a weight of zero, features keep the centre and scale of
    all rows, and points and folds follow one another, without a race.

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
    _check_call(grid, loss, rule, n_jobs, arguments)
    arguments = with_own(model, arguments, seed=seed) | {"progress": progress}
    if n_lambda is not None:
        arguments = with_own(model, arguments, n_lambda=n_lambda)
    problem = prepare(model, formula, data, arguments, groups=groups)
    if problem.design.response is None:
        raise ArgumentError(f"cv needs a response on the left of '~'; the formula is {formula!r}")
    if loss == "class" and problem.family.name == "gaussian":
        raise ArgumentError("loss='class' needs a response with classes; this one is numeric")
    found, given = None, {} if grid is None else grid
    n = N_LAMBDA if n_lambda is None else n_lambda
    if grid is None:
        grid, found = (problem.spec.cv_grid or _penalties)(problem, n)
    _check_grid(grid, problem)
    points = _with_penalties(_points(grid, problem.spec), problem, n)
    if n_lambda is not None:
        _check_penalties(given, points, problem)
    settings = _checked_settings(problem, points)
    splits = _splits(problem, folds, seed)
    jobs = n_jobs or side_by_side(problem)
    losses = _losses(problem, splits, settings, loss, jobs)
    least = [1 + int(np.argmin(fold_means(rows))) for rows in losses]
    frame, chosen = _summarize(problem, points, settings, losses, least)
    where_min, where_1se = _best_rows(frame)
    varied = tuple(map(str, points[0]))
    of_best = chosen[where_min if rule == "min" else where_1se]
    settled = _checked(_with_settings(problem, varied, frame, of_best))
    best = problem.spec.run(settled, selection=frame, found=found)
    spec = problem.spec
    names = tuple(spec.penalties), spec.stage_setting, spec.shared_setting
    held_out = _held_out(problem.batch, folds, groups, arguments)
    ends = grid_ends(problem, frame, [n for n in frame if n in varied], where_min)
    where = where_min, where_1se, rule, loss
    return CV(problem.call, frame, varied, *where, best, *names, held_out, ends)


def _splits(problem, folds, seed):
    """Training and held-out batches of the folds of a call, a sequence of pairs."""
    if problem.batch.in_place:
        return SplitsInPlace(problem.batch, assign_in_place(problem.batch, folds, seed))
    batch = counted(problem.batch)
    fold = assign(batch, folds, problem.design.levels, seed)
    return [split(batch, fold == k, problem.standardize) for k in range(fold.max() + 1)]


def _held_out(batch, folds, groups, arguments):
    """What folds hold out as a whole, in words, or nothing."""
    if batch.in_place:
        what = "as given" if np.ndim(folds) else f"blocks of {BLOCK_ROWS:,} rows"
        return f"{what}; features keep the centre and scale of all rows"
    if batch.units is None:
        return ""
    what, given = ("groups", groups) if groups is not None else ("clusters", arguments["clusters"])
    return f"whole {what}{f' ({given})' if isinstance(given, str) else ''}"


def _check_call(grid, loss, rule, n_jobs, arguments):
    one_of("loss", loss, LOSSES)
    one_of("rule", rule, ("min", "1se"))
    if n_jobs is not None:
        whole("n_jobs", n_jobs)
    if grid is not None and not isinstance(grid, Mapping | pd.DataFrame):
        raise ArgumentError(f"grid must be a dict of values by setting, or a frame, not {grid!r}")
    for name in () if grid is None else grid:
        if name in arguments:
            raise ArgumentError(f"{name!r} is in the grid and also given as an argument")


def _best_rows(frame):
    """Rows of least mean loss, and of the simplest within one standard error of it."""
    where_min = int(frame["mean"].idxmin())
    limit = frame["mean"][where_min] + frame["se"][where_min]
    return where_min, int(np.flatnonzero(frame["mean"] <= limit)[0])


def _with_settings(problem, grid, frame, settings):
    """The problem with the settings of a point, and which of them were chosen."""
    names = tuple(n for n in frame if hasattr(problem.settings, n))
    chosen = tuple(n for n in names if n in grid or getattr(problem.settings, n) is None)
    return problem.settle(settings, given=names, chosen=dict.fromkeys(chosen, ()))


@dataclass(frozen=True, repr=False)
class CV:
    """Held-out losses over a grid of settings, and the fit of the best.

    Attributes
    ----------
    call : str
        The call of the model.
    frame : DataFrame
        A row for each point: its settings, its number of stages (`m` of gbmap), `mean` and `se` of
        the held-out loss.
    grid : tuple of str
        Names of the settings that vary.
    index_min, index_1se : int
        Rows of `frame`: least mean, and simplest within one standard error of it.
    rule, loss : str
        As they were given.
    best : Fit
        Refitted on all rows by `rule`.
    penalties, stages, budget : names of the model's penalties, of the setting that counts its
        stages, and of the one that limits its price
    held_out : str
        What folds hold out as a whole, empty of single rows drawn at random.
    grid_ends : tuple of str
        Where the least loss is at an end of the grid, and the model goes on beyond.

    See Also
    --------
    cv, Path

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> grid = {"m": [1, 2], "lambda_": [0.1, 1.0]}
    >>> cv = ld.cv(ld.gbmap, "mpg ~ weight + model_year", cars, grid=grid, folds=3)
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
    best: Any
    penalties: tuple[str, ...]
    stages: str | None
    budget: str | None
    held_out: str = ""
    grid_ends: tuple[str, ...] = ()

    @property
    def lambda_min(self) -> float:
        """Penalty of least mean held-out loss."""
        return self._value(self.penalties, self.index_min)

    @property
    def lambda_1se(self) -> float:
        """Largest penalty within one standard error of the least mean held-out loss."""
        return self._value(self.penalties, self.index_1se)

    @property
    def budget_min(self) -> float:
        """Budget of least mean held-out loss, of a model with prices."""
        return self._value((self.budget,), self.index_min)

    @property
    def budget_1se(self) -> float:
        """Smallest budget within one standard error of the least mean held-out loss."""
        return self._value((self.budget,), self.index_1se)

    def _value(self, names, index):
        """The first of the settings that the grid has, at a point; else what all points share."""
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
        """The points of the grid.

        Returns
        -------
        DataFrame
            A copy of `frame`.

        See Also
        --------
        plot

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> grid = {"m": [1, 2], "lambda_": [0.1, 1.0]}
        >>> cv = ld.cv(ld.gbmap, "mpg ~ weight + model_year", cars, grid=grid, folds=3)
        >>> cv.tidy().columns.tolist()
        ['m', 'lambda_', 'mean', 'se']
        """
        return self.frame.copy()

    def plot(self, ax=None):
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
        >>> cars = ld.data("autompg")
        >>> grid = {"m": [1, 2], "lambda_": [0.1, 1.0]}
        >>> cv = ld.cv(ld.gbmap, "mpg ~ weight + model_year", cars, grid=grid, folds=3)
        >>> ax = cv.plot()
        """
        from lodim.selection.plots import cv_curve

        return cv_curve(self, ax)

    def __repr__(self):
        show = self.frame.loc[[self.index_min, self.index_1se]].copy()
        show.index = ["min", "1se"]
        formats = dict.fromkeys(show.columns, _shown)
        points = text.counted(len(self.frame), "point")
        lines = [f"Measure: {self.loss}, {points}; refitted by rule '{self.rule}'"]
        lines += [f"Folds: {self.held_out}"] if self.held_out else []
        lines += [f"Least loss at an end of the grid: {end}" for end in self.grid_ends]
        return listing(f"cv of {self.call}", lines, Table("", show, formats))


def _shown(value):
    """A setting or a loss; None is the model's own choice."""
    if not np.ndim(value) and pd.isna(value):
        return "None"
    return significant(value) if isinstance(value, float) else str(value)


def _penalties(problem, n):
    """The first penalty as given among the arguments, else n values, if there is one; and None."""
    if not problem.spec.penalties:
        return {}, None
    penalty = next(iter(problem.spec.penalties))
    value = problem.arguments[penalty]
    fixed = isinstance(value, int | float)
    return {penalty: [value] if fixed else lambda_grid(problem, penalty, n)}, None


def _check_grid(grid, problem):
    """Raise unless the grid names settings of the model."""
    names = [f.name for f in fields(problem.settings)]
    for name in grid:
        if name not in names:
            raise ArgumentError(f"{name!r} cannot be in the grid; it may hold {', '.join(names)}")
        if name in problem.spec.after_stages:
            raise ArgumentError(
                f"{name!r} cannot be in the grid: cv() scores what comes before it; compare calls"
            )


def _check_penalties(given, points, problem):
    """Raise where a number of penalties is asked for, but neither cv() nor the model makes any."""
    made = [name for name in problem.spec.penalties if name in points[0] and name not in given]
    if not (hasattr(problem.settings, "n_lambda") or (made and len(points) > 1)):
        raise ArgumentError("n_lambda says nothing here: no grid of penalties is made")


def _with_penalties(points, problem, n):
    """The points with n values, largest first, of each penalty that is needed and has none."""
    for name, penalty in problem.spec.penalties.items():
        if penalty.needed and name not in points[0] and getattr(problem.settings, name) is None:
            values = lambda_grid(problem, name, n).tolist()
            points = [{name: value} | point for value in values for point in points]
    return points


def _points(grid, spec):
    """All combinations, the simplest models first: large penalties, few stages; rows as given."""
    if isinstance(grid, pd.DataFrame):
        if grid.empty:
            raise ArgumentError("the grid has no row")
        columns = grid.astype(object).where(grid.notna(), None).to_dict("list")
        rows = zip(*map(_plain, columns.values()), strict=True)
        points = [dict(zip(columns, row, strict=True)) for row in rows]
        for name in grid:
            _check_values(name, [point[name] for point in points], spec)
    else:
        values = {name: _plain(_values(name, each, spec)) for name, each in dict(grid).items()}
        products = itertools.product(*values.values())
        points = [dict(zip(values, each, strict=True)) for each in products]
    for name, penalty in spec.penalties.items():
        if penalty.needed and any(point.get(name, 0) is None for point in points):
            raise ArgumentError(f"{name} cannot be None in the grid: it may hold numbers")
    return points


def _plain(values):
    """Values with numbers of NumPy as Python's."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def _values(name, values, spec):
    """Values of a setting, in order where that means something; one by itself is a value too."""
    if isinstance(values, np.ndarray):
        values = np.atleast_1d(values)
    elif not isinstance(values, list | tuple | range | pd.Series | pd.Index):
        values = [values]  # a pipeline of scikit-learn is one value, though it has a length
    if not len(values):
        raise ArgumentError(f"the grid has no value for {name!r}")
    _check_values(name, values, spec)
    return ordered(values, name in spec.penalties) if name in _sorted_names(spec) else list(values)


def _sorted_names(spec):
    """Settings whose values are put in order."""
    return (*spec.penalties, spec.stage_setting, spec.shared_setting)


def _check_values(name, values, spec):
    """Raise where a setting that is put in order has a value that is no number."""
    if name not in _sorted_names(spec):
        return
    for value in values:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number and (value is not None or name in {spec.shared_setting} - {*spec.penalties}):
            raise ArgumentError(f"{name} must be numbers in the grid, not {value!r:.80}")


def _summarize(problem, points, settings, losses, stage, draws=1):
    """A row for each point with mean and standard error, and its settings with `stage` of each.

    Where the number of stages is not open it is as given.
    """
    stages = problem.spec.stage_setting
    rows, chosen = [], []
    for point, own, curve, last in zip(points, settings, losses, stage, strict=True):
        at = len(curve) - 1
        if stages and getattr(own, stages) is None:
            at, own = last - 1, replace(own, **{stages: last})
        mean = fold_means(curve)[at]
        missing = [k for k in problem.spec.penalties if point.get(k, 0) is None]
        row = point | dict.fromkeys(missing, np.nan)
        if stages:
            row[stages] = getattr(own, stages)
        error = standard_error(np.array(curve[at]), mean, draws)
        rows.append(row | {"mean": mean, "se": error})
        chosen.append(own)
    return pd.DataFrame(rows), chosen
