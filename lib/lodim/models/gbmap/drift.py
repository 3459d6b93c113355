"""Fits to folds: whether the joint refit pays, and what drift is like on rows not seen."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lodim.engine.blocks import dot
from lodim.models.gbmap import boost
from lodim.models.gbmap.embedding import KINDS, NEIGHBOURS, Reference, drift_indicators
from lodim.models.gbmap.refit import joint_refit
from lodim.selection.tuning import quick_splits, side_by_side

LEAST_SHARE = 0.02  # of the held-out deviance, by which a refit must lower it to be chosen


@dataclass(frozen=True)
class Fold:
    """Training and held-out batches, and the learners of the former: WeakLearners.

    refitted is None where no refit was made.
    """

    train: Any
    test: Any
    boosted: Any
    refitted: Any


def fit_folds(problem, refit):
    """Return a Fold for each of `quick_splits`, its learners refitted too where `refit`."""
    run = Parallel(n_jobs=side_by_side(problem), backend="threading")
    return run(delayed(_fit_fold)(problem, refit, *split) for split in quick_splits(problem))


def _fit_fold(problem, refit, train, test):
    family = problem.family
    settings = problem.settings.for_comparison(train.n, train.X.shape[1])
    settings = replace(settings, threads=1)
    stages = boost.fit_stages(train, family, settings)
    boosted, log = boost.combine([stage[:2] for stage in islice(stages, settings.m)])
    refitted = joint_refit(train, family, settings, boosted, log)[0] if refit else None
    return Fold(train, test, boosted, refitted)


def refit_gain(family, folds):
    """Return share of the held-out deviance of the boosts by which their refit is below it."""
    losses = np.zeros(2)
    for fold in folds:
        test, total = fold.test, fold.test.weight_sum
        for i, learners in enumerate((fold.boosted, fold.refitted)):
            score = learners.score(test.X, test.n) + test.offset_matrix(family.n_scores)
            losses[i] += total * dot(test.weight, family.deviance(test.y, score))
    return float(1.0 - losses[1] / max(losses[0], 1e-300))


def calibrate(problem, folds, refitted):
    """Percentiles 0, 1, ..., 100 of each indicator over out-of-fold training rows.

    A dict of (101,) by the indicators' kinds; None where folds are too small for the neighbours.
    """
    most = problem.settings.reference_rows
    if any(min(len(fold.train.positive_weight), most) < NEIGHBOURS for fold in folds):
        return None
    parts = [_held_out_drift(problem, fold, refitted) for fold in folds]
    weights = np.concatenate([fold.test.row_weights for fold in folds])
    if not weights.any():
        return None
    share, how = np.arange(101) / 100, {"weights": weights, "method": "inverted_cdf"}
    values = {kind: np.concatenate([part[kind] for part in parts]) for kind in KINDS}
    return {kind: np.quantile(v, share, **how) for kind, v in values.items()}


def _held_out_drift(problem, fold, refitted):
    """Return the indicators on the held-out rows of a fold."""
    learners = fold.refitted if refitted else fold.boosted
    numeric, settings = problem.family.name == "gaussian", replace(problem.settings, threads=1)
    reference = Reference.from_batch(learners, fold.train, numeric, settings)
    return drift_indicators(learners, reference, fold.test, NEIGHBOURS, numeric, 1)
