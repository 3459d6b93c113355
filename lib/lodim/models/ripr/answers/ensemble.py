"""Ensemble: the selected views, and the training rows that answer in them."""

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.models.ripr import ties
from lodim.models.ripr.losses import LEAST_VOLUME, N_SAMPLES
from lodim.models.ripr.settings import MOST_DIM, RATIO, VOTE
from lodim.models.ripr.views import by_content
from lodim.models.ripr.vote.axes import places

CLASSES, NUMBERS, CLUSTERS = "class", "number", "cluster"  # tasks, as `recover` names them
MOST_SHARE = 1 + 1e-6  # that rounding leaves of one
MOST_K = 10_000  # neighbours in a file of fewer rows


TASKS = {"gaussian": NUMBERS, "none": CLUSTERS}  # of families; the others have classes
LOG = {  # what was compared, and how the search ended
    "objective": forms.real("rounds"),
    "converged": forms.flags(),
    "compared": forms.whole(),
    "possible": forms.whole(most=forms.LARGEST),
    "flat": forms.whole("flat", most="p - 1"),
    "sampled": forms.whole(),
}


def task_of(family):
    """The task that a family of responses sets."""
    return TASKS.get(family.name, CLASSES)


@forms.record
class Ensemble:
    """r views, and what k-NN needs in them: n training rows and the a axes that some view uses.

    features : the axes; where ratios serve, all axes are features of the design
    views : positions among `features`, padded with -1; those with most mass first
    X : places of the training rows on the axes, NaN where missing: features as the design gives
        them, or codes of levels
    y : class codes or numbers, NaN where not known or without a response
    weight : of the rows, zero where they do not count
    B : shares of the views in a row; zeros where no view is complete
    served : the view that a query for the row without itself gets; -1 where none is complete
    n_classes : zero without classes
    n_scores : link scores of a row, as the family has them
    k : neighbours
    power : 1 - a, of the losses
    balanced : whether shares of the classes are taken out of ratios
    scale : factors of ratios and votes that make probabilities; where views vote, the factor of
        their sum, and zero
    seed : of the uniform samples that clusters are compared with
    n_samples : of them
    volumes : of the box that a sample stands for, see `losses.reference_volumes`; ones without
        clusters
    centres : places of clusters in their views, padded with NaN; of local learners the means of
        their clusters; empty otherwise
    centre_view : the view of each
    lambda_ : penalty that was used, in units of (1 - a)^2 (numbers: of the mean variance of a row's
        losses); NaN where forward selection found the views
    axis_of : the axis of each feature of the design
    mismatch : squared distance of two levels, zero for numbers
    local_learners : estimators that answer instead of neighbours, one a view; empty without
    """

    task: str = forms.choice(CLASSES, NUMBERS, CLUSTERS)
    features: np.ndarray = forms.ascending(forms.whole("a", most="p - 1"), strictly=True)
    views: np.ndarray = forms.whole("r", "D", least=-1, most="a - 1")
    X: np.ndarray = forms.real("n", "a", nan=True)
    y: np.ndarray = forms.responses("n", nan=True)
    weight: np.ndarray = forms.real("n", least=0)
    B: np.ndarray = forms.real("n", "r", least=0, most=MOST_SHARE)
    served: np.ndarray = forms.whole("n", least=-1, most="r - 1")
    n_classes: int = forms.size("C")
    n_scores: int = forms.size("K")
    k: int = forms.whole(least=1, most=f"max(n, {MOST_K})")
    power: float = forms.real(least=0, most=1)
    balanced: bool = forms.flags()
    scale: np.ndarray = forms.real(2)
    seed: int = forms.whole(most=forms.LARGEST)
    n_samples: int = forms.whole(least=1, most=N_SAMPLES)
    volumes: np.ndarray = forms.real("r", least=LEAST_VOLUME, most=1)
    centres: np.ndarray = forms.real("q", "D", nan=True)
    centre_view: np.ndarray = forms.ascending(forms.whole("q", most="r - 1"))
    lambda_: float = forms.real(least=0, nan=True)
    serve: str = forms.choice(RATIO, VOTE)
    axis_of: np.ndarray = forms.ascending(forms.whole("p", most="p - 1"))
    mismatch: np.ndarray = forms.real("a", least=0)
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
        if self.serve == VOTE:
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

    def _check_fields(self):
        """Raise a ValueError unless the fields fit each other."""
        self._check_axes()
        self._check_views()
        if not len(self.references):
            raise ValueError("no row can be a neighbour")
        if self.task == CLUSTERS:
            if set(self.centre_view) != set(range(len(self))):
                raise ValueError("a view has no cluster")
            if self.serve != RATIO:
                raise ValueError("clusters are served by ratios")

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
