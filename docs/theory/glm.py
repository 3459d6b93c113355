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
# What does a coefficient look like with its uncertainty? In the plot below, each point is the change of fuel consumption per standard deviation of a feature, and each line is the 95% confidence interval of this change.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
ax = fit.plot("coefficients")

# %% [markdown]
# ## The model
#
# A generalized linear model (McCullagh and Nelder 1989) has a score η = offset + β₀ + βᵀx. The link function maps the mean of the response to η, and the family is the distribution of the response. The coefficients maximize the likelihood, without a penalty. Standard errors come from the information matrix, or are robust (`covariance=`, `clusters=`).
#
# Estimates and standard errors agree with R and statsmodels. [The vignette](../vignettes/glm) explains tests, intervals and diagnostics.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.glm` is a dict with these entries, and `scratch`, a folder for a file that holds the features during the fit. By default features are in memory; those of files, lazy and Dask frames go to a temporary file if they need more than half of the free memory.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 50 | largest number of iterations |
# | `diagnostic_rows` | 10,000 | number of training rows whose residuals are kept for plots |
#
# **Optimization.** Up to 65,536 rows, statsmodels fits the model. With more rows, lodim uses Newton's method, which starts at the model with an intercept only and reads the rows in blocks without a copy. In both cases lodim computes the last steps and all inference itself, in a basis of nearly orthogonal columns. This basis comes from the Cholesky factor of the cross products, or from a QR decomposition if columns are nearly collinear.
#
# **Separation.** Up to 65,536 rows, a linear program detects separated classes. With more rows, lodim only detects them if the information matrix vanishes.
