"""Fit a generalized linear model: aliased columns, coefficients, covariance, diagnostics."""

import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.sparse import csr_array, kron, vstack

from lodim.engine.blocks import SPAN_ROWS, single_blas
from lodim.family.negative_binomial import fitted_theta
from lodim.models.glm import inference, quantile
from lodim.models.glm.estimates import Estimates
from lodim.models.glm.rows import Basis, Rows, Sums

MAX_MEMORY_ROWS = SPAN_ROWS  # more rows are processed span by span
ALIASED = 1e-7  # smallest share of a column not explained by others, as in R's glm
ROUNDING = 1e-12  # coefficients or residuals below this share of the largest value are rounding
FLAT = 1e-10  # share of the null model's information that counts as zero
CLOSE = 1e-9  # relative change of a family's parameter at which its iterations stop
LARGEST = 20_000_000  # size of the largest linear program; beyond it, only the information is used
ROUGH = 1e-6  # change of the estimates, relative to Huber's limit, at which statsmodels stops
DECREMENT = 1e-16  # negligible decrement, relative to the deviance
UNMOVED = 1e-26  # relative decrement of a step that changes no digit
HALVINGS = 30
TOLERANCE = 1e-10  # change of the estimates, per standard deviation of the features


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit a glm to the rows `batch`; yield one tuple (Estimates, dict of measures, predictors).

    predictors : linear predictors (n, K) of the rows `eval_batch`, or None without such rows"""
    with single_blas():
        estimates, log = _fit(Rows(batch, family), settings)
        scores = None if eval_batch is None else estimates.scores_of(eval_batch, family)
        yield estimates, log, scores


def _fit(rows, settings):
    family = rows.family
    kind = inference.kind_of(settings, family, rows.n_clusters)
    kept, combination = independent(R := rows.triangle())
    basis = Basis(kept, np.linalg.qr(R[:, kept], mode="r"))
    if family.name == "quantile":
        return quantile.fit(rows, basis, combination)
    batch = rows.batch
    level = family.null_intercept(batch.y, batch.weight, batch.offsets(family.n_scores))
    level = level[1:] - level[0] if family.name == "multinomial" else level
    null = np.outer(level, basis.R[:, 0])
    # Newton's method starts from statsmodels' estimates, or from the intercept-only model.
    start = at_null = Sums.of_rows(rows, basis, null, True)
    X, n_before = None, 0
    if batch.n <= MAX_MEMORY_ROWS:
        X, y, weight, offset = rows.in_memory(kept)
        coef, n_before = maximize_in_memory(family, X, y, weight, offset, settings.max_iter)
        if np.isfinite(coef).all():
            start = Sums.of_rows(rows, basis, (basis.R @ coef).T, True)
    found, converged, n_iter = maximize(rows, basis, start, at_null, settings.max_iter)
    # Degrees of freedom: classes without rows have no coefficients, ordered classes share slopes.
    coef = basis.T @ found.coef.T
    absent = np.count_nonzero(rows.sizes == 0.0) if family.name == "multinomial" else 0
    df, free = coef.size - absent * len(kept), None
    df_resid = rows.positive * (coef.shape[1] - absent) - df
    if family.shared_slopes:
        free = rows.free_directions(*found.coef.shape)
        df, df_resid = free.shape[1], max(rows.positive - free.shape[1], 0)
    log = inference.measures(rows, found, df_resid)
    log |= {"converged": converged or log["exact"], "n_iter": n_before + n_iter, "df": df}
    # Directions with hardly any information have no finite estimate, if the rows are separated.
    at_null, H = (_restricted(free, sums.matrix) for sums in (at_null, found))
    zero_limit = FLAT * np.linalg.eigvalsh(at_null).max(initial=0.0)
    if X is not None and not is_separated(family, X, y, H, zero_limit, free):
        zero_limit = 0.0
    B, null = inference.bread(H, zero_limit)
    if free is not None:
        B, null = free @ B @ free.T, free @ null
    cov = inference.covariance(kind, rows, basis, found, B, log["dispersion"])
    rank = len(found.gradient) - null.shape[1]
    null = np.linalg.qr(basis.of_features(null))[0] if null.shape[1] else null
    estimates = Estimates(kept, combination, coef, _covariance_of_columns(basis, cov), null)
    log |= {"covariance": kind, "diagnostics": None}
    if settings.diagnostic_rows and not (family.several_classes or family.m_estimation):
        known = estimates, _covariance_of_columns(basis, B), max(rank, 1), log["dispersion"]
        log["diagnostics"] = inference.diagnostics(rows, *known, settings.diagnostic_rows)
    return estimates, log


def _restricted(free, matrix):
    return matrix if free is None else free.T @ matrix @ free


def _covariance_of_columns(basis, cov):
    """Convert cov, a covariance of coefficients in a Basis, to that of the design columns."""
    out = basis.of_features(basis.of_features(cov).T)
    return 0.5 * (out + out.T)


def independent(X):
    """Find the columns of X that are not linear combinations of earlier columns.

    Return their positions `kept`, and a matrix C with which the other columns are X[:, kept] C."""
    R = np.linalg.qr(X, mode="r")
    size = np.linalg.norm(R, axis=0)
    # The diagonal of R is the part of each column that earlier columns do not explain.
    if len(R) == X.shape[1] and (np.abs(np.diag(R)) > ALIASED * size).all():
        return np.arange(X.shape[1]), np.zeros((X.shape[1], 0))
    basis, kept = np.zeros((len(R), len(R))), []
    for j in range(X.shape[1]):
        rest = R[:, j]
        for _ in range(2):  # twice, to remove rounding errors
            rest = rest - basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        if len(kept) < len(R) and np.linalg.norm(rest) > ALIASED * size[j]:
            basis[:, len(kept)] = rest / np.linalg.norm(rest)
            kept.append(j)
    aliased = np.setdiff1d(np.arange(X.shape[1]), kept)
    combination = np.linalg.lstsq(R[:, kept], R[:, aliased], rcond=None)[0]
    # Far from the data, tiny coefficients would make rows look not estimable.
    rounding = np.abs(combination) <= ROUNDING * np.abs(combination).max(axis=0, initial=0.0)
    return np.array(kept, np.int64), np.where(rounding, 0.0, combination)


def with_parameter(batch, family, settings):
    """Return the family with its parameter, theta or Huber's limit, estimated from the batch."""
    settings = replace(settings, diagnostic_rows=0)
    for _ in range(settings.max_iter):
        estimates, _, _ = next(fit_stages(batch, family, settings))
        mean = family.mean(estimates.scores_of(batch, family))
        before, family = family.parameter, family.fitted(batch.y, mean, batch.row_weights)
        if abs(family.parameter - before) <= CLOSE * before:
            break
    return family


def theta_error(problem, estimates):
    """Return the standard error of theta in a negative binomial fit; NaN for other families.

    problem : Problem with the training rows; estimates : Estimates, the coefficients"""
    if problem.family.name != "negative_binomial":
        return float("nan")
    batch, family = problem.batch, problem.family
    mean = family.mean(estimates.scores_of(batch, family))
    return fitted_theta(batch.y, mean, batch.row_weights)[1]


def state_of_residuals(problem, estimates):
    """Return two bools: most residuals are rounding errors; Huber's limit has not converged.

    Both are False for families other than quantile and Huber's.
    problem : Problem with the training rows; estimates : Estimates of the fit"""
    batch, family = problem.batch, problem.family
    if not family.m_estimation:
        return False, False
    mean, weight = family.mean(estimates.scores_of(batch, family)), batch.row_weights
    noise = ROUNDING * np.abs(batch.y[weight > 0.0]).max()
    exact = bool(weight @ (np.abs(batch.y - mean) <= noise) > 0.5 * weight.sum())
    if exact or family.learn is None:
        return exact, False
    change = abs(family.fitted(batch.y, mean, weight).limit - family.limit)
    return False, bool(change > ROUGH * family.limit + noise)


# Newton's method with step halving, for likelihoods on which full steps overshoot -----------------


def maximize(rows, basis, start, at_null, max_iter):
    """Maximize the likelihood by Newton steps; return (Sums, whether converged, iterations).

    rows : Rows of the fit; basis : Basis of the coefficients
    start : Sums at first guesses of the coefficients
    at_null : Sums of the intercept-only model, another starting point"""
    found = start if start.deviance <= at_null.deviance else at_null
    step, reached, n_iter, free = 0.0, False, 0, rows.free_directions(*found.coef.shape)
    while n_iter < max_iter and not reached:
        step, decrement = _step(found, free)
        best = max(found.deviance, 1e-12 * at_null.deviance)
        if np.isnan(decrement) or (reached := decrement <= DECREMENT * best):
            break
        for halving in range(HALVINGS):
            tried = Sums.of_rows(rows, basis, found.coef + 0.5**halving * step, observed=True)
            if tried.deviance <= found.deviance:
                found, n_iter = tried, n_iter + 1
                break
            if reached := decrement < 1e-12 * best:  # the rest is below rounding error
                break
        else:
            reached = decrement < 1e-8 * best
            break
    moved = reached and decrement > UNMOVED * best
    if reached:
        found = replace(found, coef=found.coef + step)
    if moved or not rows.family.canonical:  # the expected information is not the observed one
        found = Sums.of_rows(rows, basis, found.coef, observed=False)
    return found, bool(reached), n_iter


def _step(found, free):
    """Return a Newton step (S, q) for the coefficients, and twice the predicted fall in deviance.

    found : Sums at the present coefficients
    free : (S q, r) basis of the allowed steps; None if all steps are allowed"""
    H, gradient = _restricted(free, found.matrix), found.gradient
    gradient = gradient if free is None else free.T @ gradient
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1.0 / np.sqrt(np.diag(H))  # a unit diagonal, for accuracy
            factor = cho_factor(H * np.outer(scale, scale))
        step = scale * cho_solve(factor, scale * gradient)
    except (LinAlgError, ValueError):
        step = np.linalg.lstsq(H, gradient, rcond=None)[0]
    step = step if free is None else free @ step
    if not np.isfinite(step).all():
        return np.zeros(found.coef.shape), np.nan
    return step.reshape(found.coef.shape), 2.0 * float(found.gradient @ step)


def is_separated(family, X, y, H, zero_limit, free=None):
    """Return whether the likelihood has no maximum at finite coefficients.

    X : (n, q) design columns of the model
    zero_limit : eigenvalues of the information matrix H up to this size may be zero
    free : (S q, r) basis of the allowed coefficients; None if all are allowed"""
    # Konis (2007), ch. 4
    if family.name in ("gaussian", "gamma", "huber"):  # no mean at the edge of its range fits a row
        return False
    if np.linalg.eigvalsh(H).min(initial=np.inf) > zero_limit:
        return False
    rising, level = _separating_conditions(family, X, y)
    if free is not None:
        rising, level = (csr_array(part @ free) for part in (rising, level))
    if rising.shape[0] * rising.shape[1] > LARGEST:
        return True
    found = linprog(
        -rising.sum(axis=0),
        A_ub=-rising,
        b_ub=np.zeros(rising.shape[0]),
        A_eq=level,
        b_eq=np.zeros(level.shape[0]),
        bounds=(-1.0, 1.0),
        method="highs",
    )
    return found.x is not None and -found.fun > 1e-6


def _separating_conditions(family, X, y):
    """Return sparse A, B: rows are separated if A d >= 0, A d != 0 and B d = 0 for some d (S q,).

    X : (n, q) design columns of the model
    y : (n,) responses or class codes"""
    # Coefficients then grow without limit along d.
    if family.name == "binomial":
        mixed = (y > 0.0) & (y < 1.0)  # proportions strictly between 0 and 1 fix the score
        return csr_array((2.0 * y - 1.0)[~mixed, None] * X[~mixed]), csr_array(X[mixed])
    if family.link == "log":  # a mean of zero fits a response of zero
        return csr_array(-X[y == 0]), csr_array(X[y > 0])
    # Pairs (k, d): adding d to the S linear predictors favours class k over another class.
    S = family.n_linear
    if family.shared_slopes:
        unit = np.eye(S)
        pairs = [(s + 1, unit[s]) for s in range(S)] + [(s, -unit[s]) for s in range(S)]
    else:
        unit = np.eye(S + 1)[:, 1:]
        pairs = [(k, unit[k] - unit[m]) for k in range(S + 1) for m in range(S + 1) if m != k]
    part = [csr_array(X[y == k]) for k in range(S + 1)]
    blocks = [kron(csr_array(rise[None]), part[k], "csr") for k, rise in pairs]
    return csr_array(vstack(blocks)), csr_array((0, X.shape[1] * S))


def maximize_in_memory(family, X, y, weight, offset, max_iter):
    """Fit a glm by statsmodels; return the coefficients (q, S) and the number of iterations.

    With three or more classes, or if the fit fails, the coefficients are NaN.
    offset : (n, 1)"""
    unknown = np.full((X.shape[1], family.n_linear), np.nan)
    if family.several_classes:
        return unknown, 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        import_module("statsmodels.tools.sm_exceptions")  # sets filters; ours must follow
        warnings.simplefilter("ignore")  # glm has its own warnings
        if family.name == "gaussian" or (family.name == "huber" and len(X) == X.shape[1]):
            from statsmodels.regression.linear_model import WLS

            return WLS(y - offset[:, 0], X, weights=weight).fit(method="qr").params[:, None], 1
        try:
            return _irls(family, X, y, weight, offset[:, 0], max_iter)
        except (ValueError, ArithmeticError, LinAlgError):
            return unknown, 0


def _irls(family, X, y, weight, offset, max_iter):
    if family.name == "huber":
        from statsmodels.robust.norms import HuberT
        from statsmodels.robust.robust_linear_model import RLM

        huber = HuberT(family.limit)
        plain, huber.weights = huber.weights, lambda rest: weight * plain(rest)
        how = {"conv": "coefs", "tol": ROUGH * family.limit}
        how |= {"start_scale": 1.0, "update_scale": False}
        fit = RLM(y - offset, X, huber).fit(maxiter=max_iter, **how)
        return fit.params[:, None], int(fit.fit_history["iteration"])
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM

    log = families.links.Log()
    known = {
        "binomial": families.Binomial,
        "poisson": families.Poisson,
        "gamma": lambda: families.Gamma(log),
        "negative_binomial": lambda: families.NegativeBinomial(log, alpha=1.0 / family.theta),
        "tweedie": lambda: families.Tweedie(log, var_power=family.power),
    }
    model = GLM(y, X, family=known[family.name](), offset=offset, var_weights=weight)
    how = {"tol_criterion": "params", "tol": TOLERANCE, "rtol": TOLERANCE, "wls_method": "qr"}
    fit = model.fit(maxiter=max_iter, **how)
    return fit.params[:, None], int(fit.fit_history["iteration"])
