"""Numbers (keys) computed from the rows' content, and random draws that depend only on these."""

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import over_rows, row_spans
from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE, TILES_PER_BLOCK

TIE = 1e-9  # share of the largest possible spread below which a spread is rounding error
ROUNDS = 2  # number of rounds in which keys of rows refine the keys of other rows
DIGITS = 20.0  # steps per unit: coarse, so that rounding errors seldom change the digest
WAVES = 30.0  # radians per standard deviation of the keys


def keys(X, weight, y=None, n_classes=0):
    """Return a number (key) per row, (n,), that depends on the row's values, not its position.

    Keys serve to draw the same rows from data in any order.
    y : numbers, codes of `n_classes` classes, or None; NaN or n_classes if unknown"""
    share = weight / weight.sum()
    farthest = np.maximum(X.max(axis=0), -X.min(axis=0))
    u = X - share @ X
    deviation = np.sqrt(share @ u**2)
    flat = deviation <= TIE * farthest
    np.divide(u, deviation, out=u, where=~flat)
    u[:, flat] = 0.0
    size = (u**2).sum(axis=1)
    skew = u @ (u.T @ (share * size))
    # Spreads that are tiny relative to their largest possible values are rounding errors.
    most = (share @ size**1.5) * np.sqrt(share @ size)
    key = _standard(size, share, np.sqrt(share @ size**2)) + _standard(skew, share, most)
    if y is None:
        return key
    largest, y = share @ size, np.nan_to_num(y, nan=n_classes)
    if n_classes:
        # Powers of the products of u with class means of u
        code = y.astype(int)
        members = (code[:, None] == np.arange(n_classes)) * share[:, None]
        side = u @ (u.T @ (members / np.maximum(members.sum(axis=0), 1e-300)))  # (n, n_classes)
        own_side = np.append(side, np.zeros((len(u), 1)), axis=1)[np.arange(len(u)), code]
        key = key + (
            _standard(own_side, share, largest)
            + _standard((side**2).sum(axis=1), share, largest**2)
            + _standard((side**3).sum(axis=1), share, largest**3)
        )
    else:
        y = _standard(y, share, np.abs(y).max())
        key = key + _standard(u @ (u.T @ (share * y)), share, largest)
    # Rows with equal keys so far may still differ in the keys of rows that share their levels.
    for _ in range(ROUNDS):
        key = key + _standard(u @ (u.T @ (share * np.cos(WAVES * key))), share, largest)
    return key


def of_batch(batch, n_classes):
    """Return a key per row of a Batch, (n,), and the mean key of each class, (n_classes,).

    Keys are numbers that depend on the rows' values, not their order.
    Rows of weight zero must be left out first."""
    X = tiles.unpack(batch.X, batch.n).astype(np.float64)
    key = keys(np.nan_to_num(X, copy=False), batch.weight, batch.y, n_classes)
    for known in (batch.weights, batch.offset, None if n_classes else batch.y):
        if known is not None:
            key = key + _spread(np.nan_to_num(known).reshape(batch.n, -1).sum(axis=1))
    if not n_classes:
        return key, np.zeros(0)
    code = np.nan_to_num(batch.y, nan=n_classes).astype(int)
    size = np.bincount(code, minlength=n_classes + 1)
    means = np.bincount(code, key, n_classes + 1) / np.maximum(size, 1)
    return key + _spread(means[code]), means[:n_classes]


def _spread(values):
    """Return values scaled to mean 0 and SD 1; zeros if they differ only by rounding errors."""
    return _standard(values, np.full(len(values), 1.0 / len(values)), np.abs(values).max(initial=0))


def _standard(values, share, most):
    apart = values - share @ values
    spread = np.sqrt(share @ apart**2)
    return apart / spread if spread > TIE * most else np.zeros_like(apart)


def waves(key, k, rng):
    """Return cos(speed * key + phase) of each row's key, for k random speeds and phases, (n, k).

    key : (n,) numbers that depend on the rows' values only; rng : NumPy random generator"""
    phase, speed = rng.uniform(0.0, 2.0 * np.pi, k), WAVES * rng.normal(size=k)
    near = np.clip(key, -1e9, 1e9)  # those of rows of next to no weight may be infinite
    return np.cos(near[:, None] * speed + phase)


def shuffled(key, seed):
    """Return row positions (n,) in a random order that depends only on rows' keys and a seed."""
    order = np.argsort(key, kind="stable")
    # A digest of all keys, which rounding to float32 rarely changes.
    total = np.cos(key).sum() / np.sqrt(max(len(key), 1))
    digest = int(np.floor(DIGITS * total)) % 2**32
    return order[np.random.default_rng([seed, digest]).permutation(len(key))]


def drawn(key, count, seed):
    """Return `count` random row positions, sorted; they depend only on rows' keys and the seed."""
    return np.sort(shuffled(key, seed)[:count])


def lengths(X, n, threads=1):
    """Return the sum of squared features of each row, (n,); X : features in tiles of 64 rows."""
    out = np.zeros((len(X), TILE))
    over_rows(squared_lengths, X, out, threads=threads)
    return out.reshape(-1)[:n]


def sample_of(batch, count, seed, threads=1):
    """Return positions of `count` rows, evenly spaced by row norm from a random start; cached."""
    rows = batch.X, batch.weight
    return batch.once(
        (spread_sample, count, seed), lambda: spread_sample(*rows, count, seed, threads)
    )


def spread_sample(X, weight, count, seed, threads=1):
    """Return positions of `count` rows (weight > 0), evenly spaced by norm from a random start."""
    length = lengths(X, len(weight), threads)
    place_bits = np.uint64(max(1, int(len(weight) - 1).bit_length()))
    place = (np.uint64(1) << place_bits) - np.uint64(1)
    # The bits of positive floats sort like their values; the position takes the lowest bits.
    ranked = length.view(np.uint64)
    for i in row_spans(len(weight)):
        ranked[i] = (ranked[i] & ~place) | np.arange(i.start, i.stop, dtype=np.uint64)
    if not np.all(weight):
        ranked = ranked[weight != 0.0]
    ranked.sort()
    first = np.random.default_rng(seed).random()
    chosen = ((np.arange(count) + first) * (len(ranked) / count)).astype(np.int64)
    return (ranked[chosen] & place).astype(np.int64)


@njit(cache=True, nogil=True)
def squared_lengths(lo, hi, X, out):
    """Add each row's sum of squared features to `out`, (n_tiles, 64), for blocks lo to hi - 1."""
    for t in range(lo * TILES_PER_BLOCK, min(hi * TILES_PER_BLOCK, X.shape[0])):
        tile = X[t]
        for k in range(X.shape[1]):
            for i in range(TILE):
                x = np.float64(tile[k, i])
                out[t, i] += x * x
