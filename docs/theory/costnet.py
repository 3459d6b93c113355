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
# What does one price step look like? In the plot below, each point is the best model found at its price. A step to the right buys a feature and the items that it needs, and increases the share of the deviance explained.

# %%
import lodim as ld

heart = ld.data("heart")
prices = ld.data("heart_costs").set_index("name")
fit = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"])
ax = fit.plot("cost")

# %% [markdown]
# ## The model
#
# `costnet` returns a list of models, ordered by price. Each model is linear (for a numeric response), logistic (for classes) or log-linear (for counts with `family="poisson"` positive amounts with `family="gamma"`, and amounts of which some are zero with `family="tweedie"` and `power`; an offset is the logarithm of an exposure). A feature can need other items: exercise angina needs an exercise test. The price of a model is the price of its features and of all items that they need; each item is paid for once.
#
# Candidate models come from several search methods, called *rules*: a group penalty over the dependency graph (Fiterau 2014), the lasso, and greedy search. The group penalty minimizes the expression below. For each item v it has a group G_v: the columns of v and of all features that need v. If v is not bought, all coefficients of the group are zero.
#
# > ½ mean deviance + `lambda_` (l1_ratio Σ_v cost_v ‖β_Gv‖₂ + (1 − l1_ratio) ½ ‖β‖²)
#
# The selected features are refitted without the penalty; `relax` mixes penalized and refitted coefficients. Cross-validation compares the candidates at each price. The list of the best models is the *frontier*: every model on it has a lower held-out loss than all cheaper models.
#
# With `monotone={"age": "increasing"}` the coefficients of a column have one sign, those of an ordered category at each step from one level to the next. The path minimizes the same objective over coefficients of these signs: the proximal map drops what goes against a sign, then shrinks the rest, and the duality gap counts only slopes that a sign permits. Refits use active sets (Lawson and Hanson 1974). A coefficient that the data would turn is zero, so the feature is not bought for it. A free column with a sign is penalized like the cheapest one that is not free, and refitted without a penalty. "exact" then takes up to 15 features.
#
# [The vignette](../vignettes/costnet) shows a full example with prices.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.costnet` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `criterion` | "cv" | criterion that compares models: "cv" is the held-out loss. The others refit all models and use −2 log-likelihood plus a price per coefficient (a category has one coefficient fewer than levels): 2 log log n ("hq"), 2 ("aic"), log n ("bic"), the larger of log n and 2 log p ("ebic"), or 0 ("deviance") |
# | `tol` | 1e-7 | largest duality gap of a penalized model, relative to the objective of the null model |
# | `max_iter` | 200 | largest number of quadratic approximations per penalty; for a numeric response, up to five times as many sweeps over the features |
#
# **Cross-validation.** Candidates at each price are the models of every third penalty of each path, and the models that the criterion "hq" selects. Each penalized model competes in three versions: with penalized coefficients, refitted, and with the mean of both. Up to 2,000 rows, there are two sets of five folds, up to 4,000 rows one set. With more rows, one of five folds is held out, of at most 20,000 random rows. The standard error is that of a mean over rows. Two rules save time: with more than two classes, models of over 100 coefficients are not refitted; and if rows × columns × classes exceeds 200,000, there is one set of folds, and the rule "lasso" is skipped if other rules are given. On autompg, diabetes and heart, another seed changed predictions by 0.06, 0.02 and 0.05 residual standard deviations (eight seeds).
#
# **The frontier.** A model is dropped if it improves on a cheaper one by less than 0.5, in units of −2 log-likelihood of all rows or of the criterion. `df` is the number of columns with a coefficient; with several classes, each column counts once. If refitted models have equal price and criterion (within 1e-6), the one with the fewest items is kept, then the first by name. If columns are collinear, a small ridge penalty makes the refitted coefficients unique, so that duplicate columns share a coefficient. For classes, counts and amounts, a ridge penalty of 1e-7 of the variance of the scores keeps coefficients finite if classes are separated, or if a category has no count. The size of such coefficients has no meaning; their predictions are valid.
#
# **Rules.** At equal cost, the group penalty alone is not reliably better than the lasso, because it shrinks the coefficients of the selected features. If its models are refitted and combined with the other rules, it is better, especially at low cost. Greedy search has the lowest training deviance, but overfits with large budgets and few rows.
#
# **Alternatives.** An item may be available from several sources. Eq. 5.3 of the thesis splits its weight among sources of equal cost, which works against the purpose of buying only one. lodim instead copies the features that need the item, one copy per source. A coefficient is the sum of its copies (latent group lasso, Jacob et al. 2009), and the final model keeps the copies of one source only.
