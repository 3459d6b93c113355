"""Explanation: one answer, with the view that gave it and the neighbours in that view."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.models.ripr.answers import clusters
from lodim.models.ripr.answers.answers import nearest
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.report import axes
from lodim.report.tables import Report, Table, significant


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a row got its answer.

    Attributes
    ----------
    label : label of the row
    view : str, the view that serves it; None where it has all features of none
    prediction : class, number or cluster; None without a view
    probabilities : Series by class, or None
    views : DataFrame
        A row a view: loss (of numbers weight, the share of the view among the neighbours), what
        the view says, and whether it serves the row.
    neighbours : DataFrame
        The nearest training rows in the view: distance (in standard deviations), response, and the
        features of the view, in original units. The row itself comes first.
    """

    response: str
    label: Any
    view: str | None
    prediction: Any
    probabilities: pd.Series | None
    views: pd.DataFrame
    neighbours: pd.DataFrame
    _fit: Any = field(repr=False)
    _row: Any = field(repr=False)

    def report(self) -> Report:
        """The Report that prints: header, what the views say, and the neighbours."""
        tables = [_views(self)]
        if self.view is not None:
            tables.append(_neighbours(self))
        return Report(f"Explanation of row {self.label}", tuple(_header(self)), tuple(tables),
                      _notes(self))  # fmt: skip

    def plot(self, ax=None, **arguments: Any):
        """The views side by side with the row in them; returns an array of Axes."""
        return self._fit.plot("data", ax, row=self._row, **arguments)

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report().as_html()


def explain(fit, row, k):
    """The Explanation of one row of new data."""
    batch = one_row(fit, row)
    e = fit.estimates
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 1:
        raise ArgumentError(f"k must be a whole number from 1, not {k!r}")
    X = e.rows(batch)
    answers = fit.answers(batch)
    j = int(answers.view[0])
    type_ = {CLASSES: "class", CLUSTERS: "cluster", NUMBERS: "response"}[e.task]
    probabilities = fit.predict(row, "prob").iloc[0] if e.task == CLASSES else None
    return Explanation(
        response="" if fit.design.response is None else fit.design.response.name,
        label=batch.index[0], view=None if j < 0 else fit.view_names[j],
        prediction=None if j < 0 else fit.predict(row, type_).iloc[0],
        probabilities=probabilities, views=_said(fit, answers, X),
        neighbours=_near(fit, X, j, k, batch.index[0]) if j >= 0 else pd.DataFrame(),
        _fit=fit, _row=row,
    )  # fmt: skip


def one_row(fit, row):
    """The batch of one row of new data."""
    words = "row must be a frame with one row, such as data.iloc[[0]]"
    if not (isinstance(row, Mapping) or hasattr(row, "columns")):
        raise ArgumentError(words)
    batch = fit.design.apply(row)
    if len(batch.index) != 1:
        raise ArgumentError(f"{words}; this one has {len(batch.index)}")
    return batch


def _said(fit, answers, X):
    """A row a view: loss, what it says, whether it serves."""
    e, said, loss = fit.estimates, answers.said[0], answers.loss[0]
    if e.task == CLASSES:
        said = [None if np.isnan(c) else fit.levels[int(c)] for c in said]
    if e.task == CLUSTERS:
        each = [replace(answers, view=np.array([j if np.isfinite(loss[j]) else -1]))
                for j in range(len(e))]  # fmt: skip
        where = [clusters.assigned(e, X, one)[0][0] for one in each]
        said = [clusters.names(e)[q] if q >= 0 else None for q in where]
    name, value = ("weight", 1.0 - loss) if e.task == NUMBERS else ("loss", loss)
    return pd.DataFrame({
        "view": fit.view_names, name: np.where(np.isfinite(loss), value, np.nan), "says": said,
        "serves": np.arange(len(e)) == answers.view[0],
    })  # fmt: skip


def _near(fit, X, j, k, label):
    """The row and its nearest training rows in view j."""
    e, d = fit.estimates, fit.design
    far, where = (z[0] for z in nearest(e, j, X, k))
    far, where = far[where >= 0], where[where >= 0]
    at = e.columns(j)
    features = e.features[at]
    raw = np.vstack([X[:, at], e.X[where][:, at]]) * d.scale[features] + d.mean[features]
    y = e.y[where]
    said = y if fit.levels is None else [None if np.isnan(c) else fit.levels[int(c)] for c in y]
    frame = pd.DataFrame({"row": [label, *(fit.labels[i] for i in where)]})
    frame["role"] = ["query", *["neighbour"] * len(where)]
    frame["distance"] = [np.nan, *far]
    if d.response is not None:
        frame["target"] = [None, *said]
    for name, values in zip(fit.view_features[j], raw.T, strict=True):
        frame[name] = values
    return frame


# What it prints ----------------------------------------------------------------------------------


def _header(x):
    rows = [("View", x.view or "none: a feature of each is missing")]
    if x.prediction is not None:
        p = "" if x.probabilities is None else f" ({x.probabilities[x.prediction]:.3f})"
        rows.append((f"Predicted {x.response}".strip(), f"{significant(x.prediction)}{p}"))
    return rows


def _views(x):
    value = x.views.columns[1]
    table = axes(x._fit).assign(
        **{
            value.capitalize(): x.views[value].to_numpy(), "Says": x.views["says"].to_numpy(),
            "*": ["*" if s else "" for s in x.views["serves"]],
        }
    )  # fmt: skip
    return Table("Views", table, {value.capitalize(): _blank, "Says": _blank})


def _neighbours(x):
    frame = x.neighbours
    index = [f"row {r}" if q == "query" else str(r)
             for r, q in zip(frame["row"], frame["role"], strict=True)]  # fmt: skip
    table = frame.drop(columns=["row", "role"]).set_axis(index, axis=0)
    table = table.rename(columns={"distance": "Distance", "target": x.response})
    return Table("Nearest training rows in the view", table, dict.fromkeys(table, _blank))


def _notes(x):
    numbers = "weight" in x.views
    first = (
        "Weight: how much of the neighbours (by inverse distance) the view serves; the largest "
        "serves the row (*)."
        if numbers
        else "Loss: ratio of the distance to neighbours of the class to that of the others, to the "
        "power dim (1 - a) (Eq. 2.11); the smallest serves the row (*)."
        if x.probabilities is not None
        else "Loss: ratio of the distance to neighbours to that in a uniform sample, to the power "
        "dim (1 - a); the smallest serves the row (*)."
    )
    notes = [first]
    if x.views.iloc[:, 1].isna().any():
        notes.append("Views without a number need a feature that the row does not have.")
    if x.view is not None and (x.neighbours["distance"] == 0).any():
        notes.append(
            "A neighbour at distance 0 may be the row itself, which then speaks for its "
            "own answer; the errors that summary() shows are of rows without themselves."
        )
    return tuple(notes)


def _blank(value):
    return "" if value is None or pd.isna(value) else significant(value)
