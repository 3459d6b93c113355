"""Familiarity of rows, Eq. 4.5 of Ruf (2022): how much of the prototypes is near a row."""

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
    """Familiarity sum_j w_j G_j(x) of each row, Eq. 4.5.

    It sees the active features alone: a row that is strange in a feature without weight is as
    familiar as any other. `tidy` says which have weight.

    Parameters
    ----------
    data : frame
    quantile : bool
        Whether to give the share of known rows that are no more familiar instead: 0.01 says
        that one in a hundred is as strange.
    held_out : frame, optional
        The known rows; by default the training rows, each without the prototype that it is.

    Returns
    -------
    Series
        A value for each row of `data`; NaN where an input is missing.

    Raises
    ------
    ArgumentError
        `held_out` without quantile=True; or quantile=True, and the fit is part of a path.
    DataError
        `held_out` has no complete row.

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
        raise ArgumentError("held_out is what quantiles are taken of: pass quantile=True with it")
    batch = fit.design.apply(data, offset=zero_offset(fit))
    values = fit._familiarity(batch)
    if quantile:
        values = _share_below(_known_values(fit, held_out), values)
    return fit._in_all_rows(batch, values, "familiarity")


def familiarity_quantile(fit, value):
    """Share of the training rows that are no more familiar; NaN where the fit does not know."""
    if fit.calibration is None:
        return np.nan
    return float(_share_below(fit.calibration.familiarity, value))


def _known_values(fit, held_out):
    """Increasing familiarities of rows held out, or their percentiles over the training rows."""
    if held_out is None:
        return fit._calibrated().familiarity
    values = fit._familiarity(fit.design.apply(held_out, offset=zero_offset(fit)))
    if not len(values):
        raise DataError("held_out has no complete row")
    return np.sort(values)


def _share_below(known, values):
    """Return share of the increasing known values that are at most each of some values."""
    return np.searchsorted(known, values, side="right") / len(known)
