"""Divergence of projected classes and its gradient: Eq. 2 of Czarnecki et al. (2015)."""

from itertools import pairwise

import numpy as np
from scipy.spatial import KDTree
from scipy.special import ndtr

from lodim.engine.blocks import for_blocks, on_host, place
from lodim.models.melm.cpu_kernels import BLOCK, finish, pair_sums, prepare

PAIRS = 2**22  # pairs of rows per stripe
STRIPES = 16  # most stripes; each stores the forces on all rows
ALONE = 2**18  # pairs of rows below which threads do not pay
MIN_GPU_PAIRS = 2**22  # pairs of rows from which "auto" uses a GPU


def shares(size, average=False):
    """Return the weights (C, C) of pairs of classes A <= B in the Cauchy-Schwarz divergence.

    A pair's weight multiplies the log integral of the product of its two densities.
    size : (C,) class sizes; average : whether to average over pairs, instead of adding"""
    C = len(size)
    if C == 1:  # the entropy, instead of a divergence
        return -np.ones((1, 1))
    pair = np.outer(size, size) / size.sum() ** 2 if average else np.ones((C, C))
    pair[np.diag_indices(C)] = 0.0
    if average:
        pair /= np.triu(pair).sum()
    out = np.triu(-2.0 * pair)
    out[np.diag_indices(C)] = pair.sum(axis=1)
    return out


class Divergence:
    """Minus the Cauchy-Schwarz divergence of C classes (for one, the entropy), by projection.

    sample : Sample of rows; share : (C, C) weights of pairs of classes
    h2 : (C,) squared bandwidths; k : dimensions of a projection
    engine : "cpu", "auto" or "cuda", where sums are computed"""

    precision, scaled = 1e-14, False

    def __init__(self, sample, share, h2, k, threads=1, engine="cpu"):
        self.r, self.k, self.l1 = len(sample.Z), k, np.zeros(len(sample.Z) * k)
        self._sample, self._share, self._h2, self._threads = sample, share, h2, threads
        self._degree, self._upper = share.sum(), np.triu(np.ones(share.shape, bool))
        pairs = len(sample.weight) ** 2 // 2
        blocks = max(1, int(np.diff(sample.start).max()) // BLOCK)
        self._stripes = int(min(blocks, STRIPES, max(1, pairs // PAIRS)))
        self._together = max(1, STRIPES // self._stripes)
        self._many = pairs >= ALONE
        self._Z, self._start, self._tiles = sample.Z, sample.start, None
        if engine != "cpu":
            tiles = place(sample.tiles, engine, pairs >= MIN_GPU_PAIRS)
            if not on_host(tiles):
                from lodim.models.melm import cuda_kernels

                C = sample.n_classes
                self._tiles, self._classes = tiles, cuda_kernels.upload_classes(sample)
                # The GPU's sums include the features, by which `finish` would multiply again.
                self._Z, self._start = np.tile(np.eye(self.r), C), self.r * np.arange(C + 1)
                self._stripes = 1
                self._together = cuda_kernels.projections_at_once(len(tiles), C, k)

    def __call__(self, theta, active):
        """Return minus the divergence of q projections (q,), and its gradients (q, r k).

        theta : (q, r k), a projection (r, k) per row; active : those to compute, others get 0"""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        for first in range(0, len(active), self._together):
            part = active[first : first + self._together]
            potential = self._potentials(V, part, gradient)
            value[part] = np.einsum("qab,ab->q", potential, self._share)
        if self._degree:
            v = V[active]
            inner = np.einsum("qdi,qdj->qij", v, v)
            value[active] += 0.5 * self._degree * np.linalg.slogdet(inner)[1]
            gradient[active] += self._degree * np.einsum("qdi,qij->qdj", v, np.linalg.inv(inner))
        return -value, -gradient.reshape(len(V), -1)

    def potentials(self, V):
        """Return logs of integrals of f_A f_B, (C, C), for class densities f_A along V (r, k)."""
        V = np.ascontiguousarray(V)[None]
        return self._potentials(V, np.zeros(1, np.int64), np.zeros_like(V))[0]

    def _potentials(self, V, active, gradient):
        """Return logs of the integrals of f_A f_B for class densities f_A, (len(active), C, C).

        V : (q, r, k) projections; active : positions of those to use
        gradient : (q, r, k), filled at `active` with derivatives of sum(self._share * logs)"""
        s, q, k, r = self._sample, len(active), self.k, self.r
        C, n, units = s.n_classes, self._Z.shape[1], q * self._stripes
        threads = self._threads if self._many else 1
        P, spread, root = np.empty((q, k, n)), np.empty((q, C, r, k)), np.zeros((q, C, C, k, k))
        log_det, shift, potential = np.zeros((3, q, C, C))
        totals, forces = np.zeros((units, C, C)), np.empty((units, C, k, n))
        out = P, spread, root, log_det
        for_blocks(prepare, q, active, V, self._Z, s.cov, self._h2, out, threads=threads)
        rows = P if self._tiles is None else V[active]
        self._sum_pairs(rows, root, shift, totals, forces, threads)
        sums = totals.reshape(q, self._stripes, C, C).sum(axis=1)
        if (sums[:, self._upper] < 1e-200).any():
            # For classes so far apart that all kernels vanish, scale the largest kernel to 1.
            spans = [slice(*ends) for ends in pairwise(s.start)]
            for i, Q in enumerate(V[active].transpose(0, 2, 1) @ s.Z):
                for a, b in zip(*np.triu_indices(C, 1), strict=True):
                    U, W = ((root[i, a, b] @ Q[:, span]).T for span in (spans[a], spans[b]))
                    shift[i, a, b] = 0.5 * KDTree(U).query(W)[0].min() ** 2
            self._sum_pairs(rows, root, shift, totals, forces, threads)
        rows = self._Z, P, self._start, s.size, self._h2, self._share
        sums = spread, root, log_det, shift, totals, forces
        args = active, self._stripes, rows, sums, potential, gradient
        for_blocks(finish, q, *args, threads=threads)
        return potential

    def _sum_pairs(self, rows, root, shift, totals, forces, threads):
        """Sum kernels over pairs of rows, and compute forces on rows, as `pair_sums` does.

        rows : (q, k, n) projected rows; on a GPU, the projections (q, r, k)
        root : (q, C, C, k, k) whitening maps; shift : (q, C, C), added to exponents
        totals : (..., C, C) sums to fill
        forces : (..., C, k, n) to fill; on a GPU, (q, C, k, C r) sums of features times forces"""
        if self._tiles is not None:
            totals[:], forces[:] = self._tiles.run(pair_sums, *self._classes, rows, root, shift)
            return
        args = self._stripes, rows, self._sample.weight, self._sample.start, root, shift
        for_blocks(pair_sums, len(totals), *args, totals, forces, threads=threads)


def normal_entropy(cov, V):
    """Return Renyi's entropy (Eq. 1) of a normal with covariance `cov`, projected by V (r, k)."""
    return 0.5 * (V.shape[1] * np.log(4.0 * np.pi) + np.linalg.slogdet(V.T @ cov @ V)[1])


# Overlap of two classes --------------------------------------------------------------------------


def bound(log_potential, log_volume):
    """Return an upper bound of the integral of min(f, g) over a region, for densities f and g.

    log_potential : log of the integral of f g; log_volume : log of the region's volume"""
    # This is the bound of Theorem 3.
    return np.exp(np.minimum(0.0, 0.5 * (log_potential + log_volume)))


def overlaps(Z, code, weight, width, potential):
    """Return upper bounds of the overlap of two class densities, (C, C), for classes A < B.

    The overlap is the integral of the smaller density.
    Z : (n, k) projected rows; code, weight : (n,) their classes and weights
    width : (C, k) kernel SDs; potential : (C, C) log integrals of products of two densities"""
    C, boxes, out = len(potential), [], np.zeros_like(potential)
    for c, sd in enumerate(width):
        of = code == c
        z, share = Z[of], weight[of] / weight[of].sum()
        # Boxes (low, high) around a class leave out up to 10% of its rows on each side, and extend
        # by up to four kernel widths; `outside` bounds the class's probability outside each box.
        cut = np.quantile(z, [(q, 1.0 - q) for q in (0.0, 0.005, 0.02, 0.05, 0.1)], axis=0)
        sides = np.arange(5.0)[:, None, None] * (np.array([-1.0, 1.0])[:, None] * sd)
        box = (cut[:, None] + sides).reshape(-1, 2, z.shape[1])
        outside = [share @ (ndtr((low - z) / sd) + ndtr((z - high) / sd)) for low, high in box]
        boxes.append((box, np.minimum(np.sum(outside, axis=1), 1.0)))
    for a, b in zip(*np.triu_indices(C, 1), strict=True):
        (box_a, outside_a), (box_b, outside_b) = boxes[a], boxes[b]
        low = np.maximum(box_a[:, None, 0], box_b[None, :, 0])
        high = np.minimum(box_a[:, None, 1], box_b[None, :, 1])
        volume = np.log(np.maximum(high - low, 1e-300)).sum(axis=2)
        inside = np.where((high > low).all(axis=2), bound(potential[a, b], volume), 0.0)
        out[a, b] = min(1.0, (inside + outside_a[:, None] + outside_b).min())
    return out
