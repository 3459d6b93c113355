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
# **Question.** Patients with chest pain come to a clinic. Coronary angiography shows for certain
# whether an artery is narrowed, but it is invasive. Which patients should have an angiography? We
# have data on 303 patients with known results (Cleveland, `ld.data("heart")`). This tutorial goes
# from the data to a decision in eight steps of one or two calls each.
#
# First hold out half of the patients. They take no part in any choice.

# %%
import pandas as pd

import lodim as ld

heart = ld.data("heart")
train, test = heart.iloc[::2], heart.iloc[1::2]

# %% [markdown]
# ## 1. Look at the data
#
# The data have thirteen measurements: some are numbers, some are categories. The two classes are
# about equally frequent. Six values are missing; `gbmap` imputes them.

# %%
train.head(3).T

# %%
pd.concat({"missing": heart.isna().sum(), "levels": heart.nunique()}, axis=1)

# %% [markdown]
# ## 2. Compare models
#
# `ld.compare` fits every model on the same folds. The column `Loss` has the mean held-out deviance,
# which is twice the log-loss. The sentences above the table say which differences are significant.

# %%
models = ["gbmap", "costnet", "ripr", "glm"]
ld.compare("disease ~ .", train, models, folds=5)

# %% [markdown]
# With 152 patients most differences are not significant. The null model is significantly worse than
# the best model, so the measurements are informative. `glm` has too many coefficients for so few
# rows, and its estimates did not converge. We continue with `gbmap`, which has the lowest loss.
#
# ## 3. Fit
#
# We give no setting, so cross-validation chooses the number of boosts and the penalty.

# %%
fit = ld.gbmap("disease ~ .", data=train)
print(fit)

# %% [markdown]
# `%Dev` is the share of the deviance explained on the training rows. `Dev. ratio (held out)` is
# this share on rows that cross-validation held out; expect about this value for new patients. [How
# to read the output](summaries) explains every label.
#
# ## 4. Check
#
# `fit.check` looks for problems of the fit and of new data, such as drift, leaks and wild values.

# %%
fit.check(train)

# %% [markdown]
# The calibration plot compares predicted probabilities with observed shares of ill patients among
# the held-out patients. If points are near the diagonal, the probabilities are right. Here the
# observed shares are more extreme: low probabilities are too high, and high probabilities are too
# low. The reason is the penalty, which shrinks predictions towards the mean. (With five groups of
# 30 patients, deviations of 0.1 to 0.2 can also be chance.)

# %%
ax = fit.plot("calibration", data=test, bins=5)

# %% [markdown]
# ## 5. Interpret
#
# The plot of effects shows slopes on the logit scale, per standard deviation, averaged over the
# patients. They describe the model, not causes.

# %%
ax = fit.plot("effects", top=10)

# %% [markdown]
# The local plot shows the slopes for one patient.

# %%
ax = fit.plot("local", data=test, row=0)

# %% [markdown]
# ## 6. Quantify the uncertainty
#
# A conformal set contains the true class of a new patient with a given probability, here 0.9. If
# the set contains both classes, the model cannot decide at this level.

# %%
chosen = {"m": fit.settings.m, "lambda_": fit.settings.lambda_}
sets = ld.conformal(ld.gbmap, "disease ~ .", train, **chosen)
sets.predict(test)[".set"].value_counts()

# %%
sets.coverage(test)

# %% [markdown]
# ## 7. Decide
#
# Suppose that a missed narrowing costs as much as five needless angiographies. If probabilities are
# calibrated, the expected cost is lowest if every patient with a probability of at least 1 / (1 +
# 5) has an angiography.

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
# Of the two thresholds on the probability, 1/6 misses fewer patients, but its total cost is not the
# lowest here. The reason is the calibration: low probabilities of this fit are too high, so a
# threshold of 1/6 sends many healthy patients to angiography. Before such a rule is used, calibrate
# the probabilities on further patients, not on these. The 151 held-out patients took no part in any
# choice, so the table is an unbiased estimate for each rule, from one sample.
#
# ## 8. Report
#
# The report page shows the fit, its checks and its effects. A reader can enter values there and see
# the prediction. A colleague can load the saved file and repeat the predictions.
#
# ```python
# fit.report("heart.html", train)
# fit.save("heart.lodim")
# ```
#
# **Where to go next.** If medical tests have prices, [costnet](vignettes/costnet) finds the tests
# to buy. [Which model](which_model) lists the models by question, and each page of [How-to](howto)
# solves one task.
