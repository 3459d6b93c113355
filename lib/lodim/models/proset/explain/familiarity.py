"""Familiarity of rows, Eq. 4.5 of Ruf (2022): how much of the prototypes is near a row."""

import numpy as np

from lodim.checks import flag
from lodim.errors import ArgumentError, DataError
from lodim.models.proset.explain.query import zero_offset


def familiarity(fit, data, quantile, held_out):
    """A Series with the rows of data; see `ProsetFit.familiarity`."""
    quantile = flag("quantile", quantile)
    if held_out is not None and not quantile:
        raise ArgumentError("held_out is what quantiles are taken of: pass quantile=True with it")
    batch = fit.design.apply(data, offset=zero_offset(fit))
    values = fit._familiarity(batch)
    if quantile:
        values = _share_below(_known_values(fit, held_out), values)
    return fit._spread(batch, values, "familiarity")


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
    """Share of the increasing known values that are at most each of some values."""
    return np.searchsorted(known, values, side="right") / len(known)
