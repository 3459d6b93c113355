"""Loss against price of a policy and of simpler rules, on rows with known responses."""

import numpy as np
import pandas as pd

from lodim.acquisition.kernels import LEAST
from lodim.acquisition.play import Player, buy_all, fixed_order
from lodim.errors import ArgumentError

SHARES = (16.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1)  # of the trade-off of a policy, along its curve
PREFIXES = 9  # lengths of the fixed and of the random order


def measure(policy, X, y, kinds, trade_offs):
    """Return a frame of mean price, loss, its standard error and accuracy, by rule of purchase.

    kinds : rules, such as "policy", "myopic" (one feature at a time) or "random"
    X (n, p), y (n,) : standardized rows; trade_offs : loss that one unit of price must save
    """
    oracle, n, G = policy._oracle, len(X), len(policy._oracle.items)
    rng = np.random.default_rng(policy.seed)
    rows = []
    for kind in kinds:
        if kind in ("policy", "myopic"):
            runs = [
                (a, Player(oracle, a / policy._loss_unit, None, kind == "myopic").play(X))
                for a in trade_offs
            ]
        else:
            shuffled = rng.random((n, G)).argsort(axis=1)
            order = np.tile(fixed_order(oracle), (n, 1)) if kind == "fixed" else shuffled
            lengths = np.unique(np.linspace(0, G, PREFIXES).round().astype(int))
            lengths = lengths[-1:] if kind == "all" else lengths
            runs = [(np.nan, buy_all(oracle, X, order[:, :k])) for k in lengths]
        for trade_off, played in runs:
            price = float(np.mean([one.spent[0] for one in played]))
            rows.append([kind, trade_off, price, *_losses(policy, played, y)])
    names = ["policy", "trade_off", "price", "loss", "se", "accuracy"]
    return pd.DataFrame(rows, columns=names)


def _losses(policy, played, y):
    """Return the mean loss of predictions, its standard error, and accuracy (NaN for a number).

    played : purchases and prediction of each row; y : true responses"""
    answers = np.array([one.answer for one in played])
    if policy.levels:
        loss = -np.log(np.maximum(answers[np.arange(len(y)), y.astype(int)], LEAST))
        return _mean(loss, float((answers.argmax(axis=1) == y).mean()))
    return _mean((answers[:, 0] - y) ** 2 * policy._loss_unit, np.nan)


def _mean(loss, accuracy):
    se = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else np.nan
    return float(loss.mean()), float(se), accuracy


def of_frontier(policy, fit, data, rows, y):
    """Return price, loss, its standard error and accuracy of each model of a costnet fit.

    rows (n,) : positions in the data; y (n,) codes of the classes, or numbers in their own units
    """
    if fit.levels != policy.levels:
        raise ArgumentError(
            f"frontier must be a costnet fit of the same response {policy.design.response.name!r}"
        )
    found = []
    for price in fit.prices()["cost"]:
        model = fit.at(budget=price)
        if policy.levels:
            P = np.asarray(model.predict(data, "prob"))[rows]
            loss = -np.log(np.maximum(P[np.arange(len(y)), y.astype(int)], LEAST))
            measures = _mean(loss, float((P.argmax(axis=1) == y).mean()))
        else:
            measures = _mean((np.asarray(model.predict(data)).ravel()[rows] - y) ** 2, np.nan)
        found.append(["frontier", np.nan, float(price), *measures])
    return pd.DataFrame(found, columns=["policy", "trade_off", "price", "loss", "se", "accuracy"])
