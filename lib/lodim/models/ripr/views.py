"""Views: subsets of a few features, one row of feature positions each, padded with -1."""

from itertools import combinations
from math import comb

import numpy as np

from lodim.errors import ArgumentError


def count(p, min_dim, max_dim):
    """Number of views of p features with min_dim to max_dim of them."""
    return sum(comb(p, d) for d in range(min_dim, max_dim + 1))


def enumerate_views(p, min_dim=2, max_dim=2):
    """All views of p features, smaller ones first, in lexicographic order.

    Returns
    -------
    array (d*, max_dim) of int64
        Increasing positions of features, -1 beyond a view's own.
    """
    if not 1 <= min_dim <= max_dim:
        raise ArgumentError(
            f"1 <= min_dim <= max_dim must hold; min_dim is {min_dim}, max_dim {max_dim}"
        )
    if min_dim > p:
        raise ArgumentError(f"there are {p} features, too few for views of min_dim = {min_dim}")
    max_dim = min(max_dim, p)
    parts = []
    for d in range(min_dim, max_dim + 1):
        flat = np.fromiter((j for c in combinations(range(p), d) for j in c), np.int64)
        parts.append(pad(flat.reshape(-1, d), max_dim))
    return np.concatenate(parts)


def pad(views, width):
    """Views of one width as rows of a wider one, padded with -1."""
    out = np.full((len(views), width), -1, np.int64)
    out[:, : views.shape[1]] = views
    return out


def dims(views):
    """Number of features of each view, (d*,)."""
    return (views >= 0).sum(axis=1)


def features(view):
    """The features of one view, without padding."""
    return view[view >= 0]


def complete(X, views):
    """Whether a row has all the features of a view, (n, d*) bool."""
    known = np.append(~np.isnan(X), np.ones((len(X), 1), bool), axis=1)
    return known[:, views].all(axis=2)
