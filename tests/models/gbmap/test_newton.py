"""Whole Newton steps after a minimization."""

import numpy as np
import pytest

import lodim as ld
from lodim.models.gbmap.newton import polish
from lodim.solve.lbfgs import Minimum


class Function:
    def __init__(self, value, gradient, hessian):
        self.parts, self.hessian = (value, gradient), lambda theta, convex: hessian(theta[0])[None]
        self.precision = 1e-15

    def __call__(self, theta, active=None):
        return tuple(np.array([part(theta[0])]) for part in self.parts)


def ended(function, theta):
    """The Minimum of a minimization that ended at theta."""
    value, gradient = function(theta[None])
    return Minimum(theta[None], value, np.abs(gradient).max(axis=1), np.array([7]), np.ones(1), 9)


def test_an_end_is_followed_to_the_last_digit():
    function = Function(
        lambda t: np.cosh(t).sum() + 0.5 * t @ t - t.sum(),
        lambda t: np.sinh(t) + t - 1.0,
        lambda t: np.diag(np.cosh(t) + 1.0),
    )
    first, second = (polish(function, ended(function, np.full(3, t))) for t in (0.4895, 0.489501))
    np.testing.assert_allclose(first.theta, second.theta, atol=2e-15)
    assert first.grad_norm[0] < 4e-15 and first.converged[0]
    assert 1 <= first.n_iter[0] - 7 <= 3 and first.n_eval - 9 == 2 + first.n_iter[0] - 7


def test_where_the_function_is_not_convex_an_end_stays():
    saddle = Function(
        lambda t: t[0] ** 2 - t[1] ** 2,
        lambda t: np.array([2.0 * t[0], -2.0 * t[1]]),
        lambda t: np.diag([2.0, -2.0]),
    )
    end = polish(saddle, ended(saddle, np.array([1e-3, 1e-3])))
    np.testing.assert_array_equal(end.theta[0], [1e-3, 1e-3])
    assert end.n_iter[0] == 7


@pytest.mark.parametrize("n", [500, 5000])  # by Newton's method, and by L-BFGS
def test_rounding_errors_do_not_grow_from_boost_to_boost(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    data = {f"x{k}": v for k, v in enumerate(X.T)}
    data["y"] = np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=n)
    noisy = {k: v * (1.0 + 1e-12 * rng.normal(size=n)) for k, v in data.items()}
    order = rng.permutation(n)
    turned = {k: v[order] for k, v in data.items()}
    how = {"m": 25, "lambda_": 1e-3, "threads": 1, "control": {"reference_rows": 0}}
    one, *others = (ld.gbmap("y ~ .", d, **how).predict(data) for d in (data, noisy, turned))
    for other in others:
        np.testing.assert_allclose(other, one, atol=1e-10)
