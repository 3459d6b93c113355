"""Excel workbooks of proset, formatted like Figure 4.5 of Ruf (2022)."""

from typing import Any

import pandas as pd

from lodim.design.frame import in_pandas
from lodim.report import excel
from lodim.report.phrases import per
from lodim.typing import Data, FilePath

FEATURE, ESTIMATE = "4D7C5A", "7A4E79"  # colours of headings: features, parts of the estimate
FILLS = {"query": "FFF2CC", "prior": "E7E6E6", "others": "E7E6E6"}
WORDS = {"prototype_weight": "prototype weight"}  # headings that are not names of columns
COLUMNS = {"role", "batch", "row", "members", "target", "dominant"}  # of text and whole numbers
FORMATS = {"prototype weight": "0.00", "similarity": "0.000", "impact": "0.00"}


def to_excel(
    fit: Any, path: FilePath, row: Data | pd.Series | None = None, **arguments: Any
) -> None:
    """Write an Excel workbook with all prototypes, or with an explanation of `row` if it is given.

    Parameters
    ----------
    path : path
        Path of the .xlsx file.
    row : frame of one row, Series, or dict of values, optional
        Row to explain; by default the table of `export()` is written.
    **arguments
        Arguments of `explain`, or `data` of `export`.

    Raises
    ------
    MissingExtraError, StoreError
        If openpyxl is not installed, or the file cannot be written.

    See Also
    --------
    export, explain

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     fit.to_excel(folder + "/iris.xlsx")
    """
    if row is not None:
        fit.explain(row, **arguments).to_excel(path)
        return
    frame = fit.export(**arguments).rename(columns=WORDS)
    features = [c for c in frame if c not in {*COLUMNS, *FORMATS}]
    formats, heads = FORMATS | _formats(frame, features), dict.fromkeys(features, FEATURE)
    scales = ["prototype weight"]
    sheet = excel.Sheet("prototypes", frame, formats, scales=scales, heads=heads, fixed=2)
    tidy = in_pandas(fit.tidy)().sort_values("std_estimate", ascending=False, kind="stable")
    scaled = f"weight {per(fit)}"
    tidy = tidy.rename(columns={"estimate": "weight", "std_estimate": scaled})
    weights = excel.Sheet("features", tidy, _formats(tidy, ["weight", scaled]), scales=[scaled])
    glance = in_pandas(fit.glance)().iloc[0]
    about = [("Model", fit.call), *((k, str(v)) for k, v in glance.items())]
    excel.write(path, [sheet, weights, _about(about)])


def write_explanation(e, path):
    """Write an Explanation e to workbook `path`: contributions, features, and a sheet about e."""
    frame = e.frame.rename(columns=WORDS)
    parts = [c for c in frame if c not in {*COLUMNS, *FORMATS, *e.features}]
    formats = FORMATS | _formats(frame, parts) | _formats(frame, e.features)
    if isinstance(e.prediction, pd.Series):
        formats |= dict.fromkeys(parts, "0.000")
    heads = dict.fromkeys(parts, ESTIMATE) | dict.fromkeys(e.features, FEATURE)
    rows = {k: FILLS[role] for k, role in enumerate(frame["role"]) if role in FILLS}
    style = {"scales": ["impact"], "heads": heads, "rows": rows, "fixed": 3}
    sheet = excel.Sheet("explanation", frame, formats, **style)
    about = [("Explanation of row", str(e.label)), ("Model", e.call), *e._header()]
    about += [("Note", note) for note in e.report().notes]
    excel.write(path, [sheet, _about(about)])


def _about(pairs):
    return excel.Sheet("about", pd.DataFrame(pairs, columns=["what", "value"]))


def _formats(frame, names):
    """Return a dict of Excel number formats, by column name, for columns `names` of a frame.

    The largest number gets four digits; columns without fractions get "General"."""
    formats = dict.fromkeys(names, "General")
    for name in names:
        values = pd.to_numeric(frame[name], errors="coerce").dropna()
        if (values == values.round()).all():
            continue
        size = values.abs().max()
        digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3
        while size < 10.0 ** (2 - digits) and digits < 8:
            digits += 1
        formats[name] = f"{0:.{digits}f}"
    return formats
