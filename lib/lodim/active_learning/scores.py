"""Scores of unlabelled rows: expected benefit of each row's label for a classifier.

Fiterau (2014), Sect. 3.3, with the signs that the text intends: rows with the largest score are
suggested. A fit may have its own committee (`votes`) and information gain without refits (`gains`).
"""

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError, LodimError
from lodim.progress import steps

SCORES = ("diverse", "uncertainty", "margin", "committee", "infogain", "entropy", "random")
CANDIDATES = 20  # rows whose gain is found by refits, of the most uncertain ones


def entropies(fit, data):
    """Return the entropy of the class probabilities of each row, (n,), in nats; NaN without."""
    p = fit.predict(data, "prob").to_numpy(float)
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)


def uncertainty(learner, rng):
    """Return the entropy of the class probabilities (n,), Eq. 3.2: most uncertain rows first."""
    return entropies(learner.fit, learner.pool)


def margin(learner, rng):
    """Return one minus the lead of the most probable class over the second, (n,)."""
    p = np.sort(learner.fit.predict(learner.pool, "prob").to_numpy(float), axis=1)
    return 1.0 - (p[:, -1] - p[:, -2])


def entropy(learner, rng):
    """Return the negative entropy (n,): the most confident rows first."""
    return -entropies(learner.fit, learner.pool)


def random(learner, rng):
    """Return random scores (n,)."""
    return rng.random(len(learner.pool))


def committee(learner, rng):
    """Return the entropy of the votes of a committee (n,), Eq. 3.3: the fit's own, or bootstraps.

    A row with fewer than two votes gets the entropy of its class probabilities.
    """
    if hasattr(learner.fit, "votes"):
        votes = learner.fit.votes(learner.pool).to_numpy()
    else:
        votes = _votes_of_bootstraps(learner, rng)
    alone = (~pd.isna(votes)).sum(axis=1) < 2
    out = vote_entropy(votes)
    if alone.any():
        out[alone] = entropies(learner.fit, learner.pool)[alone]
    return out


def diverse(learner, rng):
    """Return the score by committee, with which `batch_selection.diverse` draws distant rows."""
    return committee(learner, rng)


def infogain(learner, rng):
    """Return the expected fall of the pool's total entropy once a row's label is known, (n,).

    A fit without `gains` is refitted with each label of the CANDIDATES most uncertain rows; other
    rows have no score.
    """
    if hasattr(learner.fit, "gains"):
        return learner.fit.gains(learner.pool).to_numpy()
    now = entropies(learner.fit, learner.pool)
    out = np.full(len(now), np.nan)
    p = learner.fit.predict(learner.pool, "prob").to_numpy(float)
    order = np.argsort(-np.where(np.isnan(now), -np.inf, now), kind="stable")
    candidates = order[: min(CANDIDATES, int(np.isfinite(now).sum()))]
    for i in steps(candidates, len(candidates), "candidates"):
        row = learner.pool.iloc[[i]]
        fits = (learner._fitted_with(row, label) for label in learner.fit.levels)
        after = np.array([np.nansum(entropies(fit, learner.pool)) for fit in fits])
        out[i] = np.nansum(now) - p[i] @ after
    return out


def vote_entropy(votes):
    """Return the entropy of the classes voted for, (n, members) -> (n,); None is no vote."""
    out = np.full(len(votes), np.nan)
    for i, row in enumerate(votes):
        cast = pd.Series([v for v in row if not pd.isna(v)], dtype=object)
        if len(cast):
            share = cast.value_counts(normalize=True).to_numpy(float)
            out[i] = 0.0 - (share * np.log(share)).sum()
    return out


def of_user(function, learner):
    """Return the scores of a user's function (fit, rows) -> numbers for the pool, (n,)."""
    name, n = getattr(function, "__name__", "the function"), len(learner.pool)
    value = function(learner.fit, learner.pool.copy())
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must give a number for each row, not {value!r:.80}") from None
    if out.shape != (n,):
        raise ArgumentError(
            f"{name} must give a number for each of the {n} rows of the pool; its answer has the "
            f"shape {out.shape}"
        )
    return out


def _votes_of_bootstraps(learner, rng):
    """Return classes by bootstrap fits, (n, members), without votes of those that fail.

    A bootstrap draws rows with replacement within each class.
    """
    groups = learner.labelled.groupby(learner.response, sort=True, observed=True).indices.values()
    votes = np.full((len(learner.pool), learner.size), None, dtype=object)
    for k in steps(range(learner.size), learner.size, "committee"):
        at = np.concatenate([rng.choice(rows, len(rows)) for rows in groups])
        try:
            member = learner._fitted(learner.labelled.iloc[at])
        except LodimError:
            continue  # such as where few rows are left of a class
        votes[:, k] = member.predict(learner.pool, "class").to_numpy(dtype=object)
    return votes
