"""Feature sets that vote: all predict together, by the sum of their evidence."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.models.ripr import ties
from lodim.models.ripr.ensemble import CLASSES, NUMBERS, Answers, Ensemble
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.settings import VOTE
from lodim.models.ripr.vote import Voters, best_factors


@forms.record
class VotingViews(Ensemble):
    """Ensemble of views (feature sets) that predict by `factor` times the sum of their evidence.

    Evidence is the log ratio of a class's share of the nearest rows to its share of all rows, or
    the mean of the nearest rows minus that of all rows, in standard deviations of the response."""

    factor: float = forms.real(least=0)
    category_distance: np.ndarray = forms.real("a", least=0)

    method = VOTE

    @property
    def task(self):
        return CLASSES if self.n_classes else NUMBERS

    @property
    def references(self):
        """Positions of training rows that vote: with weight, response and at least one feature."""
        refs = super().references
        return refs[~np.isnan(self.X[refs]).all(axis=1)]

    def query(self, X=None, threads=1):
        """Return predictions (Answers) for rows X; by default leave-one-out for training rows."""
        voters = voters_of(self)
        evidence = evidence_of(self, voters, X, threads)
        known = self.complete(self.X if X is None else X)
        share = shares(self, voters, evidence, known)
        view = np.where(known.any(axis=1), ties.argmin(-share), -1)
        loss = np.where(known, 1.0 - share, np.inf)
        code = codes(self, voters, evidence) if voters.classes else None
        by_view = predictions_by_view(self, voters, evidence, known)
        return Answers(view, by_view, loss, scores(self, voters, evidence), code)

    def nearest(self, j, X, k):
        """Return distances and positions (m, k) of training rows nearest to m rows X in view j."""
        refs, k = self.references, min(k, len(self.references))
        distance, at = nearest(X, self.X[refs], self.views[j], k, self.category_distance)
        return distance, np.where(at >= 0, refs[at], -1)

    def _check_fields(self):
        super()._check_fields()
        levels = np.bincount(self.axis_of)[self.features]
        for a in np.flatnonzero(self.category_distance > 0.0):
            codes = self.X[:, a][~np.isnan(self.X[:, a])]
            if levels[a] < 2 or not np.isin(codes, np.arange(-1, levels[a])).all():
                raise ValueError(f"feature {a} has a category distance, and is no factor")


def voters_of(e):
    """Return the training rows of an ensemble e that vote, as Voters."""
    at = e.references
    return Voters.from_rows(e.X[at], e.category_distance, e.y[at], e.weight[at], e.n_classes)


def evidence_of(e, voters, X=None, threads=1):
    """Return each view's evidence for each class from a row's nearest voters, (views, rows, C).

    e : VotingViews (which define evidence); voters : its training rows, as Voters
    X : rows; by default the training rows of e, which do not vote for themselves"""
    X, own = e.queried(X)
    return voters.evidence(voters.sums(e.views, e.k, X, threads, own))


def calibrated(e, threads=1):
    """Return VotingViews e with its best factor by leave-one-out loss, and each row's main view."""
    voters = voters_of(e)
    evidence, known = evidence_of(e, voters, threads=threads), e.complete(e.X)
    total = evidence[:, e.references].sum(axis=0)
    t, _ = best_factors(voters, np.zeros_like(total), total[None], threads)
    e = replace(e, factor=float(t[0]))
    share = shares(e, voters, evidence, known)
    served = np.where(known.any(axis=1), ties.argmin(-share), -1)
    return replace(e, assignment=share, assigned_view=served)


def scores(e, voters, evidence):
    """Return the linear predictors (rows, K) of VotingViews e; for numbers, predictions (rows, 1).

    voters : the training rows of e; evidence : (views, rows, C) from `evidence_of`"""
    total = e.factor * evidence.sum(axis=0)
    if not voters.classes:
        return voters.mean + voters.spread * total
    z = np.log(voters.prior) + total
    return z[:, 1:] - z[:, :1] if e.n_scores == 1 else z


def shares(e, voters, evidence, known):
    """Return how much each view contributes to a row's prediction: shares of sum 1, (rows, views).

    e, voters : VotingViews and their Voters; evidence : (views, rows, C) from `evidence_of`
    known : (rows, views) bool, whether the row has all features of the view; if not, share 0
    If no known view supports the prediction, all known views have equal shares."""
    if voters.classes:
        code = codes(e, voters, evidence)
        own = np.take_along_axis(evidence, code[None, :, None], axis=2)[:, :, 0]
        for_it = (own - evidence.mean(axis=2)).T
    else:
        for_it = (evidence[:, :, 0] * np.sign(evidence[:, :, 0].sum(axis=0))).T
    for_it = np.where(known, np.maximum(for_it, 0.0), 0.0)
    for_it = np.where((for_it.max(axis=1, initial=0.0) > ties.EQUAL)[:, None], for_it, known)
    total = for_it.sum(axis=1, keepdims=True)
    return for_it / np.where(total > 0.0, total, 1.0)


def codes(e, voters, evidence):
    """Return each row's most probable class, (rows,), by the views' evidence (views, rows, C)."""
    return best_class(e, np.log(voters.prior) + e.factor * evidence.sum(axis=0))


def best_class(e, z):
    """Return the class of the largest score in each row of z (rows, C); e.preferred breaks ties."""
    return e.preferred[ties.argmin(-z[:, e.preferred])]


def predictions_by_view(e, voters, evidence, known):
    """Return the class code or number that each view predicts, (rows, views); NaN if not known.

    evidence : (views, rows, C) from `evidence_of`; known : (rows, views) bool, features present"""
    if voters.classes:
        each = [best_class(e, np.log(voters.prior) + own) for own in evidence]
    else:
        each = [voters.mean + voters.spread * own[:, 0] for own in evidence]
    value = np.array(each, np.float64).reshape(len(e), len(known)).T
    return np.where(known, value, np.nan)
