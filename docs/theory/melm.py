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
# What is a view? It is a linear projection of all features to two coordinates (or one, or three). The plot below projects thirteen measurements of wine to the plane on which the densities of three cultivars overlap least.

# %%
import lodim as ld

wine = ld.data("wine")
fit = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = fit.plot("view")

# %% [markdown]
# ## The model
#
# Let V be a matrix that projects a row x to Vᵀx. Each class has a kernel density estimate f of its projected rows. The fit chooses V to maximize the Cauchy-Schwarz divergence between these densities, summed over pairs of classes A and B (Czarnecki, Jozefowicz and Tabor 2015):
#
# > D(A, B) = log ∫ f_A² + log ∫ f_B² − 2 log ∫ f_A f_B
#
# The last term is called *fitting term* in the summary. It is larger if the classes overlap less. The first two terms are minus the entropies of the two classes; their sum, with opposite sign, is the *regularizing term*. The divergence is larger if each class is compact. Kernel widths are those of Silverman's rule times `gamma`; a larger `gamma` gives smoother densities.
#
# The divergence has many local maxima. So the search starts from principal components, from discriminant directions and from random directions, and keeps the best maximum that it finds. New rows are classified by the densities in the view.
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
# | `shrinkage_factor` | chosen, or 1 | with `covariance="shrunk"`, factor of the odds of the Ledoit-Wolf intensity: 1 is the Ledoit-Wolf rule, 0 leaves the covariance within classes unchanged |
# | `reference_rows` | 10,000 | number of training rows that are kept for plots; for rare classes up to 30 more. A saved fit also holds the coordinates of all rows, for the densities |
# | `max_iter`, `tol` | 500, 1e-6 | limits of the search: number of iterations, and largest gradient. The search has also converged if two steps in a row increase the divergence by a share of at most 1e-9 |
#
# **Axes.** All bases V of the same plane have the same divergence. The reported coordinates are uncorrelated and have unit variance within classes. The first axes are the ones on which class means differ most, and on these the last class is on the positive side. The other axes are the ones on which the spread of the classes differs most. On these the largest loading is positive; if the largest loadings are equal (within 1e-6), the longer tail is on the positive side.
#
# **Choice of `gamma`.** Five values are compared by held-out deviance on five folds. There are 12 sets of random folds up to 250 rows, 3,000 / n sets up to 3,000 rows, and one set up to 4,000 rows. With more rows, one of five folds is held out, of at most 20,000 random rows. In each fold the search has at most three starts at gamma 4, and continues from there to the other values. The scores of a fold are calibrated by one factor. Each value gets the weight exp(−(loss − lowest loss) / s), where s is two standard errors, but at least 10 / n. The chosen gamma is the weighted mean of log(gamma), rounded to 1/32 of the step between values. Small gammas have many local maxima. So the search follows the best view at gamma 4 to the chosen gamma, in steps of at most an eighth of an octave. If you give `gamma`, the search uses the best local maximum that it finds at this gamma.
#
# **Choice of the shrinkage factor.** If you give neither `gamma` nor `covariance`, the factors 0 and 1 are compared at gamma 4, on at most six sets of folds. If factor 0 is not better in the first set, the factor is 1. Otherwise let factor 0 be better by z standard errors of the difference: the factor is 1 for z below 2, 0.01^((z − 2) / 2) for z from 2 to 4, and 0 for larger z.
#
# **Search.** From each start, the search uses 2,048 random rows until two steps in a row increase the divergence by at most 1e-4. The best three continue on all rows. The divergence is a sum over pairs of rows, which is exact up to 5,000 rows. With more rows and up to three dimensions, the sum is approximated if this is faster and the measured error is at most 0.001. Otherwise it is exact up to 16,384 rows; with more rows, it uses 16,384 random rows. `summary()` says which sum was used.
#
# **Classification.** New rows are classified by kernel densities in the view. Class covariances are shrunk by k + 1 pseudo-rows. The kernel width has the lowest leave-one-out log-loss (at most 10,000 rows; the minimum of a parabola through five widths). Held-out predictions calibrate the probabilities, and give the held-out balanced accuracy and log-loss. With at most 250 rows (or groups) and at most five classes, each row (or group) is left out once; otherwise there are as many sets of folds as for gamma. As gamma was chosen on the same rows, new rows may be classified slightly worse.
