"""What may be wrong with answers, as functions of arrays."""

import numpy as np

SHARE = 0.25  # of the deviance that a single row makes
LEAST = 40  # rows of which one can stand out, or be recalibrated
GAIN = 0.02  # share of the deviance that a better calibration would take away
LOST = 0.5  # share of what a fit explains that is not there in other rows
ERRORS = 3.0  # standard errors that it is beyond
LEAST_EXPLAINED = 0.05  # of the deviance: below there is nothing to lose
COOK = 1.0  # Cook's distance
NEARLY_ALL = 0.95  # of the deviance of classes: what is left is that of a few rows in any case
FIFTHS = "lowest", "second", "middle", "fourth", "highest"


def recalibration(residual, predictor, variance=None):
    """Deviance that an intercept and a slope on a predictor would take away, and its p-value.

    A score test, two degrees of freedom: of numbers (variance None) by the residuals' own squares,
    of probabilities p by p (1 - p).

    Parameters
    ----------
    residual : array (n,)
        Response less the mean.
    predictor : array (n,)
        Mean of a number, logit of a probability.
    variance : array (n,), optional

    Returns
    -------
    float, float
        The statistic, which for probabilities is the deviance gained, for numbers n times the share
        of the squares; and its p-value.
    """
    centred = predictor - predictor.mean()
    size = np.sqrt((centred**2).mean())
    A = np.stack([np.ones(len(residual)), centred / size if size > 1e-12 else 0 * centred], axis=1)
    spread = residual**2 if variance is None else variance
    score = A.T @ residual
    statistic = float(score @ np.linalg.pinv((A * spread[:, None]).T @ A) @ score)
    return statistic, float(np.exp(-0.5 * statistic))


def gain_of_numbers(residual, predictor):
    """Share of the squared error that an intercept and a slope would take away."""
    A = np.stack([np.ones(len(residual)), predictor - predictor.mean()], axis=1)
    left = residual - A @ np.linalg.lstsq(A, residual, rcond=None)[0]
    total = residual @ residual
    return float(1.0 - left @ left / total) if total > 0 else 0.0


def worst_fifth(y, predicted):
    """Means of predictions and of responses in the fifth of the predictions that is farthest off.

    Returns
    -------
    float, float, str
        And which fifth it is, one of FIFTHS.
    """
    parts = np.array_split(np.argsort(predicted, kind="stable"), len(FIFTHS))
    means = [(predicted[part].mean(), y[part].mean()) for part in parts]
    k = int(np.argmax([abs(a - b) for a, b in means]))
    return *means[k], FIFTHS[k]


def dominant(deviance, weight):
    """Positions of the rows that make SHARE or more of the deviance each."""
    part = deviance * weight
    total = part.sum()
    return np.flatnonzero(part >= SHARE * total) if total > 0 else np.zeros(0, int)


def is_lost(explained_before, explained_now, error):
    """Whether of what a fit explains more than LOST is not there in other rows.

    explained_before, explained_now : shares of the null deviance; error : of the latter
    """
    gap = explained_before - explained_now
    return bool(
        explained_before >= LEAST_EXPLAINED
        and gap > LOST * explained_before
        and gap > ERRORS * error
    )
