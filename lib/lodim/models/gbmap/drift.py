"""Distribution of the drift indicators on held-out rows, from cross-validation fits."""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lodim.models.gbmap import refit
from lodim.models.gbmap.embedding import KINDS, NEIGHBOURS, Reference, drift_indicators
from lodim.selection.tuning import quick_splits, side_by_side


@dataclass(frozen=True)
class Fold:
    """Training rows, held-out rows and fitted learners of one cross-validation fold."""

    train: Any
    test: Any
    learners: Any


def _fit_folds(problem):
    """Fit gbmap on a few cross-validation folds; return the Folds."""
    run = Parallel(n_jobs=side_by_side(problem), backend="threading")
    return run(delayed(_fit_fold)(problem, *split) for split in quick_splits(problem))


def _fit_fold(problem, train, test):
    settings = problem.settings.for_comparison(train.n, train.X.shape[1])
    settings = replace(settings, threads=1)
    stages = refit.fit_stages(train, problem.family, settings)
    learners, _ = refit.combine([stage[:2] for stage in islice(stages, settings.m)])
    return Fold(train, test, learners)


def calibrate(problem):
    """Return the percentiles (101,) of each drift indicator over held-out training rows, as a dict.

    A drift indicator measures how far a row is from the training rows. None if a fold has too few
    training rows for the nearest neighbours.
    """
    folds, most = _fit_folds(problem), problem.settings.reference_rows
    if any(min(len(fold.train.positive_weight), most) < NEIGHBOURS for fold in folds):
        return None
    parts = [_held_out_drift(problem, fold) for fold in folds]
    weights = np.concatenate([fold.test.row_weights for fold in folds])
    if not weights.any():
        return None
    share, how = np.arange(101) / 100, {"weights": weights, "method": "inverted_cdf"}
    values = {kind: np.concatenate([part[kind] for part in parts]) for kind in KINDS}
    return {kind: np.quantile(v, share, **how) for kind, v in values.items()}


def _held_out_drift(problem, fold):
    """Return both drift indicators of a fold's held-out rows: {"difference", "distance"}."""
    learners = fold.learners
    numeric, settings = problem.family.link == "identity", replace(problem.settings, threads=1)
    reference = Reference.from_batch(learners, fold.train, numeric, settings)
    return drift_indicators(learners, reference, fold.test, NEIGHBOURS, numeric, 1)
