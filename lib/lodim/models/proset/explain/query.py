"""One row to look at, and a fit's features by name: what explanations and plots ask for."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.checks import flag
from lodim.engine import tiles
from lodim.errors import ArgumentError, DataError


@dataclass(frozen=True, eq=False)
class Query:
    """A complete row: its Batch, its label, active features x (A,), the class code or number y.

    y is NaN where the response is not known.
    """

    batch: object
    label: object
    x: np.ndarray
    y: float


def query(fit, data, offset=None, what="row"):
    """The Query of data that are one row: a frame of one, a Series, or a dict of values."""
    data = _as_frame(data)
    batch = fit.design.apply(data, offset=offset)
    if len(batch.index) != 1:
        raise ArgumentError(
            f"{what} must be one row and has {len(batch.index)}: pass data.iloc[[i]]"
        )
    label = batch.index[0]
    if not batch.n:
        raise DataError(f"row {label!r} misses {_missing(fit, data)}: it has no estimate")
    return Query(batch, label, active(fit, batch)[0], _response(fit, data))


def zero_offset(fit):
    """The offset of new data where only features matter."""
    return 0.0 if fit.design.offset_given else None


def active(fit, batch):
    """Active features of the rows of a batch, standardized, (n, A) float64."""
    x = tiles.rows(batch.X, np.arange(batch.n))
    return x[:, fit.estimates.features].astype(np.float64)


def importance(fit):
    """Positions among the active features, from the largest weight to the smallest."""
    return np.argsort(-fit.estimates.v.max(axis=0, initial=0.0), kind="stable")


def active_names(fit):
    """Names of the active features."""
    return [fit.design.names[k] for k in fit.estimates.features]


def chosen(fit, features):
    """Positions among the active features: all by importance, the first few, or those named."""
    names, order = active_names(fit), importance(fit)
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
        raise ArgumentError(f"{unknown[0]!r} is not an active feature; active are: {known}")
    return np.array([names.index(name) for name in features], int)


def original(fit, x):
    """Active features x (n, A) in original units; what rounding has moved off a whole number is
    put back, so that 0 and 1 of categories are these."""
    d, on = fit.design, fit.estimates.features
    mean, scale = d.mean[on], d.scale[on]
    values = x * scale + mean
    whole = np.rint(values)
    near = 64 * np.finfo(d.dtype).eps * (np.abs(mean) + scale * (1.0 + np.abs(x)))
    return np.where(np.abs(values - whole) <= near, whole, values)


def targets(fit):
    """Target of each prototype: classes by their labels, numbers in original units, (M,)."""
    t = fit.estimates
    if fit.levels is None:
        return t.scale * t.y + t.level[0]
    return np.array(fit.levels, dtype=object)[t.y.astype(int)]


def _as_frame(data):
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if isinstance(data, Mapping) and not isinstance(data, pd.DataFrame):
        return {k: [v] if np.ndim(v) == 0 else v for k, v in data.items()}
    return data


def _missing(fit, data):
    if not isinstance(data, pd.DataFrame):
        return "a value"
    names = [n for n in fit.design.features if n in data and data[n].isna().any()]
    return ", ".join(map(repr, names)) or "a value"


def _response(fit, data):
    """The known response of the row, coded; NaN without."""
    if not fit.design.has_response(data):
        return np.nan
    batch = fit.design.apply(data, offset=zero_offset(fit), response=True)
    return float(batch.y[0]) if batch.n else np.nan


def familiarity(fit, data, quantile, held_out):
    """A Series with the rows of data; see `Explained.familiarity`."""
    if held_out is not None and not flag("quantile", quantile):
        raise ArgumentError("held_out is what quantiles are taken of: pass quantile=True with it")
    batch = fit.design.apply(data, offset=zero_offset(fit))
    values = fit.mass(batch)
    if flag("quantile", quantile):
        values = _share_below(_known(fit, held_out), values)
    return fit._spread(batch, values, "familiarity")


def quantile_of(fit, value):
    """Share of the training rows that are no more familiar; NaN where the fit does not know."""
    return np.nan if fit.calibration is None else float(_share_below(_known(fit, None), value))


def _known(fit, held_out):
    """Increasing familiarities of rows held out, or their percentiles over the training rows."""
    if held_out is None:
        return fit._calibrated().familiarity
    values = fit.mass(fit.design.apply(held_out, offset=zero_offset(fit)))
    if not len(values):
        raise DataError("held_out has no complete row")
    return np.sort(values)


def _share_below(known, values):
    return np.searchsorted(known, values, side="right") / len(known)
