"""Conformity scores: distances of responses from predictions, and limits for new rows."""

from zlib import crc32

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.engine.row_keys import WAVES

NUMERIC_SCORES = ("absolute", "normalized", "quantile")
CLASS_SCORES = ("lac", "aps")
FROM_SPREAD = ("normalized", "quantile")  # scores that need results which fits of a path leave out


@forms.record
class ConformityScore:
    """Kind of conformity score, which measures how far a response is from its prediction.

    The score "quantile" is the distance from a predicted interval, whose coverage is `level`.
    `seed` is for the random numbers of "aps"."""

    score: str = forms.choice(*NUMERIC_SCORES, *CLASS_SCORES)
    level: float = forms.real(least=forms.TINY, most=1.0 - 2.0**-53)
    seed: int = forms.whole()

    @property
    def of_classes(self):
        return self.score in CLASS_SCORES

    @property
    def size(self):
        """Name of the column with mean sizes in tidy(): "size" of sets, or "width" of intervals."""
        return "size" if self.of_classes else "width"

    def of_rows(self, fit, batch, u):
        """Return predictions of n rows, from which scores are computed; missing ones are NaN.

        u : (n,) random numbers for score "aps", else None
        Return scores of the classes (C, n), or low, high and step of a numeric response (3, n).
        A score t stands for the interval from low - t * step to high + t * step."""
        mean = fit.family.mean(fit._score(batch))
        if self.of_classes:
            p = mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])
            each = 1.0 - p if u is None else adaptive(p, u)
            return np.where(np.isnan(p), np.nan, each).T
        if self.score == "quantile":
            low, high = fit._quantiles_of_rows(batch, 0.5 + 0.5 * self.level * np.array([-1, 1])).T
        else:
            low = high = mean
        step = fit._spread_of_rows(batch) if self.score == "normalized" else np.ones(batch.n)
        return np.array([low, high, step])

    def uniforms(self, fit, batch):
        """Return random numbers (n,) for adaptive sets ("aps"), equal for equal rows, or None."""
        if self.score != "aps":
            return None
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)
        names = [*fit._reader.names, ""]
        *of_features, last = [[self.seed, crc32(name.encode())] for name in names]
        direction = np.array([np.random.default_rng(seed).normal() for seed in of_features])
        phase = np.random.default_rng(last).uniform(0.0, 2.0)
        return np.abs((np.nan_to_num(X) @ direction * WAVES + phase) % 2.0 - 1.0)

    def scores(self, answers, y):
        """Return conformity scores (n,) of responses y, inf if predictions are NaN.

        answers : predictions that `of_rows` returned"""
        if self.of_classes:
            own = answers[y.astype(int), np.arange(len(y))]
            return np.where(np.isnan(own), np.inf, own)
        low, high, step = answers
        with np.errstate(over="ignore", invalid="ignore"):
            score = np.maximum(low - y, y - high) / np.maximum(step, np.finfo(float).tiny)
        return np.where(np.isfinite(high), score, np.inf)

    def sizes(self, answers, held, level):
        """Return the width of each row's interval, or the size of its set of classes, (n,).

        answers : predictions from `of_rows`; held : HeldOut scores; level : coverage"""
        if not self.of_classes:
            low, high, step = answers
            width = high - low + 2.0 * held.quantile(level) * step
            return np.where(np.isnan(high), np.inf, width)
        if held.of_class is None:
            at = held.quantile(level)
        else:
            at = np.array([[held.of(c).quantile(level)] for c in range(len(answers))])
        return (~(answers > at + TIE)).sum(axis=0)


TIE = 1e-12  # tolerance for rounding errors of weights and of scores of classes
SAME = 1e-8  # scores that differ by less, relative to the median score, belong to the same row
REPEATED = 0.01  # share of equal scores within folds above which rows cannot be recognized
CHUNK = 2**21  # number of values that are sorted at a time


@forms.record
class HeldOut:
    """Conformity scores of n held-out rows: distances of their responses from predictions."""

    # fold, score: number of the fit without the row; conformity score, infinite without prediction
    fold: np.ndarray = forms.whole("n", most="F - 1")
    score: np.ndarray = forms.unlimited("n")
    # weight of the row, relative to one for a new row
    weight: np.ndarray = forms.real("n", least=forms.TINY)
    # class of each row if each class is calibrated by itself, else None
    of_class: np.ndarray | None = forms.optional(forms.whole("n"))

    def _check_fields(self):
        if not len(self.fold):
            raise ValueError("no row was held out")

    def of(self, code):
        """Return the scores of the held-out rows of one class, given its code."""
        at = self.of_class == code
        return HeldOut(self.fold[at], self.score[at], self.weight[at], None)

    def groups(self, classes):
        """Divide held-out rows by class; return a list of (class, its HeldOut, index of its rows).

        If classes are not calibrated separately, the only class is None, with all rows."""
        if self.of_class is None:
            return [(None, self, slice(None))]
        return [(name, self.of(c), self.of_class == c) for c, name in enumerate(classes)]

    @property
    def most(self):
        """Highest level that held-out rows can guarantee; above it, intervals are infinite."""
        return self.weight.sum() / (self.weight.sum() + 1.0)

    def quantile(self, level):
        """Return the `level` quantile of held-out scores; the new row counts as a score of inf."""
        return float(self._quantiles(self.score[:, None], level)[0])

    def upper(self, base, step, level):
        """Return the upper limits (m,) of prediction intervals for m new rows.

        base : (K, m) predictions by K fits
        step : (K, m) distance per unit of score
        level : coverage"""
        # Each score is added by the fit without the row's fold (Barber et al. 2021, Sect. 3).
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
        """Return the weight of held-out rows with lower scores than each new row, (m, C).

        scores : (K, m, C) scores of m new rows for C classes, by K fits"""
        out = np.zeros(scores.shape[1:])
        # A held-out row is compared with scores by the fit that left it out.
        for k, of_fold in enumerate(scores):
            rows = np.flatnonzero(self.fold == k)
            rows = rows[np.argsort(self.score[rows], kind="stable")]
            total = np.append(0.0, np.cumsum(self.weight[rows]))
            out += total[np.searchsorted(self.score[rows], of_fold - TIE)]
        return out

    def sets(self, scores, level):
        """Return which of C classes are in the prediction sets of m new rows, (m, C) bool.

        scores : (K, m, C) scores that K fits give the classes of a new row; level : coverage"""
        if self.of_class is None:
            return self.below(scores) < self._needed(level)
        each = (self.of(c).sets(scores[..., [c]], level) for c in range(scores.shape[2]))
        return np.column_stack(list(each))

    def contains(self, scores):
        """Return the share of new rows that seem to be held-out rows.

        scores : (K, m) scores of m new rows by K fits"""
        # A new row seems held out if one of its scores equals a held-out score by this fit.
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
        """Return the total weight of held-out rows that intervals of this level must cover."""
        return level * (self.weight.sum() + 1.0) * (1.0 - TIE)

    def _quantiles(self, values, level):
        """Return the weighted `level` quantile of each column of `values`, (m,).

        values : (n, m), a row per held-out row
        The result is infinite if the rows have too little weight for this level."""
        # A further row, for the new one, has the value inf.
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
    """Return row weights `given` (n,) of held-out rows, rescaled so that a new row has weight one.

    units : (n,) groups of the rows, each with total weight one; without groups, the mean is one"""
    # Lee et al. (2023).
    if units is None:
        return given / given.mean()
    code = np.unique(units, return_inverse=True)[1]
    return given / np.bincount(code, given)[code]


def adaptive(p, u):
    """Return scores (n, C) of classes: total probability of all more probable classes, plus u p.

    p : (n, C) probabilities; u : (n,) random numbers from 0 to 1"""
    # The random term makes coverage exact (Romano, Sesia and Candes 2020, Sect. 2).
    above = p[:, None, :] > p[:, :, None] + TIE
    return (above * p[:, None, :]).sum(axis=2) + u[:, None] * p
