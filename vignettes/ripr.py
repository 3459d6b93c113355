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
# # A handful of views
#
# Are two or three measurements at a time enough to predict? `ripr` (informative projection
# recovery, after Fiterau 2014) finds a handful of *views*: sets of one to three features in which
# the nearest training rows predict the response. The whole model is then a few scatter plots.
#
# In each view the nearest training rows vote, with larger weights for nearer rows. The evidence of
# all views is added up:
#
# > score of a class = log(share in all rows) + t Σ_j log(share in the vote of view j / share in all
# > rows),
#
# The factor t is the same for all views. Views are selected one by one. Each step adds the view
# that lowers the leave-one-out loss most, and the selection ends if the loss hardly falls.
#
# This page diagnoses tumours. Further examples are missing values, numeric responses, the method of
# the thesis (one view per row), clusters, and other estimators within the views.

# %%
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

cells = ld.data("breast_cancer")
kept = np.arange(len(cells)) % 3 == 0
train, test = cells[~kept], cells[kept]
fit = ld.ripr("diagnosis ~ .", data=train)
print(fit)

# %% [markdown]
# Each line of the table is a view. `%Rows` is the percentage of the training rows for whose
# prediction the view has most weight. `Error` is the share of these rows that all views together
# predict wrongly. Each row is left out of its own neighbours. Of thirty measurements the model
# needs less than half.

# %%
print(fit.summary())

# %% [markdown]
# `%Weight` is the mean share of a view in the evidence. The notes show the reduction of the
# leave-one-out loss, and the chosen settings: number of views, features per view, and neighbours.
#
# `Error` is for the rows on which the views were selected, so errors on new rows may be larger.
# Held-out rows or cross-validation (below) estimate the error on new rows.
#
# ## The pictures
#
# These pictures are the whole model. A row is a solid point in the view that has most weight in its
# prediction. Neighbouring points tend to have the same class.

# %%
axes = fit.plot()

# %%
fit.evaluate(test)

# %% [markdown]
# The next plot shows the held-out rows in the same views:

# %%
axes = fit.plot(data=test)

# %% [markdown]
# ## One patient
#
# Why are some of these patients diagnosed wrongly? We look at the wrong diagnosis that the model
# predicts with the highest probability:

# %%
said = fit.predict(test, "class")
wrong = test[said != test["diagnosis"]]
sure = (fit.predict(wrong) - 0.5).abs()
patient = test.loc[[sure.idxmax()]]
print("observed:", patient["diagnosis"].iloc[0])
explanation = fit.explain(patient)
print(explanation)

# %% [markdown]
# The first table shows each view with its share in the evidence, and the prediction of this view
# alone. A star marks the view with most weight. The second table lists the nearest patients in this
# view, in the original units. In the plot, the star is the patient and the rings are the
# neighbours.

# %%
axes = explanation.plot()

# %% [markdown]
# `predict` has further types: `"prob"` returns the probabilities, and `"view"` the view with most
# weight.

# %%
some = test.iloc[:5]
pd.concat([fit.predict(some, "prob"), fit.predict(some, "view")], axis=1)

# %% [markdown]
# ## Fewer features, or more
#
# `max_dim=2` allows at most two features per view, so that all plots are two-dimensional. `n_views`
# limits the number of views.

# %%
flat = ld.ripr("diagnosis ~ .", data=train, max_dim=2, n_views=3)
print(flat)

# %% [markdown]
# ## One view for each row
#
# The method of the thesis (`method="assignment"`) predicts each row in one view only. It has three
# steps.
#
# 1. **Losses.** Every row i has a loss in every view j. For classes it is (Eq. 2.5)
#
#    > L_ij = (ν_k(own class) / ν_k(other classes))^(d (1 − a)),
#
#    where ν_k is the distance to the k-th nearest neighbour in view j, d is the number of features
#    of the view, and a = 0.99. The loss is small if the nearest rows are of the same class.
# 2. **Assignment.** Each row has shares B_ij ≥ 0 of the views, which sum to one. They minimize
#
#    > Σ_i (u_i − L*_i)² + λ Σ_ij δ_j B_ij,  u_i = Σ_j L_ij B_ij,  L*_i = min_j L_ij,
#
#    where δ_j = 1 − Σ_i B_ij / n. So a view is cheaper if many rows use it. B and δ are updated in
#    turn until the objective no longer changes (Algorithm 2.1.1).
# 3. **Prediction.** A new row gets the view and the class with the smallest ratio of step 1 (Eq.
#    2.11).

# %%
alone = ld.ripr("diagnosis ~ .", data=train, method="assignment")
print(alone)
pd.concat({"vote": fit.evaluate(test), "assignment": alone.evaluate(test)}).droplevel(1)

# %% [markdown]
# This method is useful if the data are a mixture of populations that need different features: it
# finds the view for each row. Otherwise views that vote together have a lower loss. If you omit
# `lambda_`, the penalties of a path are compared by the leave-one-out error, and also with views
# that are selected one by one; the print says which was used. Large penalties λ (in units of (1 −
# a)²) give few views, small ones many. The path shows how the shares of the views change with λ:

# %%
path = ld.path(ld.ripr, "diagnosis ~ .", data=train, lambdas=np.geomspace(20, 0.05, 25))
ax = path.plot()

# %% [markdown]
# Cross-validation estimates the loss on new rows. The grey line is the loss of views that vote
# together (`lambda_` is `None`):

# %%
cv = ld.cv(
    ld.ripr, "diagnosis ~ .", data=train, grid={"lambda_": [*np.geomspace(10, 0.1, 9), None]}
)
print(cv)
ax = cv.plot()

# %% [markdown]
# ## Missing values
#
# If a feature of a row is missing, the row is not used in the views with this feature, but in all
# other views. So nothing is imputed, and no row is dropped. In this example a fifth of all
# measurements is removed at random, in the training data and in the test data:

# %%
rng = np.random.default_rng(0)
features = cells.columns.drop("diagnosis")


def with_holes(data, share=0.2):
    """The data, with a share of the features missing."""
    holes = rng.random((len(data), len(features))) < share
    return data.assign(**data[features].mask(holes))


holed, holed_test = with_holes(train), with_holes(test)
partial = ld.ripr("diagnosis ~ .", data=holed)
print(partial)

# %% [markdown]
# There are more views than before, and some have fewer features, so that they can predict rows with
# missing features. If every view has a missing feature, the row is predicted by the class shares of
# the training rows and has no view.

# %%
answered = partial.predict(holed_test, "view").notna()
print(f"{answered.sum()} of {len(test)} rows have a view;", "complete:", end=" ")
print(holed_test[features].notna().all(axis=1).sum())
partial.evaluate(holed_test)

# %% [markdown]
# With assignment, rows with a missing *response* are also used (semi-supervised learning). The loss
# of such a row in a view is the smallest over the classes, so views in which the row clearly
# belongs to one class are preferred. With voting, rows without a response are not used.

# %%
hidden = train.assign(diagnosis=train["diagnosis"].where(np.arange(len(train)) % 2 == 0))
half = ld.ripr("diagnosis ~ .", data=hidden, method="assignment")
print(half)
half.evaluate(test)

# %% [markdown]
# ## Numbers
#
# For a numeric response, each view predicts a difference from the mean of all rows, and these
# differences are added up. The example is the strength of concrete (MPa), with the components of
# the mixture (kg/m³) and the age (days) as features:

# %%
concrete = ld.data("concrete")
third = np.arange(len(concrete)) % 3 == 0
mixtures, new = concrete[~third], concrete[third]
formula = "strength ~ . - age + np.log(age)"
strength = ld.ripr(formula, data=mixtures)
print(strength)

# %%
axes = strength.plot(row=new.iloc[[4]])

# %%
print(strength.explain(new.iloc[[4]]))

# %% [markdown]
# The table compares views that vote together with one view for each row, on held-out rows:

# %%
single = ld.ripr(formula, data=mixtures, method="assignment")
fits = {"vote": strength, "assignment": single}
pd.concat({name: each.evaluate(new) for name, each in fits.items()}).droplevel(1)

# %% [markdown]
# ## Clusters
#
# Without a response, `ripr` finds views in which rows are denser than by chance. The loss compares
# the distance of a row to its neighbours with this distance in a uniform sample. The uniform sample
# fills a box along the principal components, so that two copies of a measurement do not look like
# clusters. Then k-means finds clusters in each view. The number of clusters is the largest number
# for which the clusters of one half of the rows predict those of the other half (prediction
# strength). The default penalty is 2; a smaller penalty keeps more views. The example is three
# varieties of wheat, without their names:

# %%
seeds = ld.data("seeds")
wheat = ld.ripr("~ . - variety", data=seeds, n_clusters=3, lambda_=0.2)
print(wheat.summary())

# %%
axes = wheat.plot()

# %% [markdown]
# The name of a cluster consists of the view and the number of the cluster in this view. The table
# compares clusters and varieties:

# %%
pd.crosstab(wheat.predict(seeds), seeds["variety"])

# %% [markdown]
# ## Other learners within the views
#
# With assignment, views are selected by nearest neighbours, but another estimator can predict in
# each view. It can be any estimator with `fit` and `predict`, such as a scikit-learn estimator, and
# is fitted to the rows of the view.

# %%
from sklearn.linear_model import LogisticRegression

logistic = ld.ripr("diagnosis ~ .", data=train, learner=LogisticRegression())
both = {"k-NN": alone, "logistic": logistic}
pd.concat({name: each.evaluate(test) for name, each in both.items()}).droplevel(1)

# %% [markdown]
# ## Several responses, and time
#
# The formula `"first + second ~ ."` finds views that several responses share. Each response has its
# own losses, and a view is cheaper if it is used by more rows of all responses together. Here the
# responses are the diagnosis, and whether the nucleus is large:

# %%
two = train.assign(
    size=np.where(train["mean_area"] > train["mean_area"].median(), "large", "small")
)
together = ld.ripr("diagnosis + size ~ . - mean_area", data=two)
print(together)

# %% [markdown]
# `order=` names a column of times. Consecutive rows then use the same view, unless another view
# lowers the loss by more than the price of a change. So if the data change at some time, the
# assignment shows when. In this synthetic example the informative view changes after row 200:

# %%
drifting = ld.informative_views(2, 200, seed=1)
drifting["time"] = np.arange(len(drifting))
timed = ld.ripr("y ~ .", data=drifting, order="time", control={"smooth": 10.0})
served = timed.assignment().idxmax(axis=1)
changes = served.index[served != served.shift()]
served[changes].rename("view from this row on").to_frame()

# %% [markdown]
# ## What the numbers do not mean
#
# - A view that is not selected may be as good as a selected one: radius and perimeter contain the
#   same information, so the second adds nothing.
# - Distances are in standard deviations of the features (`standardize=True`). Another scale, such
#   as a logarithm, gives other neighbours.
# - `Error` is a leave-one-out error, but the views were selected on the same rows. Errors on new
#   rows may be larger: use `evaluate` on held-out rows, or `ld.cv`.
# - Probabilities are based on the votes of a few dozen neighbours, and on one factor (two factors
#   with assignment) that minimizes the leave-one-out loss. So they are not very precise.
