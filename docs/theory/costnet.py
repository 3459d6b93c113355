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
# # How costnet works
#
# What does one price step look like? Each point below is the best model found at its price. A step to the right buys a feature, together with everything that it needs, and raises the share of the deviance explained.

# %%
import lodim as ld

heart = ld.data("heart")
prices = ld.data("heart_costs").set_index("name")
fit = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"])
ax = fit.plot("cost")

# %% [markdown]
# ## The model
#
# Each model on the list is linear (a numeric response), logistic (classes) or log-linear (counts with `family="poisson"`, whose offset is the log of an exposure; amounts with `family="gamma"`). A feature can need other items: exercise angina needs an exercise test. Buying a feature means buying all that it needs, each item once.
#
# Candidates come from several searches, called *rules*: a group penalty over the dependency graph (Fiterau 2014), the lasso, and greedy search. The penalty for item v acts on the group G_v of its columns and those of everything that depends on it: unless v is paid for, all of these are zero.
#
# > ½ mean deviance + `lambda_` (l1_ratio Σ_v cost_v ‖β_Gv‖₂ + (1 − l1_ratio) ½ ‖β‖²)
#
# Selected models are refitted without the penalty, or shrunken partly (`relax`). Cross-validation compares the candidates at each price. The list that remains is the *frontier*: every model on it has a lower held-out loss than all cheaper ones.
#
# [The vignette](../vignettes/costnet) shows a full example with prices.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.costnet` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `criterion` | "cv" | how models compete: held-out loss; or −2 log-likelihood plus, per coefficient (levels minus one for a category), 2 log log n ("hq"), 2 ("aic"), log n ("bic"), the larger of log n and 2 log p ("ebic") or 0 ("deviance"), with all models refitted |
# | `tol` | 1e-7 | duality gap per penalty, relative to the null model's objective |
# | `max_iter` | 200 | quadratic models per penalty, or five times as many sweeps for a numeric response |
#
# **Cross-validation** compares at each price the models of every third penalty of each path, with the penalty's coefficients, halfway and fully refitted, and the models that "hq" selects. There are five folds, drawn twice up to 2,000 rows; beyond 4,000 rows one of five folds of at most 20,000 rows. The standard error is that of a mean over rows. With more than two classes, models of over 100 coefficients are not refitted. If rows × columns × classes exceeds 200,000, folds are drawn once, and "lasso" is skipped if other rules are given. On autompg, diabetes and heart, eight seeds moved predictions by 0.06, 0.02 and 0.05 residual standard deviations.
#
# **The frontier.** A model that improves on a cheaper one by less than 0.5 (−2 log-likelihood of all rows, or the criterion) is dropped. `df` counts columns with a coefficient; over K classes a column counts once. Of refitted models with equal price and criterion (1e-6), the one with the fewest purchases is kept, then the first by name. Refits have a ridge on combinations of columns that the rows leave open, so that duplicate columns share a coefficient. For classes, counts and amounts a ridge of 1e-7 of the scores' variance keeps coefficients finite if classes are separated, or a category has no count; their size has no meaning, their predictions do.
#
# **Rules.** The group penalty alone does not reliably beat the lasso at equal cost, because it shrinks what it keeps; refitted and combined with the other rules it does, most of all at low cost. Greedy search wins on training deviance and overfits with large budgets and few rows.
#
# **Alternatives** differ from Eq. 5.3 of the thesis, which splits a weight among sources of equal cost and so works against its purpose. Here each source has a copy of its dependents, a coefficient is the sum of its copies (the latent group lasso of Jacob et al. 2009), and the final model keeps the copies of one source.
