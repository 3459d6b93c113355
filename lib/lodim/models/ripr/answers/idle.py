"""Views that no query of the training rows goes to: there are no clusters in them."""

from dataclasses import replace

import numpy as np

from lodim.models.ripr.answers.answers import ask


def serving(e, threads=1):
    """The ensemble of the views that serve a row; rows of the others go to those that serve them.

    Without a view its features may go, by which rows are told apart that have repeated values (see
    `sample`), and so the others are asked again.
    """
    while True:
        on = np.unique(e.served[(e.served >= 0) & (e.weight > 0)])
        if len(on) in (0, len(e)):
            return e
        e = _only(e, on)
        e = replace(e, served=ask(e, threads=threads).view)


def _only(e, on):
    """The ensemble of some of its views."""
    used = np.unique(e.views[on][e.views[on] >= 0])
    views = np.where(e.views[on] >= 0, np.searchsorted(used, e.views[on]), -1)
    B, total = e.B[:, on], e.B[:, on].sum(axis=1, keepdims=True)
    own = (e.served[:, None] == on) & (e.B.sum(axis=1, keepdims=True) > 0)
    B = np.where(total > 0, B / np.where(total > 0, total, 1.0), own)
    return replace(e, views=views, features=e.features[used], X=e.X[:, used], B=B)
