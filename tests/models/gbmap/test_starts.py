"""Starts of a boost: hinges along directions, against NumPy; and a boost in one compiled call."""

import numpy as np
import pytest

import lodim as ld
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap.hinges import place_hinges
from lodim.models.gbmap.objective import derivatives
from lodim.models.gbmap.starts import draw_starts


def rows(n=150, p=4, squared=True, seed=0):
    """Features, and slope and curvature of a loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    y, weight = np.abs(X[:, 0]), rng.uniform(0.5, 1.5, n)
    y = y if squared else (y > 1.0).astype(float)
    loss = SQUARED if squared else LOGISTIC
    return X, *derivatives(loss, y, 0.3 * X[:, 1], weight / weight.sum())


def best_hinges(X, U, slope, curvature, ridge):
    """Of each sign, the gain and learner of the best hinge along +-U, by weighted least squares."""
    best = {}
    for u in np.concatenate([U, -U]):
        u = u / np.sqrt(np.average((X @ u) ** 2, weights=curvature))
        for knot in (-1.0, 0.0, 1.0, (X @ u).min()):
            h = np.maximum(X @ u - knot, 0.0)
            A = np.column_stack([np.ones(len(h)), h])
            H = A.T @ (curvature[:, None] * A) + np.diag([0.0, 2.0 * ridge * (u @ u)])
            a, c = -np.linalg.solve(H, A.T @ slope)
            gain = 0.5 * (slope @ A) @ np.linalg.solve(H, A.T @ slope)
            if gain > best.get(np.sign(c), (-1.0,))[0]:
                best[np.sign(c)] = gain, np.r_[a, -abs(c) * knot, abs(c) * u]
    return best


@pytest.mark.parametrize("squared", [True, False])
def test_hinges_against_least_squares(squared):
    X, slope, curvature = rows(squared=squared)
    U = np.random.default_rng(1).normal(size=(3, 4))
    theta, sign = place_hinges(U, X.T.copy(), slope, curvature, 0.05, True, 1)
    best = best_hinges(X, U, slope, curvature, 0.05)
    assert list(sign) == [1.0, -1.0]
    for b, learner in zip(sign, theta, strict=True):
        # Both fit a constant with the hinge, of which the kernel's step takes the mean slope first.
        np.testing.assert_allclose(learner, best[b][1], rtol=1e-9, atol=1e-12)


def test_directions_are_those_of_a_subspace_that_bends():
    """With one column in which the slope bends, the best start lies along it."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 6))
    rest = X[:, 3] ** 2, np.ones(2000), np.full(2000, 1 / 2000)
    slope, curvature = derivatives(SQUARED, *rest)
    theta, _ = draw_starts(X.T.copy(), slope, curvature, rng.normal(size=2000), 0.0, True, 1, rng)
    w = max(theta[:, 2:], key=np.linalg.norm)
    assert abs(w[3]) > 0.97 * np.linalg.norm(w)


@pytest.mark.parametrize("column", ["constant", "twice", "alone"])
def test_columns_that_add_nothing(column):
    rng = np.random.default_rng(4)
    df = {"x": rng.normal(size=80)}
    df |= {"constant": {"z": np.ones(80)}, "twice": {"z": 2.0 * df["x"]}, "alone": {}}[column]
    df["y"] = np.abs(df["x"]) + 0.1 * rng.normal(size=80)
    fit = ld.gbmap("y ~ .", df, m=2, lambda_=1e-3)
    assert fit.converged and fit.dev_ratio > 0.85


def test_scores_of_a_boost_are_those_of_its_learners():
    """The compiled call adds learners to the scores by itself: of classes one after the other."""
    iris = ld.data("iris")
    fit = ld.gbmap("species ~ .", iris, m=3, lambda_=0.01)
    own = fit.log["deviance"].reshape(3, 3)
    codes = iris["species"].astype("category").cat.codes.to_numpy()
    for m in (1, 2, 3):
        p = fit.first(m).predict(iris).to_numpy()
        deviance = -2.0 * np.log(p[np.arange(150), codes]).mean()
        np.testing.assert_allclose(own[m - 1], deviance, rtol=1e-9)
