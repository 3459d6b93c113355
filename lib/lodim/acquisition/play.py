"""Purchases for complete rows: by the policy, in a fixed order, or in a random one."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from lodim.acquisition.oracle import Oracle, State
from lodim.engine.blocks import available_threads

ROWS = 500  # training rows on which the fixed order is chosen
HALVINGS = 12  # of the range of trade-offs in the search for one


@dataclass(frozen=True, eq=False)
class Played:
    """What a policy has bought for a row, and the prediction.

    items : columns bought, in order; spent (1 + R,) : price and use of R resources
    answer : prediction; state : what is known of the row at the end"""

    items: tuple[int, ...]
    spent: np.ndarray
    answer: np.ndarray
    state: State


@dataclass(frozen=True, eq=False)
class Player:
    """Player of a policy on rows; rows of which the same is known get the same purchase.

    trade_off : loss that one unit of price must save
    limit : (1 + R,) most to spend per row on price and R resources, or None
    myopic : whether to look at single features only
    """

    oracle: Oracle
    trade_off: float
    limit: np.ndarray | None = None
    myopic: bool = False

    def play(self, X, own=None):
        """Return a Played (purchases and prediction) for each of the rows X (n, p).

        own : their positions among training rows, if they are such"""
        own, known = np.full(len(X), -1) if own is None else own, {}
        with ThreadPoolExecutor(available_threads()) as pool:
            return list(pool.map(lambda i: self._play(X[i], int(own[i]), known), range(len(X))))

    def _play(self, x, own, known):
        oracle, items = self.oracle, []
        state = oracle.start(x, own)
        while not state.measured.all():
            if not len(state.columns):  # nothing is known: all rows get the same purchase
                state = replace(state, own=-1)
            key = state.x.tobytes(), state.measured.tobytes(), state.paid.tobytes(), state.own
            if key not in known:
                known[key] = self._next(state)
            item = known[key]
            if item < 0:
                break
            items.append(item)
            state = replace(oracle.buy(state, (item,), x), own=own)
        return finished(oracle, items, state)

    def _next(self, state):
        left = None if self.limit is None else self.limit - self.oracle.items.spent(state.paid)
        return self.oracle.decide(state, self.trade_off, left, self.myopic).item


def trade_off_for(mean_price, oracle, X, own, limit):
    """Return the trade-off at which rows X (n, p) cost at most `mean_price` on average.

    The trade-off is the loss that one unit of price must save. own (n,) : positions of the rows
    among the training rows; limit : (1 + R,) most to spend per row on price and R resources, or
    None
    """
    low, high = 1e-9, 1e6  # of the standardized response's loss per unit of price
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        played = Player(oracle, middle, limit).play(X, own)
        dear = np.mean([one.spent[0] for one in played]) > mean_price
        low, high = (middle, high) if dear else (low, middle)
    return high


def finished(oracle, items, state):
    """Return the Played (purchases and prediction) of a row whose purchases led to a state."""
    return Played(tuple(items), oracle.items.spent(state.paid), oracle.predict(state), state)


def buy_all(oracle, X, items):
    """Return a Played (purchases and prediction) for each of the rows X (n, p).

    For each row the items (columns) in items (n, k) are bought, in this order."""
    return [
        finished(oracle, bought, oracle.buy(oracle.start(x), bought, x))
        for x, bought in zip(X, items.tolist(), strict=True)
    ]


def fixed_order(oracle):
    """Return the order (G,) of items that, for all rows alike, saves most loss per unit of price.

    Items are columns of the data; they are added one after the other, by the predictor's loss on
    training rows.
    """
    items = oracle.items
    rows = np.flatnonzero(oracle.weight > 0.0)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(int))]
    V, y = np.ascontiguousarray(oracle._filled[rows].T), oracle.y[rows]
    weight = oracle.weight[rows] / oracle.weight[rows].sum()

    def loss(measured):
        columns = np.flatnonzero(measured[items.column_item])
        return oracle.mixture.losses(V[columns], y, columns) @ weight

    start = oracle.start(np.full(V.shape[0], np.nan))
    measured, paid, order = start.measured, start.paid, list(np.flatnonzero(start.measured))
    while not measured.all():
        rest = np.flatnonzero(~measured)
        sets = np.eye(len(measured), dtype=bool)[rest]
        after, paid_after = items.closed(measured, paid, sets)
        now, price = loss(measured), items.price(paid_after) - items.price(paid)
        value = [now - loss(one) for one in after] / np.maximum(price, 1e-12)
        best = int(np.argmax(value))
        order += [rest[best], *np.flatnonzero(after[best] & ~measured & ~sets[best])]
        measured, paid = after[best], paid_after[best]
    return np.array(order, np.int64)
