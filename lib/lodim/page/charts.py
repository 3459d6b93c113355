"""Pictures as Vega-Lite charts, which a browser draws; only this module imports altair."""

import functools
import math
import subprocess
import sys

import pandas as pd

from lodim.errors import MissingExtraError, StoreError

BLUE, GREY = "#1f77b4", "#8a8a8a"
COLOURS = ["#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 4], [12, 4]]
DIGITS = 7  # significant digits of the numbers in a chart
SHOWN = ".4~g"  # format of numbers in tooltips: at most 4 significant digits
HEIGHT, ROW = 260, 18  # pixels: height of a picture, and of a row in a list of names
LEGEND_WIDTH, SYMBOL, LETTER = 260, 26, 6.5  # pixels: widths of a legend, a symbol and a letter
LETTERS = 32  # largest number of characters of names side by side below a picture
MOST_CLASSES = len(COLOURS) * len(SHAPES)  # largest number of classes in a legend
# Vega-Lite writes titles into expressions without escaping backslashes and line ends.
ENDS = dict.fromkeys((*map(chr, range(32)), "\u2028", "\u2029"), " ")
IN_TITLES = str.maketrans(ENDS | {"\\": "\N{FULLWIDTH REVERSE SOLIDUS}", '"': "\N{DOUBLE PRIME}"})
# Vega uses titles and levels as keys of JavaScript objects, which already have these names.
OBJECT_PROPERTIES = {"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"}
OBJECT_PROPERTIES |= {"toLocaleString", "toString", "valueOf", "__proto__", "__defineGetter__"}
OBJECT_PROPERTIES |= {"__defineSetter__", "__lookupGetter__", "__lookupSetter__"}


def libraries():
    """Return the modules altair and jinja2; raise MissingExtraError if one is not installed."""
    try:
        import altair
        import jinja2
        import vl_convert  # noqa: F401
    except ImportError as error:
        cure = "pip install 'lodim[report]'"
        raise MissingExtraError(f"a report page needs {error.name}: {cure}") from error
    return altair, jinja2


@functools.cache
def program():
    """Return the source code of the JavaScript library (Vega) that draws a report page's charts."""
    # In another process, because vl-convert's JavaScript engine ends it if memory is limited.
    code = "import sys, vl_convert as v; sys.stdout.buffer.write(v.javascript_bundle().encode())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    if made.returncode or not made.stdout:
        what = "the report page cannot be written: vl-convert, which draws its pictures"
        what += f", ended with code {made.returncode}. It needs much address space"
        raise StoreError(f"{what}: if `ulimit -v` limits it, raise the limit")
    return made.stdout.decode()


def chart(picture):
    """Return a dict that specifies a Picture as a Vega-Lite chart, which browsers can draw."""
    alt = libraries()[0]
    # So that no name is read as a path, an expression or HTML; the user's names are only titles.
    names = {name: f"c{k}" for k, name in enumerate(picture.frame.columns)}
    shown = set(_shown(picture))
    data = picture.frame[[name for name in picture.frame if name in shown]]
    data = alt.Data(values=_values(data.rename(columns=names)))
    marks = {"bars": _bars, "points": _points, "lines": _lines, "intervals": _intervals}
    draw = (marks | {"cells": _cells})[picture.mark]
    drawn = draw(alt, alt.Chart(data), picture, names)
    tall = picture.mark in ("bars", "intervals")
    height = max(60, ROW * picture.frame[picture.y].nunique()) if tall else HEIGHT
    entries = 1  # of the legend, side by side
    if picture.color and not _is_number(picture.frame, picture.color):
        longest = max((len(str(v)) for v in picture.frame[picture.color].unique()), default=1)
        entries = max(1, int(LEGEND_WIDTH / (SYMBOL + LETTER * longest)))
    return (
        drawn.properties(width="container", height=height)
        .configure(font="system-ui, sans-serif", background="transparent")
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelLimit=220, titleFontWeight="normal")
        .configure_legend(
            orient="top",
            titleFontWeight="normal",
            symbolLimit=MOST_CLASSES,
            columns=entries,
            labelLimit=LEGEND_WIDTH - SYMBOL,
        )
        .to_dict()
    )


def _values(frame):
    columns = {name: [_plain(v) for v in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value):
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return None if value is None or value is pd.NA else _own_name(str(value))


def _own_name(text):
    """Return a text, changed if it has a meaning as a key in JavaScript, such as "constructor"."""
    return f"{text}\N{WORD JOINER}" if text in OBJECT_PROPERTIES else text


def _title(name):
    """Return a column name as a title that the chart library shows literally."""
    return _own_name(name.translate(IN_TITLES))


def _is_number(frame, name):
    return pd.api.types.is_numeric_dtype(frame[name]) and frame[name].dtype != bool


def _field(encoding, picture, names, name, **options):
    """Return the altair encoding of the column `name` of a Picture's frame.

    encoding : class of altair, such as alt.X
    names : dict column -> its name in the chart"""
    kind = "quantitative" if _is_number(picture.frame, name) else "nominal"
    return encoding(field=names[name], type=kind, **{"title": _title(name)} | options)


def _shown(picture):
    """Return the columns of a Picture's frame that its chart shows, each once."""
    shown = (picture.y, picture.x, picture.color, picture.low, picture.high, *picture.hover)
    return [name for name in dict.fromkeys(shown) if name]


def _tooltip(alt, picture, names):
    shown = _shown(picture)
    floats = picture.frame.select_dtypes("floating").columns
    formats = {name: {"format": SHOWN} if name in floats else {} for name in shown}
    return [_field(alt.Tooltip, picture, names, name, **formats[name]) for name in shown]


def _shades(alt, picture, names):
    color, scale = alt.value(BLUE), alt.Scale(range=COLOURS)
    if picture.color:
        if _is_number(picture.frame, picture.color):
            scale = alt.Scale(scheme="viridis")
        elif many := _many_classes(picture):
            scale = _in_turn(alt, many, COLOURS)
        color = _field(alt.Color, picture, names, picture.color, scale=scale)
    return {"color": color, "tooltip": _tooltip(alt, picture, names)}


def _many_classes(picture):
    if not picture.color or _is_number(picture.frame, picture.color):
        return []
    values = map(_plain, picture.frame[picture.color].tolist())
    classes = sorted({value for value in values if value is not None})
    return classes if len(classes) > len(COLOURS) else []


def _in_turn(alt, classes, marks, times=1):
    marks = [marks[k // times % len(marks)] for k in range(len(classes))]
    return alt.Scale(domain=classes, range=marks)


def _style(alt, picture, names, mark, encoding, marks):
    """Return a dict of altair encodings for points or lines: axes, colours and tooltips.

    picture : Picture, a table and the columns to show
    names : dict column -> its name in the chart
    mark : name of a further encoding, such as "shape"
    encoding : its class, such as alt.Shape
    marks : its values, such as shapes"""
    across = _names_across(alt, picture)
    if _is_number(picture.frame, picture.x):
        kind = "log" if picture.logarithmic else "linear"
        across = {"scale": alt.Scale(zero=False, type=kind)}
    up = {"zero": False} if picture.scale is None else {"domain": list(picture.scale)}
    style = {"x": _field(alt.X, picture, names, picture.x, **across)}
    style["y"] = _field(alt.Y, picture, names, picture.y, scale=alt.Scale(**up))
    if many := _many_classes(picture):
        scale = _in_turn(alt, many, marks, len(COLOURS))
        style[mark] = _field(encoding, picture, names, picture.color, scale=scale)
    return style | _shades(alt, picture, names)


def _names_across(alt, picture):
    """Return a dict of altair's options for an x axis of names: row order, rotated if long."""
    lengths = [len(str(value)) for value in picture.frame[picture.x].unique()]
    fit = len(lengths) * max(lengths, default=0) <= LETTERS
    return {"sort": None, "axis": alt.Axis(labelAngle=0 if fit else -40)}


def _listed(alt, picture, names):
    y = _field(alt.Y, picture, names, picture.y, sort=None, axis=alt.Axis(title=None))
    return {"x": _field(alt.X, picture, names, picture.x), "y": y}


def _bars(alt, base, picture, names):
    style = _listed(alt, picture, names) | _shades(alt, picture, names)
    return base.mark_bar(height={"band": 0.7}).encode(**style)


def _intervals(alt, base, picture, names):
    base = base.encode(**_listed(alt, picture, names), tooltip=_tooltip(alt, picture, names))
    ends = alt.X(field=names[picture.low], type="quantitative", title=_title(picture.x))
    line = base.mark_rule(color=BLUE).encode(x=ends, x2=names[picture.high])
    zero = alt.Chart(alt.Data(values=[{"x": 0}])).mark_rule(color=GREY, strokeDash=[4, 3])
    points = base.mark_point(filled=True, color=BLUE, opacity=1)
    return zero.encode(x=alt.X(field="x", type="quantitative")) + line + points


def _points(alt, base, picture, names):
    size = 36 if _is_number(picture.frame, picture.x) else 100
    style = _style(alt, picture, names, "shape", alt.Shape, SHAPES)
    points = base.mark_point(filled=True, size=size, opacity=0.7).encode(**style)
    if picture.reference is None:
        return points
    dashed, y = {"color": GREY, "strokeDash": [4, 3]}, alt.Y(field="y", type="quantitative")
    if picture.reference != "x":
        line = alt.Chart(alt.Data(values=[{"y": picture.reference}]))
        return line.mark_rule(**dashed).encode(y=y) + points
    x = picture.frame[picture.x]
    ends = [{"x": v, "y": v} for v in (float(x.min()), float(x.max()))]
    line = alt.Chart(alt.Data(values=ends)).mark_line(**dashed)
    return line.encode(x=alt.X(field="x", type="quantitative"), y=y) + points


def _lines(alt, base, picture, names):
    style = _style(alt, picture, names, "strokeDash", alt.StrokeDash, DASHES)
    lines = base.mark_line(point={"size": 14}).encode(**style)
    if not picture.rug:
        return lines
    ticks = alt.Chart(alt.Data(values=[{"x": _plain(value)} for value in picture.rug]))
    ticks = ticks.mark_tick(color=GREY, size=10, thickness=1, yOffset=-5)
    x = alt.X(field="x", type="quantitative")
    return lines + ticks.encode(x=x, y=alt.value(HEIGHT))


def _cells(alt, base, picture, names):
    where = {
        "x": _field(alt.X, picture, names, picture.x, **_names_across(alt, picture)),
        "y": _field(alt.Y, picture, names, picture.y, sort=None),
    }
    most = 2 * int(picture.frame[picture.color].max())  # light blues: numbers stay legible
    blues = alt.Scale(scheme="blues", domain=[0, most])
    count = _field(alt.Color, picture, names, picture.color, scale=blues, legend=None)
    cells = base.mark_rect().encode(**where, color=count, tooltip=_tooltip(alt, picture, names))
    text = base.mark_text().encode(**where, text=alt.Text(field=names[picture.color]))
    return cells + text
