"""Search for views (feature sets): prepares the rows, settings and constraints of a fit."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads
from lodim.errors import DataError
from lodim.models.ripr import losses, ties
from lodim.models.ripr.assignment import constrained, lambda_path
from lodim.models.ripr.assignment.recover import (
    Recovery,
    candidates,
    clearly_better,
    forward_selection,
    keep_largest,
    largest,
    refit,
)
from lodim.models.ripr.assignment.solve import (
    assign,
    assign_in_order,
    eligible_views,
    reassign,
    with_log,
)
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS, task_of
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.views import (
    by_content,
    count,
    most_views,
    of_one_factor,
    redundant,
    screened_views,
    varying,
)

UNIT_LAMBDA = 1.0  # largest penalty of the final assignment to the views found, in units


@dataclass(frozen=True, eq=False)
class ViewSearch:
    """Rows and settings of a fit, prepared for the search for views (feature sets)."""

    X: np.ndarray
    y: np.ndarray  # class codes or numbers, NaN if unknown or without a response
    weight: np.ndarray
    varies: np.ndarray  # whether each feature has two or more values
    # order, rows: order of the rows in time, or None; positions in the data
    order: np.ndarray | None
    rows: np.ndarray
    family: Any
    settings: Any

    @classmethod
    def from_batch(cls, batch, family, settings):
        """Return the ViewSearch for the coded rows of a batch; raise if no feature varies."""
        weight = batch.row_weights / batch.row_weights[batch.positive_weight].mean()
        X = ties.merge_close(tiles.unpack(batch.X, batch.n).astype(np.float64), weight > 0)
        y = np.full(batch.n, np.nan)
        if batch.y is not None:
            y = ties.merge_close(batch.y[:, None], weight > 0)[:, 0]
        varies = varying(X[weight > 0])
        if not varies.any():
            raise DataError("at least one feature must vary; all are constant")
        if settings.k is not None:  # `estimate.checked` checks all rows; folds have fewer
            settings = replace(settings, k=min(settings.k, most_neighbours(batch)))
        return cls(X, y, weight, varies, batch.order, batch.rows, family, settings)

    @property
    def task(self):
        return task_of(self.family)

    @property
    def n_classes(self):
        return max(2, self.family.n_scores) if self.task == CLASSES else 0

    @property
    def threads(self):
        return self.settings.threads or available_threads()

    @property
    def used(self):
        """Positions of the rows with positive weight and, if y is numeric, a known response."""
        known = np.isfinite(self.y) | (self.task != NUMBERS)
        return np.flatnonzero(known & (self.weight > 0))

    @property
    def weights(self):
        return self.weight[self.used]

    @property
    def dims(self):
        most = min(self.settings.max_dim or 2, int(self.varies.sum()))
        return min(self.settings.min_dim or 2, most), most

    @property
    def views(self):
        """Views to compare, none redundant: (views, d) feature positions, padded with -1."""
        return self._enumerated[0]

    @property
    def n_possible(self):
        """Number of possible views (sets of non-constant features); fewer may be compared."""
        return self._enumerated[1]

    @cached_property
    def _enumerated(self):
        """The views (feature sets) to compare, and the number of possible views."""
        on, bound = np.flatnonzero(self.varies), self.settings.max_views
        on = on[by_content(self.X[self.weight > 0][:, on])]
        if bound is None:
            bound = max(most_views(len(self.used)), len(on))

        def losses_of(views):
            return self.losses(views=_positions(views, on))

        views, complete = screened_views(len(on), *self.dims, losses_of, bound, self.weights)
        views = _positions(views, on)
        twice = redundant(self.X[self.weight > 0], views)
        if self.task == CLUSTERS:
            twice |= of_one_factor(views, self.settings.axes.of)
        views = views if twice.all() else views[~twice]
        return views, len(views) if complete else count(len(on), *self.dims)

    @property
    def k(self):
        """Number of neighbours."""
        n = np.count_nonzero(self.rows_used[1] >= 0) if self.task == CLASSES else len(self.used)
        return self.settings.k or losses.default_k(n)

    @cached_property
    def rows_used(self):
        """Features X and responses y of the used rows; classes are codes, -1 if unknown."""
        y = self.y[self.used]
        if self.task != NUMBERS:
            y = np.where(np.isfinite(y), y, -1.0).astype(np.int64)
        return self.X[self.used], y

    def losses(self, k=None, views=None):
        """Return the loss of each used row in each view (feature set), (rows, views).

        k : number of neighbours, by default self.k
        views : (views, dims) feature positions, by default self.views"""
        s, (X, y), how = self.settings, self.rows_used, {"threads": self.threads}
        k, views = k or self.k, self.views if views is None else views
        if self.task == NUMBERS:
            return losses.regression_losses(X, y, views, k, weight=self.weights, **how)
        how["alpha"] = s.alpha
        if self.task == CLASSES:
            return losses.class_losses(X, y, views, k, balanced=s.balanced, **how)
        return losses.cluster_losses(X, views, k, seed=s.seed, **how)

    def log_ratios(self, k, views):
        """Return log ratios of distances, (rows, views, classes), small if the class is near.

        A ratio compares distances to the k-th nearest row of the class and of the other classes.
        views : (views, dims) feature sets"""
        X, y = self.rows_used
        how = {"balanced": self.settings.balanced, "threads": self.threads}
        return losses.class_ratios(None, X, y, views, k, **how)

    def held_out_errors(self, L, views, pairs):
        """Return leave-one-out errors (pairs, rows) of predictions by some of the `views` only.

        L : (rows, views) losses
        pairs : list of (Assignment of rows to `views`, positions in `views` to use)
        Errors are 0 to 1 for classes, and squared for numbers, with y standardized."""
        (X, y), columns = self.rows_used, np.unique(np.concatenate([J for _, J in pairs]))
        if self.task == CLASSES:
            ratios = self.log_ratios(self.k, views[columns])
            each = (ratios[:, np.searchsorted(columns, J)] for _, J in pairs)
            return [lambda_path.class_errors(own, y) for own in each]
        near, errors = {j: nearest(None, X, views[j], self.k, like=y) for j in columns}, []
        for a, J in pairs:
            value = y.mean()
            if len(J):
                mass = a.mass[np.isin(a.views, J)]
                B = reassign(L[:, J], a, mass, self.weights).matrix()
                value = losses.number_answers([near[j] for j in J], y, B, self.weights)[1]
            errors.append(((value - y) / (y.std() or 1.0)) ** 2)
        return errors

    def recover(self, lambda_, L=None):
        """Select views (feature sets) by Algorithm 2.1.1 of Fiterau (2014); return a Recovery.

        lambda_ : penalty / squared scale of the losses; None to choose it
        L : (rows, views) losses; None to compute them"""
        best, errors = self._by_penalty(lambda_, L)
        if self.task == CLASSES and lambda_ is None:
            best = self._by_forward_selection(best, errors, L)
        constrained = self.settings.constraints is not None
        if not constrained and self.order is None:
            return best
        L = self.losses(best.k) if L is None else L
        columns, rows = (self._constrained if constrained else self._in_order)(L, best)
        return replace(best, views=self.views[columns], assignment=rows, forward=False)

    def _by_forward_selection(self, best, errors, L):
        """Select views one by one; return a Recovery if they predict clearly better, else `best`.

        best : Recovery (selected views and their rows) found with a penalty
        errors : (rows,) its leave-one-out errors; L : (rows, views) losses, None to compute them"""
        s, weight, y = self.settings, self.weights, self.rows_used[1]
        # By default forward selection compares fewer neighbours.
        k = max(1, round(best.k / 4)) if s.k is None and L is None else best.k
        L = self.losses(k) if L is None else L
        tried = candidates(L, weight)
        ratios = self.log_ratios(k, self.views[tried])
        taken = forward_selection(ratios, y, s.n_views or 6, weight)
        rival_errors = lambda_path.class_errors(ratios[:, taken], y)
        if not clearly_better(rival_errors, errors, len(taken) - len(best.views), weight):
            return best
        columns, own = refit(L, tried[taken], UNIT_LAMBDA * best.unit, weight)
        return Recovery(self.views[columns], own, k, UNIT_LAMBDA, best.unit, forward=True)

    def _by_penalty(self, lambda_, L):
        """Select views (feature sets) by a penalty; return a Recovery, and its errors or None.

        lambda_ : penalty / squared scale of the losses; None to choose it
        L : (rows, views) losses; None to compute them"""
        settings, weight, errors = self.settings, self.weights, None
        L = self.losses() if L is None else L
        unit = (1.0 - settings.alpha) ** 2
        unit = lambda_path.mean_row_variance(L) if self.task == NUMBERS else unit
        able = eligible_views(L, unit)  # other views get no rows; drops them from a large matrix
        L, views = np.ascontiguousarray(L[:, able]), self.views[able]
        how = {"weight": weight, "threads": self.threads}
        if lambda_ is None and self.task != CLUSTERS:
            errors_of = partial(self.held_out_errors, L, views)
            lambda_, found, errors = lambda_path.select_lambda(L, unit, settings, errors_of, **how)
        else:
            lambda_ = 2.0 if lambda_ is None else lambda_  # clustering has no held-out error
            found = assign(L, unit * lambda_, **how)
        columns, own = keep_largest(L, found, settings, weight)
        if self.task == CLASSES:
            columns, own = refit(L, columns, min(found.lambda_, UNIT_LAMBDA * unit), weight)
            own = with_log(own, found)
        return Recovery(views[columns], own, self.k, lambda_, unit), errors

    def _constrained(self, L, recovery):
        """Select views (feature sets) under the user's constraints, and assign the rows to them.

        L, recovery : (rows, views) losses, and Recovery without constraints
        Return the columns of L that are selected, and a Mixture with their shares in each row."""
        lambda_, rows = recovery.lambda_ * recovery.unit, self.rows[self.used]
        constraints, weight = self.settings.constraints, self.weights
        every = constraints.on_views(self.views, rows)
        search = constrained.assign(L, lambda_, every, weight=weight)
        J = largest(search.mass, self.settings)
        if self.task == CLASSES:
            lambda_ = min(lambda_, UNIT_LAMBDA * recovery.unit)
        kept = constraints.on_views(self.views[J], rows)
        own = constrained.assign(L[:, J], lambda_, kept, weight=weight)
        order = ties.descending(own.mass)
        own = replace(with_log(own, search), B=own.B[:, order], mass=own.mass[order])
        return J[order], own

    def _in_order(self, L, recovery):
        """Select views (feature sets) with few changes from row to row, and assign the rows.

        L, recovery : (rows, views) losses, and Recovery without costs of changes
        Return the columns of L that are selected, and the Assignment to them."""
        rank = np.argsort(self.order[self.used], kind="stable")
        weight, lambda_ = self.weights[rank], recovery.lambda_ * recovery.unit
        switch = self.settings.smooth * lambda_
        search = assign_in_order(L[rank], lambda_, switch, weight=weight)
        columns, _ = keep_largest(L[rank], search, self.settings, weight)
        own = assign_in_order(L[rank][:, columns], lambda_, switch, weight=weight)
        back, columns = np.argsort(rank, kind="stable"), columns[own.views]
        own = replace(with_log(own, search), first=own.first[back], second=own.second[back])
        return columns, replace(own, views=columns)


def most_neighbours(batch):
    """Return the most neighbours a row can have: rows with a response and a weight, minus one."""
    known = np.ones(batch.n) if batch.y is None else np.isfinite(batch.y)
    return max(1, int(known[batch.positive_weight].sum()) - 1)


def flat_features(batch):
    """Return the positions of features whose standard deviation is due to a few outliers."""
    X = tiles.unpack(batch.X, batch.n).astype(np.float64)[batch.positive_weight]
    out = []
    for f, x in enumerate(X.T):
        known = x[~np.isnan(x)]
        distance = np.abs(known - np.median(known)) if len(known) else known
        # Most rows differ by less than 5% of the SD, so a few set the scale.
        if distance.any() and np.median(distance[distance > 0]) < 0.05 * known.std():
            out.append(f)
    return np.array(out, np.int64)


def _positions(views, on):
    """Convert `views` from positions among the features `on` to positions among all features."""
    out = np.sort(np.where(views >= 0, on[views], on.max() + 1), axis=1)
    return np.where(out > on.max(), -1, out)
