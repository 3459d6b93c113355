"""The next purchase for a row: the set of columns with the least expected loss plus price."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodim.acquisition.items import Items
from lodim.acquisition.kernels import candidate_losses, condition, squared_distances
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
    """What is known about one row while its columns are bought one by one.

    x : (features,) values, NaN if unknown
    measured : (columns,) bool, known data columns
    paid : (purchases,) bool
    own : position among the training rows, -1 for a new row"""

    x: np.ndarray
    measured: np.ndarray
    paid: np.ndarray
    own: int = -1

    @property
    def columns(self):
        return np.flatnonzero(~np.isnan(self.x))


@dataclass(frozen=True, eq=False)
class Decision:
    """Next purchase for a row, and the numbers on which it is based."""

    item: int  # position of the column to buy, -1 to stop
    chosen: tuple[int, ...]  # positions of the columns of the best set
    loss: tuple[float, float]  # expected loss without any purchase, and with the best set
    # positions, prices and expected losses of the unknown columns, each bought alone
    singles: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Oracle:
    """Chooser of the next purchase for a row, by similar training rows (Valancius et al. 2024)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    n_classes: int
    items: Items
    mixture: Mixture
    seed: int

    @cached_property
    def _columns(self):
        return np.ascontiguousarray(self.X.T)

    @cached_property
    def filled(self):
        """Features (p, n) of the training rows, with the mean in place of missing values."""
        return np.nan_to_num(self._columns)

    @cached_property
    def _tie(self):
        """Small random numbers (n,), added to distances so that no two rows tie."""
        return np.random.default_rng(self.seed).random(len(self.X)) * 1e-9

    @cached_property
    def _rows_of_class(self):
        """Positions of the training rows with weight, per class; a numeric y has one list."""
        used = self.weight > 0.0
        parts = [used & (self.y == k) for k in range(self.n_classes)] or [used]
        return [np.flatnonzero(part) for part in parts]

    def start(self, x, own=-1):
        """Return the State of a row before the first purchase, when only free columns are known.

        x : (features,) all values of the row; own : position of a training row, or -1"""
        items = self.items
        nothing = State(x, np.zeros(len(items), bool), np.zeros(len(items.network), bool), own)
        return self.buy(nothing, (), x)

    def buy(self, state, bought, x):
        """Return the State after buying the columns at positions `bought`; x : the row's values."""
        items = self.items
        found = items.after_buying(state.measured, state.paid, items.one_hot(*bought))
        measured, paid = found[0][0], found[1][0]
        return State(np.where(measured[items.column_item], x, np.nan), measured, paid, state.own)

    def predict(self, state):
        """Return class probabilities (K,), or mean and SD (2,), for a row in a given State."""
        columns = state.columns
        return self.mixture.predict(state.x[columns, None], columns, self.n_classes)[:, 0]

    def points(self, state):
        """Return the training rows most similar to a partly known row: positions and weights.

        state : State, the known part of the row. A class's weights add up to its probability"""
        columns = state.columns
        d = squared_distances(state.x, self._columns, columns) + self._tie
        share = self.predict(state) if self.n_classes else np.ones(1)
        classes = [k for k, s in enumerate(share) if s >= LEAST_SHARE]
        count = -(-POINTS // len(classes))
        points, weights = [], []
        for k in classes:
            rows = self._rows_of_class[k]
            if state.own >= 0 and len(rows) > 1:
                rows = rows[rows != state.own]
            if len(rows) > count:
                rows = rows[np.argpartition(d[rows], count)[:count]]
            w = self.weight[rows]
            points.append(rows)
            weights.append(share[k] * w / w.sum())
        weights = np.concatenate(weights)
        return np.concatenate(points), weights / weights.sum()

    def decide(self, state, trade_off, limit=None, myopic=False):
        """Choose the column to buy next for a row, or to stop; return a Decision.

        trade_off : loss that one unit of price must save
        limit : remaining budgets (price, resources) or None
        myopic : whether to compare single columns instead of sets"""
        points, weight = self.points(state)
        search = _Search(self, state, points, weight, trade_off, limit)
        rest = np.flatnonzero(~state.measured)
        search.add(np.vstack([np.zeros_like(state.measured), search.alone[rest]]))
        now = search.loss[0]
        search.total[0] = np.inf
        table = rest, search.price[1:], search.loss[1:]
        if not myopic and len(rest):
            rng = np.random.default_rng([self.seed, *np.flatnonzero(state.measured)])
            search.add(_candidates(rest, search.total[1:], len(state.measured), rng))
            for _ in range(ROUNDS):
                best = int(np.argmin(search.total))
                others = search.sets[best] ^ search.alone[rest]
                search.add(others[others.any(axis=1)])
                if np.argmin(search.total) == best:
                    break
        best = int(np.argmin(search.total))
        if search.total[best] >= now:
            return Decision(-1, (), (now, now), table)
        chosen = np.flatnonzero(search.sets[best])
        first = chosen[0] if len(chosen) == 1 else search.first(chosen)
        return Decision(int(first), tuple(chosen.tolist()), (now, search.loss[best]), table)


class _Search:
    """Search for the best set of columns to buy for a row.

    sets : (sets, columns) bool, tried so far
    total : (sets,) expected loss + trade-off * price, infinite above budget"""

    def __init__(self, oracle, state, points, weight, trade_off, limit):
        self.oracle, self.state, self.weight = oracle, state, weight
        self.trade_off, self.limit = trade_off, limit
        self.have = oracle.items.spent(state.paid)
        self.values = oracle.filled.take(points, axis=1)
        self.alone = np.eye(len(state.measured), dtype=bool)
        self.sets = self.alone[:0]
        self._losses = []
        self.price = self.loss = self.total = np.empty(0)
        self._position = {}
        # Features that were measured and are missing stay unknown.
        self._new = ~state.measured[oracle.items.column_item]
        known = state.x, state.columns
        self._given = condition(*known, np.flatnonzero(self._new), oracle.mixture.arrays)

    def add(self, sets):
        """Compute price and expected loss of sets of columns not yet tried; add them to self.sets.

        sets : (sets, columns) bool; return the position in self.sets of each of them"""
        oracle, state, position, new = self.oracle, self.state, self._position, []
        bits = np.packbits(sets, axis=1)
        keys = bits.view(f"V{bits.shape[1]}")[:, 0].tolist()
        for k, key in enumerate(keys):
            if key not in position:
                position[key] = len(position)
                new.append(k)
        if new:
            sets = sets[new]
            measured, paid = oracle.items.after_buying(state.measured, state.paid, sets)
            spent = oracle.items.spent(paid) - self.have
            bought = measured[:, oracle.items.column_item] & self._new
            start, columns = np.append(0, bought.sum(axis=1).cumsum()), np.nonzero(bought)[1].copy()
            predictor = self._given, oracle.mixture.arrays, oracle.mixture.label
            losses = candidate_losses(self.values, columns, start, *predictor)
            price, loss = spent[:, 0], losses @ self.weight
            total = loss + self.trade_off * price
            if self.limit is not None:
                total[(spent > self.limit + 1e-9).any(axis=1)] = np.inf
            self._losses.append(losses)
            self.sets = np.concatenate([self.sets, sets])
            self.price = np.concatenate([self.price, price])
            self.loss = np.concatenate([self.loss, loss])
            self.total = np.concatenate([self.total, total])
        return [position[key] for key in keys]

    def first(self, chosen):
        """Return the column of `chosen` to buy first: its value best guides the next purchases."""
        order = np.argsort(self.total, kind="stable")[:LOOKS]
        follow = self.sets[np.append(0, order[np.isfinite(self.total[order])])]
        sets, values = follow | self.alone[chosen][:, None], []
        at = np.reshape(self.add(np.concatenate(sets)), sets.shape[:2])
        total = np.concatenate(self._losses)[at] + self.trade_off * self.price[at][..., None]
        total[np.isinf(self.total[at])] = np.inf
        for g, total_g in zip(chosen, total, strict=True):
            x = self.values[self.oracle.items.column_item == g]
            d = ((x[:, :, None] - x[:, None]) ** 2).sum(axis=0)
            np.fill_diagonal(d, np.inf)
            near = np.argpartition(d, min(NEAR, len(d) - 1), axis=1)[:, :NEAR]
            w = self.weight[near]
            nearby = (total_g[:, near] * w).sum(axis=2) / w.sum(axis=1)
            values.append(total_g[nearby.argmin(axis=0), np.arange(len(d))])
        values = np.array(values)
        worse = values - values[np.argmin(values @ self.weight)]
        mean = worse @ self.weight
        error = np.sqrt((worse - mean[:, None]) ** 2 @ self.weight**2)
        alone = np.searchsorted(np.flatnonzero(~self.state.measured), chosen) + 1
        saving = (self.loss[0] - self.loss[alone]) / np.maximum(self.price[alone], 1e-12)
        return chosen[int(np.argmax(np.where(mean <= error, saving, -np.inf)))]


def _candidates(rest, total, G, rng):
    """Return sets of G columns to try, (sets, G) bool: pairs of good columns, and random sets.

    rest : positions of the unknown columns
    total : expected loss + trade-off * price of buying each of them alone"""
    top = rest[np.argsort(total, kind="stable")[:PAIRED]]
    i, j = np.triu_indices(len(top), 1)
    n = RANDOM if len(rest) > 1 else 0
    out = np.zeros((len(i) + n, G), bool)
    out[np.arange(len(i)), top[i]] = out[np.arange(len(i)), top[j]] = True
    size = rng.integers(2, max(min(len(rest), 6), 2) + 1, n)
    rank = rng.random((n, len(rest))).argsort(axis=1).argsort(axis=1)
    out[len(i) :, rest] = rank < size[:, None]
    return out
