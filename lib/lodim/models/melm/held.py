"""How well a view classifies training rows, left out one by one, and rows held out."""

import numpy as np

from lodim.models.melm import widths
from lodim.models.melm.classifiers import Nearest
from lodim.models.melm.grow import density_options, fold_scores
from lodim.models.melm.rule import balanced_accuracy
from lodim.select import quick_splits


def training(settings, family, rule, threads):
    """Deviance and balanced accuracy of the training rows that are kept.

    Each is left out of the densities, or of the neighbours, that it is judged by; not of an
    estimator of the user's.
    """
    rows = rule.rows
    score = _left_out(settings, rule, threads)
    y, weight = rule.present[rows.code].astype(float), rows.weight / rows.weight.sum()
    return {
        "deviance": float(weight @ family.deviance(y, score)),
        "balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _left_out(settings, rule, threads):
    """Link scores (m, K) of the training rows that are kept."""
    rows, other = rule.rows, rule.other
    if isinstance(other, Nearest):
        return rule.link(other.left_out(rows.Z))
    if other is not None:
        return rule.scores(rows.Z, threads)
    options = density_options(settings)
    return rule.link(widths.left_out(rows, rule.background, rule.width, options, threads))


def held_out(problem, view):
    """The rule of a view calibrated on rows held out, and how well these are classified."""
    family, splits = problem.family, quick_splits(problem)
    score = np.concatenate([fold_scores(*pair, family, problem.settings) for pair in splits])
    tests = [test for _, test in splits]
    y = np.concatenate([test.y for test in tests])
    weight = np.concatenate([np.ones(t.n) if t.weights is None else t.weights for t in tests])
    equal = problem.settings.prior == "equal"
    # What class shares are to be is the prior's to say: with equal ones rows of rare classes count.
    rule = view.rule.calibrated(family, y, widths.even(y.astype(int), weight, equal), score)
    weight = widths.even(y.astype(int), weight, False)
    return rule, {
        "held_deviance": float(weight @ family.deviance(y, rule.sharpness * score)),
        "held_balanced_accuracy": balanced_accuracy(y, weight, score),
    }
