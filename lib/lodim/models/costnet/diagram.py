"""Diagram of a costnet fit: the items to buy, what they need, and which models buy them."""

from dataclasses import dataclass, replace
from textwrap import wrap

import numpy as np

from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.prices.build import derived_names
from lodim.report.tables import significant
from lodim.text import shorten


@dataclass(frozen=True)
class Box:
    """Box of the diagram: an item (column, term, purchase) or a series of alternative items."""

    text: str  # name
    parents: tuple[int, ...]  # positions of the boxes that it needs
    step: int  # number on the frontier of the cheapest model that contains it; 0 if none does
    chosen: bool  # whether the model used by predict() needs it
    series: bool = False  # whether it represents a series


def graph(fit, ax, *, most=30):
    """Draw at most `most` items (such as columns), and lines to the items that each needs."""
    if fit.estimates.frontier is None:
        raise ArgumentError("a fit of one lambda_ has no frontier to draw")
    every = _boxes(fit)
    boxes = _select(every, most)
    if not boxes:
        raise ArgumentError("this fit has no item with a price to draw")
    last = len(fit.estimates.frontier.cost) + 1
    layer, height = places([b.parents for b in boxes], [b.step or last for b in boxes])
    width = np.zeros(layer.max() + 1)
    np.maximum.at(width, layer, [len(b.text) + 3.0 for b in boxes])
    left = np.r_[0.0, np.cumsum(width + 8.0)]  # layers are eight characters apart
    inches = 0.082 * left[-1] + 0.75, 0.33 * (height.max() + 1.0) + 0.7
    ax = axes.ensure_axes(ax, (max(5.0, inches[0]), max(2.2, inches[1])))
    _draw(ax, boxes, left[layer], height, width[layer], fit.estimates.frontier.cost)
    hidden = len(every) - len(boxes)
    all_unbought = sum(not b.step for b in every) - sum(not b.step for b in boxes) == hidden
    title = "thick frame: item of the model that predict() uses"
    title += "" if all(b.step for b in boxes) else "; grey: in no model"
    if hidden:
        title += f"; {hidden} more items are {'in no model' if all_unbought else 'not shown'}"
    ax.set_title("\n".join(wrap(title, int(11 * ax.figure.get_figwidth()))), fontsize=8)
    return ax


def _boxes(fit):
    """Return a Box per item and per set of alternatives; needed boxes come first."""
    network, derived = fit.settings.network, derived_names(fit.design)
    series = [name for name, _ in fit.settings.alternatives]
    at, boxes, bases = {}, [], np.unique(network.base)
    names = shorten([network.names[b].replace("\n", " ") for b in bases], 26)
    for b, name in zip(bases, names, strict=True):
        copies = np.flatnonzero(network.base == b)
        needs_of_copy = [{int(network.base[u]) for u in network.parents[v]} for v in copies]
        always = set.intersection(*needs_of_copy)
        needs = [at[u] for u in sorted(always)]
        for k in sorted(
            {int(network.series[u]) for u in set.union(*needs_of_copy) - always} - {-1}
        ):
            if series[k] not in at:
                sources = [at[int(u)] for u in np.flatnonzero(network.series == k)]
                at[series[k]] = len(boxes)
                boxes.append(Box(f"one for {series[k]}", tuple(sources), 0, False, True))
            needs.append(at[series[k]])
        price = network.cost[b]
        free = price == 0.0 and network.names[b] in derived
        text = name + ("" if free else f" · {significant(float(price))}")
        has = fit.estimates.frontier.bought[:, copies].any(axis=1)
        step = int(has.argmax()) + 1 if has.any() else 0
        chosen = bool(fit.step.bought[copies].any())
        at[int(b)] = len(boxes)
        boxes.append(Box(text, tuple(needs), step, chosen))
        for k in needs:
            if boxes[k].series:  # a series has the earliest step of the items that need it
                first = min((s for s in (boxes[k].step, step) if s), default=0)
                boxes[k] = replace(boxes[k], step=first, chosen=boxes[k].chosen or chosen)
    return boxes


def _select(boxes, most):
    """Return at most `most` boxes, preferably of predict()'s model, then of cheap models."""
    if len(boxes) <= most:
        return boxes
    most = min(most, sum(box.step > 0 for box in boxes) or most)
    # Boxes that no model needs are omitted.
    rank = [(not box.chosen, box.step or np.inf, k) for k, box in enumerate(boxes)]
    at = {k: i for i, k in enumerate(sorted(k for *_, k in sorted(rank)[:most]))}
    return [
        replace(boxes[k], parents=tuple(at[u] for u in boxes[k].parents if u in at)) for k in at
    ]


def _draw(ax, boxes, x, y, width, cost):
    """Draw boxes of `width` (n,) at (x, y), connecting lines, and a colour bar of prices `cost`."""
    shades = ax.scatter([], [], c=[], cmap="viridis", vmin=1, vmax=max(2, len(cost)))
    end = max((x + width).max(), 40.0)  # few characters would be drawn too large
    fit_in = 72.0 * ax.figure.get_figwidth() * 0.8 / end / 0.62
    size = float(np.clip(fit_in, 4.0, 8.5))
    for k, box in enumerate(boxes):
        for u in box.parents:
            t, start = np.linspace(0.0, 1.0, 30), x[u] + width[u]
            thick = box.chosen and boxes[u].chosen
            style = {"color": "black", "lw": 1.1} if thick else {"color": axes.GREY, "lw": 0.6}
            curve = y[u] + (y[k] - y[u]) * t * t * (3.0 - 2.0 * t)
            ax.plot(start + (x[k] - start) * t, curve, zorder=1, **style)
    for k, box in enumerate(boxes):
        face = shades.to_rgba(box.step) if box.step else (0.94, 0.94, 0.94, 1.0)
        dark = 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] < 0.5
        edge = {"edgecolor": "black" if box.chosen else axes.GREY}
        edge["linewidth"] = 1.8 if box.chosen else 0.6
        line = {"linestyle": "--" if box.series else "-", "zorder": 2}
        ax.barh(y[k], width[k], 0.72, x[k], color=face, **edge, **line)
        font = {"fontsize": size, "style": "italic" if box.series else "normal"}
        font |= {"color": "white" if dark else "black", "parse_math": False, "zorder": 3}
        ax.text(x[k] + width[k] / 2.0, y[k], box.text, ha="center", va="center", **font)
    ax.set_xlim(-1.0, end + 1.0)
    ax.set_ylim(max(y.max(), 2.0) + 0.6, y.min() - 0.6)
    ax.set_axis_off()
    if any(box.step for box in boxes):
        at = np.unique(np.linspace(1, len(cost), min(8, len(cost))).round().astype(int))
        bar = ax.figure.colorbar(shades, ax=ax, pad=0.02, fraction=0.06, ticks=at)
        bar.set_ticklabels([significant(float(cost[k - 1])) for k in at])
        bar.set_label("price of the first model with the item", fontsize=8)
        bar.ax.tick_params(labelsize=8)


def places(parents, order):
    """Return the layer (n,) and the height (n,) at which to draw each node of a graph.

    parents : per node, positions of its parents, which come before it
    order : (n,) sort key of the nodes; the smallest is drawn highest"""
    layer, height = np.zeros(len(parents), np.int64), np.zeros(len(parents))
    for v, nodes in enumerate(parents):  # a node is one layer after its parents
        layer[v] = max((layer[u] + 1 for u in nodes), default=0)
    needed = {u for nodes in parents for u in nodes}
    single = [v for v, nodes in enumerate(parents) if not nodes and v not in needed]
    joined = [v for v in range(len(parents)) if v not in set(single)]
    at = {v: k for k, v in enumerate(joined)}
    joined_parents = [[at[u] for u in parents[v]] for v in joined]
    height[joined] = heights(joined_parents, [order[v] for v in joined])
    below = height[joined].max() + 1.25 if joined else 0.0
    columns = max(int(layer.max(initial=0)) + 1, -(-len(single) // 12))  # of at most 12 rows
    rows = -(-len(single) // columns)
    for k, v in enumerate(sorted(single, key=lambda v: order[v])):
        layer[v], height[v] = k // rows, below + k % rows
    return layer, height


def heights(parents, order):
    """Return the height (n,) at which to draw each node of a graph.

    parents : per node, positions of its parents, which come before it
    order : (n,) sort key of the nodes; the smallest is drawn highest"""
    n = len(parents)
    roots = sorted((v for v in range(n) if not len(parents[v])), key=lambda v: order[v])
    rank = {v: k for k, v in enumerate(roots)}
    hung: list[list[int]] = [[] for _ in range(n)]
    for v, nodes in enumerate(parents):
        if len(nodes):
            first = min(nodes, key=lambda u: rank[u])
            rank[v] = rank[first]
            hung[first].append(v)
    visited, stack = [], roots[::-1]
    while stack:
        visited.append(stack.pop())
        stack += sorted(hung[visited[-1]], key=lambda u: order[u], reverse=True)
    leaves, height = [v for v in visited if not hung[v]], np.zeros(n)
    height[leaves] = np.arange(len(leaves))
    for v in reversed(visited):
        if hung[v]:
            height[v] = np.mean(height[hung[v]])
    return height
