"""alerts: the generator's features are what their names say, and its attrs are the truth."""

import json

import numpy as np
import pandas as pd
import pytest

from lodim.datasets import monitoring as alerts
from lodim.datasets.monitoring import monitoring
from lodim.errors import ArgumentError

GRAPHS = ["mixed", "stars", "chains", "pairs"]


def depth(name, depends_on):
    return max((1 + depth(parent, depends_on) for parent in depends_on.get(name, [])), default=0)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("alternatives", [False, True])
def test_law_of_all(graph, alternatives):
    def make(seed):
        return monitoring(200, 120, seed, graph=graph, alternatives=alternatives)

    df, again = make(3), make(3)
    assert df.shape == (200, 121 + alternatives) and df.columns[-1] == "y"
    assert not df.isna().any().any() and df.columns.is_unique
    assert (df.std() > 0).all()
    assert json.loads(json.dumps(df.attrs)) == df.attrs  # plain: survives copies and comparisons
    assert df.equals(again) and df.attrs == again.attrs and not df.equals(make(4))
    assert set(df.attrs["costs"]) == set(df.columns) - {"y"}
    bought = set(df.attrs["costs"]) | set(df.attrs["alternatives"])
    assert all(bought.issuperset(parents) for parents in df.attrs["depends_on"].values())


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_graph_is_of_its_kind(graph):
    needs = monitoring(20, 125, graph=graph).attrs["depends_on"]
    assert len(needs) == 100
    depths = {depth(name, needs) for name in needs}
    sizes = {len(parents) for parents in needs.values()}
    assert depths == {"stars": {1}, "pairs": {1}, "chains": {1, 2, 3, 4}, "mixed": {1, 2}}[graph]
    assert sizes == {"pairs": {2}}.get(graph, {1})
    full = monitoring(20, 150, graph="mixed").attrs["depends_on"]
    assert {len(parents) for parents in full.values()} == {1, 2}


@pytest.mark.long
@pytest.mark.parametrize("graph", GRAPHS)
def test_the_truth_is_the_response_without_its_noise(graph):
    df = monitoring(4000, 100, seed=2, graph=graph, noise=0.7, signals=20)
    truth = df.attrs
    score = df[truth["informative"]] @ pd.Series(truth["coefficients"]) + truth["intercept"]
    assert list(truth["coefficients"]) == truth["informative"]
    assert score.mean() == pytest.approx(0, abs=1e-9) and score.std() == pytest.approx(1, rel=1e-3)
    assert (df["y"] - score).std() == pytest.approx(0.7, abs=0.03)
    assert abs(np.corrcoef(df["y"] - score, score)[0, 1]) < 0.05
    exact = monitoring(50, 100, seed=2, graph=graph, noise=0, signals=20)
    score = exact[exact.attrs["informative"]] @ pd.Series(exact.attrs["coefficients"])
    np.testing.assert_allclose(exact["y"], score + exact.attrs["intercept"], atol=1e-9)


@pytest.mark.long
def test_labels_are_drawn_from_the_logistic():
    df = monitoring(20_000, 30, seed=1, signals=10, response="alert", noise=0.8)
    score = df[df.attrs["informative"]] @ pd.Series(df.attrs["coefficients"])
    probability = 1 / (1 + np.exp(-(score + df.attrs["intercept"]) / 0.8))
    assert set(df["y"]) == {"alert", "artifact"}
    for low in np.linspace(0, 0.9, 10):
        inside = (low <= probability) & (probability < low + 0.1)
        share = (df["y"][inside] == "artifact").mean()
        assert inside.sum() > 500 and share == pytest.approx(probability[inside].mean(), abs=0.06)


def test_operations_are_what_they_are_called():
    """Each derived column against its plain definition, one row at a time."""
    rng = np.random.default_rng(0)
    x = rng.normal(90, 15, (40, alerts.SAMPLES))
    present = rng.random(x.shape) < 0.6
    present[:, [0, -1]] = True
    present[0, 6:12] = False  # a half minute without a sample
    derived = pd.DataFrame(alerts._derive("hr", x, present, 15.0))
    minutes = np.linspace(-4, 0, alerts.SAMPLES)
    for i, (row, here) in enumerate(zip(x, present, strict=True)):
        got, seen = derived.iloc[i], row[here]
        assert got["hr"] == row[-1] and got["hr_density"] == here.mean()
        assert got["hr_mean"] == pytest.approx(seen.mean())
        assert got["hr_sd"] == pytest.approx(seen.std())
        assert got["hr_range"] == pytest.approx(np.ptp(seen))
        assert got["hr_slope"] == pytest.approx(np.polyfit(minutes[here], seen, 1)[0])
        blocks = [slice(k, k + 6) for k in range(0, alerts.SAMPLES, 6)]
        halves = [(minutes[b].mean(), row[b][here[b]].mean()) for b in blocks if here[b].any()]
        slope = np.polyfit(*np.array(halves).T, 1)[0]
        assert got["hr_mean_slope"] == pytest.approx(slope)
        assert got["hr_mean_slope_sign"] == np.sign(slope)
        assert got["hr_mean_slope_abs"] == pytest.approx(abs(slope))
        assert got["hr_mean_slope_abs_high"] == (abs(slope) > 15 / 4)


def test_ratios_are_of_their_parents():
    df = monitoring(60, 60, seed=5, graph="pairs", signals=15)
    for name, (above, below) in df.attrs["depends_on"].items():
        np.testing.assert_allclose(df[name], df[above] / df[below])


@pytest.mark.long
def test_derived_features_say_what_readings_do_not():
    df = monitoring(5000, 100, seed=1, signals=20, noise=0)
    needs, y = df.attrs["depends_on"], df["y"] - df["y"].mean()
    shares = {}
    for kind, names in (("base", set(df) - set(needs) - {"y"}), ("all", set(df) - {"y"})):
        X = df[sorted(names)] - df[sorted(names)].mean()
        residual = y - X @ np.linalg.lstsq(X.to_numpy(), y.to_numpy(), rcond=None)[0]
        shares[kind] = 1 - residual.var() / y.var()
    assert shares["all"] > 0.999 and 0.2 < shares["base"] < 0.8


@pytest.mark.long
def test_signals_share_what_coupling_says():
    def correlations(coupling):
        df = monitoring(5000, 30, seed=1, signals=30, coupling=coupling)
        return np.abs(np.corrcoef(df.drop(columns="y").T) - np.eye(30))

    near = np.equal.outer(np.arange(30) % 3, np.arange(30) % 3)
    assert correlations(0.0).max() < 0.08
    assert correlations(0.6)[~near].max() < 0.08
    assert correlations(0.6)[near & ~np.eye(30, dtype=bool)].min() > 0.3


def test_each_is_paid_once_in_the_price():
    # bp_per_spo2 needs both readings, bp_mean_slope its mean and the reading of bp
    truth = dict(
        costs=dict(bp_invasive=3.0, bp_cuff=1.0, spo2=1.0, bp_per_spo2=1.0, bp_mean=1.0)
        | dict(bp_mean_slope=1.0),
        depends_on=dict(bp_per_spo2=["bp", "spo2"], bp_mean=["bp"], bp_mean_slope=["bp_mean"]),
        alternatives=dict(bp=["bp_invasive", "bp_cuff"]),
    )
    for informative, price in (
        ([], 0.0),
        (["spo2"], 1.0),
        (["bp_mean_slope"], 3.0),
        (["bp_mean_slope", "bp_per_spo2"], 5.0),
        (["bp_mean_slope", "bp_mean", "bp_invasive"], 5.0),
    ):
        assert alerts._price(truth | dict(informative=informative)) == price
    df = monitoring(50, 100, seed=3, signals=20)
    assert set(df.attrs["costs"].values()) == {1.0}
    assert df.attrs["price"] >= len(df.attrs["informative"])


@pytest.mark.long
def test_two_ways_to_one_signal():
    df = monitoring(5000, 100, seed=6, signals=20, alternatives=True)
    assert df.attrs["alternatives"] == {"bp": ["bp_invasive", "bp_cuff"]}
    assert df.attrs["costs"]["bp_invasive"] == 3 and df.attrs["costs"]["bp_cuff"] == 1
    assert "bp" not in df and df.attrs["depends_on"]["bp_mean"] == ["bp"]
    assert (df["bp_cuff"] - df["bp_invasive"]).std() == pytest.approx(4, abs=0.2)
    for seed in range(8):
        informative = monitoring(20, 40, seed, signals=8, alternatives=True).attrs["informative"]
        assert any(name.startswith("bp_") or "_per_bp" in name for name in informative)


@pytest.mark.parametrize(
    "wrong, words",
    [
        (dict(graph="star"), "graph must be one of mixed, stars, chains, pairs, not 'star'"),
        (dict(response="y"), "response must be one of numeric, alert"),
        (dict(p=24), "p must be from 25 to 225 for 25 signals and graph='mixed', not 24"),
        (dict(p=151, graph="stars", signals=25), "p must be from 25 to 150 for 25 signals"),
        (dict(signals=4, p=8), "signals must be an integer from 5"),
        (dict(noise=-1.0), "noise must be a number from 0"),
        (dict(noise=0.0, response="alert"), "noise must be positive"),
        (dict(coupling=1.5), "coupling must be a number from 0 to 1"),
        (dict(n=0), "n must be an integer from 1"),
        (dict(seed=-1), "seed must be an integer"),
    ],
)
def test_refusals(wrong, words):
    with pytest.raises(ArgumentError) as caught:
        monitoring(**wrong)
    assert words in str(caught.value)
