"""glm of many rows compared with glm of few, statsmodels, and what it may keep in memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from lodim.design.batch import Batch
from lodim.engine import blocks, tiles
from lodim.family import make
from lodim.models.glm import estimate, inference, passes, rows
from lodim.models.glm.settings import Settings
from streamed_batches import cross_validate, frame, in_file, problem_of, saved

N = 70_001
FAMILIES = ("gaussian", "binomial", "poisson", "gamma", "tweedie", "multinomial")
POWER = {"tweedie": 1.5}
RIGHT = "a + b + g + aliased + near"


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    df["g"] = rng.choice(list("uvw"), N)
    df["aliased"] = df["a"] + 2.0 * df["b"]
    df["near"] = df["a"] + 1e-3 * rng.normal(size=N)
    df["w"] = 0.7 * rng.integers(0, 4, N)
    df["o"] = 0.1 * rng.normal(size=N)
    df["clinic"] = rng.integers(0, 300, N)
    eta = 0.3 * df["a"] - 0.2 * df["b"] + 0.5 * (df["g"] == "v")
    df["gaussian"] = eta + rng.normal(size=N)
    df["binomial"] = np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-eta)), "yes", "no")
    df["poisson"] = rng.poisson(np.exp(eta)).astype(float)
    df["gamma"] = rng.gamma(2.0, np.exp(eta) / 2.0)
    df["tweedie"] = rng.gamma(rng.poisson(np.exp(eta)) + 1e-9).round(9)
    utility = rng.gumbel(size=(N, 3)) + np.outer(eta, [0.0, 1.0, -1.0])
    df["multinomial"] = np.array(list("pqr"))[utility.argmax(axis=1)]
    return df


def both(monkeypatch, formula, df, **arguments):
    """The fits of a call by blocks, and as of few rows."""
    fits = []
    for many in (0, 10**9):
        monkeypatch.setattr(estimate, "MAX_MEMORY_ROWS", many)
        fits.append(ld.glm(formula, df, **arguments))
    return fits


def assert_same(one, other, rtol=1e-8):
    """Assert that two fits say the same."""
    a, b = one.tidy(), other.tidy()
    assert (a["term"] == b["term"]).all()
    error = b["std_error"].to_numpy()
    np.testing.assert_allclose(a["std_error"], error, rtol=rtol)
    assert np.nanmax(np.abs(a["estimate"] - b["estimate"]) / error) < rtol
    for name in ("deviance", "log_likelihood", "dispersion", "sum_weights"):
        assert one.log[name] == pytest.approx(other.log[name], rel=1e-12, nan_ok=True)
    for name in ("rows", "n", "df", "df_resid", "whole", "n_clusters", "covariance", "converged"):
        assert one.log[name] == other.log[name]
    assert one.aliased == other.aliased


@pytest.mark.parametrize(
    "family",
    [f if f == "binomial" else pytest.param(f, marks=pytest.mark.long) for f in FAMILIES],
)
@pytest.mark.parametrize("kind", ["nonrobust", "HC3", "cluster"])
def test_the_same_as_of_few_rows(df, family, kind, monkeypatch):
    several = family == "multinomial"
    arguments = {"weights": "w", "offset": None if several else "o", "family": family}
    if family in POWER:
        arguments["power"] = POWER[family]
    if kind == "cluster":
        arguments["clusters"] = "clinic"
    else:
        arguments["covariance"] = "HC1" if several and kind == "HC3" else kind
    one, other = both(monkeypatch, f"{family} ~ {RIGHT}", df, **arguments)
    assert list(one.aliased) == ["aliased"]
    assert_same(one, other)


@pytest.mark.long
def test_many_rows_go_by_blocks_without_being_asked(df, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("the rows are copied")

    monkeypatch.setattr(rows.Rows, "in_memory", refuse)
    by_blocks = ld.glm("gaussian ~ a + g", df)
    X = sm.add_constant(np.column_stack([df["a"], df["g"] == "v", df["g"] == "w"]).astype(float))
    known = sm.OLS(df["gaussian"], X).fit()
    np.testing.assert_allclose(by_blocks.tidy()["estimate"], known.params, rtol=1e-10)
    np.testing.assert_allclose(by_blocks.tidy()["std_error"], known.bse, rtol=1e-10)
    with pytest.raises(AssertionError, match="copied"):
        ld.glm("gaussian ~ a", df[: blocks.SPAN_ROWS])


@pytest.mark.long
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_columns_that_are_nearly_collinear(family, monkeypatch):
    rng = np.random.default_rng(1)
    n, p = 5000, 6
    Q = np.linalg.qr(rng.normal(size=(n, p)))[0]
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    X = np.sqrt(n) * (Q * np.logspace(0, -6, p)) @ turn  # of condition 1e6
    df = pd.DataFrame(X, columns=list("abcdef"))
    eta = X @ rng.normal(size=p)
    noise = rng.random(n) < 1.0 / (1.0 + np.exp(-eta))
    df["y"] = eta + rng.normal(size=n) if family == "gaussian" else np.where(noise, "yes", "no")
    one, other = both(monkeypatch, "y ~ .", df)
    assert_same(one, other, rtol=1e-7)


@pytest.mark.long
def test_offsets_of_classes_and_classes_that_have_no_rows(df, monkeypatch):
    part = df[:3000].assign(w=np.where(df["multinomial"][:3000] == "p", 0.0, 1.0))
    offset = np.random.default_rng(0).normal(size=(3000, 3))
    one, other = both(monkeypatch, "multinomial ~ a + b", part, offset=offset)
    assert_same(one, other)
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        one, other = both(monkeypatch, "multinomial ~ a + b", part, weights="w")
    apart = [fit.predict(part, "prob")[["q", "r"]] for fit in (one, other)]
    np.testing.assert_allclose(*apart, atol=1e-6)
    assert one.df == other.df == 3 and one.df_resid == other.df_resid


@pytest.mark.long
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_separation_is_seen_by_the_information(df, family):
    rows = df[["a", "g"]].copy()
    rows["y"] = np.where(rows["g"] == "w", 0.0, df["poisson"].clip(upper=1.0))
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("y ~ a + g", rows, family=family)
    assert fit.separated == ["g[w]"]
    known = ld.glm("y ~ a + g", rows[rows["g"] != "w"], family=family).tidy()
    tidy = fit.tidy().set_index("term").loc[known["term"]]
    np.testing.assert_allclose(tidy["estimate"], known["estimate"], atol=1e-6)
    np.testing.assert_allclose(tidy["std_error"], known["std_error"], rtol=1e-6)
    rows.loc[rows.index[rows["g"] == "w"][0], "y"] = 1.0
    assert ld.glm("y ~ a + g", rows, family=family).separated == []


@pytest.mark.long
def test_the_rows_shown_are_rows_of_the_data(df, monkeypatch):
    arguments = {"weights": "w", "offset": "o", "control": {"diagnostic_rows": N}}
    one, other = both(monkeypatch, "gamma ~ a + g", df, **arguments)
    for name, values in vars(one.diagnostics).items():
        np.testing.assert_allclose(values, getattr(other.diagnostics, name), rtol=1e-7, atol=1e-12)
    some = ld.glm("gamma ~ a + g", df, **arguments | {"control": {"diagnostic_rows": 100}})
    label, mean = list(some.diagnostics.label), some.diagnostics.fitted
    assert len(set(label)) == 100 and (df["w"][label] > 0).all()
    np.testing.assert_allclose(mean, some.predict(df.loc[label], offset="o"), rtol=1e-10)


@pytest.mark.long
def test_triangles_and_blocks_of_weight_zero():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 4))
    weight = rng.random(9000)
    weight[4096:8192] = 0.0
    packed = tiles.pack(X)
    packed[64:128] = np.nan  # blocks without weight are not looked at
    R = passes.triangle(packed, weight)
    A = np.column_stack([np.ones(9000), X]) * np.sqrt(weight)[:, None]
    np.testing.assert_allclose(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=1e-12, atol=1e-9)
    y, kept = X @ [1.0, 0.0, 1.0, 0.0], np.array([0, 1, 3, 4])
    how = {"kept": kept, "T": np.eye(4), "family": make("gaussian", 0), "coef": np.zeros((1, 4))}
    found = passes.sums(packed, y, weight, None, **how, observed=True)
    totals, gradient, H = passes.parts(found, how["coef"])
    assert totals[0] == pytest.approx(weight @ y**2)
    A = A[:, kept]
    np.testing.assert_allclose(gradient, A.T @ (np.sqrt(weight) * y))
    np.testing.assert_allclose(H, A.T @ A, rtol=1e-12, atol=1e-9)


@pytest.mark.long
def test_sums_over_spans_are_those_of_the_whole(df, monkeypatch):
    whole = ld.glm("binomial ~ a + g", df, covariance="HC2", clusters=None)
    again = ld.glm("binomial ~ a + g", df, covariance="HC2")
    assert (whole.estimates.cov == again.estimates.cov).all()
    monkeypatch.setattr(blocks, "available_threads", lambda: 1)
    alone = ld.glm("binomial ~ a + g", df, covariance="HC2")
    assert (whole.estimates.cov == alone.estimates.cov).all()
    assert (whole.estimates.coef == alone.estimates.coef).all()


@pytest.mark.long
@pytest.mark.parametrize("in_order", [False, True])
def test_clusters_are_summed_some_at_a_time(df, in_order, monkeypatch):
    df = df.sort_values("clinic") if in_order else df
    whole = ld.glm("binomial ~ a + g", df, clusters="clinic")
    monkeypatch.setattr(rows.Rows, "positive", 400)
    monkeypatch.setattr(inference, "LARGEST", 400)  # 100 clusters
    some = ld.glm("binomial ~ a + g", df, clusters="clinic")
    ratio = some.estimates.cov / whole.estimates.cov
    np.testing.assert_allclose(ratio, (399 / 396) / ((N - 1) / (N - 4)), rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_memory(family):
    n, p = 200_000, 20
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n // 64, p, 64))
    eta = 0.3 * X[:, 0].ravel()
    y = {
        "gaussian": eta + rng.normal(size=n),
        "poisson": rng.poisson(np.exp(eta)).astype(float),
        "gamma": rng.gamma(2.0, np.exp(eta)),
        "tweedie": rng.gamma(rng.poisson(np.exp(eta)) + 1e-9).round(9),
        "multinomial": rng.integers(0, 3, n).astype(float),
    }.get(family, (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float))
    rows = np.arange(n)
    batch = Batch(X, y, None, None, pd.RangeIndex(n), rows, clusters=rows % 97.0, streamed=True)
    next(estimate.fit_stages(batch, make(family, 3, POWER.get(family)), Settings(None)))  # compiles
    tracemalloc.start()
    next(estimate.fit_stages(batch, make(family, 3, POWER.get(family)), Settings(None)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4  # of 65,536 rows at a time, and of some numbers of the rows drawn


@pytest.mark.long
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("covariance", ["nonrobust", "HC3"])
def test_a_file_holds_the_same_as_memory(family, covariance, tmp_path):
    X, y = frame(66_000, 3)
    y = y if family == "gaussian" else (y > 1.0).astype(float)
    files = []
    for at in (None, in_file(tmp_path, X)):
        problem = problem_of(ld.glm, X, y, {"covariance": covariance}, at)
        files.append(saved(problem.model.fit(problem), tmp_path))
    assert files[0] == files[1]


@pytest.mark.long
@pytest.mark.parametrize("family", ["gaussian", "multinomial"])
def test_cross_validation_of_streamed_rows(family, tmp_path, monkeypatch):
    X, y = frame(66_000, 3)
    y = y if family == "gaussian" else np.digitize(y, [0.0, 1.0]).astype(float)
    problem = problem_of(ld.glm, X, y, {}, in_file(tmp_path, X))
    cv = cross_validate(problem, monkeypatch, folds=3)
    assert cv.best._deviance < problem.null_deviance()
