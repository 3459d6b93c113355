"""From learned boosts to a GbmapFit, and from a saved state to one."""

import warnings

import numpy as np

from lodim.engine import available_threads
from lodim.errors import ConvergenceWarning
from lodim.fit import shared
from lodim.models.gbmap.boosts import Boosts
from lodim.models.gbmap.calibrate import calibrate
from lodim.models.gbmap.effects import Effects, Reference, effects, reference
from lodim.models.gbmap.fit import GbmapFit
from lodim.models.gbmap.settings import Settings


def finish(problem, boosts, log, selection, light):
    """The fit of learned boosts; a light one keeps no training rows."""
    batch, family, settings = problem.batch, problem.family, problem.settings
    threads = settings.threads or available_threads()
    weight = batch.weight
    null = family.null_score(batch.y, weight, batch.base(family.n_scores))
    kept = calibration = None
    if not light and settings.reference_rows:
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
    common, kept = shared(state), state["reference"]
    boosts = Boosts(**state["boosts"])
    boosts.check(len(common["design"].names), common["family"].n_scores)
    return GbmapFit(
        # A fit may be read where there is no GPU.
        settings=Settings(**state["settings"] | {"engine": "cpu"}), estimates=boosts,
        log=state["log"], effects=Effects(**state["effects"]),
        reference=None if kept is None else Reference(**kept), n=state["n"],
        null_deviance=state["null_deviance"], calibration=state["calibration"], **common,
    )  # fmt: skip
