"""Merging of prototypes that are the same in all that matters."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

SAME = 1e-6  # largest difference, in features times their weights and in the target
CELL = SAME / 16  # points of one cell are taken for one: what is near SAME may fall either way


def merge(points, w):
    """One prototype for each group of equal ones: connected components of max-norm <= SAME.

    Parameters
    ----------
    points : array (J, D + 1)
        Active features times their weights, and the target.
    w : array (J,)

    Returns
    -------
    first, w, of : arrays (M,), (M,), (J,)
        Position of the first member of each group, in increasing order; the sum of its weights; the
        group of each prototype.
    """
    # However often a point is repeated, the tree sees it once: pairs would grow as the square.
    cells = np.floor(points / CELL)
    some, cell = np.unique(cells, axis=0, return_index=True, return_inverse=True)[1:]
    pairs = cKDTree(points[some]).query_pairs(SAME, p=np.inf, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(some), len(some)))
    group = connected_components(graph, directed=False)[1][cell.ravel()]
    first, group = np.unique(group, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    of = np.argsort(order)[group.ravel()]
    # Without any weights NumPy's bincount gives whole numbers.
    return first[order], np.bincount(of, w, len(first)).astype(np.float64), of
