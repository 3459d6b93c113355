"""Votes of the nearest rows in feature sets (views), and forward selection of the sets."""

from dataclasses import dataclass, replace
from math import comb, exp, log

import numpy as np

from lodim.engine import row_keys
from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.errors import ArgumentError
from lodim.models.ripr import ties
from lodim.models.ripr.kernels import FALLING
from lodim.models.ripr.losses import default_k
from lodim.models.ripr.neighbours import Neighbours
from lodim.models.ripr.settings import MOST_DIM
from lodim.models.ripr.views import (
    by_content,
    count,
    dims,
    enumerate_views,
    extensions,
    pad,
    redundant,
    varying,
)

PRIOR_ROWS = 2.0  # rows with the prior shares (or mean) that are added to a vote
SAMPLE = 2000  # most rows on which views are chosen


@dataclass(frozen=True, eq=False)
class Voters:
    """Training rows that vote: a row is predicted by the mean target of its nearest voters.

    Targets are class indicators (n, classes), or a standardized response; `prior` is their mean."""

    A: np.ndarray  # values on the axes (numbers or codes of a factor's levels), NaN if missing
    category_distance: np.ndarray  # (axes,) squared distance of two levels; 0 for numbers
    target: np.ndarray
    weight: np.ndarray  # row weights, divided by their mean
    prior: np.ndarray
    # mean, spread: mean and standard deviation of a numeric response
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def from_rows(cls, A, category_distance, y, weight, n_classes):
        """Return Voters (rows that vote) with class codes y, or numbers y if n_classes is 0.

        A : (n, axes) numbers, or codes of a factor's levels
        category_distance : (axes,) squared distance of two levels; 0 for numbers"""
        weight = weight / weight.mean()
        if n_classes:
            target = (y[:, None] == np.arange(n_classes)).astype(np.float64)
            prior = np.maximum(np.einsum("i,ic->c", weight, target) / weight.sum(), 1e-12)
            return cls(A, category_distance, target, weight, prior)
        mean = weight @ y / weight.sum()
        spread = np.sqrt(weight @ (y - mean) ** 2 / weight.sum()) or 1.0
        target = ((y - mean) / spread)[:, None]
        return cls(A, category_distance, target, weight, np.zeros(1), float(mean), float(spread))

    def at(self, rows):
        """Return the Voters at positions `rows` only; `prior` is still the mean target of all."""
        return replace(self, A=self.A[rows], target=self.target[rows], weight=self.weight[rows])

    @property
    def classes(self):
        return self.target.shape[1] > 1

    def sums(self, views, k, Q=None, threads=1, own=None):
        """Sum targets over each row's k nearest voters in each view (feature set).

        views : (views, dims) positions of axes
        Q : (rows, axes), by default the voters
        own : (rows,) position among the voters, to leave it out, or -1
        Return (views, rows, C + 1): weighted sums of C targets, then of the weights."""
        values = self.weight[:, None] * np.column_stack([self.target, np.ones(len(self.A))])
        near = Neighbours.among(Q, self.A, self.category_distance, own)
        return near.sums(views, k, values, FALLING, threads)

    def evidence(self, views, k, Q=None, threads=1, own=None):
        """Return how far the mean target of a row's k neighbours is from `prior`, (views, rows, C).

        views : (views, dims) positions of axes
        Q : (rows, axes), by default the voters
        own : (rows,) position among the voters, to leave it out, or -1
        The result is a log ratio of shares for classes, a difference for numbers."""
        sums = self.sums(views, k, Q, threads, own)
        total = sums[..., -1:] + PRIOR_ROWS
        if not self.classes:
            return sums[..., :-1] / total
        return np.log((sums[..., :-1] / self.prior + PRIOR_ROWS) / total)


def smoothed_targets(code, n_classes):
    """Return smoothed indicators (n, n_classes) of class codes, whose log-odds are finite."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out


# Search ------------------------------------------------------------------------------------------


def choose_views(voters, settings, threads):
    """Choose the feature sets in which the training rows (voters) predict best.

    Return the sets (sets, dims), padded with -1; the number of neighbours; and a log (dict)."""
    s, own = settings, voters.at(sample(voters, SAMPLE, settings.seed))
    few = own.at(sample(own, 1000, s.seed))  # single views are compared on fewer rows
    # Axes that vary in the sample; if none does, in all rows; if none does, with known values
    able = next(filter(np.any, map(varying, (own.A, voters.A))), ~np.isnan(voters.A).all(axis=0))
    on = np.flatnonzero(able)
    on = on[by_content(own.A[:, on])]
    most_dim = min(s.max_dim or MOST_DIM, len(on))
    bounds = min(s.min_dim or 1, most_dim), most_dim
    # The square root of the number of rows, and half and twice that
    tried = [max(1, round(factor * default_k(len(own.A)))) for factor in (1.0, 0.5, 2.0)]
    ks = [s.k] if s.k else list(dict.fromkeys(min(k, max(1, len(own.A) - 1)) for k in tried))
    k = s.k or default_k(len(few.A))
    views, n_compared = compare(few, on, bounds, k, s.max_views, threads)
    found = [forward_selection(own, views, k, s.n_views or 8, threads) for k in ks]
    last = np.array([losses[-1] for _, losses in found])
    # Another k than the square root must lower the loss by a tenth.
    at = int(last.argmin()) if last.min() < 0.9 * last[0] else 0
    chosen, losses = found[at]
    k = s.k or max(1, round(ks[at] * np.sqrt(len(voters.A) / len(own.A))))
    log = {"objective": losses, "converged": True, "compared": n_compared}
    log |= {"possible": count(len(on), *bounds), "sampled": len(own.A)}
    return np.array([[*sorted(view[view >= 0]), *view[view < 0]] for view in views[chosen]]), k, log


def sample(voters, most, seed):
    """Return positions of `most` random training rows (voters), or of all if there are fewer."""
    if len(voters.A) <= most:
        return np.arange(len(voters.A))
    code = voters.target.argmax(axis=1) if voters.classes else voters.target[:, 0]
    n_classes = voters.target.shape[1] if voters.classes else 0
    X = np.nan_to_num(voters.A)
    key = row_keys.keys(X, voters.weight, code.astype(np.float64), n_classes)
    return row_keys.drawn(key, most, seed)


# Views by themselves -----------------------------------------------------------------------------


def compare(voters, on, bounds, k, max_views, threads):
    """Find up to 200 feature sets that predict best by themselves, by leave-one-out loss.

    on : positions of the axes (numbers or factors) to combine
    bounds : fewest and most axes in a set
    max_views : most sets to compare; None for 2,000 of each size
    Return the sets (sets, axes), padded with -1, and the number of sets compared."""
    low, high = bounds
    p, room, parents, kept = len(on), max_views, None, []
    total, step = np.zeros_like(voters.target), max(1, 2**22 // voters.target.size)
    if room is not None and room < p:
        raise ArgumentError(f"max_views must be at least the number of features, {p}")
    for d in range(1, high + 1):
        most = 2000 if room is None else room
        if d < low and comb(p, low) <= most:
            continue
        every = comb(p, d) <= most or parents is None
        views = (enumerate_views(p, d, d) if every else extensions(parents, p))[:most]
        twice = redundant(voters.A[:, on], views)
        views = views if twice.all() else views[~twice]
        # The evidence of `step` views takes at most 32 MiB.
        parts = (on[views[at : at + step]] for at in range(0, len(views), step))
        evidence = (voters.evidence(part, k, threads=threads) for part in parts)
        each = [best_factors(voters, total, new, threads)[1] for new in evidence]
        losses = np.concatenate(each)
        parents = views[ties.descending(-losses)]
        if d >= low:
            kept.append((pad(views, high), losses))
            room = room and room - len(views)
        if room == 0:
            break
    views, losses = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    best = np.sort(ties.descending(-losses)[:200])  # views for forward selection
    return np.where(views[best] >= 0, on[views[best]], -1), len(views)


def best_factors(voters, total, new, threads=1):
    """Find, for each feature set that may be added, the best factor of the summed evidence.

    total : (rows, C) summed evidence, such as log ratios of class shares, of the sets added before
    new : (sets, rows, C) evidence of each further set
    Return the factors and their losses, (sets,) each."""
    weight = voters.weight / voters.weight.sum()
    if voters.classes:
        t, losses, base = np.ones(len(new)), np.empty(len(new)), np.log(voters.prior)
        goal = smoothed_targets(voters.target.argmax(axis=1), voters.target.shape[1])
        more = (base, total, new, goal, weight)
        for_blocks(class_factors, len(new), t, losses, *more, threads=threads)
        return t, losses
    z, y = total[:, 0] + new[:, :, 0], voters.target[:, 0]
    size = np.einsum("i,ji,ji->j", weight, z, z)
    t = np.maximum(np.einsum("i,i,ji->j", weight, y, z) / np.maximum(size, 1e-300), 0.0)
    return t, np.einsum("i,ji->j", weight, (y - t[:, None] * z) ** 2)


# Views together ----------------------------------------------------------------------------------


def forward_selection(voters, views, k, most, threads=1):
    """Select up to `most` feature sets one by one, so that the sum of their votes predicts best.

    views : (m, dims) axes of each set
    Return positions in `views`, and leave-one-out losses: of the null model, then per selection."""
    evidence = voters.evidence(views, k, threads=threads)
    total, size = np.zeros_like(voters.target), dims(views)
    null = best_factors(voters, total, evidence[:1] * 0.0)[1][0]
    chosen, losses = [], [null]
    while len(chosen) < min(most, len(views)):
        new = best_factors(voters, total, evidence, threads)[1]
        new[chosen] = np.inf
        # A view with more features must lower the loss by 0.5% more.
        fewest = size[new <= new.min() + 0.005 * losses[-1]].min()
        j = int(ties.argmin(np.where(size == fewest, new, np.inf)))
        # A further view must lower the loss by 1% plus 0.1% of the null loss.
        if chosen and losses[-1] - new[j] <= 0.01 * losses[-1] + 0.001 * null:
            break
        chosen, losses, total = [*chosen, j], [*losses, new[j]], total + evidence[j]
    return np.array(chosen), np.array(losses)


@njit(cache=True, nogil=True, error_model="numpy")
def class_factors(lo, hi, factor, losses, base, total, new, goal, weight):
    """Find the best factor of the summed evidence, with each of the sets lo to hi - 1 added.

    factor : (sets,) first guesses, replaced by the factors; losses : (sets,) log-losses to fill
    base : (classes,) log priors
    total : (rows, classes) summed evidence of the sets added before
    new : (sets, rows, classes) evidence of each further set
    goal : (rows, classes) targets"""
    n, K = total.shape
    z = np.empty(K)
    for j in range(lo, hi):
        t, low, high = min(factor[j], 10.0), 0.0, 10.0
        for _ in range(20):
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
            if abs(step - t) < 1e-9:
                break
            t = step
