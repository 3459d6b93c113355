"""Analysis of deviance: two nested fits by their likelihoods."""

import numpy as np
import pandas as pd
from scipy import stats

from lodim.errors import ArgumentError
from lodim.models.glm.likelihood import DISPERSED


def compare(one, other):
    """The frame of `GlmFit.anova`."""
    if type(other) is not type(one):
        raise ArgumentError(f"anova compares two fits of glm, not {type(other).__name__}")
    small, large = sorted((one, other), key=lambda fit: fit.df)
    _check(small, large)
    df = large.df - small.df
    fall = small.log["deviance"] - large.log["deviance"]
    if fall < -1e-7 * max(small.log["deviance"], 1e-300):
        raise ArgumentError("the larger fit has the larger deviance: it has not converged")
    fall = max(fall, 0.0)
    dispersed = large.family.name in DISPERSED
    if dispersed:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.divide(fall / df, large.dispersion)
        p = stats.f.sf(value, df, large.df_resid)
    else:
        value, p = fall, stats.chi2.sf(fall, df)
    fits = (small, large)
    return pd.DataFrame(
        {
            "formula": [fit.design.formula for fit in fits],
            "df_resid": [fit.df_resid for fit in fits],
            "deviance": [fit.log["deviance"] for fit in fits],
            "df": [np.nan, df],
            "F" if dispersed else "LR": [np.nan, value],
            "p_value": [np.nan, p],
        }
    )


def _check(small, large):
    """Raise unless two fits are nested, and of the same rows."""
    of = [(fit.family.name, fit.design.response.name) for fit in (small, large)]
    if of[0] != of[1]:
        raise ArgumentError(f"the fits are of other responses or families: {of[0]}, {of[1]}")
    if small.log["rows"] != large.log["rows"]:
        raise ArgumentError(
            f"the fits are of other rows ({small.n} and {large.n}), or in another order, or of "
            "other weights or offsets: fit both to the rows that are complete in all columns"
        )
    if small.df == large.df or not set(small.design.term_names) <= set(large.design.term_names):
        raise ArgumentError(
            f"the fits are not nested: {small.design.formula!r}, {large.design.formula!r}"
        )
    for fit in (small, large):
        if fit.log["covariance"] != "nonrobust":
            raise ArgumentError(
                f"a likelihood ratio takes the model for true; covariance="
                f"{fit.log['covariance']!r} does not: fit without it"
            )
