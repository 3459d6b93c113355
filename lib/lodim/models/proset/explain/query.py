"""Rows to explain: reading a row, choice of active features (positive weight), and familiarity."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import flag
from lodim.design.frame import rows_of
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError
from lodim.typing import Data


@dataclass(frozen=True, eq=False)
class Query:
    """A row to explain: its Batch, row label, standardized active features and response."""

    batch: object
    label: object
    x: np.ndarray  # (A,) standardized active features
    y: float  # class code or number, NaN if the response is unknown


def read_query(fit, data, offset=None, what="row"):
    """Return the Query for one row (frame, Series or dict), which error messages call `what`."""
    data = rows_of(data)
    if isinstance(data, Mapping) and not isinstance(data, pd.DataFrame):
        data = {k: [v] if np.ndim(v) == 0 else v for k, v in data.items()}
    batch = fit.design.apply(data, offset=offset)
    if len(batch.index) != 1:
        n = len(batch.index)
        raise ArgumentError(f"{what} must be one row, not {n}: give data.iloc[[i]]")
    label = batch.index[0]
    if not batch.n:
        frame = data if isinstance(data, pd.DataFrame) else {}
        missing = [n for n in fit.design.features if n in frame and frame[n].isna().any()]
        names = ", ".join(map(repr, missing)) or "a value"
        raise DataError(f"row {label!r} has no estimate, because {names} is missing")
    y, unweighted = np.empty(0), replace(fit.design, weights=None)  # a row may have weight zero
    if unweighted.has_response(data):
        y = unweighted.apply(data, offset=zero_offset(fit), response=True).y
    return Query(batch, label, active_values(fit, batch)[0], float(y[0]) if len(y) else np.nan)


def zero_offset(fit):
    return 0.0 if fit.design.offset_given else None


def active_values(fit, batch):
    """Return the standardized active features of the rows of a Batch, (n, A)."""
    x = tiles.rows(batch.X, np.arange(batch.n))
    return x[:, fit.estimates.features].astype(np.float64)


def by_importance(fit):
    """Return the positions of the active features, (A,), the largest weight first."""
    return np.argsort(-fit.estimates.v.max(axis=0, initial=0.0), kind="stable")


def active_names(fit):
    return [fit.design.names[k] for k in fit.estimates.features]


def select_features(fit, features):
    """Return the positions of the chosen active features (those with positive weight).

    features : number of the most important ones, list of names, or None for all by importance"""
    names, order = active_names(fit), by_importance(fit)
    if features is None:
        return order
    if isinstance(features, int | np.integer) and not isinstance(features, bool):
        if features < 0:
            raise ArgumentError(f"features must be 0 or more, not {features}")
        return order[:features]
    if isinstance(features, str) or not np.iterable(features):
        raise ArgumentError(f"features must be a number or a list of names, not {features!r}")
    unknown = [k for k in features if not isinstance(k, str) or k not in names]
    if unknown:
        known = ", ".join(names[k] for k in order[:12]) or "none"
        raise ArgumentError(f"features must be active features ({known}), not {unknown[0]!r}")
    return np.array([names.index(name) for name in features], int)


def original_units(fit, x):
    """Convert standardized x (n, A) to original units; near-integers become integers."""
    d, on = fit.design, fit.estimates.features
    mean, scale = d.mean[on], d.scale[on]
    values = x * scale + mean
    whole = np.rint(values)
    near = 64 * np.finfo(d.dtype).eps * (np.abs(mean) + scale * (1.0 + np.abs(x)))
    return np.where(np.abs(values - whole) <= near, whole, values) + 0.0  # makes -0.0 zero


def targets(fit):
    """Return the responses of the prototypes, (M,), as class labels or in original units."""
    t = fit.estimates
    if fit.levels is None:
        return t.scale * t.y + t.level[0]
    return np.array(fit.levels, dtype=object)[t.y.astype(int)]


def familiarity(
    fit: Any, data: Data, *, quantile: bool = False, held_out: Data | None = None
) -> pd.Series:
    """Return the familiarity of each row: its similarity to the prototypes, sum_j w_j G_j(x).

    G_j is the similarity with prototype j, of weight w_j (Eq. 4.5). A row that is unusual only in
    features without weight (see `tidy`) can still be familiar.

    Parameters
    ----------
    data : frame
        With the columns of the formula's right side.
    quantile : bool, default=False
        Return the share of comparison rows that are at most as familiar; 0.01 is unusual.
    held_out : frame, optional
        The comparison rows; by default the training rows, each without its own prototype.

    Returns
    -------
    Series
        One value per row of `data`; NaN if an input is missing.

    Raises
    ------
    ArgumentError, DataError
        If `held_out` is given without quantile=True or has no complete row, or quantile=True for a
        fit of a path.

    See Also
    --------
    predict, explain

    Examples
    --------
    >>> import lodim as ld
    >>> iris = ld.data("iris")
    >>> fit = ld.proset("species ~ .", iris, lambda_v=0.05)
    >>> fit.familiarity(iris[:2]).round().tolist()
    [404.0, 404.0]
    >>> fit.familiarity(iris[:2], quantile=True).round(2).tolist()
    [0.91, 0.91]
    """
    quantile = flag("quantile", quantile)
    if held_out is not None and not quantile:
        raise ArgumentError("held_out= needs quantile=True")
    batch = fit.design.apply(data, offset=zero_offset(fit))
    values = fit._familiarity(batch)
    if held_out is not None:
        known = fit._familiarity(fit.design.apply(held_out, offset=zero_offset(fit)))
        if not len(known):
            raise DataError("held_out must have a row without missing values")
        values = share_below(np.sort(known), values)
    elif quantile:
        values = share_below(fit._calibrated().familiarity, values)
    return fit._in_all_rows(batch, values, "familiarity")


def share_below(known, values):
    """Return the share of the increasing numbers `known` that are at most each of `values`."""
    return np.searchsorted(known, values, side="right") / len(known)
