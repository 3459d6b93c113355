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
# Which measurements are worth their price? Asking a patient's age costs next to nothing, a blood
# test some dollars, a scan a hundred. Some costs are shared: once the blood is drawn, a second test
# on it is cheaper, and a stress test gives three results for one price. `costnet` takes the prices
# and the dependencies, and fits the best model at each price.
#
# Let c_v be the price of item v, and S(w) the features that a model with weights w uses. The cost
# of a model is what must be paid in total,
#
# > cost(w) = Σ c_v over all v that are used, or needed by what is used, each once.
#
# Finding the best model at a price is a search over sets. `costnet` uses several search rules. The
# first is a convex penalty (Fiterau, Eqs. 5.1 and 5.2). Each item v has a group G_v of itself and
# all features that need it, directly or through others, and
#
# > ½ mean deviance + λ Σ_v c_v ‖w_{G_v}‖₂
#
# is zero for a whole group, or pays for it once. The other rules are the weighted lasso (which
# counts a needed item once for each feature that needs it) and a greedy rule that buys what gains
# most, or most per cost. Every selection found by a rule is refitted without the penalty. The
# frontier lists the models, shrunken or refitted, whose held-out loss is lower than that of all
# cheaper ones, with the rule that found each.
#
# This page diagnoses heart disease with a published price list.

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
# 303 patients came for coronary angiography; the features were known before it. The prices are
# those of Turney (1995), in Canadian dollars. A test that shares a procedure with others has a
# small price of its own, and needs that procedure.

# %%
prices = ld.data("heart_costs")
prices

# %%
costs = prices.set_index("name")["cost"]
needs = prices.set_index("name")["needs"]
print(f"everything: {costs.sum():.2f} dollars")

# %% [markdown]
# `costs` gives a price to each feature, and to each item that is not a feature (the blood draw, the
# two stress tests). `depends_on` lists what each feature needs. By default models compete by their
# held-out loss, which keeps the list short. To show the whole trade-off, this example uses
# `criterion="deviance"`: every refitted model that explains more of the training rows is listed,
# and cross-validation chooses among them.

# %%
priced = dict(costs=costs, depends_on=needs, control={"criterion": "deviance"})
fit = ld.costnet("disease ~ .", data=heart, **priced)
print(fit)

# %% [markdown]
# Each row is a model that explains more than all cheaper ones. `Cost` is the price for one patient,
# `Df` the number of columns with a coefficient (a category has one per level), `%Dev` the share of
# the null deviance explained on the training rows, `%CV` on held-out rows, `Rule` the search that
# found it, and `Lambda` the penalty of the group rule. The star is the model that `predict` uses:
# the cheapest within one standard error of the best held-out loss.
#
# `prices()` lists what each step buys:

# %%
fit.prices()[["cost", "df", "dev_ratio", "rule", "new", "dropped"]]

# %% [markdown]
# For four dollars, three questions and a blood pressure cuff explain more than half of what can be
# explained at all. Then come the exercise test with its three results, fluoroscopy (`vessels`) and
# the thallium test. The small steps in between add little: a blood test or an ECG at rest is
# dropped again when the exercise test is bought.

# %%
ax = fit.plot("cost", log=True)

# %% [markdown]
# The dashed line is the weighted lasso, refitted too. It prices each feature as if it were bought
# alone, so it misses that the second result of an exercise test costs one dollar:

# %%
lasso = fit.estimates.lasso
pd.DataFrame({"cost": lasso.cost, "dev_ratio": 1 - lasso.deviance / fit.null_deviance})

# %% [markdown]
# The graph shows what is bought, and at which price it enters:

# %%
ax = fit.plot("graph")

# %% [markdown]
# The path shows the coefficients of the penalty alone, as in glmnet. They are shrunken, so
# `predict` does not use them; the selections are refitted for the frontier.

# %%
ax = fit.plot("path")

# %%
fit.path().iloc[::12]

# %% [markdown]
# ## How much is enough?
#
# On the training rows more is always better. Cross-validation repeats the whole frontier without
# each fold and computes the loss of its models on that fold: error against price. `min` is the
# lowest error; `1se` is the cheapest model within one standard error of it. Here there are ten
# folds and the standard error is that over folds; the print above used five folds, drawn twice, and
# the standard error over rows.

# %%
cv = ld.cv(ld.costnet, "disease ~ .", data=heart, **priced, folds=10, rule="1se")
print(cv)
ax = cv.plot()

# %%
chosen = cv.best
chosen.bought()

# %% [markdown]
# This is the shopping list of the model: the prices add up to its cost, and `needed_by` names the
# features that need a procedure. New patients need these columns and no others:

# %%
print(f"{chosen.cost:.2f} dollars:", ", ".join(chosen.inputs))
print(chosen.summary())

# %% [markdown]
# ## A budget
#
# `fit.at(budget=...)` returns the fit with the best model within the budget. Everything that it
# prints, predicts and evaluates refers to that model:

# %%
patients = heart.dropna().iloc[[0, 1, 2, 3]]
budgets = (5, 100, 200, 300)
predicted = {budget: fit.at(budget).predict(patients) for budget in budgets}
table = pd.DataFrame(predicted).rename(columns="{} dollars".format)
table.insert(0, "disease", patients["disease"])
table

# %% [markdown]
# A budget as an argument of the fit limits the search as well, which saves time with many features.
# It chooses the most expensive model within the budget, without cross-validation:

# %%
cheap = ld.costnet("disease ~ .", data=heart, **priced, budget=100)
print(f"{cheap.cost:.2f} dollars, {100 * cheap.dev_ratio:.1f} % of the deviance explained")

# %% [markdown]
# ## What to buy next
#
# A practice has a treadmill and asks its questions anyway. Set the price of what is already there
# to zero, and the list starts with the best addition:

# %%
owned = costs.copy()
owned[["age", "sex", "chest_pain", "resting_bp", "exercise_test"]] = 0.0
following = ld.costnet("disease ~ .", data=heart, **priced | {"costs": owned}, budget=120)
following.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## One of two will do
#
# The maximal heart rate can be read off either stress test. Turney's list has it with the thallium
# test; here either is enough. A *series* is a quantity that one of several sources provides, and
# features depend on the series:

# %%
either = priced | {
    "depends_on": dict(needs) | {"max_heart_rate": "stress_test"},
    "alternatives": {"stress_test": ["exercise_test", "thallium_test"]},
}
series = ld.costnet("disease ~ .", data=heart, **either, budget=324)
series.at(budget=100).bought()

# %% [markdown]
# `serves` names the series of a source. With the exercise test in the basket, the heart rate costs
# one dollar. How much more is explained?

# %%
lists = {"with the thallium test": fit, "with either": series}
at = pd.Index((95, 195), name="budget")
pd.DataFrame({name: [f.at(budget=b).dev_ratio for b in at] for name, f in lists.items()}, at)

# %% [markdown]
# ## Terms of the formula
#
# A transformed column needs its column and costs nothing more, unless `costs` says otherwise. The
# columns of a spline or a category are bought together.

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
