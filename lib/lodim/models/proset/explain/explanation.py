"""Explanation: one estimate, taken apart prototype by prototype (Ruf 2022, Figure 4.5)."""

from dataclasses import dataclass
from os import PathLike

import numpy as np
import pandas as pd

from lodim.models.proset.explain import workbook
from lodim.report.tables import Report, Table, significant

QUERY, PRIOR, PROTOTYPE, OTHERS = "query", "prior", "prototype", "others"
MOST_ROWS, MOST_FEATURES = 16, 8  # of the printed tables
STAR = "*"  # of the dominant set: heads its column too, whose width is wanted elsewhere


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What an estimate is made of.

    Attributes
    ----------
    frame : DataFrame
        First the row itself (role "query"), then the null model ("prior", a row a class), then
        prototypes by falling impact, and last the sum of those left out ("others"). Columns:
        batch, row (label in the training data), target, prototype_weight w, similarity G(x),
        impact w G(x), dominant (Algorithm 4.1); for classes p[class], what the row adds to the
        probability of each class, and cumulative, the share of the estimate so far; for numbers
        contribution, what it moves the estimate by, and cumulative, the estimate so far; then the
        features. In the row of the query stand the estimate itself and its known response.
    label : label of the row
    prediction : Series of class probabilities, or a float
    familiarity : float, sum of all impacts (Eq. 4.5)
    quantile : float
        Share of the training rows that are no more familiar; NaN in a fit of a path.
    n_prototypes, n_dominant : int
    features : list of str, the features shown, most important first
    """

    call: str
    response: str
    frame: pd.DataFrame
    label: object
    prediction: pd.Series | float
    familiarity: float
    quantile: float
    n_prototypes: int
    n_dominant: int
    features: list[str]

    def report(self) -> Report:
        """The Report that prints: header, contributions, and the features beside each other."""
        return Report(
            title=f"Explanation of row {self.label}",
            header=tuple(self.header()),
            tables=(_contributions(self), *((_features(self),) if self.features else ())),
            notes=_notes(self),
        )

    def header(self) -> list[tuple[str, str]]:
        """Labels and values that stand above the table."""
        known = self.frame["target"].iloc[0]
        quantile = "unknown" if np.isnan(self.quantile) else f"{self.quantile:.2f}"
        return [
            ("Response", self.response),
            ("Observed", "unknown" if pd.isna(known) else significant(known)),
            ("Predicted", _predicted(self.prediction)),
            ("Familiarity", significant(self.familiarity)),
            ("Quantile of familiarity", quantile),
            ("Prototypes", str(self.n_prototypes)),
            ("Dominant", str(self.n_dominant)),
        ]

    def to_excel(self, path: str | PathLike) -> None:
        """Write a formatted workbook: the explanation, and a sheet that says what it is.

        Raises
        ------
        MissingExtraError
            openpyxl is not installed.
        """
        workbook.of_explanation(self, path)

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report().as_html()


# What it prints ----------------------------------------------------------------------------------


def _predicted(prediction):
    if not isinstance(prediction, pd.Series):
        return significant(prediction)
    return f"{prediction.idxmax()} ({prediction.max():.3f})"


def labels(frame):
    """What each row is, in words."""
    named = {
        QUERY: lambda r: f"row {r['row']}", PRIOR: lambda r: "null model",
        PROTOTYPE: lambda r: f"prototype {r['row']}",
        OTHERS: lambda r: f"{str(r['row']).split()[0]} more",
    }  # fmt: skip
    return [named[r["role"]](r) for r in frame.to_dict("records")]


def _contributions(e):
    frame = _few(e)
    classes = isinstance(e.prediction, pd.Series)
    added = [f"p[{k}]" for k in e.prediction.index] if classes else ["contribution"]
    columns = {} if e.frame["batch"].nunique() < 2 else {"Batch": frame["batch"]}
    columns |= {
        "Target": frame["target"], "Weight": frame["prototype_weight"],
        "Simil.": frame["similarity"], "Impact": frame["impact"], STAR: frame["dominant"],
    }  # fmt: skip
    columns |= {c: frame[c] for c in added} if classes else {"Adds": frame["contribution"]}
    if not classes:
        columns["Estimate"] = frame["cumulative"]
    table = pd.DataFrame(columns).set_axis(labels(frame), axis=0)
    formats = dict.fromkeys(table, _blank) | dict.fromkeys(("Weight", "Impact"), _fixed(2))
    formats |= dict.fromkeys(("Simil.", *(added if classes else ())), _fixed(3))
    formats[STAR] = lambda v: "" if pd.isna(v) or not v else STAR
    return Table("Contributions", table, formats)


def _features(e):
    frame = _few(e)
    frame = frame[frame["role"].isin([QUERY, PROTOTYPE])]
    table = frame[e.features[:MOST_FEATURES]].set_axis(labels(frame), axis=0)
    left = len(e.features) - table.shape[1]
    notes = (f"{left} more features are left out; see .frame.",) if left else ()
    return Table("Active features, the most important first", table, notes=notes)


def _few(e):
    """The rows that are printed: from the top, and the sum of all others."""
    if len(e.frame) <= MOST_ROWS + 1:
        return e.frame
    top, rest = e.frame.iloc[:MOST_ROWS], e.frame.iloc[MOST_ROWS:]
    n = e.n_prototypes - int((top["role"] == PROTOTYPE).sum())
    other = rest.iloc[-1:].copy()
    other["role"], other["row"], other["target"] = OTHERS, str(n), None
    sums = [c for c in rest if c.startswith("p[")] + ["prototype_weight", "impact"]
    for name in [c for c in (*sums, "contribution") if c in rest]:
        other[name] = rest[name].sum()
    other["similarity"], other["dominant"] = np.nan, bool(rest["dominant"].any())
    return pd.concat([top, other])


def _notes(e):
    numeric = not isinstance(e.prediction, pd.Series)
    what = (
        "Adds: what each row moves the estimate by, from the null model's mean"
        if numeric
        else "p[class]: what each row adds to the probability of its class"
    )
    notes = [f"Impact: weight times similarity; {what}; in the first row the estimate itself."]
    notes.append(
        "*, the dominant set: whatever the targets of the others"
        + (" (within the prototypes' range), the estimate stays on its side of the null model's "
           "mean." if numeric else ", the most probable class stays.")
    )  # fmt: skip
    return tuple(notes)


def _blank(value):
    return "" if pd.isna(value) else significant(value)


def _fixed(digits):
    return lambda v: "" if pd.isna(v) else f"{v:.{digits}f}"
