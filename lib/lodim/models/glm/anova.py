"""Analysis of deviance: compare two nested fits, or test the terms of one fit."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy import linalg, stats

from lodim.errors import ArgumentError
from lodim.fitting.fit_model import in_memory, model_of, prepare
from lodim.models.glm.estimates import ALIAS_TOLERANCE
from lodim.models.glm.inference import fingerprint


def compare(one, other):
    """Test nested glm fits `one` and `other`; return the table of `GlmFit.anova`, a row per fit."""
    if type(other) is not type(one):
        raise ArgumentError(f"anova needs another fit of glm, not {type(other).__name__}")
    small, large = sorted((one, other), key=lambda fit: fit.df)
    _check(small, large)
    # Negative binomial deviances are not comparable: each fit has its own theta.
    criterion, unit = "deviance", 1.0
    if large.family.name == "negative_binomial":
        criterion, unit = "log_likelihood", -2.0
    fits = (small, large)
    sizes = {name: [getattr(fit, name) for fit in fits] for name in ("df_resid", criterion)}
    if _by_wald(large):
        names = large.design.term_names
        added = [k for k, name in enumerate(names) if name not in small.design.term_names]
        test = _test(large, *_wald(large, added))
        del sizes[criterion]
    else:
        before, after = (unit * value for value in sizes[criterion])
        if before - after < -1e-7 * max(abs(before), 1e-300):
            what = f"the larger fit has the worse {criterion}, so it has not converged"
            raise ArgumentError(f"{what}: fit it with control={{'max_iter': ...}}")
        test = _test(large, max(before - after, 0.0), large.df - small.df)
    rows = pd.DataFrame([{}, test], columns=["df", _statistic(large), "p_value"])
    return pd.DataFrame({"formula": [fit.design.formula for fit in fits]} | sizes).join(rows)


def _check(small, large):
    """Raise ArgumentError unless fit `small` is nested in `large`, with equal rows and family."""
    of = [(fit.family.label, fit.design.response.name) for fit in (small, large)]
    if of[0] != of[1]:
        what = "the fits must have the same response and family"
        raise ArgumentError(f"{what}, not {of[0]} and {of[1]}")
    if small.log["rows"] != large.log["rows"]:
        what = "the fits must have the same rows, in the same order"
        what += f", and the same weights and offset ({small.n} and {large.n} rows)"
        raise ArgumentError(f"{what}: fit both to the rows that are complete in all columns")
    if small.df == large.df or not set(small.design.term_names) <= set(large.design.term_names):
        what = "one fit must have all terms of the other; they are not nested"
        raise ArgumentError(f"{what}: {small.design.formula!r}, {large.design.formula!r}")
    kinds = [fit.log["covariance"] for fit in (small, large)]
    if kinds[0] != kinds[1]:
        raise ArgumentError(
            f"the fits must have the same covariance, not {kinds[0]} and {kinds[1]}"
        )


# The terms of one fit ----------------------------------------------------------------------------


def sequential(fit, data, changes):
    """Test the terms of a fit as they are added one by one; return the table of `GlmFit.anova`.

    data : training rows
    changes : dict of arguments of glm() that replace those of the fit"""
    terms = _in_order(fit)
    if _by_wald(fit):
        refit, tests = _refitter(fit, data, changes, "anova"), []
        for k, term in enumerate(terms, 1):
            estimates = refit(terms[:k])[0] if k < len(terms) else fit.estimates
            columns = np.flatnonzero(np.isin(fit.design.term_of, terms[:k]))
            tests.append(_wald(fit, [term], estimates, columns))
        return _wald_frame(fit, terms, tests)
    sets = [terms[:k] for k in range(len(terms))]
    parts = [*_submodels(fit, sets, data, changes, "anova"), fit]
    rows = [{"term": name} for name in ("(Intercept)", *(fit.design.term_names[k] for k in terms))]
    for row, part in zip(rows, parts, strict=True):
        row |= {"df_resid": part.df_resid, "deviance": part.deviance}
    for row, (small, large) in zip(rows[1:], pairwise(parts), strict=True):
        row["explained"] = max(small.deviance - large.deviance, 0.0)
        row |= _test(fit, row["explained"], large.df - small.df)
    names = ["term", "df", "explained", "df_resid", "deviance", _statistic(fit), "p_value"]
    return pd.DataFrame(rows, columns=names)


def single(fit, data, changes):
    """Test each term of a fit by dropping it alone; return the table of `GlmFit.drop1`.

    data : training rows, to fit smaller models
    changes : dict of arguments of glm() that replace those of the fit"""
    # The factors of x are a subset of those of x:z.
    parts = [{(type(part), part.name) for part in term} for term in fit.design.terms]
    every = _in_order(fit)
    terms = [k for k in every if not any(parts[k] < other for other in parts)]
    if _by_wald(fit):
        if data is not None:
            _refitter(fit, data, changes, "drop1")  # checks that these are the training rows
        return _wald_frame(fit, terms, [_wald(fit, [k]) for k in terms])
    sets = [[j for j in every if j != k] for k in terms]
    rows = [{"term": "(none)", "deviance": fit.deviance, "aic": fit.aic}]
    for k, part in zip(terms, _submodels(fit, sets, data, changes, "drop1"), strict=True):
        df, rise = fit.df - part.df, max(part.deviance - fit.deviance, 0.0)
        aic = fit.aic - 2.0 * (df - fit.log_likelihood + part.log_likelihood)
        row = {"term": fit.design.term_names[k], "deviance": part.deviance, "aic": aic}
        rows.append(row | _test(fit, rise, df))
    return pd.DataFrame(rows, columns=["term", "df", "deviance", "aic", _statistic(fit), "p_value"])


def _by_wald(fit):
    return fit.family.m_estimation or fit.log["covariance"] != "nonrobust"


def _in_order(fit):
    terms = fit.design.terms
    return sorted(range(len(terms)), key=lambda k: len(terms[k]))


def _statistic(fit):
    name = "F" if fit.family.dispersed else ("chi2" if _by_wald(fit) else "LR")
    return f"wald_{name}" if _by_wald(fit) else name


def _test(fit, value, df):
    """Test df coefficients against zero; return a dict of df, statistic and p-value.

    value : Wald statistic, or increase in deviance if they are zero
    If df is 0, the dict has only df."""
    if not df:
        return {"df": df}
    if not fit.family.dispersed:
        return {"df": df, _statistic(fit): value, "p_value": stats.chi2.sf(value, df)}
    unit, df_resid = (1.0, fit._df_of_t) if _by_wald(fit) else (fit.dispersion, fit.df_resid)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.divide(value / df, unit)
    return {"df": df, _statistic(fit): value, "p_value": stats.f.sf(value, df, df_resid)}


def _submodels(fit, sets, data, changes, method):
    """Fit models with fewer terms; return a namespace of df, deviance etc. for each.

    sets : list of the terms of each model
    data : training rows, None for a gaussian fit
    changes : dict of changed arguments of glm()
    method : name of the calling method, for errors"""
    if fit.family.dispersed and not fit.dispersion > 0.0:
        what = f"{method}() needs residual degrees of freedom, and this fit has none"
        raise ArgumentError(f"{what}: use fewer terms")
    if fit.family.name == "gaussian" and data is None:
        return [_projected(fit, some) for some in sets]
    refit = _refitter(fit, data, changes, method)
    return [SimpleNamespace(**log) for _, log in map(refit, sets)]


def _projected(fit, terms):
    """Return df, df_resid, deviance, log_likelihood of a least-squares fit with `terms` only."""
    statistic, dropped = _wald(fit, np.setdiff1d(np.arange(len(fit.design.terms)), terms))
    deviance = fit.deviance + fit.dispersion * statistic
    likelihood = fit.log_likelihood - 0.5 * fit.n * np.log(deviance / fit.deviance)
    sizes = {"df": fit.df - dropped, "df_resid": fit.df_resid + dropped}
    return SimpleNamespace(**sizes, deviance=deviance, log_likelihood=likelihood)


def _wald(fit, terms, estimates=None, columns=None):
    """Return the Wald statistic of some terms, or NaN, and the number of coefficients tested.

    terms : positions of the terms
    estimates : Estimates of a smaller fit, or None for those of `fit`
    columns : positions of the features in this smaller fit"""
    if estimates is None:
        estimates, columns = fit.estimates, np.arange(len(fit.design.names))
    tested = np.append(False, np.isin(fit.design.term_of[columns], terms))
    positions = np.flatnonzero(tested[estimates.kept])
    replacing = estimates.combination[positions][:, ~np.delete(tested, estimates.kept)]
    q, n_scores = estimates.coef.shape
    each = np.arange(1 if fit.family.shared_slopes else n_scores)
    at = (q * each[:, None] + positions).ravel()
    b, V = estimates.coef.T.ravel()[at], estimates.cov[np.ix_(at, at)]
    # Aliased columns of other terms may replace some columns: fewer coefficients are tested.
    if (np.abs(replacing) > ALIAS_TOLERANCE).any():
        left = np.kron(np.eye(len(each)), linalg.null_space(replacing.T, rcond=ALIAS_TOLERANCE))
        b, V = b @ left, left.T @ V @ left
    size = np.sqrt(np.diag(V))
    # Errors of separated classes are infinite; otherwise NaN, or nothing is known of the errors.
    if estimates.null.shape[1] or not (size > 0.0).all():
        return np.nan, len(b)
    R = V / np.outer(size, size)
    if np.linalg.matrix_rank(R, hermitian=True) < len(b):  # fewer clusters than coefficients
        return np.nan, len(b)
    z = b / size
    return float(z @ np.linalg.solve(R, z)), len(b)


def _wald_frame(fit, terms, tests):
    names = [fit.design.term_names[k] for k in terms]
    rows = [{"term": name} | _test(fit, *test) for name, test in zip(names, tests, strict=True)]
    return pd.DataFrame(rows, columns=["term", "df", _statistic(fit), "p_value"])


def _refitter(fit, data, changes, method):
    """Return a function refit(terms) that fits the model with only these terms to the same rows.

    The function returns (Estimates, dict of measures).
    changes : dict of arguments of glm() that replace those of the fit
    method : name of the calling method, for errors"""
    if data is None:
        what = f"{method}() refits the model with fewer terms and needs the training rows"
        raise ArgumentError(f"{what}, which a fit does not store: give {method}(data=df)")
    problem = prepare(model_of(fit.model), fit.design.formula, data, fit._call_arguments(changes))
    design, batch = problem.design, in_memory(f"{method}()", problem.batch)
    same = design.names == fit.design.names and fingerprint(batch, fit.family) == fit.log["rows"]
    if not (same and np.allclose([design.mean, design.scale], [fit.design.mean, fit.design.scale])):
        raise ArgumentError("data must be the rows that the model was fitted to, in their order")
    settings = replace(problem.settings, diagnostic_rows=0)

    def refit(terms):
        columns = np.flatnonzero(np.isin(design.term_of, list(terms)))
        part = replace(batch, X=np.ascontiguousarray(batch.X[:, columns]))
        ((estimates, log, _),) = problem.model.fit_stages(part, problem.family, settings)
        return estimates, log

    return refit
