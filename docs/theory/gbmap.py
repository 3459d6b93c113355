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
# # How gbmap works
#
# What is one *learner* of `gbmap`, and how do learners form a model? The plot shows two learners
# (blue and orange), fitted to points along a V. Each learner is constant on one side and linear on
# the other, with a rounded bend between the sides. The black line is their sum, which is the
# prediction.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, 200))
points = pd.DataFrame({"x": x, "y": np.abs(x) + 0.1 * rng.normal(size=200)})
fit = ld.gbmap("y ~ x", points, m=2, lambda_=1e-3, refit="joint")
learners = fit.predict(points, "embedding")

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(x, points["y"], ".", color="0.8")
for k, name in enumerate(learners, 1):
    ax.plot(x, learners[name], label=f"learner {k}")
ax.plot(x, fit.predict(points), "k", label="prediction")
ax.legend(frameon=False)
ax = ax.set(xlabel="x", ylabel="y")

# %% [markdown]
# ## The model
#
# The score f(x) of a row x is the prediction on the scale of the link. It is a sum of m learners f₁, ..., f_m. Each learner depends on one linear combination of the features (Patron et al. 2024, Eqs. 1 and 2):
#
# > f(x) = offset + f₁(x) + ... + f_m(x),  f_j(x) = a_j + b_j g(w_jᵀ(1, x)),  b_j = −1 or +1
#
# The function g(z) = log(1 + exp(β z)) / β is the softplus, a rounded max(0, z). `gbmap` fits the learners one after the other, in steps called *boosts*. Boost j chooses a_j and w_j to minimize the mean loss of f₁ + ... + f_j plus the penalty `lambda_` × mean(w_jk²). The boost tries both signs b_j and keeps the better sign (Eqs. 3 and 4).
#
# - **Embedding** (Eq. 5): the values (f₁(x), ..., f_m(x)) are coordinates of the row x.
# - **Distance** (Eq. 7): the distance of two rows x and x′ is d(x, x′) = Σ_j |f_j(x) − f_j(x′)|. It
#   is never smaller than the difference of the two predictions.
# - **Local coefficients**: the slopes of f at the row x. The summary averages them over the
#   training rows.
#
# [The vignette](../vignettes/gbmap) has an example of each.
#
# ## Counts, amounts, quantiles, outliers and ordered classes
#
# Which family suits which response? `family=` chooses the loss that the learners minimize. If you omit `family=`, numbers get squared error and classes get log-loss.
#
# | response | `family=` | prediction | example |
# |---|---|---|---|
# | number | `"gaussian"` | mean | fuel consumption |
# | number with outliers | `"huber"` | a mean that outliers influence less | incomes with typing errors |
# | number, if a quantile is of interest | `"quantile"`, with `quantile=0.9` | the 0.9 quantile | the delivery time that nine of ten parcels keep |
# | count | `"poisson"` | mean count; log link | accidents per driver |
# | positive amount | `"gamma"` | mean amount; log link | size of a claim |
# | amount that is often zero | `"tweedie"`, with `power=1.5` | mean amount; log link | claims per policy and year |
# | at least three classes in order | `"ordinal"` | probability of each class | grades, ratings |
#
# With a log link, a slope of 0.1 means that one more unit of the feature multiplies the prediction
# by exp(0.1), about 1.1. If counts belong to different times of observation, give the logarithm of
# the time as `offset=`. For `"huber"`, residuals above 1.345 robust standard deviations count
# linearly instead of squared.
#
# With `"ordinal"` the log-odds of a class above the threshold θₖ are f(x) − θₖ, as in `glm`. Each
# boost fits its learner with fixed thresholds, and then the thresholds.
#
# The example predicts a fuel consumption that nine of ten cars do not exceed. The printed share of training cars at or below the prediction is close to 0.9:

# %%
cars = ld.data("autompg")
high = ld.gbmap("mpg ~ .", cars, family="quantile", quantile=0.9, m=5, lambda_=0.1)
(cars["mpg"] <= high.predict(cars)).mean()

# %% [markdown]
# ## Monotone effects
#
# How can I use the knowledge that an effect has one direction? `monotone=` gives the direction of a
# feature. If this feature increases and all others are fixed, the prediction never falls
# (`"increasing"`) or never rises (`"decreasing"`).
#
# The grey effects in the plot are not monotone. The blue effects come from a fit in which a larger
# engine never increases the miles per gallon, and a later model year never decreases them.

# %%
directions = {"displacement": "decreasing", "model_year": "increasing"}
free = ld.gbmap("mpg ~ .", cars, m=20, lambda_=0.03)
monotone = ld.gbmap("mpg ~ .", cars, m=20, lambda_=0.03, monotone=directions)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for one, label, colour in ((free, "unconstrained", "0.6"), (monotone, "monotone", "C0")):
    effects = ld.effects(one, cars, list(directions)).tidy()
    for name, ax in zip(directions, axes, strict=True):
        curve = effects[effects["term"] == name]
        ax.plot(curve["value"].astype(float), curve["estimate"], color=colour, label=label)
        ax.set(xlabel=name, ylabel="effect on mpg")
legend = axes[0].legend(frameon=False)

# %% [markdown]
# A column in `monotone=` must be a number or an ordered category, and must not be part of another
# term of the formula. Monotone fits need a response that is a number, or has two classes or ordered
# classes, and no L1 penalty. For two classes, the probability of the second class is monotone. For
# ordered classes, the probability of a class above any threshold is monotone.
#
# Each learner is monotone by itself, so some monotone functions can only be approximated. An example
# is y = 8 x₁x₂ + 2 x₃ with noise. With 200 rows, R² on new rows falls from 0.90 to 0.87 with
# `monotone=`; with 2,000 rows, it falls from 0.978 to 0.964. Even with unlimited rows without noise,
# a sum of increasing learners cannot have an R² above 0.991 for this function. If the true function
# is a sum of monotone functions of single features, `monotone=` does not lower R²
# (`benchmarks/monotone.py`).
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.gbmap` is a dict with these entries (for `scratch`, see [Many
# rows](../big_data)):
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 1000 | largest number of evaluations per learner, not counting the comparison of starting points |
# | `tol`, `ftol` | 1e-8, 1e-12 | a boost ends if no component of the gradient exceeds `tol`, or if the objective can fall by at most the share `ftol`. The table at the end of this page lists other defaults |
# | `penalize_intercept` | `False` | penalize the weight of the constant as well, as the authors' code does; the fit then depends on the origin of the features |
# | `max_stages` | 100 | largest number of boosts that is tried if `m` is omitted |
# | `path_stages` | 10 | number of boosts of `path` if `m` is omitted |
# | `reference_rows` | 10,000 | number of training rows that are kept for neighbours and drift |
#
# ### Choice of `m` and `lambda_`
#
# If you omit `m` or `lambda_`, cross-validation compares settings by the deviance of held-out rows.
# [Choosing settings](../settings) explains how similar settings are averaged.
#
# - *Folds.* Up to 2,000 rows and fewer than 64 columns: two sets of five random folds. Otherwise,
#   up to 4,000 rows: one set of five folds. More rows: a fifth of the rows is held out once; of
#   more than 20,000 rows, a random 20,000 are used.
# - *Penalties.* Nine penalties are compared first. If the largest or smallest of them is best, more
#   are added on that side.
# - *Number of boosts.* Boosting ends after `max_stages` boosts, or if the last 15 boosts together
#   lowered the loss by at most a twentieth of its standard error.
#
# On autompg, diabetes and heart, another seed changed predictions by 0.09, 0.05 and 0.01 residual
# standard deviations (ten seeds, `benchmarks/seeds.py`).
#
# ### Heavy tails
#
# In a formula such as `y ~ .`, the columns that the dot stands for are compressed if they have
# heavy tails, that is, a kurtosis above 6: `np.arcsinh((x - center) / spread)` replaces x. This
# function is almost linear near the center and grows like a logarithm far from it. Without it, a
# few rows determine the slopes, and new rows farther out get extreme predictions.
#
# - *Center and spread.* The center is the median. The spread is the median of |x − center|, over
#   values that differ from the center, divided by 0.6745. For normal numbers this is the standard
#   deviation. Both are rounded. They are learned from at most 100,000 random rows.
# - *Where to see the columns.* The summary lists the compressed columns, and the names of their
#   terms have center and spread. The coefficient of such a column is the slope per unit of the
#   compressed column.
# - *How to keep a column as it is.* A column that the formula names enters as it is, such as
#   `income` in `y ~ income + .`.
# - *Exceptions.* Columns with one or two distinct values always enter as they are. Extreme outliers
#   alone do not make a tail heavy; they are replaced, as in all models.
#
# ### Joint fit
#
# A joint fit (`refit="joint"`) starts from the boosts and then optimizes all learners together.
#
# - *Size.* A joint fit optimizes all learners at the same time, after boosting has found them one
#   by one. It has 60 learners (per class, if there are several), or fewer if they would have more
#   parameters than there are rows. A learner has 2 + p parameters for p columns.
# - *Penalty.* The joint fit has its own `lambda_`, chosen by its held-out deviance.
# - *When it is used.* If you omit `refit`, the joint fit is used if its held-out deviance is at
#   least 2% lower than that of the boosts. It is not tried with an L1 penalty, with the identity
#   activation, or if rows are so few that it would have fewer than eight learners. `path` and `cv`
#   use joint fits only with `refit="joint"`.
#
# ### Optimizer
#
# With at most 4,096 rows, fewer than 64 columns and no L1 penalty, the optimizer is Newton's
# method. In all other cases it is L-BFGS. With 64 or more columns, the optimizer starts from
# combinations of the directions along which the response is most curved (principal Hessian
# directions). After the first boost, a learner is dropped if it lowers the objective by less than
# 1e-5 of its value.
#
# The table has the default tolerances of a boost, `tol` and `ftol` of `control=`:
#
# | fit | `tol` | `ftol` |
# |---|---|---|
# | up to 65,536 rows | 1e-8 | 1e-12 |
# | up to 65,536 rows, with an L1 penalty or more than 510 columns | 1e-8 | 1e-8 |
# | more than 65,536 rows, with an L1 penalty or `monotone=` | 1e-5 | 1e-6 |
# | any number of rows, with the identity activation | 1e-8 | 1e-13 |
#
# The other fits to more than 65,536 rows have no such tolerance. They end when, at the present
# rate, ten further steps would lower the objective by at most a quarter of the standard error of
# the mean loss.
