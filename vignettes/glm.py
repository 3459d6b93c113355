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
# logistic, Poisson and gamma regression by maximum likelihood, and other families. `glm` has no
# penalty, so it can give standard errors, tests, and confidence and prediction intervals. The
# estimates agree with those of statsmodels.
#
# This page models fuel consumption, checks the residuals, and tests one model against another. Then
# follow examples for two classes, for counts, and for amounts.

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
# Each estimate is the change of the mean response per unit of the feature, if all other features
# are fixed. A factor (category) has a row for each level except the first, the reference. So the
# estimate for Japan is the difference between Japan and Europe. `C(origin, Treatment("USA"))`
# chooses another reference.
#
# The model is linear in each feature. The residuals show whether a linear model is adequate:

# %%
figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
for kind, ax in zip(("residuals", "qq", "leverage"), axes, strict=True):
    fit.plot(kind, ax=ax)

# %% [markdown]
# A linear model is not adequate here. The residuals are above zero at both ends, and their spread
# increases with the fitted value. Two changes may help: the logarithm of the response, and a spline
# of weight. So the next two models have the response `np.log(mpg)`.
#
# The second model has all terms of the first and a spline of weight, so `anova` can compare both
# models. The spline makes one column redundant; `glm` drops and lists this column:

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
# after another, as in R. For families other than gaussian, these tests need the data again, because
# a fit does not store them: write `fit.anova(data=cars)`.

# %%
curve.drop1().round(3)

# %% [markdown]
# The curvature in weight is significant. How certain are the estimates if the assumptions of the
# model do not hold? If the spread of the residuals differs between rows, use robust standard
# errors. If rows form groups, such as cars of one origin and year, use clustered standard errors.
# The estimates do not change:

# %%
groups = cars["origin"] + cars["model_year"].astype(str)
errors = {
    "of the model": curve,
    "HC3": curve.update(cars, covariance="HC3"),
    "by groups": curve.update(cars, clusters=groups.to_numpy()),
}
pd.DataFrame({name: one.tidy().set_index("term")["std_error"] for name, one in errors.items()})

# %% [markdown]
# `predict(type="interval")` returns two intervals. The confidence interval of the mean is from
# `lower` to `upper`. The prediction interval for a new car is from `new_lower` to `new_upper`. Both
# are for the logarithm of `mpg`, so we apply `exp` to get miles per gallon.

# %%
np.exp(curve.predict(cars.head(3), "interval", level=0.9))

# %% [markdown]
# ## Two classes
#
# If the response has two levels, `glm` fits a logistic regression. Estimates are logarithms of odds
# ratios; `exponentiate=True` shows odds ratios. If the response is a proportion, give the numbers
# of trials as weights: `ld.glm("share ~ dose", data, weights="trials", family="binomial")`.

# %%
heart = ld.data("heart")
disease = ld.glm("disease ~ age + sex + chest_pain + max_heart_rate + st_depression", data=heart)
odds = disease.tidy(exponentiate=True).set_index("term")
odds[["estimate", "conf_low", "conf_high", "p_value"]]

# %%
disease.plot()

# %% [markdown]
# A feature separates two classes if all its values in one class are above all its values in the
# other class. The maximum likelihood estimate is then infinite. `glm` detects separation, names the
# terms, and prints no standard errors for them.

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
# Counts and amounts need another family. The rings of an abalone (a sea snail) are counts, so we
# use `family="poisson"`, which has a log link. The strength of concrete is positive, and its
# standard deviation is proportional to its mean, so we use `family="gamma"`. If counts were
# collected over periods of different length, give the logarithm of the length as `offset=`.

# %%
abalone = ld.data("abalone")
rings = ld.glm("rings ~ sex + np.log(whole_weight) + np.log(length)", abalone, family="poisson")
rings.summary()

# %% [markdown]
# The residual deviance is little more than half of its degrees of freedom: rings vary less than
# Poisson counts. Robust standard errors do not assume the variance of Poisson counts. The table
# shows the robust standard errors divided by those above:

# %%
robust = rings.update(abalone, covariance="HC1")
(robust.tidy()["std_error"] / rings.tidy()["std_error"]).set_axis(rings.tidy()["term"])

# %%
concrete = ld.data("concrete")
strength = ld.glm("strength ~ . - age + np.log(age)", concrete, family="gamma")
new = strength.predict(concrete, "interval", level=0.9)
held = concrete["strength"].between(new["new_lower"], new["new_upper"]).mean()
print(f"{held:.0%} of the batches are within their 90% intervals")

# %% [markdown]
# For concrete, the weakest batches may matter more than the mean strength. `family="quantile"`
# models a quantile of the strength. The table compares coefficients of a low, a middle and a high
# quantile. (For a mean that outliers influence less, use `family="huber"`.)

# %%
formula = "strength ~ . - age + np.log(age)"
shares = (0.1, 0.5, 0.9)
fits = [ld.glm(formula, concrete, family="quantile", quantile=share) for share in shares]
pd.concat([fit.coef() for fit in fits], axis=1, keys=shares).round(3)

# %% [markdown]
# How much accuracy does the linear form cost? Compare `glm` with `gbmap`, whose predictions need
# not be linear in a feature. The next cell computes the share of the variance of `mpg` that each
# model explains on held-out rows, by ten folds:

# %%
folds = np.random.default_rng(0).integers(0, 10, len(cars))
linear = ld.cv(ld.glm, "mpg ~ .", cars, folds=folds)
bent = ld.cv(ld.gbmap, "mpg ~ .", cars, folds=folds, grid={"m": [10]}, lambda_=0.1)
loss = pd.Series({"glm": linear.tidy()["mean"].min(), "gbmap": bent.tidy()["mean"].min()})
1 - loss / cars["mpg"].var(ddof=0)
