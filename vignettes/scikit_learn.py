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
# # Other packages: scikit-learn, polars, marginal effects
#
# How do I use lodim together with scikit-learn, polars, pyarrow, marginaleffects or maketables?
# `lodim.sklearn` has a scikit-learn estimator for each model, for pipelines, grid searches and
# calibration. Data frames may be pandas, polars or pyarrow frames.
#
# ## Estimators
#
# The parameters of an estimator are the arguments of the model function. By default all columns of
# X are features. X may contain categories and missing values.

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
# The attribute `fit_` is the lodim fit, with all its methods:

# %%
model.fit_.summary()

# %% [markdown]
# If X has column names, you can give the right side of a formula as `formula=`. A grid search can
# vary any parameter. The bounds of the spline `cr()` contain all values of the column `weight`, so
# that no fold extrapolates:

# %%
spline = "cr(weight, df=4, lower_bound=1600, upper_bound=5200) + model_year + origin"
search = GridSearchCV(
    GbmapRegressor(m=3),
    {"lambda_": [0.01, 0.1, 1.0], "formula": [None, spline]},
    cv=KFold(3, shuffle=True, random_state=0),
)
search.fit(X, y)
pd.DataFrame(search.cv_results_)[["param_lambda_", "param_formula", "mean_test_score"]]

# %% [markdown]
# Two arguments control the folds on which a model chooses its settings. With `fit(X, y, groups=)`,
# all rows of a group are held out together. With `cv=` you give the folds yourself. In the example,
# the groups are model years.

# %%
years, X = X["model_year"], X.drop(columns="model_year")
cross_val_score(model, X, y, cv=GroupKFold(4), groups=years)

# %%
chosen = GbmapRegressor(m=3, cv=GroupKFold(4)).fit(X, y, groups=years)
chosen.cv_

# %% [markdown]
# ### Coordinates and columns
#
# - `gbmap`: `transform` returns the embedding, a column with the output of each learner.
# - `melm`: `transform` returns the coordinates of the view.
# - `costnet`: `transform` keeps the columns that the model needs, in the example those that 30
#   dollars buy.

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
# scikit-learn can calibrate probabilities and compute the importance of features. Calibration by
# cross-validation (`cv=3`) fits the model without one fold at a time. One fold contains all four
# patients with the level "ST-T abnormality" of `resting_ecg`; the fit without it does not know the
# level. With `new_levels="missing"`, its predictions treat the level as a missing value.

# %%
X, y = heart.drop(columns="disease"), heart["disease"]
calibrated = CalibratedClassifierCV(RiprClassifier(new_levels="missing"), cv=3).fit(X, y)
calibrated.predict_proba(X)[:2].round(3)

# %%
importance = permutation_importance(cheap, X, y, n_repeats=3, random_state=0)
pd.Series(importance.importances_mean, X.columns).nlargest(5)

# %% [markdown]
# ### Which checks of scikit-learn fail?
#
# All estimators are tested by `sklearn.utils.estimator_checks`, with scikit-learn 1.6 and with the
# newest version. Only the checks in the table fail, because of how the models work:
#
# | estimators | check | reason |
# |---|---|---|
# | `ProsetRegressor`, `ProsetClassifier` | `check_sample_weight_equivalence_on_dense_data` | a row of weight 2 is one candidate, but two equal rows are two candidates, which vote for each other |
# | `RiprRegressor`, `RiprClassifier`, `RiprClusterer` | `check_sample_weight_equivalence_on_dense_data` | a row of weight 2 is one neighbour, but two equal rows are two neighbours |
#
# A row of weight 0 has no effect on any of the models.
#
# ## Data frames of polars and pyarrow
#
# Which type do results have? Predictions have the type of the new data: polars, pyarrow, or
# otherwise pandas. `tidy()` and `glance()` return the type of the training data.

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
# The package marginaleffects accepts `fit.to_marginaleffects(data)`, for any model with a response.
# For `glm` its results have standard errors. Version 0.6 of marginaleffects needs polars below
# version 2.
#
# ```python
# from marginaleffects import avg_comparisons
#
# avg_comparisons(fit.to_marginaleffects(cars), by="origin")
# ```
#
# The package maketables accepts fits of lodim directly. One table can also contain fits of pyfixest
# and statsmodels:

# %%
from maketables import ETable

ETable([fit, ld.glm("mpg ~ weight", data, covariance="HC3")]).df
