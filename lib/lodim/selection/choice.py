"""The choice of settings from held-out losses: the centre of those that cannot be told apart."""

import numpy as np

from lodim.selection.racing import fold_means, standard_error


def weights(losses, draws, stages_open, spread=0.5):
    """Weight of every point's stages, of sum one in all: exp(-(loss - least) / s).

    Parameters
    ----------
    losses : list of lists
        For each point a list with a row a stage, as of `racing.grid_losses`.
    draws : int
        How often the folds were drawn.
    stages_open : bool
        Whether the number of stages is to be chosen; else the last one alone counts.
    spread : float
        s in standard errors of the least loss.
    """
    means = [fold_means(rows) for rows in losses]
    if not stages_open:
        means = [np.where(np.arange(len(m)) < len(m) - 1, np.inf, m) for m in means]
    best = int(np.argmin([m.min() for m in means]))
    stage = int(np.argmin(means[best]))
    least = means[best][stage]
    error = standard_error(np.array(losses[best][stage]), least, draws)
    scale = max(spread * error, 1e-12 * abs(least), 1e-300)
    weight = [np.exp(-(m - least) / scale) for m in means]
    total = sum(w.sum() for w in weight)
    return [w / total for w in weight]


def centre(grid, weight, penalties):
    """Position of the point nearest to the weighted mean of a grid, and penalties in between.

    Parameters
    ----------
    grid : dict of lists
        Values of each setting, in order; points are all combinations, the last setting fastest.
    weight : array (n_points,)
    penalties : names of settings whose values may lie halfway, in log, between two of the list
    """
    shape = [len(values) for values in grid.values()]
    nearest, between = [], {}
    for (name, values), where in zip(grid.items(), np.indices(shape), strict=True):
        mean = float(weight @ where.ravel())
        half = int(2.0 * mean + 0.5)
        if name in penalties and half % 2:
            between[name] = float(np.sqrt(values[half // 2] * values[half // 2 + 1]))
        nearest.append((half + 1) // 2 if name in penalties else int(mean + 0.5))
    return int(np.ravel_multi_index(nearest, shape)) if grid else 0, between
