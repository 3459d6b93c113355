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
# (informative projection recovery, Fiterau 2014) looks for a handful of *views*, sets of one to
# three features, each for a part of the data: every row is told by its neighbours in one of them.
# So the whole model can be looked at: a few scatter plots.
#
# Three steps make it.
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
#
# This document diagnoses tumours with it, goes through missing values, numbers instead of classes,
# clusters, and other learners within the views.

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
# Each line is a view. `%Rows` is the share of the training rows that it serves: those for which it
# is the best view when each row is asked about as if it were new, without itself. `Error` is the
# share of these that are answered wrongly. Of thirty measurements the model needs only a few.

# %%
print(fit.summary())

# %% [markdown]
# `%Mass` is the share that the view had in the assignment it was found by, where the true class of
# a row was known. Neither a penalty λ nor the number of views was given: penalties along a path are
# compared by what their views say of rows left out, and views picked one by one for their errors
# (forward selection) are tried as a rival. The print says which of the two found the views; a
# penalty would be given in units of (1 − a)².
#
# Either way the views were chosen on the rows that `Error` is of. What it is worth for new rows,
# rows that were kept out will tell, or cross-validation (below).
#
# ## The pictures
#
# This is all there is of the model. Rows that a view serves are solid, the others faint; the
# classes are told by nearness in these planes.

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
# The first table has every view with its loss for this patient and what it says; a star marks the
# one that serves. Below are the nearest patients in it, in the original units. The same as a
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
# `max_dim=3` allows views of three features (the pictures then are in three dimensions),
# `min_dim=1` those of one. Large penalties leave few views, small ones many; `n_views` says how
# many there may be. The path shows how the shares of the views change with the penalty:

# %%
path = ld.path(ld.ripr, "diagnosis ~ .", data=train, lambdas=np.geomspace(20, 0.05, 25))
ax = path.plot()

# %% [markdown]
# And cross-validation, what they are worth on rows held out, beside what the method chooses by
# itself (`None`, the grey line):

# %%
cv = ld.cv(
    ld.ripr, "diagnosis ~ .", data=train, grid={"lambda_": [*np.geomspace(10, 0.1, 9), None]}
)
print(cv)
ax = cv.plot()

# %% [markdown]
# ## Missing values
#
# A row that lacks a feature cannot be judged in the views that need it: its loss there is infinite.
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
# There are more views than before: some of them stand in for others in rows that cannot be looked
# at there. The print counts the rows that have all features of no view; these get no answer.

# %%
answered = partial.predict(holed_test, "view").notna()
print(f"{answered.sum()} of {len(test)} rows get an answer;", "complete:", end=" ")
print(holed_test[features].notna().all(axis=1).sum())
partial.evaluate(holed_test)

# %% [markdown]
# A missing *response* is of use too (semi-supervised): an unlabelled row has the smallest loss over
# all the classes it might have, so that views in which it stands clearly on one side count.

# %%
hidden = train.assign(diagnosis=train["diagnosis"].where(np.arange(len(train)) % 2 == 0))
half = ld.ripr("diagnosis ~ .", data=hidden)
print(half)
half.evaluate(test)

# %% [markdown]
# ## Numbers
#
# For a numeric response the loss is the squared error of the mean of the neighbours, each weighted
# by its inverse distance. A new row gets the view that serves most of its neighbours. The strength
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
# Three features at a time see more of a mixture than two:

# %%
deep = ld.ripr(formula, data=mixtures, max_dim=3)
fits = {"two features": strength, "three features": deep}
pd.concat({name: each.evaluate(new) for name, each in fits.items()}).droplevel(1)

# %% [markdown]
# ## Clusters
#
# Without a response views are wanted in which rows are denser than chance: the loss compares the
# distance to a row's neighbours with that in a uniform sample over the same box. Then k-means finds
# clusters in each view, of the rows that it serves. Nothing is predicted, so that the penalty is 1
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
# The views are found by neighbours, but need not answer by them: any estimator with `fit` and
# `predict`, such as scikit-learn's, can be fitted in each view to the rows that it serves.

# %%
from sklearn.linear_model import LogisticRegression

logistic = ld.ripr("diagnosis ~ .", data=train, learner=LogisticRegression())
both = {"k-NN": fit, "logistic": logistic}
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
#   perimeter say the same, and only one view can have the rows.
# - Distances are between features in standard deviations (`standardize=True`). A feature on another
#   scale, or its logarithm, makes other neighbours.
# - `Error` is leave-one-out in views that were chosen with the row: new rows may do worse. Use
#   `evaluate` on rows that were kept out, or `ld.cv`.
# - Probabilities come from ratios and votes of the neighbours in one view, with two factors fitted
#   to rows left out. They are as good as a few dozen neighbours can make them.
