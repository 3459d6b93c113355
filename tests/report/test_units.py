"""Labels say per SD, or per unit if features are not standardized."""

import numpy as np
import openpyxl
import pandas as pd
import pytest

import lodim as ld

FITS = {
    "gbmap": (ld.gbmap, {"m": 2, "lambda_": 0.1}, "effects"),
    "proset": (ld.proset, {"lambda_v": 0.01}, "weights"),
    "costnet": (ld.costnet, {"n_lambda": 5, "budget": 2}, "path"),
}


@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("standardize", [True, False])
def test_labels_say_per_sd_only_of_standardized_features(name, standardize, tmp_path):
    model, arguments, kind = FITS[name]
    cars = ld.data("autompg")
    call = {"formula": "mpg ~ weight + model_year", "threads": 1, "standardize": standardize}
    fit = model(data=cars, **call, **arguments)
    labels = [fit.plot(kind), ld.bootstrap(fit, cars, n=2).plot()]
    labels = [ax.get_xlabel() + ax.get_ylabel() for ax in labels]
    labels += [p.x for p in fit._pictures(None) if p.y == "feature"]
    if name == "gbmap":
        labels.append(ld.path(ld.gbmap, data=cars, m=1, n_lambda=2, **call).plot().get_ylabel())
        labels.append(fit.plot("local", data=cars).get_xlabel())
    if name == "proset":
        fit.to_excel(tmp_path / "fit.xlsx")
        sheet = openpyxl.load_workbook(tmp_path / "fit.xlsx")["features"]
        labels.append(" ".join(str(cell.value) for row in sheet.rows for cell in row))
    unit = "per SD" if standardize else "per unit"
    assert len(labels) >= 3 and all(unit in label for label in labels)
    words = f"{fit.summary()} {fit._in_words()} {[p.note for p in fit._pictures(None)]}"
    assert ("SD" in words, "standard deviation" in words) == (standardize, standardize)


def test_notes_on_rows_that_are_not_shown_are_sentences_for_one_row_too():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 21)), columns=[f"x{k}" for k in range(21)])
    wide["y"], wide["k"] = wide.sum(axis=1), np.where(wide["x0"] > 0, "p", "q")
    effects = ld.gbmap("y ~ . - k", wide, m=1, lambda_=1e-4)
    assert "Not shown: 1 smaller effect; see tidy()." in " ".join(str(effects.summary()).split())
    loadings = ld.melm("k ~ . - y", wide, gamma=1.0, n_starts=1, control={"calibrate": False})
    assert "Not shown: 1 smaller loading; see tidy()." in " ".join(str(loadings.summary()).split())
