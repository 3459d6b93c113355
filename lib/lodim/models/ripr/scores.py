"""Which rows to label next: scores of a pool by the views found so far, Fiterau (2014), Sect. 3.3.

The larger a score, the sooner a row should be labelled (the thesis prints arg min for all of them,
which reverses their words). The estimate of a row's conditional entropy is h(x) = min over views
and labels of (nu_k(class) / nu_k(others))^|view|, Eq. 2.11 without its power near zero.
"""

import numpy as np

from lodim.models.ripr.query import answer, class_ratios, probabilities

SCORES = ("uncertainty", "committee", "infogain", "entropy")
POOL = 200  # rows that represent the pool in sums over it


def log_entropy(ratios):
    """log h of each row, (q,); zero where no view is complete: no more certain than chance."""
    least = ratios.reshape(len(ratios), -1).min(axis=1)
    return np.where(np.isfinite(least), least, 0.0)


def uncertainty(ratios):
    """Largest where no view is sure of a label, Eq. 3.2."""
    return log_entropy(ratios)


def entropy(ratios):
    """Largest where a view is surest of a label: rows that are likely to fit the model."""
    return -log_entropy(ratios)


def committee(ratios):
    """How evenly the views' labels are split, Eq. 3.3: entropy of the votes; ties by uncertainty.

    (3.3) is one where any two disagree, and cannot rank.
    """
    votes = np.where(np.isfinite(ratios).any(axis=2), ratios.argmin(axis=2), -1)
    K = ratios.shape[2]
    counts = np.stack([(votes == c).sum(axis=1) for c in range(K)], axis=1)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    spread = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
    rank = np.argsort(np.argsort(uncertainty(ratios), kind="stable"), kind="stable")
    return spread + 1e-9 * rank


def infogain(pool, X, y, views, k, *, n_classes, seed=0, most=None, balanced=True, threads=1):
    """Expected fall of the pool's total log h when a row is labelled, (q,).

    sum over x' in a sample of the pool of log h(x') now, less its mean over the labels y of log
    h(x') with (x, y) among the labelled rows, weighted by their present probabilities.

    Parameters
    ----------
    pool, X, y, views, k
        Rows to score (q, p), labelled rows, their classes, selected views, neighbours.
    n_classes : int
    seed : int
        Draws the sample of the pool, at most POOL rows.
    most : int, optional
        Rows of the pool that are scored, drawn at random: others get -inf; all by default.
    """
    rng = np.random.default_rng([seed, 11])
    some = np.sort(rng.permutation(len(pool))[:POOL])
    scored = np.arange(len(pool)) if most is None else np.sort(rng.permutation(len(pool))[:most])
    settings = dict(k=k, n_classes=n_classes, balanced=balanced, threads=threads)
    now = class_ratios(pool, X, y, views, **settings)
    weight = probabilities(now, answer(now).view)
    weight = np.where(np.isnan(weight), 1.0 / n_classes, weight)
    before = log_entropy(now[some]).sum()
    out = np.full(len(pool), -np.inf)
    for i in scored:
        more, after = np.vstack([X, pool[i]]), 0.0
        for c in range(n_classes):
            then = class_ratios(pool[some], more, np.append(y, c), views, **settings)
            after += weight[i, c] * log_entropy(then).sum()
        out[i] = before - after
    return out


def score(name, pool, X, y, views, k, *, n_classes, seed=0, balanced=True, threads=1, most=None):
    """Scores of a pool by name, (q,): the rows with the largest are to be labelled first.

    Parameters
    ----------
    name : {"uncertainty", "committee", "infogain", "entropy"}
    pool : array (q, p)
    X, y, views, k : labelled rows, their classes 0..K-1, selected views, neighbours
    n_classes : int
    seed, most
        Of "infogain".
    """
    if name == "infogain":
        return infogain(
            pool, X, y, views, k, n_classes=n_classes, seed=seed, balanced=balanced,
            threads=threads, most=most,
        )  # fmt: skip
    ratios = class_ratios(
        pool, X, y, views, k, n_classes=n_classes, balanced=balanced, threads=threads
    )
    simple = dict(uncertainty=uncertainty, committee=committee, entropy=entropy)
    return simple[name](ratios)
