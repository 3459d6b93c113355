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
# a response by a sum of learners,
#
# > f(x) = f₁(x) + ... + f_m(x),  f_j(x) = a_j + b_j g(w_jᵀ(1, x)),  b_j = −1 or +1,  (Eqs. 1, 2)
#
# Here g is the softplus, a rounded max(0, z). Each learner is added to those before it, with a
# penalty `lambda_` on the mean of its squared weights (Eqs. 3, 4). So the model has m bends, each
# along one direction, and is (nearly) linear between them.
#
# This page fits the fuel consumption of cars and explains each number of the printed reports. It then
# uses the distance, the local explanations and the regions of the fit, and ends with two classes.
# [Drift and model differences](gbmap_drift) have a page of their own.

# %%
import tempfile
from pathlib import Path

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
# `.` stands for all columns but the response. `origin` is text, so it is a category. A missing
# `horsepower` is replaced by the mean, and an additional feature marks such rows. `m` and `lambda_`
# are omitted, so five-fold cross-validation chooses both.

# %%
fit = ld.gbmap("mpg ~ .", data=cars)
print(fit)

# %% [markdown]
# The print resembles that of R's `glmnet`, with a row for each boost (one that adds nothing is
# dropped; the notes of the summary list it):
#
# - `Df`: the number of nonzero weights w of the boosts up to this one. It counts what was
#   estimated; it is no estimate of the effective degrees of freedom, which the penalty makes fewer.
# - `%Dev`: the per cent of the null deviance explained on the *training* rows. The null model
#   predicts the mean. For a numeric response this is 100 R².
# - `Lambda`: the penalty, for features and response in standard deviations, the same for all
#   boosts.
#
# If the rows allow eight learners or more, there may be a last row, `refit`: all learners were then
# optimized together after the last boost, because that lowers the held-out deviance by at least 2%.
# A boost is optimal given the earlier ones only; in a joint fit each learner is optimal given all
# others.

# %% [markdown]
# ## Summary

# %%
print(fit.summary())

# %% [markdown]
# **Header.** `Mean deviance` is the mean squared error of the training rows, `Mean null deviance`
# that of their mean, `Dev. ratio` one minus their ratio. `(by CV)` marks what cross-validation
# chose.
#
# **Weak learners.** A row for each f_j:
#
# - `a`, `b`: its constant and its sign. With `b` = +1 the learner bends f upwards along its
#   direction, with −1 downwards.
# - `|w|`: length of its weights, in units of the response per standard deviation of the features:
#   how steep f_j is where it is active.
# - `Active %`: the share of rows with w_jᵀ(1, x) > 0, that is, on the side of the hinge where f_j
#   is not flat. A learner that is active in all rows is linear on the data; one active in no row is
#   constant on it. The notes list these.
# - `Loss`, `Cum. %Dev`: training loss after this boost, and the per cent explained so far, before
#   the joint fit if there is one; `a`, `|w|` and `Active %` are those after it.
# - `Iter.`: iterations of the optimizer, from the start that led lowest.
#
# **Effects of features.** The local coefficient of a feature at x is the slope of f there; it
# differs from row to row. `Mean` averages it over the training rows, `Mean |.|` averages its size;
# `Per SD` and `|.| per SD` are the same per standard deviation of the feature, which makes features
# comparable. Where `Mean |.|` is well above the size of `Mean`, the effect changes sign, or is felt
# by some rows only.

# %%
ax = fit.plot("effects")  # bars: Per SD; grey: |.| per SD

# %%
ax = fit.plot("loss")

# %% [markdown]
# The same numbers as frames, to compute with: `tidy()`, `learners()`, `glance()`.

# %%
fit.glance().T

# %% [markdown]
# ## Path
#
# `path` fits the model for a decreasing sequence of penalties, each started from the one before,
# with a fixed `m` (10 by default). On the left everything is shrunk to zero; to the right features
# enter. Unlike in the lasso, these are mean *local* coefficients of a nonlinear model, and
# neighbouring penalties may end in different optima: jumps show that several descriptions of the
# data are about equally good.

# %%
path = ld.path(ld.gbmap, "mpg ~ .", data=cars)
ax = path.plot()

# %% [markdown]
# ## Cross-validation
#
# `cv` evaluates a grid of penalties by ten folds; if `m` is omitted, it is chosen for each. The
# dashed line marks the lowest mean held-out loss (`min`), the dotted one the largest penalty within
# one standard error of it (`1se`): a simpler model that is hardly worse.

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
# `dev_ratio` is for the training rows, so that the richer model looks better here. On held-out
# rows, these are the expected shares of the variance of `mpg` explained:

# %%
held_out = cv.frame.loc[[cv.index_min, cv.index_1se], ["mean", "se"]] / fit.null_deviance
held_out["mean"] = 1 - held_out["mean"]
held_out.set_axis(["min", "1se"]).set_axis(["1 - mean loss / null", "standard error"], axis=1)

# %% [markdown]
# The lowest of many means is slightly too low. For an unbiased figure, evaluate a fit on rows that
# were kept out of everything.
#
# ## Embedding and distance
#
# The values of the learners, (f₁(x), ..., f_m(x)), are an embedding (Eq. 5). Features without
# influence on the response do not affect it.

# %%
ax = fit.plot("embedding")

# %% [markdown]
# Distances in the embedding add the differences of the learners,
#
# > d(x, x') = Σ_j |f_j(x) − f_j(x')|  (Eq. 7),
#
# and are never below the difference of the predictions. The path distance (Eq. 6), the total change
# of f on the line from x to x', lies between the two (Eq. 8). Rows with equal predictions for
# different reasons are far apart in the embedding.

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
# Which cars are nearest to a given one? First in the embedding of the model, then in the plain
# Euclidean distance of the standardized numbers.

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
# The table shows the spread of `mpg` over the ten nearest training rows of each car, averaged over
# cars, for both distances. (The model has used the responses of these rows and the Euclidean
# distance has not, so this illustrates the distance, but does not test it.)

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
# `fit.neighbours(data, k)` is the k-nearest-neighbour prediction in this distance.
#
# ## Local explanation of one row
#
# Near one x the model is linear, and the gradient of f has its coefficients. Two cars on one scale:

# %%
figure, axes = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
for row, ax in zip((0, 320), axes, strict=True):
    fit.plot("local", data=cars, row=row, ax=ax)
cars.loc[[0, 320]]

# %% [markdown]
# `predict` returns the coefficients per unit of each feature, and the values of the learners as the
# embedding. A learner that is flat at x contributes nothing there.

# %%
fit.predict(cars.loc[[0, 320]], type="local").T

# %%
fit.predict(cars.loc[[0, 320]], type="embedding").iloc[:, :6]

# %% [markdown]
# ## Regions
#
# The bends of the learners divide the feature space into regions, in each of which the model is
# linear (apart from the rounding of the bends). A model of few boosts has few regions and can be
# read completely. `active` names the learners that are not flat in a region.

# %%
small = ld.gbmap("mpg ~ .", data=cars, m=3, lambda_=cv.lambda_1se)
print(small)
small.regions(cars).set_index("active").astype(object).T

# %% [markdown]
# Each column is a linear model in units of the data: `weight` is in lb, so its coefficients are
# miles per gallon for each pound.

# %% [markdown]
# ## Two classes
#
# A response of text has classes. The print names the level whose probability is modelled. The
# deviance is minus twice the mean log-likelihood, and local coefficients are on the logit scale.
# Every third row is kept out for the evaluation.

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
# ## Saving
#
# A fit is saved in one file, without pickle. Loading runs no code from it, and gives the same
# predictions to the last bit.

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "cars.lodim"
    fit.save(file)
    size = file.stat().st_size
    again = ld.load(file)
print(f"{size / 1024:.0f} KiB, equal predictions: {fit.predict(cars).equals(again.predict(cars))}")

# %% [markdown]
# ## What the numbers do not mean
#
# - There are no standard errors and no p-values. The penalty biases estimates, the learners are
#   chosen one after the other (and perhaps refitted), `m` and `lambda_` by the same data: no textbook distribution holds
#   for what comes out. Refit on resampled rows to see what is stable.
# - Mean local coefficients describe the *model*, averaged over these rows. They are not causal:
#   that `weight` has a negative coefficient does not say what a car would do if weight were taken
#   out of it. Correlated features (`weight`, `displacement`, `cylinders`) share what they have in
#   common in a way that the penalty decides, not the data.
# - `%Dev` of the print is of training rows. Cross-validation, or rows kept out, say what to expect.
# - The order of the boosts is no order of importance for each row, and a single learner means
#   little alone: another seed may give other learners and almost the same f. After a joint fit
#   the first boosts alone (`staged`, `first`) are partial sums that were fitted to nothing.
# - The distance is relative to the response that was modelled. Rows near to each other in it may
#   be different in every respect that does not matter for this response.
