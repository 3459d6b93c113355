"""Sums of kernels over fixed row blocks, shared among threads.

Kernels release the GIL, so plain threads share the blocks; unlike Numba's own parallel loops this
composes with folds that run side by side, compiles several times faster, and needs no threading
layer. Each block writes its own partial and partials are added in block order: the result has the
same bits on any number of threads.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np

from lodim.tiles import TILES_PER_BLOCK


def count_blocks(tiles):
    """Number of row blocks in tiles of shape (n_tiles, p, 64)."""
    return -(-tiles.shape[0] // TILES_PER_BLOCK)


def available_threads():
    """Threads that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@lru_cache(maxsize=1)
def _pool(pid):
    return ThreadPoolExecutor(max(1, available_threads() - 1), thread_name_prefix="lodim")


def for_blocks(kernel, n_blocks, *args, threads=1):
    """Run kernel(lo, hi, *args) over the blocks [0, n_blocks), on up to `threads` threads."""
    threads = min(threads, n_blocks)
    if threads <= 1:
        kernel(0, n_blocks, *args)
        return
    bounds = [n_blocks * i // threads for i in range(threads + 1)]
    # A pool belongs to one process: after a fork its threads are gone.
    pool = _pool(os.getpid())
    waiting = [pool.submit(kernel, lo, hi, *args) for lo, hi in pairwise(bounds[1:])]
    kernel(bounds[0], bounds[1], *args)
    for job in waiting:
        job.result()


def sum_blocks(kernel, tiles, shape, *args, threads=1):
    """Sum over blocks of what kernel(lo, hi, partials, tiles, *args) leaves in partials[block]."""
    n_blocks = count_blocks(tiles)
    partials = np.empty((n_blocks, *shape))
    for_blocks(kernel, n_blocks, partials, tiles, *args, threads=threads)
    return partials[0] if n_blocks == 1 else partials.sum(axis=0)
