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
# # Tutorial: from a question to a decision
#
# **Question.** Which patients with chest pain should have a coronary angiography? An angiography
# shows for certain whether an artery is narrowed, but it is invasive. The data set
# `ld.data("heart")` has 303 patients with known results. This tutorial goes from the data to a
# decision in eight steps.
#
# We first hold out half of the patients. All models and settings are chosen without them.

# %%
import pandas as pd

import lodim as ld

heart = ld.data("heart")
train, test = heart.iloc[::2], heart.iloc[1::2]

# %% [markdown]
# ## 1. Look at the data
#
# The data have thirteen measurements, numbers and categories. The two classes (disease present or
# absent) are about equally frequent. Six values are missing; `gbmap` imputes them.

# %%
train.head(3).T

# %%
pd.concat({"missing": heart.isna().sum(), "levels": heart.nunique()}, axis=1)

# %% [markdown]
# ## 2. Compare models
#
# `ld.compare` fits every model to the same training rows and measures its loss on the same held-out
# rows. `Loss` is the mean held-out deviance, which is twice the log-loss. The sentences above the
# table say which differences are significant.

# %%
models = ["gbmap", "costnet", "ripr", "glm"]
ld.compare("disease ~ .", train, models, folds=5)

# %% [markdown]
# With 152 patients, most differences are not significant. The null model, which ignores the
# measurements, is significantly worse than the best model, so the measurements are informative.
# `glm` has too many coefficients for so few patients, and its estimates did not converge. We
# continue with `gbmap`, which has the lowest loss.
#
# ## 3. Fit
#
# We give no setting, so cross-validation chooses the number of boosts (steps of the fit) and the
# penalty.

# %%
fit = ld.gbmap("disease ~ .", data=train)
print(fit)

# %% [markdown]
# `%Dev` is the percentage of the deviance that the model explains on the training rows. `Dev. ratio
# (held out)` is this share for rows that cross-validation held out; expect it for new patients.
# [How to read the output](summaries) explains every label.
#
# ## 4. Check
#
# `fit.check` looks for problems of the fit and of new data, such as drift and features that reveal
# the response.

# %%
fit.check(train)

# %% [markdown]
# The calibration plot compares predicted probabilities with the observed share of ill patients, in
# groups of held-out patients. On the diagonal the probabilities are right. Here low probabilities
# are too high and high probabilities are too low, because the penalty shrinks predictions towards
# the mean. (With five groups of 30 patients, deviations of 0.1 to 0.2 can also be chance.)

# %%
ax = fit.plot("calibration", data=test, bins=5)

# %% [markdown]
# ## 5. Interpret
#
# The plot of effects shows the slope of the model for each feature, on the logit scale and per
# standard deviation, averaged over the patients. Slopes describe the model, not causes.

# %%
ax = fit.plot("effects", top=10)

# %% [markdown]
# The local plot shows the slopes of the model for one patient.

# %%
ax = fit.plot("local", data=test, row=0)

# %% [markdown]
# ## 6. Quantify the uncertainty
#
# A conformal set is a set of classes. For about 90% of new patients it contains the true class. The
# print of `sets` says which share is guaranteed, for fixed settings. Here the same patients also chose
# `m` and `lambda_`, so the share can be slightly lower. If a set contains both classes, the
# model cannot decide at this level.

# %%
chosen = {"m": fit.settings.m, "lambda_": fit.settings.lambda_}
sets = ld.conformal(ld.gbmap, "disease ~ .", train, **chosen)
print(sets)

# %%
sets.predict(test)[".set"].value_counts()

# %%
sets.coverage(test)

# %% [markdown]
# ## 7. Decide
#
# Suppose that a missed narrowing costs as much as five needless angiographies. Then the expected
# cost is lowest if every patient with a probability of at least 1 / (1 + 5) has an angiography.
# This assumes that the probabilities are calibrated.

# %%
decision = fit.predict(test, "class", threshold=1 / 6)
pd.crosstab(test["disease"], decision.rename("angiography if present"))

# %%
costs = {}
for name, threshold in (("everyone", 0.0), ("probability 1/2", 1 / 2), ("probability 1/6", 1 / 6)):
    sent = fit.predict(test) >= threshold
    ill = test["disease"] == "present"
    missed, needless = (ill & ~sent).sum(), (~ill & sent).sum()
    costs[name] = {"missed": missed, "needless": needless, "cost": 5 * missed + needless}
pd.DataFrame(costs).T

# %% [markdown]
# The threshold 1/6 misses fewer patients than 1/2, but its total cost is not the lowest here. Low
# probabilities of this fit are too high, so a threshold of 1/6 sends many healthy patients to
# angiography. Before you use a rule of this kind, calibrate the probabilities on further patients.
# The held-out patients took no part in any choice, so the table estimates the cost of each rule
# without bias.
#
# ## 8. Report
#
# `fit.report` writes a web page with the fit, its checks and its effects. On this page, a reader
# can enter values and see the prediction. `fit.save` writes a file from which a colleague can
# repeat the predictions.
#
# ```python
# fit.report("heart.html", train)
# fit.save("heart.lodim")
# ```
#
# **Where to go next.** If medical tests have prices, [costnet](vignettes/costnet) finds the tests
# that are worth their price. [Which model](which_model) lists the models by question. Each page of
# [How-to](howto) solves one task.
