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
# # The best model at every price
#
# Features have prices. To ask a patient's age costs next to nothing, a blood test some dollars, a
# scan a hundred; and what has been paid once is paid: after the blood is drawn a second test on it
# costs less, and after a stress test three of its results come for one price. `costnet` takes the
# price list and what needs what, and gives the whole trade-off between price and fit.
#
# With c_v the price of thing v, and S(w) the features that a model with weights w uses, a model
# costs what must really be paid,
#
# > cost(w) = Σ c_v over all v that are used, or needed by what is used, each once.
#
# Cost is a set function, so the best model at a price is a search. `costnet` searches by several
# rules. The first is a convex penalty (Fiterau, Eqs. 5.1 and 5.2, there with what needs a thing
# directly): each thing has a group G_v, it and all features that need it, through chains too, and
#
# > ½ mean deviance + λ Σ_v c_v ‖w_{G_v}‖₂
#
# is zero in a whole group or pays for it once. The others are the weighted lasso (which pays for a
# need as often as it is needed), and a greedy rule that buys what gains most, or most per cost.
# Every support that one of them visits is refitted without its penalty, and a list is made of the
# models, shrunken or refitted, that are better in held-out rows than all cheaper ones, with the
# name of the rule.
#
# This document diagnoses heart disease with a published price list.

# %%
import tempfile
from pathlib import Path

import pandas as pd

import lodim as ld

pd.set_option("display.precision", 3)

heart = ld.data("heart")
heart.head(3)

# %% [markdown]
# ## The price list
#
# 303 patients who came for coronary angiography, and what was known of each before it. The prices
# are Turney's (1995), in Canadian dollars: a test that shares a procedure with others has a small
# price of its own, and needs that procedure.

# %%
prices = ld.data("heart_costs")
prices

# %%
costs = prices.set_index("name")["cost"]
needs = prices.set_index("name")["needs"]
print(f"everything: {costs.sum():.2f} dollars")

# %% [markdown]
# `costs` gives each feature a price, and each thing that is bought but is no feature itself (the
# blood draw, the two stress tests). `depends_on` says what needs what. By default models compete by
# their loss in held-out rows, which keeps the list short. To see the whole trade-off, here each
# refitted model that explains more of the training rows has its place on the list
# (`criterion="deviance"`), and cross-validation says where to stop.

# %%
priced = dict(costs=costs, depends_on=needs, control={"criterion": "deviance"})
fit = ld.costnet("disease ~ .", data=heart, **priced)
print(fit)

# %% [markdown]
# A row is a model, and each explains more than all that cost less: `Cost` is what must be paid for
# one patient, `Df` the number of columns with a coefficient (a category has one a level), `%Dev`
# the per cent of the null deviance explained on the training rows, `%CV` on rows held out, `Rule`
# who found it, and `Lambda` at which penalty of the group rule. The star is the model that `predict`
# uses: the cheapest within one standard error of the best in held-out rows.
#
# `prices()` says what each step buys:

# %%
fit.prices()[["cost", "df", "dev_ratio", "rule", "new", "dropped"]]

# %% [markdown]
# For four dollars, three questions and a blood pressure cuff explain more than half of what can be
# explained at all. Then come the exercise test with its three results, fluoroscopy (`vessels`) and
# the thallium test. Between these jumps lie small steps: what a blood test or an ECG at rest adds
# to the questions is little, and is given up again for the exercise test.

# %%
ax = fit.plot("cost", log=True)

# %% [markdown]
# The dashed line is the weighted lasso's, refitted too. It takes each feature for as dear as if it
# were bought alone, so it does not see that the second result of an exercise test costs a dollar:

# %%
lasso = fit.estimates.lasso
pd.DataFrame({"cost": lasso.cost, "dev_ratio": 1 - lasso.deviance / fit.null_deviance})

# %% [markdown]
# What is bought, and at which price it comes in:

# %%
ax = fit.plot("graph")

# %% [markdown]
# The path of the penalty alone, as glmnet's. It shrinks, and so is not what `predict` uses; the
# supports that it visits are refitted for the frontier.

# %%
ax = fit.plot("path")

# %%
fit.path().iloc[::12]

# %% [markdown]
# ## How much is enough?
#
# On the training rows more is always better. Cross-validation makes the whole frontier anew
# without each fold, and looks at what its models are worth on the fold: error against price. `min`
# is the least; `1se` the cheapest within one standard error of it, here by ten folds and the spread
# of their means, in the print above by five folds drawn twice and the spread of the rows.

# %%
cv = ld.cv(ld.costnet, "disease ~ .", data=heart, **priced, folds=10, rule="1se")
print(cv)
ax = cv.plot()

# %%
chosen = cv.best
chosen.bought()

# %% [markdown]
# This is the shopping list of the model: `price` adds up to its cost, `needed_by` says what a
# procedure is bought for. To new patients the model needs these columns and no others:

# %%
print(f"{chosen.cost:.2f} dollars:", ", ".join(chosen.inputs))
print(chosen.summary())

# %% [markdown]
# ## A budget
#
# `fit.at(budget=...)` is the fit with the best model that the budget pays for. Everything that it
# prints, predicts and evaluates is of that model:

# %%
patients = heart.dropna().iloc[[0, 1, 2, 3]]
budgets = (5, 100, 200, 300)
predicted = {budget: fit.at(budget).predict(patients) for budget in budgets}
table = pd.DataFrame(predicted).rename(columns="{} dollars".format)
table.insert(0, "disease", patients["disease"])
table

# %% [markdown]
# As an argument of the fit a budget limits the search too, which saves time where there are many
# features, and chooses the dearest model within it without cross-validation:

# %%
cheap = ld.costnet("disease ~ .", data=heart, **priced, budget=100)
print(f"{cheap.cost:.2f} dollars, {100 * cheap.dev_ratio:.1f} % of the deviance explained")

# %% [markdown]
# ## What to buy next
#
# A practice has a treadmill, and asks its questions anyway. Set the price of what is there to zero,
# and the list begins with what is best to add:

# %%
owned = costs.copy()
owned[["age", "sex", "chest_pain", "resting_bp", "exercise_test"]] = 0.0
following = ld.costnet("disease ~ .", data=heart, **priced | {"costs": owned}, budget=120)
following.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## One of two will do
#
# The highest heart rate is read off whichever stress test is made. Turney's list has it with the
# thallium test; let either be enough. A *series* is the name of something that one of several
# sources provides, and features depend on the series:

# %%
either = priced | {
    "depends_on": dict(needs) | {"max_heart_rate": "stress_test"},
    "alternatives": {"stress_test": ["exercise_test", "thallium_test"]},
}
series = ld.costnet("disease ~ .", data=heart, **either, budget=324)
series.at(budget=100).bought()

# %% [markdown]
# `serves` names the series that a thing is the source of. With the exercise test in the basket the
# heart rate comes for a dollar. How much more is explained?

# %%
lists = {"with the thallium test": fit, "with either": series}
at = pd.Index((95, 195), name="budget")
pd.DataFrame({name: [f.at(budget=b).dev_ratio for b in at] for name, f in lists.items()}, at)

# %% [markdown]
# ## Terms of the formula
#
# What a formula makes of a column needs that column and costs nothing more, unless `costs` says
# otherwise; the columns of a spline or of a category are bought together.

# %%
formula = "disease ~ . + bs(age, df=4) + chest_pain:sex"
curved = ld.costnet(formula, data=heart, **priced, budget=10)
curved.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## Saving

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "heart.lodim"
    chosen.save(file)
    size, again = file.stat().st_size, ld.load(file)
same = again.predict(heart).equals(chosen.predict(heart))
print(f"{size / 1024:.0f} KiB, equal predictions: {same}")

# %% [markdown]
# ## What the numbers do not mean
#
# - A feature that is not bought is not without information: another may say the same for less.
# - A model of the list is the best of those that the rules found at its price, not the best there
#   is; `dev_ratio_bound`, where it is known, says how much better any could be.
# - `dev_ratio` is of the training rows, of models that were picked among many. What to expect of
#   new rows is the cross-validated curve, and of the point that was picked on it a little less.
# - Coefficients were selected and then fitted to the same rows: there are no standard errors and
#   no p-values.
# - All patients get the same tests. A plan that decides after each result what to do next may cost
#   less on average; that is another model (thesis, Sect. 6.2).
# - The prices are those of one schedule in the nineties, and they are money alone: a thallium test
#   is also a dose, an angiography a risk.
