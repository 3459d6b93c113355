"""Every family in every model: what all models share works, or is refused in words of the test."""

import json
import subprocess
from functools import cached_property
from shutil import which

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import huber
from sklearn import metrics

import lodim as ld
from export.targets import TARGETS, expected, gap
from lodim.export import javascript
from lodim.family import FAMILIES
from lodim.fitting.fit_model import model_of

N = 90
FOLD = np.arange(N) % 3
RESPONSES = {  # response and parameter of each family
    "gaussian": ("size", {}),
    "binomial": ("side", {}),
    "multinomial": ("side3", {}),
    "ordinal": ("grade", {}),
    "poisson": ("count", {}),
    "negative_binomial": ("count", {}),
    "gamma": ("amount", {}),
    "tweedie": ("claims", {"power": 1.4}),
    "quantile": ("size", {"quantile": 0.8}),
    "huber": ("size", {}),
}
CALLS = {
    "glm": {},
    "gbmap": {"m": 2, "lambda_": 0.1, "threads": 1},
    "costnet": {"lambda_": 0.01, "threads": 1},
}
COUNTS = "poisson", "negative_binomial"
FREE = {  # arguments with which a model is the generalized linear one
    "glm": {},
    "gbmap": {"m": 1, "lambda_": 1e-10, "activation": "identity", "threads": 1},
    "costnet": {"lambda_": 0.0, "threads": 1},
}
CASES = [
    (name, family)
    for name in CALLS
    for family in model_of(getattr(ld, name)).families
    if family != "none"
]
CLASSICAL = ("gaussian", "binomial", "multinomial")
REFUSED = {  # capability -> family -> words of the error
    "interval": dict.fromkeys(["multinomial", "ordinal"], "type must be one of response, link"),
}


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    df["g"] = rng.choice(["u", "v", "w"], n)
    f = df["a"] - 0.5 * df["b"] + 0.5 * (df["g"] == "u")
    noisy = f + rng.logistic(size=n)
    df["size"] = f + rng.normal(size=n)
    df["side"] = np.where(noisy > 0, "yes", "no")
    code = np.digitize(noisy, [-0.7, 0.9])
    df["side3"] = np.array(["one", "two", "three"])[code]
    df["grade"] = pd.Categorical.from_codes(code, ["low", "middle", "high"], ordered=True)
    mean = np.exp(0.5 + 0.5 * f)
    df["count"] = rng.poisson(mean * rng.gamma(2.0, 0.5, n))
    df["amount"] = rng.gamma(2.0, mean / 2.0)
    df["claims"] = rng.gamma(rng.poisson(mean) + 1e-9, 1.0).round(6)
    return df


class Case:
    """A model function with a family: the call, the rows and the fit."""

    def __init__(self, name, family, df):
        self.response, parameter = RESPONSES[family]
        self.family, self.df, self.model = family, df, getattr(ld, name)
        self.formula = f"{self.response} ~ a + b + g"
        self.asked = {"family": family} | parameter
        self.call = self.asked | CALLS[name]
        self.fit = self.model(self.formula, df, **self.call)

    @cached_property
    def held_out(self):
        """The rows of each fold, and a fit to the rows of the others."""
        parts = [(self.df[k == FOLD], self.df[k != FOLD]) for k in range(3)]
        return [(test, self.model(self.formula, train, **self.call)) for test, train in parts]


def deviance(case, y, fitted):
    """Mean deviance of responses, by other packages, given means (or probabilities)."""
    if case.fit.levels is not None:
        code = [case.fit.levels.index(level) for level in y]
        return 2.0 * metrics.log_loss(code, fitted, labels=range(len(case.fit.levels)))
    if case.family == "quantile":
        return 2.0 * metrics.mean_pinball_loss(y, fitted, alpha=case.asked["quantile"])
    every = case.df[case.response].to_numpy()
    if case.family == "huber":
        middle = lambda x: np.quantile(x, 0.5, method="inverted_cdf")  # noqa: E731
        limit = 1.345 * 1.482602218505602 * middle(np.abs(every - middle(every)))
        return 2.0 * huber(limit, y - fitted).mean()
    if case.family == "negative_binomial":
        alpha = ((every - every.mean()) ** 2 - every.mean()).mean() / every.mean() ** 2
        return sm.families.NegativeBinomial(alpha=alpha).deviance(y, fitted) / len(y)
    power = {"gaussian": 0, "poisson": 1, "gamma": 2} | {"tweedie": case.asked.get("power")}
    return metrics.mean_tweedie_deviance(y, fitted, power=power[case.family])


@pytest.fixture(scope="module")
def df():
    return rows()


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request, df):
    return Case(*request.param, df)


def test_every_family_has_a_case():
    assert {family for _, family in CASES} == set(FAMILIES) - {"none"}


def test_types_of_predictions(case, df):
    fit = case.fit
    mean, link = fit.predict(df), fit.predict(df, "link")
    score = link.to_numpy().reshape(len(df), -1)
    np.testing.assert_allclose(mean, fit.family.mean(score), rtol=1e-12, atol=1e-15)
    if fit.levels is None:
        for kind in ("class", "prob"):
            with pytest.raises(ld.ArgumentError, match="type"):
                fit.predict(df, kind)
        return
    p = fit.predict(df, "prob")
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (fit.predict(df, "class") == p.idxmax(axis=1)).all()


def test_intervals(case, df):
    if case.fit.name != "glm":
        assert "interval" not in case.fit.types
        return
    if words := REFUSED["interval"].get(case.family):
        with pytest.raises(ld.ArgumentError, match=words):
            case.fit.predict(df, "interval")
        return
    found = case.fit.predict(df, "interval")
    np.testing.assert_allclose(found["fit"], case.fit.predict(df), rtol=1e-12)
    assert ((found["lower"] < found["fit"]) & (found["fit"] < found["upper"])).all()
    if case.fit.levels is None and case.family not in ("tweedie", "quantile", "huber"):
        wide = (found["new_lower"] <= found["lower"]) & (found["upper"] <= found["new_upper"])
        assert wide.mean() > 0.95
        new = case.df[case.response]
        assert ((found["new_lower"] <= new) & (new <= found["new_upper"])).mean() > 0.85


def test_measures_are_means_of_rows(case, df):
    fit, known = case.fit, case.fit.augment(df)
    found = fit.evaluate(df).iloc[0]
    assert found["deviance"] == pytest.approx(known[".loss"].mean(), rel=1e-12)
    smoothed = case.fit.name == "costnet" and case.family == "quantile"  # loss in the fit
    assert found["dev_ratio"] == pytest.approx(fit.dev_ratio, rel=1e-3 if smoothed else 1e-6)
    if fit.levels is None:
        np.testing.assert_allclose(known[".resid"], df[case.response] - known[".fitted"])
    else:
        share = (known[".class"] == df[case.response]).mean()
        assert found["accuracy"] == pytest.approx(share, rel=1e-12)


def test_files_and_repeated_calls(case, df, tmp_path):
    fit = case.fit
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    assert again.family == fit.family and str(again.summary()) == str(fit.summary())
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    np.testing.assert_array_equal(fit.update(df).predict(df), fit.predict(df))


@pytest.mark.long
def test_rows_of_a_file(case, df, tmp_path):
    pytest.importorskip("pyarrow")
    path = str(tmp_path / "rows.parquet")
    df.to_parquet(path)
    fit = case.model(case.formula, path, **case.call)
    np.testing.assert_allclose(fit.predict(df), case.fit.predict(df), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.predict(path), fit.predict(df), rtol=1e-12)
    one, other = (fit.evaluate(rows).iloc[0].to_dict() for rows in (path, df))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("target", TARGETS)
def test_exports_predict_the_same(case, df, target):
    run, precision = TARGETS[target]
    new = df[["a", "b", "g"]].head(20)
    assert gap(run(case.fit, new), expected(case.fit, new)) <= precision


@pytest.mark.long
@pytest.mark.skipif(which("node") is None, reason="no node is installed to run JavaScript with")
def test_javascript_predicts_the_same(case, df):
    new = df[["a", "b", "g"]].head(20)
    program = javascript.write(case.fit._equation("error"))
    program += f"\nconsole.log(JSON.stringify({json.dumps(new.to_dict('records'))}.map(predict)));"
    found = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    answers = json.loads(found.stdout)
    if case.fit.levels is not None:
        answers = [[p for _, p in pairs] for pairs in answers]
    assert gap(np.array(answers).reshape(20, -1), expected(case.fit, new)) <= 1e-12


@pytest.mark.long
@pytest.mark.parametrize(
    "name, family", [("glm", "quantile"), ("gbmap", "poisson"), ("costnet", "tweedie")]
)
def test_pages(name, family, df, tmp_path):
    pytest.importorskip("vl_convert")
    case = Case(name, family, df)
    case.fit.report(tmp_path / "page.html", df)
    assert "predict" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_checks_and_prints(case, df):
    assert case.fit.family.label in str(case.fit)
    found = case.fit.check(df)
    text = str(found)
    counts = case.fit.family.name == "poisson"
    assert ("only for family poisson" in text) == (not counts)
    assert not {"calibration", "leak", "duplicates"} & set(found.codes)


def test_effects_are_means_of_predictions(case, df):
    found = ld.effects(case.fit, df, "a", kind="pd", type="response").tidy()
    levels = case.fit.levels
    several = case.fit.predict(df).ndim == 2
    for value, part in list(found.groupby("value"))[:3]:
        mean = case.fit.predict(df.assign(a=value)).mean()
        wanted = [mean[level] for level in levels] if several else [mean]
        np.testing.assert_allclose(sorted(part["estimate"]), sorted(wanted), rtol=1e-9)


def test_paths_and_folds(case, df):
    call = {k: v for k, v in case.call.items() if k not in ("lambda_", "relax")}
    if case.fit.name == "glm":
        with pytest.raises(ld.ArgumentError, match="glm has no penalty"):
            ld.path(case.model, case.formula, df, **call)
    else:
        path = ld.path(case.model, case.formula, df, n_lambda=3, **call)
        assert len(path.tidy()) >= 3
    found = ld.cv(case.model, case.formula, df, folds=FOLD, **case.call)
    held = np.concatenate([fit.augment(test)[".loss"] for test, fit in case.held_out])
    assert found.tidy()["mean"].min() == pytest.approx(held.mean(), rel=1e-6)


@pytest.mark.parametrize("name, family", CASES)
def test_conformal_sets_cover_new_rows(name, family):
    """The error of the coverage is that of 300 calibration rows and 1,000 new rows."""
    case, new = Case(name, family, rows(300, seed=1)), rows(1000, seed=2)
    found = ld.conformal(case.model, case.formula, case.df, folds=5, level=0.8, **case.call)
    sets, y = found.predict(new), new[case.response]
    if case.fit.levels is None:
        inside = (sets["lower"] <= y) & (y <= sets["upper"])
        assert case.fit.family.link == "identity" or sets["lower"].min() >= 0.0
    else:
        inside = np.array([sets[level][i] for i, level in enumerate(y)])
    error = np.sqrt(0.8 * 0.2 * (1.0 / 300 + 1.0 / 1000))
    assert inside.mean() == pytest.approx(0.8, abs=2.5 * error)


@pytest.mark.parametrize("name, family", CASES)
def test_new_rows_are_calibrated(name, family):
    """Unless their responses are another function of the features."""
    case, new = Case(name, family, rows(300, seed=1)), rows(1000, seed=2)
    assert "calibration" not in case.fit.check(new).codes
    other = new.assign(a=-new["a"], b=-new["b"])
    assert "calibration" in case.fit.check(other).codes


def test_compare_has_the_deviance_of_the_family(case, df):
    models = {name: (case.fit.name, CALLS[case.fit.name]) for name in ("one", "two")}
    found = ld.compare(case.formula, df, models, folds=FOLD, baselines=False, **case.asked)
    kind = "response" if case.fit.levels is None else "prob"
    parts = [(test[case.response], fit.predict(test, kind)) for test, fit in case.held_out]
    y, fitted = (pd.concat(part).to_numpy() for part in zip(*parts, strict=True))
    expected = deviance(case, y, fitted)
    np.testing.assert_allclose(found.tidy()["deviance"], expected, rtol=1e-9)


def test_estimators(case, df):
    from lodim import sklearn

    if case.fit.levels is not None and case.family != "ordinal":
        return  # the estimator of classes chooses this family itself
    kind = "Regressor" if case.fit.levels is None else "Classifier"
    estimator = getattr(sklearn, case.fit.name.capitalize() + kind)(**case.call)
    X, y = df[["a", "b", "g"]], df[case.response]
    estimator.fit(X, y)
    found = estimator.predict(X) if case.fit.levels is None else estimator.predict_proba(X)
    np.testing.assert_allclose(found, case.fit.predict(df), rtol=1e-9)
    other = "Classifier" if kind == "Regressor" else "Regressor"
    other = getattr(sklearn, case.fit.name.capitalize() + other)()
    if "family" in other.get_params():
        y = y.to_numpy() if case.fit.levels is None else df["count"]
        with pytest.raises(ld.ArgumentError, match=f"of family '{case.family}': use .*{kind}"):
            other.set_params(family=case.family).fit(X, y)


def effect_of_a(fit):
    """Change of the linear predictors by one unit of a, (S,), relative to the first class."""
    link = fit.predict(pd.DataFrame({"a": [0.0, 1.0], "b": 0.0}), "link").to_numpy()
    change = np.diff(link.reshape(2, -1), axis=0)[0]
    if fit.family.name == "multinomial":
        return change[1:] - change[0]
    return change[:1]


@pytest.mark.long
@pytest.mark.parametrize("name, family", CASES)
def test_bootstrap_has_the_errors_of_an_unpenalized_model(name, family):
    """glm's standard errors are those of statsmodels: robust ones, where it has them."""
    case = Case(name, family, rows(200, seed=1))
    formula, known = f"{case.response} ~ a + b", {"covariance": "HC0"}
    if family in ("quantile", "huber"):
        known = {}
    tidy = ld.glm(formula, case.df, **case.asked, **known).tidy()
    several = {"m": 5} if (name, family) == ("gbmap", "multinomial") else {}  # a class at a time
    fit = case.model(formula, case.df, **case.asked, **FREE[name] | several)
    of_a = tidy[tidy["term"] == "a"]
    close = 0.05 if family in ("quantile", "huber") else 1e-4  # other limits and smoothed kinks
    np.testing.assert_allclose(effect_of_a(fit), of_a["estimate"], rtol=close)
    found = ld.bootstrap(fit, case.df, n=60, statistic=effect_of_a, threads=1).tidy(level=0.5)
    np.testing.assert_allclose(found["std_error"], of_a["std_error"], rtol=0.25)


@pytest.mark.parametrize(("name", "family"), [pair for pair in CASES if pair[1] in COUNTS])
def test_fractions_of_counts_are_named(name, family, df):
    model, call = getattr(ld, name), {"family": family} | CALLS[name]
    rates = df.assign(days=2.7, rate=df["count"] / 2.7)
    told = f"'rate' is not a whole number in {(df['count'] > 0).sum()} of {N} rows"
    with pytest.warns(ld.DataWarning, match=told):
        model("rate ~ a + b", rates, **call)
    model("rate ~ a + b", rates, weights="days", **call)  # rates times exposures are counts


@pytest.mark.parametrize("name", CALLS)
def test_offsets_that_are_no_logarithms_are_named(name, df):
    model, days = getattr(ld, name), df.assign(days=np.linspace(1.0, 365.0, N))
    with pytest.warns(ld.DataWarning, match="offset ranges from 1 to 365; .* of an exposure"):
        model("count ~ a", days, family="poisson", offset="days", **CALLS[name])
    model("size ~ a", days, offset="days", **CALLS[name])
    model("count ~ a", days, family="poisson", offset=np.log(days["days"]), **CALLS[name])


@pytest.mark.parametrize("model", [ld.costnet, ld.ripr])
def test_an_update_warns_if_a_class_is_gone(model):
    iris = ld.data("iris").assign(wide=lambda df: df["sepal_width"] > 3)
    fit = model("species ~ sepal_length + petal_width", iris)
    with pytest.warns(ld.DataWarning, match="no row of data has species = 'setosa', unlike"):
        fit.update(iris[iris["species"] != "setosa"][::2])
    fit.update(iris, formula="wide ~ .")


def test_an_update_of_the_family_drops_the_parameter_of_the_old_one(df):
    fit = ld.glm("amount ~ a", df, family="quantile", quantile=0.9)
    assert fit.update(df, family="gamma").family.name == "gamma"
    assert fit.update(df, family="tweedie", power=1.3).arguments.get("quantile") is None
    assert fit.update(df, formula="amount ~ b").family.quantile == 0.9
    with pytest.raises(ld.ArgumentError, match="quantile= is for family='quantile', not 'gamma'"):
        fit.update(df, family="gamma", quantile=0.5)


@pytest.mark.parametrize(
    "model, family",
    [
        *((m, f) for m in (ld.proset, ld.ripr, ld.melm) for f in RESPONSES if f not in CLASSICAL),
        (ld.gbmap, "negative_binomial"),
        *((ld.costnet, f) for f in ("ordinal", "negative_binomial")),
    ],
)
def test_models_without_a_family_say_so(model, family, df):
    response, _ = RESPONSES[family]
    with pytest.raises(ld.ArgumentError, match=f"family must be one of .*, not '{family}'"):
        model(f"{response} ~ a + b", df, family=family)
