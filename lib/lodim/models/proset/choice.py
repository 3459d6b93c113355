"""Choose lambda_v by default: repeat cross-validation with new folds until the choice is clear."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lodim import progress
from lodim.engine.blocks import single_blas
from lodim.models.proset.estimate import fit_stages, largest_v
from lodim.models.proset.prototypes import link_scores, null_sums
from lodim.models.proset.training import BatchState
from lodim.selection.folds import check_units
from lodim.selection.racing import fold_means, fold_row, rows_error, standard_error
from lodim.selection.tuning import FOLDS, count_draws, fold_splits, weights

# n lambda_v, the largest first. Values in between hardly improve held-out loss, and with finer
# steps the predictions would depend more on the random folds.
STEPS = 100.0, 30.0, 10.0, 3.0, 1.0
COMPARED_TOL, COMPARED_FTOL = 1e-5, 1e-7  # tolerances of the compared fits: losses change by 0.0001
COMPARED_EVALUATIONS = 50  # of these fits: 100 chose the same value on 14 of 15 simulated sets
COMPARED_CANDIDATES = 300  # candidates of these fits: 1,000 would take twice the time
FEWEST_DRAWS, MOST_DRAWS = 2, 8
MOST_HELD_OUT = 2000  # held-out rows in all repetitions
BETTER = 2.0  # standard errors by which a fit must beat the null model
NEGLIGIBLE = 1e-3  # values of less weight are not tried in further repetitions
CLEAR = 2.0  # standard errors between the mean over repetitions and another choice
LEAST_SPREAD = 0.25  # smallest SD of centres, in steps: two repetitions may agree by chance


def choose_lambda_v(problem):
    """Choose lambda_v by repeated cross-validation; return the problem and a table of values.

    The choice is the centre of the values with similar held-out deviance. If the best one does not
    beat the null model by two standard errors, it is a penalty that gives the null model."""
    check_units(problem.batch, "lambda_v")
    values = [step / problem.batch.n_positive for step in STEPS]
    most = _most_draws(problem.batch)
    losses, gains, live = [], [], np.ones(len(values), bool)
    with progress.bar(most * FOLDS, "cross-validation") as bar:
        for seed in _seeds(problem.settings.seed, most):
            of_draw = _held_out(problem, np.array(values)[live], seed, bar)
            for kept, new in zip((losses, gains), of_draw, strict=True):
                kept.append(kept[0].copy() if kept else new)
                kept[-1][live] = new
            live = _weights(losses) > NEGLIGIBLE
            if len(losses) >= FEWEST_DRAWS and _is_settled(losses, gains, most):
                break
    null = largest_v(problem.batch, problem.family, problem.settings)
    by_draw = [_choice([a], [b], values, null) for a, b in zip(losses, gains, strict=True)]
    settings = replace(problem.settings, lambda_v=_choice(losses, gains, values, null))
    chosen = {"lambda_v": tuple(by_draw) if len(by_draw) > 1 else ()}
    return problem.settle(settings, chosen=chosen), _table(losses, values)


def _most_draws(batch):
    if count_draws(batch) == 1:  # few rows or groups: each is held out singly
        return 1
    return max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_HELD_OUT // batch.n_positive))


def _seeds(seed, n):
    return [seed, *map(int, np.random.SeedSequence(seed).generate_state(n - 1, np.uint64))]


def _held_out(problem, values, seed, bar):
    """Return losses, and gains over the null model, of each lambda_v in each held-out fold.

    Both are arrays (n_values, n_folds, 3): mean, total weight and standard error."""
    s = problem.settings
    rough = {"tol": max(s.tol, COMPARED_TOL), "ftol": max(s.ftol, COMPARED_FTOL), "threads": 1}
    rough["max_iter"] = min(s.max_iter, COMPARED_EVALUATIONS)
    rough["n_candidates"] = min(s.n_candidates, COMPARED_CANDIDATES)
    some = [replace(s, lambda_v=float(value), n_batches=1, **rough) for value in values]
    levels, family, losses, gains = problem.design.levels, problem.family, [], []
    for train, test in fold_splits(problem.batch, levels, seed, problem.standardize):
        null = family.deviance(test.y, _null_scores(train, test, family, s))
        with single_blas():
            scores = [next(fit_stages(train, family, one, eval_batch=test))[2] for one in some]
        each = [family.deviance(test.y, score) for score in scores]
        losses.append([fold_row(test, loss) for loss in each])
        gains.append([fold_row(test, null - loss) for loss in each])
        bar.update(1)
    return np.swapaxes(losses, 0, 1), np.swapaxes(gains, 0, 1)


def _null_scores(train, test, family, settings):
    """Return linear predictors (n, K) of the rows `test` by the null model, fitted to `train`."""
    state, base = BatchState(train, family, settings), test.offset_matrix(family.n_scores)
    return link_scores(state, null_sums(state, base), base)


def _choice(losses, gains, values, null):
    """Return the chosen lambda_v; at least `null` if none of `values` clearly beats the null model.

    losses and gains have an array from `_held_out` per repetition of cross-validation."""
    value = values[int(_mean_position(losses) + 0.5)]
    return value if _lead_over_null(losses, gains)[0] > 0.0 else max(value, null)


def _weights(losses):
    """Return a weight for each lambda_v tried, larger for lower held-out losses; their sum is 1."""
    rows = np.concatenate(losses, axis=1)
    return np.concatenate(weights(rows[:, None], len(losses), stages_open=False))


def _mean_position(losses):
    weight = _weights(losses)
    return float(weight @ np.arange(len(weight)))


def _lead_over_null(losses, gains):
    """Return the best lambda_v's gain over the null model minus two SE, and this SE."""
    best = np.argmin(fold_means(np.concatenate(losses, axis=1)))
    rows = np.concatenate(gains, axis=1)[best]
    error = rows_error(rows, len(gains))
    return float(fold_means(rows[None])[0] - BETTER * error), error


def _is_settled(losses, gains, most):
    """Return whether more repetitions, up to `most`, would hardly change the chosen lambda_v.

    In standard errors, the mean position among the penalties must be far from half-way between two,
    and the lead over the null model far from zero."""
    share, centre = CLEAR * np.sqrt(1.0 / len(losses) - 1.0 / most), _mean_position(losses)
    lead, error = _lead_over_null(losses, gains)
    centres = [_mean_position([a]) for a in losses]
    leads = [_lead_over_null([a], [b])[0] for a, b in zip(losses, gains, strict=True)]
    return bool(
        abs(centre - np.floor(centre) - 0.5) >= share * max(np.std(centres, ddof=1), LEAST_SPREAD)
        and abs(lead) >= share * max(np.std(leads, ddof=1), error)
    )


def _table(losses, values):
    """Return a table of the `values` of lambda_v: mean held-out loss, SE, weight in the choice."""
    draws, rows = len(losses), np.concatenate(losses, axis=1)
    means = fold_means(rows)
    errors = [standard_error(row, mean, draws) for row, mean in zip(rows, means, strict=True)]
    columns = {"lambda_v": values, "n_batches": 1, "mean": means, "se": errors}
    return pd.DataFrame(columns | {"weight": _weights(losses)})
