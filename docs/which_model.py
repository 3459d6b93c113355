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
# Which model suits my question and my data? Find your question in the first table. Then check in
# the second table that the model can fit your response.
#
# | question | model | what it gives |
# |---|---|---|
# | How large is each effect, and how certain is it? | [`glm`](#glm) | coefficients with standard errors, tests, intervals |
# | How well can I predict, and still see why? | [`gbmap`](#gbmap) | a sum of a few learners; the slope of each feature at each row; a drift indicator for new rows |
# | Which known cases is this case like? | [`proset`](#proset) | a few weighted training rows, and the features in which a new row is compared with them |
# | Which measurements are worth their price? | [`costnet`](#costnet) | the best linear, logistic or log-linear model at each price; a shared procedure is paid once |
# | Can I see the classes apart in one picture? | [`melm`](#melm) | the linear view in which the classes overlap least |
# | Are two or three measurements at a time enough? | [`ripr`](#ripr) | a handful of scatter plots that vote |
# | Do rows without a response form groups? | [`ripr`](#ripr), `"~ ."` | views with clusters, or a report that there are no clusters |
# | Which of these models predicts best, and is it better than a random forest? | [`compare`](vignettes/uncertainty) | held-out losses on the same folds, with intervals for the differences |
# | Labels are expensive: which rows should be labelled next? | [`active`](vignettes/active) | suggestions by any of the models |
#
# | response | `glm` | `gbmap` | `proset` | `costnet` | `melm` | `ripr` |
# |---|---|---|---|---|---|---|
# | number | yes | yes | yes | yes | | yes |
# | two classes | yes | yes | yes | yes | yes | yes |
# | more classes | yes | yes | yes | yes | yes | yes |
# | count, positive amount | yes | yes | | yes | | |
# | ordered classes, quantile | yes | yes | | quantile | | |
# | keeps rows with missing features | with `missing="indicator"` | yes | yes | yes | yes | yes |
# | more features than rows | | yes | yes | yes | yes | yes |
# | standard errors and p-values | yes | | | | | |
# | exports to SQL, plain Python, ONNX | yes | yes | yes | yes | unless `classifier` is given | |
#
# Only `glm` has p-values. If the data chose a term because its effect looked large, the same data
# cannot test the term.

# %%
import lodim as ld

heart, wine, cars = ld.data("heart"), ld.data("wine"), ld.data("autompg")

# %% [markdown]
# (glm)=
# ## glm: effects with standard errors
#
# Use `glm` if the question is about coefficients and there are many rows per feature. `glm`
# estimates coefficients by least squares or maximum likelihood. Standard errors can be robust or
# clustered. See [the vignette](vignettes/glm).

# %%
ax = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars).plot()

# %% [markdown]
# (gbmap)=
# ## gbmap: accurate and explainable
#
# A `gbmap` model is a sum of functions called learners. Each learner is constant on one side of a
# plane in feature space and linear on the other side. Among the six models, `gbmap` most often has
# the highest accuracy or R²: on 13 of 33 data sets, and on two more jointly with another model
# (`benchmarks/held_out.py`). See [the vignette](vignettes/gbmap).

# %%
ax = ld.gbmap("mpg ~ .", data=cars).plot("effects")

# %% [markdown]
# (proset)=
# ## proset: similar cases
#
# Use `proset` if predictions should be explained by examples. A prediction is a weighted vote of
# *prototypes*: a few selected training rows. The *familiarity* of a row shows whether the row
# resembles any prototype. See [the vignette](vignettes/proset).

# %%
ax = ld.proset("disease ~ .", data=heart, lambda_v=0.02).plot("map", data=heart)

# %% [markdown]
# (costnet)=
# ## costnet: measurements with prices
#
# Use `costnet` if measurements cost money, time or risk, or if one measurement needs another.
# Without prices, `costnet` fits a sparse linear or logistic model. See [the
# vignette](vignettes/costnet).

# %%
prices = ld.data("heart_costs").set_index("name")
ax = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"]).plot()

# %% [markdown]
# (melm)=
# ## melm: one picture of the classes
#
# `melm` needs a response with classes. It computes two coordinates for each row, linear in the
# features, such that the densities of the classes overlap least. New rows are classified in this
# picture. See [the vignette](vignettes/melm).

# %%
ax = ld.melm("cultivar ~ .", data=wine, gamma=1.0).plot()

# %% [markdown]
# (ripr)=
# ## ripr: a handful of views
#
# In `ripr`, a *view* is a scatter plot of one to three features. In each view the nearest training
# rows vote, and the prediction adds these votes. If a measurement of a row is missing, the views
# without it still vote. See [the vignette](vignettes/ripr).

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
