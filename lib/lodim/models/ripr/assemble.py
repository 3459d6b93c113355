"""From an ensemble to a RiprFit."""

from dataclasses import replace

import numpy as np

from lodim.errors import warn_not_converged
from lodim.fitting.storage import plain_label
from lodim.models.ripr.assignment.view_search import flat_features
from lodim.models.ripr.ensemble import record
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.settings import VOTE


def assemble(problem, ensemble, log, selection, for_path):
    """The fit of an ensemble."""
    if not log["converged"]:
        warn_not_converged("the search for views did not converge; another lambda_ may")
    batch, lambda_ = problem.batch, problem.settings.lambda_
    if lambda_ is None and ensemble.method != VOTE and not np.isnan(ensemble.lambda_):
        lambda_ = ensemble.lambda_  # NaN: no penalty found the views
    chosen = {"lambda_": lambda_, "k": ensemble.k, "method": ensemble.method}
    settings = replace(problem.settings, **chosen, constraints=None, axes=None)
    return RiprFit(
        **replace(problem, settings=settings).common(selection),
        estimates=ensemble,
        log=log | {"flat": flat_features(batch)},
        record=record(ensemble, problem.family),
        labels=tuple(plain_label(label) for label in batch.index[batch.rows]),
    )
