"""Out-of-fold drift: what the indicator is like on rows from the training distribution."""

from dataclasses import replace
from itertools import islice

import numpy as np
from joblib import Parallel, delayed

from lodim.models.gbmap import boost
from lodim.models.gbmap.embedding import NEIGHBOURS, Reference, drift_indicator
from lodim.selection.cv import quick_splits, side_by_side


def calibrate(problem):
    """Percentiles 0, 1, ..., 100 of the indicator over out-of-fold training rows, (101,).

    None where folds are too small for the neighbours.
    """
    splits = quick_splits(problem)
    most = problem.settings.reference_rows
    if any(min(len(train.positive_weight), most) < NEIGHBOURS for train, _ in splits):
        return None
    run = Parallel(n_jobs=side_by_side(problem), backend="threading")
    parts = run(delayed(_held_out_drift)(problem, *split) for split in splits)
    values, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not weights.any():
        return None
    return np.quantile(values, np.arange(101) / 100, weights=weights, method="inverted_cdf")


def _held_out_drift(problem, train, test):
    """The indicator on the rows of `test` of a fit to `train`, and their weights."""
    family, settings = problem.family, replace(problem.settings, threads=1)
    numeric = family.name == "gaussian"
    stages = boost.fit_stages(train, family, settings)
    learners, _ = boost.combine([stage[:2] for stage in islice(stages, settings.m)])
    reference = Reference.from_batch(learners, train, numeric, settings)
    values = drift_indicator(learners, reference, test, NEIGHBOURS, numeric, 1)
    return values, np.ones(test.n) if test.weights is None else test.weights
