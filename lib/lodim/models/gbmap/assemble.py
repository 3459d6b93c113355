"""From learned boosts to a GbmapFit, and from a saved state to one."""

import warnings

import numpy as np

from lodim import forms
from lodim.engine.blocks import available_threads
from lodim.errors import ConvergenceWarning
from lodim.fitting.fit import shared
from lodim.models.gbmap.drift import calibrate
from lodim.models.gbmap.embedding import Reference, reference
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.learners import Boosts, Effects, effects
from lodim.models.gbmap.settings import Settings

MOST = 10_000  # boosts of a fit whose last ones are not there


def assemble(problem, boosts, log, selection, for_path):
    """The fit of learned boosts; one of a path keeps no training rows."""
    batch, family, settings = problem.batch, problem.family, problem.settings
    threads = settings.threads or available_threads()
    weight = batch.weight
    null = family.null_score(batch.y, weight, batch.offset_matrix(family.n_scores))
    kept = calibration = None
    if not for_path and settings.reference_rows:
        numeric = family.name == "gaussian"
        kept = reference(boosts, batch, numeric, settings.reference_rows, settings.seed, threads)
        if selection is not None:
            calibration = calibrate(problem)
    if not log["converged"].all():
        failed, of = np.count_nonzero(~log["converged"]), log["converged"].size
        warnings.warn(
            f"gbmap did not converge in {failed} of {of} boosts: "
            "raise control={'max_iter': ...} or lambda_",
            ConvergenceWarning,
            stacklevel=4,
        )
    return GbmapFit(
        design=problem.design, family=family, settings=settings, estimates=boosts, log=log,
        effects=effects(boosts, batch, threads), reference=kept, selection=selection, n=batch.n,
        null_deviance=float(weight @ family.deviance(batch.y, null)), calibration=calibration,
        call=problem.call, arguments=problem.arguments, chosen=problem.chosen,
    )  # fmt: skip


def from_state(state):
    """The fit that `GbmapFit.to_state` has written."""
    common, kept = shared(state, "gbmap"), state["reference"]
    boosts = Boosts(**state["boosts"])
    boosts.check(len(common["design"].names), common["family"].n_scores)
    _check_rest(boosts, state, common["family"].n_scores, common["design"].levels)
    return GbmapFit(
        # A fit may be read where there is no GPU.
        settings=Settings(**state["settings"] | {"engine": "cpu"}), estimates=boosts,
        log=state["log"], effects=Effects(**state["effects"]),
        reference=None if kept is None else Reference(**kept), n=state["n"],
        null_deviance=state["null_deviance"], calibration=state["calibration"], **common,
    )  # fmt: skip


def _check_rest(boosts, state, n_scores, levels):
    """Raise ValueError unless what a file says beside the boosts fits these."""
    M, last = len(boosts.sign), int(boosts.stage[-1])
    average = forms.real(n_scores, boosts.theta.shape[1] - 2, nan=True)  # NaN in a first(m)
    reference = {
        "embedding": forms.real("rows", M), "score": forms.real("rows", n_scores),
        "y": forms.real("rows") if levels is None else forms.codes("rows", len(levels)),
    }  # fmt: skip
    known = {
        "log": forms.table(M, objective=forms.real(M), deviance=forms.squares(M),
                           grad_norm=forms.real(M), converged=forms.flags(M),
                           n_iter=forms.whole(M), n_eval=forms.whole(M)),
        "effects": forms.part({"mean": average, "mean_abs": average,
                               "active": forms.real(M, least=0, most=1)}),
        "reference": forms.optional(forms.part(reference)), "n": forms.whole(least=1),
        "null_deviance": forms.squares(), "calibration": forms.optional(forms.real(101)),
    }  # fmt: skip
    sizes = forms.check(state, known)
    if sizes.get("rows") == 0:
        raise ValueError("reference has no rows")
    most = {"m": forms.whole(least=last, most=max(last, MOST)), "lambda_": forms.real(least=0)}
    forms.check(state["settings"], most, "settings")
