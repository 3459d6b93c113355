"""GPU versions of the loops in `cpu_kernels`; sums do not depend on the timing of threads."""

import math

import numpy as np

from lodim.engine.cuda import cuda, device, launch, limit_registers, upload
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.family.multinomial import loss_shares
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, activate

GROUP = 2  # learners that share a read of X: the two signs of b
THREADS = GROUP * TILE  # a thread for each row and learner of the group
LANES = 32
WARPS = THREADS // LANES
ADDERS = 8  # warps that add the partial sums
STAGE = 64  # features of a tile held in shared memory at a time
PITCH = TILE + 1  # one row more, so that neighbouring features are in different banks
PROCESSORS = 132  # multiprocessors assumed for grids; constant, so that sums do not vary
RESIDENT = 4  # blocks per multiprocessor, limited by registers
REGISTERS = 128  # registers per thread
CACHE = 32 * 2**20  # bytes of tiles in flight that stay in its L2 cache

_activate = device(activate)
_loss_slope = device(losses.loss_slope)
_loss_shares = device(loss_shares)


def count_blocks(shape, itemsize):
    """Return the number of GPU thread blocks for X of this shape; itemsize : bytes per number."""
    n_tiles, p, _ = shape
    tile = max(1, p) * TILE * itemsize
    most = PROCESSORS * min(RESIDENT, max(2, CACHE // (tile * PROCESSORS)))
    each = -(-n_tiles // most)
    return -(-n_tiles // each)


def loss_gradient(X, y, f, weight, theta, active, sign, form):
    """Return the losses of q learners and then their gradients, (q, 3 + p).

    f : linear predictors without the learners
    theta, sign : (q, 2 + p) rows (constant, intercept, weights), and (q,) signs
    active, form : positions of the learners to compute, and Form of the fit"""
    q, d = theta.shape
    groups = -(-active.size // GROUP)
    width = LANES if X.shape[1] <= LANES else STAGE
    blocks = count_blocks(X.shape, X.dtype.itemsize)
    # Slots that fill up the last group are computed and dropped.
    slots = np.resize(active, groups * GROUP)
    learners = upload(np.column_stack([sign[slots], theta[slots]]))
    n_partials = blocks * (THREADS // width)
    partials = X.scratch("partials", (n_partials, len(slots), 1 + d))
    sums = X.scratch("sums", (len(slots), 1 + d))
    rest = learners, *form, width, partials
    launch(_loss_gradient, (blocks, groups), THREADS, X.array, y, f, weight, *rest)
    launch(_add_partials, (len(slots), -(-(1 + d) // LANES)), ADDERS * LANES, partials, sums)
    out = np.zeros((q, 1 + d))
    out[active] = sums.copy_to_host()[: active.size]
    return out


def joint_gradient(X, y, offset, weight, theta, sign, target, beta, loss):
    """Return the loss and gradient of a model of M learners, as one array (M, 4 + p).

    Sums of loss and loss^2 are in [0, :2], gradients in [:, 2:].
    offset : (n_tiles, K, 64) linear predictors without the learners
    theta, sign : (M, 2 + p) rows (constant, intercept, weights), and (M,) signs
    target : class of each learner; beta, loss : fields of Form"""
    (M, d), K = theta.shape, offset.shape[1]
    blocks = count_blocks(X.shape, X.dtype.itemsize)
    learners, target = upload(np.column_stack([sign, theta])), upload(target)
    room = X.scratch("joint", (blocks, M + 2 * K, TILE))
    partials = X.scratch("joint_partials", (blocks, M, 2 + d))
    sums = X.scratch("joint_sums", (M, 2 + d))
    rest = learners, target, beta, loss, room, partials
    launch(_joint_gradient, blocks, TILE, X.array, y, offset, weight, *rest)
    launch(_add_partials, (M, -(-(2 + d) // LANES)), ADDERS * LANES, partials, sums)
    return sums.copy_to_host()


def forward(X, theta, sign, beta, activation, derivative, into, out):
    """Add values of M learners to out (n_tiles, width, 64), an array in main memory.

    theta, sign : (M, 2 + p) rows (constant, intercept, weights), and (M,) signs
    beta, activation : fields of Form
    derivative, into : whether to add derivatives, and (M,) column of `out` for each learner"""
    there = upload(out)
    add_learners(X, theta, sign, beta, activation, derivative, into, there)
    there.copy_to_host(out)


def add_learners(X, theta, sign, beta, activation, derivative, into, out):
    """Add values of M learners to out (n_tiles, width, 64), an array on the GPU.

    theta, sign : (M, 2 + p) rows (constant, intercept, weights), and (M,) signs
    beta, activation : fields of Form
    derivative, into : whether to add derivatives, and (M,) column of `out` for each learner"""
    learners = upload(np.column_stack([sign, theta]))
    blocks = max(1, min(16 * PROCESSORS, X.shape[0] // (THREADS // TILE)))
    rest = beta, activation, derivative, upload(into), out
    launch(_forward, blocks, THREADS, X.array, learners, *rest)


def margin(code, score, k, class_table, y, base):
    """Fill y and `base` with the responses and linear predictors for fitting a learner of class k.

    code : (n_tiles, 64) class codes
    score : (n_tiles, K, 64) linear predictors of the classes
    class_table : (2, K) response and mean threshold of each ordered class, or (2, 0)"""
    kernel, rest = (_ordered_margin, upload(class_table)) if class_table.size else (_margin, k)
    launch(kernel, min(16 * PROCESSORS, code.shape[0]), TILE, code, score, rest, y, base)


@cuda.jit(device=True)
def _project(X, t, first, size, w, stage, low, high):
    """Add weighted sums of `size` features of 64 rows to `low` and `high`.

    first : position of the first feature
    w : (2, size) weights of two learners
    stage : shared memory, filled with the features
    low, high : (2,) sums per learner, for rows i < 32 and i + 32 of this thread"""
    lane, warp = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES
    for k in range(warp, size, WARPS):
        a, b = X[t, first + k, lane], X[t, first + k, lane + LANES]
        stage[k, lane], stage[k, lane + LANES] = a, b
        for c in range(GROUP):
            low[c] += w[c, k] * a
            high[c] += w[c, k] * b


@cuda.jit(device=True)
def _restage(X, t, first, size, stage):
    lane, warp = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES
    for k in range(warp, size, WARPS):
        stage[k, lane] = X[t, first + k, lane]
        stage[k, lane + LANES] = X[t, first + k, lane + LANES]


@cuda.jit(device=True)
def _back_project(stage, r, first, size, width, start, partials, slot):
    """Add the derivatives of two learners' losses by `size` weights to `partials`.

    stage, r : (size, 64) features, and (2, 64) derivatives of the losses by w'x
    first, width : position of the first weight, and number of threads per group
    start, slot : whether to overwrite `partials`, and position of the first learner"""
    # The groups share the rows.
    k, segment = cuda.threadIdx.x % width, cuda.threadIdx.x // width
    if k >= size:
        return
    rows = TILE * width // THREADS
    total = cuda.local.array(GROUP, np.float64)
    row = cuda.blockIdx.x * (THREADS // width) + segment
    for c in range(GROUP):
        total[c] = 0.0 if start else partials[row, slot + c, 3 + first + k]
    for i in range(segment * rows, (segment + 1) * rows):
        x = stage[k, i]
        for c in range(GROUP):
            total[c] += x * r[c, i]
    for c in range(GROUP):
        partials[row, slot + c, 3 + first + k] = total[c]


@cuda.jit(cache=True, **limit_registers(REGISTERS))
def _loss_gradient(X, y, f, weight, learners, beta, activation, loss, width, partials):
    """Write the losses of learners and their gradients to `partials`, per group of GPU threads.

    f : linear predictors without the learners
    learners : rows (sign, constant, intercept, weights); beta, activation, loss : fields of Form
    width, partials : threads per group, and (groups, learners, 3 + p) losses and gradients"""
    # The groups of a thread block share the rows.
    stage = cuda.shared.array((STAGE, PITCH), X.dtype)
    w = cuda.shared.array((GROUP, STAGE), np.float64)
    z = cuda.shared.array((WARPS, GROUP, TILE), np.float64)
    r = cuda.shared.array((GROUP, TILE), np.float64)
    low, high = cuda.local.array(GROUP, np.float64), cuda.local.array(GROUP, np.float64)
    thread, p = cuda.threadIdx.x, X.shape[1]
    lane, warp = thread % LANES, thread // LANES
    row, learner = thread % TILE, thread // TILE
    slot = cuda.blockIdx.y * GROUP
    j = slot + learner
    sign, a, intercept = learners[j, 0], learners[j, 1], learners[j, 2]
    chunks = max(1, (p + STAGE - 1) // STAGE)
    value, slope_a, slope_w = 0.0, 0.0, 0.0
    for t in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
        for c in range(GROUP):
            low[c], high[c] = 0.0, 0.0
        for chunk in range(chunks):
            first = chunk * STAGE
            size = min(STAGE, p - first)
            cuda.syncthreads()
            for e in range(thread, GROUP * STAGE, THREADS):
                if e % STAGE < size:
                    w[e // STAGE, e % STAGE] = learners[slot + e // STAGE, 3 + first + e % STAGE]
            cuda.syncthreads()
            _project(X, t, first, size, w, stage, low, high)
        for c in range(GROUP):
            z[warp, c, lane], z[warp, c, lane + LANES] = low[c], high[c]
        cuda.syncthreads()
        at = intercept
        for part in range(WARPS):
            at += z[part, learner, row]
        g, slope = _activate(at, beta, activation)
        one, change = _loss_slope(loss, y[t, row], f[t, row] + a + sign * g, weight[t, row])
        r[learner, row] = change * sign * slope
        value, slope_a, slope_w = value + one, slope_a + change, slope_w + r[learner, row]
        cuda.syncthreads()
        # Backwards: the last chunk is still in shared memory, earlier chunks in the caches.
        for chunk in range(chunks - 1, -1, -1):
            first = chunk * STAGE
            size = min(STAGE, p - first)
            if chunk < chunks - 1:
                cuda.syncthreads()
                _restage(X, t, first, size, stage)
                cuda.syncthreads()
            _back_project(stage, r, first, size, width, t == cuda.blockIdx.x, partials, slot)
    cuda.syncthreads()
    z[0, learner, row], z[1, learner, row], z[2, learner, row] = value, slope_a, slope_w
    cuda.syncthreads()
    segments = THREADS // width
    if row < 3:
        total = 0.0
        for i in range(TILE):
            total += z[row, learner, i]
        for segment in range(segments):
            partials[cuda.blockIdx.x * segments + segment, slot + learner, row] = total
            total = 0.0


@cuda.jit(cache=True)
def _add_partials(partials, sums):
    parts = cuda.shared.array((ADDERS, LANES), np.float64)
    lane, warp = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES
    j, k = cuda.blockIdx.x, cuda.blockIdx.y * LANES + lane
    total = 0.0
    if k < partials.shape[2]:
        for row in range(warp, partials.shape[0], ADDERS):
            total += partials[row, j, k]
    parts[warp, lane] = total
    cuda.syncthreads()
    if warp == 0 and k < partials.shape[2]:
        for part in range(1, ADDERS):
            total += parts[part, lane]
        sums[j, k] = total


@cuda.jit(cache=True)
def _joint_gradient(X, y, offset, weight, learners, target, beta, loss, room, partials):
    """Write the loss and gradient of a model of M learners to `partials`, per GPU thread block.

    offset : (n_tiles, K, 64) linear predictors without the learners
    learners : (M, 3 + p) rows (sign, constant, intercept, weights)
    target : class of each learner; beta, loss : fields of Form
    room : (blocks, M + 2 K, 64) work array
    partials : sums of loss and loss^2 in [block, 0, :2], gradients in [block, :, 2:]"""
    ends = cuda.shared.array((2, TILE), np.float64)
    block, i, M, K = cuda.blockIdx.x, cuda.threadIdx.x, learners.shape[0], offset.shape[1]
    d = learners.shape[1] - 1
    slope, score, r = room[block, :M], room[block, M : M + K], room[block, M + K :]
    for e in range(i, M * (2 + d), TILE):
        partials[block, e // (2 + d), e % (2 + d)] = 0.0
    ends[0, i], ends[1, i] = 0.0, 0.0
    for t in range(block, X.shape[0], cuda.gridDim.x):
        for k in range(K):
            score[k, i] = offset[t, k, i]
        for j in range(M):
            z = learners[j, 2]
            for k in range(X.shape[1]):
                z += learners[j, 3 + k] * X[t, k, i]
            g, slope[j, i] = _activate(z, beta, SOFTPLUS)
            score[target[j], i] += learners[j, 1] + learners[j, 0] * g
        if K == 1:
            value, r[0, i] = _loss_slope(loss, y[t, i], score[0, i], weight[t, i])
        else:
            value = weight[t, i] * _loss_shares(y[t, i], score[:, i], r[:, i])
            for k in range(K):
                own = 1.0 if k == y[t, i] else 0.0
                r[k, i] = weight[t, i] * (r[k, i] - own)
        ends[0, i] += value
        ends[1, i] += value * value
        cuda.syncthreads()
        for e in range(i, M * d, TILE):
            j, k = e // d, e % d
            total = 0.0
            for row in range(TILE):
                change = r[target[j], row]
                if k > 0:
                    change *= learners[j, 0] * slope[j, row]
                if k > 1:
                    change *= X[t, k - 2, row]
                total += change
            partials[block, j, 2 + k] += total
        cuda.syncthreads()
    cuda.syncthreads()
    if i < 2:
        total = 0.0
        for row in range(TILE):
            total += ends[i, row]
        partials[block, 0, i] = total


@cuda.jit(cache=True)
def _forward(X, learners, beta, activation, derivative, into, out):
    start, step = cuda.grid(1), cuda.gridsize(1)
    for e in range(start, X.shape[0] * TILE, step):
        t, i = e // TILE, e % TILE
        for j in range(learners.shape[0]):
            z = learners[j, 2]
            for k in range(X.shape[1]):
                z += learners[j, 3 + k] * X[t, k, i]
            g, slope = _activate(z, beta, activation)
            change = slope if derivative else g
            shift = 0.0 if derivative else learners[j, 1]
            out[t, into[j], i] += shift + learners[j, 0] * change


@cuda.jit(cache=True)
def _margin(code, score, k, y, base):
    i = cuda.threadIdx.x
    for t in range(cuda.blockIdx.x, code.shape[0], cuda.gridDim.x):
        largest = -math.inf
        for c in range(score.shape[1]):
            if c != k:
                largest = max(largest, score[t, c, i])
        total = 0.0
        for c in range(score.shape[1]):
            if c != k:
                total += math.exp(score[t, c, i] - largest)
        base[t, i] = score[t, k, i] - largest - math.log(total)  # logit of class k
        y[t, i] = 1.0 if code[t, i] == k else 0.0


@cuda.jit(cache=True)
def _ordered_margin(code, score, class_table, y, base):
    i = cuda.threadIdx.x
    for t in range(cuda.blockIdx.x, code.shape[0], cuda.gridDim.x):
        k = int(code[t, i])
        y[t, i] = class_table[0, k]
        base[t, i] = score[t, 0, i] + class_table[1, k]
