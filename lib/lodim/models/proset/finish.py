"""From grown prototypes to a ProsetFit, and from a saved state to one."""

import warnings
from dataclasses import replace

import numpy as np

from lodim.engine import available_threads
from lodim.errors import ConvergenceWarning
from lodim.fit import shared
from lodim.models.proset.calibrate import Calibration, calibrate
from lodim.models.proset.fit import ProsetFit
from lodim.models.proset.kernels import CLASSES, SQUARED
from lodim.models.proset.prototypes import Prototypes
from lodim.models.proset.settings import Settings
from lodim.models.proset.typical import Typical

LOG = (
    "objective", "grad_norm", "n_iter", "n_eval", "converged", "n_candidates", "n_scoring",
    "deviance",
)  # fmt: skip


def finish(problem, prototypes, log, selection, light):
    """The fit of grown prototypes; a light one, of a path, knows no percentiles."""
    batch, family = problem.batch, problem.family
    null = family.null_score(batch.y, batch.weight, batch.base(family.n_scores))
    if not log["converged"].all():
        failed = np.flatnonzero(~log["converged"]) + 1
        warnings.warn(
            f"proset did not converge in batches {failed.tolist()}: "
            "raise control={'max_iter': ...} or lambda_v",
            ConvergenceWarning,
            stacklevel=4,
        )
    return ProsetFit(
        design=problem.design, family=family, settings=problem.settings, estimates=prototypes,
        log=log, calibration=None if light else calibrate(problem, prototypes),
        typical=None if light else _typical(problem, prototypes),
        labels=[_plain(v) for v in batch.index[prototypes.row]], selection=selection, n=batch.n,
        null_deviance=float(batch.weight @ family.deviance(batch.y, null)),
        call=problem.call, arguments=problem.arguments, chosen=problem.chosen,
    )  # fmt: skip


def _typical(problem, prototypes):
    s = problem.settings
    found = Typical.of(problem.batch, prototypes, s.seed, s.threads or available_threads())
    return replace(found, label=_plain(found.label))


def _plain(label):
    """A row's label as a file can hold it."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, bool | int | float | str) else str(label)


def from_state(state):
    """The fit that `ProsetFit.to_state` has written."""
    common = shared(state)
    prototypes = Prototypes(**state["prototypes"])
    prototypes.check(len(common["design"].names), common["family"])
    calibration, typical = state["calibration"], state["typical"]
    _check_rest(prototypes, state)
    return ProsetFit(
        settings=Settings(**state["settings"] | {"engine": "cpu"}), estimates=prototypes,
        log=state["log"],
        calibration=None if calibration is None else Calibration(**calibration),
        typical=None if typical is None else Typical(**typical),
        labels=list(state["labels"]), n=state["n"], null_deviance=state["null_deviance"], **common,
    )  # fmt: skip


def _check_rest(prototypes, state):
    """Raise ValueError unless what a file says beside the prototypes fits these."""
    M, A, B = len(prototypes), len(prototypes.features), prototypes.n_batches
    if len(state["labels"]) != M:
        raise ValueError(f"labels must be {M}, one a prototype, not {len(state['labels'])}")
    if set(state["log"]) != set(LOG):
        raise ValueError(f"log has {sorted(state['log'])}, not {sorted(LOG)}")
    for name, value in state["log"].items():
        _check_array(f"log[{name!r}]", value, (B,))
    if state["typical"] is not None:
        _check_array("typical.x", state["typical"]["x"], (A,))
    if state["calibration"] is not None:
        _check_calibration(prototypes, state["calibration"])


def _check_calibration(prototypes, calibration):
    loss = prototypes.loss
    shapes = {
        "familiarity": (101,), "levels": (101 * (loss != CLASSES),),
        "variance": (len(prototypes) * (loss == SQUARED),), "null_variance": (),
    }  # fmt: skip
    for name, shape in shapes.items():
        value = calibration[name]
        value = np.float64(value) if isinstance(value, float) else value
        _check_array(f"calibration.{name}", value, shape)


def _check_array(name, value, shape):
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "bif":
        raise ValueError(f"{name} is not an array of numbers")
    if value.shape != shape:
        raise ValueError(f"{name} has shape {value.shape}, not {shape}")
    if not np.isfinite(value).all():
        raise ValueError(f"{name} is not finite")
