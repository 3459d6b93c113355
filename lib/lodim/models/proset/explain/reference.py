"""Typical training row of a fit, as a reference for other rows: Algorithm 4.2 of Ruf (2022)."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr
from scipy.stats import rankdata

from lodim import forms
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError
from lodim.models.proset.cpu_kernels import CLASSES
from lodim.models.proset.explain.query import (
    active_names,
    original_units,
    read_query,
    zero_offset,
)
from lodim.models.proset.prototypes import estimates_at
from lodim.typing import Data

MOST_ROWS = 20_000  # most training rows that are considered


@forms.record
class Typical:
    """Typical training row: its label, and x, its A standardized features of positive weight."""

    x: np.ndarray = forms.real("A")
    label: Any = forms.plain()

    @classmethod
    def from_batch(cls, batch, prototypes, threads, seed=None):
        """Return a Batch's most central row in features and estimates (Ruf 2022, Algorithm 4.2).

        prototypes : Prototypes, which give the estimates
        seed : seed to draw 20,000 rows if there are more; None to use all rows"""
        rows = batch.positive_weight
        if seed is not None and len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))
        x = tiles.rows(batch.X, rows)[:, prototypes.features].astype(np.float64)
        estimate, _ = estimates_at(prototypes, x, threads)
        tie = entr(estimate).sum(axis=1) if prototypes.loss == CLASSES else np.zeros(len(x))
        i = reference_point(x, estimate, tie)
        return cls(x[i], batch.index[batch.rows[rows[i]]])


def reference(fit: Any, data: Data | None = None) -> pd.DataFrame:
    """Return a typical row, to compare other rows with (Algorithm 4.2 of Ruf 2022).

    It has the best sum of two ranks by mean absolute distance to all rows: in the standardized
    features of positive weight, and in the estimates.

    Parameters
    ----------
    data : frame, optional
        Rows to choose from; by default the training rows (a random sample if there are more than
        20,000), for which the fit stores the choice.

    Returns
    -------
    DataFrame
        One row: its label, and the active features in original units.

    Raises
    ------
    ArgumentError, DataError
        If `data` has no complete row, or is omitted for a fit of a path, which stores no reference.

    See Also
    --------
    shapley, explain

    Examples
    --------
    >>> import lodim as ld
    >>> fit = ld.proset("species ~ .", ld.data("iris"), lambda_v=0.05)
    >>> fit.reference().round(1)
        petal_length  petal_width
    51           4.5          1.5
    """
    if data is None:
        typical = _typical(fit)
    else:
        batch = fit.design.apply(data, offset=zero_offset(fit))
        if not batch.n:
            raise DataError(
                "data must have a row without missing values to choose a reference from"
            )
        typical = Typical.from_batch(batch, fit.estimates, fit._threads)
    values = original_units(fit, typical.x[None])
    return pd.DataFrame(values, index=[typical.label], columns=active_names(fit))


def reference_values(fit, data):
    """Return the standardized active features (A,) of a reference row.

    data : frame of one row, with the formula's columns, or with the active features (those with
        positive weight) in original units; None for the typical row"""
    if data is None:
        return _typical(fit).x
    names, on = active_names(fit), fit.estimates.features
    if isinstance(data, pd.DataFrame) and set(names) <= set(data.columns):
        values = data[names].to_numpy(float)
        if values.shape[0] != 1 or not np.isfinite(values).all():
            raise ArgumentError("reference must be one row without missing values")
        return (values[0] - fit.design.mean[on]) / fit.design.scale[on]
    return read_query(fit, data, zero_offset(fit), what="reference").x


def _typical(fit):
    if fit.typical is None:
        raise ArgumentError(
            "this fit stores no typical row, as it is part of a path: give data= or reference="
        )
    return fit.typical


def reference_point(x, estimate, tie_breaker):
    """Return the position of the most central row: smallest mean distances to all rows.

    Its ranks by distance in features x (n, A) and in estimates (n, K) have the best sum. If several
    rows do, the one with the largest tie_breaker (n,) is returned."""
    points = _borda_points(x) + _borda_points(estimate)
    best = np.flatnonzero(points == points.max())
    return int(best[np.argmax(tie_breaker[best])])


def mean_distances(x):
    """Return each row's mean L1 distance to all rows of x, (n,); sorting columns makes it fast."""
    n = len(x)
    out = np.zeros(n)
    for column in x.T:
        order = np.argsort(column, kind="stable")
        ordered = column[order] - column[order[0]]
        below = np.cumsum(ordered) - ordered
        k = np.arange(n)
        total = k * ordered - below + (below[-1] + ordered[-1] - below - ordered)
        total -= (n - 1 - k) * ordered
        # Equal values have equal distances, to the bit.
        first = np.searchsorted(ordered, ordered, side="left")
        out[order] += total[first] / n
    return out


def _borda_points(x):
    """Return ranks (n,) of rows x by mean distance to all rows; the most central has n - 1."""
    distance = mean_distances(x)
    size = max(distance.max(initial=0.0), 1e-300)
    return len(x) - rankdata(np.round(distance / size, 12))  # rounding errors are ties
