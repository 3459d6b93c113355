"""Finding the views of one or of several responses, and the ensemble that answers in them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim import tiles
from lodim.engine import available_threads
from lodim.errors import ArgumentError, DataError
from lodim.models.ripr import calibrate, clusters, experts, stub
from lodim.models.ripr.assign import assign
from lodim.models.ripr.answers import ask, evidence
from lodim.models.ripr.ensemble import CLUSTERS, Ensemble
from lodim.models.ripr.losses import class_losses, default_k
from lodim.models.ripr.views import enumerate_views


@dataclass(frozen=True, eq=False)
class Training:
    """The rows as the numerical functions take them.

    X : (n, p) NaN where missing; y : (n,) codes or numbers, NaN where not known
    weight : (n,) as given, zero where rows do not count; varies : (p,) bool
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    varies: np.ndarray
    family: Any
    settings: Any

    @classmethod
    def of(cls, batch, family, settings):
        """From a batch."""
        X = tiles.unpack(batch.X, batch.n).astype(np.float64)
        y = np.full(batch.n, np.nan) if batch.y is None else batch.y
        weight = np.ones(batch.n) if batch.weights is None else batch.weights
        seen = X[weight > 0]
        low, high = (f(np.where(np.isnan(seen), s * np.inf, seen), axis=0, initial=s * np.inf)
                     for f, s in ((np.min, 1), (np.max, -1)))  # fmt: skip
        varies = low < high
        if not varies.any():
            raise DataError("no feature varies: there is no view of the data")
        return cls(X, y, weight, varies, family, settings)

    @property
    def n_classes(self):
        """Zero where the response has no classes."""
        names = {"binomial": 2, "multinomial": self.family.n_scores}
        return names.get(self.family.name, 0)

    @property
    def views(self):
        """All views of the features that vary, (d*, D) positions in the design."""
        s, on = self.settings, np.flatnonzero(self.varies)
        most = min(s.max_dim, len(on))
        least = min(2, most) if s.min_dim is None else min(s.min_dim, most)
        found = enumerate_views(len(on), least, most)
        return np.where(found >= 0, on[found], -1)


def grow(batch, family, settings, watch=None):
    """Find views once: yields (Ensemble, log, scores of the rows of `watch`)."""
    ((ensemble, log),) = recover([Training.of(batch, family, settings)])
    yield ensemble, log, None if watch is None else held_out(ensemble, watch, batch, family)


def shared(problems):
    """Views of several problems on the same rows: [(Ensemble, log)]."""
    return recover([Training.of(p.batch, p.family, p.settings) for p in problems])


def check(problem):
    """The problem, if ripr can be asked for it."""
    s = problem.settings
    if s.n_clusters is not None and problem.family.name != "none":
        raise ArgumentError("n_clusters is for a formula without a response, such as '~ .'")
    return problem


def largest(batch, family, settings):
    """A penalty from which one view serves all rows."""
    return 10.0


def collect(parts):
    """What the one stage has found."""
    return parts[0]


def held_out(e, watch, batch, family):
    """Scores of rows that were held out; of rows without a complete view, the null model's."""
    X = tiles.unpack(watch.X, watch.n).astype(np.float64)
    score = ask(e, X[:, e.features]).score
    known = np.flatnonzero(np.isfinite(batch.y) & (batch.weight > 0))
    weight = batch.weight[known] / batch.weight[known].sum()
    base = np.zeros((len(known), family.n_scores))
    null = family.null_score(batch.y[known], weight, base)[:1]
    return np.where(np.isnan(score), null, score)


def recover(trainings):
    """Views that all responses share: a list of (Ensemble, log), one for each."""
    views = trainings[0].views
    losses = [_losses(t, views) for t in trainings]
    s = trainings[0].settings
    chosen, B, log = _select(
        np.concatenate(losses), np.concatenate([t.weight for t in trainings]), s
    )
    parts = np.split(B, len(trainings))
    mass = sum(t.weight @ b for t, b in zip(trainings, parts, strict=True))
    order = np.argsort(-mass, kind="stable")
    views = views[chosen[order]]
    pairs = zip(trainings, parts, strict=True)
    return [(_ensemble(t, views, b[:, order], log), log) for t, b in pairs]


def _select(L, weight, s):
    """Columns of L that serve rows, B (n, r) over them, and how the search went."""
    lambda_ = 1.0 if s.lambda_ is None else s.lambda_
    unit = (1 - s.a) ** 2
    how = {"weight": weight, "max_iter": s.max_iter, "tol": s.tol}
    found = assign(L, lambda_ * unit, **how)
    if not len(found.views):
        raise DataError("no row has all features of any view")
    kept = found.views[(found.mass > s.share) | (found.mass == found.mass.max())]
    final = assign(L[:, kept], lambda_ * unit, **how)
    log = {"objective": found.objective, "converged": found.converged, "lambda_": lambda_}
    return kept[final.views], final.matrix(), log


def _losses(t, views):
    s = t.settings
    threads = s.threads or available_threads()
    k = s.k or default_k((t.weight > 0).sum())
    if t.n_classes:
        codes = np.where(np.isfinite(t.y), t.y, -1).astype(int)
        return class_losses(
            t.X,
            codes,
            views,
            k,
            n_classes=t.n_classes,
            alpha=s.a,
            balanced=s.balanced,
            counts=t.weight > 0,
            threads=threads,
        )
    if t.family.name == "none":
        return stub.clu_losses(t.X, views, k, _uniform(t), 1 - s.a)
    return stub.reg_losses(t.X, t.y, views, k)


def _uniform(t):
    rng = np.random.default_rng(t.settings.seed)
    return rng.uniform(np.nanmin(t.X, axis=0), np.nanmax(t.X, axis=0), t.X.shape)


def _ensemble(t, views, B, log):
    s = t.settings
    features = np.unique(views[views >= 0])
    own = np.where(views >= 0, np.searchsorted(features, views), -1)
    prior = _prior(t)
    e = Ensemble(
        features=features, views=own, X=t.X[:, features], y=t.y, weight=t.weight, B=B,
        n_classes=t.n_classes, k=s.k or default_k((t.weight > 0).sum()), power=1.0 - s.a, prior=prior,
        scale=np.array(calibrate.START), uniform=_uniform(t)[:, features] if t.family.name == "none" else np.zeros((0, len(features))),
        centres=np.zeros((0, views.shape[1])), centre_view=np.zeros(0, np.int64),
        lambda_=log["lambda_"],
    )  # fmt: skip
    if s.learner is not None:
        return experts.fitted(e, s.learner)
    if e.task == CLUSTERS:
        return clusters.clustered(e, s.n_clusters, s.seed)
    if t.n_classes:
        return e.rescaled(calibrate.factors(evidence(e), t.y, t.weight))
    return e


def _prior(t):
    """Log odds of the classes where losses are balanced, else zeros."""
    known = np.isfinite(t.y) & (t.weight > 0)
    if not (t.n_classes and t.settings.balanced):
        return np.zeros(t.n_classes)
    n = np.bincount(t.y[known].astype(int), minlength=t.n_classes)
    return np.log(np.maximum(n, 1) / np.maximum(n.sum() - n, 1))
