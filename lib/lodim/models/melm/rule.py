"""Classification of rows by their coordinates in a projection, with calibration and measures."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim import forms
from lodim.engine import row_keys
from lodim.errors import ArgumentError
from lodim.export.expression import Kernels, call, constant, weighted
from lodim.family.family import with_zero
from lodim.models.melm.density import (
    FARTHEST,
    N_CLASSES,
    Densities,
    DensityOptions,
    fit_densities,
    log_densities,
    lowest_between,
    select_width,
)
from lodim.models.melm.whitening import center_by_class, draw_by_class

INVERSE_TEMPERATURES = np.geomspace(0.0002, 2.0, 47)  # tried in calibration
ABSENT = np.log(1e-12)  # log probability of a class without training rows
WIDE = 4.0  # variance of the background relative to that within classes
RAREST = 1e-12  # smallest probability of a class by an estimator
JUDGED = 10_000  # most training rows used to choose the kernels' width


@forms.record
class Rows:
    """Training rows, or a sample; size : total weight of each class among all training rows."""

    Z: np.ndarray = forms.real("m", "k")
    code: np.ndarray = forms.whole("m", most=f"{N_CLASSES} - 1")
    weight: np.ndarray = forms.real("m", least=forms.TINY)
    size: np.ndarray = forms.real(N_CLASSES, least=forms.TINY)

    @classmethod
    def draw(cls, Z, code, weight, n_rows, seed):
        """Return a sample of about `n_rows` rows, given coordinates Z (n, k) and class codes."""
        keep = sample_rows(Z, code, weight, n_rows, seed)
        return cls(Z[keep], code[keep], weight[keep], np.bincount(code, weight).astype(np.float64))

    @property
    def share(self):
        """Row weights (m,), scaled so that the weights of each class c add up to `size[c]`."""
        return self.weight * (self.size / np.bincount(self.code, self.weight))[self.code]

    def _check_fields(self):
        if len(np.unique(self.code)) < len(self.size):
            raise ValueError("rows have none of some class")


def sample_rows(Z, code, weight, n_rows, seed):
    """Draw about `n_rows` random rows in proportion to class sizes; return increasing positions."""
    n, k = Z.shape
    if n <= n_rows:
        return np.arange(n)
    key = row_keys.keys(Z, weight, code, int(code.max()) + 1)
    # Small classes keep at least 30 rows, and more than k.
    return np.sort(draw_by_class(key, code, n_rows, max(30, k + 1), seed))


@forms.record
class Background:
    """Wide normal densities around the class means, which decide the class far from all rows.

    mean : (C, k) centres; root : (k, k) map that whitens differences from centres
    share : weight of the wide density in the mixture with a class's density"""

    mean: np.ndarray = forms.real(N_CLASSES, "k")
    root: np.ndarray = forms.real("k", "k")
    share: float = forms.real(least=forms.TINY, most=1)

    @classmethod
    def from_rows(cls, Z, code, weight):
        """Return the Background (wide class densities) of rows Z (n, k) with class codes (n,)."""
        residual, mean = center_by_class(Z, code, weight)
        cov = (residual.T * weight) @ residual / weight.sum()
        cov += 1e-10 * max(np.trace(cov), 1e-300) * np.eye(len(cov))
        root = np.linalg.inv(np.linalg.cholesky(WIDE * cov))
        share = min(1.0 / (1.0 + weight.sum()), np.nextafter(1.0, 0.0))
        return cls(mean, root, float(share))

    def mixed(self, log_density, Z):
        """Return `log_density`, log class densities (n, C) at Z (n, k), mixed with wide normals."""
        apart = (Z[:, None] - self.mean) @ self.root.T
        unit = np.linalg.slogdet(self.root)[1] - 0.5 * Z.shape[1] * np.log(2.0 * np.pi)
        log_g = unit - 0.5 * (apart**2).sum(axis=2)
        return np.logaddexp(np.log1p(-self.share) + log_density, np.log(self.share) + log_g)


@dataclass(frozen=True)
class Estimator:
    """User's scikit-learn classifier, fitted to coordinates; `classes` are codes that it knows."""

    estimator: Any
    classes: np.ndarray
    n_classes: int

    @classmethod
    def from_rows(cls, estimator, Z, code, weight, n_classes):
        """Fit a copy of `estimator` to Z and codes of n_classes classes; return an Estimator."""
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
        """Return the log probabilities (n, C) of the classes at coordinates Z (n, k)."""
        out = np.full((len(Z), self.n_classes), np.log(RAREST))
        if len(Z):
            share = np.asarray(self.estimator.predict_proba(Z), np.float64)
            out[:, self.classes.astype(int)] = np.log(np.clip(share, RAREST, 1.0))
        return out


@forms.record
class Rule:
    """Rule that gives class probabilities from the coordinates of a row."""

    rows: Rows = forms.part(Rows)  # rows kept for plots
    densities: Densities = forms.part(Densities)
    # factor of the kernel width, relative to the search
    width: float = forms.real(least=forms.TINY)
    background: Background = forms.part(Background)
    # user's Estimator that classifies instead of the densities, or None
    other: Estimator | None = forms.choice(None)
    # factor of the log-odds that calibrates probabilities
    inverse_temperature: float = forms.real(least=forms.TINY)
    # present, n_classes: codes of classes with training rows; number of all classes
    present: np.ndarray = forms.ascending(
        forms.whole(N_CLASSES, most=f"{N_CLASSES} - 1"), strictly=True
    )
    n_classes: int = forms.size(N_CLASSES)
    # number of linear predictors: 1 for two classes, otherwise one per class
    n_scores: int = forms.size("K")

    def log_density(self, Z, threads=1):
        return self._of_all_classes(log_densities(self.densities, Z, threads), -np.inf)

    def class_scores(self, Z, threads=1):
        """Return unnormalized log probabilities (n, n_classes) of the classes at coordinates Z."""
        Z = np.clip(Z, -FARTHEST, FARTHEST)
        if self.other is not None:
            return self._of_all_classes(self.other.scores(Z), ABSENT)
        log_f = self.background.mixed(log_densities(self.densities, Z, threads), Z)
        return self._of_all_classes(self.densities.log_prior + log_f, ABSENT)

    def scores(self, Z, threads=1):
        """Return linear predictors (n, K), such as log-odds, at coordinates Z (n, k)."""
        return self.link(self.class_scores(Z, threads))

    def link(self, score):
        """Return linear predictors, (n, K) or (n, 1) if K = 2, from log probabilities `score`."""
        score = self._of_all_classes(score, ABSENT)
        score = score[:, 1:] - score[:, :1] if self.n_scores == 1 else score
        return self.inverse_temperature * score

    def calibrated(self, loss):
        """Return the Rule with the factor of the log-odds that has the lowest total loss.

        loss : (n, factors), loss of each row for each factor in INVERSE_TEMPERATURES"""
        if self.other is not None:
            return self
        return replace(self, inverse_temperature=select_inverse_temperature(loss))

    def _of_all_classes(self, values, absent):
        """Return `values` with columns for all classes; classes without rows get `absent`."""
        if values.shape[1] == self.n_classes:
            return values
        out = np.full((len(values), self.n_classes), absent)
        out[:, self.present] = values
        return out


def fit_rule(settings, Z, code, weight, present, n_classes, n_scores):
    """Fit a Rule, which classifies rows, to coordinates Z (n, k).

    code : (n,) class of each row, a position in `present`; present : classes that have rows
    n_classes : number of all classes; n_scores : number of linear predictors"""
    rows = Rows.draw(Z, code, weight, settings.reference_rows, settings.seed)
    background = Background.from_rows(Z, code, weight)
    options, width = density_options(settings), 1.0
    if settings.calibrate and len(present) > 1:
        judged = Rows.draw(Z, code, weight, JUDGED, settings.seed)
        width = select_width(judged, background, options, settings.n_threads)
    widened = replace(options, gamma=width * options.gamma)
    densities = fit_densities(Z, code, weight, widened)[0]
    other = None
    if settings.classifier != "kde":
        other = Estimator.from_rows(settings.classifier, Z, code, weight, int(code.max()) + 1)
    classes = present, n_classes, n_scores
    return Rule(rows, densities, width, background, other, 1.0, *classes)


def density_options(settings):
    return DensityOptions(settings.gamma or 1.0, settings.covariance, settings.prior == "equal")


def losses_by_temperature(family, y, weight, score):
    """Return weighted deviances (n, n_factors) for predictors `score` times each factor to try."""
    return np.stack([weight * family.deviance(y, b * score) for b in INVERSE_TEMPERATURES], axis=1)


def select_inverse_temperature(loss):
    """Return the inverse temperature of lowest total loss; loss : (n rows, temperatures)."""
    return lowest_between(INVERSE_TEMPERATURES, loss.sum(axis=0))


def calibrated_deviance(family, y, weight, score):
    """Return rows' deviance (n,) after calibration of the predictors `score` on the same rows."""
    factor = select_inverse_temperature(losses_by_temperature(family, y, weight, score))
    return family.deviance(y, factor * score)


def balanced_accuracy(y, weight, score):
    """Return the share of correct classes by linear predictors `score`, averaged over classes."""
    code = y.astype(int)
    hit = with_zero(score).argmax(axis=1) == code
    size, right = np.bincount(code, weight), np.bincount(code, weight * hit)
    return float((right[size > 0] / size[size > 0]).mean())


def score_nodes(rule, Z):
    """Return a Rule's linear predictors as export expressions; Z : expressions of coordinates."""
    if rule.other is not None:
        raise ArgumentError(
            "a fit with another classifier than 'kde' cannot be exported: fit it with "
            "classifier='kde', the default"
        )
    found = [_log_density(rule, c, Z) for c in range(len(rule.present))]
    classes = [constant(ABSENT)] * rule.n_classes
    for code, log_f, prior in zip(rule.present, found, rule.densities.log_prior, strict=True):
        classes[code] = weighted(prior, [1.0], [log_f])
    if rule.n_scores > 1:
        return [weighted(0.0, [rule.inverse_temperature], [c]) for c in classes]
    gap = call("sub", classes[1], classes[0])  # subtracted first: far away both are huge
    return [weighted(0.0, [rule.inverse_temperature], [gap], "score")]


def _log_density(rule, c, Z):
    """Return an expression of class c's log density in a Rule; Z : expressions of coordinates."""
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
    largest = call("largest", log_f, log_g)
    parts = [call("exp_negative", call("sub", x, largest)) for x in (log_f, log_g)]
    total = call("log_positive", weighted(0.0, [1.0, 1.0], parts))
    return weighted(0.0, [1.0, 1.0], [largest, total])
