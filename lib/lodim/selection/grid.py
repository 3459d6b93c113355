"""A grid of settings: its points, the settings at them, and their held-out losses."""

import itertools
from dataclasses import replace
from numbers import Real

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.selection.racing import (
    LOSSES,
    fold_means,
    grid_losses,
    ordered,
    standard_error,
)


def points_of(grid, model):
    """All combinations, the simplest models first: large penalties, few stages; rows as given."""
    if isinstance(grid, pd.DataFrame):
        if grid.empty:
            raise ArgumentError("the grid has no row")
        columns = grid.astype(object).where(grid.notna(), None).to_dict("list")
        rows = zip(*map(_plain, columns.values()), strict=True)
        points = [dict(zip(columns, row, strict=True)) for row in rows]
        for name in grid:
            _check_values(name, [point[name] for point in points], model)
    else:
        values = {name: _plain(values_of(name, each, model)) for name, each in dict(grid).items()}
        products = itertools.product(*values.values())
        points = [dict(zip(values, each, strict=True)) for each in products]
    for name, penalty in model.penalties.items():
        if penalty.needed and any(point.get(name, 0) is None for point in points):
            raise ArgumentError(f"{name} cannot be None in the grid: it may hold numbers")
    return points


def _plain(values):
    """Return values with numbers of NumPy as Python's."""
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def values_of(name, values, model):
    """Values of a setting, in order and once where that means something; one alone is a value."""
    if isinstance(values, np.ndarray):
        values = np.atleast_1d(values)
    elif not isinstance(values, list | tuple | range | pd.Series | pd.Index):
        values = [values]  # a pipeline of scikit-learn is one value, though it has a length
    if not len(values):
        raise ArgumentError(f"the grid has no value for {name!r}")
    _check_values(name, values, model)
    if name not in _sorted_names(model):
        return list(values)
    return ordered(dict.fromkeys(values), name in model.penalties)


def _sorted_names(model):
    """Return settings whose values are put in order."""
    return (*model.penalties, model.stage_setting, model.shared_setting)


def _check_values(name, values, model):
    """Raise where a setting that is put in order has a value that is no number."""
    if name not in _sorted_names(model):
        return
    for value in values:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number and (
            value is not None or name in {model.shared_setting} - {*model.penalties}
        ):
            raise ArgumentError(f"{name} must be numbers in the grid, not {value!r:.80}")


def settings_at(problem, point):
    """Return the settings of a point; None, if it is the default, means not given."""
    ours = {k for k, v in point.items() if v is None and problem.arguments.get(k, 0) is None}
    return replace(problem.settings, **{k: v for k, v in point.items() if k not in ours})


def checked(problem):
    """The problem as a call with its settings has it: refused where they do not suit the data."""
    return problem.model.validate(problem)


def checked_settings(problem, points):
    """Return the settings of each point, checked; those that share a run are alike in all else."""
    run, known = problem.model.stage_setting or problem.model.shared_setting, {}
    out = []
    for point in points:
        rest = {name: value for name, value in point.items() if name != run}
        key = tuple(map(id, rest.values()))
        if key not in known:
            own = settings_at(problem, rest)
            known[key] = checked(replace(problem, settings=own)) if rest else problem
        out.append(settings_at(known[key], {run: point[run]} if run in point else {}))
    return out


def losses_at(problem, splits, settings, name, jobs, **options):
    """Held-out losses of the settings of points, by the loss of a name."""
    return grid_losses(problem, splits, settings, loss_of(problem, name), jobs, **options)


def loss_of(problem, name):
    """Return the loss of a row by its name; the model may have its own deviance."""
    return problem.model.held_out_deviance if name == "deviance" else LOSSES[name]


def summarize(problem, points, settings, losses, stage, draws=1):
    """A row for each point with mean and standard error, and its settings with `stage` of each.

    Where the number of stages is not open it is as given.
    """
    stages = problem.model.stage_setting
    rows, chosen = [], []
    for point, own, curve, last in zip(points, settings, losses, stage, strict=True):
        at = len(curve) - 1
        if stages and getattr(own, stages) is None:
            at, own = last - 1, replace(own, **{stages: last})
        mean = fold_means(curve)[at]
        missing = [k for k in problem.model.penalties if point.get(k, 0) is None]
        row = point | dict.fromkeys(missing, np.nan)
        if stages:
            row[stages] = getattr(own, stages)
        error = standard_error(np.array(curve[at]), mean, draws)
        rows.append(row | {"mean": mean, "se": error})
        chosen.append(own)
    return pd.DataFrame(rows), chosen
