"""Fewer views: those with more features are built from the best with fewer.

A loss matrix of n rows and d* views takes 8 n d* bytes. Where that is more than allowed, views of
dimension d are kept to those that extend the best of dimension d - 1.
"""

import numpy as np

from lodim.errors import ArgumentError
from lodim.models.ripr import ties
from lodim.models.ripr.views import count, enumerate_views, features, pad

BYTES = 2**30  # of a loss matrix, by default
ENTRIES = 2**22  # of a block of it


def most_views(n, n_bytes=BYTES):
    """Views whose losses of n rows fit into some bytes."""
    return max(1, n_bytes // (8 * n))


def row_blocks(L):
    """Slices of rows, so that what is made of a block is small beside the whole matrix."""
    step = max(1, ENTRIES // max(1, L.shape[1]))
    return [slice(start, start + step) for start in range(0, max(1, len(L)), step)]


def merit(L, weight=None):
    """How much each view offers, (d*,): mean fall of a row's loss below its mean over the views.

    Only falls count: a view may be good for some rows and bad for the rest.
    """
    weight = np.ones(len(L)) if weight is None else weight
    total = np.zeros(L.shape[1])
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        size = np.maximum(finite.sum(axis=1), 1)
        mean = np.where(finite, L[rows], 0.0).sum(axis=1) / size
        fall = np.where(finite, np.maximum(mean[:, None] - L[rows], 0.0), 0.0)
        total += np.einsum("i,ij->j", weight[rows], fall)
    return total / weight.sum()


def screened_views(p, min_dim, max_dim, losses_of, max_views, weight=None):
    """Views of min_dim to max_dim features, at most max_views in all.

    Dimension by dimension: where all views of a dimension fit into what is left of `max_views`
    they are taken; else those that add one feature to a view of one less with the most merit, as
    many as fit. One-feature views are tried first where min_dim is 2 and pairs do not fit.

    Parameters
    ----------
    p, min_dim, max_dim : int
    losses_of : callable
        views -> loss matrix (n, views).
    max_views : int
    weight : array (n,), optional

    Returns
    -------
    views : array (d*, max_dim)
    complete : bool
        Whether nothing was left out.
    """
    max_dim = min(max_dim, p)
    if count(p, min_dim, max_dim) <= max_views:
        return enumerate_views(p, min_dim, max_dim), True
    if max_views < p:
        raise ArgumentError(f"max_views must be at least the number of features, {p}")
    kept, room, parents = [], max_views, None
    for d in range(max(1, min_dim - 1), max_dim + 1):
        if parents is None or count(p, d, d) <= room:
            views = enumerate_views(p, d, d)[:room]
        else:
            views = _children(parents, p)[:room]
        if d < max_dim:
            offered = merit(losses_of(views), weight)
            parents = views[ties.falling(offered / (offered.max() or 1.0))]
        if d >= min_dim:
            kept.append(pad(views, max_dim))
            room -= len(views)
        if not room:
            break
    return np.concatenate(kept), False


def _children(parents, p):
    """Views of one feature more, those of the best parents first."""
    seen, out = set(), []
    for view in parents:
        own = set(features(view).tolist())
        for f in range(p):
            child = tuple(sorted(own | {f}))
            if f not in own and child not in seen:
                seen.add(child)
                out.append(child)
    return np.array(out)
