"""Simulated purchases for complete rows: by the policy, in a fixed or in a random order."""

from dataclasses import replace

import numpy as np

from lodim.engine.blocks import each

ROWS = 500  # training rows on which the fixed order is chosen
HELD_OUT = 400  # training rows on which the contamination is chosen
CONTAMINATIONS = (0.0, 0.01, 0.02, 0.05)  # values tried
HALVINGS = 12  # of the range of trade-offs in the search for one


class Played:
    """Simulated purchases for a row, in order, and the prediction (`answer`) after them.

    spent : array of the total price, then the use of each resource, such as minutes"""

    def __init__(self, oracle, items, state):
        self.items, self.state = tuple(items), state
        self.spent = oracle.items.spent(state.paid)
        self.answer = oracle.predict(state)


def play(oracle, X, trade_off, *, own=None, limit=None, myopic=False):
    """Simulate a policy that buys one column after another, for each row; return a list of Played.

    X : (n, p) all features of the rows
    trade_off : loss that one unit of price must save
    own : (n,) position of each row in the training data; -1 (default) for new rows
    limit : budgets (price, resources) or None
    myopic : whether to compare single columns, not sets"""
    own, known = np.full(len(X), -1) if own is None else own, {}

    def play_row(i):
        items, state = [], oracle.start(X[i], int(own[i]))
        while not state.measured.all():
            if not len(state.columns):  # nothing is known: all rows get the same purchase
                state = replace(state, own=-1)
            key = state.x.tobytes(), state.measured.tobytes(), state.paid.tobytes(), state.own
            if key not in known:
                left = None if limit is None else limit - oracle.items.spent(state.paid)
                known[key] = oracle.decide(state, trade_off, left, myopic).item
            item = known[key]
            if item < 0:
                break
            items.append(item)
            state = replace(oracle.buy(state, (item,), X[i]), own=int(own[i]))
        return Played(oracle, items, state)

    return each(play_row, range(len(X)), len(X) * oracle.X.size)


def play_within(mean_price, oracle, X, own, limit):
    """Simulate purchases for rows X at a mean price of up to `mean_price`; return a list of Played.

    X : (n, p) all features of the rows
    own : positions of the training rows on which the trade-off of loss and price is tuned
    limit : budgets (price, resources) or None"""
    trade_offs = [1e-9, 1e6]  # loss of the standardized response per unit of price
    prices = [np.inf, 0.0]
    for _ in range(HALVINGS):
        middle = np.sqrt(np.prod(trade_offs))
        played = play(oracle, oracle.X[own], middle, own=own, limit=limit)
        price = np.mean([one.spent[0] for one in played])
        at = 0 if price > mean_price else 1
        trade_offs[at], prices[at] = middle, price
    # If no trade-off was too expensive, share is 0, and all rows use the lowest one.
    share = (mean_price - prices[1]) / (prices[0] - prices[1])
    cheap = np.random.default_rng(oracle.seed).random(len(X)) >= share
    parts = [iter(play(oracle, X[cheap == k], a, limit=limit)) for k, a in enumerate(trade_offs)]
    return [next(parts[int(k)]) for k in cheap]


def choose_contamination(oracle, fold, settings, trade_off):
    """Choose the share of outliers that a Gaussian mixture assumes, by held-out loss; return it.

    fold : (n,) fold that holds out each row, -1 for none
    settings : dict of the mixture's settings
    trade_off : loss that one unit of price must save"""
    # Outliers offset overconfidence: a policy stops buying if a prediction looks certain by chance.
    rows = np.random.default_rng(oracle.seed).permutation(np.flatnonzero(fold >= 0))[:HELD_OUT]
    scales = [(*oracle.mixture.arrays[-1][:2], share) for share in CONTAMINATIONS]
    total = np.zeros(len(scales))
    for k in np.unique(fold[rows]):
        test, rest = rows[fold[rows] == k], fold != k
        X, y, weight = oracle.X[rest], oracle.y[rest], oracle.weight[rest]
        fit = oracle.mixture.refit(X, y, weight, oracle.seed, settings)
        other = replace(oracle, X=X, y=y, weight=weight, mixture=fit)
        played = play(other, oracle.X[test], trade_off, myopic=True)
        for i, one in zip(test, played, strict=True):
            columns = one.state.columns
            V = one.state.x[columns, None]
            losses = fit.losses(V, oracle.y[i : i + 1], columns, scales)
            total += oracle.weight[i] * losses[:, 0]
    return CONTAMINATIONS[np.argmin(total.round(9))]  # rounding: none if nothing is bought


def buy_all(oracle, X, items):
    """Simulate buying columns items[i] (positions) for each row i of X; return a list of Played."""
    return [
        Played(oracle, bought, oracle.buy(oracle.start(x), bought, x))
        for x, bought in zip(X, items.tolist(), strict=True)
    ]


def fixed_order(oracle):
    """Return positions of columns in greedy order of purchase: most loss saved per price first."""
    items = oracle.items
    rows = np.flatnonzero(oracle.weight > 0.0)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(int))]
    V, y = oracle.filled.take(rows, axis=1), oracle.y[rows]
    weight = oracle.weight[rows] / oracle.weight[rows].sum()

    def loss(measured):
        columns = np.flatnonzero(measured[items.column_item])
        return oracle.mixture.losses(V[columns], y, columns)[0] @ weight

    start = oracle.start(np.full(V.shape[0], np.nan))
    measured, paid, order = start.measured, start.paid, list(np.flatnonzero(start.measured))
    while not measured.all():
        rest = np.flatnonzero(~measured)
        sets = np.eye(len(measured), dtype=bool)[rest]
        after, paid_after = items.after_buying(measured, paid, sets)
        now, price = loss(measured), items.price(paid_after) - items.price(paid)
        value = [now - loss(one) for one in after] / np.maximum(price, 1e-12)
        best = int(np.argmax(value))
        order += [rest[best], *np.flatnonzero(after[best] & ~measured & ~sets[best])]
        measured, paid = after[best], paid_after[best]
    return np.array(order, np.int64)
