"""Forward selection of views by the loss of rows left out, where what all views say is summed.

The score of a row is prior + t sum_j s_j, s_j what view j adds to the prior (log ratios of
probabilities, or a difference of means), t one factor for all. The views that are taken, one after
the other, are those that lower the loss of the rows, each without itself, the most; k is chosen
among a few values in the same way.
"""

from dataclasses import dataclass
from math import comb, exp, log

import numpy as np

from lodim.engine import row_keys
from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.errors import ArgumentError
from lodim.models.ripr import ties
from lodim.models.ripr.losses import default_k
from lodim.models.ripr.views import by_content, dims, enumerate_views, extensions, pad, redundant

MOST_VIEWS = 8  # where no number is given
GAIN = 0.01  # share of the loss that a further view takes off it at least
LEAST_GAIN = 0.001  # share of the null loss that it removes as well
SIMPLER = 0.005  # share of the loss that a view of more features is better by
COMPARED = 2000  # views of each number of features, at most
CANDIDATES = 200  # of these, that are best by themselves
SAMPLE = 2000  # rows that views are chosen on, at most
SCREENED = 1000  # of these, rows that views are compared on by themselves
TIMES = (1.0, 0.5, 2.0)  # of the root of the number of rows: k that are tried
BETTER = 0.1  # share of the loss that another k than the root takes off it at least
MOST_FACTOR, STEPS, SMALL = 10.0, 20, 1e-9  # of Newton's method for the factor
BLOCK = 2**22  # numbers of the evidence that is at hand at a time


@dataclass(frozen=True, eq=False)
class Choice:
    """Views chosen by forward selection.

    views : (r, D) axes, padded with -1, in the order of selection
    k : neighbours, of all rows
    losses : (r + 1,) of the rows left out, without a view, with the first, with the first two, ...
    compared, possible : number of views that were compared, and that there are
    sampled : rows that views were chosen on
    """

    views: np.ndarray
    k: int
    losses: np.ndarray
    compared: int
    possible: int
    sampled: int


def choose_views(voters, seed, *, min_dim, max_dim, k, n_views, max_views, threads):
    """Return the Choice of views for Voters; k, n_views and max_views are None if open."""
    own = voters.at(sample(voters, SAMPLE, seed))
    few = own.at(sample(own, SCREENED, seed))
    on = _axes_to_compare(own.A, voters.A)
    on = on[by_content(own.A[:, on])]
    most_dim = min(max_dim, len(on))
    bounds = min(min_dim, most_dim), most_dim
    ks = [k] if k else _tried(len(own.A))
    views, n_compared = compare(few, on, bounds, k or default_k(len(few.A)), max_views, threads)
    most = n_views or MOST_VIEWS
    found = [forward_selection(own, views, each, most, threads) for each in ks]
    last = np.array([losses[-1] for _, losses in found])
    at = int(last.argmin()) if last.min() < (1.0 - BETTER) * last[0] else 0
    chosen, losses = found[at]
    grown = np.sqrt(len(voters.A) / len(own.A))
    return Choice(
        views=np.array([_increasing(view) for view in views[chosen]]),
        k=k or max(1, round(ks[at] * grown)),
        losses=losses,
        compared=n_compared,
        possible=sum(comb(len(on), d) for d in range(bounds[0], bounds[1] + 1)),
        sampled=len(own.A),
    )


def _axes_to_compare(*samples):
    """Axes that vary in the first sample in which one does; else all with a value, as they are."""
    for A in samples:
        varies = [len(np.unique(x[~np.isnan(x)])) > 1 for x in A.T]
        if any(varies):
            return np.flatnonzero(varies)
    return np.flatnonzero(~np.isnan(samples[-1]).all(axis=0))


def sample(voters, most, seed):
    """Return positions of all rows, or of a random sample."""
    if len(voters.A) <= most:
        return np.arange(len(voters.A))
    code = voters.target.argmax(axis=1) if voters.classes else voters.target[:, 0]
    n_classes = voters.target.shape[1] if voters.classes else 0
    X = np.nan_to_num(voters.A)
    key = row_keys.keys(X, voters.weight, code.astype(np.float64), n_classes)
    return row_keys.drawn(key, most, seed)


def _tried(n):
    """Return numbers of neighbours to try among n rows, the root of n first."""
    return list(dict.fromkeys(min(max(1, round(f * default_k(n))), max(1, n - 1)) for f in TIMES))


def _increasing(view):
    """Return a view with its axes in increasing order, padded with -1."""
    return np.array([*sorted(view[view >= 0]), *view[view < 0]], np.int64)


# Views by themselves -----------------------------------------------------------------------------


def compare(voters, on, bounds, k, max_views, threads):
    """The views (m, D) of the axes `on` that do best by themselves, and how many were compared.

    Return all views of a number of features, or if too many those that add one to the best
    views of one less. Of two views that say the same the one with fewer features stands first.
    """
    low, high = bounds
    p, room, parents, kept = len(on), max_views, None, []
    if room is not None and room < p:
        raise ArgumentError(f"max_views must be at least the number of features, {p}")
    for d in range(1, high + 1):
        most = COMPARED if room is None else room
        if d < low and comb(p, low) <= most:
            continue
        every = comb(p, d) <= most or parents is None
        views = (enumerate_views(p, d, d) if every else extensions(parents, p))[:most]
        twice = redundant(voters.A[:, on], views)
        views = views if twice.all() else views[~twice]
        losses = single_losses(voters, on[views], k, threads)
        parents = views[ties.descending(-losses)]
        if d >= low:
            kept.append((pad(views, high), losses))
            room = room and room - len(views)
        if room == 0:
            break
    views, losses = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    best = np.sort(ties.descending(-losses)[:CANDIDATES])
    return np.where(views[best] >= 0, on[views[best]], -1), len(views)


def single_losses(voters, views, k, threads):
    """Return loss of the rows by each view alone, each row without itself, (V,)."""
    step = max(1, BLOCK // voters.target.size)
    parts = [views[at : at + step] for at in range(0, len(views), step)]
    total = np.zeros_like(voters.target)
    evidence = (voters.evidence(voters.sums(part, k, threads=threads)) for part in parts)
    return np.concatenate([factors(voters, total, new, threads)[1] for new in evidence])


def factors(voters, total, new, threads=1):
    """Return the factor of total (n, C) + new[j], and the loss at it, for each j: (V,) each."""
    weight = voters.weight / voters.weight.sum()
    if voters.classes:
        t, losses, base = np.ones(len(new)), np.empty(len(new)), np.log(voters.prior)
        more = (base, total, new, voters.goal, weight)
        for_blocks(class_factors, len(new), t, losses, *more, threads=threads)
        return t, losses
    z, y = total[:, 0] + new[:, :, 0], voters.target[:, 0]
    size = np.einsum("i,ji,ji->j", weight, z, z)
    t = np.maximum(np.einsum("i,i,ji->j", weight, y, z) / np.maximum(size, 1e-300), 0.0)
    return t, np.einsum("i,ji->j", weight, (y - t[:, None] * z) ** 2)


# Views together ----------------------------------------------------------------------------------


def forward_selection(voters, views, k, most, threads=1):
    """Positions of the views that are taken one after the other, and losses without and with them.

    A further view must take GAIN off the loss, and LEAST_GAIN of that without views; one of more
    features must be better by SIMPLER.
    """
    evidence = voters.evidence(voters.sums(views, k, threads=threads))
    total, size = np.zeros_like(voters.target), dims(views)
    null = factors(voters, total, evidence[:1] * 0.0)[1][0]
    chosen, losses = [], [null]
    while len(chosen) < min(most, len(views)):
        new = factors(voters, total, evidence, threads)[1]
        new[chosen] = np.inf
        fewest = size[new <= new.min() + SIMPLER * losses[-1]].min()
        j = int(ties.argmin(np.where(size == fewest, new, np.inf)))
        if chosen and losses[-1] - new[j] <= GAIN * losses[-1] + LEAST_GAIN * null:
            break
        chosen, losses, total = [*chosen, j], [*losses, new[j]], total + evidence[j]
    return np.array(chosen), np.array(losses)


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
                    s, e = total[i, c] + new[j, i, c], exp(z[c] - top)
                    mass += e
                    mean += e * s
                    square += e * s * s
                    own += goal[i, c] * s
                    right += goal[i, c] * z[c]
                mean /= mass
                loss += weight[i] * (top + log(mass) - right)
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
