"""The rule that classifies in the coordinates of a view, and how it is judged."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.models.melm.basis import within
from lodim.models.melm.classifiers import Estimator, Nearest
from lodim.models.melm.density import FARTHEST, Densities, log_densities
from lodim.models.melm.lookup import TILE

SHARPNESS = np.geomspace(0.02, 2.0, 93)  # tried, where probabilities are calibrated
ABSENT = np.log(1e-12)  # of the probability of a class that no training row has
SAME = 1e-6  # of a loss: what is as near is no worse
WIDE = 4.0  # variance of the background, in that within classes


@dataclass(frozen=True)
class Background:
    """Wide normal densities, one about the mean of each class, all of one covariance.

    A class of density f counts as (1 - share) f + share g: between and beyond the rows, where f is
    next to nothing, the nearer mean decides, as in linear discriminant analysis, and not surely.

    mean (C, k); root (k, k) with R'R the inverse of the covariance; share: of one row among all
    """

    mean: np.ndarray
    root: np.ndarray
    share: float

    @classmethod
    def learn(cls, Z, code, weight):
        """From coordinates (n, k), classes 0, ..., C - 1 and weights (n,)."""
        rest, mean = within(Z, code, weight)
        cov = (rest.T * weight) @ rest / weight.sum()
        cov += 1e-10 * max(np.trace(cov), 1e-300) * np.eye(len(cov))
        root = np.linalg.inv(np.linalg.cholesky(WIDE * cov))
        return cls(mean, root, float(1.0 / (1.0 + weight.sum())))

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        shapes = self.mean.shape == (n_classes, k) and self.root.shape == (k, k)
        if not shapes or not 0.0 < self.share < 1.0:
            raise ValueError("the background does not fit the view")

    def mixed(self, log_density, Z):
        """Logarithms of the densities (n, C) with the background's share, at coordinates (n, k)."""
        apart = (Z[:, None] - self.mean) @ self.root.T
        unit = np.linalg.slogdet(self.root)[1] - 0.5 * Z.shape[1] * np.log(2.0 * np.pi)
        log_g = unit - 0.5 * (apart**2).sum(axis=2)
        return np.logaddexp(np.log1p(-self.share) + log_density, np.log(self.share) + log_g)


@dataclass(frozen=True)
class Rows:
    """Training rows, all or some: coordinates Z (m, k), class codes and weights (m,).

    size (C,): sums of weights of the classes among all training rows
    """

    Z: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    size: np.ndarray

    @property
    def share(self):
        """Weights (m,) with which each class counts as much as all of its training rows."""
        return self.weight * (self.size / np.bincount(self.code, self.weight))[self.code]

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        m = len(self.Z)
        fits = self.Z.shape == (m, k) and self.code.shape == self.weight.shape == (m,)
        fits = fits and self.size.shape == (n_classes,)
        if not (fits and m and self.code.dtype.kind == "i" and np.isfinite(self.Z).all()):
            raise ValueError("the training rows do not fit the view")
        if self.code.min() < 0 or self.code.max() >= n_classes:
            raise ValueError("a training row has a class that is not there")


@dataclass(frozen=True)
class Rule:
    """Probabilities of classes from coordinates.

    rows : training rows that are kept to be drawn, about control's `reference_rows`
    densities, background : of the classes
    width : of the densities' kernels, in that of the search
    other : Nearest or Estimator that classifies instead; None: the densities do
    sharpness : factor of link scores by which probabilities are calibrated
    present : (C,) codes of the classes that have training rows, of n_classes
    n_scores : of the family; one of two classes
    """

    rows: Rows
    densities: Densities
    width: float
    background: Background
    other: Nearest | Estimator | None
    sharpness: float
    present: np.ndarray
    n_classes: int
    n_scores: int

    def check(self, k, n_classes, n_scores):
        """Raise ValueError unless the parts fit each other, k dimensions and the classes."""
        own, present = (self.n_classes, self.n_scores), self.present.tolist()
        if own != (n_classes, n_scores) or present != list(range(n_classes)):
            raise ValueError("the rule is of other classes")
        if not (0.0 < self.sharpness < np.inf and 0.0 < self.width < np.inf):
            raise ValueError("sharpness or width is not positive")
        self.rows.check(k, n_classes)
        self.background.check(k, n_classes)
        check_densities(self.densities, k, n_classes)
        if isinstance(self.other, Nearest):
            self.other.check(k, n_classes)

    def log_density(self, Z, threads=1):
        """Logarithms of the classes' densities, (n, n_classes)."""
        return self._spread(log_densities(self.densities, Z, threads), -np.inf)

    def class_scores(self, Z, threads=1):
        """Logarithms of the classes' probabilities up to a constant, (n, n_classes)."""
        Z = np.clip(Z, -FARTHEST, FARTHEST)
        if self.other is not None:
            return self._spread(self.other.scores(Z), ABSENT)
        log_f = self.background.mixed(log_densities(self.densities, Z, threads), Z)
        return self._spread(self.densities.log_prior + log_f, ABSENT)

    def scores(self, Z, threads=1):
        """Link scores (n, K)."""
        return self._link(self.class_scores(Z, threads))

    def link(self, score):
        """Link scores (n, K) of scores (n, C) of the classes that are present."""
        return self._link(self._spread(score, ABSENT))

    def _link(self, score):
        return self.sharpness * (score[:, 1:] - score[:, :1] if self.n_scores == 1 else score)

    def calibrated(self, family, y, weight, score):
        """The rule with the sharpness of least deviance where its scores were (n, K).

        An estimator of the user's stays as it is.
        """
        if isinstance(self.other, Estimator):
            return self
        return replace(self, sharpness=sharpness(family, y, weight, score))

    def _spread(self, values, rest):
        """Columns of the classes that are present among those of all."""
        if len(self.present) == self.n_classes:
            return values
        out = np.full((len(values), self.n_classes), rest)
        out[:, self.present] = values
        return out


def check_densities(densities, k, n_classes):
    """Raise ValueError unless the fields fit each other, k dimensions and the classes.

    Compiled code indexes by them unchecked, and a file may say anything.
    """
    d, C = densities, n_classes
    T = len(d.U)
    shapes = {
        "U": (T, k, d.U.shape[-1]), "w": (T, d.U.shape[-1]), "low": (T, k), "high": (T, k),
        "start": (C + 1,), "root": (C, k, k), "scale": (C,), "log_prior": (C,),
    }  # fmt: skip
    for name, shape in shapes.items():
        values = getattr(d, name)
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} of the densities is no array of shape {shape}")
    if d.U.shape[-1] != TILE or d.start[0] != 0 or d.start[-1] != T or (np.diff(d.start) < 1).any():
        raise ValueError("the rows of the classes are not where the densities are")


def sharpness(family, y, weight, score):
    """The factor of link scores (n, K) of least deviance; of equals the smallest."""
    loss = [weight @ family.deviance(y, b * score) for b in SHARPNESS]
    return float(SHARPNESS[np.flatnonzero(np.array(loss) <= (1.0 + SAME) * min(loss))[0]])


def calibrated_deviance(family, y, weight, score):
    """Deviance of each row once the scores are calibrated on these rows, of these weights.

    Densities of a view that was made for the training rows are too sure of others: the deviance
    itself would say little but how wide the kernels are.
    """
    return family.deviance(y, sharpness(family, y, weight, score) * score)


def balanced_accuracy(y, weight, score):
    """Mean over classes of the share of their rows that is classified rightly."""
    code = y.astype(int)
    hit = (score.argmax(axis=1) if score.shape[1] > 1 else score[:, 0] > 0) == code
    size, right = np.bincount(code, weight), np.bincount(code, weight * hit)
    return float((right[size > 0] / size[size > 0]).mean())
