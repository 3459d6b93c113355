"""Grids of settings: their points, the settings at the points, and held-out losses."""

import itertools
from dataclasses import replace
from numbers import Real

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.selection.racing import fold_means, ordered, standard_error


def points_of(grid, model):
    """Check a grid of settings; return its points as a list of dicts setting -> value.

    grid : frame with a row per point, or dict setting -> values, which are all combined"""
    if isinstance(grid, pd.DataFrame):
        if grid.empty:
            raise ArgumentError("the grid must have at least one row")
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
            raise ArgumentError(f"{name} must be numbers in the grid, not None")
    return points


def _plain(values):
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def values_of(name, values, model):
    """Return the list of values of setting `name`; distinct and sorted if the model orders them."""
    if isinstance(values, np.ndarray):
        values = np.atleast_1d(values)
    elif not isinstance(values, list | tuple | range | pd.Series | pd.Index):
        values = [values]  # a scikit-learn pipeline is one value, although it has a length
    if not len(values):
        raise ArgumentError(f"the grid has no value for {name!r}")
    _check_values(name, values, model)
    if name not in _sorted_names(model):
        return list(values)
    return ordered(dict.fromkeys(values), name in model.penalties)


def _sorted_names(model):
    """Return the names of a model's settings, such as penalties, whose values have an order."""
    return (*model.penalties, model.stage_setting, model.shared_setting)


def _check_values(name, values, model):
    if name not in _sorted_names(model):
        return
    needed = name in {model.shared_setting} - {*model.penalties}
    for value in values:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number and (value is not None or needed):
            raise ArgumentError(f"{name} must be numbers in the grid, not {value!r:.80}")


def settings_at(problem, point):
    """Return the problem's settings, changed to the values of a grid point (dict name -> value).

    A setting that is None in both the point and the call keeps the value learned from the data."""
    ours = {k for k, v in point.items() if v is None and problem.arguments.get(k, 0) is None}
    return replace(problem.settings, **{k: v for k, v in point.items() if k not in ours})


def checked_settings(problem, points):
    """Return validated Settings for each grid point.

    Points that differ only in the number of stages are validated once."""
    run, known = problem.model.stage_setting or problem.model.shared_setting, {}
    out = []
    for point in points:
        rest = {name: value for name, value in point.items() if name != run}
        key = tuple(map(id, rest.values()))
        if key not in known:
            own = settings_at(problem, rest)
            tried = replace(problem, settings=own)
            known[key] = problem.model.validate(tried) if rest else problem
        out.append(settings_at(known[key], {run: point[run]} if run in point else {}))
    return out


def summarize(problem, points, settings, losses, stage, draws=1):
    """Return a frame with mean and SE of the held-out loss per grid point, and a list of Settings.

    points : list of dicts setting -> value
    settings : Settings per point
    losses : per point (stages, folds, 3): mean loss, weight, SE
    stage : number of stages (steps of a fit) per point, if left open
    draws : number of random divisions into folds"""
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
