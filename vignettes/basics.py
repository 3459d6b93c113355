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
# How do I predict, plot, choose settings, save, and use the command line? All of this is the same
# for all models (`glm` has no penalty, and so no path). The vignettes of the models explain what
# each is for.
#
# `fit` below is used throughout. [Formulas](formulas) have a page of their own.

# %%
import tempfile
from pathlib import Path

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
# | `"link"` | score f(x): identity, logit, or one per class | all |
# | `"class"` | most probable class; for two classes the second one from `threshold=` on | classes |
# | `"prob"` | a column with the probability of each class | classes |
# | `"cost"` | price of a row | `costnet` |
# | `"familiarity"` | total weight of the prototypes that resemble x; near zero for unlike rows | `proset` |
# | `"variance"`, `"interval"`, `"quantile"` | for a numeric response: `level=0.9`, `quantiles=[0.05, 0.5, 0.95]` | `proset` |
# | `"interval"` | confidence interval of the mean, and an interval of a new observation: `level=0.95` | `glm` |
# | `"projection"` | coordinates x1, ..., xk in the view | `melm` |
# | `"density"` | logarithm of the density of each class in the view | `melm` |
# | `"view"` | the view that predicts the row | `ripr` |
# | `"cluster"` | for `"~ ."`: view and cluster, such as `"2.1"` | `ripr` |
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
# `fit.predict(new, "class", threshold=1 / 6)` for c = 5. There the expected costs of both errors
# are equal, and no search for a threshold is needed, provided that the probabilities are right.
# The calibration plot of held-out rows shows whether they are. The [tutorial](../tutorial) does all
# of this. `fit.evaluate(new)` has the AUC, the share of pairs of a case and a healthy person whose
# probabilities are in the right order. It does not depend on a threshold.

# %% [markdown]
# ## Plots
#
# `fit.plot(kind)` draws on `ax=` or on new Axes, and returns them. Without a kind it draws the
# first one that takes the arguments.
#
# | kind | for all models with classes shows |
# |---|---|
# | `"calibration"` | observed share of a class against its predicted probability, in groups of the rows of `data=`, with their histogram |
#
# | kind | for `gbmap` shows |
# |---|---|
# | `"loss"` | training loss after each boost (the default) |
# | `"effects"` | mean local coefficient of each feature, per standard deviation |
# | `"embedding"` | first two principal components of the embedding, coloured by the response |
# | `"local"` | the local coefficients of one row: `fit.plot("local", data=df, row=0)` |
# | `"drift"` | drift indicator against loss, and ROC: `fit.plot("drift", data=new)` |
#
# | kind | for `proset` shows |
# |---|---|
# | `"weights"` | feature weights by batch (the default) |
# | `"map"` | prototypes by weighted principal components, with the rows of `data=` and one `row=` |
# | `"scatter"` | prototypes in two active features |
# | `"surface"` | estimates over two active features |
# | `"shapley"` | Shapley values of one row: `fit.plot("shapley", data=df, row=0)` |
#
# | kind | for `costnet` shows |
# |---|---|
# | `"cost"` | deviance explained against the price, the lasso's curve, the cross-validation (the default) |
# | `"graph"` | what is bought, and at which price it comes in |
# | `"path"` | coefficients of the penalty along lambda |
#
# | kind | for `melm` shows |
# |---|---|
# | `"view"` | rows, densities of classes, decision boundary, and loadings as arrows (the default; of three dimensions rows and arrows alone); new rows by `data=` |
# | `"loadings"` | the largest loadings, or with `of="correlations"` correlations, by dimension |
# | `"starts"` | the divergence that each start of the search reached |
#
# | kind | for `ripr` shows |
# |---|---|
# | `"view"` | the views side by side: rows that a view serves solid, the others faint, one `row=` as a star (the default) |
# | `"shares"` | share of the rows and error of each view |
# | `"objective"` | what the search minimizes, round by round |
#
# | kind | for `glm` shows |
# |---|---|
# | `"coefficients"` | estimates per standard deviation, with confidence intervals (the default) |
# | `"residuals"`, `"qq"`, `"leverage"` | residuals against fitted values, against normal quantiles, and against leverages with Cook's distance |
#
# Further methods: `tidy()`, `glance()` and `augment(data)` as in broom; `evaluate(data)`; `coef()`;
# `update(data, ...)`. For `gbmap`: `learners()`, `projections()`, `distance()`, `neighbours()`,
# `regions()`, `drift()`, `drift_threshold()`, `staged()`, `first(m)`. For `proset`: `export()`,
# `explain(row)`, `familiarity(data, quantile=True)`, `shapley(data)`, `reference()`, `shrink()`,
# `density(data, at)`, `to_excel(path)`, `batches()`, `update(data, n_batches=...)`. For `costnet`:
# `prices()`, `bought()`, `at(budget)`, `staged(data)`, `path()`, `inputs`. For `melm`: `pairs()`,
# `starts()`. For `ripr`: `explain(row)`, `votes(data)`, `assignment()`, `clusters()`. For `glm`:
# `anova()`, `anova(other)`, `drop1()`, `covariance()`, `aliased`, `separated`.

# %%
fit.plot("effects")

# %% [markdown]
# ## Path and cross-validation
#
# `path` fits 100 decreasing penalties; `path.at(1.0)` is the fit of the nearest one, and its plot
# shows mean local coefficients against log(lambda). `cv` tries 25 penalties by 10 folds: `min` has
# the lowest mean held-out loss, `1se` is the largest penalty within one standard error of it.
# `cv.best` is refitted with the former, or with the latter for `rule="1se"`. A grid tries other
# settings, such as `grid={"m": [2, 5, 10], "beta": [1, 10]}`, each with the 25 penalties unless
# `lambda_` is given.
#
# For `costnet`, `cv` gives error against price, `rule="1se"` the cheapest model within one standard
# error, and `path` the fits of single penalties.
#
# `proset` has two penalties, `lambda_v` for features and `lambda_w` for prototypes:
# `ld.path(ld.proset, ..., penalty="lambda_w")`, and `grid={"lambda_v": [...], "lambda_w": [...],
# "n_batches": [1, 2, 3]}` for `cv`.
#
# `melm` is smoother with a larger `gamma`, which takes the role of a penalty. `grid={"k": [1, 2,
# 3], "gamma": [0.5, 1, 2]}` compares dimensions, and `grid={"gamma": [0.5, 1, 2], "covariance":
# ["shrunk", "ledoit-wolf"]}` also chooses the covariance of a class.

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
# A saved fit is a zip of JSON and plain arrays; loading runs no code from it. Checksums detect
# damaged files. They are no signature: anyone who alters a file can recompute them. Saving over a
# file keeps its mode, and over a symbolic link writes the target. A fit that contains an estimator
# of another library cannot be saved.
#
# A file contains the names of columns, levels of categories, means and standard deviations, the
# extreme values seen by a spline, and the following parts of single training rows:
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
# Row labels are those of the data's index: `df.reset_index(drop=True)` removes names. If no folder
# can be written, as in a container with read-only packages, compiled kernels are cached in a
# temporary folder of the user, or not at all; the log says which, and `NUMBA_CACHE_DIR` names
# another folder.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cars.lodim"
    fit.save(file)
    back = ld.load(file)
back.predict(cars).equals(fit.predict(cars))

# %% [markdown]
# ## Data sets
#
# `ld.data()` lists the included data sets, and `ld.data("german_credit")` reads one; sources and
# licences are in `data/README.md`. Generators of synthetic data: `synth_cos_r`, `synth_cos_c`,
# `three_clusters`, `checkerboard`, `xor`, `friedman1`, `informative_views`, `informative_views_r`,
# and `monitoring`, for features with prices that are computed from each other.

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
