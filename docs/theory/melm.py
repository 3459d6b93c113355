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
# # How melm works
#
# What is a view? A linear projection of all features to two numbers (or one, or three). Below, thirteen measurements of wine are projected to the plane on which the densities of three cultivars overlap least.

# %%
import lodim as ld

wine = ld.data("wine")
fit = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = fit.plot("view")

# %% [markdown]
# ## The model
#
# For a basis V of a view, each class c has a kernel density estimate of its projected rows Vᵀx. The fit maximizes the Cauchy-Schwarz divergence of the densities, summed over pairs of classes (Czarnecki, Jozefowicz and Tabor 2015):
#
# > D(A, B) = log ∫ f_A² + log ∫ f_B² − 2 log ∫ f_A f_B
#
# The last term grows as the classes overlap less: it is the fitting term of the summary. The first two are minus the entropies of the classes, the regularizing term: a view in which classes are narrow is better. Kernel widths follow Silverman's rule times `gamma`; a larger `gamma` gives smoother densities.
#
# The divergence has many local maxima. The search therefore starts from principal components, from discriminant directions and from random directions, and keeps the best end. New rows are classified by the densities in the view.
#
# [The vignette](../vignettes/melm) compares the view with principal components and discriminant analysis.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.melm` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `prior` | "shares" | class priors of the classifier: "shares" suits accuracy and log-loss, "equal" balanced accuracy |
# | `calibrate` | `True` | calibrate probabilities; `False` saves a search per fold |
# | `shrinkage_factor` | chosen, or 1 | with `covariance="shrunk"`, factor of the odds of the Ledoit-Wolf intensity: 1 is the rule, 0 leaves the covariance within classes unchanged |
# | `reference_rows` | 10,000 | training rows kept for plots, plus up to 30 of rare classes |
# | `max_iter`, `tol` | 500, 1e-6 | of the search; it has converged if the largest gradient is at most `tol`, or two steps in a row raise the divergence by a share of at most 1e-9 |
#
# **Axes.** All bases of a view have the same divergence. The reported one has unit, uncorrelated variances within classes. Its first axes separate class means most, the others differ most in spread. The last class is on the positive side of the former; for the others the largest loading is positive, or in a tie (1e-6) the longer tail.
#
# **Choice of `gamma`.** Five values are compared by held-out deviance: five folds, drawn 12 times up to 250 rows, 3,000 / n times up to 3,000 and once up to 4,000; beyond, one of five folds of at most 20,000 rows. A fold's search has at most three starts at gamma 4, and continues to the other values. Scores of a fold are first calibrated by one factor. A value has weight exp(−(loss − lowest loss) / s), s being two standard errors, or 10 / n if larger; the weighted mean in log is rounded to 1/32 of a step. The view of the chosen gamma is followed from the best start at gamma 4, in steps of at most an eighth of an octave, since smaller gammas have many local maxima. A given gamma uses the best local maximum found at that gamma.
#
# **Choice of the shrinkage factor.** If neither `gamma` nor `covariance` is given, the factors 0 and 1 are compared at gamma 4 on at most six sets of folds. Factor 0 is rejected if it is no better in the first set. If it is better by z standard errors of the difference, the factor is 0.01^((z − 2) / 2) from z = 2, and 0 from z = 4.
#
# **Search.** All starts are followed on 2,048 random rows until two steps in a row raise the divergence by at most 1e-4; the best three continue on all rows. Sums over pairs are exact up to 5,000 rows. Beyond, in up to three dimensions, they are approximated if that is cheaper and the measured error is at most 0.001; otherwise they are exact up to 16,384 rows, or random rows of that number. `summary()` says which.
#
# **Classification.** Densities are estimated in the view, with class covariances shrunk by k + 1 pseudo-rows and the kernel width of lowest leave-one-out log-loss (at most 10,000 rows; a parabola through five widths; the widest of equal ones). A last search leaves out each row (or group) if there are at most 250 of them and at most five classes; otherwise it uses folds, as many sets as for gamma. It calibrates the probabilities and gives the held-out balanced accuracy and log-loss. Since gamma was chosen on the same rows, new rows may be classified slightly worse.
