"""The joint fit: its objective in naive NumPy, its gradient, what it reaches and promises."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

import lodim as ld
from lodim.design.batch import Batch
from lodim.engine import tiles
from lodim.family import make
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.refit import JointObjective
from lodim.models.gbmap.settings import Settings
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import SPACING, lbfgs

QUICK = {"m": 3, "lambda_": 0.05, "beta": 3.0}
EXACT = {"control": {"tol": 1e-7, "ftol": 1e-13, "max_iter": 3000}}
FAMILIES = ("gaussian", "binomial", "multinomial")


class Case:
    """Random rows, weights, an offset and learners of a family."""

    def __init__(self, family, n=70, p=3, seed=0):
        rng = np.random.default_rng(seed)
        self.family, K = family, 3 if family == "multinomial" else 1
        self.X, self.offset = rng.normal(size=(n, p)), rng.normal(size=(n, K))
        numeric = family == "gaussian"
        self.y = rng.normal(size=n) if numeric else rng.integers(0, max(K, 2), n) * 1.0
        weights = rng.random(n)
        self.weight = weights / weights.sum()
        M = 2 * K
        self.learners = WeakLearners(
            rng.normal(size=(M, 2 + p)), np.resize([1.0, -1.0], M), np.arange(M) % K,
            1 + np.arange(M) // K, 4.0, 0, 1.0, K, np.zeros((M, 0)),
        )  # fmt: skip
        self.ridge = np.r_[0.0, 0.0, np.full(p, 0.1)]
        rows = np.arange(n)
        offset = self.offset[:, 0] if K == 1 else self.offset
        batch = Batch(tiles.pack(self.X), self.y, weights, offset, pd.RangeIndex(n), rows)
        settings = Settings(2, 0.3, 4.0, 0.0, "softplus", 1, 0, 1, refit="joint")
        self.state = BoostState.from_batch(batch, make(family, K), settings)
        self.objective = JointObjective(self.state, self.learners, self.ridge)

    def rows(self, theta):
        """The loss of each row, learner by learner."""
        L, state = self.learners, self.state
        theta = theta.reshape(L.theta.shape)
        score = tiles.unpack(state.score, len(self.y)).copy()
        for (a, c, *w), b, k in zip(theta, L.sign, L.target, strict=True):
            g = np.logaddexp(0.0, L.beta * (c + self.X @ np.array(w))) / L.beta
            score = score + (a + b * g)[:, None] * np.eye(L.n_scores)[k]
        if self.family == "gaussian":
            return (state.y - score[:, 0]) ** 2
        if self.family == "binomial":
            return np.logaddexp(0, score[:, 0]) - self.y * score[:, 0]
        return -log_softmax(score, axis=1)[np.arange(len(self.y)), self.y.astype(int)]

    def naive(self, theta):
        """The objective as the docstring writes it."""
        w = theta.reshape(self.learners.theta.shape)[:, 2:]
        return self.weight @ self.rows(theta) + 0.1 * (w**2).sum()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_objective_and_its_gradient(family):
    case = Case(family)
    theta = case.learners.theta.ravel()
    value, gradient = case.objective(theta[None], np.arange(1))
    assert value[0] == pytest.approx(case.naive(theta), rel=1e-12)
    np.testing.assert_allclose(gradient[0], approx_fprime(theta, case.naive, 1e-7), atol=2e-6)


def test_the_standard_error_of_the_loss():
    case = Case("gaussian")
    theta, n = case.learners.theta.ravel(), len(case.y)
    case.state = replace(case.state, weight=np.full(n, 1.0 / n))
    objective = JointObjective(case.state, case.learners, case.ridge)
    expected = case.rows(theta).std() / np.sqrt(n)
    assert objective.standard_error(theta, case.state.weight) == pytest.approx(expected, rel=1e-9)


def test_no_other_minimizer_goes_lower_from_its_end():
    case = Case("gaussian")
    start = case.learners.theta.reshape(1, -1)
    end = lbfgs(case.objective, start, max_iter=2000, tol=1e-9, ftol=0.0, spacing=SPACING)
    peer = minimize(case.naive, end.theta[0], method="BFGS", options={"gtol": 1e-9})
    assert end.converged[0] and peer.fun >= end.value[0] - 1e-8


def frame(name, response, n=150):
    df = ld.data(name).dropna().rename(columns={response: "y"})
    return df.iloc[:: len(df) // n].reset_index(drop=True)


@pytest.fixture(scope="module")
def frames():
    return {
        "gaussian": frame("autompg", "mpg"),
        "binomial": frame("heart", "disease"),
        "multinomial": frame("iris", "species"),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_the_objective_falls_to_a_minimum(frames, family):
    df = frames[family]
    w = np.random.default_rng(0).integers(0, 3, len(df))
    one, two = (
        ld.gbmap("y ~ .", df, weights=w, refit=refit, **QUICK, **EXACT)
        for refit in ("none", "joint")
    )
    assert one.refit_log is None and two.converged and two.refit_log["grad_norm"] < 1e-4

    def objective(fit):
        loss = fit.refit_log["deviance"] if fit.refit_log else fit.log["deviance"][-1]
        loss /= fit.estimates.scale**2 if family == "gaussian" else 2.0
        return loss + 0.05 * (fit.estimates.w**2).mean(axis=1).sum()

    assert objective(two) < objective(one) - 1e-4
    assert objective(two) == pytest.approx(two.refit_log["value"], rel=1e-6)
    repeated = df.loc[np.repeat(df.index, w)]
    again = ld.gbmap("y ~ .", repeated, refit="joint", **QUICK, **EXACT)
    np.testing.assert_allclose(again.predict(df, "link"), two.predict(df, "link"), atol=1e-3)


def test_learners_are_centred_and_partial_sums_are_theirs(frames):
    df = frames["gaussian"]
    fit = ld.gbmap("y ~ .", df, refit="joint", **QUICK)
    E = fit.predict(df, "embedding")
    np.testing.assert_allclose(E.iloc[:, 1:].mean(), 0.0, atol=1e-9)
    np.testing.assert_allclose(E.sum(axis=1), fit.predict(df), rtol=1e-12)
    staged = fit.staged(df)
    np.testing.assert_allclose(staged[2], E.iloc[:, :2].sum(axis=1), rtol=1e-12)
    assert np.isnan(fit.first(2).dev_ratio)  # fitted to nothing
    assert fit.dev_ratio == pytest.approx(1 - ((df["y"] - fit.predict(df)) ** 2).mean()
                                          / fit.null_deviance)  # fmt: skip
    assert "refit" in str(fit) and "L-BFGS" in str(fit.summary())


def test_an_offset_counts(frames):
    df = frames["gaussian"]
    known = np.linspace(-20, 20, len(df))
    one = ld.gbmap("y ~ .", df, refit="joint", **QUICK)
    two = ld.gbmap("y ~ .", df.assign(y=df["y"] + known), offset=known, refit="joint", **QUICK)
    np.testing.assert_allclose(two.predict(df, offset=0.0), one.predict(df), atol=1e-3)


def test_more_features_than_rows():
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(30, 40)), columns=[f"x{k}" for k in range(40)])
    df["y"] = np.abs(df["x0"]) + df["x1"]
    df["constant"] = 1.0
    fit = ld.gbmap("y ~ .", df, refit="joint", m=2, lambda_=0.5)
    none = ld.gbmap("y ~ .", df, refit="none", m=2, lambda_=0.5)
    assert fit.converged and fit.refit_log["value"] < none.log["objective"][-1] + 0.5
    # In the span of the rows, as a ridge leaves them.
    X = (df.iloc[:, :40] - df.iloc[:, :40].mean()) / df.iloc[:, :40].std(ddof=0)
    w = fit.estimates.w[:, :40]
    rest = w - w @ np.linalg.pinv(X.to_numpy()) @ X.to_numpy()
    assert np.abs(rest).max() < 1e-8


def told_by(fit):
    return " ".join(str(fit.summary()).split())


def test_it_is_chosen_where_held_out_rows_gain(frames):
    few = {"lambda_": 0.03, "control": {"max_stages": 5, "reference_rows": 50}}
    rng = np.random.default_rng(2)
    x, z = rng.uniform(-2, 2, (2, 300))
    waves = pd.DataFrame({"x": x, "z": z, "y": np.sin(3 * x + z) + 0.1 * rng.normal(size=300)})
    fit = ld.gbmap("y ~ .", waves, **few)
    assert fit.settings.refit == "joint" and fit.refit_log["gain"] >= 0.02
    assert "below that of boosts" in str(fit)
    header = str(ld.gbmap("y ~ .", waves, m=8, refit="joint", lambda_=0.03).summary()).split(
        "Notes"
    )[0]
    assert re.search("Joint fit: +yes\n", header)
    told = told_by(ld.gbmap("y ~ .", waves, control=few["control"]))
    assert "Joint fit: yes (by CV)" in told
    assert re.search(r"lambda_ from [\de.-]+ to [\de.-]+, on one set of folds \(another", told)
    # Fewer rows than parameters of eight learners: it is not tried.
    untried = ld.gbmap("y ~ .", waves[:30], **few)
    assert untried.settings.refit == "none" and "Joint fit: no " in told_by(untried)
    again = ld.gbmap("y ~ .", frames["binomial"], lambda_=10.0, control=few["control"])
    assert again.settings.refit == "none" and again.refit_log is None
    assert "Joint fit: no (by CV)" in told_by(again)
    assert ld.gbmap("y ~ .", frames["gaussian"], **QUICK).settings.refit == "none"
    boosts = str(ld.gbmap("y ~ .", waves, refit="none", **few).summary())
    assert "on one set" not in boosts and re.search("Joint fit: +no\n", boosts)


def test_a_file_keeps_it(frames, tmp_path):
    fit = ld.gbmap("y ~ .", frames["gaussian"], refit="joint", **QUICK)
    fit.save(tmp_path / "fit.lodim")
    back = ld.load(tmp_path / "fit.lodim")
    np.testing.assert_equal(back.refit_log, fit.refit_log)
    assert str(back) == str(fit)


def test_it_holds_still():
    df = ld.data("autompg").dropna().reset_index(drop=True)
    one = ld.gbmap("mpg ~ .", df, m=12, lambda_=0.1, refit="joint")
    rng = np.random.default_rng(5)
    numbers = df.select_dtypes("number").columns
    noisy = df.assign(**{c: df[c] * (1 + 1e-12 * rng.normal(size=len(df))) for c in numbers})
    sd = np.sqrt(((df["mpg"] - one.predict(df)) ** 2).mean())
    for other in (noisy, df.iloc[rng.permutation(len(df))]):
        two = ld.gbmap("mpg ~ .", other, m=12, lambda_=0.1, refit="joint")
        moved = two.predict(df) - one.predict(df)
        assert np.sqrt((moved**2).mean()) < 1e-6 * sd


def test_refusals(frames):
    df = frames["gaussian"]
    for bad in ({"activation": "identity"}, {"l1_ratio": 0.5}):
        with pytest.raises(ld.ArgumentError, match="refit='joint' needs"):
            ld.gbmap("y ~ .", df, refit="joint", **QUICK | bad)
    with pytest.raises(ld.ArgumentError, match="refit must be one of none, joint"):
        ld.gbmap("y ~ .", df, refit="all", **QUICK)
    with pytest.warns(ld.ConvergenceWarning, match="joint fit did not converge in 2 evaluations"):
        ld.gbmap("y ~ .", df, refit="joint", control={"max_iter": 2}, **QUICK)
