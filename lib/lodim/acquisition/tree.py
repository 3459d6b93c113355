"""Step: the next purchase for a row. Tree: the most frequent orders of purchases."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from lodim.acquisition.play import Played
from lodim.report.tables import Table, listing
from lodim.text import counted

LEAST_SHARE = 0.04  # of all rows in a branch
MOST_BRANCHES = 3
CUTS = 24  # quantiles of a number that are tried as limits of branches
GAIN = 0.02  # least fall of the impurity, of 1, for another branch
PURE = 0.8  # share of rows with the same next purchase from which no further question is asked
QUESTIONS = 2  # further questions about measured values before a purchase


@dataclass(frozen=True, eq=False)
class Node:
    """Node of a tree of purchases: a purchase, a question about known values, or an end."""

    # "buy"; "ask" (a question about measured values); "stop"; or "more" (depth is reached)
    kind: str
    items: tuple[str, ...]
    # mean price of the features in `items`; in "stop" and "more" nodes, of all purchases
    price: float
    # rows, share: number of rows that reach the node, and their share of all rows
    rows: int
    share: float
    answer: np.ndarray  # mean prediction of these rows
    # pairs of a text (feature and range of values) and a Node
    branches: tuple[tuple[str, "Node"], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """Most frequent orders in which a policy buys features; branches are ranges of their values.

    Attributes
    ----------
    root : Node
    agreement : float
        Share of the policy's decisions, up to the depth of the tree, that agree with the tree.
    heads : list of str
        Names of the predicted values of a node: the classes, or "fit" (mean) and "se" (its SD).

    See Also
    --------
    Policy.tree, Policy.plot

    Examples
    --------
    >>> import lodim as ld
    >>> tree = ld.acquire("cultivar ~ .", ld.data("wine")[::2]).tree(depth=1)
    >>> str(tree).splitlines()[0].startswith("measure")
    True
    """

    root: Node
    agreement: float
    heads: list[str]

    def __repr__(self) -> str:
        return "\n".join(self._lines(self.root, ""))

    def _lines(self, node, indent):
        rows = counted(node.rows, "row")
        if node.kind in ("stop", "more"):
            return [f"{indent}{node.kind}: {words_of(self.heads, node.answer)} ({rows})"]
        lines = []
        if node.kind == "buy":
            names = ", then ".join(node.items)
            lines = [f"{indent}measure {names}, price {node.price:.4g} ({rows})"]
        for text, branch in node.branches:
            lines += [f"{indent}  {text}:", *self._lines(branch, indent + "    ")]
        return lines


def words_of(heads, answer):
    """Return a prediction as text: a number, "5 ± 1", or the likeliest class, "Barolo, 93%".

    heads : ["fit", "se"] for a number, else the classes
    answer : mean and SD of the number, or the probabilities of the classes"""
    if heads == ["fit", "se"]:
        return f"{answer[0]:.3g} ± {answer[1]:.2g}"
    k = int(np.argmax(answer))
    return f"{heads[k]}, {answer[k]:.0%}"


def grow(policy, X: np.ndarray, played: list[Played], depth: int) -> Tree:
    """Build a tree of the purchases that a policy most often makes for rows X.

    played : simulated purchases of each row; depth : largest number of purchases on a path"""
    growing = _Growing(policy, X, played)
    root = growing.node(np.arange(len(X)), (), depth)
    total = sum(min(len(one.items) + 1, depth) for one in played)
    return Tree(root, growing.agreeing / total, [str(name) for name in policy._heads])


class _Growing:
    def __init__(self, policy, X, played):
        self.policy, self.X, self.played = policy, X, played
        self.items = policy._oracle.items
        self.answers = np.array([policy._shown(one.answer) for one in played])
        self.agreeing = 0

    def action(self, row, k):
        bought = self.played[row].items
        return bought[k] if k < len(bought) else -1

    def node(self, rows, bought, depth, questions=QUESTIONS):
        """Build the tree of the next purchases for rows at positions `rows`; return its top Node.

        bought : columns that all these rows have bought, in this order
        depth : largest number of further purchases on a path
        questions : largest number of splits before the next purchase"""
        k = len(bought)
        actions = np.array([self.action(r, k) for r in rows])
        item, count = Counter(actions.tolist()).most_common(1)[0]
        size = {"rows": len(rows), "share": len(rows) / len(self.X)}
        answer = self.answers[rows].mean(axis=0)
        if bought and questions and depth and count < PURE * len(rows):
            parts = self._branches(rows, bought, actions)
            if len(parts) > 1:
                below = [(t, self.node(rows[at], bought, depth, questions - 1)) for t, at in parts]
                return Node("ask", (), 0.0, answer=answer, branches=tuple(below), **size)
        self.agreeing += count if depth else 0
        same = rows[actions == item]
        if item < 0 or depth == 0:
            spent = float(np.mean([self.played[r].spent[0] for r in rows]))
            return Node("stop" if item < 0 else "more", (), spent, answer=answer, **size)
        nothing, ends = np.zeros(len(self.items.network), bool), (bought, (*bought, item))
        paid = [self.items.pay(nothing, self.items.one_hot(*items))[0] for items in ends]
        price = float(self.items.price(paid[1]) - self.items.price(paid[0]))
        after = np.array([self.action(r, k + 1) for r in same])
        below = [
            (text, self.node(same[at], (*bought, item), depth - 1))
            for text, at in self._branches(same, (*bought, item), after)
        ]
        items = (self.items.names[item],)
        if len(below) == 1 and below[0][1].kind == "buy":  # always one after the other
            after = below[0][1]
            items, price, below = (*items, *after.items), price + after.price, after.branches
        return Node("buy", items, price, answer=answer, branches=tuple(below), **size)

    def _branches(self, rows, bought, actions):
        """Split rows at positions `rows` by a bought column that separates their next purchases.

        bought : columns to choose from
        actions : column that each row buys next, -1 for none
        Return branches, pairs (text such as "age below 50", positions in `rows`)."""
        coded = pd.Series(actions).astype("category").cat.codes.to_numpy()
        # What follows counts most; the prediction separates branches that go on alike.
        spread = max(self.answers.std(), 1e-9)
        target = np.hstack([np.eye(coded.max() + 1)[coded], 0.2 * self.answers[rows] / spread])
        found = [self._cut(rows, item, target) for item in reversed(bought)]
        _, item, groups, cuts = min(found, key=lambda one: one[0])
        ends = [0, *cuts, len(groups)]
        return [
            (self._text(item, groups, lo, hi), np.concatenate([at for _, at in groups[lo:hi]]))
            for lo, hi in pairwise(ends)
        ]

    def _cut(self, rows, item, target):
        """Find the best split of rows by one data column; return (impurity, item, groups, cuts).

        item : position of the column
        target : (rows, q) values to be similar within a branch
        groups : result of `_groups`
        cuts : positions in `groups` where further branches start"""
        groups, cuts = self._groups(rows, np.flatnonzero(self.items.column_item == item)), []
        least = max(2, int(LEAST_SHARE * len(self.X)))
        now = _impurity(target, groups, cuts, 0)
        while len(cuts) < MOST_BRANCHES - 1:
            others = [c for c in range(1, len(groups)) if c not in cuts]
            found = [(_impurity(target, groups, [*cuts, c], least), c) for c in others]
            lower, cut = min(found, default=(np.inf, 0))
            if now - lower < GAIN:
                break
            now, cuts = lower, sorted([*cuts, cut])
        return now, item, groups, cuts

    def _groups(self, rows, columns):
        """Group rows at positions `rows` by the values of one data column.

        columns : features made from the data column
        Return sorted pairs (level or range of numbers, positions in `rows`)."""
        design = self.policy.design
        levels = getattr(design.terms[design.term_of[columns[0]]][0], "levels", None)
        X = self.X[np.ix_(rows, columns)] * design.scale[columns] + design.mean[columns]
        if levels is not None:
            code = X.argmax(axis=1)
            if len(columns) < len(levels):  # the first level has no column
                code = np.where(X.max(axis=1) < 0.5, 0, code + len(levels) - len(columns))
            code[np.isnan(X).any(axis=1)], levels = len(levels), [*levels, "missing"]
            score = self.answers[rows][:, -1 if self.policy.levels else 0]
            found = [(levels[c], np.flatnonzero(code == c)) for c in np.unique(code)]
            return sorted(found, key=lambda one: score[one[1]].mean())
        x = X[:, 0]
        seen = x[~np.isnan(x)]
        cuts = np.unique(np.quantile(seen, np.linspace(0, 1, CUTS + 1)[1:-1])) if len(seen) else []
        code = np.where(np.isnan(x), len(cuts) + 1, np.searchsorted(cuts, x, side="right"))
        return [
            ((x[code == c].min(), x[code == c].max()), np.flatnonzero(code == c))
            for c in np.unique(code)
        ]

    def _text(self, item, groups, lo, hi):
        name = self.items.names[item]
        if hi - lo == len(groups):
            return "always"
        if not isinstance(groups[0][0], tuple):
            return f"{name}: " + " or ".join(str(value) for value, _ in groups[lo:hi])
        n = len(groups) - int(np.isnan(groups[-1][0][0]))
        if lo == n or (lo, hi) == (0, n):
            return f"{name} {'missing' if lo == n else 'known'}"
        low, high = (
            None if k in (0, n) else _between(groups[k - 1][0][1], groups[k][0][0])
            for k in (lo, min(hi, n))
        )
        if low is None:
            return f"{name} below {high}"
        last = f"or more{', or missing' if hi > n else ''}" if high is None else f"to {high}"
        return f"{name} {low} {last}"


def _impurity(target, groups, cuts, least):
    """Return the mean squared distance of rows of `target` (rows, q) to the mean of their branch.

    groups : list of (level or range of numbers, positions in `target`)
    cuts : positions in `groups` where further branches start
    least : number of rows that each branch needs, else the result is inf"""
    total, ends = 0.0, [0, *sorted(cuts), len(groups)]
    for lo, hi in pairwise(ends):
        at = np.concatenate([g[1] for g in groups[lo:hi]])
        if len(at) < least:
            return np.inf
        total += ((target[at] - target[at].mean(axis=0)) ** 2).sum()
    return total / len(target)


def _between(low, high):
    """Return text of a number above `low` and at most `high`, with as few digits as possible."""
    values = (float(f"{(low + high) / 2:.{digits}g}") for digits in range(1, 16))
    return f"{next((value for value in values if low < value <= high), high):.15g}"


@dataclass(frozen=True, repr=False)
class Step:
    """The next purchase for a partly measured row (`buy`), or the advice to stop (None).

    Attributes
    ----------
    options : DataFrame
        One row per unknown feature: feature; price; saving (expected fall of the loss from this
        feature alone); buy (True for the next purchase); together (True for the set of features
        with the best trade-off of loss and price); unlocks (features that become cheaper with it).
    prediction : Series
        Probabilities by class; or fit and se, the mean and standard deviation of a number.
    loss : float
        Expected loss if nothing more is bought.
    measure : str
        What the loss is: "log-loss" or "squared error".
    free : tuple of str
        Unknown features without price or resource use; `loss` and savings assume them known.
    limited : bool
        Whether a budget limits the purchases.

    See Also
    --------
    Policy.next

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine")
    >>> step = ld.acquire("cultivar ~ .", wine[::2]).next({"alcohol": 13.0})
    >>> step.buy in wine.columns
    True
    """

    options: pd.DataFrame
    prediction: pd.Series
    loss: float
    measure: str
    free: tuple[str, ...]
    limited: bool

    @property
    def buy(self) -> str | None:
        """Feature to buy next; None to stop."""
        first = self.options["feature"][self.options["buy"].astype(bool)]
        return None if first.empty else str(first.iloc[0])

    @property
    def price(self) -> float:
        """Price of the next purchase; 0 to stop."""
        return float(self.options["price"][self.options["buy"].astype(bool)].sum())

    def __repr__(self) -> str:
        advice = "Buy nothing" if self.free else "Stop"
        title = f"{advice}: no purchase {'within the budget ' * self.limited}is worth its price"
        if self.options.empty:
            title = "Stop: all features are known"
        if self.buy is not None:
            title = f"Next: {self.buy}, price {self.price:g}"
        more = self.options["feature"][self.options["together"] & ~self.options["buy"]].tolist()
        lines = [f"Then possibly: {', '.join(more)}"] if more else []
        shown = ", ".join(f"{name} {value:.3g}" for name, value in self.prediction.items())
        lines += [f"Prediction: {shown}", f"Expected {self.measure}: {self.loss:.4g}"]
        if self.free:
            lines.append(f"Free, measure first: {', '.join(self.free)}")
        if self.options.empty:
            return "\n".join([title, *lines])
        frame = self.options.set_index("feature").rename_axis(None)[["price", "saving", "unlocks"]]
        frame.columns = ["Price", "Saving alone", "Unlocks"]
        text = listing("", lines, Table("", frame), whole="options").split("\n")
        return "\n".join([title, *text[3:]])
