"""What proset prints and refuses: read as a new user reads it."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld


@pytest.fixture(scope="module")
def cells():
    return ld.data("breast_cancer").iloc[::3]


@pytest.fixture(scope="module")
def fit(cells):
    return ld.proset("diagnosis ~ .", cells, lambda_v=0.03, threads=1)


def test_summary_lists_the_active_features_alone(fit):
    text = str(fit.summary())
    active = fit.tidy().query("estimate > 0")["term"]
    listed = text.split("Active features\n")[-1].split("Weight: inverse")[0]
    assert all(name in listed for name in active)
    assert sum(name in listed.split() for name in fit.design.names) == fit.df < 30
    assert "Not used (weight 0): " in text and f"and {30 - fit.df - 10} more." in text


def test_an_explanation_of_two_classes_is_one_table(fit, cells):
    text = str(fit.explain(cells.iloc[[0]]))
    (head,) = (line for line in text.splitlines() if "Simil." in line)
    assert "p[benign]" in head and "p[malignant]" in head and " * " in head


@pytest.mark.long
def test_an_explanation_of_a_number_is_one_table():
    cars = ld.data("autompg")
    text = str(ld.proset("mpg ~ .", cars, threads=1).explain(cars.iloc[[0]]))
    (head,) = (line for line in text.splitlines() if "Simil." in line)
    assert head.split()[-2:] == ["Adds", "Estimate"] and "prototypes more" not in text


@pytest.mark.long
def test_what_was_not_open_was_not_chosen(cells):
    grid = {"lambda_v": [0.1, 0.03], "lambda_w": [1e-6, 1e-8]}
    best = ld.cv(ld.proset, "diagnosis ~ .", cells, grid=grid, folds=2).best
    assert list(best.chosen) == ["lambda_v", "lambda_w"]
    assert "(lambda_v and lambda_w chosen by" in " ".join(str(best).split())
    grid, open_ = {"lambda_v": [0.1]}, {"n_batches": None, "control": {"max_stages": 2}}
    best = ld.cv(ld.proset, "diagnosis ~ .", cells, grid=grid, folds=2, **open_).best
    assert list(best.chosen) == ["lambda_v", "n_batches"]


@pytest.mark.long
def test_an_open_setting_is_called_none(cells):
    fit = ld.proset("diagnosis ~ worst_radius", cells, lambda_v=None, threads=1)
    assert "lambda_v=None" in str(fit)


def test_path_names_no_feature_without_weight(cells):
    pytest.importorskip("matplotlib")
    path = ld.path(ld.proset, "diagnosis ~ .", cells, n_lambda=5, threads=1)
    named = {text.get_text() for text in path.plot().texts}
    last = path.fits[-1].tidy()
    assert named == set(last.query("estimate > 0")["term"])


@pytest.mark.long
def test_refusals(fit, cells):
    with pytest.raises(ld.LodimError, match="needs a numeric response"):
        ld.proset("diagnosis ~ .", cells, loss="density")
    with pytest.raises(ld.LodimError, match="other values"):
        fit.export(cells.assign(**{n: 0.0 for n in fit.shrink().design.names}))
    cars = ld.proset("mpg ~ weight", ld.data("autompg"), threads=1)
    with pytest.raises(ld.LodimError, match="level must be between 0 and 1, not 90"):
        cars.predict(ld.data("autompg"), "interval", level=90)


def test_export_takes_the_data_of_the_fit(fit, cells):
    frame = fit.export(cells)
    assert isinstance(frame, pd.DataFrame) and {"mean_area"} <= set(frame)
    assert np.isfinite(frame["mean_area"]).all()


def test_what_the_heaviest_prototypes_carry_is_told():
    df = ld.data("heart")
    fit = ld.proset("disease ~ .", df, lambda_v=0.02, threads=1)
    w = fit.export()["prototype_weight"].nlargest(len(fit.estimates))
    share = f"{100 * w[:20].sum() / w.sum():.0f}% of the total weight"
    words = f"The 20 heaviest of {len(w)} prototypes have {share}"
    assert words in str(fit) and words in " ".join(str(fit.summary()).split())
    few = ld.proset("disease ~ age + vessels", df, lambda_v=0.3, threads=1)
    assert len(few.estimates) <= 45 and "heaviest" not in str(few) + str(few.summary())


def test_the_null_model_explains_nothing_and_not_less():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=90), "y": rng.normal(size=90)})
    fit = ld.proset("y ~ x", df, lambda_v=1e3, threads=1)
    assert not len(fit.estimates)
    fit.log["deviance"] = (1 + 1e-15) * fit.log["deviance"]
    text = f"{fit}{fit.summary()}"
    assert "-0.0" not in text and "0.00" in text


def test_rows_of_no_weight_are_not_told_as_filled_in():
    df = ld.data("heart")
    weight = np.where(df["vessels"].isna(), 0.0, 1.0)
    fit = ld.proset("disease ~ .", df, lambda_v=0.3, weights=weight, threads=1)
    text = " ".join(str(fit).split())
    assert "(2 filled in for missing values)" in text  # of thal; without weights 6
