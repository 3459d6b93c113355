"""Ensembles in which one view predicts each row: the view of smallest distance ratio, Eq. 2.11."""

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from scipy.special import log_softmax

from lodim import forms
from lodim.models.ripr import ties
from lodim.models.ripr.answers import clusters, knn, local_learners
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS, Answers, Ensemble
from lodim.models.ripr.kernels import EQUAL
from lodim.models.ripr.losses import LEAST_VOLUME, N_SAMPLES
from lodim.models.ripr.neighbours import Neighbours, nearest
from lodim.models.ripr.settings import ASSIGNMENT


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for the classes by row and view, (m, r, K).

    ratio : dim log(nu_k(own class) / nu_k(other classes)); infinite if the row has missing features
        in the view or there is nothing to compare
    vote : log share of the class among the k nearest rows, after adding one row of each class
    """

    ratio: np.ndarray
    vote: np.ndarray

    @property
    def least(self):
        """Smallest ratio over the classes, (m, r)."""
        return self.ratio.min(axis=2, initial=np.inf)

    def scores(self, scale):
        """Return log probabilities (m, r, K) up to a constant.

        scale : factors of ratio and vote
        """
        return scale[1] * self.vote - scale[0] * np.minimum(self.ratio, knn.ABSENT)


@forms.record
class AssignedViews(Ensemble):
    """Ensemble in which one view predicts each row; its features are those of the design.

    lambda_ : penalty that was used, in units of (1 - alpha)^2 (for numbers, of the mean variance of
        a row's losses); NaN if forward selection found the views
    local_learners : fitted estimators that predict instead of neighbours, one per view; may be
        empty
    """

    lambda_: float = forms.real(least=0, nan=True)
    _: KW_ONLY
    local_learners: tuple = ()

    method = ASSIGNMENT
    category_distance = None  # the levels of a factor are numbers here

    def query(self, X=None, threads=1):
        """Return Answers for rows X (m, a); if X is None for the ensemble's rows, each left out."""
        if X is not None and not len(X):
            empty, none = np.zeros((0, len(self))), np.zeros(0, np.int64)
            return Answers(none, empty, empty, np.zeros((0, self.n_scores)), none)
        answers = self._query(X, threads)
        if not self.local_learners:
            return answers
        return local_learners.learner_answers(self, answers, self.X if X is None else X)

    def nearest(self, j, X=None, k=None):
        """Return distances and positions (m, k) of the k nearest labelled training rows in view j.

        Without X, for the ensemble's own rows, each left out. If a row misses a feature of the
        view, or has fewer neighbours, the distances are infinite and the positions -1.
        """
        refs, itself = self.references, X is None
        k = min(k or self.k, max(1, len(refs)))
        X, y = self.X if itself else X, self.y[refs]
        if not itself:
            distance, position = nearest(X, self.X[refs], self.views[j], k, like=y)
            return distance, np.where(position >= 0, refs[position], -1)
        distance, position = self.nearest(j, X, k)
        own, at = nearest(None, self.X[refs], self.views[j], k, like=y)
        distance[refs], position[refs] = own, np.where(at >= 0, refs[at], -1)
        return distance, position


@forms.record
class ClassViews(AssignedViews):
    """Assigned views of classes.

    power : 1 - alpha, the exponent of the losses
    balanced : whether class shares are removed from the ratios
    scale : factors of ratio and vote in the log probabilities
    """

    power: float = forms.real(least=0, most=1)
    balanced: bool = forms.flags()
    scale: np.ndarray = forms.real(2)

    task = CLASSES

    def evidence(self, X=None, threads=1):
        """Return the Evidence for rows X (m, a); without X for the own rows, each left out."""
        how = {"n_classes": self.n_classes, "balanced": self.balanced, "counts": self.weight > 0}
        how |= {"leave_out": X is None, "threads": threads}
        ratio = knn.class_ratios(
            self.X if X is None else X, self.X, self.codes, self.views, self.k, **how
        )
        vote = np.empty(ratio.shape)
        for j in range(len(self)):
            weights = 1.0 + self.votes(j, X)
            vote[:, j] = np.log(weights / weights.sum(axis=1, keepdims=True))
        return Evidence(ratio, vote)

    def votes(self, j, X=None):
        """Return weights of the classes among the k nearest rows in view j, (m, K).

        The weights are relative to the mean weight of a row. Without X, for the ensemble's own
        rows, each left out. Rows tied at the k-th distance share the remaining places.
        """
        k, refs, view = self.k, self.references, self.views[j]
        weight = self.weight[refs] / max(self.weight[refs].mean(), 1e-300)
        values = weight[:, None] * (self.codes[refs][:, None] == np.arange(self.n_classes))
        near = Neighbours.among(self.X if X is None else X, self.X[refs])
        out = near.sums(view[None], k, values, EQUAL)[0]
        if X is None:
            near = Neighbours.among(None, self.X[refs])
            out[refs] = near.sums(view[None], k, values, EQUAL)[0]
        return out

    def _votes_and_entropies(self, X):
        ratio = self.evidence(X).ratio
        view, rows = knn.nearest_view(ratio), np.arange(len(X))
        ratio = np.minimum(ratio[rows, view], knn.ABSENT)

        def entropies(votes):
            weights = 1.0 + votes[view, rows]
            share = np.log(weights / weights.sum(axis=1, keepdims=True))
            z = log_softmax(self.scale[1] * share - self.scale[0] * ratio, axis=1)
            p = np.exp(z)
            return np.where(view >= 0, -(p * z).sum(axis=1), 0.0), p

        return np.array([self.votes(j, X) for j in range(len(self))]), entropies

    def _query(self, X, threads):
        known = self.evidence(X, threads)
        least, scores = known.least, known.scores(self.scale)
        top = scores.max(axis=2, keepdims=True)
        scores = np.where(scores >= top - ties.EQUAL, top, scores)
        view = knn.nearest_view(known.ratio)
        value = np.full(least.shape, np.nan)
        at = np.isfinite(least)
        value[at] = self.preferred[ties.argmin(-scores[at][:, self.preferred])]
        z = np.full((len(scores), self.n_classes), np.nan)
        z[view >= 0] = scores[view >= 0, view[view >= 0]]
        score = z[:, 1:] - z[:, :1] if self.n_scores == 1 else z
        code = _at_view(value, view)
        code = np.where(np.isnan(code), -1, code).astype(np.int64)
        return Answers(view, value, np.exp(self.power * least), score, code)


@forms.record
class NumberViews(AssignedViews):
    """Assigned views of numbers: a row's view is the one to which most neighbours belong."""

    task = NUMBERS

    def _query(self, X, threads):
        near = [self.nearest(j, X) for j in range(len(self))]
        y = np.where(np.isfinite(self.y), self.y, 0.0)  # no neighbours lack a response
        best = knn.number_answers(near, y, self.assignment, weight=self.weight)
        alone = [
            knn.number_answers([pair], y, self.assignment[:, [j]], weight=self.weight).value
            for j, pair in enumerate(near)
        ]
        loss = np.where(np.isnan(best.share), np.inf, 1.0 - best.share)
        return Answers(best.view, np.column_stack(alone), loss, best.value[:, None])


@forms.record
class ClusterViews(AssignedViews):
    """Assigned views without a response: a row's view is the one where rows are dense around it.

    power : 1 - alpha, the exponent of the losses
    seed : seed of the uniform samples
    n_samples : number of uniform samples
    volumes : volume of the box that a sample represents, see `losses.reference_volumes`
    centres : cluster centres in their views, padded with NaN; for local learners the means of their
        clusters
    centre_view : view of each centre
    """

    power: float = forms.real(least=0, most=1)
    seed: int = forms.whole(most=forms.LARGEST)
    n_samples: int = forms.whole(least=1, most=N_SAMPLES)
    volumes: np.ndarray = forms.real("r", least=LEAST_VOLUME, most=1)
    centres: np.ndarray = forms.real("q", "D", nan=True)
    centre_view: np.ndarray = forms.ascending(forms.whole("q", most="r - 1"))

    task = CLUSTERS

    def assign(self, X, answers):
        """Return the clusters (m,) of rows X (m, a), and squared distances to centres, (m,)."""
        return clusters.assign_clusters(self, X, answers)

    @property
    def cluster_names(self):
        """Names of the clusters, such as "2.1" for the first cluster of the second view."""
        return clusters.cluster_names(self)

    def centres_in(self, feature):
        """Return the cluster centres (q,) along a feature; NaN for a view without the feature."""
        own = self.views[self.centre_view]
        at = (own >= 0) & (self.features[own] == feature)
        return np.where(at, self.centres, 0.0).sum(axis=1) + np.where(at.any(axis=1), 0.0, np.nan)

    def _query(self, X, threads):
        how = {"seed": self.seed, "n_samples": self.n_samples, "counts": self.weight > 0}
        how |= {"leave_out": X is None, "threads": threads}
        ratios = knn.cluster_ratios(
            self.X if X is None else X, self.X, self.views, self.volumes, self.k, **how
        )
        view = knn.nearest_view(ratios)
        value = np.full(ratios.shape[:2], np.nan)
        return Answers(view, value, np.exp(self.power * ratios[:, :, 0]), np.zeros((len(view), 0)))

    def _check_fields(self):
        """Raise a ValueError unless each cluster has a centre, and each view has a cluster."""
        super()._check_fields()
        if (np.isnan(self.centres) & (self.views >= 0)[self.centre_view]).any():
            raise ValueError("a cluster has no place in its view")
        if set(self.centre_view) != set(range(len(self))):
            raise ValueError("a view has no cluster")


def _at_view(value, view):
    """Return the values (m,) of value (m, r) in the view of each row; NaN without one."""
    if not value.shape[1]:
        return np.full(len(view), np.nan)
    own = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return np.where(view >= 0, own, np.nan)


# Unused views ------------------------------------------------------------------------------------


def drop_unused_views(e, threads=1):
    """Return the ensemble with only the views that predict a row; other views have no clusters.

    Dropping a view can drop features, which distinguish rows with repeated values (see
    `losses.uniform_references`), so the remaining views are queried again.
    """
    while True:
        on = np.unique(e.assigned_view[(e.assigned_view >= 0) & (e.weight > 0)])
        if len(on) in (0, len(e)):
            return e
        e = _subset(e, on)
        e = replace(e, assigned_view=e.query(threads=threads).view)


def _subset(e, on):
    """Return the ensemble with some of its views."""
    used = np.unique(e.views[on][e.views[on] >= 0])
    views = np.where(e.views[on] >= 0, np.searchsorted(used, e.views[on]), -1)
    B, total = e.assignment[:, on], e.assignment[:, on].sum(axis=1, keepdims=True)
    by_query = (e.assigned_view[:, None] == on) & (e.assignment.sum(axis=1, keepdims=True) > 0)
    B = np.where(total > 0, B / np.where(total > 0, total, 1.0), by_query)
    return replace(
        e,
        views=views,
        features=e.features[used],
        X=e.X[:, used],
        assignment=B,
        volumes=e.volumes[on],
    )
