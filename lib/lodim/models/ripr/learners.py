"""Any learner with fit and predict on the views, each on the rows that its view serves."""

import copy

import numpy as np

from lodim.models.ripr.views import features

LEAST = 2  # rows that a learner needs


def fit_learners(learner, X, y, views, B, *, weight=None):
    """A copy of the learner for each view, fitted to its features.

    Parameters
    ----------
    learner : object with fit(X, y) and predict(X), as scikit-learn's
        Copied, never changed. With y None its fit takes X alone (clustering).
    X : array (n, p)
    y : array (n,) or None
    views : array (A, D)
    B : array (n, A)
        Assignment: a view serves the rows of which it has most.
    weight : array (n,), optional
        Rows of weight zero are left out; else handed on as `sample_weight`.

    Returns
    -------
    list
        Of learners; None for a view that serves fewer than two rows.
    """
    out, most = [], np.where(B.any(axis=1), B.argmax(axis=1), -1)
    for a, view in enumerate(views):
        whole = ~np.isnan(X[:, features(view)]).any(axis=1)
        rows = np.flatnonzero((most == a) & whole & (True if weight is None else weight > 0))
        out.append(_fitted(learner, X[np.ix_(rows, features(view))], y, rows, weight))
    return out


def _fitted(learner, X, y, rows, weight):
    if len(rows) < LEAST:
        return None
    own = copy.deepcopy(learner)
    more = {} if weight is None else {"sample_weight": weight[rows]}
    return own.fit(X, **more) if y is None else own.fit(X, y[rows], **more)


def predict_by_view(learners, Q, views, view):
    """Predictions of the learner of the view that answers each query, (q,) float; NaN where none.

    view (q,) positions, -1 where no view answers: see `query.Answer`.
    """
    out = np.full(len(Q), np.nan)
    for a, learner in enumerate(learners):
        rows = np.flatnonzero(view == a)
        if learner is not None and rows.size:
            out[rows] = learner.predict(Q[np.ix_(rows, features(views[a]))])
    return out
