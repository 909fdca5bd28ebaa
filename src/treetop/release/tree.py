"""The released tree: the nodes of every level, from the released leaves and what was left unresolved above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.measure.evidence import Remainders
from treetop.read.counts import pack

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelNodes:
    """The released nodes of one level, in spine order."""

    refined: list[tuple[int, int, Ints]] = field(repr=False)
    """For every attribute that is refined by then: which, how deep, and its node in each released node."""
    count: Ints = field(repr=False)
    """The released counts."""

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False)
class _Entry:
    """What counts are summed from, in spine order: a remainder stands before all that is released below its node."""

    leaf: NDArray[np.integer]
    """For each attribute (row) and entry (column), the leaf, or the first leaf of a remainder's node."""
    count: Ints
    level: NDArray[np.int32] | None
    """How far each is refined; None where all are leaves."""

    def down_to(self, index: int) -> _Entry:
        """Leave out what is not refined so far."""
        if self.level is None:
            return self
        there = self.level >= index
        return _Entry(self.leaf[:, there], self.count[there], self.level[there])


@dataclass(frozen=True, eq=False)
class ReleasedTree:
    """Released leaves and remainders, from which every coarser count is a sum."""

    spine: Spine
    """The public order of refinement."""
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
    count: Ints = field(repr=False)
    """The released count of each leaf, above zero."""
    left: Remainders | None = field(default=None, repr=False)
    """What was left unresolved."""

    def at(self, index: int) -> LevelNodes:
        """Return the nodes above zero at a level of the spine, by its position; the total is 0."""
        entry = self._entries.down_to(index)
        columns = self._columns(entry, index)
        first = np.flatnonzero(_starts(columns, len(entry.count)))
        count = np.add.reduceat(entry.count, first) if len(first) else entry.count[:0]
        return LevelNodes([(attribute, depth, nodes[first]) for attribute, depth, nodes in columns], count)

    def parents(self, index: int) -> Ints:
        """Return, for every released node of a level below the root, which one of the level above it belongs to."""
        entry = self._entries.down_to(index - 1)
        above = np.cumsum(_starts(self._columns(entry, index - 1), len(entry.count))) - 1
        if entry.level is not None:
            above = above[entry.level >= index]
        finer = self._entries.down_to(index)
        parents: Ints = above[_starts(self._columns(finer, index), len(finer.count))]
        return parents

    def children(self, index: int, parent: Ints, node: NDArray[np.integer]) -> Ints:
        """Return which released nodes of a level below the root some children are; −1 where one is not released.

        A child is given by the row of its parent among the released nodes above (−1 for one that is not released) and
        by its node of the attribute that the level refines.
        """
        level = self.spine.levels[index - 1]
        width = self.spine.trees[level.attribute].sizes[level.depth]
        own = {attribute: column for attribute, _, column in self.at(index).refined}[level.attribute]
        released = self.parents(index) * width + own  # in spine order, so they rise
        asked = parent * width + node
        row = np.searchsorted(released, asked)
        there = np.append(released, -1)[row] == asked
        rows: Ints = np.where(there & (parent >= 0), row, -1)
        return rows

    def fanout(self, index: int) -> Ints:
        """Return, for every released node of the level above a level, how many public children it is divided into."""
        level = self.spine.levels[index - 1]
        above = self.at(index - 1)
        node = {attribute: column for attribute, _, column in above.refined}.get(level.attribute)
        node = np.zeros(len(above), np.int64) if node is None else node
        fanout: Ints = level.first[node + 1] - level.first[node]
        return fanout

    def rows(self, index: int) -> Ints:
        """Return which of the released nodes of a level its remainders are left at; both are in spine order."""
        entry = self._entries.down_to(index)
        if entry.level is None:
            return np.empty(0, np.int64)
        node = np.cumsum(_starts(self._columns(entry, index), len(entry.count))) - 1
        rows: Ints = node[entry.level == index]
        return rows

    def resolved(self, depths: Mapping[int, int]) -> tuple[NDArray[np.integer], Ints]:
        """Return leaves (or first leaves) and counts of all that is refined down to a depth of some attributes."""
        entry = self._entries
        needed = (level.index for level in self.spine.levels if level.depth == depths.get(level.attribute))
        entry = entry.down_to(max(needed, default=0))
        return entry.leaf, entry.count

    @cached_property
    def _entries(self) -> _Entry:
        if self.left is None or len(self.left) == 0:
            return _Entry(self.nodes, self.count, None)
        leaf = np.concatenate([self.nodes, spans(self.spine, self.left)[0]], axis=1)
        count = np.concatenate([self.count, self.left.count])
        level = np.concatenate([np.full(len(self.count), len(self.spine.levels), np.int32), self.left.level])
        order = np.lexsort((level, *pack(self.spine, leaf)[::-1]))
        return _Entry(leaf[:, order], count[order], level[order])

    def _columns(self, entry: _Entry, index: int) -> list[tuple[int, int, Ints]]:
        return [
            (attribute, depth - 1, self.spine.trees[attribute].ancestors(depth - 1)[entry.leaf[attribute]])
            for attribute, depth in enumerate(self.spine.depths(index))
            if depth > 0
        ]


def spans(spine: Spine, left: Remainders) -> tuple[Ints, Ints]:
    """Return, by attribute (row) and remainder (column), the first leaf of its node and the one after its last."""
    start = np.zeros(left.nodes.shape, np.int64)
    stop = np.empty(left.nodes.shape, np.int64)
    for attribute, tree in enumerate(spine.trees):
        stop[attribute] = tree.sizes[-1]
    for level in np.unique(left.level).tolist():
        there = np.flatnonzero(left.level == level)
        for attribute, depth in enumerate(spine.depths(level)):
            if depth > 0:
                ancestors = spine.trees[attribute].ancestors(depth - 1)
                start[attribute, there] = np.searchsorted(ancestors, left.nodes[attribute, there])
                stop[attribute, there] = np.searchsorted(ancestors, left.nodes[attribute, there], side="right")
    return start, stop


def _starts(columns: list[tuple[int, int, Ints]], size: int) -> NDArray[np.bool_]:
    """Return where a node begins: all that belongs to one is consecutive."""
    starts = np.zeros(size, dtype=bool)
    starts[:1] = True
    for _, _, nodes in columns:
        starts[1:] |= nodes[1:] != nodes[:-1]
    return starts
