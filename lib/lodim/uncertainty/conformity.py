"""Conformity scores: distance of a response from a prediction, and limits for new rows.

For a numeric response a fit gives a band low - t step to high + t step; the score of a response is
the t at which the band reaches it. For classes it is the score of each class.
"""

from zlib import crc32

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.engine.row_keys import WAVES

OF_NUMBERS = ("absolute", "normalized", "quantile")
OF_CLASSES = ("lac", "aps")
FROM_SPREAD = ("normalized", "quantile")  # that need what a fit of a path leaves out


@forms.record
class Sayings:
    """Score and options by which fits are evaluated.

    level : for the quantiles of "quantile"
    seed : of the random numbers of "aps"
    """

    score: str = forms.choice(*OF_NUMBERS, *OF_CLASSES)
    level: float = forms.real(least=forms.TINY, most=1.0 - 2.0**-53)
    seed: int = forms.whole()

    @property
    def of_classes(self):
        """Whether the response has classes."""
        return self.score in OF_CLASSES

    @property
    def size(self):
        """Name of the measure of precision."""
        return "size" if self.of_classes else "width"

    def of_rows(self, fit, batch, u):
        """Return low, high and step of bands, (3, n); for C classes their scores (C, n).

        NaN without a prediction. u (n,): see `uniforms`; None except for "aps".
        """
        mean = fit.family.mean(fit._score(batch))
        if self.of_classes:
            p = mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])
            each = least_ambiguous(p) if u is None else adaptive(p, u)
            return np.where(np.isnan(p), np.nan, each).T
        if self.score == "quantile":
            low, high = fit._quantiles_of_rows(batch, 0.5 + 0.5 * self.level * np.array([-1, 1])).T
        else:
            low = high = mean
        step = fit._spread_of_rows(batch) if self.score == "normalized" else np.ones(batch.n)
        return np.array([low, high, step])

    def uniforms(self, fit, batch):
        """Return random numbers (n,) for "aps", which depend on the rows' features; else None."""
        if self.score != "aps":
            return None
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)
        names = [*fit._reader.names, ""]
        return row_uniforms(X, [[self.seed, crc32(name.encode())] for name in names])

    def scores(self, answers, y):
        """Return scores (n,) of responses y, infinite without a prediction."""
        if self.of_classes:
            own = answers[y.astype(int), np.arange(len(y))]
            return np.where(np.isnan(own), np.inf, own)
        return band_scores(*answers, y)

    def sizes(self, answers, held, level):
        """Return widths, or numbers of classes, of held-out rows by the fits without them."""
        if not self.of_classes:
            low, high, step = answers
            width = high - low + 2.0 * held.quantile(level) * step
            return np.where(np.isnan(high), np.inf, width)
        if held.of_class is None:
            at = held.quantile(level)
        else:
            at = np.array([[held.of(c).quantile(level)] for c in range(len(answers))])
        return (~(answers > at + TIE)).sum(axis=0)


TIE = 1e-12  # of weights and of scores of classes: what is less is rounding
SAME = 1e-8  # of the median score: scores of one row by one fit
REPEATED = 0.01  # share of equal scores within folds, above which rows are not recognized
CHUNK = 2**21  # numbers that are put in order at a time


@forms.record
class HeldOut:
    """Scores of the rows that were held out, with which those of new rows are compared.

    fold : the fit that a row was held out of
    score : infinite where that fit has no answer
    weight : above zero; a new row weighs one
    of_class : the class of each row if classes have quantiles of their own, else None
    """

    fold: np.ndarray = forms.whole("n", most="F - 1")
    score: np.ndarray = forms.unlimited("n")
    weight: np.ndarray = forms.real("n", least=forms.TINY)
    of_class: np.ndarray | None = forms.optional(forms.whole("n"))

    def _check_fields(self):
        """Raise a ValueError unless some row was held out."""
        if not len(self.fold):
            raise ValueError("no row was held out")

    def of(self, code):
        """Return the rows of one class."""
        at = self.of_class == code
        return HeldOut(self.fold[at], self.score[at], self.weight[at], None)

    @property
    def most(self):
        """The highest level that can be reached: above it nothing is ruled out."""
        return self.weight.sum() / (self.weight.sum() + 1.0)

    def quantile(self, level):
        """The score that a share `level` of the rows, a new one among them, does not exceed."""
        return float(self._quantiles(self.score[:, None], level)[0])

    def upper(self, base, step, level):
        """Return upper limits (m,) of m new rows: Barber et al. (2021), Sect. 3.

        Parameters
        ----------
        base, step : (K, m) float64
            What each fit says of the new rows; the limit of score t is base + t step.
        level : float
        """
        if len(base) == 1:
            return base[0] + step[0] * self.quantile(level)
        out = np.empty(base.shape[1])
        size = max(1, CHUNK // len(self.fold))
        for lo in range(0, len(out), size):
            at = slice(lo, lo + size)
            reached = base[self.fold, at] + step[self.fold, at] * self.score[:, None]
            out[at] = self._quantiles(reached, level)
        return out

    def below(self, scores):
        """Return the weight of the held-out rows whose score is below that of a new row, by class.

        scores : (K, m, C) float64, of each class by the fit of each fold -> (m, C)
        """
        out = np.zeros(scores.shape[1:])
        for k, of_fold in enumerate(scores):
            rows = np.flatnonzero(self.fold == k)
            rows = rows[np.argsort(self.score[rows], kind="stable")]
            total = np.append(0.0, np.cumsum(self.weight[rows]))
            out += total[np.searchsorted(self.score[rows], of_fold - TIE)]
        return out

    def sets(self, scores, level):
        """Return whether a class is in the set of each row, (K, m, C) -> (m, C); see `below`."""
        if self.of_class is None:
            return self.below(scores) < self._needed(level)
        each = (self.of(c).sets(scores[..., [c]], level) for c in range(scores.shape[2]))
        return np.column_stack(list(each))

    def contains(self, scores):
        """Return the share of new rows that were held out, recognized by scores (K, m).

        Zero if scores do not identify rows: rows of a fold have equal scores, or folds are too
        small.
        """
        known = [np.sort(self.score[self.fold == k]) for k in range(len(scores))]
        near = SAME * np.median(np.abs(self.score))
        steps = np.concatenate([np.diff(of_fold[np.isfinite(of_fold)]) for of_fold in known])
        found = np.zeros(scores.shape[1], bool)
        if not found.size or not near > 0.0 or 2 * len(steps) < len(self.score):
            return 0.0
        if np.mean(steps <= near) > REPEATED:
            return 0.0
        for of_fold, new in zip(known, scores, strict=True):
            first = np.searchsorted(of_fold, new - near)
            found |= first < np.searchsorted(of_fold, new + near, "right")
        return found.mean()

    def _needed(self, level):
        """Return the weight that the rows within must reach."""
        return level * (self.weight.sum() + 1.0) * (1.0 - TIE)

    def _quantiles(self, values, level):
        """Return weighted quantiles of the columns, (n, m) -> (m,)."""
        needed = self._needed(level)
        if self.weight.sum() < needed:
            return np.full(values.shape[1], np.inf)
        if np.ptp(self.weight) == 0.0:
            k = int(np.ceil(needed / self.weight[0])) - 1
            return np.partition(values, max(k, 0), axis=0)[max(k, 0)]
        order = np.argsort(values, axis=0, kind="stable")
        first = (np.cumsum(self.weight[order], axis=0) >= needed).argmax(axis=0)
        return np.take_along_axis(values, order[first, np.arange(len(first))][None], axis=0)[0]


def held_out_weights(given, units):
    """Return weights (n,) of held-out rows, relative to a new row.

    Rows of a group share the weight of one row, that of a new group (Lee, Barber and Willett 2023);
    otherwise the mean weight is one. given : (n,) float64, above zero; units : (n,) codes of
    groups, or None.
    """
    if units is None:
        return given / given.mean()
    code = np.unique(units, return_inverse=True)[1]
    return given / np.bincount(code, given)[code]


def band_scores(low, high, step, y):
    """Return scores (n,) of responses y: steps outside of a band, negative inside."""
    with np.errstate(over="ignore", invalid="ignore"):
        score = np.maximum(low - y, y - high) / np.maximum(step, np.finfo(float).tiny)
    return np.where(np.isfinite(high), score, np.inf)


def least_ambiguous(p):
    """Return scores (n, C) of classes: one minus their probabilities p (Sadinle et al. 2019)."""
    return 1.0 - p


def adaptive(p, u):
    """Return scores (n, C): the probability of more probable classes, plus u times its own.

    Romano, Sesia and Candes (2020), Sect. 2; u (n,) between 0 and 1.
    """
    above = p[:, None, :] > p[:, :, None] + TIE
    return (above * p[:, None, :]).sum(axis=2) + u[:, None] * p


def row_uniforms(X, seeds):
    """Return a number in (0, 1) per row (n,) that depends only on its features X (n, q).

    It is a wave along a random direction, so distant rows differ and copies agree.

    X : in units of their spread, NaN if missing; seeds : (q + 1,) integers
    """
    *of_features, last = seeds
    direction = np.array([np.random.default_rng(s).normal() for s in of_features])
    along = np.nan_to_num(X) @ direction if len(direction) else np.zeros(len(X))
    phase = np.random.default_rng(last).uniform(0.0, 2.0)
    return np.abs((along * WAVES + phase) % 2.0 - 1.0)
