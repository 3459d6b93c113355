"""Sums over rows from which evaluate() computes its measures; sums of chunks can be added.

Null models of chunks are merged like variances (Chan, Golub and LeVeque 1979). For the AUC, and for
the null deviance of classes with an offset, sums do not suffice: some values per row are kept.
"""

from dataclasses import dataclass

import numpy as np

from lodim import family as families
from lodim.classification import auc, macro_auc


@dataclass(frozen=True)
class NullPart:
    """Null model (intercept only) of some rows with positive weight w.

    size : sum of w exp((2 - p) score), p the power of the variance; sum of w for gaussian
    deviance : a sum over the rows, not a mean
    """

    weight: float
    size: float
    intercept: float
    deviance: float


@dataclass(frozen=True)
class Evaluation:
    """Sums over rows, from which evaluate() computes its measures; sums of chunks can be added.

    n, weight : number of rows of positive weight, and the sum of their weights
    totals : dict name of a loss -> its weighted sum
    classes : (K, 2) weight of all, and of correctly predicted, rows per class; None for numbers
    squares : weighted sum of the squared response; reach : minimum and maximum of the response
    nulls : a NullPart (null model) per chunk for numbers; (y, weights, offset) for classes with
        offset
    ranked : (y, weights, scores) per chunk of classes, for the AUC
    """

    family: object
    n: int
    weight: float
    totals: dict
    classes: np.ndarray | None
    squares: float
    reach: tuple[float, float]
    offset_given: bool
    nulls: tuple
    ranked: tuple

    @classmethod
    def of_rows(cls, family, y, weights, offset, score, losses):
        """Return the Evaluation of rows with known responses y (n,), coded for classes.

        weights : (n,) as given; offset, score : (n, K); losses : dict of (n,) arrays
        """
        at = weights > 0
        has_classes = families.has_classes(family)
        classes = _by_class(y, weights, score) if has_classes else None
        known = (y[at], weights[at], np.zeros((at.sum(), score.shape[1])))
        if offset is not None:
            known = (*known[:2], offset[at])
        nulls = ()
        if _needs_rows(family, offset is not None):
            nulls = (known,)
        elif not has_classes and at.any():
            nulls = (_null_of(family, *known),)
        return cls(
            family=family,
            n=int(at.sum()),
            weight=float(weights.sum()),
            totals={name: float(weights @ values) for name, values in losses.items()},
            classes=classes,
            squares=float(weights @ y**2),
            reach=(y[at].min(initial=np.inf), y[at].max(initial=-np.inf)),
            offset_given=offset is not None,
            nulls=nulls,
            ranked=((y, weights, score),) if has_classes else (),
        )

    def __add__(self, other):
        return Evaluation(
            family=self.family,
            n=self.n + other.n,
            weight=self.weight + other.weight,
            totals={name: total + other.totals[name] for name, total in self.totals.items()},
            classes=None if self.classes is None else self.classes + other.classes,
            squares=self.squares + other.squares,
            reach=(min(self.reach[0], other.reach[0]), max(self.reach[1], other.reach[1])),
            offset_given=self.offset_given,
            nulls=self.nulls + other.nulls,
            ranked=self.ranked + other.ranked,
        )

    def mean(self, name):
        """Return the weighted mean of the named loss over the rows."""
        return self.totals[name] / self.weight

    @property
    def dev_ratio(self):
        """Explained share of the null deviance; NaN if the response does not vary."""
        square = self.squares / self.weight if self.classes is None else None
        varies = square is None or self.offset_given or self.reach[0] != self.reach[1]
        return share_explained(self.mean("deviance"), self._null_deviance(), square, varies)

    @property
    def balanced_accuracy(self):
        """Mean over classes of the share of correctly predicted rows."""
        size, right = self.classes.T
        return float((right[size > 0] / size[size > 0]).mean())

    @property
    def auc(self):
        """AUC for two classes; for several classes the mean over each class against all others."""
        return auc_of_classes(self.family, *map(np.concatenate, zip(*self.ranked, strict=True)))

    def _null_deviance(self):
        """Return the mean deviance of the intercept-only model."""
        rows_kept = _needs_rows(self.family, self.offset_given)
        if self.classes is None and not rows_kept:
            return _null_deviance(self.family, self.nulls) / self.weight
        if rows_kept:
            y, weights, offset = (np.concatenate(parts) for parts in zip(*self.nulls, strict=True))
        else:  # one row per class suffices
            size = self.classes[:, 0]
            y, weights = np.flatnonzero(size).astype(float), size[size > 0]
            offset = np.zeros((len(y), self.family.n_scores))
        weight = weights / self.weight
        null = self.family.null_score(y, weight, offset)
        return float(weight @ self.family.deviance(y, null))


def auc_of_classes(family, y, weight, score):
    """Return the AUC for two classes; for several the mean over each class against all others.

    NaN if only one class occurs. y : (n,) codes; score : (n, n_scores)
    """
    if score.shape[1] == 1:
        return auc(y == 1, score[:, 0], weight)
    return macro_auc(y, family.mean(score), weight)


def share_explained(deviance, null_deviance, square, varies):
    """Return the explained share of the null deviance; NaN for a constant response.

    deviance, null_deviance : means per row; square : mean square of a numeric response, else None
    """
    if not varies:
        return np.nan
    # The null deviance of a constant response consists of rounding errors.
    rounding = 1e-9 if square is None else 1e-20 * square
    return 1.0 - deviance / null_deviance if null_deviance > rounding else np.nan


def _needs_rows(family, offset_given):
    """Return whether the null deviance needs all rows, so that sums over chunks do not suffice."""
    if families.has_classes(family):
        return offset_given
    return not isinstance(family, families.Gaussian | families.PowerVariance)


def _by_class(y, weights, score):
    """Return per class the weight of all rows, and of correctly predicted rows, (K, 2)."""
    code = y.astype(int)
    K = max(2, score.shape[1])
    right = (score.argmax(axis=1) if score.shape[1] > 1 else score[:, 0] > 0) == code
    counts = [np.bincount(code, w, minlength=K) for w in (weights, weights * right)]
    return np.stack(counts, axis=1)


def _null_of(family, y, weights, offset):
    """Return the NullPart (intercept-only model) of rows with positive weight."""
    total = weights.sum()
    null = family.null_score(y, weights / total, offset)
    power = 2.0 if family.name == "gaussian" else family.power
    size = weights @ np.exp((2.0 - power) * null[:, 0])
    intercept = null[0, 0] - offset[0, 0]
    return NullPart(total, size, intercept, weights @ family.deviance(y, null))


def _null_deviance(family, parts):
    """Return the total deviance of the null model of all chunks, given a NullPart per chunk.

    A common intercept c instead of c_k = c + d adds w d^2 to chunk k for gaussian, else 2 s (g(2 -
    p, -d) + g(p - 1, d)), with g(a, d) = (exp(a d) - 1) / a, size s, and variance power p.
    """
    weight, size, own, deviance = (
        np.array([getattr(part, name) for part in parts])
        for name in ("weight", "size", "intercept", "deviance")
    )
    if family.name == "gaussian":
        c = (weight @ own) / weight.sum()
        return deviance.sum() + weight @ (own - c) ** 2
    up, down = 2.0 - family.power, family.power - 1.0
    log_size = np.log(np.maximum(size, families.RAREST * weight))
    c = np.logaddexp.reduce(log_size + down * own) - np.logaddexp.reduce(log_size - up * own)
    return deviance.sum() + 2.0 * np.exp(log_size) @ (_grown(up, c - own) + _grown(down, own - c))


def _grown(rate, d):
    """Return (exp(rate d) - 1) / rate, or its limit d if the rate is zero."""
    return np.expm1(rate * d) / rate if rate else d
