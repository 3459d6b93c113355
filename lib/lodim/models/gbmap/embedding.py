"""Distances between rows in a gbmap embedding (Eqs. 6, 7), nearest neighbours, drift indicators."""

import numpy as np
from scipy.spatial import KDTree

from lodim import forms
from lodim.design.batch import subset
from lodim.engine.compiled import njit
from lodim.family.family import LARGEST_LOG
from lodim.models.gbmap.cpu_kernels import activate

NEIGHBOURS = 5  # k of the paper's drift indicator (Sect. 4.5)
KINDS = "difference", "distance"  # kinds of drift indicators


def without_offset(batch, link):
    """Return a Batch's responses (n,) at an offset of zero, given `link`; classes are unchanged."""
    if batch.offset is None or link not in ("identity", "log"):
        return batch.y
    offset = batch.offset.reshape(-1)
    if link == "identity":
        return batch.y - offset
    return batch.y * np.exp(np.minimum(-offset, LARGEST_LOG))


@forms.record
class Reference:
    """Training rows stored for nearest-neighbour searches: r rows, M learners, K classes."""

    embedding: np.ndarray = forms.real("r", "M")  # learners' values
    # score and a numeric y exclude the offset
    score: np.ndarray = forms.real("r", "functions")
    y: np.ndarray = forms.responses("r")

    def _check_fields(self):
        if not len(self.y):
            raise ValueError("reference has no rows")

    @classmethod
    def from_batch(cls, learners, batch, link, settings):
        """Return a Reference: training rows (a sample if many) with which new rows are compared.

        learners : WeakLearners; link : link of the family, to remove a numeric response's offset"""
        count, most = batch.n_positive, settings.reference_rows
        rows = slice(None)
        if count > most:
            rows = np.random.default_rng(settings.seed).choice(count, most, replace=False)
            rows.sort()
        if batch.n > min(count, most):
            batch = subset(batch, rows if count == batch.n else batch.positive_weight[rows])
        E = learners.embedding(batch.X, batch.n, settings.n_threads)
        score = np.zeros((batch.n, learners.n_scores))
        for k in range(learners.n_scores):
            score[:, k] = E[:, learners.target == k].sum(axis=1)
        return cls(E, score, without_offset(batch, link))

    def nearest(self, E, k):
        """Return L1 distances and positions, (n, k), of the stored rows nearest to E (n, M)."""
        return KDTree(self.embedding).query(E, k=np.arange(1, k + 1), p=1)


def drift_indicators(learners, reference, batch, k, numeric, threads):
    """Return how far rows are from their k nearest training rows, as a dict of arrays (n,).

    "distance" is in the values of the learners; "difference" is in the linear predictor.
    reference : Reference, the training rows
    numeric : whether "difference" compares with responses instead of linear predictors"""
    # "distance" is a mean L1 distance.
    # Classes: the largest difference over classes.
    rows = batch.X, batch.n
    distance, near = reference.nearest(learners.embedding(*rows, threads), k)
    values = reference.y[:, None] if numeric else reference.score
    score = learners.sums(*rows, threads)
    difference = np.abs(score - values[near].mean(axis=1)).max(axis=1)
    return {"difference": difference, "distance": distance.mean(axis=1)}


def path_distances(Z, W, learners, tolerance):
    """Return distances (n, r): how much the linear predictor varies on the line between two rows.

    Z, W : (n, M) and (r, M) values intercept + w'x of the rows for M learners
    tolerance : largest allowed error of a distance"""
    # The integral of |df/dt| between two rows, summed over classes (Eq. 6, Patron et al. 2024)
    out = np.zeros((len(Z), len(W)))
    shape = learners.beta, learners.activation, tolerance / learners.n_scores
    for k in range(learners.n_scores):
        of = learners.target == k
        ends = np.ascontiguousarray(Z[:, of]), np.ascontiguousarray(W[:, of])
        _all_pairs(*ends, learners.scale * learners.sign[of], *shape, out)
    return out


@njit(cache=True, nogil=True, forceinline=True)
def _path_length(z0, z1, sign, beta, activation, tolerance):
    """Return the total variation of a sum of M learners on the line between two rows.

    z0, z1 : (M,) values intercept + w'x of the two rows; sign : (M,) signs times scale
    tolerance : largest allowed error; beta, activation : as in `cpu_kernels.Form`"""
    # Segments are halved until a bound on the error is small (Lemma 3 of Patron et al. 2024).
    left, right = np.empty(64), np.empty(64)
    left[0], right[0], depth, length = 0.0, 1.0, 1, 0.0
    while depth:
        depth -= 1
        s, t = left[depth], right[depth]
        change, low, high = 0.0, 0.0, 0.0  # of f from s to t; bounds of its slope there
        for j in range(z0.size):
            speed = sign[j] * (z1[j] - z0[j])
            g_s, d_s = activate(z0[j] + s * (z1[j] - z0[j]), beta, activation)
            g_t, d_t = activate(z0[j] + t * (z1[j] - z0[j]), beta, activation)
            change += sign[j] * (g_t - g_s)
            low += min(speed * d_s, speed * d_t)
            high += max(speed * d_s, speed * d_t)
        # The variation is at most |change| plus twice the smaller of what can go down and up.
        if 2.0 * min(-low, high) <= tolerance or t - s < 1e-12:
            length += abs(change)
        else:
            middle = 0.5 * (s + t)
            left[depth], right[depth] = middle, t
            left[depth + 1], right[depth + 1] = s, middle
            depth += 2
    return length


@njit(cache=True, nogil=True)
def _all_pairs(Z, W, sign, beta, activation, tolerance, out):
    for i in range(Z.shape[0]):
        for j in range(W.shape[0]):
            out[i, j] += _path_length(Z[i], W[j], sign, beta, activation, tolerance)
