"""How much the densities of two classes can overlap, at most: Theorem 3, made whole.

The theorem bounds the integral of the smaller of two densities within a box. Kernels reach beyond
every box: what the densities hold outside is added.
"""

import numpy as np
from scipy.special import ndtr

from lodim.models.melm.search.divergence import bound
from lodim.models.melm.search.sample import bandwidths

CUT = (0.0, 0.005, 0.02, 0.05, 0.1)  # tried: shares of rows beyond each side of a box,
MARGIN = (0.0, 1.0, 2.0, 3.0, 4.0)  # and how many kernel widths farther out the sides are


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
