"""Ensembles of views (feature sets) in which one view predicts each row: method="assignment"."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.models.ripr import clusters, losses, ties
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS, Answers, Ensemble
from lodim.models.ripr.kernels import EQUAL
from lodim.models.ripr.losses import ABSENT, LEAST_VOLUME, N_SAMPLES, nearest_view
from lodim.models.ripr.neighbours import Neighbours, nearest
from lodim.models.ripr.settings import ASSIGNMENT


@forms.record
class AssignedViews(Ensemble):
    """Ensemble of views (feature sets) in which one view predicts each row.

    lambda_ : penalty that limited the number of views; NaN after forward selection"""

    lambda_: float = forms.real(least=0, nan=True)

    method = ASSIGNMENT

    def nearest(self, j, X=None, k=None):
        """Find the k nearest training rows of each row in view (feature set) j.

        X : rows, or None for the training rows, each without itself
        k : number of neighbours, by default that of the fit
        Return distances and positions, (rows, k); position -1 if there is no neighbour."""
        refs, (X, own) = self.references, self.queried(X)
        k = min(k or self.k, max(1, len(refs)))
        distance, position = nearest(X, self.X[refs], self.views[j], k, like=self.y[refs], own=own)
        return distance, np.where(position >= 0, refs[position], -1)


@forms.record
class ClassViews(AssignedViews):
    """Views (feature sets) for a response of classes; one view predicts each row."""

    # exponent, 1 - alpha; a loss is a ratio of distances to this power
    power: float = forms.real(least=0, most=1)
    balanced: bool = forms.flags()
    # factors of minus the distance ratios, and of the votes, in log probabilities (see `evidence`)
    scale: np.ndarray = forms.real(2)

    task = CLASSES

    def evidence(self, X=None, threads=1):
        """Return two measures of how each view (feature set) supports each class: ratio and vote.

        X : rows, or None for the training rows, each without itself
        ratio : (rows, views, classes) log distance ratios, small if the class is near
        vote : (rows, views, classes) log shares of the classes among the k nearest rows"""
        how = {"n_classes": self.n_classes, "balanced": self.balanced, "threads": threads}
        counted = self.weight > 0
        ratio = losses.class_ratios(
            X, self.X, self.codes, self.views, self.k, eligible=counted, **how
        )
        refs = self.references
        weight = self.weight[refs] / max(self.weight[refs].mean(), 1e-300)
        values = weight[:, None] * (self.codes[refs][:, None] == np.arange(self.n_classes))
        X, own = self.queried(X)
        near = Neighbours.among(X, self.X[refs], own=own)
        counts = 1.0 + near.sums(self.views, self.k, values, EQUAL).transpose(1, 0, 2)
        return ratio, np.log(counts / counts.sum(axis=2, keepdims=True))

    def query(self, X=None, threads=1):
        """Return predictions (Answers) for rows X; by default leave-one-out for training rows."""
        ratio, vote = self.evidence(X, threads)
        least, view = ratio.min(axis=2, initial=np.inf), nearest_view(ratio)
        scores = self.scale[1] * vote - self.scale[0] * np.minimum(ratio, ABSENT)
        top = scores.max(axis=2, keepdims=True)
        scores = np.where(scores >= top - ties.EQUAL, top, scores)
        value = np.full(least.shape, np.nan)
        at = np.isfinite(least)
        value[at] = self.best_class(scores[at])
        known, code = np.flatnonzero(view >= 0), np.full(len(view), -1)
        code[known] = value[known, view[known]]
        z = np.full((len(scores), self.n_classes), np.nan)
        z[known] = scores[known, view[known]]
        score = z[:, 1:] - z[:, :1] if self.n_scores == 1 else z
        return Answers(view, value, np.exp(self.power * least), score, code)


@forms.record
class NumberViews(AssignedViews):
    """Views for a numeric response; the view to which most neighbours belong predicts a row."""

    task = NUMBERS

    def query(self, X=None, threads=1):
        """Return predictions (Answers) for rows X; by default leave-one-out for training rows."""
        near = [self.nearest(j, X) for j in range(len(self))]
        y = np.where(np.isfinite(self.y), self.y, 0.0)  # no neighbours lack a response
        B, weight = self.assignment, self.weight
        view, value, share = losses.number_answers(near, y, B, weight)
        alone = [
            losses.number_answers([pair], y, B[:, [j]], weight)[1] for j, pair in enumerate(near)
        ]
        loss = np.where(np.isnan(share), np.inf, 1.0 - share)
        return Answers(view, np.column_stack(alone), loss, value[:, None])


@forms.record
class ClusterViews(AssignedViews):
    """Views (feature sets) for clustering; a row gets the one with the densest rows around it."""

    # exponent, 1 - alpha; a loss is a ratio of distances to this power
    power: float = forms.real(least=0, most=1)
    seed: int = forms.whole(most=forms.LARGEST)
    n_samples: int = forms.whole(least=1, most=N_SAMPLES)
    # relative volume of the rows' bounding box per view, from `reference_volumes`
    volumes: np.ndarray = forms.real("r", least=LEAST_VOLUME, most=1)
    # cluster centres in the features of their view, padded with NaN
    centres: np.ndarray = forms.real("q", "D", nan=True)
    centre_view: np.ndarray = forms.ascending(forms.whole("q", most="r - 1"))

    task = CLUSTERS

    assign = clusters.assign_clusters
    cluster_names = property(clusters.cluster_names)

    def query(self, X=None, threads=1):
        """Return predictions (Answers) for rows X; by default leave-one-out for training rows."""
        how = {"seed": self.seed, "n_samples": self.n_samples, "eligible": self.weight > 0}
        rows = X, self.X, self.views, self.volumes, self.k
        ratios = losses.cluster_ratios(*rows, threads=threads, **how)
        view = nearest_view(ratios)
        value = np.full(ratios.shape[:2], np.nan)
        return Answers(view, value, np.exp(self.power * ratios[:, :, 0]), np.zeros((len(view), 0)))

    def _check_fields(self):
        super()._check_fields()
        if (np.isnan(self.centres) & (self.views >= 0)[self.centre_view]).any():
            raise ValueError("a cluster has no place in its view")
        if set(self.centre_view) != set(range(len(self))):
            raise ValueError("a view has no cluster")


# Unused views ------------------------------------------------------------------------------------


def drop_unused_views(e, threads=1):
    """Return the ensemble e without the feature sets that predict no training row."""
    while True:
        on = np.unique(e.assigned_view[(e.assigned_view >= 0) & (e.weight > 0)])
        if len(on) in (0, len(e)):
            return e
        used = np.unique(e.views[on][e.views[on] >= 0])
        B, total = e.assignment[:, on], e.assignment[:, on].sum(axis=1, keepdims=True)
        by_query = (e.assigned_view[:, None] == on) & (e.assignment.sum(axis=1, keepdims=True) > 0)
        e = replace(
            e,
            views=np.where(e.views[on] >= 0, np.searchsorted(used, e.views[on]), -1),
            features=e.features[used],
            X=e.X[:, used],
            # the shares of a row sum to one again
            assignment=np.where(total > 0, B / np.where(total > 0, total, 1.0), by_query),
            volumes=e.volumes[on],
        )
        e = replace(e, assigned_view=e.query(threads=threads).view)
