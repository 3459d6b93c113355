"""The penalty of a network: norms of overlapping groups of coefficients, and their layout."""

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
    crossed : (G,) bool, whether a smaller group is partly within it

    Coefficients in no group are free.
    """

    feature: np.ndarray
    node: np.ndarray
    cost: np.ndarray
    start: np.ndarray
    member: np.ndarray
    crossed: np.ndarray

    @classmethod
    def from_network(cls, network, dependents="all", p=None):
        """The penalty of a network: a group of every node that costs.

        Where none does, every node that owns columns is charged the same, 1: a penalty of free
        columns alone would be none, and its path the full model.

        Parameters
        ----------
        network : Network
        dependents : {'all', 'direct'}
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
        return cls._from_sets(np.array(feature + rest, np.int64), np.array(node, np.int64), cost_of)

    @classmethod
    def weighted_lasso(cls, cost, network=None):
        """The penalty sum_j cost_j |w_j| over columns of costs (p,); cost 0 is free."""
        cost = np.asarray(cost, np.float64)
        node = np.full(len(cost), -1, np.int64)
        for v, columns in enumerate(network.columns if network else ()):
            node[[j for j in columns if node[j] < 0]] = v
        cost_of = {frozenset([j]): float(cost[j]) for j in np.flatnonzero(cost > 0.0).tolist()}
        return cls._from_sets(np.arange(len(cost)), node, cost_of)

    @classmethod
    def _from_sets(cls, feature, node, cost_of):
        """Groups of a dict of sets of members and their costs, the smaller sets first."""
        # A group within another is smaller; equal sizes in order of the first member, for a stable
        # end.
        sets = sorted(cost_of, key=lambda positions: (len(positions), min(positions)))
        cost = np.array([cost_of[positions] for positions in sets], np.float64)
        start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        member = np.array([j for positions in sets for j in sorted(positions)], np.int64)
        return cls(feature, node, cost, start, member, _crossed(sets, len(feature)))

    def __len__(self):
        return len(self.cost)

    def same_as(self, other):
        """Whether the penalty is that of other groups."""
        names = ("feature", "cost", "start", "member")
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)

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

    @property
    def group_of_member(self):
        """Group of each entry of `member`."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def members(self, g):
        """Positions of the members of a group."""
        return self.member[self.start[g] : self.start[g + 1]]


def _crossed(sets, q):
    """Which sets of positions (the smaller first) cross a smaller one, (G,) bool."""
    crossed = np.zeros(len(sets), bool)
    last = np.full(q, -1, np.int64)  # the largest group so far of each coefficient
    for g, positions in enumerate(sets):
        crossed[g] = any(not sets[h] <= positions for h in {int(last[j]) for j in positions} - {-1})
        last[list(positions)] = g
    return crossed


@dataclass(frozen=True, eq=False)
class Layout:
    """The order in which kernels see the A coefficients that are in groups: block by block.

    A block holds groups that touch; its groups come from the leaves up.

    at : (A,) int64, position in Groups of each coefficient
    block, first : (B + 1,) int64, where each block's coefficients and groups begin
    nested : (B,) bool, whether a block's groups form a tree
    start, member, cost : groups as in Groups, members as positions here
    overlapping : whether some block's do not, or did before a restriction
    """

    at: np.ndarray
    block: np.ndarray
    first: np.ndarray
    nested: np.ndarray
    start: np.ndarray
    member: np.ndarray
    cost: np.ndarray
    overlapping: bool

    @classmethod
    def from_groups(cls, groups):
        """The Layout of all coefficients that are in groups."""
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
        return cls._sorted(at, block, *of_groups, nested, not nested.all())

    @classmethod
    def _sorted(cls, at, block, block_of_group, size, member, cost, nested, overlapping):
        """A Layout of coefficients and groups sorted by block; empty blocks are left out."""
        kept, width = np.unique(block, return_counts=True)
        _, n_groups = np.unique(block_of_group, return_counts=True)
        block, first, start = (np.cumsum(np.r_[0, count]) for count in (width, n_groups, size))
        return cls(at, block, first, nested[kept], start, member, cost, overlapping)

    def restrict(self, keep):
        """The Layout of the coefficients with `keep` (A,) alone, where the others are zero."""
        blocks = np.arange(len(self.nested))
        block_of_group = np.repeat(blocks, np.diff(self.first))
        block = np.repeat(blocks, np.diff(self.block))
        stays = keep[self.member]
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        size = np.bincount(group[stays], minlength=len(self.cost))
        left = size > 0
        member = (np.cumsum(keep) - 1)[self.member[stays]]
        of_groups = block_of_group[left], size[left], member, self.cost[left]
        return Layout._sorted(self.at[keep], block[keep], *of_groups, self.nested, self.overlapping)

    @cached_property
    def assigned_group(self):
        """(A,) int64, the most expensive group of each coefficient."""
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        order = np.argsort(self.cost[group], kind="stable")
        out = np.zeros(len(self.at), np.int64)
        out[self.member[order]] = group[order]
        return out

    @property
    def arrays(self):
        """Return the arguments of kernels; `nested` is None for disjoint groups."""
        groups = self.start, self.member, self.cost
        nested = self.nested if self.overlapping else None
        return self.block, self.first, nested, *groups, self.assigned_group
