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
# | question | model | what it gives |
# |---|---|---|
# | How much does each feature matter, and how sure is that? | [`glm`](#glm) | coefficients with standard errors, tests, intervals |
# | What is the response, as exactly as possible, by something that can still be looked into? | [`gbmap`](#gbmap) | a few bent planes; for each row a slope for each feature; a warning when new rows differ |
# | Which known cases is this one like? | [`proset`](#proset) | a few weighted training rows, and the features in which they are compared |
# | Which measurements are worth their price? | [`costnet`](#costnet) | the best linear or logistic model for every price |
# | Can the classes be seen apart on one flat picture? | [`melm`](#melm) | the linear view in which they overlap least |
# | Can it be told from two or three measurements at a time? | [`ripr`](#ripr) | a handful of scatter plots that vote |
# | There is no response; are there groups? | [`ripr`](#ripr), `"~ ."` | views with clusters, or the answer that there are none |
# | Which of these is best here, and is it better than a forest? | [`compare`](vignettes/uncertainty) | losses on the same rows held out, and differences from the best with intervals |
# | Labels are dear; which rows should be labelled next? | [`active`](vignettes/active) | queries by any of the models |
#
# | response | `glm` | `gbmap` | `proset` | `costnet` | `melm` | `ripr` |
# |---|---|---|---|---|---|---|
# | number | yes | yes | yes | yes | | yes |
# | two classes | yes | yes | yes | yes | yes | yes |
# | more classes | yes | yes | yes | yes | yes | yes |
# | count, positive amount | yes | | | | | |
# | rows that miss features stay | with `missing="indicator"` | yes | yes | yes | yes | yes |
# | features beyond the number of rows | | yes | yes | yes | yes | yes |
# | standard errors and p-values | yes | | | | | |
# | written as SQL, plain Python, ONNX | yes | yes | yes | yes | unless `classifier` is given | |
#
# There are no p-values after a penalty or a selection: what was chosen because it looked large is
# not tested by the data that chose it.

# %%
import lodim as ld

heart, wine, cars = ld.data("heart"), ld.data("wine"), ld.data("autompg")

# %% [markdown]
# (glm)=
# ## glm: how much, and how sure
#
# When the question is about coefficients, and rows are many for the features. By least squares or
# maximum likelihood, with robust and clustered errors. [More](vignettes/glm).

# %%
ax = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars).plot()

# %% [markdown]
# (gbmap)=
# ## gbmap: exact, and still to be looked into
#
# A sum of boosted hinges: linear where the data are, bent where they must be. Most often the most
# exact of the six by accuracy or R²: alone on 13 of 33 data sets and with another on two, by one
# split of each (`benchmarks/held_out.py`). Away from the training rows it goes on linearly, and says
# so. [More](vignettes/gbmap).

# %%
ax = ld.gbmap("mpg ~ .", data=cars).plot("effects")

# %% [markdown]
# (proset)=
# ## proset: which cases it is like
#
# An estimate is a weighted vote of prototypes, so that it is explained by example; a row that is
# like none of them is called unfamiliar. [More](vignettes/proset).

# %%
ax = ld.proset("disease ~ .", data=heart, lambda_v=0.02).plot("map", data=heart)

# %% [markdown]
# (costnet)=
# ## costnet: what is worth its price
#
# Where measurements cost money, time or risk, and some need others. Without prices it is a sparse
# linear or logistic model. [More](vignettes/costnet).

# %%
prices = ld.data("heart_costs").set_index("name")
ax = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"]).plot()

# %% [markdown]
# (melm)=
# ## melm: the flat view
#
# For classes alone. Two numbers a row, linear in the features, chosen so that the densities of the
# classes overlap least; the classifier works in that view. [More](vignettes/melm).

# %%
ax = ld.melm("cultivar ~ .", data=wine, gamma=1.0).plot()

# %% [markdown]
# (ripr)=
# ## ripr: a handful of views
#
# Neighbours vote in views of one to three features, which can be drawn whole. A row that lacks a
# measurement is answered by the views that do not need it. [More](vignettes/ripr).

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
# vignettes/active
# ```
