"""From an ensemble to a RiprFit, and from a saved state to one."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from lodim import family as families
from lodim.design import Design
from lodim.errors import ConvergenceWarning, StoreError
from lodim.models.ripr.ensemble import Ensemble
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.record import Record, record
from lodim.models.ripr.settings import Settings


def finish(problem, ensemble, log, selection, light):
    """The fit of an ensemble."""
    batch = problem.batch
    if not log["converged"]:
        warnings.warn(
            "the search for views did not converge; another lambda_ may",
            ConvergenceWarning,
            stacklevel=4,
        )
    settings = replace(problem.settings, lambda_=ensemble.lambda_, k=ensemble.k, limits=None)
    return RiprFit(
        design=problem.design, family=problem.family, settings=settings, estimates=ensemble,
        log=log, record=record(ensemble, problem.family),
        labels=[_plain(label) for label in batch.index[batch.rows]], selection=selection,
        call=problem.call, arguments=problem.arguments, chosen=problem.chosen,
    )  # fmt: skip


def _plain(label):
    """A row's label as a file can hold it."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, bool | int | float | str) else str(label)


def from_state(state):
    """The fit that `RiprFit.to_state` has written."""
    design = Design.from_state(state["design"])
    levels = None if design.response is None else design.response.levels
    family = families.make(design.family, 0 if levels is None else len(levels))
    ensemble = Ensemble(**state["ensemble"])
    ensemble.check(len(design.names))
    if len(state["labels"]) != ensemble.n:
        raise StoreError(f"labels must be {ensemble.n}, one a row, not {len(state['labels'])}")
    selection = state["selection"]
    return RiprFit(
        design=design, family=family, settings=Settings(**state["settings"]), estimates=ensemble,
        log=state["log"], record=Record(**state["record"]), labels=list(state["labels"]),
        selection=None if selection is None else pd.DataFrame(selection), call=state["call"],
        arguments=state["arguments"], chosen=tuple(state["chosen"]),
    )  # fmt: skip
