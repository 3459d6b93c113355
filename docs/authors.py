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
# # Does lodim match the authors?
#
# Do lodim's fits match the results in the authors' papers? The tables show the printed figures of
# each paper next to lodim's own, which are read from `benchmarks/results/` when this page is built.
# The script behind each file is named. "author" in a table is the author's own package, run on the
# same splits.

# %% tags=["remove-input"]
from pathlib import Path

import pandas as pd

results = Path("../benchmarks/results")


def read(name, **arguments):
    return pd.read_csv(results / f"{name}.csv", **arguments)


# %% [markdown]
# ## gbmap
#
# Test R² or accuracy, halves of the rows, five splits (`benchmarks/accuracy.py`). `authors`: their
# code, at its fixed settings; `paper`: Table 4 of Patron et al. (2024), tuned by random search and
# five folds, so on four fifths of the rows. `lodim, their settings` and `lodim, default call` are
# on the same halves as `authors`.

# %% tags=["remove-input"]
table = read("accuracy")
wide = table.pivot(index="data", columns="mode", values="score")
wide = wide.rename(
    columns={"a": "lodim, their settings", "b": "lodim, default call", "c": "lodim, cv()"}
)
fixed = table.groupby("data")[["authors", "authors_se", "paper"]].first()
fixed.join(wide).round(3)

# %% [markdown]
# What did not reproduce: with the authors' settings, small or noisy data (abalone, wine_red,
# german_credit) are overfitted, in their code as in lodim, far below the figures of their table.
# With chosen settings these figures are reached, or nearly so. At the authors' settings lodim's
# fits have lower objectives than theirs, which does not always help on new rows.
#
# The indicator of drift (`benchmarks/drift.py`), AUC for rows of high loss; the paper's data sets
# and its split along one feature:

# %% tags=["remove-input"]
lines = (results / "drift.txt").read_text().splitlines()
rows = [line.split()[:4] for line in lines[1:]]
pd.DataFrame(rows, columns=["data", "AUC", "se", "paper"]).set_index("data")

# %% [markdown]
# If lodim's figure is far above the paper's (german_credit, pima_diabetes, breast_cancer), the
# split may differ: the paper does not say how ties are broken, or how often the split was repeated.
#
# ## proset
#
# Test log-loss (`benchmarks/prototypes.py`); `author`: the package proset 0.6.1, on the same
# splits, at its default penalties.

# %% tags=["remove-input"]
table = read("proset")
names = ["log_loss", "features", "prototypes", "objective"]
wide = table.pivot_table(index=["data", "batches"], columns="by", values=names, sort=False)
wide.reindex(columns=names, level=0).round(3)

# %% [markdown]
# Ruf (2022) reports log-losses of 0.43 (iris, two features), 0.14 (wine), 0.13 (cancer), 0.15
# (digits), 0.18 (checkerboard), and 0.52 and 0.56 (continuous XOR of six features, without and with
# six noise features). Neither program reaches 0.43 for iris; over ten splits its standard deviation
# is about 0.3. In later batches the author's package uses noise features (XOR 6+6); lodim does not.
#
# ## melm
#
# Balanced accuracy of the best classifier in two dimensions, five folds (Table 2 of Czarnecki et
# al. 2015), and separability (Table 3); `benchmarks/melm_tables.py`.

# %% tags=["remove-input"]
table = read("melm_accuracy", index_col="data")
pd.DataFrame(
    {
        "paper, table 2": table["t2_melm_paper"],
        "lodim": table["t2_melm"],
        "se": table["t2_melm_se"],
        "PCA, paper": table["t2_pca_paper"],
        "PCA, lodim": table["t2_pca"],
        "paper, table 3": table["t3_melm_paper"],
        "lodim, table 3": table["t3_melm"],
    }
).round(3)

# %% [markdown]
# ## ripr
#
# Recovery of informative views on the thesis' synthetic data (Fiterau 2014, section 2.5;
# `benchmarks/ripr.py`), by `method="assignment"`, the thesis' method: precision and recall of the views,
# accuracy, that with the true views known, and of k-NN on all features. In the thesis' Table 7.4
# precision and recall are interchanged.

# %% tags=["remove-input"]
print((results / "ripr_recovery.txt").read_text())

# %% [markdown]
# By default lodim uses another method, views that vote together. Averaged over two splits, it is on
# each of 33 data sets at most 0.02 below 10-NN on all features, which does not hold for one view
# per row (`benchmarks/held_out.py`).
#
# ## costnet
#
# The thesis has no code, and its medical data are not public, so its figures cannot be repeated.
# Its penalized problems are compared with CVXPY on the statement as printed (`gap`: duality gap;
# `above`: how far the objective is above CVXPY's), and with adelie, skglm and scikit-learn where
# groups do not overlap (`benchmarks/costnet_path.py`).

# %% tags=["remove-input"]
read("costnet_path").astype(object).fillna("")
