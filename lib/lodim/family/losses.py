"""Compiled losses of rows; five numbers define one: code, least curvature, three parameters."""

import numpy as np

from lodim.engine.compiled import njit, scalar
from lodim.engine.tiles import TILE
from lodim.family.binomial import curvature as logistic_curvature
from lodim.family.binomial import loss_slope as logistic
from lodim.family.gaussian import SQUARED
from lodim.family.gaussian import curvature as squared_curvature
from lodim.family.gaussian import loss_slope as squared
from lodim.family.huber import HUBER
from lodim.family.huber import curvature as huber_curvature
from lodim.family.huber import loss_slope as huber
from lodim.family.ordinal import ORDERED
from lodim.family.ordinal import curvature as ordered_curvature
from lodim.family.ordinal import loss_slope as ordered
from lodim.family.power import POWER
from lodim.family.power import curvature as power_curvature
from lodim.family.power import loss_slope as power
from lodim.family.quantile import CHECK
from lodim.family.quantile import curvature as check_curvature
from lodim.family.quantile import loss_slope as check

_SQUARED = SQUARED[0]


@scalar
def _loss_slope(loss, y, f, weight):
    """Return a row's weighted loss, any but the ordinal one, and its derivative by predictor f."""
    if loss[0] == _SQUARED:
        return squared(y, f, weight)
    if loss[0] == POWER:
        return power(loss[2], loss[3], y, f, weight)
    if loss[0] == CHECK:
        return check(loss[2], loss[3], loss[4], y, f, weight)
    if loss[0] == HUBER:
        return huber(loss[2], y, f, weight)
    return logistic(y, f, weight)


@scalar
def loss_slope(loss, y, f, weight):
    """Return a row's weighted loss and its derivative by f.

    loss : tuple (code, least curvature, three parameters); y, f : response, linear predictor"""
    return ordered(y, f, weight) if loss[0] == ORDERED else _loss_slope(loss, y, f, weight)


@scalar
def curvature(loss, y, f, weight):
    """Return the second derivative in f of a row's weighted loss, given by the tuple `loss`."""
    if loss[0] == _SQUARED:
        return squared_curvature(y, f, weight)
    if loss[0] == POWER:
        return power_curvature(loss[2], y, f, weight)
    if loss[0] == CHECK:
        return check_curvature(loss[3], y, f, weight)
    if loss[0] == HUBER:
        return huber_curvature(loss[2], y, f, weight)
    if loss[0] == ORDERED:
        return ordered_curvature(y, f, weight)
    return logistic_curvature(y, f, weight)


# Compilers take the choice of the loss out of these loops: each loss has its own fast loop.
@scalar
def tile_loss_slope(loss, y, f, weight, value, slope):
    """Fill `value` with the weighted losses of 64 rows, and `slope` with derivatives in f."""
    if loss[0] == ORDERED:
        for i in range(TILE):
            value[i], slope[i] = ordered(y[i], f[i], weight[i])
    else:
        for i in range(TILE):
            value[i], slope[i] = _loss_slope(loss, y[i], f[i], weight[i])


@scalar
def tile_curvature(loss, y, f, weight, out):
    """Fill `out` with the second derivatives of 64 rows' weighted losses in the score f."""
    for i in range(TILE):
        out[i] = curvature(loss, y[i], f[i], weight[i])


def rows(loss, y, f, weight):
    """Return weighted losses of rows, and their first and second derivatives by f, shaped like f.

    loss : code, least curvature and parameters, as a tuple; y, f : responses, linear predictors"""
    found = _rows(loss, *(np.ascontiguousarray(v, np.float64).ravel() for v in (y, f, weight)))
    return tuple(v.reshape(np.shape(f)) for v in found)


@njit(cache=True, nogil=True, error_model="numpy")
def _rows(loss, y, f, weight):
    value, slope, bend = np.empty(f.size), np.empty(f.size), np.empty(f.size)
    for i in range(f.size):
        value[i], slope[i] = loss_slope(loss, y[i], f[i], weight[i])
        bend[i] = curvature(loss, y[i], f[i], weight[i])
    return value, slope, bend
