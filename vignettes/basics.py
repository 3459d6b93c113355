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
# # What all models share
#
# Formulas, predictions, plots, regularization path, cross-validation, files and the command line
# are the same for all models (`glm` has no penalty, and so no path). This document lists them; the
# vignettes of the models say what each is for.
#
# ## Formulas
#
# `y ~ .` is the response and all other columns; `y ~ . - id + np.log(a) + bs(b, df=4)` leaves a
# column out, and takes a transformed one and a spline. Categories need no coding, missing values no
# filling in. What else a formula may say, and what becomes of levels and gaps, is in the vignette
# on formulas (`formulas.py`).

# %%
import tempfile
from pathlib import Path

import pandas as pd

import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("np.log(mpg) ~ . - acceleration + bs(model_year, df=4)", data=cars, m=3, lambda_=0.1)
fit

# %% [markdown]
# ## Predictions
#
# `fit.predict(data, type)`:
#
# | type | gives | for |
# |---|---|---|
# | `"response"` | mean of the response; probability of the second level; a column for each of several classes | all |
# | `"link"` | score f(x): identity, logit, or one a class | all |
# | `"class"` | most probable class; of two classes the second one from `threshold=` on | classes |
# | `"prob"` | a column with the probability of each class | classes |
# | `"cost"` | what must be paid for a row | `costnet` |
# | `"familiarity"` | the weight of all prototypes at x; near zero where nothing is like x | `proset` |
# | `"variance"`, `"interval"`, `"quantile"` | of a numeric response: `level=0.9`, `quantiles=[0.05, 0.5, 0.95]` | `proset` |
# | `"interval"` | confidence interval of the mean, and an interval of a new observation: `level=0.95` | `glm` |
# | `"projection"` | coordinates x1, ..., xk in the view | `melm` |
# | `"density"` | logarithm of the density of each class in the view | `melm` |
# | `"view"` | the view that serves the row | `ripr` |
# | `"cluster"` | of `"~ ."`: view and cluster, such as `"2.1"` | `ripr` |
# | `"embedding"` | (f_1(x), ..., f_m(x)) | `gbmap` |
# | `"local"` | gradient of f at x, per unit of each feature | `gbmap` |

# %%
fit.predict(cars.head(3))

# %%
fit.augment(cars.head(3))[["mpg", ".fitted", ".resid"]]

# %% [markdown]
# A `pandas.Series`, such as `cars.iloc[0]`, is one row of new data.
#
# ### Errors of different cost
#
# If a missed case costs c times a false alarm, predict a case from the probability 1 / (1 + c) on:
# there the expected costs of both errors are equal. For a missed case that costs 5 times a false
# alarm it is 1/6. No search for a threshold is needed, provided that the probabilities are right.
# The calibration plot of rows that were held out shows whether they are: its points lie near the
# diagonal.

# %%
heart = ld.data("heart")
known, new = heart[::2], heart[1::2]
risk = ld.glm("disease ~ age + sex + max_heart_rate + st_depression", data=known)
ax = risk.plot("calibration", data=new, bins=5)

# %%
costs = {}
for name, threshold in (("1/2", 1 / 2), ("1/6", 1 / 6)):
    called = risk.predict(new, "class", threshold=threshold) == "present"
    missed, false_alarms = (
        (new["disease"] == "present") & ~called,
        (new["disease"] == "absent") & called,
    )
    costs[name] = {"missed": missed.sum(), "false alarms": false_alarms.sum()}
table = pd.DataFrame(costs).T
table.assign(cost=5 * table["missed"] + table["false alarms"])

# %% [markdown]
# `fit.evaluate(new)` has the AUC, the share of pairs of a case and a healthy person whose
# probabilities are in order. It does not depend on a threshold.

# %%
risk.evaluate(new)

# %% [markdown]
# ## Plots
#
# `fit.plot(kind)`, which draws on `ax=` or on Axes of its own and returns them. Without a kind it
# draws the first one that takes the arguments.
#
# | kind | of all models with classes shows |
# |---|---|
# | `"calibration"` | observed share of a class against its predicted probability, in groups of the rows of `data=`, with their histogram |
#
# | kind | of `gbmap` shows |
# |---|---|
# | `"loss"` | training loss after each boost (the default) |
# | `"effects"` | mean local coefficient of each feature, per standard deviation |
# | `"embedding"` | first two principal components of the embedding, coloured by the response |
# | `"local"` | the local coefficients of one row: `fit.plot("local", data=df, row=0)` |
# | `"drift"` | drift indicator against loss, and ROC: `fit.plot("drift", data=new)` |
#
# | kind | of `proset` shows |
# |---|---|
# | `"weights"` | feature weights by batch (the default) |
# | `"map"` | prototypes by weighted principal components, with the rows of `data=` and one `row=` |
# | `"scatter"` | prototypes in two active features |
# | `"surface"` | estimates over two active features |
# | `"shapley"` | Shapley values of one row: `fit.plot("shapley", data=df, row=0)` |
#
# | kind | of `costnet` shows |
# |---|---|
# | `"cost"` | deviance explained against the price, the lasso's curve, the cross-validation (the default) |
# | `"graph"` | what is bought, and at which price it comes in |
# | `"path"` | coefficients of the penalty along lambda |
#
# | kind | of `melm` shows |
# |---|---|
# | `"view"` | rows, densities of classes, decision boundary, and loadings as arrows (the default; of three dimensions rows and arrows alone); new rows by `data=` |
# | `"loadings"` | the largest loadings, or with `of="correlations"` correlations, by dimension |
# | `"starts"` | the divergence that each start of the search reached |
#
# | kind | of `ripr` shows |
# |---|---|
# | `"view"` | the views side by side: rows that a view serves solid, the others faint, one `row=` as a star (the default) |
# | `"shares"` | share of the rows and error of each view |
# | `"objective"` | what the search minimizes, round by round |
#
# | kind | of `glm` shows |
# |---|---|
# | `"coefficients"` | estimates per standard deviation, with confidence intervals (the default) |
# | `"residuals"`, `"qq"`, `"leverage"` | residuals against fitted values, against normal quantiles, and against leverages with Cook's distance |
#
# Further: `tidy()`, `glance()`, `augment(data)` as in broom; `evaluate(data)`; `coef()`,
# `update(data, ...)`; and of `gbmap` `learners()`, `projections()`, `distance()`, `neighbours()`,
# `regions()`, `drift()`, `drift_threshold()`, `staged()`, `first(m)`; of `proset` `export()`,
# `explain(row)`, `familiarity(data, quantile=True)`, `shapley(data)`, `reference()`, `shrink()`,
# `density(data, at)`, `to_excel(path)`, `batches()`, `update(data, n_batches=...)`; of `costnet`
# `prices()`, `bought()`, `at(budget)`, `staged(data)`, `path()`, `inputs`; of `melm`
# `pairs()`, `starts()`; of `ripr` `explain(row)`, `votes(data)`, `assignment()`, `clusters()`; of
# `glm` `anova()`, `anova(other)`, `drop1()`, `covariance()`, `aliased`, `separated`.

# %%
fit.plot("effects")

# %% [markdown]
# ## Path and cross-validation
#
# `path` fits 100 decreasing penalties, `path.at(1.0)` is the fit of the nearest one, and its plot
# shows mean local coefficients against log(lambda). `cv` tries 25 penalties by 10 folds: `min` is
# the point of least mean held-out loss, `1se` the largest penalty within one standard error of it.
# `cv.best` is refitted with the former, or with the latter by `rule="1se"`. A grid tries other
# settings, such as `grid={"m": [2, 5, 10], "beta": [1, 10]}`, each with the 25 penalties where
# `lambda_` is not given.
#
# Of `costnet`, `cv` gives error against price, and `rule="1se"` the cheapest model within one
# standard error; `path` the fits of single penalties.
#
# `proset` has two penalties, `lambda_v` of features and `lambda_w` of prototypes:
# `ld.path(ld.proset, ..., penalty="lambda_w")`, and `grid={"lambda_v": [...], "lambda_w": [...],
# "n_batches": [1, 2, 3]}` for `cv`.
#
# `melm` is smoother the larger its `gamma` is, which stands in the place of a penalty; `grid={"k":
# [1, 2, 3], "gamma": [0.5, 1, 2]}` compares dimensions, and `grid={"gamma": [0.5, 1, 2],
# "covariance": ["shrunk", "ledoit-wolf"]}` chooses the covariance of a class too.

# %%
path = ld.path(ld.gbmap, "mpg ~ .", data=cars, n_lambda=20, m=3)
path.plot()

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=cars, grid={"m": [2, 5], "lambda_": [0.01, 0.1, 1]})
cv

# %%
cv.plot()

# %% [markdown]
# ## Files
#
# The file is a zip of JSON and plain arrays; loading runs no code from it. It holds checksums, so
# that a file that was damaged or edited is refused; they are no signature, and who wants to deceive
# can make them anew. Saving over a file keeps its mode, and of a symbolic link writes the target. A
# fit with an estimator of another library in it cannot be saved.
#
# What is in a file that may be private: the names of columns, the levels of categories, means and
# standard deviations, the outermost values of what a spline was fitted to, and of single training
# rows:
#
# | model | training rows in its file | to keep none |
# |---|---|---|
# | `costnet` | none | |
# | `gbmap` | response and embedding of at most 10,000 rows, for `neighbours()` and `drift()`; with as many learners as features, these can be computed from it | `control={"reference_rows": 0}` |
# | `proset` | the prototypes and a typical row: row labels, values of the active features, responses of the prototypes | not possible |
# | `glm` | mean, residual, leverage and Cook's distance of at most 10,000 rows, for the diagnostic plots | `control={"diagnostic_rows": 0}` |
# | `melm` | class and coordinates of all rows; of a class of more than 32,768 rows means of small cells, and some rows; with as many dimensions as features, these can be computed from them | not possible |
# | `ripr` | all rows: row labels, responses, weights, values of the features that the views use | not possible |
#
# Row labels are those of the data's index: `df.reset_index(drop=True)` leaves names out. Where no
# folder can be written, as in a container with read-only packages, compiled kernels are cached in a
# temporary folder of the user's own, or not at all; a line of the log says so, and
# `NUMBA_CACHE_DIR` names another place.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cars.lodim"
    fit.save(file)
    back = ld.load(file)
back.predict(cars).equals(fit.predict(cars))

# %% [markdown]
# ## Data sets
#
# `ld.data()` lists the data sets that come with lodim, `ld.data("german_credit")` reads one;
# sources and licences are in `data/README.md`. Synthetic data: `synth_cos_r`,
# `synth_cos_c`, `three_clusters`, `checkerboard`, `xor`, `friedman1`, `informative_views`,
# `informative_views_r`, and `monitoring`, features with prices that are computed from each other.

# %%
ld.data()

# %% [markdown]
# ## Command line
#
# ```sh
# python -m lodim data                                     # list the data sets
# python -m lodim gbmap "mpg ~ ." cars.csv                 # print the summary of a CSV file
# python -m lodim gbmap "mpg ~ ." cars.csv --predict new.csv --output predicted.csv
# python -m lodim proset "diagnosis ~ ." breast_cancer --lambda-v 0.03 --cv --plots out
# python -m lodim melm "cultivar ~ ." wine --starts 5 --plots out
# python -m lodim glm "disease ~ age + sex" heart --covariance HC3
# python -m lodim ripr "strength ~ ." concrete --max-dim 3 --plots out
# python -m lodim gbmap --help                             # all options, and the files they write
# python -m lodim warm                                     # compile all kernels now, for an image
# ```
#
# The file of `--output` has one row per new row, in order. Its first column, `row`, is the number
# of the row from 1, or its label if the first column of the new CSV file has no name.
