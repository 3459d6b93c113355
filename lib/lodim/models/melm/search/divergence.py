"""The divergence of projected classes and its gradient: Eq. 2 of Czarnecki et al. (2015).

Beside it the entropy of one class (Theorems 1 and 2), and bounds on the overlap of two (Theorem 3).
"""

import numpy as np
from scipy.special import ndtr

from lodim.engine.blocks import for_blocks, on_host, place
from lodim.models.melm.kernels.cpu import BLOCK, closest, finish, pair_sums, prepare
from lodim.models.melm.search.sample import bandwidths

PAIRS = 2**22  # of rows in a stripe
STRIPES = 16  # at most: each holds the forces on all rows
LEAST = 1e-200  # of a sum over pairs: below, its digits are lost
ALONE = 2**15  # pairs of rows below which a problem is not worth a thread
MANY = 2**22  # pairs of rows from which "auto" takes a GPU: fewer take the CPU milliseconds
CUT = (0.0, 0.005, 0.02, 0.05, 0.1)  # tried: shares of rows beyond each side of a box,
MARGIN = (0.0, 1.0, 2.0, 3.0, 4.0)  # and how many kernel widths farther out the sides are


def shares(size, average=False):
    """Coefficients (C, C) of log ip_AB, A <= B, in the divergence of classes of sizes (C,).

    Two classes: 1, 1 and -2. More: the sum over all pairs, or their mean weighted by the products
    of class shares. One: -1, Renyi's quadratic entropy.
    """
    C = len(size)
    if C == 1:
        return -np.ones((1, 1))
    pair = np.outer(size, size) / size.sum() ** 2 if average else np.ones((C, C))
    pair[np.diag_indices(C)] = 0.0
    if average:
        pair /= np.triu(pair).sum()
    out = np.triu(-2.0 * pair)
    out[np.diag_indices(C)] = pair.sum(axis=1)
    return out


class SpanObjective:
    """Minus a function of the spans of q projections V (r, k), as the solver takes it.

    The value is that of orthonormal V with the same span: from V to V M the function changes by
    -degree log |det M|. With `penalty` it is less |V'V - I|^2, the penalty of Eq. 2.
    """

    precision, scaled = 1e-14, False

    def __init__(self, r, k, degree, penalty=False, sign=1.0):
        self.r, self.k, self.l1 = r, k, np.zeros(r * k)
        self._degree, self._penalty, self._sign = degree, penalty, sign

    def __call__(self, theta, active):
        """Return value (q,) and gradient (q, r k), filled in the rows `active`."""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        self._fill(V, active, value, gradient)
        self._orthonormalize(V, active, value, gradient)
        return -self._sign * value, -self._sign * gradient.reshape(len(V), -1)

    def _fill(self, V, active, value, gradient):
        """Fill value (q,) and gradient (q, r, k) of the projections V (q, r, k) that are active."""
        raise NotImplementedError

    def _orthonormalize(self, V, active, value, gradient):
        """Change values and gradients to those of an orthonormal basis, less the penalty."""
        v = V[active]
        inner = np.einsum("qdi,qdj->qij", v, v)
        if self._degree:
            value[active] += 0.5 * self._degree * np.linalg.slogdet(inner)[1]
            gradient[active] += self._degree * np.einsum("qdi,qij->qdj", v, np.linalg.inv(inner))
        if self._penalty:
            excess = inner - np.eye(inner.shape[1])
            value[active] -= (excess**2).sum(axis=(1, 2))
            gradient[active] -= 4.0 * np.einsum("qdi,qij->qdj", v, excess)

    def error(self, V):
        """Return the error of the function at one projection; zero if it is exact."""
        return 0.0


class Divergence(SpanObjective):
    """Minus the divergence of q projections V (r, k), by sums over all pairs of rows.

    Parameters
    ----------
    sample : Sample
    share : array (C, C)
        Weights of the log potentials, see `shares`.
    h2 : array (C,)
        Squared bandwidths.
    k : int
    threads : int
    penalty : bool
        Less |V'V - I|^2, the penalty of Eq. 2.
    engine : str
        Where the sums over pairs run: the rows stay there as long as the objective.

    Of two classes or more the value does not depend on the basis; the entropy of one class grows
    by log |det M| from V to V M.
    """

    def __init__(self, sample, share, h2, k, threads=1, penalty=False, engine="cpu"):
        super().__init__(len(sample.Z), k, share.sum(), penalty)
        self._sample, self._share, self._h2, self._threads = sample, share, h2, threads
        pairs = len(sample.weight) ** 2 // 2
        blocks = max(1, int(np.diff(sample.start).max()) // BLOCK)
        self._stripes = int(min(blocks, STRIPES, max(1, pairs // PAIRS)))
        self._together = max(1, STRIPES // self._stripes)
        self._many = pairs >= ALONE
        self._Z, self._start, self._tiles = sample.Z, sample.start, None
        if engine != "cpu":
            tiles = place(sample.tiles, engine, pairs >= MANY)
            if not on_host(tiles):
                self._move_to_gpu(tiles)

    def _move_to_gpu(self, tiles):
        """Sum over the rows of `tiles` on the GPU.

        It returns forces that are summed over rows by feature. So the host's rows are then those
        of the identity, r in each class, on which such sums are the forces.
        """
        from lodim.models.melm.kernels import cuda  # only where a GPU is asked for

        C = self._sample.n_classes
        self._tiles, self._classes = tiles, cuda.upload_classes(self._sample)
        self._Z, self._start = np.tile(np.eye(self.r), C), self.r * np.arange(C + 1)
        self._stripes, self._together = 1, cuda.together(len(tiles), C, self.k)

    def _fill(self, V, active, value, gradient):
        for first in range(0, len(active), self._together):
            part = active[first : first + self._together]
            potential = self._potentials(V, part, gradient)
            value[part] = np.einsum("qab,ab->q", potential, self._share)

    def potentials(self, V):
        """Logarithms of the information potentials of one projection (r, k), (C, C) for A <= B."""
        V = np.ascontiguousarray(V)[None]
        return self._potentials(V, np.zeros(1, np.int64), np.zeros_like(V))[0]

    def _potentials(self, V, active, gradient):
        """Return log potentials (len(active), C, C) of active problems; fills their gradients."""
        s, q, k, r = self._sample, len(active), self.k, self.r
        C, n, units = s.n_classes, self._Z.shape[1], q * self._stripes
        threads = self._threads if self._many else 1
        P, spread, root = np.empty((q, k, n)), np.empty((q, C, r, k)), np.zeros((q, C, C, k, k))
        log_det, shift, potential = np.zeros((3, q, C, C))
        totals, forces = np.zeros((units, C, C)), np.empty((units, C, k, n))
        out = P, spread, root, log_det
        for_blocks(prepare, q, active, V, self._Z, s.cov, self._h2, *out, threads=threads)
        rows = P if self._tiles is None else V[active]
        self._sum_pairs(rows, root, shift, totals, forces, threads)
        if np.any(_vanished(totals, self._stripes)):
            # Classes so far apart that all kernels vanish: they are measured from the closest pair.
            self._shift_to_closest(rows, root, shift, threads)
            self._sum_pairs(rows, root, shift, totals, forces, threads)
        rows = self._Z, P, self._start, s.size, self._h2, self._share
        sums = spread, root, log_det, shift, totals, forces
        args = active, self._stripes, rows, sums, potential, gradient
        for_blocks(finish, q, *args, threads=threads)
        return potential

    def _sum_pairs(self, rows, root, shift, totals, forces, threads):
        """Fill totals and forces from projected rows P on the host or projections V on the GPU."""
        if self._tiles is not None:
            totals[:], forces[:] = self._tiles.run(pair_sums, *self._classes, rows, root, shift)
            return
        general = None if self.k == 2 else True
        args = self._stripes, rows, self._sample.weight, self._sample.start, root, shift, general
        for_blocks(pair_sums, len(totals), *args, totals, forces, threads=threads)

    def _shift_to_closest(self, rows, root, shift, threads):
        """Fill shift with half the least squared distances between classes."""
        if self._tiles is not None:
            shift[:] = self._tiles.run(closest, *self._classes, rows, root)
        else:
            start = self._sample.start
            for_blocks(closest, len(rows), rows, start, root, shift, threads=threads)


def _vanished(totals, stripes):
    """Return whether the sum over pairs is too small for its digits, of each problem and pair."""
    total = totals.reshape(-1, stripes, *totals.shape[1:]).sum(axis=1)
    return (total < LEAST) & np.triu(np.ones(total.shape[1:], bool))


def terms(potential, share):
    """Fitting and regularizing term: -2 log ip_+- and log ip_++ + log ip_--."""
    regularizing = np.diag(potential) @ np.diag(share)
    return float((np.triu(potential, 1) * share).sum()), float(regularizing)


class NormalEntropy(SpanObjective):
    """Minus (or plus) Renyi's quadratic entropy of a projected normal density: Eq. 1.

    Parameters
    ----------
    cov : array (r, r)
    k : int
    sign : float
        1 seeks the largest entropy, -1 the smallest.
    """

    def __init__(self, cov, k, sign=1.0):
        super().__init__(len(cov), k, degree=-1.0, sign=sign)
        self._cov = cov

    def _fill(self, V, active, value, gradient):
        v = V[active]
        spread = np.einsum("ij,qjk->qik", self._cov, v)
        form = np.einsum("qik,qil->qkl", v, spread)
        log_det = np.linalg.slogdet(form)[1]
        value[active] = 0.5 * (self.k * np.log(4.0 * np.pi) + log_det)
        gradient[active] = np.einsum("qik,qkl->qil", spread, np.linalg.inv(form))

    def potentials(self, V):
        """Minus the entropy of one projection: the logarithm of its potential, (1, 1)."""
        value = self(V.reshape(1, -1), np.zeros(1, np.int64))[0]
        return self._sign * value.reshape(1, 1)


# Overlap of two classes --------------------------------------------------------------------------


def bound(log_potential, log_volume):
    """Bound on the overlap int min(f, g) of two densities in a region: Theorem 3.

    min(f, g) <= sqrt(f g), whose integral is at most sqrt(volume ip_+-). The paper's region is the
    unit cube. The balanced accuracy of Bayes' rule there is 1 - int min(f, g) / 2.
    """
    return np.exp(np.minimum(0.0, 0.5 * (log_potential + log_volume)))


def kernel_widths(sample, theta, gamma):
    """Return standard deviations (C, k) of the classes' kernels along theta (r, k) of a Sample."""
    form = np.einsum("rj,crs,sj->cj", theta, sample.cov, theta, optimize=True)
    return np.sqrt(bandwidths(sample.size, theta.shape[1], gamma)[:, None] * form)


def _boxes(Z, weight, width):
    """Boxes (m, 2, k) about the rows Z (n, k) of a class, and bounds (m,) on its density outside.

    width (k,) standard deviations of its kernel
    """
    share = weight / weight.sum()
    cut = np.quantile(Z, [(c, 1.0 - c) for c in CUT], axis=0)
    sides = np.array([-1.0, 1.0])[:, None] * width
    box = (cut[:, None] + np.array(MARGIN)[:, None, None] * sides).reshape(-1, 2, Z.shape[1])
    outside = [share @ (ndtr((low - Z) / width) + ndtr((Z - high) / width)) for low, high in box]
    return box, np.minimum(np.sum(outside, axis=1), 1.0)


def overlaps(Z, code, weight, width, potential):
    """Bounds (C, C) on the overlaps int min(f_A, f_B) over the whole space, for A < B.

    Outside A's box the integral is at most what f_A holds there, outside B's what f_B does; in what
    both boxes have in common Theorem 3 holds. The best pair of boxes counts.
    """
    C = len(potential)
    boxes = [_boxes(Z[code == c], weight[code == c], width[c]) for c in range(C)]
    out = np.zeros((C, C))
    for a, b in zip(*np.triu_indices(C, 1), strict=True):
        (box_a, outside_a), (box_b, outside_b) = boxes[a], boxes[b]
        low = np.maximum(box_a[:, None, 0], box_b[None, :, 0])
        high = np.minimum(box_a[:, None, 1], box_b[None, :, 1])
        volume = np.log(np.maximum(high - low, 1e-300)).sum(axis=2)
        inside = np.where((high > low).all(axis=2), bound(potential[a, b], volume), 0.0)
        out[a, b] = min(1.0, (inside + outside_a[:, None] + outside_b).min())
    return out
