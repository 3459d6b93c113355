"""The divergence of many rows in k <= 3 dimensions: its potentials in the frequency domain.

For densities with characteristic functions phi_A, ip_AB = (2 pi)^-k int conj(phi_A) phi_B
exp(-w' S w / 2) dw: rows are spread on a grid of half a kernel's width by cubic B-splines, whose
own spectrum is divided out, and a pass costs O(n) and a Fourier transform for each class instead
of n^2. Value and gradient are those of the same approximation; `errors` measures it against exact
sums over a sample of the rows. `NoGridError` is raised if no grid suffices.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lodim.engine import row_keys
from lodim.engine.blocks import for_blocks
from lodim.models.melm.kernels.bspline import SUPPORT, gather, interpolate, project, scatter
from lodim.models.melm.kernels.kde import exact_sums
from lodim.models.melm.search.divergence import SpanObjective

STEP = 0.5  # of the grid, in standard deviations of the narrowest kernel
REACH = 7.0  # deviations of the widest kernel that keep rows from their periodic images
SPAN = 6.0  # deviations within classes that a grid must have room for, or most rows are folded
STRIPES = 16  # of rows
ROOM = 2**24  # nodes of the grids that the stripes fill, each its own
MOST = 2**22  # nodes of all classes and pairs of them
FAINT = 1e-9  # of what classes have with themselves: a potential that has lost its digits
SAMPLE = 1000  # rows of each class on which the error is measured


class NoGridError(Exception):
    """No grid that is small enough has the digits: classes are too flat or too far apart."""


@dataclass(frozen=True)
class Grid:
    """Nodes of a grid over projected rows, and the modes of its Fourier transform.

    low : (k,) a node; step : distance of the nodes; nodes : (3,) their numbers along the axes
    inverse : (k, k) by which V'z is turned to have unit covariance within classes
    cov : (C, k, k) covariances of the classes then
    frequency : k arrays, the frequencies of a mode
    splines : (...) factor of a mode by the splines of scattering and of gathering
    times : (...) number of modes that a kept one stands for
    volume : of the periodic box
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


def _make_grid(inverse, cov, low, high, step, pad, most):
    """The grid about rows within [low, high], of `most` nodes along an axis: others are folded."""
    from scipy.fft import next_fast_len

    k, nodes = len(low), [1, 1, 1]
    if most * step < max(SPAN, pad):
        raise NoGridError
    for j in range(k):
        count = min(most, (high[j] - low[j] + pad) / step + SUPPORT)
        nodes[j] = next_fast_len(int(count), True)
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


class Approximation(SpanObjective):
    """Minus the divergence of q projections V (r, k), approximately, as the solver takes it.

    Parameters are those of `Divergence`; k is at most 3. A pass costs what classes and pairs of
    them have nodes, and these are `most`: rows that are far from the others are folded back onto
    the grid, which costs digits, but not many where such rows are few.

    Raises
    ------
    NoGridError
        Raised by a call: no grid with that many nodes is accurate enough.
    """

    precision = 1e-7  # noise, from where the grid happens to lie: a line search sees nothing finer

    def __init__(self, sample, share, h2, k, threads=1, penalty=False, most=MOST):
        super().__init__(len(sample.Z), k, share.sum(), penalty)
        self._sample, self._share, self._h2, self._threads = sample, share, h2, threads
        C = len(h2)
        along_axis = (most / (C * (C + 3) / 2.0)) ** (1.0 / k)
        self._most = max(2 * SUPPORT, int(along_axis))

    def _fill(self, V, active, value, gradient):
        for q in active:
            potential, gradient[q] = self._evaluate(V[q])
            value[q] = (potential * self._share).sum()

    def potentials(self, V):
        """Logarithms of the information potentials of one projection (r, k), (C, C) for A <= B."""
        P, grid = self._place(V)
        return self._potentials(grid, self._spectra(P, grid))[0]

    def _evaluate(self, V):
        """Logarithms of the potentials (C, C) and gradient (r, k) of the divergence at V (r, k)."""
        s = self._sample
        P, grid = self._place(V)
        potential, pull, K = self._potentials(grid, self._spectra(P, grid))
        partials, fields = np.empty((STRIPES, self.r, self.k)), self._fields(grid, pull)
        rows = P, s.Z, s.weight, s.start, grid.low, grid.step
        self._over_stripes(gather, STRIPES, *rows, fields, partials)
        gradient = partials.sum(axis=0) @ grid.inverse
        for c in range(s.n_classes):
            gradient += s.cov[c] @ V @ K[c]
        return potential, gradient

    def _over_stripes(self, kernel, stripes, *args):
        for_blocks(kernel, stripes, stripes, *args, threads=self._threads)

    def _place(self, V):
        """Rows projected to unit covariance within classes (k, n), and the grid about them."""
        s, k = self._sample, self.k
        cov = np.einsum("di,cde,ej->cij", V, s.cov, V)
        within = np.einsum("c,cij->ij", s.size / s.size.sum(), cov)
        inverse = np.linalg.inv(np.linalg.cholesky(within))
        cov = inverse @ cov @ inverse.T
        widths = np.sqrt(2.0 * self._h2[:, None] * np.linalg.eigvalsh(cov))
        P, ends = np.empty((k, len(s.weight))), np.empty((STRIPES, 2, k))
        self._over_stripes(project, STRIPES, s.Z, V @ inverse.T, P, ends)
        low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
        step, pad = STEP * widths.min(), REACH * widths.max()
        return P, _make_grid(inverse, cov, low, high, step, pad, self._most)

    def _spectra(self, P, grid):
        """Characteristic functions (C, ...) of the classes, times their sizes, at the modes."""
        s = self._sample
        stripes = max(1, min(STRIPES, ROOM // (s.n_classes * int(np.prod(grid.nodes)))))
        grids = np.empty((stripes, s.n_classes, *grid.nodes))
        self._over_stripes(scatter, stripes, P, s.weight, s.start, grid.low, grid.step, grids)
        return self._transforms(grid)[0](grids.sum(axis=0)) / grid.splines

    def _fields(self, grid, spectra):
        """Fields (C, ...) on the nodes, of spectra (C, ...), as seen through the splines."""
        inverse = self._transforms(grid)[1]
        return inverse(spectra / grid.splines) * (np.prod(grid.nodes) / grid.volume)

    def _transforms(self, grid):
        """Return the Fourier transform of classes' grids and its inverse, as functions."""
        from scipy import fft

        options = {"axes": tuple(range(1, 1 + self.k)), "workers": self._threads}
        if self.k == 3:
            return partial(fft.rfftn, **options), partial(fft.irfftn, s=grid.nodes, **options)
        return partial(fft.fftn, **options), lambda x: fft.ifftn(x, **options).real

    def _potentials(self, grid, phi):
        """Return logarithms of the potentials (C, C), and derivatives of the divergence.

        Those by the rows of a class are the spectrum of their field (C, ...), those by the classes'
        V' cov V are (C, k, k).
        """
        C, w = len(self._h2), grid.frequency
        potential, pull = np.zeros((C, C)), np.zeros_like(phi)
        K, self_sum = np.zeros((C, self.k, self.k)), np.zeros(C)
        pairs = [(a, a) for a in range(C)] + [(a, b) for a in range(C) for b in range(a + 1, C)]
        base = np.linalg.slogdet(grid.inverse)[1]
        for a, b in pairs:
            kernel = self._kernel(grid, a, b)
            product = (phi[a].conj() * phi[b]).real * kernel * grid.times
            total = product.sum() / grid.volume
            if a == b:
                self_sum[a] = total
            if not total > FAINT * np.sqrt(self_sum[a] * self_sum[b]):
                raise NoGridError
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

    def _pair_covariance(self, grid, a, b):
        """Covariance (k, k) of the kernels of two classes together."""
        return self._h2[a] * grid.cov[a] + self._h2[b] * grid.cov[b]

    def _kernel(self, grid, a, b):
        """Factor (...) of each mode by the kernels of two classes together."""
        S, w = self._pair_covariance(grid, a, b), grid.frequency
        form = sum(S[i, j] * w[i] * w[j] for i in range(self.k) for j in range(self.k))
        return np.exp(-0.5 * form)

    def error(self, V):
        """Error of the divergence at one projection."""
        return float((np.abs(self.errors(V)) * np.abs(self._share)).sum())

    def errors(self, V):
        """Errors (C, C) of the logarithms of the potentials, for A <= B; inf: without a digit.

        Measured on the sums of a random sample of rows with all rows, exact and approximate.
        """
        s = self._sample
        P, grid = self._place(V)
        phi, C = self._spectra(P, grid), len(self._h2)
        error = np.zeros((C, C))
        for a in range(C):
            class_a = slice(s.start[a], s.start[a + 1])
            chosen = s.start[a] + row_keys.drawn(s.key[class_a], SAMPLE, 0)
            w = s.weight[chosen]
            for b in range(a, C):
                field = self._fields(grid, (self._kernel(grid, a, b) * phi[b])[None])[0]
                # The field of interpolated nodes is seen through the splines a second time.
                near = w @ interpolate(P, chosen, grid.low, grid.step, field)
                S, class_b = self._pair_covariance(grid, a, b), slice(s.start[b], s.start[b + 1])
                sums = exact_sums(P[:, chosen], P[:, class_b], s.weight[class_b], S, self._threads)
                exact = w @ sums
                error[a, b] = np.log(near / exact) if min(near, exact) > 0.0 else np.inf
        return error
