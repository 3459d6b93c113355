"""L-BFGS compiled together with the loss, for few rows."""

from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.gbmap.kernels.cpu import Form, add_loss_gradient, tile_rows
from lodim.solve.lbfgs import RUNNING, Stops, advance, minimum, new_search
from lodim.solve.objective import solve_lower, solve_upper


class Scale(NamedTuple):
    """Scaling of d parameters of q learners, which speeds up L-BFGS.

    unit : (d,) typical sizes, by which the parameters are divided
    factor : (q, d, d) Cholesky factors of Hessians, for preconditioning; only used if `scaled`"""

    unit: np.ndarray
    factor: np.ndarray
    scaled: bool


def descend(X, y, f, weight, sign, form, penalty, precision, scale, theta, limits):
    """Minimize the loss of q learners on few rows by L-BFGS; return the fields of a solve.Minimum.

    X, y, weight and the sum f of earlier learners are in blocks of 64 rows. `penalty` is a pair,
    for squared and absolute parameters; `precision` the relative rounding error of the loss. theta
    (q, d) are scaled starting points; limits are (max_iter, tol, ftol, memory)."""
    (ridge, l1), (max_iter, tol, ftol, memory) = penalty, limits
    stops = Stops(l1 * scale.unit, precision, scale.scaled, float(tol), float(ftol), 0.0)
    rows = X, y, f, weight
    search, n_eval = _descend(*rows, sign, form, ridge, scale, theta, max_iter, memory, stops)
    return vars(minimum(search, n_eval)).values()


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(X, y, f, weight, sign, form, ridge, scale, theta, max_iter, memory, stops):
    """Run the iterations of `descend`; return the final state and the number of evaluations."""
    b, rows = sign.astype(X.dtype), tile_rows(X)
    form = Form(X.dtype.type(form.beta), form.activation, form.loss)
    search, d = new_search(theta, memory), theta.shape[1]
    at, sums, value = np.zeros(theta.shape), np.empty(1 + d), np.empty(len(theta))
    active, n_eval = np.arange(len(theta)), 0
    while active.size and n_eval < max_iter:
        for c in active:
            point = search.trial[c].copy()
            if scale.scaled:
                solve_upper(scale.factor[c], point)
            for k in range(d):
                point[k] *= scale.unit[k]
            v = point.astype(X.dtype)
            sums[:] = 0.0
            for t in range(X.shape[0]):
                add_loss_gradient(X[t], y[t], f[t], weight[t], v, b[c], form, rows, sums)
            value[c] = sums[0]
            for k in range(d):
                value[c] += ridge[k] * point[k] * point[k]
                at[c, k] = scale.unit[k] * (sums[1 + k] + 2.0 * ridge[k] * point[k])
            if scale.scaled:
                solve_lower(scale.factor[c], at[c])
        n_eval += 1
        advance(active, value, at, stops, search)
        active = np.flatnonzero(search.status == RUNNING)
    return search, n_eval
