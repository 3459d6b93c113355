"""Scores of unlabelled rows (Fiterau 2014, Sect. 3.3), and selection of rows to label together."""

import numpy as np
import pandas as pd

from lodim.design.frame import with_column
from lodim.engine import tiles
from lodim.errors import ArgumentError, LodimError
from lodim.progress import steps

SCORES = ("diverse", "uncertainty", "margin", "committee", "infogain", "entropy", "random")


def entropies(fit, data):
    """Return the entropy (n,) of each row's class probabilities, in nats; NaN if not predicted."""
    p = fit.predict(data, "prob").to_numpy(float)
    return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)


def uncertainty(learner, rng):
    """Return the entropy (n,) of class probabilities, for the unlabelled rows of a Learner."""
    return entropies(learner.fit, learner.pool)


def margin(learner, rng):
    """Score unlabelled rows by the uncertainty of the class, 1 - (largest - second probability).

    learner : Learner, with the fit and the n rows; rng : ignored, an argument of all scores"""
    p = np.sort(learner.fit.predict(learner.pool, "prob").to_numpy(float), axis=1)
    return 1.0 - (p[:, -1] - p[:, -2])


def entropy(learner, rng):
    """Return minus the entropy (n,) of class probabilities, for unlabelled rows of a Learner."""
    return -entropies(learner.fit, learner.pool)


def random(learner, rng):
    """Return a random score (n,) between 0 and 1 for the unlabelled rows of a Learner."""
    return rng.random(len(learner.pool))


def committee(learner, rng):
    """Score each unlabelled row by the entropy of the classes that several fits predict, (n,).

    learner : Learner with the fit and the unlabelled rows"""
    # A ripr fit predicts by each feature set; other models are refitted to bootstrap samples.
    if hasattr(learner.fit, "votes"):
        votes = learner.fit.votes(learner.pool).to_numpy()
    else:
        known = learner.labelled
        classes = known.groupby(learner.response, sort=True, observed=True).indices.values()
        votes = np.full((len(learner.pool), learner.size), None, dtype=object)
        for k in steps(range(learner.size), learner.size, "committee"):
            at = np.concatenate([rng.choice(rows, len(rows)) for rows in classes])
            try:
                member = learner._fitted_for_scores(known.iloc[at])
            except LodimError:
                continue  # for example if too few different rows of a class were drawn
            votes[:, k] = member.predict(learner.pool, "class").to_numpy(dtype=object)
    alone = (~pd.isna(votes)).sum(axis=1) < 2
    out = vote_entropy(votes)
    if alone.any():
        out[alone] = entropies(learner.fit, learner.pool)[alone]
    return out


diverse = committee  # `Learner.query` chooses high scores that are far apart


def infogain(learner, rng):
    """Score each unlabelled row by how much its label would reduce predictive entropy, (n,).

    learner : Learner with the fit and the unlabelled rows
    Only the 20 rows with the most uncertain classes get a score, the others NaN."""
    now = entropies(learner.fit, learner.pool)
    out = np.full(len(now), np.nan)
    p = learner.fit.predict(learner.pool, "prob").to_numpy(float)
    # Refits are slow, so only 20 rows are tried. Rows without a prediction are last in the order.
    candidates = np.argsort(-now, kind="stable")[: min(20, int(np.isfinite(now).sum()))]
    kind = {learner.response: learner.labelled[learner.response].dtype}  # categories in order
    for i in steps(candidates, len(candidates), "candidates"):
        row = learner.pool.iloc[[i]]
        labelled = (with_column(row, learner.response, c).astype(kind) for c in learner.fit.levels)
        fits = (learner._fitted_for_scores(pd.concat([learner.labelled, one])) for one in labelled)
        after = np.array([np.nansum(entropies(fit, learner.pool)) for fit in fits])
        out[i] = np.nansum(now) - p[i] @ after
    return out


def vote_entropy(votes):
    """Return the entropy (rows,) of classes in each row of `votes` (rows, fits), ignoring None."""
    out = np.full(len(votes), np.nan)
    for i, row in enumerate(votes):
        cast = pd.Series([v for v in row if not pd.isna(v)], dtype=object)
        if len(cast):
            share = cast.value_counts(normalize=True).to_numpy(float)
            out[i] = 0.0 - (share * np.log(share)).sum()
    return out


def user_score(function, learner):
    """Return the scores (n,) of a Learner's unlabelled rows by a user's function(fit, rows)."""
    name, n = getattr(function, "__name__", "the function"), len(learner.pool)
    value = function(learner.fit, learner.pool.copy())
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must return a number for each row, not {value!r:.80}"
        ) from None
    if out.shape != (n,):
        raise ArgumentError(
            f"{name} must return a number for each of the {n} rows of the pool, not an array of "
            f"shape {out.shape}"
        )
    return out


# Rows to label together --------------------------------------------------------------------------


def top(score, n, rng):
    """Return positions of the n largest scores; ties are in random order, and NaN is last."""
    order = rng.permutation(len(score))
    falling = -np.where(np.isnan(score), -np.inf, score)[order]
    return order[np.argsort(falling, kind="stable")][:n]


def far_apart(score, X, known, n, rng):
    """Choose n rows of X at random, preferring high scores and rows far apart; return positions.

    score : score of each row; rows with NaN are chosen last
    known : (rows, p) labelled rows, from which the chosen rows should also be far"""
    scored = np.flatnonzero(~np.isnan(score))
    distance = nearest(X, known)
    cap = np.median(distance[scored]) if len(scored) else np.inf
    distance = np.minimum(distance, cap)
    drawn: list[int] = []
    for _ in range(min(n, len(scored))):
        chance = (score[scored] + 0.02) * distance[scored]  # not 0 where all fits agree
        # Copies of labelled rows have distance 0; they are chosen only if no other row is left.
        chance = chance if chance.any() else ~np.isin(scored, drawn)
        drawn.append(int(rng.choice(scored, p=chance / chance.sum())))
        distance = np.minimum(distance, squared(X, X[drawn[-1:]])[:, 0])
        distance[drawn[-1]] = 0.0
    rest = np.setdiff1d(np.arange(len(X)), scored)
    return np.array([*drawn, *rng.permutation(rest)[: n - len(drawn)]], dtype=np.int64)


def nearest(X, known):
    """Return the squared distance from each row of X to its nearest row in `known`."""
    blocks = np.split(known, range(256, len(known), 256))  # saves memory
    return np.min([squared(X, block).min(axis=1) for block in blocks], axis=0)


def squared(X, Z):
    """Return the mean squared difference (n, m) between each row of X and each row of Z.

    The mean is over features that are known in both rows; it is 2 if there are none."""
    in_X, in_Z = (np.isfinite(A).astype(float) for A in (X, Z))
    x, z = np.nan_to_num(X), np.nan_to_num(Z)
    total = x**2 @ in_Z.T + in_X @ (z**2).T - 2.0 * x @ z.T
    both = in_X @ in_Z.T
    return np.divide(np.maximum(total, 0.0), both, out=np.full(both.shape, 2.0), where=both > 0)


def features(fit, frame):
    """Return the features (n, p) that a fit reads, scaled as in the fit; NaN if missing."""
    batch = fit._reader.apply(frame)
    X = np.full((len(frame), len(fit._reader.names)), np.nan)
    X[batch.rows] = tiles.unpack(batch.X, batch.n)
    return X
