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
# # Five minutes
#
# One data set, every verb. At the top of a checkout `pip install .` brings the models, `pip install
# ".[plot]"` the pictures as well. The data come with the package.
#
# ## Fit
#
# Fuel consumption of 398 cars, by a formula as in R: the response on the left, and on the right a
# dot for all other columns.

# %%
import tempfile
from pathlib import Path

import lodim as ld

cars = ld.data("autompg")
cars.head(3)

# %%
fit = ld.gbmap("mpg ~ .", data=cars)
fit

# %% [markdown]
# No setting was given, so cross-validation chose how many boosts there are and how strong their
# penalty is. `%Dev` is the per cent of the deviance explained after each boost, here R², on the
# training rows; how well the model predicts rows that it has not seen is asked further down.
#
# ## Look
#
# `summary()` is the whole report, [explained line by line](summaries); `tidy()` is its table of
# features as a frame, `glance()` one row about the fit.

# %%
fit.tidy().head()

# %%
fit.glance().T

# %%
ax = fit.plot("effects")

# %% [markdown]
# ## Predict
#
# Predictions have the rows, the order and the index of the data; `augment` puts them beside the
# data, and `evaluate` says how good they are where the response is known.

# %%
fit.predict(cars.head(3))

# %%
fit.augment(cars.head(3))[["mpg", ".fitted", ".resid"]]

# %%
fit.evaluate(cars)

# %% [markdown]
# ## Choose
#
# `cv` judges settings on rows held out, `path` follows the penalty from the null model on.

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=cars, m=10)
cv

# %%
ax = cv.plot()

# %%
path = ld.path(ld.gbmap, "mpg ~ .", data=cars, m=5, n_lambda=30)
ax = path.plot()

# %% [markdown]
# ## Another model
#
# The verbs stay the same, what is looked at differs. A linear model with its standard errors:

# %%
ld.glm("mpg ~ weight + model_year + origin", data=cars).summary()

# %% [markdown]
# A few views of at most three measurements each, which vote on a prediction, by `ripr`:

# %%
views = ld.ripr("mpg ~ .", data=cars)
ax = views.plot()

# %% [markdown]
# ## Keep
#
# A file holds numbers and names, never code; `update` repeats the call on other data.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cars.lodim"
    fit.save(file)
    back = ld.load(file)
back.predict(cars.head(1))

# %%
fit.update(cars[cars["origin"] == "Japan"], formula=". ~ . - origin", m=2, lambda_=0.1)

# %% [markdown]
# From here: [which model for which question](which_model), or what all models share in
# [](vignettes/basics).
