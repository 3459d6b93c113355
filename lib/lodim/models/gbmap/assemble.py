"""Build a GbmapFit from the fitted weak learners."""

from dataclasses import replace
from itertools import islice

import numpy as np
from joblib import Parallel, delayed

from lodim.engine.blocks import sum_rows
from lodim.errors import warn_not_converged
from lodim.models.gbmap import refit
from lodim.models.gbmap.embedding import (
    KINDS,
    NEIGHBOURS,
    Reference,
    drift_indicators,
    without_offset,
)
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.learners import Effects
from lodim.selection.tuning import quick_splits, side_by_side


def assemble(problem, learners, log, selection, for_path):
    """Return the GbmapFit of fitted weak learners; warn if the optimizer did not converge.

    log : dict of optimizer results; selection : table of cross-validated losses, or None
    for_path : whether the fit is one of a path, which stores no training rows"""
    settings = replace(problem.settings, refit=problem.settings.refit or "none")
    problem = replace(problem, settings=settings)
    batch, family = problem.batch, problem.family
    reference = calibration = None
    refit_log, log = log.get("refit"), {k: v for k, v in log.items() if k != "refit"}
    if not for_path and settings.reference_rows:
        reference = Reference.from_batch(learners, batch, family.link, settings)
        if selection is not None:
            calibration = _calibrate(problem)
    if refit_log is not None and not refit_log["converged"]:
        warn_not_converged(
            f"gbmap's joint fit did not converge in {refit_log['n_eval']} evaluations: "
            "raise control={'max_iter': ...} or lambda_, or give refit='none'"
        )
    elif not log["converged"].all():
        failed, of = np.count_nonzero(~log["converged"]), log["converged"].size
        warn_not_converged(
            f"gbmap did not converge in {failed} of {of} boosts: "
            "raise control={'max_iter': ...} or lambda_"
        )
    response_range = None
    if family.link in ("identity", "log") and settings.reference_rows:
        at_zero = without_offset(batch, family.link)

        def ends(i):
            y = at_zero[i][batch.weight[i] > 0.0]
            return np.array([-y.min(initial=np.inf), y.max(initial=-np.inf)])

        response_range = sum_rows(ends, batch.n, np.maximum) * (-1.0, 1.0)
    return GbmapFit(
        **problem.common(selection),
        estimates=learners,
        log=log,
        effects=Effects.from_batch(learners, batch, settings.n_threads),
        reference=reference,
        n=batch.n_positive,
        null_deviance=problem.null_deviance(),
        calibration=calibration,
        refit_log=refit_log,
        response_range=response_range,
    )


def _calibrate(problem):
    """Return percentiles (101,) of the drift of held-out rows; None if folds are too small.

    The result is a dict; "difference" and "distance" measure how unlike training rows a row is."""
    splits, most = quick_splits(problem), problem.settings.reference_rows
    if any(min(len(train.positive_weight), most) < NEIGHBOURS for train, _ in splits):
        return None
    weights = np.concatenate([test.row_weights for _, test in splits])
    if not weights.any():
        return None
    run = Parallel(n_jobs=side_by_side(problem), backend="threading")
    parts = run(delayed(_held_out_drift)(problem, *split) for split in splits)
    share, how = np.arange(101) / 100, {"weights": weights, "method": "inverted_cdf"}
    values = {kind: np.concatenate([part[kind] for part in parts]) for kind in KINDS}
    return {kind: np.quantile(v, share, **how) for kind, v in values.items()}


def _held_out_drift(problem, train, test):
    """Fit gbmap to the rows `train`; return drift indicators of the rows `test`.

    The result is a dict: kind of indicator -> values per row of `test`, large if unlike `train`."""
    settings = replace(problem.settings, threads=1)
    family = problem.model.learn_family(train, problem.family, settings)
    stages = refit.fit_stages(train, family, settings.for_comparison(train.n, train.X.shape[1]))
    learners, _ = refit.combine([stage[:2] for stage in islice(stages, settings.m)])
    reference = Reference.from_batch(learners, train, family.link, settings)
    return drift_indicators(learners, reference, test, NEIGHBOURS, family.link == "identity", 1)
