"""CUDA twins of `cpu`: the same sums from tiles that stay on the GPU.

A block of threads takes a tile of 64 rows and goes through the points, 64 at a time: each thread
has the similarities of four rows with four points in registers, made from features that the block
stages in shared memory. They are made once for the estimates and again for the gradient: no more of
the candidates x rows matrix than that is ever held. Numbers of a tile have the precision of X, sums
over tiles are in float64, in an order that shapes alone decide; no atomics.
"""

import math

import numpy as np

from lodim.engine.cuda import cuda, launch, limit_registers, upload
from lodim.engine.tiles import TILE
from lodim.models.proset.kernels.cpu import CLASSES, ROOT_TAU, SQUARED

SIDE = 16  # threads along rows, and along points
EACH = TILE // SIDE  # rows and points of a thread: every SIDE-th
THREADS = SIDE * SIDE
CHUNK = 8  # features of rows and points held in shared memory at a time
LANES = THREADS // CHUNK  # threads that add up one feature of a chunk
PITCH, WIDE_PITCH = TILE + 1, THREADS + 1  # one more, so that neighbours lie in different banks
ROOM = 2 * SIDE * PITCH  # numbers on their way from thread to thread; CHUNK * WIDE_PITCH fit too
PROCESSORS = 132  # of the GPU that grids are cut for; a constant, so that sums do not depend on it
RESIDENT = 2  # blocks of a pass that a processor has registers for
REGISTERS = 128  # of a thread
ROOT_HALF = math.sqrt(0.5)  # exp(-z^2 / 2) is exp(-(ROOT_HALF z)^2): constants stay on the host


def count_blocks(n_tiles):
    """Thread blocks that share the tiles evenly."""
    each = -(-n_tiles // (PROCESSORS * RESIDENT))
    return -(-n_tiles // each)


def width(J):
    """Number of columns that hold J points: whole tiles of them."""
    return -(-J // TILE) * TILE


def loss_gradient(X, rows, own, candidates, points, v, w, u, active, order, loss):
    """Loss of the scoring rows, and its derivatives by u, v (D,) and w (J,): (2 + D + J,).

    rows (n_tiles, 4, 64) holds y, a, b, weight; own (n_tiles, 64) int the candidate that a row is
    itself, -1 for none; candidates (p + 1, J) features and target; points is room for (p + 2,
    width(J)), all of them on the GPU, and but for own of X's dtype. v (D,) is of the features
    `active`, w (J,) of the candidates `order`, those with weights above zero first.
    """
    D, J, n_blocks = active.size, order.size, count_blocks(len(X))
    live = np.count_nonzero(w.astype(X.dtype))
    tail = [1.0, ROOT_HALF * u, u / ROOT_TAU, 1.0 / ROOT_TAU]
    theta = upload(np.concatenate([ROOT_HALF * v, w, tail]).astype(X.dtype))
    index = upload(np.concatenate([active, order]))
    partials = X.scratch("partials", (n_blocks, 2 + D + J))
    sums = X.scratch("sums", (2 + D + J,))
    grid = width(J) // TILE, D + 2
    launch(_gather_points, grid, TILE, candidates, theta, index, D, J, points)
    arguments = X.array, rows, own, index, theta, points, D, J, live, loss, partials
    launch(_loss_gradient, n_blocks, THREADS, *arguments)
    launch(_add_partials, -(-(2 + D + J) // TILE), TILE, partials, sums)
    out = sums.copy_to_host()
    # The kernel adds up C_ij (v_d (x_id - x_jd))^2 / 2.
    out[2 : 2 + D] = -2.0 * out[2 : 2 + D] / v
    return out


def kernel_sums(X, active, v, V, J, values, out):
    """Add sum_j values_qj G_ij to out (n_tiles, Q, 64) on the host, as `cpu.kernel_sums` does."""
    D, Q = active.size, out.shape[1]
    points, weights = np.zeros((D, width(J)), X.dtype), np.zeros((Q, width(J)), X.dtype)
    points[:, :J], weights[:, :J] = ROOT_HALF * V[:J, :D].T, values[:Q, :J]
    arrays = active, (ROOT_HALF * v).astype(X.dtype), points, weights, out
    *inputs, there = map(upload, arrays)
    launch(_kernel_sums, min(len(X), 16 * PROCESSORS), THREADS, X.array, *inputs, there)
    there.copy_to_host(out)


@cuda.jit(cache=True)
def _gather_points(candidates, theta, index, D, J, points):
    """Rows of points: the active features times v, then w, then the target; zero beyond J."""
    j, k = cuda.grid(1), cuda.blockIdx.y
    if j >= J:
        points[k, j] = 0.0
    elif k < D:
        points[k, j] = theta[k] * candidates[index[k], index[D + j]]
    elif k == D:
        points[k, j] = theta[D + j]
    else:
        points[k, j] = candidates[candidates.shape[0] - 1, index[D + j]]


@cuda.jit(device=True)
def _stage(X, t, active, v, points, j, first, size, row, point):
    """Stage a chunk of features, times v, of a tile's rows and of the points from j on."""
    for e in range(cuda.threadIdx.x, size * TILE, THREADS):
        k, i = e // TILE, e % TILE
        row[k, i] = v[first + k] * X[t, active[first + k], i]
        point[k, i] = points[first + k, j + i]


@cuda.jit(device=True)
def _similarities(X, t, active, v, D, points, j, row, point, G):
    """G_ij of this thread's rows and points; the last chunk of features stays staged."""
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    for r in range(EACH):
        for c in range(EACH):
            G[r, c] = 0.0
    for first in range(0, D, CHUNK):
        size = min(CHUNK, D - first)
        cuda.syncthreads()
        _stage(X, t, active, v, points, j, first, size, row, point)
        cuda.syncthreads()
        for k in range(size):
            for r in range(EACH):
                for c in range(EACH):
                    d = row[k, mine + SIDE * r] - point[k, yours + SIDE * c]
                    G[r, c] += d * d
    for r in range(EACH):
        for c in range(EACH):
            G[r, c] = math.exp(-G[r, c])


@cuda.jit(device=True)
def _leave_out(own, t, index, D, J, first, G):
    """G_ij is zero where point j of a tile of points is row i itself."""
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    for c in range(EACH):
        j = first + yours + SIDE * c
        if j < J:
            for r in range(EACH):
                if own[t, mine + SIDE * r] == index[D + j]:
                    G[r, c] = 0.0


@cuda.jit(device=True)
def _agreement(y, target, normal, loss):
    """Estimate h_ij of a row's response by a prototype with this target, and its slope by u.

    normal : 1; and of a normal density of width 1 / u, u sqrt(1/2), its height, and height / u
    """
    one, narrow, height, peak = normal
    if loss == CLASSES:
        return one if y == target else one - one, one - one
    if loss == SQUARED:
        return target, one - one
    d = narrow * (y - target)
    e = math.exp(-d * d)
    return height * e, peak * e * (one - d * d - d * d)


@cuda.jit(device=True)
def _slopes(y, a, b, weight, loss):
    """Loss of a row with the estimate a / b; its derivatives by a and b."""
    if weight == 0.0:
        return 0.0, 0.0, 0.0
    if loss == SQUARED:
        r = a / b - y
        return weight * r * r, 2.0 * weight * r / b, -2.0 * weight * r * a / (b * b)
    return weight * (math.log(b) - math.log(a)), -weight / a, weight / b


@cuda.jit(device=True)
def _estimates(
    X, t, rows, own, index, theta, points, D, J, live, normal, loss, row, point, G, A, B, room
):
    """Leave in room, by thread, the sums over points of h_ij w_j G_ij and of w_j G_ij, by row."""
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    for r in range(EACH):
        A[r], B[r] = 0.0, 0.0
    for first in range(0, live, TILE):
        _similarities(X, t, index, theta, D, points, first, row, point, G)
        _leave_out(own, t, index, D, J, first, G)
        for c in range(EACH):
            j = first + yours + SIDE * c
            target = points[D + 1, j]
            for r in range(EACH):
                h, _ = _agreement(rows[t, 0, mine + SIDE * r], target, normal, loss)
                g = points[D, j] * G[r, c]
                A[r] += h * g
                B[r] += g
    cuda.syncthreads()
    for r in range(EACH):
        room[yours * PITCH + mine + SIDE * r] = A[r]
        room[(SIDE + yours) * PITCH + mine + SIDE * r] = B[r]
    cuda.syncthreads()


@cuda.jit(device=True)
def _column(room, start, i):
    """Sum of the parts that SIDE threads have left for row or point i."""
    total = 0.0
    for part in range(SIDE):
        total += float(room[(start + part) * PITCH + i])
    return total


@cuda.jit(device=True)
def _feature_sums(X, t, active, v, D, points, j, row, point, C, zero, room, out):
    """out[d] += sum_ij C_ij (v_d (x_id - x_jd))^2 over the rows and points of the block."""
    thread = cuda.threadIdx.x
    mine, yours = thread % SIDE, thread // SIDE
    feature, lane = thread // LANES, thread % LANES
    # Backwards: the last chunk is still in shared memory.
    for first in range((D - 1) // CHUNK * CHUNK, -1, -CHUNK):
        size = min(CHUNK, D - first)
        cuda.syncthreads()
        if first + CHUNK < D:
            _stage(X, t, active, v, points, j, first, size, row, point)
            cuda.syncthreads()
        for k in range(size):
            s = zero
            for r in range(EACH):
                for c in range(EACH):
                    d = row[k, mine + SIDE * r] - point[k, yours + SIDE * c]
                    s += C[r, c] * d * d
            room[k * WIDE_PITCH + thread] = s
        cuda.syncthreads()
        if feature < size:
            s = zero
            for part in range(CHUNK):
                s += room[feature * WIDE_PITCH + part * LANES + lane]
            room[feature * WIDE_PITCH + lane] = s
        cuda.syncthreads()
        if thread < size:
            total = 0.0
            for part in range(LANES):
                total += float(room[thread * WIDE_PITCH + part])
            out[first + thread] += total


@cuda.jit(cache=True, **limit_registers(REGISTERS))
def _loss_gradient(X, rows, own, index, theta, points, D, J, live, loss, partials):
    """Partial sums of a block, tile by tile: the loss; by u; by v as `_feature_sums`; by w."""
    row = cuda.shared.array((CHUNK, TILE), X.dtype)
    point = cuda.shared.array((CHUNK, TILE), X.dtype)
    room = cuda.shared.array(ROOM, X.dtype)
    alpha = cuda.shared.array(TILE, X.dtype)
    beta = cuda.shared.array(TILE, X.dtype)
    ends = cuda.shared.array((2, THREADS), np.float64)
    G = cuda.local.array((EACH, EACH), X.dtype)
    A, B = cuda.local.array(EACH, X.dtype), cuda.local.array(EACH, X.dtype)
    thread = cuda.threadIdx.x
    mine, yours = thread % SIDE, thread // SIDE
    normal = theta[D + J], theta[D + J + 1], theta[D + J + 2], theta[D + J + 3]
    zero, out = normal[0] - normal[0], partials[cuda.blockIdx.x]
    for e in range(thread, out.size, THREADS):
        out[e] = 0.0
    value, slope_u = 0.0, 0.0
    for t in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
        _estimates(
            X, t, rows, own, index, theta, points, D, J, live, normal, loss, row, point, G, A, B,
            room,
        )  # fmt: skip
        if thread < TILE:
            a = float(rows[t, 1, thread]) + _column(room, 0, thread)
            b = float(rows[t, 2, thread]) + _column(room, SIDE, thread)
            y, weight = float(rows[t, 0, thread]), float(rows[t, 3, thread])
            row_loss, by_a, by_b = _slopes(y, a, b, weight, loss)
            value += row_loss
            alpha[thread], beta[thread] = by_a, by_b
        for first in range(0, J, TILE):
            _similarities(X, t, index, theta, D, points, first, row, point, G)
            _leave_out(own, t, index, D, J, first, G)
            cuda.syncthreads()
            part_u = zero
            for c in range(EACH):
                j = first + yours + SIDE * c
                w, target, part_w = points[D, j], points[D + 1, j], zero
                for r in range(EACH):
                    i = mine + SIDE * r
                    h, change = _agreement(rows[t, 0, i], target, normal, loss)
                    part_u += w * G[r, c] * alpha[i] * change
                    slope = G[r, c] * (alpha[i] * h + beta[i])
                    part_w += slope
                    G[r, c] = w * slope
                room[mine * PITCH + yours + SIDE * c] = part_w
            slope_u += part_u
            cuda.syncthreads()
            if thread < TILE and first + thread < J:
                out[2 + D + first + thread] += _column(room, 0, thread)
            if first < live:
                _feature_sums(
                    X, t, index, theta, D, points, first, row, point, G, zero, room, out[2 : 2 + D]
                )
    ends[0, thread], ends[1, thread] = value, slope_u
    cuda.syncthreads()
    if thread < 2:
        total = 0.0
        for part in range(THREADS):
            total += ends[thread, part]
        out[thread] = total


@cuda.jit(cache=True)
def _add_partials(partials, sums):
    """sums[k] = sum of partials[:, k], a thread each."""
    k = cuda.grid(1)
    if k < sums.size:
        total = 0.0
        for block in range(partials.shape[0]):
            total += partials[block, k]
        sums[k] = total


@cuda.jit(cache=True, **limit_registers(REGISTERS))
def _kernel_sums(X, active, v, points, values, out):
    """A block for each tile: similarities go to shared memory, then a thread sums up for a row."""
    row = cuda.shared.array((CHUNK, TILE), X.dtype)
    point = cuda.shared.array((CHUNK, TILE), X.dtype)
    held = cuda.shared.array((TILE, TILE), X.dtype)
    G = cuda.local.array((EACH, EACH), X.dtype)
    thread = cuda.threadIdx.x
    mine, yours, i = thread % SIDE, thread // SIDE, thread % TILE
    for t in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
        for first in range(0, points.shape[1], TILE):
            _similarities(X, t, active, v, active.size, points, first, row, point, G)
            cuda.syncthreads()
            for r in range(EACH):
                for c in range(EACH):
                    held[yours + SIDE * c, mine + SIDE * r] = G[r, c]
            cuda.syncthreads()
            for q in range(thread // TILE, out.shape[1], THREADS // TILE):
                total = 0.0
                for j in range(TILE):
                    total += values[q, first + j] * held[j, i]
                out[t, q, i] += total


def upload_rows(X, scoring, x, target):
    """Upload the arrays that `loss_gradient` needs in addition to tiles X, for one batch.

    rows (n_tiles, 4, 64) of the `scoring` record's y, a, b and weight; own (n_tiles, 64);
    candidates (p + 1, J), from x (J, p) and target (J,); points (p + 2, width(J)), room for the
    features in use times v, w and target.
    """
    rows = np.stack([scoring.y, scoring.a, scoring.b, scoring.weight], axis=1)
    room = np.zeros((x.shape[1] + 2, width(len(x))), X.dtype)
    return upload(rows), upload(scoring.own), upload(np.vstack([x.T, target])), upload(room)
