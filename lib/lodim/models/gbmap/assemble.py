"""From learned boosts to a GbmapFit."""

from dataclasses import replace

import numpy as np

from lodim.engine.blocks import sum_rows
from lodim.errors import warn_not_converged
from lodim.models.gbmap.drift import LEAST_SHARE, calibrate, fit_folds, refit_gain
from lodim.models.gbmap.embedding import Reference
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.learners import Effects
from lodim.models.gbmap.refit import advisable, joint_refit


def assemble(problem, learners, log, selection, for_path):
    """Return the fit of weak learners; one of a path keeps no training rows."""
    problem, gain, folds = _choose_refit(problem, learners, selection, for_path)
    batch, family, settings = problem.batch, problem.family, problem.settings
    reference = calibration = refit_log = None
    refitted = settings.refit == "joint"
    if refitted:
        learners, log, refit_log = joint_refit(batch, family, settings, learners, log)
        refit_log["gain"] = gain
    if not for_path and settings.reference_rows:
        reference = Reference.from_batch(learners, batch, family.name == "gaussian", settings)
        if selection is not None:
            calibration = calibrate(problem, folds, refitted)
    if refitted and not refit_log["converged"]:
        warn_not_converged(
            f"gbmap's joint refit did not converge in {refit_log['n_iter']} steps: "
            "raise control={'max_iter': ...} or lambda_, or give refit='none'"
        )
    elif not log["converged"].all():
        failed, of = np.count_nonzero(~log["converged"]), log["converged"].size
        warn_not_converged(
            f"gbmap did not converge in {failed} of {of} boosts: "
            "raise control={'max_iter': ...} or lambda_"
        )
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
        response_range=_response_range(batch, settings) if family.name == "gaussian" else None,
    )


def _response_range(batch, settings):
    """Return least and largest response of rows of weight above zero, less the offset, (2,).

    None where no row is to be kept: they are of two rows.
    """
    if settings.reference_rows == 0:
        return None
    offset = batch.offsets(1)[:, 0]

    def ends(i):
        y = (batch.y[i] - offset[i])[batch.weight[i] > 0.0]
        return np.array([-y.min(initial=np.inf), y.max(initial=-np.inf)])

    return sum_rows(ends, batch.n, np.maximum) * (-1.0, 1.0)


def _choose_refit(problem, learners, selection, for_path):
    """The problem with `refit` settled, the gain of a refit on held-out rows, and the folds' fits.

    Open it is where m or lambda_ was, too: a point that cv() has scored is fitted as it was.
    """
    settings, folds, gain = problem.settings, [], np.nan
    is_open = None in (problem.arguments["m"], problem.arguments["lambda_"])
    tried = settings.refit is None and is_open and selection is not None and not for_path
    tried = tried and advisable(settings, learners, problem.batch)
    refit = tried or settings.refit == "joint"
    if selection is not None and not for_path and (tried or settings.reference_rows):
        folds = fit_folds(problem, refit)
        gain = refit_gain(problem.family, folds) if refit else gain
    if settings.refit is None:
        chosen = "joint" if tried and gain >= LEAST_SHARE else "none"
        problem = replace(problem, settings=replace(settings, refit=chosen))
    return problem, gain, folds
