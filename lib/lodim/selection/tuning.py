"""Choice of a model's own settings by cross-validation within a call."""

from dataclasses import replace
from numbers import Real

import numpy as np

from lodim.design.batch import split, subset, with_positive_weight
from lodim.engine import row_keys
from lodim.engine.blocks import SPAN_ROWS, available_threads
from lodim.errors import LodimError
from lodim.report.tables import significant
from lodim.selection.folds import assign_draws, check_units, count_units
from lodim.selection.grid import points_of, settings_at, summarize, values_of
from lodim.selection.racing import fold_means, grid_losses, standard_error

FEW_ROWS = 2000  # up to this number of rows, Python threads slow each other down
QUICK_ROWS = 4000  # up to this number of rows, choose() averages all folds; beyond, it uses one
MOST_ROWS = 20_000  # largest number of rows that choose() uses
FOLDS = 5  # number of folds of a draw of choose()
MOST_DRAWS = 2  # number of sets of random folds that choose() averages, if rows are few
ROUND = 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0  # numbers of stages from 10 on, in tens


def quick_splits(problem, draws=1, folds=FOLDS):
    """Return a (training, held-out) pair of batches per fold, for `draws` sets of random folds."""
    model = problem.model
    needed = [k for k, penalty in model.penalties.items() if penalty.needed]
    names = filter(None, [*needed, model.stage_setting, model.shared_setting])
    check_units(problem.batch, " and ".join(names))
    levels, seed = problem.design.levels, problem.settings.seed
    return fold_splits(problem.batch, levels, seed, problem.standardize, draws, folds)


def fold_splits(batch, levels, seed, standardize, draws=1, folds=FOLDS):
    """Divide rows into folds to tune settings; return (training, held-out) Batches per fold.

    levels : classes, or None
    standardize : whether to divide by training standard deviations
    draws, folds : number of random divisions into folds, and largest number of folds in each"""
    if batch.n > SPAN_ROWS:
        some = min(MOST_ROWS, batch.n_positive)
        batch = subset(batch, np.sort(row_keys.sample_of(batch, some, seed)))
    else:
        batch = with_positive_weight(batch)
        if batch.n > MOST_ROWS:
            key, _ = row_keys.of_batch(batch, len(levels or ()))
            batch = subset(batch, row_keys.drawn(key, MOST_ROWS, seed))
    n_folds = min(folds, count_units(batch))
    held_out = []
    for fold in assign_draws(batch, n_folds, levels, seed, draws):
        held_out += [fold == k for k in (range(fold.max() + 1) if batch.n <= QUICK_ROWS else [0])]
    return [split(batch, rows, standardize) for rows in held_out]


def side_by_side(problem):
    """Return the number of settings or folds to fit in parallel, each on its own thread."""
    if problem.batch.n <= FEW_ROWS and not problem.model.compiled_stages:
        return 1
    return getattr(problem.settings, "threads", None) or available_threads()


def count_draws(batch, most=None):
    """Return how many random divisions into folds to use: `most` (2), or fewer if n is large."""
    if count_units(batch) <= FOLDS:  # each unit is a fold of its own in every draw
        return 1
    return min(most or MOST_DRAWS, max(1, QUICK_ROWS // max(batch.n_positive, 1)))


def choose(problem, grid, *, most_draws=None, spread=0.5, parts=2, tie=0.0, runs=None):
    """Choose settings, as a mean of grid points weighted by held-out deviance.

    grid : dict setting -> values
    most_draws : largest number of random divisions into folds
    spread : excess loss, in standard errors, that divides a weight by e
    parts : number of parts of a grid step, to which mean penalties are rounded
    tie : lower limit of this excess loss
    runs : dict Settings -> StageLosses, to reuse and extend
    Return the Problem with these settings, and a frame of the grid."""
    grid = {name: values_of(name, values, problem.model) for name, values in grid.items()}
    points = points_of(grid, problem.model)
    draws = count_draws(problem.batch, most_draws)
    splits = next(iter(runs.values())).splits if runs else quick_splits(problem, draws)
    settings = [settings_at(problem, point) for point in points]
    jobs = side_by_side(problem)
    losses = grid_losses(problem, splits, settings, "deviance", jobs, draws=draws, runs=runs)
    stages = problem.model.stage_setting
    open_stages = stages and getattr(problem.settings, stages) is None

    def mean_point(losses, draws):  # of one division into folds, or of all
        weight = weights(losses, draws, open_stages, spread, tie)
        counts = [central_count(w) for w in weight]
        frame, own = summarize(problem, points, settings, losses, counts, draws)
        frame["weight"] = [w.sum() for w in weight]
        at, between = centre(grid, frame["weight"].to_numpy(), problem.model.penalties, parts)
        return replace(own[at], **between), frame

    chosen, frame = mean_point(losses, draws)
    K = len(splits) // draws
    folds = [[[row[d * K : (d + 1) * K] for row in rows] for rows in losses] for d in range(draws)]
    of_draws = [mean_point(one, 1)[0] for one in folds if draws > 1]
    names = [name for name in frame if getattr(problem.settings, name, 0) is None]
    by_draw = {name: tuple(getattr(own, name) for own in of_draws) for name in names}
    return problem.settle(chosen, chosen=by_draw), frame


def weights(losses, draws, stages_open, spread=0.5, tie=0.0):
    """Weigh each stage (step of a fit) of each grid point, low losses most; return arrays.

    losses : per point (stages, folds, 3): mean loss, weight, SE
    draws : number of random divisions into folds
    stages_open : False to weigh only each point's last stage
    spread : excess loss, in standard errors, that divides a weight by e
    tie : lower limit of this excess loss"""
    means = [fold_means(rows) for rows in losses]
    if not stages_open:
        means = [np.where(np.arange(len(m)) < len(m) - 1, np.inf, m) for m in means]
    best = int(np.argmin([m.min() for m in means]))
    stage = int(np.argmin(means[best]))
    least = means[best][stage]
    error = standard_error(np.array(losses[best][stage]), least, draws)
    scale = max(spread * error, tie, 1e-12 * abs(least), 1e-300)
    weight = [np.exp(-(m - least) / scale) for m in means]
    total = sum(w.sum() for w in weight)
    return [w / total for w in weight]


def central_count(weight):
    """Return the mean of counts 1 to n with weights `weight` (n,), as a round number such as 15."""
    mean = 1.0 + weight @ np.arange(len(weight)) / max(weight.sum(), 1e-300)
    tens = 10.0 ** np.arange(1.0, 1.0 + np.log10(max(len(weight), 10)))
    counts = np.append(np.arange(1.0, 10.0), np.outer(tens, ROUND).ravel())
    counts = counts[counts <= len(weight)]
    return int(counts[np.argmin(np.abs(np.log(counts / mean)))])


def centre(grid, weight, penalties, parts=2):
    """Find the grid point nearest to the weighted mean of all points; return (index, between).

    grid : dict setting -> values
    weight : (points,) weights; the last setting varies fastest
    penalties : settings whose mean may lie between grid values
    parts : number of parts of a grid step, to which mean penalties are rounded
    between : dict of the mean penalties between grid values"""
    shape = [len(values) for values in grid.values()]
    nearest, between = [], {}
    for (name, values), where in zip(grid.items(), np.indices(shape), strict=True):
        mean = float(weight @ where.ravel())
        whole, part = divmod(int(parts * mean + 0.5), parts)
        if name in penalties and part:
            low, high = values[whole], values[whole + 1]
            between[name] = float((low ** (parts - part) * high**part) ** (1.0 / parts))
        nearest.append(whole + (part > 0) if name in penalties else int(mean + 0.5))
    return int(np.ravel_multi_index(nearest, shape)) if grid else 0, between


# The ends of a grid -------------------------------------------------------------------------------

NULL = 0.5  # share of the largest penalty above which a model is (nearly) the null model


def grid_ends(problem, frame, names, at):
    """Return texts that advise to extend the grid of settings whose best value is an extreme one.

    problem : Problem, to test values; names : settings to check
    frame : values by grid point and setting; at : index of the best point"""
    notes = []
    for name in names:
        tried = [v for v in frame[name] if isinstance(v, Real) and not isinstance(v, bool)]
        values, value = np.unique([v for v in tried if np.isfinite(v)]), frame[name][at]
        if len(values) < 2 or not isinstance(value, Real) or value not in values[[0, -1]]:
            continue
        side, neighbour = ("smallest", 1) if value == values[0] else ("largest", -2)
        if _goes_on(problem, name, value, values[neighbour]):
            what = f"{name} = {significant(float(value))} is the {side} that was tried"
            cure = f"give the grid {'smaller' if side == 'smallest' else 'larger'} ones"
            notes.append(f"{what}: {cure}")
    return tuple(notes)


def _goes_on(problem, name, value, neighbour):
    """Return whether the grid of setting `name` can be extended by a step beyond its end `value`.

    problem : Problem, which must allow the new value; neighbour : grid value next to the end"""
    model = problem.model
    if name == model.shared_setting and name not in model.penalties:
        return False  # prices: the ends mean no columns, and all columns
    if name in model.penalties and value > neighbour:
        largest = model.penalties[name].largest
        if value >= NULL * largest(problem.batch, problem.family, problem.settings):
            return False
    whole = isinstance(value, int | np.integer)
    log = value > 0 and neighbour > 0 and not whole
    beyond = value**2 / neighbour if log else 2 * value - neighbour
    try:
        settings = replace(problem.settings, **{name: int(beyond) if whole else float(beyond)})
        model.validate(replace(problem, settings=settings))
    except LodimError:
        return False
    return True
