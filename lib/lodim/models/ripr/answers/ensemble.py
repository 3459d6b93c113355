"""Ensemble: the selected views, and the training rows that answer in them."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.models.ripr import ties
from lodim.models.ripr.losses import LEAST_VOLUME, N_SAMPLES
from lodim.models.ripr.settings import ASSIGNMENT, MOST_DIM, VOTE
from lodim.models.ripr.views import by_content
from lodim.models.ripr.vote.axes import places

CLASSES, NUMBERS, CLUSTERS = "class", "number", "cluster"  # tasks, as `recover` names them
MOST_K = 10_000  # neighbours in a file of fewer rows


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A few views, and what k-NN needs in them.

    task : CLASSES, NUMBERS or CLUSTERS
    features : (a,) int64, the axes that some view uses; with assignment, features of the design
    views : (r, D) int64, positions among `features`, padded with -1; those with most mass first
    X : (n, a) float64, places of the training rows on the axes, NaN where missing: features as
        the design gives them, or codes of levels
    y : (n,) float64, class codes or numbers, NaN where not known or without a response
    weight : (n,) float64, weights of the rows, zero where they do not count
    B : (n, r) float64, shares of the views in a row; zeros where no view is complete
    served : (n,) int64, the view that a query for the row without itself gets; -1 where none is
        complete
    n_classes : int, zero without classes
    n_scores : int, link scores of a row, as the family has them
    k : neighbours
    power : 1 - alpha, of the losses
    balanced : whether shares of the classes are taken out of ratios
    scale : (2,) float64, factors of ratios and votes that make probabilities; where views vote,
        the factor of their sum, and zero
    seed : of the uniform samples that clusters are compared with
    n_samples : of them
    volumes : (r,) float64, of the box that a sample stands for, see `losses.reference_volumes`;
        ones without clusters
    centres : (q, D) float64, places of clusters in their views, padded with NaN; of local
        learners the means of their clusters; empty otherwise
    centre_view : (q,) int64, the view of each
    lambda_ : penalty that was used, in units of (1 - alpha)^2 (numbers: of the mean variance of a
        row's losses); NaN where forward selection found the views
    method : ASSIGNMENT or VOTE
    axis_of : (p,) int64, the axis of each feature of the design
    mismatch : (a,) float64, squared distance of two levels, zero for numbers
    local_learners : estimators that answer instead of neighbours, one a view; empty without
    """

    task: str
    features: np.ndarray
    views: np.ndarray
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    B: np.ndarray
    served: np.ndarray
    n_classes: int
    n_scores: int
    k: int
    power: float
    balanced: bool
    scale: np.ndarray
    seed: int
    n_samples: int
    volumes: np.ndarray
    centres: np.ndarray
    centre_view: np.ndarray
    lambda_: float
    method: str
    axis_of: np.ndarray
    mismatch: np.ndarray
    local_learners: tuple = ()

    def __len__(self):
        return len(self.views)

    @property
    def codes(self):
        """(n,) classes of the rows, -1 where not known."""
        return np.where(np.isfinite(self.y), self.y, -1.0).astype(np.int64)

    def rows(self, batch):
        """Features (m, a) of the rows of a batch.

        Values that differ by rounding alone from one of X, of a row that counts, are that one.
        """
        X = places(tiles.unpack(batch.X, batch.n).astype(np.float64), self.axis_of)
        return ties.match_close(X[:, self.features], self.X[self.weight > 0.0])

    @property
    def preferred(self):
        """Classes in the order in which they win ties, (K,).

        Those of more (weighted) rows first, of as many those of smaller values.
        """
        refs = self.references
        own = self.weight[refs] * (self.codes[refs] == np.arange(self.n_classes)[:, None])
        mass = own.sum(axis=1)
        X = self.X[refs]
        total = np.einsum("ci,if->fc", own, np.nan_to_num(X))[by_content(X)]
        values = np.round(total / np.maximum(mass, 1e-300), ties.DIGITS)
        return np.lexsort((*values[::-1], -np.round(mass / mass.sum(), ties.DIGITS)))

    @property
    def references(self):
        """Positions of the rows that can be neighbours: those that count, and have a response.

        Where views vote, also a feature: what a row without any is like, all others say.
        """
        known = self.weight > 0
        if self.method == VOTE:
            known = known & ~np.isnan(self.X).all(axis=1)
        return np.flatnonzero(known if self.task == CLUSTERS else known & np.isfinite(self.y))

    @property
    def n(self):
        """Training rows."""
        return len(self.X)

    @property
    def share(self):
        """(r,) shares of all (weighted) rows that views serve; of the rest none is complete."""
        of = self.served
        weight = np.bincount(of[of >= 0], self.weight[of >= 0], len(self))
        return weight / max(self.weight.sum(), 1e-300)

    @property
    def mass(self):
        """(r,) shares of the (weighted) rows of the assignment that views have in it."""
        weight = self.weight @ self.B
        return weight / max(weight.sum(), 1e-300)

    def columns(self, j):
        """Positions among `features` of view j."""
        return self.views[j][self.views[j] >= 0]

    def check(self, p, task, n_classes):
        """Raise ValueError unless the fields fit each other, p features, the task and classes."""
        a, r, n = len(self.features), len(self.views), len(self.X)
        real, whole, choice = forms.real, forms.whole, forms.choice
        known = {
            "task": choice(task),
            "features": forms.ascending(whole("a", most=p - 1), strictly=True),
            "views": whole("r", "D", least=-1, most=a - 1),
            "X": real("n", "a", nan=True),
            "y": forms.codes("n", n_classes, nan=True) if n_classes else real("n", nan=True),
            "weight": real("n", least=0),
            "B": real("n", "r", least=0, most=1 + 1e-6),
            "served": whole("n", least=-1, most=r - 1),
            "n_classes": choice(n_classes),
            "k": whole(least=1, most=max(n, MOST_K)),
            "power": real(least=0, most=1),
            "balanced": forms.flags(),
            "scale": real(2),
            "seed": whole(most=forms.LARGEST),
            "n_samples": whole(least=1, most=N_SAMPLES),
            "volumes": real("r", least=LEAST_VOLUME, most=1),
            "centres": real("q", "D", nan=True),
            "centre_view": forms.ascending(whole("q", most=r - 1)),
            "lambda_": real(least=0, nan=True),
            "method": choice(ASSIGNMENT, *([VOTE] if task != CLUSTERS else [])),
            "axis_of": forms.ascending(whole(p, most=p - 1)),
            "mismatch": real("a", least=0),
        }
        forms.check(self, known)
        self._check_axes()
        self._check_views()
        if not len(self.references):
            raise ValueError("no row can be a neighbour")
        if task == CLUSTERS and set(self.centre_view) != set(range(r)):
            raise ValueError("a view has no cluster")

    def _check_axes(self):
        """Raise ValueError unless what has a mismatch is a factor, with codes of its levels."""
        levels = np.bincount(self.axis_of)[self.features]
        for a in np.flatnonzero(self.mismatch > 0.0):
            codes = self.X[:, a][~np.isnan(self.X[:, a])]
            if levels[a] < 2 or not np.isin(codes, np.arange(-1, levels[a])).all():
                raise ValueError(f"feature {a} has a mismatch, and is no factor")

    def _check_views(self):
        """Raise ValueError unless views have features, in order, and clusters a place in them."""
        own = self.views >= 0
        rises = (own[:, :-1] & (np.diff(self.views, axis=1) > 0)) | ~own[:, 1:]
        if not (len(own) and own.shape[1] <= MOST_DIM and own[:, 0].all() and rises.all()):
            raise ValueError("a view has no features, or not in their order")
        if (np.isnan(self.centres) & own[self.centre_view]).any():
            raise ValueError("a cluster has no place in its view")
