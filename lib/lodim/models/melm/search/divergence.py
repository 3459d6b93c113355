"""The divergence of projected classes and its gradient: Eq. 2 of Czarnecki et al. (2015)."""

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
    """What log ip_AB, A <= B, counts in the divergence, (C, C).

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


class Divergence:
    """Minus the divergence of q projections V (r, k), as the solver takes it.

    Parameters
    ----------
    sample : Sample
    share : array (C, C)
        Of the logarithms of the potentials, see `shares`.
    h2 : array (C,)
        Squared bandwidths.
    k : int
    threads : int
    penalty : bool
        Less |V'V - I|^2, the penalty of Eq. 2.
    engine : str
        Where the sums over pairs run: the rows stay there as long as the objective.

    The value is that of orthonormal V with the same span. Where there are two classes or more, it
    does not depend on the basis; the entropy of one class grows by log |det M| from V to V M.
    """

    precision, scaled = 1e-14, False

    def __init__(self, sample, share, h2, k, threads=1, penalty=False, engine="cpu"):
        self._sample, self._share, self._h2, self.k = sample, share, h2, k
        self.r = len(sample.Z)
        self._threads, self._penalty = threads, penalty
        self.l1 = np.zeros(self.r * k)
        pairs = len(sample.weight) ** 2 // 2
        blocks = max(1, int(np.diff(sample.start).max()) // BLOCK)
        self._stripes = int(min(blocks, STRIPES, max(1, pairs // PAIRS)))
        self._together = max(1, STRIPES // self._stripes)
        self._many = pairs >= ALONE
        self._Z, self._start, self._tiles = sample.Z, sample.start, None
        if engine != "cpu":
            self._move(place(sample.tiles, engine, pairs >= MANY))

    def _move(self, X):
        """Leave the rows to a GPU, if that is where their tiles X are.

        It returns forces that are summed over rows by feature. So the host's rows are then those
        of the identity, r in each class, on which such sums are the forces.
        """
        if on_host(X):
            return
        from lodim.models.melm.kernels import cuda  # only where a GPU is asked for

        C = self._sample.n_classes
        self._tiles, self._classes = X, cuda.upload_classes(self._sample)
        self._Z, self._start = np.tile(np.eye(self.r), C), self.r * np.arange(C + 1)
        self._stripes, self._together = 1, cuda.together(len(X), C, self.k)

    def __call__(self, theta, active):
        """Value (q,) and gradient (q, r k), filled in the rows `active`."""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        for first in range(0, len(active), self._together):
            part = active[first : first + self._together]
            potential = self._potentials(V, part, gradient)
            value[part] = np.einsum("qab,ab->q", potential, self._share)
        orthonormalize(V, active, self._share.sum(), self._penalty, value, gradient)
        return -value, -gradient.reshape(len(V), -1)

    def potentials(self, V):
        """Logarithms of the information potentials of one projection, (C, C) for A <= B."""
        V = np.ascontiguousarray(V)[None]
        return self._potentials(V, np.zeros(1, np.int64), np.zeros_like(V))[0]

    def error(self, V):
        """None: sums are exact."""
        return 0.0

    def _potentials(self, V, active, gradient):
        """Those of the problems `active`, (., C, C); their gradients are filled in."""
        s, q, k, r = self._sample, len(active), self.k, self.r
        C, n, units = s.n_classes, self._Z.shape[1], q * self._stripes
        threads = self._threads if self._many else 1
        P, spread, root = np.empty((q, k, n)), np.empty((q, C, r, k)), np.zeros((q, C, C, k, k))
        log_det, shift, potential = np.zeros((3, q, C, C))
        totals, forces = np.zeros((units, C, C)), np.empty((units, C, k, n))
        for_blocks(
            prepare, q, active, V, self._Z, s.cov, self._h2, P, spread, root, log_det,
            threads=threads,
        )  # fmt: skip
        rows = P if self._tiles is None else V[active]
        self._sum(rows, root, shift, totals, forces, threads)
        if np.any(_lost(totals, self._stripes)):
            # Classes so far apart that all kernels vanish: they are measured from the closest pair.
            self._approach(rows, root, shift, threads)
            self._sum(rows, root, shift, totals, forces, threads)
        for_blocks(
            finish, q, active, self._stripes, self._Z, P, self._start, s.size, self._h2,
            self._share, spread, root, log_det, shift, totals, forces, potential, gradient,
            threads=threads,
        )  # fmt: skip
        return potential

    def _sum(self, rows, root, shift, totals, forces, threads):
        """Sums over pairs, of projected rows P on the host or by the projections V on the GPU."""
        if self._tiles is not None:
            totals[:], forces[:] = self._tiles.run(pair_sums, *self._classes, rows, root, shift)
            return
        s, stripes = self._sample, self._stripes
        for_blocks(
            pair_sums, len(totals), stripes, rows, s.weight, s.start, root, shift, totals, forces,
            threads=threads,
        )  # fmt: skip

    def _approach(self, rows, root, shift, threads):
        """Half the least squared distances between classes, as `_sum` takes rows."""
        if self._tiles is not None:
            shift[:] = self._tiles.run(closest, *self._classes, rows, root)
        else:
            start = self._sample.start
            for_blocks(closest, len(rows), rows, start, root, shift, threads=threads)


def _lost(totals, stripes):
    total = totals.reshape(-1, stripes, *totals.shape[1:]).sum(axis=1)
    return total[:, *np.triu_indices(totals.shape[1])] < LEAST


def orthonormalize(V, active, degree, penalty, value, gradient):
    """Change the value of each V to that of an orthonormal basis, less the penalty, in place.

    From V to V M the value changes by -degree log |det M|.
    """
    v = V[active]
    inner = np.einsum("qdi,qdj->qij", v, v)
    if degree:
        value[active] += 0.5 * degree * np.linalg.slogdet(inner)[1]
        gradient[active] += degree * np.einsum("qdi,qij->qdj", v, np.linalg.inv(inner))
    if penalty:
        off = inner - np.eye(inner.shape[1])
        value[active] -= (off**2).sum(axis=(1, 2))
        gradient[active] -= 4.0 * np.einsum("qdi,qij->qdj", v, off)


def terms(potential, share):
    """Fitting and regularizing term: -2 log ip_+- and log ip_++ + log ip_--."""
    regularizing = np.diag(potential) @ np.diag(share)
    return float((np.triu(potential, 1) * share).sum()), float(regularizing)


def bound(log_potential, log_volume):
    """Most that two densities can overlap, int min(f, g), in a region: Theorem 3.

    min(f, g) <= sqrt(f g), whose integral is at most sqrt(volume ip_+-). The paper's region is the
    unit cube. The balanced accuracy of Bayes' rule there is 1 - int min(f, g) / 2.
    """
    return np.exp(np.minimum(0.0, 0.5 * (log_potential + log_volume)))


class NormalEntropy:
    """Minus (or plus) the entropy of q projections V (r, k), as the solver takes it: Eq. 1.

    Parameters
    ----------
    cov : array (r, r)
    k : int
    sign : float
        1 seeks the largest entropy, -1 the smallest.
    """

    precision, scaled = 1e-14, False

    def __init__(self, cov, k, sign=1.0):
        self._cov, self._sign, self.k, self.r = cov, sign, k, len(cov)
        self.l1 = np.zeros(self.r * k)

    def __call__(self, theta, active):
        """Value (q,) and gradient (q, r k), filled in the rows `active`."""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        v = V[active]
        spread = np.einsum("ij,qjk->qik", self._cov, v)
        form = np.einsum("qik,qil->qkl", v, spread)
        log_det = np.linalg.slogdet(form)[1]
        value[active] = 0.5 * (self.k * np.log(4.0 * np.pi) + log_det)
        gradient[active] = np.einsum("qik,qkl->qil", spread, np.linalg.inv(form))
        orthonormalize(V, active, -1.0, False, value, gradient)
        return -self._sign * value, -self._sign * gradient.reshape(len(V), -1)

    def potentials(self, V):
        """Minus the entropy of one projection: the logarithm of its potential, (1, 1)."""
        value = self(V.reshape(1, -1), np.zeros(1, np.int64))[0]
        return self._sign * value.reshape(1, 1)

    def error(self, V):
        """None: it is exact."""
        return 0.0


def kernel_widths(sample, theta, gamma):
    """Standard deviations (C, k) of the classes' kernels along theta (r, k) of a Sample."""
    form = np.einsum("rj,crs,sj->cj", theta, sample.cov, theta, optimize=True)
    return np.sqrt(bandwidths(sample.size, theta.shape[1], gamma)[:, None] * form)


def boxes(Z, weight, width):
    """Boxes (m, 2, k) about the rows Z (n, k) of a class, and (m,) the most its density is outside.

    width (k,) standard deviations of its kernel
    """
    share = weight / weight.sum()
    cut = np.quantile(Z, [(c, 1.0 - c) for c in CUT], axis=0)
    sides = np.array([-1.0, 1.0])[:, None] * width
    box = (cut[:, None] + np.array(MARGIN)[:, None, None] * sides).reshape(-1, 2, Z.shape[1])
    beyond = [share @ (ndtr((low - Z) / width) + ndtr((Z - high) / width)) for low, high in box]
    return box, np.minimum(np.sum(beyond, axis=1), 1.0)


def overlaps(Z, code, weight, width, potential):
    """The most that int min(f_A, f_B) can be, (C, C) for A < B.

    Outside A's box the integral is at most what f_A holds there, outside B's what f_B does; in what
    both boxes have in common Theorem 3 holds. The best pair of boxes counts.
    """
    C = len(potential)
    found = [boxes(Z[code == c], weight[code == c], width[c]) for c in range(C)]
    out = np.zeros((C, C))
    for a, b in zip(*np.triu_indices(C, 1), strict=True):
        (box, rest), (other, beyond) = found[a], found[b]
        low = np.maximum(box[:, None, 0], other[None, :, 0])
        high = np.minimum(box[:, None, 1], other[None, :, 1])
        volume = np.log(np.maximum(high - low, 1e-300)).sum(axis=2)
        inside = np.where((high > low).all(axis=2), bound(potential[a, b], volume), 0.0)
        out[a, b] = min(1.0, (inside + rest[:, None] + beyond).min())
    return out
