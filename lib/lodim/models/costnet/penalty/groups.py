"""Penalized groups of coefficients, and the order of coefficients in compiled functions."""

from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lodim.models.costnet.penalty.prox import GroupArrays


class Groups:
    """Penalized groups of coefficients, which may overlap; inner groups come before outer ones.

    A column of X has one coefficient for each node of the Network that owns it; they add up."""

    def __init__(self, feature, cost_of, sign):
        """Sort the groups by size, so that inner groups come before outer ones.

        feature : (q,) column of X of each coefficient
        cost_of : dict from each group, a frozenset of positions of coefficients, to its cost
        sign : (q,) required sign of each coefficient, 1 or -1; 0 if both are allowed"""
        # Contained groups are smaller; equal sizes are sorted by first member.
        sets = sorted(cost_of, key=lambda positions: (len(positions), min(positions)))
        self.feature, self.sign = feature, sign
        # The penalty is sum_g cost_g ||w_g|| over groups g.
        self.cost = np.array([cost_of[positions] for positions in sets], np.float64)
        # Group g has the coefficients member[start[g]:start[g + 1]].
        self.start = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        self.member = np.array([j for positions in sets for j in sorted(positions)], np.int64)
        # Whether a group overlaps a smaller one without containing it
        self.crossed = np.zeros(len(sets), bool)
        last = np.full(len(feature), -1, np.int64)  # largest group of each coefficient so far
        for g, positions in enumerate(sets):
            smaller = {int(last[j]) for j in positions} - {-1}
            self.crossed[g] = any(not sets[h] <= positions for h in smaller)
            last[list(positions)] = g

    @classmethod
    def from_network(cls, network, dependents="all", p=None, monotone=None):
        """Return the Groups of a Network: one per node (column, term or purchase) with a price.

        dependents : whose columns join a node's group: "all" nodes that need it, or only "direct"
        p : number of columns of X
        monotone : (p,) required signs, 1, -1 or 0 for none; or None"""
        # Fiterau 2014, Eq. 5.1. If no node has a price, each node with columns gets price 1.
        feature = [j for columns in network.columns for j in columns]
        p = max(feature, default=-1) + 1 if p is None else p
        rest = sorted(set(range(p)) - set(feature))
        ends = np.cumsum([0, *map(len, network.columns)]).tolist()
        owned = [frozenset(range(*pair)) for pair in pairwise(ends)]
        members = [set(positions) for positions in owned]
        for v in range(len(network) - 1, -1, -1):
            for u in network.children[v]:
                members[v] |= members[u] if dependents == "all" else owned[u]
        cost_of: dict[frozenset, float] = {}
        charge = network.cost if network.cost.any() else [float(len(on) > 0) for on in owned]
        for positions, cost in zip(members, charge, strict=True):
            if positions and cost > 0.0:
                key = frozenset(positions)
                cost_of[key] = cost_of.get(key, 0.0) + float(cost)
        known = np.array(feature + rest, np.int64)  # columns in no node come last
        sign = np.zeros(len(known)) if monotone is None else np.array(monotone, np.float64)[known]
        paid, signed = frozenset().union(*cost_of), frozenset(np.flatnonzero(sign).tolist())
        least = min(cost_of.values(), default=1.0)
        cost_of |= {on: least for on in owned if on & signed - paid}
        return cls(known, cost_of, sign)

    @classmethod
    def weighted_lasso(cls, cost, monotone=None):
        """Return Groups for sum_j cost_j |w_j|; monotone : (p,) required signs of w, or None."""
        cost = np.asarray(cost, np.float64)
        cost_of = {frozenset([j]): float(cost[j]) for j in np.flatnonzero(cost > 0.0).tolist()}
        sign = np.zeros(len(cost)) if monotone is None else np.array(monotone, np.float64)
        return cls(np.arange(len(cost)), cost_of, sign)

    def __len__(self):
        return len(self.cost)

    @property
    def q(self):
        return len(self.feature)

    @property
    def free(self):
        """Which coefficients are in no group, and so not penalized, (q,) bool."""
        out = np.ones(self.q, bool)
        out[self.member] = False
        return out


class Layout(GroupArrays):
    """Groups of penalized coefficients, sorted by block: groups that share coefficients."""

    @classmethod
    def from_groups(cls, groups):
        G, q = len(groups), groups.q
        group = np.repeat(np.arange(G), np.diff(groups.start))
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
        return cls._sorted(at, block, *of_groups, nested, groups.sign[at])

    @classmethod
    def _sorted(cls, at, block, block_of_group, size, member, cost, nested, sign):
        """Make a Layout from coefficients and groups that are sorted by block.

        at, member, cost, sign : fields of GroupArrays
        block, block_of_group : block number of each coefficient and of each group
        size : number of coefficients per group
        nested : bool per block number, whether the block's groups form a tree"""
        kept, width = np.unique(block, return_counts=True)
        _, n_groups = np.unique(block_of_group, return_counts=True)
        block, first, start = (np.cumsum(np.r_[0, count]) for count in (width, n_groups, size))
        group = np.repeat(np.arange(len(cost)), size)
        order, owner = np.argsort(cost[group], kind="stable"), np.zeros(len(at), np.int64)
        owner[member[order]] = group[order]
        return cls(at, block, first, nested[kept], start, member, cost, sign, owner)

    def restrict(self, keep):
        """Return the Layout of only the coefficients marked in `keep`, a bool per coefficient."""
        blocks = np.arange(len(self.nested))
        block_of_group = np.repeat(blocks, np.diff(self.first))
        block = np.repeat(blocks, np.diff(self.block))
        stays = keep[self.member]
        group = np.repeat(np.arange(len(self.cost)), np.diff(self.start))
        size = np.bincount(group[stays], minlength=len(self.cost))
        left = size > 0
        member = (np.cumsum(keep) - 1)[self.member[stays]]
        of_groups = block_of_group[left], size[left], member, self.cost[left]
        at = self.at[keep], block[keep]
        return Layout._sorted(*at, *of_groups, self.nested, self.sign[keep])
