"""Numbers that were read as text: refused where no category can be meant, else warned about.

One cell that is no number makes a whole column text: a mark of a missing value that is not known as
one, a unit, a comma for a decimal point.
"""

import re

from lodim.errors import DataError, DataWarning, warn
from lodim.formula.formula import quote
from lodim.text import first_few

NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
MARKS = {
    "", "?", "-", "--", ".", "..", "*", "#n/a", "n/a", "na", "n.a.", "nan", "nil", "none", "null",
    "missing", "unknown",
}  # fmt: skip
FEW = 20  # numbers that codes of a category may be
SOME = 10  # up to here levels are always a category


def check(column, levels, n, answer=False):
    """Refuse, or warn of, a column of text that holds numbers but for a few values.

    Nothing is said of declared categories, nor of up to 20 numbers as text beside no mark of a
    missing value ("?", "n/a"). It is refused where there are more levels than half of the rows, or
    over 20 and most of them fractions.

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
    others = [level for level in levels if not NUMBER.fullmatch(level)]
    if len(levels) - len(others) < 2 or len(others) > max(2, len(levels) // 10):
        return
    what = f"the response {column.name!r}" if answer else f"column {column.name!r}"
    but = f" but {first_few(others)}" if others else ""
    what = f"{what} was read as text: it has {len(levels):,} levels in {n:,} rows, all numbers{but}"
    fractions = sum("." in level or "," in level for level in levels)
    many = len(levels) > SOME and 2 * len(levels) > n
    if many or (len(levels) > FEW and 2 * fractions > len(levels)):
        raise DataError(f"{what}; {_cure(column.name, levels, answer)}")
    marked = any(other.strip().lower() in MARKS for other in others)
    if marked or len(levels) > FEW:
        warn(f"{what}. If numbers are meant, {_cure(column.name, levels, answer)}", DataWarning)


def _cure(name, levels, answer):
    """How to make numbers of it, and how to say that levels are meant."""
    comma = any("," in level for level in levels if NUMBER.fullmatch(level))
    cure = f"make it numbers: pd.to_numeric(df[{name!r}], errors='coerce') makes others missing"
    if comma:
        cure = "read it with decimal=',' (--decimal , on the command line)"
    category = f"df[{name!r}].astype('category')" if answer else f"C({quote(name)}) in the formula"
    return f"{cure}; if levels are meant, say so by {category}"
