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
# # How glm works
#
# What does a coefficient look like with its uncertainty? Below, each point is the change of fuel consumption per standard deviation of a feature, and each line its 95% confidence interval.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
ax = fit.plot("coefficients")

# %% [markdown]
# ## The model
#
# A generalized linear model (McCullagh and Nelder 1989) has a score η = offset + β₀ + βᵀx. The link function relates η to the mean of the response, and the family is its distribution. Coefficients maximize the likelihood without a penalty. Their standard errors come from the information matrix, or are robust (`covariance=`, `clusters=`).
#
# Estimates and standard errors agree with R and statsmodels. [The vignette](../vignettes/glm) covers tests, intervals and diagnostics.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.glm` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 50 | iterations |
# | `diagnostic_rows` | 10,000 | training rows whose residuals are kept for plots |
#
# statsmodels fits up to 65,536 rows. More rows are read in spans without a copy, and Newton's method starts at the intercept-only model. The last steps and all inference are shared, in a basis of nearly orthogonal columns (the Cholesky factor of their cross products; a QR decomposition if columns are nearly collinear). With more rows separation is recognized by a vanishing information matrix only.
