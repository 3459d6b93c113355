"""Held-out loss of a fit, from its table of tried settings."""

from typing import Any

import numpy as np
import pandas as pd

MEASURE = "measure"  # column with the name of the loss, in tables whose losses are not deviances


def nearest_loss(selection: pd.DataFrame, settings: Any) -> float | None:
    """Return the mean held-out deviance of the tried settings nearest to `settings`, or None.

    selection : table of tried settings. Positive numbers are compared by ratio, others by
        difference.
    """
    if MEASURE in selection:
        return None
    distance = np.zeros(len(selection))
    for name in selection.columns.intersection(list(vars(settings))):
        distance += _distances(selection[name], getattr(settings, name))
    at = int(distance.argmin())
    return float(selection["mean"].iloc[at]) if np.isfinite(distance[at]) else None


def _distances(tried, own):
    """Return the distances (n,) between the tried values of a setting and its value in the fit."""
    numbers = pd.to_numeric(tried, errors="coerce").to_numpy(float)
    if own is None or isinstance(own, str) or np.isnan(numbers).all():
        same = tried.isna() if own is None else tried == own
        return np.where(same, 0.0, np.inf)
    numbers = np.where(np.isnan(numbers), np.inf, numbers)
    if own > 0.0 and numbers.min() > 0.0:
        return np.abs(np.log(numbers / own))
    return np.abs(numbers - own)
