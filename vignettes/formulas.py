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
# The left side is the response, the right side what it may depend on, as in R.
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
# Text columns are categories; each level gets a column of its own, which the penalty allows. `glm`
# has no penalty and codes factors as R does: against the first level (`C(x, Treatment("b"))` names
# another), or with a column for every level if the rest of the term is not part of an earlier term.
# Terms are sorted by degree for this, as in R: `a:b + a` is coded as `a + a:b`. A column of bools
# and a condition in `I()` are the same: a factor with the levels False and True.
#
# The intercept is always there. A formula is a closed language: it runs no other code, and takes no
# name from the caller's variables. Names may be of any script; where Python would take two columns'
# names for one (`µ` and `μ`), both are written with `Q()`. What a formula makes of few columns is
# limited (beyond 100 features for each column, to 100,000 features and 100 million numbers), and
# refused before it is made; R's ways of writing (`^`, `poly`, `s`, `offset`) are answered with the
# way that is taken here.
#
# Rows that miss the response or a weight are left out. Those that miss a feature stay: a missing
# number is the mean of the training rows, before any function of it is taken, and a column such as
# `horsepower[missing]` says so where training had gaps in it; a missing category is a level of its
# own. The print counts such rows, and the summary says what was filled in. `missing="drop"` leaves
# them out and answers them by NaN, as `glm` does by default, and R; `ripr` uses them as far as they
# go. Cross-validation fills with the mean of all rows, of their features alone, and centres and
# scales within each fold.
#
# New rows may lie outside of the range that a spline was fitted to. `bs()` then extrapolates by its
# end polynomials, as in R, and an `ExtrapolationWarning` names the term; `cr()` extrapolates
# linearly, and `cc()` continues the cycle.
#
# Of a pandas Categorical, a category without rows is known, and a row that has it is answered as
# one where the column is missing; any other level that training had not is an error, or with
# `predict(..., new_levels="missing")` a missing value too. Categories in order keep it: each level
# but the first has a column that is 1 where it is reached (`dose[>=high]`); in `glm` they have R's
# orthogonal polynomials. `C(dose)` forgets the order. Numbers that were read as text (a `?` among
# them, decimal commas, `$12.30`, `1,234`, `45%`) are refused, or warned about where levels may be
# meant; the message has the line of code that makes numbers of them.
#
# A text column names the rows if more than half of the rows have a value that no other row has, and
# there are over 20 values. A dot leaves such a column out and warns; a formula that writes it is
# refused. `C(id)`, or a pandas Categorical, says that the levels are meant.

# %%
import numpy as np
import pandas as pd

import lodim as ld

cars = ld.data("autompg")
ld.glm("np.log(mpg) ~ np.log(weight) * origin + bs(model_year, df=4)", data=cars)

# %% [markdown]
# What a formula has become: names of the columns of numbers, and what was learnt for missing values.

# %%
fit = ld.gbmap("mpg ~ . - acceleration", data=cars, m=2, lambda_=0.1)
fit.design.names

# %%
fit.update(cars, formula=". ~ . - origin").design.names

# %% [markdown]
# A level that training had not is refused, or taken for missing:

# %%
odd = cars.head(2).assign(origin=["Mars", "USA"])
try:
    fit.predict(odd)
except ld.DataError as error:
    print(error)

# %%
fit.predict(odd, new_levels="missing")

# %% [markdown]
# Names that are no Python names are quoted, and a formula that cannot be read is answered with what
# is meant:

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
# A column of dates (or of text such as `2024-01-31` or `2024-01-31 12:30`) is neither numbers nor
# levels, so a formula says what it takes from it. A time with a zone counts as its clock shows it.
# A missing date is a missing value.
#
# | function | number |
# |---|---|
# | `days(d)`, `days(d, origin="2020-01-01")` | days since 1970-01-01 or since the origin; the time of day is a fraction |
# | `year(d)`, `month(d)` | the year; the month from 1 to 12 (`C(month(d))` for levels) |
# | `weekday(d)` | from 0, a Monday, to 6, a Sunday |
#
# These functions are not written out as SQL, ONNX or code: make a column of the number first.

# %%
sold = pd.DataFrame({"sold": pd.date_range("2024-01-01", periods=len(cars)), "mpg": cars["mpg"]})
try:
    ld.glm("mpg ~ .", data=sold)
except ld.DataError as error:
    print(error)

# %%
ld.glm("mpg ~ days(sold, origin='2024-01-01') + C(weekday(sold))", data=sold).design.names

# %% [markdown]
# Ordered categories keep their order: in `glm` by polynomials, elsewhere by thresholds.

# %%
size = pd.cut(cars["weight"], [0, 2500, 3500, np.inf], labels=["light", "middle", "heavy"])
ld.glm("mpg ~ size", data=cars.assign(size=size)).design.names

# %%
ld.gbmap("mpg ~ size", data=cars.assign(size=size), m=1, lambda_=0.1).design.names
