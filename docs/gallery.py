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
# # Gallery
#
# Which plots are there, and what does each show? This page has one example for each kind of
# `fit.plot(kind)`. Every plot accepts matplotlib Axes in `ax=` and returns Axes, or an array of
# Axes if it has several panels.

# %%
import lodim as ld

cars, cells, heart = ld.data("autompg"), ld.data("breast_cancer"), ld.data("heart")
wine = ld.data("wine")

# %% [markdown]
# ## glm
#
# Coefficients per standard deviation, with 95% confidence intervals.

# %%
line = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
ax = line.plot("coefficients")

# %% [markdown]
# Residuals against fitted values. If the residuals have a trend or an increasing spread, the model
# is not adequate.

# %%
ax = line.plot("residuals")

# %% [markdown]
# Quantiles of the residuals against normal quantiles.

# %%
ax = line.plot("qq")

# %% [markdown]
# Residuals against leverage. Rows beyond the lines of Cook's distance have much influence on the
# fit.

# %%
ax = line.plot("leverage")

# %% [markdown]
# Observed share of a class against its predicted probability, in groups of held-out rows.

# %%
risk = ld.glm("disease ~ age + sex + max_heart_rate + st_depression", data=heart[::2])
ax = risk.plot("calibration", data=heart[1::2], bins=5)

# %% [markdown]
# ## gbmap
#
# Training loss after each boost.

# %%
boosts = ld.gbmap("mpg ~ .", data=cars)
ax = boosts.plot("loss")

# %% [markdown]
# Mean slope of each feature, per standard deviation. Grey bars show the mean absolute slope.

# %%
ax = boosts.plot("effects")

# %% [markdown]
# Slope of each feature at one row.

# %%
ax = boosts.plot("local", data=cars, row=0)

# %% [markdown]
# First two principal components of the learners' values (the embedding of each row), coloured by
# the response.

# %%
ax = boosts.plot("embedding")

# %% [markdown]
# Loss of new rows against their drift indicator: a number that shows how unlike the training rows a
# row is. The small plot is the ROC curve of the indicator as a detector of large losses.

# %%
early, late = cars[cars["model_year"] < 78], cars[cars["model_year"] >= 78]
ax = ld.gbmap("mpg ~ . - model_year", data=early).plot("drift", data=late)

# %% [markdown]
# ## proset
#
# Weights of the features.

# %%
prototypes = ld.proset("diagnosis ~ .", data=cells, lambda_v=0.03)
ax = prototypes.plot("weights")

# %% [markdown]
# Prototypes (training rows that vote) on the first two principal components of the weighted
# features. The star is one row.

# %%
ax = prototypes.plot("map", data=cells, row=cells.loc[[297]])

# %% [markdown]
# Prototypes in the two features with the largest weights.

# %%
ax = prototypes.plot("scatter", data=cells)

# %% [markdown]
# Predicted probability over two features. The hatched area has hardly any training rows.

# %%
ax = prototypes.plot("surface")

# %% [markdown]
# Contribution of each feature to the prediction for one row, compared with a typical row (Shapley
# values).

# %%
ax = prototypes.plot("shapley", data=cells, row=297)

# %% [markdown]
# ## costnet
#
# Share of the deviance explained against the price of a model.

# %%
prices = ld.data("heart_costs").set_index("name")
list_ = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"])
ax = list_.plot("cost")

# %% [markdown]
# Items that the models buy, and the price of the first model that uses each item.

# %%
ax = list_.plot("graph")

# %% [markdown]
# Coefficients of the models with the group penalty, against the penalty.

# %%
ax = list_.plot("path")

# %% [markdown]
# ## melm
#
# Rows, class densities and decision boundary in the view. Arrows are loadings of features.

# %%
view = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = view.plot("view")

# %% [markdown]
# Largest loadings of each coordinate.

# %%
ax = view.plot("loadings")

# %% [markdown]
# Divergence (separation of the classes) that the search reached from each starting point.

# %%
ax = view.plot("starts")

# %% [markdown]
# ## ripr
#
# All views. Each row is a solid point in the view that has most weight in its prediction.

# %%
views = ld.ripr("cultivar ~ .", data=wine)
ax = views.plot("view")

# %% [markdown]
# Share of the rows for which each view has most weight, and the error on these rows.

# %%
ax = views.plot("shares")

# %% [markdown]
# Objective of the search after each iteration, for `method="assignment"`.

# %%
ratio = ld.ripr("cultivar ~ .", data=wine, method="assignment", lambda_=0.01)
ax = ratio.plot("objective")

# %% [markdown]
# ## path and cv
#
# Mean slope of each feature against the penalty.

# %%
ax = ld.path(ld.gbmap, "mpg ~ .", data=cars, m=3, n_lambda=30).plot()

# %% [markdown]
# Held-out loss against the penalty. The lines mark the lowest loss, and the largest penalty within
# one standard error of it.

# %%
ax = ld.cv(ld.gbmap, "mpg ~ .", data=cars, m=5).plot()

# %% [markdown]
# ## bootstrap
#
# Estimates with bootstrap intervals.

# %%
few = ld.gbmap("mpg ~ .", data=cars, m=5, lambda_=0.1)
boot = ld.bootstrap(few, data=cars, n=60)
ax = boot.plot()

# %% [markdown]
# ## effects
#
# Accumulated local effects: how the prediction changes with each feature, compared among similar
# rows. The bands are 90% bootstrap bands.

# %%
curves = ld.effects(few, cars, ["weight", "model_year", "origin"], interval=boot, level=0.9)
ax = curves.plot()

# %% [markdown]
# Accumulated local effect of a category: how the prediction differs between its levels.

# %%
ax = curves.plot("origin")

# %% [markdown]
# Joint effect of two features, without their single effects.

# %%
ax = ld.effects(few, cars, "weight:model_year").plot()

# %% [markdown]
# Average slopes, with intervals.

# %%
ax = ld.effects(few, cars, kind="slope", interval=boot, level=0.9).plot()

# %% [markdown]
# Increase of the deviance if the values of a feature are permuted.

# %%
ax = ld.effects(few, cars, kind="importance").plot()

# %% [markdown]
# ## conformal
#
# Prediction intervals for new rows.

# %%
known, new = cars[::2], cars[1::2]
intervals = ld.conformal(ld.gbmap, "mpg ~ .", known, m=5, lambda_=0.1)
ax = intervals.plot("intervals", data=new)

# %% [markdown]
# Coverage of the intervals: share of new rows inside, in groups by a feature.

# %%
ax = intervals.plot("coverage", data=new, by="weight")

# %% [markdown]
# Number of classes in the prediction sets, by true class.

# %%
sets = ld.conformal(ld.gbmap, "cultivar ~ alcohol + hue", wine[::2], m=2, lambda_=0.1)
ax = sets.plot(data=wine[1::2])

# %% [markdown]
# ## stability
#
# Share of the random halves of the rows that select each feature.

# %%
ax = ld.stability(ld.costnet, "mpg ~ .", cars, lambda_=3.0, n=20).plot()

# %% [markdown]
# ## compare
#
# Differences in held-out deviance from the best model.

# %%
calls = {"gbmap": (ld.gbmap, {"m": 10, "lambda_": 0.1}), "ripr": (ld.ripr, {"max_dim": 1})}
ax = ld.compare("mpg ~ .", cars, calls, folds=5).plot()

# %% [markdown]
# ## active
#
# Learning curve of active learning: accuracy on test rows against the number of labels.

# %%
labelled, pool = wine.iloc[::18], wine.drop(wine.index[::18])
learner = ld.active(ld.ripr, "cultivar ~ .", labelled, pool, test=wine, score="uncertainty")
learner.replay(pool["cultivar"], rounds=6)
ax = learner.plot()

# %% [markdown]
# Active learning: does a score choose better rows to label than random choice? The line compares
# the accuracy of both after each round: it shows −log₁₀ of the p-value of their difference, with a
# minus sign if the score is worse.

# %%
chance = ld.active(ld.ripr, "cultivar ~ .", labelled, pool, test=wine, score="random")
ax = learner.plot("winloss", against={"random": chance.replay(pool["cultivar"], rounds=6)})
