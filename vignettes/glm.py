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
# # Generalized linear models
#
# How large is each effect, and how certain is it? `glm` fits linear, logistic, multinomial
# logistic, Poisson and gamma regression by maximum likelihood. It has no penalty, and therefore it
# has standard errors, tests, and confidence and prediction intervals. The estimates agree with
# those of statsmodels. Formulas, reports, plots and files work as for all models of lodim.
#
# This page models fuel consumption, checks the residuals, and tests one model against another. The
# second half has examples for two classes, for counts, and for a response whose spread increases
# with its mean.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

cars = ld.data("autompg").dropna()
fit = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
fit.summary()

# %% [markdown]
# Each estimate is the change of the mean per unit of the feature, if all other features are fixed.
# A factor has a row for each level except the first, which is the reference: the estimate for Japan
# is the difference between Japan and Europe. `C(origin, Treatment("USA"))` chooses another
# reference.
#
# The model is linear in each feature. The residuals show whether this is adequate:

# %%
figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
for kind, ax in zip(("residuals", "qq", "leverage"), axes, strict=True):
    fit.plot(kind, ax=ax)

# %% [markdown]
# A linear model is not adequate here: residuals are above zero at both ends, and their spread
# increases with the fitted value. The logarithm of the response and a spline of weight may help.
# The next two models have the response `np.log(mpg)`. The second model has all terms of the first
# and a spline of weight, so `anova` can compare them. The spline makes one column redundant, which
# is dropped and listed:

# %%
line = ld.glm("np.log(mpg) ~ weight + horsepower + model_year + origin", data=cars)
spline = line.update(cars, formula=". ~ . + cr(weight, df=4)")
print(spline)
spline.aliased

# %%
line.anova(spline)

# %%
curve = ld.glm("np.log(mpg) ~ weight + I(weight**2) + horsepower + model_year + origin", data=cars)
line.anova(curve)

# %% [markdown]
# `drop1()` tests each term given all other terms. `anova()` without another fit tests the terms one
# after another, as in R. A fit does not store the data. Families other than gaussian need the data
# for these tests: write `fit.anova(data=cars)`.

# %%
curve.drop1().round(3)

# %% [markdown]
# The curvature in weight is significant. If the spread of the residuals differs between rows, use
# robust standard errors. If rows form groups, such as cars of one origin and year, use clustered
# standard errors. The estimates do not change:

# %%
groups = cars["origin"] + cars["model_year"].astype(str)
errors = {
    "of the model": curve,
    "HC3": curve.update(cars, covariance="HC3"),
    "by groups": curve.update(cars, clusters=groups.to_numpy()),
}
pd.DataFrame({name: one.tidy().set_index("term")["std_error"] for name, one in errors.items()})

# %% [markdown]
# `predict(type="interval")` returns the confidence interval of the mean (`lower` to `upper`), and a
# prediction interval for a new car (`new_lower` to `new_upper`). Here they are for the logarithm of
# `mpg`, so `exp` gives miles per gallon.

# %%
np.exp(curve.predict(cars.head(3), "interval", level=0.9))

# %% [markdown]
# ## Two classes
#
# If the response has two levels, `glm` fits a logistic regression. Estimates are logarithms of odds
# ratios; `exponentiate=True` shows the odds ratios. If the response is a proportion, give the
# numbers of trials as weights: `ld.glm("share ~ dose", data, weights="trials", family="binomial")`.

# %%
heart = ld.data("heart")
disease = ld.glm("disease ~ age + sex + chest_pain + max_heart_rate + st_depression", data=heart)
odds = disease.tidy(exponentiate=True).set_index("term")
odds[["estimate", "conf_low", "conf_high", "p_value"]]

# %%
disease.plot()

# %% [markdown]
# If a feature separates the classes, the maximum likelihood estimate is infinite (in a penalized
# model it is finite). `glm` detects separation by a linear program, names the terms, and prints no
# standard errors for them.

# %%
import warnings

iris = ld.data("iris").query("species != 'virginica'")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ld.ConvergenceWarning)
    separated = ld.glm("species ~ petal_length", data=iris)
separated.summary()

# %% [markdown]
# ## Counts and amounts
#
# The rings of an abalone are counts, so we use `family="poisson"`, which has a log link. The
# strength of concrete is positive, and its standard deviation is proportional to its mean, so we
# use `family="gamma"` below. `offset=` is a known part of the score, such as the logarithm of the
# observation time of counts.

# %%
abalone = ld.data("abalone")
rings = ld.glm("rings ~ sex + np.log(whole_weight) + np.log(length)", abalone, family="poisson")
rings.summary()

# %% [markdown]
# The residual deviance is little more than half of its degrees of freedom: rings vary less than
# Poisson counts. Robust standard errors do not assume a Poisson variance. The table shows the
# robust standard errors divided by those above:

# %%
robust = rings.update(abalone, covariance="HC1")
(robust.tidy()["std_error"] / rings.tidy()["std_error"]).set_axis(rings.tidy()["term"])

# %%
concrete = ld.data("concrete")
strength = ld.glm("strength ~ . - age + np.log(age)", concrete, family="gamma")
new = strength.predict(concrete, "interval", level=0.9)
held = concrete["strength"].between(new["new_lower"], new["new_upper"]).mean()
print(f"{100 * held:.0f} % of the batches are within their intervals of 90 %")

# %% [markdown]
# How much accuracy does the linear form cost, compared with `gbmap`? The share of held-out deviance
# explained, by ten folds:

# %%
folds = np.random.default_rng(0).integers(0, 10, len(cars))
linear = ld.cv(ld.glm, "mpg ~ .", cars, folds=folds)
bent = ld.cv(ld.gbmap, "mpg ~ .", cars, folds=folds, grid={"m": [10]}, lambda_=0.1)
loss = pd.Series({"glm": linear.tidy()["mean"].min(), "gbmap": bent.tidy()["mean"].min()})
1 - loss / cars["mpg"].var(ddof=0)
