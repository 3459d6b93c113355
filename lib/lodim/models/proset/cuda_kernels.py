"""GPU versions of the loops in `cpu_kernels`."""

import math

import numpy as np

from lodim.engine.cuda import cuda, launch, limit_registers, upload
from lodim.engine.tiles import TILE
from lodim.models.proset.cpu_kernels import CLASSES, ROOT_TAU, SQUARED

# A thread block takes 64 rows and goes through the points, 64 at a time; each thread keeps the
# similarities of four rows with four points. Sums over tiles are in float64, without atomic
# operations, so results do not depend on timing.
SIDE = 16  # threads along rows, and along points
ROWS_PER_THREAD = TILE // SIDE  # rows and points per thread: every SIDE-th
THREADS = SIDE * SIDE
CHUNK = 8  # features of rows and points held in shared memory at a time
LANES = THREADS // CHUNK  # threads that add up one feature of a chunk
PITCH, WIDE_PITCH = TILE + 1, THREADS + 1  # one more, so that neighbours are in different banks
N_EXCHANGED = 2 * SIDE * PITCH  # numbers exchanged between threads; CHUNK * WIDE_PITCH fit too
PROCESSORS = 132  # multiprocessors assumed for grids; constant, so that sums do not vary
RESIDENT = 2  # blocks per multiprocessor, limited by registers
REGISTERS = 128  # registers per thread
ROOT_HALF = math.sqrt(0.5)  # exp(-z^2 / 2) is exp(-(ROOT_HALF z)^2): constants stay on the host


def count_blocks(n_tiles):
    """Return the number of GPU thread blocks that share n_tiles tiles (64 rows each) evenly."""
    each = -(-n_tiles // (PROCESSORS * RESIDENT))
    return -(-n_tiles // each)


def padded_size(J):
    """Return J, the number of points, rounded up to a multiple of 64, as GPU arrays need."""
    return -(-J // TILE) * TILE


def loss_gradient(X, rows, own, candidates, points, v, w, u, active, order, loss):
    """Return an array: the rows' loss, and its derivatives by u (a number), v (D,) and w (J,).

    X : blocks of 64 rows on the GPU; rows, own, candidates, points : results of `upload_rows`
    v : (D,) weights of the features at the positions `active`
    w : (J,) weights of the columns `order` of `candidates`, positive weights first
    u : inverse SD of normal densities; loss : CLASSES, SQUARED or DENSITY"""
    D, J, n_blocks = active.size, order.size, count_blocks(len(X))
    live = np.count_nonzero(w.astype(X.dtype))
    tail = [1.0, ROOT_HALF * u, u / ROOT_TAU, 1.0 / ROOT_TAU]
    theta = upload(np.concatenate([ROOT_HALF * v, w, tail]).astype(X.dtype))
    index = upload(np.concatenate([active, order]))
    partials = X.scratch("partials", (n_blocks, 2 + D + J))
    sums = X.scratch("sums", (2 + D + J,))
    grid = padded_size(J) // TILE, D + 2
    launch(_gather_points, grid, TILE, candidates, theta, index, D, J, points)
    arguments = X.array, rows, own, index, theta, points, D, J, live, loss, partials
    launch(_loss_gradient, n_blocks, THREADS, *arguments)
    launch(_add_partials, -(-(2 + D + J) // TILE), TILE, partials, sums)
    out = sums.copy_to_host()
    # The kernel sums C_ij (v_d (x_id - x_jd))^2 / 2.
    out[2 : 2 + D] = -2.0 * out[2 : 2 + D] / v
    return out


def kernel_sums(X, points, values, out):
    """Add up values of prototypes, weighted by their similarities with each row, into `out`.

    X : blocks of 64 rows on the GPU; points : Points, the J prototypes; values : (Q, J)
    out : (blocks, Q, 64), changed in place"""
    active, v, V, w, _ = points
    D, J, Q = active.size, w.size, out.shape[1]
    x, weights = np.zeros((D, padded_size(J)), X.dtype), np.zeros((Q, padded_size(J)), X.dtype)
    x[:, :J], weights[:, :J] = ROOT_HALF * V[:J, :D].T, values[:Q, :J]
    arrays = active, (ROOT_HALF * v).astype(X.dtype), x, weights, out
    *inputs, there = map(upload, arrays)
    launch(_kernel_sums, min(len(X), 16 * PROCESSORS), THREADS, X.array, *inputs, there)
    there.copy_to_host(out)


@cuda.jit(cache=True)
def _gather_points(candidates, theta, index, D, J, points):
    """Fill a column of `points` per candidate: D weighted features, weight, response.

    candidates : (p + 1, n) features of n candidates, and in the last row their responses
    theta : feature weights, candidates' weights; index : positions of D features, J candidates"""
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
def _stage(tile, j, first, size, stage):
    """Copy weighted features `first` to first + size - 1 of 64 rows and 64 points to `stage`.

    tile : (X, t, active, v, points, D); X[t] has 64 rows, `points` weighted features of all points
    active, v : positions and weights of the D features
    j : first of the 64 points; stage : two arrays (8, 64), for rows and for points"""
    (X, t, active, v, points, _), (row, point) = tile, stage
    for e in range(cuda.threadIdx.x, size * TILE, THREADS):
        k, i = e // TILE, e % TILE
        row[k, i] = v[first + k] * X[t, active[first + k], i]
        point[k, i] = points[first + k, j + i]


@cuda.jit(device=True)
def _similarities(tile, j, stage, G):
    """Fill G (4, 4) with this thread's part of the similarities of 64 rows to 64 points.

    tile : rows, features and points, the same tuple as in `_stage`
    j : position of the first point; stage : two arrays (8, 64), work memory"""
    D, (row, point) = tile[5], stage
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    for r in range(ROWS_PER_THREAD):
        for c in range(ROWS_PER_THREAD):
            G[r, c] = 0.0
    for first in range(0, D, CHUNK):
        size = min(CHUNK, D - first)
        cuda.syncthreads()
        _stage(tile, j, first, size, stage)
        cuda.syncthreads()
        for k in range(size):
            for r in range(ROWS_PER_THREAD):
                for c in range(ROWS_PER_THREAD):
                    d = row[k, mine + SIDE * r] - point[k, yours + SIDE * c]
                    G[r, c] += d * d
    for r in range(ROWS_PER_THREAD):
        for c in range(ROWS_PER_THREAD):
            G[r, c] = math.exp(-G[r, c])


@cuda.jit(device=True)
def _leave_out(own, t, index, D, J, first, G):
    """Set this thread's similarities G (4, 4) to zero where row and candidate are the same row.

    own : (blocks, 64) candidate that is the row, or -1; t : block of the 64 rows
    index : positions of D features, then J candidates; first : position of the first of 64"""
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    for c in range(ROWS_PER_THREAD):
        j = first + yours + SIDE * c
        if j < J:
            for r in range(ROWS_PER_THREAD):
                if own[t, mine + SIDE * r] == index[D + j]:
                    G[r, c] = 0.0


@cuda.jit(device=True)
def _agreement(y, target, normal, loss):
    """Return a prototype's prediction for a row of response y, and its derivative by inverse SD u.

    target : the prototype's response; normal : constants of a normal density with inverse SD u
    loss : kind of prediction, CLASSES for P(y), DENSITY for a density at y, SQUARED for a mean"""
    one, narrow, height, peak = normal  # 1, u / sqrt(2), u / sqrt(2 pi), 1 / sqrt(2 pi)
    if loss == CLASSES:
        return one if y == target else one - one, one - one
    if loss == SQUARED:
        return target, one - one
    d = narrow * (y - target)
    e = math.exp(-d * d)
    return height * e, peak * e * (one - d * d - d * d)


@cuda.jit(device=True)
def _slopes(y, a, b, weight, loss):
    """Return a row's loss, (a / b - y)^2 if SQUARED or -log(a / b), and its slopes by a and b."""
    if weight == 0.0:
        return 0.0, 0.0, 0.0
    if loss == SQUARED:
        r = a / b - y
        return weight * r * r, 2.0 * weight * r / b, -2.0 * weight * r * a / (b * b)
    return weight * (math.log(b) - math.log(a)), -weight / a, weight / b


@cuda.jit(device=True)
def _estimates(tile, rows, own, J, live, normal, loss, stage, G, A, B, room):
    """Write this thread's part of the sums A and B for estimates A / B of 64 rows to `room`.

    tile : rows, features and points, as in `_stage`
    rows, own : arrays from `upload_rows`; normal : constants of a normal density
    J, live : number of candidates, and of those with positive weight, which come first
    loss : CLASSES, SQUARED or DENSITY
    stage, room : shared memory; G, A, B : this thread's work arrays"""
    mine, yours = cuda.threadIdx.x % SIDE, cuda.threadIdx.x // SIDE
    _, t, index, _, points, D = tile
    for r in range(ROWS_PER_THREAD):
        A[r], B[r] = 0.0, 0.0
    for first in range(0, live, TILE):
        _similarities(tile, first, stage, G)
        _leave_out(own, t, index, D, J, first, G)
        for c in range(ROWS_PER_THREAD):
            j = first + yours + SIDE * c
            target = points[D + 1, j]
            for r in range(ROWS_PER_THREAD):
                h, _ = _agreement(rows[t, 0, mine + SIDE * r], target, normal, loss)
                g = points[D, j] * G[r, c]
                A[r] += h * g
                B[r] += g
    cuda.syncthreads()
    for r in range(ROWS_PER_THREAD):
        room[yours * PITCH + mine + SIDE * r] = A[r]
        room[(SIDE + yours) * PITCH + mine + SIDE * r] = B[r]
    cuda.syncthreads()


@cuda.jit(device=True)
def _column_sum(room, start, i):
    total = 0.0
    for part in range(SIDE):
        total += float(room[(start + part) * PITCH + i])
    return total


@cuda.jit(device=True)
def _feature_sums(tile, j, stage, C, zero, room, out):
    """Add sums over 64 rows and 64 points to out (D,), for the gradient by D feature weights.

    tile : rows, features and points, as in `_stage`; j : first point
    C : (4, 4) this thread's point weights times derivatives of rows' losses by them
    stage, room : shared memory; zero : 0 in the sums' precision"""
    # out[d] grows by the sum of C_ij (v_d (x_id - x_jd))^2 / 2 over rows i and points j.
    D, (row, point) = tile[5], stage
    thread = cuda.threadIdx.x
    mine, yours = thread % SIDE, thread // SIDE
    feature, lane = thread // LANES, thread % LANES
    # Backwards: the last chunk is still in shared memory.
    for first in range((D - 1) // CHUNK * CHUNK, -1, -CHUNK):
        size = min(CHUNK, D - first)
        cuda.syncthreads()
        if first + CHUNK < D:
            _stage(tile, j, first, size, stage)
            cuda.syncthreads()
        for k in range(size):
            s = zero
            for r in range(ROWS_PER_THREAD):
                for c in range(ROWS_PER_THREAD):
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
    """Compute the loss of a thread block's rows, and its derivatives; fill a row of `partials`.

    rows, own : arrays from `upload_rows`; index : positions of D features, then of J candidates
    theta : D feature weights, J candidates' weights, four constants of a normal density
    points : D weighted features, weight, response of each candidate
    live : number of positive weights, which come first
    partials : (parts, 2 + D + J) loss, derivative by u, `_feature_sums`, derivatives by weights"""
    row = cuda.shared.array((CHUNK, TILE), X.dtype)
    point = cuda.shared.array((CHUNK, TILE), X.dtype)
    room = cuda.shared.array(N_EXCHANGED, X.dtype)
    alpha = cuda.shared.array(TILE, X.dtype)
    beta = cuda.shared.array(TILE, X.dtype)
    ends = cuda.shared.array((2, THREADS), np.float64)
    G = cuda.local.array((ROWS_PER_THREAD, ROWS_PER_THREAD), X.dtype)
    A, B = cuda.local.array(ROWS_PER_THREAD, X.dtype), cuda.local.array(ROWS_PER_THREAD, X.dtype)
    thread, stage = cuda.threadIdx.x, (row, point)
    mine, yours = thread % SIDE, thread // SIDE
    normal = theta[D + J], theta[D + J + 1], theta[D + J + 2], theta[D + J + 3]
    zero, out = normal[0] - normal[0], partials[cuda.blockIdx.x]
    for e in range(thread, out.size, THREADS):
        out[e] = 0.0
    value, slope_u = 0.0, 0.0
    for t in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
        tile = X, t, index, theta, points, D
        _estimates(tile, rows, own, J, live, normal, loss, stage, G, A, B, room)
        if thread < TILE:
            a = float(rows[t, 1, thread]) + _column_sum(room, 0, thread)
            b = float(rows[t, 2, thread]) + _column_sum(room, SIDE, thread)
            y, weight = float(rows[t, 0, thread]), float(rows[t, 3, thread])
            row_loss, by_a, by_b = _slopes(y, a, b, weight, loss)
            value += row_loss
            alpha[thread], beta[thread] = by_a, by_b
        for first in range(0, J, TILE):
            _similarities(tile, first, stage, G)
            _leave_out(own, t, index, D, J, first, G)
            cuda.syncthreads()
            part_u = zero
            for c in range(ROWS_PER_THREAD):
                j = first + yours + SIDE * c
                w, target, part_w = points[D, j], points[D + 1, j], zero
                for r in range(ROWS_PER_THREAD):
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
                out[2 + D + first + thread] += _column_sum(room, 0, thread)
            if first < live:
                _feature_sums(tile, first, stage, G, zero, room, out[2 : 2 + D])
    ends[0, thread], ends[1, thread] = value, slope_u
    cuda.syncthreads()
    if thread < 2:
        total = 0.0
        for part in range(THREADS):
            total += ends[thread, part]
        out[thread] = total


@cuda.jit(cache=True)
def _add_partials(partials, sums):
    k = cuda.grid(1)
    if k < sums.size:
        total = 0.0
        for block in range(partials.shape[0]):
            total += partials[block, k]
        sums[k] = total


@cuda.jit(cache=True, **limit_registers(REGISTERS))
def _kernel_sums(X, active, v, points, values, out):
    """Add up values of prototypes, weighted by their similarities with each row, into `out`.

    active, v : positions and weights of D features; points : (D, J) weighted features of prototypes
    values : (Q, J); out : (blocks, Q, 64), changed in place"""
    row = cuda.shared.array((CHUNK, TILE), X.dtype)
    point = cuda.shared.array((CHUNK, TILE), X.dtype)
    held = cuda.shared.array((TILE, TILE), X.dtype)
    G = cuda.local.array((ROWS_PER_THREAD, ROWS_PER_THREAD), X.dtype)
    thread = cuda.threadIdx.x
    mine, yours, i = thread % SIDE, thread // SIDE, thread % TILE
    for t in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
        for first in range(0, points.shape[1], TILE):
            _similarities((X, t, active, v, points, active.size), first, (row, point), G)
            cuda.syncthreads()
            for r in range(ROWS_PER_THREAD):
                for c in range(ROWS_PER_THREAD):
                    held[yours + SIDE * c, mine + SIDE * r] = G[r, c]
            cuda.syncthreads()
            for q in range(thread // TILE, out.shape[1], THREADS // TILE):
                total = 0.0
                for j in range(TILE):
                    total += values[q, first + j] * held[j, i]
                out[t, q, i] += total


def upload_rows(X, scoring, x, target):
    """Copy rows and candidate prototypes to the GPU; return (rows, own, candidates, points).

    X : blocks of 64 rows on the GPU; scoring : ScoringRows
    x, target : (J, p) features and (J,) responses of the candidates
    rows : (blocks, 4, 64) response, numerator and denominator of the estimate so far, weight
    own : (blocks, 64) candidate that is the row, or -1
    candidates : (p + 1, J) features, then responses; points : zeros, filled by `loss_gradient`"""
    rows = np.stack([scoring.y, scoring.a, scoring.b, scoring.weight], axis=1)
    room = np.zeros((x.shape[1] + 2, padded_size(len(x))), X.dtype)
    return upload(rows), upload(scoring.own), upload(np.vstack([x.T, target])), upload(room)
