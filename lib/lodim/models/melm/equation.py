"""A view of melm as expressions: coordinates, and Bayes' rule with the densities of the classes."""

import numpy as np

from lodim.errors import ArgumentError
from lodim.export.expression import Kernels, call, constant, weighted
from lodim.models.melm.classify.rule import ABSENT


def coordinates(V, axes, features):
    """Coordinates of standardized features, a list of k nodes."""
    return [weighted(0.0, v, features, name) for v, name in zip(V.T, axes, strict=True)]


def scores(rule, Z):
    """Link scores at coordinates, a list of K nodes.

    Raises
    ------
    ArgumentError
        An estimator of the user's classifies: it is no formula.
    """
    if rule.other is not None:
        raise ArgumentError(
            "a view whose rows are classified by an estimator of your own cannot "
            "be written out: fit it with classifier='kde', the default"
        )
    found = [_log_density(rule, c, Z) for c in range(len(rule.present))]
    classes = [constant(ABSENT)] * rule.n_classes
    for code, log_f, prior in zip(rule.present, found, rule.densities.log_prior, strict=True):
        classes[code] = weighted(prior, [1.0], [log_f])
    if rule.n_scores > 1:
        return [weighted(0.0, [rule.inverse_temperature], [c]) for c in classes]
    gap = call("sub", classes[1], classes[0])  # first: far away both are huge, and equal
    return [weighted(0.0, [rule.inverse_temperature], [gap], "score")]


def _log_density(rule, c, Z):
    """Log density of class c at coordinates, that of the background mixed in."""
    densities, background = rule.densities, rule.background
    tiles = slice(*densities.start[c : c + 2])
    points = densities.U[tiles].transpose(0, 2, 1).reshape(-1, len(Z))
    weights = densities.w[tiles].ravel()
    on = weights > 0
    u = [weighted(0.0, row, Z) for row in densities.root[c]]
    near = Kernels(tuple(u), points[on], weights[on], log=True)
    log_f = weighted(np.log1p(-background.share) + densities.scale[c], [1.0], [near])
    apart = [weighted(-(row @ background.mean[c]), row, Z) for row in background.root]
    unit = np.linalg.slogdet(background.root)[1] - 0.5 * len(Z) * np.log(2.0 * np.pi)
    squares = [call("square", a) for a in apart]
    log_g = weighted(np.log(background.share) + unit, [-0.5] * len(Z), squares)
    return _log_sum(log_f, log_g)


def _log_sum(a, b):
    """log(exp(a) + exp(b))."""
    largest = call("largest", a, b)
    parts = [call("exp_negative", call("sub", x, largest)) for x in (a, b)]
    total = call("log_positive", weighted(0.0, [1.0, 1.0], parts))
    return weighted(0.0, [1.0, 1.0], [largest, total])
