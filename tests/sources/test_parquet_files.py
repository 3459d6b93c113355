"""Parquet files as a source: what pandas reads of them, in pieces."""

import pickle

import numpy as np
import pandas as pd
import pytest

from lodim.errors import DataError
from lodim.sources.read import read_source

pytest.importorskip("pyarrow")


def read_all(source):
    """All rows of a source as one DataFrame."""
    frames = [chunk.frame for chunk in source.chunks(source.names)]
    return pd.concat(frames, ignore_index=True)


def write_parts(folder, frames, **how):
    """Write frames as part-0.parquet, part-1.parquet, ...; the pattern that matches them."""
    for k, frame in enumerate(frames):
        frame.to_parquet(folder / f"part-{k}.parquet", **how)
    return str(folder / "part-*.parquet")


@pytest.fixture
def frame():
    """Rows of every kind that pandas writes, under an index that is no feature."""
    rng = np.random.default_rng(0)
    n = 1_000
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "x.1": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "whole": rng.integers(9, size=n),
            "nullable": pd.array([1, None] * (n // 2), "Int64"),
            "flag": rng.random(n) < 0.5,
            "text": rng.choice(["u", "v", None], n),
            "level": pd.Categorical(rng.choice(["b", "a"], n), categories=["z", "b", "a"]),
            "grade": pd.Categorical(
                rng.choice(["low", "high"], n), categories=["low", "mid", "high"], ordered=True
            ),
        },
        index=np.arange(n) + 7,
    )


def test_the_rows_of_all_files_are_those_that_pandas_reads(frame, tmp_path):
    pattern = write_parts(tmp_path, [frame[:300], frame[300:]], row_group_size=70)
    source = read_source(pattern)
    whole = pd.read_parquet(sorted(tmp_path.glob("*.parquet"))).reset_index(drop=True)
    assert source.n == 1_000 and source.names == tuple(frame.columns)
    pd.testing.assert_frame_equal(read_all(source), whole)
    again = pickle.loads(pickle.dumps(source))
    pd.testing.assert_frame_equal(read_all(again), whole)


def test_a_missing_column_is_said_with_its_file(frame, tmp_path):
    pattern = write_parts(tmp_path, [frame, frame.drop(columns="flag"), frame])
    with pytest.raises(DataError, match=r"part-1\.parquet lacks 'flag', which .*part-0\.parquet"):
        read_source(pattern)
