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
# How fast are the models, compared with other packages? Each table is read from a file in
# `benchmarks/results/`. The text names the program that measured it, and the first table describes
# the machine. Times on shared machines vary by 20% and more, so ratios to another package in the
# same run are more reliable than times.

# %% tags=["remove-input"]
from pathlib import Path

import pandas as pd

results = Path("../benchmarks/results")
print((results / "speed.txt").read_text())

# %% [markdown]
# ## gbmap, compared with the authors' code
#
# `benchmarks/speed.py` fits two boosts to the synthetic classes of the paper (Eq. 13), with
# compiled kernels. `fit_products` is the time of the fit divided by the time of one NumPy product
# `X @ w` in the same run. `authors_loss` is the mean training loss of the authors' code.

# %% tags=["remove-input"]
table = pd.read_csv(results / "speed.csv")
columns = ["case", "design_s", "fit_s", "fit_products", "loss", "authors_loss", "xgboost_s"]
table[columns].round(4).astype(object).fillna("")

# %% [markdown]
# ## Default calls of the shipped data
#
# `benchmarks/calls.py` measures whole calls with default settings, from the import to the printed
# summary, including the choice of settings by cross-validation. All times are in seconds.
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
# times are for one evaluation of the divergence with its gradient; `ratio_17` is for the search
# from 17 starts.

# %% tags=["remove-input"]
table = pd.read_csv(results / "melm_speed.csv")
table[["data", "n", "p", "numpy_ms", "lodim_ms", "ratio", "ratio_17"]].round(3)

# %% [markdown]
# ## costnet, compared with CVXPY, adelie, skglm and scikit-learn
#
# `benchmarks/costnet_path.py` times paths of 100 penalties with one thread.

# %% tags=["remove-input"]
table = pd.read_csv(results / "costnet_path.csv")
table[["case", "loss", "ms", "cvxpy_ms", "ratio", "peer", "peer_ms"]].astype(object).fillna("")

# %% [markdown]
# ## ripr, compared with SciPy's trees
#
# `benchmarks/ripr.py losses` computes the losses of all views of at most two or three features,
# with lodim and with multithreaded searches by `scipy.spatial.cKDTree`.

# %% tags=["remove-input"]
print((results / "ripr_losses.txt").read_text())

# %% [markdown]
# ## proset, compared with its author's package
#
# `benchmarks/prototypes.py` measures the seconds of one fit with the author's default penalties.

# %% tags=["remove-input"]
table = pd.read_csv(results / "proset.csv")
table.pivot_table(index=["data", "batches"], columns="by", values="fit_s", sort=False).round(3)

# %% [markdown]
# ## Data larger than memory
#
# `benchmarks/out_of_core.py` uses a Parquet data set of incompressible noise. There are three
# tables:
#
# 1. Passes of `gbmap` over a scratch file of the given size (GiB). `cold_ratio` is for a pass that
#    reads from the disk, relative to the speed of the disk. `warm_ratio` is for a pass that reads
#    from the page cache, relative to a pass in memory.
# 2. Whole fits: peak memory of the process (`anon_mib`), its memory before the fit (`base_mib`),
#    and seconds by stage.
# 3. `equal` is true if `save()` writes the same bytes as for a fit in memory.

# %% tags=["remove-input"]
table = pd.read_csv(results / "out_of_core.csv").set_index(["what", "model"])
columns = ["gib", "rows", "direct_s", "cold_s", "memory_s", "warm_s", "cold_ratio", "warm_ratio"]
table.loc[["pass"], columns].round(3)

# %% tags=["remove-input"]
columns = ["gib", "rows", "anon_mib", "base_mib", "scan_s", "moments_s", "write_s", "fit_s"]
table.loc[["fit"], columns].round(1)

# %% tags=["remove-input"]
table.loc[["bytes"], ["rows", "equal"]]

# %% [markdown]
# ## The first call
#
# lodim compiles each kernel at its first use, which takes seconds, and keeps the compiled code.
# `python -m lodim warm` compiles all kernels, for example when you build a container image.
