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
# Many questions about a row need few of its features, but not always the same ones. `ripr`
# (informative projection recovery, after Fiterau 2014) looks for a handful of *views*, sets of one
# to three features in which the neighbours of a row tell what it is. So the whole model can be
# looked at: a few scatter plots.
#
# In each view the nearest rows vote, the nearer the more, and what all views say is added up:
#
# > score of a class = log(share in all rows) + t Σ_j log(share in the vote of view j / share in all
# > rows),
#
# t one factor for all views. Views are taken one after the other: each time that with which rows,
# each left out of its own vote, are told best, until little is gained.
#
# This document diagnoses tumours with it, goes through missing values, numbers instead of classes,
# the method of the thesis, in which each row is served by one view, clusters, and other learners
# within the views.

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
# Each line is a view. `%Rows` is the share of the training rows for whose answer this view says
# most, each row asked about as if it were new, without itself. `Error` is the share of these that
# are answered wrongly, by all views together. Of thirty measurements the model needs less than
# half.

# %%
print(fit.summary())

# %% [markdown]
# `%Mass` is the mean share of a view in what speaks for the answers. The notes say how the loss of
# rows left out fell while views were taken, and what was chosen on the way: the number of views,
# of their features, and of neighbours.
#
# The views were chosen on the rows that `Error` is of. What it is worth for new rows,
# rows that were kept out will tell, or cross-validation (below).
#
# ## The pictures
#
# This is all there is of the model. Rows for which a view says most are solid, the others faint;
# the classes are told by nearness in these spaces.

# %%
axes = fit.plot()

# %%
fit.evaluate(test)

# %% [markdown]
# Rows that were kept out, in the same views:

# %%
axes = fit.plot(data=test)

# %% [markdown]
# ## One patient
#
# Which of these patients are diagnosed wrongly, and why? The one among them about whom the model
# was most certain:

# %%
said = fit.predict(test, "class")
wrong = test[said != test["diagnosis"]]
sure = (fit.predict(wrong) - 0.5).abs()
patient = test.loc[[sure.idxmax()]]
print("observed:", patient["diagnosis"].iloc[0])
explanation = fit.explain(patient)
print(explanation)

# %% [markdown]
# The first table has every view with its share in what speaks for the answer, and what it says by
# itself; a star marks the one that says most. Below are the nearest patients in it, in the original units. The same as a
# picture: the star is the patient, rings are the neighbours.

# %%
axes = explanation.plot()

# %% [markdown]
# `predict` knows more than the class: `"view"` is the view to look at, `"prob"` the probabilities.

# %%
some = test.iloc[:5]
pd.concat([fit.predict(some, "prob"), fit.predict(some, "view")], axis=1)

# %% [markdown]
# ## Fewer features, or more
#
# `max_dim=2` allows views of two features at most, which are flat pictures; `n_views` says how many
# views there may be.

# %%
flat = ld.ripr("diagnosis ~ .", data=train, max_dim=2, n_views=3)
print(flat)

# %% [markdown]
# ## One view for each row
#
# The thesis has another way (`method="assignment"`): each row is served by one view alone. Three steps
# make it.
#
# 1. **Losses.** Every row is judged in every view by the other rows there. For classes (Eq. 2.5),
#
#    > L_ij = (ν_k(own class) / ν_k(other classes))^(d (1 − a)),
#
#    ν_k the distance to the k-th nearest neighbour in view j, of d features, and a = 0.99. A small
#    loss says: in this view the row stands among its own kind.
# 2. **Assignment.** Shares B_ij ≥ 0 of the views in each row, which sum to one, minimize
#
#    > Σ_i (u_i − L*_i)² + λ Σ_ij δ_j B_ij,  u_i = Σ_j L_ij B_ij,  L*_i = min_j L_ij,
#
#    with δ_j = 1 − Σ_i B_ij / n: the more rows a view serves, the less it costs the next one. The
#    two are updated in turn until the objective settles (Algorithm 2.1.1).
# 3. **Answers.** A new row gets the view and the class for which the ratio of step 1 is smallest
#    (Eq. 2.11).

# %%
alone = ld.ripr("diagnosis ~ .", data=train, method="assignment")
print(alone)
pd.concat({"vote": fit.evaluate(test), "assignment": alone.evaluate(test)}).droplevel(1)

# %% [markdown]
# Where populations are mixed, each told by features of its own, this finds which rows belong to
# which; otherwise views that vote together answer better. Without a penalty, those of a path are
# compared by what their views say of rows left out, and views picked one by one are tried as a
# rival; the print says which of the two found the views. A penalty λ, in units of (1 − a)², leaves
# few views where it is large, many where it is small. The path shows how the shares of the views
# change with it:

# %%
path = ld.path(ld.ripr, "diagnosis ~ .", data=train, lambdas=np.geomspace(20, 0.05, 25))
ax = path.plot()

# %% [markdown]
# And cross-validation, what they are worth on rows held out, beside views that vote (`None`, the
# grey line):

# %%
cv = ld.cv(
    ld.ripr, "diagnosis ~ .", data=train, grid={"lambda_": [*np.geomspace(10, 0.1, 9), None]}
)
print(cv)
ax = cv.plot()

# %% [markdown]
# ## Missing values
#
# A row that lacks a feature is not asked about in the views that need it, and does not vote there.
# It is still used in all others. So nothing is filled in, and no row is dropped. Here a fifth of
# all measurements is taken away, at random, in the training data and in the test data:

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
# There are more views than before, and some of fewer features: they stand in for others in rows
# that cannot be looked at there. A row that has all features of no view gets the answer that fits
# all training rows, and no view.

# %%
answered = partial.predict(holed_test, "view").notna()
print(f"{answered.sum()} of {len(test)} rows have a view;", "complete:", end=" ")
print(holed_test[features].notna().all(axis=1).sum())
partial.evaluate(holed_test)

# %% [markdown]
# A missing *response* is of use with assignment (semi-supervised): an unlabelled row has the
# smallest loss over all the classes it might have, so that views in which it stands clearly on one
# side count. Where views vote, it has no vote.

# %%
hidden = train.assign(diagnosis=train["diagnosis"].where(np.arange(len(train)) % 2 == 0))
half = ld.ripr("diagnosis ~ .", data=hidden, method="assignment")
print(half)
half.evaluate(test)

# %% [markdown]
# ## Numbers
#
# Of a numeric response the views add up differences from the mean of all rows. The strength
# of concrete (MPa), by mixture (kg/m³) and age (days):

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
# Views that vote together, and one view for each row:

# %%
single = ld.ripr(formula, data=mixtures, method="assignment")
fits = {"vote": strength, "assignment": single}
pd.concat({name: each.evaluate(new) for name, each in fits.items()}).droplevel(1)

# %% [markdown]
# ## Clusters
#
# Without a response views are wanted in which rows are denser than chance: the loss compares the
# distance to a row's neighbours with that in a uniform sample over a box along the principal
# components, so that two features that repeat one measurement are not taken for clusters. Then
# k-means finds clusters in each view, of the rows that it serves, as many as one half of the rows
# finds again in the other (prediction strength). Nothing is predicted, so that the penalty is 2
# where it is not given; a smaller one leaves more views. Three varieties of wheat, without being
# told which is which:

# %%
seeds = ld.data("seeds")
wheat = ld.ripr("~ . - variety", data=seeds, n_clusters=3, lambda_=0.2)
print(wheat.summary())

# %%
axes = wheat.plot()

# %% [markdown]
# A cluster is called by its view and its number there. How they relate to the varieties:

# %%
pd.crosstab(wheat.predict(seeds), seeds["variety"])

# %% [markdown]
# ## Other learners within the views
#
# With assignment, the views are found by neighbours, but need not answer by them: any estimator with `fit` and
# `predict`, such as scikit-learn's, can be fitted in each view to the rows that it serves.

# %%
from sklearn.linear_model import LogisticRegression

logistic = ld.ripr("diagnosis ~ .", data=train, learner=LogisticRegression())
both = {"k-NN": alone, "logistic": logistic}
pd.concat({name: each.evaluate(test) for name, each in both.items()}).droplevel(1)

# %% [markdown]
# ## Several responses, and time
#
# `"first + second ~ ."` looks for views that several responses share: one loss matrix each, and a
# view is the cheaper the more rows of all of them it serves. Here the diagnosis, and whether the
# nucleus is a large one:

# %%
two = train.assign(
    size=np.where(train["mean_area"] > train["mean_area"].median(), "large", "small")
)
together = ld.ripr("diagnosis + size ~ . - mean_area", data=two)
print(together)

# %% [markdown]
# `order=` names a column of times. Rows that follow each other are then served by the same view
# unless another one is worth the price of the switch; in data that changed its ways at some time,
# the assignment shows when. Synthetic rows whose informative view changes after row 200:

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
# - A view that is not there may be as good as one that is: measurements such as radius and
#   perimeter say the same, and the second of them adds nothing.
# - Distances are between features in standard deviations (`standardize=True`). A feature on another
#   scale, or its logarithm, makes other neighbours.
# - `Error` is leave-one-out in views that were chosen with the row: new rows may do worse. Use
#   `evaluate` on rows that were kept out, or `ld.cv`.
# - Probabilities come from the votes of the neighbours, with one factor fitted to rows left out
#   (with assignment, from ratios and votes in one view, with two). They are as good as a few
#   dozen neighbours can make them.
