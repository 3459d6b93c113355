"""Default calls of the shipped data: the first on a new machine, and those after it.

    python benchmarks/calls.py [OTHER_PYTHON] [--models gbmap,glm] [--sets heart,wine] [--repeats 3]
                               [--out benchmarks/results]

Each model and data set runs in a process of its own whose cache of kernels is empty. Columns, in
seconds, saved in calls.csv, where rows of other models and sets stay as they are:

cold        processor time from before `import lodim` to the first printed summary, all kernels
            that the call needs compiled, that of a process that compiles beside it included;
            cold_elapsed is the same by the clock
warm        the same call again, the choice by cross-validation included: processor time of the
            least of `--repeats`; warm_elapsed by the clock
compiler    processor time of a process that imports Numba and SciPy and compiles one kernel of
            fixed text, in the same run: the unit of cold_compilers
peer        processor time of ten-fold cross-validation of three sizes of scikit-learn's boosted
            trees on the same rows, in the same run: the unit of warm_peers
other_...   the same with OTHER_PYTHON, the Python of another installation, in turn with this one

Numba and BLAS have one thread; folds are fitted side by side. Times wander on a shared machine:
only figures of one run may be compared. melm is left out where the response is a number.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import lodim as ld

COMPILER = """
import time
import numba, numpy as np, scipy.optimize, scipy.linalg
@numba.njit
def kernel(X, w, y):
    out = np.zeros(X.shape[1])
    for i in range(X.shape[0]):
        z = 0.0
        for j in range(X.shape[1]):
            z += X[i, j] * w[j]
        r = 1.0 / (1.0 + np.exp(-z)) - y[i]
        for j in range(X.shape[1]):
            out[j] += r * X[i, j]
    return out
kernel(np.ones((2, 2)), np.ones(2), np.ones(2))
print(time.process_time())
"""
CALLS = """
import json, os, sys, threading, time
import lodim as ld
model, name, response, repeats = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
data, formula = ld.data(name), response + " ~ ."
call = getattr(ld, model)
text = str(call(formula, data=data).summary())
elapsed = time.time() - float(sys.argv[5])
for thread in threading.enumerate():  # one waits for the end of the process that compiles
    if thread.daemon:
        thread.join(60.0)
row = {"cold": sum(os.times()[:4]), "cold_elapsed": elapsed}
warm = []
for _ in range(repeats):
    clock, work = time.perf_counter(), time.process_time()
    call(formula, data=data)
    warm.append((time.process_time() - work, time.perf_counter() - clock))
if warm:
    row["warm"], row["warm_elapsed"] = min(warm)
print(json.dumps(row))
"""
PEER = """
import sys, time
import lodim as ld
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits
data, response = ld.data(sys.argv[1]), sys.argv[2]
X, y = data.drop(columns=response), data[response]
is_number = y.dtype.kind in "if"
trees = HistGradientBoostingRegressor() if is_number else HistGradientBoostingClassifier()
text = make_column_selector(dtype_exclude="number")
codes = make_column_transformer((OrdinalEncoder(), text), remainder="passthrough")
steps = Pipeline([("codes", codes), ("trees", trees)])
search = GridSearchCV(steps, {"trees__max_iter": [25, 50, 100]}, cv=10)
with threadpool_limits(1):
    work = time.process_time()
    search.fit(X, y)
    print(time.process_time() - work)
"""
ONE_THREAD = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def answer(python, text, *words):
    """What a program prints in a process of its own, with an empty cache of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | ONE_THREAD | {"NUMBA_CACHE_DIR": folder}
        command = [python, "-W", "ignore", "-c", text, *map(str, words), str(time.time())]
        run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def measured(model, name, response, args, compiler, peers):
    """One row of the table: a model's default call of a data set, with each Python in turn."""
    words = (model, name, response, args.repeats)
    row = {"model": model, "data": name, **answer(sys.executable, CALLS, *words)}
    row["cold_compilers"] = row["cold"] / compiler
    if args.repeats:
        if name not in peers:
            peers[name] = answer(sys.executable, PEER, name, response)
        row |= {"peer": peers[name], "warm_peers": row["warm"] / peers[name]}
    if args.other:
        there = answer(args.other, CALLS, *words)
        row |= {f"other_{key}": value for key, value in there.items()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?", help="the Python of another installation")
    parser.add_argument("--models", default="glm,gbmap,proset,melm,ripr,costnet")
    parser.add_argument("--sets", default="heart,iris,autompg")
    parser.add_argument("--repeats", type=int, default=3, help="warm calls; 0: the cold one alone")
    parser.add_argument("--out", help="folder of calls.csv")
    args = parser.parse_args()
    shipped = ld.data().set_index("name")
    compiler = min(answer(sys.executable, COMPILER) for _ in range(3))
    rows, peers = [], {}
    for model in args.models.split(","):
        for name in args.sets.split(","):
            if model == "melm" and shipped["task"][name] == "regression":
                continue
            rows.append(measured(model, name, shipped["response"][name], args, compiler, peers))
            numbers = {k: f"{v:.3g}" for k, v in rows[-1].items() if isinstance(v, float)}
            print(model, name, *(f"{k} {v}" for k, v in numbers.items()), flush=True)
    if args.out:
        table, saved = pd.DataFrame(rows).assign(compiler=compiler), Path(args.out) / "calls.csv"
        if saved.exists():
            table = pd.concat([pd.read_csv(saved), table])
        table = table.drop_duplicates(["model", "data"], keep="last")
        table.to_csv(saved, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
