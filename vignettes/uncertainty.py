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
# # How sure
#
# From a fit to an honest answer: what new rows may be, and which features would be selected again.

# %%
import lodim as ld

# %% [markdown]
# ## Intervals for new rows

# %% [markdown]
# ## Compared with what
#
# `ld.compare` fits every model to the same training rows, scores it on the same rows held out, and
# puts baselines beside: the null model, `glm`, and where scikit-learn is installed gradient boosting
# and a random forest. Each call is a default one, and what it chooses (penalties, features, folds of
# its own) it chooses within the training rows.

# %%
heart = ld.data("heart")
table = ld.compare("disease ~ .", heart, ["costnet", "proset"], folds=5)
table

# %% [markdown]
# The sentence above the table is what can be said. Folds share training rows, so that the usual
# standard errors are too small: here variances are more than doubled (Nadeau and Bengio 2003). And
# the best of many is best by luck too, so all pairs of models are judged at once, with the
# correlation of their losses (the model confidence set of Hansen, Lunde and Nason 2011). That is
# careful: in simulations equal models were separated in less than 2 % of the samples, where 5 % are
# allowed, and with a few hundred rows only clear differences are seen.

# %%
table.plot()

# %%
table.tidy()[["model", "auc", "auc_se", "difference", "difference_se", "p_value"]].round(3)

# %% [markdown]
# `table.best` is the best model of lodim, fitted to all rows when it is first asked for, `table.fit`
# any other; `table.losses` has a row for each row of the data, and tells who is wrong where.

# %%
table.best

# %% [markdown]
# All models in ten folds, as `ld.compare("disease ~ .", heart)` and `ld.compare("mpg ~ .", cars)`
# give them (mean deviance of a row, of numbers the squared error; standard errors in brackets):
#
# TABLE
#
# ## What may be wrong
#
# `fit.check()` looks for what a statistician would look for before believing a fit, and says what it
# could not look for, and why. With the training rows nothing is found here:

# %%
cars = ld.data("autompg")
old, new = cars[cars["model_year"] <= 76], cars[cars["model_year"] > 76]
fit = ld.glm("mpg ~ . - model_year", old)
fit.check(old)

# %% [markdown]
# Cars of later years are lighter, and go farther with the same weight. Both are seen: the features
# have moved, and the predictions are off.

# %%
fit.check(new)

# %% [markdown]
# A finding has a code, and `ignore=` leaves codes out; `help(fit.check)` has their table.
