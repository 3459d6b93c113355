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
# How do I predict, plot, choose settings, save a fit, and use the command line? All models share
# these functions, except that `glm` has no `ld.path`, because it has no penalty.
# [Formulas](formulas) explains the notation of formulas.
#
# The examples on this page use the following fit:

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
# `fit.predict(data, type)` has these types:
#
# | type | result | for |
# |---|---|---|
# | `"response"` | mean (or quantile) of the response; probability of the second level; a column for each of several classes | all |
# | `"link"` | score f(x): the mean for numbers, the logit for two classes, one score per class for several | all |
# | `"class"` | most probable class; for two classes the second one if its probability is at least `threshold=` | classes |
# | `"prob"` | a column with the probability of each class | classes |
# | `"cost"` | price of the features that the model uses for a row | `costnet` |
# | `"familiarity"` | total weight of the prototypes that resemble x; near zero for unlike rows | `proset` |
# | `"variance"`, `"interval"`, `"quantile"` | for a numeric response: `level=0.9`, `quantiles=[0.05, 0.5, 0.95]` | `proset` |
# | `"interval"` | confidence interval of the mean, and an interval of a new observation: `level=0.95` | `glm` |
# | `"projection"` | coordinates x1, ..., xk in the view | `melm` |
# | `"density"` | logarithm of the density of each class in the view | `melm` |
# | `"view"` | the view with most weight in the prediction of the row | `ripr` |
# | `"cluster"` | with the formula `"~ ."`: view and cluster, such as `"2.1"` | `ripr` |
# | `"embedding"` | values of the learners, (f_1(x), ..., f_m(x)) | `gbmap` |
# | `"local"` | slope of f at x, per unit of each feature | `gbmap` |

# %%
fit.predict(cars.head(3))

# %%
fit.augment(cars.head(3))[["mpg", ".fitted", ".resid"]]

# %% [markdown]
# A `pandas.Series`, such as `cars.iloc[0]`, counts as one row of new data.
#
# ### Errors of different cost
#
# Suppose that a missed case costs c times as much as a false alarm. Then predict a case if its
# probability is at least 1 / (1 + c). For c = 5 write `fit.predict(new, "class", threshold=1 / 6)`.
# The [tutorial](../tutorial) has an example.
#
# `fit.evaluate(new)` also returns the AUC, which does not depend on a threshold. It is the share of
# pairs of a case and a non-case in which the case has the higher probability.

# %% [markdown]
# ## Plots
#
# `fit.plot(kind)` draws on the Axes in `ax=` or on new Axes, and returns the Axes. The
# [gallery](../gallery) shows and explains every kind.
#
# | model | kinds, the default first |
# |---|---|
# | all models with classes | `"calibration"` |
# | `gbmap` | `"loss"`, `"effects"`, `"embedding"`, `"local"`, `"drift"` |
# | `proset` | `"weights"`, `"map"`, `"scatter"`, `"surface"`, `"shapley"` |
# | `costnet` | `"cost"`, `"graph"`, `"path"` |
# | `melm` | `"view"`, `"loadings"`, `"starts"` |
# | `ripr` | `"view"`, `"shares"`, `"objective"` |
# | `glm` | `"coefficients"`, `"residuals"`, `"qq"`, `"leverage"` |
#
# Some kinds need data: `fit.plot("local", data=df, row=0)` draws the slopes at one row, and
# `fit.plot("drift", data=new)` compares new rows with the training rows.
#
# Fits have further methods and attributes. `help()` describes each of them:
#
# | model | methods and attributes |
# |---|---|
# | all | `tidy()`, `glance()` and `augment(data)` as in R's broom; `evaluate(data)`, `coef()`, `update(data, ...)` |
# | `gbmap` | `learners()`, `projections()`, `distance()`, `neighbours()`, `regions()`, `drift()`, `drift_threshold()`, `staged()`, `first(m)` |
# | `proset` | `export()`, `explain(row)`, `familiarity(data, quantile=True)`, `shapley(data)`, `reference()`, `shrink()`, `density(data, at)`, `to_excel(path)`, `batches()`, `update(data, n_batches=...)` |
# | `costnet` | `prices()`, `bought()`, `at(budget)`, `staged(data)`, `path()`, `inputs` |
# | `melm` | `pairs()`, `starts()` |
# | `ripr` | `explain(row)`, `votes(data)`, `assignment()`, `clusters()` |
# | `glm` | `anova()`, `anova(other)`, `drop1()`, `covariance()`, `aliased`, `separated` |

# %%
fit.plot("effects")

# %% [markdown]
# ## Path and cross-validation
#
# **Path.** `ld.path` fits the model for 100 decreasing penalties. `path.at(1.0)` returns the fit
# whose penalty is nearest to 1. `path.plot()` shows the mean slope of each feature against
# log(lambda).
#
# **Cross-validation.** `ld.cv` compares 25 penalties by 10 folds. `min` is the penalty with the
# lowest mean held-out loss. `1se` is the largest penalty whose loss is within one standard error of
# the lowest. `cv.best` is a fit to all rows with the penalty `min`, or `1se` if you give
# `rule="1se"`.
#
# To compare other settings, give a grid such as `grid={"m": [2, 5, 10], "beta": [1, 10]}`. Each
# combination is tried with all 25 penalties, unless you give `lambda_`.
#
# Some models differ:
#
# - For `costnet`, `cv` estimates the error at each price, and `rule="1se"` chooses the cheapest
#   model within one standard error. `path` fits models with the group penalty.
# - `proset` has two penalties, `lambda_v` for features and `lambda_w` for prototypes. Write
#   `ld.path(ld.proset, ..., penalty="lambda_w")`, or `grid={"lambda_v": [...], "lambda_w": [...]}`
#   for `cv`.
# - For `melm`, the kernel width `gamma` has the role of the penalty: a larger value gives a
#   smoother model.

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
# `fit.save(path)` writes a zip of JSON and plain arrays, and `ld.load(path)` reads it. Loading runs
# no code from the file. Checksums detect damaged files, but they are no signature: anyone who
# alters a file can recompute them. lodim cannot save a fit that contains an estimator of another
# library.
#
# What is stored in a file? A file contains the estimates and settings, the names of columns, the
# levels of categories, and means and standard deviations of columns (of columns in a spline also
# the range). For most models the file also contains parts of single training rows:
#
# | model | parts of training rows in its file | how to store none |
# |---|---|---|
# | `costnet` | none | |
# | `gbmap` | response, score and embedding of at most 10,000 rows, for `neighbours()` and `drift()`. If there are at least as many learners as features, the features can be computed from the embedding | `control={"reference_rows": 0}` |
# | `proset` | the prototypes and a typical row: row labels, values of the active features, and responses of the prototypes | not possible |
# | `glm` | row label, fitted mean, residuals, leverage and Cook's distance of at most 10,000 rows, for the diagnostic plots. The response can be computed from these | `control={"diagnostic_rows": 0}` |
# | `melm` | class and coordinates of all rows. For a class of more than 32,768 rows: means of small groups of rows, and some single rows. If there are as many dimensions as features, the features can be computed from the coordinates | not possible |
# | `ripr` | all rows: row labels, responses, weights, and values of the features that the views use | not possible |
#
# Row labels are the index of the data. If it has names of people, fit `df.reset_index(drop=True)`
# to store no names.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cars.lodim"
    fit.save(file)
    back = ld.load(file)
back.predict(cars).equals(fit.predict(cars))

# %% [markdown]
# ## Data sets
#
# `ld.data()` lists the included data sets, and `ld.data("german_credit")` reads one.
# `data/README.md` has their sources and licences. lodim can also generate data: `synth_cos_r`,
# `synth_cos_c`, `three_clusters`, `checkerboard`, `xor`, `friedman1`, `informative_views`,
# `informative_views_r`, and `monitoring` (features with prices).

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
# The file given as `--output` has one row per new row, in the same order. Its first column, `row`,
# has the number of the row, counted from 1. If the first column of the new CSV file has no name, it
# is taken as row labels, and `row` has these labels.
