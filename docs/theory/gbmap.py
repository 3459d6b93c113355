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
# What does one learner of `gbmap` look like, and how are learners added up? The plot below shows two learners (blue and orange), fitted to points along a V. Each learner is constant on one side and linear on the other, with a rounded bend between them. The black line is their sum, the prediction.

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
# The score is a sum of m learners. Each learner f_j depends on one linear combination of the features (Patron et al. 2024, Eqs. 1 and 2):
#
# > f(x) = offset + f₁(x) + ... + f_m(x),  f_j(x) = a_j + b_j g(w_jᵀ(1, x)),  b_j = −1 or +1
#
# Here g(z) = log(1 + exp(β z)) / β is the softplus, a rounded max(0, z). The learners are fitted one after the other, in steps called *boosts*. Boost j chooses a_j and w_j to minimize the mean loss of f₁ + ... + f_j plus the penalty `lambda_` × mean(w_jk²). It does so for both signs b_j, and keeps the better sign (Eqs. 3 and 4).
#
# - **Embedding** (Eq. 5): the values (f₁(x), ..., f_m(x)) are coordinates of x. A feature that no learner uses does not influence them.
# - **Distance** (Eq. 7): d(x, x′) = Σ_j |f_j(x) − f_j(x′)| is never below the difference of the predictions.
# - **Local coefficients**: the gradient of f at x. The summary averages them over the training rows.
#
# [The vignette](../vignettes/gbmap) has an example of each.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.gbmap` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 1000 | largest number of evaluations per learner, not counting the comparison of starting points |
# | `tol`, `ftol` | 1e-8, 1e-12 | a boost ends if no gradient exceeds `tol`, or if the objective can fall by at most the share `ftol`. See *Tolerances* below for exceptions |
# | `penalize_intercept` | `False` | penalize the weight of the constant as well, as the authors' code does; the fit then depends on the origin of the features |
# | `max_stages` | 100 | largest number of boosts that is tried if `m` is omitted |
# | `path_stages` | 10 | number of boosts of `path` if `m` is omitted |
# | `reference_rows` | 10,000 | number of training rows that are kept for neighbours and drift |
#
# **Choice of `m` and `lambda_`.** Settings are compared by the deviance of held-out rows. Up to 2,000 rows there are two sets of five random folds, up to 4,000 rows one set. With more rows, one of five folds is held out, of at most 20,000 random rows. With 64 or more columns there is one set of folds; its fits end at `tol` 1e-5 and `ftol` 1e-6 and are rounded to 12 bits. Fits of folds use one starting point per sign.
#
# The comparison begins with nine penalties. As long as the largest or smallest penalty is best, two more are added on that side. Bad penalties are dropped early: every ten boosts, a penalty is dropped if its loss exceeds the lowest by more than two standard errors. After any boost, it is dropped if its loss increases and exceeds the lowest by more than four standard errors. Boosting ends if 15 boosts have lowered the loss by at most a twentieth of its standard error, or after `max_stages` boosts.
#
# The best setting varies with the random folds, so similar settings are averaged. Each setting has the weight exp(−2 (loss − lowest loss) / standard error). The chosen `lambda_` is the weighted mean of log(`lambda_`), rounded to half a step of the grid. The chosen `m` is the weighted mean number of boosts, rounded to 1, 2, ..., 10, 12, 15, 20, 25, 30, 40, 50, 60, 80 or 100.
#
# **Joint fit.** Each boost is optimal given the earlier boosts only. A joint fit (`refit="joint"`) then optimizes all learners together, starting from the boosts. After a joint fit, `staged` and `first` return partial sums of learners that predict poorly, except the last sum.
#
# - *Size.* A joint fit has 60 learners per score, or fewer, so that there are at least as many rows as parameters (m (2 + p) per score).
# - *Penalty.* It has its own `lambda_`, chosen by the held-out deviance of joint fits of at most 100 evaluations. Five penalties are tried: the `lambda_` of the boosts, the next larger and three smaller ones. As long as the largest or one of the two smallest is best, two more are added on that side.
# - *When it is used.* If `refit` is omitted, the joint fit is used if its held-out deviance is at least 2% lower than that of the boosts. It is not tried if the rows allow fewer than eight learners, with an L1 penalty, or with the identity activation. `path` and `cv` use joint fits only if `refit="joint"` is given.
# - *Optimization.* One evaluation is one pass over the rows for any number of learners. L-BFGS ends if ten further steps would lower the objective by at most 3% of the standard error of the mean loss, or at `tol` and `ftol` if you give them. The parameters that it tries are rounded to multiples of 2^-18, so that rounding errors cannot grow from step to step.
#
# **Optimization of boosts.** Up to 4,096 rows and with fewer than 64 columns, without an L1 penalty, the optimizer is Newton's method, otherwise L-BFGS. For L-BFGS starting points are rounded to 12 bits, and with up to 510 columns a few Newton steps follow it. With 64 or more features, starting points lie in the span of the principal Hessian directions. These are computed from all rows, or from 16,384 rows if there are at least 128 of these rows per feature. A learner is dropped if it lowers the objective by less than a relative 1e-5, except in the first boost.
#
# **Tolerances.** Up to 65,536 rows, boosts are optimized so precisely that rounding errors do not matter. There the defaults of `tol` and `ftol` are those of the table, with two exceptions: `ftol` is 1e-8 with an L1 penalty or more than 510 features, and the identity activation has 1e-8 and 1e-13. With more rows, a boost ends if ten further steps would lower the objective by at most a quarter of the standard error of the mean loss; with an L1 penalty `tol` is 1e-5 and `ftol` 1e-6.
#
# **Sensitivity to the seed.** On autompg, diabetes and heart, another seed changed predictions by 0.06, 0.04 and 0.03 residual standard deviations (eight seeds, `benchmarks/seeds.py`).
