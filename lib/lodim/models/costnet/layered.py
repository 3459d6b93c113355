"""Where the nodes of a dependency graph are drawn: in layers from left to right."""

from collections import Counter

import numpy as np

ROWS = 12  # of single nodes above which they take another column


def places(parents, order):
    """Layer (n,) and height (n,) of each node, no two at one place.

    parents : (n,) tuples of positions, parents before children
    order : (n,) which of two nodes is drawn above the other
    """
    layer, height = layers(parents), np.zeros(len(parents))
    needed = {u for found in parents for u in found}
    single = [v for v, found in enumerate(parents) if not found and v not in needed]
    joined = [v for v in range(len(parents)) if v not in set(single)]
    at = {v: k for k, v in enumerate(joined)}
    height[joined] = heights([[at[u] for u in parents[v]] for v in joined],
                             [order[v] for v in joined])  # fmt: skip
    below = height[joined].max() + 1.25 if joined else 0.0
    columns = max(int(layer.max(initial=0)) + 1, -(-len(single) // ROWS))
    rows = -(-len(single) // columns)
    for k, v in enumerate(sorted(single, key=lambda v: order[v])):
        layer[v], height[v] = k // rows, below + k % rows
    return layer, height


def layers(parents):
    """Layer of each node, (n,): one beyond its last parent."""
    layer = np.zeros(len(parents), np.int64)
    for v, found in enumerate(parents):
        layer[v] = max((layer[u] + 1 for u in found), default=0)
    return layer


def heights(parents, order):
    """Height of each node, (n,): a slot for each end of the graph, others amid their children.

    A node hangs on one parent alone, the first that is drawn, so that nothing crosses where there
    is one; its other parents are drawn next to that one.
    """
    n = len(parents)
    roots = _together([v for v in range(n) if not len(parents[v])], parents, order)
    rank = {v: k for k, v in enumerate(roots)}
    hung: list[list[int]] = [[] for _ in range(n)]
    for v, found in enumerate(parents):
        if len(found):
            first = min(found, key=lambda u: rank[u])
            rank[v] = rank[first]
            hung[first].append(v)
    height, slot = np.zeros(n), 0
    stack = [(v, False) for v in reversed(roots)]
    while stack:
        v, seen = stack.pop()
        if seen:
            height[v] = np.mean([height[u] for u in hung[v]])
        elif hung[v]:
            below = sorted(hung[v], key=lambda u: order[u], reverse=True)
            stack += [(v, True), *((u, False) for u in below)]
        else:
            height[v], slot = slot, slot + 1
    return height


def _together(roots, parents, order):
    """Roots in order, each followed by those that it has most below in common with."""
    above = [{v} if not len(found) else set() for v, found in enumerate(parents)]
    for v, found in enumerate(parents):
        above[v].update(*(above[u] for u in found))
    common = {v: Counter(u for found in above if v in found for u in found) for v in roots}
    out: dict[int, None] = {}
    for root in sorted(roots, key=lambda v: order[v]):
        stack = [root]
        while stack:
            v = stack.pop()
            if v not in out:
                out[v] = None
                near = sorted(common[v], key=lambda u: (common[v][u], -order[u]))
                stack += [u for u in near if u not in out]
    return list(out)
