"""Kernels of votes: weighted sums over the nearest rows in a view, and the fit of their factor."""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.ripr.kernels import (
    FAR,
    LEAST,
    SLACK,
    count_below,
    first_at_least,
    last_below,
    order_statistic,
    rounding,
    tie_bounds,
)

WIDER = 1.1  # of the squared distance to the k-th neighbour: where the weight of a row is zero
MARGIN = np.float32(1.01)  # of the radius of a window, so that it holds all rows tied at the k-th
EQUAL = 1.0 + 1e-9  # share by which equal sums of distances may differ
MOST_FACTOR, STEPS, SMALL = 10.0, 20, 1e-9  # of Newton's method for the factor

SUMS = {"reassoc", "contract", "nsz", "nnan"}


@njit(cache=True, fastmath=SUMS)
def mixed_distances(refs, lo, hi, apart, x, out):
    """Put squared distances from x (D,) to references [lo, hi) in out; levels differ or do not.

    apart (D,) is the squared distance of two levels, zero for a number.
    """
    m = hi - lo
    for j in range(m):
        out[j] = np.float32(0)
    for f in range(x.size):
        a, xa, most = refs[f, lo:hi], x[f], apart[f]
        if most > 0:
            for j in range(m):
                out[j] += most if a[j] != xa else np.float32(0)
        else:
            for j in range(m):
                u = a[j] - xa
                out[j] += u * u


@njit(cache=True, nogil=True, error_model="numpy")
def vote_sums(lo, hi, out, rows, refs, apart, own, k, values):
    """Weighted sums over the k nearest references of rows [lo, hi): out (m, C).

    rows (D, m) and refs (D, n) are places in the view, refs without missing ones, sorted by the
    first axis; values (n, C). own (m,) is the position of the row itself among refs, -1 where it is
    none. The weight of a row falls with its squared distance d as 1 - d / (1.1 nu), nu that of the
    k-th; rows that are tied there share the places that are left. Rows that miss a feature have
    zeros.
    """
    dim, n = refs.shape
    d, x = np.empty(n + 1, np.float32), np.empty(dim, np.float32)
    numbers = np.zeros(dim, np.float32)  # levels differ or do not: nothing is rounded
    bits, reach = d.view(np.int32), np.float32(0.01)
    for i in range(lo, hi):
        out[i] = 0.0
        member = 1 if own[i] >= 0 else 0
        wanted, complete = min(k, n - member), True
        for f in range(dim):
            x[f] = rows[f, i]
            complete = complete and not math.isnan(x[f])
            if apart[f] == 0:
                numbers[f] = x[f]
        if not complete or wanted < 1:
            continue
        reach, base, slack = max(reach, LEAST), refs[0], rounding(numbers, dim)
        while True:
            start, stop = np.int64(0), n
            if apart[0] == 0:
                r = MARGIN * np.float32(math.sqrt(reach)) + slack
                start = first_at_least(base, start, n, x[0] - r)
                stop = first_at_least(base, start, n, x[0] + r)
            m = stop - start
            mixed_distances(refs, start, stop, apart, x, d)
            c = count_below(d, m, reach)
            if c >= wanted + member:
                break
            if m == n:
                reach = last_below(d, bits, m, FAR)
                c = m
                break
            reach *= np.float32(4.0) if c == 0 else np.float32(2.0)
        nu = order_statistic(d, bits, m, wanted + member, reach, c)
        low, high = tie_bounds(nu, numbers, dim)
        mine = own[i] - start
        within = count_below(d, m, high) - member
        nearer = count_below(d, m, low) - member if low > 0 else 0
        shared = (wanted - nearer) / (within - nearer) if within > wanted else 1.0
        most = WIDER * nu if low > 0 else np.inf
        for j in range(m):
            if d[j] <= high and j != mine:
                weight = 1.0 - min(d[j], nu) / most
                if d[j] > low:
                    weight *= shared
                for c in range(values.shape[1]):
                    out[i, c] += weight * values[start + j, c]
        reach = SLACK * nu


@njit(cache=True, nogil=True, error_model="numpy")
def cell_sums(lo, hi, out, cell, places, count, apart, own, k, values, total):
    """As `vote_sums`, in a view of levels alone, where the references are in a few cells.

    cell (m,) is that of each row, -1 where it misses a feature; places (cells, D) codes; count
    (cells,) and total (cells, C) numbers of references there and sums of their values; own (m,)
    the position of the row among the references, with values (n, C), -1 where it is none.
    """
    cells, dim = places.shape
    n, d = count.sum(), np.empty(cells)
    for i in range(lo, hi):
        out[i] = 0.0
        member = 1 if own[i] >= 0 else 0
        wanted, mine = min(k, n - member), cell[i]
        if mine < 0 or wanted < 1:
            continue
        for j in range(cells):
            d[j] = 0.0
            for f in range(dim):
                if places[j, f] != places[mine, f]:
                    d[j] += apart[f]
        nearer, within, nu = 0, count[mine] - member, 0.0
        while within < wanted:
            nearer, after = within, np.inf
            for j in range(cells):
                if count[j] > 0 and d[j] > nu * EQUAL and d[j] > 0.0:
                    after = min(after, d[j])
            nu, within = after, -member
            for j in range(cells):
                if d[j] <= nu * EQUAL:
                    within += count[j]
        shared = (wanted - nearer) / (within - nearer)
        for j in range(cells):
            if d[j] > nu * EQUAL:
                continue
            last = nu == 0.0 or d[j] * EQUAL >= nu
            weight = (1.0 - d[j] / (WIDER * nu) if nu > 0.0 else 1.0) * (shared if last else 1.0)
            for c in range(values.shape[1]):
                there = total[j, c]
                if j == mine and member == 1:
                    there -= values[own[i], c]
                out[i, c] += weight * there


@njit(cache=True, nogil=True, error_model="numpy")
def class_factors(lo, hi, factor, losses, base, total, new, goal, weight):
    """The factor t >= 0 of least log-loss of softmax(base + t (total + new[j])), for j in [lo, hi).

    base (K,), total (n, K), new (V, n, K), goal (n, K) probabilities, weight (n,) that sum to one.
    The losses are convex in t: Newton's method, kept within what is known of the minimum.
    """
    n, K = total.shape
    z = np.empty(K)
    for j in range(lo, hi):
        t, low, high = min(factor[j], MOST_FACTOR), 0.0, MOST_FACTOR
        for _ in range(STEPS):
            loss, slope, curve = 0.0, 0.0, 0.0
            for i in range(n):
                top = -np.inf
                for c in range(K):
                    z[c] = base[c] + t * (total[i, c] + new[j, i, c])
                    top = max(top, z[c])
                mass, mean, square, own, right = 0.0, 0.0, 0.0, 0.0, 0.0
                for c in range(K):
                    s, e = total[i, c] + new[j, i, c], math.exp(z[c] - top)
                    mass += e
                    mean += e * s
                    square += e * s * s
                    own += goal[i, c] * s
                    right += goal[i, c] * z[c]
                mean /= mass
                loss += weight[i] * (top + math.log(mass) - right)
                slope += weight[i] * (mean - own)
                curve += weight[i] * (square / mass - mean * mean)
            losses[j], factor[j] = loss, t
            if slope > 0.0:
                high = t
            else:
                low = t
            step = t - slope / curve if curve > 0.0 else low
            if not low <= step <= high:
                step = 0.5 * (low + high)
            if abs(step - t) < SMALL:
                break
            t = step
