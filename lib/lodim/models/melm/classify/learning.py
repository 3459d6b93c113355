"""How the rule that classifies in the coordinates of a view is learnt from rows."""

import numpy as np

from lodim.engine.blocks import available_threads
from lodim.models.melm.classify import density, widths
from lodim.models.melm.classify.classifiers import Estimator, Nearest, sample
from lodim.models.melm.classify.neighbours import choose_count
from lodim.models.melm.classify.rule import Background, Rows, Rule

JUDGED = 10_000  # training rows that the width of the kernels is chosen on


def learn_rule(settings, Z, code, weight, present, n_classes, n_scores):
    """The rule that classifies in the coordinates Z (n, k)."""
    rows = drawn(Z, code, weight, settings.reference_rows, settings.seed)
    background = Background.learn(Z, code, weight)
    options, width = density_options(settings), 1.0
    if settings.calibrate and len(present) > 1:
        judged, threads = drawn(Z, code, weight, JUDGED, settings.seed), settings.threads
        width = widths.choose(judged, background, options, threads or available_threads())
    wide = options | {"gamma": width * options["gamma"]}
    return Rule(
        rows=rows, densities=density.learn(Z, code, weight, **wide), width=width,
        background=background, other=_other(settings, rows, Z, code, weight), sharpness=1.0,
        present=present, n_classes=n_classes, n_scores=n_scores,
    )  # fmt: skip


def drawn(Z, code, weight, most, seed):
    """About `most` Rows at random."""
    keep = sample(Z, code, weight, most, seed)
    return Rows(Z[keep], code[keep], weight[keep], np.bincount(code, weight).astype(np.float64))


def density_options(settings):
    """What the densities are to be told."""
    return {
        "gamma": settings.gamma or 1.0, "covariance": settings.covariance,
        "equal": settings.prior == "equal",
    }  # fmt: skip


def _other(settings, rows, Z, code, weight):
    """What classifies instead of the densities."""
    equal = settings.prior == "equal"
    if settings.classifier == "knn":
        return Nearest.learn(rows, settings.n_neighbours or choose_count(rows, equal=equal), equal)
    if settings.own_classifier:
        return None
    return Estimator.learn(settings.classifier, Z, code, weight, int(code.max()) + 1)
