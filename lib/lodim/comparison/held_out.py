"""Fits of each compared model to the training rows of each fold, and their held-out predictions."""

import inspect
import logging
import re
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from lodim import progress
from lodim.comparison.candidates import peer_scores
from lodim.design.batch import Batch
from lodim.design.design import Design
from lodim.design.frame import in_pandas, take_rows
from lodim.design.rows import RowInputs
from lodim.engine import row_keys, tiles
from lodim.engine.blocks import available_threads
from lodim.errors import DataError, LodimError
from lodim.fitting.fit import Fit
from lodim.formula.formula import leave_out
from lodim.selection.tuning import FEW_ROWS

START = 3.0  # seconds that starting processes takes
COUNTS = ("features", "parts", "price")  # measures of a fit's size


@dataclass(frozen=True)
class Task:
    """Data and settings that all models of a comparison share."""

    formula: str
    data: Any
    inputs: RowInputs  # weights, offset and groups that the user gave
    design: Design
    batch: Batch  # all rows as numbers
    fold: np.ndarray  # (n,) fold of each row of the batch
    told: list[str]  # warnings about the data that compare() has given
    family: Any
    parameters: dict  # arguments for parameters of the family, such as `power`
    seed: int
    threads: int | None

    @property
    def levels(self):
        return self.design.levels

    @property
    def n_folds(self):
        return int(self.fold.max()) + 1

    def inputs_of(self, rows):
        """Return weights, offset and groups of the used rows at positions `rows`."""
        return self.inputs.arrays().take(self.batch.rows[rows])


@dataclass(frozen=True)
class Record:
    """Predictions of a model for the held-out rows of one fold or all, and how its fits went."""

    scores: np.ndarray | None = None  # (m, K) linear predictors; None: the model failed
    reason: str = ""  # error message of the failed fit
    needs: list = field(default_factory=list)  # sizes per fold: dict of features, parts, price
    seconds: float = 0.0  # mean time per fold, of fit and predictions
    unanswered: int = 0  # number of rows without prediction, which get that of the null model
    why: list = field(default_factory=list)  # reasons for these, one per fold
    not_converged: int = 0  # number of folds in which the fit did not converge


def hold_out(candidates, task):
    """Return a dict label -> Record with the held-out predictions of each Candidate for a Task."""
    n_folds, levels, batch = task.n_folds, task.levels, task.batch
    for k in range(n_folds) if levels else ():
        seen = np.bincount(batch.y[task.fold != k].astype(int), minlength=len(levels))
        if not seen.all():
            name = levels[int(np.argmin(seen))]
            what = f"all rows of the class {name!r} of {task.design.response.name!r}"
            cure = "no model can learn this class. Leave the class out, or give other folds"
            raise DataError(f"{what} are held out together: {cure}")
    pairs = [(candidate, k) for candidate in candidates for k in range(n_folds)]
    with warnings.catch_warnings(action="ignore"):  # compare() has given those of all rows
        found = list(progress.steps(_results(task, pairs), len(pairs), "fits"))
    parts = {c.label: found[i * n_folds :][:n_folds] for i, c in enumerate(candidates)}
    return {label: _record(task, results) for label, results in parts.items()}


def _results(task, pairs):
    """Yield the Record of each pair (Candidate, fold), in the order of `pairs`."""
    few, began = task.batch.n <= FEW_ROWS, time.perf_counter()
    jobs = (task.threads or available_threads()) if few else 1
    movable = all(candidate.kind != "call" for candidate, _ in pairs)
    for done, pair in enumerate(pairs):
        if jobs > 1 and movable and time.perf_counter() - began > START:
            own, jobs = replace(task, threads=1), min(jobs, len(pairs) - done)
            run = Parallel(jobs, backend="loky", return_as="generator")
            yield from run(delayed(_alone)(own, *rest) for rest in pairs[done:])
            return
        yield _fit_fold(task, *pair)


def _alone(task, candidate, k):
    logging.getLogger("lodim").disabled = True  # the calling process says what takes time
    with warnings.catch_warnings(action="ignore"), progress.showing(False, "compare"):
        return _fit_fold(task, candidate, k)


def fit_all(candidate, task):
    """Return the fit of a Candidate (lodim's model, or user's function) to all rows of a Task."""
    with warnings.catch_warnings():
        for message in task.told:
            warnings.filterwarnings("ignore", re.escape(message))
        return _fit(candidate, task, np.arange(task.batch.n))


def _record(task, results):
    """Join a model's held-out predictions per fold into one Record for all rows.

    task : Task (data, folds); results : Record of each fold; a failed one is returned as it is"""
    for result in results:
        if result.reason:
            return result
    scores = np.empty((task.batch.n, task.family.n_scores))
    for k, result in enumerate(results):
        scores[task.fold == k] = result.scores
    if not np.isfinite(task.family.deviance(task.batch.y, scores)).all():
        return Record(reason="an observed class has probability zero, so the deviance is infinite")
    return Record(
        scores,
        needs=[need for result in results for need in result.needs],
        seconds=sum(result.seconds for result in results) / len(results),
        unanswered=sum(result.unanswered for result in results),
        why=[why for result in results for why in result.why],
        not_converged=sum(result.not_converged for result in results),
    )


def _fit_fold(task, candidate, k):
    """Fit a Candidate to a Task's rows outside fold k; return the Record of the fold's rows."""
    train, test = np.flatnonzero(task.fold != k), np.flatnonzero(task.fold == k)
    began = time.perf_counter()
    try:
        size, converged = {}, True
        if candidate.kind == "null":
            found, size = _null(task, train, test), {"features": 0}
        elif candidate.kind == "peer":
            found, strict = _peer(candidate.label, task, train, test)
        else:
            fit = _fit(candidate, task, train)
            strict = partial(fit.predict, offset=0.0 if fit.design.offset_given else None)
            found, size, converged = _answers(fit, task, test), fit._complexity(), fit.converged
    except Exception as error:  # any error of a model is listed as its reason
        text = str(error).strip() or type(error).__name__
        own = "" if isinstance(error, LodimError) else f"{type(error).__name__}: "
        where = f" (fold {k + 1} of {task.n_folds})" if k else ""
        return Record(reason=f"{own}{text}{where}")
    missed, why = np.isnan(found).any(axis=1), []
    if missed.any():
        found = np.where(missed[:, None], _null(task, train, test), found)
        reason = _why_unanswered(strict, take_rows(task.data, task.batch.rows[test[missed]]))
        why = [f"{reason} (fold {k + 1})"]
    seconds = time.perf_counter() - began
    return Record(found, "", [size], seconds, int(missed.sum()), why, int(not converged))


def _why_unanswered(predict, data):
    """Return a text on why the rows of the frame `data` could not be predicted.

    It is the error that predict(data) raises; if there is none, it lists the usual reasons."""
    try:
        predict(data)
    except LodimError as error:
        return str(error).split(";")[0]
    return "features are missing, or have levels that the training rows of the fold did not have"


def null_scores(task):
    """Return linear predictors (n, K) of a Task's null model: mean or shares in training rows."""
    scores = np.empty((task.batch.n, task.family.n_scores))
    for k in range(task.n_folds):
        scores[task.fold == k] = _null(task, *map(np.flatnonzero, (task.fold != k, task.fold == k)))
    return scores


def _null(task, train, test):
    """Fit an intercept-only model to rows `train`; return linear predictors (m, K) of `test`."""
    batch, offset = task.batch, task.batch.offset_matrix(task.family.n_scores)
    weight = batch.weight[train] / batch.weight[train].sum()
    return offset[test] + task.family.null_intercept(batch.y[train], weight, offset[train])


def _fit(candidate, task, train):
    """Return a Candidate's fit to rows `train` of a Task."""
    data, formula = take_rows(task.data, task.batch.rows[train]), task.formula
    if candidate.kind == "call":
        own = task.design.weights, task.design.offset, task.inputs.groups
        formula, arguments = leave_out(formula, *own), {}
    else:
        known, given = inspect.signature(candidate.function).parameters, task.inputs_of(train)
        if given.offset is not None and "offset" not in known:
            raise DataError(f"{candidate.function.__name__} cannot use an offset")
        if "groups" not in known:
            formula = leave_out(formula, given.groups)
        shared = {"family": task.design.family, **task.parameters, **vars(given)}
        shared |= {"seed": task.seed, "threads": task.threads}
        arguments = {k: v for k, v in shared.items() if k in known and v is not None}
        arguments |= candidate.arguments
    fit = candidate.function(formula, data, **arguments)
    if not isinstance(fit, Fit) or fit.design.response is None:
        raise DataError(f"{candidate.label} must return a fit of lodim, not {fit!r:.80}")
    if fit.levels != task.levels:
        raise DataError(f"its classes are {fit.levels}, not {task.levels}")
    return fit


def _answers(fit, task, test):
    """Return a fit's linear predictors (m, K) for rows `test` of a Task; NaN if not predicted."""
    data, named = take_rows(task.data, task.batch.rows[test]), fit.design.offset is not None
    how = {"offset": task.inputs_of(test).offset} if fit.design.offset_given and not named else {}
    numbers = task.levels is None
    kind = "response" if numbers else "link"
    found = in_pandas(fit.predict)(data, kind, new_levels="missing", **how).to_numpy(dtype=float)
    return task.family.score(found) if numbers else found.reshape(len(test), -1)


def _peer(name, task, train, test):
    """Fit the scikit-learn model `name` to some rows of a Task; predict other rows.

    train, test : positions of rows in the task's batch
    Return linear predictors (m, K), and a function that raises errors about new levels."""
    if task.batch.offset is not None:
        raise DataError("models of scikit-learn cannot use an offset")
    how = {"family": task.design.family, "parameters": task.parameters, "missing": "indicator"}
    data = take_rows(task.data, task.batch.rows[train])
    design, batch = Design.learn(task.formula, data, task.inputs_of(train), **how)
    n_classes = len(design.levels or ())
    key, _ = row_keys.of_batch(batch, n_classes)
    order = row_keys.shuffled(key, task.seed)  # a forest samples rows by position
    X = tiles.unpack(batch.X, batch.n)[order]
    out = np.full((len(test), task.family.n_scores), np.nan)
    weights = None if batch.weights is None else batch.weights[order]
    new = design.apply(take_rows(task.data, task.batch.rows[test]), new_levels="missing")
    rows, X_new = (X, batch.y[order], weights), tiles.unpack(new.X, new.n)
    found = peer_scores(name, *rows, X_new, n_classes, task.family, task.seed, task.threads)
    out[new.rows] = found if n_classes else task.family.score(found[:, 0])
    return out, design.apply
