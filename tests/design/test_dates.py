"""Columns of dates: the functions that make numbers of them, and what is refused."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lodim as ld
from lodim.design import columns
from lodim.design.design import Design
from lodim.design.rows import RowInputs
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError, FormulaError

N = 60
RIGHT = "days(d) + year(d) + month(d) + weekday(d) + days(d, origin='2020-02-29')"
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2019-11-05").as_unit("us")
    df = pd.DataFrame({"d": start + pd.to_timedelta(rng.integers(0, 900, N), unit="D")})
    return df.assign(x=rng.normal(size=N), y=rng.normal(size=N))


def columns_of(formula, data, **options):
    design, batch = Design.learn(formula, data, **options)
    X = tiles.unpack(batch.X, batch.n) * design.scale + design.mean
    return design, dict(zip(design.names, X.T, strict=True))


def expected_of(d):
    days = (d - pd.Timestamp(0)) / pd.Timedelta(days=1)
    parts = [days, d.dt.year, d.dt.month, d.dt.day_of_week, days - 18321]
    return [part.to_numpy(float) for part in parts]


@pytest.mark.long
@given(st.lists(st.one_of(MOMENTS, st.none()), min_size=1, max_size=20))
def test_parts_of_dates_are_those_of_pandas(moments):
    d = pd.Series(moments, dtype="datetime64[us]")
    days = columns.to_days(d.to_numpy())
    apart = pd.Series(columns.to_moments(days)).sub(d).abs()
    assert (apart.dropna() <= pd.Timedelta("2us")).all() and (apart.isna() == d.isna()).all()
    for name, of_pandas in {"year": "year", "month": "month", "weekday": "day_of_week"}.items():
        expected = getattr(d.dt, of_pandas).to_numpy(float)
        np.testing.assert_array_equal(columns.date_part(name, days), expected)
    np.testing.assert_allclose(
        columns.date_part("days", days), expected_of(d)[0], rtol=0, atol=1e-9
    )


@given(MOMENTS, st.sampled_from(["T", " "]), st.sampled_from(["", "Z", "+02:00", " -0330"]))
def test_texts_of_dates_are_read_as_they_are_written(moment, between, zone):
    found = columns.parse_date(moment.isoformat(between) + zone)
    assert found == columns.to_days(np.array([moment], "datetime64[us]"))[0]
    assert columns.parse_date(str(moment.date())) == np.floor(found)


@pytest.mark.parametrize(
    "text", ["", "2024", "2024-1-1", "31.1.2024", "2024-02-30", "2024-13-01", "2024-01-01 25:00"]
)
def test_other_texts_are_no_dates(text):
    assert columns.parse_date(text) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d, lambda d: d.dt.tz_localize("US/Pacific"), lambda d: d.astype(str),
        lambda d: d.dt.date, lambda d: pd.Series(list(d), dtype=object),
        lambda d: d.astype("datetime64[s]"), lambda d: d.dt.to_period("D"),
        lambda d: d.dt.strftime("%Y-%m-%d 00:00"), lambda d: d.astype("date32[pyarrow]"),
    ],
)  # fmt: skip
def test_every_kind_of_date_gives_the_same_numbers(df, make):
    data = df.assign(d=make(df.d))
    design, found = columns_of(f"y ~ {RIGHT}", data)
    assert design.features == ["d"]
    for x, expected in zip(found.values(), expected_of(df.d), strict=True):
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-8)
    # New data may hold dates of another kind.
    again = design.apply(df).X
    np.testing.assert_array_equal(again, design.apply(data).X)


def test_other_frames_and_files(df, tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(df)
    day = frame.with_columns(pl.col("d").cast(pl.Date))
    zone = frame.with_columns(pl.col("d").dt.replace_time_zone("Asia/Tokyo"))
    df.to_csv(tmp_path / "d.csv", index=False)
    df.to_parquet(tmp_path / "d.parquet")
    files = [str(tmp_path / name) for name in ("d.csv", "d.parquet")]
    for data in (frame, day, zone, frame.to_arrow(), day.to_arrow(), *files):
        _, found = columns_of(f"y ~ {RIGHT}", data)
        for x, expected in zip(found.values(), expected_of(df.d), strict=True):
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-8)


def test_missing_dates_are_missing(df):
    gaps = df.assign(d=df.d.where(df.index > 3))
    texts = gaps.assign(d=gaps.d.astype(str).where(gaps.d.notna()))
    for data in (gaps, gaps.assign(d=gaps.d.dt.date), texts):
        design, _ = Design.learn("y ~ days(d)", data)
        assert design.n_dropped == 4
        design, found = columns_of("y ~ days(d) + x", data, missing="indicator")
        assert design.names == ("days(d)", "x", "d[missing]")
    _, found = columns_of("y ~ days(d)", gaps, missing="indicator")
    known = columns.to_days(gaps.d.dropna().to_numpy())
    np.testing.assert_allclose(found["days(d)"][:4], known.mean())
    fit = ld.gbmap("y ~ year(d) + x", gaps, m=1, lambda_=0.1)
    assert fit.predict(gaps.head(2)).notna().all()
    assert fit.predict(gaps.head(2).assign(d=None)).notna().all()


def test_fits_are_saved_explained_and_ordered(df, tmp_path):
    fit = ld.glm("y ~ days(d) + C(weekday(d)) + I(x > 0)", df)
    fit.save(tmp_path / "fit.lodim")
    assert ld.load(tmp_path / "fit.lodim").predict(df).equals(fit.predict(df))
    for kind in ("ale", "pd", "slope"):
        assert np.isfinite(ld.effects(fit, df, ["d"], kind=kind).tidy()["estimate"]).all()
    fit.report(tmp_path / "page.html", df)
    assert "d, days since 1970-01-01" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"days\(d\) cannot be exported: make it a column"):
        fit.to_python()
    assert ld.glm("days(d) ~ x", df).n == N


REFUSED = {
    "y ~ d": r"column 'd' has dates: write days\(d\), .*'. - d \+ days\(d\)'.*'- d'",
    "y ~ .": r"column 'd' has dates: write days\(d\)",
    "y ~ C(d)": "has dates",
    "y ~ np.log(d)": "has dates",
    "y ~ I(d > x)": "has dates",
    "y ~ bs(d, df=4)": "has dates",
    "d ~ x": r"the response 'd' has dates: write days\(d\)",
    "y ~ year(x)": r"year\(x\) needs dates, but column 'x' has numbers",
}


@pytest.mark.parametrize("formula", REFUSED)
def test_dates_are_no_numbers(df, formula):
    with pytest.raises(DataError, match=REFUSED[formula]):
        Design.learn(formula, df)


@pytest.mark.parametrize("formula", ["y ~ d", "y ~ .", "d ~ x"])
@pytest.mark.parametrize("time", ["", " 12:30", "T12:30:01.5"])
def test_texts_of_dates_are_no_levels(df, formula, time):
    data = df.assign(d=df.d.astype(str) + time)
    with pytest.raises(DataError, match=r"has dates as text, such as '20.*days\(d\)"):
        Design.learn(formula, data)
    others = data.assign(d=data.d.where(df.index > 0, "unknown"))
    with pytest.raises(DataError, match=r"all except 'unknown'; pd\.to_datetime"):
        Design.learn(formula, others)
    with pytest.raises(DataError, match="needs dates such as '2024-01-31', but column 'd' has"):
        Design.learn("y ~ days(d)", others)
    assert Design.learn("y ~ C(d) + x", data)[0].features == ["d", "x"]


def test_few_dates_may_be_levels(df):
    waves = np.array(["2019-05-01", "2020-05-01", "2021-05-01"])
    design, _ = Design.learn("y ~ d", df.assign(d=waves[np.arange(N) % 3]))
    assert len(design.names) == 3


def test_kinds_that_change_are_refused(df):
    design, _ = Design.learn("y ~ x", df)
    with pytest.raises(DataError, match=r"must have numbers, as in training; here it has dates"):
        design.apply(df.assign(x=df.d))
    design, _ = Design.learn("y ~ g", df.assign(g=np.where(df.x > 0, "u", "v")))
    with pytest.raises(DataError, match="must have levels, as in training"):
        design.apply(df.assign(g=df.d))
    for argument in ("weights", "offset"):
        with pytest.raises(DataError, match=f"{argument}: column 'd' must have numbers, not dates"):
            Design.learn("y ~ x", df, RowInputs(**{argument: "d"}))


@pytest.mark.parametrize(
    "text, at, message",
    [
        ("y ~ year(d + 1)", "d + 1", "year() takes a column of dates"),
        ("y ~ days(d, origin='soon')", "'soon'", "origin= is a day in quotes"),
        (
            "y ~ days(d, '2020-01-01', origin='2020-01-01')",
            "days(",
            "days() must have only one origin",
        ),
        ("y ~ month(d, origin='2020-01-01')", "month(", "takes no keyword 'origin'"),
    ],
)
def test_carets_stand_where_a_call_is_wrong(df, text, at, message):
    with pytest.raises(FormulaError, match=re.escape(message)) as caught:
        Design.learn(text, df)
    caret = str(caught.value).splitlines()[-1].index("^") - 4
    assert caret == text.index(at)


def test_columns_may_have_the_names_of_the_functions(df):
    data = df.rename(columns={"x": "year"})
    design, _ = Design.learn("y ~ . - d + year(d)", data)
    assert design.names == ("year", "year(d)")
