"""Divergence of many rows in k <= 3 dimensions, approximated in the frequency domain.

Rows are spread by cubic B-splines on a grid. With characteristic functions phi_A of the densities,
ip_AB = (2 pi)^-k int conj(phi_A) phi_B exp(-w' S w / 2) dw. The cost is O(n) instead of n^2.
`errors` compares the result with exact sums over a sample of the rows."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lodim.engine import row_keys
from lodim.engine.blocks import for_blocks
from lodim.models.melm.kernels.bspline import SUPPORT, gather, interpolate, project, scatter
from lodim.models.melm.kernels.kde import exact_sums
from lodim.models.melm.search.divergence import SpanObjective

STEP = 0.5  # step of the grid, in SDs of the narrowest kernel
REACH = 7.0  # SDs of the widest kernel between rows and their periodic images
SPAN = 6.0  # smallest width of the grid, in SDs within classes
STRIPES = 16  # stripes of rows
MAX_STRIPE_NODES = 2**24  # most nodes of the stripes' grids together
MAX_NODES = 2**22  # most nodes of all classes and pairs of classes
FAINT = 1e-9  # relative potential of a pair that is too small to be accurate
SAMPLE = 1000  # rows per class on which the error is measured


class NoGridError(Exception):
    """No grid of allowed size is accurate enough: classes are too flat or too far apart."""


@dataclass(frozen=True)
class Grid:
    """Grid over projected rows, and the modes (frequencies) of its Fourier transform.

    low, step, nodes : lowest grid point, distances and numbers of grid points on the axes
    inverse : (k, k) matrix that gives V'z unit covariance within classes
    cov : (C, k, k) covariances of the classes after this transformation
    frequency : k arrays of the modes' frequencies
    splines : factor of each mode by the splines
    times : number of modes that each stored mode stands for
    volume : volume of the periodic box"""

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
    """Return the Grid around rows within [low, high], with at most `most` points per axis.

    Rows outside are folded back onto the periodic grid."""
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
        # The transform of real data stores half the modes of the last axis.
        last = np.full(nodes[2] // 2 + 1, 2.0)
        last[0] = 1.0
        if nodes[2] % 2 == 0:
            last[-1] = 1.0
        times = last.reshape(1, 1, -1)
    volume = step**k * np.prod(nodes)
    return Grid(low, step, tuple(nodes), inverse, cov, tuple(frequency), splines, times, volume)


class Approximation(SpanObjective):
    """Approximate divergence of q projections V (r, k), negated; parameters as in Divergence.

    A call raises NoGridError if no grid with `most` points is accurate enough."""

    precision = 1e-7  # noise from the position of the grid; limits the line search

    def __init__(self, sample, share, h2, k, threads=1, penalty=False, most=MAX_NODES):
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
        """Return the log integrals (C, C) of products of class densities for a projection V."""
        P, grid = self._place(V)
        return self._potentials(grid, self._spectra(P, grid))[0]

    def _evaluate(self, V):
        """Return the log integrals (C, C) of products of class densities, and the gradient (r, k).

        The gradient is that of the divergence at the projection V (r, k)."""
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
        """Return rows projected to unit covariance within classes (k, n), and their Grid."""
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
        """Return the Fourier transforms (C, ...) of the classes' weights on the grid.

        They are the class sizes times the characteristic functions of the densities."""
        s = self._sample
        stripes = max(1, min(STRIPES, MAX_STRIPE_NODES // (s.n_classes * int(np.prod(grid.nodes)))))
        grids = np.empty((stripes, s.n_classes, *grid.nodes))
        self._over_stripes(scatter, stripes, P, s.weight, s.start, grid.low, grid.step, grids)
        return self._transforms(grid)[0](grids.sum(axis=0)) / grid.splines

    def _fields(self, grid, spectra):
        """Return C functions on the grid, given their Fourier transforms, corrected for splines."""
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
        """Return log integrals of products of class densities, and derivatives of the divergence.

        phi are the Fourier transforms of the C classes. The three results are:
        potential : (C, C) the log integrals
        pull : like phi, transforms of a function per class; its slope at a row, times the row's
            weight, is d divergence / d row
        K : (C, k, k) twice d divergence / d (V' cov V), for each class covariance cov"""
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
        """Return the covariance (k, k) of the kernel between classes a and b."""
        return self._h2[a] * grid.cov[a] + self._h2[b] * grid.cov[b]

    def _kernel(self, grid, a, b):
        """Return the Fourier transform of the kernel between classes a and b, at each mode."""
        S, w = self._pair_covariance(grid, a, b), grid.frequency
        form = sum(S[i, j] * w[i] * w[j] for i in range(self.k) for j in range(self.k))
        return np.exp(-0.5 * form)

    def error(self, V):
        """Return the error of the divergence at one projection, measured on a sample of rows."""
        return float((np.abs(self.errors(V)) * np.abs(self._share)).sum())

    def errors(self, V):
        """Return the errors (C, C) of the log integrals of products of class densities, A <= B.

        Sums of a random sample of rows with all rows are compared; inf if a sum is not positive."""
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
                # Interpolation applies the splines to the field a second time.
                near = w @ interpolate(P, chosen, grid.low, grid.step, field)
                S, class_b = self._pair_covariance(grid, a, b), slice(s.start[b], s.start[b + 1])
                sums = exact_sums(P[:, chosen], P[:, class_b], s.weight[class_b], S, self._threads)
                exact = w @ sums
                error[a, b] = np.log(near / exact) if min(near, exact) > 0.0 else np.inf
        return error
