"""Sums over all rows by compiled loops (kernels), bit for bit equal for any number of threads."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial, reduce
from importlib.util import find_spec
from itertools import chain, pairwise
from threading import Lock

import numpy as np

from lodim.engine.tiles import TILE, TILES_PER_BLOCK, of_rows
from lodim.errors import DeviceError, MissingExtraError

ENGINES = ("auto", "cpu", "cuda")
THREADED = 2_000_000  # number of values above which threads over columns are faster
HANDED_OVER = 64  # approximate number of batches of items per thread
SPAN = 16  # blocks per span, whose partial sums are added first
SPAN_ROWS = SPAN * TILES_PER_BLOCK * TILE  # 65,536
LARGE = 2**28  # bytes of X above which a GPU is faster despite the time of kernel launches


def place(X, engine, large=None):
    """Return X on the device where compiled loops will read it, the CPU or a GPU.

    engine : "cpu", "cuda" or "auto" (a GPU only for large data)
    large : whether the data are large, None to judge by X"""
    if not on_host(X):
        if engine == "cuda":
            raise DeviceError(
                "engine='cuda' needs the rows in this process, but they are on the workers of a "
                "Dask cluster: use engine='auto' or 'cpu'"
            )
        return X
    large = X.nbytes >= LARGE if large is None else large
    if engine == "cpu" or (engine == "auto" and not (large and _has_target())):
        return X
    try:
        cuda = _cuda_for(X)
    except (MissingExtraError, DeviceError):
        if engine == "auto":
            return X
        raise
    return cuda.DeviceTiles.from_tiles(X)


def _cuda_for(X):
    """Return the module `cuda`; raise an error if there is no GPU with free memory for X."""
    missing = "engine='cuda' needs an NVIDIA GPU and numba-cuda: pip install 'lodim[cuda]'"
    try:
        from lodim.engine import cuda  # imports numba's CUDA target, so only if a GPU is requested
    except ImportError as error:
        raise MissingExtraError(missing) from error
    if not cuda.usable():
        if not _has_target():
            raise MissingExtraError(missing)
        raise DeviceError(
            "engine='cuda' needs an NVIDIA GPU and its driver, which are not available here: use "
            "engine='auto' or 'cpu'"
        )
    if not cuda.fits(X):
        gigabytes = X.nbytes / 1e9
        raise DeviceError(
            f"the GPU has too little free memory for the features ({gigabytes:.1f} GB): use "
            "engine='cpu', or dtype='float32', which halves their size"
        )
    return cuda


def _has_target():
    return any(find_spec(name) for name in ("numba_cuda_mlir", "numba_cuda"))


def on_host(tiles):
    """Return whether the features `tiles` are in this process's memory, not on a GPU or workers."""
    return isinstance(tiles, np.ndarray)


def count_blocks(tiles):
    """Return the number of blocks of 4,096 rows in the features `tiles`, (n_tiles, p, 64)."""
    return -(-tiles.shape[0] // TILES_PER_BLOCK)


def available_threads():
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(count, _most_threads.get() or count)


_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


@contextmanager
def at_most(threads):
    """Limit the number of threads within a `with` block, for calls from the current thread."""
    token = _most_threads.set(threads)
    try:
        yield
    finally:
        _most_threads.reset(token)


@lru_cache(maxsize=1)
def _pool(pid):
    return ThreadPoolExecutor(max(1, available_threads() - 1), thread_name_prefix="lodim")


def for_blocks(kernel, n_blocks, *args, threads=1, runs=None):
    """Call a compiled loop kernel(lo, hi, *args) in threads, for ranges of blocks of rows.

    kernel : processes blocks lo to hi - 1 of n_blocks (4,096 rows each); must release the GIL
    runs : ranges (lo, hi) of the blocks to process, None for all"""
    threads = min(threads, n_blocks, _most_threads.get() or threads)
    if runs is not None:
        kernel = partial(_over_runs, kernel, runs)
    if threads <= 1:
        kernel(0, n_blocks, *args)
        return
    bounds = [n_blocks * i // threads for i in range(threads + 1)]
    # A pool belongs to one process; its threads do not survive a fork.
    pool = _pool(os.getpid())
    waiting = [pool.submit(kernel, lo, hi, *args) for lo, hi in pairwise(bounds[1:])]
    try:
        kernel(bounds[0], bounds[1], *args)
    finally:  # also after an interrupt, since the threads still read the arrays
        wait(waiting)
    for job in waiting:
        job.result()


def _over_runs(kernel, runs, lo, hi, *args):
    for first, last in runs:
        if max(lo, first) < min(hi, last):
            kernel(max(lo, first), min(hi, last), *args)


def runs_of(used):
    """Return the ranges (first, end) of consecutive True in `used`, or None if all are True."""
    if used.all():
        return None
    ends = np.flatnonzero(np.diff(np.concatenate([[False], used, [False]])))
    return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))


def each(work, items, n_values, threads=None):
    """Return [work(item) for item in items], computed in threads if there is much to do.

    n_values : number of values that all calls process together
    threads : at most this many, and at most 8; None means all available"""
    items, threads = list(items), min(8, threads or available_threads())
    if n_values < THREADED or threads == 1:
        return [work(item) for item in items]
    size = -(-len(items) // (HANDED_OVER * threads))
    some = [items[i : i + size] for i in range(0, len(items), size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(lambda few: [work(item) for item in few], some)))


def over_rows(kernel, tiles, *args, threads=1, runs=None):
    """Run a compiled loop that adds values per row to the last of `args`.

    kernel : kernel(lo, hi, tiles, *args) processes blocks lo to hi - 1 of 4,096 rows
    tiles : array in tiles of 64 rows
    runs : ranges (lo, hi) of the blocks to process, None for all"""
    if on_host(tiles):
        for_blocks(kernel, count_blocks(tiles), tiles, *args, threads=threads, runs=runs)
    else:
        tiles.over_rows(kernel, *args)


def sum_blocks(kernel, tiles, shape, *args, threads=1, runs=None):
    """Return a sum over all rows, an array of `shape`, that a compiled loop computes.

    kernel : kernel(lo, hi, partials, tiles, *args) sets partials[lo:hi], a sum per 4,096 rows
    tiles : array (n_tiles, ..., 64), 64 rows per tile
    runs : ranges (lo, hi) of partials to compute, None for all"""
    if not on_host(tiles):
        return tiles.sum_blocks(kernel, shape, *args)
    n_blocks = count_blocks(tiles)
    partials = np.empty((n_blocks, *shape)) if runs is None else np.zeros((n_blocks, *shape))
    for_blocks(kernel, n_blocks, partials, tiles, *args, threads=threads, runs=runs)
    return sum_partials(partials)


def sum_partials(partials):
    """Return the sum of partial sums of row blocks, (n_blocks, ...), added in a fixed order."""
    spans = (partials[lo : lo + SPAN] for lo in range(0, max(1, len(partials)), SPAN))
    return reduce(np.add, map(np.add.reduce, spans))


def row_spans(n):
    """Return slices of 65,536 rows that cover n rows; one empty slice if n is 0."""
    return [slice(lo, min(n, lo + SPAN_ROWS)) for lo in range(0, max(n, 1), SPAN_ROWS)]


def sum_rows(part, n, add=np.add):
    """Return the sum of part(rows) over slices of 65,536 of n rows; add(a, b) adds two parts."""
    return reduce(add, map(part, row_spans(n)))


def dot(u, v):
    """Return the scalar product u'v without BLAS, whose waiting threads slow the kernels."""
    return float(sum_rows(lambda i: np.einsum("i,i->", u[i], v[i]), len(u)))


@lru_cache(maxsize=1)
def _blas():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_limit: list = []
_users, _lock = 0, Lock()


@contextmanager
def single_blas():
    """Limit BLAS to one thread within a `with` block: with tiny arrays, more threads only wait."""
    global _users
    with _lock:
        if not _users:
            _limit.append(_blas().limit(limits=1))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limit.pop().restore_original_limits()


def over_spans(work, X, n, *rows, threads=1):
    """Yield work(X, *rows) for spans of consecutive rows, in order.

    rows : arrays (n, ...) or None, cut into the same spans as X
    threads : number of threads in this process, None for all"""

    def of_span(part):
        own = (None if array is None else array[part] for array in rows)
        return work(X[of_rows(part)], *own)

    if not on_host(X):
        yield from X.map_spans(work, *rows)
    elif threads == 1:
        yield from map(of_span, row_spans(n))
    else:
        yield from each(of_span, row_spans(n), X.size, threads)


def sum_spans(work, X, n, *rows):
    """Return the sum of work(X, *rows) over spans of 65,536 rows of X and of the arrays `rows`."""
    return reduce(np.add, over_spans(work, X, n, *rows))


def rows_of_spans(work, X, n, *rows):
    """Return values of n rows, (n, ...), from work(X, *rows) per span of 65,536 rows.

    rows : arrays (n, ...) or None, cut into the same spans as X"""
    found = zip(row_spans(n), over_spans(work, X, n, *rows), strict=True)
    return np.concatenate([own[: part.stop - part.start] for part, own in found])


def each_tile(work, tiles, *args):
    """Return work(tiles, *args), as WorkerTiles if Dask workers hold the tiles and do the work."""
    return work(tiles, *args) if on_host(tiles) else tiles.map(work, *args)


def sum_tiles(work, X, *arrays):
    """Return the sum of work(X, *arrays) over parts of 65,536 rows; all arrays are in tiles."""
    if not on_host(X):
        return reduce(np.add, X.map_tiles(work, *arrays))
    parts = map(of_rows, row_spans(len(X) * TILE))
    return reduce(np.add, (work(X[own], *(array[own] for array in arrays)) for own in parts))
