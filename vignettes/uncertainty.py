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
# # How sure, and what drives it
#
# A fit says what it estimates. This document asks how far to trust it: how much the estimates would
# differ with other cars, which features move the prediction, and how.

# %% [markdown]
# ## How sure: the bootstrap
#
# `bootstrap` fits the model again and again to the same rows, each time with other weights, drawn
# from the standard exponential distribution. No weight is zero, so that no level of a factor
# vanishes, as it may by resampling. The settings that cross-validation has chosen are held.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars, m=10, lambda_=0.1)
boot = ld.bootstrap(fit, data=cars, n=200)
boot

# %%
boot.plot()

# %% [markdown]
# The notes below the table are part of the answer: a penalty takes as much from each replicate as
# from the fit, so that an interval is around what the fit estimates. With `reselect=True` each
# replicate chooses its own settings, at the price of so many choices. For a model without a
# penalty the standard errors are those of the sandwich formula (and `kind="bca"` corrects limits for
# bias and skewness; where estimates jump, as of boosting, help says why not to):

# %%
line = ld.glm("mpg ~ weight + horsepower + origin", data=cars)
errors = ld.bootstrap(line, data=cars, n=400).tidy().set_index("term")["std_error"]
robust = line.update(cars, covariance="HC0").tidy().set_index("term")["std_error"]
(errors / robust).round(2)

# %% [markdown]
# Any function of a fit can be asked for, and `predict` gives a band of the mean. It is no interval
# of a new car: that would have to hold what cars of the same kind differ by, too.

# %%
ld.bootstrap(line, data=cars, n=100, statistic=lambda one: one.dev_ratio).tidy()

# %%
boot.predict(cars[:3], type="interval", of="mean", level=0.9)

# %% [markdown]
# ## What drives it: effects
#
# Accumulated local effects show how the prediction changes along a feature, among cars that are
# there: heavy cars with much horsepower are compared with a little heavier ones with as much, and
# never with light ones. The replicates of the bootstrap give the bands.

# %%
drivers = ld.effects(fit, data=cars, interval=boot, level=0.9)
drivers.plot()

# %%
drivers

# %% [markdown]
# A pair shows what two features do together, beyond what each does by itself: here what weight
# takes in other model years (and nothing where there are no such cars). `kind="slope"` sums a curve up in one number, `kind="pd"` is partial
# dependence, and `kind="importance"` says what the deviance would lose without a column.

# %%
ld.effects(fit, cars, "weight:model_year").plot()

# %%
ld.effects(fit, cars, kind="slope", interval=boot, level=0.9)

# %%
ld.effects(fit, cars, kind="importance").plot()
