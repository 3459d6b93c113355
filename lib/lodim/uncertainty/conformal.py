"""Conformal prediction: intervals and sets for new rows, with a guarantee that needs no model."""

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
    FROM_SPREAD,
    OF_CLASSES,
    OF_NUMBERS,
    HeldOut,
    Sayings,
    held_out_weights,
)
from lodim.uncertainty.guarantee import METHODS, Guarantee
from lodim.uncertainty.prediction_sets import Conformal
from lodim.uncertainty.refits import as_read, fit_parts, settled

FOLDS = 10  # of cv+
LEVELS = (0.8, 0.9, 0.95)  # that print shows


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
    """Make intervals (of classes: sets) that hold the responses of a share `level` of new rows.

    They rest on residuals of rows that were held out, not on a distribution of the response. What
    is promised is *marginal* coverage: of a share of all new rows, if they are drawn as the rows of
    `data` were (are exchangeable with them). It is no promise for each kind of row: `coverage` by a
    column shows how these differ.

    Parameters
    ----------
    model : model function
        Such as `lodim.gbmap`.
    formula, data, **arguments
        As the model takes them. Weights are taken for those of a sample: rows count in quantiles as
        they weigh, and a new row as the mean of them; the guarantee is then approximate.
    level : float
        Share of new rows that is to be covered. `predict` takes others too.
    method : {"cv+", "split", "jackknife+"}
        "cv+": a fit without each of `folds` parts of the rows; covered is about `level`, by theorem
        at least 1 - 2 alpha, alpha = 1 - level, less a little (Barber et al. 2021, Theorem 4: what
        print says). "jackknife+": a fit without each row; at least 1 - 2 alpha, about `level`.
        "split": one fit without a part of the rows, which are the measure (Lei et al. 2018); at
        least `level`, by wider intervals, since fewer rows are fitted.
    score : str, optional
        What of a held-out row is kept. Of a numeric response "absolute": the residual, and
        intervals of about one width (default of most models); "normalized": over the standard
        deviation that the model has for the row (default of proset; of glm's counts and gamma);
        "quantile": the distance from the model's quantiles (Romano, Patterson and Candes 2019;
        default of proset with loss="density"), those of `level`, from which intervals of other
        levels are made too. Of classes "lac" (default): one less the probability of the class,
        which makes the smallest sets; "aps": the probability of all classes down to it (Romano,
        Sesia and Candes 2020), whose sets are larger, and more alike in coverage from row to row.
        It is randomized, by a number that depends on the features of a row and on `seed` alone: the
        same row has the same set always.
    by : {None, "class"}, default=None
        "class" compares a class with the held-out rows of that class alone (Mondrian sets; Vovk,
        Gammerman and Shafer 2005, Section 4.5), so that the coverage of each class is `level`, not
        only that of all rows together: with "split" at least `level`, otherwise about `level`. A
        rare class may need larger sets; a class with fewer than level / (1 - level) held-out rows
        is in every set.
    folds : int or array (n,), optional
        For "cv+", the number of folds (10) or the fold of each row of `data`. For "split", one of
        this many parts is held out: half of the rows (2) by default. Rows are drawn by position,
        whatever they hold, since the guarantee needs that; another order of the rows gives other
        folds.
    groups : column name or array (n,), optional
        Rows of equal values, such as those of a patient, are held out together. What must be
        exchangeable is then groups: covered is a row drawn at random from a new group. All rows of
        a group count together as one (Lee, Barber and Willett 2023), so that 90 % need 9 groups.
    reselect : bool
        Of "cv+" and "jackknife+", whether each fit chooses the settings that are open for itself.
        By default they are chosen once, on all rows, and held, which costs a tenth. Held-out rows
        then had a part in the choice, and new rows have none: the theorem does not count that, and
        held-out residuals are a little too small where much is chosen by few rows. With "split"
        settings are always chosen without the rows held out.
    seed : int
        Of the folds, and of the model where it has one.
    progress : bool, optional
        Show progress on standard error: `True` at once (bars if tqdm is installed), `False` never;
        by default a line after three seconds.

    Returns
    -------
    Conformal

    Raises
    ------
    ArgumentError
        An argument is out of range, the model has no such score, or the formula no response.
    FormulaError, DataError
        As of the model.

    See Also
    --------
    Conformal, bootstrap

    Notes
    -----
    With mu_k the fit without fold k, R_i the residual of row i by the fit without its own fold k(i)
    and q+ the ceil((1 - alpha)(n + 1))-th smallest value, q- the floor(alpha (n + 1))-th, the
    interval is q-(mu_k(i)(x) - R_i) to q+(mu_k(i)(x) + R_i): it grows where the fits disagree.
    Other scores are nested bands in the place of mu +- R (Gupta, Kuchibhotla and Ramdas 2022). A
    class is in the set where fewer than (1 - alpha)(n + 1) held-out scores are below its own by the
    fits k(i) (Romano, Sesia and Candes 2020). A set may be empty: no class is as probable as is
    usual, and such a row counts as not covered. The print gives the share of empty sets among the
    held-out rows at each level; at a higher level, or with score "aps", they are rarer.

    Features are centred and scaled without the rows held out. The knots of splines, the levels of
    categories, the means of `center()` and `scale()` and those that replace missing values are
    learned once, from the features of all rows of `data` (with "split" too); the theorems do not
    count that.

    A level above n / (n + 1) rules nothing out: intervals are infinite, with a warning. Where a fit
    has no answer for a row it is infinitely far off.

    A saved file holds, beside the fits, which hold what those of the model do, the score and the
    fold of each row.

    References
    ----------
    Barber, Candes, Ramdas & Tibshirani (2021). Predictive inference with the jackknife+. Annals of
    Statistics 49.
    Lei, G'Sell, Rinaldo, Tibshirani & Wasserman (2018). Distribution-free predictive inference for
    regression. JASA 113.
    Romano, Patterson & Candes (2019). Conformalized quantile regression. NeurIPS.
    Vovk, Gammerman & Shafer (2005). Algorithmic Learning in a Random World. Springer.
    Sadinle, Lei & Wasserman (2019). Least ambiguous set-valued classifiers with bounded error
    levels. JASA 114.
    Romano, Sesia & Candes (2020). Classification with valid and adaptive coverage. NeurIPS.
    Gupta, Kuchibhotla & Ramdas (2022). Nested conformal prediction and quantile out-of-bag ensemble
    methods. Pattern Recognition 127.
    Lee, Barber & Willett (2023). Distribution-free inference with hierarchical data.

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
    >>> intervals.coverage(new)[["n", "coverage", "width"]].round(2)
         n  coverage  width
    0  199      0.93  10.39
    """
    level = share("level", level)
    one_of("method", method, METHODS)
    flag("reselect", reselect)
    seed, folds = as_seed(seed), None if folds is None else as_folds(folds)
    of = model_of(model)
    problem = prepare(of, formula, data, with_own(of, arguments, seed=seed), groups=groups)
    problem = replace(problem, batch=in_memory("conformal()", problem.batch))
    if problem.design.response is None:
        raise ArgumentError(
            f"conformal needs a response on the left of '~'; the formula is {formula!r}"
        )
    if score is not None:
        one_of("score", score, OF_CLASSES if problem.design.levels else OF_NUMBERS)
    _check_by(by, problem)
    fold = _folds(problem, method, folds, seed)
    choose = reselect or method == "split"
    full, fits, parts = _fits(problem, fold, method, score, choose)
    says = Sayings(_known_score(full, score), level, seed)
    held, table = _held_out(problem, fold, says, full, fits, parts, by)
    unit = "row" if problem.batch.units is None else "group"
    n_units = count_units(subset(problem.batch, np.flatnonzero(fold >= 0)))
    chosen = tuple(full.chosen) if full.selection is not None else ()
    weighted = problem.batch.weights is not None
    told = Guarantee(method, len(fits), n_units, unit, chosen, choose, weighted, by)
    return Conformal(None if method == "split" else full, fits, held, says, told, table)


def _check_by(by, problem):
    """Raise unless classes can have quantiles of their own, where that is asked for."""
    if by is not None:
        one_of("by", by, ("class",))
    if by and problem.design.levels is None:
        raise ArgumentError("by='class' needs a response with classes; this one is numeric")
    if by and problem.batch.units is not None:
        raise ArgumentError("by='class' needs rows that are drawn singly: leave groups out")


def _folds(problem, method, folds, seed):
    """Fold of each row (n,), below zero of those that no fit leaves out."""
    batch, n_units = problem.batch, count_units(problem.batch)
    if method != "cv+" and np.ndim(folds):
        raise ArgumentError(f"folds of method={method!r} must be a number, not an array")
    if method == "jackknife+" and folds is not None:
        raise ArgumentError("folds are of method='cv+' and 'split'; 'jackknife+' leaves out one")
    if n_units < 2:
        what = "row" if batch.units is None else "group"
        raise DataError(f"a single {what} counts: nothing can be held out")
    if folds is None:
        folds = {"cv+": min(FOLDS, n_units), "split": 2, "jackknife+": n_units}[method]
    fold = assign_by_position(batch, folds, seed)
    return np.where(fold > 0, -1, fold) if method == "split" else fold


def _fits(problem, fold, method, score, choose):
    """The fit whose predictions are shown, those without each fold, and the rows held out of each.

    Of "split" it is the one fit that there is.
    """
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
    """The score that is asked for, or the default of the fit's model."""
    known = fit._conformity
    if score is None:
        return known[0]
    if score not in known:
        raise ArgumentError(
            f"{fit.name} has no score {score!r} for this response; it has: {', '.join(known)}"
        )
    return score


def _held_out(problem, fold, says, full, fits, parts, by):
    """The HeldOut of the rows that count, and a table of what levels come to."""
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
    return held, _table(held, says, answers, full.levels)


def _table(held, says, answers, classes):
    """What levels come to: score, and mean size of intervals or sets; a row per class by class."""
    rows = []
    for level in sorted({*LEVELS, says.level}):
        size = says.sizes(answers, held, level)
        if held.of_class is None:
            groups = [({}, held, np.ones(len(size), bool))]
        else:
            groups = [
                ({"class": str(name)}, held.of(c), held.of_class == c)
                for c, name in enumerate(classes)
                if (held.of_class == c).any()
            ]
        for name, part, on in groups:
            row = {"level": level} | name | {"score": part.quantile(level)}
            row[says.size] = float(np.average(size[on], weights=part.weight))
            if says.of_classes:
                row["empty"] = float(np.average(size[on] == 0, weights=part.weight))
            rows.append(row)
    return pd.DataFrame(rows)
