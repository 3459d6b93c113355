"""Explanation of an estimate by prototypes (Ruf 2022, Figure 4.5); table of all prototypes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError, DataError
from lodim.models.proset.explain import workbook
from lodim.models.proset.explain.query import (
    active_names,
    active_values,
    by_importance,
    original_units,
    read_query,
    select_features,
    share_below,
    targets,
    zero_offset,
)
from lodim.models.proset.prototypes import Mixture
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Report, Table, significant
from lodim.text import counted, feature_columns
from lodim.typing import Data, FilePath, Offset

QUERY, PRIOR, PROTOTYPE, OTHERS = "query", "prior", "prototype", "others"
SCALE = "Distance: in the active features, in widths of the kernel; 1 is a similarity of 0.61."
MOST_ROWS, MOST_FEATURES = 16, 8  # size of the printed tables
STAR = "*"  # marks the dominant set; also the heading of its narrow column


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions of the prototypes (weighted training rows) to one estimate.

    Attributes
    ----------
    frame : DataFrame
        The row itself (role "query"), the null model ("prior"), prototypes by decreasing impact,
        and the sum of those not shown ("others"). Columns:

        - role (see above), batch (in which the prototype was found, from 1)
        - row (label in the training data), target
        - prototype_weight w, similarity G(x), impact w G(x)
        - dominant: whether the prototype helps to decide the estimate (Ruf 2022, Algorithm 4.1)
        - p[class] or contribution: what is added to each class probability, or to a number
        - cumulative: sum of the contributions so far
        - features, in original units
    label : label of the row in the data
    prediction : Series of class probabilities, or a float
    familiarity : float, sum of all impacts
    quantile : float
        Share of the training rows that are at most as familiar; NaN for fits of a path.
    n_prototypes, n_dominant : int
    features : list of str, the features shown, most important first
    nearest : DataFrame or None
        Rows of `train` nearest in the active features; distances are in widths of the kernel.
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
    nearest: pd.DataFrame | None = None

    def report(self) -> Report:
        """Return the Report that is printed."""
        tables = [_contributions(self)]
        if self.features:
            frame = _printed_rows(self)
            frame = frame[frame["role"].isin([QUERY, PROTOTYPE])]
            table = frame[self.features[:MOST_FEATURES]].set_axis(_row_labels(frame), axis=0)
            left = len(self.features) - table.shape[1]
            notes = (f"{left} more features are not shown; see .frame.",) if left else ()
            title = "Active features, the most important first"
            tables.append(Table(title, table, notes=notes))
        if self.nearest is not None:
            own, table = ["Target", "Distance"], self.nearest.iloc[:, 1 : 3 + MOST_FEATURES]
            table = table.set_axis([*own, *feature_columns(table.columns[2:], own)], axis=1)
            table = table.set_axis([f"row {k}" for k in self.nearest["row"]], axis=0)
            tables.append(Table("Nearest training rows", table, {"Distance": _fixed(2)}, (SCALE,)))
        return Report(
            title=f"Explanation of row {self.label}",
            header=tuple(self._header()),
            tables=tuple(tables),
            notes=_notes(self),
        )

    def _header(self):
        observed, prediction = self.frame["target"].iloc[0], self.prediction
        if isinstance(prediction, pd.Series):
            predicted = f"{prediction.idxmax()} ({prediction.max():.3f})"
        else:
            predicted = significant(prediction)
        quantile = "unknown" if np.isnan(self.quantile) else f"{self.quantile:.2f}"
        return [
            ("Response", self.response),
            ("Observed", "unknown" if pd.isna(observed) else significant(observed)),
            ("Predicted", predicted),
            ("Familiarity", significant(self.familiarity)),
            ("Quantile of familiarity", quantile),
            ("Prototypes", str(self.n_prototypes)),
            ("Dominant", str(self.n_dominant)),
        ]

    def to_excel(self, path: FilePath) -> None:
        """Write a formatted workbook with the explanation, and a sheet that describes it.

        Parameters
        ----------
        path : path
            Path of the .xlsx file.

        Raises
        ------
        MissingExtraError, StoreError
            If openpyxl is not installed, or the file cannot be written.
        """
        workbook.write_explanation(self, path)

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report().as_html()


# The printed tables ------------------------------------------------------------------------------


def _row_labels(frame):
    words = {QUERY: "row {}", PRIOR: "null model", PROTOTYPE: "prototype {}", OTHERS: "{} more"}
    return [
        words[role].format(str(row).split()[0] if role == OTHERS else row)
        for role, row in zip(frame["role"], frame["row"], strict=True)
    ]


def _contributions(e):
    frame = _printed_rows(e)
    columns = {} if e.frame["batch"].nunique() < 2 else {"Batch": frame["batch"]}
    columns |= {"Target": frame["target"], "Weight": frame["prototype_weight"]}
    columns |= {"Simil.": frame["similarity"], "Impact": frame["impact"], STAR: frame["dominant"]}
    probabilities = []
    if isinstance(e.prediction, pd.Series):
        probabilities = [f"p[{k}]" for k in e.prediction.index]
        columns |= {c: frame[c] for c in probabilities}
    else:
        columns |= {"Adds": frame["contribution"], "Estimate": frame["cumulative"]}
    table = pd.DataFrame(columns).set_axis(_row_labels(frame), axis=0)
    formats = dict.fromkeys(table, blank_if_missing)
    formats |= dict.fromkeys(("Weight", "Impact"), _fixed(2))
    formats |= dict.fromkeys(("Simil.", *probabilities), _fixed(3))
    formats[STAR] = lambda v: "" if pd.isna(v) or not v else STAR
    return Table("Contributions", table, formats)


def _printed_rows(e):
    """Return the rows of an explanation to print: the first ones, and the sum of all others."""
    if len(e.frame) <= MOST_ROWS + 1:
        return e.frame
    first, rest = e.frame.iloc[:MOST_ROWS], e.frame.iloc[MOST_ROWS:]
    n = e.n_prototypes - int((first["role"] == PROTOTYPE).sum())
    other = rest.iloc[-1:].copy()
    other["role"], other["row"] = OTHERS, str(n)
    other["target"] = other["target"].mask([True])  # missing, and of the same type
    sums = [c for c in rest if c.startswith("p[")] + ["prototype_weight", "impact"]
    for name in [c for c in (*sums, "contribution") if c in rest]:
        other[name] = rest[name].sum()
    other["similarity"], other["dominant"] = np.nan, bool(rest["dominant"].any())
    return pd.concat([first, other])


def _notes(e):
    if isinstance(e.prediction, pd.Series):
        adds = "p[class]: contribution of each row to the probability of its class"
        stays = ", the most probable class stays."
    else:
        adds = "Adds: change of the estimate by each row, starting at the mean of the null model"
        stays = (
            " (within the prototypes' range), the estimate stays on the same side of the mean of "
            "the null model."
        )
    return (
        f"Impact: weight times similarity; {adds}; the first row has the estimate.",
        "Familiarity, the sum of all impacts, depends on the active features only.",
        f"*: dominant set; whatever the targets of the others{stays}",
    )


def _fixed(digits):
    return lambda v: "" if pd.isna(v) else f"{v:.{digits}f}"


# What the null model and each prototype bring ----------------------------------------------------


def explain(
    fit: Any,
    data: Data | pd.Series,
    *,
    features: int | Sequence[str] | None = None,
    least: float = 1e-3,
    train: Data | None = None,
    offset: Offset | None = None,
) -> Explanation:
    """Explain one row's estimate by the fit's weighted training rows, its prototypes (Figure 4.5).

    Parameters
    ----------
    data : frame of one row, Series, or dict of values
    features : int or list of names, optional
        Features of positive weight to show: number, most important first, or names; default: all.
    least : float, default=0.001
        Prototypes with a smaller share of the estimate are summed up, unless they help decide it.
    train : frame, optional
        Training data, or other rows with known responses; the five nearest are shown too.
    offset : array (1,) or column name, optional
        Known part of the row's linear predictor.

    Returns
    -------
    Explanation
        A printable table (`.frame`, `to_excel`), whose contributions add up to the prediction.

    Raises
    ------
    ArgumentError, DataError
        If there is more than one row, a value is missing, or a feature is not active.

    See Also
    --------
    export, shapley, familiarity

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
    >>> parts = fit.explain(iris[:1])
    >>> print(str(parts).splitlines()[0].strip())
    Explanation of row 0
    """
    if not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ArgumentError(f"least must be between 0 and 1, not {least!r}")
    t, query, on = fit.estimates, read_query(fit, data, offset), select_features(fit, features)
    mixture = Mixture.from_prototypes(t, query.batch.offset_matrix(fit.family.n_scores))
    impact = fit._impacts(query.batch)[0] if len(t) else np.zeros(0)
    mass = impact.sum()
    share = impact / (1.0 + mass)
    dominant = dominant_set(impact, t.y, None if fit.levels is None else mixture.prior[0])
    shown = np.flatnonzero((share >= least) & (impact > 0) | dominant)
    shown = shown[np.argsort(-impact[shown], kind="stable")]
    estimate = mixture.estimate((impact @ mixture.targets)[None], impact.sum(keepdims=True))[0]
    frame = _table(fit, query, mixture, estimate, impact, dominant, shown)
    x = _feature_columns(fit, np.vstack([query.x[None], t.x[shown]]), on, frame)
    frame = frame.join(x.set_axis([0, *np.flatnonzero(frame["role"] == PROTOTYPE)], axis=0))
    known = fit.calibration
    prediction: pd.Series | float = float(estimate[0])
    if fit.levels is not None:
        index = pd.Index(fit.levels)
        prediction = pd.Series(estimate, index=index, name=fit.design.response.name)
    return Explanation(
        call=fit.call,
        response=fit.design.response.name,
        frame=frame,
        label=query.label,
        prediction=prediction,
        familiarity=float(mass),
        quantile=np.nan if known is None else float(share_below(known.familiarity, mass)),
        n_prototypes=len(t),
        n_dominant=int(dominant.sum()),
        features=list(x.columns),
        nearest=None if train is None else _nearest_rows(fit, query, train, on),
    )


def _nearest_rows(fit, query, data, on):
    """Return a table of the five rows of `data` that are nearest to the row `query`, a Query.

    on : positions of the features to show
    Distances are Euclidean, in standardized features times their largest weight in any batch."""
    batch = fit.design.rows_to_show(data, offset=zero_offset(fit), needs_response=True)
    x, labels = active_values(fit, batch), batch.index[batch.rows]
    v = fit.estimates.v.max(axis=0, initial=0.0)
    distance = np.sqrt((((x - query.x) * v) ** 2).sum(axis=1))
    itself = np.array([d == 0 and k == query.label for d, k in zip(distance, labels, strict=True)])
    order = np.argsort(np.where(itself, np.inf, distance), kind="stable")
    order = order[: min(5, batch.n - int(itself.sum()))]
    target = batch.y[order]
    if fit.levels is not None:
        target = np.array(fit.levels, dtype=object)[target.astype(int)]
    frame = pd.DataFrame({"row": labels[order], "target": target, "distance": distance[order]})
    return pd.concat([frame, _feature_columns(fit, x[order], on, frame)], axis=1)


def _table(fit, query, mixture, estimate, impact, dominant, shown):
    """Return the table of an explanation: the row `query`, then the parts of its estimate.

    query : Query; mixture : Mixture of the null model and M prototypes
    estimate : (K,) estimate of the row
    impact : (M,) prototypes' weights times similarities
    dominant : (M,) bool, prototypes that decide the estimate
    shown : positions of the prototypes to list; the others are added up"""
    t, mass, unknown = fit.estimates, impact.sum(), [None]
    rest = np.setdiff1d(np.arange(len(t)), shown)
    known = None if np.isnan(query.y) else query.y
    weight, null, added_by_null = [1.0], mixture.shift[0], mixture.shift
    if fit.levels is not None:
        known = None if known is None else fit.levels[int(known)]
        weight, null = mixture.prior[0], fit.levels
        added_by_null = np.diag(weight) / (1.0 + mass)
    n, labels = len(weight), [fit.labels[k] for k in shown]
    columns = {  # of the row, of the null model, of the shown prototypes, of the others
        "role": ([QUERY], [PRIOR] * n, [PROTOTYPE] * len(shown), [OTHERS]),
        "batch": (unknown, unknown * n, t.batch[shown], unknown),
        "row": ([query.label], unknown * n, labels, [counted(len(rest), "prototype")]),
        "target": ([known], null, targets(fit)[shown], unknown),
        "prototype_weight": (unknown, weight, t.w[shown], [t.w[rest].sum()]),
        "similarity": (unknown, np.ones(n), impact[shown] / t.w[shown], unknown),
        "impact": (unknown, weight, impact[shown], [impact[rest].sum()]),
        "dominant": (unknown, [bool(dominant.any())] * n, dominant[shown].tolist(), [False]),
    }
    parts = 4 if len(rest) else 3
    whole = {name: [v for part in column[:parts] for v in part] for name, column in columns.items()}
    frame = pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in whole.items()})
    types = dict.fromkeys(("prototype_weight", "similarity", "impact"), float)
    frame = frame.astype(types | {"batch": "Int64", "dominant": "boolean"})
    frame["target"] = frame["target"].infer_objects()
    added = (impact / (1.0 + mass))[:, None] * mixture.targets
    rows = [estimate[None], added_by_null, added[shown], added[rest].sum(axis=0)[None]]
    names = ["contribution"] if fit.levels is None else [f"p[{level}]" for level in fit.levels]
    each = pd.DataFrame(np.concatenate(rows[:parts]), columns=names)
    return pd.concat([frame, each], axis=1).assign(cumulative=each.sum(axis=1).iloc[1:].cumsum())


def _feature_columns(fit, x, on, frame):
    """Return a DataFrame of features in original units, with names that are not yet in `frame`.

    x : (n, A) standardized active features of n rows; on : positions of the features to return"""
    names = feature_columns([active_names(fit)[k] for k in on], frame)
    return pd.DataFrame(original_units(fit, x)[:, on], columns=names)


# The dominant set --------------------------------------------------------------------------------


def dominant_set(impact, y, prior=None):
    """Return which of M prototypes suffice to decide an estimate, bool (M,) (Algorithm 4.1).

    They have the largest impacts, as few as possible. The others could not change the most probable
    class, or move a numeric estimate past the null mean. If no set suffices, none is marked.
    impact : (M,) prototypes' weights times similarities
    y : (M,) class codes, or responses minus the null mean
    prior : (K,) class probabilities of the null model; None for a numeric response"""
    order, dominant = np.argsort(-impact, kind="stable"), np.zeros(len(impact), bool)
    impact, y = impact[order], y[order]
    # A set contains all prototypes of equal impact, so it ends at the last of them.
    last = np.flatnonzero(np.append(np.diff(impact) < 0, len(impact) > 0))
    rest = np.append(np.cumsum(impact[::-1])[::-1][1:], 0.0)[last]
    if prior is None:
        moved = np.cumsum(impact * y)[last]
        # The others may have any responses in the range of y and 0.
        least, most = min(y.min(initial=0.0), 0.0), max(y.max(initial=0.0), 0.0)
        decided = (moved + rest * least > 0) | (moved + rest * most < 0)
    else:
        by_class = np.eye(len(prior))[y.astype(int)] * impact[:, None]
        q = prior + np.cumsum(by_class, axis=0)[last]
        second, first = np.partition(q, len(prior) - 2, axis=1)[:, -2:].T
        decided = first - second > rest
    if decided.any():
        dominant[order[: last[np.argmax(decided)] + 1]] = True
    return dominant


# All prototypes ----------------------------------------------------------------------------------


def export(fit: Any, data: Data | None = None) -> pd.DataFrame:
    """Return a table of all prototypes (weighted training rows); see Section 4.3.1 of Ruf (2022).

    Parameters
    ----------
    data : DataFrame, optional
        Training data, whose other columns are added. A DataError if it is not the training data.

    Returns
    -------
    DataFrame
        One row per prototype, by batch and decreasing weight: batch, row (training label), members
        (rows merged in it), target, prototype_weight, and the active features in original units.

    See Also
    --------
    explain, to_excel

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
    >>> fit.export().shape[0]
    7
    """
    t, order = fit.estimates, by_importance(fit)
    frame = pd.DataFrame({"batch": t.batch, "row": pd.Series(fit.labels, dtype=object)})
    frame["members"] = np.bincount(t.member_of, minlength=len(t))
    frame["target"], frame["prototype_weight"] = targets(fit), t.w
    parts = [frame, _feature_columns(fit, t.x, order, frame)]
    if data is not None:
        parts.append(_other_columns(fit, data, [*frame, *parts[1]]))
    whole = pd.concat(parts, axis=1)
    heaviest = np.lexsort([-t.w, t.batch])
    return whole.iloc[heaviest].reset_index(drop=True)


def _equal(column, values):
    try:
        numbers = column.to_numpy(float, na_value=np.nan)
    except (TypeError, ValueError):
        return False
    known = ~np.isnan(numbers)
    return numbers.shape == values.shape and np.allclose(numbers[known], values[known])


def _other_columns(fit, data, taken):
    """Return further columns of the training data, for the rows that are prototypes.

    data : the training data; other data raise a DataError
    taken : column names of the table so far, which new names must not repeat"""
    t = fit.estimates
    if not isinstance(data, pd.DataFrame) or len(data) <= t.row.max(initial=-1):
        raise DataError("data must be the pandas DataFrame that the model was fitted to")
    rows = data.iloc[t.row]
    if [str(v) for v in rows.index] != [str(v) for v in fit.labels]:
        raise DataError("data must have the row labels of the data that the model was fitted to")
    active, names = original_units(fit, t.x), active_names(fit)
    for k, name in enumerate(names):
        if name in data and not _equal(rows[name], active[:, k]):
            raise DataError(f"data must be the training data: {name!r} has other values")
    response = fit.design.response
    left_out = {*names, *(() if response.called else (response.name,))}
    rows = rows[[name for name in data if name not in left_out]].reset_index(drop=True)
    return rows.set_axis(feature_columns(rows.columns, taken), axis=1)
