"""Checks of predictions for rows with known responses."""

import numpy as np
from scipy.special import logit

from lodim.design.frame import in_pandas
from lodim.diagnostics.features import CHANCE
from lodim.diagnostics.findings import MAX_NAMES, Finding, rows_in_words
from lodim.report.numbers import significant

EDGE = 1e-9  # smallest distance of a probability from 0 and 1, for its logit


def overfit(subject):
    """Check whether a fit explains new or held-out rows much worse than training rows.

    subject : Subject, a fit and rows. Return Findings, or the reason why nothing was checked"""
    fit, row = subject.fit, in_pandas(subject.fit.glance)().iloc[0]
    if fit.design.response is None:
        return "there is no response"
    if not row["null_deviance"] > 0:
        return "the response does not vary"
    before = 1.0 - row["deviance"] / row["null_deviance"]
    if subject.answered is not None and not subject.training:
        what, found = "the rows of data", _explained(subject, before)
    else:
        what, found = "rows that its cross-validation held out", None
        if "held_deviance" in row and np.isfinite(row["held_deviance"]):
            # No error is stored: assume that the deviance of a row varies by about its mean.
            share = 1.0 - row["held_deviance"] / row["null_deviance"]
            found = share, 1.0 / np.sqrt(fit.n)
        elif fit.selection is not None:
            best = fit.selection.loc[fit.selection["mean"].idxmin()]
            share = 1.0 - best["mean"] / row["null_deviance"]
            found = share, best["se"] / row["null_deviance"]
    if found is None:
        return "no rows were held out: give new rows with the response, or use ld.cv"
    if not is_lost(before, *found):
        return []
    share = f"{100 * found[0]:.0f}%" if found[0] > 0 else "nothing (the null model is better)"
    sentence = f"The fit explains {100 * before:.0f}% of the deviance of the training rows, and "
    sentence += f"{share} of that of {what}."
    hint = "Use a larger penalty or fewer features, unless these rows differ in kind; judge "
    hint += "the fit by held-out rows only (ld.cv, ld.compare)."
    return [Finding("overfit", "problem", sentence, hint)]


def _explained(subject, before):
    """Return the share of deviance explained in a subject's rows, and the SE of its change.

    subject : Subject, the fit and the rows
    before : share explained in the training rows
    Return None if rows are few or the share is undefined."""
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
    """Find single rows that determine a Subject's fit; return Findings, or a text why skipped."""
    batch, fit = subject.answered, subject.fit
    if fit._cooks_distance is not None:
        labels, distance = fit._cooks_distance
        rows = [labels[k] for k in np.flatnonzero(np.nan_to_num(distance) > COOK)]
        how = f"with Cook's distance above {COOK:g}: without such a row the estimates change much."
    else:
        reason = why_dominant(batch.n, fit.levels, fit.dev_ratio)
        if reason:
            return reason
        loss = fit.family.deviance(batch.y, subject.score)
        rows = list(batch.index[batch.rows[dominant(loss, batch.weight)]])
        how = f"with {100 * SHARE:.0f}% or more of all deviance each."
    if not rows:
        return []
    sentence = f"{rows_in_words(rows)} {how}"
    hint = "Check these values, and compare with a fit without them."
    return [Finding("influence", "note", sentence, hint, (), tuple(rows))]


def dispersion(subject):
    """Find over- or underdispersed counts of a Subject; return Findings, or a text why skipped."""
    fit, batch = subject.fit, subject.answered
    df = batch.n - fit.df
    reason = _no_counts(subject)
    if reason or df < 1:
        return reason or "no row without missing values"
    mean = fit.family.mean(subject.score)
    square = (batch.y - mean) ** 2
    ratio = (batch.row_weights @ (square / np.maximum(mean, 1e-300))) / df
    # Score test of Dean and Lawless (1989), in standard errors
    errors = (square - batch.y).sum() / np.sqrt(2.0 * (mean**2).sum() + 1e-300)
    if LEAST_RATIO <= ratio <= MOST_RATIO or abs(errors) <= ERRORS:
        return []
    size = "too small" if ratio > 1.0 else "too large"
    factor = significant(np.sqrt(max(ratio, 1.0 / ratio)), 3)
    sentence = f"The variance of the counts is {significant(ratio, 3)} times that of a Poisson "
    sentence += "response"
    hint = "See whether a feature or an offset is missing"
    if fit.name == "glm" and ratio > 1.0:
        hint += '; family="negative_binomial" has a larger variance'
    if fit.name == "glm" and fit.log["covariance"] == "nonrobust":
        sentence += f": standard errors are {size}, by a factor of {factor}"
        hint += '; covariance="HC0" gives robust errors'
    return [Finding("dispersion", "problem", f"{sentence}.", f"{hint}.")]


def zeros(subject):
    """Find excess zeros of a Subject (Poisson fit, rows); return Findings, or why not checked."""
    fit, batch = subject.fit, subject.answered
    reason = _no_counts(subject)
    if reason:
        return reason
    p = np.exp(-fit.family.mean(subject.score))  # Poisson probabilities of zero
    seen, expected = int((batch.y == 0).sum()), float(p.sum())
    errors = (seen - expected) / np.sqrt((p * (1.0 - p)).sum() + 1e-300)
    if seen <= MOST_RATIO * expected or errors <= ERRORS:
        return []
    sentence = f"{seen} counts are zero, where the fit expects {significant(expected, 3)}."
    hint = "Fit two models: whether a count is above zero, and the counts above zero."
    if fit.name == "glm":
        hint = f'Try family="negative_binomial", which expects more zeros. {hint}'
    return [Finding("zeros", "problem", sentence, hint)]


def _no_counts(subject):
    if subject.fit.family.name != "poisson":
        return "only for family poisson"
    few = subject.answered.n < MIN_ROWS
    return f"fewer than {MIN_ROWS} rows" if few else None


def calibration(subject):
    """Find ranges of biased predictions in a Subject; return Findings, or a text why skipped."""
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
    sentence = f"{what} are wrong: {'; '.join(wrong[:MAX_NAMES])}."
    hint = "Plot responses against predictions; fit again with such rows included."
    return [Finding("calibration", "problem", sentence, hint, tuple(wrong))]


def _numbers(fit, y, score):
    """Describe where predictions of a numeric response are wrong on average, as a list of texts.

    score : linear predictors of rows with responses y; if they are calibrated, the list is empty"""
    # The text is on the fifth of rows that is predicted worst.
    mean, family = fit.family.mean(score), fit.family
    residual = family.bounded(y - mean)
    gain, chance = recalibration(residual, mean, fit.n)
    if chance >= CHANCE or gain < GAIN * len(y):
        return []
    at, which = worst_fifth(residual, mean, residual**2)
    if family.name == "quantile":
        below = 100.0 * (y <= mean)[at].mean()
        told = f"{100 * family.quantile:g}% predicted, {below:.0f}% observed"
        return [f"share of responses below the {which} fifth of the predictions: {told}"]
    told = f"{significant(mean[at].mean(), 3)} predicted, {significant(y[at].mean(), 3)} observed"
    return [f"means of the {which} fifth of the predictions: {told}"]


def _classes(fit, y, score):
    """Return texts on classes whose probabilities, given linear predictors `score`, are biased."""
    mean = fit.family.mean(score)
    p = mean[:, None] if mean.ndim == 1 else mean
    classes = [(1, fit.levels[1])] if mean.ndim == 1 else list(enumerate(fit.levels))
    deviance, wrong = fit.family.deviance(y, score).sum(), []
    for k, (code, level) in enumerate(classes):
        q = np.clip(p[:, k], EDGE, 1.0 - EDGE)
        gain, chance = recalibration((y == code) - q, logit(q), fit.n, q * (1.0 - q))
        if chance < CHANCE / len(classes) and gain > GAIN * deviance:
            at, which = worst_fifth((y == code) - q, q, q * (1.0 - q))
            seen = (y == code)[at].mean()
            told = f"{100 * q[at].mean():.0f}% predicted, {100 * seen:.0f}% observed"
            wrong.append(f"{level}, in the {which} fifth of its probabilities: {told}")
    return wrong


SHARE = 0.25  # share of the deviance above which a single row is reported
MIN_ROWS = 40  # smallest number of rows for checks of influence and calibration
GAIN = 0.02  # smallest share of the deviance that better calibration would save
LOST = 0.5  # largest share of the explained deviance that may be lost in other rows
ERRORS = 4.0  # number of standard errors beyond which a result is reported
LEAST_EXPLAINED = 0.05  # share of deviance explained in training, below which losses are ignored
COOK = 1.0  # Cook's distance above which a row is reported
NEARLY_ALL = 0.95  # share explained above which a few rows always make the remaining deviance
LEAST_RATIO, MOST_RATIO = 0.5, 1.5  # variance over that of a Poisson response: no finding between
FIFTHS = "lowest", "second", "middle", "fourth", "highest"


def recalibration(residual, predictor, n_training, variance=None):
    """Test whether predictions need an intercept and a slope; return chi-square and p-value.

    residual : response minus mean
    predictor : the mean, or the logit of a probability
    n_training : number of training rows
    variance : variances of the responses, or None"""
    # The test has 2 degrees of freedom (Davidson and MacKinnon 1993, Sect. 13.7). Few training rows
    # reduce chi-square.
    centred = predictor - predictor.mean()
    size = np.sqrt((centred**2).mean())
    slope = centred / size if size > 1e-12 else np.zeros_like(centred)
    A = np.stack([np.ones(len(residual)), slope], axis=1)
    score = A.T @ residual
    # The smaller of two statistics: with squared residuals, and with the given variances.
    variances = (v for v in (residual**2, variance) if v is not None)
    statistics = [score @ np.linalg.pinv((A * v[:, None]).T @ A) @ score for v in variances]
    statistic = float(min(statistics)) / (1.0 + len(residual) / n_training)
    return statistic, float(np.exp(-0.5 * statistic))


def worst_fifth(residual, predicted, variance):
    """Divide rows into fifths by prediction; return the worst fifth's positions and its name.

    residual : (n,) responses minus predictions; predicted : (n,) predictions
    variance : (n,) variance of each residual
    The worst fifth has the largest |mean| / SE of its residuals."""
    parts = np.array_split(np.argsort(predicted, kind="stable"), len(FIFTHS))
    off = [abs(residual[k].sum()) / np.sqrt(variance[k].sum() + 1e-300) for k in parts]
    worst = int(np.argmax(off))
    return parts[worst], FIFTHS[worst]


def why_dominant(n, levels, explained):
    """Return why a few rows can dominate the deviance of a good fit; "" if no reason.

    levels : classes of the response, or None for a number
    explained : share of deviance explained by the fit"""
    if n < MIN_ROWS:
        return f"fewer than {MIN_ROWS} rows"
    if levels is not None and explained > NEARLY_ALL:
        return f"more than {100 * NEARLY_ALL:.0f}% of the deviance is explained"
    return ""


def dominant(deviance, weight):
    """Return the positions of rows that each contribute 25% or more of the total deviance."""
    part = deviance * weight
    total = part.sum()
    return np.flatnonzero(part >= SHARE * total) if total > 0 else np.zeros(0, int)


def is_lost(explained_before, explained_now, error):
    """Return whether a fit explains far less deviance in other rows than in training.

    explained_before : share explained in the training rows
    explained_now : share explained in the other rows
    error : standard error of the difference"""
    gap = explained_before - explained_now
    least = max(LOST * explained_before, ERRORS * error)
    return bool(explained_before >= LEAST_EXPLAINED and gap > least)
