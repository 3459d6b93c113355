"""The divergence of many rows in k <= 3 dimensions: its potentials in the frequency domain.

Of densities with characteristic functions phi_A, ip_AB = (2 pi)^-k int conj(phi_A) phi_B
exp(-w' S w / 2) dw: rows are spread on a grid of half a kernel's width by cubic B-splines, whose
own spectrum is divided out, and a pass costs O(n) and a Fourier transform for each class instead
of n^2. Value and gradient are those of the same approximation; `errors` measures it against exact
sums over a sample of the rows. Where no grid serves, `Rough` says so.
"""

from dataclasses import dataclass

import numpy as np

from lodim.engine import row_keys as keys
from lodim.engine.blocks import for_blocks
from lodim.models.melm.kernels.bspline import SUPPORT, gather, look_up, project, scatter
from lodim.models.melm.kernels.kde import exact_sums
from lodim.models.melm.search.divergence import orthonormalize

STEP = 0.5  # of the grid, in standard deviations of the narrowest kernel
REACH = 7.0  # deviations of the widest kernel that keep rows from their periodic images
SPAN = 6.0  # deviations within classes that a grid must have room for, or most rows are folded
STRIPES = 16  # of rows
ROOM = 2**24  # nodes of the grids that the stripes fill, each its own
MOST = 2**22  # nodes of all classes and pairs of them
FAINT = 1e-9  # of what classes have with themselves: a potential that has lost its digits
SAMPLE = 1000  # rows of each class on which the error is measured


class Rough(Exception):
    """No grid that is small enough has the digits: classes are too flat or too far apart."""


@dataclass(frozen=True)
class Grid:
    """Nodes about rows projected to unit covariance within classes.

    low (k,) is a node, step their distance, nodes (3,) how many; inverse (k, k) is what V'z is
    turned by to have unit covariance, cov (C, k, k) those of the classes then; frequency holds
    the k frequencies of a mode, splines (...) what both splines do to it, and times (...) how often
    it stands for another; volume is that of the periodic box.
    """

    low: np.ndarray
    step: float
    nodes: tuple[int, ...]
    inverse: np.ndarray
    cov: np.ndarray
    frequency: tuple[np.ndarray, ...]
    splines: np.ndarray
    times: np.ndarray
    volume: float


def _grid(inverse, cov, low, high, step, pad, most):
    """The grid about rows within [low, high], of `most` nodes along an axis: others are folded."""
    from scipy.fft import next_fast_len

    k, nodes = len(low), [1, 1, 1]
    if most * step < max(SPAN, pad):
        raise Rough
    for j in range(k):
        wanted = min(most, (high[j] - low[j] + pad) / step + SUPPORT)
        nodes[j] = next_fast_len(int(wanted), True)
    frequency, splines = [], np.ones((1, 1, 1))
    for j in range(k):
        m = np.fft.rfftfreq(nodes[j]) if j == 2 else np.fft.fftfreq(nodes[j])
        m = m.reshape([-1 if i == j else 1 for i in range(3)])
        frequency.append(2.0 * np.pi * m / step)
        splines = splines * np.sinc(m) ** SUPPORT
    times = np.ones((1, 1, 1))
    if k == 3:
        # Of real rows the transform keeps half the modes of the last axis.
        last = np.full(nodes[2] // 2 + 1, 2.0)
        last[0] = 1.0
        if nodes[2] % 2 == 0:
            last[-1] = 1.0
        times = last.reshape(1, 1, -1)
    volume = step**k * np.prod(nodes)
    return Grid(low, step, tuple(nodes), inverse, cov, tuple(frequency), splines, times, volume)


def _each(most, C, k):
    """Nodes along an axis where the grids of C classes and of their pairs have `most`."""
    return (most / (C * (C + 3) / 2.0)) ** (1.0 / k)


class Approximation:
    """Minus the divergence of q projections V (r, k), approximately, as the solver takes it.

    Parameters are those of `objective.Divergence`; k is at most 3. A pass costs what classes and
    pairs of them have nodes, and these are `most`: rows that are far from the others are folded
    back onto the grid, which costs digits, but not many where such rows are few.

    Raises
    ------
    Rough
        From a call: no grid of so many nodes serves.
    """

    # Its own noise, from where the grid happens to lie: a line search sees nothing finer.
    precision, scaled = 1e-7, False

    def __init__(self, sample, share, h2, k, threads=1, penalty=False, most=MOST):
        self._sample, self._share, self._h2, self.k = sample, share, h2, k
        self.r, self._most = len(sample.Z), max(2 * SUPPORT, int(_each(most, len(h2), k)))
        self._threads, self._penalty = threads, penalty
        self.l1 = np.zeros(self.r * k)

    def __call__(self, theta, active):
        """Value (q,) and gradient (q, r k), filled in the rows `active`."""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        for q in active:
            potential, gradient[q] = self._evaluate(V[q])
            value[q] = (potential * self._share).sum()
        orthonormalize(V, active, self._share.sum(), self._penalty, value, gradient)
        return -value, -gradient.reshape(len(V), -1)

    def potentials(self, V):
        """Logarithms of the information potentials of one projection, (C, C) for A <= B."""
        P, grid = self._placed(V)
        return self._potentials(grid, self._spectra(P, grid))[0]

    def _evaluate(self, V):
        s = self._sample
        P, grid = self._placed(V)
        phi = self._spectra(P, grid)
        potential, pull, K = self._potentials(grid, phi)
        partials = np.empty((STRIPES, self.r, self.k))
        for_blocks(
            gather, STRIPES, STRIPES, P, s.Z, s.weight, s.start, grid.low, grid.step,
            self._back(grid, pull), partials, threads=self._threads,
        )  # fmt: skip
        gradient = partials.sum(axis=0) @ grid.inverse
        for c in range(s.n_classes):
            gradient += s.cov[c] @ V @ K[c]
        return potential, gradient

    def _placed(self, V):
        """Rows projected to unit covariance within classes (k, n), and the grid about them."""
        s, k = self._sample, self.k
        cov = np.einsum("di,cde,ej->cij", V, s.cov, V)
        inverse = np.linalg.inv(
            np.linalg.cholesky(np.einsum("c,cij->ij", s.size / s.size.sum(), cov))
        )
        cov = inverse @ cov @ inverse.T
        widths = np.sqrt(2.0 * self._h2[:, None] * np.linalg.eigvalsh(cov))
        P, ends = np.empty((k, len(s.weight))), np.empty((STRIPES, 2, k))
        for_blocks(
            project, STRIPES, STRIPES, s.Z, V @ inverse.T, P, ends,
            threads=self._threads,
        )  # fmt: skip
        low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
        step, pad = STEP * widths.min(), REACH * widths.max()
        return P, _grid(inverse, cov, low, high, step, pad, self._most)

    def _spectra(self, P, grid):
        """Characteristic functions of the classes, times their sizes, at the frequencies."""
        s = self._sample
        stripes = max(1, min(STRIPES, ROOM // (s.n_classes * int(np.prod(grid.nodes)))))
        grids = np.empty((stripes, s.n_classes, *grid.nodes))
        for_blocks(
            scatter, stripes, stripes, P, s.weight, s.start, grid.low, grid.step,
            grids, threads=self._threads,
        )  # fmt: skip
        total = grids.sum(axis=0)
        return self._transform(grid)[0](total) / grid.splines

    def _back(self, grid, pull):
        """The fields on the nodes whose spectra are `pull` (C, ...), seen through the splines."""
        return self._transform(grid)[1](pull / grid.splines) * (np.prod(grid.nodes) / grid.volume)

    def _transform(self, grid):
        """The Fourier transform of classes' grids and its inverse."""
        from scipy import fft

        axes, workers = tuple(range(1, 1 + self.k)), self._threads
        if self.k == 3:
            return (
                lambda x: fft.rfftn(x, axes=axes, workers=workers),
                lambda x: fft.irfftn(x, s=grid.nodes, axes=axes, workers=workers),
            )
        return (
            lambda x: fft.fftn(x, axes=axes, workers=workers),
            lambda x: fft.ifftn(x, axes=axes, workers=workers).real,
        )

    def _potentials(self, grid, phi):
        """Logarithms of the potentials, and derivatives of the divergence.

        Those by the rows of a class are the spectrum of their field (C, ...), those by the classes'
        V' cov V are (C, k, k).
        """
        C, w = len(self._h2), grid.frequency
        potential, pull = np.zeros((C, C)), np.zeros_like(phi)
        K, own = np.zeros((C, self.k, self.k)), np.zeros(C)
        pairs = [(a, a) for a in range(C)] + [(a, b) for a in range(C) for b in range(a + 1, C)]
        base = np.linalg.slogdet(grid.inverse)[1]
        for a, b in pairs:
            kernel = self._kernel(grid, a, b)
            product = (phi[a].conj() * phi[b]).real * kernel * grid.times
            total = product.sum() / grid.volume
            if a == b:
                own[a] = total
            if not total > FAINT * np.sqrt(own[a] * own[b]):
                raise Rough
            sizes = self._sample.size[a] * self._sample.size[b]
            potential[a, b] = np.log(total) - np.log(sizes) + base
            share = self._share[a, b] / total
            pull[a] += share * kernel * phi[b]
            pull[b] += share * kernel * phi[a]
            moment = np.array([[(product * u * v).sum() for u in w] for v in w]) / grid.volume
            turned = -share * grid.inverse.T @ moment @ grid.inverse
            K[a] += self._h2[a] * turned
            K[b] += self._h2[b] * turned
        return potential, pull, K

    def _kernel(self, grid, a, b):
        """What the sum of both kernels does to each mode."""
        S, w = self._h2[a] * grid.cov[a] + self._h2[b] * grid.cov[b], grid.frequency
        form = sum(S[i, j] * w[i] * w[j] for i in range(self.k) for j in range(self.k))
        return np.exp(-0.5 * form)

    def error(self, V):
        """How far the divergence is off at one projection."""
        return float((np.abs(self.errors(V)) * np.abs(self._share)).sum())

    def errors(self, V, rows=SAMPLE, seed=0):
        """How far the logarithms of the potentials are off, (C, C) for A <= B; inf: wholly.

        Measured on the sums of a random sample of rows with all rows, exact and approximate.
        """
        s = self._sample
        P, grid = self._placed(V)
        phi, C = self._spectra(P, grid), len(self._h2)
        off = np.zeros((C, C))
        for a in range(C):
            own = slice(s.start[a], s.start[a + 1])
            chosen = s.start[a] + keys.drawn(s.key[own], rows, seed)
            for b in range(a, C):
                field = self._back(grid, (self._kernel(grid, a, b) * phi[b])[None])[0]
                # The field of interpolated nodes is seen through the splines a second time.
                near = look_up(P, chosen, grid.low, grid.step, field)
                S = self._h2[a] * grid.cov[a] + self._h2[b] * grid.cov[b]
                other = slice(s.start[b], s.start[b + 1])
                exact = exact_sums(P[:, chosen], P[:, other], s.weight[other], S, self._threads)
                w = s.weight[chosen]
                near, exact = w @ near, w @ exact
                off[a, b] = np.log(near / exact) if min(near, exact) > 0.0 else np.inf
        return off
