"""What rows with known responses say of the answers of a fit."""

import numpy as np
from scipy.special import logit

from lodim.design.frames import in_pandas
from lodim.diagnostics import answers
from lodim.diagnostics.features import CHANCE
from lodim.diagnostics.findings import MOST, Finding, rows_in_words
from lodim.report.numbers import significant

EDGE = 1e-9  # from 0 and 1, of a probability whose logit counts


def overfit(subject):
    """Whether other rows are explained much worse than the training rows."""
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
    if not answers.is_lost(before, *found):
        return []
    return [
        Finding(
            "overfit", "problem",
            f"The fit explains {100 * before:.0f} % of the deviance of the training rows, and "
            f"{_percent(found[0])} of that of {what}.",
            "A larger penalty or fewer features, unless these rows are of another kind; judge the "
            "fit by rows held out alone (ld.cv, ld.compare).",
        )
    ]  # fmt: skip


def _percent(share):
    return f"{100 * share:.0f} %" if share > 0 else "nothing (the null model is better)"


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
    if batch.n < answers.MIN_ROWS or not total > 0 or fit.family.name == "none":
        return None
    share = 1.0 - weight @ loss / total
    error = np.sqrt((weight**2) @ ((1.0 - share) * null - loss) ** 2) / total
    of_training = (1.0 - before) / (1.0 - share) * np.sqrt(batch.n / fit.n)
    return share, float(error * np.hypot(1.0, of_training))


def influence(subject):
    """Whether single rows decide the fit."""
    batch, fit = subject.answered, subject.fit
    if fit._cooks_distance is not None:
        labels, distance = fit._cooks_distance
        rows = [labels[k] for k in np.flatnonzero(np.nan_to_num(distance) > answers.COOK)]
        how = f"of Cook's distance above {answers.COOK:g}: without one the estimates move far."
    else:
        if batch.n < answers.MIN_ROWS:
            return f"fewer than {answers.MIN_ROWS} rows"
        if fit.levels is not None and fit.dev_ratio > answers.NEARLY_ALL:
            return f"more than {100 * answers.NEARLY_ALL:.0f} % of the deviance is explained"
        loss = fit.family.deviance(batch.y, subject.score)
        rows = list(batch.index[batch.rows[answers.dominant(loss, batch.weight)]])
        how = f"with {100 * answers.SHARE:.0f} % or more of all deviance each."
    if not rows:
        return []
    return [
        Finding(
            "influence", "note", f"{rows_in_words(rows)} {how}",
            "See whether these values are right, and fit without them.", (), tuple(rows),
        )
    ]  # fmt: skip


def dispersion(subject):
    """Whether counts vary more or less than those of a Poisson response."""
    fit, batch = subject.fit, subject.answered
    df = batch.n - len(fit.design.names) - 1
    reason = _no_counts(subject)
    if reason or df < 1:
        return reason or "no row is left for an estimate"
    mean = fit.family.mean(subject.score)
    ratio, errors = answers.dispersion(batch.y, mean, batch.row_weights, df)
    if answers.LEAST_RATIO <= ratio <= answers.MOST_RATIO or abs(errors) <= answers.ERRORS:
        return []
    size = "too small" if ratio > 1.0 else "too large"
    return [
        Finding(
            "dispersion", "problem",
            f"The counts vary {significant(ratio, 3)} times as much as those of a Poisson "
            f"response: standard errors are {size}, by a factor of "
            f"{significant(np.sqrt(max(ratio, 1.0 / ratio)), 3)}.",
            'See whether a feature or an offset is missing; covariance="HC0" gives robust errors.',
        )
    ]  # fmt: skip


def zeros(subject):
    """Whether more counts are zero than those of a Poisson response."""
    fit, batch = subject.fit, subject.answered
    reason = _no_counts(subject)
    if reason:
        return reason
    seen, expected, errors = answers.zeros(batch.y, fit.family.mean(subject.score))
    if seen <= answers.MOST_RATIO * expected or errors <= answers.ERRORS:
        return []
    return [
        Finding(
            "zeros", "problem",
            f"{seen} counts are zero, where the fit expects {significant(expected, 3)}.",
            "Model in two steps: whether a count is above zero, and the counts of these rows.",
        )
    ]  # fmt: skip


def _no_counts(subject):
    """Why counts are not looked at, or nothing."""
    if subject.fit.name != "glm" or subject.fit.family.name != "poisson":
        return "is for glm with family poisson"
    few = subject.answered.n < answers.MIN_ROWS
    return f"fewer than {answers.MIN_ROWS} rows" if few else None


def calibration(subject):
    """Whether probabilities, or means, are right on average wherever they are the same."""
    fit, batch = subject.fit, subject.answered
    if batch.n < answers.MIN_ROWS:
        return f"fewer than {answers.MIN_ROWS} rows"
    if fit.levels is None:
        wrong = _numbers(fit, batch.y, subject.score)
    else:
        wrong = _classes(fit, batch.y, subject.score)
    if not wrong:
        return []
    return [
        Finding(
            "calibration", "problem",
            f"{'Predictions' if fit.levels is None else 'Probabilities'} are off: "
            f"{'; '.join(wrong[:MOST])}.",
            "See the responses against the predictions; fit anew with such rows among the others.",
            tuple(wrong),
        )
    ]  # fmt: skip


def _numbers(fit, y, score):
    """Where means are farthest off, as a list of one text; nothing where they are right."""
    mean = fit.family.mean(score)
    residual = y - mean
    gain, chance = answers.recalibration(residual, mean, fit.n)
    if chance >= CHANCE or gain < answers.GAIN * len(y):
        return []
    predicted, seen, which = answers.worst_fifth(y, mean, residual**2)
    told = f"{significant(predicted, 3)} predicted, {significant(seen, 3)} seen"
    return [f"means of the {which} fifth of the predictions: {told}"]


def _classes(fit, y, score):
    """Of each class whose probabilities are wrong, where they are farthest off."""
    mean = fit.family.mean(score)
    p = mean[:, None] if mean.ndim == 1 else mean
    classes = [(1, fit.levels[1])] if mean.ndim == 1 else list(enumerate(fit.levels))
    deviance, wrong = fit.family.deviance(y, score).sum(), []
    for k, (code, level) in enumerate(classes):
        q = np.clip(p[:, k], EDGE, 1.0 - EDGE)
        gain, chance = answers.recalibration((y == code) - q, logit(q), fit.n, q * (1.0 - q))
        if chance < CHANCE / len(classes) and gain > answers.GAIN * deviance:
            predicted, seen, which = answers.worst_fifth(y == code, q, q * (1.0 - q))
            told = f"{100 * predicted:.0f} % predicted, {100 * seen:.0f} % seen"
            wrong.append(f"{level}, in the {which} fifth of its probabilities: {told}")
    return wrong
