"""Formula syntax of other languages that is not allowed here, with its translation."""

SIGNS = {
    "^": "the power of a sum is written (a + b)**2 here, of a column I(x**2)",
    "%in%": "for R's a %in% b write a:b, inside a function (x == 'u') | (x == 'v')",
    "%%": "for R's %% write %, inside a function such as I(x % 2)",
    "%/%": "for R's %/% write //, inside a function such as I(x // 2)",
    "%*%": "there are no matrices in a formula; name the columns one by one",
    "&&": "write (a) & (b), inside a function such as I((x > 1) & (z < 2))",
    "||": "write (a) | (b), inside a function such as I((x > 1) | (z < 2))",
    "!": "for not write ~, inside a function such as I(~(x > 1))",
    "$": "a column of the data is written by its name alone, without the data frame",
    "`": "a column's name in backticks is written Q('the name')",
    "@": "this cannot be read here",
    "#": "'#' cannot be used in a formula",
    "\\": "a backslash can only be used in a quoted name",
    "'": "this quote is not closed",
    '"': "this quote is not closed",
}
BAR = (
    "models of lodim have no random effects; '|' means 'or' here, inside a function such as "
    "I((x > 1) | (z < 2)); for a difference between groups write x*g"
)
TYPESET = {
    **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2010\u2013\u2014\u2212", "-"),
    **dict.fromkeys("\u223c\uff5e", "~"),
    **dict.fromkeys("\u00d7\u22c5", "*"),
    **dict.fromkeys("\uff0b", "+"),
    **dict.fromkeys("\u00a0\u2009\u3000", " "),
    **dict.fromkeys("\u200b\ufeff", ""),
}

_SPLINE = "for a smooth curve write cr(x, df=5) or bs(x, df=5)"
_COLUMN = "make it a column of the data first"
CALLS = {
    "offset": "an offset is given to the model, as offset='x' (a column's name, for "
    "instance after data['x'] = np.log(data['days'])) or an array",
    "weights": "weights are given to the model, as weights='x' (a column's name) or an array",
    "poly": "for a polynomial write x + I(x**2) + I(x**3), for a curve bs(x, df=4)",
    "polynomial": "for a polynomial write x + I(x**2) + I(x**3), for a curve bs(x, df=4)",
    **dict.fromkeys(("s", "ns", "rcs", "lo", "pspline", "smooth"), _SPLINE),
    **dict.fromkeys(("ti", "t2"), "for a surface write te(cr(x, df=4), cr(z, df=4))"),
    **dict.fromkeys(("factor", "as.factor", "ordered"), "for levels of numbers write C(x)"),
    "relevel": "for a reference level write C(x, Treatment('level'))",
    "interaction": "for an interaction write a:b",
    "ifelse": "for ifelse() write np.where(x > 1, a, b)",
    "pmin": "for pmin() write np.minimum(a, b)",
    "pmax": "for pmax() write np.maximum(a, b)",
    "ceiling": "for ceiling() write np.ceil(x)",
    **{a: f"for {a}() write np.arc{a[1:]}(x)" for a in ("asin", "acos", "atan", "asinh", "acosh")},
    "cbind": "several responses are written y1 + y2 ~ ., for models that take several; for "
    "successes and failures write their share ~ ., and give the trials as weights= of glm",
    **dict.fromkeys(("as.numeric", "as.integer", "is.na", "cut", "lag", "strata", "Surv"), _COLUMN),
}
NAMES = {"TRUE": "True", "FALSE": "False", "NULL": "None", "NA": "None"}
