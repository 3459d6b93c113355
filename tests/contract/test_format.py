"""Files of format 1, which lodim 0.1.0 writes: later versions read them and predict the same.

`python tests/contract/test_format.py` writes the files that are not there yet, with the predictions
that the tests expect. It never replaces a file: that would hide a change of the format.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting import storage
from lodim.fitting.saved import STORED

FOLDER = Path(__file__).parent / "format_1"
PREDICTIONS = FOLDER / "predictions.json"
STEP = 6  # every sixth row of a data set is a training row
N_NEW = 5
PRICES = {"age": 1.0, "max_heart_rate": 1.0, "st_depression": 1.0, "exercise_test": 86.3}
NEEDS = {"max_heart_rate": "exercise_test", "st_depression": "exercise_test"}
CASES = {  # data set and fit of each file
    "gbmap": (
        "autompg",
        lambda df: ld.gbmap("mpg ~ weight + origin", df, m=2, refit="none", threads=1),
    ),
    "proset": ("iris", lambda df: ld.proset("species ~ .", df, lambda_v=0.1, threads=1)),
    "costnet": (
        "heart",
        lambda df: ld.costnet(
            "disease ~ age + max_heart_rate + st_depression",
            df,
            costs=PRICES,
            depends_on=NEEDS,
            n_lambda=10,
            threads=1,
        ),
    ),
    "melm": ("iris", lambda df: ld.melm("species ~ .", df, gamma=1.0, n_starts=1, threads=1)),
    "ripr": ("iris", lambda df: ld.ripr("species ~ .", df, threads=1)),
    "ripr_fits": (
        "iris",
        lambda df: ld.ripr("species + petal_width ~ sepal_length + sepal_width", df, threads=1),
    ),
    "glm": ("autompg", lambda df: ld.glm("mpg ~ bs(weight, df=4) + C(origin, Sum)", df)),
    "acquire": (
        "heart",
        lambda df: ld.acquire(
            "disease ~ age + max_heart_rate + st_depression",
            df,
            costs=PRICES,
            depends_on=NEEDS,
            trade_off=0.001,
        ),
    ),
    "conformal": ("autompg", lambda df: ld.conformal(ld.glm, "mpg ~ weight", df, method="split")),
}
cases = pytest.mark.parametrize("name", CASES)


def file_of(name):
    """Return the path of a stored file."""
    return FOLDER / f"{name}.lodim"


def fitted(name):
    """Fit what a file holds."""
    data, fit = CASES[name]
    return fit(ld.data(data).iloc[::STEP].reset_index(drop=True))


def predictions(name, fit):
    """Predict rows that are no training rows, as a table of numbers."""
    df = ld.data(CASES[name][0])
    new = df.iloc[1 :: len(df) // STEP // N_NEW * STEP][:N_NEW]
    if name == "acquire":
        return fit.run(new).select_dtypes("number").to_numpy(float)
    return pd.DataFrame(fit.predict(new)).to_numpy(float)


def layout(value, at="state"):
    """Return the keys of a state, each with the type of its value."""
    if isinstance(value, np.ndarray):
        return {f"{at}: {value.ndim} dimensions of {value.dtype}"}
    parts = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        parts = {str(k): one for k, one in enumerate(value)}
    found = {f"{at}: {type(value).__name__}"}
    for key, one in parts.items():
        found |= layout(one, f"{at}.{key}" if isinstance(value, dict) else f"{at}[]")
    return found


def write_missing_files():
    """Write the files that are not there yet, and the predictions of their fits."""
    FOLDER.mkdir(exist_ok=True)
    known = json.loads(PREDICTIONS.read_text()) if PREDICTIONS.exists() else {}
    for name in CASES:
        if not file_of(name).exists():
            fit = fitted(name)
            fit.save(file_of(name))
            known[name] = predictions(name, fit).tolist()
    lines = [f"{json.dumps(name)}: {json.dumps(table)}" for name, table in known.items()]
    PREDICTIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def test_every_model_and_result_has_a_file():
    assert set(CASES) == STORED.keys()
    assert {file.stem for file in FOLDER.glob("*.lodim")} == set(CASES)


@cases
def test_a_file_predicts_as_when_it_was_written(name):
    fit, expected = ld.load(file_of(name)), json.loads(PREDICTIONS.read_text())[name]
    found = predictions(name, fit)
    assert len(found) == N_NEW and np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@cases
def test_a_fit_from_a_file_prints(name, capsys):
    fit = ld.load(file_of(name))
    print(fit)
    call = (fit.fit if name == "conformal" else fit).call
    assert " ".join(call.split()) in " ".join(capsys.readouterr().out.split())


@cases
def test_the_format_has_not_changed(name, tmp_path):
    fitted(name).save(tmp_path / "new.lodim")
    new, old = (storage.read(path)[1] for path in (tmp_path / "new.lodim", file_of(name)))
    assert layout(new) == layout(old)


if __name__ == "__main__":
    write_missing_files()
