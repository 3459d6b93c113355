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
# a few training rows, the *prototypes*, and gives them weights. To predict a row, every prototype
# votes for its own class. Its vote is its weight times its similarity to the row. The class shares
# of the training data also have a vote, of size one.
#
# Feature weights v_d ≥ 0 determine the similarity. A difference of 1 / v_d in feature d alone
# reduces it from 1 to exp(−½), about 0.6. A feature with v_d = 0 is ignored. [How proset
# works](../theory/proset) has the formulas.
#
# Penalties on both kinds of weights, `lambda_v` and `lambda_w` (Eq. 2.8), keep the number of
# features and prototypes small. So a clinician can read a prediction: this tumour is malignant
# because it resembles *these* tumours in *these* measurements.
#
# This page predicts whether breast tumours are malignant, and finds the prototypes that caused one
# wrong prediction. [Another page](proset_numbers) is about numeric responses.

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
# Each row has ten measurements of cell nuclei in an image. Each measurement is given as mean,
# standard error and worst (the mean of the three largest). Every third patient is held out for the
# evaluation.

# %%
kept = np.arange(len(cells)) % 3 == 0
train, test = cells[~kept], cells[kept]
fit = ld.proset("diagnosis ~ .", data=train)
print(fit)

# %% [markdown]
# The printed table has a row for each batch of prototypes (here one batch). `Df` is the number of
# features with a weight above zero. [How to read the output](../summaries) explains every label.
#
# ## Selection
#
# How are the penalties chosen? Up to 1,000 rows, cross-validation chooses `lambda_v` among six
# values, of which the largest gives (nearly) the null model. If no other value is clearly better,
# the fit is the null model. With more rows, `lambda_v` is 10 / n. `lambda_w` is 1e-8, as Ruf
# proposes. [How proset works](../theory/proset) has the details.
#
# The next plot, the *path*, shows the feature weights for many values of `lambda_v`. As `lambda_v`
# decreases, features enter the model. A feature leaves again if another one is better:

# %%
path_v = ld.path(ld.proset, "diagnosis ~ .", data=train, n_lambda=60)
ax = path_v.plot()

# %% [markdown]
# Some measurements, such as radius and perimeter, contain almost the same information. Small
# differences determine which of the two enters, so lines jump.
#
# `lambda_w` selects prototypes in the same way as `lambda_v` selects features, but only if
# `l1_ratio_w`, the share of its L1 part, is large. With the default of 0.05, a large penalty gives
# many similar prototypes with small weights. With 1, prototypes enter the model one by one as
# `lambda_w` falls.

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
# `ld.cv` can compare a grid of both penalties, here by five folds. `min` is the pair with the
# lowest mean held-out deviance. `1se` gives the sparsest model within one standard error of it.

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
tumour = cv.best  # chosen by rule="1se"
compared = {"defaults": fit, "1se": tumour}
table = pd.concat({name: each.evaluate(test) for name, each in compared.items()}).droplevel(1)
table.insert(0, "features", [each.df for each in compared.values()])
table.insert(1, "prototypes", [len(each.estimates) for each in compared.values()])
table

# %% [markdown]
# The rows of `test` took no part in any choice, so `log_loss` and `accuracy` estimate the
# performance on new rows. From here on we use the sparser model.
#
# ## Summary

# %%
print(tumour.summary())

# %% [markdown]
# **Active features** are those with a weight above zero. `Per SD` is the weight per standard
# deviation, which is comparable between features.
#
# **Familiarity** of a row is the sum of the votes of all prototypes (Eq. 4.5). It tells how many
# training rows resemble the row. If it is near zero, the training data contain no similar rows, and
# the prediction is the class shares. Familiarity only depends on features with a weight above zero.

# %%
ax = tumour.plot("weights")

# %% [markdown]
# ## What a prototype is
#
# A prototype is a patient in the training data. The table shows the prototypes with the largest
# weights. `row` is the row label in the data, and `members` the number of identical rows.

# %%
tumour.export().head(8)

# %% [markdown]
# The map shows the first two principal components of the prototypes, after each feature is
# multiplied by its weight (Eqs. 4.1 to 4.4). So distances on the map approximate the distances that
# determine similarity. Pale points are the training rows.

# %%
ax = tumour.plot("map", data=train)

# %% [markdown]
# Prototypes are not always in the middle of their class. With wide kernels, a few prototypes at the
# outer ends of both classes give a smooth border. With a smaller `lambda_v`, more prototypes lie
# near the border.
#
# The next two plots are for the two features with the largest weights: the prototypes, and the
# predicted probability. All other features have the values of a typical row (`tumour.reference()`,
# Algorithm 4.2). The hatched area has hardly any training rows, so the model extrapolates there.

# %%
ax = tumour.plot("scatter", data=train)

# %%
ax = tumour.plot("surface")

# %% [markdown]
# ## A wrong diagnosis
#
# Which of the held-out patients are misclassified? The column `quantile` compares the familiarity
# of a patient with that of the training rows. For example, 0.1 means that 10% of the training rows
# have at most this familiarity.

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
# and the prototypes. `Impact` is weight times similarity (for the null model, 1). Each line
# contributes its share of the total impact to the probability of its class: the columns `p[...]`
# add up to the prediction.
#
# A star marks the *dominant set* (Algorithm 4.1): these prototypes alone determine the predicted
# class, even if all other prototypes had another class. With `train=train`, the table also lists the
# five nearest training rows.

# %%
dominant = explanation.frame.query("dominant == True and role == 'prototype'")
dominant["target"].value_counts().rename("prototypes in the dominant set").to_frame()

# %%
print(f"familiarity {explanation.familiarity:.1f}, quantile {explanation.quantile:.2f}")

# %% [markdown]
# The quantile is the rank of this familiarity among the training rows. A quantile near zero would
# mean an unusual tumour. This malignant tumour is not unusual: its measurements resemble those of
# many benign tumours. With a threshold low enough to find it, many benign tumours would be called
# malignant too.
#
# In the next plot, the patient (the star) lies among the pale points of benign tumours. Larger
# points are prototypes with a larger impact on the prediction.

# %%
ax = tumour.plot("map", data=train, row=missed, named=3)

# %% [markdown]
# The misclassified patient with the lowest familiarity is another kind of error: the training data
# contain few similar patients.

# %%
strange = test.loc[[errors["familiarity"].idxmin()]]
print(f"row {strange.index[0]}: quantile {errors['quantile'].min():.2f}")
ax = tumour.plot("scatter", data=train, row=strange, named=3)

# %% [markdown]
# ### Which measurements did it?
#
# Shapley values divide a difference of predictions among the features: the prediction for the
# patient minus the prediction for a typical row (Section 4.3.2). With few features, as here, the
# Shapley values are exact.

# %%
tumour.shapley(missed)

# %%
ax = tumour.plot("shapley", data=missed)

# %% [markdown]
# In the table, the line `(reference)` is the prediction for the typical row. All lines add up to
# the prediction for the patient. In the plot, bars to the right increase the probability of a
# malignant tumour.
#
# ## Share the model
#
# `shrink()` returns the same model without the columns that it does not need, so that a user has to
# enter only a few values.

# %%
small = tumour.shrink()
fields = [name for name in small.design.names]
print(fields)
print(f"equal: {small.predict(test[fields]).equals(tumour.predict(test))}")

# %% [markdown]
# `to_excel` writes all prototypes, or the explanation of one row, to a formatted workbook. `save`
# writes a fit to one file.

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
# A further batch of prototypes has its own feature weights. `proset` adds the batch to the earlier
# batches, which do not change, and fits it to reduce their loss.

# %%
more = fit.update(train, n_batches=3)
print(more)
both = {1: fit, 3: more}
pd.concat({b: each.evaluate(test) for b, each in both.items()}, names=["batches"]).droplevel(1)

# %% [markdown]
# Here the later batches do not reduce the loss, so they have no prototypes. In general, further
# batches add many prototypes and little accuracy. `n_batches=None` chooses the number by
# cross-validation.

# %% [markdown]
# ## What the numbers do not mean
#
# - A prototype is not a typical member of its class. It is a row that, with its weight, helps to
#   separate the classes. With more than `n_candidates` rows, another `seed` draws other candidates.
#   Predictions near the border between classes then change.
# - A feature with weight zero may still contain information that another feature also contains, as
#   perimeter and radius do.
# - A large familiarity does not mean that a prediction is right: the wrong prediction above had
#   one. A small familiarity means that the prediction is based on few similar rows.
# - Shapley values depend on the row of comparison. `reference=` chooses another row.
# - There are no standard errors and no p-values, because the same data select the features and
#   prototypes.
