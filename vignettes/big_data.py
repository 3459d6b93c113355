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
# How do I fit data that do not fit into memory? `data=` also accepts a path or pattern of Parquet,
# CSV or Arrow files, a `Dataset` of pyarrow, a `LazyFrame` of polars, or a `DataFrame` of Dask. The
# call is the same, and so is the result, to the last bit. (`pip install "lodim[arrow]"`, and
# `"lodim[dask]"` for clusters.)
#
# ## A set of files
#
# No large data set comes with lodim, so we make one: each car of `autompg` 256 times, with
# measurements changed at random by about 3%, in one Parquet file per model year. These are 101,888
# rows of 398 cars. They show how files work, but contain no more information than 398 cars.

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
# The files were read two or three times, 65,536 rows at a time: first for what the formula learns
# from all rows (levels, means, scales, imputed values), then for the features, as numbers. Features
# stay in memory if they take at most half of what is free, and otherwise go to a scratch file,
# which is deleted at the end of the fit. `control={"scratch": folder}` names a folder on a fast
# disk, and always uses it.
#
# The order of the rows is that of the sorted file names. A frame of these rows gives the same fit:
# what `save` writes is equal byte by byte.

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
# A level may occur only in the last file, and a column may be missing in some files: horsepower is
# unknown in five of the thirteen years. The types of columns are determined over all files:
# integers and decimals together are numbers.

# %%
frame["horsepower"].isna().groupby(frame["model_year"]).sum().loc[lambda gaps: gaps > 0]

# %% [markdown]
# Weights, offset and clusters are names of columns. Splines have their knots at quantiles of all
# rows, or of a random million if there are more; the summary says which.

# %%
line = ld.glm("mpg ~ bs(weight, df=4) + horsepower + origin", data=pattern)
line

# %% [markdown]
# Standard errors assume independent rows. Our rows are copies, so here they are about sixteen times
# too small: many rows need not be much information.
#
# ## What will it need?
#
# `estimate` looks at some rows and predicts what a call needs.

# %%
ld.estimate(ld.gbmap, "mpg ~ .", pattern, m=3, lambda_=0.01)

# %% [markdown]
# ## A sample
#
# Often a part of the rows is enough to explore a formula or to choose a model. `sample=` draws rows
# at random, the same ones for the same `seed`. With many rows it is necessary for `ripr` and
# `melm`, which compare all rows with each other.

# %%
ld.ripr("mpg ~ .", data=pattern, sample=2000)

# %% [markdown]
# ## Cross-validation
#
# With files, whole blocks of 4,096 rows are assigned to folds, so that no row is copied. If
# neighbouring rows are related, as years here, this is a harder test than single rows, and often a
# more honest one. Here it also keeps copies of one car together.

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=pattern, m=3, grid={"lambda_": [0.001, 0.1, 10]}, folds=5)
cv

# %% [markdown]
# ## Predictions
#
# With `output=` predictions are written chunk by chunk; the file appears once it is complete.
# `augment` adds them to the columns of the data, and `evaluate` sums the losses.

# %%
predicted = fit.predict(pattern, output=folder / "predicted.parquet")
same = (pd.read_parquet(predicted).iloc[:, 0].to_numpy() == fit.predict(frame).to_numpy()).all()
same

# %%
fit.evaluate(pattern)

# %% [markdown]
# On the command line, a pattern in quotes is one argument:

# %%
command = ["lodim", "glm", "mpg ~ weight + origin", pattern, "--predict", pattern]
command += ["--output", str(folder / "answers.parquet")]
done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# ## A cluster
#
# With a Dask client, the workers read the files, keep the features, and return sums for each pass.
# Here the two workers are threads of this process; `LocalCluster(n_workers=2)` would start
# processes, and `Client("address:8786")` connects to machines that see the same files.

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
# A single file once more: sums are added in a fixed order, whichever worker computed them. [Sizing
# a cluster](../cluster) describes the cost of passes, messages and failures.
#
# ## What goes wrong
#
# Files with different columns are found before anything is computed.

# %%
broken = frame.head(100).assign(origin=1.5)
broken.to_parquet(folder / "cars-1977b.parquet")
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# So is a truncated file,

# %%
whole = (folder / "cars-1977.parquet").read_bytes()
(folder / "cars-1977b.parquet").write_bytes(whole[: len(whole) // 2])
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# and a level without a training row.

# %%
(folder / "cars-1977b.parquet").unlink()
frame.head(10).assign(origin="Sweden").to_parquet(folder / "new-1983.parquet")
try:
    fit.predict(f"{folder}/new-*.parquet")
except ld.DataError as error:
    print(error)

# %% [markdown]
# A file that changes during a fit, a folder without files, or a disk without room for the scratch
# file: each is an error that names the file or folder, and leaves nothing behind.

# %%
kept.cleanup()
