"""Selection of the rows of a pool that are asked for together."""

import numpy as np

from lodim.engine import tiles

AGREED = 0.02  # added to a score, in nats: a batch is spread out over rows without one too
CAP = 0.5  # quantile of the squared distances beyond which a row counts as far as any
BLOCK = 256  # labelled rows whose distances are held at once


def top(score, n, rng):
    """Positions of the n largest scores, (n,); NaN comes last.

    Of equal scores any row, not the first: pools are often sorted.
    """
    order = rng.permutation(len(score))
    falling = -np.where(np.isnan(score), -np.inf, score)[order]
    return order[np.argsort(falling, kind="stable")][:n]


def diverse(score, X, known, n, rng):
    """Positions of n rows drawn as k-means++ draws centres, in the order of the draws, (n,).

    The chance of a row is its score (and AGREED) times its squared distance to the nearest row that
    is labelled or drawn already. Distances are capped: without a cap, outliers would be drawn most.

    Parameters
    ----------
    score : (N,) array, zero or above
        NaN in rows that are drawn when no others are left.
    X, known : (N, p) and (m, p) arrays
        Features of the rows, NaN where missing, and of the labelled ones.
    """
    scored = np.flatnonzero(~np.isnan(score))
    distance = nearest(X, known)
    cap = np.quantile(distance[scored], CAP) if len(scored) else np.inf
    distance = np.minimum(distance, cap)
    drawn: list[int] = []
    for _ in range(min(n, len(scored))):
        chance = (score[scored] + AGREED) * distance[scored]
        # Copies of labelled rows have no distance, and are asked for when nothing else is left.
        chance = chance if chance.any() else ~np.isin(scored, drawn)
        drawn.append(int(rng.choice(scored, p=chance / chance.sum())))
        distance = np.minimum(distance, squared(X, X[drawn[-1:]])[:, 0])
        distance[drawn[-1]] = 0.0
    rest = np.setdiff1d(np.arange(len(X)), scored)
    return np.array([*drawn, *rng.permutation(rest)[: n - len(drawn)]], dtype=np.int64)


def nearest(X, known):
    """Squared distance of each row to the nearest known one, (N,)."""
    blocks = range(0, len(known), BLOCK)
    return np.min([squared(X, known[b : b + BLOCK]).min(axis=1) for b in blocks], axis=0)


def squared(X, Z):
    """Mean squared difference of rows X to rows Z in the features that both have, (N, m).

    Where they share none, 2: that of a typical pair of standardized rows.
    """
    in_X, in_Z = (np.isfinite(A).astype(float) for A in (X, Z))
    x, z = np.nan_to_num(X), np.nan_to_num(Z)
    total = x**2 @ in_Z.T + in_X @ (z**2).T - 2.0 * x @ z.T
    both = in_X @ in_Z.T
    return np.divide(np.maximum(total, 0.0), both, out=np.full(both.shape, 2.0), where=both > 0)


def features(fit, frame):
    """The features that a fit reads, scaled as it does, (n, p); NaN where missing."""
    batch = fit._reader.apply(frame)
    X = np.full((len(frame), len(fit._reader.names)), np.nan)
    X[batch.rows] = tiles.unpack(batch.X, batch.n)
    return X
