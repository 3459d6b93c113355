"""Gaussian components per class: a predictor that works with any subset of columns."""

import warnings
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.special import ndtri

from lodim import forms
from lodim.acquisition.kernels import LEAST, extend, observed_losses, to_shares
from lodim.errors import DataWarning, warn

TRIED = {  # values tried, one setting after the other; see `choose`
    "per_class": (1, 2, 4, 8),
    "pooling": (2.0, 20.0, 200.0, 1e6),
    "independence": (0.02, 0.2, 0.5, 0.8, 1.0),
}
START = {"per_class": 1, "pooling": 1e6, "independence": 0.2}
# temperatures and repetitions that are tried, without contamination
SCALES = tuple(product((1.0, 0.8, 0.6, 0.4, 0.25), (0.0, 0.03, 0.1, 0.3), (0.0,)))
FLOOR = 1e-3  # least eigenvalue of a covariance, as a share of a feature's variance
MASKS = 40  # random subsets of columns on which settings are compared
ROWS = 1000  # rows held out at most
PREDICTED = 3000  # predictions of held-out rows, each from a subset of columns
LEAST_ROWS = 5  # of a component
ITERATIONS = 30  # of k-means
KNOTS = 100  # quantiles of a column that are mapped to normal scores
RECENT = 100  # most recent rows that are compared with the training rows
LEAST_RECENT = 20  # rows for a warning of drift
ERRORS = 4.0  # standard errors beyond the surprise of held-out rows, for a warning


@forms.record
class Mixture:
    """Gaussian mixture of features for each class, which predicts from any subset of features."""

    log_share: np.ndarray = forms.real("Z")
    mean: np.ndarray = forms.real("Z", "p")
    cov: np.ndarray = forms.real("Z", "p", "p")
    # class of each component; -1 for a numeric response
    label: np.ndarray = forms.whole("Z", least=-1)
    # covariances of the features with a numeric response; empty for classes
    cross: np.ndarray = forms.real("q", "p")
    y_mean: np.ndarray = forms.real("Z")
    y_var: np.ndarray = forms.real("Z", least=0)
    # temperature, repetition: the log density of t known features is multiplied by temperature / (1
    # + repetition (t - 1)), which is below 1 if features share information
    temperature: float = forms.real(least=0, most=1)
    repetition: float = forms.real(least=0)
    # probability that a row's features say nothing about its component
    contamination: float = forms.real(least=0, most=1)
    # knots, scores: values of each feature and the normal scores that replace them, or empty
    knots: np.ndarray = forms.real("p", "m")
    scores: np.ndarray = forms.real("p", "m")

    @property
    def arrays(self):
        scales = self.temperature, self.repetition, self.contamination
        return self.log_share, self.mean, self.cov, self.cross, self.y_mean, self.y_var, scales

    def scaled(self, temperature, repetition, contamination=0.0):
        scales = {"temperature": temperature, "repetition": repetition}
        return replace(self, **scales, contamination=contamination)

    def features(self, X):
        """Return X (n, p), as normal scores if this mixture was fitted to normal scores."""
        if not self.knots.size:
            return X
        columns = zip(X.T, self.knots, self.scores, strict=True)
        return np.column_stack([np.interp(*column) for column in columns])

    def refit(self, X, y, weight, seed, settings):
        """Return a new Mixture fitted to other rows, with this one's calibration of probabilities.

        X : (n, p) features as returned by `features`
        y : (n,) class codes or numbers
        settings : dict of per_class, pooling and independence, the arguments of `learn`"""
        n_classes = max(self.label.max() + 1, 0)
        kept = {name: settings[name] for name in TRIED}
        fit = learn(X, y, weight, n_classes, seed, **kept)
        return replace(fit.scaled(*self.arrays[-1]), knots=self.knots, scores=self.scores)

    def _conditional(self, V, columns):
        """Return log weights of components, means of y and variances of y, given known features.

        V : (t, rows) values of t known features; columns : positions of these features
        Log weights (up to a constant) and means are (components, rows), variances (components,)."""
        shape = len(self.log_share), V.shape[1]
        out = np.empty(shape), np.empty(shape), np.empty(shape[0])
        nothing = 0, np.zeros(shape[0]), *self.arrays[1:-1]
        extend(V, columns, nothing, self.arrays, *out)
        return out

    def losses(self, V, y, columns, scales=None):
        """Return log-losses of class codes y, or squared errors of numbers y, (scales, rows).

        V, columns : (features, rows) known values, and positions of these features
        scales : list of (temperature, repetition, contamination), by default the mixture's own"""
        scales = scales or self.arrays[-1:]
        density, centre, _ = self.scaled(1.0, 0.0)._conditional(V, columns)
        share, out = self.log_share[:, None], np.empty((len(scales), V.shape[1]))
        density -= share
        for (temperature, repetition, contamination), row in zip(scales, out, strict=True):
            factor = temperature / (1.0 + repetition * max(len(columns) - 1, 0))
            joint = share + factor * density
            observed_losses(joint, centre, y, self.label, self.log_share, contamination, row)
        return out

    def predict(self, V, columns, n_classes):
        """Return probabilities (n_classes, m), or mean and SD (2, m) if n_classes is 0.

        V : (len(columns), m) values of the features at positions `columns`"""
        shares, centre, residual = self._conditional(V, columns)
        to_shares(shares, self.log_share, self.contamination)
        if n_classes:
            return (np.arange(n_classes)[:, None] == self.label).astype(float) @ shares
        mean = (shares * centre).sum(axis=0)
        variance = (shares * (residual[:, None] + (centre - mean) ** 2)).sum(axis=0)
        return np.vstack([mean, np.sqrt(variance)])

    def surprise(self, V, y, columns, n_classes):
        """Return each row's loss minus the loss that the mixture expects, (rows,).

        V, columns : (features, rows) known values, and positions of these features
        y : (rows,) class codes, or numbers if n_classes is 0"""
        answer = replace(self, contamination=0.0).predict(V, columns, n_classes)
        if not n_classes:
            return (y - answer[0]) ** 2 / np.maximum(answer[1] ** 2, 1e-12) - 1.0
        P = np.maximum(answer, LEAST)
        return (P * np.log(P)).sum(axis=0) - np.log(P[y.astype(np.int64), np.arange(len(y))])


@dataclass(frozen=True)
class Clusters:
    """Clusters of rows in q columns: the features, then the response if it is numeric."""

    label: np.ndarray  # (Z,) class of each cluster, -1 for a numeric response
    share: np.ndarray  # (Z,) of the row weights
    rows: np.ndarray  # (Z,) number of rows
    mean: np.ndarray  # (Z, q)
    cov: np.ndarray  # (Z, q, q)


def group(X, y, weight, n_classes, seed, per_class):
    """Cluster the rows of each class by k-means; return Clusters with their shares and moments.

    per_class : largest number of clusters per class; a numeric y (n_classes = 0) has one class"""
    used = np.flatnonzero(weight > 0.0)
    Q, weight = (X if n_classes else np.column_stack([X, y]))[used], weight[used]
    labels = y[used].astype(np.int64) if n_classes else np.full(len(used), -1)
    labels, code = np.unique(labels, return_inverse=True)
    filled, rng = np.nan_to_num(Q), np.random.default_rng(seed)
    class_mean = np.array([filled[code == k].mean(axis=0) for k in range(len(labels))])
    centred = filled - class_mean[code]
    count = min(per_class, len(Q) // (LEAST_ROWS * len(labels)), len(np.unique(centred, axis=0)))
    cluster = _k_means(centred, max(count, 1), rng)
    centres = np.array([centred[cluster == g].mean(axis=0) for g in np.unique(cluster)])
    parts = []
    for k, label in enumerate(labels):
        members = np.flatnonzero(code == k)
        cluster = _k_means(filled[members], class_mean[k] + centres, rng)
        for g in np.unique(cluster):
            at = members[cluster == g]
            parts.append((label, g, weight[at].sum(), len(at), *_moments(Q[at], weight[at])))
    label, common, weight, rows, mean, cov = map(np.array, zip(*parts, strict=True))
    share, mean = _shrink_differences(label, common, weight / weight.sum(), rows, mean, cov)
    return Clusters(label, share, rows, mean, cov)


def _shrink_differences(label, common, share, rows, mean, cov):
    """Make matching clusters of different classes more similar; return new shares and means.

    label : (clusters,) class
    common : (clusters,) identifier; clusters of different classes match if it is equal
    share, rows : (clusters,) share of the row weights, and number of rows
    mean, cov : (clusters, q) and (clusters, q, q) moments"""
    same_class, same_cluster = label[:, None] == label, common[:, None] == common
    equal = (same_class @ share) * (same_cluster @ share)
    found = rows.sum() * ((share - equal) ** 2 / equal).sum()
    noise = len(share) - len(np.unique(label)) - common.max()
    shares = equal + (share - equal) * _signal(found, noise)
    shares *= (same_class @ share) / (same_class @ shares)

    def averages(values):
        return (same_cluster * rows) @ values / (same_cluster @ rows)[:, None]

    equal, within = averages(mean), averages(np.diagonal(cov, axis1=1, axis2=2))
    count, n = same_cluster.sum(axis=1), same_cluster @ rows
    noise = ((count - 1) / np.maximum(n - count, 1))[:, None] * within
    signal = _signal(averages((mean - equal) ** 2), noise)
    return shares, equal + (mean - equal) * signal


def _signal(found, noise):
    return np.clip(1.0 - noise / np.maximum(found, 1e-300), 0.0, 1.0)


def shrink(parts, p, pooling, independence):
    """Make a Gaussian mixture of p features from Clusters, with shrunken covariances.

    pooling : weight of the clusters' mean covariance matrix, as a number of rows
    independence : shrinkage of covariances towards zero, 0 to 1"""
    share, count = parts.share, parts.rows[:, None, None]
    cov = (count * parts.cov + pooling * np.tensordot(share, parts.cov, 1)) / (count + pooling)
    diagonal = np.eye(cov.shape[1]) * cov
    value, vector = np.linalg.eigh(cov * (1 - independence) + diagonal * independence)
    cov = (vector * np.maximum(value, FLOOR)[:, None]) @ vector.transpose(0, 2, 1)
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
        contamination=0.0,
        knots=np.empty((p, 0)),
        scores=np.empty((p, 0)),
    )


def learn(X, y, weight, n_classes, seed, per_class, pooling, independence):
    """Fit a Gaussian mixture of the features to each class of y; return a Mixture.

    n_classes : number of classes; 0 for a numeric y
    per_class : largest number of components per class
    pooling : weight of the components' mean covariance matrix, in rows
    independence : shrinkage of covariances towards zero, 0 to 1"""
    parts = group(X, y, weight, n_classes, seed, per_class)
    return shrink(parts, X.shape[1], pooling, independence)


def choose(X, y, weight, fold, n_classes, item_of, seed):
    """Fit Gaussian mixtures to features X (n, p) and to their normal scores; keep the better.

    y : (n,) class codes, or numbers if n_classes is 0
    fold : (n,) fold that holds out each row, -1 for none
    item_of : (p,) number of each feature's data column
    Return the Mixture, and a dict of its settings and held-out results."""
    # The features are used as they are or as normal scores.
    rest = y, weight, fold, n_classes, item_of, seed
    plain = _choose(X, *rest)
    # Quantiles of each column, and a normal score for each of them.
    levels = (np.arange(KNOTS) + 0.5) / KNOTS
    knots = np.nanquantile(X, levels, axis=0, method="inverted_cdf").T
    scores = np.empty_like(knots)
    for x, knot, score in zip(X.T, knots, scores, strict=True):
        _, at = np.unique(knot, return_inverse=True)
        score[:] = (np.bincount(at, ndtri(levels)) / np.bincount(at))[at]
        z = np.interp(x, knot, score)
        score[:] = (score - np.nanmean(z)) / (np.nanstd(z) or 1.0)
    scored = replace(plain[0], knots=knots, scores=scores).features(X)
    fit, settings = _choose(scored, *rest)
    mapped = replace(fit, knots=knots, scores=scores), settings
    return min(plain, mapped, key=lambda one: one[1]["loss"])


def _choose(X, y, weight, fold, n_classes, item_of, seed):
    """Fit a Gaussian mixture to features X (n, p), with cross-validated settings.

    y : (n,) class codes, or numbers if n_classes is 0
    fold : (n,) fold that holds out each row, -1 for none
    item_of : (p,) number of each feature's data column
    Return the Mixture, and a dict of its settings and held-out results."""
    rng = np.random.default_rng([seed, 1])
    rows = np.flatnonzero(fold >= 0)
    rows = rows if len(rows) <= ROWS else np.sort(rng.choice(rows, ROWS, replace=False))
    held_out = [rows[fold[rows] == k] for k in range(fold.max() + 1)]
    n_items, masks = item_of.max() + 1, []  # positions of the features that are known
    for _ in range(MASKS):
        items = rng.permutation(n_items)[: rng.integers(1, n_items + 1)]
        masks.append(np.flatnonzero(np.isin(item_of, items)))
    repeats = max(1, min(len(masks), PREDICTED // len(rows)))
    total_weight, filled = weight[rows].sum() * repeats, np.nan_to_num(X)
    shown = rng.random((len(X), len(masks))).argsort(axis=1)[:, :repeats]

    @cache
    def clusters(per_class):
        train = [fold != k for k in range(len(held_out))]
        return [group(X[i], y[i], weight[i], n_classes, seed, per_class) for i in train]

    def predictors(per_class, pooling, independence):
        """Yield (Mixture, rows, V, columns): held-out rows, and known values to predict them from.

        per_class, pooling, independence : settings of `learn`
        V : (features, rows) values of the features at positions `columns`"""
        for parts, test in zip(clusters(per_class), held_out, strict=True):
            fit = shrink(parts, X.shape[1], pooling, independence)
            for m in np.unique(shown[test]):
                at = test[(shown[test] == m).any(axis=1)]
                yield fit, at, np.ascontiguousarray(filled[at][:, masks[m]].T), masks[m]

    @cache
    def lowest_loss(**setting):
        losses = np.zeros(len(SCALES))
        for fit, at, V, m in predictors(**setting):
            losses += fit.losses(V, y[at], m, SCALES) @ weight[at]
        return min(zip(losses / total_weight, SCALES, strict=True))

    best = dict(START)
    for name in ("pooling", "independence", "per_class", "pooling", "independence"):
        best = min(({**best, name: v} for v in TRIED[name]), key=lambda one: lowest_loss(**one))
    least, scales = lowest_loss(**best)
    surprise = np.concatenate(
        [
            fit.scaled(*scales).surprise(V, y[at], m, n_classes)
            for fit, at, V, m in predictors(**best)
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


def recent_surprises(mixture, X, y, n_classes, earlier, settings):
    """Return surprises (loss minus expected loss) of recent rows; if they drift, warn, return none.

    X, y : new rows; n_classes : number of classes, 0 for a numeric y
    earlier : surprises of the rows before the new ones
    settings : dict with "surprise" and "surprise_sd", mean and SD for held-out rows"""
    found = []
    for x, v in zip(mixture.features(X), y[:, None], strict=True):
        columns = np.flatnonzero(~np.isnan(x))
        found.append(mixture.surprise(x[columns, None], v, columns, n_classes)[0])
    values = np.append(earlier, found)[-RECENT:]
    mean, sd = settings["surprise"], settings["surprise_sd"]
    if len(values) < LEAST_RECENT or values.mean() - mean < ERRORS * sd / np.sqrt(len(values)):
        return values
    warn(
        f"the last {len(values)} rows surprise the policy: their loss is above what it expects by "
        f"{values.mean():.3g} on average, that of held-out training rows by {mean:.3g}; the data "
        "may have drifted, so learn a new policy with acquire() or let update(window=) forget",
        DataWarning,
    )
    return values[:0]


def _k_means(X, start, rng):
    """Return the cluster (n,) of each row; start : number of clusters, or their first centres."""
    minit = "++" if np.ndim(start) == 0 else "matrix"
    # A cluster may lose all its rows.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return kmeans2(X, start, iter=ITERATIONS, minit=minit, rng=rng)[1]


def _moments(X, weight):
    """Return the weighted mean and covariance of the columns of X; missing values are left out."""
    known = ~np.isnan(X)
    W = known * weight[:, None]
    count = W.sum(axis=0)
    mean = np.where(count > 0.0, np.nansum(np.nan_to_num(X) * W, axis=0), 0.0)
    mean /= np.maximum(count, 1e-300)
    D = np.where(known, X - mean, 0.0)
    both = known.T.astype(float) @ W
    return mean, (D * weight[:, None]).T @ D / np.maximum(both, 1e-300)
