"""Comparison of a policy with simpler rules: loss against price on rows with known responses."""

import numpy as np
import pandas as pd

from lodim.acquisition.kernels import LEAST
from lodim.acquisition.play import buy_all, fixed_order, play
from lodim.errors import ArgumentError

SHARES = (16.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1)  # of the trade-off of a policy, along its curve
PREFIXES = 9  # lengths of the fixed and of the random order


def by_rule(policy, X, y, kinds, trade_offs):
    """Simulate buying columns for test rows X (n, p) under several rules; yield a tuple per run.

    y : (n,) class codes, or standardized numbers
    kinds : rules, of "policy", "myopic", "fixed", "random" and "all"
    trade_offs : loss that one unit of price must save, per run
    Each tuple is (rule, trade-off or NaN, price (n,), loss (n,), hit (n,)).
    Losses are log-losses, or squared errors in original units; hit is 1 if the class is right."""
    oracle, n, G = policy._oracle, len(X), len(policy._oracle.items)
    rng = np.random.default_rng(policy.seed)
    for kind in kinds:
        if kind in ("policy", "myopic"):
            runs = (
                (a, play(oracle, X, a / policy._loss_unit, myopic=kind == "myopic"))
                for a in trade_offs
            )
        else:
            shuffled = rng.random((n, G)).argsort(axis=1)
            order = np.tile(fixed_order(oracle), (n, 1)) if kind == "fixed" else shuffled
            lengths = np.unique(np.linspace(0, G, PREFIXES).round().astype(int))
            lengths = lengths[-1:] if kind == "all" else lengths
            runs = ((np.nan, buy_all(oracle, X, order[:, :k])) for k in lengths)
        for trade_off, played in runs:
            price = np.array([one.spent[0] for one in played])
            answers = np.array([one.answer for one in played])
            loss, hit = _losses(policy.levels, answers, y)
            yield kind, trade_off, price, loss if policy.levels else loss * policy._loss_unit, hit


def frontier_by_row(policy, fit, data, rows, y):
    """Yield price and losses on test rows for each model of a costnet fit, one tuple per model.

    rows : positions of the n test rows in `data`
    y : (n,) class codes, or numbers in original units
    Each tuple is like a tuple of `by_rule`: ("frontier", NaN, price, loss, hit)."""
    if getattr(fit, "name", None) != "costnet" or fit.levels != policy.levels:
        raise ArgumentError(
            f"frontier must be a costnet fit of the same response {policy.design.response.name!r}"
        )
    for price in fit.prices()["cost"]:
        model = fit.at(budget=price)
        answers = np.asarray(model.predict(data, "prob" if policy.levels else "response"))[rows]
        loss, hit = _losses(policy.levels, answers.reshape(len(rows), -1), y)
        yield "frontier", np.nan, np.full(len(rows), float(price)), loss, hit


def summary(runs):
    """Return a table of `runs`, the results of `by_rule`: mean price, loss with SE, accuracy."""
    lines = []
    for kind, trade_off, price, loss, hit in runs:
        se = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else np.nan
        lines.append([kind, trade_off, price.mean(), loss.mean(), se, hit.mean()])
    names = ["policy", "trade_off", "price", "loss", "se", "accuracy"]
    return pd.DataFrame(lines, columns=names)


def _losses(levels, answers, y):
    """Return each row's log-loss and whether its class is right, or its squared error and NaN.

    levels : classes, None for numbers
    answers : (n, K) probabilities, or (n, 1) predicted means"""
    if levels:
        loss = -np.log(np.maximum(answers[np.arange(len(y)), y.astype(int)], LEAST))
        return loss, (answers.argmax(axis=1) == y).astype(float)
    return (answers[:, 0] - y) ** 2, np.full(len(y), np.nan)
