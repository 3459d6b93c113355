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
# # How proset works
#
# What is one prototype, and how does it vote? Below, a prototype is a training row with a weight and a kernel around it: its vote falls with the distance, in features that the model selects. The surface is the estimate of all prototypes together. It is hatched where there are hardly any training rows.

# %%
import lodim as ld

cells = ld.data("breast_cancer")
fit = ld.proset("diagnosis ~ worst_area + worst_smoothness", cells, lambda_v=0.01)
ax = fit.plot("surface")

# %% [markdown]
# ## The model
#
# A row x is compared with the prototypes x_j by the kernel (Ruf 2022)
#
# > G(x − x_j) = exp(−½ Σ_d (v_d (x_d − x_jd))²),
#
# where v_d ≥ 0 is the weight of feature d. The probability of a class is
#
# > p_c(x) = (π_c + Σ_j w_j G(x − x_j) [y_j = c]) / (1 + Σ_j w_j G(x − x_j)),
#
# where π_c is the share of the class in the training data and w_j ≥ 0 the weight of prototype j. Prototypes come in batches, each with its own v. Far from all prototypes the estimate is the class share. The sum Σ_j w_j G(x − x_j) is the *familiarity* of x.
#
# The weights maximize the log-likelihood of the training rows, each without the prototype that it is itself, minus elastic-net penalties on v (`lambda_v`) and w (`lambda_w`). Large penalties remove features and prototypes.
#
# [The vignette](../vignettes/proset) reads all of this off a fit.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.proset` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_fraction` | `None` | most of a group that are candidates and do not score (eta; the author's is 0.5) |
# | `hard_share` | 0.1 | share of each class that is hard |
# | `max_rows` | `None` | rows drawn per batch, stratified |
# | `worth` | 2 | standard errors by which features new to a later batch must lower the loss |
# | `precision` | "float64" | arithmetic within a tile of 64 rows; "float32" is faster, but rounding may decide between two close minima |
# | `max_iter` | 5,000 | evaluations |
# | `tol`, `ftol` | 1e-6, 1e-9 | a batch has converged if no projected gradient exceeds `tol`, or if each of five steps lowers the objective by a share of at most `ftol` |
# | `lambda_u` | 1e-3 | penalty of u² / 2 with `loss="density"` |
# | `max_stages`, `path_stages` | 10, 1 | most batches tried if `n_batches` is chosen; batches of `path` |
#
# **Penalties.** With "auto" and up to 1,000 rows `lambda_v` is chosen by cross-validation of the first batch from 100, 30, 10, 3 and 1 over n, with two to eight sets of random folds, until all would agree. If no value beats the null model by two standard errors, the fit is the null model. Beyond 1,000 rows, with `loss="density"`, with `lambda_w=None` or `n_batches=None`, and in `path` and `cv`, it is 10 / n. `lambda_w` is 1e-8; for a numeric response 1e-6, times 1000 / n beyond 1,000 rows. The author's values are 1e-3 and 1e-8; on small noisy data the class shares then have the better held-out likelihood.
#
# **Numeric responses** are lodim's own addition (chapter 3 of the report is empty). With y standardized and B(x) = 1 + Σ w_j G(x − x_j):
#
# - "squared": the mean m(x) = Σ w_j G(x − x_j) y_j / B(x) minimizes the mean squared error. The variance is (s0² + Σ w_j G(x − x_j) e_j²) / B(x), with e_j the leave-one-out residual of prototype j. Quantiles are m + s q, q those of the residuals in units of s.
# - "density": p(y | x) = (N(y; 0, 1) + Σ w_j G(x − x_j) N(y; y_j, 1/u²)) / B(x) maximizes the likelihood; u is fitted per batch. The density may have several modes, and its mean is less accurate. Quantiles are calibrated by the leave-one-out levels of the training responses.
#
# Errors are widened to those of new rows, estimated by fits to four fifths of the rows (one such fit beyond 4,000 rows, else five).
#
# **Differences from the report.** (1) Candidates score too, each without itself, since half of a small sample is too small for either purpose; `control={"max_fraction": 0.5}` is the report's way. (2) Hard rows have the lowest 10% of the probability of their class, instead of being misclassified. (3) Later batches may use new features only if these lower the loss by two standard errors. (4) w is optimized in units of sqrt(J) for J candidates, 10 sqrt(J) for classes; most evaluations skip candidates and features without weight, which are checked at the end. (5) A first descent is over v_d², with a smoothed L1 penalty, because at v_d = 0 the loss has no slope, and one long step could lose a feature. (6) Candidates are drawn by the content of rows, not their order.
#
# **The report's search.** Algorithm 2.2 is two calls of `cv` with `folds=5, rule="1se"`: 50 log-uniform pairs of penalties with `n_batches=1`, then `grid={"n_batches": [1, ..., 10]}`. The author's later search is `grid={"lambda_v": np.logspace(-6, -1, 11), "n_batches": [1, ..., 10]}`.
