"""Excel workbooks of frames. Only this module imports openpyxl. Numbers are stored unrounded."""

import math
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

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
    """Write sheets to an .xlsx file.

    Raise MissingExtraError without openpyxl, DataError if a frame is too large for a sheet, and
    StoreError if the file cannot be written."""
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
    if sheet.frame.shape[0] >= MOST_ROWS or sheet.frame.shape[1] > MOST_COLUMNS:
        n, p = sheet.frame.shape
        raise DataError(
            f"{n:,} rows and {p:,} columns are too many for a sheet of Excel: export fewer rows"
        )
    page.append([_plain(str(name)) for name in sheet.frame.columns])
    columns = [[_plain(v) for v in sheet.frame.iloc[:, k]] for k in range(sheet.frame.shape[1])]
    for row in zip(*columns, strict=True):
        page.append(row)
    for row in page.iter_rows():
        for cell in row:
            _keep_text(cell)
    _style_head(page, sheet)
    _style_columns(page, sheet)
    _style_rows(page, sheet)
    page.freeze_panes = page.cell(2, sheet.fixed + 1)
    page.auto_filter.ref = page.dimensions
    page.sheet_view.showGridLines = False


def _plain(value):
    """Return a value in the form in which a cell stores it."""
    if is_missing(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return value
    return NOT_IN_CELLS.sub(" ", str(value))


def _keep_text(cell):
    """Mark a text cell so that Excel never reads it as a formula or an error, even if edited."""
    if isinstance(cell.value, str):
        cell.data_type = "s"
        cell.quotePrefix = cell.value.startswith(LIVE)


def _style_head(page, sheet):
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Side

    for cell, name in zip(page[1], sheet.frame.columns, strict=True):
        cell.font = Font(bold=True, color="FFFFFF")
        cell.fill = PatternFill("solid", fgColor=sheet.heads.get(name, HEAD))
        cell.alignment = Alignment(horizontal="center", vertical="center", wrap_text=True)
        cell.border = Border(bottom=Side("medium", color="000000"))
    page.row_dimensions[1].height = 32


def _style_columns(page, sheet):
    from openpyxl.formatting.rule import ColorScaleRule

    for k, name in enumerate(sheet.frame.columns, start=1):
        letter = page.cell(1, k).column_letter
        shown = [len(_shown(c.value, sheet.formats.get(name))) for c in page[letter][1:]]
        # Headers may be split into two lines, but not within a word.
        head = max([len(str(name)) // 2, *map(len, str(name).split())]) + 2
        width = max([NARROWEST, head, *(n + 2 for n in shown)])
        page.column_dimensions[letter].width = min(WIDEST, width)
        for cell in page[letter][1:]:
            cell.number_format = sheet.formats.get(name, "General")
        if name in sheet.scales and page.max_row > 1:
            rule = ColorScaleRule(
                start_type="min", start_color=SCALE[0], end_type="max", end_color=SCALE[1]
            )
            page.conditional_formatting.add(f"{letter}2:{letter}{page.max_row}", rule)


def _style_rows(page, sheet):
    from openpyxl.styles import Border, PatternFill, Side

    line = Border(bottom=Side("hair", color="A6A6A6"))
    for number, row in enumerate(page.iter_rows(min_row=2)):
        for cell in row:
            cell.border = line
            if number in sheet.rows:
                cell.fill = PatternFill("solid", fgColor=sheet.rows[number])


def _shown(value: Any, spec: str | None) -> str:
    """Return approximately the text that a cell shows."""
    if isinstance(value, float):
        digits = len(spec.partition(".")[2]) if spec else 6
        return f"{value:.{digits}f}"
    return "" if value is None else str(value)
