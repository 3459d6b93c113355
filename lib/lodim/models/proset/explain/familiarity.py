"""Familiarity of rows, Eq. 4.5 of Ruf (2022): how similar a row is to the prototypes."""

from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import flag
from lodim.errors import ArgumentError, DataError
from lodim.models.proset.explain.query import zero_offset
from lodim.typing import Data


def familiarity(
    fit: Any, data: Data, *, quantile: bool = False, held_out: Data | None = None
) -> pd.Series:
    """Return the familiarity of each row: its similarity to the prototypes, sum_j w_j G_j(x).

    Prototypes are training rows with weights w_j; G_j is the similarity with the row (Eq. 4.5).
    Only active features count (`tidy` lists their weights): a row that is unusual in another
    feature can still be familiar.

    Parameters
    ----------
    data : frame
        With the columns of the formula's right side.
    quantile : bool, default=False
        Return instead the share of comparison rows that are at most as familiar: 0.01 means that
        only one row in a hundred is as unusual.
    held_out : frame, optional
        The comparison rows; by default the training rows, each without its own prototype.

    Returns
    -------
    Series
        One value per row of `data`; NaN if an input is missing.

    Raises
    ------
    ArgumentError
        If `held_out` is given without quantile=True, or quantile=True for a fit of a path.
    DataError
        If `held_out` has no complete row.

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
    if quantile:
        values = _share_below(_known_values(fit, held_out), values)
    return fit._in_all_rows(batch, values, "familiarity")


def familiarity_quantile(fit, value):
    """Return the share of training rows that are at most as familiar as `value`.

    Familiarity is similarity to the prototypes. NaN if the fit has no percentiles, as in a path.
    """
    if fit.calibration is None:
        return np.nan
    return float(_share_below(fit.calibration.familiarity, value))


def _known_values(fit, held_out):
    """Return the sorted familiarities of the rows `held_out`, for comparison with other rows.

    If it is None, return stored percentiles of the training rows. Familiarity is similarity to the
    prototypes."""
    if held_out is None:
        return fit._calibrated().familiarity
    values = fit._familiarity(fit.design.apply(held_out, offset=zero_offset(fit)))
    if not len(values):
        raise DataError("held_out must have a row without missing values")
    return np.sort(values)


def _share_below(known, values):
    """Return the share of the sorted numbers `known` that do not exceed each of `values`."""
    return np.searchsorted(known, values, side="right") / len(known)
