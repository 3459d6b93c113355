"""family: deviance, mean and null model against statsmodels, scipy and scikit-learn."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import check_grad, minimize
from scipy.special import softmax
from sklearn.metrics import log_loss

from lodim import family as families
from lodim.family import losses

N = 40
RNG = np.random.default_rng(0)
WEIGHT = RNG.random(N) / 10
WEIGHT /= WEIGHT.sum()


def cases():
    for name, k in (("gaussian", 0), ("binomial", 2), ("multinomial", 3), ("multinomial", 2)):
        family = families.make(name, k)
        y = RNG.normal(3, 2, N) if k == 0 else np.arange(N) % k * 1.0
        yield pytest.param(family, y, RNG.normal(size=(N, family.n_scores)), id=f"{name}{k}")


CASES = list(cases())


@pytest.mark.parametrize("family, y, score", CASES)
def test_deviance(family, y, score):
    got = family.deviance(y, score)
    assert got.shape == (N,) and (got >= 0).all()
    if family.name == "gaussian":
        expected = sm.families.Gaussian().deviance(y, score[:, 0])
    elif family.name == "binomial":
        expected = sm.families.Binomial().deviance(y, 1 / (1 + np.exp(-score[:, 0])))
    else:
        labels = np.arange(family.n_scores)
        expected = 2 * log_loss(y, softmax(score, axis=1), labels=labels, normalize=False)
    assert got.sum() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("family, y, score", CASES)
def test_mean_and_residual(family, y, score):
    mean, residual = family.mean(score), family.residual(y, score)
    if family.name == "multinomial":
        np.testing.assert_allclose(mean.sum(axis=1), 1.0)
        np.testing.assert_allclose(mean, softmax(score, axis=1))
        np.testing.assert_allclose(residual, 1 - mean[np.arange(N), y.astype(int)])
    else:
        link = sm.families.links.Logit() if family.name == "binomial" else None
        np.testing.assert_allclose(mean, link.inverse(score[:, 0]) if link else score[:, 0])
        np.testing.assert_allclose(residual, y - mean)


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("family, y, score", CASES)
def test_null_score(family, y, score, with_offset):
    offset = score if with_offset else np.zeros_like(score)
    null = family.null_score(y, WEIGHT, offset)
    assert null.shape == score.shape
    intercept = null - offset
    np.testing.assert_allclose(intercept, intercept[[0]].repeat(N, axis=0), atol=1e-12)

    def loss(c):
        return WEIGHT @ family.deviance(y, offset + c)

    peer = minimize(loss, np.zeros(score.shape[1]), method="BFGS", options={"gtol": 1e-8})
    assert loss(intercept[0]) <= peer.fun + 1e-9
    if family.name == "multinomial":  # scores are defined up to a constant
        peer.x, intercept = peer.x - peer.x.mean(), intercept - intercept.mean(axis=1)[:, None]
    np.testing.assert_allclose(intercept[0], peer.x, atol=1e-4)


def test_null_against_statsmodels():
    y, offset = (RNG.random(N) < 0.3).astype(float), RNG.normal(size=N)
    family = families.make("binomial", 2)
    weight = np.full(N, 1 / N)
    peer = sm.GLM(y, np.ones(N), sm.families.Binomial(), offset=offset).fit()
    null = family.null_score(y, weight, offset[:, None])
    np.testing.assert_allclose(null[:, 0] - offset, peer.params[0], atol=1e-4)
    assert N * (weight @ family.deviance(y, null)) == pytest.approx(peer.deviance)
    plain = sm.GLM(y, np.ones(N), sm.families.Binomial(), freq_weights=WEIGHT).fit()
    null = family.null_score(y, WEIGHT, np.zeros((N, 1)))
    np.testing.assert_allclose(null, plain.params[0], atol=1e-6)


@pytest.mark.parametrize("scale", [1e3, -1e3])
def test_extreme_scores_stay_finite(scale):
    for name, k in (("binomial", 2), ("multinomial", 3)):
        family = families.make(name, k)
        score = np.full((4, family.n_scores), scale)
        score[:, 0] *= 2
        y = np.array([0.0, 1.0, 0.0, 1.0])
        assert np.isfinite(family.deviance(y, score)).all()
        assert np.isfinite(family.mean(score)).all()


def test_one_class_has_no_deviance():
    """A null model of a single class is exact: folds and new data may hold one alone."""
    weight = np.full(5, 0.2)
    for y in (np.zeros(5), np.ones(5)):
        for name, k in (("binomial", 2), ("multinomial", 3)):
            family = families.make(name, k)
            null = family.null_score(y, weight, np.zeros((5, family.n_scores)))
            assert np.isfinite(null).all(), name
            np.testing.assert_allclose(family.deviance(y, null), 0.0, atol=1e-9)


def test_deviance_slope_is_the_residual():
    family = families.make("binomial", 2)
    y = np.array([1.0])
    slope = lambda f: -2 * family.residual(y, f[None])  # noqa: E731
    for f in (-3.0, 0.1, 4.0):
        assert check_grad(lambda f: family.deviance(y, f[None])[0], slope, [f]) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("name, k", [("gaussian", 0), ("binomial", 2), ("multinomial", 3),
                                     ("poisson", 0), ("gamma", 0)])  # fmt: skip
def test_null_model_of_many_rows(name, k):
    """Sums go by spans of 65,536 rows; that the residuals add up to nothing knows of no span."""
    n, rng = 150_000, np.random.default_rng(0)
    family, weight = families.make(name, k), rng.random(n)
    weight /= weight.sum()
    y = rng.integers(0, k, n).astype(float) if k else 0.5 + rng.poisson(2.0, n)
    offset = rng.normal(size=(n, family.n_scores))
    null = family.null_score(y, weight, offset)
    mean = family.mean(null)
    if name == "multinomial":
        rest = weight @ ((y[:, None] == np.arange(k)) - mean)
    else:
        rest = weight @ ((y - mean) / (mean if name == "gamma" else 1.0))
    np.testing.assert_allclose(rest, 0.0, atol=1e-5)
    loss = family.null_deviance(y, weight, offset)
    assert loss == pytest.approx(weight @ family.deviance(y, null), rel=1e-12)
    spans = [slice(lo, lo + 65_536) for lo in (0, 65_536, 131_072)]
    parts = [weight[i].copy() @ family.deviance(y[i].copy(), null[i].copy()) for i in spans]
    assert loss == pytest.approx(parts[0] + parts[1] + parts[2], rel=1e-15)


LOG_LINKS = {
    "poisson": RNG.poisson(2.0, N) * 1.0,
    "gamma": RNG.gamma(2.0, 1.0, N),
    "tweedie": RNG.poisson(1.0, N) * RNG.gamma(2.0, 1.0, N),
}
PARAMETER = {"tweedie": 1.3, "quantile": 0.8, "huber": 0.7}


@pytest.mark.parametrize("name", LOG_LINKS)
def test_log_links_against_statsmodels(name):
    family, y = families.make(name, 0, PARAMETER.get(name)), LOG_LINKS[name]
    link, score = sm.families.links.Log(), RNG.normal(size=(N, 1))
    other = {
        "poisson": sm.families.Poisson(),
        "gamma": sm.families.Gamma(link),
        "tweedie": sm.families.Tweedie(link, var_power=1.3),
    }[name]
    mean = family.mean(score)
    np.testing.assert_allclose(mean, np.exp(score[:, 0]))
    expected = [other.deviance(y[[i]], mean[[i]]) for i in range(N)]
    np.testing.assert_allclose(family.deviance(y, score), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(family.variance(mean), other.variance(mean), rtol=1e-12)
    fit = sm.GLM(y, np.ones(N), other, offset=score[:, 0], var_weights=WEIGHT).fit(tol=1e-14)
    null = family.null_intercept(y, WEIGHT, score)
    np.testing.assert_allclose(null, fit.params, rtol=1e-8)


def test_quantile_and_huber_against_others():
    from scipy.special import huber
    from sklearn.metrics import mean_pinball_loss

    y, f = RNG.normal(size=N), RNG.normal(size=(N, 1))
    check = families.make("quantile", 0, 0.8).deviance(y, f)
    expected = 2.0 * mean_pinball_loss(y, f[:, 0], sample_weight=WEIGHT, alpha=0.8)
    assert WEIGHT @ check == pytest.approx(expected, rel=1e-12)
    found = families.make("huber", 0, 0.7).deviance(y, f)
    np.testing.assert_allclose(found, 2.0 * huber(0.7, y - f[:, 0]), rtol=1e-12)


@pytest.mark.parametrize("name", ["quantile", "huber"])
def test_null_models_of_numbers(name):
    """No other constant does better; it is that of repeated rows, and of rows of weight zero."""
    family, y, offset = (
        families.make(name, 0, PARAMETER[name]),
        RNG.normal(size=N),
        RNG.normal(size=(N, 1)),
    )
    null = family.null_intercept(y, WEIGHT, offset)
    least = family.null_deviance(y, WEIGHT, offset)
    for other in (y - offset[:, 0])[:, None] + np.array([-1e-3, 0.0, 1e-3]):
        assert least <= WEIGHT @ family.deviance(y, offset + other[0]) + 1e-15
    grid = [WEIGHT @ family.deviance(y, offset + null + s) for s in np.linspace(-0.1, 0.1, 21)]
    assert least <= min(grid) + 1e-15
    times = RNG.integers(0, 3, N)
    twice = family.null_intercept(
        *(np.repeat(v, times, axis=0) for v in (y, times * 0.0 + 1.0 / times.sum(), offset))
    )
    np.testing.assert_allclose(
        family.null_intercept(y, times / times.sum(), offset), twice, rtol=1e-9
    )


def test_rounding_of_the_check_loss():
    """The smoothed loss exceeds the check loss by at most h log 2, and not at the null model."""
    family, y, f = families.make("quantile", 0, 0.8), RNG.normal(size=N), RNG.normal(size=N)
    loss, ones = family.kernel_loss(y, WEIGHT), np.ones(N)
    excess = losses.rows(loss, y, f, ones)[0] + loss[4] - 0.5 * family.deviance(y, f[:, None])
    assert (excess >= -1e-15).all() and (excess <= loss[3] * np.log(2.0) + 1e-15).all()
    at_kink = losses.rows(loss, y, y, ones)[0] + loss[4]
    np.testing.assert_allclose(at_kink, loss[3] * np.log(2.0))
    null = family.null_score(y, WEIGHT, np.zeros((N, 1)))
    half = 0.5 * WEIGHT @ family.deviance(y, null)
    assert losses.rows(loss, y, null[:, 0], WEIGHT)[0].sum() == pytest.approx(half, rel=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "binomial", "quantile", "huber", *LOG_LINKS])
def test_losses_of_kernels(name):
    """Slope and curvature against finite differences; the value is that of the deviance."""
    family = families.make(name, 2, PARAMETER.get(name))
    y = LOG_LINKS.get(name, np.arange(N) % 2 * 1.0)
    f, step = RNG.normal(size=N), 1e-5
    loss = family.kernel_loss(y, WEIGHT)
    value, slope, curvature = losses.rows(loss, y, f, WEIGHT)
    up, down = (losses.rows(loss, y, f + s, WEIGHT) for s in (step, -step))
    np.testing.assert_allclose(slope, (up[0] - down[0]) / (2 * step), atol=1e-9)
    np.testing.assert_allclose(curvature, (up[1] - down[1]) / (2 * step), atol=1e-9)
    half = 1.0 if name in ("gaussian", "huber") else 0.5
    if name != "quantile":  # the test above compares its values
        total = half * WEIGHT @ family.deviance(y, f[:, None])
        assert value.sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", ["gaussian", "binomial", *LOG_LINKS])
def test_losses_of_tiles_in_single_precision(name):
    y, f = LOG_LINKS.get(name, np.arange(N) % 2 * 1.0), RNG.normal(size=N)
    loss = families.make(name, 2, PARAMETER.get(name)).kernel_loss(y, WEIGHT)
    tiles = [np.resize(v, 64).astype(np.float32) for v in (y, f, WEIGHT)]
    out = np.empty((3, 64), np.float32)
    losses.tile_loss_slope(loss, *tiles, out[0], out[1])
    losses.tile_curvature(loss, *tiles, out[2])
    for got, expected in zip(out, losses.rows(loss, y, f, WEIGHT), strict=True):
        np.testing.assert_allclose(got[:N], expected, rtol=2e-4, atol=1e-6)
