"""Estimates over two active features, the others held where a reference is."""

import numpy as np

from lodim.models.proset.mixture import Mixture, sums_at

GRID = 121  # points along each axis
ROOM = 0.08  # of the prototypes' range, beyond its ends


def surface_over(fit, two, r):
    """Original units x (G,) and y (G,), estimates (G, G, K) by [y, x], familiarity (G, G).

    two : positions of two active features; r : (A,) standardized active features
    """
    t = fit.estimates
    on = t.features[two]
    low = np.minimum(t.x[:, two].min(axis=0), r[two])
    high = np.maximum(t.x[:, two].max(axis=0), r[two])
    room = ROOM * np.maximum(high - low, 1e-9)
    grid = [np.linspace(*ends, GRID) for ends in zip(low - room, high + room, strict=True)]
    x = np.repeat(r[None], GRID * GRID, axis=0)
    x[:, two] = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
    total, mass = sums_at(t, x, fit._threads)
    mixture = Mixture.of(t, np.zeros((len(x), fit.family.n_scores)))
    Z = mixture.estimate(total, mass).reshape(GRID, GRID, -1)
    first, second = (g * s + m for g, s, m in zip(grid, fit.design.scale[on],
                                                  fit.design.mean[on], strict=True))  # fmt: skip
    return first, second, Z, mass.reshape(GRID, GRID)
