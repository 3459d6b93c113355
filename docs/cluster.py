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
# What a fit takes on a Dask cluster, what that costs, and how many workers are worth having. First:
# whether one is needed at all. A fit from files needs a disk that holds the features and some
# hundred MB of memory ([data larger than memory](vignettes/big_data)), and one machine passes over
# some GB of features a second. `ld.estimate` says how large they are.
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
# Rows are cut into parts of 65,536. Each worker gets parts that follow each other, reads their rows
# from the files, and keeps the features as numbers, with the response, the weights and the scores
# beside them. A pass is one task a worker: the parameters go out, the sums over its parts come
# back, and are added in the order of rows. So the answer has the same bits on any number of
# workers, and in memory.
#
# ## What it costs
#
# A worker holds `n (p b + 64) / W` bytes, for `n` rows of `p` features at `b` bytes (8, or 4 by
# `dtype="float32"`) on `W` workers. That may be 60 % of its limit; where it is more, an error says
# so before the features are made. A pass takes
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
# The constants were measured with processes of one thread on one machine (`benchmarks/workers.py`,
# two learners side by side, as `gbmap` fits both signs); `v`, which one machine cannot tell, is
# taken to be 1 GB/s, of a network of 10 Gbit/s. The workers of one machine share its cores with the
# scheduler, so that `m` has their own work in it, which on a cluster is done side by side: it is
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
# Measured passes of `gbmap`, for two learners and 20 features at 8 bytes, beside the formula: `sent`
# and `answered` are bytes. More workers than the machine has cores cannot be faster, and the
# formula does not know of cores.

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
# By the formula, for 50 features at 4 bytes and a fit of 200 passes, which is usual for `gbmap` with
# ten boosts. A machine is one worker here, as fast as one thread of ours: one with eight threads is
# up to eight times as fast at the features, as far as its memory's bandwidth goes, and costs the
# same message. Nobody has run these: they are what the constants come to.

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
# Workers pay as long as what one more saves of the first term is more than its message: up to
#
# ```text
# W = sqrt(n p b / (r m))
# ```
#
# where a pass is as short as it gets; half as many take at most a quarter longer. Here, for 50 features at 4
# bytes:

# %% tags=["remove-input"]
best = pd.DataFrame({"rows": [10**6, 10**7, 10**8, 10**9]})
best["workers at most"] = np.sqrt(best["rows"] * 50 * 4 / RATE / EACH).astype(int)
best["workers at most"] = np.minimum(best["workers at most"], -(-best["rows"] // 65536))
best

# %% [markdown]
# ## Choosing
#
# - **As many workers as hold the features**, by the memory of each, is the least; more only
#   make passes shorter.
# - **One worker a machine, with all its threads**, is better than one for each thread: a message
#   serves all of them, and the bits are the same.
# - **Equal machines**: the slowest one sets the pace, as parts are shared evenly. Processors of
#   several kinds may differ in the last bits; a warning names them.
# - **`dtype="float32"`** halves memory and time.
# - **Passes**: the sum of `fit.log["n_eval"]` of `gbmap`, the printed iterations of `glm`;
#   cross-validation multiplies them by folds and penalties. A `sample=` on one machine settles a
#   formula and its settings sooner.
# - **Files** must be at the same path on all workers, or a Dask frame brings its own. Of a Dask
#   frame the partitions are computed once for each pass over the data (`persist()` keeps them); its
#   rows must come in the same order each time, which is looked at.
#
# ## When something fails
#
# - *A worker dies*: Dask gives its parts to others, which read them again from the files and make
#   what stood beside them by the same pure tasks; the fit goes on to the same bits. The others need
#   the memory for it. Workers that join later help with such parts alone.
# - *Workers die over the same rows again and again*, as they do where memory is short: an error says
#   so.
# - *All workers are gone*: the fit waits 30 seconds for others, then ends in an error.
# - *The scheduler is gone*: an error at once; what the workers held goes with them.
# - *The session is interrupted*, or its process dies: the workers forget what they held.
# - *Versions differ* in Python, lodim, NumPy, Numba, llvmlite or distributed: refused before the
#   first pass, with the worker's address.
#
# ## Limits
#
# Sums come back to one process, which adds them, and steps of the optimizer are made there: a
# pass cannot be shorter than its messages, and features by the ten thousand make the sums large.
# The response, the weights and the places of all rows are in the memory of that process too, 8
# bytes each a row, and in `ld.cv` the scores of the held-out rows come back after each boost of
# each fold, 8 bytes a row (and class) more. Constants above are of one machine: between machines
# a message takes longer by the network's delay, some 0.1 to 0.5 ms in one hall, which all workers
# wait for side by side.
