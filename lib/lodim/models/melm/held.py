"""How well a view classifies training rows, left out one by one, and rows held out."""

from dataclasses import replace

import numpy as np

from lodim.engine.blocks import available_threads
from lodim.models.melm.classify import widths
from lodim.models.melm.classify.classifiers import Nearest
from lodim.models.melm.classify.learning import JUDGED, density_options, drawn
from lodim.models.melm.classify.rule import balanced_accuracy
from lodim.models.melm.estimate import fold_scores
from lodim.models.melm.view import project
from lodim.selection import folds as fold
from lodim.selection.cv import quick_splits

PARTS = 5  # of a single fold held out, each calibrated by the others


def training(problem, view):
    """Deviance and balanced accuracy of training rows, of 10,000 at most.

    Each is left out of the densities, or of the neighbours, that it is judged by; not of an
    estimator of the user's.
    """
    rows, score = _left_out(problem, view)
    y = view.rule.present[rows.code].astype(float)
    weight = rows.share / rows.share.sum()
    return {
        "deviance": float(weight @ problem.family.deviance(y, score)),
        "balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _left_out(problem, view):
    """Rows, and their link scores (m, K)."""
    settings, rule, batch = problem.settings, view.rule, problem.batch
    threads, i = settings.threads or available_threads(), batch.positive_weight
    if isinstance(rule.other, Nearest):
        return rule.rows, rule.link(rule.other.left_out(rule.rows.Z))
    code = np.searchsorted(rule.present, batch.y[i].astype(np.int64))
    weight = np.ones(len(i)) if batch.weights is None else batch.weights[i]
    rows = drawn(project(view.V, batch.X, batch.n)[i], code, weight, JUDGED, settings.seed)
    if rule.other is not None:
        return rows, rule.scores(rows.Z, threads)
    options = density_options(settings)
    return rows, rule.link(widths.left_out(rows, rule.background, rule.width, options, threads))


def held_out(problem, view):
    """The rule of a view calibrated on rows held out, and how well these are classified.

    Each fold is judged with the calibration of the others. They are not the folds that gamma was
    chosen on: there, luck has chosen as well.
    """
    family, other = problem.family, replace(problem.settings, seed=problem.settings.seed + 1)
    splits = quick_splits(replace(problem, settings=other))
    score = np.concatenate([fold_scores(*pair, family, problem.settings) for pair in splits])
    tests = [test for _, test in splits]
    y = np.concatenate([test.y for test in tests])
    weight = np.concatenate([np.ones(t.n) if t.weights is None else t.weights for t in tests])
    equal = problem.settings.prior == "equal"
    # What class shares are to be is the prior's to say: with equal ones rows of rare classes count.
    judged = widths.even(y.astype(int), weight, equal)

    def calibrated(at):
        return view.rule.calibrated(family, y[at], judged[at], score[at])

    part, factor = _parts(tests, problem), np.empty((len(y), 1))
    for k in range(part.max() + 1):
        factor[part == k] = calibrated(part != k).sharpness
    weight = widths.even(y.astype(int), weight, False)
    return calibrated(slice(None)), {
        "held_deviance": float(weight @ family.deviance(y, factor * score)),
        "held_balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _parts(tests, problem):
    """Part of each row held out: its fold, or of a single fold one of PARTS."""
    if len(tests) > 1:
        return np.repeat(np.arange(len(tests)), [test.n for test in tests])
    return fold.assign(tests[0], PARTS, problem.design.levels, problem.settings.seed)
