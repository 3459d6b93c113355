"""Properties of a GlmFit: sizes, deviance, likelihood, aliased and separated terms."""

from itertools import compress
from typing import Any

import numpy as np

from lodim.design.frame import in_pandas
from lodim.family import Proportion
from lodim.family.thresholds import threshold_names


class Described:
    """Sizes, likelihood and lists of terms of a GlmFit (mixin class)."""

    log: dict[str, Any]
    family: Any
    null_deviance: float

    @property
    def _of_trials(self):
        return isinstance(self.family, Proportion)

    @property
    def n(self) -> int:
        """Number of rows with positive weight."""
        return self.log["n"]

    def _complexity(self):
        return {"features": len(self._kept_terms) - 1}

    @property
    def df(self) -> int:
        """Number of estimated coefficients, including intercepts."""
        return self.log["df"]

    @property
    def df_resid(self) -> int:
        """Residual degrees of freedom: rows (times K - 1 for K > 2 classes) minus coefficients."""
        return self.log["df_resid"]

    @property
    def dispersion(self) -> float:
        """Dispersion of the family, as estimated from the rows; 1 if it is known."""
        return self.log["dispersion"]

    @property
    def deviance(self) -> float:
        """Residual deviance of the training rows, as in R: a sum over rows."""
        return self.log["deviance"]

    @property
    def _deviance(self):
        return self.deviance / self.log["sum_weights"]

    @property
    def _null_deviance(self):
        return self.null_deviance / self.log["sum_weights"]

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the training rows."""
        return self.log["log_likelihood"]

    @property
    def theta(self) -> float:
        """Theta of the negative binomial, whose variance is mu + mu^2 / theta; else NaN."""
        return getattr(self.family, "theta", np.nan)

    @property
    def theta_error(self) -> float:
        """Standard error of the negative binomial theta; NaN for other families."""
        return self.log["theta_error"]

    @property
    def _n_parameters(self):
        return self.df + (self.family.dispersed or self.family.name == "negative_binomial")

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 (number of parameters) - 2 log-likelihood."""
        return 2.0 * self._n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, log(n) (number of parameters) - 2 log-likelihood."""
        return np.log(self.n) * self._n_parameters - 2.0 * self.log_likelihood

    @property
    def converged(self) -> bool:
        """Whether the iterations reached a maximum of the likelihood at finite estimates."""
        return self.log["converged"] and not self.separated

    @property
    def aliased(self) -> dict[str, str]:
        """Dict from each aliased term to text that names the earlier terms of which it is made."""
        return {term: ", ".join(parts) for term, parts in self._combinations.items()}

    @property
    def _combinations(self):
        """Dict from each aliased term to the list of terms of which it is a linear combination."""
        out = np.setdiff1d(np.arange(len(self._terms)), self.estimates.kept)
        made = np.abs(self.estimates.combination.T) > 1e-6
        terms, kept = self._terms, self._kept_terms
        return {terms[j]: list(compress(kept, on)) for j, on in zip(out, made, strict=True)}

    @property
    def separated(self) -> list[str]:
        """Terms without a finite maximum likelihood estimate."""
        infinite = self._infinite
        names = list(compress(self._kept_terms, infinite.any(axis=1)))
        if self.family.shared_slopes and infinite[0].any():
            names[:1] = compress(self._thresholds, infinite[0])
        return names

    @property
    def _thresholds(self):
        return threshold_names(self.levels)

    def _comparable(self, reference):
        shown = np.ones((len(self._terms), self._infinite.shape[1]), bool)
        shown[self.estimates.kept] = ~self._infinite
        frame = in_pandas(self.tidy)()
        if self.family.shared_slopes:
            shown = np.append(shown[1:, 0], shown[0])
        return frame.assign(estimate=frame["estimate"].where(shown.T.ravel()))

    _separated = separated

    @property
    def _cooks_distance(self):
        kept = self.diagnostics
        return None if kept is None else (kept.label, kept.cook)

    @property
    def _infinite(self):
        return self.estimates.infinite(self.design.mean, self.design.scale)

    @property
    def _terms(self):
        return ["(Intercept)", *self.design.names]

    @property
    def _kept_terms(self):
        terms = self._terms
        return [terms[k] for k in self.estimates.kept]

    @property
    def _df_of_t(self):
        """Degrees of freedom for t tests and intervals; infinite for the normal distribution."""
        if not self.family.dispersed:
            return np.inf
        return float(self.log["n_clusters"] - 1 if self.log["n_clusters"] else self.df_resid)
