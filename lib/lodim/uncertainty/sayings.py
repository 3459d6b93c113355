"""What a fit says of rows, in the terms of a score: a band of numbers, or a score of each class."""

from zlib import crc32

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.uncertainty import scores

OF_NUMBERS = ("absolute", "normalized", "quantile")
OF_CLASSES = ("lac", "aps")
FROM_SPREAD = ("normalized", "quantile")  # that need what a fit of a path leaves out


@forms.record
class Sayings:
    """How fits are asked.

    level : of the quantiles of "quantile"
    seed : of the numbers by which "aps" is randomized
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
        """What is small where little is left open."""
        return "size" if self.of_classes else "width"

    def of_rows(self, fit, batch, u):
        """Low, high and step of the band of each row, (3, n); of C classes their scores (C, n).

        NaN where the fit has no answer. u (n,): see `uniforms`; None but of "aps".
        """
        mean = fit.family.mean(fit._score(batch))
        if self.of_classes:
            p = mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])
            each = scores.least_ambiguous(p) if u is None else scores.adaptive(p, u)
            return np.where(np.isnan(p), np.nan, each).T
        if self.score == "quantile":
            low, high = fit._quantiles_of_rows(batch, 0.5 + 0.5 * self.level * np.array([-1, 1])).T
        else:
            low = high = mean
        step = fit._spread_of_rows(batch) if self.score == "normalized" else np.ones(batch.n)
        return np.array([low, high, step])

    def uniforms(self, fit, batch):
        """What "aps" draws for rows as a fit reads them, (n,), by their features; else None."""
        if self.score != "aps":
            return None
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)
        names = [*fit._reader.names, ""]
        return scores.row_uniforms(X, [[self.seed, crc32(name.encode())] for name in names])

    def scores(self, answers, y):
        """Scores (n,) of responses y, infinite where there is no answer."""
        if self.of_classes:
            own = answers[y.astype(int), np.arange(len(y))]
            return np.where(np.isnan(own), np.inf, own)
        return scores.of_band(*answers, y)

    def sizes(self, answers, held, level):
        """Widths, or numbers of classes, of the held-out rows by the fits without them, (n,)."""
        if not self.of_classes:
            low, high, step = answers
            width = high - low + 2.0 * held.quantile(level) * step
            return np.where(np.isnan(high), np.inf, width)
        if held.of_class is None:
            at = held.quantile(level)
        else:
            at = np.array([[held.of(c).quantile(level)] for c in range(len(answers))])
        return (~(answers > at + scores.TIE)).sum(axis=0)
