"""Reports: the only module that makes text, HTML and LaTeX tables."""

import html
import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from lodim.checks import whole
from lodim.errors import ArgumentError
from lodim.report.numbers import aligned, is_missing, is_number, significant
from lodim.text import shorten

# Tables of statsmodels are not used: they do not escape names in HTML, and do it wrongly in LaTeX.
WIDTH = 78
_MAX_LABEL, _MAX_CELL, _MAX_GAP = 32, 40, 8
_LONG, _HEAD, _TAIL = 30, 10, 5  # largest number of rows shown in full; rows shown of longer tables
_FULL = "summary(full=True)"  # code that shows all rows of a fit's tables
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {c: "\\" + c for c in "&%$#_{}"}

Format = str | Callable[[Any], str]


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame with instructions how to print it."""

    title: str  # text above the table; "" for none
    frame: pd.DataFrame  # its index holds the row labels
    # by column: a specification such as ".3f", or a function
    formats: Mapping[Hashable, Format] = field(default_factory=dict)
    notes: Sequence[str] = ()  # texts below the table
    index: bool = True  # whether to print the row labels
    # rows to show if the table is shortened; default: the first 10 and last 5
    keep: Sequence[bool] | None = None

    def __post_init__(self) -> None:
        unknown = [c for c in self.formats if c not in self.frame.columns]
        if unknown:
            known = f"the columns are {list(self.frame.columns)}"
            raise ArgumentError(f"there is no column {unknown[0]!r}; {known}")


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A printed statistical report; notebooks show it as HTML.

    Parameters
    ----------
    title : str
        First line.
    header : sequence of (str, str)
        Labels and values, printed in two columns, the left column first.
    tables : sequence of Table
        Tables, printed one after the other.
    notes : sequence of str
        Numbered notes at the end.
    full : bool
        Whether long tables are shown in full.

    See Also
    --------
    GbmapFit.summary

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
    >>> print(fit.summary().as_text().splitlines()[0].strip())
    Generalized Linear Model Results
    """

    title: str
    header: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    full: bool = True

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_text(self, width: int = WIDTH) -> str:
        """Return the report as plain text.

        Parameters
        ----------
        width : int, default=78
            Largest number of characters per line, at least 60.

        Returns
        -------
        str

        See Also
        --------
        as_html, as_latex

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.glm("mpg ~ weight + model_year", ld.data("autompg"))
        >>> max(map(len, fit.summary().as_text(width=78).splitlines()))
        78
        """
        whole("width", width, least=60)
        rule = "=" * width
        lines = [line.center(width).rstrip() for line in _wrap(self.title, width)]
        lines += [rule, *_header_text(self.header, width)]
        for title, grid, below in self._shown():
            lines += [rule] if lines[-1] != rule else []
            lines += _table_text(title, grid, below, width)
        lines += [rule] if lines[-1] != rule else []
        lines += ["", "Notes:"] if self.notes else []
        for k, note in enumerate(self.notes, start=1):
            lines += _wrap(f"[{k}] {note}", width, hang=4)
        return "\n".join(lines)

    def as_html(self) -> str:
        """Return the report as HTML; all text in it is escaped.

        See Also
        --------
        as_text, as_latex

        Examples
        --------
        >>> import lodim as ld
        >>> "<table" in ld.glm("mpg ~ weight", ld.data("autompg")).summary().as_html()
        True
        """
        pairs = _two_columns(self.header)
        parts = [f"<h4>{_html(self.title)}</h4>"]
        if pairs:
            rows = ("".join(map(_html_cell, row, ("th", "td") * 2, (0, 1) * 2)) for row in pairs)
            parts.append(_html_table([], rows, ""))
        for title, grid, notes in self._shown():
            heads = [_html_cell(h, "th", r) for h, r in zip(grid.heads, grid.right, strict=True)]
            tags = ["th"] * grid.labels + ["td"] * (len(grid.heads) - grid.labels)
            rows = ("".join(map(_html_cell, row, tags, grid.right)) for row in grid.rows)
            below = "".join(f"\n<p>{_html(note)}</p>" for note in notes)
            parts.append(_html_table(heads, rows, title) + below)
        if self.notes:
            items = "".join(f"<li>{_html(note)}</li>" for note in self.notes)
            parts.append(f"<p>Notes:</p><ol>{items}</ol>")
        return '<div class="lodim-report">\n' + "\n".join(parts) + "\n</div>"

    def as_latex(self) -> str:
        """Return the report as a LaTeX table environment; all text in it is escaped.

        See Also
        --------
        as_text, as_html

        Examples
        --------
        >>> import lodim as ld
        >>> "tabular" in ld.glm("mpg ~ weight", ld.data("autompg")).summary().as_latex()
        True
        """
        parts = [r"\begin{table}", rf"\caption{{{_latex(self.title)}}}", r"\begin{center}"]
        pairs = _two_columns(self.header)
        if pairs:
            parts.append(_latex_tabular("lrlr", [], pairs))
        for title, grid, notes in self._shown():
            columns = "".join("r" if r else "l" for r in grid.right)
            parts.append(_latex_tabular(columns, [grid.heads], grid.rows, title))
            parts += [rf"\par {_latex(note)}" for note in notes]
        parts += [r"\end{center}"]
        parts += [rf"\par {{[{k}]}} {_latex(note)}" for k, note in enumerate(self.notes, start=1)]
        return "\n".join([*parts, r"\end{table}"])

    def _shown(self):
        return [_shown(table, "" if self.full else _FULL) for table in self.tables]


class Summarized:
    """Object with a method summary(), whose report notebooks show as HTML."""

    def _repr_html_(self):
        return self.summary().as_html()


class FitResult(Summarized):
    """Result about a fit, `self.fit`; its tables are of the same kind as the training data."""

    @property
    def _frame_kind(self):
        return self.fit._frame_kind


def listing(call: str, lines: Sequence[str], table: Table, whole: str = _FULL) -> str:
    """Return the text of `print(fit)`: call, lines, table; `whole` is code that shows all rows."""
    parts = [paragraphs(call, [lines] if lines else []), ""]
    title, grid, notes = _shown(table, whole)
    parts += [_clean(title)] if title else []
    for k, block in enumerate(_blocks(grid, WIDTH)):
        parts += [""] if k else []
        parts += [_line(row, block, gap=1) for row in (block.heads, *block.rows)]
    for note in notes:
        parts += _wrap(note, WIDTH)
    return "\n".join(parts)


def paragraphs(call: str, parts: Sequence[Sequence[str]]) -> str:
    """Return a printed text without a table: the call, then `parts`, paragraphs of lines."""
    text = ["", *_wrap(f"Call:  {call}", WIDTH, hang=7)]
    for part in parts:
        text += [""]
        for line in part:
            text += _wrap(line, WIDTH, hang=2)
    return "\n".join(text)


# The grid of strings, from which text, HTML and LaTeX are made


@dataclass(frozen=True)
class _Grid:
    heads: list[str]
    rows: list[list[str]]
    right: list[bool]  # per column: whether it is right-aligned, as numbers are
    labels: int  # number of leading columns with row labels


def _shown(table: Table, whole: str) -> tuple[str, _Grid, list[str]]:
    """Return a table's title, its cells as a grid of texts, and its notes.

    whole : code that shows all rows, named in a note if a table is shortened; "" never shortens"""
    grid, notes = _grid(table), list(table.notes)
    if not whole or (table.keep is None and len(grid.rows) <= _LONG):
        return table.title, grid, notes
    last = len(grid.rows) - _TAIL
    ends = [k < _HEAD or k >= last for k in range(len(grid.rows))]
    keep = ends if table.keep is None else list(table.keep)
    if not all(keep):
        notes.append(f"... stands for rows that are not shown; {whole} shows all rows.")
    dots = ["...", *[""] * (len(grid.heads) - 1)]
    rows: list[list[str]] = []
    for row, on in zip(grid.rows, keep, strict=True):
        if on or not rows or rows[-1] is not dots:
            rows.append(row if on else dots)
    return table.title, _Grid(grid.heads, rows, grid.right, grid.labels), notes


def _grid(table: Table) -> _Grid:
    frame = table.frame
    levels = range(frame.index.nlevels) if table.index else ()
    heads, right = [_name(frame.index.names[k]) for k in levels], [False] * len(levels)
    columns = [[significant(v) for v in frame.index.get_level_values(k)] for k in levels]
    for k, name in enumerate(frame.columns):
        values = frame.iloc[:, k].tolist()
        known = [v for v in values if not is_missing(v)]
        heads.append(_name(name))
        columns.append(_column(values, table.formats.get(name)))
        right.append(bool(known) and all(map(is_number, known)))
    return _Grid(heads, [list(row) for row in zip(*columns, strict=True)], right, len(levels))


def _column(values, spec):
    if spec is None:
        return aligned(values)
    if callable(spec):
        return [str(spec(v)) for v in values]
    texts = []
    for v in values:
        text = format(v, spec) if is_number(v) else significant(v)
        # -0.00 is a rounding error
        texts.append(text.replace("-", "") if is_number(v) and not text.strip("-0. ") else text)
    return texts


def _name(name):
    if isinstance(name, tuple):
        return " ".join(map(str, name))
    return "" if name is None else str(name)


def _two_columns(header):
    pairs = [(_label(label), str(value)) for label, value in header]
    half = (len(pairs) + 1) // 2
    right = [*pairs[half:], ("", "")]
    return [[*pairs[k], *right[k]] for k in range(half)]


def _label(label):
    return label if label.endswith(":") else f"{label}:"


# Text


def _table_text(title, grid, notes, width):
    lines = []
    if title:
        lines += [line.center(width).rstrip() for line in _wrap(title, width)]
        lines += ["-" * width]
    for k, block in enumerate(_blocks(grid, width)):
        used = sum(_widths(block))
        gap = min((width - used) // max(len(block.heads) - 1, 1), _MAX_GAP)
        lines += ["-" * width] if k else []
        lines += [_line(block.heads, block, gap), "-" * width]
        lines += [_line(row, block, gap) for row in block.rows]
    lines += ["-" * width] if notes else []
    for note in notes:
        lines += _wrap(note, width)
    return lines


def _blocks(grid: _Grid, width: int) -> Iterator[_Grid]:
    """Yield parts of a grid of texts that fit the width: some columns each, and the row labels."""
    grid = _shortened(grid)
    widths, labels = _widths(grid), list(range(grid.labels))
    taken, used = list(labels), sum(widths[k] + 2 for k in labels)
    for k in range(grid.labels, len(widths)):
        if len(taken) > len(labels) and used + widths[k] > width:
            yield _take(grid, taken)
            taken, used = list(labels), sum(widths[j] + 2 for j in labels)
        taken.append(k)
        used += widths[k] + 2
    yield _take(grid, taken)


def _shortened(grid):
    # Several columns of row labels share the width of one.
    room = max(_MAX_LABEL // max(grid.labels, 1), 6)
    limits = [room] * grid.labels + [_MAX_CELL] * (len(grid.heads) - grid.labels)
    heads = [_cut(x, m) for x, m in zip(grid.heads, limits, strict=True)]
    columns = [list(map(_clean, column)) for column in zip(*grid.rows, strict=True)]
    for k, column in enumerate(columns):
        names = list(dict.fromkeys(column))
        if k >= grid.labels or max(map(len, names)) <= room:
            columns[k] = [_cut(x, limits[k]) for x in column]
        else:  # different labels stay different when shortened
            short = dict(zip(names, shorten(names, room), strict=True))
            columns[k] = [short[x] for x in column]
    return _Grid(heads, [list(row) for row in zip(*columns, strict=True)], grid.right, grid.labels)


def _take(grid, columns):
    rows = [[row[k] for k in columns] for row in (grid.heads, *grid.rows)]
    return _Grid(rows[0], rows[1:], [grid.right[k] for k in columns], grid.labels)


def _widths(grid):
    return [max(map(len, column)) for column in zip(grid.heads, *grid.rows, strict=True)]


def _line(row, grid, gap):
    cells = zip(row, _widths(grid), grid.right, strict=True)
    return (" " * gap).join(x.rjust(w) if r else x.ljust(w) for x, w, r in cells).rstrip()


def _header_text(header, width):
    half = (width - 2) // 2
    pairs = [(_clean(_label(label)), _clean(value)) for label, value in header]
    lines = []
    for label, value in pairs:
        if len(label) + 1 + len(value) > half:
            lines += _wrap(f"{label} {value}", width, hang=4)
    short = [pair for pair in pairs if len(pair[0]) + 1 + len(pair[1]) <= half]
    for a, x, b, y in _two_columns(short):
        right = b + y.rjust(half - len(b))
        lines.append((a + x.rjust(half - len(a)) + " " * (width - 2 * half) + right).rstrip())
    return lines


def _wrap(text, width, hang=0):
    style = {"subsequent_indent": " " * hang, "break_on_hyphens": False}
    return textwrap.wrap(_clean(text), width, **style) or [""]


def _clean(text):
    return "".join(c if c.isprintable() else " " for c in str(text))


def _cut(text, limit):
    text = _clean(text)
    return text if len(text) <= limit else text[: limit - 3] + "..."


# HTML


def _html_table(heads, rows, title):
    parts = ["<table>"]
    parts += [f"<caption>{_html(title)}</caption>"] if title else []
    parts += [f"<thead><tr>{''.join(heads)}</tr></thead>"] if heads else []
    return "\n".join([*parts, "<tbody>", *(f"<tr>{row}</tr>" for row in rows), "</tbody></table>"])


def _html_cell(text, tag, right):
    return f'<{tag} style="text-align:{"right" if right else "left"}">{_html(text)}</{tag}>'


def _html(text):
    return html.escape(_clean(text))


# LaTeX


def _latex_tabular(columns, heads, rows, title=""):
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
    if title:
        parts += [rf"\multicolumn{{{len(columns)}}}{{c}}{{{_latex(title)}}} \\", r"\hline"]
    for head in heads:
        parts += [_latex_row(head), r"\hline"]
    return "\n".join([*parts, *map(_latex_row, rows), r"\hline", r"\end{tabular}", ""])


def _latex_row(row):
    # LaTeX would read an opening bracket after \\ as an argument.
    return " & ".join(f"{{{x}}}" if x[:1] in "[*" and x else x for x in map(_latex, row)) + r" \\"


def _latex(text):
    return "".join(_LATEX.get(c, c) for c in _clean(text))
