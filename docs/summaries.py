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
# # Reading the summaries
#
# `print(fit)` is short, `fit.summary()` is everything, as text, HTML (in a notebook) or LaTeX
# (`as_latex()`). Long tables are cut in the middle; `summary(full=True)` has every row. What is
# the same in all models is explained here, what is a model's own in its vignette.

# %%
import lodim as ld

cars = ld.data("autompg")
fit = ld.gbmap("mpg ~ .", data=cars)
print(fit.summary())

# %% [markdown]
# ## The header
#
# | line | says |
# |---|---|
# | `Response` | the left side of the formula; of two classes, the probability of which of them |
# | `No. observations` | rows that the fit uses |
# | `Rows dropped (NA)` | rows left out: the response or a weight is missing, or with `missing="drop"` any feature |
# | `Family`, `Link` | what the deviance is, and of what the model is linear, or a sum: gaussian (squared error, identity), binomial (log-loss, logit), multinomial (log-loss, softmax); `glm` has more |
# | `Features` | columns of numbers after the formula: a factor has one for each level (among the `Features used` of `ripr` it is one) |
# | `Mean null deviance` | deviance a row of the model that knows no feature: the mean, or the shares of the classes; of `glm` the sum over rows, `Null deviance`, as in R |
# | `Mean deviance` | that of the model, on the training rows |
# | `Dev. ratio` | one minus their ratio; of a numeric response R². `%Dev` in a short print is the same in per cent |
# | `Dev. ratio (held out)` | the same of rows that cross-validation held out, at the settings that it tried nearest to those of the fit. The settings were chosen by these rows: the figure is slightly optimistic |
# | `(by CV)` | cross-validation chose this setting |
# | `Converged` | the criterion that the notes name holds; where not, a `ConvergenceWarning` was given too |
#
# Deviance is −2 log-likelihood, up to what does not depend on the model: the mean squared error of
# a numeric response, twice the mean log-loss of classes. The header speaks of the training
# rows: it says how well the model describes them, not how well it predicts. `held out` or
# `leave-one-out` stand beside what was measured otherwise; of `ripr`, whose rows are always left
# out of what answers them, `Dev. ratio` is leave-one-out too.
#
# ## The notes
#
# - **Optimizer**: how the fit ended; `ConvergenceWarning` and `Converged: no` where it did not.
# - **Cross-validation over ... settings**: the settings tried, and the lowest held-out loss.
#   Where that is at the end of what was tried, the note says so, and a wider grid may do better.
# - **Each of ... sets of random folds alone would choose ...**: rows are drawn into folds more than once, and
#   this is how far the choice hangs on the draw. Where the draws differ widely, the data do not
#   determine the setting, and neither setting is wrong.
# - **Missing values filled in**: in which columns, in how many rows, and by what.
# - **No valid p-values**: after a penalty or a selection there are none, see
#   [which model](which_model).
#
# ## Tables of features
#
# Tables of features have the estimate per unit of the feature and per standard deviation (`Per
# SD`, `std_estimate` in `tidy()`), which is what may be compared between features, and are sorted
# by its size. Those of `glm` have standard errors instead, in the order of the formula (its plot is
# per standard deviation); `ripr` has a table of views. What an estimate is:
#
# | model | estimate |
# |---|---|
# | `glm`, `costnet` | coefficient, in units of the link |
# | `gbmap` | slope of f, averaged over the training rows; `Mean \|.\|` averages its size |
# | `proset` | weight of the feature in the kernel: its inverse width |
# | `melm` | loading: what a unit of the feature adds to each coordinate |
# | `ripr` | the views in which the feature stands |

# %%
fit.tidy().head()

# %% [markdown]
# ## How good is it on new rows?
#
# Not in the summary, unless the model holds rows out by itself (`melm` does). `ld.cv` has the
# error of rows held out for each of the settings that it is given; `ld.compare` that of a whole
# call, choice of settings included ([more](vignettes/uncertainty)).

# %%
ld.cv(ld.gbmap, "mpg ~ .", data=cars, grid={"m": [5, 20], "lambda_": [0.05, 0.2]})
