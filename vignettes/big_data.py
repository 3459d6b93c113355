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
# `data=` takes what is not in memory as well: a path or a pattern of Parquet, CSV or Arrow files, a
# `Dataset` of pyarrow, a `LazyFrame` of polars, a `DataFrame` of Dask. The line is the same, and so
# is the answer, to the last bit. (`pip install "lodim[arrow]"`, and `"lodim[dask]"` for clusters.)
#
# ## A set of files
#
# Nothing large comes with lodim, so we make something: each car of `autompg` 256 times, its
# measurements off by some 3 %, in one Parquet file for each model year. That is 101,888 rows of 398
# cars: good to show what happens to files, and no good for learning about cars, of which there are
# not more than before.

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
# ## The same line

# %%
pattern = f"{folder}/cars-*.parquet"
fit = ld.gbmap("mpg ~ .", data=pattern, m=3, lambda_=0.01)
fit

# %% [markdown]
# The files were read twice or three times, a part of 65,536 rows at a time: what the formula learns
# of all rows (levels, means and scales, what fills gaps), then the features, as numbers. These are
# kept in memory if they take no more than half of what is free, else in a scratch file, which has
# no name and is gone when the fit is made. `control={"scratch": folder}` names its folder, a fast
# disk with room, and takes it in any case.
#
# Rows follow each other in the order of the sorted names of files. The frame of these rows gives
# the same fit: what `save` writes is equal byte by byte.

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
# A level may come up in the last file only, and a column may be missing in some of them: horsepower
# is unknown in five of the thirteen years. Which types the columns have is settled over all files:
# whole numbers beside numbers with decimals are numbers.

# %%
frame["horsepower"].isna().groupby(frame["model_year"]).sum().loc[lambda gaps: gaps > 0]

# %% [markdown]
# Weights, an offset and clusters are named as columns, as ever. Splines put their knots at
# quantiles of all rows, up to a million of them, and of a random million beyond; the summary says
# so.

# %%
line = ld.glm("mpg ~ bs(weight, df=4) + horsepower + origin", data=pattern)
line

# %% [markdown]
# Standard errors are those of independent rows. Ours are copies, so here they are some sixteen
# times too small: many rows are not much information.
#
# ## What will it need?
#
# `estimate` looks at some rows and says what a call takes, before it is made.

# %%
ld.estimate(ld.gbmap, "mpg ~ .", pattern, m=3, lambda_=0.01)

# %% [markdown]
# ## A sample
#
# Often some of the rows are enough, to look at a formula or to choose a model; `sample=` draws them
# at random, the same ones for the same `seed`. Models that compare all rows with each other need
# it where there are many: `ripr`, `melm`.

# %%
ld.ripr("mpg ~ .", data=pattern, sample=2000)

# %% [markdown]
# ## Cross-validation
#
# Of files, whole blocks of 4,096 rows go to a fold, so that no row is copied; the print says it.
# Where rows that follow each other belong together, as years do here, that is a harder test than
# single rows would be, and often an honester one; here even copies of one car stay together.

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=pattern, m=3, grid={"lambda_": [0.001, 0.1, 10]}, folds=5)
cv

# %% [markdown]
# ## Predictions
#
# With `output=` predictions are written as they are made, into a file that is there once it is
# whole. `augment` does the same with the columns beside them; `evaluate` adds up.

# %%
predicted = fit.predict(pattern, output=folder / "predicted.parquet")
same = (pd.read_parquet(predicted).iloc[:, 0].to_numpy() == fit.predict(frame).to_numpy()).all()
same

# %%
fit.evaluate(pattern)

# %% [markdown]
# And from the command line, where a pattern in quotes is one argument:

# %%
command = ["lodim", "glm", "mpg ~ weight + origin", pattern, "--predict", pattern]
command += ["--output", str(folder / "answers.parquet")]
done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=True)
print(done.stdout)

# %% [markdown]
# ## A cluster
#
# With a client of Dask, the workers read the files, keep the features, and answer each pass with
# sums. Here two of them are threads of this process; `LocalCluster(n_workers=2)` would start
# processes, and `Client("address:8786")` finds a cluster of machines that see the same files.

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
# A single file once more: sums are added in one fixed order, wherever they come from. What passes,
# messages and failures cost is on the page about clusters.
#
# ## What goes wrong
#
# Files that do not fit together are found before anything is computed.

# %%
broken = frame.head(100).assign(origin=1.5)
broken.to_parquet(folder / "cars-1977b.parquet")
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# So is a file that was not copied to its end,

# %%
whole = (folder / "cars-1977.parquet").read_bytes()
(folder / "cars-1977b.parquet").write_bytes(whole[: len(whole) // 2])
try:
    ld.gbmap("mpg ~ .", data=pattern)
except ld.DataError as error:
    print(error)

# %% [markdown]
# and a level that no row of training had.

# %%
(folder / "cars-1977b.parquet").unlink()
frame.head(10).assign(origin="Sweden").to_parquet(folder / "new-1983.parquet")
try:
    fit.predict(f"{folder}/new-*.parquet")
except ld.DataError as error:
    print(error)

# %% [markdown]
# A file that changes while a fit reads it, a folder without a file, a disk without room for the
# scratch file: each is an error that names the file or the folder, and leaves nothing behind.

# %%
kept.cleanup()
