"""What a costnet fit says, predicts and keeps."""

import warnings
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim import forms
from lodim.models.costnet import estimate
from lodim.models.costnet.report import _changes

N = 240
COSTS = {
    "age": 0, "heart rate": 1, "hr_slope": 0.1, "hr_var": 0.1, "bp_inv": 10, "bp_cuff": 2,
    "trend": 0.1, "glucose": 1, "lactate": 1.5, "ward": 0, "blood draw": 3,
}  # fmt: skip
DEPENDS = {
    "hr_slope": ["heart rate"], "hr_var": ["heart rate"], "trend": ["bp"],
    "glucose": ["blood draw"], "lactate": ["blood draw"],
}  # fmt: skip
SERIES = {"bp": ["bp_inv", "bp_cuff"]}
ALONE = {"costs": COSTS, "depends_on": DEPENDS, "alternatives": SERIES}
ASKED = ALONE | {"n_lambda": 30}
KINDS = ("gaussian", "binomial", "multinomial")
kinds = pytest.mark.parametrize("kind", KINDS)


def patients(kind="gaussian", n=N, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 5))
    frame = pd.DataFrame({"age": 60 + 10 * z[:, 0], "heart rate": 80 + 12 * z[:, 1]})
    frame["hr_slope"] = 0.3 * z[:, 1] + rng.normal(size=n)
    frame["hr_var"] = 0.5 * z[:, 1] + rng.normal(size=n)
    frame["bp_inv"] = 120 + 15 * z[:, 2]
    frame["bp_cuff"] = frame["bp_inv"] + 8 * rng.normal(size=n)
    frame["trend"] = z[:, 2] + 0.6 * rng.normal(size=n)
    frame["glucose"], frame["lactate"] = 5 + z[:, 3], 1.5 + 0.5 * z[:, 4]
    frame["ward"] = rng.choice(["surgical", "medical", "cardiac"], n)
    score = z[:, 0] + 0.9 * frame["hr_slope"] + 1.2 * z[:, 2] + 0.7 * z[:, 4]
    score = (score + 0.8 * (frame["ward"] == "surgical")).to_numpy()
    noise = rng.normal(size=n) if kind == "gaussian" else rng.logistic(size=n)
    y = score + noise
    if kind == "binomial":
        y = np.where(y > 0, "died", "lived")
    if kind == "multinomial":
        y = np.array(["low", "mid", "high"])[(y > -1).astype(int) + (y > 1)]
    return frame.assign(y=y)


_fits: dict = {}


def fit_of(kind, **changes):
    key = kind, tuple(sorted(changes.items()))
    if key not in _fits:
        _fits[key] = ld.costnet(
            "y ~ .", patients(kind), **(ALONE if "lambda_" in changes else ASKED) | changes
        )
    return _fits[key]


def price_of(names):
    """What must be paid for columns, by hand."""
    paid, rest, bp = set(), list(names), {"bp_inv", "bp_cuff"} & set(names)
    while rest:
        name = rest.pop()
        if name == "bp":
            continue
        paid.add(name)
        rest += DEPENDS.get(name, [])
    price = sum(COSTS[name] for name in paid)
    if "trend" in paid and not bp:
        price += COSTS["bp_cuff"]
    return price


# The frontier ----------------------------------------------------------------------------------


@pytest.mark.long
@kinds
def test_the_price_list_grows_and_betters(kind):
    fit = fit_of(kind)
    frame = fit.prices()
    assert (np.diff(frame["cost"]) > 0).all()
    assert (frame["deviance"] <= fit.null_deviance + 1e-12).all()
    assert list(frame.index) == list(range(1, len(frame) + 1)) and frame["chosen"].sum() == 1
    assert frame.loc[frame["chosen"], "cost"].item() == fit.cost
    assert frame["cost"].max() <= fit.total + 1e-9


@pytest.mark.long
@kinds
def test_a_model_costs_what_its_terms_need(kind):
    fit = fit_of(kind)
    for cost in fit.prices()["cost"]:
        one = fit.at(cost)
        coef = one.coef()
        used = coef[coef != 0].index.get_level_values("term").unique()
        assert {n.split("[")[0] for n in used} - {"(Intercept)"} == set(one.inputs)
        assert one.cost == pytest.approx(cost) == pytest.approx(price_of(one.inputs))
        assert one.bought()["price"].sum() == pytest.approx(cost)
        serving = one.bought()["serves"] == "bp"
        assert serving.sum() <= 1  # one source
        assert set(one.bought().index[one.bought()["in_model"]]) == set(one.inputs)


def refitted(frame, names):
    """Mean deviance of the model of some columns, by statsmodels."""
    api = pytest.importorskip("statsmodels.api")
    X = api.add_constant(pd.get_dummies(frame[names], drop_first=True, dtype=float))
    y = frame["y"]
    if y.dtype.kind == "f":
        return float((api.OLS(y, X).fit().resid ** 2).mean())
    codes = pd.Categorical(y).codes
    model = api.Logit(codes, X) if y.nunique() == 2 else api.MNLogit(codes, X)
    return -2.0 * model.fit(disp=False, tol=1e-10).llf / len(y)


@pytest.mark.long
@kinds
def test_models_are_refitted(kind):
    df = patients(kind)
    fit = ld.costnet("y ~ .", df, **ASKED, budget=np.inf, control={"criterion": "hq"})
    for cost in fit.prices()["cost"]:
        one = fit.at(cost)
        if one.inputs:
            assert one.step.deviance == pytest.approx(refitted(df, one.inputs), rel=1e-6)
        assert one.evaluate(df)["deviance"][0] == pytest.approx(one.step.deviance, rel=1e-9)


def test_new_things_are_told():
    fit = fit_of("gaussian")
    had: set = set()
    for cost, row in zip(fit.prices()["cost"], fit.prices().itertuples(), strict=True):
        has = set(fit.at(cost).bought().query("price > 0").index)
        assert set(filter(None, row.new.split(", "))) == has - had
        assert set(filter(None, row.dropped.split(", "))) == had - has
        had = has


def test_bought_says_what_needs_what():
    frame = fit_of("gaussian").at(100).bought()
    if "lactate" in frame.index:
        assert "lactate" in frame.loc["blood draw", "needed_by"]
        assert not frame.loc["blood draw", "in_model"]
    assert frame.loc["heart rate", "needed_by"].split(", ")[0] in ("hr_slope", "hr_var")


@pytest.mark.parametrize("rules", ["greedy", "lasso", "group", ("lasso", "greedy")])
def test_rules_are_those_asked_for(rules):
    fit = fit_of("gaussian", rules=rules, budget=8)
    asked = {rules} if isinstance(rules, str) else set(rules)
    assert set(fit.prices()["rule"]) <= asked | {"null"}


# Which model -------------------------------------------------------------------------------------


@pytest.mark.long
@kinds
def test_a_budget_picks_the_best_model_that_it_pays_for(kind):
    fit, df = fit_of(kind), patients(kind, 30, seed=1)
    costs = fit.prices()["cost"].to_numpy()
    for budget in (0, costs[1], 0.5 * (costs[1] + costs[2]), 1e6):
        one = fit.at(budget)
        assert one.cost == costs[costs <= budget].max() and one.settings.budget == budget
        assert one.predict(df, "cost").eq(one.cost).all()
        assert f".at(budget={budget:g})" in str(one).replace("\n       ", "")
    staged = fit.staged(df, "link")
    assert list(staged) == list(costs)
    assert staged[costs[-1]].equals(fit.at(costs[-1]).predict(df, "link"))


@pytest.mark.long
@kinds
def test_predict_needs_no_more_than_the_inputs(kind):
    fit, df = fit_of(kind), patients(kind, 20, seed=2)
    for cost in fit.prices()["cost"]:
        one = fit.at(cost)
        whole = one.predict(df, "link")
        assert one.predict(df[one.inputs], "link").equals(whole)
        others = df.assign(**{c: np.nan for c in df.columns.difference(one.inputs)})
        assert one.predict(others, "link").equals(whole)
        augmented = one.augment(df[[*one.inputs, "y"]])
        assert augmented[".loss"].mean() == pytest.approx(one.evaluate(df)["deviance"][0])


@pytest.mark.long
def test_the_search_is_limited_by_a_budget():
    few = fit_of("gaussian", budget=4)
    assert few.prices()["cost"].max() <= 4 and few.limit == 4 and few.chosen == {}
    assert few.cost == few.prices()["cost"].max()
    with pytest.raises(ld.ArgumentError, match="budget must be at most 4"):
        few.at(5)
    whole = fit_of("gaussian")
    assert (
        whole.limit == np.inf and list(whole.chosen) == ["budget"] and whole.selection is not None
    )
    assert whole.prices()["cost"].max() > 4
    assert whole.cost <= whole.settings.budget


def test_no_lambda_leads_above_the_budget():
    fit, df = fit_of("gaussian", budget=4), patients(n=30, seed=2)
    path = fit.path()
    assert (path["cost"] > 4).any() and (path["cost"] <= 4).any()
    for lambda_, cost in zip(path["lambda_"], path["cost"], strict=True):
        if cost <= 4:
            assert fit.at(lambda_=lambda_).predict(df, "cost").eq(cost).all()
            continue
        with pytest.raises(ld.ArgumentError, match=f"costs {cost:g}, more than the budget of"):
            fit.at(lambda_=lambda_)


def test_lambda_is_that_of_the_path():
    fit = fit_of("gaussian")
    frame, path = fit.prices(), set(fit.path()["lambda_"])
    own = frame["rule"] == "group"
    assert set(frame.loc[own, "lambda_"]) <= path
    assert frame.loc[~own, "lambda_"].isna().all()
    lasso = fit_of("gaussian", rules="lasso", budget=8)
    assert (lasso.prices()["rule"] == "lasso").any() and lasso.prices()["lambda_"].isna().all()
    assert lasso.tidy()["lambda_"].isna().all()


def test_prices_are_what_they_were_meant_to_be():
    df = patients()
    costs = dict.fromkeys(["trend", "age", "hr_slope"], 0.1)
    fit = ld.costnet("y ~ hr_slope + age + trend", df, costs=costs, n_lambda=10,
                     control={"criterion": "deviance"})  # fmt: skip
    assert fit.total == 0.3 == fit.prices()["cost"].iloc[-1] and fit.at(0.3).cost == 0.3
    assert set(fit.path()["cost"]) <= {0.0, 0.1, 0.2, 0.3}
    assert set(fit.selection["budget"]) <= {0.0, 0.1, 0.2, 0.3}


@kinds
def test_lambda_picks_a_penalized_model(kind):
    fit, df = fit_of(kind), patients(kind, 20, seed=3)
    path = fit.path()
    assert (np.diff(path["lambda_"]) < 0).all() and 12 < len(path) <= 30
    for k in (0, 10, len(path) - 1):
        value = path["lambda_"][k]
        one = fit.at(lambda_=value)
        assert one.step.rule == "penalized" and one.glance()["lambda_"][0] == value
        assert one.glance()["budget"][0] is None and "Budget" not in str(one)
        assert one.at(3.1).settings.lambda_ is None
        assert one.cost == path["cost"][k] and one.dev_ratio == pytest.approx(path["dev_ratio"][k])
        assert "not refitted" in str(one) and "shrunken" in str(one.summary())
    alone = ld.costnet("y ~ .", patients(kind), **ALONE, lambda_=float(path["lambda_"][10]))
    one = fit.at(lambda_=path["lambda_"][10])
    np.testing.assert_allclose(alone.predict(df, "link"), one.predict(df, "link"), atol=1e-3)
    assert alone.estimates.frontier is None
    assert path["cost"][0] == 0 < path["cost"].iloc[-1]  # what is free comes first


def test_what_is_asked_twice_or_wrongly_is_refused():
    fit, df = fit_of("gaussian"), patients()
    for call, words in [
        (lambda: fit.at(), "either a budget or lambda_"),
        (lambda: fit.at(budget=1, lambda_=1), "either a budget or lambda_"),
        (lambda: fit.at(budget=-1), "at least 0, not -1"),
        (lambda: fit.at(budget="all"), "not 'all'"),
        (lambda: fit.at(lambda_=np.nan), "not nan"),
        (lambda: fit.at(budget=True), "not True"),
        (lambda: fit.plot("pie"), "kind must be one of cost, path, graph"),
        (lambda: fit.at(lambda_=1).plot("cost", top=3), "plot of kind 'cost'"),
    ]:
        with pytest.raises(ld.ArgumentError, match=words):
            call()
    alone = ld.costnet("y ~ .", df, **ALONE, lambda_=0.1)
    for call in (lambda: alone.at(3), lambda: alone.plot("cost"), lambda: alone.plot("graph"),
                 alone.prices, lambda: alone.staged(df)):  # fmt: skip
        with pytest.raises(ld.ArgumentError, match="no frontier"):
            call()


# Frames ------------------------------------------------------------------------------------------


@kinds
def test_tidy_has_every_model(kind):
    fit = fit_of(kind)
    tidy, K = fit.tidy(), 3 if kind == "multinomial" else 1
    assert len(tidy) == len(fit.prices()) * (1 + len(fit.design.names)) * K
    for step, part in tidy.groupby("step"):
        cost = fit.prices()["cost"][step]
        np.testing.assert_array_equal(part["estimate"], fit.at(cost).coef())
        assert (part["cost"] == cost).all()
    slopes = tidy[tidy["term"] != "(Intercept)"]
    scale = dict(zip(fit.design.names, fit.design.scale, strict=True))
    np.testing.assert_allclose(
        slopes["std_estimate"], slopes["estimate"] * slopes["term"].map(scale), atol=1e-12
    )
    assert tidy.loc[tidy["term"] == "(Intercept)", "std_estimate"].isna().all()


def test_coefficients_are_in_units_of_the_data():
    fit, df = fit_of("gaussian").at(3.1), patients()
    coef = fit.coef()
    by_hand = coef["(Intercept)"] + sum(
        coef[name] * df[name] for name in fit.inputs if name != "ward"
    )
    for level in ("cardiac", "medical", "surgical"):
        by_hand = by_hand + coef[f"ward[{level}]"] * (df["ward"] == level)
    np.testing.assert_allclose(fit.predict(df), by_hand, rtol=1e-10)


def test_weights_count_as_rows():
    df = patients(n=120)
    times = np.random.default_rng(0).integers(0, 3, len(df))
    one = ld.costnet(
        "y ~ .", df, **ASKED, weights=times, budget=8, control={"criterion": "deviance"}
    )
    two = ld.costnet("y ~ .", df.loc[df.index.repeat(times)], **ASKED, budget=8,
                     control={"criterion": "deviance"})  # fmt: skip
    last = one.at(8).coef(), two.at(8).coef()
    np.testing.assert_allclose(last[0], last[1], atol=1e-6)


def test_an_offset_is_part_of_the_score():
    df = patients().assign(known=lambda d: 2.0 * d["age"])
    fit = ld.costnet("y ~ . - known", df.assign(y=df["y"] + df["known"]), **ASKED, offset="known",
                     budget=4, control={"criterion": "hq"})  # fmt: skip
    plain = ld.costnet("y ~ .", df[patients().columns], **ASKED, budget=4,
                       control={"criterion": "hq"})  # fmt: skip
    np.testing.assert_allclose(fit.coef(), plain.coef(), atol=1e-6)
    np.testing.assert_allclose(fit.predict(df), plain.predict(df) + df["known"], rtol=1e-9)


# Print, keep, repeat -----------------------------------------------------------------------------


@kinds
def test_prints(kind):
    fit = fit_of(kind)
    text, report = str(fit), str(fit.summary())
    assert "Df Cost" in text and "Lambda Rule" in text and "9 priced items" in text
    assert f"{fit.step.number} *" in text and "(by CV)" in text
    tables = "Frontier", "Purchases", "Items to buy", "Coefficients", "Per SD", "Serves as"
    for words in (*tables, "p-values would not be", "duality gap", *fit.bought().index):
        assert words in report.replace("\n    ", " "), words
    for out in (text, report, str(fit.at(0)), str(fit.at(0).summary()),
                str(fit.at(lambda_=0.1).summary())):  # fmt: skip
        assert max(map(len, out.splitlines())) <= 78
    assert "<table>" in fit._repr_html_() and "tabular" in fit.summary().as_latex()


def test_what_is_new_at_a_step_has_room():
    """Names that do not fit are counted in words."""
    new = [f"a test of long name {k}" for k in range(5)]
    assert _changes(["a"], ["b", "c"], 34) == "+ a - b, c"
    assert _changes([], [], 34) == "" and _changes([], ["b"], 34) == "- b"
    assert _changes(new, new, 34) == "+ 5 more - 5 more"
    assert _changes(new[:2], [], 34) == "+ a test of long name 0 and 1 more"
    short = [f"x{k}" for k in range(40)]
    for dropped in ([], short):
        text = _changes(short, dropped, 34)
        shown, _, left = text.split(" - ")[0].removeprefix("+ ").rpartition(" and ")
        shown = shown.split(", ")
        assert shown == short[: len(shown)] and left == f"{40 - len(shown)} more"
        assert 25 < len(text) <= 34


def test_names_of_purchases_have_the_width_that_the_table_leaves():
    summary = ld.costnet("species ~ .", ld.data("iris"), threads=1).summary()
    assert summary.tables[0].frame["Purchases"].iloc[-1] == "+ sepal_length, sepal_width"
    assert max(map(len, str(summary).splitlines())) <= 78


def test_long_names_of_purchases_stay_different():
    names = [f"concentration of a substance in blood, {which}" for which in ("first", "second")]
    X = np.random.default_rng(0).normal(size=(60, 2))
    df = pd.DataFrame(X, columns=names).assign(y=X @ [2.0, 1.0])
    fit = ld.costnet("y ~ .", df, rules="greedy", control={"criterion": "bic"})
    assert fit.prices()["new"].tolist() == ["", *names]
    lines = [line for line in str(fit.summary()).splitlines() if " + conc" in line]
    assert [line.rpartition("...")[2] for line in lines] == ["first", "second"]


def test_a_summary_has_every_name_that_fits():
    rng = np.random.default_rng(0)
    names = [f"quantity_of_kind_{k}" for k in range(4)]
    df = pd.DataFrame(rng.normal(size=(80, 4)), columns=names)
    df["y"] = df.sum(axis=1) + 0.1 * rng.normal(size=80)
    fit = ld.costnet("y ~ .", df, costs=dict.fromkeys(names, 0) | {"lab": 2, "room": 1}, budget=3,
                     depends_on=dict.fromkeys(names[1:], "lab"))  # fmt: skip
    report = str(fit.summary())
    assert (
        "Items with a price that the formula does not use: room." in report and "NaN" not in report
    )
    assert max(map(len, report.splitlines())) <= 78
    assert list(fit.at(0).bought().index) == names[:1]  # free, and in the model
    assert set(fit.at(3).bought().index) == {"lab", *names}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["binomial", "multinomial"])
def test_separated_classes_are_told(kind, tmp_path):
    df = patients(kind)
    codes = pd.Categorical(df["y"]).codes
    df["giveaway"] = codes + 0.2 * np.random.default_rng(0).random(len(df))
    fit = ld.costnet("y ~ .", df, **ASKED | {"costs": COSTS | {"giveaway": 3}}, budget=3)
    assert fit.inputs == ["giveaway"] and fit.separated
    assert "Classes are separated: coefficients" in str(fit)
    assert "separated by the model" in " ".join(str(fit.summary()).split())
    for other in (fit.at(2), fit_of(kind), fit_of("gaussian")):
        assert not other.separated and "separated" not in str(other) + str(other.summary())


@pytest.mark.long
def test_everything_has_one_source_of_a_series():
    fit = fit_of("gaussian")
    whole = sum(COSTS.values())
    assert fit.total == pytest.approx(whole - COSTS["bp_cuff"])
    assert "total price 16.8, one source of each series" in " ".join(str(fit).split())
    assert "total price" in str(fit_of("gaussian", depends_on=None, alternatives=None))
    free = ld.costnet("y ~ age + hr_slope", patients(), costs={"age": 0, "hr_slope": 1, "lab": 0},
                      depends_on={"hr_slope": "lab"}, budget=1)  # fmt: skip
    assert "lab" not in free.bought().index  # free, and no part of the model


@pytest.mark.long
def test_another_formula_of_the_same_list():
    fit, df = fit_of("gaussian", budget=4), patients()
    other = fit.update(df, formula="y ~ age + glucose")
    assert set(other.settings.network.names) == {"age", "glucose", "blood draw"}
    assert other.update(df, formula="y ~ .").prices().equals(fit.prices())
    assert "bp_inv" in str(other.summary())


@pytest.mark.long
def test_a_long_price_list_shows_its_ends_and_the_chosen_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 60))
    df = pd.DataFrame(
        X, columns=[f"a quantity with a rather long name, number {k}" for k in range(60)]
    )
    df["y"] = X @ np.linspace(1, 2, 60)
    fit = ld.costnet("y ~ .", df, rules="greedy", budget=60, n_lambda=5,
                     control={"criterion": "deviance"})  # fmt: skip
    assert len(fit.prices()) > 32
    lines = str(fit.at(25)).splitlines()
    assert len(lines) < 45 and any("*" in line and " 25 " in line for line in lines)
    assert "rows that are not shown; summary(full=True) shows all rows." in str(fit.at(25))
    assert sum(line.startswith("...") for line in lines) == 3  # two gaps, and what they are
    for n in range(1, len(fit.prices()) + 1):
        assert f"\n{n} " in str(fit.summary(full=True))
    report = str(fit.summary())
    assert max(map(len, report.splitlines())) <= 78 and "..." in report


@kinds
def test_save_and_load(kind, tmp_path):
    fit, df = fit_of(kind), patients(kind, 15, seed=4)
    for one in (fit, fit.at(3.1), fit.at(lambda_=0.05), fit_of(kind, lambda_=0.1)):
        one.save(tmp_path / "fit")
        back = ld.load(tmp_path / "fit")
        assert str(back) == str(one) and str(back.summary()) == str(one.summary())
        assert back.predict(df, "link").equals(one.predict(df, "link"))
        assert back.bought().equals(one.bought()) and back.tidy().equals(one.tidy())
        assert forms.write(back).keys() == forms.write(one).keys()
    assert ld.load(tmp_path / "fit").settings.costs == fit.settings.costs


def test_a_damaged_state_is_refused(tmp_path):
    from lodim.fitting import storage as store

    whole = forms.write(fit_of("gaussian"))
    network, estimates = whole["settings"]["network"], whole["estimates"]
    frontier, V = estimates["frontier"], len(network["names"])
    for record, name, value in [
        (network, "parents", [[5]] * V),
        (network, "columns", [[99]] * V),
        (network, "cost", np.zeros(2)),
        (network, "base", np.full(V, 99)),
        (frontier, "coef", frontier["coef"][:, :-1]),
        (frontier, "rule", ["greedy"]),
        (frontier, "intercept", np.full_like(frontier["intercept"], np.nan)),
        (estimates["path"], "coef", estimates["path"]["coef"][:-1]),
        (whole["paid"], "bought", whole["paid"]["bought"][:, :-1]),
    ]:
        own = record[name]
        record[name] = value
        store.write(tmp_path / "fit", "costnet", whole)
        record[name] = own
        with pytest.raises(ld.StoreError, match="valid costnet fit"):
            ld.load(tmp_path / "fit")


@pytest.mark.long
def test_update_repeats_the_call():
    fit, df = fit_of("gaussian", budget=4), patients(seed=5)
    series = ld.costnet("y ~ .", patients(), **ASKED | {"costs": pd.Series(COSTS)}, budget=4)
    assert str(series) == str(fit)
    again = series.update(df)
    assert again.limit == 4 and again.settings.costs == fit.settings.costs
    assert again.predict(df).equals(ld.costnet("y ~ .", df, **ASKED, budget=4).predict(df))
    assert fit.at(2).update(df).settings.budget == 2
    penalized = fit.at(2).at(lambda_=0.5)
    shown = penalized.glance()["lambda_"][0]
    again = penalized.update(patients())
    assert again.settings.lambda_ == shown and f".at(lambda_={shown:g})" in str(penalized)
    assert again.glance()["lambda_"][0] == shown and again.cost == penalized.cost
    other = fit.update(df, budget=2)
    assert other.cost <= 2


def shared(names):
    """Two labs that open for 4 each, then every thing costs 1."""
    labs = [{"a", "b", "c"}, {"d", "e"}]
    return float(sum(4 for lab in labs if lab & names) + len(names))


def test_a_cost_function(tmp_path):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(150, 5)), columns=list("abcde"))
    df["y"] = df["a"] + 0.8 * df["b"] + 0.9 * df["d"] + 0.3 * df["e"] + rng.normal(size=150)
    fit = ld.costnet("y ~ .", df, costs=shared, budget=9)
    assert "costs=shared" in str(fit) and "by a function" in str(fit)
    for cost in fit.prices()["cost"]:
        assert cost == shared(set(fit.at(cost).inputs)) <= 9
    assert set(fit.at(6).inputs) == {"a", "b"}  # the second lab would cost 5 more
    fit.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit")
    assert str(back) == str(fit) and back.predict(df).equals(fit.predict(df))
    assert str(back.summary()) == str(fit.summary())
    with pytest.raises(
        ld.ArgumentError, match="a function or an object, which a fit does not store"
    ):
        fit.update(df)
    assert fit.update(df, costs=shared).cost == fit.cost


# Through the shared machinery --------------------------------------------------------------------


@pytest.mark.long
@kinds
def test_cv_over_budgets(kind):
    df = patients(kind, 120)
    cv = ld.cv(ld.costnet, "y ~ .", df, **ASKED, folds=4, rule="1se")
    frame = cv.tidy()
    assert list(frame.columns) == ["budget", "mean", "se"] and (np.diff(frame["budget"]) > 0).all()
    assert cv.budget_1se <= cv.budget_min == frame["budget"][frame["mean"].idxmin()]
    within = frame["mean"] <= frame["mean"].min() + frame["se"][frame["mean"].idxmin()]
    assert cv.budget_1se == frame["budget"][within].min()
    assert cv.best.settings.budget == cv.budget_1se and cv.best.cost <= cv.budget_1se
    assert list(cv.best.chosen) == ["budget"] and "budget" in str(cv)
    assert frame["mean"].iloc[0] > frame["mean"].min()


@pytest.mark.long
@kinds
def test_cv_searches_all_rows_once(kind, monkeypatch):
    df, sizes, rule_results = patients(kind, 120), [], estimate._rule_results

    def counted(batch, *args, **kwargs):
        sizes.append(batch.n)
        return rule_results(batch, *args, **kwargs)

    monkeypatch.setattr(estimate, "_rule_results", counted)
    cv = ld.cv(ld.costnet, "y ~ .", df, **ASKED, folds=3, rule="1se", seed=1)
    assert sizes.count(len(df)) == 1 < sizes.count(80)
    best, budget = cv.best, cv.budget_1se
    assert cv.tidy()["budget"].max() > budget == best.limit == best.prices()["cost"].max()
    whole = ld.costnet("y ~ .", df, **ASKED, seed=1)
    of_whole = whole.prices().query("cost <= @budget").drop(columns="chosen")
    pd.testing.assert_frame_equal(best.prices().drop(columns="chosen"), of_whole)
    np.testing.assert_array_equal(best.predict(df), whole.at(budget).predict(df))


@pytest.mark.long
def test_cv_over_other_settings():
    df = patients(n=120)
    cv = ld.cv(ld.costnet, "y ~ .", df, **ALONE, folds=3, grid={"lambda_": [1.0, 0.1, 0.01]})
    assert list(cv.tidy()["lambda_"]) == [1.0, 0.1, 0.01] and cv.best.step.rule == "penalized"
    both = ld.cv(ld.costnet, "y ~ .", df, **ASKED, folds=3,
                 grid={"rules": ["lasso", "greedy"], "budget": [1.1, 8]})  # fmt: skip
    assert list(both.tidy()["rules"]) == ["lasso", "lasso", "greedy", "greedy"]
    with pytest.raises(ld.ArgumentError, match="either a budget or lambda_"):
        ld.cv(ld.costnet, "y ~ .", df, **ALONE, folds=3, grid={"lambda_": [1.0], "budget": [1.0]})


def test_path():
    df = patients(n=120)
    path = ld.path(ld.costnet, "y ~ .", df, **ASKED | {"n_lambda": 8})
    frame = path.glance()
    assert len(path.fits) == 8 and (np.diff(frame["dev_ratio"]) >= -1e-9).all()
    assert path.fits[0].cost == 0 and path.fits[-1].cost > 10
    whole = ld.costnet("y ~ .", df, **ALONE, lambdas=path.lambdas, budget=1)
    np.testing.assert_allclose(whole.path()["dev_ratio"], frame["dev_ratio"], atol=1e-5)


def test_what_a_lambda_leaves_without_effect_is_refused_and_not_repeated():
    df = patients(n=120)
    grid = {"lambda_": [1.0, 0.1]}
    for call, words in (
        (lambda: ld.path(ld.costnet, "y ~ .", df, **ALONE, rules="lasso"), "leave out rules="),
        (
            lambda: ld.path(ld.costnet, "y ~ .", df, **ALONE, relax=0.5),
            "relax needs a search of models, which neither lambda_ nor a path over lambda_ has",
        ),
        (lambda: ld.costnet("y ~ .", df, **ALONE, lambda_=1.0, relax=0.5), "leave out relax=0.5"),
        (
            lambda: ld.cv(ld.costnet, "y ~ .", df, **ALONE, grid=grid, n_lambda=5),
            "leave out n_lambda=5",
        ),
        (
            lambda: ld.cv(ld.costnet, "y ~ .", df, **ALONE, grid=grid, relax=0.5),
            "relax needs a search",
        ),
        (
            lambda: ld.cv(ld.costnet, "y ~ .", df, **ALONE, lambda_=1.0, n_lambda=5),
            "n_lambda needs",
        ),
        (lambda: ld.cv(ld.costnet, "y ~ .", df, **ALONE, budget=2.0), "budget=2.0 is given"),
    ):
        with pytest.raises(ld.ArgumentError, match=words):
            call()
    fit = ld.costnet("y ~ .", df, **ALONE, n_lambda=9, relax=1.0, control={"criterion": "bic"})
    one = fit.at(lambda_=0.3).update(df)
    assert one.arguments["n_lambda"] == 100 and one.arguments["control"] is None
    assert one.predict(df).equals(
        ld.costnet("y ~ .", df, **ALONE, lambda_=one.step.lambda_).predict(df)
    )
    assert fit.update(df, lambda_=1.0).settings.lambda_ == 1.0
    with pytest.raises(ld.ArgumentError, match="leave out n_lambda=7"):
        fit.update(df, lambda_=1.0, n_lambda=7)


@pytest.mark.long
def test_a_class_without_rows_stays_as_the_null_model_has_it():
    """In paths and refits alike, and so do held-out losses of a class that a fold is without."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 4))
    score = X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(200, 3))
    df = pd.DataFrame(X, columns=list("abcd"))
    df["y"] = np.array(list("uvw"))[score.argmax(axis=1)]
    df["weight"] = np.where(df["y"] == "w", 0.0, 1.0)
    fit = ld.costnet("y ~ a + b + c + d", df, weights="weight", control={"criterion": "bic"})
    frontier, path = fit.estimates.frontier, fit.estimates.path
    for models in (path, frontier):
        beside = models.intercept[:, 2] - models.intercept[:, :2].mean(axis=1)
        assert np.abs(beside - np.log(1e-12) - np.log(2.0)).max() < 1.5
        assert np.abs(models.coef[:, :, 2]).max() < 1e-8
    assert path.converged.all() and fit.predict(df, "prob")["w"].max() < 1e-11


@pytest.mark.parametrize("lambda_", [0.005, 0.02])
def test_cvxpy_converges_for_classes(lambda_):
    pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(200, 5)), columns=list("abcde"))
    df["g"] = rng.choice(["u", "v", "w"], 200)
    df["y"] = df["a"] + df["b"] / 2 + (df["g"] == "u") + rng.normal(size=200) < 0
    needs = {"a": ["visit"], "b": ["visit"], "c": ["b"]}
    costs = {"a": 1, "b": 2, "c": 0.5, "d": 1, "e": 3, "g": 1, "visit": 4}
    asked = {"costs": costs, "depends_on": needs, "lambda_": lambda_, "solver": "cvxpy"}
    assert ld.costnet("y ~ .", df, **asked).converged  # without a warning
    with pytest.warns(ld.ConvergenceWarning, match="give control={'tol': 1e-5}, or solver='auto'"):
        ld.costnet("y ~ .", df, **asked, control={"tol": 1e-15})


@pytest.mark.long
def test_cvxpy_solves_the_same_path():
    pytest.importorskip("cvxpy")
    df = patients(n=60)
    asked = ASKED | {"n_lambda": 6, "budget": 3}
    own, other = (ld.costnet("y ~ .", df, **asked, solver=s) for s in ("auto", "cvxpy"))
    trace, reference = own.estimates.path, other.estimates.path
    np.testing.assert_allclose(trace.lambdas, reference.lambdas, rtol=1e-9)
    np.testing.assert_allclose(trace.objective, reference.objective, rtol=1e-6)
    assert "solver='cvxpy'" in str(other).replace("\n       ", "")


def test_arguments_are_all_read():
    """What the settings hold is what was given; nothing is ignored in silence."""
    df = patients(n=60)
    fit = ld.costnet("y ~ .", df, **ASKED | {"n_lambda": 5}, budget=3, relax=0.5, l1_ratio=0.9,
                     dependents="direct", seed=3, threads=1, rules="lasso",
                     control={"tol": 1e-5, "max_iter": 500})  # fmt: skip
    s = fit.settings
    assert (s.budget, s.relax, s.l1_ratio, s.dependents, s.seed, s.threads) == (
        3,
        0.5,
        0.9,
        "direct",
        3,
        1,
    )
    assert s.rules == ("lasso",) and s.tol == 1e-5 and s.max_iter == 500 and s.n_lambda == 5
    assert {f.name for f in fields(s)} >= {"costs", "depends_on", "alternatives", "network"}


# Any frame at all --------------------------------------------------------------------------------


@st.composite
def problems(draw):
    n, p = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    names = [f"x{k}" for k in range(p)]
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, p)).round(draw(st.integers(0, 3))), columns=names)
    if draw(st.booleans()):
        df["x0"] = rng.choice(list("abc"), n)
    answers = [rng.normal(size=n), rng.choice(["a", "b"], n), rng.choice(["a", "b", "c"], n)]
    df["y"] = answers[draw(st.integers(0, 2))]
    costs = {name: draw(st.sampled_from([0, 0.5, 1, 1e6])) for name in names}
    depends_on = {names[k]: names[j] for k in range(1, p) for j in range(k) if draw(st.booleans())}
    return df, costs, depends_on


@pytest.mark.long
@given(problem=problems(), budget=st.sampled_from([None, 0, 1, 1.5, 1e9]),
       criterion=st.sampled_from(["bic", "deviance", "ebic"]))  # fmt: skip
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_problem(problem, budget, criterion):
    df, costs, depends_on = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            fit = ld.costnet("y ~ .", df, costs=costs, depends_on=depends_on, budget=budget,
                             threads=1, n_lambda=8,
                             control={"criterion": criterion, "max_iter": 300})  # fmt: skip
        except ld.LodimError:
            return
        assert np.isfinite(fit.predict(df, "link").to_numpy(float)).all()
        assert str(fit) and str(fit.summary()) and len(fit.augment(df)) == len(df)
        if budget is not None:
            assert (fit.prices()["cost"] <= budget * (1 + 1e-9)).all()
        for cost in fit.prices()["cost"]:
            one = fit.at(cost)
            paid, rest = set(), list(one.inputs)
            while rest:
                name = rest.pop()
                paid.add(name)
                rest += [depends_on[name]] if name in depends_on else []
            assert one.cost == pytest.approx(sum(costs[name] for name in paid))


@pytest.mark.long
@pytest.mark.parametrize("lambda_", [0.0, 1e-3])
def test_a_class_without_rows_is_as_improbable_far_out(lambda_):
    """Steps share nothing among the classes present that would make way for it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 4))
    score = 2.0 * X @ rng.standard_normal((4, 3)) + rng.gumbel(size=(200, 3))
    df = pd.DataFrame(X, columns=list("abcd")).assign(y=np.array(list("uvw"))[score.argmax(axis=1)])
    df["weight"] = np.where(df.y == "w", 0.0, 1.0)
    costs = {"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0}
    fit = ld.costnet("y ~ a + b + c + d", df, costs=costs, lambda_=lambda_, weights="weight")
    far = pd.DataFrame(3.0 * rng.standard_normal((500, 4)), columns=list("abcd"))
    assert fit.predict(far, "prob")["w"].max() < 1e-9


@pytest.mark.long
@pytest.mark.parametrize("kind", ["number", "class"])
@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-5])
def test_free_columns_that_differ_by_little_say_what_they_differ_by(kind, apart):
    rng = np.random.default_rng(3)
    one, other, c, d = rng.standard_normal((4, 400))
    score = other + 0.5 * c
    if kind == "number":
        y = score + 0.5 * rng.standard_normal(400)
    else:
        y = np.where(score + rng.logistic(size=400) > 0.0, "u", "v")
    level = rng.choice(list("pqr"), 400)  # its columns are collinear, and share
    df = pd.DataFrame({"y": y, "a": one, "b": one - apart * other, "c": c, "d": d, "level": level})
    costs = {"a": 0.0, "b": 0.0, "level": 0.0, "c": 1.0, "d": 1.0}
    fit = ld.costnet("y ~ .", df, costs=costs, rules=("group",))
    X = np.column_stack([np.ones(400), one, other, c, level == "q", level == "r"]).astype(float)
    if kind == "number":
        least = sm.OLS(y, X).fit().ssr / 400
    else:
        least = sm.GLM(y == "v", X, family=sm.families.Binomial()).fit().deviance / 400
    assert fit.null_deviance > 1.1 * least
    assert fit.evaluate(df)["deviance"].item() <= least * 1.01  # d may be left out, levels too
    assert fit.coef()[["a", "b", "c"]].abs().min() > 0.0


@pytest.mark.long
def test_sequences_in_the_call_stay_through_files_and_updates(tmp_path):
    cars = ld.data("autompg")
    for rules in (["lasso"], ("group", "lasso")):
        fit = ld.costnet("mpg ~ weight + model_year", cars, rules=rules, seed=1)
        fit.save(tmp_path / "fit.lodim")
        back = ld.load(tmp_path / "fit.lodim")
        assert back.arguments == fit.arguments
        assert back.update(cars).update(cars).call == fit.call


def test_a_solver_that_is_cut_short_is_told():
    with pytest.warns(ld.ConvergenceWarning):
        fit = ld.costnet("y ~ .", patients("binomial"), control={"max_iter": 1})
    assert "the solver did not converge at every penalty" in repr(fit)


def test_products_that_cost_nothing_are_not_among_the_purchases():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    df["y"] = df["a"] * df["b"] + df["a"] + 0.1 * rng.normal(size=200)
    fit = ld.costnet("y ~ a * b", df, costs={"a": 1.0, "b": 2.0}, budget=10)
    assert fit.bought().index.tolist() == ["a", "b"] and fit.coef()["a:b"] > 0.5
