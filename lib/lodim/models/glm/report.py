"""Printed listing, summary and report page of a GlmFit."""

from functools import partial

import numpy as np

from lodim.design.frame import in_pandas
from lodim.engine.blocks import SPAN_ROWS
from lodim.family.negative_binomial import MOST
from lodim.page import MOST_NAMES, Picture
from lodim.report import phrases, tables
from lodim.report.tables import Report, Table
from lodim.text import counted, first_names

COVARIANCES = {"nonrobust": "assume the model's variances", "cluster": "are robust, by clusters"}
FEW_CLUSTERS = 30
NAMED = 8  # most terms that a note lists
significant = partial(tables.significant, noise=0.0)  # estimates may have any size
SATURATED = (
    "There are as many coefficients as rows, so the model fits any responses exactly. Deviance, "
    "AIC and BIC have no meaning, and standard errors, if any, have little"
)
LEAST_P = 2e-16  # as in R: smaller p-values are not accurate
MOST_T = 1e6  # from which on t and z are printed with an exponent


def listing(fit):
    """Return the lines and the table that printing a fit shows, in the style of R."""
    aic = "" if np.isnan(fit.aic) else f", AIC: {significant(fit.aic, 5)}"
    warning = []
    if fit.separated:
        warning = ["the response is separated, some estimates are infinite"]
    elif not fit.converged:
        warning = ["the iterations did not converge"]
    elif fit.df_resid == 0:
        warning = ["there are as many coefficients as rows"]
    elif fit.log["exact"]:
        warning = [
            f"the fit is exact{' in most rows' * fit.family.m_estimation}, up to rounding errors"
        ]
    lines = [
        f"Family: {fit.family.label} ({fit.family.link} link){phrases.levels(fit)}",
        phrases.rows(fit, f" of {fit.log['sum_weights']:,.10g} trials" if fit._of_trials else ""),
        f"Residual deviance: {significant(fit.deviance)} on {_degrees(fit.df_resid)}{aic}",
        *(f"Warning: {what}; see summary()" for what in warning),
    ]
    return lines, _coefficients(fit, "", inference=False)


def exact_fit(fit):
    """Return a warning that residuals are rounding errors, in all or in most rows."""
    rows = "more than half of the rows" if fit.family.m_estimation else "the response"
    what = f"The model fits {rows} exactly, up to rounding errors"
    return (
        f"{what}. Standard errors, tests and intervals come from these errors and have no meaning"
    )


def summary(fit, full):
    last = ("Dispersion", significant(fit.dispersion))
    if fit.family.name == "gaussian":
        last = ("Residual std. error", significant(np.sqrt(fit.dispersion)))
    elif fit.family.name == "negative_binomial":
        theta, error = significant(fit.theta), significant(fit.theta_error, 3)
        last = ("Theta (std. error)", f"{theta} ({error})")
    elif fit._of_trials:
        last = ("Trials", f"{fit.log['sum_weights']:,.10g}")
    rows = (
        ("Df residuals", str(fit.df_resid)),
        ("Link", fit.family.link),
        ("Df model", str(fit.df - fit.estimates.coef.shape[1])),
        ("Null deviance", significant(fit.null_deviance)),
        ("Log-likelihood", significant(fit.log_likelihood, 5)),
        ("Residual deviance", significant(fit.deviance)),
        ("AIC", significant(fit.aic, 5)),
        last,
        ("BIC", significant(fit.bic, 5)),
    )
    header = phrases.header(fit, *(row for row in rows if row[1] != "NaN"))  # NaN is undefined
    tables = (_coefficients(fit, "Coefficients"),)
    return Report("Generalized Linear Model Results", header, tables, _notes(fit), full)


def _coefficients(fit, title, inference=True):
    frame, limits = in_pandas(fit.tidy)(fit._level), f"{100.0 * fit._level:g}% interval"
    names, formats = {"level": "Level", "estimate": "Estimate"}, {"Estimate": significant}
    if inference:
        t = "t" if fit.family.dispersed else "z"
        names |= {"std_error": "Std. error", "statistic": t, "p_value": f"P>|{t}|"}
        huge = (frame["statistic"].abs() >= MOST_T).any()  # of an exact fit
        formats |= {
            "Std. error": significant,
            t: significant if huge else ".2f",
            f"P>|{t}|": _p_value,
        }
        ends = zip(frame["conf_low"], frame["conf_high"], strict=True)
        frame[limits] = [
            "" if np.isnan(a) else f"{significant(a, 3)}, {significant(b, 3)}" for a, b in ends
        ]
    shown = [name for name in (*names, limits) if name in frame]
    table = frame[shown].rename(columns=names)
    return Table(title, table.set_axis(frame["term"]).rename_axis(None), formats)


def _degrees(df):
    return f"{counted(int(df), 'degree')} of freedom"


def _p_value(p):
    return f"<{LEAST_P:g}" if p < LEAST_P else significant(p, 3)


def _notes(fit):
    log, kind = fit.log, fit.log["covariance"]
    of = COVARIANCES.get(kind, f"are robust ({kind})")
    if fit.family.m_estimation:
        of = "assume errors of the same distribution in all rows"
    if kind == "cluster":
        of += f" ({log['n_clusters']} of them)"
    law = "the normal distribution"
    if fit.family.dispersed:
        law = f"the t distribution with {_degrees(fit._df_of_t)}"
    known = in_pandas(fit.tidy)()["std_error"].notna().any()  # False if the classes are separated
    notes = [f"Standard errors {of}; p-values and intervals by {law}."] if known else []
    notes.append(f"Fitted by {_method(fit)}.")
    if fit.family.shared_slopes:
        notes.append(
            f"A positive estimate makes higher classes of {fit.design.response.name} more "
            f"probable; {fit._thresholds[0]} is the threshold between these classes."
        )
    elif len(fit.levels or ()) > 2:
        reference = f"{fit.design.response.name} = {fit.levels[0]}"
        notes.append(f"Scores are relative to the class {reference}.")
    notes += _doubts(fit)
    if fit.aliased:
        shown = [
            f"{term} ({f'made of {first_names(parts, NAMED)}' if parts else 'constant'})"
            for term, parts in fit._combinations.items()
        ]
        names, more = "; ".join(shown[:NAMED]), len(shown[NAMED:])
        rest = f" and {more} more (fit.aliased)" if more else ""
        what = "Not estimated, because they are linear combinations of earlier terms"
        notes.append(f"{what}: {names}{rest}.")
    return (*notes, *phrases.left_out(fit.design))


def _doubts(fit):
    log, kind, notes = fit.log, fit.log["covariance"], []
    if 0 < log["n_clusters"] < FEW_CLUSTERS:
        what = f"Standard errors from {log['n_clusters']} clusters are too small"
        notes.append(f"{what}: use at least {FEW_CLUSTERS}.")
    if fit.theta >= MOST:
        notes.append(
            "Theta has its largest value: the counts vary no more than Poisson counts, so "
            "family='poisson' gives the same estimates."
        )
    if not log["whole"]:
        notes.append("The response has fractions, but standard errors assume counts.")
    if kind in ("HC2", "HC3") and np.isnan(fit.estimates.cov).all():
        notes.append(f"A row has leverage 1, for which {kind} is undefined: use HC0 or HC1.")
    if fit.df_resid == 0:
        notes.append(f"{SATURATED}.")
    elif log["exact"]:
        notes.append(f"{exact_fit(fit)}.")
    elif fit.family.name == "quantile" and np.isnan(fit.dispersion):
        notes.append(
            "Standard errors are unknown: these rows do not give the density of the residuals at "
            "the quantile. lodim.bootstrap gives standard errors."
        )
    if fit.separated:
        notes.append(
            "SEPARATED: no finite maximum likelihood estimate exists for "
            f"{first_names(fit.separated, NAMED)}: values farther from 0 always fit better. The "
            "table shows the values at which the iterations stopped. Use a penalized model or "
            "fewer terms."
        )
    elif not fit.converged:
        notes.append("NOT converged: raise control={'max_iter': ...}.")
    return notes


def _method(fit):
    if fit.family.name == "gaussian":
        return "least squares"
    if fit.family.name == "quantile":
        return f"a linear program, exactly, in {fit.log['n_iter']} iterations"
    newton = fit.family.several_classes or fit.n > SPAN_ROWS
    how = "Newton's method" if newton else "reweighted least squares"
    return f"{how} in {fit.log['n_iter']} iterations"


# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "estimate": "coefficient",
    "conf_low": "lower end",
    "conf_high": "upper end",
    "std_error": "standard error",
    "p_value": "p-value",
}


def words(fit):
    return [
        f"A generalized linear model of {fit.design.response.name} ({fit.family.name}, "
        f"{fit.family.link} link) with {fit.df} coefficients, fitted without a penalty. It "
        f"explains {100 * fit.dev_ratio:.1f}% of the deviance.",
        "Intervals and tests are valid if this model was chosen before the data were seen, and "
        "if its assumptions are right.",
    ]


def pictures(fit, data):
    """Return a list with a picture of the coefficients and their intervals, if there are any."""
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["term"].isin(fit.design.names)]
    note = "With 95% intervals."
    if len(terms) > MOST_NAMES:
        note += f" The first {MOST_NAMES} of {len(terms)}."
    terms = terms.head(MOST_NAMES)
    if "level" in terms:
        terms = terms.assign(term=terms["term"] + " (" + terms["level"].astype(str) + ")")
    if terms.empty:
        return []
    style = {"low": "lower end", "high": "upper end", "hover": ("standard error", "p-value")}
    frame = terms.rename(columns=LABELS)
    return [Picture("Coefficients", "intervals", frame, "coefficient", "feature", note, **style)]
