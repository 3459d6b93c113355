"""Training: the rows of a batch as the search for views takes them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads
from lodim.errors import DataError
from lodim.models.ripr import ties
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.assignment import constrained
from lodim.models.ripr.assignment.recover import ALIKE, Control, keep, largest, loss_matrix, recover
from lodim.models.ripr.assignment.solve import assign_in_order, ended
from lodim.models.ripr.views import by_content, count, most_views, redundant, screened_views

FLAT = 0.05  # of the standard deviation: most rows differ by less where few set the scale
TASKS = {"gaussian": NUMBERS, "none": CLUSTERS}  # of families; the others have classes


@dataclass(frozen=True, eq=False)
class Training:
    """The rows as the numerical functions take them.

    X : (n, p) NaN where missing; y : (n,) codes or numbers, NaN where not known; values that differ
        by rounding alone are one
    weight : (n,) as given, zero where rows do not count; varies : (p,) bool
    order : (n,) by which rows follow each other, or None
    rows : (n,) positions in the data
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    varies: np.ndarray
    order: np.ndarray | None
    rows: np.ndarray
    family: Any
    settings: Any

    @classmethod
    def of(cls, batch, family, settings):
        """From a batch."""
        X = ties.merged(tiles.unpack(batch.X, batch.n).astype(np.float64))
        y = np.full(batch.n, np.nan) if batch.y is None else ties.merged(batch.y[:, None])[:, 0]
        weight = np.ones(batch.n) if batch.weights is None else batch.weights
        varies = _varies(X[weight > 0])
        if not varies.any():
            raise DataError("no feature varies: there is no view of the data")
        return cls(X, y, weight, varies, batch.order, batch.rows, family, settings)

    @property
    def task(self):
        """CLASSES, NUMBERS or CLUSTERS."""
        return task_of(self.family)

    @property
    def n_classes(self):
        """Zero where the response has no classes."""
        return max(2, self.family.n_scores) if self.task == CLASSES else 0

    @property
    def threads(self):
        """Threads to use."""
        return self.settings.threads or available_threads()

    @property
    def used(self):
        """Positions of the rows that are judged: of numbers, those that have one and count."""
        known = np.isfinite(self.y) & (self.weight > 0)
        known |= self.task != NUMBERS
        return np.flatnonzero(known)

    @property
    def target(self):
        """(m,) responses of the rows used: codes with -1 where not known, or numbers."""
        y = self.y[self.used]
        return y if self.task == NUMBERS else np.where(np.isfinite(y), y, -1.0).astype(np.int64)

    @property
    def weights(self):
        """(m,) weights of the rows used; None where all are one, which spares work."""
        weight = self.weight[self.used]
        return None if (weight == 1.0).all() else weight

    @property
    def control(self):
        """Rare settings of the search."""
        s = self.settings
        return Control(
            alpha=s.a, least=s.share, balanced=s.balanced, tolerance=s.tolerance, most=s.n_views
        )

    @property
    def dims(self):
        """Least and most features of a view."""
        most = min(self.settings.max_dim, int(self.varies.sum()))
        return min(self.settings.min_dim or 2, most), most

    @property
    def views(self):
        """Views that are compared, (d*, D) positions in the design: all, or as `screen` leaves.

        Those that say a thing twice are left out, unless there are no others. Ties are won by the
        earlier view, and so they are in an order that does not depend on that of the columns.
        """
        return self._enumerated[0]

    @property
    def n_possible(self):
        """How many views there are of the features that vary; `views` may be fewer."""
        views, complete = self._enumerated
        return len(views) if complete else count(int(self.varies.sum()), *self.dims)

    @cached_property
    def _enumerated(self):
        """The views, and whether nothing was screened away."""
        on, bound = np.flatnonzero(self.varies), self.settings.max_views
        on = on[by_content(self.X[self.weight > 0][:, on])]
        if bound is None:
            bound = max(most_views(len(self.used)), len(on))
        found, complete = screened_views(
            len(on), *self.dims, lambda some: self.losses(_named(some, on)), bound, self.weights
        )
        found = _named(found, on)
        twice = redundant(self.X[self.weight > 0], found, levels=self.task == CLUSTERS)
        return found if twice.all() else found[~twice], complete

    def losses(self, views=None, k=None):
        """Losses of the rows used in some views, all by default, (m, d*)."""
        return loss_matrix(
            self.X[self.used], self.target, self.views if views is None else views, self.task,
            k or self.settings.k, control=self.control, weight=self.weights,
            seed=self.settings.seed, threads=self.threads,
        )  # fmt: skip

    def recover(self, lambda_, L=None):
        """The Recovery of views by a penalty in units, None to have it chosen."""
        found = recover(
            self.X[self.used], self.target, self.views, self.task, k=self.settings.k,
            lambda_=lambda_, L=L, weight=self.weights, control=self.control,
            seed=self.settings.seed, threads=self.threads,
        )  # fmt: skip
        if self.settings.limits is not None:
            return self._within_limits(found, L)
        return found if self.order is None else self._in_order(found, L)

    def _within_limits(self, found, L):
        """The same penalty within limits: first over all views, then the kept ones."""
        L = self.losses(k=found.k) if L is None else L
        rows, lambda_ = self.rows[self.used], found.lambda_ * found.unit

        def within(columns, lambda_):
            limits = self.settings.limits.at(self.views[columns], rows)
            return constrained.assign(L[:, columns], lambda_, limits, weight=self.weights)

        every = np.arange(len(self.views))
        search = within(every, lambda_)
        J = largest(search.mass, self.control.least, self.control.most)
        if self.task == CLASSES:
            lambda_ = min(lambda_, ALIKE * found.unit)
        own = within(J, lambda_)
        order = ties.falling(own.mass)
        own = replace(ended(own, search), B=own.B[:, order], mass=own.mass[order])
        J = J[order]
        return replace(
            found, views=self.views[J], columns=J, losses=L[:, J], assignment=own, forward=False
        )

    def _in_order(self, found, L):
        """The same penalty with a price of switches: first over all views, then the kept ones."""
        L = self.losses(k=found.k) if L is None else L
        s, rank = self.settings, np.argsort(self.order[self.used], kind="stable")
        weight = None if self.weights is None else self.weights[rank]
        lambda_ = found.lambda_ * found.unit
        how = {"lambda_": lambda_, "switch": s.smooth * lambda_, "weight": weight}
        all_views = assign_in_order(L[rank], **how)
        columns, _ = keep(L[rank], all_views, self.control.least, weight, self.control.most)
        own = assign_in_order(L[rank][:, columns], **how)
        back = np.argsort(rank, kind="stable")
        own = ended(own, all_views)
        own = replace(own, views=columns[own.views], first=own.first[back], second=own.second[back])
        return replace(
            found, views=self.views[own.views], columns=own.views, assignment=own, forward=False
        )


def task_of(family):
    """The task that a family of responses sets."""
    return TASKS.get(family.name, CLASSES)


def flat(batch):
    """Positions of the features of a batch of which a few values set the standard deviation."""
    X = tiles.unpack(batch.X, batch.n).astype(np.float64)[batch.positive_weight]
    out = []
    for f, x in enumerate(X.T):
        known = x[~np.isnan(x)]
        far = np.abs(known - np.median(known)) if len(known) else known
        if far.any() and np.median(far[far > 0]) < FLAT * known.std():
            out.append(f)
    return np.array(out, np.int64)


def _named(views, on):
    """Views of the features `on`, as increasing positions in the design."""
    named = np.sort(np.where(views >= 0, on[views], on.max() + 1), axis=1)
    return np.where(named > on.max(), -1, named)


def _varies(X):
    """Which features have two values, (p,)."""
    if not len(X):
        return np.zeros(X.shape[1], bool)
    low, high = (np.where(np.isnan(X), end, X) for end in (np.inf, -np.inf))
    return low.min(axis=0) < high.max(axis=0)
