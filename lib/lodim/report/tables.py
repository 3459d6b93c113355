"""Reports: the only module that makes text, HTML and LaTeX tables."""

import html
import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        rule, thin = "=" * width, "-" * width
        lines = [line.center(width).rstrip() for line in _wrap(self.title, width)]
        lines += [rule, *_header_text(self.header, width)]
        for title, columns, below in self._shown():
            lines += [rule] if lines[-1] != rule else []
            if title:
                lines += [line.center(width).rstrip() for line in _wrap(title, width)]
                lines += [thin]
            for k, block in enumerate(_blocks(columns, width)):
                used = sum(column.width for column in block)
                head, *rows = _lines(block, min((width - used) // max(len(block) - 1, 1), _MAX_GAP))
                lines += [*[thin] * (k > 0), head, thin, *rows]
            lines += [thin] if below else []
            for note in below:
                lines += _wrap(note, width)
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
        for title, columns, notes in self._shown():
            heads = [_html_cell(column.head, "th", column.right) for column in columns]
            tags = ["th" if column.label else "td" for column in columns]
            right, cells = [column.right for column in columns], [c.cells for c in columns]
            rows = ("".join(map(_html_cell, row, tags, right)) for row in zip(*cells, strict=True))
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
        for title, columns, notes in self._shown():
            sides = "".join("r" if column.right else "l" for column in columns)
            rows = zip(*(column.cells for column in columns), strict=True)
            parts.append(_latex_tabular(sides, [[c.head for c in columns]], rows, title))
            parts += [rf"\par {_latex(note)}" for note in notes]
        parts += [r"\end{center}"]
        parts += [rf"\par {{[{k}]}} {_latex(note)}" for k, note in enumerate(self.notes, start=1)]
        return "\n".join([*parts, r"\end{table}"])

    def _shown(self):
        return [_shown(table, "" if self.full else _FULL) for table in self.tables]


class Summarized:
    """Base class of objects with a method summary(), whose result notebooks display as HTML."""

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
    title, columns, notes = _shown(table, whole)
    parts += [_clean(title)] if title else []
    for k, block in enumerate(_blocks(columns, WIDTH)):
        parts += [*[""] * (k > 0), *_lines(block, gap=1)]
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


def room_beside(table: Table) -> int:
    """Return the width that a further column of texts may have beside those of a Table."""
    _, columns, _ = _shown(table, "")
    return min(_MAX_CELL, WIDTH - sum(column.width + 2 for column in columns))


# The columns of texts, from which text, HTML and LaTeX are made


@dataclass(frozen=True)
class _Column:
    head: str
    cells: list[str]
    right: bool = False  # whether it is right-aligned, as numbers are
    label: bool = False  # whether it has row labels, which are the first columns

    @property
    def width(self):
        return max(map(len, (self.head, *self.cells)))


def _shown(table: Table, whole: str) -> tuple[str, list[_Column], list[str]]:
    """Return a table's title, its columns of texts, and its notes.

    whole : code that shows all rows, named in a note if a table is shortened; "" never shortens"""
    frame, notes = table.frame, list(table.notes)
    columns = []
    for k in range(frame.index.nlevels) if table.index else ():
        labels = [significant(v) for v in frame.index.get_level_values(k)]
        columns.append(_Column(_name(frame.index.names[k]), labels, label=True))
    for k, name in enumerate(frame.columns):
        values = frame.iloc[:, k].tolist()
        known = [v for v in values if not is_missing(v)]
        right = bool(known) and all(map(is_number, known))
        columns.append(_Column(_name(name), _texts(values, table.formats.get(name)), right))
    n = len(frame)
    if not whole or (table.keep is None and n <= _LONG):
        return table.title, columns, notes
    keep = [k < _HEAD or k >= n - _TAIL for k in range(n)] if table.keep is None else table.keep
    if not all(keep):
        notes.append(f"... stands for rows that are not shown; {whole} shows all rows.")
    rows: list[int | None] = []  # None: dots
    for k, on in enumerate(keep):
        if on or rows[-1:] != [None]:
            rows.append(k if on else None)
    for j, column in enumerate(columns):
        dots = "" if j else "..."
        cells = [dots if k is None else column.cells[k] for k in rows]
        columns[j] = replace(column, cells=cells)
    return table.title, columns, notes


def _texts(values, spec):
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
    return "" if name is None else str(name)


def _two_columns(header):
    pairs = [(_label(label), str(value)) for label, value in header]
    half = (len(pairs) + 1) // 2
    right = [*pairs[half:], ("", "")]
    return [[*pairs[k], *right[k]] for k in range(half)]


def _label(label):
    return label if label.endswith(":") else f"{label}:"


# Text


def _blocks(columns: list[_Column], width: int) -> Iterator[list[_Column]]:
    """Yield parts of a table that fit the width: row labels and some columns, all shortened."""
    # Several columns of row labels share the width of one.
    room = max(_MAX_LABEL // max(sum(column.label for column in columns), 1), 6)
    short = []
    for column in columns:
        limit, cells = _MAX_CELL, [_cut(text, _MAX_CELL) for text in column.cells]
        if column.label:  # different labels stay different when shortened
            limit, cells = room, list(map(_clean, column.cells))
            names = list(dict.fromkeys(cells))
            text_of = dict(zip(names, shorten(names, room), strict=True))
            cells = [text_of[name] for name in cells]
        short.append(replace(column, head=_cut(column.head, limit), cells=cells))
    labels = [column for column in short if column.label]
    start = sum(column.width + 2 for column in labels)
    block, used = [*labels], start
    for column in short[len(labels) :]:
        if len(block) > len(labels) and used + column.width > width:
            yield block
            block, used = [*labels], start
        block.append(column)
        used += column.width + 2
    yield block


def _lines(columns, gap):
    """Return the lines of a table: heads, then rows; `gap` is the space between columns."""
    padded = []
    for column in columns:
        pad, width = str.rjust if column.right else str.ljust, column.width
        padded.append([pad(text, width) for text in (column.head, *column.cells)])
    return [(" " * gap).join(line).rstrip() for line in zip(*padded, strict=True)]


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
