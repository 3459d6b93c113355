"""Gaussian components per class: a predictor that answers for any subset of columns."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from lodim import forms
from lodim.acquisition.kernels import (
    LEAST,
    condition,
    extend,
    joint_losses,
    point_losses,
    to_shares,
)

TRIED = {  # values tried, one setting after the other; see `choose`
    "per_class": (1, 2, 4, 8),
    "pooling": (2.0, 20.0, 200.0, 1e6),
    "independence": (0.02, 0.2, 0.5, 0.8, 1.0),
}
START = {"per_class": 1, "pooling": 1e6, "independence": 0.2}
SCALES = tuple(product((1.0, 0.8, 0.6, 0.4, 0.25), (0.0, 0.03, 0.1, 0.3)))
FLOOR = 1e-3  # least eigenvalue of a covariance, as a share of a feature's variance
MASKS = 40  # random subsets of columns on which settings are compared
ROWS = 1000  # rows held out at most
PREDICTED = 3000  # predictions of held-out rows, each from a subset of columns
LEAST_ROWS = 5  # of a component


@forms.record
class Mixture:
    """Z Gaussian components of p standardized columns; for any columns, their marginals predict.

    log_share, mean, cov : log weight, mean and covariance of each component
    label : class of each component; -1 for a numeric response
    cross : covariances of the columns with a numeric response; (0, p) for classes
    y_mean, y_var : of a numeric response in each component
    temperature, repetition : the log density of t columns is multiplied by temperature / (1 +
        repetition (t - 1)), below 1 if columns repeat each other
    """

    log_share: np.ndarray = forms.real("Z")
    mean: np.ndarray = forms.real("Z", "p")
    cov: np.ndarray = forms.real("Z", "p", "p")
    label: np.ndarray = forms.whole("Z", least=-1)
    cross: np.ndarray = forms.real("q", "p")
    y_mean: np.ndarray = forms.real("Z")
    y_var: np.ndarray = forms.real("Z", least=0)
    temperature: float = forms.real(least=0, most=1)
    repetition: float = forms.real(least=0)

    @property
    def arrays(self):
        """Arrays of the mixture as a tuple, the form in which compiled functions take it."""
        scales = self.temperature, self.repetition
        return self.log_share, self.mean, self.cov, self.cross, self.y_mean, scales

    def scaled(self, temperature, repetition):
        """Return the mixture with other factors on the log density."""
        return replace(self, temperature=temperature, repetition=repetition)

    def losses(self, V, y, columns):
        """Return the log-loss or squared error (m,) of predicting y from values V (t, m).

        V has the values of t columns of m rows; `columns` are their positions."""
        out = np.empty(V.shape[1])
        point_losses(V, y, columns, self._unconditioned, self.arrays, self.label, out)
        return out

    def scaled_losses(self, V, y, columns):
        """Return losses (scales, m) of predicting y for each pair of temperature and repetition.

        V (t, m) are the values of t columns of m rows."""
        shape, plain = (len(self.log_share), V.shape[1]), self.scaled(1.0, 0.0)
        density, centre, out = np.empty(shape), np.empty(shape), np.empty((len(SCALES), shape[1]))
        extend(V, columns, self._unconditioned, plain.arrays, density, centre)
        share = self.log_share[:, None]
        density -= share
        for (temperature, repetition), row in zip(SCALES, out, strict=True):
            factor = temperature / (1.0 + repetition * max(len(columns) - 1, 0))
            joint_losses(share + factor * density, centre, y, self.label, row)
        return out

    @property
    def _unconditioned(self):
        """Components conditioned on no column, in the form that compiled functions take."""
        return condition(np.empty(0), np.empty(0, np.int64), self.arrays)

    def predict(self, V, columns, n_classes):
        """Return probabilities (K, m) from values V (t, m) of t columns; or mean and sd (2, m)."""
        shape = len(self.log_share), V.shape[1]
        shares, centre = np.empty(shape), np.empty(shape)
        extend(V, columns, self._unconditioned, self.arrays, shares, centre)
        to_shares(shares)
        if n_classes:
            return (np.arange(n_classes)[:, None] == self.label).astype(float) @ shares
        mean = (shares * centre).sum(axis=0)
        variance = (shares * (centre**2 + self._residual(columns)[:, None])).sum(axis=0) - mean**2
        return np.vstack([mean, np.sqrt(np.maximum(variance, 0.0))])

    def surprise(self, V, y, columns, n_classes):
        """Return the loss (m,) beyond what a prediction itself expects; 0 on average if calibrated.

        It is the log-loss less the entropy; or the squared error in units of the variance, less 1.
        V (t, m) are the values of t columns.
        """
        answer = self.predict(V, columns, n_classes)
        if not n_classes:
            return (y - answer[0]) ** 2 / np.maximum(answer[1] ** 2, 1e-12) - 1.0
        P = np.maximum(answer, LEAST)
        return (P * np.log(P)).sum(axis=0) - np.log(P[y.astype(np.int64), np.arange(len(y))])

    def _residual(self, columns):
        """Variance (Z,) of a numeric response in each component, given some columns."""
        C = self.cov[:, columns[:, None], columns]
        b = self.cross[:, columns, None]
        explained = (b * np.linalg.solve(C, b)).sum(axis=(1, 2)) if len(columns) else 0.0
        return np.maximum(self.y_var - explained, 0.0)


@dataclass(frozen=True)
class Parts:
    """Moments of Z groups of rows, from which Gaussian components are made.

    label : class of each; weight (Z,), rows (Z,) : total weight and number of rows
    mean (Z, q), cov (Z, q, q) : of q columns, the features and a numeric response as the last
    one
    """

    label: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    cov: np.ndarray


def group(X, y, weight, n_classes, seed, per_class):
    """Return the Parts (moments of groups) of rows X (n, p), NaN where missing, by k-means.

    per_class : number of groups of each class; of all rows, for a numeric response
    """
    code = y.astype(np.int64) if n_classes else np.full(len(y), -1)
    Q = X if n_classes else np.column_stack([X, y])
    rng, label, members = np.random.default_rng(seed), [], []
    for k in range(n_classes) if n_classes else (-1,):
        rows = np.flatnonzero((code == k) & (weight > 0.0))
        cluster = _clusters(np.nan_to_num(Q[rows]), per_class, rng)
        for g in range(cluster.max(initial=-1) + 1):
            label.append(k)
            members.append(rows[cluster == g])
    mean, cov = zip(*(_moments(Q[rows], weight[rows]) for rows in members), strict=True)
    size = np.array([weight[rows].sum() for rows in members])
    counts = np.array([float(len(rows)) for rows in members])
    return Parts(np.array(label, np.int64), size, counts, np.array(mean), np.array(cov))


def shrink(parts, p, pooling, independence):
    """Return the Mixture of p features from groups of rows, with covariances shrunk.

    pooling : number of rows that the pooled covariance counts in each component's covariance
    independence : share by which covariances are shrunk to zero
    """
    share = parts.weight / parts.weight.sum()
    count = parts.rows[:, None, None]
    cov = (count * parts.cov + pooling * np.tensordot(share, parts.cov, 1)) / (count + pooling)
    diagonal = np.eye(cov.shape[1]) * cov
    cov = _positive(cov * (1 - independence) + diagonal * independence)
    numeric = cov.shape[1] > p
    return Mixture(
        log_share=np.log(share),
        mean=np.ascontiguousarray(parts.mean[:, :p]),
        cov=np.ascontiguousarray(cov[:, :p, :p]),
        label=parts.label,
        cross=np.ascontiguousarray(cov[:, :p, p]) if numeric else np.zeros((0, p)),
        y_mean=parts.mean[:, p].copy() if numeric else np.zeros(len(share)),
        y_var=cov[:, p, p].copy() if numeric else np.zeros(len(share)),
        temperature=1.0,
        repetition=0.0,
    )


def learn(X, y, weight, n_classes, seed, per_class, pooling, independence):
    """Return the Mixture of Gaussian components of rows X (n, p), NaN where missing.

    per_class : number of components of each class
    pooling : number of rows that the pooled covariance counts; independence : share by which
        covariances are shrunk to zero"""
    parts = group(X, y, weight, n_classes, seed, per_class)
    return shrink(parts, X.shape[1], pooling, independence)


def choose(X, y, weight, fold, n_classes, item_of, seed):
    """Return the Mixture whose settings predict held-out rows best, and these settings.

    Rows of the folds (n,) are predicted from random subsets of the items (columns of the data);
    `item_of` (p,) is the item of each feature. Settings are chosen one after the other.
    """
    rng = np.random.default_rng([seed, 1])
    rows = np.flatnonzero(fold >= 0)
    rows = rows if len(rows) <= ROWS else np.sort(rng.choice(rows, ROWS, replace=False))
    held_out = [rows[fold[rows] == k] for k in range(fold.max() + 1)]
    masks = _masks(item_of, rng)
    repeats = max(1, min(len(masks), PREDICTED // len(rows)))
    total_weight, filled = weight[rows].sum() * repeats, np.nan_to_num(X)
    shown = rng.random((len(X), len(masks))).argsort(axis=1)[:, :repeats]

    @cache
    def groups(per_class):
        train = [fold != k for k in range(len(held_out))]
        return [group(X[i], y[i], weight[i], n_classes, seed, per_class) for i in train]

    def held_out_groups(fits):
        for fit, test in zip(fits, held_out, strict=True):
            for m in np.unique(shown[test]):
                at = test[(shown[test] == m).any(axis=1)]
                yield fit, at, np.ascontiguousarray(filled[at][:, masks[m]].T), masks[m]

    def losses(fits):
        """Return the mean held-out loss for each pair of temperature and repetition."""
        total = np.zeros(len(SCALES))
        for fit, at, V, m in held_out_groups(fits):
            total += fit.scaled_losses(V, y[at], m) @ weight[at]
        return total / total_weight

    def fitted(setting):
        how = setting["pooling"], setting["independence"]
        return [shrink(parts, X.shape[1], *how) for parts in groups(setting["per_class"])]

    tried = {}

    def value(setting):
        key = tuple(setting.values())
        if key not in tried:
            tried[key] = min(zip(losses(fitted(setting)), SCALES, strict=True))
        return tried[key]

    best = dict(START)
    for name in ("pooling", "independence", "per_class", "pooling", "independence"):
        best = min(({**best, name: v} for v in TRIED[name]), key=value)
    least, scales = value(best)
    surprise = np.concatenate(
        [
            fit.scaled(*scales).surprise(V, y[at], m, n_classes)
            for fit, at, V, m in held_out_groups(fitted(best))
        ]
    )
    fit = learn(X, y, weight, n_classes, seed, **best)
    return fit.scaled(*scales), best | {
        "temperature": scales[0],
        "repetition": scales[1],
        "loss": float(least),
        "surprise": float(surprise.mean()),
        "surprise_sd": float(surprise.std()),
    }


def _masks(item_of, rng):
    """Return random sets of features, of any number of items (columns of the data) from one to all.

    item_of (p,) is the item of each feature."""
    G, out = item_of.max() + 1, []
    for _ in range(MASKS):
        items = rng.permutation(G)[: rng.integers(1, G + 1)]
        out.append(np.flatnonzero(np.isin(item_of, items)))
    return out


def _clusters(X, k, rng):
    """Return the cluster (n,) of each row by k-means, at most one for 5 rows."""
    k = max(1, min(k, len(X) // LEAST_ROWS))
    if k == 1:
        return np.zeros(len(X), np.int64)
    centre = X[rng.choice(len(X), 1)]
    while len(centre) < k:  # k-means++
        d = _distances(X, centre).min(axis=1)
        share = d / d.sum() if d.sum() > 0.0 else None
        centre = np.vstack([centre, X[rng.choice(len(X), p=share)]])
    group = None
    for _ in range(50):
        new = _distances(X, centre).argmin(axis=1)
        if group is not None and (new == group).all():
            break
        group = new
        kept = np.unique(group)
        centre = np.array([X[group == g].mean(axis=0) for g in kept])
    return np.unique(group, return_inverse=True)[1]


def _distances(X, centre):
    square = (X**2).sum(axis=1)[:, None] - 2.0 * X @ centre.T + (centre**2).sum(axis=1)
    return np.maximum(square, 0.0)


def _moments(X, weight):
    """Return weighted mean and covariance of X; an entry uses the rows complete in its columns."""
    known = ~np.isnan(X)
    W = known * weight[:, None]
    count = W.sum(axis=0)
    mean = np.where(count > 0.0, np.nansum(np.nan_to_num(X) * W, axis=0), 0.0)
    mean /= np.maximum(count, 1e-300)
    D = np.where(known, X - mean, 0.0)
    both = known.T.astype(float) @ W
    return mean, (D * weight[:, None]).T @ D / np.maximum(both, 1e-300)


def _positive(C):
    """Return covariances (Z, q, q) with eigenvalues raised to a small positive minimum."""
    value, vector = np.linalg.eigh(C)
    return (vector * np.maximum(value, FLOOR)[:, None]) @ vector.transpose(0, 2, 1)
