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
# # Which model for which question
#
# What do you want to know? Find your question in the first table, and check in the second one that
# the model suits your response.
#
# | question | model | what it gives |
# |---|---|---|
# | How large is each effect, and how certain is it? | [`glm`](#glm) | coefficients with standard errors, tests, intervals |
# | How well can I predict, and still see why? | [`gbmap`](#gbmap) | a few learners; for each row a slope per feature; a drift indicator for new rows |
# | Which known cases is this case like? | [`proset`](#proset) | a few weighted training rows, and the features in which they are compared |
# | Which measurements are worth their price? | [`costnet`](#costnet) | the best linear or logistic model at each price |
# | Can I see the classes apart in one picture? | [`melm`](#melm) | the linear view in which they overlap least |
# | Are two or three measurements at a time enough? | [`ripr`](#ripr) | a handful of scatter plots that vote |
# | There is no response; are there groups? | [`ripr`](#ripr), `"~ ."` | views with clusters, or a report that there are none |
# | Which of these is best here, and is it better than a forest? | [`compare`](vignettes/uncertainty) | held-out losses on the same folds, with intervals for the differences |
# | Labels are expensive; which rows should be labelled next? | [`active`](vignettes/active) | suggested rows, by any of the models |
#
# | response | `glm` | `gbmap` | `proset` | `costnet` | `melm` | `ripr` |
# |---|---|---|---|---|---|---|
# | number | yes | yes | yes | yes | | yes |
# | two classes | yes | yes | yes | yes | yes | yes |
# | more classes | yes | yes | yes | yes | yes | yes |
# | count, positive amount | yes | yes | | yes | | |
# | keeps rows with missing features | with `missing="indicator"` | yes | yes | yes | yes | yes |
# | more features than rows | | yes | yes | yes | yes | yes |
# | standard errors and p-values | yes | | | | | |
# | exports to SQL, plain Python, ONNX | yes | yes | yes | yes | unless `classifier` is given | |
#
# There are no p-values after a penalty or a selection: the data that chose a term because its effect
# looked large cannot also test it.

# %%
import lodim as ld

heart, wine, cars = ld.data("heart"), ld.data("wine"), ld.data("autompg")

# %% [markdown]
# (glm)=
# ## glm: effects with standard errors
#
# Use it if the question is about coefficients, and there are many rows per feature. Estimates are by
# least squares or maximum likelihood, with robust or clustered standard errors if needed.
# [More](vignettes/glm).

# %%
ax = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars).plot()

# %% [markdown]
# (gbmap)=
# ## gbmap: accurate and explainable
#
# The model is a sum of learners, each flat on one side of a plane and linear on the other. By
# accuracy or R² it is most often the best of the six: alone on 13 of 33 data sets and jointly on two,
# in one split of each (`benchmarks/held_out.py`). It extrapolates linearly beyond the training rows;
# `predict` then warns. [More](vignettes/gbmap).

# %%
ax = ld.gbmap("mpg ~ .", data=cars).plot("effects")

# %% [markdown]
# (proset)=
# ## proset: similar cases
#
# An estimate is a weighted vote of prototypes, so it is explained by examples. A row that resembles
# no prototype is reported as unfamiliar. [More](vignettes/proset).

# %%
ax = ld.proset("disease ~ .", data=heart, lambda_v=0.02).plot("map", data=heart)

# %% [markdown]
# (costnet)=
# ## costnet: measurements with prices
#
# Use it if measurements cost money, time or risk, or need each other. Without prices it is a sparse
# linear or logistic model. [More](vignettes/costnet).

# %%
prices = ld.data("heart_costs").set_index("name")
ax = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"]).plot()

# %% [markdown]
# (melm)=
# ## melm: one picture of the classes
#
# For classes only. Each row gets two coordinates, linear in the features, such that the densities of
# the classes overlap least. New rows are classified in this view. [More](vignettes/melm).

# %%
ax = ld.melm("cultivar ~ .", data=wine, gamma=1.0).plot()

# %% [markdown]
# (ripr)=
# ## ripr: a handful of views
#
# Neighbours vote in views of one to three features, each of which is a scatter plot. If a row lacks a
# measurement, the views without it still vote. [More](vignettes/ripr).

# %%
ax = ld.ripr("cultivar ~ .", data=wine).plot()

# %% [markdown]
# ```{toctree}
# :hidden:
#
# vignettes/glm
# vignettes/gbmap
# vignettes/proset
# vignettes/costnet
# vignettes/costnet_monitoring
# vignettes/melm
# vignettes/ripr
# ```
