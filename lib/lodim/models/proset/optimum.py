"""The weights that minimize the objective of one batch."""

from dataclasses import replace

import numpy as np

from lodim.models.proset.kernels.cpu import CLASSES, DENSITY
from lodim.models.proset.settings import PATIENCE
from lodim.solve.lbfgs import bounded

START_V, START_W, START_U = 10.0, 1.0, 3.0
HEAVY = 10.0  # a prototype of a class, for which little is left to chance, weighs so much more
CORNER = 0.1  # the sizes of feature weights below this one are rounded off at first
LEAST_V = 1e-3  # where the first descent holds a feature that does not enter
LEAST_U = 1e-3  # of the inverse width of normals, which have none at zero


def minimum(objective, loss, features, J, settings):
    """theta = (v (p,), w (J,), u), zero for all but `features` (p,) bool, and a Minimum.

    At v_d = 0 the gradient by v_d is the penalty's alone, whatever the data say: a feature that one
    long step has cut off would never come back, and which ones are cut hangs on rounding. So the
    first descent is over v_d^2, by which zero is no such trap, with the L1 penalty rounded off near
    zero. The second, from its end and over v_d, minimizes the objective itself.
    """
    on = np.flatnonzero(features)
    D = len(on)
    w_unit = np.sqrt(J) * (HEAVY if loss == CLASSES else 1.0)
    unit = np.concatenate([np.ones(D), np.full(J, w_unit), [1.0]])
    enters = np.concatenate([features, np.ones(J + 1, bool)])
    l1 = settings.lambda_v * settings.l1_ratio_v

    def plain(t):
        theta = np.zeros(len(enters))
        theta[enters] = t * unit
        value, gradient = objective(theta)
        return value, gradient[enters] * unit

    def squared(t):
        v = np.sqrt(t[:D])
        value, gradient = plain(np.concatenate([v, t[D:]]))
        size = np.hypot(v, CORNER)
        gradient[:D] = (gradient[:D] + l1 * (v / size - 1.0)) / (2.0 * v)
        return value + l1 * (size - CORNER - v).sum(), gradient

    start = np.full(D + J + 1, START_W) / unit
    start[:D] = (START_V / max(1, D)) ** 2
    start[-1] = START_U if loss == DENSITY else 0.0
    lower = np.zeros(len(start))
    lower[:D], lower[-1] = LEAST_V**2, LEAST_U if loss == DENSITY else 0.0
    stop = {
        "tol": settings.tol, "ftol": settings.ftol, "patience": PATIENCE,
        "precision": float(np.finfo(settings.precision).eps),
    }  # fmt: skip
    first = bounded(squared, start, lower, max_iter=settings.max_iter, **stop)
    t = first.theta[0]
    t[:D] = np.where(t[:D] > lower[:D], np.sqrt(t[:D]), 0.0)
    left = max(1, settings.max_iter - first.n_eval)
    lower[:D] = 0.0
    end = bounded(plain, t, lower, max_iter=left, **stop)
    theta = np.zeros(len(enters))
    theta[enters] = end.theta[0] * unit
    return theta, replace(end, n_eval=first.n_eval + end.n_eval, n_iter=first.n_iter + end.n_iter)
