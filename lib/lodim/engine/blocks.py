"""Sums of kernels over fixed row blocks, shared among threads.

Kernels release the GIL, so plain threads share the blocks; unlike Numba's own parallel loops this
composes with folds that run side by side, compiles several times faster, and needs no threading
layer. Each block writes its own partial, and partials are added over one fixed tree: those of a
span of 16 blocks in order, then the spans in order. The result has the same bits on any number of
threads, and wherever the spans are. Tiles that `place` has moved to a GPU stay there, and the CUDA
twins of the kernels work on them; tiles on the workers of a cluster stay there, and the kernels go
to them.

Passes over spans of 65,536 rows find a span's own result from its own rows, in a fixed order, and
put results together in the order of the spans: where rows are changes nothing.
"""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial, reduce
from importlib.util import find_spec
from itertools import chain, pairwise
from threading import Lock

import numpy as np

from lodim.engine.column_tiles import ColumnTiles
from lodim.engine.tiles import TILE, TILES_PER_BLOCK, of_rows
from lodim.errors import DeviceError, MissingExtraError

ENGINES = ("auto", "cpu", "cuda")
THREADED = 2_000_000  # numbers in columns above which threads over columns pay
HANDED_OVER = 64  # stretches of items that a thread takes, about
SPAN = 16  # blocks whose partials are added by themselves, before those of other spans
SPAN_ROWS = SPAN * TILES_PER_BLOCK * TILE  # 65,536: a sum over no more rows has one part
LARGE = 2**28  # bytes of X from which a fit is worth moving to a GPU: below, launches cost more


def place(X, engine, large=None):
    """Tiles X where their passes will run: X itself, also on workers, or its DeviceTiles."""
    if not on_host(X):
        if engine == "cuda":
            raise DeviceError(
                "engine='cuda' is for rows in this process, and these are on the workers of a Dask "
                "cluster: use engine='auto' or 'cpu'"
            )
        return X
    cuda = device_for(X, engine, large)
    return X if cuda is None else cuda.DeviceTiles.from_tiles(np.asarray(X))


def device_for(X, engine, large=None):
    """The module that puts tiles on a GPU, by their shape and type; None where they stay here.

    "auto" takes a GPU for a `large` problem (by default one with X of at least LARGE bytes) where
    numba's CUDA target is installed, a GPU is usable and X fits its memory; it looks in this order,
    so that small data import nothing.
    """
    large = X.nbytes >= LARGE if large is None else large
    if engine == "cpu" or (engine == "auto" and not (large and _has_target())):
        return None
    problem, cuda = _device(X)
    if problem is not None and engine != "auto":
        raise problem
    return cuda


def _device(X):
    """Why X cannot be on a GPU, or None; and the module that puts it there."""
    try:
        from lodim.engine import cuda  # imports numba's CUDA target: only where a GPU is asked for
    except ImportError as error:
        return _missing(error), None
    if not cuda.usable():
        if not _has_target():
            return _missing(None), None
        return DeviceError(
            "engine='cuda' needs an NVIDIA GPU and its driver, and none is usable here: "
            "use engine='auto' or 'cpu'"
        ), None
    if not cuda.fits(X):
        gigabytes = X.nbytes / 1e9
        return DeviceError(
            f"the GPU's free memory does not hold the features ({gigabytes:.1f} GB): use "
            "engine='cpu', or dtype='float32', which halves them"
        ), None
    return None, cuda


def _has_target():
    """Whether one of the packages that compile kernels for a GPU is installed."""
    return any(find_spec(name) for name in ("numba_cuda_mlir", "numba_cuda"))


def _missing(error):
    missing = MissingExtraError(
        "engine='cuda' needs an NVIDIA GPU and numba-cuda: pip install 'lodim[cuda]'"
    )
    missing.__cause__ = error
    return missing


def on_host(tiles):
    """Whether tiles are in this process's memory, not on a GPU or on workers."""
    return isinstance(tiles, np.ndarray | ColumnTiles)


def _as_argument(tiles):
    """Tiles on the host as kernels take them."""
    return tiles.view if isinstance(tiles, ColumnTiles) else tiles


def count_blocks(tiles):
    """Number of row blocks in tiles of shape (n_tiles, p, 64)."""
    return -(-tiles.shape[0] // TILES_PER_BLOCK)


def available_threads():
    """Threads that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(count, _most_threads.get() or count)


_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


@contextmanager
def at_most(threads):
    """No more threads are available within; of this thread alone."""
    token = _most_threads.set(threads)
    try:
        yield
    finally:
        _most_threads.reset(token)


@lru_cache(maxsize=1)
def _pool(pid):
    return ThreadPoolExecutor(max(1, available_threads() - 1), thread_name_prefix="lodim")


def for_blocks(kernel, n_blocks, *args, threads=1, runs=None):
    """Run kernel(lo, hi, *args) over the blocks [0, n_blocks), on up to `threads` threads.

    runs : pairs (lo, hi) of blocks that are worked on, in order; all where None
    """
    threads = min(threads, n_blocks, _most_threads.get() or threads)
    if runs is not None:
        kernel = partial(_over_runs, kernel, runs)
    if threads <= 1:
        kernel(0, n_blocks, *args)
        return
    bounds = [n_blocks * i // threads for i in range(threads + 1)]
    # A pool belongs to one process: after a fork its threads are gone.
    pool = _pool(os.getpid())
    waiting = [pool.submit(kernel, lo, hi, *args) for lo, hi in pairwise(bounds[1:])]
    try:
        kernel(bounds[0], bounds[1], *args)
    finally:  # also where it is interrupted: what they read must outlive them
        wait(waiting)
    for job in waiting:
        job.result()


def _over_runs(kernel, runs, lo, hi, *args):
    """Run a kernel over what of the blocks [lo, hi) is in runs."""
    for first, last in runs:
        if max(lo, first) < min(hi, last):
            kernel(max(lo, first), min(hi, last), *args)


def runs_of(some):
    """Pairs (lo, hi) of the runs of True in `some` (n_blocks,); None where all are."""
    if some.all():
        return None
    ends = np.flatnonzero(np.diff(np.concatenate([[False], some, [False]])))
    return list(zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True))


def each(work, items, numbers, threads=None):
    """A list of work(item); in threads where the items hold so many numbers that it pays.

    What is to gain is what the work does without the GIL. The first error, in the items' order, is
    raised. Of very many items a thread takes several at a time: handing one over takes as long as
    the product of two short columns.
    """
    items, threads = list(items), min(8, threads or available_threads())
    if numbers < THREADED or threads == 1:
        return [work(item) for item in items]
    size = -(-len(items) // (HANDED_OVER * threads))
    some = [items[i : i + size] for i in range(0, len(items), size)]
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(lambda few: [work(item) for item in few], some)))


def over_rows(kernel, tiles, *args, threads=1, runs=None):
    """Run kernel(lo, hi, tiles, *args), which fills its last argument, over all blocks.

    runs : of blocks on the host that are worked on, as `for_blocks` has them
    """
    if on_host(tiles):
        X = _as_argument(tiles)
        for_blocks(kernel, count_blocks(tiles), X, *args, threads=threads, runs=runs)
    else:
        tiles.over_rows(kernel, *args)


def sum_blocks(kernel, tiles, shape, *args, threads=1, runs=None):
    """Sum over blocks of what kernel(lo, hi, partials, tiles, *args) leaves in partials[block].

    runs : of blocks on the host that are worked on, as `for_blocks` has them; others add nothing
    """
    if not on_host(tiles):
        return tiles.sum_blocks(kernel, shape, *args)
    n_blocks = count_blocks(tiles)
    partials = np.empty((n_blocks, *shape)) if runs is None else np.zeros((n_blocks, *shape))
    X = _as_argument(tiles)
    for_blocks(kernel, n_blocks, partials, X, *args, threads=threads, runs=runs)
    return sum_partials(partials)


def sum_partials(partials):
    """Sum of the partials of blocks, (n_blocks, ...): within spans of SPAN blocks, then of spans.

    So whoever has the blocks of whole spans can send the sum of each.
    """
    if len(partials) == 1:
        return partials[0]
    spans = (partials[lo : lo + SPAN] for lo in range(0, len(partials), SPAN))
    return reduce(np.add, (part.sum(axis=0) for part in spans))


def row_spans(n):
    """The spans of n rows, slices of SPAN_ROWS of them; one of no rows where there are none."""
    return [slice(lo, min(n, lo + SPAN_ROWS)) for lo in range(0, max(n, 1), SPAN_ROWS)]


def sum_rows(part, n, add=np.add):
    """Sum over n rows of part(rows), rows a slice: by the spans of `row_spans`, in their order.

    `add` joins two partial sums. What `part` makes of a span depends on its rows alone, so that the
    sum has the same bits wherever each span is worked on.
    """
    return reduce(add, map(part, row_spans(n)))


def dot(u, v):
    """u'v without BLAS: its idle threads spin for a while, and halve the speed of the kernels'."""
    return float(sum_rows(lambda i: np.einsum("i,i->", u[i], v[i]), len(u)))


@lru_cache(maxsize=1)
def _blas():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_limit: list = []
_users, _lock = 0, Lock()


@contextmanager
def single_blas():
    """BLAS on one thread while any caller is within: on tiny arrays its threads wait and spin.

    The setting is the process's own, so callers on several threads share it, and the last one out
    restores what was there.
    """
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
    """Yield work(X, *rows) of each span of n rows, in order.

    Parameters
    ----------
    work : callable
        A function of a module, or a `functools.partial` of one with arrays: it may run elsewhere.
    X : tiles (n_tiles, p, 64)
    *rows : arrays (n, ...), or None
        What belongs to the rows.
    threads : int or None
        That find spans side by side, of X in memory; None: all. With one, a span is found when the
        one before it has been taken.
    """

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
    """Sum of work(X, *rows) over spans, in order; see `over_spans`."""
    return reduce(np.add, over_spans(work, X, n, *rows))


def rows_of_spans(work, X, n, *rows):
    """What work(X, *rows) finds of each of n rows, (n, ...), span after span; see `over_spans`.

    Of the rows that fill a span's last tile, what it finds is left out.
    """
    found = zip(row_spans(n), over_spans(work, X, n, *rows), strict=True)
    return np.concatenate([own[: part.stop - part.start] for part, own in found])


def over_tiles(work, X, *arrays):
    """Yield work(X, *arrays) of each span, in order, of arrays that are tiles (n_tiles, ..., 64).

    `work` as of `over_spans`.
    """
    if not on_host(X):
        yield from X.map_tiles(work, *arrays)
        return
    for part in row_spans(len(X) * TILE):
        own = of_rows(part)
        yield work(X[own], *(array[own] for array in arrays))


def each_tile(work, tiles, *args):
    """work(tiles, *args), of tiles that go through `work` one by one: where they are."""
    return work(tiles, *args) if on_host(tiles) else tiles.map(work, *args)


def sum_tiles(work, X, *arrays):
    """Sum of work(X, *arrays) over spans, in order; see `over_tiles`."""
    return reduce(np.add, over_tiles(work, X, *arrays))
