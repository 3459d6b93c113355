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
# Which measurements are worth their price? To ask for a patient's age costs almost nothing, a scan
# a hundred dollars. Some costs are shared: after the blood is drawn, a second blood test is
# cheaper. You give `costnet` the prices, and the list of what each measurement needs. `costnet`
# fits the best model at each price.
#
# An *item* is anything with a price: a measurement, or a procedure that measurements need. The cost
# of a model is the sum of the prices of all items that the model uses or needs, each counted once.
# To find the best model at a price, `costnet` searches sets of items by several rules:
#
# - **group**: a penalty on groups of coefficients (Fiterau, Eqs. 5.1 and 5.2). Each item has a
#   group: its own coefficients and those of all features that need it. If all coefficients of a
#   group are zero, the item need not be bought. [How costnet works](../theory/costnet) has the
#   formula.
# - **lasso**: the lasso, with a weight for each feature: the price of the feature and all items
#   that it needs. So an item counts again for each feature that needs it.
# - **greedy**: at each price, improve the best model by exchanging and removing features. Then add
#   one feature. Repeat.
#
# `costnet` also refits the features that a rule selected, without the penalty. Held-out loss chooses
# between both kinds of coefficients and their mean. The *frontier* is a list of models by price.
# Each model on it has a lower held-out loss than all cheaper models.
#
# This page predicts heart disease, with a published price list for the tests.

# %%
import pandas as pd

import lodim as ld

pd.set_option("display.precision", 3)

heart = ld.data("heart")
heart.head(3)

# %% [markdown]
# ## The price list
#
# The data are 303 patients who came for coronary angiography. The prices are those of Turney
# (1995), in Canadian dollars. If several tests share a procedure, the procedure has its own price.
# Each test then has a small price and needs the procedure.

# %%
prices = ld.data("heart_costs")
prices

# %%
costs = prices.set_index("name")["cost"]
needs = prices.set_index("name")["needs"]
print(f"everything: {costs.sum():.2f} dollars")

# %% [markdown]
# `costs` has a price for each feature, and for each item that is not a feature (the blood draw and
# the two stress tests). `depends_on` lists the items that each feature needs.
#
# By default, the frontier only has models with low held-out loss, and is short. This example uses
# `criterion="deviance"` to show a longer list: every refitted model with a lower training deviance
# than all cheaper models. Cross-validation still chooses the model that predicts.

# %%
priced = dict(costs=costs, depends_on=needs, control={"criterion": "deviance"})
fit = ld.costnet("disease ~ .", data=heart, **priced)
print(fit)

# %% [markdown]
# Each row of the printed table is a model. The star marks the model that `predict` uses: the
# cheapest within one standard error of the lowest held-out loss. [How to read the
# output](../summaries) explains the columns.
#
# `fit.prices()` lists what each model buys in addition to the model in the row above (`new`), and
# what it no longer buys (`dropped`):

# %%
fit.prices()[["cost", "df", "dev_ratio", "rule", "new", "dropped"]]

# %% [markdown]
# For four dollars, three questions and a blood pressure cuff explain more than half of the deviance
# that the most expensive model explains. The next large steps are the exercise test with its three
# results, fluoroscopy (`vessels`) and the thallium test. A blood test or an ECG at rest is on the
# list at some prices, but no longer when the exercise test is bought.

# %%
ax = fit.plot("cost", log=True)

# %% [markdown]
# The next cell uses only the rule "lasso". It weights each feature by the price of the feature and
# everything that it needs, as if no other feature were bought. So it does not see that, after one
# result of the exercise test, a second result costs only one dollar:

# %%
lasso = ld.costnet("disease ~ .", data=heart, rules="lasso", **priced)
lasso.prices()[["cost", "dev_ratio"]]

# %% [markdown]
# The graph shows the items that are bought, and the price of the first model that uses each:

# %%
ax = fit.plot("graph")

# %% [markdown]
# The next plot shows the coefficients of the rule "group" at each penalty, as glmnet does for the
# lasso. The penalty shrinks them. The models in the table above have refitted coefficients instead.

# %%
ax = fit.plot("path")

# %%
fit.path().iloc[::12]

# %% [markdown]
# ## How much is enough?
#
# On the training rows, a more expensive model is always better. So cross-validation holds out each
# fold in turn. The rows of the other folds give a frontier, that is, the best model at each price;
# the held-out rows give the losses of these models. `min` is the model with the lowest held-out
# error. `1se` is the cheapest model within one standard error of it.

# %%
cv = ld.cv(ld.costnet, "disease ~ .", data=heart, **priced, folds=10, rule="1se")
print(cv)
ax = cv.plot()

# %%
chosen = cv.best
chosen.bought()

# %% [markdown]
# This table lists everything that the chosen model needs. `needed_by` names the features that need
# a procedure. To predict for new patients, only the following columns are needed:

# %%
print(f"{chosen.cost:.2f} dollars:", ", ".join(chosen.inputs))
print(chosen.summary())

# %% [markdown]
# ## A budget
#
# `fit.at(budget=...)` returns a fit that uses the best model within the budget:

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
print(f"{cheap.cost:.2f} dollars, {cheap.dev_ratio:.1%} of the deviance explained")

# %% [markdown]
# ## What to buy next
#
# Suppose that a medical practice has a treadmill, and asks the cheap questions in any case. Set the
# price of these items to zero. Then the list begins with the best item to add:

# %%
owned = costs.copy()
owned[["age", "sex", "chest_pain", "resting_bp", "exercise_test"]] = 0.0
following = ld.costnet("disease ~ .", data=heart, **priced | {"costs": owned}, budget=120)
following.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## One of two will do
#
# Two different stress tests (exercise and thallium) measure the maximal heart rate. In Turney's
# list the heart rate needs the thallium test. Now we allow either test. `alternatives=` declares a
# *series*, here `stress_test`, and its *sources*, here the two tests. One source is enough. The
# heart rate then depends on the series instead of one test:

# %%
either = priced | {
    "depends_on": dict(needs) | {"max_heart_rate": "stress_test"},
    "alternatives": {"stress_test": ["exercise_test", "thallium_test"]},
}
series = ld.costnet("disease ~ .", data=heart, **either, budget=324)
series.at(budget=100).bought()

# %% [markdown]
# The column `serves` of `bought()` names the alternatives (the *series*) among which a bought test
# was chosen.
#
# Both tests are sources of the heart rate. A model that has paid for the exercise test pays only
# one further dollar for the heart rate. Does a model that may use either source explain more of the
# deviance?

# %%
lists = {"with the thallium test": fit, "with either": series}
at = pd.Index((95, 195), name="budget")
pd.DataFrame({name: [f.at(budget=b).dev_ratio for b in at] for name, f in lists.items()}, at)

# %% [markdown]
# ## Terms of the formula
#
# A transformed column needs the original column. It costs nothing in addition, unless you give it a
# price in `costs`. All columns of a spline or of a category are bought together.

# %%
formula = "disease ~ . + bs(age, df=4) + chest_pain:sex"
curved = ld.costnet(formula, data=heart, **priced, budget=10)
curved.prices()[["cost", "df", "dev_ratio", "new"]]

# %% [markdown]
# ## What the numbers do not mean
#
# - A feature that is not bought may still be informative. Another item may give the same
#   information at a lower price.
# - A model on the list is the best that the search rules found at its price, and may not be the
#   best possible model.
# - For new rows, expect the cross-validated share (`%CV`), or slightly less, and not `dev_ratio`.
# - There are no standard errors and no p-values, because the same rows select and estimate the
#   coefficients.
# - All patients get the same tests. A plan that decides after each result which test comes next may
#   cost less on average; see [`ld.acquire`](../next_measurement).
# - The prices are from one fee schedule of the 1990s. They do not include risks: a thallium test is
#   also a dose of radiation.
