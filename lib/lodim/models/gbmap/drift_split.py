"""Split data into a training part and a test part from a shifted distribution."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import as_seed
from lodim.design.design import Design
from lodim.design.rows import RowInputs
from lodim.errors import ArgumentError, DataError
from lodim.models.gbmap.model import gbmap
from lodim.typing import Data


@dataclass(frozen=True)
class DriftSplit:
    """Parts of data split at the median of a feature; large values of it simulate drift."""

    feature: str
    # train, same, shifted: rows to fit; held-out rows of the same, and of a shifted distribution
    train: pd.DataFrame
    same: pd.DataFrame
    shifted: pd.DataFrame
    # loss_same, loss_shifted: mean deviance on `same` and `shifted` of a gbmap fit to `train`
    loss_same: float
    loss_shifted: float


def drift_split(formula: str, data: Data, *, seed: int = 0, **arguments: Any) -> DriftSplit:
    """Split data so that a model fitted to one part meets drift in another.

    The rows are split at the median of a numeric feature into a and b, and a is halved at random
    into a1 and a2. The feature is then dropped. It is the feature for which a gbmap fit to a1 has
    the largest loss on b minus loss on a2 (Patron et al. 2024, Sect. 4.1).

    Parameters
    ----------
    formula : str
        Such as "y ~ ."; it must not name numeric features, so that each can be dropped in turn.
    data : DataFrame (pandas), or a dict of columns
    seed : int
        Seed of the random halves.
    **arguments
        Arguments of `gbmap`; by default m=20, lambda_=1e-3, beta=5 (as in the paper). Weights and
        offset must be column names.

    Returns
    -------
    DriftSplit

    Raises
    ------
    ArgumentError, DataError
        If weights or offset is not a column name, or no feature is numeric.

    See Also
    --------
    gbmap, GbmapFit.drift

    Examples
    --------
    >>> import lodim as ld
    >>> split = ld.drift_split("mpg ~ .", ld.data("autompg").dropna(), m=2)
    >>> split.feature
    'cylinders'
    """
    arguments = {"m": 20, "lambda_": 1e-3, "beta": 5.0} | arguments
    for name in ("weights", "offset"):
        if not isinstance(arguments.get(name), str | None):
            raise ArgumentError(
                f"{name} must be the name of a column, not an array, so that it is split with "
                "the data"
            )
    seed = as_seed(seed)
    if not isinstance(data, pd.DataFrame | dict):
        raise DataError(f"data must be a pandas DataFrame or a dict of columns, not {data!r:.80}")
    inputs = RowInputs(weights=arguments.get("weights"), offset=arguments.get("offset"))
    design, batch = Design.learn(formula, data, inputs, family=arguments.get("family"))
    frame, arguments["family"] = pd.DataFrame(data).iloc[batch.rows], design.family
    best = None
    for feature in design.features:
        if not pd.api.types.is_numeric_dtype(frame[feature]):
            continue
        order, half = np.argsort(frame[feature].to_numpy(), kind="stable"), len(frame) // 2
        low = np.random.default_rng(seed).permutation(order[:half])
        rest = frame.drop(columns=feature)
        parts = low[: half // 2], low[half // 2 :], order[half:]
        a1, a2, b = (rest.iloc[rows] for rows in parts)
        fit = gbmap(formula, a1, **arguments)
        same, shifted = (float(fit.evaluate(p)["deviance"].iloc[0]) for p in (a2, b))
        if best is None or shifted - same > best.loss_shifted - best.loss_same:
            best = DriftSplit(str(feature), a1, a2, b, same, shifted)
    if best is None:
        raise DataError("data must have a numeric column to split by")
    return best
