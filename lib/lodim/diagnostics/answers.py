"""What may be wrong with answers, as functions of arrays."""

import numpy as np

SHARE = 0.25  # of the deviance that a single row makes
MIN_ROWS = 40  # rows of which one can stand out, or be recalibrated
GAIN = 0.02  # share of the deviance that a better calibration would take away
LOST = 0.5  # share of what a fit explains that is not there in other rows
ERRORS = 4.0  # standard errors that it is beyond
LEAST_EXPLAINED = 0.05  # of the deviance: below there is nothing to lose
COOK = 1.0  # Cook's distance
NEARLY_ALL = 0.95  # of the deviance of classes: what is left is that of a few rows in any case
LEAST_RATIO, MOST_RATIO = 0.5, 1.5  # of a Poisson variance, and of the zeros: less is no finding
FIFTHS = "lowest", "second", "middle", "fourth", "highest"


def recalibration(residual, predictor, n_training, variance=None):
    """Whether an intercept and a slope on a predictor would make answers better: a score test.

    With the residuals' own squares as their variances, which no single surprise can carry (Davidson
    and MacKinnon 1993, Sect. 13.7). Of probabilities p also with p (1 - p), as small residuals that
    all have one sign are no surprise where p is near 0 or 1: the smaller statistic counts. It is
    divided by 1 + n / n_training: the predictions themselves vary with the training rows.

    Parameters
    ----------
    residual : array (n,)
        Response less the mean.
    predictor : array (n,)
        Mean of a number, logit of a probability.
    n_training : int
    variance : array (n,), optional
        Of a probability p (1 - p).

    Returns
    -------
    float, float
        The statistic, chi-square of two degrees of freedom, and its p-value. Of probabilities the
        statistic is about the deviance gained, of numbers n times the share of the squares.
    """
    centred = predictor - predictor.mean()
    size = np.sqrt((centred**2).mean())
    slope = centred / size if size > 1e-12 else np.zeros_like(centred)
    A = np.stack([np.ones(len(residual)), slope], axis=1)
    score = A.T @ residual
    statistics = [
        score @ np.linalg.pinv((A * v[:, None]).T @ A) @ score
        for v in (residual**2, variance) if v is not None
    ]  # fmt: skip
    statistic = float(min(statistics)) / (1.0 + len(residual) / n_training)
    return statistic, float(np.exp(-0.5 * statistic))


def worst_fifth(y, predicted, variance):
    """Means of predictions and of responses in the fifth of the predictions that is farthest off.

    Parameters
    ----------
    y, predicted, variance : arrays (n,)
        How far is measured by the standard error of the mean that the variances give.

    Returns
    -------
    float, float, str
        And which fifth it is, one of FIFTHS.
    """
    parts = np.array_split(np.argsort(predicted, kind="stable"), len(FIFTHS))
    off = [abs((y[k] - predicted[k]).sum()) / np.sqrt(variance[k].sum() + 1e-300) for k in parts]
    worst = int(np.argmax(off))
    return predicted[parts[worst]].mean(), y[parts[worst]].mean(), FIFTHS[worst]


def dominant(deviance, weight):
    """Positions of the rows that make SHARE or more of the deviance each."""
    part = deviance * weight
    total = part.sum()
    return np.flatnonzero(part >= SHARE * total) if total > 0 else np.zeros(0, int)


def dispersion(y, mean, weight, df):
    """Pearson's statistic of counts (n,) over its degrees of freedom, and how surprising it is.

    The surprise is the score test of Dean and Lawless (1989), in standard errors.
    """
    square = (y - mean) ** 2
    ratio = (weight @ (square / np.maximum(mean, 1e-300))) / df
    return ratio, (square - y).sum() / np.sqrt(2.0 * (mean**2).sum() + 1e-300)


def zeros(y, mean):
    """Number of zeros among counts (n,), what a Poisson response would have, and the surprise."""
    p = np.exp(-mean)
    seen, expected = int((y == 0).sum()), float(p.sum())
    return seen, expected, (seen - expected) / np.sqrt((p * (1.0 - p)).sum() + 1e-300)


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
