"""Kernels of the quadratic's matrix H, as in `block_descent`: products, eigenvalues, updates."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.costnet.penalty.prox import FAST, FIRST


@njit(**FAST)
def subtract_product(H, d, lo, hi, c, a, b):
    """Subtract H d from c[:, a:b], for a change d of the coefficients [lo, hi)."""
    coupled = H.shape[0] > 1
    for k in range(c.shape[0]):
        for j in range(lo, hi):
            step = d[k, j]
            if step == 0.0:
                continue
            for m in range(c.shape[0] if coupled else 1):
                row, out = (H[k, m, j], c[m]) if coupled else (H[0, 0, j], c[k])
                for i in range(a, b):
                    out[i] -= step * row[i]


@njit(**FAST)
def largest_eigenvalue(H, lo, hi):
    """Upper bound of the largest eigenvalue of H over [lo, hi), by power iteration."""
    rows = H.shape[0]
    if hi - lo == 1 and rows == 1:
        return H[0, 0, lo, lo]
    v, out, largest = np.empty((rows, hi)), np.empty((rows, hi)), 0.0
    for k in range(rows):
        for j in range(lo, hi):
            v[k, j] = 1.0 + 0.37 * ((j * 7 + k * 3) % 11)
    for _ in range(40):
        out[:] = 0.0
        subtract_product(H, v, lo, hi, out, lo, hi)
        norm, before = 0.0, 0.0
        for k in range(rows):
            for j in range(lo, hi):
                norm += out[k, j] ** 2
                before += v[k, j] ** 2
        if norm == 0.0:
            return 0.0
        last, largest = largest, np.sqrt(norm / before)
        root = np.sqrt(norm)
        for k in range(rows):
            for j in range(lo, hi):
                v[k, j] = out[k, j] / root
        if abs(largest - last) <= 1e-3 * largest:
            break
    return 1.05 * largest


@njit(**FAST)
def update_curvature(H, lipschitz, step, fall, least, block):
    """Update H and `lipschitz` by the fall of the slopes along a step, both (K, A) (BFGS).

    Nothing where the quadratic bends by no more than `least` along the step. Of each block the
    largest eigenvalue rises at most by that of the update.
    """
    K, A = step.shape
    bent, before, after = np.empty((K, A)), 0.0, 0.0
    bent[:] = 0.0
    subtract_product(H, step, FIRST, A, bent, FIRST, A)
    for k in range(K):
        for j in range(A):
            before -= step[k, j] * bent[k, j]
            after += step[k, j] * fall[k, j]
    if min(before, after) <= least:
        return
    u, v, root, other_root = np.empty((K, A)), bent, np.sqrt(after), np.sqrt(before)
    for k in range(K):
        for j in range(A):
            u[k, j], v[k, j] = fall[k, j] / root, bent[k, j] / other_root
    for k in range(K):
        for m in range(K):
            for a in range(A):
                row, x, y, one, other = H[k, m, a], u[k, a], v[k, a], u[m], v[m]
                for b in range(A):
                    row[b] += x * one[b] - y * other[b]
    for b in range(block.size - 1):
        uu, vv, uv = 0.0, 0.0, 0.0
        for k in range(K):
            for j in range(block[b], block[b + 1]):
                uu += u[k, j] * u[k, j]
                vv += v[k, j] * v[k, j]
                uv += u[k, j] * v[k, j]
        rise = uu - vv
        lipschitz[b] += 0.5 * (rise + np.sqrt(rise * rise + 4.0 * max(uu * vv - uv * uv, 0.0)))
