"""A ProsetFit from fitted prototypes, or from a saved state."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.engine.blocks import available_threads
from lodim.errors import warn_not_converged
from lodim.fitting.model import SPREAD
from lodim.fitting.saved import read_shared_state
from lodim.fitting.storage import plain_label
from lodim.models.proset.calibration import Calibration, calibrate
from lodim.models.proset.explain.reference import Typical
from lodim.models.proset.fit import ProsetFit
from lodim.models.proset.kernels.cpu import CLASSES, SQUARED
from lodim.models.proset.prototypes import Prototypes
from lodim.models.proset.settings import Settings


def assemble(problem, prototypes, log, selection, for_path):
    """The ProsetFit of prototypes; one of a path has no percentiles and no typical row."""
    batch = problem.batch
    if not log["converged"].all():
        failed = np.flatnonzero(~log["converged"]) + 1
        warn_not_converged(
            f"proset did not converge in batches {failed.tolist()}: "
            "raise control={'max_iter': ...} or lambda_v"
        )
    calibration = typical = None
    if for_path == SPREAD:
        calibration = calibrate(problem, prototypes, widen=False)
    if not for_path:
        seed, threads = problem.settings.seed, problem.settings.threads or available_threads()
        calibration = calibrate(problem, prototypes)
        typical = Typical.from_batch(batch, prototypes, seed, threads)
        typical = replace(typical, label=plain_label(typical.label))
    return ProsetFit(
        **problem.common(selection),
        estimates=prototypes,
        log=log,
        calibration=calibration,
        typical=typical,
        labels=[plain_label(v) for v in batch.index[prototypes.row]],
        n=batch.n_positive,
        null_deviance=problem.null_deviance(),
    )


def from_state(state):
    """The fit that `ProsetFit._to_state` has written."""
    common = read_shared_state(state, "proset")
    prototypes = Prototypes(**state["prototypes"])
    prototypes.check(len(common["design"].names), common["family"])
    calibration, typical = state["calibration"], state["typical"]
    _check_rest(prototypes, state)
    return ProsetFit(
        settings=replace(forms.make(Settings, state["settings"], "settings"), engine="cpu"),
        estimates=prototypes,
        calibration=None if calibration is None else Calibration(**calibration),
        typical=None if typical is None else Typical(**typical),
        **{name: state[name] for name in ("log", "labels", "n", "null_deviance")},
        **common,
    )


def _check_rest(prototypes, state):
    """Raise ValueError unless what a file says beside the prototypes fits these."""
    M, A, B, loss = len(prototypes), len(prototypes.features), prototypes.n_batches, prototypes.loss
    calibration = {
        "familiarity": forms.real(101, least=0),
        "levels": forms.real(101 * (loss != CLASSES)),
        "variance": forms.real(M * (loss == SQUARED), least=0),
        "null_variance": forms.real(least=0),
    }
    log = {name: forms.real(B) for name in ("objective", "grad_norm")}
    log |= {name: forms.whole(B) for name in ("n_iter", "n_eval", "n_candidates", "n_scoring")}
    log |= {"deviance": forms.squares(B), "converged": forms.flags(B)}
    typical = {"x": forms.real(A), "label": forms.plain}
    known = {
        "labels": forms.several(M, forms.plain),
        "log": forms.table(B, **log),
        "calibration": forms.optional(forms.part(calibration)),
        "typical": forms.optional(forms.part(typical)),
        "n": forms.whole(least=1),
        "null_deviance": forms.squares(),
    }
    forms.check(state, known)
    penalty = forms.real(least=0)
    chosen = {"n_batches": forms.whole(least=B), "lambda_v": penalty, "lambda_w": penalty}
    forms.check(state["settings"], chosen, "settings")
