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
# How do I write a formula? The left side is the response, the right side lists the features, as in
# R.
#
# | formula | means |
# |---|---|
# | `y ~ .` | all columns other than the response, the columns used as `weights=` or `offset=`, and answers that `augment()` has put there (`.fitted`, `.resid`, ...) |
# | `y ~ . - id` | without `id` |
# | `y ~ a + b` | two columns |
# | `y ~ a:b`, `y ~ a*b` | the product; `a + b + a:b` |
# | `y ~ (a + b + c)**2`, `y ~ .**2` | main effects and all products of two |
# | `np.log(y) ~ .` | a transformed response; predictions are of `np.log(y)` |
# | `I(y > 25) ~ .` | a condition as the response: the two classes False and True |
# | `y ~ I(a > 0):b` | a condition as a feature: a factor with the levels False and True, as in R and patsy |
# | `y ~ . + I(a**2) + np.sqrt(b)` | arithmetic stands inside of `I()`; numpy's elementary functions |
# | `y ~ C(code)` | numbers as categories |
# | `y ~ days(d) + year(d) + month(d) + weekday(d)` | numbers of a column of dates |
# | `y ~ bs(a, df=4)`, `cr(a, df=4)`, `cc(a, df=4)` | B-splines, natural and cyclic cubic splines; `te(...)` for their tensor products |
# | `y ~ bs(a, df=4, lower_bound=0, upper_bound=9)` | B-splines with bounds: values outside are refused |
# | `y ~ center(a) + scale(b)` | `a` less its mean over the training rows; `scale` also divides by the standard deviation (divisor n - 1, as R's `scale`) |
# | `y ~ standardize(b)` | as `scale`, with divisor n, as patsy's `standardize`; both take `ddof=` |
# | `` y ~ Q("model year") `` | a column whose name is not a Python name |
# | `fit.update(df, formula=". ~ . - a")` | as in R: where the left side is a dot, both dots stand for the sides of the fit's formula |
#
# Text columns are categories. Each level has its own column, which a penalty allows. `glm` has no
# penalty and codes factors as R does: relative to the first level (`C(x, Treatment("b"))` names
# another), or with a column for every level if the rest of the term is not part of an earlier term.
# Terms are sorted by degree for this, as in R: `a:b + a` is coded as `a + a:b`. A column of bools
# and a condition in `I()` are the same: a factor with the levels False and True.
#
# There is always an intercept. A formula is a closed language: it runs no other code, and uses no
# variables of the caller. Names may be in any script; names that Python treats as equal (`µ` and
# `μ`) need `Q()`. The number of features is limited (beyond 100 per column, to 100,000 features and
# 100 million numbers) and checked before they are computed. For R's notation (`^`, `poly`, `s`,
# `offset`) the error message gives the notation used here.
#
# Rows without a response or a weight are dropped. Rows without a feature stay. A missing number is
# replaced by the mean of the training rows before any function is applied, and a column such as
# `horsepower[missing]` marks it if training had missing values. A missing category is a level of
# its own. The print counts such rows, and the summary lists the imputed values. With
# `missing="drop"`, the default of `glm` as in R, such rows are dropped, and predicted as NaN;
# `ripr` uses the features that they have. Cross-validation imputes the mean of all rows (features
# only), but centres and scales within each fold.
#
# New rows may lie outside the range that a spline was fitted to. `bs()` then extrapolates by its
# end polynomials, as in R, and an `ExtrapolationWarning` names the term. `cr()` extrapolates
# linearly, and `cc()` continues the cycle.
#
# A category of a pandas Categorical without training rows is known, and is predicted as a missing
# value. Any other new level is an error, or with `predict(..., new_levels="missing")` a missing
# value, too. Ordered categories keep their order: each level but the first has a column that is 1
# from that level on (`dose[>=high]`). In `glm` they have R's orthogonal polynomials. `C(dose)`
# ignores the order. Numbers read as text (with `?`, decimal commas, `$12.30`, `1,234`, `45%`) raise
# an error, or a warning if levels may be meant; the message contains the line of code that converts
# them.
#
# A text column counts as row names if more than half of the rows have a unique value and there are
# over 20 values. A dot leaves such a column out with a warning; a formula that names it raises an
# error. Use `C(id)`, or a pandas Categorical, if you want its levels.

# %%
import numpy as np
import pandas as pd

import lodim as ld

cars = ld.data("autompg")
ld.glm("np.log(mpg) ~ np.log(weight) * origin + bs(model_year, df=4)", data=cars)

# %% [markdown]
# A fit shows the resulting columns, and the values learned for missing ones:

# %%
fit = ld.gbmap("mpg ~ . - acceleration", data=cars, m=2, lambda_=0.1)
fit.design.names

# %%
fit.update(cars, formula=". ~ . - origin").design.names

# %% [markdown]
# A new level is an error, or counts as missing:

# %%
odd = cars.head(2).assign(origin=["Mars", "USA"])
try:
    fit.predict(odd)
except ld.DataError as error:
    print(error)

# %%
fit.predict(odd, new_levels="missing")

# %% [markdown]
# Quote names that are not Python names. The error message for a wrong formula shows what is
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
# A column of dates (or of text such as `2024-01-31` or `2024-01-31 12:30`) is neither a number nor
# a category, so a formula must say what to use. A time with a zone counts as its local clock time.
# A missing date is a missing value.
#
# | function | number |
# |---|---|
# | `days(d)`, `days(d, origin="2020-01-01")` | days since 1970-01-01 or since the origin; the time of day is a fraction |
# | `year(d)`, `month(d)` | the year; the month from 1 to 12 (`C(month(d))` for levels) |
# | `weekday(d)` | from 0, a Monday, to 6, a Sunday |
#
# These functions cannot be exported to SQL, ONNX or Python: compute a column first.

# %%
sold = pd.DataFrame({"sold": pd.date_range("2024-01-01", periods=len(cars)), "mpg": cars["mpg"]})
try:
    ld.glm("mpg ~ .", data=sold)
except ld.DataError as error:
    print(error)

# %%
ld.glm("mpg ~ days(sold, origin='2024-01-01') + C(weekday(sold))", data=sold).design.names

# %% [markdown]
# Ordered categories keep their order: by polynomials in `glm`, by thresholds elsewhere.

# %%
size = pd.cut(cars["weight"], [0, 2500, 3500, np.inf], labels=["light", "middle", "heavy"])
ld.glm("mpg ~ size", data=cars.assign(size=size)).design.names

# %%
ld.gbmap("mpg ~ size", data=cars.assign(size=size), m=1, lambda_=0.1).design.names
