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
# Can a question be answered from two or three measurements at a time? `ripr` (informative
# projection recovery, after Fiterau 2014) looks for a handful of *views*: sets of one to three
# features in which the neighbours of a row predict its response. The whole model is then a few
# scatter plots.
#
# In each view the nearest rows vote, nearer ones more. The evidence of all views is added up:
#
# > score of a class = log(share in all rows) + t Σ_j log(share in the vote of view j / share in all
# > rows),
#
# Here t is one factor for all views. Views are selected one by one: each time the view that lowers
# the leave-one-out loss most, until little is gained.
#
# This page diagnoses tumours. It then treats missing values, numeric responses, the method of the
# thesis (one view per row), clusters, and other learners within the views.

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
# Each line is a view. `%Rows` is the share of the training rows for whose prediction the view has
# most weight; each row is left out of its own neighbours. `Error` is the share of these rows that
# all views together predict wrongly. Of thirty measurements the model needs less than half.

# %%
print(fit.summary())

# %% [markdown]
# `%Mass` is the mean share of a view in the evidence. The notes show how far the leave-one-out loss
# fell, and which settings were chosen: number of views, features per view and neighbours.
#
# The views were chosen on the rows of `Error`, so new rows may have larger errors. Kept-out rows or
# cross-validation (below) give the error for new rows.
#
# ## The pictures
#
# These pictures are the whole model. Solid points are rows for whose prediction the view has most
# weight. Neighbouring points tend to have the same class.

# %%
axes = fit.plot()

# %%
fit.evaluate(test)

# %% [markdown]
# Kept-out rows in the same views:

# %%
axes = fit.plot(data=test)

# %% [markdown]
# ## One patient
#
# Which of these patients are diagnosed wrongly, and why? We look at the wrong diagnosis with the
# highest probability:

# %%
said = fit.predict(test, "class")
wrong = test[said != test["diagnosis"]]
sure = (fit.predict(wrong) - 0.5).abs()
patient = test.loc[[sure.idxmax()]]
print("observed:", patient["diagnosis"].iloc[0])
explanation = fit.explain(patient)
print(explanation)

# %% [markdown]
# The first table shows each view with its share in the evidence, and its own prediction; a star
# marks the view with most weight. The second table lists the nearest patients in that view, in the
# original units. The plot shows the same: the star is the patient, rings are the neighbours.

# %%
axes = explanation.plot()

# %% [markdown]
# `predict` has further types: `"view"` names the view with most weight, `"prob"` gives the
# probabilities.

# %%
some = test.iloc[:5]
pd.concat([fit.predict(some, "prob"), fit.predict(some, "view")], axis=1)

# %% [markdown]
# ## Fewer features, or more
#
# `max_dim=2` allows views of at most two features, which are flat pictures. `n_views` limits the
# number of views.

# %%
flat = ld.ripr("diagnosis ~ .", data=train, max_dim=2, n_views=3)
print(flat)

# %% [markdown]
# ## One view for each row
#
# The method of the thesis (`method="assignment"`) predicts each row in one view only. It has three
# steps.
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
# This method is useful if the data mix populations that need different features: it finds which
# rows belong to which view. Otherwise views that vote together answer better. Without `lambda_`, a
# path of penalties is compared by the leave-one-out error, together with views selected one by one;
# the print says which of the two was used. Large penalties λ (in units of (1 − a)²) keep few views,
# small ones many. The path shows how the shares of the views change with λ:

# %%
path = ld.path(ld.ripr, "diagnosis ~ .", data=train, lambdas=np.geomspace(20, 0.05, 25))
ax = path.plot()

# %% [markdown]
# Cross-validation estimates the loss on new rows. The grey line is views that vote (`None`):

# %%
cv = ld.cv(
    ld.ripr, "diagnosis ~ .", data=train, grid={"lambda_": [*np.geomspace(10, 0.1, 9), None]}
)
print(cv)
ax = cv.plot()

# %% [markdown]
# ## Missing values
#
# A row that lacks a feature neither votes nor is predicted in the views with that feature, but
# counts in all others. So nothing is imputed, and no row is dropped. Here a fifth of all
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
# There are more views than before, and some have fewer features: they predict rows that other views
# cannot. A row that lacks features of every view gets the class shares of the training rows, and no
# view.

# %%
answered = partial.predict(holed_test, "view").notna()
print(f"{answered.sum()} of {len(test)} rows have a view;", "complete:", end=" ")
print(holed_test[features].notna().all(axis=1).sum())
partial.evaluate(holed_test)

# %% [markdown]
# With assignment, rows with a missing *response* are used, too (semi-supervised): their loss is the
# smallest over the classes, so that views count in which they clearly belong to one class. With
# voting they have no vote.

# %%
hidden = train.assign(diagnosis=train["diagnosis"].where(np.arange(len(train)) % 2 == 0))
half = ld.ripr("diagnosis ~ .", data=hidden, method="assignment")
print(half)
half.evaluate(test)

# %% [markdown]
# ## Numbers
#
# For a numeric response the views add up differences from the mean of all rows. The example is the
# strength of concrete (MPa), by mixture (kg/m³) and age (days):

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
# Without a response, `ripr` looks for views in which rows are denser than by chance. The loss
# compares the distance to a row's neighbours with that in a uniform sample over a box along the
# principal components, so that two copies of a measurement do not look like clusters. Then k-means
# finds clusters in each view. Their number is the largest that one half of the rows reproduces in
# the other (prediction strength). The default penalty is 2; a smaller one keeps more views. The
# example is three varieties of wheat, without their names:

# %%
seeds = ld.data("seeds")
wheat = ld.ripr("~ . - variety", data=seeds, n_clusters=3, lambda_=0.2)
print(wheat.summary())

# %%
axes = wheat.plot()

# %% [markdown]
# A cluster is named by its view and its number there. The table compares clusters and varieties:

# %%
pd.crosstab(wheat.predict(seeds), seeds["variety"])

# %% [markdown]
# ## Other learners within the views
#
# With assignment, the views are found by neighbours, but any estimator with `fit` and `predict`,
# such as scikit-learn's, can predict in each view. It is fitted to the rows of the view.

# %%
from sklearn.linear_model import LogisticRegression

logistic = ld.ripr("diagnosis ~ .", data=train, learner=LogisticRegression())
both = {"k-NN": alone, "logistic": logistic}
pd.concat({name: each.evaluate(test) for name, each in both.items()}).droplevel(1)

# %% [markdown]
# ## Several responses, and time
#
# `"first + second ~ ."` looks for views that several responses share. There is one loss matrix per
# response, and a view is cheaper if it serves more rows of all of them. Here the responses are the
# diagnosis, and whether the nucleus is large:

# %%
two = train.assign(
    size=np.where(train["mean_area"] > train["mean_area"].median(), "large", "small")
)
together = ld.ripr("diagnosis + size ~ . - mean_area", data=two)
print(together)

# %% [markdown]
# `order=` names a column of times. Consecutive rows then have the same view, unless another view is
# worth the price of a switch. If the data change at some time, the assignment shows when. In these
# synthetic rows the informative view changes after row 200:

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
# - A view that is not selected may be as good as one that is: radius and perimeter say the same, so
#   the second one adds nothing.
# - Distances are in standard deviations of the features (`standardize=True`). Another scale, such
#   as a logarithm, gives other neighbours.
# - `Error` is leave-one-out in views that were chosen with the row: new rows may have larger
#   errors. Use `evaluate` on kept-out rows, or `ld.cv`.
# - Probabilities come from the votes of the neighbours, with one factor fitted to rows left out
#   (two factors with assignment). They are as good as a few dozen neighbours can make them.
