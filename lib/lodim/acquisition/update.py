"""Update of a purchase policy with new rows; warns if it predicts them worse than expected."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lodim import forms
from lodim.checks import number, whole
from lodim.engine import tiles
from lodim.errors import DataError, DataWarning, warn
from lodim.text import first_few
from lodim.typing import Data

if TYPE_CHECKING:  # the module of Policy imports this one
    from lodim.acquisition.policy import Policy

REFIT = 0.05  # share of new rows from which the predictor is learned again
ROWS = 100  # most recent rows that are compared with the training rows
LEAST_ROWS = 20  # for a warning
ERRORS = 4.0  # standard errors beyond the surprise of held-out rows, for a warning


def update(
    policy: "Policy",
    data: Data,
    *,
    window: int | None = None,
    decay: float = 1.0,
    every: int | None = None,
) -> "Policy":
    """Return a policy that has also learned from new rows.

    Parameters
    ----------
    data : frame
        New rows with the response; features may be missing.
    window : int, optional
        Number of most recent rows to keep; by default all.
    decay : float, default=1
        Factor by which each new row reduces the weight of older rows, in (0, 1].
    every : int, optional
        Number of new rows after which the predictor is refitted; by default 5% of the rows.

    Returns
    -------
    Policy

    Raises
    ------
    ArgumentError, DataError
        If a number is out of range, no row has a response, or a level is new.

    Warns
    -----
    DataWarning
        If recent rows are predicted much worse than held-out training rows were (drift), or no
        kept row has a certain class.

    See Also
    --------
    acquire

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine").sample(frac=1, random_state=0)
    >>> policy = ld.acquire("cultivar ~ .", wine[:100])
    >>> len(policy.update(wine[100:150]).y)
    150
    """
    decay = number("decay", decay, forms.TINY, 1.0)
    window = None if window is None else whole("window", window, 10)
    every = None if every is None else whole("every", every, 1)
    batch = policy.design.apply(data, response=True)
    used = np.flatnonzero(~np.isnan(batch.y) & (batch.row_weights > 0.0))
    if not len(used):
        raise DataError("no row has a known response")
    X = tiles.unpack(batch.X, batch.n)[used]
    y = (batch.y[used] - policy.centre) / policy.scale
    recent = _recent_surprises(policy, X, y)
    rows = [np.vstack([policy.X, X]), np.append(policy.y, y)]
    rows.append(np.append(policy.weight * decay ** len(y), batch.row_weights[used]))
    kept = np.flatnonzero(rows[2] >= forms.TINY)[-window if window else 0 :]
    X, y, weight = (one[kept] for one in rows)
    lost = [level for k, level in enumerate(policy.levels or ()) if k not in y]
    if lost:
        warn(
            f"no kept row has the class {first_few(lost)}, so refitted policies cannot predict it: "
            "choose a larger window",
            DataWarning,
        )
    new = replace(
        policy, X=X, y=y, weight=weight, pending=policy.pending + len(used), recent=recent
    )
    if new.pending < (every or max(1, int(REFIT * len(y)))):
        return new
    X = policy.mixture.features(X)
    fit = policy.mixture.refit(X, y, weight, policy.seed, policy.settings)
    return replace(new, mixture=fit, pending=0)


def _recent_surprises(policy, X, y):
    """Return loss minus expected loss of the most recent rows (at most 100), to detect drift.

    policy : Policy, which predicts y and has the values of earlier rows
    X, y : new rows, added to the earlier ones
    On significant drift, warn and return an empty array."""
    # The result has the last rows, at most `ROWS`.
    n_classes, found = len(policy.levels or ()), []
    for x, v in zip(policy.mixture.features(X), y[:, None], strict=True):
        columns = np.flatnonzero(~np.isnan(x))
        found.append(policy.mixture.surprise(x[columns, None], v, columns, n_classes)[0])
    values = np.append(policy.recent, found)[-ROWS:]
    mean, sd = policy.settings["surprise"], policy.settings["surprise_sd"]
    if len(values) < LEAST_ROWS or values.mean() - mean < ERRORS * sd / np.sqrt(len(values)):
        return values
    warn(
        f"the last {len(values)} rows surprise the policy: their loss is above what it expects by "
        f"{values.mean():.3g} on average, that of held-out training rows by {mean:.3g}; the data "
        "may have drifted, so learn a new policy with acquire() or let update(window=) forget",
        DataWarning,
    )
    return values[:0]
