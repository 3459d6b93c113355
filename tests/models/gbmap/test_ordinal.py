"""gbmap with classes in order: its loss, glm as the linear case, and what the family changes."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import lodim as ld
from lodim.family import Ordinal, losses
from lodim.family.family import class_shares
from lodim.family.thresholds import best_thresholds, threshold_sums
from lodim.models.gbmap.worker_rows import margin
from models.glm.test_ordinal import rows

CALL = {"family": "ordinal", "threads": 1}
BENT = CALL | {"m": 4, "lambda_": 0.02}
LINE = CALL | {"m": 1, "lambda_": 0.0, "activation": "identity"}
FORMULA = "grade ~ a + b + g"
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def df():
    return rows()


@pytest.fixture(scope="module", params=["none", "joint"])
def fit(request, df):
    return ld.gbmap(FORMULA, df, refit=request.param, **BENT)


def log_odds(n):
    """Responses, linear predictors of three boundaries, what the rows share, and boundaries."""
    f, boundaries = 3.0 * RNG.normal(size=n), np.array([1.3, -0.2, -0.3])
    return RNG.integers(0, 4, n) * 1.0, f[:, None] + boundaries, f, boundaries


def test_the_deviance_is_that_of_the_probabilities():
    y, score, *_ = log_odds(500)
    p = Ordinal(3).mean(score)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    likelihood = p[np.arange(500), y.astype(int)]
    np.testing.assert_allclose(Ordinal(3).deviance(y, score), -2.0 * np.log(likelihood), rtol=1e-12)


def test_the_loss_of_one_score_is_half_the_deviance():
    y, score, *parts = log_odds(500)
    family, ones, h = Ordinal(3), np.ones(500), 1e-5
    loss = family.kernel_loss(y, ones)
    f, boundaries = parts
    response, f = margin(family, y, f[:, None], 0, boundaries)
    value, slope, curvature = losses.rows(loss, response, f, ones)
    np.testing.assert_allclose(2.0 * value, family.deviance(y, score), rtol=1e-12, atol=1e-12)
    moved = [losses.rows(loss, response, f + side, ones) for side in (h, -h)]
    np.testing.assert_allclose(slope, (moved[0][0] - moved[1][0]) / (2.0 * h), atol=1e-9)
    np.testing.assert_allclose(curvature, (moved[0][1] - moved[1][1]) / (2.0 * h), atol=1e-9)
    np.testing.assert_allclose(slope, -family.residual(y, score), atol=1e-14)
    # With the linear predictors 40 above or below a boundary, probabilities are 1e-18.
    for side in (-40.0, 40.0):
        value = losses.rows(loss, response, f + side, ones)[0]
        np.testing.assert_allclose(2.0 * value, family.deviance(y, score + side), atol=1e-13)


@pytest.mark.parametrize("absent", [None, 0, 1, 2, 3])
def test_moved_boundaries_minimize_the_deviance(absent):
    y, score, f, boundaries = log_odds(300)
    weight = np.where(y == absent, 0.0, RNG.random(300))
    weight /= weight.sum()
    family, sums = Ordinal(3), partial(threshold_sums, y, f, weight)
    change = best_thresholds(sums, class_shares(y, weight, 4), boundaries) - boundaries

    def deviance(change):
        return weight @ family.deviance(y, score + change)

    other = minimize(deviance, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9})
    if absent is None:
        np.testing.assert_allclose(change, other.x, atol=1e-5)
    order = np.diff(score + change, axis=1)
    assert (order < 0.0).all()
    for k in range(3):
        step = 1e-4 * (np.arange(3) == k)
        if absent is None:
            assert deviance(change) <= min(deviance(change + step), deviance(change - step))
    together = np.full(3, 1e-4)
    assert deviance(change) <= min(deviance(change + together), deviance(change - together))


def test_many_classes_print_few_thresholds():
    cars = ld.data("autompg").dropna()
    fit = ld.gbmap("mpg ~ weight", cars, family="ordinal", m=1, lambda_=0.1, threads=1)
    assert len(fit.levels) == 127 and fit.predict(cars).shape == (392, 127)
    assert "and 118 more" in str(fit) and len(str(fit).splitlines()) < 20
    assert "44.6|46.6" in str(fit.summary())


@pytest.mark.parametrize("more", [{}, {"offset": "known"}, {"weights": "unit"}])
def test_a_line_is_the_glm(more, df):
    line = ld.gbmap(FORMULA, df, **LINE | more)
    peer = ld.glm(FORMULA, df, family="ordinal", **more)
    np.testing.assert_allclose(line.predict(df), peer.predict(df), atol=1e-6)
    np.testing.assert_allclose(line.predict(df, "link"), peer.predict(df, "link"), atol=1e-5)
    assert line.null_deviance == pytest.approx(peer._null_deviance, rel=1e-12)


def test_thresholds_are_those_of_the_glm(df):
    line, peer = ld.gbmap(FORMULA, df, **LINE), ld.glm(FORMULA, df, family="ordinal")
    thresholds = -line.estimates.shift.sum(axis=0)
    wanted = peer.tidy()["estimate"].to_numpy()[-3:]
    np.testing.assert_allclose(np.diff(thresholds), np.diff(wanted), atol=1e-6)
    assert "Thresholds of f: low|middle" in str(line) and "high|top" in str(line.summary())


def test_a_bend_beats_the_line_on_new_rows():
    def bent(n, seed):
        df = rows(n, seed)
        noise = np.random.default_rng(seed + 9).logistic(size=n)
        code = np.digitize(3.0 * np.abs(df["a"]) - 2.5 + noise, [-1.0, 0.3, 2.0])
        return df.assign(grade=df["grade"].cat.codes * 0 + code)

    train, new = bent(400, 0), bent(2000, 1)
    fit, peer = ld.gbmap(FORMULA, train, **BENT), ld.glm(FORMULA, train, family="ordinal")
    loss = [one.evaluate(new)["deviance"].item() for one in (fit, peer)]
    assert loss[0] < 0.9 * loss[1]


def test_each_boost_and_the_joint_fit_lower_the_deviance(df):
    boosts, joint = (ld.gbmap(FORMULA, df, refit=kind, **BENT) for kind in ("none", "joint"))
    path = np.append(boosts.null_deviance, boosts.log["deviance"])
    assert (np.diff(path) < 0.0).all()
    assert joint.refit_log["deviance"] < path[-1]
    for fit in (boosts, joint):
        assert fit._deviance == pytest.approx(fit.evaluate(df)["deviance"].item(), rel=1e-12)
    for m in (1, 3):
        found = boosts.first(m).evaluate(df)["deviance"].item()
        assert found == pytest.approx(boosts.log["deviance"][m - 1], rel=1e-12)


def test_local_slopes_are_derivatives(fit, df):
    slope, h = fit.predict(df, "local")["a"], 1e-5
    for k in range(3):
        moved = [fit.predict(df.assign(a=df["a"] + side), "link").iloc[:, k] for side in (h, -h)]
        np.testing.assert_allclose(slope, (moved[0] - moved[1]) / (2.0 * h), atol=1e-5)


@pytest.mark.parametrize("type", ["response", "link"])
def test_accumulated_effects_follow_predictions(type, df):
    """The effects of a fit with one feature are its predictions, up to a constant."""
    fit = ld.gbmap("grade ~ a", df, **BENT)
    found = ld.effects(fit, df, "a", kind="ale", type=type).tidy()
    for level, part in found.groupby("class"):
        new = pd.DataFrame({"a": part["value"].to_numpy(float)})
        wanted = fit.predict(new, type)[level].to_numpy()
        gap = part["estimate"].to_numpy() - wanted
        assert np.ptp(gap) < 0.1 * np.ptp(wanted)


def test_drift_and_neighbours(fit, df):
    drift = fit.drift(df.assign(a=df["a"] + 9.0))
    assert (drift >= 0.0).all() and drift.mean() > fit.drift(df).mean()
    assert len(fit.neighbours(df[:3], k=2)) == 3


def test_monotone_effects(df):
    monotone = {"a": "decreasing", "b": "increasing"}  # against the data
    for refit in ("none", "joint"):
        fit = ld.gbmap(FORMULA, df, monotone=monotone, refit=refit, **BENT)
        free = ld.gbmap(FORMULA, df, refit=refit, **BENT)
        assert fit.dev_ratio < free.dev_ratio
        new = rows(2000, seed=1)
        for column, sign in (("a", -1.0), ("b", 1.0)):
            moved = new.assign(**{column: new[column] + 0.5})
            above = fit.predict(moved, "link") - fit.predict(new, "link")
            assert (sign * above >= -1e-12).all().all()


def test_classes_that_a_fold_lacks(df):
    rare = df.assign(grade=df["grade"].where(np.arange(len(df)) != 7, "top"))
    rare = rare[(rare["grade"] != "top") | (np.arange(len(df)) == 7)]
    fold = np.arange(len(rare)) % 3
    found = ld.cv(ld.gbmap, FORMULA, rare, folds=fold, **BENT)
    assert np.isfinite(found.tidy()["mean"]).all()


@pytest.mark.long
def test_default_call_chooses_by_the_deviance(df):
    fit = ld.gbmap(FORMULA, df, **CALL)
    peer = ld.glm(FORMULA, df, family="ordinal")
    new = rows(2000, seed=1)
    loss = [one.evaluate(new)["deviance"].item() for one in (fit, peer)]
    assert loss[0] < 1.02 * loss[1]
    assert {"m", "lambda_"} <= set(fit.chosen)


@pytest.mark.long
def test_float32_and_order_of_rows(df):
    fit = ld.gbmap(FORMULA, df, **BENT)
    other = ld.gbmap(FORMULA, df[::-1], **BENT)
    np.testing.assert_allclose(other.predict(df), fit.predict(df), atol=1e-7)
    low = ld.gbmap(FORMULA, df, dtype="float32", **BENT)
    assert low.dev_ratio == pytest.approx(fit.dev_ratio, rel=1e-2)


@pytest.mark.long
def test_many_rows_use_a_sample_for_starts():
    df = rows(70_000)
    fit = ld.gbmap("grade ~ a + b", df, **CALL | {"m": 2, "lambda_": 0.01, "refit": "none"})
    peer = ld.glm("grade ~ a + b", df, family="ordinal")
    assert fit.dev_ratio > 0.97 * peer.dev_ratio


def test_what_is_refused(df):
    with pytest.raises(ld.DataError, match="in no order"):
        ld.gbmap("g ~ a + b", df, **BENT)
