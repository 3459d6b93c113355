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
# # Formulas
#
# How do I write a formula? As in R, the left side is the response, and the right side lists the
# features. The table shows the notation:
#
# | formula | meaning |
# |---|---|
# | `y ~ .` | all columns except the response, the columns of `weights=` and `offset=`, and columns that `augment()` has added (`.fitted`, `.resid`, ...) |
# | `y ~ . - id` | all columns except `id` |
# | `y ~ a + b` | two columns |
# | `y ~ a:b`, `y ~ a*b` | the product; `a + b + a:b` |
# | `y ~ (a + b + c)**2`, `y ~ .**2` | main effects and all products of two |
# | `np.log(y) ~ .` | a transformed response; the model predicts `np.log(y)` |
# | `I(y > 25) ~ .` | a condition as the response: the two classes False and True |
# | `y ~ I(a > 0):b` | a condition as a feature: a factor with the levels False and True, as in R and patsy |
# | `y ~ . + I(a**2) + np.sqrt(b)` | transformed columns: arithmetic inside `I()`, and elementary functions of numpy |
# | `y ~ C(code)` | numbers as categories |
# | `y ~ days(d) + year(d) + month(d) + weekday(d)` | numbers computed from a column of dates |
# | `y ~ bs(a, df=4)`, `cr(a, df=4)`, `cc(a, df=4)` | B-splines, natural and cyclic cubic splines; `te(...)` for their tensor products |
# | `y ~ bs(a, df=4, lower_bound=0, upper_bound=9)` | B-splines with bounds: values outside the bounds raise an error |
# | `y ~ center(a) + scale(b)` | `center` subtracts the mean of the training rows; `scale` also divides by the standard deviation (divisor n - 1, as R's `scale`) |
# | `y ~ standardize(b)` | as `scale`, but with divisor n, as patsy's `standardize`; both functions have the argument `ddof=` |
# | `` y ~ Q("model year") `` | a column whose name is not a Python name |
# | `fit.update(df, formula=". ~ . - a")` | as in R: if the left side is a dot, both dots stand for the two sides of the formula of `fit` |
#
# There is always an intercept. A formula cannot run other code or use variables of your program.
# For R's notation (`^`, `poly`, `s`, `offset`) the error message shows the notation used here.
#
# - *Names.* Names may be in any script. If a table has two names that Python treats as equal (`µ`
#   and `μ`), write them in `Q()`.
# - *Limits.* A formula may make at most a million features. If it makes more than 100 times as many
#   features as it uses columns, the limits are 100,000 features and 100 million values (rows times
#   features).
# - *patsy.* lodim computes splines and contrasts with the package patsy, but reads formulas itself,
#   because patsy fails at 1,000 columns and reads `a^2` as Python code.
#
# ## Categories
#
# Text columns are categories. With a penalty no reference level is needed, so in most models each
# level has its own column. `glm` codes factors (categories) as R does:
#
# - The first level is the reference, and each other level has a column. `C(x, Treatment("b"))`
#   chooses another reference.
# - In an interaction such as `a:b`, the factor `a` has a column for every level, unless the formula
#   also has the term `b`. Terms are sorted by degree, as in R: `a:b + a` is coded as `a + a:b`.
#
# Columns of type bool, and conditions such as `I(a > 0)`, are factors with the levels False and
# True.
#
# Ordered categories (an ordered pandas Categorical or Arrow dictionary, or an Enum of polars) keep
# their order. Each level except the first has a column that is 1 for this level and all higher
# levels, such as `dose[>=high]`. `glm` codes ordered categories by orthogonal polynomials, as R does.
# `C(dose)` ignores the order. An unordered Categorical or dictionary also keeps the sequence of its
# levels, so the first is the reference; a Categorical of polars is sorted, like text.
#
# If a new row has a level that no training row had, `predict` raises an error, or with
# `new_levels="missing"` treats the level as missing (`glm` then predicts NaN). A level that a pandas
# Categorical lists, but no training row has, always counts as missing.
#
# Text that looks like numbers (`?`, decimal commas, `$12.30`, `1,234`, `45%`) raises an error, or a
# warning if it may be meant as levels. Levels that differ only in case or in spaces at their ends,
# such as `yes` and `Yes`, give a warning, too. The message contains the code that converts the
# column.
#
# lodim treats a text column as row names if it has over 20 values and more than half of the rows
# have a unique value. The dot in a formula leaves out such columns, with a warning. A formula that
# names such a column raises an error. If you want to use its levels, write `C(id)`, or convert the
# column to a pandas Categorical. A numeric column stays in the model, with a warning, if it has a
# name such as `id` or `patient_no` and whole numbers that hardly ever repeat. Write `. - id` to
# leave it out, or `. + id` to confirm it.
#
# ## Missing values
#
# How are missing values treated? Rows with a missing response or weight are dropped. For missing
# features, `missing=` chooses one of three treatments:
#
# - `"indicator"`, the default of most models: the mean of the training rows replaces a missing
#   number, before any function is applied. If training rows had missing values, an additional
#   column such as `horsepower[missing]` marks rows with missing values. For a category, missing is
#   then a level of its own. Without missing values in training, the shares of the levels in the
#   training rows replace the category.
# - `"drop"`, the default of `glm` as in R: rows with missing features are dropped, and predicted as
#   NaN.
# - `"keep"`, the default of `ripr`: a row is used in all views (small sets of features) whose
#   features it has.
#
# The print of a fit counts rows with missing features, and the summary lists the imputed values.
#
# ## Splines beyond the training data
#
# New rows may lie outside the range of the training rows. There `bs()` continues its outer
# polynomials, as in R, `cr()` continues linearly, and `cc()` repeats the range. An
# `ExtrapolationWarning` names the term. If you set `lower_bound=` or `upper_bound=`, then outside
# this bound `bs()` raises an error, and `cr()` and `cc()` give no warning.
#
# ## Examples

# %%
import numpy as np
import pandas as pd

import lodim as ld

cars = ld.data("autompg")
ld.glm("np.log(mpg) ~ np.log(weight) * origin + bs(model_year, df=4)", data=cars)

# %% [markdown]
# The attribute `design.names` lists the columns of the design matrix:

# %%
fit = ld.gbmap("mpg ~ . - acceleration", data=cars, m=2, lambda_=0.1)
fit.design.names

# %%
fit.update(cars, formula=". ~ . - origin").design.names

# %% [markdown]
# A new level, here "Mars":

# %%
odd = cars.head(2).assign(origin=["Mars", "USA"])
try:
    fit.predict(odd)
except ld.DataError as error:
    print(error)

# %%
fit.predict(odd, new_levels="missing")

# %% [markdown]
# A name that is not a Python name needs `Q()`. The error message for a wrong formula shows what you
# probably meant:

# %%
spaced = cars.rename(columns={"model_year": "model year"})
ld.glm('mpg ~ weight + Q("model year")', data=spaced).design.names

# %%
for wrong in ("mpg ~ wieght", "mpg ~ weight^2", "mpg ~ poly(weight, 2)"):
    try:
        ld.glm(wrong, data=cars)
    except ld.FormulaError as error:
        print(error)

# %% [markdown]
# ## Dates
#
# A column of dates is neither a number nor a category, so the formula must say which number to
# compute from it. Text such as `2024-01-31` or `2024-01-31 12:30` is also read as dates. Times with
# a time zone are used as local clock times.
#
# | function | number |
# |---|---|
# | `days(d)`, `days(d, origin="2020-01-01")` | days since 1970-01-01 or since the origin; the time of day is a fraction |
# | `year(d)`, `month(d)` | the year; the month from 1 to 12 (`C(month(d))` for levels) |
# | `weekday(d)` | from 0, a Monday, to 6, a Sunday |
#
# Fits whose formulas contain functions of dates cannot be exported to SQL, ONNX or Python. For an
# export, compute the numbers as a column of the data first.

# %%
sold = pd.DataFrame({"sold": pd.date_range("2024-01-01", periods=len(cars)), "mpg": cars["mpg"]})
try:
    ld.glm("mpg ~ .", data=sold)
except ld.DataError as error:
    print(error)

# %%
ld.glm("mpg ~ days(sold, origin='2024-01-01') + C(weekday(sold))", data=sold).design.names

# %% [markdown]
# Ordered categories are coded by polynomials in `glm`, and by thresholds in all other models:

# %%
size = pd.cut(cars["weight"], [0, 2500, 3500, np.inf], labels=["light", "middle", "heavy"])
ld.glm("mpg ~ size", data=cars.assign(size=size)).design.names

# %%
ld.gbmap("mpg ~ size", data=cars.assign(size=size), m=1, lambda_=0.1).design.names
