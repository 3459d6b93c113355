"""The next purchase for a row: the set of items with the least expected loss and price."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodim.acquisition.items import Items
from lodim.acquisition.kernels import candidate_losses, squared_distances
from lodim.acquisition.mixture import Mixture

POINTS = 64  # training rows that stand for what is unknown of a row
LEAST_SHARE = 0.005  # probability from which a class has points
RANDOM = 40  # random sets of items among the candidates of a decision
PAIRED = 6  # most valuable single items, of which all pairs are candidates
ROUNDS = 4  # of exchanges of one item of the best candidate
LOOKS = 24  # best candidates that may follow a first purchase
NEAR = 8  # points of similar values, on which the set after a first purchase is chosen


@dataclass(frozen=True, eq=False)
class State:
    """What is known of a row: x (p,), NaN where unknown; measured items (G,); paid nodes (V,)."""

    x: np.ndarray
    measured: np.ndarray
    paid: np.ndarray

    @property
    def columns(self):
        """Positions of the known features."""
        return np.flatnonzero(~np.isnan(self.x))


@dataclass(frozen=True, eq=False)
class Decision:
    """The next purchase: item, or -1 for none.

    chosen : items of the best set
    loss : expected loss without and with that set
    singles : (items, price of each, expected loss after it)
    """

    item: int
    chosen: tuple[int, ...]
    loss: tuple[float, float]
    singles: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Oracle:
    """Acquisition-conditioned oracle on training rows.

    X (n, p) features, NaN where missing; y, weight (n,)
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    n_classes: int
    items: Items
    mixture: Mixture
    seed: int

    @cached_property
    def _filled(self):
        """Training rows with the mean for missing values."""
        return np.nan_to_num(self.X)

    @cached_property
    def _tie(self):
        """(n,) small numbers that break ties of distances at random."""
        return np.random.default_rng(self.seed).random(len(self.X)) * 1e-9

    @cached_property
    def _rows_of_class(self):
        code = self.y.astype(np.int64) if self.n_classes else np.zeros(len(self.y), np.int64)
        used = self.weight > 0.0
        return [np.flatnonzero((code == k) & used) for k in range(max(self.n_classes, 1))]

    def start(self, x):
        """State of a row with values x (p,) of which only what is free may be looked at."""
        items = self.items
        nothing = np.zeros(len(items), bool), np.zeros(len(items.network), bool)
        return self._after(*nothing, (), x)

    def buy(self, state, item, x):
        """State after a purchase, with the values x (p,) of the items that are now measured."""
        return self._after(state.measured, state.paid, (item,), x)

    def _after(self, measured, paid, bought, x):
        items = self.items
        measured, paid = (one[0] for one in items.closed(measured, paid, items.one_hot([bought])))
        return State(np.where(measured[items.column_item], x, np.nan), measured, paid)

    def predict(self, state):
        """Probabilities (K,), or mean and standard deviation (2,), from what is known."""
        columns = state.columns
        return self.mixture.predict(state.x[columns, None], columns, self.n_classes)[:, 0]

    def points(self, state):
        """Positions (k,) and weights (k,) of the training rows that stand for a row.

        The nearest rows of each class, weighted by its probability; or of all, for a number.
        """
        columns = state.columns
        d = squared_distances(state.x, self.X, columns) + self._tie
        share = self.predict(state) if self.n_classes else np.ones(1)
        classes = [k for k, s in enumerate(share) if s >= LEAST_SHARE]
        count = -(-POINTS // len(classes))
        points, weights = [], []
        for k in classes:
            rows = self._rows_of_class[k]
            if len(rows) > count:
                rows = rows[np.argpartition(d[rows], count)[:count]]
            w = self.weight[rows]
            points.append(rows)
            weights.append(share[k] * w / w.sum())
        weights = np.concatenate(weights)
        return np.concatenate(points), weights / weights.sum()

    def decide(self, state, trade_off, limit=np.inf, myopic=False):
        """Return the Decision at a price of loss per unit of price, within a limit of the price."""
        points, weight = self.points(state)
        search = _Search(self, state, points, weight, trade_off, limit)
        rest = np.flatnonzero(~state.measured)
        now = search.losses([()])[0] @ weight
        singles = search.add([(g,) for g in rest])
        table = rest, search.price[: len(rest)], search.loss[: len(rest)]
        if not myopic and singles:
            rng = np.random.default_rng([self.seed, *np.flatnonzero(state.measured)])
            search.add(_candidates(rest, search.total[: len(rest)], rng))
            search.exchange(rest)
        best = search.best()
        if best is None or search.total[best] >= now:
            return Decision(-1, (), (now, now), table)
        chosen = search.sets[best]
        first = chosen[0] if len(chosen) == 1 else search.first(chosen)
        return Decision(first, chosen, (now, search.loss[best]), table)


class _Search:
    """Candidate sets of a decision, with price and expected loss."""

    def __init__(self, oracle, state, points, weight, trade_off, limit):
        self.oracle, self.state, self.points, self.weight = oracle, state, points, weight
        self.trade_off, self.limit = trade_off, limit
        self.have = oracle.items.price(state.paid)
        self.sets, self.price, self.loss = [], np.empty(0), np.empty(0)
        self.total = np.empty(0)
        self._known, self.y = set(), oracle.y[points]
        # Features that were measured and are missing stay unknown.
        self._lost = state.measured[oracle.items.column_item] & np.isnan(state.x)

    def losses(self, sets, after=()):
        """Loss (C, k) of candidate sets at the points, each bought after some items."""
        oracle, state = self.oracle, self.state
        measured, _ = oracle.items.closed(state.measured, state.paid, self._with(sets, after))
        known = measured[:, oracle.items.column_item] & ~self._lost
        start = np.append(0, np.cumsum(known.sum(axis=1)))
        columns, mixture = np.nonzero(known)[1].copy(), oracle.mixture
        found = state.x, oracle._filled, self.points, self.y
        return candidate_losses(*found, columns, start, mixture.arrays, mixture.label)

    def prices(self, sets, after=()):
        """Price (C,) of candidate sets beyond what is paid."""
        items = self.oracle.items
        return items.price(items.pay(self.state.paid, self._with(sets, after))) - self.have

    def _with(self, sets, after):
        return self.oracle.items.one_hot([(*after, *one) for one in sets])

    def add(self, sets):
        """Add candidates that are new; return whether there are any."""
        sets = [one for one in map(tuple, map(sorted, sets)) if one not in self._known]
        sets = list(dict.fromkeys(sets))
        if not sets:
            return False
        self._known |= set(sets)
        price, loss = self.prices(sets), self.losses(sets) @ self.weight
        self.sets += sets
        self.price, self.loss = np.append(self.price, price), np.append(self.loss, loss)
        total = np.where(price <= self.limit + 1e-9, loss + self.trade_off * price, np.inf)
        self.total = np.append(self.total, total)
        return True

    def best(self):
        """Position of the best candidate that can be paid, or None."""
        if not len(self.total) or not np.isfinite(self.total).any():
            return None
        return int(np.argmin(self.total))

    def exchange(self, rest):
        """Try sets that differ from the best in one item, until none is better."""
        for _ in range(ROUNDS):
            best = self.best()
            if best is None:
                return
            one = self.sets[best]
            more = [(*one, g) for g in rest if g not in one]
            less = [tuple(h for h in one if h != g) for g in one if len(one) > 1]
            if not self.add(more + less) or self.best() == best:
                return

    def first(self, chosen):
        """The item of the best set to buy first: that which tells most about what to buy next.

        After each, every point gets the candidate set that is best for the points with similar
        values of that item.
        """
        order = np.argsort(self.total, kind="stable")[:LOOKS]
        follow = [(), *(self.sets[k] for k in order if np.isfinite(self.total[k]))]
        values = []
        for g in chosen:
            columns = np.flatnonzero(self.oracle.items.column_item == g)
            x = self.oracle._filled[self.points][:, columns]
            d = ((x[:, None] - x[None]) ** 2).sum(axis=2)
            np.fill_diagonal(d, np.inf)
            near = np.argpartition(d, min(NEAR, len(d) - 1), axis=1)[:, :NEAR]
            price = self.prices(follow, (g,))
            total = self.losses(follow, (g,)) + self.trade_off * price[:, None]
            total[price > self.limit + 1e-9] = np.inf
            w = self.weight[near]
            nearby = (total[:, near] * w).sum(axis=2) / w.sum(axis=1)
            picked = nearby.argmin(axis=0)
            values.append(self.weight @ total[picked, np.arange(len(picked))])
        return chosen[int(np.argmin(values))]


def _candidates(rest, total, rng):
    """Candidate sets: pairs of the best items, and random sets."""
    top = rest[np.argsort(total, kind="stable")[:PAIRED]]
    out = [(g, h) for i, g in enumerate(top) for h in top[:i]]
    most = min(len(rest), 6)
    out += [
        tuple(rng.choice(rest, rng.integers(2, most + 1), replace=False))
        for _ in range(RANDOM if most > 1 else 0)
    ]
    return out
