"""Plots of a policy: the tree of its most frequent orders, and loss against price."""

import textwrap

import numpy as np

from lodim.acquisition.tree import words_of
from lodim.plot.axes import GREY, LEGEND_OUTSIDE, colour, ensure_axes, tidy
from lodim.plot.lettering import literal
from lodim.text import counted

ROW, COLUMN = 0.62, 3.0  # inches of a leaf, and of a purchase
WRAP = 22  # characters of a line in the tree
LABELS = {
    "policy": "policy, row by row",
    "myopic": "one feature at a time",
    "fixed": "same features for all rows",
    "random": "random order",
    "all": "all features",
    "frontier": "costnet",
}


@literal
def tree(tree, ax=None):
    """Draw a Tree of purchases from left to right; line widths show shares of rows."""
    places: dict = {}
    n_leaves = _place(tree.root, 0, 0, places)
    depth = max(column for column, _ in places.values())
    ax = ensure_axes(ax, (COLUMN * (depth + 1) + 0.4, ROW * n_leaves + 0.9))
    _draw(tree, tree.root, places, ax)
    ax.set(xlim=(-0.1, depth + 0.75), ylim=(n_leaves - 0.4, -0.75))
    ax.axis("off")
    ax.set_title(
        f"What to measure next ({tree.agreement:.0%} of the policy's decisions)", fontsize=10
    )
    return ax


def _place(node, column, row, places):
    """Fill `places` with (column, row) of a node and of all nodes below; return the next free row.

    column, row : plot column of `node`, and first free row of the plot
    places : dict id(node) -> (column, row)"""
    start = row
    for _, branch in node.branches:
        row = _place(branch, column + 1, row, places)
    row = max(row, start + 1)
    below = [places[id(branch)][1] for _, branch in node.branches]
    places[id(node)] = column, (below[0] + below[-1]) / 2 if below else float(start)
    return row


def _draw(tree, node, places, ax):
    x, y = places[id(node)]
    if node.kind in ("stop", "more"):
        more = " ..." if node.kind == "more" else ""
        text = f"{words_of(tree.heads, node.answer)}{more}\n"
        text += f"{counted(node.rows, 'row')}, paid {node.price:.4g}"
        box = {"boxstyle": "round,pad=0.25", "fc": "#f2f2f2", "ec": GREY, "lw": 0.6}
    elif node.kind == "ask":
        text, box = "", None
    else:
        text = _wrapped(" > ".join(node.items)) + f"\nprice {node.price:.4g}"
        box = {"boxstyle": "round,pad=0.25", "fc": "#dcebf7", "ec": colour(0), "lw": 1.0}
    ax.text(x, y, text, ha="left", va="center", fontsize=8, bbox=box, zorder=3)
    for text, branch in node.branches:
        at, height = places[id(branch)]
        bend = x + (0.36 if node.kind == "buy" else 0.06)
        path = np.array([[x, y], [bend, y], [bend + 0.1, height], [at + 0.01, height]])
        ax.plot(*path.T, color=GREY, lw=0.6 + 5 * branch.share, solid_capstyle="round", alpha=0.55)
        text = "" if len(node.branches) == 1 else _wrapped(text)
        ax.text(bend + 0.12, height - 0.1, text, ha="left", va="bottom", fontsize=7)
        _draw(tree, branch, places, ax)


def _wrapped(text):
    return "\n".join(textwrap.wrap(text, WRAP, max_lines=3, placeholder=" ...")) or text


def curve(frame, policy, ax=None):
    """Draw loss (with standard errors) against mean price; frame : result of policy.curve()."""
    ax = ensure_axes(ax)
    for k, (kind, part) in enumerate(frame.groupby("policy", sort=False)):
        part = part.sort_values("price")
        style = {"marker": "*", "ms": 11, "lw": 0} if kind == "all" else {"marker": "o", "ms": 3}
        ax.plot(part["price"], part["loss"], color=colour(k), label=LABELS[kind], **style)
        if kind in ("policy", "frontier"):
            low, high = part["loss"] - part["se"], part["loss"] + part["se"]
            ax.fill_between(part["price"], low, high, color=colour(k), alpha=0.15, lw=0)
    ax.set_xlabel("mean price per row")
    ax.set_ylabel("log-loss" if policy.levels else "squared error")
    ax.legend(**LEGEND_OUTSIDE)
    return tidy(ax)
