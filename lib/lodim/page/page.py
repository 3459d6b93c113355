"""A fit as a self-contained HTML file: text, pictures, and predictions for chosen values."""

import itertools
import json
import platform
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lodim import __version__
from lodim.atomic_write import replacing
from lodim.errors import ArgumentError, DataError, StoreError
from lodim.export import javascript
from lodim.page import charts, inputs, sections
from lodim.report import phrases
from lodim.text import first_few

EFFECTS, ACCURACY = "What each column does", "How well it fits"
CHECKS, LIMITS = "Checks", "What it is for, and its limits"
TEMPLATE = Path(__file__).with_name("page.html")


def write(fit: Any, path: str | PathLike, data: Any = None) -> None:
    """Write the HTML page of a fit to a file: text, pictures, and predictions for chosen values."""
    design = fit.design
    if data is not None and design.offset_given and design.offset is None:
        cure = "fit it with the name of a column as offset=, or leave data out"
        raise ArgumentError(f"a fit with an array as offset cannot show data: {cure}")
    if data is not None:
        frame = inputs.read_frame(data)
        if frame.repeated:
            repeated = min(frame.repeated)
            raise DataError(f"two columns of the data are called {repeated!r}; rename one")
        if not len(frame.index):
            raise DataError("data must have at least one row")
        values = {name: frame.fetch(frame.keys[name]) for name in frame.names}
        data = pd.DataFrame(values, index=frame.index)
    save(html(fit, data), path)


def save(text: str, path: str | PathLike) -> None:
    """Write the text of a page to a file; raise StoreError if that is not possible."""
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8"))
    except (OSError, TypeError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise StoreError(f"the report cannot be written to {path!r}: {said}") from error


def filled(template: Path, **values: Any) -> str:
    """Return the text of a page: a template of Jinja, filled with values by name."""
    _, jinja2 = charts.libraries()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)


def html(fit: Any, data: pd.DataFrame | None = None) -> str:
    charts.libraries()  # an error if a package is missing, before the work
    columns = inputs.from_design(fit.design) if data is None else inputs.from_data(fit.design, data)
    groups, notes = _pictures(fit, columns, data)
    number = itertools.count()
    shown = [picture for group in groups.values() for picture in group]
    made_by = f"lodim {__version__}, Python {platform.python_version()}"
    program, reason = None, "no data were given to the report"
    if columns:
        try:
            program, reason = javascript.write(fit._equation("error")), ""
        except ArgumentError as error:
            reason = str(error)
    settable = []
    for column in columns or ():
        typical = column.typical
        if isinstance(typical, float):
            typical = None if np.isnan(typical) else float(f"{typical:.6g}")
        settable.append(vars(column) | {"typical": typical})
    return filled(
        TEMPLATE,
        title=f"{fit.name}: {fit.design.formula}",
        words=fit._in_words(),
        facts=sections.facts(fit) | {"made by": made_by, "call": fit.call},
        groups={title: [(next(number), one) for one in group] for title, group in groups.items()},
        notes=notes,
        lists=({} if data is None else {CHECKS: sections.findings(fit, data)})
        | {LIMITS: sections.limits(fit)},
        summary=fit.summary().as_html(),
        program=program,
        reason=reason,
        bundle=charts.program(),
        page=script(
            {
                "charts": [charts.chart(picture) for picture in shown],
                "inputs": settable,
                "answer": "" if fit.design.response is None else phrases.modelled(fit),
            }
        ),
    )


def _pictures(fit, columns, data):
    """Return two dicts with the headings of a report as keys: lists of pictures, and notes.

    columns : list of Inputs, the data columns that the fit uses
    data : frame with rows to show, or None"""
    groups, notes = {}, {}
    if columns and fit.design.response is not None:
        groups[EFFECTS], hidden = sections.effects(fit, columns, data)
        stay = "are in rows of the data" if data is not None else "typically are"
        notes[EFFECTS] = (
            f"The mean prediction where a column takes a value and all others stay as they {stay}."
            + " Ticks are every fifth percentile of the data." * (data is not None)
            + (f" Not shown, with less effect or none: {first_few(hidden)}." if hidden else "")
            + f" Computed for {sections.MOST_EFFECTS} of {len(columns):,} columns, those with the "
            "largest estimates." * (len(columns) > sections.MOST_EFFECTS)
        )
    if data is not None and fit.design.has_response(data):
        groups[ACCURACY] = sections.accuracy(fit, data)
        if groups[ACCURACY]:
            notes[ACCURACY] = sections.figures(fit, data)
    if data is not None and fit.arguments.get("weights") is not None:
        counts_alike = [EFFECTS] if fit.levels is not None and len(fit.levels) == 2 else notes
        for heading in notes.keys() & counts_alike:
            notes[heading] += " Each row counts once in these pictures, whatever its weight."
    groups["The model"] = fit._pictures(data) + sections.choice(fit)
    return {heading: group for heading, group in groups.items() if group}, notes


def script(record: Any) -> str:
    """Return a record as JSON for an HTML script element; no text in it can end the element."""
    return json.dumps(record, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
