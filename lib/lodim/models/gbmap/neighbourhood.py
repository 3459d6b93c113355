"""Methods of GbmapFit that compare rows in the embedding: distances, neighbours and drift."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from lodim.checks import one_of, positive, share, whole
from lodim.errors import ArgumentError, DataError
from lodim.models.gbmap.embedding import KINDS, drift_indicators, path_distances
from lodim.typing import Data


def distance(
    fit: Any,
    data: Data,
    other: Data | None = None,
    *,
    kind: Literal["embedding", "path"] = "embedding",
    tolerance: float | None = None,
) -> pd.DataFrame:
    """Return distances between the rows of `data` and of `other` (default: of `data`).

    Parameters
    ----------
    data, other : frame
        With the columns of the formula's right side.
    kind : {"embedding", "path"}
        "embedding": sum_j |f_j(x) - f_j(x')| (Eq. 7 of Patron et al. 2024). "path": the total
        change of f on the segment from x to x' (Eq. 6). |f(x) - f(x')| <= path <= embedding.
    tolerance : float, optional
        Largest error of a path distance, by default 1e-6 (times the SD of a numeric response).

    Returns
    -------
    DataFrame (rows of data, rows of other), NaN where inputs are missing.

    See Also
    --------
    neighbours, predict

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> fit.distance(cars[:3]).round(2).to_numpy().tolist()
    [[0.0, 0.42, 0.3], [0.42, 0.0, 0.72], [0.3, 0.72, 0.0]]
    """
    one_of("kind", kind, ("embedding", "path"))
    tolerance = 1e-6 * fit.estimates.scale if tolerance is None else tolerance
    tolerance = positive("tolerance", tolerance)
    batches = [fit._apply(frame) for frame in (data, data if other is None else other)]
    if kind == "embedding":
        values = cdist(*map(fit._embed, batches), "cityblock")
    else:
        Z, W = (fit.estimates.projections(b.X, b.n) for b in batches)
        values = path_distances(Z, W, fit.estimates, tolerance)
    full = np.full([len(b.index) for b in batches], np.nan)
    full[np.ix_(*(b.rows for b in batches))] = values
    return pd.DataFrame(full, index=batches[0].index, columns=batches[1].index)


def neighbours(fit: Any, data: Data, k: int = 10) -> pd.Series | pd.DataFrame:
    """Return the mean response of the k nearest training rows, by `distance` in the embedding.

    An offset is subtracted from numeric responses before averaging; with a log link, they are
    divided by exp(offset). Row weights are ignored.

    Parameters
    ----------
    data : frame
        With the columns of the formula's right side.
    k : int
        Number of neighbours; an ArgumentError if the fit keeps fewer training rows.

    Returns
    -------
    Series, or DataFrame with the share of each class
        NaN in rows where an input is missing.

    See Also
    --------
    distance, drift

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> fit.neighbours(cars[:2]).round(2).tolist()
    [15.8, 13.6]
    """
    batch, reference = fit._apply(data), fit._reference_rows(k)
    y = reference.y[reference.nearest(fit._embed(batch), k)[1]]
    if fit.levels is None:
        return fit._in_all_rows(batch, y.mean(axis=1), fit.design.response.name)
    shares = np.stack([(y == c).mean(axis=1) for c in range(len(fit.levels))], axis=1)
    return fit._in_all_rows(batch, shares, list(fit.levels))


def drift(
    fit: Any, data: Data, k: int = 5, *, kind: Literal["difference", "distance"] = "difference"
) -> pd.Series:
    """Return a drift indicator of each row: large values where the fit extrapolates.

    "difference" is |f(x) - mean response of the k nearest training rows|, where f is the linear
    predictor without offset. With a logit or log link, the mean of f over these rows replaces
    their mean response; the largest difference of several classes counts. Far away, f grows
    linearly while the neighbours' mean does not (Patron et al. 2024, Sect. 4.5). "distance" is the
    mean distance to the k rows (Eq. 7). Each training row counts once, whatever its weight.

    Parameters
    ----------
    data : frame
        With the columns of the formula's right side; no response is needed.
    k : int, default=5
        Number of nearest training rows; an ArgumentError if the fit keeps fewer.
    kind : {"difference", "distance"}, default="difference"

    Returns
    -------
    Series, in units of the link, NaN in rows where an input is missing

    See Also
    --------
    drift_threshold, lodim.drift_split

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> fit.drift(cars[:3]).round(2).tolist()
    [1.36, 0.76, 2.26]
    """
    batch, reference = fit._apply(data), fit._reference_rows(k)
    numeric = fit.family.link == "identity"
    one_of("kind", kind, KINDS)
    values = drift_indicators(fit.estimates, reference, batch, k, numeric, fit._threads)
    return fit._in_all_rows(batch, values[kind], ".drift")


def drift_threshold(
    fit: Any,
    data: Data | None = None,
    *,
    k: int = 5,
    quantile: float = 0.95,
    kind: Literal["difference", "distance"] = "difference",
) -> float:
    """Return a quantile of the drift indicator over rows that were not used in the fit.

    Rows with a larger indicator are far from the training rows; their predictions are doubtful.

    Parameters
    ----------
    data : frame, optional
        Rows that were not used in the fit. By default the held-out training rows of a fit that
        chose m or lambda_ by cross-validation (only for k=5).
    k : int, default=5
        Number of nearest training rows.
    quantile : float in (0, 1)
    kind : {"difference", "distance"}
        As for `drift`.

    Raises
    ------
    ArgumentError, DataError
        If `data` is omitted and the fit has no held-out rows, or no row of `data` is complete.

    See Also
    --------
    drift

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> fit = ld.gbmap("mpg ~ weight + model_year", cars, m=3, lambda_=0.1)
    >>> round(fit.drift_threshold(cars), 2)
    3.15
    """
    quantile, k = share("quantile", quantile), whole("k", k)
    one_of("kind", kind, KINDS)
    if data is not None:
        indicator = fit.drift(data, k, kind=kind).dropna()
        if indicator.empty:
            raise DataError("data must have a row without missing values, for the quantile")
        return float(indicator.quantile(quantile))
    if fit.calibration is None or k != 5:
        raise ArgumentError(
            "give data= with rows that were not used for the fit: the fit has out-of-fold values "
            f"only for k=5, and only if gbmap chose m or lambda_; here k is {k}"
        )
    return float(np.interp(100.0 * quantile, np.arange(101), fit.calibration[kind]))
