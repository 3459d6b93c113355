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
# # How ripr works
#
# What is one view? In `ripr`, a view is a scatter plot of one to three features in which the nearest training rows vote. The plot below shows the two views that `ripr` finds for three cultivars of wine if a view may have at most two features. A row has a large mark in the view that has most weight in its prediction.

# %%
import lodim as ld

wine = ld.data("wine")
fit = ld.ripr("cultivar ~ .", data=wine, max_dim=2, n_views=2)
ax = fit.plot("view")

# %% [markdown]
# ## The model
#
# There are two methods (`method=`):
#
# - **"vote"** (the default): in every view, the k nearest neighbours of a row vote, and nearer
#   neighbours have more weight. The prediction adds the log-odds of all views, relative to the
#   class shares. `ripr` selects the views one by one, by the leave-one-out loss.
# - **"assignment"** (Fiterau 2014): each row is predicted in one view. Row i has a loss L_ij in
#   view j, and is assigned to view j with a share B_ij; the shares of a row sum to one. The shares
#   minimize an objective that prefers, for each row, views with small L_ij, plus `lambda_` times a
#   penalty on views that few rows use. `ripr` keeps the views with more than 5% of the rows. [The
#   vignette](../vignettes/ripr) has the formulas.
#
# Without a response, the formula `"~ ."` finds views with clusters, or reports that there are none.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.ripr` is a dict with these entries (for `scratch`, see [Many
# rows](../big_data)):
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `share` | 0.05 | a view is kept if its share of the rows is larger |
# | `tolerance` | 0.5 | the error of the chosen `lambda_` may exceed the lowest error by this many standard errors |
# | `smooth` | 1 | with `order=`, price of a change of view between consecutive rows, in units of the penalty |
#
# ### Votes (`method="vote"`)
#
# - *Weights.* The vote of a neighbour at distance d has the weight 1 − d² / (1.1 ν²), where ν is
#   the distance of the k-th neighbour. Neighbours at equal distances share their weight. Two
#   additional votes are divided among the classes by their shares in all rows (numeric response:
#   they are for the mean of all rows).
# - *Missing features.* A row with a missing feature is not predicted in the views that use this feature.
# - *Factor t.* The log-odds of all views are multiplied by a factor t that minimizes the loss of
#   all rows. As in Platt scaling, t stays finite because the target of a row of class c is 1 − 1 /
#   (n_c + 2) instead of 1, where n_c is the number of rows of the class.
#
# ### Selection of views (`method="vote"`)
#
# 1. Which views are good alone? For views of one, two and three features, `ripr` computes the loss
#    of up to 2,000 views each, on at most 1,000 random rows. The 200 best views become candidates.
# 2. `ripr` adds up to eight views (or `n_views`), one by one. Each step adds the view with the
#    lowest leave-one-out loss, on at most 2,000 rows.
# 3. A view is added if it lowers the loss by 1%, and by at least 0.1% of the loss of the null
#    model. A view with more features is preferred to one with fewer only if its loss is 0.5% lower.
# 4. Half or twice the default number of neighbours k is used if it lowers the leave-one-out loss by
#    10%.
#
# ### Selection of views (`method="assignment"`)
#
# If you give `lambda_`, the views are selected with this penalty (Algorithm 2.1.1 of the thesis).
# For classes, its unit is (1 − α)², where α is the argument `alpha` and 1 − α is the exponent of
# the loss. For numbers, it is the variance of the losses. If you omit `lambda_`, `ripr` compares
# increasing penalties, usually from 0.03 units to one that leaves a single view. It chooses the
# largest penalty whose leave-one-out error is within `tolerance` standard errors of the lowest
# error.
#
# For classes, `ripr` then also tries forward selection: it adds views one by one from the 60 best
# single views. It uses these views if their leave-one-out error is clearly lower than that with a
# penalty. `glance()` then shows NaN for `lambda_`.
#
# ### Ties
#
# The result does not depend on the order of rows and columns or on the names of classes. Neighbours
# at the same distance share a vote. Among equally good views, `ripr` uses the one with fewer
# features. Among equally probable classes, it predicts the one with more rows.
#
# ### Probabilities (`method="assignment"`)
#
# In the view of a row, the probability of class c is proportional to ratio_c^(−s dim) vote_c^t.
# Here dim is the number of features of the view, and vote_c is the share of the votes for class c.
# ratio_c is the distance from the row to its k-th neighbour in class c, divided by that in the
# other classes. The factors s and t minimize the leave-one-out deviance.
#
# ### Clusters
#
# - *Loss.* Without a response, `ripr` looks for views in which the rows form clusters. The
#   rows are compared with a uniform random sample from the smallest box that contains them. Let
#   r = (ν / ν₀)^d. Here ν is the distance from a row to its k-th neighbour, ν₀ the distance to the
#   k-th nearest random point, and d the number of features of the view. Clusters make r small.
#   Correlated features do so too, since the rows then lie near a line. So r is divided by `volume`:
#   the volume of the box along the principal components, relative to that of the box along the
#   features (Tibshirani et al. 2001). The loss of the row is (r / volume)^(1 − α); `alpha` is the
#   order α of the Rényi entropy.
# - *Number of clusters.* Prediction strength (Tibshirani and Walther 2005) compares the clusters of
#   two random halves of the rows. The number of clusters is the largest with a mean prediction
#   strength of at least 0.85. On 360 synthetic samples with 1 to 8 groups, this number was correct
#   for 93%.
# - *Penalty.* Without a response, the default of `lambda_`, the penalty per view, is 2.
#
# ### Constraints
#
# `constraints=` is a dict of conditions on B_ij, the share of view j in the prediction of row i.
# Its possible keys are listed below; N is the number of rows. All conditions must be linear in B.
# CVXPY solves the problem over all views, and again over the views that are kept. An iteration
# takes seconds for 500 rows and 435 views; a smaller `max_views` makes it faster. Predictions of
# new rows ignore constraints.
#
# - `"prices"` and `"budget"`: a limit on the price of each row. Row i satisfies Σ_j cost_j B_ij ≤
#   budget_i, where B_ij is the share of view j in row i and cost_j the price of all columns of view
#   j. `"prices"` is a dict with a price per column (or per feature such as "arm[B]"). `"budget"` is
#   a number, or an array (N,) with the limit of each row.
# - `"groups"`: an array (N,) with the group of each row. Rows of a group have equal shares.
# - `"hard"`: `True` if each row must use a single view.
# - `"further"`: a function (B, views) that returns a list of CVXPY constraints. B has a row per row
#   of the data and a column per view. For a numeric response, B only has the rows with positive
#   weight and a known response. `views` has the feature names of each view.
