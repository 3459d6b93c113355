"""Choice of settings from held-out losses, as an average over settings with similar losses."""

from dataclasses import replace
from numbers import Real

import numpy as np

from lodim.errors import LodimError
from lodim.report.tables import significant
from lodim.selection.racing import fold_means, standard_error

ROUND = 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0  # numbers of stages from 10 on, in tens


def weights(losses, draws, stages_open, spread=0.5, tie=0.0):
    """Return a weight per stage of each grid point, proportional to exp(-(loss - lowest) / s).

    A point is a combination of settings; a stage is a step of a fit, such as one learner added. The
    losses of a point are (stages, folds, 3): mean, weight, standard error. Only last stages count
    unless `stages_open`. s is `spread` standard errors of the lowest loss, but at least `tie`."""
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
    """Return the weighted mean number of stages, rounded to 1, ..., 10, 12, 15, 20, 25, 30, ...."""
    mean = 1.0 + weight @ np.arange(len(weight)) / max(weight.sum(), 1e-300)
    tens = 10.0 ** np.arange(1.0, 1.0 + np.log10(max(len(weight), 10)))
    counts = np.append(np.arange(1.0, 10.0), np.outer(tens, ROUND).ravel())
    counts = counts[counts <= len(weight)]
    return int(counts[np.argmin(np.abs(np.log(counts / mean)))])


def centre(grid, weight, penalties, parts=2):
    """Return the grid point nearest to the weighted mean, and a dict of penalties between points.

    The points are all combinations of values in the dict `grid`; the last setting varies fastest.
    Penalties are rounded to `parts` steps, equal in log, between two grid values."""
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

    The best values are in row `at` of `frame`, which has a row per grid point."""
    notes = []
    for name in names:
        tried = [v for v in frame[name] if isinstance(v, Real) and not isinstance(v, bool)]
        values, value = np.unique([v for v in tried if np.isfinite(v)]), frame[name][at]
        if len(values) < 2 or not isinstance(value, Real) or value not in values[[0, -1]]:
            continue
        side, neighbour = ("smallest", 1) if value == values[0] else ("largest", -2)
        if _goes_on(problem, name, value, values[neighbour]):
            notes.append(
                f"{name} = {significant(float(value))} is the {side} that was tried: "
                f"give the grid {'smaller' if side == 'smallest' else 'larger'} ones"
            )
    return tuple(notes)


def _goes_on(problem, name, value, neighbour):
    """Return whether the model accepts a value one step beyond the end of a grid."""
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
