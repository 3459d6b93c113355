"""engine and tiles: the layout holds every row once, and sums do not depend on the threads."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from lodim.engine import blocks as engine
from lodim.engine import tiles
from lodim.sources import ROWS_PER_CHUNK

SIZES = [1, 63, 64, 65, 4095, 4096, 4097, 3 * 4096 + 17]


@njit(nogil=True)
def column_sums(lo, hi, partials, X):
    for block in range(lo, hi):
        partials[block] = 0.0
        for t in range(block * 64, min((block + 1) * 64, X.shape[0])):
            for k in range(X.shape[1]):
                for i in range(64):
                    partials[block, k] += X[t, k, i]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pack_and_unpack(n, dtype):
    X = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
    packed = tiles.pack(X, dtype)
    assert packed.dtype == dtype and packed.shape == (tiles.count(n), 3, 64)
    np.testing.assert_array_equal(tiles.unpack(packed, n), X)
    beyond = tiles.unpack(packed, len(packed) * 64)[n:]
    assert not beyond.any()  # kernels rely on zero padding
    v = X[:, 0].astype(float)
    padded = tiles.pad(v, len(packed)).ravel()
    np.testing.assert_array_equal(padded[:n], v)
    assert not padded[n:].any()


def test_no_columns():
    packed = tiles.pack(np.empty((70, 0)))
    assert packed.shape == (2, 0, 64) and tiles.unpack(packed, 70).shape == (70, 0)


@pytest.mark.parametrize("n", SIZES)
def test_sum_blocks(n):
    X = np.random.default_rng(n).normal(size=(n, 4))
    packed = tiles.pack(X)
    one = engine.sum_blocks(column_sums, packed, (4,))
    np.testing.assert_allclose(one, X.sum(axis=0), atol=1e-9)
    for threads in (2, 3, 64):
        np.testing.assert_array_equal(
            engine.sum_blocks(column_sums, packed, (4,), threads=threads), one
        )


def test_count_blocks():
    for n in SIZES:
        assert engine.count_blocks(tiles.empty(n, 1, float)) == -(-n // 4096)


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 16])
@pytest.mark.parametrize("threads", [1, 2, 3, 40])
def test_each_block_once(n_blocks, threads):
    seen, lock = [], threading.Lock()

    def kernel(lo, hi):
        with lock:
            seen.extend(range(lo, hi))

    engine.for_blocks(kernel, n_blocks, threads=threads)
    assert sorted(seen) == list(range(n_blocks))


def test_an_error_in_a_thread_is_raised():
    def kernel(lo, hi):
        if hi == 4:
            raise ZeroDivisionError("in the last block")

    with pytest.raises(ZeroDivisionError, match="last block"):
        engine.for_blocks(kernel, 4, threads=2)


def test_available_threads():
    assert 1 <= engine.available_threads() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_its_own_pool():
    packed = tiles.pack(np.ones((3 * 4096, 1)))
    engine.sum_blocks(column_sums, packed, (1,), threads=2)  # the parent's pool has run
    first, second = engine._pool(os.getpid()), engine._pool(os.getpid())
    assert first is second
    assert engine._pool(-1) is not first  # a pid that is another's


@pytest.mark.long
def test_compiled_now_or_loaded_from_the_cache_gives_the_same_bits(tmp_path):
    """The process that compiles the kernels and those that load them agree to the last bit."""
    code = (
        "import lodim as ld; f = ld.gbmap('species ~ .', ld.data('iris'), m=2, lambda_=.1);"
        "print(f.estimates.theta.tobytes().hex())"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)
    }  # fmt: skip
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    assert runs[0].stderr.startswith("compiling kernels") and runs[1].stderr == ""
    assert runs[0].stdout == runs[1].stdout != ""


def test_blas_is_limited_until_the_last_caller_leaves():
    import threadpoolctl

    def counts():
        return {
            p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"
        }

    before = counts()
    with engine.single_blas():
        with engine.single_blas():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == before


@pytest.mark.parametrize("n", [9, 5000])
@pytest.mark.parametrize("numbers", [0, engine.THREADED])
def test_work_on_each_item_comes_back_in_order(numbers, n):
    assert engine.each(lambda i: i * i, range(n), numbers, 2) == [i * i for i in range(n)]

    def fail(i):
        if i in (3, 7, n - 1):
            raise ValueError(f"item {i}")

    with pytest.raises(ValueError, match="item 3"):
        engine.each(fail, range(n), numbers, 2)


def test_very_many_items_are_handed_over_together(monkeypatch):
    handed = []

    class Pool(ThreadPoolExecutor):
        def map(self, work, items):
            handed.append(len(items))
            return super().map(work, items)

    monkeypatch.setattr(engine, "ThreadPoolExecutor", Pool)
    for n in (100, 43_795):
        engine.each(abs, range(n), engine.THREADED, 2)
    assert handed[0] == 100 and handed[1] <= 2 * engine.HANDED_OVER


@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_partials_are_added_by_spans(shape):
    """The sums of spans, sent by whoever has their blocks, have the bits of the whole sum."""
    rng = np.random.default_rng(0)
    for n_blocks in (1, 5, 16, 17, 100):
        partials = rng.normal(size=(n_blocks, *shape)) * 10.0 ** rng.integers(
            -9, 9, n_blocks
        ).reshape(-1, *[1] * len(shape))
        total = 0.0
        for lo in range(0, n_blocks, 16):
            total = total + engine.sum_partials(partials[lo : lo + 16].copy())
        np.testing.assert_array_equal(engine.sum_partials(partials), total)
        if n_blocks <= 16:
            np.testing.assert_array_equal(total, partials.sum(axis=0))


@pytest.mark.parametrize("n", [0, 1, 65_536, 65_537, 200_000])
def test_sums_over_rows_go_by_spans(n):
    u, v = np.random.default_rng(n).normal(size=(2, n))
    spans = engine.row_spans(n)
    assert spans[0].start == 0 and spans[-1].stop == n
    assert all(span.stop - span.start == engine.SPAN_ROWS for span in spans[:-1])
    total = sum(float(np.einsum("i,i->", u[i].copy(), v[i].copy())) for i in spans)
    assert engine.dot(u, v) == total
    np.testing.assert_allclose(total, np.sum(u * v), atol=1e-9)
    if n:
        largest = engine.sum_rows(lambda i: u[i].max(), n, np.maximum)
        assert largest == u.max()


def test_a_chunk_of_a_source_is_a_span_of_the_sums():
    # Layers keep the two apart. Streamed rows come a chunk at a time and are summed a span at a
    # time: only where these are the same rows do they give the bits of the same rows in memory.
    assert ROWS_PER_CHUNK == engine.SPAN_ROWS


def test_tiles_of_rows():
    packed = tiles.pack(np.arange(70_000.0)[:, None])
    for rows in engine.row_spans(70_000):
        own = tiles.unpack(packed[tiles.of_rows(rows)], rows.stop - rows.start)
        np.testing.assert_array_equal(own[:, 0], np.arange(rows.start, rows.stop))


def test_blocks_left_out_add_nothing():
    X = np.random.default_rng(0).normal(size=(5 * 4096 - 9, 2))
    packed, some = tiles.pack(X), np.array([True, False, True, True, False])
    runs = engine.runs_of(some)
    assert runs == [(0, 1), (2, 4)] and engine.runs_of(some | True) is None
    rest = X.copy()
    rest[4096:8192] = rest[16384:] = 0.0
    expected = engine.sum_blocks(column_sums, tiles.pack(rest), (2,))
    packed[64:128] = packed[256:] = np.nan  # not looked at
    for threads in (1, 2, 3):
        found = engine.sum_blocks(column_sums, packed, (2,), threads=threads, runs=runs)
        np.testing.assert_array_equal(found, expected)
