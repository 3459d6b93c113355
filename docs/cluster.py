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
# How many workers does a fit on a Dask cluster need, and how long does the fit take? Check first
# whether you need a cluster. A few hundred MB of memory are enough for files of any size, if the
# disk has room for the features: see [data larger than memory](vignettes/big_data). `ld.estimate`
# predicts the size of the features.
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
# lodim splits the rows into parts of 65,536. Each worker reads consecutive parts from the files,
# and keeps the features of its rows in memory, together with response, weights and scores.
#
# A *pass* computes sums over all rows, for example a loss and its gradient. In each pass, every
# worker gets one task with the current parameters, and returns the sums of its parts. The client
# adds these sums in the order of the rows. So the result has the same bits for any number of
# workers.
#
# ## What it costs
#
# *Memory.* Each of `W` workers needs `n (p b + 64) / W` bytes for `n` rows of `p` features with `b`
# bytes per number. `b` is 8, or 4 with `dtype="float32"`. If this exceeds 60% of the memory limit
# of a worker, lodim raises an error before it computes the features.
#
# *Time.* One pass takes
#
# ```text
# T = n p b / (W r)  +  c + W m  +  8 k (p + 3) n / (65536 v)
#     the features      messages    the sums
# ```
#
# with these constants:
#
# - `r`: bytes of features that a worker processes per second.
# - `c`: fixed time per pass.
# - `m`: time that each worker adds to a pass, for its task and its messages.
# - `k`: number of learners fitted at the same time. Each chunk of 65,536 rows returns `k (p + 3)`
#   sums.
# - `v`: bytes per second of the network.
#
# `benchmarks/workers.py` measured `r`, `c` and `m` with single-threaded processes on one machine.
# `k` is 2, because `gbmap` fits both signs of a learner at the same time. The table assumes that
# `v` is 1 GB/s. All processes shared the cores of this machine, so `m` is probably smaller on a
# cluster.

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
        "unit": [
            "GB per second and thread",
            "ms per pass",
            "ms per worker",
            "GB per second, assumed",
        ],
    }
).round(3)

# %% [markdown]
# The table is for passes of `gbmap` with two learners and 20 features of 8 bytes. A pass reads all
# rows once. `pass_ms` is its measured time on the workers, and `kernel_ms` the part of it in which
# the slowest worker computes. `memory_ms` is the time of a pass on one thread without workers.
# `formula_ms` is the time that the formula above predicts. `sent` and `answered` are the bytes sent
# and returned per pass.

# %% tags=["remove-input"]


def seconds(n, p, W, b=4, k=2):
    """Return the parts of the time of a pass as a frame."""
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
# How long would a fit take on more machines? The table applies the formula to 50 features of 4
# bytes and 200 passes, a usual number for `gbmap` with ten boosts. Each machine is one worker, as
# fast as one thread of the measured machine. These figures are predictions, not measurements.

# %% tags=["remove-input"]
cases = pd.DataFrame(
    [(n, W) for n in (10**7, 10**8, 10**9) for W in (1, 10, 100)], columns=["rows", "workers"]
)
parts = seconds(cases["rows"], 50, cases["workers"])
cases["GB per worker"] = cases["rows"] * (50 * 4 + 64) / cases["workers"] / 1e9
cases["pass, s"] = parts.sum(axis=1)
cases["overhead, %"] = 100 * (1 - parts["features"] / parts.sum(axis=1))
cases["200 passes, min"] = 200 * parts.sum(axis=1) / 60
cases.round(3)

# %% [markdown]
# With more workers, each has fewer rows, but there are more messages. A pass is
# shortest with the following number of workers:
#
# ```text
# W = sqrt(n p b / (r m))
# ```
#
# With half of this number of workers, a pass takes at most a quarter longer. For 50 features of 4
# bytes the formula gives:

# %% tags=["remove-input"]
best = pd.DataFrame({"rows": [10**6, 10**7, 10**8, 10**9]})
best["largest useful number of workers"] = np.sqrt(best["rows"] * 50 * 4 / RATE / EACH).astype(int)
best["largest useful number of workers"] = np.minimum(
    best["largest useful number of workers"], -(-best["rows"] // 65536)
)
best

# %% [markdown]
# ## Choosing
#
# - **Number of workers.** Use enough workers to keep the features in their memory. Further workers
#   only make the passes shorter.
# - **One worker per machine.** Give each worker all threads of its machine, because more workers
#   send more messages.
# - **Equal machines.** All workers get about the same number of rows, so the slowest machine
#   determines the time. Different types of processors may give different last bits; a warning names
#   these workers.
# - **Precision.** `dtype="float32"` halves memory and time.
# - **Number of passes.** For `gbmap` this is the sum of `fit.log["n_eval"]`, for `glm` the printed
#   number of iterations. Cross-validation multiplies it by folds and penalties. Choose a formula
#   and settings with `sample=` on one machine.
# - **Files.** The files must have the same path on all workers.
# - **Dask frames.** Dask computes the partitions once per pass over the data, unless `persist()`
#   keeps them in memory. Rows must be in the same order each time; lodim checks the order.
#
# ## When something fails
#
# - *A worker dies.* Dask gives its parts to other workers, which read the rows again. The result
#   has the same bits.
# - *Workers die repeatedly on the same rows*, usually because memory is short. lodim raises an
#   error that explains this.
# - *All workers are gone.* The fit waits 30 seconds for new workers, and then raises an error.
# - *The scheduler is gone.* lodim raises an error immediately. The data on the workers are lost.
# - *Your session is interrupted*, or its process dies. The workers release their data.
# - *Versions of Python, lodim, NumPy, Numba, llvmlite or distributed differ.* lodim raises an error
#   before the first pass, with the address of the worker.
#
# ## Limits
#
# - One process adds up the sums and runs the optimizer. With tens of thousands of features the sums
#   are large.
# - This process also keeps the response, the weight and the position of every row in memory: 24
#   bytes per row. In `ld.cv`, held-out rows need 8 more bytes per row and class.
# - Between machines, each message also takes the delay of the network, about 0.1 to 0.5 ms within a
#   data centre.
