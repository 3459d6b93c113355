"""Fits of the training rows of each fold, and what they say of the rows held out."""

import inspect
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lodim import progress
from lodim.comparison import peers
from lodim.design.batch import Batch
from lodim.design.design import Design
from lodim.design.frame import in_pandas, take_rows
from lodim.design.rows import RowInputs
from lodim.engine import row_keys, tiles
from lodim.errors import DataError, LodimError
from lodim.fitting.fit import Fit
from lodim.formula.formula import leave_out

COUNTS = ("features", "parts", "price")  # of what a fit needs


@dataclass(frozen=True)
class Task:
    """The data as the user gave them, and what all models are told.

    inputs : weights and groups as given; design, batch : of all rows
    fold : (n,) of each row of the batch
    """

    formula: str
    data: Any
    inputs: RowInputs
    design: Design
    batch: Batch
    fold: np.ndarray
    family: Any
    seed: int
    threads: int | None

    @property
    def levels(self):
        """Classes of the response in order, None for a numeric one."""
        return self.design.levels

    @property
    def n_scores(self):
        """Number of scores of a row."""
        return self.family.n_scores

    def inputs_of(self, rows):
        """Return weights and groups of some rows of the batch."""
        return self.inputs.arrays().take(self.batch.rows[rows])


@dataclass(frozen=True)
class Record:
    """Predictions of a candidate for held-out rows.

    scores : (n, K) link scores, or means of a numeric response; None where it has failed
    reason : why it has failed, else empty
    needs : a dict of COUNTS and "part" (the noun) for each fold
    seconds : of the fits of the folds
    unanswered : rows that it predicts as NaN; those have the scores of the null model
    why : reasons for these, each with its fold
    not_converged : fits of folds
    """

    scores: np.ndarray | None = None
    reason: str = ""
    needs: list = field(default_factory=list)
    seconds: float = 0.0
    unanswered: int = 0
    why: list = field(default_factory=list)
    not_converged: int = 0


def hold_out(candidates, task):
    """Return a Record of each candidate, a dict by label."""
    n_folds = int(task.fold.max()) + 1
    _check_classes(task)
    records = {}
    with progress.bar(len(candidates) * n_folds, "fits") as bar:
        for candidate in candidates:
            records[candidate.label] = _record(candidate, task, n_folds, bar)
    return records


def fit_all(candidate, task):
    """Return the fit of a model of lodim, or of a user's call, to all rows."""
    return _fit(candidate, task, np.arange(task.batch.n), quiet=False)


def _record(candidate, task, n_folds, bar):
    scores, needs = np.empty((task.batch.n, task.n_scores)), []
    start, unanswered, why, failed_to_converge = time.perf_counter(), 0, [], 0
    for k in range(n_folds):
        train, test = np.flatnonzero(task.fold != k), np.flatnonzero(task.fold == k)
        try:
            found, need, converged, strict = _part(candidate, task, train, test)
        except Exception as error:  # of any model: it is listed with its reason
            bar.update(n_folds - k)
            return Record(reason=_reason(error, k, n_folds))
        known = ~np.isnan(found).any(axis=1)
        scores[test] = np.where(known[:, None], found, _null(task, train))
        if not known.all():
            unanswered += int((~known).sum())
            reason = _why_unanswered(strict, take_rows(task.data, task.batch.rows[test[~known]]))
            why.append(f"{reason} (fold {k + 1})")
        failed_to_converge += not converged
        needs.append(need)
        bar.update(1)
    if not np.isfinite(task.family.deviance(task.batch.y, scores)).all():
        return Record(
            reason="an observed class has a probability of zero: its deviance is infinite"
        )
    seconds = (time.perf_counter() - start) / n_folds
    return Record(scores, "", needs, seconds, unanswered, why, failed_to_converge)


def _reason(error, k, n_folds):
    text = str(error).strip() or type(error).__name__
    own = "" if isinstance(error, LodimError) else f"{type(error).__name__}: "
    return f"{own}{text}" + (f" (fold {k + 1} of {n_folds})" if k else "")


def _why_unanswered(strict, data):
    """Why rows have no prediction, in words: what a call that refuses new levels says of them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            strict(data)
    except LodimError as error:
        return str(error).split(";")[0]
    return "features are missing, or have values that the training rows cannot estimate"


def _part(candidate, task, train, test):
    """Return scores (m, K) of the rows held out, what the fit needs, whether it has converged.

    And the function of a frame that refuses levels which the training rows lack.
    """
    if candidate.kind == "null":
        null = np.repeat(_null(task, train), len(test), axis=0)
        return null, {"features": 0}, True, None
    if candidate.kind == "peer":
        return _peer(candidate.label, task, train, test)
    fit = _fit(candidate, task, train)
    return _answers(fit, task, test), fit._complexity(), fit.converged, fit.predict


def null_scores(task):
    """Return scores (n, K) of the null model of the other folds."""
    scores = np.empty((task.batch.n, task.n_scores))
    for k in range(int(task.fold.max()) + 1):
        scores[task.fold == k] = _null(task, np.flatnonzero(task.fold != k))
    return scores


def _null(task, train):
    """Score (1, K) of the mean response, or of the class shares, of training rows."""
    batch = task.batch
    weight = batch.weight[train] / batch.weight[train].sum()
    none = np.zeros((len(train), task.n_scores))
    return task.family.null_score(batch.y[train], weight, none)[:1]


def _fit(candidate, task, train, quiet=True):
    """Return the fit of a model of lodim, or of a user's call, to some of the rows."""
    data, formula = take_rows(task.data, task.batch.rows[train]), task.formula
    if candidate.kind == "call":
        formula, arguments = leave_out(formula, task.design.weights, task.inputs.groups), {}
    else:
        formula, arguments = _arguments(candidate, task, train)
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        fit = candidate.function(formula, data, **arguments)
    if not isinstance(fit, Fit) or fit.design.response is None:
        raise DataError(f"{candidate.label} returned no fit of lodim, but {fit!r:.80}")
    if fit.levels != task.levels:
        raise DataError(f"its classes are {fit.levels}, not {task.levels}")
    return fit


def _arguments(candidate, task, train):
    """Return the formula and the arguments of a model function for some of the rows."""
    known, formula = inspect.signature(candidate.function).parameters, task.formula
    arguments = {"family": task.design.family, "seed": task.seed, "threads": task.threads}
    given = task.inputs_of(train)
    if given.weights is not None:
        arguments["weights"] = given.weights
    if "groups" in known:
        arguments["groups"] = given.groups
    else:
        formula = leave_out(formula, given.groups)
    arguments = {k: v for k, v in arguments.items() if k in known and v is not None}
    return formula, arguments | candidate.arguments


def _answers(fit, task, test):
    """Return scores (m, K) of rows by a fit, NaN where it has no answer."""
    data = take_rows(task.data, task.batch.rows[test])
    type = "response" if task.levels is None else "link"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = in_pandas(fit.predict)(data, type, new_levels="missing")
    return found.to_numpy(dtype=float).reshape(len(test), -1)


def _peer(name, task, train, test):
    """Scores of a model of scikit-learn, whose features are the columns of lodim's design."""
    design, batch = Design.learn(
        task.formula,
        take_rows(task.data, task.batch.rows[train]),
        task.inputs_of(train),
        family=task.design.family,
        missing="indicator",
    )
    n_classes = len(design.levels or ())
    key, _ = row_keys.of_batch(batch, n_classes)
    order = row_keys.shuffled(key, task.seed)  # a forest draws rows by their places
    X, out = tiles.unpack(batch.X, batch.n)[order], np.full((len(test), task.n_scores), np.nan)
    weights = None if batch.weights is None else batch.weights[order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new = design.apply(take_rows(task.data, task.batch.rows[test]), new_levels="missing")
        rows, X_new = (X, batch.y[order], weights), tiles.unpack(new.X, new.n)
        out[new.rows] = peers.scores(name, *rows, X_new, n_classes, task.seed, task.threads)
    return out, {}, True, design.apply


def _check_classes(task):
    """Raise where a fold holds out all rows of a class."""
    levels, batch = task.levels, task.batch
    counted = batch.weight > 0
    for k in range(int(task.fold.max()) + 1) if levels else ():
        seen = np.bincount(batch.y[counted & (task.fold != k)].astype(int), minlength=len(levels))
        if not seen.all():
            name = levels[int(np.argmin(seen))]
            raise DataError(
                f"all rows of the class {name!r} of {task.design.response.name!r} are held out "
                "together: no model can learn it; leave the class out, or give other folds"
            )
