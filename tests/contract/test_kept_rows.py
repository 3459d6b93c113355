"""What saved fits hold of single training rows is what README and help say, looked up in files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting import storage as store
from lodim.fitting.registry import MODELS

N, FEATURES = 300, ["a", "b", "c"]


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(N, 3)), columns=FEATURES)
    df.index = [f"patient {i}" for i in range(N)]
    df["y"] = df["a"] + df["b"] ** 2 + 0.1 * rng.normal(size=N)
    df["k"] = np.where(df["a"] + 0.3 * rng.normal(size=N) > 0, "yes", "no")
    return df


def contents(fit, folder):
    """The state of a fit's file, all numbers in it, and all text."""
    fit.save(folder / "fit")
    numbers, text = [], []

    def walk(value):
        if isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                walk(one)
        elif isinstance(value, str):
            text.append(value)
        elif value is not None:
            numbers.append(np.ravel(np.asarray(value, float)))

    state = store.read(folder / "fit")[1]
    walk(state)
    return state, np.concatenate(numbers), text


def share(values, numbers):
    """The share of some values that are among numbers, as they are or in standard units."""
    values = np.asarray(values, float)
    standard = (values - values.mean()) / values.std()
    found = [np.isclose(numbers[:, None], v, rtol=1e-9, atol=0).any(axis=0)
             for v in (values, standard)]  # fmt: skip
    return np.any(found, axis=0).mean()


def shares(df, numbers):
    return {name: share(df[name], numbers) for name in (*FEATURES, "y")}


@pytest.mark.parametrize("model", ["costnet", "gbmap", "glm"])
def test_no_row(df, tmp_path, model):
    arguments = {
        "costnet": {},
        "gbmap": {"m": 2, "lambda_": 0.1, "control": {"reference_rows": 0}},
        "glm": {"control": {"diagnostic_rows": 0}},
    }
    threads = {} if model == "glm" else {"threads": 1}
    fit = getattr(ld, model)("y ~ a + b + c", df, **threads, **arguments[model])
    _, numbers, text = contents(fit, tmp_path)
    assert shares(df, numbers) == dict.fromkeys((*FEATURES, "y"), 0.0)
    assert not any("patient" in t for t in text)


def test_gbmap_holds_responses_and_embedding(df, tmp_path):
    fit = ld.gbmap("y ~ a + b + c", df, m=2, lambda_=0.1, threads=1)
    state, numbers, text = contents(fit, tmp_path)
    assert shares(df, numbers) == dict.fromkeys(FEATURES, 0.0) | {"y": 1.0}
    np.testing.assert_allclose(state["reference"]["embedding"], fit.predict(df, "embedding"))
    assert not any("patient" in t for t in text)


def test_glm_holds_labels_means_and_residuals(df, tmp_path):
    state, numbers, text = contents(ld.glm("y ~ a + b + c", df), tmp_path)
    kept = state["diagnostics"]
    assert shares(df, numbers) == dict.fromkeys((*FEATURES, "y"), 0.0)
    assert kept["label"] == list(df.index) == [t for t in text if "patient" in t]
    scale = np.sqrt(state["log"]["dispersion"] * (1.0 - np.asarray(kept["leverage"])))
    np.testing.assert_allclose(kept["fitted"] + kept["deviance"] * scale, df["y"])


@pytest.mark.long
def test_proset_holds_prototypes_and_a_typical_row(df, tmp_path):
    fit = ld.proset("k ~ a + b + c", df, threads=1)
    state, numbers, text = contents(fit, tmp_path)
    prototypes = state["estimates"]
    active = [FEATURES[j] for j in prototypes["features"]]
    labels = [*state["labels"], state["typical"]["label"]]
    assert {t for t in text if "patient" in t} == set(labels)
    assert 0 < len(set(labels)) < N / 2
    standard = (df[active] - fit.design.mean[prototypes["features"]]) / fit.design.scale[
        prototypes["features"]
    ]
    np.testing.assert_allclose(prototypes["x"], standard.loc[state["labels"]], rtol=1e-5)
    for name in set(FEATURES) - set(active):
        assert share(df[name], numbers) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("most", [10, 10_000])
def test_melm_holds_the_coordinates_of_all_rows(df, tmp_path, most):
    control = {"reference_rows": most}
    fit = ld.melm("k ~ a + b + c", df, gamma=1.0, threads=1, control=control)
    state, numbers, text = contents(fit, tmp_path)
    assert shares(df, numbers) == dict.fromkeys((*FEATURES, "y"), 0.0)
    assert not any("patient" in t for t in text)
    d = state["estimates"]["rule"]["densities"]
    Z = fit.predict(df, "projection").to_numpy()
    for c, level in enumerate(fit.levels):
        mine = slice(d["start"][c], d["start"][c + 1])
        U = d["U"][mine].transpose(0, 2, 1)[d["w"][mine] > 0]
        back = np.linalg.solve(d["root"][c], U.T).T
        rows = Z[(df["k"] == level).to_numpy()]
        np.testing.assert_allclose(np.sort(back[:, 0]), np.sort(rows[:, 0]), rtol=1e-6)


def test_ripr_holds_all_rows(df, tmp_path):
    fit = ld.ripr("k ~ a + b + c", df, threads=1)
    state, numbers, _ = contents(fit, tmp_path)
    used = [FEATURES[j] for j in state["estimates"]["features"]]
    assert state["labels"] == list(df.index)
    assert {name: share(df[name], numbers) for name in used} == dict.fromkeys(used, 1.0)


def test_the_page_lists_every_model():
    page = (Path(__file__).resolve().parents[2] / "vignettes/basics.py").read_text()
    table = page.split("how to store none")[1].split("# %%")[0]
    assert all(f"# | `{name}` | " in table for name in MODELS)


def test_help_says_it():
    for name in MODELS:
        assert "A saved fit holds" in getattr(ld, name).__doc__
