"""Passes on the workers of a Dask cluster against the same pass in memory; fits whose workers die.

    python benchmarks/workers.py [--rows 1e6,4e6] [--workers 1,2,4] [--kills 50] [--out FOLDER]

Workers are processes of one thread on this machine, and so is the pass in memory. A pass is the
loss and gradient of gbmap for two learners of 20 columns, float64. It prints, and saves in
workers.csv:

rows, workers
memory_ms    the pass in memory, on one thread; least of REPEATS, as the other times but the medians
pass_ms      the pass on the workers, from the call to the sum, median; pass_least the least
kernel_ms    what the slowest worker spends in the kernel in a pass, median
overhead     pass_ms beyond kernel_ms, as a share of kernel_ms
idle_ms      a round of tasks that do nothing: what Dask takes for an evaluation, median
sent         bytes that the client and the scheduler write in an evaluation, median
answered     bytes of the spans' sums that come back

Last it prints the line through idle_ms against the number of workers: milliseconds an evaluation,
and a worker in it. `--rows 0` leaves passes out.

With --kills N it fits gbmap to Parquet files on two workers N times, kills one of them (every
fifth time both) by `kill -9` at a random moment of the fit, and saves a line for each in
workers_kills.csv:

run, at      seconds into the fit at which it was done; workers: how many were killed
outcome      "same bits" as without, "other bits", "error in words" (a LodimError), or what came
after        seconds from then to the end; message of an error
processes, files   what is left once the cluster is closed: children, and files of the workers

Times wander on a shared machine: only figures of one run may be compared. Needs the extra `dask`.
"""

import argparse
import hashlib
import logging
import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from distributed import Client, LocalCluster
from distributed.comm import tcp

import lodim as ld
from lodim.design.batch import Batch
from lodim.engine import tiles, workers
from lodim.engine.blocks import sum_blocks
from lodim.errors import LodimError
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form, loss_gradient

P, REPEATS = 20, 15
SHARED = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}


class Part:
    """Makes part k of random rows, in any process."""

    def __init__(self, n):
        self.n = n

    def __call__(self, k):
        rows = np.arange(k * workers.ROWS_PER_CHUNK, min(self.n, (k + 1) * workers.ROWS_PER_CHUNK))
        rng = np.random.default_rng(k)
        X = tiles.pack(rng.normal(size=(len(rows), P)))
        return Batch(X, rng.normal(size=len(rows)), None, None, pd.RangeIndex(len(rows)), rows)


def problem():
    """What an evaluation is given beside the rows and their columns."""
    theta = np.random.default_rng(0).normal(size=(2, 2 + P))
    return theta, np.arange(2), np.array([1.0, -1.0]), Form(10.0, SOFTPLUS, SQUARED)


def seconds(call, repeats=REPEATS):
    """Times of a call, sorted; a first one is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return np.sort(times)


def in_memory(n):
    """Least time of a pass over n rows in memory, on one thread, and its sums."""
    X = tiles.empty(n, P, np.float64)
    y = np.zeros((len(X), tiles.TILE))
    for k in range(-(-n // workers.ROWS_PER_CHUNK)):
        batch = Part(n)(k)
        own = slice(k * workers.PART_TILES, k * workers.PART_TILES + len(batch.X))
        X[own], y[own] = batch.X, tiles.pad(batch.y, len(batch.X))
    columns = y, np.zeros_like(y), np.full_like(y, 1.0 / n)
    columns[2].reshape(-1)[n:] = 0.0

    def one_pass():
        return sum_blocks(loss_gradient, X, (2, 3 + P), *columns, *problem())

    return seconds(one_pass)[0], one_pass()


def timed(group, X, *rest):
    """The sums of a group's spans, and the seconds that they take."""
    start = time.perf_counter()
    return workers._span_sums(group, X, *rest), time.perf_counter() - start


def nothing(group, X):
    return 0.0


def on_workers(n, n_workers, memory, expected):
    """A line of the table."""
    with LocalCluster(n_workers=n_workers, **SHARED) as cluster, Client(cluster) as client:
        X = workers.read_parts(client, Part(n), n, P, np.float64)
        columns = X.column(X.beside["y"][0]), X.constant(0.0), X.constant(1.0 / n)
        shape, kernel, sent, written = (2, 3 + P), [], [], 0
        write = tcp.TCP.write

        async def counted(self, *args, **kwargs):
            nonlocal written
            size = await write(self, *args, **kwargs)
            written += size
            return size

        def one_pass():
            return X.sum_blocks(loss_gradient, shape, *columns, *problem())

        def split_pass():
            nonlocal written
            written = 0
            found = X.cluster.results(X._run(timed, loss_gradient, shape, *columns, *problem()))
            kernel.append(max(spent for _, spent in found))
            sent.append(written)
            return sum(sums.nbytes for sums, _ in found)

        if not np.array_equal(one_pass(), expected):
            raise SystemExit("the sums on the workers have other bits than those in memory")
        passes = seconds(one_pass)
        tcp.TCP.write = counted
        seconds(split_pass)
        tcp.TCP.write = write
        idle = seconds(lambda: X.cluster.results(X.cluster.submit(nothing, X)))
        return {
            "rows": n,
            "workers": n_workers,
            "memory_ms": 1e3 * memory,
            "pass_ms": 1e3 * np.median(passes),
            "pass_least": 1e3 * passes[0],
            "kernel_ms": 1e3 * np.median(kernel),
            "overhead": np.median(passes) / np.median(kernel) - 1.0,
            "idle_ms": 1e3 * np.median(idle),
            "sent": int(np.median(sent)),
            "answered": split_pass(),
        }


def pass_table(rows, counts):
    lines = []
    for n in rows:
        memory, expected = in_memory(n)
        for n_workers in counts:
            lines.append(on_workers(n, n_workers, memory, expected))
            print(pd.DataFrame(lines[-1:]).round(3).to_string(index=False), flush=True)
    frame = pd.DataFrame(lines)
    if frame["workers"].nunique() > 1:
        slope, level = np.polyfit(frame["workers"], frame["idle_ms"], 1)
        print(f"an evaluation costs {level:.1f} ms and {slope:.1f} ms a worker")
    return frame


def write_files(folder, n):
    """Parquet files of n rows with levels, gaps and weights."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    frame["y"] = np.maximum(frame["a"] + frame["b"], 0.0) + rng.normal(size=n)
    frame["level"] = rng.choice(["u", "v", "w"], n)
    frame.loc[rng.random(n) < 0.01, "c"] = np.nan
    frame["weight"] = rng.integers(0, 3, n).astype(float)
    for k, lo in enumerate(range(0, n, 100_000)):
        frame[lo : lo + 100_000].to_parquet(folder / f"part-{k:03d}.parquet", index=False)


def fit(source, client):
    """The bytes of the saved fit, as a digest."""
    given = {"weights": "weight", "m": 4, "lambda_": 0.01, "client": client}
    found = ld.gbmap("y ~ .", source, **given)
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder) / "fit.lodim")
        return hashlib.sha256((Path(folder) / "fit.lodim").read_bytes()).hexdigest()


def kill(pids, moments, delay):
    time.sleep(delay)
    moments.append(time.perf_counter())
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def one_kill(run, source, rng, expected, lasting):
    """A line of the table of kills."""
    mine = psutil.Process()
    before = {child.pid for child in mine.children(recursive=True)}
    line = {"run": run, "at": rng.uniform(0.0, 0.9 * lasting), "workers": 2 if run % 5 == 4 else 1}
    with tempfile.TemporaryDirectory() as folder:
        options = SHARED | {"n_workers": 2, "local_directory": folder}
        moments = []
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            pids = rng.sample(sorted(client.run(os.getpid).values()), line["workers"])
            killer = threading.Thread(target=kill, args=(pids, moments, line["at"]))
            killer.start()
            message = ""
            try:
                outcome = "same bits" if fit(source, client) == expected else "other bits"
            except LodimError as error:
                outcome, message = "error in words", str(error)
            except Exception as error:
                outcome, message = type(error).__name__, str(error)
            ended = time.perf_counter()
            killer.join()
        line |= {"outcome": outcome, "after": ended - moments[0], "message": message[:200]}
        # The process that multiprocessing tracks its resources with lives as long as this one.
        left = [child for child in mine.children(recursive=True) if child.pid not in before]
        left = [child for child in left if "resource_tracker" not in " ".join(child.cmdline())]
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        files = [path for path in files if path.suffix not in (".lock", ".dirlock")]
        return line | {"processes": len(left), "files": len(files)}


def kill_table(n, runs):
    rng, lines = random.Random(0), []
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), n)
        source = str(Path(folder) / "*.parquet")
        with LocalCluster(n_workers=2, **SHARED) as cluster, Client(cluster) as client:
            fit(source, client)  # the workers load the kernels
        with LocalCluster(n_workers=2, **SHARED) as cluster, Client(cluster) as client:
            start = time.perf_counter()
            expected = fit(source, client)
            lasting = time.perf_counter() - start
        for run in range(runs):
            lines.append(one_kill(run, source, rng, expected, lasting))
            print(lines[-1], flush=True)
    frame = pd.DataFrame(lines)
    print(frame["outcome"].value_counts().to_string())
    print(f"longest from the kill to the end: {frame['after'].max():.1f} s; without: {lasting:.1f}")
    return frame


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="1e6,4e6")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--kill-rows", type=float, default=1e6)
    parser.add_argument("--out", default="benchmarks/results")
    given = parser.parse_args()
    rows = [int(float(n)) for n in given.rows.split(",") if float(n)]
    out = Path(given.out)
    if rows:
        frame = pass_table(rows, [int(w) for w in given.workers.split(",")])
        frame.to_csv(out / "workers.csv", index=False, float_format="%.5g")
    if given.kills:
        frame = kill_table(int(given.kill_rows), given.kills)
        frame.to_csv(out / "workers_kills.csv", index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
