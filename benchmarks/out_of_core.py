"""Fits of data that are not in memory: a pass against the disk's speed, and the memory of a fit.

    python benchmarks/out_of_core.py [--gib 4] [--model gbmap] [--folder FOLDER] [--out FOLDER]

Makes a Parquet set of so many GiB in FOLDER (by default the temporary one; it is removed in the
end): FEATURES columns of float32 noise, which does not compress, and a response of a known rule, in
files of 4 row groups. Then, each in a process of its own, it prints and writes to
out_of_core.csv:

pass   A scratch file of the size of the set, as a fit makes it. `direct_s`: read once past the page
       cache (O_DIRECT, 8 MiB at a time), `read_s`: by plain reads of 8 MiB, `cold_s`: one pass of
       gbmap (loss and gradient of a learner), each after its pages were dropped from the page cache
       (`read_gib`: what the process then read from the disk by that pass, as the system counts);
       `cached_s`, `warm_s`: plain reads and the pass again, from the page cache, where it holds the
       file; `memory_s`: the pass over the same tiles in memory, or as many of them as half of the
       free memory holds, by the row. Medians of REPEATS rounds, and of the ratios within a round.
       `cold_ratio` is cold_s to the faster one of direct_s and read_s, `warm_ratio` is
       warm_s / memory_s.
fit    A whole fit with the scratch file. `anon_mib`: peak of the process's own resident memory
       (RssAnon, sampled every 20 ms), `base_mib` what it had before, the packages with a small fit;
       `row_bytes` what is between, by the row, with the some 100 MiB in it that reading takes;
       `file_mib`: peak of mapped pages (RssFile), which the system takes back when it needs them.
       Seconds of the first pass over the files (scan_s), of moments (moments_s), of writing the
       scratch file (write_s) and of the rest (fit_s); `passes` over the scratch file.
bytes  A set of SMALL rows: whether save() gives the same bytes in memory and from the files.

Times of a shared machine wander: only ratios within a run may be compared.
"""

import argparse
import contextlib
import functools
import json
import mmap
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

import lodim as ld
from lodim.design import features
from lodim.design.reading import read_source_rows
from lodim.engine import blocks, tiles
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form, loss_gradient

FEATURES = 99
GROUP, GROUPS = 65_536, 4  # rows of a row group, row groups of a file
BUFFER = 2**23
REPEATS = 5
SMALL = 200_000
ARGUMENTS = {
    "gbmap": {"m": 2, "lambda_": 1e-3, "dtype": "float32"},
    "costnet": {"lambda_": 0.05, "dtype": "float32"},
    "glm": {},
}


def table_of(first, n):
    """The rows from `first` on, n of them, as a Table of pyarrow."""
    import pyarrow as pa

    rng = np.random.default_rng(first)
    X = rng.standard_normal((FEATURES, n), np.float32)
    y = X[0] - X[1] + np.logaddexp(0, 2 * X[2] + X[3]) + rng.standard_normal(n, np.float32)
    names = [*(f"x{j + 1}" for j in range(FEATURES)), "y"]
    return pa.table(dict(zip(names, [*X, y], strict=True)))


def make_set(folder, n):
    """Write Parquet files of n rows, a row group at a time."""
    import pyarrow.parquet as pq

    schema = table_of(0, 1).schema
    for k, first in enumerate(range(0, n, GROUPS * GROUP)):
        path = Path(folder) / f"part-{k:04}.parquet"
        last = min(first + GROUPS * GROUP, n)
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
            for i in range(first, last, GROUP):
                file.write_table(table_of(i, min(GROUP, last - i)))


def size_of(folder):
    """Bytes of the files of a folder."""
    return sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))


def rows_of(gib):
    """Rows of a set of so many GiB."""
    return int(gib * 2**30 / (4 * (FEATURES + 1)))


# A pass ------------------------------------------------------------------------------------------


class ScratchFile:
    """Tiles of noise in a scratch file, and what reads that file in other ways."""

    def __init__(self, folder, n):
        opened, make = [], tempfile.TemporaryFile

        def keep(*args, **keywords):
            file = make(*args, **keywords)
            opened.append(os.dup(file.fileno()))
            return file

        with mock.patch.object(tempfile, "TemporaryFile", keep):
            self.X = features.tiles_in(folder, n, FEATURES, np.float32)
        self.descriptor = opened[0]
        rng, step = np.random.default_rng(0), 256
        for i in range(0, len(self.X), step):
            self.X[i : i + step] = rng.standard_normal(self.X[i : i + step].shape, np.float32)
        os.fsync(self.descriptor)
        base = self.X
        while not isinstance(base, mmap.mmap):
            base = base.obj if isinstance(base, memoryview) else base.base
        self.mapped = base

    def drop(self):
        """Take the file's pages out of the page cache: unmap them first, those in use stay."""
        self.mapped.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def read(self, flags=0):
        """Read all of the file once into a buffer."""
        file = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | flags)
        buffer = mmap.mmap(-1, BUFFER)  # aligned, as O_DIRECT wants it
        while os.readv(file, [buffer]) > 0:
            pass
        os.close(file)


class Pass:
    """A pass of gbmap over tiles, for one learner."""

    def __init__(self, X):
        self.X = X
        shape = len(X), tiles.TILE
        self.columns = [np.full(shape, value, X.dtype) for value in (1.0, 0.0, 1.0)]
        self.theta = np.full((1, 2 + X.shape[1]), 0.1)

    def __call__(self):
        one, shape = np.ones(1), (1, 3 + self.X.shape[1])
        line = np.arange(1), one, Form(1.0, SOFTPLUS, SQUARED)
        work = (loss_gradient, self.X, shape, *self.columns, self.theta, *line)
        blocks.sum_blocks(*work, threads=blocks.available_threads())


def seconds(work, *args):
    start = time.perf_counter()
    work(*args)
    return time.perf_counter() - start


def read_from_disk():
    """Bytes that this process has had read from the disk."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def measure_pass(folder, gib):
    """One row of results: the pass over a scratch file."""
    file = ScratchFile(folder, int(gib * 2**30 / (4 * FEATURES)))
    X = file.X
    room = int(features.free_memory() / 2)
    held = min(len(X), max(1, room // X[0].nbytes))
    cached = X.nbytes <= features.free_memory() * 0.7
    over, part = Pass(X), Pass(np.array(X[:held]))
    Pass(X[:64])()
    rounds = [_round(file, over, part, held / len(X), cached) for _ in range(REPEATS)]
    out = pd.DataFrame(rounds).assign(
        cold_ratio=lambda d: d["cold_s"] / d[["direct_s", "read_s"]].min(axis=1),
        warm_ratio=lambda d: d.get("warm_s", np.nan) / d["memory_s"],
    )
    gib = X.nbytes / 2**30
    return {"gib": gib, "rows": len(X) * tiles.TILE, **out.median().to_dict()}


def _round(file, over, part, share, cached):
    out = {}
    file.drop()
    out["direct_s"] = seconds(file.read, os.O_DIRECT)
    file.drop()
    before = read_from_disk()
    out["cold_s"] = seconds(over)
    out["read_gib"] = (read_from_disk() - before) / 2**30
    if cached:
        out["warm_s"] = min(seconds(over) for _ in range(2))
        out["cached_s"] = seconds(file.read)
    out["memory_s"] = min(seconds(part) for _ in range(2)) / share
    file.drop()
    out["read_s"] = seconds(file.read)
    return out


# A fit -------------------------------------------------------------------------------------------


class Memory:
    """Peaks of this process's resident memory, sampled in a thread while the block runs."""

    def __enter__(self):
        self.peak = dict.fromkeys(("RssAnon", "RssFile"), 0)
        self._look()
        self.base, self._end = self.peak["RssAnon"], threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _watch(self):
        while not self._end.wait(0.02):
            self._look()

    def _look(self):
        lines = Path("/proc/self/status").read_text().splitlines()
        for line in lines:
            name, _, value = line.partition(":")
            if name in self.peak:
                self.peak[name] = max(self.peak[name], int(value.split()[0]) / 1024)


@contextlib.contextmanager
def stages():
    """Seconds by stage of what is learnt from files, filled while the block runs."""
    spent = dict.fromkeys(("scan_s", "moments_s", "write_s"), 0.0)

    def timed(name, work):
        @functools.wraps(work)
        def call(*args, **keywords):
            start = time.perf_counter()
            try:
                return work(*args, **keywords)
            finally:
                spent[name] += time.perf_counter() - start

        return call

    patches = [
        mock.patch("lodim.design.reading.read_source_rows", timed("scan_s", read_source_rows)),
        *(
            mock.patch.object(features.Features, name, timed(f"{name}_s", method))
            for name, method in (
                ("moments", features.Features.moments),
                ("write", features.Features.write),
            )
        ),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield spent


def fit_of(model, data, folder=None):
    control = {} if folder is None else {"control": {"scratch": folder}}
    return getattr(ld, model)("y ~ .", data=data, **ARGUMENTS[model], **control)


def measure_fit(folder, model):
    """One row of results: a whole fit from files."""
    fit_of(model, table_of(0, 70_000).to_pandas(), folder)  # loads packages and kernels
    with Memory() as memory, stages() as spent:
        start = time.perf_counter()
        fit = fit_of(model, f"{folder}/*.parquet", folder)
        whole = time.perf_counter() - start
    out = {
        "gib": size_of(folder) / 2**30,
        "rows": fit.n,
        "anon_mib": memory.peak["RssAnon"],
        "base_mib": memory.base,
        "row_bytes": 2**20 * (memory.peak["RssAnon"] - memory.base) / fit.n,
        "file_mib": memory.peak["RssFile"],
        **spent,
        "fit_s": whole - sum(spent.values()),
    }
    log = getattr(fit, "log", {})
    return out | ({"passes": int(np.sum(log["n_eval"]))} if "n_eval" in log else {})


def measure_bytes(folder, model):
    """One row of results: save() in memory and from files."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        make_set(own, SMALL)
        frame = pd.concat(map(pd.read_parquet, sorted(Path(own).glob("*.parquet"))))
        saved = []
        for data, where in ((frame.reset_index(drop=True), None), (f"{own}/*.parquet", own)):
            fit_of(model, data, where).save(f"{own}/fit.lodim")
            saved.append(Path(f"{own}/fit.lodim").read_bytes())
        return {"gib": size_of(own) / 2**30, "rows": SMALL, "equal": saved[0] == saved[1]}


# All of it ---------------------------------------------------------------------------------------


def own_process(folder, what, gib, model):
    """What a measurement gives in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--measure", what, "--folder", folder]
    command += ["--gib", str(gib), "--model", model]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    out = {"what": what, "model": "gbmap" if what == "pass" else model}
    return out | json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--model", choices=ARGUMENTS, action="append")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--out", default=Path(__file__).parent / "results", type=Path)
    parser.add_argument("--measure", choices=("pass", "fit", "bytes"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    models = args.model or ["gbmap"]
    if args.measure:
        own = {"pass": (measure_pass, args.gib), "fit": (measure_fit, models[0])}
        work, argument = own.get(args.measure, (measure_bytes, models[0]))
        print(json.dumps(work(args.folder, argument)))
        return
    rows = []
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="out-of-core-") as folder:
        rows.append(own_process(folder, "pass", args.gib, models[0]))
        print(rows[-1], flush=True)
        make_set(folder, rows_of(args.gib))
        for model in models:
            for what in ("fit", "bytes"):
                rows.append(own_process(folder, what, args.gib, model))
                print(rows[-1], flush=True)
    machine = f"{platform.machine()}, {blocks.available_threads()} threads, {platform.release()}"
    table = pd.DataFrame(rows).assign(machine=machine)
    table.to_csv(args.out / "out_of_core.csv", index=False, float_format="%.4g")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
