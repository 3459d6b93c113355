"""datasets: what the list, the files and the README say agrees, here and in a wheel."""

import configparser
import keyword
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype

from lodim import datasets
from lodim.errors import ArgumentError, LodimError

FOLDER = Path(__file__).parents[2] / "data"
INDEX = datasets.data()
NAMES = INDEX["name"].tolist()
PRICED = [name for name in NAMES if (FOLDER / f"{name}_costs.csv").exists()]


def test_the_list():
    assert list(INDEX) == ["name", "n", "p", "response", "task", "title"]
    assert len(NAMES) >= 8 and sorted(set(NAMES)) == NAMES
    assert set(INDEX["task"]) == {"regression", "binary", "multiclass"}
    prices = [f"{name}_costs" for name in PRICED]
    assert sorted(p.stem for p in FOLDER.glob("*.csv")) == sorted([*NAMES, *prices, "index"])


@pytest.mark.parametrize("name", NAMES)
def test_each_set_is_as_listed(name):
    df, row = datasets.data(name), INDEX.set_index("name").loc[name]
    assert df.shape == (row["n"], row["p"] + 1)
    assert df.columns[0] == row["response"]
    assert all(c.isidentifier() and c == c.lower() and not keyword.iskeyword(c) for c in df)
    response, regression = df[row["response"]], row["task"] == "regression"
    assert is_numeric_dtype(response) == regression
    assert regression or (response.nunique() == 2) == (row["task"] == "binary")
    assert not response.isna().any()


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_states_source_licence_and_sizes(name):
    row = INDEX.set_index("name").loc[name]
    start = f"| `{name}` | {row['n']} | {row['p']} | `{row['response']}` | {row['task']} | "
    (line,) = [x for x in (FOLDER / "README.md").read_text("utf-8").splitlines() if start in x]
    assert "doi:10." in line and ("CC BY 4.0" in line or "BSD 3-Clause" in line)


@pytest.mark.parametrize("name", PRICED)
def test_a_price_list_names_every_feature_and_what_it_needs(name):
    prices, df = datasets.data(f"{name}_costs"), datasets.data(name)
    assert list(prices) == ["name", "cost", "needs"] and prices["name"].is_unique
    assert (prices["cost"] > 0).all()
    shared = set(prices["needs"].dropna())
    assert set(prices["name"]) == set(df.columns[1:]) | shared
    assert not prices.set_index("name").loc[sorted(shared), "needs"].notna().any()
    assert f"{name}_costs" in (FOLDER / "README.md").read_text("utf-8")


def test_prices_of_heart_are_those_that_turney_states():
    """In full alone, with the discount after another of the group; the sum is charged once."""
    prices = datasets.data("heart_costs").set_index("name")
    shared = prices["needs"].map(prices["cost"]).fillna(0.0)
    stated = dict(
        age=1, sex=1, chest_pain=1, resting_bp=1, cholesterol=7.27, fasting_sugar=5.20,
        resting_ecg=15.50, max_heart_rate=102.90, exercise_angina=87.30, st_depression=87.30,
        st_slope=87.30, vessels=100.90, thal=102.90,
    )  # fmt: skip
    full = (prices["cost"] + shared)[list(stated)]
    np.testing.assert_allclose(full, list(stated.values()))
    assert prices.loc["cholesterol", "cost"] == 5.17 and prices.loc["thal", "cost"] == 1


def test_known_values_of_heart():
    df = datasets.data("heart")
    assert df["disease"].value_counts().to_dict() == {"absent": 164, "present": 139}
    assert df.isna().sum().loc[lambda s: s > 0].to_dict() == {"vessels": 4, "thal": 2}
    assert df["age"].mean() == pytest.approx(54.438944)
    assert df["cholesterol"].mean() == pytest.approx(246.693069)
    assert pd.crosstab(df["thal"], df["disease"])["present"].to_dict() == {
        "fixed defect": 12,
        "normal": 37,
        "reversible defect": 89,
    }


def test_known_values():
    auto = datasets.data("autompg")
    assert auto["mpg"].mean() == pytest.approx(23.514573)
    assert auto["horsepower"].isna().sum() == 6
    assert auto["origin"].value_counts().to_dict() == {"USA": 249, "Japan": 79, "Europe": 70}
    assert datasets.data("iris").groupby("species")["petal_length"].mean().round(3).to_dict() == {
        "setosa": 1.462,
        "versicolor": 4.26,
        "virginica": 5.552,
    }
    assert datasets.data("diabetes")["progression"].mean() == pytest.approx(152.13348)
    credit = datasets.data("german_credit")
    assert credit["credit_risk"].value_counts().to_dict() == {"good": 700, "bad": 300}
    assert "none" in set(credit["own_telephone"])  # a level, not a missing value


def test_equal_to_scikit_learn():
    sets = pytest.importorskip("sklearn.datasets")
    theirs = sets.load_diabetes(as_frame=True, scaled=False).frame.to_numpy()
    np.testing.assert_allclose(
        datasets.data("diabetes").to_numpy(), np.roll(theirs, 1, axis=1), rtol=1e-15
    )
    for name, load in (("wine", sets.load_wine), ("iris", sets.load_iris)):
        X, y = load(return_X_y=True)
        ours = datasets.data(name)
        np.testing.assert_array_equal(ours.iloc[:, 1:].to_numpy(), X)
        assert pd.crosstab(ours.iloc[:, 0], y).gt(0).to_numpy().sum() == 3


def test_each_call_reads_afresh():
    first = datasets.data("iris")
    first.iloc[:, 1:] = 0
    assert datasets.data("iris")["petal_length"].max() == 6.9


def test_unknown_name():
    with pytest.raises(ArgumentError, match=r"'autompgs'\. Did you mean 'autompg'") as caught:
        datasets.data("autompgs")
    assert all(name in str(caught.value) for name in NAMES)
    with pytest.raises(LodimError):
        datasets.data("../README")
    with pytest.raises(LodimError):
        datasets.data(3)


def test_the_folders_are_those_of_a_wheel_and_of_a_checkout(tmp_path, monkeypatch):
    config = configparser.ConfigParser()
    config.read(FOLDER.parent / "setup.cfg")
    assert "lodim.datasets.csv = data" in config["options"]["package_dir"]
    assert "*.csv" in config["options.package_data"]["lodim.datasets.csv"]
    installed, checkout = datasets._FOLDERS
    package = Path(datasets.__file__).resolve().parent
    assert installed == package / "csv" and checkout == package.parents[2] / "data"
    monkeypatch.setattr(datasets, "_FOLDERS", (tmp_path,))
    with pytest.raises(FileNotFoundError, match="not installed"):
        datasets.data()


def test_all_sets_together_stay_small():
    assert sum(f.stat().st_size for f in FOLDER.iterdir() if f.is_file()) < 1_000_000
