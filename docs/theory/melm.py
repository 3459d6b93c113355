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
# What is a view? In `melm`, a view is a linear projection of all features to two coordinates (or one, or three). The plot below projects thirteen measurements of wine to a plane. On this plane the densities of three cultivars overlap least.

# %%
import lodim as ld

wine = ld.data("wine")
fit = ld.melm("cultivar ~ .", data=wine, gamma=1.0)
ax = fit.plot("view")

# %% [markdown]
# ## The model
#
# Let V be a matrix that projects a row x to Vᵀx. Each class has a kernel density estimate f of its projected rows. `melm` chooses V to maximize the Cauchy-Schwarz divergence D between these densities, summed over pairs of classes A and B (Czarnecki, Jozefowicz and Tabor 2015):
#
# > D(A, B) = log ∫ f_A² + log ∫ f_B² − 2 log ∫ f_A f_B
#
# The summary calls −2 log ∫ f_A f_B the *fitting term*: it is larger if the classes overlap less. The *regularizing term* is −log ∫ f_A² − log ∫ f_B², the sum of the entropies of the two classes: it is smaller if each class is more compact. The width of the kernels is `gamma` times that of Silverman's rule; a larger `gamma` gives smoother densities.
#
# The divergence has many local maxima. So `melm` starts the search from principal components, from
# directions that separate the classes, and from random directions. New rows are classified by the
# densities in the view. [The vignette](../vignettes/melm) has examples.
#
# The divergence D depends only on the plane that V spans, not on the basis V of the plane. So the
# penalty |VᵀV − I|² of the paper's Eq. 2, which chooses a basis, is unnecessary. `melm` first
# transforms the features to unit covariance within classes, and searches there.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.melm` is a dict with these entries (for `scratch`, see [Many
# rows](../big_data)):
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `prior` | "shares" | class priors of the classifier: "shares" suits accuracy and log-loss, "equal" balanced accuracy |
# | `calibrate` | `True` | calibrate probabilities; `False` saves a search per fold |
# | `shrinkage_factor` | 1 | with `covariance="shrunk"`, factor of the odds of the Ledoit-Wolf intensity: 1 is the Ledoit-Wolf rule, 0 leaves the covariance within classes unchanged |
# | `reference_rows` | 10,000 | number of training rows that are kept for plots; for rare classes up to 30 more. A saved fit also holds the coordinates of all rows, for the densities |
# | `max_iter`, `tol` | 500, 1e-6 | limits of the search: number of iterations, and largest gradient. The search has also converged if two steps in a row increase the divergence by a share of at most 1e-9 |
#
# ### Axes
#
# All bases of the same plane have the same divergence. `melm` chooses the axes by these rules:
#
# - The coordinates are uncorrelated and have unit variance within classes.
# - The first axes are those on which the class means differ most. On these axes, the last class is
#   on the positive side.
# - The remaining axes are those on which the spread of the classes differs most. On these axes, the
#   largest loading is positive.
#
# ### Choice of `gamma`
#
# If you omit `gamma`, `melm` compares three values, 16, 4 and 1, by the deviance on held-out rows.
#
# - *Folds for the choice of `gamma`.* The rows are split into five random folds several times: 6
#   times if n is at most 250, about 1,500 / n times if n is at most 1,500, and once if n is at most
#   4,000. With more rows, a fifth of at most 20,000 random rows is held out once.
# - *Average.* The chosen log(gamma) is a weighted mean of the logarithms of 16, 4 and 1. The weight
#   of a value is exp(−(loss − lowest loss) / s). Here s is two standard errors of the loss, but at
#   least 10 / n.
# - *Final search.* With a small gamma, the divergence has many local maxima. So the search begins
#   at gamma 4 and follows the best view to the chosen gamma, in small steps. If you give `gamma`,
#   `melm` uses the best local maximum at this gamma.
#
# ### Shrinkage, sums and classification
#
# - *Shrinkage factor.* With factor 1 the covariance within classes is shrunk by the rule of Ledoit
#   and Wolf, with 0 not at all. Try 0 if the classes may differ along a direction in which the
#   features hardly vary: shrinking hides it.
# - *Sums.* The divergence is a sum over pairs of rows. With more than 8,192 rows it is that of 8,192
#   random rows (more if there are rare classes); `summary()` says so. Covariances and densities are
#   of all rows.
# - *Starts.* From each start, `melm` first searches on 2,048 random rows. The three best results
#   are improved on up to 8,192 rows.
#
# - *Classification.* Kernel densities in the view classify new rows. With `covariance="shrunk"`,
#   the covariance of each class in the view is averaged with the identity matrix, which counts like
#   k + 1 rows in a view of k dimensions. The kernel width is the one with the lowest leave-one-out
#   log-loss, on at most 10,000 rows.
# - *Calibration.* Held-out predictions calibrate the probabilities, and give the held-out balanced
#   accuracy and log-loss. With at most 250 rows (or groups) and at most five classes, each row (or
#   group) is left out once. Otherwise the folds are those of the choice of `gamma`.
