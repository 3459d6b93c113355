"""The rule that classifies in the coordinates of a view, and how it is judged."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim import forms
from lodim.engine import row_keys
from lodim.errors import ArgumentError
from lodim.export.expression import Kernels, call, constant, weighted
from lodim.models.melm.classify.density import (
    FARTHEST,
    N_CLASSES,
    Densities,
    DensityOptions,
    fit_densities,
    log_densities,
    lowest_between,
    select_width,
)
from lodim.models.melm.search.whitening import center_by_class

INVERSE_TEMPERATURES = np.geomspace(0.0002, 2.0, 47)  # tried, where probabilities are calibrated
ABSENT = np.log(1e-12)  # of the probability of a class that no training row has
WIDE = 4.0  # variance of the background, in that within classes
RAREST = 1e-12  # least probability that an estimator's class is given
FEWEST = 30  # rows of a class that are kept, if it has them
JUDGED = 10_000  # training rows that the width of the kernels is chosen on


@forms.record
class Rows:
    """Training rows, all or some: coordinates Z, class codes and weights.

    size: sums of weights of the classes among all training rows
    """

    Z: np.ndarray = forms.real("m", "k")
    code: np.ndarray = forms.whole("m", most=f"{N_CLASSES} - 1")
    weight: np.ndarray = forms.real("m", least=forms.TINY)
    size: np.ndarray = forms.real(N_CLASSES, least=forms.TINY)

    @classmethod
    def draw(cls, Z, code, weight, n_rows, seed):
        """About `n_rows` random ones of the rows Z (n, k), of classes code (n,)."""
        keep = sample_rows(Z, code, weight, n_rows, seed)
        return cls(Z[keep], code[keep], weight[keep], np.bincount(code, weight).astype(np.float64))

    @property
    def share(self):
        """Weights (m,) with which each class counts as much as all of its training rows."""
        return self.weight * (self.size / np.bincount(self.code, self.weight))[self.code]

    def _check_fields(self):
        """Raise a ValueError unless every class has rows."""
        if len(np.unique(self.code)) < len(self.size):
            raise ValueError("rows have none of some class")


def sample_rows(Z, code, weight, n_rows, seed):
    """Increasing positions of all rows Z (n, k), or of about `n_rows` in the shares of the classes.

    Of rare classes more, for a density in k dimensions.
    """
    n, k = Z.shape
    if n <= n_rows:
        return np.arange(n)
    key = row_keys.keys(Z, weight, code, int(code.max()) + 1)
    least, rows = max(FEWEST, k + 1), []
    for c in np.unique(code):
        of_class = np.flatnonzero(code == c)
        count = max(least, round(n_rows * len(of_class) / n))
        rows.append(of_class[row_keys.drawn(key[of_class], count, seed)])
    return np.sort(np.concatenate(rows))


@forms.record
class Background:
    """Wide normal densities, one about the mean of each class, all of one covariance.

    A class of density f counts as (1 - share) f + share g: between and beyond the rows, where f is
    next to nothing, the nearer mean decides, as in linear discriminant analysis, and not surely.

    root R with R'R the inverse of the covariance; share: of one row among all
    """

    mean: np.ndarray = forms.real(N_CLASSES, "k")
    root: np.ndarray = forms.real("k", "k")
    share: float = forms.real(least=forms.TINY, most=1)

    @classmethod
    def from_rows(cls, Z, code, weight):
        """From coordinates (n, k), classes 0, ..., C - 1 and weights (n,)."""
        residual, mean = center_by_class(Z, code, weight)
        cov = (residual.T * weight) @ residual / weight.sum()
        cov += 1e-10 * max(np.trace(cov), 1e-300) * np.eye(len(cov))
        root = np.linalg.inv(np.linalg.cholesky(WIDE * cov))
        share = min(1.0 / (1.0 + weight.sum()), np.nextafter(1.0, 0.0))
        return cls(mean, root, float(share))

    def mixed(self, log_density, Z):
        """Return log densities (n, C) at coordinates Z (n, k), the background's share mixed in."""
        apart = (Z[:, None] - self.mean) @ self.root.T
        unit = np.linalg.slogdet(self.root)[1] - 0.5 * Z.shape[1] * np.log(2.0 * np.pi)
        log_g = unit - 0.5 * (apart**2).sum(axis=2)
        return np.logaddexp(np.log1p(-self.share) + log_density, np.log(self.share) + log_g)


@dataclass(frozen=True)
class Estimator:
    """An estimator with predict_proba, fitted to coordinates and codes."""

    estimator: Any
    classes: np.ndarray
    n_classes: int

    @classmethod
    def from_rows(cls, estimator, Z, code, weight, n_classes):
        """A fitted copy of the estimator; weights are passed on where rows differ in them."""
        copy, arguments = deepcopy(estimator), {}
        if (weight != weight[0]).any():
            arguments["sample_weight"] = weight
        try:
            copy.fit(Z, code, **arguments)
        except (TypeError, ValueError) as error:
            wrong = f"cannot be fitted to {len(Z)} rows in the view"
            if arguments and "sample_weight" in str(error):
                wrong = "takes no weights"
            raise ArgumentError(f"the classifier {type(copy).__name__} {wrong}: {error}") from error
        return cls(copy, np.asarray(getattr(copy, "classes_", np.arange(n_classes))), n_classes)

    def scores(self, Z):
        """Return logarithms of the classes' probabilities (n, C) at coordinates (n, k)."""
        out = np.full((len(Z), self.n_classes), np.log(RAREST))
        if len(Z):
            share = np.asarray(self.estimator.predict_proba(Z), np.float64)
            out[:, self.classes.astype(int)] = np.log(np.clip(share, RAREST, 1.0))
        return out


@forms.record
class Rule:
    """Probabilities of classes from coordinates.

    rows : training rows that are kept to be drawn, about control's `reference_rows`
    densities, background : of the classes
    width : of the densities' kernels, in that of the search
    other : Estimator that classifies instead; None: the densities do
    inverse_temperature : factor of link scores by which probabilities are calibrated
    present : codes of the classes that have training rows: of a fit all
    n_scores : of the family; one of two classes
    """

    rows: Rows = forms.part(Rows)
    densities: Densities = forms.part(Densities)
    width: float = forms.real(least=forms.TINY)
    background: Background = forms.part(Background)
    other: Estimator | None = forms.choice(None)
    inverse_temperature: float = forms.real(least=forms.TINY)
    present: np.ndarray = forms.ascending(
        forms.whole(N_CLASSES, most=f"{N_CLASSES} - 1"), strictly=True
    )
    n_classes: int = forms.size(N_CLASSES)
    n_scores: int = forms.size("K")

    def log_density(self, Z, threads=1):
        """Return logarithms of the classes' densities (n, n_classes) at coordinates (n, k)."""
        return self._of_all_classes(log_densities(self.densities, Z, threads), -np.inf)

    def class_scores(self, Z, threads=1):
        """Return logarithms of the classes' probabilities up to a constant (n, n_classes)."""
        Z = np.clip(Z, -FARTHEST, FARTHEST)
        if self.other is not None:
            return self._of_all_classes(self.other.scores(Z), ABSENT)
        log_f = self.background.mixed(log_densities(self.densities, Z, threads), Z)
        return self._of_all_classes(self.densities.log_prior + log_f, ABSENT)

    def scores(self, Z, threads=1):
        """Link scores (n, K) at coordinates (n, k)."""
        return self._link(self.class_scores(Z, threads))

    def link(self, score):
        """Link scores (n, K) of scores (n, C) of the classes that are present."""
        return self._link(self._of_all_classes(score, ABSENT))

    def _link(self, score):
        score = score[:, 1:] - score[:, :1] if self.n_scores == 1 else score
        return self.inverse_temperature * score

    def calibrated(self, loss):
        """Return the rule with the inverse temperature of least loss, by `losses_by_temperature`.

        An estimator of the user's stays as it is.
        """
        if self.other is not None:
            return self
        return replace(self, inverse_temperature=select_inverse_temperature(loss))

    def _of_all_classes(self, values, absent):
        """Return values (n, n_classes) from those of the classes that are present, (n, C)."""
        if len(self.present) == self.n_classes:
            return values
        out = np.full((len(values), self.n_classes), absent)
        out[:, self.present] = values
        return out


def fit_rule(settings, Z, code, weight, present, n_classes, n_scores):
    """Return the Rule that classifies in the coordinates Z (n, k)."""
    rows = Rows.draw(Z, code, weight, settings.reference_rows, settings.seed)
    background = Background.from_rows(Z, code, weight)
    options, width = density_options(settings), 1.0
    if settings.calibrate and len(present) > 1:
        judged = Rows.draw(Z, code, weight, JUDGED, settings.seed)
        width = select_width(judged, background, options, settings.n_threads)
    densities = fit_densities(Z, code, weight, options.widened(width))[0]
    other = None
    if settings.classifier != "kde":
        other = Estimator.from_rows(settings.classifier, Z, code, weight, int(code.max()) + 1)
    classes = present, n_classes, n_scores
    return Rule(rows, densities, width, background, other, 1.0, *classes)


def density_options(settings):
    """Return the DensityOptions of settings."""
    return DensityOptions(settings.gamma or 1.0, settings.covariance, settings.prior == "equal")


def losses_by_temperature(family, y, weight, score):
    """Weighted deviance of each row at each factor of its link scores (n, K): (n, n_factors)."""
    return np.stack([weight * family.deviance(y, b * score) for b in INVERSE_TEMPERATURES], axis=1)


def select_inverse_temperature(loss):
    """Return the factor of link scores of least loss, summed over rows (n, n_factors).

    Ties go to the smallest.
    """
    return lowest_between(INVERSE_TEMPERATURES, loss.sum(axis=0))


def calibrated_deviance(family, y, weight, score):
    """Deviance (n,) of each row once the scores are calibrated on these rows, of these weights.

    Densities of a view that was made for the training rows are too sure of others: the deviance
    itself would say little but how wide the kernels are.
    """
    factor = select_inverse_temperature(losses_by_temperature(family, y, weight, score))
    return family.deviance(y, factor * score)


def balanced_accuracy(y, weight, score):
    """Return mean over classes of the share of their rows that is classified rightly."""
    code = y.astype(int)
    hit = (score.argmax(axis=1) if score.shape[1] > 1 else score[:, 0] > 0) == code
    size, right = np.bincount(code, weight), np.bincount(code, weight * hit)
    return float((right[size > 0] / size[size > 0]).mean())


def coordinates(V, axes, features):
    """Coordinates of standardized features, a list of k nodes."""
    return [weighted(0.0, v, features, name) for v, name in zip(V.T, axes, strict=True)]


def score_nodes(rule, Z):
    """Link scores at coordinates, a list of K nodes.

    Raises
    ------
    ArgumentError
        An estimator of the user's classifies: it is no formula.
    """
    if rule.other is not None:
        raise ArgumentError(
            "a view whose rows are classified by an estimator of your own cannot "
            "be written out: fit it with classifier='kde', the default"
        )
    found = [_log_density(rule, c, Z) for c in range(len(rule.present))]
    classes = [constant(ABSENT)] * rule.n_classes
    for code, log_f, prior in zip(rule.present, found, rule.densities.log_prior, strict=True):
        classes[code] = weighted(prior, [1.0], [log_f])
    if rule.n_scores > 1:
        return [weighted(0.0, [rule.inverse_temperature], [c]) for c in classes]
    gap = call("sub", classes[1], classes[0])  # first: far away both are huge, and equal
    return [weighted(0.0, [rule.inverse_temperature], [gap], "score")]


def _log_density(rule, c, Z):
    """Log density of class c at coordinates, that of the background mixed in."""
    densities, background = rule.densities, rule.background
    tiles = slice(*densities.start[c : c + 2])
    points = densities.U[tiles].transpose(0, 2, 1).reshape(-1, len(Z))
    weights = densities.w[tiles].ravel()
    on = weights > 0
    u = [weighted(0.0, row, Z) for row in densities.root[c]]
    near = Kernels(tuple(u), points[on], weights[on], log=True)
    log_f = weighted(np.log1p(-background.share) + densities.scale[c], [1.0], [near])
    apart = [weighted(-(row @ background.mean[c]), row, Z) for row in background.root]
    unit = np.linalg.slogdet(background.root)[1] - 0.5 * len(Z) * np.log(2.0 * np.pi)
    squares = [call("square", a) for a in apart]
    log_g = weighted(np.log(background.share) + unit, [-0.5] * len(Z), squares)
    return _log_sum(log_f, log_g)


def _log_sum(a, b):
    """log(exp(a) + exp(b))."""
    largest = call("largest", a, b)
    parts = [call("exp_negative", call("sub", x, largest)) for x in (a, b)]
    total = call("log_positive", weighted(0.0, [1.0, 1.0], parts))
    return weighted(0.0, [1.0, 1.0], [largest, total])
