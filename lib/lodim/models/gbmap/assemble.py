"""From learned boosts to a GbmapFit, and from a saved state to one."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.engine.blocks import sum_rows
from lodim.errors import warn_not_converged
from lodim.fitting.saved import read_shared_state
from lodim.models.gbmap.drift import LEAST_SHARE, calibrate, fit_folds, refit_gain
from lodim.models.gbmap.embedding import KINDS, Reference
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.learners import Effects, WeakLearners
from lodim.models.gbmap.refit import advisable, joint_refit
from lodim.models.gbmap.settings import Settings

MOST = 10_000  # boosts of a fit whose last ones are not there


def assemble(problem, learners, log, selection, for_path):
    """The fit of weak learners; one of a path keeps no training rows."""
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
    """Least and largest response of rows of weight above zero, less the offset, (2,).

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


def from_state(state):
    """The fit that `GbmapFit._to_state` has written."""
    common, reference = read_shared_state(state, "gbmap"), state["reference"]
    learners = WeakLearners(**state["boosts"])
    learners.check(len(common["design"].names), common["family"].n_scores)
    _check_rest(learners, state, common["family"].n_scores, common["design"].levels)
    return GbmapFit(
        # A fit may be read where there is no GPU.
        settings=replace(forms.make(Settings, state["settings"], "settings"), engine="cpu"),
        estimates=learners,
        effects=Effects(**state["effects"]),
        reference=None if reference is None else Reference(**reference),
        **{name: state[name] for name in ("log", "n", "null_deviance", "calibration")},
        **{name: state[name] for name in ("refit_log", "response_range")},
        **common,
    )


def _check_rest(learners, state, n_scores, levels):
    """Raise ValueError unless what a file says beside the learners fits these."""
    (M, p), last = learners.w.shape, int(learners.stage[-1])
    average = forms.real(n_scores, p, nan=True)  # NaN in a first(m)
    log = dict.fromkeys(("objective", "grad_norm"), forms.real(M))
    log |= dict.fromkeys(("n_iter", "n_eval"), forms.whole(M))
    log |= dict.fromkeys(("converged", "newton"), forms.flags(M))
    log |= {"deviance": forms.squares(M, nan=True)}
    effects = dict.fromkeys(("mean", "mean_abs"), average)
    effects["active"] = forms.real(M, least=0, most=1)
    reference = {
        "embedding": forms.real("rows", M),
        "score": forms.real("rows", n_scores),
        "y": forms.real("rows") if levels is None else forms.codes("rows", len(levels)),
    }
    refit_log = dict.fromkeys(("value", "deviance", "grad_norm"), forms.squares())
    refit_log |= {"gain": forms.real(nan=True)}
    refit_log |= dict.fromkeys(("n_iter", "n_eval"), forms.whole()) | {"converged": forms.flags()}
    known = {
        "log": forms.table(M, **log),
        "effects": forms.part(effects),
        "reference": forms.optional(forms.part(reference)),
        "n": forms.whole(least=1),
        "null_deviance": forms.squares(),
        "calibration": forms.optional(forms.part(dict.fromkeys(KINDS, forms.real(101)))),
        "refit_log": forms.optional(forms.part(refit_log)),
        "response_range": forms.optional(forms.ascending(forms.real(2))),
    }
    sizes = forms.check(state, known)
    if sizes.get("rows") == 0:
        raise ValueError("reference has no rows")
    most = {"m": forms.whole(least=last, most=max(last, MOST)), "lambda_": forms.real(least=0)}
    forms.check(state["settings"], most, "settings")
