"""Checks of predictions on rows with known responses."""

import numpy as np
from scipy.special import logit

from lodim.design.frame import in_pandas
from lodim.diagnostics.features import CHANCE
from lodim.diagnostics.findings import MOST, Finding, rows_in_words
from lodim.report.numbers import significant

EDGE = 1e-9  # from 0 and 1, of a probability whose logit counts


def overfit(subject):
    """Return whether other rows are explained much worse than the training rows."""
    fit, row = subject.fit, in_pandas(subject.fit.glance)().iloc[0]
    if fit.design.response is None:
        return "there is no response"
    if not row["null_deviance"] > 0:
        return "the response does not vary"
    before = 1.0 - row["deviance"] / row["null_deviance"]
    if subject.answered is not None and not subject.training:
        what, found = "the rows of data", _explained(subject, before)
    else:
        what, found = "rows that its cross-validation held out", _held_out(fit, row)
    if found is None:
        return "nothing was held out: give new rows with the response, or see ld.cv"
    if not is_lost(before, *found):
        return []
    sentence = f"The fit explains {100 * before:.0f}% of the deviance of the training rows, and "
    sentence += f"{_percent(found[0])} of that of {what}."
    hint = "Use a larger penalty or fewer features, unless these rows are of another kind; judge "
    hint += "the fit by held-out rows only (ld.cv, ld.compare)."
    return [Finding("overfit", "problem", sentence, hint)]


def _percent(share):
    return f"{100 * share:.0f}%" if share > 0 else "nothing (the null model is better)"


def _held_out(fit, row):
    """Share of the null deviance explained where rows were held out, and its error; else None."""
    if "held_deviance" in row and np.isfinite(row["held_deviance"]):
        # Its error is not kept: a row's deviance varies by about as much as its mean is.
        return 1.0 - row["held_deviance"] / row["null_deviance"], 1.0 / np.sqrt(fit.n)
    if fit.selection is None:
        return None
    best = fit.selection.loc[fit.selection["mean"].idxmin()]
    return 1.0 - best["mean"] / row["null_deviance"], best["se"] / row["null_deviance"]


def _explained(subject, before):
    """Share of the null deviance of the rows that is explained, and the error of what it lacks.

    The share of the training rows, `before`, has one too: that of the rows in proportion to what is
    not explained, and to the root of their numbers.
    """
    fit, batch = subject.fit, subject.answered
    weight, family = batch.weight, subject.fit.family
    loss = family.deviance(batch.y, subject.score)
    base = batch.offset_matrix(subject.score.shape[1])
    null = family.deviance(batch.y, family.null_score(batch.y, weight, base))
    total = weight @ null
    if batch.n < MIN_ROWS or not total > 0 or fit.family.name == "none":
        return None
    share = 1.0 - weight @ loss / total
    error = np.sqrt((weight**2) @ ((1.0 - share) * null - loss) ** 2) / total
    of_training = (1.0 - before) / (1.0 - share) * np.sqrt(batch.n / fit.n)
    return share, float(error * np.hypot(1.0, of_training))


def influence(subject):
    """Return whether single rows decide the fit."""
    batch, fit = subject.answered, subject.fit
    if fit._cooks_distance is not None:
        labels, distance = fit._cooks_distance
        rows = [labels[k] for k in np.flatnonzero(np.nan_to_num(distance) > COOK)]
        how = f"of Cook's distance above {COOK:g}: without one the estimates move far."
    else:
        if batch.n < MIN_ROWS:
            return f"fewer than {MIN_ROWS} rows"
        if fit.levels is not None and fit.dev_ratio > NEARLY_ALL:
            return f"more than {100 * NEARLY_ALL:.0f}% of the deviance is explained"
        loss = fit.family.deviance(batch.y, subject.score)
        rows = list(batch.index[batch.rows[dominant(loss, batch.weight)]])
        how = f"with {100 * SHARE:.0f}% or more of all deviance each."
    if not rows:
        return []
    sentence = f"{rows_in_words(rows)} {how}"
    hint = "Check these values, and compare with a fit without them."
    return [Finding("influence", "note", sentence, hint, (), tuple(rows))]


def dispersion(subject):
    """Return whether counts vary more or less than those of a Poisson response."""
    fit, batch = subject.fit, subject.answered
    df = batch.n - fit.df
    reason = _no_counts(subject)
    if reason or df < 1:
        return reason or "no row is left for an estimate"
    mean = fit.family.mean(subject.score)
    ratio, errors = poisson_dispersion(batch.y, mean, batch.row_weights, df)
    if LEAST_RATIO <= ratio <= MOST_RATIO or abs(errors) <= ERRORS:
        return []
    size = "too small" if ratio > 1.0 else "too large"
    factor = significant(np.sqrt(max(ratio, 1.0 / ratio)), 3)
    sentence = f"The counts vary {significant(ratio, 3)} times as much as those of a Poisson "
    sentence += "response"
    hint = "See whether a feature or an offset is missing"
    if fit.name == "glm":
        sentence += f": standard errors are {size}, by a factor of {factor}"
        hint += '; covariance="HC0" gives robust errors'
    return [Finding("dispersion", "problem", f"{sentence}.", f"{hint}.")]


def zeros(subject):
    """Return whether more counts are zero than those of a Poisson response."""
    fit, batch = subject.fit, subject.answered
    reason = _no_counts(subject)
    if reason:
        return reason
    seen, expected, errors = excess_zeros(batch.y, fit.family.mean(subject.score))
    if seen <= MOST_RATIO * expected or errors <= ERRORS:
        return []
    sentence = f"{seen} counts are zero, where the fit expects {significant(expected, 3)}."
    hint = "Model in two steps: whether a count is above zero, and the counts of these rows."
    return [Finding("zeros", "problem", sentence, hint)]


def _no_counts(subject):
    """Why counts are not looked at, or nothing."""
    if subject.fit.family.name != "poisson":
        return "is for family poisson"
    few = subject.answered.n < MIN_ROWS
    return f"fewer than {MIN_ROWS} rows" if few else None


def calibration(subject):
    """Check that probabilities, or means, are right on average at each predicted value."""
    fit, batch = subject.fit, subject.answered
    if batch.n < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    if fit.levels is None:
        wrong = _numbers(fit, batch.y, subject.score)
    else:
        wrong = _classes(fit, batch.y, subject.score)
    if not wrong:
        return []
    what = "Predictions" if fit.levels is None else "Probabilities"
    sentence = f"{what} are off: {'; '.join(wrong[:MOST])}."
    hint = "Plot the responses against the predictions; fit again with such rows included."
    return [Finding("calibration", "problem", sentence, hint, tuple(wrong))]


def _numbers(fit, y, score):
    """Describe where predicted means are farthest off (one text); [] if they are right."""
    mean = fit.family.mean(score)
    residual = y - mean
    gain, chance = recalibration(residual, mean, fit.n)
    if chance >= CHANCE or gain < GAIN * len(y):
        return []
    predicted, seen, which = worst_fifth(y, mean, residual**2)
    told = f"{significant(predicted, 3)} predicted, {significant(seen, 3)} observed"
    return [f"means of the {which} fifth of the predictions: {told}"]


def _classes(fit, y, score):
    """Describe where the probabilities of a class are farthest off, for each wrong class."""
    mean = fit.family.mean(score)
    p = mean[:, None] if mean.ndim == 1 else mean
    classes = [(1, fit.levels[1])] if mean.ndim == 1 else list(enumerate(fit.levels))
    deviance, wrong = fit.family.deviance(y, score).sum(), []
    for k, (code, level) in enumerate(classes):
        q = np.clip(p[:, k], EDGE, 1.0 - EDGE)
        gain, chance = recalibration((y == code) - q, logit(q), fit.n, q * (1.0 - q))
        if chance < CHANCE / len(classes) and gain > GAIN * deviance:
            predicted, seen, which = worst_fifth(y == code, q, q * (1.0 - q))
            told = f"{100 * predicted:.0f}% predicted, {100 * seen:.0f}% observed"
            wrong.append(f"{level}, in the {which} fifth of its probabilities: {told}")
    return wrong


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
    and MacKinnon 1993, Sect. 13.7). For probabilities also with p (1 - p), as small residuals that
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
        Variance of each response; p (1 - p) for a probability.

    Returns
    -------
    float, float
        The statistic, chi-square of two degrees of freedom, and its p-value. For probabilities
        it is about the deviance gained, for numbers n times the share of squares explained.
    """
    centred = predictor - predictor.mean()
    size = np.sqrt((centred**2).mean())
    slope = centred / size if size > 1e-12 else np.zeros_like(centred)
    A = np.stack([np.ones(len(residual)), slope], axis=1)
    score = A.T @ residual
    variances = (v for v in (residual**2, variance) if v is not None)
    statistics = [score @ np.linalg.pinv((A * v[:, None]).T @ A) @ score for v in variances]
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
    """Return positions of the rows that make SHARE or more of the deviance each."""
    part = deviance * weight
    total = part.sum()
    return np.flatnonzero(part >= SHARE * total) if total > 0 else np.zeros(0, int)


def poisson_dispersion(y, mean, weight, df):
    """Pearson's statistic of counts (n,) over its degrees of freedom, and how surprising it is.

    The surprise is the score test of Dean and Lawless (1989), in standard errors.
    """
    square = (y - mean) ** 2
    ratio = (weight @ (square / np.maximum(mean, 1e-300))) / df
    return ratio, (square - y).sum() / np.sqrt(2.0 * (mean**2).sum() + 1e-300)


def excess_zeros(y, mean):
    """Number of zeros among counts (n,), what a Poisson response would have, and the surprise."""
    p = np.exp(-mean)
    seen, expected = int((y == 0).sum()), float(p.sum())
    return seen, expected, (seen - expected) / np.sqrt((p * (1.0 - p)).sum() + 1e-300)


def is_lost(explained_before, explained_now, error):
    """Return whether of what a fit explains more than LOST is not there in other rows.

    explained_before, explained_now : shares of the null deviance; error : of the latter
    """
    gap = explained_before - explained_now
    return bool(
        explained_before >= LEAST_EXPLAINED
        and gap > LOST * explained_before
        and gap > ERRORS * error
    )
