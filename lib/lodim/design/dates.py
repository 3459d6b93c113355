"""Dates: how columns hold them, and the numbers that a formula makes of them.

A date is held as the number of days since 1970-01-01, its time of day as a fraction (exact to a
microsecond). A time with a zone is the time that a clock in that zone shows.
"""

import re

import numpy as np

from lodim.formula.formula import quote

ISO = re.compile(
    r"\s*(?P<day>\d{4}-\d{2}-\d{2})([T ](?P<time>\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?))?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?\s*"
)
THURSDAY = 3  # of 1970-01-01; a Monday is 0


def to_days(moments):
    """Days since 1970-01-01 of an array of datetime64, (n,) float64, NaN where one is missing."""
    missing = np.isnat(moments)
    moments = np.where(missing, np.datetime64(0, "D"), moments).astype("datetime64[us]")
    day = moments.astype("datetime64[D]")
    whole = day.astype(np.int64).astype(float)
    days = whole + (moments - day) / np.timedelta64(1, "D")
    days = np.minimum(days, np.nextafter(whole + 1.0, whole))  # rounding ends no day
    return np.where(missing, np.nan, days)


def to_moments(days):
    """The datetime64 of numbers of days since 1970-01-01, to a microsecond; NaT of NaN."""
    missing = np.isnan(days)
    micros = np.round(np.where(missing, 0.0, days) * 86_400e6).astype(np.int64)
    return np.where(missing, np.datetime64("NaT"), micros.astype("datetime64[us]"))


def parse(text):
    """Days since 1970-01-01 of a text such as "2024-01-31 12:30"; None if it is no date."""
    found = ISO.fullmatch(text)
    if not found:
        return None
    time = (found["time"] or "00:00").replace(",", ".")
    try:
        return to_days(np.array([f"{found['day']}T{time}"], "datetime64[us]"))[0]
    except ValueError:  # the 30th of February
        return None


def part_of(name, days, origin="1970-01-01"):
    """What a function of a formula makes of days since 1970-01-01, (n,) float64."""
    if name == "days":
        return days - np.datetime64(origin, "D").astype(np.int64)
    day = np.floor(days)
    if name == "weekday":
        return np.mod(day + THURSDAY, 7.0)
    date = np.where(np.isnan(day), 0.0, day).astype(np.int64).astype("datetime64[D]")
    months = date.astype("datetime64[M]").astype(np.int64)
    part = months // 12 + 1970 if name == "year" else months % 12 + 1
    return np.where(np.isnan(day), np.nan, part.astype(float))


def advice(name):
    """What to write in a formula for a column of dates."""
    name = quote(name)
    return (
        f"write days({name}), year({name}), month({name}) or weekday({name}) for a number, such as "
        f"in '. - {name} + days({name})', or leave it out with '- {name}'"
    )
