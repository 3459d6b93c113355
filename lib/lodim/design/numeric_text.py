"""Numbers and dates that were read as text: refused where no category can be meant.

One cell that is no number makes a whole column text: a mark of a missing value that is not known as
one, a unit, a comma for a decimal point. Where categories may be meant, there is a warning.
"""

import re

from lodim.design import dates
from lodim.errors import DataError, DataWarning, warn
from lodim.formula.formula import quote
from lodim.text import first_few

NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
AMOUNT = re.compile(
    r"\s*[+-]?\s*[$€£¥]?\s*[+-]?(\d{1,3}([,' \u00a0’]\d{3})+|\d+)?([.,]\d+)?\s*[%$€£¥]?\s*"
)
THOUSANDS = re.compile(r"[^,\d]*[1-9]\d{0,2}(,\d{3})+(?!\d|,)[^,]*")
MARKS = {
    "", "?", "-", "--", ".", "..", "*", "#n/a", "n/a", "na", "n.a.", "nan", "nil", "none", "null",
    "missing", "unknown",
}  # fmt: skip
FEW = 20  # numbers that codes of a category may be
SOME = 10  # up to here levels are always a category


def check(column, levels, n, answer=False):
    """Refuse, or warn of, a column of text that holds numbers or dates but for a few values.

    Dates such as "2024-01-31" are refused if they have over 10 levels. Nothing is said of declared
    categories, nor of up to 20 numbers as text beside no mark of a missing value ("?", "n/a").
    Numbers are refused if there are more levels than half of the rows, or over 20 and most of them
    fractions.

    Parameters
    ----------
    column : Column
    levels : tuple
        That occur.
    n : int
        Number of rows.
    answer : bool
        Whether it is the response.
    """
    if column.declared or not all(isinstance(level, str) for level in levels):
        return
    what = f"the response {column.name!r}" if answer else f"column {column.name!r}"
    _check_dates(what, column.name, levels, answer)
    others = [level for level in levels if not _is_number(level)]
    if _are_many(levels, others):
        return
    but = f" but {first_few(others)}" if others else ""
    what = f"{what} was read as text: it has {len(levels):,} levels in {n:,} rows, all numbers{but}"
    fractions = sum("." in level or "," in level for level in levels)
    many = len(levels) > SOME and 2 * len(levels) > n
    if many or (len(levels) > FEW and 2 * fractions > len(levels)):
        raise DataError(f"{what}; {_cure(column.name, levels, answer)}")
    marked = any(other.strip().lower() in MARKS for other in others)
    if marked or len(levels) > FEW:
        warn(f"{what}. If numbers are meant, {_cure(column.name, levels, answer)}", DataWarning)


def _are_many(levels, others):
    """Whether too many levels, or all but one, are others than what most may be."""
    return len(levels) - len(others) < 2 or len(others) > max(2, len(levels) // 10)


def _is_number(level):
    """Whether a text is a number, also with a currency, in percent or with groups of digits."""
    digits = any(c.isdigit() for c in level)
    return digits and bool(NUMBER.fullmatch(level) or AMOUNT.fullmatch(level))


def _check_dates(what, name, levels, answer):
    """Refuse text that is dates but for a few levels."""
    others = [level for level in levels if not dates.ISO.fullmatch(level)]
    if len(levels) <= SOME or _are_many(levels, others):
        return
    example = next(level for level in levels if level not in others)
    but = f", all but {first_few(others)}" if others else ""
    what = f"{what} holds dates as text, such as {example!r}{but}"
    make = f"pd.to_datetime(df[{name!r}], errors='coerce') makes others missing; " * bool(others)
    cure = f"write days({quote(name)}) for a number" if answer else dates.advice(name)
    levels_cure = f"if levels are meant, say so by {_category(name, answer)}"
    raise DataError(f"{what}; {make}{cure}; {levels_cure}")


def _cure(name, levels, answer):
    """How to make numbers of it, and how to say that levels are meant."""
    texts = [level for level in levels if _is_number(level)]
    commas = [level for level in texts if "," in level]
    decimal = not all(THOUSANDS.fullmatch(level) for level in commas)
    others = {c for level in texts for c in level.strip() if c in "$€£¥%'’\u00a0 "}
    marks = "".join(sorted(others | {","} if commas and not decimal else others))
    pattern = f"[{marks}]"
    cleaned = f"df[{name!r}]" + f".str.replace({pattern!r}, '', regex=True)" * bool(marks)
    cleaned += ".str.replace(',', '.')" * decimal
    cure = f"make it numbers: pd.to_numeric({cleaned}, errors='coerce') makes others missing"
    if decimal and not marks:
        cure = "read it with decimal=',' (--decimal , on the command line)"
    return f"{cure}; if levels are meant, say so by {_category(name, answer)}"


def _category(name, answer):
    """How to say that levels are meant."""
    return f"df[{name!r}].astype('category')" if answer else f"C({quote(name)}) in the formula"
