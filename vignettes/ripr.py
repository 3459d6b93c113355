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
# recovery, after Fiterau 2014) finds a few *views*. A view is a scatter plot of one to three
# features in which the nearest training rows predict the response.
#
# To predict a row, `ripr` looks at its nearest training rows in each view. These rows vote, and
# nearer rows have larger weights. The votes of all views are added up:
#
# > score of class c = log s(c) + t Σ_j log(v_j(c) / s(c)).
#
# Here s(c) is the share of class c in all rows, and v_j(c) its share in the vote of view j. The
# factor t is the same for all views. With t = 0, the votes would have no influence. `ripr` uses the
# value of t with the lowest leave-one-out loss. It selects the views one by one. Each step adds the
# view that lowers the leave-one-out loss most, until the loss hardly falls.
#
# This page predicts whether tumours are malignant. Further examples are missing values, numeric
# responses, clusters, and the method of the thesis that introduced `ripr` (Fiterau 2014).

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
# Each line of the printed table is a view. `%Rows` is the percentage of training rows for whose
# prediction the view has most weight. `Error` is the share of these rows that the whole model
# predicts wrongly. A row is never counted among its own neighbours (leave-one-out). Of thirty
# measurements the model needs less than half.

# %%
print(fit.summary())

# %% [markdown]
# In the summary, `%Weight` is the mean share of a view in the votes. The notes show how much the
# views reduce the leave-one-out loss, and the chosen settings.
#
# `Error` is computed on the rows that also served to select the views, so errors on new rows may be
# larger. Estimate those with held-out rows or by cross-validation (below).
#
# ## The pictures
#
# These plots show the whole model. Each row is a solid point in the view that has most weight in
# its prediction. Neighbouring points tend to have the same class.

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
# Why does the model misclassify some of these patients? We look at the misclassified patient whom
# the model predicts with the highest probability:

# %%
said = fit.predict(test, "class")
wrong = test[said != test["diagnosis"]]
sure = (fit.predict(wrong) - 0.5).abs()
patient = test.loc[[sure.idxmax()]]
print("observed:", patient["diagnosis"].iloc[0])
explanation = fit.explain(patient)
print(explanation)

# %% [markdown]
# The first table shows each view with its share in the votes, and the prediction of this view
# alone. A star marks the view with most weight. The second table lists the nearest patients in this
# view. In the next plot, the star is the patient and the rings are the neighbours.

# %%
axes = explanation.plot()

# %%
some = test.iloc[:5]
pd.concat([fit.predict(some, "prob"), fit.predict(some, "view")], axis=1)

# %% [markdown]
# ## Fewer features, or more
#
# `max_dim=2` allows at most two features per view, which gives a simpler model. `n_views` limits
# the number of views.

# %%
flat = ld.ripr("diagnosis ~ .", data=train, max_dim=2, n_views=3)
print(flat)

# %% [markdown]
# ## One view for each row
#
# The method of the thesis (`method="assignment"`) predicts each row in one view only. It has three
# steps.
#
# 1. **Losses.** Every row i has a loss L_ij in every view j. For classes it is (Eq. 2.5)
#
#    > L_ij = (ν_k(own class) / ν_k(other classes))^(d (1 − a)),
#
#    where ν_k(own class) is the distance in view j to the k-th nearest row of the same class,
#    ν_k(other classes) is that to the k-th nearest row of any other class, d is the number of
#    features of the view, and a = 0.99. The loss is small if the nearest rows are of the same class.
# 2. **Assignment.** The share B_ij ≥ 0 says how much row i uses view j; the shares of a row sum to
#    one. `ripr` chooses the shares that minimize
#
#    > Σ_i (u_i − L*_i)² + λ Σ_ij δ_j B_ij,  u_i = Σ_j L_ij B_ij,  L*_i = min_j L_ij,
#
#    In the first sum, u_i is the mean loss of row i weighted by its shares, and L*_i is the
#    loss in its best view. In the second sum, δ_j = 1 − Σ_i B_ij / n is the share of rows that do
#    not use view j. It penalizes views that few rows use, so that rows tend to use the same few
#    views. `ripr` alternates: it computes δ from B, then the best B for this δ, until the objective
#    no longer changes (Algorithm 2.1.1).
# 3. **Prediction.** A new row gets the view and the class with the smallest ratio ν_k(class) /
#    ν_k(other classes) (Eq. 2.11). Here ν_k(class) is the distance to the k-th nearest training row
#    of this class.

# %%
alone = ld.ripr("diagnosis ~ .", data=train, method="assignment")
print(alone)
pd.concat({"vote": fit.evaluate(test), "assignment": alone.evaluate(test)}).droplevel(1)

# %% [markdown]
# The method of the thesis, in which each row uses one view, is useful if the data are a mixture of
# populations that need different features. For other data, such as these, the default, in which all
# views vote, has a lower loss.
#
# If you omit `lambda_`, `ripr` chooses among several penalties by the leave-one-out error. It also
# tries views that are selected one by one; the print says which result was used. Large penalties
# give few views:

# %%
path = ld.path(ld.ripr, "diagnosis ~ .", data=train, lambdas=np.geomspace(20, 0.05, 25))
ax = path.plot()

# %% [markdown]
# Cross-validation estimates the loss on new rows for each penalty. The grey line is the loss of the
# default method, in which all views vote (`lambda_` is `None`):

# %%
grid = {"lambda_": [*np.geomspace(10, 0.1, 5), None]}
cv = ld.cv(ld.ripr, "diagnosis ~ .", data=train, grid=grid, folds=5)
print(cv)
ax = cv.plot()

# %% [markdown]
# ## Missing values
#
# If a row has a missing feature, `ripr` uses the row in all views without this feature. Nothing is
# imputed, and no row is dropped. The next cell removes a fifth of all measurements at random, in
# the training data and in the test data:

# %%
rng = np.random.default_rng(0)
features = cells.columns.drop("diagnosis")


def with_holes(data, share=0.2):
    """Return the data with a share of the features missing."""
    holes = rng.random((len(data), len(features))) < share
    return data.assign(**data[features].mask(holes))


holed, holed_test = with_holes(train), with_holes(test)
partial = ld.ripr("diagnosis ~ .", data=holed)
print(partial)

# %% [markdown]
# There are more views than before, and some have fewer features, so that they can predict rows with
# missing features. A row with a missing feature in every view is predicted as the class shares of
# the training rows.

# %%
answered = partial.predict(holed_test, "view").notna()
print(f"{answered.sum()} of {len(test)} rows have a view;", "complete:", end=" ")
print(holed_test[features].notna().all(axis=1).sum())
partial.evaluate(holed_test)

# %% [markdown]
# With `method="assignment"`, `ripr` also learns from rows with a missing *response*
# (semi-supervised learning). It prefers views in which such a row clearly belongs to one class.

# %%
hidden = train.assign(diagnosis=train["diagnosis"].where(np.arange(len(train)) % 2 == 0))
half = ld.ripr("diagnosis ~ .", data=hidden, method="assignment")
print(half)
half.evaluate(test)

# %% [markdown]
# ## Numbers
#
# For a numeric response, each view predicts a difference from the mean of all rows, and the
# prediction adds these differences. The example is the strength of concrete (MPa), by the
# components of the mixture (kg/m³) and the age (days):

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
# Without a response, `ripr` finds views in which rows are denser than by chance. The loss of a row
# compares two distances to its neighbours: in the data, and in a uniform sample. A smaller penalty
# than the default of 2 keeps more views.
#
# In each view, k-means finds `n_clusters=` clusters. If you omit it, `ripr` uses the largest number
# for which the clusters of one half of the rows predict those of the other half (prediction
# strength). The example is three varieties of wheat, without their names:

# %%
seeds = ld.data("seeds")
wheat = ld.ripr("~ . - variety", data=seeds, n_clusters=3, lambda_=0.2)
print(wheat.summary())

# %%
axes = wheat.plot()

# %% [markdown]
# The name of a cluster has two parts: the number of the view, and the number of the cluster in this
# view. The table compares clusters and varieties:

# %%
pd.crosstab(wheat.predict(seeds), seeds["variety"])

# %% [markdown]
# ## Several responses, and time
#
# A formula such as `"first + second ~ ."` has several responses, which share the same views. The
# loss of a row in a view is computed for each response, and a row may use different views for
# different responses. The more often a view is used, by all rows for all responses, the smaller is
# its penalty. In this example, the responses are the diagnosis, and whether the nucleus is large:

# %%
two = train.assign(
    size=np.where(train["mean_area"] > train["mean_area"].median(), "large", "small")
)
together = ld.ripr("diagnosis + size ~ . - mean_area", data=two)
print(together)

# %% [markdown]
# `order=` names a column of times. Consecutive rows then use the same view, unless a change lowers
# the loss by more than its price (`smooth`). In this example the informative view changes after row
# 200:

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
# - A view that is not selected may be as good as a selected one. For example, radius and perimeter
#   contain the same information, so the second one adds nothing.
# - Distances between rows are in standard deviations of the features (`standardize=True`). Another
#   scale, such as a logarithm, gives other neighbours.
# - Probabilities are not very precise, because they are based on the votes of a few dozen
#   neighbours.
