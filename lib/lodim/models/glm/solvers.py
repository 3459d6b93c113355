"""Maximum likelihood by statsmodels; its slow import (a second) happens only here."""

import warnings
from importlib import import_module

import numpy as np

TOLERANCE = 1e-10  # change of the estimates, per standard deviation of the features


def maximize(family, X, y, weight, offset, max_iter):
    """Return maximum likelihood coefficients (q, S) by statsmodels, and the number of iterations.

    Coefficients are NaN if the iterations failed or there are more than two classes."""
    unknown = np.full((X.shape[1], family.n_linear), np.nan)
    if family.several_classes:
        return unknown, 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        import_module("statsmodels.tools.sm_exceptions")  # sets filters; ours must follow
        warnings.simplefilter("ignore")  # glm has its own warnings
        if family.name == "gaussian":
            return _least_squares(X, y - offset[:, 0], weight)
        try:
            return _irls(family, X, y, weight, offset[:, 0], max_iter)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return unknown, 0


def _least_squares(X, y, weight):
    from statsmodels.regression.linear_model import WLS

    return WLS(y, X, weights=weight).fit(method="qr").params[:, None], 1


def _irls(family, X, y, weight, offset, max_iter):
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
    fit = model.fit(
        maxiter=max_iter, tol_criterion="params", tol=TOLERANCE, rtol=TOLERANCE, wls_method="qr"
    )
    return fit.params[:, None], int(fit.fit_history["iteration"])
