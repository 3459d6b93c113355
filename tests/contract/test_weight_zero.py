"""Rows of weight zero are counted nowhere: numbers of rows are those without them."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

KEPT = 120


@pytest.fixture(scope="module")
def rows():
    """Rows, of which those beyond KEPT have weight zero, and miss more and have a level more."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    df["g"] = np.where(rng.random(200) < 0.5, "u", "v")
    df["y"] = df["a"] + rng.normal(size=200)
    df["w"] = np.where(np.arange(200) < KEPT, 1.0, 0.0)
    df.loc[[*range(100, 115), *range(130, 150)], "a"] = np.nan
    df.loc[[3, 140, 150, 151], "y"] = np.nan
    df.loc[[4, 5, 160], "w"] = np.nan
    return df


@pytest.mark.parametrize("missing", ["drop", "indicator"])
@pytest.mark.parametrize("in_files", [False, True])
def test_rows_that_are_left_out(rows, tmp_path, missing, in_files):
    data, less = rows, rows[(rows["w"] > 0) | rows["w"].isna()]
    if in_files:
        data = tmp_path / "rows.parquet"
        rows.to_parquet(data)
    arguments = {"weights": "w", "missing": missing}
    one, two = (ld.glm("y ~ a + b", frame, **arguments) for frame in (data, less))
    for name in ("n_dropped", "n_incomplete"):
        assert getattr(one.design, name) == getattr(two.design, name) > 0
    assert one.n + one.design.n_dropped == len(less)
    assert repr(one).splitlines()[2:] == repr(two).splitlines()[2:]
    lacking = {"a": int(rows["a"].isna().sum())} if missing == "drop" else {}
    lacking |= {"y": 4, "weights": 3}
    assert one.design.lacking == lacking
    note = "Rows dropped for missing values: " + ", ".join(
        f"{k} in {n} rows" for k, n in lacking.items()
    )
    assert note in " ".join(str(one.summary()).split())


@pytest.mark.parametrize("name", ["glm", "costnet"])
def test_what_a_fit_says_of_data(rows, tmp_path, name):
    less = rows[rows["w"] > 0]
    fit = getattr(ld, name)("y ~ a + b + g", less, weights="w")
    rows.to_parquet(tmp_path / "rows.parquet")
    for data in (rows, tmp_path / "rows.parquet"):
        assert fit.evaluate(data)["n"].item() == fit.n
    new = rows.assign(a=rows["a"] + 9.0, g=rows["g"].where(rows["w"] > 0, "seen nowhere"))
    for data in (new, new.drop(columns="y")):
        found = fit.check(data)
        assert found.codes == fit.check(data[rows["w"] > 0]).codes
        assert "seen nowhere" not in " ".join(repr(found).split())
    assert fit.check(rows.drop(columns="y")).codes == fit.check(less.drop(columns="y")).codes


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* of the rows were also used to calibrate")
def test_comparisons_and_coverage(rows):
    less = rows[rows["w"] > 0]
    asked = {"models": ["glm", "costnet"], "folds": 3, "weights": "w", "baselines": False}
    every = ld.compare("y ~ a + b", rows[rows["w"].notna()], **asked)
    n = less["y"].notna().sum()
    assert f"Rows: {n} (1 dropped)" in repr(every)
    assert f"No. observations: {n}" in " ".join(every.summary().as_text().split())
    intervals = ld.conformal(ld.glm, "y ~ a + b", less, weights="w")
    for by in (None, "g"):
        pd.testing.assert_frame_equal(
            intervals.coverage(rows, by=by), intervals.coverage(less, by=by)
        )


@pytest.mark.parametrize(
    "call, kind, of_data",
    [
        (lambda df: ld.proset("y ~ a + b", df, weights="w", lambda_v=0.02), "map", True),
        (lambda df: ld.melm("g ~ a + b", df, weights="w", k=2, gamma=0.5), "view", True),
        (lambda df: ld.gbmap("y ~ a + b", df, weights="w", m=2, lambda_=0.1), "embedding", True),
        (lambda df: ld.gbmap("y ~ a + b", df, weights="w", m=2, lambda_=0.1), "drift", True),
        (lambda df: ld.ripr("y ~ a + b", df, weights="w", max_dim=2, k=5), "view", True),
        (lambda df: ld.ripr("y ~ a + b", df, weights="w", max_dim=2, k=5), "view", False),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_pictures(rows, call, kind, of_data):
    """Neither points nor scales; where losses are not drawn, data need no weights at all."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rows = rows.dropna().reset_index(drop=True)
    less = rows[rows["w"] > 0]
    fits = [call(less)] * 2 if of_data else [call(rows), call(less)]
    data = [{"data": frame} for frame in (rows, less)] if of_data else [{}, {}]
    if of_data and kind != "drift":
        fits.append(fits[0])
        data.append({"data": less.drop(columns="w")})
    drawn = []
    for fit, arguments in zip(fits, data, strict=True):
        axes = np.ravel(fit.plot(kind, **arguments))
        parts = [c for ax in axes for c in ax.collections if len(c.get_offsets())]
        drawn.append([[np.asarray(c.get_offsets()), c.get_array(), c.get_clim()] for c in parts])
        drawn[-1] += [[ax.get_xlim(), ax.get_ylim(), ax.get_title()] for ax in axes]
        pyplot.close("all")
    for found in drawn[1:]:
        np.testing.assert_equal(found, drawn[0])


def test_nearest_training_rows(rows):
    rows = rows.dropna().reset_index(drop=True)
    fit = ld.proset("y ~ a + b", rows[rows["w"] > 0], weights="w", lambda_v=0.02)
    found = fit.explain(rows.iloc[[-1]], train=rows).nearest
    pd.testing.assert_frame_equal(
        found, fit.explain(rows.iloc[[-1]], train=rows[rows["w"] > 0]).nearest
    )
    assert (rows["w"][found["row"].astype(int)] > 0).all()
