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
# How fast are the models, compared with other packages? Each table is a file in
# `benchmarks/results/`, measured by the named script on the named machine. Times on shared machines
# vary by 20% and more, so the ratio to another package in the same run is more reliable.

# %% tags=["remove-input"]
from pathlib import Path

import pandas as pd

results = Path("../benchmarks/results")
print((results / "speed.txt").read_text())

# %% [markdown]
# ## gbmap, compared with the authors' code
#
# `benchmarks/speed.py`: synthetic classes of the paper (Eq. 13), two boosts, warm kernels.
# `fit_products` is the time of the fit in units of one NumPy product `X @ w` in the same run;
# `authors_loss`, `authors_evals`: mean training loss and evaluations of the authors' code.

# %% tags=["remove-input"]
table = pd.read_csv(results / "speed.csv")
columns = ["case", "design_s", "fit_s", "fit_products", "loss", "authors_loss", "xgboost_s"]
table[columns].round(4).astype(object).fillna("")

# %% [markdown]
# ## Default calls of the shipped data
#
# `benchmarks/calls.py`, in seconds: `cold` is the first call on a new machine, from the import to
# the printed summary, with all kernels that it needs compiled (processor time of all processes;
# `cold_elapsed` by the clock, `cold_compilers` in units of a process that compiles one small
# kernel); `warm_elapsed` the same call again, the choice
# by cross-validation included, by the clock; `warm_peers` its processor time in units of ten-fold
# cross-validation of scikit-learn's boosted trees of three sizes.

# %% tags=["remove-input"]
table = pd.read_csv(results / "calls.csv")
columns = ["model", "data", "cold", "cold_elapsed", "cold_compilers"]
columns += ["warm", "warm_elapsed", "warm_peers"]
table[columns].round(2)

# %% [markdown]
# ## melm, compared with NumPy
#
# `benchmarks/melm.py`: one value with gradient, and the search from 17 starts, compared with a
# straightforward NumPy program for the formulas of the paper.

# %% tags=["remove-input"]
table = pd.read_csv(results / "melm_speed.csv")
table[["data", "n", "p", "numpy_ms", "lodim_ms", "ratio", "ratio_17"]].round(3)

# %% [markdown]
# ## costnet, compared with CVXPY, adelie, skglm and scikit-learn
#
# `benchmarks/costnet_path.py`: paths of 100 penalties, one thread.

# %% tags=["remove-input"]
table = pd.read_csv(results / "costnet_path.csv")
table[["case", "loss", "ms", "cvxpy_ms", "ratio", "peer", "peer_ms"]].astype(object).fillna("")

# %% [markdown]
# ## ripr, compared with SciPy's trees
#
# `benchmarks/ripr.py losses`: losses of all views of at most two or three features, compared with
# `scipy.spatial.cKDTree` with threads.

# %% tags=["remove-input"]
print((results / "ripr_losses.txt").read_text())

# %% [markdown]
# ## proset, compared with its author's package
#
# `benchmarks/prototypes.py`: seconds of one fit, at the author's default penalties.

# %% tags=["remove-input"]
table = pd.read_csv(results / "proset.csv")
table.pivot_table(index=["data", "batches"], columns="by", values="fit_s", sort=False).round(3)

# %% [markdown]
# ## Data larger than memory
#
# `benchmarks/out_of_core.py`: a Parquet data set of incompressible noise. The first table has
# passes of `gbmap` over a scratch file of the given size (GiB), first read from the disk, then from
# the page cache, relative to the speed of the disk (`cold_ratio`) and to a pass in memory
# (`warm_ratio`). The second has whole fits: peak memory of the process (`anon_mib`, of which
# `base_mib` before the fit), seconds by stage, and whether `save()` writes the same bytes as in
# memory.

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
# Kernels are compiled at their first use, which takes seconds once, and kept. `python -m lodim
# warm` compiles all of them, for example when an image is built.
