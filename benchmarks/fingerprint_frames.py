"""Frames of the cases of fingerprints.py: seeded, or shipped with lodim."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld


@cache
def mixed(n=240, gaps=0.0):
    """Return numbers, factors and dates, with responses of all kinds, weights and groups."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, 4))
    arm = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.3, 0.2])
    size = rng.choice(["S", "M", "L"], size=n)
    score = x[:, 0] - np.abs(x[:, 1]) + 0.5 * (arm == "b") + 0.4 * (size == "L")
    noisy = score + rng.logistic(size=n) / 2
    frame = pd.DataFrame(x, columns=["x1", "x2", "x3", "x4"])
    frame["arm"], frame["flag"] = arm, rng.random(n) < 0.3
    frame["size"] = pd.Categorical(size, categories=["S", "M", "L"], ordered=True)
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    frame["age"] = rng.integers(20, 80, n)
    frame["y"] = 3.0 * score + rng.normal(size=n)
    frame["sick"] = np.where(noisy > 0.0, "yes", "no")
    frame["kind"] = np.array(["low", "mid", "top"])[np.digitize(noisy, [-1.0, 0.5])]
    frame["count"] = rng.poisson(np.exp(0.3 * score))
    frame["amount"] = rng.gamma(2.0, np.exp(0.3 * score))
    frame["trials"] = rng.integers(5, 20, n)
    frame["share"] = rng.binomial(frame["trials"], 1.0 / (1.0 + np.exp(-score))) / frame["trials"]
    frame["w"], frame["o"] = rng.integers(0, 4, n).astype(float), 0.3 * rng.normal(size=n)
    frame["id"] = rng.integers(0, 40, n)
    for name in ("x1", "x3", "arm"):
        frame.loc[rng.random(n) < gaps, name] = None
    return frame


@cache
def wide():
    """Return more columns than rows."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(60, 150))
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(150)])
    score = x[:, 0] - x[:, 1] + np.abs(x[:, 2])
    return frame.assign(y=score + rng.normal(size=60), c=np.where(score > 0.5, "b", "a"))


@cache
def tall():
    """Return more rows than the 65,536 from which on models pass over spans of rows."""
    rng = np.random.default_rng(13)
    n = 66_000
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    score = frame["x1"] + np.maximum(frame["x2"], 0.0)
    frame["arm"], frame["id"] = rng.choice(["a", "b"], size=n), rng.integers(0, 500, n)
    frame["w"] = rng.integers(1, 4, n).astype(float)
    frame["y"] = score + rng.normal(size=n)
    frame["c"] = np.where(score + rng.logistic(size=n) > 0.5, "b", "a")
    frame["kind"] = np.digitize(frame["y"], [-0.5, 1.0]).astype(str)
    return frame.assign(count=rng.poisson(np.exp(0.2 * score)))


def views():
    """Return rows of two informative views, in an order in time."""
    frame = ld.informative_views(2, 160, 1, seed=3, M=4)
    return frame.assign(time=np.arange(len(frame)), day=np.arange(len(frame)) // 8)


@cache
def broad():
    """Return more than 65,536 rows of 64 columns."""
    rng = np.random.default_rng(14)
    x = rng.normal(size=(66_000, 64))
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(64)])
    return frame.assign(y=x[:, 0] + np.abs(x[:, 1]) + rng.normal(size=len(x)))


@cache
def hundreds():
    """Return more columns than costnet's searches look at."""
    rng = np.random.default_rng(15)
    x = rng.normal(size=(120, 520))
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(520)])
    return frame.assign(c=np.where(x[:, 0] + x[:, 1] + rng.logistic(size=120) > 0.0, "b", "a"))


def columns():
    """Return columns of many types, with gaps."""
    frame = mixed()[["y", "sick", "x1", "x2", "age", "arm", "day", "w"]].copy()
    frame["whole"] = frame["age"].astype("Int64").mask(frame["x1"] > 1.5)
    frame["bit"] = (frame["x2"] > 0.0).astype("boolean").mask(frame["x1"] < -1.5)
    frame["exact"] = [Decimal(k) / 4 for k in frame["age"].tolist()]
    frame["number"] = frame["x2"].astype("float32").astype(object).where(frame["x2"] < 2.0, None)
    frame["date"] = frame["day"].dt.date
    frame["written"] = frame["day"].dt.strftime("%Y-%m-%d")
    frame["zone"] = frame["day"].dt.tz_localize("UTC")
    frame["month"] = frame["day"].dt.to_period("M")
    frame["code"] = pd.Categorical(frame["age"] % 3)
    return frame.assign(bool=frame["x1"] > 0.0)


def twins():
    """Return columns that are linear combinations of others."""
    frame = mixed()
    return frame.assign(x5=2.0 * frame["x1"], x6=frame["x2"] + frame["x3"])


FRAMES: dict[str, Callable[[], pd.DataFrame]] = {
    "mixed": mixed,
    "gaps": partial(mixed, gaps=0.08),
    "few": lambda: mixed()[:45],
    "thousands": partial(mixed, 5000),
    "columns": columns,
    "broad": broad,
    "hundreds": hundreds,
    "wide": wide,
    "wide kinds": lambda: wide().assign(c=np.digitize(wide()["y"], [-1.0, 1.0]).astype(str)),
    "tall": tall,
    "views": views,
    "twins": twins,
    "monitoring": lambda: ld.monitoring(150, 16, 1, signals=5, alternatives=True),
    "separated": lambda: mixed().assign(sick=np.where(mixed()["x1"] > 0.2, "yes", "no")),
}


def frame_of(name):
    """Return a frame of FRAMES, or one that comes with lodim."""
    return FRAMES[name]() if name in FRAMES else ld.data(name)


def elsewhere(place, frame, folder):
    """Return the rows of a frame as another library's, or write three files and name them."""
    if place in ("polars", "lazy"):
        import polars

        found = polars.from_pandas(frame)
        return found.lazy() if place == "lazy" else found
    if place == "arrow":
        import pyarrow

        return pyarrow.Table.from_pandas(frame)
    if place == "dict":
        return {name: frame[name].tolist() for name in frame}
    if place == "dask":
        import dask.dataframe

        return dask.dataframe.from_pandas(frame, npartitions=3)
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
        path = Path(folder) / f"rows-{k}.{place}"
        write = frame.iloc[rows].to_csv if place == "csv" else frame.iloc[rows].to_parquet
        write(path, index=False)
    return str(Path(folder) / f"rows-*.{place}")
