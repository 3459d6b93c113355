"""The order in which kernels see coefficients and groups: block by block, leaves first."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


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
