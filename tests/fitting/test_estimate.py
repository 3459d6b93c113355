"""estimate() against what calls then take."""

import gc
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lodim as ld
from lodim.engine import tiles
from lodim.fitting.fit_model import model_of, prepare
from lodim.sources import read_source

N = 120_000
CALLS = {"gbmap": {"m": 1, "lambda_": 0.01}, "glm": {}, "costnet": {}}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 10))).add_prefix("x")
    signal = frame["x0"] + frame["x1"].abs() + rng.normal(size=N)
    return frame.assign(y=signal, c=np.where(signal > 1, "a", "b"))


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for k in range(3):
        rows[k * 40_000 : (k + 1) * 40_000].to_parquet(folder / f"{k}.parquet", index=False)
    return str(folder / "*.parquet")


def peak_of(call):
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize("formula", ["y ~ . - c", "c ~ . - y"])
@pytest.mark.parametrize("name", CALLS)
def test_memory_is_within_a_fifth_of_what_is_taken(rows, files, name, formula):
    model, more = getattr(ld, name), CALLS[name]
    for data in (rows, files):
        model(formula, rows[:66_000], **more)  # what is compiled and loaded takes memory too
        expected = ld.estimate(model, formula, data, **more)
        peak = peak_of(lambda data=data: model(formula, data, **more))
        assert expected.memory_bytes == pytest.approx(peak, rel=0.2)
        assert (expected.rows, expected.columns, expected.scratch) == (N, 10, None)
        assert f"{N:,}" in str(expected) and expected._repr_html_()


@pytest.mark.long
def test_the_size_of_the_features_and_the_passes_are_what_they_come_to(rows, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    df = rows[["x0", "x1", "y"]].assign(k=rng.choice(list("uvw"), N), w=1.0)
    df.loc[::1000, "x0"] = np.nan
    df[:70_000].to_parquet(tmp_path / "a.parquet")
    df[70_000:].to_parquet(tmp_path / "b.parquet")
    passes, piece = [], type(read_source(tmp_path).pieces[0])
    read = piece.read
    monkeypatch.setattr(piece, "read", lambda p, names: passes.append(p.place) or read(p, names))
    for formula, more in (
        ("y ~ x1", {}),
        ("y ~ . - x0 - w", {}),
        ("y ~ x0 + k", {"missing": "drop"}),
        ("y ~ x0 + x1", {"missing": "indicator"}),
        ("y ~ bs(x1, df=5) + k", {"dtype": "float32", "weights": "w"}),
    ):
        expected = ld.estimate(ld.gbmap, formula, tmp_path, **more, m=1, lambda_=1.0)
        passes.clear()
        arguments = more | {"m": 1, "lambda_": 1.0}
        batch = prepare(model_of(ld.gbmap), formula, str(tmp_path), arguments).batch
        dropped = more.get("missing") == "drop"  # how many rows are is known of some alone
        assert expected.tile_bytes == pytest.approx(batch.X.nbytes, rel=2e-3 * dropped), formula
        assert expected.rows == pytest.approx(batch.n, rel=1e-3) and expected.columns > 0
        assert expected.source_passes == passes.count(passes[0]), formula


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_of_rows_that_are_all_keyed(rows, dtype):
    how = {"m": 1, "lambda_": 0.01, "dtype": dtype}
    few = rows[:40_000]
    ld.gbmap("y ~ . - c", few, **how)  # compiles all kernels that the measured fit uses
    expected = ld.estimate(ld.gbmap, "y ~ . - c", few, **how)
    peak = peak_of(lambda: ld.gbmap("y ~ . - c", few, **how))
    assert expected.memory_bytes == pytest.approx(peak, rel=0.2)


@pytest.mark.long
def test_passes_over_the_features_lie_between_those_that_are_told(rows):
    fit = ld.gbmap("y ~ . - c", rows[:70_000], m=4, lambda_=0.01)
    least, most = ld.estimate(ld.gbmap, "y ~ . - c", rows, m=4, lambda_=0.01).tile_passes
    assert least <= fit.log["n_eval"].sum() + 4 <= most


def test_scratch_space_samples_and_what_needs_all_rows(files, tmp_path, monkeypatch):
    told = ld.estimate(ld.glm, "y ~ x0 + x1", files, control={"scratch": str(tmp_path)})
    assert told.scratch == str(tmp_path) and str(tmp_path) in str(told).replace("\n", "")
    kept = ld.estimate(ld.glm, "y ~ x0 + x1", files)
    assert kept.memory_bytes - told.memory_bytes == kept.tile_bytes == told.tile_bytes
    drawn = ld.estimate(ld.glm, "y ~ x0 + x1", files, sample=1000)
    assert drawn.rows == 1000 and drawn.tile_bytes == tiles.count(1000) * 2 * 64 * 8
    assert ld.estimate(ld.glm, "y ~ x0 + x1", files, sample=N + 1).rows == N
    assert "sample=" not in str(ld.estimate(ld.melm, "c ~ x0 + x1", files))
    monkeypatch.setattr("lodim.fitting.estimate.fits_memory", lambda *_: False)
    assert "sample=" in str(ld.estimate(ld.melm, "c ~ x0 + x1", files))


def test_rows_in_the_order_of_the_response_and_of_no_known_number(rows, tmp_path):
    """The sample has rows of both classes; lazy rows are counted."""
    small = rows[:40_000].sort_values("c")
    small.to_parquet(tmp_path / "sorted.parquet", index=False)
    for data in (tmp_path / "sorted.parquet", pl.from_pandas(small).lazy(), small):
        told = ld.estimate(ld.glm, "c ~ x0 + x1", data)
        assert told.rows == 40_000 and told.looked_at == "16,384 of 40,000 rows"
    weights = np.ones(40_000)
    assert ld.estimate(ld.glm, "y ~ x0", small, weights=weights).rows == 40_000
    assert (
        ld.estimate(ld.glm, "y ~ x0", tmp_path / "sorted.parquet", weights=weights).rows == 40_000
    )


def test_what_a_call_refuses_is_refused(rows):
    with pytest.raises(ld.FormulaError, match="no column 'z'"):
        ld.estimate(ld.glm, "y ~ z", rows)
    with pytest.raises(ld.DataError, match="the data has no rows"):
        ld.estimate(ld.glm, "y ~ x0", rows[:0])
    with pytest.raises(ld.ArgumentError, match="has no argument"):
        ld.estimate(ld.glm, "y ~ x0", rows, nonsense=1)
    with pytest.raises(ld.ArgumentError, match="model function"):
        ld.estimate(ld.data, "y ~ x0", rows)


def test_too_little_space_and_passes_of_several_classes(rows, tmp_path, monkeypatch):
    classes = rows[:200].assign(k=np.resize(["u", "v", "w"], 200))
    assert ld.estimate(ld.costnet, "k ~ x0", classes).tile_passes is None
    monkeypatch.setattr("lodim.fitting.estimate.free_memory", lambda: 10)
    assert "too little space" in str(ld.estimate(ld.glm, "y ~ x0", rows[:200]))
