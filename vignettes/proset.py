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
# `proset` (Ruf 2022) makes a model of examples. It picks a few training rows, the *prototypes*
# x_j, with weights w_j > 0, and estimates the probability of class k at x by
#
# > p_k(x) = (p0_k + Σ_j 1[y_j = k] w_j G(x − x_j)) / (1 + Σ_j w_j G(x − x_j)),
# > G(z) = exp(−½ Σ_d (v_d z_d)²)  (Eqs. 2.3, 2.4)
#
# where p0 is the shares of the classes in the training data. Every prototype votes for its own
# class, louder the heavier it is and the more x is like it; the null model p0 has a vote of size
# one. The feature weights v_d ≥ 0 say what "like" means: a difference of 1 / v_d in feature d alone
# lowers the similarity G to exp(−½), about 0.6, and a feature with v_d = 0 plays no part.
#
# Both kinds of weights are penalized, by `lambda_v` and `lambda_w` (Eq. 2.8), so that few features
# and few prototypes stay. So an estimate can be answered for as a clinician would: this cell is
# called malignant since it looks like *these* cells, in *these* measurements.
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
# Ten measurements of the nuclei in an image, each as mean, standard error and worst (the mean of
# the three largest). Every third patient is kept out, to evaluate.

# %%
kept = np.arange(len(cells)) % 3 == 0
train, test = cells[~kept], cells[kept]
fit = ld.proset("diagnosis ~ .", data=train)
print(fit)

# %% [markdown]
# The print has a row for each batch of prototypes (here one): `Df`, the number of features with a
# weight above zero; `Prototypes`, how many; `%Dev`, the per cent of the null deviance explained on
# the training rows. A training row that is a prototype would explain itself; there it is left out.
#
# ## Selection
#
# Up to 1,000 rows `lambda_v` is chosen by cross-validation where nothing is said, as the print
# says, among 100 / n, 30 / n, ..., 1 / n, and is 10 / n beyond; the folds are drawn again until it
# is known what all draws would choose. `lambda_w` is Ruf's 1e-8. Where no value does better than
# the class shares by two standard errors, the fit is these alone: of noise nothing is learnt. The
# paths show what penalties do. As `lambda_v` falls, features enter, and leave again where another
# does better:

# %%
path_v = ld.path(ld.proset, "diagnosis ~ .", data=train, n_lambda=60)
ax = path_v.plot()

# %% [markdown]
# Some of these measurements, such as radius and perimeter, say almost the same. Which of them comes
# in is decided by little, and lines that jump from one to another say so.
#
# `lambda_w` does the same to prototypes, but how many stay depends on the share of its L1 part. By
# default that is small (`l1_ratio_w=0.05`): a large penalty then spreads small weights over many
# prototypes that are like each other. With the L1 part alone few come in at a time.

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
# Cross-validation decides: here over a grid of both penalties (Ruf's Algorithm 2.2, on a grid
# instead of at random), by five folds. `min` is the point of least mean held-out deviance, `1se`
# the sparsest within one standard error of it.

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
# These rows were kept out of everything, so `log_loss` and `accuracy` are what to expect. The
# sparser model is the one to explain.
#
# ## Summary

# %%
print(tumour.summary())

# %% [markdown]
# **Batches.** `Candidates` are the rows that may become prototypes: all of them, up to
# `n_candidates=1000`, and beyond as many, drawn as evenly as possible from the easy and the hard
# rows of each class (Algorithm 2.1). The weights are fitted to the `Scoring` rows: all rows, each
# without the candidate that it is itself. (Ruf draws half of the rows as candidates and scores them
# by the others. On few rows that wastes half of them twice, and the draw moves the estimates;
# `control={"max_fraction": 0.5}` does it.) Candidates that keep a weight are the `Prototypes`.
# `Loss` is the mean deviance, twice the log-loss; `Eval.` counts evaluations of the objective.
#
# **Active features.** `Weight` is v, per unit of the feature, `Per SD` per standard deviation,
# which makes features comparable.
#
# **Familiarity.** The sum of all w_j G(x − x_j), in which the null model counts as 1: how much
# of the training data a row is like (Eq. 4.5). Near zero, nothing is known of such rows, and the
# estimate is that of the null model. It sees the active features alone: a row that is strange in
# another one is as familiar as any.

# %%
ax = tumour.plot("weights")

# %% [markdown]
# ## What a prototype is
#
# A patient of the training data. These are all there is of the model, the heaviest first within
# their batch; `row` is the label in the data, `members` counts rows that are the same.

# %%
tumour.export().head(8)

# %% [markdown]
# The map is a principal component analysis of the prototypes, after each feature has been
# multiplied by its weight (Eqs. 4.1 to 4.4), so that distance on it is, as far as two axes can show
# it, the distance of which similarity falls. Pale points are the training rows.

# %%
ax = tumour.plot("map", data=train)

# %% [markdown]
# The prototypes need not stand where the rows are dense. Wide kernels at the outer ends of both
# classes draw a smooth border between them with few prototypes; with a smaller `lambda_v` kernels
# are narrower, and more prototypes stand nearer to the border.
#
# The same in the two features of the largest weight, and the estimate as a surface over them, with
# all other features where a typical row (`tumour.reference()`, Algorithm 4.2) has them. Hatched is
# where hardly a training row is: what the surface says there is extrapolation.

# %%
ax = tumour.plot("scatter", data=train)

# %%
ax = tumour.plot("surface")

# %% [markdown]
# ## A wrong diagnosis
#
# Which of the patients that were kept out are misclassified? `quantile` is the share of the
# training rows that are no more familiar than the patient.

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
# Where the probability is well away from 0 and 1 the model is in doubt, and says so. The first row
# of the table is another matter: the malignant tumour that the model takes for benign with most
# confidence. Why?

# %%
missed = test.loc[[errors.index[0]]]
explanation = tumour.explain(missed)
print(explanation)

# %% [markdown]
# (With `train=train` the five training rows that are nearest in the active features are shown too,
# prototypes or not.)
#
# The first line is the patient, with the estimate; each other line is what adds to it: the null
# model, and then prototypes by `Impact`, weight times similarity. What a line adds to the
# probability of its class is its impact over the sum of all impacts (with the null model's, 1), so
# the columns `p[...]` add up to the estimate. A star marks the *dominant set* (Algorithm 4.1): the
# first lines, as many as are enough to settle the class whatever the class of all others were.
#
# Below stand the measurements beside each other, so that a clinician can judge whether these are
# the patients to compare with.

# %%
dominant = explanation.frame.query("dominant == True and role == 'prototype'")
dominant["target"].value_counts().rename("prototypes in the dominant set").to_frame()

# %%
print(f"familiarity {explanation.familiarity:.1f}, quantile {explanation.quantile:.2f}")

# %% [markdown]
# The quantile says whether the model was out of its depth. Near zero, the answer would be: nothing like
# this patient has been seen. Here it is not, so that the answer is: in these measurements this
# tumour looks like many that are benign. To move the threshold would not find it without many false
# alarms; another measurement might. The map says the same: the patient is the star, amid the pale
# points of the benign, and prototypes are as large as their impact on the estimate.

# %%
ax = tumour.plot("map", data=train, row=missed, named=3)

# %% [markdown]
# The least familiar of the misclassified is the other kind of error: a patient apart from both
# classes, of whom the model knows little.

# %%
strange = test.loc[[errors["familiarity"].idxmin()]]
print(f"row {strange.index[0]}: quantile {errors['quantile'].min():.2f}")
ax = tumour.plot("scatter", data=train, row=strange, named=3)

# %% [markdown]
# ### Which measurements did it?
#
# Shapley values split the difference between the estimate of the patient and that of the typical
# row among the features (Section 4.3.2); with so few features all coalitions are enumerated.

# %%
tumour.shapley(missed)

# %%
ax = tumour.plot("shapley", data=missed)

# %% [markdown]
# The line `(reference)` is the estimate of the typical row; all lines add up to the patient's. To
# the right are the measurements that speak for malignant, in comparison with the typical row.
#
# ## To other people
#
# `shrink()` gives the same model with the columns that it needs, for a form with few fields.

# %%
small = tumour.shrink()
fields = [name for name in small.design.names]
print(fields)
print(f"equal: {small.predict(test[fields]).equals(tumour.predict(test))}")

# %% [markdown]
# For those who like to see it in a spreadsheet: all prototypes, or the explanation of one row,
# formatted. A fit is saved in one file, without pickle.

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
# One set of feature weights may be too few. A further batch of prototypes comes with feature
# weights of its own, and is fitted to what the batches before it leave; these stay as they are.

# %%
more = fit.update(train, n_batches=3)
print(more)
both = {1: fit, 3: more}
pd.concat({b: each.evaluate(test) for b, each in both.items()}, names=["batches"]).droplevel(1)

# %% [markdown]
# Here the first batch leaves nothing to the later ones, which keep no prototype. Mostly they bring
# little, and many prototypes to look at: one batch is the default. The count can be chosen by
# cross-validation too: `n_batches=None`.

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
