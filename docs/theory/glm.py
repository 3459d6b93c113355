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
# What does a coefficient look like with its uncertainty? In the plot below, each point is the change of fuel consumption per standard deviation of a feature. Each line is the 95% confidence interval of this change.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.glm("mpg ~ weight + horsepower + model_year + origin", data=cars)
ax = fit.plot("coefficients")

# %% [markdown]
# ## The model
#
# A generalized linear model (McCullagh and Nelder 1989) has a score η = offset + β₀ + βᵀx for each row x. The link function maps the mean of the response to η. The family is the distribution of the response. `glm` chooses the coefficients β that maximize the likelihood, without a penalty. Standard errors come from the information matrix, or are robust (`covariance=`, `clusters=`).
#
# Estimates and standard errors agree with R and statsmodels. [The vignette](../vignettes/glm) explains tests, intervals and diagnostics.
#
# **Ordered classes** (`family="ordinal"`). The log-odds of a class above the boundary k are βᵀx − θₖ, with one threshold θₖ per boundary and the same β for all boundaries (cumulative logit, proportional odds; McCullagh 1980). The sign of an estimate is as in R's `polr` and statsmodels' `OrderedModel`: a positive coefficient makes higher classes more probable. Covariances use the observed information, as there. `predict(type="link")` has the log-odds of each class or a higher one.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.glm` is a dict with the entries of the table. A further entry, `scratch`, is a folder for a file that holds the features during the fit; [Many rows](../big_data) explains it.
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 50 | largest number of iterations |
# | `diagnostic_rows` | 10,000 | number of training rows whose residuals are kept for plots |
#
# **Optimization.** Up to 65,536 rows, statsmodels fits the model, except for more than two classes, since its models of these have no weights. For these and with more rows, lodim uses Newton's method and reads the rows in blocks without a copy. In both cases lodim computes the last steps and all inference itself, with nearly orthogonal columns. It computes these columns by a Cholesky factor of the cross products. If columns are nearly collinear, it uses a QR decomposition instead.
#
# **Separation.** Classes are separated if a combination of features predicts them without error. Up to 65,536 rows, `glm` detects separation by a linear program. With more rows, `glm` detects it only if the information matrix vanishes.
