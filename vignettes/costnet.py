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
# Which measurements are worth their price? To ask for a patient's age costs almost nothing, a blood
# test a few dollars, a scan a hundred dollars. Some costs are shared: after the blood is drawn, a
# second blood test is cheaper, and a stress test gives three results for one price. You give
# `costnet` the prices and the dependencies, and it fits the best model at each price.
#
# The cost of a model is the sum of the prices c_v of all items v that it uses or needs, each
# counted once. Finding the best model at a price is a search over sets of items. `costnet` uses
# several search rules:
#
# - **group**: a convex penalty (Fiterau, Eqs. 5.1 and 5.2). The group G_v of item v contains v and
#   all features that need v, directly or through other items. The rule minimizes
#
#   > ½ mean deviance + λ Σ_v c_v ‖w_{G_v}‖₂.
#
#   Either all weights of a group are zero, or its item v is paid for once.
# - **lasso**: the weighted lasso. It counts a needed item once for each feature that needs it.
# - **greedy**: add the item that lowers the deviance most, or most per cost.
#
# The selected features are refitted without the penalty. The *frontier* lists all models whose
# held-out loss is lower than that of all cheaper models, with the rule that found each model.
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
# The data are 303 patients who came for coronary angiography; the features were known before the
# angiography. The prices are those of Turney (1995), in Canadian dollars. If several tests share a
# procedure, each test has a small price and needs the procedure, which has its own price.

# %%
prices = ld.data("heart_costs")
prices

# %%
costs = prices.set_index("name")["cost"]
needs = prices.set_index("name")["needs"]
print(f"everything: {costs.sum():.2f} dollars")

# %% [markdown]
# `costs` has a price for each feature, and for each item that is not a feature (the blood draw, the
# two stress tests). `depends_on` lists the items that each feature needs. By default the frontier
# contains models with low held-out loss, and is short. To show a longer list, this example uses
# `criterion="deviance"`: the frontier contains every refitted model with a lower training deviance
# than all cheaper models, and cross-validation chooses among them.

# %%
priced = dict(costs=costs, depends_on=needs, control={"criterion": "deviance"})
fit = ld.costnet("disease ~ .", data=heart, **priced)
print(fit)

# %% [markdown]
# Each row is a model that explains more than all cheaper models.
#
# - `Cost`: price of the model for one patient.
# - `Df`: number of columns with a coefficient (a category has one column per level).
# - `%Dev`, `%CV`: percentage of the null deviance explained, on training rows and on held-out rows.
# - `Rule`, `Lambda`: search rule that found the model, and its penalty for the group rule.
# - The star marks the model that `predict` uses: the cheapest within one standard error of the
#   lowest held-out loss.
#
# `prices()` lists the items that each step buys:

# %%
fit.prices()[["cost", "df", "dev_ratio", "rule", "new", "dropped"]]

# %% [markdown]
# For four dollars, three questions and a blood pressure cuff explain more than half of the deviance
# that can be explained. The next large steps are the exercise test with its three results,
# fluoroscopy (`vessels`) and the thallium test. The small steps between them add little: a blood
# test or an ECG at rest is dropped again if the exercise test is bought.

# %%
ax = fit.plot("cost", log=True)

# %% [markdown]
# The dashed line is the weighted lasso, which is also refitted. It prices each feature as if it
# were bought alone. So it does not use that the second result of an exercise test costs only one
# dollar:

# %%
lasso = fit.estimates.lasso
pd.DataFrame({"cost": lasso.cost, "dev_ratio": 1 - lasso.deviance / fit.null_deviance})

# %% [markdown]
# The graph shows the items that are bought, and the price of the first model that uses each:

# %%
ax = fit.plot("graph")

# %% [markdown]
# The path shows the coefficients of the penalized models, as in glmnet. These coefficients are
# shrunken, so `predict` does not use them; the frontier has refitted coefficients.

# %%
ax = fit.plot("path")

# %%
fit.path().iloc[::12]

# %% [markdown]
# ## How much is enough?
#
# On the training rows, a more expensive model is always better. Cross-validation computes the whole
# frontier without each fold, and the loss of its models on this fold. The result is the held-out
# error at each price. `min` is the model with the lowest error; `1se` is the cheapest model within
# one standard error of the lowest error. Here there are ten folds and the standard error is over
# folds. The print above is based on two sets of five folds, and its standard error is over rows.

# %%
cv = ld.cv(ld.costnet, "disease ~ .", data=heart, **priced, folds=10, rule="1se")
print(cv)
ax = cv.plot()

# %%
chosen = cv.best
chosen.bought()

# %% [markdown]
# This table is the shopping list of the model. The prices add up to its cost, and `needed_by` names
# the features that need a procedure. To predict for new patients, only these columns are needed:

# %%
print(f"{chosen.cost:.2f} dollars:", ", ".join(chosen.inputs))
print(chosen.summary())

# %% [markdown]
# ## A budget
#
# `fit.at(budget=...)` returns a fit whose predictions and reports are those of the best model
# within the budget:

# %%
patients = heart.dropna().iloc[[0, 1, 2, 3]]
budgets = (5, 100, 200, 300)
predicted = {budget: fit.at(budget).predict(patients) for budget in budgets}
table = pd.DataFrame(predicted).rename(columns="{} dollars".format)
table.insert(0, "disease", patients["disease"])
table

# %% [markdown]
# With `budget=` as an argument of `costnet`, the search is limited to the budget, which saves time
# if there are many features. The fit then predicts by the most expensive model within the budget,
# without cross-validation:

# %%
cheap = ld.costnet("disease ~ .", data=heart, **priced, budget=100)
print(f"{cheap.cost:.2f} dollars, {100 * cheap.dev_ratio:.1f} % of the deviance explained")

# %% [markdown]
# ## What to buy next
#
# Suppose that a medical practice has a treadmill and asks the questions anyway. Set the price of
# these items to zero. Then the list begins with the best item to add:

# %%
owned = costs.copy()
owned[["age", "sex", "chest_pain", "resting_bp", "exercise_test"]] = 0.0
following = ld.costnet("disease ~ .", data=heart, **priced | {"costs": owned}, budget=120)
following.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## One of two will do
#
# Either stress test measures the maximal heart rate. In Turney's list it belongs to the thallium
# test; now we allow either test. A *series* is a quantity that each of several sources provides.
# Features depend on the series:

# %%
either = priced | {
    "depends_on": dict(needs) | {"max_heart_rate": "stress_test"},
    "alternatives": {"stress_test": ["exercise_test", "thallium_test"]},
}
series = ld.costnet("disease ~ .", data=heart, **either, budget=324)
series.at(budget=100).bought()

# %% [markdown]
# The column `serves` names the series that a source provides. If the exercise test is bought, the
# heart rate costs only one dollar more. How much more of the deviance is explained?

# %%
lists = {"with the thallium test": fit, "with either": series}
at = pd.Index((95, 195), name="budget")
pd.DataFrame({name: [f.at(budget=b).dev_ratio for b in at] for name, f in lists.items()}, at)

# %% [markdown]
# ## Terms of the formula
#
# A transformed column needs the original column and costs nothing in addition, unless you give it a
# price in `costs`. The columns of a spline or a category are bought together.

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
# - A feature that is not bought may still be informative: another item may give the same
#   information at a lower price.
# - A model on the list is the best model that the search rules found at its price, not the best
#   possible model. If it is known, `dev_ratio_bound` is an upper limit for every model at this
#   price.
# - `dev_ratio` is for training rows, of models that were selected among many. For new rows expect
#   the cross-validated value, and slightly less for the selected model.
# - There are no standard errors and no p-values, because coefficients were selected and fitted on
#   the same rows.
# - All patients get the same tests. A plan that decides after each result which test comes next may
#   cost less on average; see `ld.acquire`.
# - The prices are from one fee schedule of the nineties. They do not include other costs: a
#   thallium test is also a dose of radiation, and an angiography is a risk.
