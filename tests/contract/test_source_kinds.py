"""A fit of data that are not in memory has the bytes of the fit of the frame that they are."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

pl = pytest.importorskip("polars")
dd = pytest.importorskip("dask.dataframe")
ds = pytest.importorskip("pyarrow.dataset")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of every kind of column, in three Parquet files, three CSV files and an Arrow file."""
    folder, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    frame = ld.data("heart")
    frame["flag"] = rng.random(len(frame)) < 0.5
    frame["level"] = pd.Categorical(rng.choice(["b", "a"], len(frame)), categories=["z", "b", "a"])
    frame.to_csv(folder / "whole.csv", index=False)
    frame.to_feather(folder / "whole.arrow")
    for k in range(3):
        part = frame[100 * k : 100 * (k + 1) if k < 2 else None]
        part.to_parquet(folder / f"part-{k}.parquet", row_group_size=70)
        part.to_csv(folder / f"part-{k}.csv", index=False)
    return folder


def parquet(folder):
    files = sorted(folder.glob("*.parquet"))
    return pd.read_parquet(files).reset_index(drop=True), folder


def csv(folder):
    return pd.read_csv(folder / "whole.csv"), str(folder / "part-*.csv")


def arrow(folder):
    return pd.read_feather(folder / "whole.arrow"), folder / "whole.arrow"


def dataset(folder):
    data = ds.dataset(sorted(map(str, folder.glob("*.parquet")))).filter(ds.field("age") > 40)
    return data.to_table(), data


def lazy(folder):
    data = pl.scan_parquet(folder / "*.parquet").filter(pl.col("age") > 40)
    return data.collect(), data


def dask(folder):
    data = dd.from_pandas(pd.read_feather(folder / "whole.arrow"), npartitions=3)
    return data.compute(), data


@pytest.mark.parametrize("kind", [parquet, csv, arrow, dataset, lazy, dask])
def test_the_same_bytes(folder, tmp_path, kind):
    frame, data = kind(folder)
    data = str(folder / "*.parquet") if kind is parquet else data
    for name, given in (("memory", frame), ("source", data)):
        fit = ld.glm(f"{ld.data('heart').columns[0]} ~ .", given, family="binomial")
        fit.save(tmp_path / name)
    assert (tmp_path / "memory").read_bytes() == (tmp_path / "source").read_bytes()
