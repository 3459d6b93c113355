"""Default choice of lambda_v: sets of random folds are added until they agree."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lodim import progress
from lodim.engine.blocks import single_blas
from lodim.models.proset.estimate import fit_stages, largest_v
from lodim.models.proset.prototypes import link_scores, null_sums
from lodim.models.proset.training import BatchState
from lodim.selection.choice import weights
from lodim.selection.folds import check_units
from lodim.selection.racing import fold_means, fold_row, rows_error, standard_error
from lodim.selection.tuning import FOLDS, count_draws, fold_splits

# n lambda_v, the largest first. No value between two of them is better held out by much, and half
# a step would move all predictions: with finer ones predictions would depend on the random folds.
STEPS = 100.0, 30.0, 10.0, 3.0, 1.0
ROUGH_TOL, ROUGH_FTOL = 1e-5, 1e-7  # of the compared fits: losses change by 0.0001
ROUGH_CANDIDATES = 300  # of these fits: with all of 1,000 rows they take twice the time
FEWEST_DRAWS, MOST_DRAWS = 2, 8
MOST_HELD_OUT = 2000  # rows, in all draws
BETTER = 2.0  # standard errors by which the null model must be beaten
NEGLIGIBLE = 1e-3  # a value of less weight is not looked at in further draws
CLEAR = 2.0  # standard errors, of the mean over all draws, from where another choice begins
LEAST_SPREAD = 0.25  # of the centres of draws, in steps: two draws may agree by chance


def choose_lambda_v(problem):
    """The problem with lambda_v chosen by cross-validation of its first batch, and what was tried.

    The centre of the values that held-out deviance cannot tell apart (see `selection.choice`), to
    the nearest of them. Where the best is not better than the null model by two standard errors of
    the difference, lambda_v is so large that the fit is the null model. Folds are drawn until what
    the choice of all sets is clear, given how the sets differ.

    Returns
    -------
    Problem, DataFrame
    """
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
    if count_draws(batch) == 1:  # rows or groups are so few that each is held out by itself
        return 1
    return max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_HELD_OUT // batch.n_positive))


def _seeds(seed, n):
    """Return seeds of n draws of folds: `selection.folds.assign_draws` takes these."""
    return [seed, *map(int, np.random.SeedSequence(seed).generate_state(n - 1, np.uint64))]


def _held_out(problem, values, seed, bar):
    """Losses with each value, and what they are below those of the null model: (n_values, K, 3).

    As of `racing.fold_row`; of the folds of one draw.
    """
    s = problem.settings
    rough = {"tol": max(s.tol, ROUGH_TOL), "ftol": max(s.ftol, ROUGH_FTOL), "threads": 1}
    rough["n_candidates"] = min(s.n_candidates, ROUGH_CANDIDATES)
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
    """Link scores of test rows by the null model of the training rows."""
    state, base = BatchState(train, family, settings), test.offset_matrix(family.n_scores)
    return link_scores(state, null_sums(state, base), base)


def _choice(losses, gains, values, null):
    """Return the value chosen by sets of folds, at least `null` if the null model is chosen."""
    value = values[int(_mean_position(losses) + 0.5)]
    return value if _lead_over_null(losses, gains)[0] > 0.0 else max(value, null)


def _weights(losses):
    """Weight of each value by the losses of some draws, (n_values,), of sum one."""
    rows = np.concatenate(losses, axis=1)
    return np.concatenate(weights(rows[:, None], len(losses), stages_open=False))


def _mean_position(losses):
    """Return the mean position of the values with similar losses over sets of folds."""
    weight = _weights(losses)
    return float(weight @ np.arange(len(weight)))


def _lead_over_null(losses, gains):
    """How much more than `BETTER` standard errors the best value is below the null model.

    And the standard error, of the difference.
    """
    best = np.argmin(fold_means(np.concatenate(losses, axis=1)))
    rows = np.concatenate(gains, axis=1)[best]
    error = rows_error(rows, len(gains))
    return float(fold_means(rows[None])[0] - BETTER * error), error


def _is_settled(losses, gains, most):
    """Return whether the mean position and the lead would hardly be others by `most` draws.

    Both are then farther from where the choice changes (a position half way between two values, a
    lead of zero) than CLEAR standard errors of a mean over these sets relative to one over `most`.
    """
    share, centre = CLEAR * np.sqrt(1.0 / len(losses) - 1.0 / most), _mean_position(losses)
    lead, error = _lead_over_null(losses, gains)
    centres = [_mean_position([a]) for a in losses]
    leads = [_lead_over_null([a], [b])[0] for a, b in zip(losses, gains, strict=True)]
    return bool(
        abs(centre - np.floor(centre) - 0.5) >= share * max(np.std(centres, ddof=1), LEAST_SPREAD)
        and abs(lead) >= share * max(np.std(leads, ddof=1), error)
    )


def _table(losses, values):
    """A row for each value, the largest first: mean held-out loss, its standard error, weight."""
    draws, rows = len(losses), np.concatenate(losses, axis=1)
    means = fold_means(rows)
    errors = [standard_error(row, mean, draws) for row, mean in zip(rows, means, strict=True)]
    columns = {"lambda_v": values, "n_batches": 1, "mean": means, "se": errors}
    return pd.DataFrame(columns | {"weight": _weights(losses)})
