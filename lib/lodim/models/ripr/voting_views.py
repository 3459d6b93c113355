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
    """Ensemble of views (feature sets) that predict together, by `factor` * sum of their evidence.

    Evidence compares a row's nearest rows with all rows: the log ratio of class shares, or the
    difference of means in standard deviations of the response."""

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
        voters, known = voters_of(self), self.complete(self.X if X is None else X)
        evidence = evidence_of(self, voters, X, threads)
        share, view, code = shares(self, voters, evidence, known)
        total = self.factor * evidence.sum(axis=0)
        if voters.classes:
            z = np.log(voters.prior) + total
            score = z[:, 1:] - z[:, :1] if self.n_scores == 1 else z
            each = self.best_class(np.log(voters.prior) + evidence)
        else:
            score = voters.mean + voters.spread * total
            each = voters.mean + voters.spread * evidence[:, :, 0]
        by_view, loss = np.where(known, each.T, np.nan), np.where(known, 1.0 - share, np.inf)
        return Answers(view, by_view, loss, score, code)

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
    """Return the Voters of an ensemble e: training rows with weight, response and any feature."""
    at = e.references
    return Voters.from_rows(e.X[at], e.category_distance, e.y[at], e.weight[at], e.n_classes)


def evidence_of(e, voters, X=None, threads=1):
    """Return evidence (views, rows, C): how a row's neighbours in a view differ from all rows.

    e : VotingViews
    X : rows, or None for the training rows, each without itself"""
    X, own = e.queried(X)
    return voters.evidence(e.views, e.k, X, threads, own)


def calibrated(e, threads=1):
    """Fit the factor of the summed evidence of VotingViews e by leave-one-out loss; return a new e.

    The new e also has each training row's main view, and shares of the views in its prediction."""
    voters = voters_of(e)
    evidence, known = evidence_of(e, voters, threads=threads), e.complete(e.X)
    total = evidence[:, e.references].sum(axis=0)
    t, _ = best_factors(voters, np.zeros_like(total), total[None], threads)
    e = replace(e, factor=float(t[0]))
    share, view, _ = shares(e, voters, evidence, known)
    return replace(e, assignment=share, assigned_view=view)


def shares(e, voters, evidence, known):
    """Measure how much each view (feature set) contributes to each row's prediction.

    e : VotingViews; evidence : (views, rows, C), as returned by `evidence_of`
    known : (rows, views) bool, whether the row has all features of the view
    Return shares (rows, views), which sum to 1 in a row; the view of largest share, or -1; and
    the class codes, None for numbers."""
    code = None
    if voters.classes:
        code = e.best_class(np.log(voters.prior) + e.factor * evidence.sum(axis=0))
        own = np.take_along_axis(evidence, code[None, :, None], axis=2)[:, :, 0]
        for_it = (own - evidence.mean(axis=2)).T
    else:
        for_it = (evidence[:, :, 0] * np.sign(evidence[:, :, 0].sum(axis=0))).T
    for_it = np.where(known, np.maximum(for_it, 0.0), 0.0)
    for_it = np.where((for_it.max(axis=1, initial=0.0) > ties.EQUAL)[:, None], for_it, known)
    total = for_it.sum(axis=1, keepdims=True)
    share = for_it / np.where(total > 0.0, total, 1.0)
    return share, np.where(known.any(axis=1), ties.argmin(-share), -1), code
