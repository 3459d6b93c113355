"""gbmap, proset and melm on a GPU: passes of gbmap against a streaming read, its whole fit, and the
objectives of proset and melm beside the CPU's.

    python benchmarks/gpu.py [--rows 10000000] [--out benchmarks/results]

A pass is loss and gradient of two learners, by the GPU's own clock (events), median of many; it
includes the launches, theta's way in and the sums' way out. The roof is a kernel that reads the
same tiles and adds them up. Bytes of a pass are those of X, once, and of response, score and
weight; a share above one would mean that they come from a cache. The CPU does the same passes in
the same run. proset's objective is timed whole, with the host's part of it: it reads little and
computes much, so its roof is arithmetic: `terms_s` counts rows x candidates x features a second.
So are the pairs of rows of melm's divergence: `pairs_s` counts them, once for each problem, a
second; `q` problems run together, as the starts of a search do.
Needs a GPU and the extra `cuda`.
"""

import argparse
import json
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld
from lodim.engine import blocks as engine
from lodim.engine import tiles
from lodim.engine.cuda import cuda
from lodim.engine.row_keys import keys
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form, loss_gradient
from lodim.models.melm.divergence import Divergence, shares
from lodim.models.melm.whitening import Sample, bandwidths
from lodim.models.proset.cpu_kernels import CLASSES
from lodim.models.proset.objective import BatchObjective, ScoringRows, penalize
from lodim.models.proset.settings import Settings

NARROW = [(10**5, 25), (10**6, 25), (10**7, 25)]
BATCHES = [(10**4, 25, 1000), (10**5, 25, 1000), (10**5, 200, 1000), (10**6, 25, 1000)]
PAIRS = [(2048, 2, 17), (5000, 2, 17), (5000, 1, 17), (5000, 3, 17), (50_000, 2, 1)]
WIDE = [(10**5, 100), (10**5, 400), (10**5, 1600), (10**5, 3200), (10**7, 1)]
BLOCKS, THREADS = 1056, 256  # of the streaming read


def need_gpu():
    """The device module, or the end of this script in words."""
    try:
        from lodim.engine import cuda as device

        engine.place(tiles.pack(np.ones((1, 1))), "cuda")
    except (ImportError, ld.LodimError) as error:
        sys.exit(f"benchmarks/gpu.py: {error}")
    return device


@cuda.jit
def read(v, out):
    """Read an array once and keep one sum a thread."""
    i, step = cuda.grid(1), cuda.gridsize(1)
    total, a, b, c, d = 0.0, 0.0, 0.0, 0.0, 0.0
    while i + 3 * step < v.size:
        a, b, c, d = a + v[i], b + v[i + step], c + v[i + 2 * step], d + v[i + 3 * step]
        i += 4 * step
    while i < v.size:
        total += v[i]
        i += step
    out[cuda.grid(1)] = total + a + b + c + d


def device_ms(work, repeats):
    """Median time of work() by events, in milliseconds, after three calls to warm up."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = cuda.event(), cuda.event()
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(cuda.event_elapsed_time(start, end))
    return float(np.median(times))


def wall_ms(work, repeats):
    """Median time of work() in milliseconds."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def random_tiles(n, p, dtype):
    """Tiles of n rows; the numbers repeat every 4,096 rows, which no pass can tell."""
    X = tiles.empty(n, p, dtype)
    part = tiles.pack(np.random.default_rng(0).normal(size=(4096, p)).astype(dtype), dtype)
    for lo in range(0, len(X), len(part)):
        X[lo : lo + len(part)] = part[: len(X) - lo]
    return X


def time_pass(device, n, p, dtype, repeats):
    """A row of the table: one shape and type."""
    rng = np.random.default_rng(1)
    X = random_tiles(n, p, dtype)
    columns = [rng.normal(size=n), rng.normal(size=n), np.full(n, 1.0 / n)]
    theta, sign = rng.normal(size=(2, 2 + p)) / np.sqrt(p), np.array([1.0, -1.0])
    rest = theta, np.arange(2), sign, Form(1.0, SOFTPLUS, SQUARED)
    there = engine.place(X, "cuda")
    columns_there = [device.upload(tiles.pad(v, len(X))) for v in columns]
    columns = [tiles.pad(v, len(X), dtype) for v in columns]
    out, flat = device.zeros(BLOCKS * THREADS), there.array.reshape(X.size)

    def on_gpu():
        return engine.sum_blocks(loss_gradient, there, (2, 3 + p), *columns_there, *rest)

    def on_cpu():
        return engine.sum_blocks(
            loss_gradient, X, (2, 3 + p), *columns, *rest, threads=engine.available_threads()
        )

    a, b = on_cpu(), on_gpu()
    roof = device_ms(lambda: read[BLOCKS, THREADS](flat, out), repeats)
    ms = device_ms(on_gpu, repeats)
    moved = X.nbytes + sum(v.nbytes for v in columns_there)
    return {
        "n": n, "p": p, "dtype": np.dtype(dtype).name, "pass_ms": ms,
        "GB_s": moved / ms / 1e6, "roof_GB_s": X.nbytes / roof / 1e6,
        "share_of_roof": (moved / ms) / (X.nbytes / roof), "wall_ms": wall_ms(on_gpu, repeats),
        "cpu_ms": wall_ms(on_cpu, 5), "error": float(np.abs(a - b).max() / np.abs(a).max()),
    }  # fmt: skip


def time_objective(n, p, J, dtype, repeats):
    """A row of proset's table: the objective of a batch, three classes, all weights above zero."""
    rng = np.random.default_rng(2)
    y, target = rng.integers(0, 3, n) * 1.0, rng.integers(0, 3, J) * 1.0
    share, one, weight = np.full(n, 1 / 3), np.ones(n), np.full(n, 1.0 / n)
    packed = tiles.pack(rng.normal(size=(n, p)), dtype)
    scoring = ScoringRows.from_tiles(packed, y, share, one, weight, np.full(n, -1))
    settings = Settings(1, J, 1e-3, 1e-8, 0.05, 0.05, "squared", 0, None)
    rest = rng.normal(size=(J, p)), target, CLASSES, penalize(p, J, settings)
    threads = engine.available_threads()
    there, here = (BatchObjective(scoring, *rest, threads, name) for name in ("cuda", "cpu"))
    theta = np.concatenate([np.full(p, 1 / np.sqrt(p)), np.ones(J), [0.0]])
    a, b = here(theta)[1], there(theta)[1]
    ms = device_ms(lambda: there(theta), repeats)
    return {
        "n": n, "p": p, "J": J, "dtype": np.dtype(dtype).name, "pass_ms": ms,
        "terms_s": n * J * p / ms * 1e3, "wall_ms": wall_ms(lambda: there(theta), repeats),
        "cpu_ms": wall_ms(lambda: here(theta), 3),
        "error": float(np.abs(a - b).max() / np.abs(a).max()),
    }  # fmt: skip


def time_divergence(n, k, q, p=30):
    """A row of melm's table: value and gradient for q projections of two classes."""
    rng = np.random.default_rng(3)
    code = np.arange(n) % 2
    X, size = rng.normal(size=(n, p)) + 0.3 * code[:, None], np.bincount(code).astype(float)
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    order = np.argsort(code, kind="stable")
    cov = np.stack([np.cov(X[code == c].T, bias=True) for c in range(2)])
    Z, one = np.ascontiguousarray(X[order].T), np.ones(n)
    sample = Sample(Z, one, start, cov, keys(X[order], one))
    rest = sample, shares(size), bandwidths(size, k), k, engine.available_threads(), False
    there, here = (Divergence(*rest, name) for name in ("cuda", "cpu"))
    theta, active = rng.normal(size=(q, p * k)), np.arange(q)
    a, b = here(theta, active)[1], there(theta, active)[1]
    wall = wall_ms(lambda: there(theta, active), 10)
    return {
        "n": n, "p": p, "k": k, "q": q, "wall_ms": wall, "pairs_s": q * n * n / 2 / wall * 1e3,
        "cpu_ms": wall_ms(lambda: here(theta, active), 1),
        "error": float(np.abs(a - b).max() / np.abs(a).max()),
    }  # fmt: skip


def time_fit(n):
    """synth-cos-c, n x 25, float32, m = 2, on both engines, end to end."""
    data = ld.synth_cos_c(n, 25, seed=0)
    response, rows = data.columns[-1], []
    for name in ("cuda", "cpu"):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.ConvergenceWarning)
            fit = ld.gbmap(
                f"{response} ~ .", data, family="binomial", m=2, beta=1.0, lambda_=1e-3,
                dtype="float32", engine=name, control={"max_iter": 100},
            )  # fmt: skip
        middle = time.perf_counter()
        fit.predict(data)
        rows.append(
            {"engine": name, "n": n, "fit_s": middle - start,
             "predict_s": time.perf_counter() - middle,
             "objective": float(fit.log["objective"][-1]),
             "n_eval": int(fit.log["n_eval"].sum())}
        )  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**7, help="of the whole fit")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = need_gpu()
    gpu = cuda.get_current_device().name
    gpu = gpu.decode() if isinstance(gpu, bytes) else str(gpu)
    passes = [
        time_pass(device, n, p, dtype, arguments.repeats)
        for n, p in NARROW + WIDE for dtype in (np.float32, np.float64)
    ]  # fmt: skip
    print(gpu, pd.DataFrame(passes).round(4).to_string(index=False), sep="\n", flush=True)
    objectives = [
        time_objective(*shape, dtype, arguments.repeats)
        for shape in BATCHES for dtype in (np.float32, np.float64)
    ]  # fmt: skip
    print(pd.DataFrame(objectives).round(4).to_string(index=False), flush=True)
    divergences = [time_divergence(*shape) for shape in PAIRS]
    print(pd.DataFrame(divergences).round(4).to_string(index=False), flush=True)
    fits = time_fit(arguments.rows)
    print(pd.DataFrame(fits).round(4).to_string(index=False))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        machine = {"gpu": gpu, "cpu": platform.processor(), "threads": engine.available_threads()}
        results = {"machine": machine, "passes": passes, "proset": objectives,
                   "melm": divergences, "fits": fits}  # fmt: skip
        text = json.dumps(results, indent=1)
        (arguments.out / "gpu.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
