"""Report page of a ripr fit."""

import pandas as pd

from lodim.design.factors import column_with_levels
from lodim.design.frame import in_pandas
from lodim.page.picture import Picture
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.text import join_words

MOST_VIEWS = 4


def words(fit):
    """The model in a few sentences."""
    views = list(dict.fromkeys(in_pandas(fit.tidy)()["term"]))
    n = len(views)
    number = "One view answers" if n == 1 else f"{n} views answer"
    some = join_words(views[:3]) if len(views) <= 3 else f"{'; '.join(views[:3])} and others"
    return [
        f"{number} for all rows, by at most three features each (informative projections): {some}.",
        "In each view, the training rows nearest to a row predict its response.",
    ]


def pictures(fit, data):
    """How much each view says, and the first views with the rows of the data."""
    views = in_pandas(fit.tidy)().rename(
        columns={"term": "view", "mass": "share", "estimate": "share of the rows"}
    )
    note = "Share of the rows, or of the votes, that a view stands for."
    hover = ("share of the rows", "error")
    found = [Picture("Views", "bars", views, "share", "view", note, hover=hover)]
    if data is None:
        return found
    rows, clusters = thinned(data, MOST_POINTS), fit.design.response is None
    new = {"cluster": fit.predict(rows)} if clusters else {}
    rows, (row, *color) = with_columns(rows, new)
    if not clusters:
        color = [name for name in [fit.design.response.name] if name in data]
    columns = _columns(fit)
    for names in fit.view_features[:MOST_VIEWS]:
        two = [columns.get(name, name) for name in names[:2]]
        if len(two) == 2 and {*two} <= {*data.columns}:
            note = "The first two features of this view." if len(names) > 2 else ""
            title, frame = f"View: {', '.join(names)}", _in_level_order(rows, two[0])
            style = {"color": "".join(color), "hover": (row, *data.columns[:MOST_HOVER])}
            found.append(Picture(title, "points", frame, *two, note, **style))
    return found


def _in_level_order(rows, name):
    """The rows in order of a category, which is the order of the names on its axis."""
    if pd.api.types.is_numeric_dtype(rows[name]):
        return rows
    declared = isinstance(rows[name].dtype, pd.CategoricalDtype)
    return rows.sort_values(name, kind="stable", key=None if declared else lambda c: c.map(str))


def _columns(fit):
    """The column of each feature that is a level of a category."""
    d = fit.design
    parts = {name: d.terms[t] for name, t in zip(d.names, d.term_of, strict=True)}
    columns = {name: column_with_levels(part[0]) for name, part in parts.items() if len(part) == 1}
    return {name: column for name, column in columns.items() if column is not None}
