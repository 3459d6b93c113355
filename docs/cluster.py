# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sizing a cluster
#
# How many workers does a fit on a Dask cluster need, and what do they cost? Ask first whether you
# need a cluster. A fit from files needs a disk that holds the features and some hundred MB of
# memory ([data larger than memory](vignettes/big_data)), and one machine processes some GB of
# features per second. `ld.estimate` predicts their size.
#
# ## What happens
#
# ```python
# from dask.distributed import Client
#
# client = Client("scheduler:8786")
# fit = ld.gbmap("y ~ .", data="/shared/folder/*.parquet", m=10, lambda_=1e-3, client=client)
# ```
#
# Rows are split into parts of 65,536. Each worker gets consecutive parts, reads their rows from the
# files, and keeps the features as numbers, together with response, weights and scores. A pass is
# one task per worker: the parameters are sent, and the sums over the parts come back and are added
# in the order of rows. So the result has the same bits for any number of workers, and in memory.
#
# ## What it costs
#
# A worker holds `n (p b + 64) / W` bytes, for `n` rows of `p` features at `b` bytes (8, or 4 with
# `dtype="float32"`) on `W` workers. If this exceeds 60% of its memory limit, an error is raised
# before the features are computed. A pass takes
#
# ```text
# T = n p b / (W r)  +  c + W m  +  8 k (p + 3) n / (65536 v)
#     the features      messages    the sums
# ```
#
# with
#
# - `r`, bytes of features that a worker passes over in a second,
# - `c`, what a round costs however many workers there are, and `m`, what each of them adds: its task
#   at the scheduler, its message there and back,
# - the sums that come back: `k (p + 3)` numbers a part, where `k` learners are fitted side by side,
#   through a network of `v` bytes a second. They do not grow with the workers.
#
# The constants were measured with single-threaded processes on one machine
# (`benchmarks/workers.py`, two learners side by side, as `gbmap` fits both signs). `v` cannot be
# measured on one machine; 1 GB/s is assumed, a network of 10 Gbit/s. The workers share the cores of
# this machine with the scheduler, so `m` contains work that a cluster does in parallel: it is
# rather too large.

# %% tags=["remove-input"]
from pathlib import Path

import numpy as np
import pandas as pd

table = pd.read_csv(Path("../benchmarks/results/workers.csv"))
FEATURES, BYTES, LEARNERS = 20, 8, 2  # of the passes in it
RATE = (table["rows"] * FEATURES * BYTES / (table["memory_ms"] / 1e3)).median()
EACH, ROUND = np.polyfit(table["workers"], table["idle_ms"] / 1e3, 1)
LINK = 1e9
pd.DataFrame(
    {
        "constant": ["r", "c", "m", "v"],
        "value": [RATE / 1e9, 1e3 * ROUND, 1e3 * EACH, LINK / 1e9],
        "unit": ["GB a second and thread", "ms a round", "ms a worker", "GB a second, assumed"],
    }
).round(3)

# %% [markdown]
# The table compares measured passes of `gbmap` with the formula, for two learners and 20 features
# at 8 bytes. `sent` and `answered` are bytes. The formula does not know the number of cores: more
# workers than cores are no faster.

# %% tags=["remove-input"]


def seconds(n, p, W, b=4, k=2):
    """Parts of the time of a pass, a frame."""
    return pd.DataFrame(
        {
            "features": n * p * b / (W * RATE),
            "messages": ROUND + W * EACH,
            "sums": 8 * k * (p + 3) * n / 65536 / LINK,
        }
    )


table["formula_ms"] = 1e3 * seconds(table["rows"], FEATURES, table["workers"], BYTES, LEARNERS).sum(
    axis=1
)
shown = ["rows", "workers", "memory_ms", "pass_ms", "formula_ms", "kernel_ms", "sent", "answered"]
table[shown].round(1)

# %% [markdown]
# ## 10 and 100 machines
#
# The formula for 50 features at 4 bytes and a fit of 200 passes, which is usual for `gbmap` with
# ten boosts. A machine is one worker, as fast as one thread of the measured machine. With eight
# threads it is up to eight times as fast at the features, within its memory bandwidth, at the same
# cost per message. These are predictions; nobody has run them.

# %% tags=["remove-input"]
cases = pd.DataFrame(
    [(n, W) for n in (10**7, 10**8, 10**9) for W in (1, 10, 100)], columns=["rows", "workers"]
)
parts = seconds(cases["rows"], 50, cases["workers"])
cases["GB a worker"] = cases["rows"] * (50 * 4 + 64) / cases["workers"] / 1e9
cases["pass, s"] = parts.sum(axis=1)
cases["of it overhead, %"] = 100 * (1 - parts["features"] / parts.sum(axis=1))
cases["200 passes, min"] = 200 * parts.sum(axis=1) / 60
cases.round(3)

# %% [markdown]
# More workers help as long as one more saves more of the first term than its message costs: up to
#
# ```text
# W = sqrt(n p b / (r m))
# ```
#
# At this number a pass is shortest; with half as many it takes at most a quarter longer. For 50
# features at 4 bytes:

# %% tags=["remove-input"]
best = pd.DataFrame({"rows": [10**6, 10**7, 10**8, 10**9]})
best["workers at most"] = np.sqrt(best["rows"] * 50 * 4 / RATE / EACH).astype(int)
best["workers at most"] = np.minimum(best["workers at most"], -(-best["rows"] // 65536))
best

# %% [markdown]
# ## Choosing
#
# - **At least as many workers as hold the features** in their memory; more only shorten the passes.
# - **One worker per machine, with all its threads**, is better than one per thread: a message
#   serves all threads, and the bits are the same.
# - **Equal machines**: parts are shared evenly, so the slowest machine sets the pace. Processors of
#   several kinds may differ in the last bits; a warning names them.
# - **`dtype="float32"`** halves memory and time.
# - **Passes**: the sum of `fit.log["n_eval"]` for `gbmap`, the printed iterations for `glm`;
#   cross-validation multiplies them by folds and penalties. A `sample=` on one machine settles a
#   formula and its settings sooner.
# - **Files** must have the same path on all workers. The partitions of a Dask frame are computed
#   once per pass over the data (`persist()` keeps them); its rows must come in the same order each
#   time, which is checked.
#
# ## When something fails
#
# - *A worker dies*: Dask gives its parts to others, which read them again from the files and repeat
#   the same computations. The fit continues with the same bits. The others need enough memory.
#   Workers that join later only help with such parts.
# - *Workers die on the same rows repeatedly*, usually for lack of memory: an error explains it.
# - *All workers are gone*: the fit waits 30 seconds for others, then ends in an error.
# - *The scheduler is gone*: an immediate error; the data on the workers are lost.
# - *The session is interrupted*, or its process dies: the workers release their data.
# - *Versions differ* in Python, lodim, NumPy, Numba, llvmlite or distributed: an error before the
#   first pass, with the worker's address.
#
# ## Limits
#
# One process adds the sums and makes the steps of the optimizer: a pass cannot be shorter than its
# messages, and tens of thousands of features make the sums large. This process also holds the
# response, the weights and the positions of all rows, 8 bytes each per row. In `ld.cv` the scores
# of held-out rows come back after each boost of each fold, 8 more bytes per row (and class). The
# constants above are for one machine: between machines a message also takes the network's delay,
# about 0.1 to 0.5 ms within a data centre.
