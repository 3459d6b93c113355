"""Renyi's quadratic entropy of one projected class whose density is normal: Theorems 1 and 2."""

import numpy as np

from lodim.models.melm.search.divergence import orthonormalize


class NormalEntropy:
    """Minus (or plus) the entropy of q projections V (r, k), as the solver takes it: Eq. 1.

    Parameters
    ----------
    cov : array (r, r)
    k : int
    sign : float
        1 seeks the largest entropy, -1 the smallest.
    """

    precision, scaled = 1e-14, False

    def __init__(self, cov, k, sign=1.0):
        self._cov, self._sign, self.k, self.r = cov, sign, k, len(cov)
        self.l1 = np.zeros(self.r * k)

    def __call__(self, theta, active):
        """Value (q,) and gradient (q, r k), filled in the rows `active`."""
        V = theta.reshape(-1, self.r, self.k)
        value, gradient = np.zeros(len(V)), np.zeros_like(V)
        v = V[active]
        spread = np.einsum("ij,qjk->qik", self._cov, v)
        form = np.einsum("qik,qil->qkl", v, spread)
        log_det = np.linalg.slogdet(form)[1]
        value[active] = 0.5 * (self.k * np.log(4.0 * np.pi) + log_det)
        gradient[active] = np.einsum("qik,qkl->qil", spread, np.linalg.inv(form))
        orthonormalize(V, active, -1.0, False, value, gradient)
        return -self._sign * value, -self._sign * gradient.reshape(len(V), -1)

    def potentials(self, V):
        """Minus the entropy of one projection: the logarithm of its potential, (1, 1)."""
        value = self(V.reshape(1, -1), np.zeros(1, np.int64))[0]
        return self._sign * value.reshape(1, 1)

    def error(self, V):
        """None: it is exact."""
        return 0.0
