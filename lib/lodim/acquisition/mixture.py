"""Gaussian components per class: a predictor that answers for any subset of columns."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.acquisition.kernels import conditionals, point_losses, to_shares

TRIED = {  # values tried, one setting after the other; see `choose`
    "per_class": (1, 2, 4, 8),
    "pooling": (2.0, 20.0, 200.0, 1e6),
    "independence": (0.02, 0.2, 0.5, 0.8, 1.0),
}
START = {"per_class": 1, "pooling": 1e6, "independence": 0.2}
TEMPERATURES = (0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0)
FLOOR = 1e-3  # least eigenvalue of a covariance, as a share of a feature's variance
MASKS = 40  # random subsets of columns on which settings are compared
ROWS = 1000  # rows held out at most
LEAST_ROWS = 5  # of a component


@forms.record
class Mixture:
    """Z Gaussian components of p standardized columns; of any columns, their marginals.

    label : class of each component; -1 for a numeric response
    cross : covariances of the columns with a numeric response; (0, p) for classes
    y_mean, y_var : of a numeric response in each component
    temperature : factor on the log density of the columns, below 1 if they repeat each other
    """

    log_share: np.ndarray = forms.real("Z")
    mean: np.ndarray = forms.real("Z", "p")
    cov: np.ndarray = forms.real("Z", "p", "p")
    label: np.ndarray = forms.whole("Z", least=-1)
    cross: np.ndarray = forms.real("q", "p")
    y_mean: np.ndarray = forms.real("Z")
    y_var: np.ndarray = forms.real("Z", least=0)
    temperature: float = forms.real(least=0, most=1)

    @property
    def arrays(self):
        """Arrays that the kernels take."""
        return (self.log_share, self.mean, self.cov, self.cross, self.y_mean, self.temperature)

    def losses(self, V, y, columns):
        """Loss (m,) of the predictions from the columns' values V (t, m)."""
        out = np.empty(V.shape[1])
        point_losses(V, y, columns, self.arrays, self.label, out)
        return out

    def predict(self, V, columns, n_classes):
        """Probabilities (K, m) from the columns' values V (t, m); or mean and sd (2, m)."""
        shape = len(self.log_share), V.shape[1]
        shares, centre = np.empty(shape), np.empty(shape)
        conditionals(V, columns, self.arrays, shares, centre)
        to_shares(shares)
        if n_classes:
            return (np.arange(n_classes)[:, None] == self.label).astype(float) @ shares
        mean = (shares * centre).sum(axis=0)
        variance = (shares * (centre**2 + self._residual(columns)[:, None])).sum(axis=0) - mean**2
        return np.vstack([mean, np.sqrt(np.maximum(variance, 0.0))])

    def _residual(self, columns):
        """Variance (Z,) of a numeric response in each component, given some columns."""
        C = self.cov[:, columns[:, None], columns]
        b = self.cross[:, columns, None]
        explained = (b * np.linalg.solve(C, b)).sum(axis=(1, 2)) if len(columns) else 0.0
        return np.maximum(self.y_var - explained, 0.0)


def learn(X, y, weight, n_classes, seed, per_class, pooling, independence):
    """Return the Mixture of rows X (n, p), NaN where missing.

    per_class : components of each class (of all rows, for a numeric response), by k-means
    pooling : rows for which the pooled covariance counts in that of a component
    independence : share by which covariances are shrunk to zero
    """
    code = y.astype(np.int64) if n_classes else np.zeros(len(y), np.int64)
    Q = X if n_classes else np.column_stack([X, y])
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(max(n_classes, 1)):
        rows = np.flatnonzero((code == k) & (weight > 0.0))
        group = _clusters(np.nan_to_num(Q[rows]), per_class, rng)
        parts += [(k, rows[group == g]) for g in range(group.max(initial=-1) + 1)]
    moments = [_moments(Q[rows], weight[rows]) for _, rows in parts]
    size = np.array([weight[rows].sum() for _, rows in parts])
    mean = np.array([m for m, _, _ in moments])
    pooled = np.tensordot(size / size.sum(), np.array([C for _, C, _ in moments]), 1)
    covs = []
    for (_, C, n), s in zip(moments, size, strict=True):
        count = n * s / max(s, 1e-300)
        C = (count * C + pooling * pooled) / (count + pooling)
        covs.append(_positive(C * (1 - independence) + np.diag(np.diag(C)) * independence))
    cov, p = np.array(covs), X.shape[1]
    numeric = n_classes == 0
    return Mixture(
        log_share=np.log(size / size.sum()),
        mean=np.ascontiguousarray(mean[:, :p]),
        cov=np.ascontiguousarray(cov[:, :p, :p]),
        label=np.array([k for k, _ in parts], np.int64) - (1 if numeric else 0),
        cross=np.ascontiguousarray(cov[:, :p, p]) if numeric else np.zeros((0, p)),
        y_mean=mean[:, p].copy() if numeric else np.zeros(len(parts)),
        y_var=cov[:, p, p].copy() if numeric else np.zeros(len(parts)),
        temperature=1.0,
    )


def choose(X, y, weight, fold, n_classes, item_of, seed):
    """Return the Mixture whose settings predict held-out rows best, and these settings.

    Rows of the folds (n,) are predicted from random subsets of the items; `item_of` (p,)
    is the item of each column. Settings are chosen one after the other, from those of `START`.
    """
    rng = np.random.default_rng([seed, 1])
    rows = np.flatnonzero(fold >= 0)
    rows = rows if len(rows) <= ROWS else np.sort(rng.choice(rows, ROWS, replace=False))
    held_out = [rows[fold[rows] == k] for k in range(fold.max() + 1)]
    masks = _masks(item_of, rng)
    mask_of, filled = rng.integers(0, len(masks), len(X)), np.nan_to_num(X)

    def fitted(setting):
        train = [fold != k for k in range(len(held_out))]
        return [learn(X[i], y[i], weight[i], n_classes, seed, **setting) for i in train]

    def loss(fits, temperature):
        total = 0.0
        for fit, test in zip(fits, held_out, strict=True):
            fit = replace(fit, temperature=temperature)
            for m in np.unique(mask_of[test]):
                at = test[mask_of[test] == m]
                V = np.ascontiguousarray(filled[at][:, masks[m]].T)
                total += weight[at] @ fit.losses(V, y[at], masks[m])
        return total / weight[rows].sum()

    tried = {}

    def value(setting):
        key = tuple(setting.values())
        if key not in tried:
            fits = fitted(setting)
            tried[key] = min((loss(fits, t), t) for t in TEMPERATURES[::-1])
        return tried[key]

    best = dict(START)
    for name in ("pooling", "independence", "per_class", "pooling", "independence"):
        best = min(({**best, name: v} for v in TRIED[name]), key=value)
    least, temperature = value(best)
    fit = learn(X, y, weight, n_classes, seed, **best)
    return replace(fit, temperature=temperature), best | {
        "temperature": temperature,
        "loss": float(least),
    }


def _masks(item_of, rng):
    """Return MASKS random sets of columns, of any number of items from one to all."""
    G, out = item_of.max() + 1, []
    for _ in range(MASKS):
        items = rng.permutation(G)[: rng.integers(1, G + 1)]
        out.append(np.flatnonzero(np.isin(item_of, items)))
    return out


def _clusters(X, k, rng):
    """Return the cluster (n,) of each row by k-means, at most one for LEAST_ROWS rows."""
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
    """Return weighted mean, covariance of pairwise complete rows, and their number."""
    known = ~np.isnan(X)
    W = known * weight[:, None]
    count = W.sum(axis=0)
    mean = np.where(count > 0.0, np.nansum(np.nan_to_num(X) * W, axis=0), 0.0)
    mean /= np.maximum(count, 1e-300)
    D = np.where(known, X - mean, 0.0)
    both = known.T.astype(float) @ W
    return mean, (D * weight[:, None]).T @ D / np.maximum(both, 1e-300), float(len(X))


def _positive(C):
    """Return a covariance with eigenvalues of at least FLOOR."""
    value, vector = np.linalg.eigh(C)
    return (vector * np.maximum(value, FLOOR)) @ vector.T
