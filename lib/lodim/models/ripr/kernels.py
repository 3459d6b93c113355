"""Compiled distances to the k-th nearest row in a feature set (view), for groups of rows."""

import math
from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import njit

MISSING = np.float32(1e18)  # value of a missing feature; its square is finite
FAR = np.float32(1e30)  # larger squared distances are to rows with missing features
FLOOR = 1e-4  # smallest ratio of two distances
TIE = np.float32(5e-6)  # relative difference of distances that count as equal
LEAST = np.float32(1e-12)  # smallest squared radius of a window
SLACK = np.float32(1.6)  # squared radius of the first window relative to the last view's result
WIDER = 1.1  # decreasing weights are zero at this multiple of the squared k-th distance
EQUAL, FALLING, INVERSE = 0, 1, 2  # kinds of weights of neighbours

SUMS = {"reassoc", "contract", "nsz", "nnan"}


class ViewRows(NamedTuple):
    """Rows that may be neighbours, `refs` (features, rows), sorted by the view's first feature."""

    refs: np.ndarray
    features: np.ndarray  # positions of the view's features; the first `dim` count
    dim: int
    level_gap: np.ndarray  # squared distance of two levels per factor, 0 for numbers


@njit(cache=True, fastmath=SUMS, forceinline=True)
def squared_distances(rows, lo, hi, x, out):
    """Write squared distances from x to rows lo to hi - 1 of `rows` (ViewRows) to out[:hi - lo]."""
    refs, view, dim, level_gap = rows
    m, a, xa, levels = hi - lo, refs[view[0], lo:hi], x[0], np.float32(0)
    for f in range(dim):
        levels += level_gap[view[f]]
    if levels > 0 or dim > 3:
        mixed_distances(rows, lo, hi, x, out)
        return
    if dim == 1:
        for j in range(m):
            u = a[j] - xa
            out[j] = u * u
        return
    b, xb = refs[view[1], lo:hi], x[1]
    if dim == 2:
        for j in range(m):
            u, v = a[j] - xa, b[j] - xb
            out[j] = u * u + v * v
        return
    c, xc = refs[view[2], lo:hi], x[2]
    for j in range(m):
        u, v, w = a[j] - xa, b[j] - xb, c[j] - xc
        out[j] = u * u + v * v + w * w


@njit(cache=True, fastmath=SUMS, inline="always")
def mixed_distances(rows, lo, hi, x, out):
    """Write squared distances from x to ViewRows lo to hi - 1 to `out`, for numbers and factors."""
    refs, view, dim, level_gap = rows
    m, zero, beyond = hi - lo, np.float32(0), np.float32(4.0) * FAR
    out[:m] = zero
    for f in range(dim):
        a, xa, most = refs[view[f], lo:hi], x[f], level_gap[view[f]]
        if most > 0:
            for j in range(m):
                out[j] += zero if a[j] == xa else (beyond if a[j] == MISSING else most)
        else:
            for j in range(m):
                u = a[j] - xa
                out[j] += u * u


@njit(cache=True, fastmath=SUMS)
def count_below(d, m, t):
    """Return how many of the first m distances d are at most t."""
    c, one, zero = np.float32(0), np.float32(1), np.float32(0)
    for j in range(m):
        c += one if d[j] <= t else zero
    return int(c)


@njit(cache=True, inline="always")
def next_above(d, m, t):
    """Return the smallest of the first m distances d that is above t; d[-1] is overwritten."""
    d_bits = d.view(np.int32)  # loops over integers vectorize
    d[-1] = t
    low, least = d_bits[-1] + np.int32(1), np.uint32(2**32 - 1)
    for j in range(m):
        least = min(least, np.uint32(d_bits[j] - low))
    d_bits[-1] = np.int32(least + low)
    return d[-1]


@njit(cache=True)
def last_below(d, m, t):
    """Return the largest of the first m distances d up to t, or -1; d[-1] is overwritten."""
    d_bits = d.view(np.int32)
    d[-1] = t
    high, most, before = d_bits[-1], np.int32(-1), np.int32(-1)
    for j in range(m):
        most = max(most, d_bits[j] if d_bits[j] <= high else before)
    if most < 0:
        return np.float32(-1)
    d_bits[-1] = most
    return d[-1]


@njit(cache=True, error_model="numpy", forceinline=True)
def order_statistic(d, m, k, hi, c_hi):
    """Return the k-th smallest of m distances d, given that c_hi >= k of them are at most hi."""
    lo, c_lo = np.float32(0), 0
    for _ in range(10):  # interpolations before the search goes from value to value
        if c_hi == k or c_lo == k - 1:
            break
        t = lo + (hi - lo) * np.float32((k - 0.5 - c_lo) / (c_hi - c_lo))
        if not lo < t < hi:
            break
        c = count_below(d, m, t)
        if c >= k:
            hi, c_hi = t, c
        else:
            lo, c_lo = t, c
    if c_hi == k:
        return last_below(d, m, hi)
    if c_lo == 0:
        lo = np.float32(-1)  # zero distances have not been counted yet
    while True:
        lo = next_above(d, m, lo)
        if c_lo == k - 1:
            return lo
        c_lo = count_below(d, m, lo)
        if c_lo >= k:
            return lo


@njit(cache=True, forceinline=True)
def first_at_least(v, lo, hi, x):
    """Return the first position in v[lo:hi], which is sorted, with a value of at least x."""
    while lo < hi:
        mid = (lo + hi) >> 1
        if v[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(cache=True, forceinline=True)
def window(rows, start, stop, x, reach):
    """Find a range of sorted rows with all rows within squared distance `reach` of point x.

    Return its start and length. rows : ViewRows, sorted; only start to stop - 1 are searched"""
    if rows.level_gap[rows.features[0]] > 0:
        return start, stop - start
    base, r = rows.refs[rows.features[0]], np.float32(math.sqrt(reach)) * np.float32(1.000001)
    lo = first_at_least(base, start, stop, x[0] - r)
    hi = first_at_least(base, lo, stop, x[0] + r)
    # Loops over multiples of 64 have no remainders.
    hi = min(stop, lo + (hi - lo + 63) // 64 * 64)
    lo = max(start, hi - (hi - lo + 63) // 64 * 64)
    return lo, hi - lo


@njit(cache=True, error_model="numpy", forceinline=True)
def kth_squared(rows, start, stop, x, k, member, guess, d):
    """Find the squared distance nu from a point x to its k-th nearest row in a view (feature set).

    rows : ViewRows; start, stop : range of rows to search
    member : 1 to leave out x itself, else 0
    guess : nu of a similar point
    d : filled with squared distances to the returned range
    Return (nu, first, length): nu (1e30 if none), and the range with all neighbours."""
    k = k + member
    reach = max(guess, LEAST)
    while True:
        lo, m = window(rows, start, stop, x, reach)
        squared_distances(rows, lo, lo + m, x, d)
        c = count_below(d, m, reach)
        if c >= k:
            return order_statistic(d, m, k, reach, c), lo, m
        if m == stop - start or reach > FAR:
            break
        grow = np.float32((k + 1.0) / c) if c > 0 else np.float32(4.0)
        reach *= min(np.float32(4.0), max(np.float32(1.3), grow))
    reach = last_below(d, m, FAR)
    if reach < np.float32(0.0):
        return FAR, lo, m
    c = count_below(d, m, reach)
    if c <= member:
        return FAR, lo, m
    return order_statistic(d, m, min(k, c), reach, c), lo, m


@njit(cache=True, forceinline=True)
def load_row(X, i, rows, x):
    """Copy row i of X to x, only the features `rows.features`; return whether none is missing."""
    complete, view = True, rows.features
    for f in range(rows.dim):
        x[f] = X[view[f], i]
        complete = complete and x[f] != MISSING
    return complete


@njit(cache=True)
def count_equal(rows, start, stop, x, member, d):
    """Count the rows start to stop - 1 that equal the point x in all features.

    rows : ViewRows; member : 1 if x is one of them and does not count, else 0; d : work space"""
    least = np.float32(1e-6) * x[0]  # rounding must not exclude x itself
    lo, m = window(rows, start, stop, x, max(least * least, LEAST))
    squared_distances(rows, lo, lo + m, x, d)
    return count_below(d, m, np.float32(0)) - member


@njit(cache=True, forceinline=True)
def rounding_error(x, dim):
    """Return the largest rounding error of distances from point x (dim features), as float32."""
    size = np.float32(0)
    for f in range(dim):
        size += abs(x[f])
    return np.float32(5e-7) * size


@njit(cache=True, error_model="numpy", forceinline=True)
def log_ratio(own, other, dim, prior, x):
    """Return dim * log(a / b) + prior, where a and b are the distances of a point x to two rows.

    own, other : squared distances a^2 and b^2
    dim : number of features"""
    one, two = math.sqrt(own), math.sqrt(other)
    if abs(one - two) <= rounding_error(x, dim) + TIE * max(one, two):
        return prior
    ratio = min(max(np.float64(own) / np.float64(other), FLOOR * FLOOR), 1.0 / (FLOOR * FLOOR))
    return 0.5 * dim * math.log(ratio) + prior


@njit(cache=True, error_model="numpy", inline="always")
def pair_ratio(rows, starts, pair, x, k, member, guess, d):
    """Return the log ratio of the distances from x to the k-th nearest rows of two groups.

    rows : ViewRows, whose rows starts[g] to starts[g + 1] - 1 are group g
    pair : (own group, other group, constant added to the log ratio)
    x : values of the view's features
    member : (groups,), 1 if x is in the group, to leave it out, else 0
    guess : (groups,) expected squared distances, updated
    d : (rows + 1,) work array"""
    a, b, prior = pair
    lo, hi = starts[a], starts[a + 1]
    nu_a, _, m = kth_squared(rows, lo, hi, x, k, member[a], guess[a], d)
    at_a = count_below(d, m, np.float32(0)) - member[a] if nu_a == 0 else -1
    nu_b, _, m = kth_squared(rows, starts[b], starts[b + 1], x, k, member[b], guess[b], d)
    guess[a], guess[b] = SLACK * nu_a, SLACK * nu_b
    if nu_a == FAR or nu_b == FAR:
        return np.inf
    if min(nu_a, nu_b) > 0:
        return log_ratio(nu_a, nu_b, rows.dim, prior, x)
    at_b = count_below(d, m, np.float32(0)) - member[b]
    if at_a < 0:
        at_a = count_equal(rows, lo, hi, x, member[a], d)
    # Half a row is added to both numbers, so that their ratio is finite.
    return math.log((at_b + 0.5) / (at_a + 0.5)) + prior


@njit(cache=True, nogil=True, error_model="numpy")
def log_ratios(lo, hi, out, views, dims, groups, X, member, pairs, k, pair):
    """Fill out[lo:hi] with log ratios of each row's distances to two groups, in views lo to hi - 1.

    out : (views, rows, pairs), or (views, rows, 1) for the smallest ratio
    views : (views, dims) positions of features; dims : number of features per view
    groups : (refs, starts, level_gap); group g is refs[:, starts[g]:starts[g + 1]], sorted by the
        first feature of the views; level_gap : (features,) squared distance of two levels
    X : (features, rows)
    member : (rows, groups), 1 if the row is in the group, to leave it out, else 0
    pairs : (own groups, other groups, constants added to the log ratios)
    pair : (rows,) the only pair to compute, -1 for all"""
    refs, starts, level_gap = groups
    n, d = X.shape[1], np.empty(refs.shape[1] + 1, np.float32)
    x, guess = np.empty(views.shape[1], np.float32), np.full(member.shape, np.float32(0.01))
    for v in range(lo, hi):
        rows = ViewRows(refs, views[v], dims[v], level_gap)
        for i in range(n):
            out[v, i] = np.inf
            if load_row(X, i, rows, x):
                first = max(pair[i], 0)
                last = first + 1 if pair[i] >= 0 else pairs[0].size
                own, start = member[i], guess[i]
                for g in range(first, last):
                    one = pairs[0][g], pairs[1][g], pairs[2][g]
                    z = pair_ratio(rows, starts, one, x, k, own, start, d)
                    at = g if out.shape[2] > 1 else 0
                    out[v, i, at] = min(out[v, i, at], z)


@njit(cache=True, inline="always")
def widened_window(rows, x, bounds, start, m, d):
    """Extend a range of ViewRows to all that tie with the k-th neighbour of a point x.

    bounds : (low, high) squared distances of rows that tie
    start, m : start and length of the range; the new range is returned
    d : squared distances to the rows in the range, updated"""
    # Rounding must not exclude rows at the ends of the window, or x itself.
    reach = max(bounds[1] * np.float32(1.001), LEAST)
    n, base, stop = rows.refs.shape[1], rows.refs[rows.features[0]], start + m
    r = np.float32(1.001) * np.float32(math.sqrt(reach))
    if m == n or (
        m and (start == 0 or base[start] < x[0] - r) and (stop == n or base[stop - 1] > x[0] + r)
    ):
        return start, m
    lo, wide = window(rows, np.int64(0), n, x, reach)
    squared_distances(rows, lo, lo + wide, x, d)
    return lo, wide


# The nearest rows ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def find_nearest(i, X, rows, own, k, reach, x, d):
    """Find the k nearest of `rows` (ViewRows) to row i of X (features, rows).

    own : position of row i in `rows`, to leave it out, or -1
    reach : first guess of nu, the squared distance to the k-th neighbour
    x, d : filled with row i, and with squared distances to the returned range
    Return nu (1e30 if none), (low, high), start and length.
    low, high : bounds of the squared distances that count as equal to nu
    start, length : range of `rows` with all neighbours and those equally far"""
    n, zero, member = rows.refs.shape[1], np.int64(0), np.int64(1 if own >= 0 else 0)
    if not load_row(X, i, rows, x):
        return FAR, (FAR, FAR), zero, zero
    nu, start, m = kth_squared(rows, zero, n, x, k, member, reach, d)
    if nu == FAR:
        return FAR, (FAR, FAR), zero, zero
    view, level_gap = rows.features, rows.level_gap
    numbers = np.zeros(rows.dim, np.float32)  # levels have no rounding errors
    for f in range(rows.dim):
        numbers[f] = x[f] if level_gap[view[f]] == 0 else np.float32(0)
    distance = np.float32(math.sqrt(nu))
    slack = rounding_error(numbers, rows.dim) + TIE * distance
    low = (distance - slack) * (distance - slack) if distance > slack else np.float32(-1)
    bounds = low, (distance + slack) * (distance + slack)
    start, m = widened_window(rows, x, bounds, start, m, d)
    return nu, bounds, start, m


@njit(cache=True, nogil=True, error_model="numpy")
def neighbour_sums(lo, hi, out, X, rows, own, k, values, weighting):
    """Fill rows lo to hi - 1 of `out` with sums of `values` over each row's k nearest of `rows`.

    X : (features, rows to fill)
    rows : ViewRows, the references; values : (references, columns)
    own : position of each row of X among the references, to leave it out, or -1
    weighting : 0 for equal weights, 1 for weights falling with distance, 2 for 1 / distance"""
    d, x = np.empty(rows.refs.shape[1] + 1, np.float32), np.empty(rows.dim, np.float32)
    reach = np.float32(0.01)
    for i in range(lo, hi):
        out[i] = 0.0
        nu, bounds, start, m = find_nearest(i, X, rows, own[i], k, reach, x, d)
        if nu == FAR:
            continue
        low, high = bounds
        # Rows that tie at the k-th distance share the remaining places.
        member, shared = 1 if own[i] >= 0 else 0, 1.0
        within = count_below(d, m, high) - member
        if within > k:
            nearer = count_below(d, m, low) - member if low > 0 else 0
            shared = (k - nearer) / (within - nearer)
        most = WIDER * nu if weighting == FALLING and low > 0 else np.inf
        floor = nu * np.float32(FLOOR * FLOOR) if nu > 0 else np.float32(1)
        for j in range(m):
            if d[j] <= high and start + j != own[i]:
                weight = 1.0 - min(d[j], nu) / most
                if weighting == INVERSE:
                    weight = 1.0 / math.sqrt(max(d[j], floor))
                if d[j] > low:
                    weight *= shared
                for c in range(values.shape[1]):
                    out[i, c] += weight * values[start + j, c]
        reach = SLACK * nu


@njit(cache=True, nogil=True, error_model="numpy")
def nearest_rows(lo, hi, out, X, rows, own, k, rank):
    """Find the k nearest of `rows` (ViewRows) to each row lo to hi - 1 of X (features, rows).

    out : (rows of X, k) positions in `rows` to fill in, -1 if there are fewer neighbours
    own : position of each row of X in `rows`, to leave it out, or -1
    rank : ranks of `rows`, to choose evenly among ties for the last places"""
    d, x = np.empty(rows.refs.shape[1] + 1, np.float32), np.empty(rows.dim, np.float32)
    reach = np.float32(0.01)
    for i in range(lo, hi):
        out[i] = -1
        nu, bounds, start, m = find_nearest(i, X, rows, own[i], k, reach, x, d)
        if nu == FAR:
            continue
        low, high = bounds
        within = d[:m] <= high
        if own[i] >= 0:
            within[own[i] - start] = False
        nearer = np.flatnonzero(within & (d[:m] < low))
        tied = np.flatnonzero(within & (d[:m] >= low))
        # bits of distances sort as distances do, and numba compiles one argsort for both lines
        nearer = nearer[np.argsort(d.view(np.int32)[nearer].astype(np.int64))]
        tied = tied[np.argsort(rank[start + tied])]
        out[i, : nearer.size] = start + nearer
        room = min(k - nearer.size, tied.size)
        for t in range(room):
            out[i, nearer.size + t] = start + tied[(2 * t + 1) * tied.size // (2 * room)]
        reach = SLACK * nu
