"""The polynomial exp, log and softplus against NumPy's and SciPy's, over their whole range."""

import numpy as np
import pytest
from numba import njit, vectorize
from scipy.special import expit

from lodim.engine.scalar_math import exp_negative, log1p_unit, log_positive, softplus

ULP = np.finfo(float).eps


SIGNATURES = ["float32(float32)", "float64(float64)"]


@pytest.fixture(scope="module")
def exp_all():
    return vectorize(SIGNATURES)(lambda x: exp_negative(x))


@pytest.fixture(scope="module")
def log1p_all():
    return vectorize(SIGNATURES)(lambda e: log1p_unit(e))


@pytest.fixture(scope="module")
def log_all():
    return vectorize(SIGNATURES)(lambda x: log_positive(x))


def test_exp_over_its_range(exp_all):
    x = -np.concatenate([np.linspace(0, 1, 20001), np.geomspace(1e-300, 708, 20001)])
    np.testing.assert_allclose(exp_all(x), np.exp(x), rtol=4 * ULP)


def test_exp_where_the_reduction_changes(exp_all):
    k = np.arange(0, 1020)
    x = -np.log(2) * (k[:, None] + [0.5 - 1e-13, 0.5, 0.5 + 1e-13])
    np.testing.assert_allclose(exp_all(x), np.exp(x), rtol=4 * ULP)


def test_exp_at_its_ends(exp_all):
    assert exp_all(0.0) == 1.0 and exp_all(-0.0) == 1.0
    assert 0.0 <= exp_all(-1e4) <= 1e-300
    assert 0.0 <= exp_all(-np.inf) <= 1e-300


def test_log_over_its_range(log_all):
    x = np.concatenate([np.linspace(0.4, 3, 40001), np.geomspace(1e-300, 1e300, 40001)])
    np.testing.assert_allclose(log_all(x), np.log(x), rtol=4 * ULP, atol=2 * ULP)
    x = np.geomspace(1e-37, 1e37, 40001, dtype=np.float32)
    np.testing.assert_allclose(log_all(x), np.log(x.astype(float)), rtol=3e-7, atol=2.4e-7)
    assert log_positive(2.5) == pytest.approx(log_all(2.5), rel=1e-15)


def test_single_precision(exp_all, log1p_all):
    x = -np.linspace(0, 86, 100001, dtype=np.float32)
    assert exp_all(x).dtype == np.float32
    np.testing.assert_allclose(exp_all(x), np.exp(x.astype(float)), rtol=2e-7)
    assert 0.0 <= exp_all(np.float32(-1e30)) <= 1e-37
    e = np.linspace(0, 1, 100001, dtype=np.float32)
    np.testing.assert_allclose(log1p_all(e), np.log1p(e.astype(float)), rtol=3e-7)


def test_plain_python_is_the_same_function(exp_all, log1p_all):
    assert exp_negative(-1.5) == pytest.approx(exp_all(-1.5), rel=1e-15)
    assert log1p_unit(0.25) == pytest.approx(log1p_all(0.25), rel=1e-15)


def test_log1p_over_its_range(log1p_all):
    e = np.concatenate([np.linspace(0, 1, 40001), np.geomspace(1e-300, 1, 20001)])
    np.testing.assert_allclose(log1p_all(e), np.log1p(e), rtol=2e-14)
    assert log1p_all(0.0) == 0.0


@njit
def softplus_all(z, value, slope):
    for i in range(z.size):
        value[i], slope[i] = softplus(z[i])


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 2e-14), (np.float32, 4e-7)])
def test_softplus_and_its_derivative_keep_their_digits_far_from_zero(dtype, rtol):
    most = 700 if dtype is np.float64 else 85
    z = np.concatenate([np.linspace(-most, most, 40001), [0.0, 1e-300, -1e-300]]).astype(dtype)
    value, slope = np.empty_like(z), np.empty_like(z)
    softplus_all(z, value, slope)
    np.testing.assert_allclose(value, np.logaddexp(0.0, z.astype(float)), rtol=rtol)
    np.testing.assert_allclose(slope, expit(z.astype(float)), rtol=rtol)
    assert softplus(float(z[7])) == pytest.approx((value[7], slope[7]), rel=10 * rtol)


def test_exp_is_monotone(exp_all):
    x = np.sort(-np.random.default_rng(0).exponential(20, 20000))
    assert (np.diff(exp_all(x)) >= -4 * ULP * exp_all(x[1:])).all()


@pytest.mark.long
def test_a_caller_that_allows_reordering_gets_the_same_numbers():
    """Reordered, adding and subtracting a large number would round nothing."""

    @njit(fastmath=True)
    def both(x, out):
        for i in range(x.size):
            out[0, i] = exp_negative(-abs(x[i]))
            out[1, i] = log1p_unit(out[0, i])

    x = np.linspace(0.0, 30.0, 1001)
    out = np.empty((2, x.size))
    both(x, out)
    np.testing.assert_allclose(out, [np.exp(-x), np.log1p(np.exp(-x))], rtol=8 * ULP)
