"""Excel workbooks of frames. Only this module imports openpyxl. Numbers are stored unrounded."""

import math
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike

import pandas as pd

from lodim.errors import DataError, MissingExtraError, StoreError
from lodim.report.numbers import is_missing

HEAD, SCALE = "1F4E79", ("FFFFFF", "F4A582")  # colours as RGB in hex
WIDEST, NARROWEST = 42, 9  # largest and smallest width of a column in characters
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # limits of a sheet, including the header row
LIVE = ("=", "+", "-", "@", "\t", "\r")  # first characters that Excel may read as a formula
NOT_IN_CELLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NOT_IN_TITLES = re.compile(r"[\\*?:/\[\]\x00-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, eq=False)
class Sheet:
    """A frame to write as one sheet of a workbook; its index is not written."""

    title: str
    frame: pd.DataFrame
    # Excel number formats by column, such as "0.00"
    formats: Mapping[Hashable, str] = field(default_factory=dict)
    # columns shaded from white (smallest value) to orange (largest)
    scales: Sequence[Hashable] = ()
    # colours of column headers, RGB in hex
    heads: Mapping[Hashable, str] = field(default_factory=dict)
    rows: Mapping[int, str] = field(default_factory=dict)  # colours of rows by position
    fixed: int = 0  # columns that stay visible when scrolling


def write(path: str | PathLike, sheets: Sequence[Sheet]) -> None:
    """Write sheets to an .xlsx file; raise StoreError if that fails, DataError if too large."""
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError("Excel files need openpyxl: pip install 'lodim[excel]'") from error
    book = Workbook()
    book.remove(book.active)
    for sheet in sheets:
        _fill(book.create_sheet(NOT_IN_TITLES.sub("_", sheet.title)[:31]), sheet)
    try:
        book.save(os.fsdecode(path))
    except (OSError, TypeError, ValueError) as error:
        raise StoreError(f"{path!r} cannot be written: {error}") from error


def _fill(page, sheet):
    """Write a Sheet to an empty worksheet of openpyxl, with its colours and widths."""
    from openpyxl.formatting.rule import ColorScaleRule
    from openpyxl.styles import Alignment, Font, PatternFill

    if sheet.frame.shape[0] >= MOST_ROWS or sheet.frame.shape[1] > MOST_COLUMNS:
        n, p = sheet.frame.shape
        what = f"{n:,} rows and {p:,} columns are too many for a sheet of Excel"
        raise DataError(f"{what}: export fewer rows")
    page.append([_plain(str(name)) for name in sheet.frame.columns])
    for row in sheet.frame.itertuples(index=False, name=None):
        page.append([_plain(v) for v in row])
    for row in page.iter_rows():
        for cell in row:
            if isinstance(cell.value, str):  # never a formula or an error, even if it is edited
                cell.data_type, cell.quotePrefix = "s", cell.value.startswith(LIVE)
    for head, name in zip(page[1], sheet.frame.columns, strict=True):
        head.font, head.alignment = Font(bold=True, color="FFFFFF"), Alignment(wrap_text=True)
        head.fill = PatternFill("solid", fgColor=sheet.heads.get(name, HEAD))
        letter, cells = head.column_letter, page[head.column_letter][1:]
        longest = max(len(cell.value) for cell in page[letter] if isinstance(cell.value, str))
        page.column_dimensions[letter].width = min(WIDEST, max(NARROWEST, longest + 2))
        for k, cell in enumerate(cells):
            cell.number_format = sheet.formats.get(name, "General")
            if k in sheet.rows:
                cell.fill = PatternFill("solid", fgColor=sheet.rows[k])
        if name in sheet.scales and cells:
            ends = {"start_type": "min", "end_type": "max"}
            rule = ColorScaleRule(start_color=SCALE[0], end_color=SCALE[1], **ends)
            page.conditional_formatting.add(f"{letter}2:{letter}{page.max_row}", rule)
    page.freeze_panes = page.cell(2, sheet.fixed + 1)
    page.auto_filter.ref = page.dimensions


def _plain(value):
    if is_missing(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return value
    return NOT_IN_CELLS.sub(" ", str(value))
