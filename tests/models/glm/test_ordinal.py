"""Classes in order: compared with statsmodels' OrderedModel, and with rows repeated or split."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.miscmodels.ordinal_model import OrderedModel

import lodim as ld
from lodim.family import Ordinal
from lodim.models.glm import estimate

GRADES = ["low", "middle", "high", "top"]
CALL = {"family": "ordinal"}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    df["g"] = rng.choice(["u", "v", "w"], n)
    df["known"] = rng.normal(size=n)
    f = df["a"] - 0.5 * df["b"] + 0.4 * (df["g"] == "u") + rng.logistic(size=n)
    code = np.digitize(f + df["known"], [-1.0, 0.3, 2.0])
    df["grade"] = pd.Categorical.from_codes(code, GRADES, ordered=True)
    df["unit"] = np.arange(n) % 20
    return df


@pytest.fixture(scope="module")
def df():
    return rows()


def peer(df, offset=None):
    X = pd.get_dummies(df[["a", "b", "g"]], drop_first=True, dtype=float)
    model = OrderedModel(df["grade"], X, distr="logit", offset=offset)
    return model.fit(method="newton", disp=0, maxiter=200, tol=1e-9)


@pytest.mark.parametrize("offset", [None, "known"])
def test_a_fit_equals_that_of_statsmodels(offset, df):
    fit = ld.glm("grade ~ a + b + g", df, offset=offset, **CALL)
    other = peer(df, None if offset is None else df[offset])
    tidy = fit.tidy().set_index("term")
    np.testing.assert_allclose(tidy["estimate"][:4], other.params[:4], atol=1e-7)
    np.testing.assert_allclose(tidy["std_error"][:4], other.bse[:4], atol=1e-6)
    np.testing.assert_allclose(tidy["p_value"][:4], other.pvalues[:4], atol=1e-6)
    thresholds = other.model.transform_threshold_params(other.params.to_numpy())[1:-1]
    np.testing.assert_allclose(tidy["estimate"][4:], thresholds, atol=1e-7)
    assert [*tidy.index[4:]] == ["low|middle", "middle|high", "high|top"]
    mine = [fit.log_likelihood, fit.aic, fit.bic, fit.df, fit.df_resid]
    theirs = [other.llf, other.aic, other.bic, len(other.params), other.df_resid]
    np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    if offset is None:
        np.testing.assert_allclose(fit.predict(df), other.predict(), atol=1e-8)
    assert fit.converged and not fit.separated


def test_covariance_has_the_errors_of_tidy(df):
    fit = ld.glm("grade ~ a + b + g", df, **CALL)
    cov, tidy = fit.covariance(), fit.tidy()
    assert [*cov.index] == [*tidy["term"]]
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), tidy["std_error"], rtol=1e-10)
    ratios = fit.tidy(exponentiate=True)
    np.testing.assert_allclose(ratios["estimate"], np.exp(tidy["estimate"]), rtol=1e-12)


def test_types_of_predictions(df):
    fit = ld.glm("grade ~ a + b + g", df, **CALL)
    p, link = fit.predict(df), fit.predict(df, "link")
    assert [*p] == GRADES and [*link] == GRADES[1:]
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    above = p.iloc[:, ::-1].cumsum(axis=1).iloc[:, ::-1]
    for grade in GRADES[1:]:
        np.testing.assert_allclose(1.0 / (1.0 + np.exp(-link[grade])), above[grade], rtol=1e-9)
    assert (fit.predict(df, "class") == p.idxmax(axis=1)).all()
    with pytest.raises(ld.ArgumentError, match="type must be one of response, link, class, prob"):
        fit.predict(df, "interval")
    rest = fit.augment(df)
    assert abs(rest[".resid"].mean()) < 1e-3 and rest[".resid"].abs().max() < 1.0
    measures = fit.evaluate(df).iloc[0]
    share = (fit.predict(df, "class") == df["grade"]).mean()
    assert measures["accuracy"] == pytest.approx(share, rel=1e-12)
    assert measures["deviance"] == pytest.approx(rest[".loss"].mean(), rel=1e-12)
    assert measures["dev_ratio"] == pytest.approx(fit.dev_ratio, rel=1e-12)


def test_weights_are_repeated_rows(df):
    twice = pd.concat([df, df[:150]])
    weighted = ld.glm(
        "grade ~ a + g", df.assign(w=np.r_[[2] * 150, [1] * 250]), weights="w", **CALL
    )
    repeated = ld.glm("grade ~ a + g", twice, **CALL)
    columns = ["estimate", "std_error"]
    np.testing.assert_allclose(weighted.tidy()[columns], repeated.tidy()[columns], rtol=1e-9)


def test_rows_in_spans_are_those_in_memory(df, monkeypatch):
    whole = ld.glm("grade ~ a + b + g", df, **CALL)
    monkeypatch.setattr(estimate, "MAX_MEMORY_ROWS", 10)
    parts = ld.glm("grade ~ a + b + g", df, **CALL)
    columns = ["estimate", "std_error"]
    np.testing.assert_allclose(parts.tidy()[columns], whole.tidy()[columns], rtol=1e-9)


@pytest.mark.parametrize("how", [{"covariance": "HC0"}, {"clusters": "unit"}])
def test_robust_errors(how, df):
    """Against the derivatives of each row's log-likelihood, by finite differences."""
    fit = ld.glm("grade ~ a + b", df, **how, **CALL)
    theta = fit.tidy()["estimate"].to_numpy()
    y, X = df["grade"].cat.codes.to_numpy(), df[["a", "b"]].to_numpy()

    def loss(theta):
        score = (X @ theta[:2])[:, None] - theta[2:]
        return -0.5 * Ordinal(3).deviance(y, score)

    def slopes(theta):
        steps = 1e-5 * np.eye(len(theta))
        return np.stack([(loss(theta + s) - loss(theta - s)) / 2e-5 for s in steps], axis=1)

    H = [-(slopes(theta + s) - slopes(theta - s)).sum(axis=0) / 2e-3 for s in 1e-3 * np.eye(5)]
    u, B, factor = slopes(theta), np.linalg.inv(H), 1.0
    if "clusters" in how:
        u = pd.DataFrame(u).groupby(df["unit"].to_numpy()).sum().to_numpy()
        factor = 20 / 19 * (len(df) - 1) / (len(df) - 3)
    np.testing.assert_allclose(fit.covariance(), factor * B @ u.T @ u @ B, rtol=1e-4, atol=1e-7)
    test = fit.drop1()
    b, V = theta[1], fit.covariance().loc["b", "b"]
    assert test.set_index("term")["wald_chi2"]["b"] == pytest.approx(b**2 / V, rel=1e-9)
    assert test["df"].tolist() == [1, 1]


def test_analysis_of_deviance(df):
    fit = ld.glm("grade ~ a + g", df, **CALL)
    small = ld.glm("grade ~ a", df, **CALL)
    table = small.anova(fit)
    assert table["df"][1] == 2
    fall = 2.0 * (fit.log_likelihood - small.log_likelihood)
    assert table["LR"][1] == pytest.approx(fall, rel=1e-9)
    assert fit.drop1(data=df)["deviance"][2] == pytest.approx(small.log["deviance"], rel=1e-9)


def test_separated_classes(df):
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("grade ~ x", df.assign(x=df["grade"].cat.codes * 2.0), **CALL)
    assert "x" in fit.separated


@pytest.mark.parametrize("n, seed", [(100, 0), (500, 1), (5000, 0)])
def test_separated_classes_of_many_rows(n, seed):
    """Rows near the boundaries need steep slopes, which put the boundaries far apart."""
    x = np.random.default_rng(seed).normal(size=n)
    df = pd.DataFrame({"x": x, "y": np.digitize(x, [-0.5, 0.5])})
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("y ~ x", df, **CALL)
    terms = fit.tidy()["term"].tolist()
    assert "x" in fit.separated and set(fit.separated) == set(terms)
    assert fit.tidy()["p_value"].isna().all()


@pytest.mark.parametrize("gone", GRADES)
def test_a_class_without_rows(gone, df):
    """A class of weight zero gets no probability; the others are those of a fit without it."""
    rest = df[df["grade"] != gone]
    without = ld.glm("grade ~ a + b", rest, **CALL)
    zero = ld.glm("grade ~ a + b", df.assign(w=(df["grade"] != gone) * 1.0), weights="w", **CALL)
    p = zero.predict(df)
    assert p[gone].max() < 1e-6 and zero.df == without.df
    np.testing.assert_allclose(p.drop(columns=gone), without.predict(df), atol=1e-6)


def test_numbers_have_an_order(df):
    codes = df["grade"].cat.codes
    fit = ld.glm("grade ~ a", df.assign(grade=codes), **CALL)
    named = ld.glm("grade ~ a", df, **CALL)
    np.testing.assert_array_equal(fit.tidy()["estimate"], named.tidy()["estimate"])
    assert fit.levels == (0, 1, 2, 3)


def test_what_is_refused(df):
    with pytest.raises(ld.DataError, match=r"in no order: make it an ordered category, such as"):
        ld.glm("grade ~ a", df.assign(grade=df["grade"].astype(str)), **CALL)
    for grade in (df["grade"], df["grade"].astype(str)):
        with pytest.raises(ld.DataError, match=r"needs at least three classes .* 'binomial'"):
            ld.glm("grade ~ a", df.assign(grade=grade)[df["grade"] <= "middle"], **CALL)
    with pytest.raises(ld.ArgumentError, match="covariance must be 'HC0', 'HC1' or clusters="):
        ld.glm("grade ~ a", df, covariance="HC3", **CALL)
    with pytest.raises(ld.DataError, match="offset has 4 columns, but must have one for family"):
        ld.glm("grade ~ a", df, offset=np.zeros((len(df), 4)), **CALL)


def test_summary_and_print(df):
    fit = ld.glm("grade ~ a", df, **CALL)
    assert "Family: ordinal (cumulative logit link), 4 classes" in str(fit)
    assert "A positive estimate makes higher classes of grade more probable" in str(fit.summary())


def test_the_estimator_of_scikit_learn(df):
    from lodim.sklearn import GlmClassifier

    fit = ld.glm("grade ~ a + b", df, **CALL)
    for y, classes in ((df["grade"], GRADES), (df["grade"].cat.codes, [0, 1, 2, 3])):
        estimator = GlmClassifier(family="ordinal").fit(df[["a", "b"]], y)
        assert estimator.classes_.tolist() == classes
        np.testing.assert_allclose(estimator.predict_proba(df[["a", "b"]]), fit.predict(df))
    with pytest.raises(ld.DataError, match="in no order"):
        GlmClassifier(family="ordinal").fit(df[["a", "b"]], df["grade"].astype(str))


def test_replicates_have_thresholds_and_folds_may_lack_classes(df):
    fit = ld.glm("grade ~ a", df, family="ordinal")
    assert ld.bootstrap(fit, df, n=40).tidy()["term"].tolist() == fit.tidy()["term"].tolist()
    alone = (df["grade"] == df["grade"].cat.categories[0]).to_numpy()
    cv = ld.cv(ld.glm, "grade ~ a", df, groups=alone, folds=2, family="ordinal")
    assert np.isfinite(cv.tidy()["mean"]).all()
