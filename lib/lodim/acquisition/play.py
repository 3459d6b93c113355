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
    """Items bought for a row, in order; price and resources spent (1 + R,); and the prediction."""

    items: tuple[int, ...]
    spent: np.ndarray
    answer: np.ndarray
    state: State


@dataclass(frozen=True, eq=False)
class Player:
    """Plays a policy on rows; rows of which the same is known get the same purchase.

    limit : (1 + R,) most to spend per row, or None
    """

    oracle: Oracle
    trade_off: float
    limit: np.ndarray | None = None
    myopic: bool = False

    def play(self, X, own=None):
        """Return what is Played for rows X (n, p); `own`: their positions among training rows."""
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
    """Return the trade-off at which rows X (n, p) cost at most this on average.

    own (n,) : their positions among the training rows; limit : as of Player
    """
    low, high = 1e-9, 1e6  # of the standardized response's loss per unit of price
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        played = Player(oracle, middle, limit).play(X, own)
        dear = np.mean([one.spent[0] for one in played]) > mean_price
        low, high = (middle, high) if dear else (low, middle)
    return high


def finished(oracle, items, state):
    """Return what is Played once purchases have led to a state."""
    return Played(tuple(items), oracle.items.spent(state.paid), oracle.predict(state), state)


def buy_all(oracle, X, items):
    """Return what is Played for rows X (n, p) if items (n, k) are bought, in this order."""
    return [
        finished(oracle, bought, oracle.buy(oracle.start(x), bought, x))
        for x, bought in zip(X, items.tolist(), strict=True)
    ]


def fixed_order(oracle):
    """Return the order (G,) of items that, for all rows alike, saves most loss per unit of price.

    One item after the other, by the predictor's loss on training rows.
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
