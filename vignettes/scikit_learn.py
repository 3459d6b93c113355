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
# # In the company of other tools
#
# How do I use lodim together with scikit-learn, polars, pyarrow, marginaleffects or maketables?
# `lodim.sklearn` has each model as an estimator with `fit(X, y)`, for pipelines, grid searches and
# calibration. Data frames may be those of pandas, polars or pyarrow. marginaleffects and maketables
# accept fits directly.
#
# ## Estimators
#
# Parameters are those of the model functions. By default all columns of X are features, categories
# and missing values included.

# %%
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import lodim as ld
from lodim.sklearn import (
    CostnetClassifier,
    GbmapRegressor,
    MelmClassifier,
    RiprClassifier,
)

cars = ld.data("autompg")
X, y = cars.drop(columns="mpg"), cars["mpg"]
model = GbmapRegressor(m=3, lambda_=0.1).fit(X, y)
model.score(X, y)

# %% [markdown]
# `fit_` is the lodim fit, with all its methods:

# %%
model.fit_.summary()

# %% [markdown]
# `formula=` is the right side of a formula, if X has column names. A search can vary any parameter:

# %%
search = GridSearchCV(
    GbmapRegressor(m=3),
    {"lambda_": [0.01, 0.1, 1.0], "formula": [None, "cr(weight, df=4) + model_year + origin"]},
    cv=KFold(3, shuffle=True, random_state=0),
)
search.fit(X, y)
pd.DataFrame(search.cv_results_)[["param_lambda_", "param_formula", "mean_test_score"]]

# %% [markdown]
# `fit(X, y, groups=)` holds rows of a group out together, in the folds of the model; scikit-learn's
# own folds take groups, too. `cv=` gives the folds for choices that the model leaves open, here
# lambda_.

# %%
years, X = X["model_year"], X.drop(columns="model_year")
cross_val_score(model, X, y, cv=GroupKFold(4), groups=years)

# %%
chosen = GbmapRegressor(m=3, cv=GroupKFold(4)).fit(X, y, groups=years)
chosen.cv_

# %% [markdown]
# ### Coordinates and columns
#
# `transform` returns the embedding of gbmap, the view of melm, and for costnet the columns that its
# model needs, here those that 30 dollars buy.

# %%
wine = ld.data("wine")
view = make_pipeline(MelmClassifier(gamma=1.0).set_output(transform="pandas"), LogisticRegression())
view.fit(wine.drop(columns="cultivar"), wine["cultivar"])
view[:-1].transform(wine.drop(columns="cultivar")).head(3)

# %%
heart = ld.data("heart")
prices = ld.data("heart_costs").set_index("name")
costs, needs = prices["cost"].to_dict(), prices["needs"].dropna().to_dict()
cheap = CostnetClassifier(costs=costs, depends_on=needs, budget=30.0)
cheap.fit(heart.drop(columns="disease"), heart["disease"])
cheap.get_feature_names_out()

# %% [markdown]
# scikit-learn's tools calibrate probabilities and rate features. A level of a single patient is
# unknown in most folds: with `new_levels="missing"` such rows are predicted as missing that value.

# %%
X, y = heart.drop(columns="disease"), heart["disease"]
calibrated = CalibratedClassifierCV(RiprClassifier(new_levels="missing"), cv=3).fit(X, y)
calibrated.predict_proba(X)[:2].round(3)

# %%
importance = permutation_importance(cheap, X, y, n_repeats=3, random_state=0)
pd.Series(importance.importances_mean, X.columns).nlargest(5)

# %% [markdown]
# ### What the checks of scikit-learn say
#
# All estimators run `sklearn.utils.estimator_checks` of scikit-learn 1.6 and of the newest version.
# These checks fail, because of how the models work:
#
# | estimators | check | why |
# |---|---|---|
# | `ProsetRegressor`, `ProsetClassifier` | `check_sample_weight_equivalence_on_dense_data` | a row of weight 2 is one candidate, two rows are two, each of which scores the other |
# | `RiprRegressor`, `RiprClassifier`, `RiprClusterer` | `check_sample_weight_equivalence_on_dense_data` | a row of weight 2 is one neighbour, two rows are two |
#
# A row of weight 0 has no effect on these models either.
#
# ## Frames
#
# Predictions are returned as the kind of frame that they were made for, and `tidy()` and `glance()`
# as the kind of the training data: polars, pyarrow, or otherwise pandas.

# %%
import polars as pl

data = pl.from_pandas(cars)
fit = ld.glm("mpg ~ weight + origin", data)
fit.tidy()

# %%
fit.augment(data).head(3)

# %% [markdown]
# ## Marginal effects and tables
#
# The package marginaleffects accepts `fit.to_marginaleffects(data)`: its `avg_slopes`,
# `comparisons`, `predictions` and `datagrid` then work on any model with a response, for `glm` with
# standard errors. Version 0.6 needs polars below version 2.
#
# ```python
# from marginaleffects import avg_comparisons
#
# avg_comparisons(fit.to_marginaleffects(cars), by="origin")
# ```
#
# maketables accepts fits directly, together with those of pyfixest and statsmodels: `ETable([fit,
# other])`.
