"""What a user does with a policy: budgets, updates, the tree, plots, the page, printed text."""

import json
import re
import subprocess
import warnings
from shutil import which

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.acquisition import kernels, mixture, tree

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def blocks(n, seed):
    """Two blocks of two features; a context tells which block has the sign of the response."""
    rng = np.random.default_rng(seed)
    X, context = rng.normal(size=(n, 4)), rng.integers(0, 2, n)
    y = X[np.arange(n), 2 * context] + X[np.arange(n), 2 * context + 1] > 0
    where = np.array(["left", "right"])[context]
    return pd.DataFrame(X, columns=["l1", "l2", "r1", "r2"]).assign(
        where=where, y=np.where(y, "up", "down")
    )


@pytest.fixture(scope="module")
def policy():
    return ld.acquire("y ~ .", blocks(500, 0), resources={"minutes": {"l1": 5, "where": 1}})


def test_known_columns_are_conditioned_once(policy):
    fit, known, new, points = policy.mixture, np.array([0, 3]), np.array([1, 4]), np.arange(20)
    X, start = fit.features(policy.X), np.array([0, 2])
    x = X[0].copy()
    given = kernels.condition(x, known, new, fit.arrays)
    values = np.ascontiguousarray(X[points].T)
    found = kernels.candidate_losses(values, new, start, given, fit.arrays, fit.label)
    columns = np.append(known, new)
    V = np.where(np.isin(columns, known)[:, None], x[columns, None], X[points][:, columns].T)
    P = fit.predict(np.ascontiguousarray(V), columns, 2)
    entropy = -(P * np.log(np.maximum(P, kernels.LEAST))).sum(axis=0)
    np.testing.assert_allclose(found[0], entropy)


def test_expected_loss_of_a_number_is_its_variance():
    cars = ld.data("autompg").dropna()
    numeric = ld.acquire("mpg ~ weight + horsepower + acceleration", cars)
    fit, points = numeric.mixture, np.arange(30)
    X, new, start = fit.features(numeric.X), np.array([1, 2]), np.array([0, 1, 2])
    x = np.array([X[3, 0], np.nan, np.nan])
    given = kernels.condition(x, np.array([0]), new, fit.arrays)
    values = np.ascontiguousarray(X[points].T)
    found = kernels.candidate_losses(values, new, start, given, fit.arrays, fit.label)
    for row, column in zip(found, new, strict=True):
        V = np.vstack([np.full(30, x[0]), X[points, column]])
        np.testing.assert_allclose(row, fit.predict(V, np.array([0, column]), 0)[1] ** 2)


def test_tree_names_missing_measurements():
    rng = np.random.default_rng(0)
    x, missing = rng.normal(size=300), rng.permutation(300) < 90
    rows = pd.DataFrame(
        {"crp": np.where(missing, np.nan, x), "bmi": x + 0.3 * rng.normal(size=300)}
    )
    rows["y"] = np.where(x > 0, "a", "b")
    number = ld.acquire("y ~ .", rows, costs={"crp": 1, "bmi": 2}, trade_off=0.02).tree()
    assert "crp missing" in [text for text, _ in number.root.branches]
    assert "nan" not in str(number)
    assert ld.acquire("y ~ .", rows, costs={"crp": 1, "bmi": 2}, trade_off=0.02).plot().texts

    rows["g"] = rng.choice(["low", "mid", "top"], 300)
    rows["y"] = np.where(np.where(rows["g"] == "mid", x, rows["g"] == "top") > 0, "a", "b")
    rows.loc[missing, "g"] = None
    costs = {"g": 0.01, "bmi": 1}
    level = ld.acquire("y ~ g + bmi", rows, costs=costs, trade_off=0.02).tree()
    assert [text for text, _ in level.root.branches] == ["g: top", "g: missing or mid", "g: low"]


def test_tree_asks_for_the_context_first(policy):
    tree = policy.tree()
    assert tree.root.items == ("where",) and tree.agreement > 0.8
    goes_on = {text: branch.items[0] for text, branch in tree.root.branches}
    assert goes_on["where: left"] in ("l1", "l2") and goes_on["where: right"] in ("r1", "r2")
    assert str(tree).startswith("measure where")


@pytest.mark.long
def test_budgets_of_price_and_resources(policy):
    rows = blocks(60, 1)
    run = policy.run(rows, budget={"price": 3, "minutes": 4}, trade_off=1e-4)
    assert (run[".price"] <= 3).all() and (run[".minutes"] <= 4).all()
    minutes = run[".bought"].str.contains("l1") * 5 + run[".bought"].str.contains("where")
    np.testing.assert_array_equal(run[".minutes"], minutes)
    assert policy.run(rows, trade_off=1e-4)[".minutes"].max() > 4
    mean = policy.run(rows, mean_budget=2.5)[".price"].mean()
    assert 2 < mean < 3
    with pytest.raises(ld.ArgumentError, match="price and minutes, not of 'hours'"):
        policy.run(rows, budget={"hours": 1})
    with pytest.raises(ld.ArgumentError, match="not both"):
        policy.run(rows, mean_budget=1, trade_off=1)
    with pytest.raises(ld.ArgumentError, match="'zz' is no purchase"):
        ld.acquire("y ~ .", rows, resources={"minutes": {"zz": 1}})


@pytest.mark.long
def test_mean_budget_between_two_prices():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=400)})
    rows["y"] = np.where(rows["x"] > 0, "up", "down")
    jump = ld.acquire("y ~ x", rows[:200])  # either all rows buy x, or none
    run = jump.run(rows[200:], mean_budget=0.5)
    assert 0.4 < run[".price"].mean() < 0.6 and run[".price"].nunique() == 2
    assert (jump.run(rows[200:], mean_budget=1)[".price"] == 1).all()
    assert (jump.run(rows[200:], mean_budget=0)[".price"] == 0).all()


@pytest.mark.long
def test_rows_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(14), 20)  # neighbours in `key` are of the other class
    rows = pd.DataFrame({"key": patient + 0.05 * rng.normal(size=280), "patient": patient})
    rows["y"] = np.where(patient % 2 == 1, "ill", "well")
    single = ld.acquire("y ~ key", rows)
    grouped = ld.acquire("y ~ key", rows, groups="patient")
    assert single.settings["loss"] < 0.4 < 0.6 < grouped.settings["loss"]
    by_array = ld.acquire("y ~ key", rows.drop(columns="patient"), groups=patient)
    assert by_array.settings == grouped.settings


@pytest.mark.parametrize("n_classes", [0, 2])
def test_weights_count_as_copies_in_the_predictor(n_classes):
    rng = np.random.default_rng(0)
    times, X, y = rng.integers(1, 3, 150), rng.normal(size=(150, 4)), rng.integers(0, 2, 150) * 1.0
    how = {"per_class": 1, "pooling": 1e6, "independence": 0.2}
    weighted = mixture.learn(X, y, times.astype(float), n_classes, 0, **how)
    copies = X.repeat(times, 0), y.repeat(times), np.ones(times.sum())
    copied = mixture.learn(*copies, n_classes, 0, **how)
    # The number of rows determines how far the means of classes are shrunken.
    names = ["log_share"] if n_classes else ["mean", "cov", "cross", "y_mean", "y_var"]
    for name in names:
        np.testing.assert_allclose(getattr(weighted, name), getattr(copied, name), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_context_without_information_on_the_class_changes_no_prediction(seed):
    rng, n = np.random.default_rng(seed), 900
    y, block = rng.integers(0, 6, n), rng.integers(0, 4, n)
    context = rng.normal(0.0, 0.1, (n, 4)) + (block[:, None] == np.arange(4))
    shift = rng.normal(0.0, 2.0, (4, 6, 3))[block, y]  # of the features, if the context is known
    X = np.column_stack([context, shift + rng.normal(size=(n, 3))])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    fit = mixture.learn(X, y * 1.0, np.ones(n), 6, 0, per_class=4, pooling=1e6, independence=1.0)
    prior = fit.predict(X.T[:0], np.arange(0), 6)
    from_context = fit.predict(np.ascontiguousarray(X.T[:4]), np.arange(4), 6)
    assert (prior * np.log(prior / from_context)).sum(axis=0).mean() < 0.02
    losses = [
        fit.losses(np.ascontiguousarray(X.T[at]), y, at)[0].mean()
        for at in (np.array([4, 5, 6]), np.arange(7))
    ]
    assert losses[1] < losses[0] - 0.2  # with the features, the context says much


@pytest.mark.long
def test_a_numeric_response_within_several_budgets():
    cars = ld.data("autompg").dropna()
    policy = ld.acquire("mpg ~ .", cars[::2], resources={"minutes": {"weight": 3, "model_year": 1}})
    budget = {"price": 2, "minutes": 3}
    run = policy.run(cars[1::2][:40], budget=budget, trade_off=1e-3)
    assert (run[".price"] <= 2).all() and (run[".minutes"] <= 3).all()
    assert np.corrcoef(run["fit"], cars["mpg"][1::2][:40])[0, 1] > 0.7
    z = (run["fit"] - cars["mpg"][1::2][:40]) / run["se"]
    assert 0.5 < z.std() < 2


def test_next_says_what_to_buy_what_follows_and_when_to_stop():
    heart, table = ld.data("heart"), ld.data("heart_costs").set_index("name")
    policy = ld.acquire("disease ~ .", heart, costs=table["cost"], depends_on=table["needs"])
    step = policy.next({"sex": "male"})
    options = step.options.set_index("feature")
    assert options.loc["st_slope", "unlocks"] == "exercise_angina, st_depression"
    assert options.loc["sex" if "sex" in options.index else "thal", "unlocks"] == "max_heart_rate"
    assert step.buy in str(step) and step.price == options.loc[step.buy, "price"]
    poor = policy.next({}, budget=0.5)
    assert poor.buy is None and str(poor).startswith("Stop: no purchase within the budget is worth")
    known = heart.drop(columns="disease").iloc[[0]]
    assert policy.next(known).buy is None
    assert str(policy.next(known)).startswith("Stop: all features are known\nPrediction: ")
    assert "Saving" not in str(policy.next(known))
    np.testing.assert_allclose(policy.next(known).prediction, policy.predict(known))
    assert "Unlocks" in str(policy.summary())


@pytest.mark.long
def test_update_is_a_fit_on_all_rows():
    rows = blocks(600, 2)
    first = ld.acquire("y ~ .", rows[:400], trade_off=0.05)
    updated = first.update(rows[400:500]).update(rows[500:], every=1)
    kept = {name: first.settings[name] for name in mixture.TRIED}
    features = first.mixture.features(updated.X)
    fit = mixture.learn(features, updated.y, updated.weight, 2, 0, **kept)
    np.testing.assert_array_equal(updated.mixture.mean, fit.mean)
    assert len(updated.y) == 600 and updated.pending == 0
    # In the units of the first rows, the rows are those of a fit on all.
    whole = ld.acquire("y ~ .", rows)
    scale = whole.design.scale / first.design.scale
    shift = (whole.design.mean - first.design.mean) / first.design.scale
    np.testing.assert_allclose(updated.X, whole.X * scale + shift, atol=1e-9)
    assert first.update(rows[400:410]).pending == 10


@pytest.mark.long
def test_window_and_decay_forget():
    rows = blocks(300, 4)
    first = ld.acquire("y ~ .", rows[:200])
    last = first.update(rows[200:], window=150)
    np.testing.assert_array_equal(last.X[:50], first.X[150:])
    assert len(last.y) == 150
    weight = first.update(rows[200:210], decay=0.9).weight
    np.testing.assert_allclose(weight, [*[0.9**10] * 200, *[1.0] * 10])


def test_drift_is_warned_of(policy):
    same, other = blocks(90, 5), blocks(90, 6)
    other["y"] = np.where(other["y"] == "up", "down", "up")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_after = policy.update(same)
    assert len(same_after.recent) == 90
    with pytest.warns(ld.DataWarning, match="last 90 rows surprise the policy"):
        assert len(policy.update(other).recent) == 0


def test_a_class_of_which_no_row_is_kept_is_warned_of(policy):
    rows = blocks(90, 5)
    up = rows[rows["y"] == "up"][:30]
    with pytest.warns(ld.DataWarning, match="no kept row has the class 'down'.*larger window"):
        policy.update(up, window=30, every=1000)


@pytest.mark.long
def test_curve_and_pictures(policy, tmp_path):
    rows = blocks(40, 7)
    fit = ld.costnet("y ~ .", blocks(500, 0), budget=np.inf)
    curve = policy.curve(rows, [0.02], frontier=fit, myopic=False)
    kinds = curve.groupby("policy", sort=False)
    assert list(kinds.groups) == ["policy", "fixed", "random", "all", "frontier"]
    P = fit.at(budget=5).predict(rows, "prob")
    loss = -np.log(P.to_numpy()[np.arange(40), (rows["y"] == "up").astype(int)]).mean()
    assert curve["loss"].iloc[-1] == pytest.approx(loss)
    fixed = curve[curve["policy"] == "fixed"]
    assert fixed["price"].tolist() == [0, 1, 2, 3, 4, 5] and fixed["loss"].is_monotonic_decreasing
    # The context halves what has to be bought.
    own = curve[curve["policy"] == "policy"].iloc[0]
    assert own["price"] < 3.5 and own["loss"] < np.interp(
        own["price"], *fixed[["price", "loss"]].T.to_numpy()
    )
    assert policy.plot("curve", rows, frontier=fit).get_legend() is not None
    drawn = {text.get_text() for text in policy.plot(depth=2).texts}
    assert any(text.startswith("where\nprice 1") for text in drawn)
    with pytest.raises(ld.ArgumentError, match="needs data"):
        policy.plot("curve")
    with pytest.raises(ld.ArgumentError, match="costnet fit of the same response"):
        policy.curve(rows, [0.1], frontier=ld.costnet("mpg ~ weight", ld.data("autompg")))
    with pytest.raises(ld.ArgumentError, match="costnet fit of the same response"):
        policy.curve(rows, [0.1], frontier=ld.glm("y ~ l1", rows))
    with pytest.raises(ld.ArgumentError, match="myopic must be True or False, not 'no'"):
        policy.curve(rows, [0.02], myopic="no")
    assert policy.curve(rows, 0.02, myopic=False).equals(policy.curve(rows, [0.02], myopic=False))
    with pytest.raises(ld.DataError, match="no rows"):
        policy.tree(rows[:0])


@pytest.mark.long
def test_page_asks_the_questions_of_the_tree(policy, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    policy.report(tmp_path / "page.html", blocks(40, 9), depth=3)
    page = (tmp_path / "page.html").read_text()
    assert '"items": ["where"]' in page and page.count("</script>") == 2
    odd = blocks(60, 8).assign(where=lambda f: "</script><b>" + f["where"])
    ld.acquire("y ~ .", odd).report(tmp_path / "odd.html", odd[:20], depth=3)
    assert (tmp_path / "odd.html").read_text().count("</script>") == 2


DOM = """
const made = () => ({children: [], textContent: "", clicks: [],
  append(child) { this.children.push(child); }, replaceChildren() { this.children = []; },
  addEventListener(name, work) { this.clicks.push(work); }});
const known = {};
const document = {createElement: made, getElementById: (id) => known[id] ??= made()};
document.getElementById("tree").textContent = %s;
%s
const last = () => steps.children.at(-1), buttons = () => last().children.slice(1);
const walk = (node) => {  // by every button: the shown text is that of the tree's node
  const shown = [[last().textContent, buttons().map((b) => b.textContent)]];
  node.branches.forEach((branch, k) => {
    buttons()[k].clicks[0]();
    shown.push(...walk(branch[1]));
    known.back.clicks[0]();
  });
  return shown;
};
console.log(JSON.stringify([walk(root), walk(root).length, steps.children.length]));
"""


@pytest.mark.long
@pytest.mark.skipif(which("node") is None, reason="no node is installed to run JavaScript with")
def test_page_walks_through_the_tree(policy, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    policy.report(tmp_path / "page.html", depth=3)
    page = (tmp_path / "page.html").read_text()
    tree, script = re.findall(r"<script[^>]*>\n?(.*?)</script>", page, re.S)
    program = DOM % (json.dumps(tree), script.replace('"use strict";', ""))
    ran = subprocess.run(
        ["node", "-e", program], capture_output=True, text=True, timeout=60, check=True
    )
    shown, count, steps = json.loads(ran.stdout)
    assert count == len(shown) > 5 and steps == 1  # after all steps back, the first question
    assert shown[0] == ["Measure where (price 1).", ["where: left", "where: right"]]
    ends = [text for text, choices in shown if not choices]
    assert all(("Stop." in text or "ends here" in text) and "Prediction: " in text for text in ends)
    drawn = str(policy.tree(depth=3))
    for _, choices in shown:
        assert choices == ["Done"] or all(f"{text}:" in drawn for text in choices)


def test_trees_and_curves_of_numbers():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    rows["y"] = 3.0 * rows["a"] + 0.1 * rng.normal(size=80)
    policy = ld.acquire("y ~ a + b", rows[:60], trade_off=0.01)
    curve = policy.curve(rows[60:], [0.01], myopic=False).set_index("policy")
    assert curve.loc["policy", "loss"].min() < rows["y"].var() / 9
    assert " ± " in str(policy.tree())


def test_thresholds_of_trees_have_few_digits_and_lie_between():
    assert tree._between(1.0, 2.0) == "2" and tree._between(0.123456, 0.123459) == "0.123457"
    assert float(tree._between(1.0, np.nextafter(1.0, 2.0))) == 1.0
