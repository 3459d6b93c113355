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
# How many workers does a fit on a Dask cluster need, and how long does it take? Check first whether
# you need a cluster. One machine can fit files with a few hundred MB of memory, if its disk has
# room for the features ([data larger than memory](vignettes/big_data)). It processes some GB of
# features per second. `ld.estimate` predicts the size of the features.
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
# Rows are split into parts of 65,536. Each worker gets consecutive parts and reads their rows from
# the files. It keeps the features as numbers in memory, together with response, weights and scores.
#
# A pass over the rows is one task per worker. The task receives the parameters and returns sums
# over the parts of the worker. These sums are always added in the order of the rows. So the result
# has the same bits for any number of workers, and for a fit in memory.
#
# ## What it costs
#
# Each of `W` workers needs `n (p b + 64) / W` bytes of memory for `n` rows of `p` features with `b`
# bytes per number (8, or 4 with `dtype="float32"`). If this exceeds 60% of the memory limit of a
# worker, an error is raised before the features are computed. A pass takes
#
# ```text
# T = n p b / (W r)  +  c + W m  +  8 k (p + 3) n / (65536 v)
#     the features      messages    the sums
# ```
#
# with
#
# - `r`: bytes of features that a worker processes per second,
# - `c`: fixed time per pass,
# - `m`: time that each worker adds to a pass, for its task in the scheduler and its messages,
# - `k`: number of learners fitted at the same time; each part returns `k (p + 3)` sums,
# - `v`: bytes per second of the network. The time for the sums does not depend on the number of
#   workers.
#
# The constants were measured with single-threaded processes on one machine
# (`benchmarks/workers.py`; `k` is 2, because `gbmap` fits both signs at the same time). `v` cannot
# be measured on one machine; 1 GB/s is assumed, as in a network of 10 Gbit/s. The workers share the
# cores of this machine with the scheduler. So `m` contains work that a cluster does in parallel,
# and is probably too large.

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
# of 8 bytes. `sent` is the number of bytes that the client and the scheduler send per pass, and
# `answered` the number of bytes of the returned sums. The formula ignores the number of cores,
# although more workers than cores are not faster.

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
# The table applies the formula to 50 features of 4 bytes and a fit of 200 passes, a usual number
# for `gbmap` with ten boosts. It assumes that each machine is one worker, as fast as one thread of
# the measured machine. With eight threads, a worker processes features up to eight times as fast,
# if its memory bandwidth allows, and messages take the same time. These figures are predictions,
# not measurements.

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
# An additional worker helps if it saves more time for the features than its messages cost. A pass
# is shortest with
#
# ```text
# W = sqrt(n p b / (r m))
# ```
#
# workers. With half as many workers, it takes at most a quarter longer. For 50 features of 4 bytes
# this gives:

# %% tags=["remove-input"]
best = pd.DataFrame({"rows": [10**6, 10**7, 10**8, 10**9]})
best["workers at most"] = np.sqrt(best["rows"] * 50 * 4 / RATE / EACH).astype(int)
best["workers at most"] = np.minimum(best["workers at most"], -(-best["rows"] // 65536))
best

# %% [markdown]
# ## Choosing
#
# - **Number of workers.** Use at least as many workers as are needed to keep the features in their
#   memory. More workers only shorten the passes.
# - **One worker per machine.** Give each worker all threads of its machine. One worker per thread
#   needs more messages, and the result is the same.
# - **Equal machines.** All workers get about the same number of rows, so the slowest machine
#   determines the time. Different types of processors may give different last bits; a warning names
#   them.
# - **Precision.** `dtype="float32"` halves memory and time.
# - **Number of passes.** It is the sum of `fit.log["n_eval"]` for `gbmap`, and the printed number
#   of iterations for `glm`. Cross-validation multiplies it by folds and penalties. To choose a
#   formula and settings faster, use `sample=` on one machine.
# - **Files.** They must have the same path on all workers.
# - **Dask frames.** Their partitions are computed once per pass over the data (`persist()` keeps
#   them in memory). Rows must be in the same order each time; lodim checks this.
#
# ## When something fails
#
# - *A worker dies.* Dask gives its parts to other workers, which read the rows again and repeat the
#   computations. The fit continues, and its result has the same bits. The other workers need enough
#   memory. Workers that join during a fit only get parts of workers that died.
# - *Workers die repeatedly on the same rows*, usually for lack of memory. An error explains this.
# - *All workers are gone.* The fit waits 30 seconds for new workers, and then raises an error.
# - *The scheduler is gone.* An error is raised immediately, and the data on the workers are lost.
# - *Your session is interrupted*, or its process dies. The workers release their data.
# - *Versions of Python, lodim, NumPy, Numba, llvmlite or distributed differ.* An error with the
#   address of the worker is raised before the first pass.
#
# ## Limits
#
# - One process adds up the sums and runs the optimizer. So a pass cannot be shorter than its
#   messages, and with tens of thousands of features the sums are large.
# - This process also keeps the response, the weight and the position of every row in memory, 24
#   bytes per row.
# - In `ld.cv` it receives the scores of held-out rows after each boost of each fold, 8 more bytes
#   per row and class.
# - The constants above were measured on one machine. Between machines, each message also takes the
#   delay of the network, about 0.1 to 0.5 ms within a data centre.
