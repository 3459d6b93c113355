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
# # Prototype sets
#
# Which known cases is this case like? `proset` (Ruf 2022) builds a model from examples. It picks a
# few training rows, the *prototypes* x_j, with weights w_j > 0, and estimates the probability of
# class k at x by
#
# > p_k(x) = (p0_k + Σ_j 1[y_j = k] w_j G(x − x_j)) / (1 + Σ_j w_j G(x − x_j)),
# > G(z) = exp(−½ Σ_d (v_d z_d)²)  (Eqs. 2.3, 2.4)
#
# Here p0 holds the class shares of the training data. Every prototype votes for its own class. Its
# vote is stronger if its weight is larger and if x is closer; the null model p0 has a vote of size
# one. The feature weights v_d ≥ 0 define closeness: a difference of 1 / v_d in feature d alone
# lowers the similarity G to exp(−½), about 0.6. A feature with v_d = 0 is ignored.
#
# Both kinds of weights are penalized, by `lambda_v` and `lambda_w` (Eq. 2.8), so that few features
# and few prototypes remain. An estimate can then be explained as a clinician would: this cell is
# called malignant because it resembles *these* cells in *these* measurements.
#
# This page diagnoses breast tumours, and follows one wrong diagnosis back to the prototypes behind
# it. [Numbers](proset_numbers) have a page of their own.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 4)

cells = ld.data("breast_cancer")
cells.shape

# %% [markdown]
# There are ten measurements of the nuclei in an image, each as mean, standard error and worst (the
# mean of the three largest). Every third patient is kept out for the evaluation.

# %%
kept = np.arange(len(cells)) % 3 == 0
train, test = cells[~kept], cells[kept]
fit = ld.proset("diagnosis ~ .", data=train)
print(fit)

# %% [markdown]
# The print has a row for each batch of prototypes (here one). `Df` is the number of features with a
# weight above zero, `Prototypes` the number of prototypes, and `%Dev` the share of the null
# deviance explained on the training rows. A prototype is left out of its own prediction.
#
# ## Selection
#
# Up to 1,000 rows, `lambda_v` is chosen by cross-validation among 100 / n, 30 / n, ..., 1 / n, with
# more sets of random folds until their choices agree; beyond, it is 10 / n. `lambda_w` is Ruf's
# 1e-8. If no value beats the class shares by two standard errors, the fit consists of these shares:
# nothing is learned from noise. The path shows the effect of the penalty. As `lambda_v` falls,
# features enter, and leave again if another one is better:

# %%
path_v = ld.path(ld.proset, "diagnosis ~ .", data=train, n_lambda=60)
ax = path_v.plot()

# %% [markdown]
# Some measurements, such as radius and perimeter, say almost the same. Small differences decide
# which of them enters, so lines jump from one to another.
#
# `lambda_w` does the same to prototypes, but their number depends on the L1 share of the penalty.
# By default it is small (`l1_ratio_w=0.05`): a large penalty then spreads small weights over many
# similar prototypes. With the L1 penalty only, few prototypes enter at a time.

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for l1_ratio_w in (0.05, 1.0):
    path_w = ld.path(
        ld.proset,
        "diagnosis ~ .",
        data=train,
        penalty="lambda_w",
        n_lambda=25,
        lambda_v=0.03,
        l1_ratio_w=l1_ratio_w,
    )
    counts = [len(each.estimates) for each in path_w.fits]
    ax.step(np.log(path_w.lambdas), counts, where="mid", label=f"l1_ratio_w={l1_ratio_w}")
ax.invert_xaxis()
ax.set(xlabel="log(lambda_w)", ylabel="prototypes (lambda_v=0.03)")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# Cross-validation compares a grid of both penalties (Ruf's Algorithm 2.2, on a grid instead of
# random pairs), by five folds. `min` is the point of lowest mean held-out deviance, `1se` the
# sparsest within one standard error of it.

# %%
cv = ld.cv(
    ld.proset,
    "diagnosis ~ .",
    data=train,
    grid={"lambda_v": np.geomspace(0.1, 1e-3, 7), "lambda_w": [1e-4, 1e-6, 1e-8]},
    folds=5,
    rule="1se",
)
print(cv)
ax = cv.plot()

# %%
tumour = cv.best  # refitted by the rule that was asked for
compared = {"defaults": fit, "1se": tumour}
table = pd.concat({name: each.evaluate(test) for name, each in compared.items()}).droplevel(1)
table.insert(0, "features", [each.df for each in compared.values()])
table.insert(1, "prototypes", [len(each.estimates) for each in compared.values()])
table

# %% [markdown]
# These rows were kept out of everything, so `log_loss` and `accuracy` estimate the performance on
# new rows. The sparser model is the one to explain.
#
# ## Summary

# %%
print(tumour.summary())

# %% [markdown]
# **Batches.** `Candidates` are the rows that may become prototypes: all rows, or
# `n_candidates=1000` of them, drawn as evenly as possible from the easy and hard rows of each class
# (Algorithm 2.1). The weights are fitted to the `Scoring` rows: all rows, each without its own
# candidate. (Ruf draws half of the rows as candidates and scores them by the others;
# `control={"max_fraction": 0.5}` does so. With few rows, estimates then depend on the draw.)
# Candidates with a weight above zero are the `Prototypes`. `Loss` is the mean deviance, twice the
# log-loss. `Eval.` counts evaluations of the objective.
#
# **Active features.** `Weight` is v per unit of the feature. `Per SD` is v per standard deviation,
# which is comparable between features.
#
# **Familiarity** is the sum of all w_j G(x − x_j), in which the null model counts as 1 (Eq. 4.5):
# how much of the training data resembles a row. Near zero, nothing is known of such rows, and the
# estimate is that of the null model. Familiarity depends on the active features only: an unusual
# value of another feature does not lower it.

# %%
ax = tumour.plot("weights")

# %% [markdown]
# ## What a prototype is
#
# A prototype is a patient of the training data. The table lists the heaviest prototypes first
# within their batch; `row` is the label in the data, `members` the number of identical rows. The
# model consists of nothing else.

# %%
tumour.export().head(8)

# %% [markdown]
# The map is a principal component analysis of the prototypes, after each feature has been
# multiplied by its weight (Eqs. 4.1 to 4.4). Distances on the map approximate the distances that
# determine similarity. Pale points are the training rows.

# %%
ax = tumour.plot("map", data=train)

# %% [markdown]
# Prototypes need not lie where rows are dense. Wide kernels at the outer ends of both classes draw
# a smooth border with few prototypes. With a smaller `lambda_v`, kernels are narrower and more
# prototypes lie near the border.
#
# The next plots show the two features of largest weight, and the estimate as a surface over them.
# All other features have the values of a typical row (`tumour.reference()`, Algorithm 4.2). The
# hatched area has hardly any training rows, so the surface extrapolates there.

# %%
ax = tumour.plot("scatter", data=train)

# %%
ax = tumour.plot("surface")

# %% [markdown]
# ## A wrong diagnosis
#
# Which of the kept-out patients are misclassified? `quantile` is the share of training rows that
# are at most as familiar as the patient.

# %%
wrong = test[tumour.predict(test, "class") != test["diagnosis"]]
errors = pd.DataFrame(
    {
        "diagnosis": wrong["diagnosis"],
        "P(malignant)": tumour.predict(wrong),
        "familiarity": tumour.familiarity(wrong),
        "quantile": tumour.familiarity(wrong, quantile=True),
    }
).sort_values("P(malignant)")
errors

# %% [markdown]
# A probability well away from 0 and 1 shows that the model is in doubt. The first row of the table
# is different: it is the malignant tumour that the model takes for benign with most confidence.
# Why?

# %%
missed = test.loc[[errors.index[0]]]
explanation = tumour.explain(missed)
print(explanation)

# %% [markdown]
# (`train=train` also shows the five nearest training rows in the active features, prototypes or
# not.)
#
# The first line is the patient with the estimate. Each other line adds to it: the null model, then
# prototypes by `Impact`, weight times similarity. The contribution of a line to the probability of
# its class is its impact over the sum of all impacts (that of the null model is 1), so the columns
# `p[...]` add up to the estimate. A star marks the *dominant set* (Algorithm 4.1): the first lines
# that settle the class, whatever the classes of all others.
#
# The measurements are listed side by side, so that a clinician can judge whether these are the
# right patients to compare with.

# %%
dominant = explanation.frame.query("dominant == True and role == 'prototype'")
dominant["target"].value_counts().rename("prototypes in the dominant set").to_frame()

# %%
print(f"familiarity {explanation.familiarity:.1f}, quantile {explanation.quantile:.2f}")

# %% [markdown]
# The quantile shows whether the patient is unusual. Near zero, nothing like this patient would have
# been seen. Here it is not, so that the model has a clear answer: in these measurements the tumour
# resembles many benign ones. Another threshold would not find it without many false alarms; another
# measurement might. The map shows the same: the star is the patient, among the pale points of
# benign cases; the size of a prototype is its impact on the estimate.

# %%
ax = tumour.plot("map", data=train, row=missed, named=3)

# %% [markdown]
# The least familiar of the misclassified patients is the other kind of error: a patient far from
# both classes, about whom the model knows little.

# %%
strange = test.loc[[errors["familiarity"].idxmin()]]
print(f"row {strange.index[0]}: quantile {errors['quantile'].min():.2f}")
ax = tumour.plot("scatter", data=train, row=strange, named=3)

# %% [markdown]
# ### Which measurements did it?
#
# Shapley values split the difference between the estimate of the patient and that of a typical row
# among the features (Section 4.3.2). With so few features, all coalitions are enumerated.

# %%
tumour.shapley(missed)

# %%
ax = tumour.plot("shapley", data=missed)

# %% [markdown]
# The line `(reference)` is the estimate of the typical row; all lines add up to that of the
# patient. Bars to the right raise the probability of a malignant tumour relative to the typical
# row.
#
# ## Share the model
#
# `shrink()` returns the same model with only the columns that it needs, for a form with few fields.

# %%
small = tumour.shrink()
fields = [name for name in small.design.names]
print(fields)
print(f"equal: {small.predict(test[fields]).equals(tumour.predict(test))}")

# %% [markdown]
# `to_excel` writes all prototypes, or the explanation of one row, to a formatted workbook. `save`
# writes a fit to one file, without pickle.

# %%
with tempfile.TemporaryDirectory() as folder:
    sheet, file = Path(folder) / "patient.xlsx", Path(folder) / "tumour.lodim"
    tumour.to_excel(sheet, row=missed)
    with pd.ExcelFile(sheet) as book:
        print("sheets:", ", ".join(book.sheet_names))
    tumour.save(file)
    size, again = file.stat().st_size, ld.load(file)
print(
    f"{size / 1024:.0f} KiB, equal predictions: {tumour.predict(test).equals(again.predict(test))}"
)

# %% [markdown]
# ## More batches
#
# One set of feature weights may not be enough. A further batch of prototypes has its own feature
# weights and is fitted to what the earlier batches do not explain; these do not change.

# %%
more = fit.update(train, n_batches=3)
print(more)
both = {1: fit, 3: more}
pd.concat({b: each.evaluate(test) for b, each in both.items()}, names=["batches"]).droplevel(1)

# %% [markdown]
# Here the first batch leaves nothing to the later ones, which keep no prototype. Further batches
# usually add many prototypes and little accuracy, so one batch is the default. `n_batches=None`
# chooses the number by cross-validation.

# %% [markdown]
# ## What the numbers do not mean
#
# - A prototype is not a typical member of its class. It is a row that, with its weight, helps to
#   draw the border. The order of the rows and the columns and the names of the classes do not
#   matter. Beyond `n_candidates` rows another `seed` draws other candidates and finds other
#   prototypes: estimates far from the border hardly change, those near it do.
# - A feature of weight zero is not without information. Another one may say the same, as perimeter
#   and radius do; a slightly different penalty may change one for the other.
# - Large familiarity does not say that an estimate is right: the wrong diagnosis above was
#   familiar. Small familiarity says that the estimate rests on little.
# - The explanation is of the *model*. It is complete, since nothing else goes into the estimate;
#   but that patients are alike in a handful of measurements is no cause of anything.
# - Shapley values depend on the row that is compared with. Choose another one by `reference=`.
# - There are no standard errors and no p-values, as with all penalized models that select.
