"""Selection of the rows of a pool to label together."""

import numpy as np

from lodim.engine import tiles

AGREED = 0.02  # added to scores, in nats, so that rows with score 0 can be chosen too
CAP = 0.5  # quantile of the squared distances at which larger ones are capped
BLOCK = 256  # labelled rows whose distances are held at once


def top(score, n, rng):
    """Return positions of the n largest scores, (n,), ties in random order; NaN comes last."""
    order = rng.permutation(len(score))
    falling = -np.where(np.isnan(score), -np.inf, score)[order]
    return order[np.argsort(falling, kind="stable")][:n]


def diverse(score, X, known, n, rng):
    """Return positions of n randomly chosen rows with high scores that are far apart, (n,).

    The chance of a row is proportional to (score + 0.02) times its squared distance to the nearest
    labelled (`known`) or chosen row, as in k-means++. Distances are capped at their median, since
    outliers would be chosen most. Rows without a score come last."""
    scored = np.flatnonzero(~np.isnan(score))
    distance = nearest(X, known)
    cap = np.quantile(distance[scored], CAP) if len(scored) else np.inf
    distance = np.minimum(distance, cap)
    drawn: list[int] = []
    for _ in range(min(n, len(scored))):
        chance = (score[scored] + AGREED) * distance[scored]
        # Copies of labelled rows have distance 0; they are chosen only if no other row is left.
        chance = chance if chance.any() else ~np.isin(scored, drawn)
        drawn.append(int(rng.choice(scored, p=chance / chance.sum())))
        distance = np.minimum(distance, squared(X, X[drawn[-1:]])[:, 0])
        distance[drawn[-1]] = 0.0
    rest = np.setdiff1d(np.arange(len(X)), scored)
    return np.array([*drawn, *rng.permutation(rest)[: n - len(drawn)]], dtype=np.int64)


def nearest(X, known):
    """Return the squared distance of each row of X to the nearest row of `known`, (N,)."""
    blocks = range(0, len(known), BLOCK)
    return np.min([squared(X, known[b : b + BLOCK]).min(axis=1) for b in blocks], axis=0)


def squared(X, Z):
    """Return mean squared differences between rows of X and rows of Z, (N, m).

    The mean is over the features that both rows have; without any, it is 2, the typical value for
    two standardized rows."""
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
