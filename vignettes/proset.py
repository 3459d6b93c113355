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
# Which known cases is this case like? `proset` (Ruf 2022) builds a model from examples. It selects
# a few training rows, the *prototypes* x_j, gives them weights w_j > 0, and estimates the
# probability of class k at x by
#
# > p_k(x) = (p0_k + Σ_j 1[y_j = k] w_j G(x − x_j)) / (1 + Σ_j w_j G(x − x_j)),
# > G(z) = exp(−½ Σ_d (v_d z_d)²)  (Eqs. 2.3, 2.4)
#
# Here p0 are the class shares of the training data. Every prototype votes for its own class. Its
# vote is stronger if its weight is larger, and if x is nearer. The null model p0 has a vote of size
# one. The feature weights v_d ≥ 0 determine the distance: a difference of 1 / v_d in feature d
# alone reduces the similarity G to exp(−½), about 0.6. A feature with v_d = 0 is ignored.
#
# Both kinds of weights are penalized, by `lambda_v` and `lambda_w` (Eq. 2.8), so that few features
# and few prototypes remain. A prediction can then be explained as a clinician would explain it:
# this cell is malignant because it resembles *these* cells in *these* measurements.
#
# This page diagnoses breast tumours, and finds the prototypes that caused one wrong diagnosis.
# [Another page](proset_numbers) is about numeric responses.

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
# For each image there are ten measurements of the cell nuclei, each as mean, standard error and
# worst (the mean of the three largest). Every third patient is held out for the evaluation.

# %%
kept = np.arange(len(cells)) % 3 == 0
train, test = cells[~kept], cells[kept]
fit = ld.proset("diagnosis ~ .", data=train)
print(fit)

# %% [markdown]
# The printed table has a row for each batch of prototypes (here one batch). `Df` is the number of
# features with a weight above zero. `Prototypes` is the number of prototypes. `%Dev` is the
# percentage of the null deviance that is explained on the training rows, where no prototype votes
# for itself.
#
# ## Selection
#
# Up to 1,000 rows, cross-validation chooses `lambda_v` among 100 / n, 30 / n, ..., 1 / n. It
# repeats this with further sets of random folds until their choices agree. With more rows,
# `lambda_v` is 10 / n. If no value is better than the null model by two standard errors, the fit is
# the null model, so that nothing is learned from noise. `lambda_w` is 1e-8, Ruf's value.
#
# The path shows the effect of `lambda_v`. As it decreases, features enter, and a feature leaves
# again if another one is better:

# %%
path_v = ld.path(ld.proset, "diagnosis ~ .", data=train, n_lambda=60)
ax = path_v.plot()

# %% [markdown]
# Some measurements, such as radius and perimeter, contain almost the same information. Small
# differences decide which of them enters, so lines jump from one feature to another.
#
# `lambda_w` has the same effect on prototypes, but their number also depends on the L1 share of the
# penalty. By default this share is small (`l1_ratio_w=0.05`), so that a large penalty gives many
# similar prototypes with small weights. With an L1 penalty only, few prototypes enter at a time.

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
# Cross-validation compares a grid of both penalties by five folds (Ruf's Algorithm 2.2, on a grid
# instead of random pairs). `min` is the pair of penalties with the lowest mean held-out deviance,
# and `1se` is the pair with the sparsest model within one standard error of it.

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
# These rows took no part in any choice, so `log_loss` and `accuracy` estimate the performance on
# new rows. From here on we use the sparser model.
#
# ## Summary

# %%
print(tumour.summary())

# %% [markdown]
# **Batches.** `Candidates` is the number of rows that may become prototypes: all rows, or at most
# `n_candidates=1000` rows. If there are more rows, candidates are drawn as evenly as possible from
# the easy and hard rows of each class (Algorithm 2.1). The weights are fitted to the `Scoring`
# rows: all rows, where no candidate votes for itself. (Ruf draws half of the rows as candidates and
# fits the weights to the other half; `control={"max_fraction": 0.5}` does this. With few rows,
# estimates then depend on the seed.) Candidates with a weight above zero are the `Prototypes`.
# `Loss` is the mean deviance, twice the log-loss. `Eval.` is the number of evaluations of the
# objective.
#
# **Active features.** `Weight` is v per unit of the feature. `Per SD` is v per standard deviation,
# which is comparable between features.
#
# **Familiarity** is the sum of all w_j G(x − x_j), compared with a weight of 1 for the null model
# (Eq. 4.5). It tells how many training rows resemble a row. If it is near zero, the training data
# contain no similar rows, and the prediction is that of the null model. Familiarity depends on the
# active features only: an unusual value of another feature does not lower it.

# %%
ax = tumour.plot("weights")

# %% [markdown]
# ## What a prototype is
#
# A prototype is a patient in the training data. The table lists the prototypes of a batch, those
# with the largest weights first. `row` is the row label in the data, and `members` the number of
# identical rows. The model consists only of these prototypes and the feature weights.

# %%
tumour.export().head(8)

# %% [markdown]
# The map shows the first two principal components of the prototypes, after each feature has been
# multiplied by its weight (Eqs. 4.1 to 4.4). Distances on the map approximate the distances that
# determine similarity. Pale points are the training rows.

# %%
ax = tumour.plot("map", data=train)

# %% [markdown]
# Prototypes are not always in the middle of their class. With wide kernels, a few prototypes at the
# outer ends of both classes give a smooth border between the classes. With a smaller `lambda_v`,
# kernels are narrower, and more prototypes lie near the border.
#
# The next two plots are for the two features with the largest weights: the prototypes, and the
# predicted probability as a surface. All other features have the values of a typical row
# (`tumour.reference()`, Algorithm 4.2). The hatched area has hardly any training rows, so the
# surface extrapolates there.

# %%
ax = tumour.plot("scatter", data=train)

# %%
ax = tumour.plot("surface")

# %% [markdown]
# ## A wrong diagnosis
#
# Which of the held-out patients are misclassified? In the table, `quantile` is the share of
# training rows whose familiarity is at most that of the patient.

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
# A probability that is not near 0 or 1 shows that the model is uncertain. The first row of the
# table is different: it is the malignant tumour that the model predicts as benign with the highest
# confidence. Why?

# %%
missed = test.loc[[errors.index[0]]]
explanation = tumour.explain(missed)
print(explanation)

# %% [markdown]
# The first line is the patient, with the predicted probability. The other lines are the null model
# and the prototypes, sorted by `Impact`, which is weight times similarity (for the null model, 1).
# Each line contributes its impact divided by the sum of all impacts to the probability of its
# class. So the contributions in the columns `p[...]` add up to the prediction. A star marks the
# *dominant set* (Algorithm 4.1): the smallest number of first lines that determine the predicted
# class, whatever the classes of the remaining lines. With `train=train`, the table also lists the
# five nearest training rows in the active features.
#
# A clinician can compare the measurements of the patient with those of the prototypes, and judge
# whether these are similar patients.

# %%
dominant = explanation.frame.query("dominant == True and role == 'prototype'")
dominant["target"].value_counts().rename("prototypes in the dominant set").to_frame()

# %%
print(f"familiarity {explanation.familiarity:.1f}, quantile {explanation.quantile:.2f}")

# %% [markdown]
# The quantile shows whether the patient is unusual. If it were near zero, the training data would
# contain no similar patient. Here it is not near zero: in these measurements the tumour resembles
# many benign tumours. A lower threshold would find this tumour only together with many false
# alarms; a further measurement might find it. On the map, the patient (the star) lies among the
# pale points of benign cases. The size of a prototype is its impact on the prediction.

# %%
ax = tumour.plot("map", data=train, row=missed, named=3)

# %% [markdown]
# The misclassified patient with the lowest familiarity is another kind of error: this patient is
# far from both classes, so the training data contain few similar patients.

# %%
strange = test.loc[[errors["familiarity"].idxmin()]]
print(f"row {strange.index[0]}: quantile {errors['quantile'].min():.2f}")
ax = tumour.plot("scatter", data=train, row=strange, named=3)

# %% [markdown]
# ### Which measurements did it?
#
# Shapley values divide the difference between the predictions for the patient and for a typical row
# among the features (Section 4.3.2). They are exact here, because with few features all coalitions
# can be enumerated.

# %%
tumour.shapley(missed)

# %%
ax = tumour.plot("shapley", data=missed)

# %% [markdown]
# The line `(reference)` is the prediction for the typical row; all lines add up to the prediction
# for the patient. Bars to the right increase the probability of a malignant tumour relative to the
# typical row.
#
# ## Share the model
#
# `shrink()` returns the same model without the columns that it does not need. A user then has to
# enter only a few values.

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
# weights. It is added to the earlier batches, which do not change, and is fitted to reduce their
# loss.

# %%
more = fit.update(train, n_batches=3)
print(more)
both = {1: fit, 3: more}
pd.concat({b: each.evaluate(test) for b, each in both.items()}, names=["batches"]).droplevel(1)

# %% [markdown]
# Here the later batches do not reduce the loss, so they have no prototypes. In general, further
# batches add many prototypes and little accuracy, so the default is one batch. `n_batches=None`
# chooses the number by cross-validation.

# %% [markdown]
# ## What the numbers do not mean
#
# - A prototype is not a typical member of its class. It is a row that, with its weight, helps to
#   separate the classes. With more than `n_candidates` rows, another `seed` draws other candidates
#   and finds other prototypes. Predictions far from the border between classes then hardly change,
#   but those near it do.
# - A feature with weight zero may still contain information. Another feature may contain the same
#   information, as perimeter and radius do; a slightly different penalty may select the other one.
# - A large familiarity does not mean that a prediction is right: the wrong diagnosis above had one.
#   A small familiarity means that the prediction is based on few similar rows.
# - The explanation describes the *model*. It is complete, because the prediction depends on nothing
#   else. But similarity in a few measurements is not a cause of a disease.
# - Shapley values depend on the row of comparison. Choose another row by `reference=`.
# - There are no standard errors and no p-values, because features and prototypes are selected by
#   the data.
