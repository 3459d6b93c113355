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
# # Data larger than memory
#
# How do I fit data that are larger than memory? Give a path or pattern of Parquet, CSV or Arrow
# files as `data=`. The result is the same as for a data frame, to the last bit. [Many
# rows](../big_data) lists the kinds of data, and what lodim does with them.
#
# ## A set of files
#
# lodim does not include a large data set, so we generate one. It has each car of `autompg` 256
# times, with random changes of about 3% in the measurements. There is one Parquet file per model
# year. These are 101,888 rows, but they contain no more information than the 398 cars.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

kept = tempfile.TemporaryDirectory()
folder = Path(kept.name)
rng = np.random.default_rng(0)
measured = ["displacement", "horsepower", "weight", "acceleration", "mpg"]
for year, cars in ld.data("autompg").groupby("model_year"):
    rows = cars.loc[cars.index.repeat(256)].reset_index(drop=True)
    rows[measured] *= rng.normal(1, 0.03, (len(rows), len(measured)))
    rows.to_parquet(folder / f"cars-19{year}.parquet")
[path.name for path in sorted(folder.iterdir())]

# %% [markdown]
# ## The same call

# %%
pattern = f"{folder}/cars-*.parquet"
fit = ld.gbmap("mpg ~ .", data=pattern, m=3, lambda_=0.01)
fit

# %% [markdown]
# lodim reads the files in the order of their names. A data frame with the same rows gives the same
# fit: `save` writes the same bytes.

# %%
frame = pd.concat(map(pd.read_parquet, sorted(folder.iterdir())), ignore_index=True)
in_memory = ld.gbmap("mpg ~ .", data=frame, m=3, lambda_=0.01)
on_disk = ld.gbmap("mpg ~ .", data=pattern, m=3, lambda_=0.01, control={"scratch": folder})
for name, one in {"files": fit, "memory": in_memory, "disk": on_disk}.items():
    one.save(folder / f"{name}.lodim")
saved = {(folder / f"{name}.lodim").read_bytes() for name in ("files", "memory", "disk")}
len(saved)

# %% [markdown]
# ## Levels and gaps
#
# A level may occur only in the last file, and values may be missing in some files. Here horsepower
# has missing values in five of the thirteen years. If some files have integers and others decimals,
# the column is numeric.

# %%
frame["horsepower"].isna().groupby(frame["model_year"]).sum().loc[lambda gaps: gaps > 0]

# %% [markdown]
# Weights, offset and clusters are given as names of columns.

# %%
line = ld.glm("mpg ~ bs(weight, df=4) + horsepower + origin", data=pattern)
line

# %% [markdown]
# Standard errors assume independent rows. Our rows contain 256 copies of each car, so here the
# standard errors are about 16 times too small (the square root of 256).
#
# ## How much memory will a fit need?
#
# `ld.estimate` predicts how much memory and disk space a call needs, and how often the call reads
# the data.

# %%
ld.estimate(ld.gbmap, "mpg ~ .", pattern, m=3, lambda_=0.01)

# %% [markdown]
# ## A sample
#
# A part of the rows is often enough to explore a formula or to choose a model. `sample=` selects
# random rows, and the same rows for the same `seed`. With very many rows, `ripr` and `melm` need a
# sample.

# %%
ld.ripr("mpg ~ .", data=pattern, sample=2000)

# %% [markdown]
# ## Cross-validation
#
# With files, each fold of `ld.cv` consists of whole blocks of 4,096 consecutive rows. Consecutive
# rows are often similar, as here, where they are from the same year. So the held-out loss is higher
# than with folds of single rows, and often more realistic.

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=pattern, m=3, grid={"lambda_": [0.001, 0.1, 10]}, folds=5)
cv

# %% [markdown]
# ## Predictions
#
# With `output=`, `predict` writes the predictions to a file, chunk by chunk. `augment` also writes
# the columns of the data, and `evaluate` computes the loss.

# %%
predicted = fit.predict(pattern, output=folder / "predicted.parquet")
same = (pd.read_parquet(predicted).iloc[:, 0].to_numpy() == fit.predict(frame).to_numpy()).all()
same

# %%
fit.evaluate(pattern)

# %% [markdown]
# On the command line, put the pattern in quotes, so that it is one argument:

# %%
command = ["lodim", "glm", "mpg ~ weight + origin", pattern, "--predict", pattern]
command += ["--output", str(folder / "answers.parquet")]
done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# ## A cluster
#
# With a Dask client, the workers read the files and keep the features in their memory. Here the two
# workers are threads of this process. `LocalCluster(n_workers=2)` would start processes, and
# `Client("address:8786")` connects to machines that can read the same files.

# %%
from dask.distributed import Client, LocalCluster

with (
    LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as two,
    Client(two) as client,
):
    spread = ld.gbmap("mpg ~ .", data=pattern, m=3, lambda_=0.01, client=client)
spread.save(folder / "workers.lodim")
saved.add((folder / "workers.lodim").read_bytes())
len(saved)

# %% [markdown]
# All four saved files are equal, because sums are always added in the same order, whichever worker
# computes them. [Sizing a cluster](../cluster) has the times, and says what happens if a worker
# fails.
#
# ## Errors
#
# If the columns of the files differ, lodim raises an error before it computes anything:

# %%
broken = frame.head(100).assign(origin=1.5)
broken.to_parquet(folder / "cars-1977b.parquet")
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# A truncated file also raises an error:

# %%
whole = (folder / "cars-1977.parquet").read_bytes()
(folder / "cars-1977b.parquet").write_bytes(whole[: len(whole) // 2])
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# A level that the training rows did not have raises an error, too:

# %%
(folder / "cars-1977b.parquet").unlink()
frame.head(10).assign(origin="Sweden").to_parquet(folder / "new-1983.parquet")
try:
    fit.predict(f"{folder}/new-*.parquet")
except ld.DataError as error:
    print(error)

# %% [markdown]
# lodim also raises an error if a file changes during a fit, a folder has no data files, or the disk
# has no room for the scratch file. Each message names the file or folder.

# %%
kept.cleanup()
