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
# `glm` fits least squares, logistic, multinomial logistic, Poisson and gamma regression by maximum
# likelihood, without a penalty, and has the inference that only such a model allows: standard
# errors, tests, confidence and prediction intervals. The estimates are those of statsmodels, behind
# the same formulas, reports, plots and files as the other models of lodim.
#
# This document asks what fuel consumption of cars depends on, checks the model by its residuals,
# tests one model against another, and then does the same for two classes, for counts and for a
# response whose spread grows with its mean.

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
# Each row is the change of the mean for one unit more of the feature, the others held fixed. A
# factor has a row for each level but the first, which is the reference: a car from Japan goes so
# many miles further than one from Europe that is otherwise alike. `C(origin, Treatment("USA"))`
# takes another reference.
#
# The model is a straight line in each feature. Its residuals say whether that is so:

# %%
figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
for kind, ax in zip(("residuals", "qq", "leverage"), axes, strict=True):
    fit.plot(kind, ax=ax)

# %% [markdown]
# It is not: residuals are above zero at both ends, and they spread with the fitted value. The
# logarithm of the response, and a spline of weight, are an answer. Both models are of
# `np.log(mpg)`, and the first is nested in the second as far as their fitted values go, but not by
# the names of their terms; so the spline is added to the line, and the column that is then
# superfluous is left out and named:

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
# `drop1()` tests each term by itself, `anova()` without another fit one after another, as in R. A
# fit keeps no rows, so that families other than the gaussian need them: `fit.anova(data=cars)`.

# %%
curve.drop1().round(3)

# %% [markdown]
# The curvature in weight is there. Where the spread of the residuals may differ from row to row,
# robust errors do not take the model for true; where rows come in groups, such as cars of one
# origin and year, the errors are those of the groups. Estimates are the same, errors are not:

# %%
groups = cars["origin"] + cars["model_year"].astype(str)
errors = {
    "of the model": curve,
    "HC3": curve.update(cars, covariance="HC3"),
    "by groups": curve.update(cars, clusters=groups.to_numpy()),
}
pd.DataFrame({name: one.tidy().set_index("term")["std_error"] for name, one in errors.items()})

# %% [markdown]
# `predict(type="interval")` has the confidence interval of the mean, `lower` to `upper`, and one
# that holds a new car, `new_lower` to `new_upper`: of the logarithm here, so that `exp` gives miles
# per gallon.

# %%
np.exp(curve.predict(cars.head(3), "interval", level=0.9))

# %% [markdown]
# ## Two classes
#
# A response with two levels is a logistic regression: estimates are logarithms of odds ratios, and
# `exponentiate=True` shows the ratios. A response of proportions takes the numbers of trials as
# weights: `ld.glm("share ~ dose", data, weights="trials", family="binomial")`.

# %%
heart = ld.data("heart")
disease = ld.glm("disease ~ age + sex + chest_pain + max_heart_rate + st_depression", data=heart)
odds = disease.tidy(exponentiate=True).set_index("term")
odds[["estimate", "conf_low", "conf_high", "p_value"]]

# %%
disease.plot()

# %% [markdown]
# Unlike a penalized model, this one has no answer where a feature tells the classes apart: its
# estimate is infinite. `glm` finds out by a linear program, names the terms, and gives no errors.

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
# The rings of an abalone are counted: `family="poisson"`, with the logarithm as its link. The
# strength of concrete is above zero, and varies as its size does: `family="gamma"`. `offset=` is
# for what is known of the logarithm, such as the time that counts were taken over.

# %%
abalone = ld.data("abalone")
rings = ld.glm("rings ~ sex + np.log(whole_weight) + np.log(length)", abalone, family="poisson")
rings.summary()

# %% [markdown]
# The residual deviance is little more than half of its degrees of freedom: rings vary less than
# Poisson counts do. Robust errors do not hang on that; as shares of those above:

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
# How much is lost by the linear form, beside a model that bends? Held-out deviance explained, by
# ten folds:

# %%
folds = np.random.default_rng(0).integers(0, 10, len(cars))
linear = ld.cv(ld.glm, "mpg ~ .", cars, folds=folds)
bent = ld.cv(ld.gbmap, "mpg ~ .", cars, folds=folds, grid={"m": [10]}, lambda_=0.1)
loss = pd.Series({"glm": linear.tidy()["mean"].min(), "gbmap": bent.tidy()["mean"].min()})
1 - loss / cars["mpg"].var(ddof=0)
