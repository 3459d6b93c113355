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
# whether an artery is narrowed, but it is invasive. Which patients should have it? We have 303
# patients with known results (Cleveland, `ld.data("heart")`). The tutorial goes from the data to
# a decision in eight steps. Every step is one or two calls.
#
# Set a part of the rows aside first. It is used once, at the end.

# %%
import pandas as pd

import lodim as ld

heart = ld.data("heart")
train, test = heart.iloc[::2], heart.iloc[1::2]

# %% [markdown]
# ## 1. Look at the data
#
# Thirteen measurements, some of them numbers and some categories. The classes are about equally
# frequent. Six values are missing; the models impute them.

# %%
train.head(3).T

# %%
pd.concat({"missing": heart.isna().sum(), "levels": heart.nunique()}, axis=1)

# %% [markdown]
# ## 2. Compare models
#
# `ld.compare` fits every model on the same folds. `Loss` is the mean held-out deviance, twice the
# log-loss. The sentences above the table say which differences are significant.

# %%
models = ["gbmap", "costnet", "ripr", "glm"]
ld.compare("disease ~ .", train, models, folds=5)

# %% [markdown]
# With 152 patients most differences are not significant. The null model is significantly worse than
# the best, so the measurements are informative. `glm` has too many coefficients for the rows, and
# its estimates did not converge. We continue with `gbmap`, which has the lowest loss.
#
# ## 3. Fit
#
# No setting is given, so cross-validation chooses the number of boosts and the penalty.

# %%
fit = ld.gbmap("disease ~ .", data=train)
print(fit)

# %% [markdown]
# `%Dev` is the share of the deviance explained on the training rows. `Dev. ratio (held out)` is the
# share on rows that cross-validation held out, which is what new patients can expect.
# [How to read the output](summaries) explains every label.
#
# ## 4. Check
#
# `fit.check` looks for problems of the fit and of new data, such as drift, leaks and wild values.

# %%
fit.check(train)

# %% [markdown]
# The plot compares predicted probabilities with observed shares in held-out patients. Points near
# the diagonal mean that the probabilities can be taken at face value. Here the observed shares are
# more extreme: low probabilities are too high, and high ones too low. The penalty shrinks
# predictions towards the middle. (With five groups of 30 patients, deviations of 0.1 to 0.2 can
# also be chance.)

# %%
ax = fit.plot("calibration", data=test, bins=5)

# %% [markdown]
# ## 5. Interpret
#
# The effects are slopes on the logit scale, per standard deviation, averaged over the patients.
# They describe the model, not causes.

# %%
ax = fit.plot("effects", top=10)

# %% [markdown]
# For one patient, the local plot shows the slopes at his measurements.

# %%
ax = fit.plot("local", data=test, row=0)

# %% [markdown]
# ## 6. Quantify the uncertainty
#
# A conformal set contains the true class of a new patient with a given probability, here 0.9.
# Where it contains both classes, the model cannot decide at this level.

# %%
chosen = {"m": fit.settings.m, "lambda_": fit.settings.lambda_}
sets = ld.conformal(ld.gbmap, "disease ~ .", train, **chosen)
sets.predict(test)[".set"].value_counts()

# %%
sets.coverage(test)

# %% [markdown]
# ## 7. Decide
#
# Suppose that a missed narrowing costs as much as five needless angiographies. For calibrated
# probabilities the expected cost is lowest if everyone with a probability of at least 1 / (1 + 5)
# is sent to angiography.

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
# The threshold 1/6 misses the fewest patients, but its total cost is not the lowest here. The
# reason is the calibration: this fit's low probabilities are too high, so 1/6 sends many healthy
# patients. Before such a rule is used, probabilities should be calibrated on further patients, not
# on these. The 151 patients took no part in any choice, so the table is an unbiased estimate for
# each rule, from one sample.
#
# ## 8. Report
#
# The report page shows the fit, its checks and its effects, and predicts for values that a reader
# enters. The saved file lets a colleague repeat the predictions.
#
# ```python
# fit.report("heart.html", train)
# fit.save("heart.lodim")
# ```
#
# **Where to go next.** If the tests have prices, [costnet](vignettes/costnet) asks which ones to
# buy. [Which model](which_model) lists the models by question, and [How-to](howto) collects
# recipes.
