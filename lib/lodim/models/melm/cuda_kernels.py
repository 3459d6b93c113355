"""GPU versions of the functions in `cpu_kernels`: sums over pairs of rows, in tiles of 64 rows."""

import math
from itertools import pairwise

import numpy as np

from lodim.engine import tiles
from lodim.engine.cuda import cuda, launch, limit_registers, upload
from lodim.engine.tiles import TILE

THREADS = 256
SEGMENTS = THREADS // TILE  # threads per row
PARTNERS_PER_THREAD = TILE // SEGMENTS  # partners per thread in a tile
LANES = 32
WARPS = 4  # warps of a block that sums over rows, one feature each
CHUNK = 8  # dimensions of partners in shared memory at a time
REGISTERS = 128  # registers per thread
MAX_BYTES = 2**28  # most bytes of coordinates and forces of problems that run together
PROBLEMS = 32  # most problems that run together


def upload_classes(sample):
    """Upload a Sample's weights (blocks, 64), each block's class and each class's first block."""
    bounds = list(pairwise(sample.start))
    counts = [tiles.count(stop - start) for start, stop in bounds]
    parts = zip(bounds, counts, strict=True)
    weight = [tiles.pad(sample.weight[start:stop], count) for (start, stop), count in parts]
    owner = np.repeat(np.arange(len(counts)), counts)
    begin = np.concatenate([[0], np.cumsum(counts)])
    return upload(np.concatenate(weight)), upload(owner), upload(begin)


def projections_at_once(n_tiles, C, k):
    """Return how many projections (k axes, C classes, n_tiles * 64 rows) one GPU call may hold."""
    return int(min(PROBLEMS, max(1, MAX_BYTES // (16 * C * k * n_tiles * TILE))))


def pair_sums(X, weight, owner, begin, V, root, shift):
    """Return sums of kernels over pairs of rows, and sums of features times forces over rows.

    The force of a class on a row x sums kernel * (x - z) over the rows z of the class.
    Sums of kernels are (q, C, C), by pair of classes.
    Sums of features are (q, C, k, C r), by class of the force, axis, class of the row and feature.
    X : blocks of 64 rows on the GPU; weight : (blocks, 64); V : (q, r, k) projections
    owner : class of each block; begin : first block of each class
    root : (q, C, C, k, k) whitening maps; shift : (q, C, C), added to exponents"""
    (q, r, k), C = V.shape, root.shape[1]
    U = X.scratch("coordinates", (projections_at_once(len(X), C, k), C, k, len(X), TILE))
    maps = np.einsum("qdm,qabjm->qabdj", V, root)
    launch(_coordinates, (len(X), C, q), TILE, X.array, owner, upload(maps), U)
    forces = X.scratch("forces", U.shape)
    sums = X.scratch("kernel_sums", (len(U), C, len(X)))
    moments = X.scratch("moments", (len(U), C, k, C * r))
    launch(
        _pair_sums, (len(X), C, q), THREADS, U, weight, owner, begin, upload(shift), forces, sums
    )
    launch(_moments, (-(-r // WARPS), C * C, q), WARPS * LANES, X.array, forces, begin, moments)
    totals = np.add.reduceat(sums[:q].copy_to_host(), begin.copy_to_host()[:-1], axis=2)
    return totals.transpose(0, 2, 1), moments[:q].copy_to_host()


@cuda.jit(cache=True)
def _coordinates(X, owner, maps, U):
    """Fill U with whitened coordinates of the rows, for kernels with rows of each class.

    U : (Q or more, C, k, blocks, 64); X : (blocks, r, 64) rows; owner : class of each block
    maps : (Q, C, C, r, k) maps to these coordinates, for pairs of classes"""
    t, c, q = cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
    row, tile_class = cuda.threadIdx.x, owner[t]
    a, b = min(tile_class, c), max(tile_class, c)
    for j in range(U.shape[2]):
        u = 0.0
        for d in range(X.shape[1]):
            u += maps[q, a, b, d, j] * X[t, d, row]
        U[q, c, j, t, row] = u


@cuda.jit(device=True)
def _squares(U, q, c, tile_class, t, s, last, point, E):
    """Fill E (16,) with squared distances of this thread's row in block t to 16 rows of block s.

    U : coordinates from `_coordinates`; q : projection
    c, tile_class : classes of block s and of block t
    last : which chunk of 8 coordinates of block s is copied last to `point` (8, 64)"""
    thread, k = cuda.threadIdx.x, U.shape[2]
    row, first = thread % TILE, thread // TILE * PARTNERS_PER_THREAD
    chunks = (k + CHUNK - 1) // CHUNK
    for i in range(PARTNERS_PER_THREAD):
        E[i] = 0.0
    for part in range(chunks):
        lead = (last + 1 + part) % chunks * CHUNK
        size = min(CHUNK, k - lead)
        cuda.syncthreads()
        for e in range(thread, size * TILE, THREADS):
            point[e // TILE, e % TILE] = U[q, tile_class, lead + e // TILE, s, e % TILE]
        cuda.syncthreads()
        for j in range(size):
            x = U[q, c, lead + j, t, row]
            for i in range(PARTNERS_PER_THREAD):
                d = x - point[j, first + i]
                E[i] += d * d


@cuda.jit(device=True)
def _sum_over_segments(room, x):
    """Return the sum of x over the 4 threads of this thread's row; room : (4, 64) shared memory."""
    row, segment = cuda.threadIdx.x % TILE, cuda.threadIdx.x // TILE
    cuda.syncthreads()
    room[segment, row] = x
    cuda.syncthreads()
    total = 0.0
    for part in range(SEGMENTS):
        total += room[part, row]
    return total


@cuda.jit(cache=True, **limit_registers(REGISTERS))
def _pair_sums(U, weight, owner, begin, shift, forces, sums):
    """Compute the force of each class on each row, and sums of kernels by class and block of rows.

    The force of a class on a row x sums kernel * (x - z) over the rows z of the class.
    U : coordinates from `_coordinates`; weight : (blocks, 64); shift : (Q, C, C), for exponents
    owner : class of each block; begin : first block of each class
    forces, sums : arrays to fill, shaped like U and (Q, C, blocks)"""
    point = cuda.shared.array((CHUNK, TILE), np.float64)
    room = cuda.shared.array((SEGMENTS, TILE), np.float64)
    E, pull = cuda.local.array(PARTNERS_PER_THREAD, np.float64), cuda.local.array(CHUNK, np.float64)
    t, c, q = cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
    thread, tile_class, k = cuda.threadIdx.x, owner[t], U.shape[2]
    row, first = thread % TILE, thread // TILE * PARTNERS_PER_THREAD
    offset, w = shift[q, min(tile_class, c), max(tile_class, c)], weight[t, row]
    # Within a class, a row is both first and second row of a pair.
    sides = 2.0 if tile_class == c else 1.0
    for chunk in range((k + CHUNK - 1) // CHUNK):
        lead, total = chunk * CHUNK, 0.0
        size = min(CHUNK, k - lead)
        for j in range(size):
            pull[j] = 0.0
        for s in range(begin[c], begin[c + 1]):
            _squares(U, q, c, tile_class, t, s, chunk, point, E)
            for i in range(PARTNERS_PER_THREAD):
                E[i] = weight[s, first + i] * math.exp(min(0.0, offset - 0.5 * E[i]))
                total += E[i]
            for j in range(size):
                x, force = U[q, c, lead + j, t, row], 0.0
                for i in range(PARTNERS_PER_THREAD):
                    force += E[i] * (x - point[j, first + i])
                pull[j] += force
        for j in range(size):
            force = _sum_over_segments(room, pull[j])
            if thread < TILE:
                forces[q, c, lead + j, t, row] = sides * w * force
        if chunk == 0:
            total = w * _sum_over_segments(room, total)
            cuda.syncthreads()
            if thread < TILE:
                room[0, row] = total
            cuda.syncthreads()
            if thread == 0:
                total = 0.0
                for i in range(TILE):
                    total += room[0, i]
                sums[q, c, t] = total


@cuda.jit(cache=True)
def _moments(X, forces, begin, out):
    """Sum features times forces over the rows of each class.

    X : (blocks, r, 64) rows; begin : first block of each class
    forces : (Q, C, k, blocks, 64) force of each class on each row
    out : (Q, C, k, C r) to fill, by class of the force, axis, class of the row and feature"""
    parts = cuda.shared.array((CHUNK, WARPS, LANES), np.float64)
    totals = cuda.local.array(CHUNK, np.float64)
    lane, warp, q = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES, cuda.blockIdx.z
    (r, k), C = (X.shape[1], forces.shape[2]), begin.size - 1
    d, c, a = cuda.blockIdx.x * WARPS + warp, cuda.blockIdx.y // C, cuda.blockIdx.y % C
    for lead in range(0, k, CHUNK):
        size = min(CHUNK, k - lead)
        for j in range(size):
            totals[j] = 0.0
        if d < r:
            for t in range(begin[a], begin[a + 1]):
                x, y = X[t, d, lane], X[t, d, lane + LANES]
                for j in range(size):
                    totals[j] += x * forces[q, c, lead + j, t, lane]
                    totals[j] += y * forces[q, c, lead + j, t, lane + LANES]
        cuda.syncthreads()
        for j in range(size):
            parts[j, warp, lane] = totals[j]
        cuda.syncthreads()
        if lane < size and d < r:
            total = 0.0
            for i in range(LANES):
                total += parts[lane, warp, i]
            out[q, c, lead + lane, a * r + d] = total
