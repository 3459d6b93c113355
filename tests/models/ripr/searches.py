"""Searches for views without a formula, for tests and benchmarks."""

from types import SimpleNamespace

import numpy as np

from lodim.family import make
from lodim.models.ripr import losses
from lodim.models.ripr.assignment.view_search import ViewSearch
from lodim.models.ripr.settings import Settings


def view_search(X, y, dims, family="multinomial", **settings):
    """Return a ViewSearch of all sets of dims (min, max) features X (n, p); y are codes or numbers.

    A class of -1 is unknown; y is None for clusters."""
    n, p = X.shape
    known = {"k": None, "lambda_": None, "alpha": losses.ALPHA, "balanced": True, "n_views": None}
    known |= {"n_clusters": None, "max_views": 100_000, "seed": 0, "threads": 1} | settings
    s = Settings(min_dim=dims[0], max_dim=dims[1], axes=SimpleNamespace(of=np.arange(p)), **known)
    y = np.full(n, np.nan) if y is None else np.where((family == "gaussian") | (y >= 0), y, np.nan)
    rows = np.ones(n), np.ones(p, bool), None, np.arange(n)
    return ViewSearch(X, y, *rows, make(family, 2), s)
