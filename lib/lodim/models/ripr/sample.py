"""What clustering compares: the rows, and as many points spread uniformly over their box.

Where values repeat, as those of counts, of rounded numbers and of levels do, rows at equal places
are infinitely dense beside any sample. There a value stands for all that is nearer to it than to
other values, and the rows that have it are spread over that: like is compared with like, and a
feature of noise is as dense as the sample however few values it has. Nothing is drawn by the place
of a row or of a column, so that permuted data has permuted results.
"""

from zlib import crc32

import numpy as np

from lodim.models.ripr.views import by_content, rows_by_content

STEPS = 1000.0  # between the ends of a feature, by which its values tell it from others
SHIFT = 2.0**0.5 - 1.0  # of a step: no value that is a fraction lies where rounding would move it


def references(X, rows, seed):
    """Rows of X (n, p), spread where values repeat, and then a point for each of some rows."""
    spread, sample, order = X.copy(), np.empty((len(rows), X.shape[1])), None
    for f, draws in zip(by_content(X[rows]), _generators(X[rows], seed), strict=True):
        known = rows[~np.isnan(X[rows, f])]
        low, high = cells(X[known, f])
        ends = (low.min(), high.max()) if len(known) else (0.0, 0.0)
        sample[:, f] = draws.uniform(*ends, len(rows))
        if (low < high).any():
            order = rows_by_content(X[rows]) if order is None else order
            place = np.full(len(X), np.nan)
            place[rows[order]] = draws.random(len(rows))
            spread[known, f] = low + (high - low) * place[known]
    return np.concatenate([spread, sample])


def cells(x):
    """The lower and the upper end (n,) of what each value stands for; itself where it is alone."""
    value, of, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) < 2:
        return x.copy(), x.copy()
    middle = 0.5 * (value[1:] + value[:-1])
    low = np.append(1.5 * value[0] - 0.5 * value[1], middle)
    high = np.append(middle, 1.5 * value[-1] - 0.5 * value[-2])
    low, high = (np.where(count > 1, end, value) for end in (low, high))
    return low[of], high[of]


def _generators(X, seed):
    """A random generator for each feature, in the order of content, seeded by its values."""
    seen, out = {}, []
    for f in by_content(X):
        x = np.sort(X[~np.isnan(X[:, f]), f])
        span = (x[-1] - x[0] or 1.0) if len(x) else 1.0
        code = crc32(np.floor(STEPS * (x - x[:1]) / span + SHIFT).astype(np.int64).tobytes())
        seen[code] = seen.get(code, -1) + 1
        out.append(np.random.default_rng([seed, 7, code, seen[code]]))
    return out
