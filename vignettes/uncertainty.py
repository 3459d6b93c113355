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
# # How sure
#
# From a fit to an honest answer: what new rows may be, and which features would be selected again.

# %%
import lodim as ld

# %% [markdown]
# ## Intervals for new rows

# %% [markdown]
# ## Compared with what
#
# `ld.compare` fits every model to the same training rows, scores it on the same rows held out, and
# puts baselines beside: the null model, `glm`, and where scikit-learn is installed gradient boosting
# and a random forest. Each call is a default one, and what it chooses (penalties, features, folds of
# its own) it chooses within the training rows.

# %%
heart = ld.data("heart")
table = ld.compare("disease ~ .", heart, ["costnet", "proset"], folds=5)
table

# %% [markdown]
# The sentence above the table is what can be said. Folds share training rows, so that the usual
# standard errors are too small: here variances are more than doubled (Nadeau and Bengio 2003). And
# the best of many is best by luck too, so all pairs of models are judged at once, with the
# correlation of their losses (the model confidence set of Hansen, Lunde and Nason 2011). That is
# careful: in simulations equal models were separated in less than 2 % of the samples, where 5 % are
# allowed, and with a few hundred rows only clear differences are seen.

# %%
table.plot()

# %%
table.tidy()[["model", "auc", "auc_se", "difference", "difference_se", "p_value"]].round(3)

# %% [markdown]
# `table.best` is the best model of lodim, fitted to all rows when it is first asked for, `table.fit`
# any other; `table.losses` has a row for each row of the data, and tells who is wrong where.

# %%
table.best

# %% [markdown]
# All models in ten folds, as `ld.compare("disease ~ .", heart)` gives them (mean deviance of a row;
# standard errors in brackets; what the fits need is a mean over the folds):
#
# | heart | deviance | difference | accuracy | AUC | features | parts |
# |---|---|---|---|---|---|---|
# | gbmap | .765 (.095) | | .838 | .912 | 24 | 11.5 learners |
# | costnet | .791 (.100) | .026 (.023) | .832 | .910 | 16.5 | |
# | forest | .802 (.077) | .037 (.040) | .812 | .898 | | |
# | ripr | .809 (.110) | .044 (.054) | .805 | .905 | 10.1 | 5.9 views |
# | melm | .825 (.097) | .060 (.025) | .838 | .900 | 24 | 2 dimensions |
# | proset | .826 (.096) | .060 (.031) | .835 | .899 | 8.2 | 4.9 prototypes |
# | boosting | 1.060 (.187) | .295 (.128) | .809 | .883 | | |
# | null | 1.380 (.014) | .614 (.095) | .541 | .500 | 0 | |
# | glm | 1.706 (.672) | .941 (.658) | .822 | .890 | 20 | |
#
# All but the null model cannot be told apart from gbmap at 5 %, `glm` too: four of its ten fits are
# separated, and a few rows with probabilities near 0 make its deviance, and its error, large. Who
# needs five prototypes of eight features loses nothing that these 303 rows can show. Fuel
# consumption, `ld.compare("mpg ~ .", ld.data("autompg"))`, where the deviance is the squared error:
#
# | autompg | deviance | difference | R2 | features | parts |
# |---|---|---|---|---|---|
# | proset | 6.69 (1.13) | | .891 | 6.6 | 53.3 prototypes |
# | boosting | 7.49 (1.53) | .80 (.76) | .878 | | |
# | forest | 7.60 (1.56) | .91 (.75) | .876 | | |
# | gbmap | 7.85 (1.15) | 1.16 (.54) | .872 | 10 | 16.3 learners |
# | ripr | 8.25 (1.25) | 1.56 (.81) | .865 | 4.1 | 2.4 views |
# | glm | 11.38 (1.45) | 4.70 (1.18) | .814 | 9 | |
# | costnet | 11.39 (1.54) | 4.70 (1.22) | .814 | 5.1 | |
# | null | 61.33 (5.43) | 54.64 (5.20) | .000 | 0 | |
#
# Here the two linear models are worse than the best, and the others cannot be told apart from it.
#
# ## What may be wrong
#
# `fit.check()` looks for what a statistician would look for before believing a fit, and says what it
# could not look for, and why. With the training rows nothing is found here:

# %%
cars = ld.data("autompg")
old, new = cars[cars["model_year"] <= 76], cars[cars["model_year"] > 76]
fit = ld.glm("mpg ~ . - model_year", old)
fit.check(old)

# %% [markdown]
# Cars of later years are lighter, and go farther with the same weight. Both are seen: the features
# have moved, and the predictions are off.

# %%
fit.check(new)

# %% [markdown]
# A finding has a code, and `ignore=` leaves codes out; `help(fit.check)` has their table.
