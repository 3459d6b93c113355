"""report: one grid, three layouts; whatever a column is called, the layout holds."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodim.errors import ArgumentError
from lodim.report.numbers import significant
from lodim.report.tables import Report, Table, listing

NASTY = ["np.log(x)", "a & b", "x_1", "<script>alert(1)</script>", "50% {of} $x^2$ #1 ~ \\end|"]


def coefficients():
    frame = pd.DataFrame(
        {"coef": [23.5123, -0.0067, 0.0], "std_err": [1.25, 0.00066, np.nan], "n": [392, 392, 4]},
        index=["(Intercept)", "np.log(weight)", "a & b"],
    )
    return Table("Coefficients", frame, {"std_err": ".3f"}, ("Per standard deviation.",))


def report(**changes):
    parts = dict(
        title="Gradient boosting mapping",
        header=(("Response", "mpg"), ("Family:", "gaussian"), ("Rows", "392"), ("Df", "9")),
        tables=(coefficients(),),
        notes=("Rows dropped because of missing values: 6.",),
    )
    return Report(**(parts | changes))


SNAPSHOT = """\
                          Gradient boosting mapping
==============================================================================
Response:                          mpg  Rows:                              392
Family:                       gaussian  Df:                                  9
==============================================================================
                                 Coefficients
------------------------------------------------------------------------------
                         coef        std_err          n
------------------------------------------------------------------------------
(Intercept)           23.5123          1.250        392
np.log(weight)        -0.0067          0.001        392
a & b                       0            NaN          4
------------------------------------------------------------------------------
Per standard deviation.
==============================================================================

Notes:
[1] Rows dropped because of missing values: 6."""


def test_snapshot():
    assert str(report()) == repr(report()) == report().as_text() == SNAPSHOT


def test_parts_may_be_missing():
    assert str(Report("Title")).splitlines() == ["Title".center(78).rstrip(), "=" * 78]
    bare = str(report(header=(), notes=(), tables=(Table("", pd.DataFrame({"a": [1]})),)))
    assert bare.splitlines()[1:] == ["=" * 78, "         a", "-" * 78, "0        1", "=" * 78]
    for table in (Table("", pd.DataFrame()), Table("", pd.DataFrame({"a": []}), index=False)):
        empty = report(tables=(table,))
        assert empty.as_text() and empty.as_html() and empty.as_latex()


def test_index_and_formats():
    frame = pd.DataFrame({"share": [0.5, None], "name": ["x", None], "flag": [True, False]})
    formats = {"share": lambda v: "-" if pd.isna(v) else f"{v:.0%}", "name": ".2f"}
    text = str(report(header=(), notes=(), tables=(Table("", frame, formats, index=False),)))
    rows = [line.split() for line in text.splitlines()]
    assert rows[2] == ["share", "name", "flag"]
    assert rows[4] == ["50%", "x", "True"] and rows[5] == ["-", "NaN", "False"]


def test_multi_index_and_repeated_columns():
    index = pd.MultiIndex.from_tuples([("b1", 1.5), ("b2", 2.0)], names=["boost", "knot"])
    frame = pd.DataFrame([[1, 2], [3, 4]], index=index, columns=["a", "a"])
    rows = [line.split() for line in str(report(header=(), tables=(Table("", frame),))).split("\n")]
    assert rows[2] == ["boost", "knot", "a", "a"] and rows[4] == ["b1", "1.5", "1", "2"]


def test_formats_of_unknown_columns_are_refused():
    with pytest.raises(ArgumentError, match="no column 'b'"):
        Table("", pd.DataFrame({"a": [1]}), {"b": ".2f"})
    with pytest.raises(ArgumentError, match="width must be an integer from 60"):
        report().as_text(20)


def test_numbers_stand_on_the_right_text_on_the_left():
    frame = pd.DataFrame({"number": [1, 22], "text": ["a", "bbbbbbb"]})
    body = str(report(header=(), notes=(), tables=(Table("", frame, index=False),))).split("\n")
    assert body[2] == "number        text"
    assert body[4:6] == ["     1        a", "    22        bbbbbbb"]


def wide():
    columns = [f"column{j}" for j in range(18)]
    frame = pd.DataFrame(np.arange(36.0).reshape(2, 18) / 7, ["r1", "r2"], columns)
    return report(tables=(Table("", frame),))


def test_wide_tables_wrap_and_repeat_the_labels():
    text = str(wide())
    assert max(map(len, text.splitlines())) == 78
    assert re.findall(r"column\d+", text) == [f"column{j}" for j in range(18)]
    assert text.count("\nr1 ") == text.count("\nr2 ") > 1
    assert wide().as_html().count("<table>") == 2


def test_long_names_are_cut_in_text_only():
    name = "a_name_of_a_feature_that_never_seems_to_end"
    long = report(tables=(Table("", pd.DataFrame({"b": [1.0]}, index=[name])),))
    assert name not in str(long) and name[:29] + "..." in str(long)
    assert name in long.as_html() and name.replace("_", r"\_") in long.as_latex()


def test_long_names_of_rows_are_cut_where_they_are_alike():
    names = [f"cr(weight, df=8, constraints='center')[{k}]" for k in range(3)]
    frame = pd.DataFrame({"Estimate": [1.0, 2.0, 3.0, 4.0]}, index=[*names, names[0]])
    rows = str(Report("T", (), [Table("", frame)])).splitlines()[-5:-1]
    labels = [row.split("  ")[0] for row in rows]
    assert labels[0] == labels[3] and len(set(labels)) == 3 and max(map(len, labels)) <= 32
    assert all(label.endswith(f"{k}]") for k, label in enumerate(labels[:3]))


def test_long_header_values_get_lines_of_their_own():
    call = 'gbmap("' + " + ".join(f"feature{j}" for j in range(12)) + '", data=df)'
    lines = str(report(header=(("Df", "9"), ("Call", call)))).splitlines()
    assert lines[2].startswith("Call: gbmap(") and lines[3].startswith("    ")
    assert " ".join(x.strip() for x in lines[2:5]) == f"Call: {call}"
    assert lines[5].startswith("Df:")


def test_line_breaks_and_terminal_codes_do_not_pass():
    odd = "a\nb\x1b[31m\tc"
    text = str(report(title=odd, tables=(Table(odd, pd.DataFrame({odd: [odd]}, index=[odd])),)))
    assert "\x1b" not in text and "\t" not in text and text.count("a b [31m c") == 5


def test_html_is_escaped_and_well_formed():
    frame = pd.DataFrame({name: [1.5] * len(NASTY) for name in NASTY}, index=NASTY)
    text = "<b>&"
    page = report(
        title=text, header=((text, text),), tables=(Table(text, frame, {}, (text,)),), notes=(text,)
    )._repr_html_()
    assert "<script" not in page and "<b>" not in page
    root = ET.fromstring(page)
    shown = [cell.text for cell in root.iter() if cell.tag in ("td", "th")]
    assert all(shown.count(name) == 2 for name in NASTY)
    assert root.find("h4").text == root.find(".//caption").text == root.find(".//li").text == text


def test_html_aligns_numbers_right():
    page = report().as_html()
    assert '<td style="text-align:right">23.5123</td>' in page
    assert '<th style="text-align:left">a &amp; b</th>' in page


def check_latex(text):
    """Braces balance, no special character is bare, each row has the columns that are declared."""
    bare = re.sub(r"\\[a-z]+\{\}|\\[&%$#_{}]", "", text)
    depth = 0
    for c in bare:
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0 and not set("~^#$%_<>|") & set(bare)
    assert bare.count(r"\begin{") == bare.count(r"\end{")
    for spec, body in re.findall(r"\\begin\{tabular\}\{([lr]*)\}(.*?)\\end\{tabular\}", bare, re.S):
        for row in body.splitlines():
            if row.endswith(r"\\") and "multicolumn" not in row:
                assert row.count("&") == len(spec) - 1


def test_latex():
    text = report().as_latex()
    check_latex(text)
    assert r"a \& b & 0 & NaN & 4 \\" in text and r"\caption{Gradient boosting mapping}" in text
    frame = pd.DataFrame({name: [1.5] * len(NASTY) for name in NASTY}, index=NASTY)
    nasty = report(title=NASTY[4], header=((NASTY[4], NASTY[3]),), tables=(Table(NASTY[4], frame),))
    check_latex(nasty.as_latex())
    assert r"50\% \{of\} \$x\textasciicircum{}2\$ \#1" in nasty.as_latex()


def test_latex_rows_cannot_open_an_argument():
    frame = pd.DataFrame({"a": [1, 2]}, index=["[1, 2)", "*"])
    text = report(tables=(Table("", frame),)).as_latex()
    assert "\n{[1, 2)} & 1" in text and "\n{*} & 2" in text


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.text(max_size=50), min_size=1, max_size=12, unique=True),
    cells=st.lists(st.one_of(st.floats(), st.text(max_size=60), st.none()), min_size=1, max_size=4),
)
def test_any_name_and_cell(names, cells):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in names})
    table = Table(names[0], frame.set_axis([names[0]] * len(cells), axis=0), {}, (names[-1],))
    any_report = Report(names[0], ((names[0], names[-1]),), (table,), tuple(names))
    assert max(map(len, any_report.as_text().split("\n"))) <= 78
    ET.fromstring(any_report.as_html())
    check_latex(any_report.as_latex())


def path_table(rows):
    columns = {
        "Df": np.arange(rows),
        "%Dev": np.linspace(0, 80, rows),
        "Lambda": np.geomspace(1.63, 0.001, rows),
    }
    frame = pd.DataFrame(columns, index=range(1, rows + 1))
    return Table("", frame, {"%Dev": ".2f", "Lambda": significant})


LISTING = """
Call:  gbmap("mpg ~ .", data=df)

Family: gaussian
Rows: 392

  Df  %Dev  Lambda
1  0  0.00    1.63
2  1 40.00 0.04037
3  2 80.00   0.001"""


def test_listing_snapshot():
    lines = ["Family: gaussian", "Rows: 392"]
    assert listing('gbmap("mpg ~ .", data=df)', lines, path_table(3)) == LISTING


def labels(lines):
    return [line.split()[0] for line in lines]


ENDS = [*map(str, range(1, 11)), "...", "96", "97", "98", "99", "100"]
CUT = "... stands for rows that are not shown; {} shows all rows."


def test_listing_cuts_the_middle_and_says_what_is_whole():
    full, short = (listing("f()", [], path_table(n), "g()").split("\n") for n in (30, 100))
    assert len(full) == 4 + 30 and "..." not in " ".join(full)
    assert labels(short[4:-1]) == ENDS and short[-1] == CUT.format("g()")


def test_a_report_cuts_long_tables_as_the_listing_does_unless_it_is_full():
    table = Table("Path", path_table(100).frame, {}, ("A note.",))
    short, full = (report(tables=(table,), full=full) for full in (False, True))
    lines = str(short).split("\n")
    start, end = lines.index("-" * 78) + 3, lines.index("A note.")
    assert labels(lines[start : end - 1]) == ENDS
    assert lines[end + 1] == CUT.format("summary(full=True)")
    for shown in (short.as_html(), short.as_latex()):
        assert "7.27" in shown and "8.08" not in shown and "summary(full=True)" in shown
    for shown in (str(full), full.as_html(), full.as_latex()):
        assert "8.08" in shown and "left out" not in shown


@pytest.mark.parametrize("keep", [[k in (0, 20, 21, 39) for k in range(40)], [True] * 40])
def test_a_table_says_which_rows_are_to_stay(keep):
    lines = listing("f()", [], Table("", path_table(40).frame, keep=keep), "g()").split("\n")
    some = ["1", "...", "21", "22", "...", "40", "..."]  # the last begins the note
    assert labels(lines[4:]) == ([*map(str, range(1, 41))] if all(keep) else some)


def test_listing_wraps_long_calls_and_shows_title_and_notes():
    call = 'gbmap("y ~ ' + " + ".join(f"x{j}" for j in range(30)) + '", data=df)'
    table = Table("Path", path_table(2).frame, {}, ("Not converged: 2.",))
    lines = listing(call, [], table).split("\n")
    assert lines[1].startswith("Call:  gbmap(") and lines[2].startswith(" " * 7)
    assert max(map(len, lines)) <= 78
    assert "Path" in lines and lines[-1] == "Not converged: 2."
