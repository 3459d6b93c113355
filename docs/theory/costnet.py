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
# What does a more expensive model add? `costnet` returns a list of models, one per price. In the
# plot below, each point is the best model that `costnet` found at its price. A step to the right
# buys one more feature, with everything that it needs, and explains more of the deviance.

# %%
import lodim as ld

heart = ld.data("heart")
prices = ld.data("heart_costs").set_index("name")
fit = ld.costnet("disease ~ .", data=heart, costs=prices["cost"], depends_on=prices["needs"])
ax = fit.plot("cost")

# %% [markdown]
# ## The model
#
# `costnet` returns a list of models, ordered by price. An *item* is anything with a price: a feature, or a purchase that features need. For example, the feature exercise angina needs the item exercise test. The price of a model is the price of its features and of all items that these features need. Each item is paid for once.
#
# | response | model at each price |
# |---|---|
# | number | linear |
# | classes | logistic or multinomial |
# | count (`family="poisson"`), positive amount (`"gamma"`), amount that is often zero (`"tweedie"`, with `power=`) | log-linear; the offset is the logarithm of an exposure |
# | number with outliers (`"huber"`), quantile of a number (`"quantile"`, with `quantile=0.9`) | linear; the check loss of a quantile has a smoothed kink, so the printed deviance of the training rows differs slightly from the exact one (by at most 1.6% on `autompg`, `concrete` and `abalone`, for quantiles from 0.05 to 0.99) |
#
# Several search methods, called *rules*, propose models: a group penalty (Fiterau 2014), the lasso,
# and greedy search. The group penalty has one group of columns G_v for each item v: the columns of
# v, and those of all features that need v. It minimizes
#
# > ½ mean deviance + `lambda_` (l1_ratio Σ_v cost_v ‖β_Gv‖₂ + (1 − l1_ratio) ½ ‖β‖²).
#
# - A column is not penalized if the column and all that it needs are free (price 0). There are two
#   exceptions: if all columns are free, all are penalized as if each cost 1; and the rule "lasso"
#   penalizes a free column like the cheapest column that is not free.
# - For two classes, `l1_ratio` equals glmnet's alpha. For a numeric response of standard deviation
#   s, alpha is r / (r + (1 − r) s) for `l1_ratio=r`, because glmnet divides the response by s.
# - With `dependents="direct"`, the penalty charges an item once for each column that needs it. The
#   price of a model still counts it once.
# - If any two of the penalty's groups of columns are nested or disjoint, the optimizer's proximal
#   steps are exact (Jenatton, Mairal, Obozinski and Bach 2011, *Proximal methods for hierarchical
#   sparse coding*).
#
# If all coefficients of a group are zero, its item need not be bought. `costnet` refits the selected features without the penalty. The argument `relax` mixes penalized coefficients (0) and refitted coefficients (1).
#
# Cross-validation compares the proposed models at each price. The list of the best models is the
# *frontier*: each of them has a lower held-out loss than all cheaper models. [The
# vignette](../vignettes/costnet) shows a full example.
#
# ## Coefficients with a given sign
#
# `monotone={"age": "increasing"}` allows only coefficients of `age` that are zero or positive; `"decreasing"` allows zero or negative ones. An ordered category has a coefficient for each step from one level to the next. All these coefficients get the given sign.
#
# - If you give the sign of a coefficient and the data favour the other sign, the coefficient is
#   zero, and the model need not buy the feature.
# - A free feature with a given sign is penalized like the cheapest feature that is not free. Its
#   refitted coefficient has no penalty.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.costnet` is a dict with these entries (for `scratch`, see [Many
# rows](../big_data)):
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `criterion` | "cv" | number by which models are compared; the next table lists the choices |
# | `tol` | 1e-7 | largest duality gap of a penalized model, relative to the objective of the null model; `solver="cvxpy"` is less precise, so give 1e-5 if it warns |
# | `max_iter` | 200 | largest number of quadratic approximations per penalty; for a numeric response, up to five times as many sweeps over the features |
#
# | criterion | models are compared by |
# |---|---|
# | "cv" | held-out loss |
# | "deviance" | −2 log-likelihood of refitted models on the training rows |
# | "aic" | −2 log-likelihood + 2 per coefficient |
# | "bic" | −2 log-likelihood + log n per coefficient, for n rows |
# | "hq" | −2 log-likelihood + 2 log log n per coefficient |
# | "ebic" | −2 log-likelihood + the larger of log n and 2 log p per coefficient, for p columns |
#
# In these criteria, a category has one coefficient fewer than levels.
#
# ### Cross-validation
#
# - *Candidates.* At each price, cross-validation compares models of that price. They are every
#   third model of each penalty path, and the models that the criterion "hq" (Hannan-Quinn) selects.
#   Each model of a path is tried with its penalized coefficients, with refitted coefficients, and
#   with the average of the two.
# - *Folds.* Up to 2,000 rows there are two sets of five random folds, and up to 4,000 rows there is
#   one set. With more rows, a fifth of at most 20,000 random rows is held out once. The standard
#   error of a held-out loss is that of a mean over the held-out rows.
# - *Many classes or columns.* With more than two classes, models with over 100 coefficients are not
#   refitted. If rows × columns × classes exceeds 200,000, there is one set of folds, and the rule
#   "lasso" is skipped if other rules are given.
#
# On autompg, diabetes and heart, another seed changed predictions by 0.05, 0.06 and 0.04 residual standard deviations (ten seeds).
#
# ### The frontier
#
# - A more expensive model must lower −2 log-likelihood of all rows (with `criterion=`, the value of
#   this criterion) by at least 0.5 compared with each cheaper model. Otherwise it is not on the
#   frontier.
# - Among refitted models with the same price and the same value of the criterion, `costnet` keeps
#   the one with the fewest items.
# - If columns are collinear, a small ridge penalty makes the refitted coefficients unique.
#   Duplicate columns then share a coefficient.
# - If classes are separated, or all counts in a category are zero, a small ridge penalty keeps the
#   coefficients finite. Their size has no meaning; the predictions are valid.
#
# ### Alternatives
#
# An item may be available from several sources, of which a model should buy only one. lodim copies
# the features that need the item, one copy per source. A feature's coefficient is the sum of the
# coefficients of its copies (latent group lasso; Jacob, Obozinski and Vert 2009, *Group lasso with
# overlap and graph lasso*). The final model keeps the copies of one source only.
