"""Conformal prediction: intervals and sets for new rows, valid for any model."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from lodim.checks import as_seed, flag, one_of, share
from lodim.design.batch import subset
from lodim.errors import ArgumentError, DataError
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import in_memory, model_of, prepare, with_own
from lodim.fitting.model import SPREAD
from lodim.selection.folds import as_folds, assign_by_position, count_units
from lodim.selection.tuning import side_by_side
from lodim.typing import Data, FitT, Model, P, RowValues, Values
from lodim.uncertainty.conformity import (
    CLASS_SCORES,
    FROM_SPREAD,
    NUMERIC_SCORES,
    ConformityScore,
    HeldOut,
    held_out_weights,
)
from lodim.uncertainty.prediction_sets import METHODS, Conformal, Guarantee
from lodim.uncertainty.refits import as_read, fit_parts, settled

FOLDS = 10  # default number of folds of cv+
LEVELS = (0.8, 0.9, 0.95)  # levels in the printed table


@with_known_arguments
def conformal(
    model: Model[P, FitT],
    formula: str,
    data: Data,
    level: float = 0.9,
    method: Literal["cv+", "split", "jackknife+"] = "cv+",
    score: Literal["absolute", "normalized", "quantile", "lac", "aps"] | None = None,
    by: Literal["class"] | None = None,
    folds: int | Values | None = None,
    groups: RowValues | None = None,
    reselect: bool = False,
    seed: int = 0,
    progress: bool | None = None,
    *args: P.args,
    **arguments: P.kwargs,
) -> Conformal[FitT]:
    """Fit a model with prediction intervals (for classes: sets) of coverage `level`.

    Intervals are computed from residuals of held-out rows, without assumptions on the distribution
    of the response. The guarantee holds on average over new rows that are exchangeable with the
    rows of `data`, not for each kind of row; `coverage(by=...)` shows differences.

    Parameters
    ----------
    model : model function
        For example `lodim.gbmap`.
    formula, data, **arguments
        Arguments of the model. Weights are sampling weights; the guarantee is then approximate.
    level : float, default=0.9
        Coverage; `predict` accepts other levels too.
    method : {"cv+", "split", "jackknife+"}, default="cv+"
        "cv+" makes one fit without each fold. Coverage is about `level`; 1 - 2 (1 - level), minus a
        small term, is guaranteed. "jackknife+" leaves out single rows and has no such term.
        "split" calibrates one fit on the other rows: it guarantees `level`, with wider intervals.
    score : str, optional
        For numbers: "absolute" (default), residuals, gives intervals of about equal width;
        "normalized", residuals over the model's standard deviation, is the default for proset, and
        for counts and gamma with glm; "quantile", distance from the model's quantiles, for proset
        with loss="density". For family="quantile", the predicted quantile is the centre of the
        interval for the response. For classes: "lac" (default), one minus the probability, gives
        the smallest sets; "aps", the cumulative probability (randomized), more even coverage.
    by : {None, "class"}, default=None
        "class" calibrates each class separately, so that each has coverage `level`. Sets may be
        larger; a class with fewer than level / (1 - level) held-out rows is in every set.
    folds : int or array (n,), optional
        For "cv+", the number of folds (default=10) or the fold of each row. For "split", one of
        this many parts is held out (default=2). Folds depend on the order of rows.
    groups : column name or array (n,), optional
        Rows with equal values are held out together and count as one unit. Groups must be
        exchangeable; the coverage is for a random row of a new group. 90% needs 9 groups.
    reselect : bool, default=False
        For "cv+" and "jackknife+", let each fit choose the settings that you did not give. By
        default they are chosen once on all rows, which is faster but not covered by the theorem;
        residuals may be slightly too small. "split" never uses held-out rows for this choice.
    seed : int, default=0
        Seed of the folds, and of the model if it takes a seed.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.

    Returns
    -------
    Conformal

    Raises
    ------
    ArgumentError
        If an argument is out of range, the model lacks the score, or the formula has no response.
    FormulaError, DataError

    See Also
    --------
    Conformal, bootstrap

    Notes
    -----
    The fit without the fold of row i gives its absolute residual R_i, and the prediction p_i for a
    new row. The upper limit of the interval is the ceil(level (n + 1))-th smallest of the n values
    p_i + R_i, the lower limit the floor((1 - level)(n + 1))-th smallest of p_i - R_i. A class is in
    the set if fewer than level (n + 1) held-out scores are below its score. An empty set counts as
    not covered. For a level above n / (n + 1) intervals are infinite.

    Features are scaled without held-out rows. Knots, levels and means that the formula learned come
    from all rows, which the theorems ignore.

    References
    ----------
    Barber, Candes, Ramdas & Tibshirani (2021). Predictive inference with the jackknife+. Annals of
    Statistics 49. ("cv+", "jackknife+": Theorems 1 and 4)
    Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018). Distribution-free predictive inference for
    regression. JASA 113. ("split")
    Romano, Patterson & Candes (2019). Conformalized quantile regression. NeurIPS. ("quantile")
    Sadinle, Lei & Wasserman (2019). Least ambiguous set-valued classifiers. JASA 114. ("lac")
    Romano, Sesia & Candes (2020). Classification with valid and adaptive coverage. NeurIPS. ("aps")
    Gupta, Kuchibhotla & Ramdas (2022). Nested conformal prediction. Pattern Recognition 127.
    Vovk, Gammerman & Shafer (2005). Algorithmic Learning in a Random World. Springer. (by="class")
    Lee, Barber & Willett (2023). Distribution-free inference with hierarchical data. (groups)

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> known, new = cars[::2], cars[1::2]
    >>> intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=3, lambda_=0.1)
    >>> intervals.predict(new.head(2)).round(1)
        fit  lower  upper
    1  14.9    9.6   20.1
    3  15.4   10.1   20.6
    """
    level = share("level", level)
    one_of("method", method, METHODS)
    flag("reselect", reselect)
    seed, folds = as_seed(seed), None if folds is None else as_folds(folds)
    of = model_of(model)
    problem = prepare(of, formula, data, with_own(of, arguments, seed=seed), groups=groups)
    problem = replace(problem, batch=in_memory("conformal()", problem.batch))
    problem.design.check_response("conformal")
    if score is not None:
        one_of("score", score, CLASS_SCORES if problem.design.levels else NUMERIC_SCORES)
    if by is not None:
        one_of("by", by, ("class",))
        if problem.design.levels is None:
            words = "by='class' needs a response with classes; this response is numeric"
            raise ArgumentError(words)
        if problem.batch.units is not None:
            raise ArgumentError("by='class' and groups= cannot be combined: leave one of them out")
    fold = _folds(problem, method, folds, seed)
    choose = reselect or method == "split"
    full, fits, parts = _fits(problem, fold, method, score, choose)
    says = ConformityScore(_known_score(full, score), level, seed)
    held, table = _held_out(problem, fold, says, full, fits, parts, by)
    unit = "row" if problem.batch.units is None else "group"
    n_units = count_units(subset(problem.batch, np.flatnonzero(fold >= 0)))
    chosen = tuple(full.chosen) if full.selection is not None else ()
    weighted = problem.batch.weights is not None
    told = Guarantee(method, len(fits), n_units, unit, chosen, choose, weighted, by)
    return Conformal(None if method == "split" else full, fits, held, says, told, table)


def _folds(problem, method, folds, seed):
    """Return the fold of each row (n,) for a conformal method; -1 if the row is never held out.

    method : "cv+", "split" or "jackknife+"; folds : number, or (n,) fold of each row, or None"""
    batch, n_units = problem.batch, count_units(problem.batch)
    if method != "cv+" and np.ndim(folds):
        raise ArgumentError(f"folds of method={method!r} must be a number, not an array")
    if method == "jackknife+" and folds is not None:
        needs = "folds= needs method='cv+' or 'split'"
        raise ArgumentError(f"{needs}, not 'jackknife+', which leaves out one row at a time")
    if n_units < 2:
        what = "row" if batch.units is None else "group"
        raise DataError(f"only one {what} has a positive weight, so none can be held out")
    if folds is None:
        folds = {"cv+": min(FOLDS, n_units), "split": 2, "jackknife+": n_units}[method]
    fold = assign_by_position(batch, folds, seed)
    return np.where(fold > 0, -1, fold) if method == "split" else fold


def _fits(problem, fold, method, score, choose):
    """Fit the model without each fold, and to all rows unless `method` is "split".

    fold : (n,) fold of each row, -1 if never held out
    score : name of the conformity score, or None
    choose : whether fits without a fold choose settings left open
    Return the fit that predicts new rows, fits without a fold, and Batches of held-out rows."""
    how = {"use": lambda fit, rows: (fit, rows), "what": "fits", "choose": choose}
    held_out = [fold == k for k in range(fold.max() + 1)]
    if method == "split":
        found = fit_parts(problem, held_out, light=False, jobs=1, **how)
        return found[0][0], *zip(*found, strict=True)
    full = problem.model.fit(problem)
    light = SPREAD if _known_score(full, score) in FROM_SPREAD else True
    asked = problem if choose else settled(problem, full)
    found = fit_parts(asked, held_out, light=light, jobs=side_by_side(problem), **how)
    return full, *zip(*found, strict=True)


def _known_score(fit, score):
    known = fit._conformity
    if score is None:
        return known[0]
    if score not in known:
        has = f"it has: {', '.join(known)}"
        raise ArgumentError(f"{fit.name} has no score {score!r} for this response; {has}")
    return score


def _held_out(problem, fold, says, full, fits, parts, by):
    """Return conformity scores of held-out rows (HeldOut), and the frame of tidy().

    fold : (n,) fold of each row, -1 if never held out
    says : ConformityScore, kind of score
    full : fit that predicts new rows
    fits : per fold, the fit without it
    parts : per fold, a Batch of its rows
    by : "class" for one quantile per class, or None"""
    at, answers, y = [], [], []
    for k, (fit, rows) in enumerate(zip(fits, parts, strict=True)):
        where = np.flatnonzero(fold == k)
        keyed = rows if fit is full else as_read(full, subset(problem.batch, where))
        answers.append(says.of_rows(fit, rows, says.uniforms(full, keyed)))
        at.append(where)
        y.append(rows.y)
    at, answers, y = np.concatenate(at), np.concatenate(answers, axis=1), np.concatenate(y)
    known = np.flatnonzero(np.isin(at, problem.batch.positive_weight))
    at, answers, y = at[known], answers[:, known], y[known]
    batch = subset(problem.batch, at)
    weights = held_out_weights(batch.row_weights, batch.units)
    of_class = y.astype(np.int64) if by else None
    held = HeldOut(fold[at], says.scores(answers, y), weights, of_class)
    table = []
    for level in sorted({*LEVELS, says.level}):
        size = says.sizes(answers, held, level)
        for name, part, on in held.groups(full.levels):
            if not len(part.fold):
                continue
            row = {"level": level} if name is None else {"level": level, "class": str(name)}
            row["score"] = part.quantile(level)
            row[says.size] = float(np.average(size[on], weights=part.weight))
            if says.of_classes:
                row["empty"] = float(np.average(size[on] == 0, weights=part.weight))
            table.append(row)
    return held, pd.DataFrame(table)
