"""Groups: the penalty of a network, as norms of overlapping sets of coefficients."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True, eq=False)
class Groups:
    """sum_g cost_g ||w_g||_2 over q coefficients, of which every copy of a column has its own.

    feature : (q,) int64, column of X that a coefficient belongs to
    node : (q,) int64, node of the network that owns it; -1 without a network
    cost : (G,) float64, above zero
    start : (G + 1,) int64, group g has the members start[g] to start[g + 1]
    member : int64, positions of coefficients; a group comes after all groups within it
    parent : (G,) int64, where nested the smallest group around each, -1 at the top
    crossed : (G,) bool, whether a smaller group is partly within it
    p : number of columns of X

    Coefficients in no group are free.
    """

    feature: np.ndarray
    node: np.ndarray
    cost: np.ndarray
    start: np.ndarray
    member: np.ndarray
    parent: np.ndarray
    crossed: np.ndarray
    p: int

    def __len__(self):
        return len(self.cost)

    @property
    def nested(self):
        """Whether any two groups are disjoint or one within the other."""
        return not self.crossed.any()

    @property
    def q(self):
        """Number of coefficients."""
        return len(self.feature)

    @property
    def free(self):
        """(q,) bool, which coefficients are in no group."""
        out = np.ones(self.q, bool)
        out[self.member] = False
        return out

    def of(self, g):
        """Positions of the members of a group."""
        return self.member[self.start[g] : self.start[g + 1]]

    def penalty(self, w):
        """sum_g cost_g ||w_g|| of coefficients (q, K)."""
        if not len(self):
            return 0.0
        square = (w * w).sum(axis=1)[self.member]
        return float(self.cost @ np.sqrt(np.add.reduceat(square, self.start[:-1])))

    def columns(self, w):
        """Coefficients (p, K) of the columns, the sums of their copies, of coefficients (q, K)."""
        out = np.zeros((self.p, w.shape[1]))
        np.add.at(out, self.feature, w)
        return out


def groups(network, closure="all", p=None):
    """The penalty of a network: a group of every node that costs.

    Parameters
    ----------
    network : Network
    closure : {'all', 'direct'}
        A node's group: it and all that need it, or only its children (thesis, Eq. 5.1).
    p : int or None
        Number of columns of X; None: as many as the network names. Columns of no node are free.

    Returns
    -------
    Groups
        Groups of the same members are one, with the sum of their costs.
    """
    node = [v for v, columns in enumerate(network.columns) for _ in columns]
    feature = [j for columns in network.columns for j in columns]
    p = max(feature, default=-1) + 1 if p is None else p
    rest = sorted(set(range(p)) - set(feature))
    bought: list[set[int]] = [set() for _ in network.names]
    for j, v in enumerate(node):
        bought[v].add(j)
    own = [frozenset(found) for found in bought]
    for v in range(len(network) - 1, -1, -1):
        for u in network.children[v]:
            bought[v] |= bought[u] if closure == "all" else own[u]
    shares: dict[frozenset, float] = {}
    for found, cost in zip(bought, network.cost, strict=True):
        if found and cost > 0.0:
            key = frozenset(found)
            shares[key] = shares.get(key, 0.0) + float(cost)
    return _made(
        np.array(feature + rest, np.int64), np.array(node + [-1] * len(rest), np.int64), shares, p
    )  # fmt: skip


def singles(cost, network=None):
    """The penalty sum_j cost_j |w_j| of a weighted lasso over p columns; cost 0 is free."""
    cost = np.asarray(cost, np.float64)
    p = len(cost)
    node = np.full(p, -1, np.int64)
    for v, columns in enumerate(network.columns if network else ()):
        node[[j for j in columns if node[j] < 0]] = v
    shares = {frozenset([j]): float(cost[j]) for j in np.flatnonzero(cost > 0.0).tolist()}
    return _made(np.arange(p), node, shares, p)


def _made(feature, node, shares, p):
    """Groups of members and costs, the smaller first."""
    # A group within another is smaller; equal sizes in order of the first member, for a stable end.
    order = sorted(shares, key=lambda found: (len(found), min(found)))
    member = [sorted(found) for found in order]
    start = np.cumsum([0, *map(len, member)], dtype=np.int64)
    parent, crossed = _parents(order, len(feature))
    return Groups(
        feature=feature, node=node, cost=np.array([shares[found] for found in order], np.float64),
        start=start, member=np.array([j for found in member for j in found], np.int64),
        parent=parent, crossed=crossed, p=p,
    )  # fmt: skip


def _parents(order, q):
    """A smallest group around each, or -1, and which groups cross a smaller one."""
    parent, crossed = np.full(len(order), -1, np.int64), np.zeros(len(order), bool)
    last = np.full(q, -1, np.int64)  # the largest group so far of each coefficient
    for g, found in enumerate(order):
        for h in {int(last[j]) for j in found} - {-1}:
            if order[h] <= found:
                parent[h] = g if parent[h] < 0 else parent[h]
            else:
                crossed[g] = True
        last[list(found)] = g
    return parent, crossed


@dataclass(frozen=True, eq=False)
class Layout:
    """A of the coefficients of Groups, those of a block (groups that touch) side by side.

    at : (A,) int64, position in Groups of each
    block, first : (B + 1,) int64, where each block's coefficients and groups begin
    nested : (B,) bool, whether a block's groups form a tree
    start, member, cost : groups as in Groups, members as positions here
    """

    at: np.ndarray
    block: np.ndarray
    first: np.ndarray
    nested: np.ndarray
    start: np.ndarray
    member: np.ndarray
    cost: np.ndarray

    @cached_property
    def bearer(self):
        """(A,) int64, the dearest group of each coefficient."""
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        order = np.argsort(self.cost[group], kind="stable")
        out = np.zeros(len(self.at), np.int64)
        out[self.member[order]] = group[order]
        return out

    @property
    def tree(self):
        """What the kernels take."""
        return (
            self.block, self.first, self.nested, self.start, self.member, self.cost, self.bearer
        )  # fmt: skip


def whole(groups):
    """The Layout of all coefficients that are in groups."""
    G, q = len(groups), groups.q
    group = np.repeat(np.arange(G), np.diff(groups.start))
    link = coo_array((np.ones(len(group)), (group, G + groups.member)), shape=(G + q, G + q))
    _, label = connected_components(link, directed=False)
    at = np.flatnonzero(~groups.free)
    at = at[np.argsort(label[G + at], kind="stable")]
    by = np.argsort(label[:G], kind="stable")
    _, of = np.unique(label[:G][by], return_inverse=True)
    _, block = np.unique(label[G + at], return_inverse=True)
    where = np.zeros(q, np.int64)
    where[at] = np.arange(len(at))
    size = np.diff(groups.start)[by]
    first = np.repeat(groups.start[:-1][by] - np.cumsum(np.r_[0, size[:-1]]), size)
    member = where[groups.member[first + np.arange(len(first))]]
    nested = np.bincount(of, groups.crossed[by], len(np.unique(of))) == 0.0
    return _packed(at, block, of, size, member, groups.cost[by], nested)


def part(layout, keep):
    """The Layout of the coefficients with `keep` (A,) alone, where the others are zero."""
    blocks = np.arange(len(layout.nested))
    of = np.repeat(blocks, np.diff(layout.first))
    stays = keep[layout.member]
    group = np.repeat(np.arange(len(layout.cost)), np.diff(layout.start))
    size = np.bincount(group[stays], minlength=len(layout.cost))
    there = size > 0
    return _packed(
        layout.at[keep], np.repeat(blocks, np.diff(layout.block))[keep], of[there], size[there],
        (np.cumsum(keep) - 1)[layout.member[stays]], layout.cost[there], layout.nested,
    )  # fmt: skip


def _packed(at, block, of, size, member, cost, nested):
    """A Layout of coefficients and groups that are sorted by block; empty blocks are left out."""
    there, width = np.unique(block, return_counts=True)
    _, count = np.unique(of, return_counts=True)
    return Layout(
        at=at, block=np.cumsum(np.r_[0, width]), first=np.cumsum(np.r_[0, count]),
        nested=nested[there], start=np.cumsum(np.r_[0, size]), member=member, cost=cost,
    )  # fmt: skip
