"""Explanation of one prediction: the feature set (view) that made it, and its neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import MOST_ROWS, whole
from lodim.errors import ArgumentError, DataError
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.report import view_features
from lodim.models.ripr.settings import VOTE
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Report, Table, significant
from lodim.text import feature_columns


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Explanation of a row's prediction by views (sets of one to three features).

    Attributes
    ----------
    label : label of the row
    view : str, the view that predicts the row, or has most weight; None if each view has a
        missing feature
    prediction : class, number or cluster
    probabilities : Series by class, or None
    views : DataFrame
        One row per view: its loss or weight, its prediction, and whether it is the row's view.
    neighbours : DataFrame
        The explained row, then the nearest training rows in its view: distance (in standard
        deviations), response, and the view's features in original units.
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
        """Return the Report that is printed: header, predictions by feature set, neighbours."""
        rows = [("View", self.view or "none: each view has a missing feature")]
        if self.prediction is not None:
            shown, p = significant(self.prediction), self.probabilities
            shown += "" if p is None else f" ({p[self.prediction]:.3f})"
            rows.append((f"Predicted {self.response}".strip(), shown))
        value = self.views.columns[1]
        table = view_features(self._fit)
        table[value.capitalize()] = self.views[value].to_numpy()
        table["Says"] = self.views["says"].to_numpy()
        table["*"] = ["*" if serves else "" for serves in self.views["serves"]]
        formats: dict[Any, Any] = {value.capitalize(): blank_if_missing, "Says": blank_if_missing}
        tables = [Table("Views", table, formats)]
        if self.view is not None:
            frame = self.neighbours
            roles = zip(frame["row"], frame["role"], strict=True)
            index = [f"row {r}" if role == "query" else str(r) for r, role in roles]
            table = frame.drop(columns=["row", "role"]).set_axis(index, axis=0)
            own = ["Distance", self.response] if self.response else ["Distance"]
            names = feature_columns(table.columns[len(own) :], own)
            table = table.set_axis([*own, *names], axis=1)
            formats = dict.fromkeys(table.columns, blank_if_missing)
            tables.append(Table("Nearest training rows in the view", table, formats))
        title = f"Explanation of row {self.label}"
        return Report(title, tuple(rows), tuple(tables), _notes(self))

    def plot(self, ax: Any = None, **arguments: Any) -> Any:
        """Draw the views (feature sets) side by side, with the explained row.

        Parameters
        ----------
        ax : array of Axes, optional
            One per view.
        **arguments
            The arguments of `RiprFit.plot("view")`.

        Returns
        -------
        array of Axes
        """
        return self._fit.plot("view", ax, row=self._row, **arguments)

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report().as_html()


def explain(fit: Any, row: Any, k: int = 5) -> Explanation:
    """Explain the prediction of a fit for one row: its feature set, all predictions, neighbours.

    Parameters
    ----------
    row : frame
        One row of new data, such as `data.iloc[[3]]`; otherwise an ArgumentError.
    k : int, default=5
        Number of neighbours to show: the nearest training rows in the row's feature set.

    Returns
    -------
    Explanation
        It prints, and has plot().

    See Also
    --------
    votes, plot

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> axes = ld.ripr("species ~ .", iris, max_dim=2, k=10).explain(iris[:1]).plot()
    """
    batch = one_row(fit, row)
    e = fit.estimates
    k = whole("k", k, most=MOST_ROWS)
    X = e.rows(batch)
    answers = fit._answers(batch)
    j, label = int(answers.view[0]), batch.index[0]
    kind = {CLASSES: "class", CLUSTERS: "cluster", NUMBERS: "response"}[e.task]
    neighbours = pd.DataFrame()

    def predicted(type):
        return fit._in_all_rows(batch, *fit._predict(batch, type)).iloc[0]

    if j >= 0:
        distance, where = (z[0] for z in e.nearest(j, X, k))
        distance, where = distance[where >= 0], where[where >= 0]
        neighbours = pd.DataFrame({"row": [label, *(fit.labels[i] for i in where)]})
        neighbours["role"] = ["query", *["neighbour"] * len(where)]
        neighbours["distance"] = [np.nan, *distance]
        if fit.design.response is not None:
            y = e.y[where] if fit.levels is None else by_code(fit.levels, e.y[where])
            neighbours["target"] = [None, *y]
        raw = view_values(fit, np.vstack([X, e.X[where]]), j)
        names = feature_columns(fit.view_features[j], neighbours)
        for name, values in zip(names, raw, strict=True):
            neighbours[name] = values
    return Explanation(
        response="" if fit.design.response is None else fit.design.response.name,
        label=label,
        view=None if j < 0 else fit.view_names[j],
        prediction=None if j < 0 and e.method != VOTE else predicted(kind),
        probabilities=predicted("prob") if e.task == CLASSES else None,
        views=_view_frame(fit, answers, X),
        neighbours=neighbours,
        _fit=fit,
        _row=row,
    )


def one_row(fit, row):
    """Return the batch (coded data) of one row of new data; raise if there are more or none."""
    words = "row must be a frame with one row, such as data.iloc[[0]]"
    if not (isinstance(row, Mapping | pd.Series) or hasattr(row, "columns")):
        raise ArgumentError(words)
    batch = fit.design.apply(row)
    if len(batch.index) != 1:
        raise ArgumentError(f"{words}; this one has {len(batch.index)}")
    if not batch.n:
        raise DataError(
            "the row has a missing feature, and a fit with missing='drop' does not predict such "
            "rows"
        )
    return batch


def _view_frame(fit, answers, X):
    """Return a frame with one row per view (feature set), for the explanation of one prediction.

    answers : predictions for X (1, features), the row to explain
    Columns: "view", "weight" or "loss", "says" (prediction), "serves" (predicts the row)."""
    e, value, loss = fit.estimates, answers.value[0], answers.loss[0]
    if e.task == CLASSES:
        value = by_code(fit.levels, value).tolist()
    if e.task == CLUSTERS:
        views = [np.array([j if np.isfinite(loss[j]) else -1]) for j in range(len(e))]
        where = [e.assign(X, view)[0][0] for view in views]
        value = by_code(e.cluster_names, where).tolist()
    weighed = e.task == NUMBERS or e.method == VOTE
    name, number = ("weight", 1.0 - loss) if weighed else ("loss", loss)
    frame = pd.DataFrame(
        {"view": fit.view_names, name: np.where(np.isfinite(loss), number, np.nan)}
    )
    return frame.assign(says=value, serves=np.arange(len(e)) == answers.view[0])


def view_values(fit, X, j):
    """Return, per feature of set j, the values of rows X in original units, or as level names."""
    e, d = fit.estimates, fit.design
    out = []
    for a in e.columns(j):
        x = X[:, a]
        if e.is_factor(a):
            out.append(by_code(level_names(fit, e.features[a]), x))
        else:
            feature = int(np.flatnonzero(e.axis_of == e.features[a])[0])
            out.append(x * d.scale[feature] + d.mean[feature])
    return out


def by_code(names, code):
    """Return the name of each code (an array of any shape); None for the codes -1 and NaN."""
    return np.array([*names, None], object)[np.where(np.isnan(code), -1, code).astype(int)]


def level_names(fit, axis):
    """Return the names of a factor's levels, in the order of their codes; `axis` is its number."""
    d, own = fit.design, np.flatnonzero(fit.estimates.axis_of == axis)
    return list(d.terms[d.term_of[own[0]]][0].labels)


def _notes(x):
    power, e = "to the power dim (1 - alpha)", x._fit.estimates
    if e.method == VOTE:
        first = (
            "Weight: share of the view in the evidence for the prediction, relative to the mean "
            "of all training rows; * marks the largest. Says: prediction by this view alone; the "
            f"fit adds up the evidence of the views and multiplies it by {significant(e.factor)}."
        )
    elif "weight" in x.views:
        first = (
            "Weight: share of the neighbours, weighted by inverse distance, that are assigned to "
            "the view; * marks the view of the row, which has the largest."
        )
    elif x.probabilities is not None:
        first = (
            "Loss: ratio of the distance to neighbours of the class to that of the others, "
            f"{power} (Eq. 2.11); * marks the view of the row, which has the smallest."
        )
    else:
        first = (
            f"Loss: ratio of the distance to neighbours to that in a uniform sample, {power}; * "
            "marks the view of the row, which has the smallest."
        )
    notes = [first]
    if x.views.iloc[:, 1].isna().any():
        notes.append("Views without a number have a feature that is missing in the row.")
    if x.view is not None and (x.neighbours["distance"] == 0).any():
        notes.append(
            "A neighbour at distance 0 may be the row itself, which then votes for its own "
            "response; the errors in summary() leave each row out."
        )
    return tuple(notes)
