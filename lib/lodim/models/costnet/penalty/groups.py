"""Penalty of a dependency graph: norms of overlapping groups of coefficients, and their layout."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


@dataclass(frozen=True, eq=False)
class Groups:
    """Group penalty sum_g cost_g ||w_g||_2 over q coefficients; each copy of a column has its own.

    feature : (q,) int64, column of X that a coefficient belongs to
    node : (q,) int64, node of the dependency graph that owns it; -1 without a graph
    cost : (G,) float64, positive weights of the G groups
    start : (G + 1,) int64, group g has the entries start[g] to start[g + 1] of `member`
    member : int64, positions of coefficients; a group follows all groups that it contains
    crossed : (G,) bool, whether a smaller group is partly within it
    sign : (q,) float64, required sign of each coefficient, 1 or -1, or 0 without one; or None
    Coefficients in no group are free.
    """

    feature: np.ndarray
    node: np.ndarray
    cost: np.ndarray
    start: np.ndarray
    member: np.ndarray
    crossed: np.ndarray
    sign: np.ndarray | None = None

    @classmethod
    def from_network(cls, network, dependents="all", p=None, monotone=None):
        """Return the penalty of a dependency graph: one group for each node with a price.

        If no node has a price, each node with columns gets price 1; otherwise there would be no
        penalty, and the path would consist of the full model. A free column with a given sign costs
        as much as the cheapest group, because free coefficients have no bounds.

        Parameters
        ----------
        network : Network
            Prices of nodes (columns and purchases), and what each needs.
        dependents : {'all', 'direct'}
            A node's group: the node and everything that needs it, or only its children (Fiterau
            2014, Eq. 5.1).
        p : int or None
            Number of columns of X; None: as many as the network has. Columns of no node are free.
        monotone : tuple (p,) or None
            Required signs of the coefficients of columns: 1, -1, or 0 without one.

        Returns
        -------
        Groups
            Groups with the same members are merged, and their costs added.
        """
        node = [v for v, columns in enumerate(network.columns) for _ in columns]
        feature = [j for columns in network.columns for j in columns]
        p = max(feature, default=-1) + 1 if p is None else p
        rest = sorted(set(range(p)) - set(feature))
        members: list[set[int]] = [set() for _ in network.names]
        for j, v in enumerate(node):
            members[v].add(j)
        owned = [frozenset(positions) for positions in members]
        for v in range(len(network) - 1, -1, -1):
            for u in network.children[v]:
                members[v] |= members[u] if dependents == "all" else owned[u]
        cost_of: dict[frozenset, float] = {}
        charge = network.cost if network.cost.any() else [float(len(on) > 0) for on in owned]
        for positions, cost in zip(members, charge, strict=True):
            if positions and cost > 0.0:
                key = frozenset(positions)
                cost_of[key] = cost_of.get(key, 0.0) + float(cost)
        node += [-1] * len(rest)
        known, sign = np.array(feature + rest, np.int64), None
        if monotone is not None:
            sign = np.array(monotone, np.float64)[known]
            paid, signed = frozenset().union(*cost_of), frozenset(np.flatnonzero(sign).tolist())
            least = min(cost_of.values(), default=1.0)
            cost_of |= {on: least for on in owned if on & signed - paid}
        return cls._from_sets(known, np.array(node, np.int64), cost_of, sign)

    @classmethod
    def weighted_lasso(cls, cost, network=None, monotone=None):
        """Return the penalty sum_j cost_j |w_j| of columns with costs (p,); cost 0: free."""
        cost = np.asarray(cost, np.float64)
        node = np.full(len(cost), -1, np.int64)
        for v, columns in enumerate(network.columns if network else ()):
            node[[j for j in columns if node[j] < 0]] = v
        cost_of = {frozenset([j]): float(cost[j]) for j in np.flatnonzero(cost > 0.0).tolist()}
        sign = None if monotone is None else np.array(monotone, np.float64)
        return cls._from_sets(np.arange(len(cost)), node, cost_of, sign)

    @classmethod
    def _from_sets(cls, feature, node, cost_of, sign):
        """Return Groups from a dict of sets of coefficients and their costs, smaller sets first."""
        # Contained groups are smaller; equal sizes are sorted by first member.
        sets = sorted(cost_of, key=lambda positions: (len(positions), min(positions)))
        cost = np.array([cost_of[positions] for positions in sets], np.float64)
        start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        member = np.array([j for positions in sets for j in sorted(positions)], np.int64)
        return cls(feature, node, cost, start, member, _crossed(sets, len(feature)), sign)

    def __len__(self):
        return len(self.cost)

    def same_as(self, other):
        """Return whether the penalty equals that of other Groups."""
        names = ("feature", "cost", "start", "member")
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)

    @property
    def nested(self):
        """Whether any two groups are disjoint, or one contains the other."""
        return not self.crossed.any()

    @property
    def q(self):
        """Number of coefficients."""
        return len(self.feature)

    @property
    def free(self):
        """Which coefficients are in no group, (q,) bool."""
        out = np.ones(self.q, bool)
        out[self.member] = False
        return out

    @property
    def group_of_member(self):
        """Group of each entry of `member`, the list of coefficients of all groups."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def members(self, g):
        """Return the positions of the coefficients in group g."""
        return self.member[self.start[g] : self.start[g + 1]]


def _crossed(sets, q):
    """Return which sets of positions overlap a smaller set without containing it, (G,) bool.

    The sets are sorted, smaller ones first.
    """
    crossed = np.zeros(len(sets), bool)
    last = np.full(q, -1, np.int64)  # largest group of each coefficient so far
    for g, positions in enumerate(sets):
        crossed[g] = any(not sets[h] <= positions for h in {int(last[j]) for j in positions} - {-1})
        last[list(positions)] = g
    return crossed


@dataclass(frozen=True, eq=False)
class Layout:
    """Order of the A penalized coefficients in kernels, block by block.

    A block consists of groups that overlap each other; within it contained groups come first.

    at : (A,) int64, position in Groups of each coefficient
    block, first : (B + 1,) int64, start of each block's coefficients and groups
    nested : (B,) bool, whether a block's groups form a tree
    start, member, cost : group g has the coefficients member[start[g]:start[g + 1]], as positions
        in this order, and the weight cost[g]
    overlapping : whether some block is not nested, also before a restriction to fewer coefficients
    sign : (A,) required sign of each coefficient, 1 or -1, or 0 without one; or None
    """

    at: np.ndarray
    block: np.ndarray
    first: np.ndarray
    nested: np.ndarray
    start: np.ndarray
    member: np.ndarray
    cost: np.ndarray
    overlapping: bool
    sign: np.ndarray | None

    @classmethod
    def from_groups(cls, groups):
        """Return the Layout of all coefficients that are in groups."""
        G, q = len(groups), groups.q
        group = groups.group_of_member
        link = coo_array((np.ones(len(group)), (group, G + groups.member)), shape=(G + q, G + q))
        _, label = connected_components(link, directed=False)
        at = np.flatnonzero(~groups.free)
        at = at[np.argsort(label[G + at], kind="stable")]
        order = np.argsort(label[:G], kind="stable")
        _, block_of_group = np.unique(label[:G][order], return_inverse=True)
        _, block = np.unique(label[G + at], return_inverse=True)
        position = np.zeros(q, np.int64)
        position[at] = np.arange(len(at))
        size = np.diff(groups.start)[order]
        shift = np.repeat(groups.start[:-1][order] - np.cumsum(np.r_[0, size[:-1]]), size)
        member = position[groups.member[shift + np.arange(len(shift))]]
        n_blocks = len(np.unique(block_of_group))
        nested = np.bincount(block_of_group, groups.crossed[order], n_blocks) == 0.0
        of_groups = block_of_group, size, member, groups.cost[order]
        sign = None if groups.sign is None else groups.sign[at]
        return cls._sorted(at, block, *of_groups, nested, not nested.all(), sign)

    @classmethod
    def _sorted(cls, at, block, block_of_group, size, member, cost, nested, overlapping, sign):
        """Return a Layout of coefficients and groups sorted by block (groups that overlap).

        Empty blocks are left out."""
        kept, width = np.unique(block, return_counts=True)
        _, n_groups = np.unique(block_of_group, return_counts=True)
        block, first, start = (np.cumsum(np.r_[0, count]) for count in (width, n_groups, size))
        return cls(at, block, first, nested[kept], start, member, cost, overlapping, sign)

    def restrict(self, keep):
        """Return the Layout of only the coefficients with `keep` (A,); the others are zero."""
        blocks = np.arange(len(self.nested))
        block_of_group = np.repeat(blocks, np.diff(self.first))
        block = np.repeat(blocks, np.diff(self.block))
        stays = keep[self.member]
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        size = np.bincount(group[stays], minlength=len(self.cost))
        left = size > 0
        member = (np.cumsum(keep) - 1)[self.member[stays]]
        of_groups = block_of_group[left], size[left], member, self.cost[left]
        sign = None if self.sign is None else self.sign[keep]
        at = self.at[keep], block[keep]
        return Layout._sorted(*at, *of_groups, self.nested, self.overlapping, sign)

    @cached_property
    def assigned_group(self):
        """Most expensive group that contains each coefficient, (A,) int64."""
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        order = np.argsort(self.cost[group], kind="stable")
        out = np.zeros(len(self.at), np.int64)
        out[self.member[order]] = group[order]
        return out

    @property
    def arrays(self):
        """Arrays of the layout as a tuple, the form in which compiled functions take it.

        `nested` is None if all groups are nested, `sign` is None without required signs."""
        groups = self.start, self.member, self.cost
        nested = self.nested if self.overlapping else None
        return self.block, self.first, nested, *groups, self.assigned_group, self.sign
