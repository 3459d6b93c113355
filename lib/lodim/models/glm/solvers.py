"""Maximum likelihood by statsmodels; its slow import (a second) happens only here."""

import warnings
from functools import cache
from importlib import import_module

import numpy as np

from lodim.family import RAREST, Multinomial
from lodim.models.glm.likelihood import all_scores, information, slopes

TOLERANCE = 1e-10  # change of the estimates, per standard deviation of the features


def maximize(family, X, y, weight, offset, max_iter):
    """Return maximum likelihood coefficients (q, S) by statsmodels, and the number of iterations.

    S is 1, or the number of classes except the first. Coefficients are NaN if the iterations
    failed."""
    if family.name == "ordinal":  # OrderedModel has no weights
        return _unknown(family, X), 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        import_module("statsmodels.tools.sm_exceptions")  # sets filters; ours must follow
        warnings.simplefilter("ignore")  # glm has its own warnings
        if family.name == "gaussian":
            return _least_squares(X, y - offset[:, 0], weight)
        try:
            if family.name == "multinomial":
                return _multinomial(X, y, weight, offset, max_iter)
            return _irls(family, X, y, weight, offset[:, 0], max_iter)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return _unknown(family, X), 0


def _unknown(family, X):
    return np.full((X.shape[1], family.n_linear), np.nan)


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


def _multinomial(X, y, weight, offset, max_iter):
    """Fit the classes that have rows; another class gets the intercept of a tiny share.

    Return coefficients and the number of iterations."""
    K = offset.shape[1]
    seen, code = np.unique(y.astype(int), return_inverse=True)
    coef = np.zeros((X.shape[1], K))
    coef[0] = np.log(RAREST)
    coef[:, seen] = 0.0
    n_iter = 0
    if len(seen) > 1:
        model = _weighted_multinomial()(code, X, weight, offset[:, seen])
        how = {"method": "newton", "maxiter": max_iter, "tol": TOLERANCE, "ridge_factor": 0.0}
        fit = model.fit(**how, disp=False, skip_hessian=True)
        coef[:, seen[1:]] = fit.params
        n_iter = int(fit.mle_retvals["iterations"])
    return coef[:, 1:] - coef[:, :1], n_iter


@cache
def _weighted_multinomial():
    """Return a subclass of statsmodels' multinomial logit with weights and an offset."""
    from statsmodels.discrete.discrete_model import MNLogit

    class WeightedMNLogit(MNLogit):
        def __init__(self, y, X, weight, offset):
            super().__init__(y, X)
            self.weight, self.offset = weight / weight.mean(), offset
            self.family, self.code = Multinomial(self.wendog.shape[1]), y

        def _scores(self, params):
            coef = params.reshape(self.exog.shape[1], -1, order="F")
            return self.offset + all_scores(self.exog @ coef, self.family)

        def loglike(self, params):
            return -0.5 * float(self.weight @ self.family.deviance(self.code, self._scores(params)))

        def score(self, params):
            mean = self.family.mean(self._scores(params))
            return (slopes(self.family, self.code, self.weight, mean).T @ self.exog).ravel()

        def hessian(self, params):
            mean = self.family.mean(self._scores(params))
            return -information(self.family, self.exog, self.weight, mean)

    return WeightedMNLogit
