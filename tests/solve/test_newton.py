"""Newton's method: ends where the gradient is zero, whatever the curvature on the way."""

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from lodim.solve.lbfgs import Minimum
from lodim.solve.newton import newton, polish


class Function:
    def __init__(self, value, gradient, hessian):
        self.parts, self.hessian = (value, gradient), lambda theta, convex: hessian(theta)
        self.precision = 1e-15

    def __call__(self, theta):
        return tuple(part(theta) for part in self.parts)


def test_a_parabola_takes_few_steps():
    A = np.diag([1.0, 3.0, 100.0]) + 0.1
    b = np.array([1.0, -2.0, 3.0])
    end = newton(
        Function(lambda t: 0.5 * t @ A @ t - b @ t, lambda t: A @ t - b, lambda t: A), np.zeros(3)
    )
    np.testing.assert_allclose(end.theta[0], np.linalg.solve(A, b), rtol=1e-6)
    assert end.converged[0] and end.n_iter[0] < 12 and end.grad_norm[0] < 1e-8


@pytest.mark.parametrize("start", [(-1.2, 1.0, -1.0), (3.0, -2.0, 5.0)])
def test_a_curved_valley_is_followed_to_its_end(start):
    end = newton(Function(rosen, rosen_der, rosen_hess), np.array(start), ftol=0.0)
    assert end.converged[0] and np.abs(rosen_der(end.theta[0])).max() <= 1e-8
    assert end.value[0] == pytest.approx(rosen(end.theta[0]), abs=1e-14)


def test_negative_curvature_is_left_behind():
    # x^4 - x^2 + y^2 is concave in x at the start.
    end = newton(
        Function(
            lambda t: t[0] ** 4 - t[0] ** 2 + t[1] ** 2,
            lambda t: np.array([4 * t[0] ** 3 - 2 * t[0], 2 * t[1]]),
            lambda t: np.diag([12 * t[0] ** 2 - 2, 2.0]),
        ),
        np.array([0.1, 1.0]),
    )
    np.testing.assert_allclose(end.theta[0], [np.sqrt(0.5), 0.0], atol=1e-6)


def test_too_few_steps_are_no_convergence():
    end = newton(Function(rosen, rosen_der, rosen_hess), np.array([-1.2, 1.0]), max_iter=3)
    assert not end.converged[0] and end.n_iter[0] == 3
    assert end.value[0] < rosen(np.array([-1.2, 1.0]))


def ended(function, theta):
    """The Minimum of a minimization that ended at theta."""
    value, gradient = function(theta)
    ends = (np.array([v]) for v in (value, np.abs(gradient).max(), 7, True))
    return Minimum(theta[None], *ends, 9)


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
