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
# # Speed
#
# How fast are the models, compared with other packages? The program named above each table measured
# its times. Times on shared machines vary by 20% and more, so the ratio to another package in the
# same run is more reliable than the time itself. The first table describes the machine.

# %% tags=["remove-input"]
from pathlib import Path

import pandas as pd

results = Path("../benchmarks/results")
print((results / "speed.txt").read_text())

# %% [markdown]
# ## gbmap, compared with the authors' code
#
# `benchmarks/speed.py` fits `gbmap` with two boosts to the synthetic classes of the paper (Eq. 13).
# The kernels are already compiled. `fit_products` is the time of the fit divided by the time of one
# NumPy product `X @ w` in the same run. `authors_loss` is the mean training loss of the authors'
# code.

# %% tags=["remove-input"]
table = pd.read_csv(results / "speed.csv")
columns = ["case", "design_s", "fit_s", "fit_products", "loss", "authors_loss", "xgboost_s"]
table[columns].round(4).astype(object).fillna("")

# %% [markdown]
# ## Default calls of the shipped data
#
# `benchmarks/calls.py` measures whole calls with default settings, from the import to the printed
# summary. The time includes the choice of settings by cross-validation. All times are in seconds.
#
# | column | meaning |
# |---|---|
# | `cold` | processor time of the first call on a new machine, which compiles the kernels |
# | `cold_elapsed` | elapsed time of the first call |
# | `cold_compilers` | `cold`, divided by the time of a process that compiles one small kernel |
# | `warm`, `warm_elapsed` | processor time and elapsed time of the same call again |
# | `warm_peers` | `warm`, divided by the time of a ten-fold cross-validation of scikit-learn's boosted trees in three sizes |

# %% tags=["remove-input"]
table = pd.read_csv(results / "calls.csv")
columns = ["model", "data", "cold", "cold_elapsed", "cold_compilers"]
columns += ["warm", "warm_elapsed", "warm_peers"]
table[columns].round(2)

# %% [markdown]
# ## melm, compared with NumPy
#
# `benchmarks/melm.py` compares lodim with a simple NumPy program for the formulas of the paper. The
# times are for one evaluation of the divergence with its gradient. `ratio` is NumPy's time divided
# by lodim's, and `ratio_17` is the same for a whole search from 17 starts.

# %% tags=["remove-input"]
table = pd.read_csv(results / "melm_speed.csv")
table[["data", "n", "p", "numpy_ms", "lodim_ms", "ratio", "ratio_17"]].round(3)

# %% [markdown]
# ## costnet, compared with CVXPY, adelie, skglm and scikit-learn
#
# `benchmarks/costnet_path.py` measures the time of 100 penalties with one thread. `ratio` is the
# time of CVXPY divided by the time of lodim, so lodim is faster if the ratio is above 1. `peer` is
# another package that solves the same problem.

# %% tags=["remove-input"]
table = pd.read_csv(results / "costnet_path.csv")
table[["case", "loss", "ms", "cvxpy_ms", "ratio", "peer", "peer_ms"]].astype(object).fillna("")

# %% [markdown]
# ## ripr, compared with SciPy's trees
#
# `benchmarks/ripr.py losses` computes the losses of all views of at most two or three features. The
# table compares lodim with multithreaded nearest-neighbour searches by `scipy.spatial.cKDTree`.

# %% tags=["remove-input"]
print((results / "ripr_losses.txt").read_text())

# %% [markdown]
# ## proset, compared with its author's package
#
# `benchmarks/prototypes.py` fits both packages with the author's default penalties. The table has
# the seconds of one fit.

# %% tags=["remove-input"]
table = pd.read_csv(results / "proset.csv")
table.pivot_table(index=["data", "batches"], columns="by", values="fit_s", sort=False).round(3)

# %% [markdown]
# ## Data larger than memory
#
# `benchmarks/out_of_core.py` fits files of random numbers that do not fit into memory. There are
# three tables:
#
# 1. One pass of `gbmap` over a scratch file of the given size (GiB). `cold_ratio` is the time of a
#    pass from the disk, divided by the time to read the file. `warm_ratio` is the time of a pass
#    from the page cache, divided by that of a pass in memory.
# 2. Whole fits: peak memory of the process (`anon_mib`), its memory before the fit (`base_mib`),
#    and the seconds of each stage.
# 3. Whether `save()` writes the same bytes as for a fit in memory (`equal`).

# %% tags=["remove-input"]
table = pd.read_csv(results / "out_of_core.csv").set_index(["what", "model"])
columns = ["gib", "rows", "direct_s", "cold_s", "memory_s", "warm_s", "cold_ratio", "warm_ratio"]
table.loc[["pass"], columns].round(3)

# %% tags=["remove-input"]
columns = ["gib", "rows", "anon_mib", "base_mib", "scan_s", "moments_s", "write_s", "fit_s"]
table.loc[["fit"], columns].round(1)

# %% tags=["remove-input"]
table.loc[["bytes"], ["rows", "equal"]]
