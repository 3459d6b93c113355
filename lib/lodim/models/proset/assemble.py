"""A ProsetFit from fitted prototypes."""

from dataclasses import replace

import numpy as np

from lodim.engine.blocks import available_threads
from lodim.errors import warn_not_converged
from lodim.fitting.model import SPREAD
from lodim.fitting.storage import plain_label
from lodim.models.proset.calibration import calibrate
from lodim.models.proset.explain.reference import Typical
from lodim.models.proset.fit import ProsetFit


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
        labels=tuple(plain_label(v) for v in batch.index[prototypes.row]),
        n=batch.n_positive,
        null_deviance=problem.null_deviance(),
    )
