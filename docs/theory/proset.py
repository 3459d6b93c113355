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
# What is one prototype, and how does it vote? A prototype is a training row with a weight and a
# kernel around it. It votes for its own class. Its vote is smaller for rows that differ more from
# it in the features that the model selected. The plot shows prototypes as points. The surface is
# the probability that all prototypes together give. The hatched area has hardly any training rows.

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
# where v_d ≥ 0 is the weight of feature d. The estimated probability of class c is
#
# > p_c(x) = (π_c + Σ_j w_j G(x − x_j) [y_j = c]) / (1 + Σ_j w_j G(x − x_j)),
#
# where π_c is the share of the class in the training data, and w_j ≥ 0 is the weight of prototype j. The sum Σ_j w_j G(x − x_j) is the *familiarity* of x. Far from all prototypes the familiarity is zero, and the estimate is the class share. Prototypes come in *batches*, each with its own feature weights v.
#
# `proset` chooses the weights to maximize the log-likelihood of the training rows minus two elastic-net penalties: `lambda_v` on v and `lambda_w` on w. A prototype does not vote for itself. Large penalties remove features and prototypes. [The vignette](../vignettes/proset) shows these quantities for a fit.
#
# ## Numeric responses
#
# Ruf's report has no text on numeric responses, so this part is lodim's own. [Prototypes for
# numbers](../vignettes/proset_numbers) has the formulas of both losses, "squared" and "density",
# and examples.
#
# Errors on new rows are larger than on training rows. Cross-validation estimates their ratio: the
# mean absolute error on held-out rows, divided by that on training rows. It uses five folds, or only
# the first of them with more than 4,000 rows. With `loss="squared"`, standard deviations are
# multiplied by this ratio, so that quantiles widen, too. With `loss="density"`, quantiles widen, but
# standard deviations do not change.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.proset` is a dict with these entries (for `scratch`, see [Many
# rows](../big_data)). A *candidate* is a training row that may become a prototype. A *hard* row is
# one whose own class has a low estimated probability.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_fraction` | `None` | if given (the author uses 0.5), a candidate is not also in the loss, and at most this share of a group of rows become candidates (eta in the report) |
# | `hard_share` | 0.1 | share of the rows of each class that count as hard |
# | `max_rows` | `None` | number of rows drawn at random per batch, stratified by class |
# | `worth` | 2 | a later batch may use new features only if they lower the loss by this many standard errors |
# | `precision` | "float64" | precision within a block of 64 rows; "float32" is faster, but rounding errors may then decide between two similar minima |
# | `max_iter` | 5,000 | largest number of evaluations per batch |
# | `tol`, `ftol` | 1e-6, 1e-9 | a batch has converged if no projected gradient exceeds `tol`, or if each of five steps lowers the objective by a share of at most `ftol` |
# | `lambda_u` | 1e-3 | penalty on u² / 2 with `loss="density"` |
# | `max_stages`, `path_stages` | 10, 1 | largest number of batches that is tried with `n_batches=None`; number of batches of `path` |
#
# ### Choice of the penalties
#
# - *`lambda_v`, up to 1,000 rows.* Cross-validation of the first batch compares six values, on up
#   to three sets of five random folds. The first is a penalty that gives the null model; the others
#   are 100 / n, 30 / n, 10 / n, 3 / n and 1 / n. Values with similar losses are averaged: `proset`
#   computes the mean position in this list, with weights exp(−2 (loss − lowest loss) / standard
#   error), and rounds it to the nearest half. Position 2.5, for example, stands for the geometric
#   mean of the second and third value. If no value is better than the null model by two standard
#   errors of the difference, the fit is the null model.
# - *`lambda_v`, otherwise.* The value is 10 / n, without a choice. This applies to more than 1,000 rows, to `loss="density"`, to `lambda_w=None` or `n_batches=None`, and to `path` and `cv`.
# - *`lambda_w`.* The default is 1e-8 for classes and 1e-6 for a numeric response. For a numeric response with more than 1,000 rows it is 1e-6 × 1000 / n.
#
# The author's defaults are `lambda_v=1e-3` and `lambda_w=1e-8`. On small noisy data, the author's defaults give a lower held-out likelihood than the class shares alone.
#
# ### Differences from the report (Ruf 2022)
#
# 1. A row can be a candidate for a prototype and also count in the loss; in its own loss, its vote
#    as a prototype is left out. In the report, half of the rows are candidates and only the other
#    half count in the loss; `control={"max_fraction": 0.5}` does the same.
# 2. Hard rows are the 10% of each class with the lowest estimated probability of this class. In the
#    report they are the misclassified rows.
# 3. Later batches may use new features only if these lower the loss by two standard errors.
# 4. The first iterations optimize the squares v_d², with a smoothed L1 penalty. Otherwise one long
#    step could set a feature's weight to 0, from where it rarely returns.
#
# Algorithm 2.2 of the report chooses penalties and batches by cross-validation. To repeat it, call
# `cv` twice with `folds=5, rule="1se"`: first with `n_batches=1` and 50 random (log-uniform) pairs
# of penalties as grid, then with `grid={"n_batches": [1, ..., 10]}`.
