"""Keys of rows by their content, and draws of rows that depend on nothing else.

Where a row or a column stands, what the classes are called and rounding change no draw: chance is a
function of the key of a row, and of a seed.
"""

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import over_rows, row_spans
from lodim.engine.column_tiles import room_for, tile_at
from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE, TILES_PER_BLOCK

TIE = 1e-9  # of the most that a spread could be: what is less is rounding
ROUNDS = 2  # in which rows that were told apart tell others apart
DIGITS = 20.0  # parts of a number of size one: few, so that rounding seldom reaches the next
WAVES = 30.0  # radians per standard deviation of the keys: rows apart have unlike waves


def keys(X, weight, y=None, n_classes=0):
    """Number of each row (n,), about 1 in size, of its features X (n, p) in units of their spread.

    Rows of one key are copies of each other. In designs of great symmetry, as of all combinations
    of some levels, the features tell nothing apart: the response y (n,) does, numbers or codes of
    `n_classes` classes (whose names and order make no difference; n_classes or NaN is unknown).
    """
    share = weight / weight.sum()
    u = X - share @ X
    deviation = np.sqrt(share @ u**2)
    flat = deviation <= TIE * np.abs(X).max(axis=0)
    u = np.divide(u, deviation, out=np.zeros_like(u), where=~flat)
    size = (u**2).sum(axis=1)
    skew = u @ (u.T @ (share * size))
    # Both are measured against the most that they could be: what is next to nothing is rounding.
    most = (share @ size**1.5) * np.sqrt(share @ size)
    key = _standard(size, share, np.sqrt(share @ size**2)) + _standard(skew, share, most)
    if y is None:
        return key
    largest = share @ size
    key = key + _by_response(u, share, np.nan_to_num(y, nan=n_classes), n_classes, largest)
    # What is counted, as classes by levels, is often equal: who shares a level with whom is not.
    for _ in range(ROUNDS):
        key = key + _standard(u @ (u.T @ (share * np.cos(WAVES * key))), share, largest)
    return key


def _by_response(u, share, y, n_classes, most):
    """Where rows u (n, p) lie on the way to the means of the classes, or with the response."""
    if not n_classes:
        y = _standard(y, share, np.abs(y).max())
        return _standard(u @ (u.T @ (share * y)), share, most)
    code = y.astype(int)
    members = (code[:, None] == np.arange(n_classes)) * share[:, None]
    side = u @ (u.T @ (members / np.maximum(members.sum(axis=0), 1e-300)))  # (n, n_classes)
    own_side = np.append(side, np.zeros((len(u), 1)), axis=1)[np.arange(len(u)), code]
    return (
        _standard(own_side, share, most)
        + _standard((side**2).sum(axis=1), share, most**2)
        + _standard((side**3).sum(axis=1), share, most**3)
    )


def of_batch(batch, n_classes):
    """Keys of the rows of a batch (n,), weights, offset and response among them, and of classes.

    Parameters
    ----------
    batch : Batch
        Missing features count as zero, which is their mean.
    n_classes : int
        Number of classes, 0 of a numeric response or none. The key of a class, one of (n_classes,),
        is the mean of its rows': names and codes make no difference to it.
    """
    X = np.nan_to_num(tiles.unpack(batch.X, batch.n).astype(np.float64))
    key = keys(X, batch.weight, batch.y, n_classes)
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
    """Values in standard deviations from their mean; zero where they vary by rounding alone."""
    return _standard(values, np.full(len(values), 1.0 / len(values)), np.abs(values).max(initial=0))


def _standard(values, share, most):
    apart = values - share @ values
    spread = np.sqrt(share @ apart**2)
    return apart / spread if spread > TIE * most else np.zeros_like(apart)


def draw_waves(k, rng):
    """Phases and speeds (k,) of k random smooth functions of a key, cos(speed key + phase)."""
    return rng.uniform(0.0, 2.0 * np.pi, k), WAVES * rng.normal(size=k)


def waves(key, k, rng):
    """k random weights of each row, (n, k): smooth functions of its key."""
    phase, speed = draw_waves(k, rng)
    return np.cos(key[:, None] * speed + phase)


def shuffled(key, seed):
    """Positions of the rows in a random order, (n,).

    The seed is mixed with a digest of all keys. By the seed alone, the row of the largest key, say,
    would have the same place in every data set, and estimates from held-out rows would depend on
    the seed in the mean over data sets too.
    """
    order = np.argsort(key, kind="stable")
    return order[np.random.default_rng([seed, _digest(key)]).permutation(len(key))]


def _digest(key):
    """Return a whole number that most other sets of keys do not share, whatever their order.

    Features of float32 have keys that differ by about 1e-4 from those of float64, and the same
    number in 98 of 100 data sets or more (20 to 3,000 normal rows, 400 data sets each).
    """
    total = np.cos(key).sum() / np.sqrt(max(len(key), 1))
    return int(np.floor(DIGITS * total)) % 2**32


def drawn(key, count, seed):
    """Increasing positions of `count` of the rows, at random."""
    return np.sort(shuffled(key, seed)[:count])


def lengths(X, n, threads=1):
    """Sum of squares of the features of each row, (n,): a key that one pass over tiles X gives."""
    out = np.zeros((len(X), TILE))
    over_rows(squared_lengths, X, out, threads=threads)
    return out.reshape(-1)[:n]


def sample_of(batch, count, seed, threads=1):
    """`spread_sample` of a batch, drawn once: it is fitted for many penalties, by a pass each."""
    rows = batch.X, batch.weight
    return batch.once(
        (spread_sample, count, seed), lambda: spread_sample(*rows, count, seed, threads)
    )


def spread_sample(X, weight, count, seed, threads=1):
    """Positions of `count` of many rows of weight above zero, evenly along their lengths, (count,).

    Sorted by the sum of squares of its features every row of some length stands for its
    neighbours: the sample is as mixed as all rows are, wherever these stand. Where lengths agree
    in their first nine digits it is where rows stand that orders them.

    Parameters
    ----------
    X : tiles (n_tiles, p, 64) on the host
    weight : array (n,)
    count : int
        At most the number of rows of positive weight.
    seed : int
        Of where between two sampled rows the first one stands.
    """
    length = lengths(X, len(weight), threads)
    place_bits = np.uint64(max(1, int(len(weight) - 1).bit_length()))
    place = (np.uint64(1) << place_bits) - np.uint64(1)
    # Bits of positive numbers are in their order; the place of a row takes those of least weight.
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
    """Sum of squares of each row's features, (n_tiles, p, 64) -> (n_tiles, 64)."""
    room = room_for(X)
    for t in range(lo * TILES_PER_BLOCK, min(hi * TILES_PER_BLOCK, X.shape[0])):
        tile = tile_at(X, t, room)
        for k in range(X.shape[1]):
            for i in range(TILE):
                x = np.float64(tile[k, i])
                out[t, i] += x * x
