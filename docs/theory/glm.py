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
# What does a coefficient look like with its uncertainty? In the plot below, each point is the
# change of fuel consumption per standard deviation of a feature. Each line is its 95% confidence
# interval.

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
# Estimates and standard errors agree with those of R and statsmodels. [The
# vignette](../vignettes/glm) explains tests, intervals and diagnostics.
#
# **Ordered classes** (`family="ordinal"`). Let the classes be numbered from 1 to K, in their order.
# For each k below K, the log-odds that a row has a class higher than k are βᵀx − θₖ. The
# coefficients β are the same for all k, and each k has its own threshold θₖ (cumulative logit model
# with proportional odds; McCullagh 1980). A positive coefficient makes higher classes more
# probable, as in R's `polr` and in `OrderedModel` of statsmodels. Standard errors use the observed
# information, as in these packages. `predict(type="link")` returns the log-odds of "this class or a
# higher one", per class.
#
# **Quantiles** (`family="quantile", quantile=0.9`). The score is the quantile, and the coefficients
# minimize the check loss (Koenker 2005). A linear program finds the exact minimum; `QuantReg` of
# statsmodels only comes near it. Standard errors are those of `QuantReg` with `vcov="iid"`, which
# assume that the errors of all rows have the same distribution. They need an estimate of the
# density of these errors at the quantile. Its bandwidth (Hall and Sheather) exists only with enough
# rows: 8 for the median, 42 for the 0.9 quantile and 347 for the 0.99 quantile. With fewer rows,
# standard errors are missing. `gbmap` and `costnet` smooth the kink of the same loss.
#
# **Numbers with outliers** (`family="huber"`). Residuals up to a limit count with their square, and
# larger ones linearly. The limit is 1.345 times a robust standard deviation, the median absolute
# residual divided by 0.6745. The limit and the coefficients are estimated together. Estimates and standard errors
# are those of `RLM` in statsmodels (`cov="H1"`); in `gbmap` and `costnet`, the limit comes from the
# deviations of the response from its median.
#
# `quantile` and `huber` have Wald tests (`anova()` of one or two fits, `drop1()`) and confidence
# intervals of the predictions. They have no likelihood, no intervals of new observations (see
# `lodim.conformal`) and no residual plots. If the spread of the errors varies, or rows depend on
# each other, use `lodim.bootstrap`.
#
# ## Entries of `control`, and constants
#
# `control=` of `ld.glm` is a dict with these entries (for `scratch`, see [Many rows](../big_data)):
#
# | entry of `control` | default | meaning |
# |---|---|---|
# | `max_iter` | 50 | largest number of iterations |
# | `diagnostic_rows` | 10,000 | number of training rows whose residuals are kept for plots |
#
# **Optimization.** Up to 65,536 rows, statsmodels fits the model. For more rows, and for more than
# two classes, lodim uses Newton's method and reads the rows in blocks. In both cases lodim itself
# computes the last steps and all inference, after a transformation to nearly orthogonal columns.
# Quantiles need all rows in memory.
#
# **Separation.** Classes are separated if a combination of features predicts them without error. Up to 65,536 rows, `glm` detects separation by a linear program. With more rows, `glm` detects it only if the information matrix becomes zero, up to rounding, in some direction.
