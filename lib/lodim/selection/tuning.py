"""Choice of a model's own settings by cross-validation within a call."""

from dataclasses import replace

import numpy as np

from lodim.design.batch import split, subset, with_positive_weight
from lodim.engine import row_keys
from lodim.engine.blocks import SPAN_ROWS, available_threads
from lodim.selection.choice import central_count, centre, weights
from lodim.selection.folds import assign_draws, check_units, count_units
from lodim.selection.grid import losses_at, points_of, settings_at, summarize, values_of

FEW_ROWS = 2000  # up to this number of rows, Python threads slow each other down
QUICK_ROWS = 4000  # up to this number of rows, choose() averages all folds; beyond, it uses one
MOST_ROWS = 20_000  # largest number of rows that choose() uses
FOLDS = 5  # number of folds of a draw of choose()
MOST_DRAWS = 2  # number of sets of random folds that choose() averages, if rows are few


def quick_splits(problem, draws=1, folds=FOLDS):
    """Return the `fold_splits` of a problem; raise DataError if no row can be held out."""
    model = problem.model
    needed = [k for k, penalty in model.penalties.items() if penalty.needed]
    names = filter(None, [*needed, model.stage_setting, model.shared_setting])
    check_units(problem.batch, " and ".join(names))
    levels, seed = problem.design.levels, problem.settings.seed
    return fold_splits(problem.batch, levels, seed, problem.standardize, draws, folds)


def fold_splits(batch, levels, seed, standardize, draws=1, folds=FOLDS):
    """Return (training, held-out) batches of a batch's rows, for `draws` sets of random folds.

    With over 4,000 rows, one fold per set is held out, and at most 20,000 rows are used."""
    batch = _few_rows(batch, levels, seed)
    n_folds = min(folds, count_units(batch))
    return [
        split(batch, fold == k, standardize)
        for fold in assign_draws(batch, n_folds, levels, seed, draws)
        for k in (range(fold.max() + 1) if batch.n <= QUICK_ROWS else [0])
    ]


def _few_rows(batch, levels, seed):
    """Return the rows with positive weight, or a sample of 20,000 of them."""
    if batch.n > SPAN_ROWS:
        some = min(MOST_ROWS, batch.n_positive)
        return subset(batch, np.sort(row_keys.sample_of(batch, some, seed)))
    batch = with_positive_weight(batch)
    if batch.n <= MOST_ROWS:
        return batch
    key, _ = row_keys.of_batch(batch, len(levels or ()))
    return subset(batch, row_keys.drawn(key, MOST_ROWS, seed))


def side_by_side(problem):
    """Return the number of settings or folds to fit in parallel, each on its own thread."""
    if problem.batch.n <= FEW_ROWS and not problem.model.compiled_stages:
        return 1
    return getattr(problem.settings, "threads", None) or available_threads()


def count_draws(batch, most=None):
    """Return the number of sets of random folds: `most` (default 2), fewer with many rows."""
    if count_units(batch) <= FOLDS:  # each unit is a fold of its own in every draw
        return 1
    return min(most or MOST_DRAWS, max(1, QUICK_ROWS // max(batch.n_positive, 1)))


def choose(problem, grid, *, most_draws=None, spread=0.5, parts=2, tie=0.0, runs=None):
    """Return the problem with settings chosen by held-out deviance, and the table of grid points.

    The choice is a mean of all points with the `weights` of their losses. `grid` is a dict setting
    -> values. `runs` keeps the folds and fits for other grids of the same problem."""
    grid = {name: values_of(name, values, problem.model) for name, values in grid.items()}
    points = points_of(grid, problem.model)
    draws = count_draws(problem.batch, most_draws)
    splits = next(iter(runs.values())).splits if runs else quick_splits(problem, draws)
    settings = [settings_at(problem, point) for point in points]
    jobs = side_by_side(problem)
    losses = losses_at(problem, splits, settings, "deviance", jobs, draws=draws, runs=runs)
    how = {"spread": spread, "parts": parts, "tie": tie}
    chosen, frame = _centre(problem, grid, points, losses, draws, **how)
    K = len(splits) // draws
    folds = [[[row[d * K : (d + 1) * K] for row in rows] for rows in losses] for d in range(draws)]
    of_draws = [_centre(problem, grid, points, one, **how)[0] for one in folds if draws > 1]
    names = [name for name in frame if getattr(problem.settings, name, 0) is None]
    by_draw = {name: tuple(getattr(settings, name) for settings in of_draws) for name in names}
    return problem.settle(chosen, chosen=by_draw), frame


def _centre(problem, grid, points, losses, draws=1, *, spread, parts, tie):
    """Return the settings at the weighted mean of a grid's points, and the table of the points."""
    stages = problem.model.stage_setting
    open_stages = stages and getattr(problem.settings, stages) is None
    weight = weights(losses, draws, open_stages, spread, tie)
    stage = [central_count(w) for w in weight]
    settings = [settings_at(problem, point) for point in points]
    frame, settings = summarize(problem, points, settings, losses, stage, draws)
    frame["weight"] = [w.sum() for w in weight]
    at, between = centre(grid, frame["weight"].to_numpy(), problem.model.penalties, parts)
    return replace(settings[at], **between), frame
