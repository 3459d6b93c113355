"""The joint refit: its objective in naive NumPy, its derivatives, what it reaches and promises."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

import lodim as ld
from lodim import family as families
from lodim.engine import tiles
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.refit import JointObjective, Rows, _spans
from lodim.solve.newton import newton

QUICK = {"m": 3, "lambda_": 0.05, "beta": 3.0}
FAMILIES = ("gaussian", "binomial", "multinomial")


class Case:
    """Random rows, weights, an offset and learners of a family."""

    def __init__(self, family, n=70, p=3, seed=0):
        rng = np.random.default_rng(seed)
        self.family, K = family, 3 if family == "multinomial" else 1
        self.X, self.offset = rng.normal(size=(n, p)), rng.normal(size=(n, K))
        numeric = family == "gaussian"
        self.y = rng.normal(size=n) if numeric else rng.integers(0, max(K, 2), n) * 1.0
        self.weight = rng.random(n)
        self.weight /= self.weight.sum()
        M = 2 * K
        self.learners = WeakLearners(
            rng.normal(size=(M, 2 + p)), np.resize([1.0, -1.0], M), np.arange(M) % K,
            1 + np.arange(M) // K, 4.0, 0, 2.0, K,
        )  # fmt: skip
        self.ridge = np.r_[0.0, 0.0, np.full(p, 0.1)]

    def naive(self, theta):
        """The objective as the docstring writes it, learner by learner."""
        L, loss = self.learners, 0.0
        theta = theta.reshape(L.theta.shape)
        score = self.offset / L.scale
        for (a, c, *w), b, k in zip(theta, L.sign, L.target, strict=True):
            g = np.logaddexp(0.0, L.beta * (c + self.X @ np.array(w))) / L.beta
            score = score + (a + b * g)[:, None] * np.eye(L.n_scores)[k]
            loss += self.ridge[2:] @ np.array(w) ** 2
        if self.family == "gaussian":
            return loss + self.weight @ (self.y / L.scale - score[:, 0]) ** 2
        if self.family == "binomial":
            return loss + self.weight @ (np.logaddexp(0, score[:, 0]) - self.y * score[:, 0])
        own = log_softmax(score, axis=1)[np.arange(len(self.y)), self.y.astype(int)]
        return loss - self.weight @ own

    def objective(self, rows=None):
        class Batch:
            n, y, weight = len(self.y), self.y, self.weight
            offsets = staticmethod(lambda K: self.offset)

        spans = _spans(tiles.pack(self.X), Batch, self.learners, None)
        if rows:
            ((whole,),) = spans
            cuts = [slice(lo, lo + rows) for lo in range(0, Batch.n, rows)]
            parts = [Rows(**{k: v[i] for k, v in vars(whole).items()}) for i in cuts]
            spans = [parts[:2], parts[2:]]
        loss = families.make(self.family, 3).kernel_loss(self.y, self.weight)
        return JointObjective(spans, self.learners, self.ridge, loss)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_objective_and_its_derivatives(family):
    case = Case(family)
    objective, theta = case.objective(), case.learners.theta.ravel()
    # Classes are codes, which have no unit; `y / scale` is of numbers.
    if family != "gaussian":
        case.learners = replace(case.learners, scale=1.0)
        objective = case.objective()
    value, gradient = objective(theta)
    assert value == pytest.approx(case.naive(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(theta, case.naive, 1e-7), atol=2e-6)
    H, step = objective.hessian(theta, False), 1e-5
    for k in range(0, theta.size, 3):
        e = step * np.eye(theta.size)[k]
        change = (objective(theta + e)[1] - objective(theta - e)[1]) / (2 * step)
        np.testing.assert_allclose(H[k], change, atol=1e-7)
    convex = objective.hessian(theta, True)
    assert np.linalg.eigvalsh(convex).min() > -1e-12
    assert np.linalg.eigvalsh(convex - H).min() > -1e-12


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_sum_to_the_whole(family):
    case = Case(family)
    whole, parts, theta = case.objective(), case.objective(32), case.learners.theta.ravel()
    assert [len(span) for span in parts.spans] == [2, 1]
    np.testing.assert_allclose(whole(theta)[1], parts(theta)[1], atol=1e-14)
    np.testing.assert_allclose(whole.hessian(theta, False), parts.hessian(theta, False), atol=1e-13)


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
        ld.gbmap("y ~ .", df, weights=w, refit=refit, **QUICK) for refit in ("none", "joint")
    )
    assert one.refit_log is None and two.converged and two.refit_log["grad_norm"] < 1e-5

    def objective(fit):
        loss = fit.refit_log["deviance"] if fit.refit_log else fit.log["deviance"][-1]
        loss /= fit.estimates.scale**2 if family == "gaussian" else 2.0
        return loss + 0.05 * (fit.estimates.w**2).mean(axis=1).sum()

    assert objective(two) < objective(one) - 1e-4
    assert objective(two) == pytest.approx(two.refit_log["value"], rel=1e-6)
    repeated = df.loc[np.repeat(df.index, w)]
    again = ld.gbmap("y ~ .", repeated, refit="joint", **QUICK)
    np.testing.assert_allclose(again.predict(df, "link"), two.predict(df, "link"), atol=1e-3)


def test_no_other_minimizer_goes_lower_from_its_end():
    case = Case("gaussian")
    objective = case.objective()
    end = newton(objective, case.learners.theta.ravel(), tol=1e-10, ftol=0.0)
    peer = minimize(case.naive, end.theta[0], method="BFGS", options={"gtol": 1e-9})
    assert end.converged[0] and peer.fun >= end.value[0] - 1e-10


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
    assert "refit" in str(fit) and "Newton" in str(fit.summary())


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


def test_it_is_chosen_where_held_out_rows_gain(frames):
    few = {"lambda_": 0.03, "control": {"max_stages": 5, "reference_rows": 50}}
    rng = np.random.default_rng(2)
    x, z = rng.uniform(-2, 2, (2, 300))
    waves = pd.DataFrame({"x": x, "z": z, "y": np.sin(3 * x + z) + 0.1 * rng.normal(size=300)})
    fit = ld.gbmap("y ~ .", waves, **few)
    assert fit.settings.refit == "joint" and fit.refit_log["gain"] >= 0.02
    assert "lowers the held-out deviance by" in str(fit)
    # Fewer than four rows a parameter: it is not tried.
    assert ld.gbmap("y ~ .", waves[:30], **few).settings.refit == "none"
    again = ld.gbmap("y ~ .", frames["binomial"], lambda_=10.0, control=few["control"])
    assert again.settings.refit == "none" and again.refit_log is None
    assert ld.gbmap("y ~ .", frames["gaussian"], **QUICK).settings.refit == "none"


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
        assert np.sqrt((moved**2).mean()) < 0.01 * sd


def test_refusals(frames):
    df = frames["gaussian"]
    for bad in ({"activation": "identity"}, {"l1_ratio": 0.5}):
        with pytest.raises(ld.ArgumentError, match="refit='joint' needs"):
            ld.gbmap("y ~ .", df, refit="joint", **QUICK | bad)
    with pytest.raises(ld.ArgumentError, match="refit must be one of none, joint"):
        ld.gbmap("y ~ .", df, refit="all", **QUICK)
    with pytest.raises(ld.ArgumentError, match="'refit' cannot be in the grid"):
        ld.cv(ld.gbmap, "y ~ .", df, grid={"refit": ["none", "joint"]}, m=2, lambda_=0.1)
    with pytest.warns(ld.ConvergenceWarning, match="joint refit did not converge in 2 steps"):
        ld.gbmap("y ~ .", df, refit="joint", control={"max_iter": 2}, **QUICK)
