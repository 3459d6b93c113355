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
# What does one learner of `gbmap` look like, and how are learners added up? Below, two learners (blue and orange) are fitted to points along a V. Each is flat on one side of a point and a line on the other, with a rounded bend. The black line is their sum, the prediction.

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
# The response is modelled by a sum of m learners, each along one direction of the features (Patron et al. 2024, Eqs. 1 and 2):
#
# > f(x) = offset + f₁(x) + ... + f_m(x),  f_j(x) = a_j + b_j g(w_jᵀ(1, x)),  b_j = −1 or +1
#
# Here g(z) = log(1 + exp(β z)) / β is the softplus, a rounded max(0, z). Learners are added one after the other. Boost j minimizes the mean loss of f₁ + ... + f_j plus the penalty `lambda_` × mean(w_jk²) over a_j and w_j, for both signs b_j, and keeps the better sign (Eqs. 3 and 4).
#
# - **Embedding** (Eq. 5): the values (f₁(x), ..., f_m(x)) are coordinates of x. A feature that no learner uses has no influence on them.
# - **Distance** (Eq. 7): d(x, x′) = Σ_j |f_j(x) − f_j(x′)| is never below the difference of the predictions.
# - **Local coefficients**: the gradient of f at x. The summary averages them over the training rows.
#
# [The vignette](../vignettes/gbmap) applies all of these to data.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.gbmap` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 1000 | most evaluations per learner, after its starting points have been compared |
# | `tol`, `ftol` | 1e-8, 1e-12 | a boost ends if no gradient exceeds `tol`, or if it can lower the objective by at most the share `ftol`. With more than 65,536 rows see below; with an L1 penalty there 1e-5 and 1e-6. Up to 65,536 rows `ftol` is 1e-8 with an L1 penalty or over 510 features; with the identity activation 1e-8 and 1e-13 |
# | `penalize_intercept` | `False` | penalize the weight of the constant, as the authors' code does; the fit then depends on the origin of the features |
# | `max_stages` | 100 | most boosts tried if `m` is chosen |
# | `path_stages` | 10 | boosts of `path` if `m` is omitted |
# | `reference_rows` | 10,000 | training rows kept for neighbours and drift |
#
# **Choice of `m` and `lambda_`.** Settings are compared by the deviance of held-out rows: five folds, drawn twice up to 2,000 rows and once up to 4,000; beyond, one of five folds is held out, of at most 20,000 random rows. With 64 or more columns folds are drawn once, and their fits end at `tol` 1e-5 and `ftol` 1e-6, rounded to 12 bits. Fits of folds use one starting point per sign. Nine penalties race (more, in steps of two, while the last on a side is best): every ten boosts those more than two standard errors behind the best are dropped, and after any boost those more than four behind whose loss rises. Boosting ends when 15 boosts have lowered the loss by at most a twentieth of its standard error, or at `max_stages`.
#
# The best setting varies with the random folds, so similar settings are averaged. Each has weight exp(−2 (loss − lowest loss) / standard error). `lambda_` is the weighted mean in log, to half a step of the grid, and `m` that of the numbers of boosts, rounded to 1, 2, ..., 10, 12, 15, 20, 25, 30, 40, 50, 60, 80 or 100.
#
# **Joint fit.** Each boost is optimal given the earlier ones. A joint fit (`refit="joint"`) then optimizes all learners together, starting at the boosts. Afterwards `staged` and `first` give partial sums, which predict poorly until the last. It has 60 learners per score, fewer if there would be fewer rows than parameters (m (2 + p) per score), and its own `lambda_`, chosen by the held-out deviance of joint fits of at most 100 evaluations: three penalties around that of the boosts, and more in steps of two while the last on a side is best. If `refit` is omitted, the joint fit is used if its held-out deviance is at least 2% below that of the boosts. It is not tried if rows allow fewer than eight learners, with an L1 penalty, or with the identity activation. `path` and `cv` compare joint fits if `refit="joint"` is given. One evaluation takes one pass over the rows, whatever the number of learners. L-BFGS ends if ten further steps would lower the objective by at most 3% of the standard error of the mean loss; with `tol` or `ftol` given, by these. The points that it tries are rounded to multiples of 2^-18, so that rounding errors cannot grow from step to step.
#
# **Optimization.** Up to 4,096 rows and fewer than 64 columns, without an L1 penalty, boosts are solved by Newton's method, otherwise by L-BFGS. Up to 65,536 rows they are solved tightly, so that rounding cannot decide where a boost ends; for L-BFGS starting points are rounded to 12 bits, and with up to 510 columns a few Newton steps finish. With more rows a boost ends if ten further steps would lower the objective by at most a quarter of the standard error of the mean loss. From 64 features on it starts in the span of the principal Hessian directions of all rows, or of 16,384 rows if these are 128 per feature. Learners that lower the objective by less than a relative 1e-5 are dropped, except those of the first boost.
#
# On autompg, diabetes and heart, eight seeds moved predictions by 0.06, 0.04 and 0.03 residual standard deviations (`benchmarks/seeds.py`).
