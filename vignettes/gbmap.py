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
# # Gradient boosting mapping
#
# How well can I predict, and still see why? `gbmap` (Patron, Prasad, Luu and Puolamäki 2024) models
# a response by a sum of functions of the features x, called *learners*:
#
# > f(x) = f₁(x) + ... + f_m(x).
#
# Each learner f_j has one bend, along one direction in the feature space, and is (nearly) linear on
# both sides of the bend. `gbmap` fits the learners one after the other, with a penalty `lambda_` on
# their weights. [How gbmap works](../theory/gbmap) has a picture and the equations.
#
# This page models the fuel consumption of cars. [Another page](gbmap_drift) is about drift and the
# difference of two models.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

cars = ld.data("autompg")
cars.head()

# %% [markdown]
# ## Fit
#
# In the formula, `.` stands for all columns except the response. `origin` is text, so it is a
# category. The mean replaces a missing `horsepower`, and an additional feature marks these rows. We
# omit `m` (the number of learners) and `lambda_`, so five-fold cross-validation chooses both.

# %%
fit = ld.gbmap("mpg ~ .", data=cars)
print(fit)

# %% [markdown]
# The printed table has a row for each *boost*: a step of the fit that adds one learner. [How to
# read the output](../summaries) explains every label.
#
# The table may have a last row, `refit`: a *joint fit*. In a boost, a learner is optimal given the
# earlier learners. In a joint fit, each learner is optimal given all other learners. By default,
# `gbmap` uses a joint fit if this lowers the held-out deviance by at least 2%.

# %% [markdown]
# ## Summary

# %%
print(fit.summary())

# %% [markdown]
# The table *Weak learners* has a row for each learner. A learner is *active* in a row if it is not
# constant there. A learner that is active in all rows is linear on the data.
#
# The table *Effects of features* has mean *local coefficients*. The local coefficient of a feature
# at the row x is the slope of f at x. `Mean` is its mean over the training rows, and `Mean |.|` is
# the mean of its absolute value. If `Mean |.|` is well above the absolute value of `Mean`, the
# slope changes sign between rows.

# %%
ax = fit.plot("effects")  # bars: Per SD; grey: |.| per SD

# %%
ax = fit.plot("loss")

# %% [markdown]
# The methods `tidy()`, `learners()` and `glance()` return the same numbers as data frames.

# %%
fit.glance().T

# %% [markdown]
# ## Path
#
# `ld.path` fits the model for a decreasing sequence of penalties, with a fixed `m` (10 by default).
# At the left end of the plot, the penalty shrinks all coefficients to zero. To the right, more and
# more features have an effect.
#
# The lines may jump, because fits with similar penalties may end in different local minima. A jump
# means that several models fit about equally well.

# %%
path = ld.path(ld.gbmap, "mpg ~ .", data=cars)
ax = path.plot()

# %% [markdown]
# ## Cross-validation
#
# `ld.cv` compares a grid of penalties by ten folds. If you omit `m`, it is chosen for each penalty.
# The dashed line marks the penalty with the lowest mean held-out loss (`min`), and the dotted line
# the largest penalty within one standard error of it (`1se`). The model at `1se` is simpler and
# hardly worse.

# %%
cv = ld.cv(ld.gbmap, "mpg ~ .", data=cars)
print(cv)
ax = cv.plot()

# %%
m_1se = int(cv.frame["m"][cv.index_1se])
simple = ld.gbmap("mpg ~ .", data=cars, lambda_=cv.lambda_1se, m=m_1se)
both = pd.concat({"min": cv.best.glance(), "1se": simple.glance()}).droplevel(1)
both[["m", "lambda_", "df", "dev_ratio"]]

# %% [markdown]
# `dev_ratio` is for the training rows, so the richer model looks better here. The next table shows
# the share of the variance of `mpg` that each model explains on held-out rows:

# %%
held_out = cv.frame.loc[[cv.index_min, cv.index_1se], ["mean", "se"]] / fit.null_deviance
held_out["mean"] = 1 - held_out["mean"]
held_out.set_axis(["min", "1se"]).set_axis(["1 - mean loss / null", "standard error"], axis=1)

# %% [markdown]
# ## Embedding and distance
#
# The values of the learners, (f₁(x), ..., f_m(x)), are coordinates of the row x, called its
# *embedding* (Eq. 5). A feature that does not influence the predictions does not influence the
# embedding.

# %%
ax = fit.plot("embedding")

# %% [markdown]
# The distance of two rows x and x' in the embedding is the sum of the differences of the learners,
#
# > d(x, x') = Σ_j |f_j(x) − f_j(x')|  (Eq. 7).
#
# This distance is never smaller than the difference of the two predictions. If two rows have equal
# predictions for different reasons, they are far apart in the embedding. The path distance (Eq. 6)
# is the total change of f on the line from x to x'. It lies between the difference of the
# predictions and the distance in the embedding (Eq. 8).

# %%
some = cars.dropna().iloc[[0, 60, 120, 240]]
predicted = fit.predict(some).to_numpy()
pairs = np.triu_indices(len(some), 1)
pd.DataFrame(
    {
        "|f(x) - f(x')|": np.abs(predicted[:, None] - predicted)[pairs],
        "path": fit.distance(some, kind="path").to_numpy()[pairs],
        "embedding": fit.distance(some).to_numpy()[pairs],
    },
    index=[f"{some.index[i]}, {some.index[j]}" for i, j in zip(*pairs, strict=True)],
)

# %% [markdown]
# Which cars are nearest to a given car? The first table is for the embedding, the second for the
# Euclidean distance of the standardized features.

# %%
one = cars.loc[[240]]
complete = cars.dropna()
by_model = fit.distance(one, complete).iloc[0].nsmallest(6).index
numbers = complete.drop(columns=["mpg", "origin"])
standard = (numbers - numbers.mean()) / numbers.std()
plain = ((standard - standard.loc[240]) ** 2).sum(axis=1).nsmallest(6).index
complete.loc[by_model]

# %%
complete.loc[plain]

# %% [markdown]
# How similar are the responses of neighbouring cars? The next table shows the standard deviation of
# `mpg` among the ten nearest training rows, averaged over cars: once with the model's distance,
# once with the Euclidean distance of the features. The model has an advantage, because its distance
# was learned from these responses.

# %%
embedded = fit.distance(complete).to_numpy()
euclidean = np.sqrt(((standard.to_numpy()[:, None] - standard.to_numpy()) ** 2).sum(axis=2))
mpg = complete["mpg"].to_numpy()
spread = {
    name: mpg[np.argsort(d, axis=1)[:, 1:11]].std(axis=1).mean()
    for name, d in {"embedding": embedded, "Euclidean": euclidean}.items()
}
pd.Series(spread, name="sd of mpg among ten neighbours").to_frame()

# %% [markdown]
# `fit.neighbours(data, k)` predicts each row by the mean response of the k nearest training rows in
# the embedding.
#
# ## Local explanation of one row
#
# Near a row x the model is linear, and its coefficients are the slopes of f at x. The plot compares
# the slopes for two cars:

# %%
figure, axes = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
for row, ax in zip((0, 320), axes, strict=True):
    fit.plot("local", data=cars, row=row, ax=ax)
cars.loc[[0, 320]]

# %% [markdown]
# `predict(type="local")` returns these slopes per unit of each feature. A learner that is constant
# near x contributes nothing to the slopes.

# %%
fit.predict(cars.loc[[0, 320]], type="local").T

# %%
fit.predict(cars.loc[[0, 320]], type="embedding").iloc[:, :6]

# %% [markdown]
# ## Regions
#
# The bends of the learners divide the feature space into regions. In each region the model is
# linear (apart from the rounding of the bends). A model with few boosts has few regions, so a
# person can read it completely. `active` lists the learners that are not constant in a region.

# %%
small = ld.gbmap("mpg ~ .", data=cars, m=3, lambda_=cv.lambda_1se)
print(small)
small.regions(cars).set_index("active").astype(object).T

# %% [markdown]
# Each column of the table is the linear model of one region, in units of the data. For example,
# `weight` is in lb, so its coefficients are in miles per gallon per pound.

# %% [markdown]
# ## Two classes
#
# If the response is text, its values are classes. The print names the class whose probability is
# modelled. The deviance is minus twice the mean log-likelihood, and local coefficients are on the
# logit scale. Every third row is held out.

# %%
cells = ld.data("breast_cancer")
test = np.arange(len(cells)) % 3 == 0
tumour = ld.gbmap("diagnosis ~ .", data=cells[~test])
print(tumour)

# %%
tumour.evaluate(cells[test])

# %%
pd.crosstab(cells["diagnosis"][test], tumour.predict(cells[test], "class").rename("predicted"))

# %%
ax = tumour.plot("effects", top=12)

# %%
ax = tumour.plot("embedding")

# %% [markdown]
# ## What the numbers do not mean
#
# - There are no standard errors and no p-values, because the same data choose `m` and `lambda_`,
#   and the penalty shrinks the estimates. `ld.bootstrap` shows how stable they are.
# - Mean local coefficients describe the *model*, averaged over these rows. They are not causal:
#   `weight` has a negative coefficient, but a lighter version of the same car need not use less
#   fuel by this amount. Correlated features (`weight`, `displacement`, `cylinders`) share a common effect, and
#   the penalty determines each share.
# - The order of the learners is not an order of importance. A single learner has little meaning:
#   another seed may give other learners and almost the same predictions. After a joint fit, a sum
#   of only the first learners (as in `fit.staged`) predicts poorly.
# - The distance depends on the response. Two rows with a small distance may differ in features that
#   do not matter for this response.
