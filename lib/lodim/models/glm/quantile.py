"""Quantile regression: exact estimates by a linear program, and statsmodels' standard errors."""

from importlib import import_module

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

from lodim.models.glm import inference
from lodim.models.glm.estimates import Estimates
from lodim.models.glm.rows import Sums

ROUNDING = 1e-13  # share of the largest response in a residual that is rounding
IQR = 1.34  # interquartile range of normal numbers per standard deviation, as in statsmodels


def fit(rows, basis, combination):
    """Fit a quantile regression; return Estimates and a dict (deviance etc.).

    rows : Rows of the fit; basis : Basis of the q linearly independent design columns
    combination : (q, r) matrix that combines them to the r other columns"""
    X, y, weight, offset = rows.in_memory(basis.kept)
    y, X, share = weight * (y - offset[:, 0]), weight[:, None] * X, rows.family.quantile
    # The multipliers of the dual problem are the coefficients (Koenker 2005, Sect. 6.2).
    start = np.linalg.lstsq(X, y, rcond=None)[0]
    rest = y - X @ start
    scale = np.abs(rest).mean() or 1.0
    total = (1.0 - share) * X.sum(axis=0)
    ended = linprog(-rest / scale, A_eq=X.T, b_eq=total, bounds=(0.0, 1.0), method="highs-ipm")
    coef = start - scale * ended.eqlin.marginals
    # The sparsity is 1 / density of the residuals at zero, by a kernel estimate as in statsmodels.
    residual = y - X @ coef
    residual[np.abs(residual) <= ROUNDING * np.abs(y).max()] = 0.0
    statsmodels = import_module("statsmodels.regression.quantile_regression")
    width = statsmodels.hall_sheather(len(residual), share)
    lower, upper = np.percentile(residual, [25, 75])
    with np.errstate(all="ignore"):
        width = norm.ppf(share + width) - norm.ppf(share - width)
        width *= min(np.std(y), (upper - lower) / IQR)
        density = np.mean(statsmodels.kernels["epa"](residual / width) / width)
        sparsity = 0.0 if width == 0.0 else float(1.0 / density)
    dispersion = share * (1.0 - share) * sparsity**2
    root = np.linalg.inv(np.linalg.qr(X, mode="r"))
    none = np.zeros((len(coef), 0))
    estimates = Estimates(basis.kept, combination, coef[:, None], dispersion * root @ root.T, none)
    found = Sums.of_rows(rows, basis, (basis.R @ coef)[None], observed=False)
    log = inference.measures(rows, found, max(rows.positive - len(coef), 0))
    log |= {"converged": bool(ended.success), "n_iter": int(ended.nit), "dispersion": dispersion}
    log |= {"df": len(coef), "covariance": "nonrobust", "diagnostics": None}
    return estimates, log
