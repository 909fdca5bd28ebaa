"""The released tree: the nodes of every level, from the released leaves and the remainders above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.dtypes import Flags, Ints
from treetop.counts.counts import pack
from treetop.domain.spine import Spine
from treetop.domain.table_cells import below
from treetop.errors import ReleaseError
from treetop.measure.measure import Remainders

Node = TypeVar("Node", bound=np.integer[Any])

KEPT = 1 << 18
"""Levels with at most this many nodes are cached; a larger one takes as much memory as the leaves."""


@dataclass(frozen=True, eq=False)
class LevelNodes:
    """The released nodes of one level, in spine order."""

    nodes: Ints = field(repr=False)
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    count: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False)
class _Entry:
    """The summands of counts, in spine order: a remainder stands before all released leaves below its node."""

    leaf: NDArray[np.integer]
    """For each attribute (row) and entry (column), the leaf, or the first leaf of a remainder's node."""
    count: Ints
    level: NDArray[np.int32] | None
    """Level down to which each is refined; None if all are leaves."""

    @cached_property
    def before(self) -> Ints:
        """The sum of all counts before each entry; one longer than there are entries."""
        return np.concatenate([[0], np.cumsum(self.count)])

    def down_to(self, index: int) -> _Entry:
        """Leave out entries that are not refined so far."""
        if self.level is None:
            return self
        there = self.level >= index
        return _Entry(self.leaf[:, there], self.count[there], self.level[there])


@dataclass(frozen=True, eq=False)
class ReleasedTree:
    """Released leaves and remainders, from which every coarser count is a sum."""

    spine: Spine
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
    count: Ints = field(repr=False)
    """The released count of each leaf, above zero."""
    left: Remainders | None = field(default=None, repr=False)
    _levels: dict[int, LevelNodes] = field(default_factory=dict, init=False, repr=False)
    _parents: dict[int, Ints] = field(default_factory=dict, init=False, repr=False)

    @property
    def total(self) -> int:
        """The sum of all counts, unresolved ones included; of a shard, that of the whole release."""
        if (root := self._levels.get(0)) is not None:
            return int(root.count.sum())
        return int(self.count.sum()) + (0 if self.left is None else int(self.left.count.sum()))

    def at(self, index: int) -> LevelNodes:
        """Return the nodes above zero at a level of the spine, by its position; the total is 0."""
        if (kept := self._levels.get(index)) is not None:
            return kept
        entry, first = self._entries.down_to(index), np.flatnonzero(self.starts_at(index))
        there = np.array([leaf[first] for leaf in entry.leaf], np.int64)
        nodes = ancestors(self.spine, index, len(self.spine.levels), there)
        made = LevelNodes(nodes, np.diff(entry.before[np.append(first, len(entry.count))]))
        if len(made) <= KEPT:
            made.nodes.flags.writeable = made.count.flags.writeable = False  # they are shared
            self._levels[index] = made
        return made

    def under(self, levels: Sequence[LevelNodes], parents: Sequence[Ints]) -> ReleasedTree:
        """Take the coarsest levels, and the rows of their parents, from a whole release of which this is a shard."""
        self._levels.update(enumerate(levels))
        self._parents.update(enumerate(parents))
        return self

    def size(self, index: int) -> int:
        """Return how many nodes above zero a level has."""
        return int(np.count_nonzero(self.starts_at(index)))

    def parents(self, index: int) -> Ints:
        """Return, for every released node of a level below the root, the row of its parent."""
        if (kept := self._parents.get(index)) is not None:
            return kept
        level, above = self._entries.down_to(index - 1).level, np.cumsum(self.starts_at(index - 1)) - 1
        if level is not None:
            above = above[level >= index]
        made: Ints = above[self.starts_at(index)]
        if len(made) <= KEPT:
            made.flags.writeable = False
            self._parents[index] = made
        return made

    def children(self, index: int, parent: Ints, nodes: NDArray[np.integer]) -> Ints:
        """Return which released nodes of a level below the root some children are; −1 if one is not released.

        A child is given by the row of its parent among the released nodes above (−1 for one that is not released) and
        by its nodes of all attributes.
        """
        level = self.spine.levels[index - 1]
        released = level.keys(self.parents(index), self.at(index).nodes)  # in spine order, so they rise
        asked = level.keys(parent, nodes)
        row = np.searchsorted(released, asked)
        there = np.append(released, -1)[row] == asked
        rows: Ints = np.where(there & (parent >= 0), row, -1)
        return rows

    def fanout(self, index: int) -> Ints:
        """Return, for every released node of the level above a level, how many public children it is divided into."""
        return self.spine.levels[index - 1].fanout(self.at(index - 1).nodes)

    def denied(self, index: int) -> Flags:
        """Return which released nodes of the level above a level have an only child there that is not released."""
        named = np.bincount(self.parents(index), minlength=len(self.at(index - 1)))
        denied: Flags = (self.fanout(index) == 1) & (named == 0)
        return denied

    def rows(self, index: int) -> Ints:
        """Return which of the released nodes of a level its remainders are left at; both are in spine order."""
        entry = self._entries.down_to(index)
        if entry.level is None:
            return np.empty(0, np.int64)
        node = np.cumsum(self.starts_at(index)) - 1
        rows: Ints = node[entry.level == index]
        return rows

    def resolved(self, depths: Mapping[int, int]) -> tuple[NDArray[np.integer], Ints]:
        """Return leaves (or first leaves) and counts of all that is refined down to a depth of some attributes."""
        needed = (
            level.index
            for level in self.spine.levels
            for part in level.parts
            if part.depth == depths.get(part.attribute)
        )
        entry = self._entries.down_to(max(needed, default=0))
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

    @cached_property
    def _begins(self) -> NDArray[np.int16]:
        """For each entry, the coarsest level at which it belongs to another node than the entry before it."""
        return begin_levels(self.spine, self._entries.leaf)

    def starts_at(self, index: int) -> Flags:
        """Return a mask of the entries refined so far at which a node of a level begins."""
        starts, level = self._begins <= index, self._entries.level
        if level is None:
            return starts
        node: Ints = np.cumsum(starts)
        return changes(node[None, level >= index])


def ancestors(spine: Spine, coarse: int, fine: int, nodes: NDArray[Node]) -> NDArray[Node]:
    """Return nodes of one level as they are at a coarser one."""
    above = np.zeros_like(nodes)
    about = enumerate(zip(spine.trees, spine.depths(coarse), spine.depths(fine), strict=True))
    for attribute, (tree, depth, finer) in about:
        if depth > 0:
            own = nodes[attribute]
            above[attribute] = own if depth == finer else tree.ancestors(depth - 1, finer - 1)[own]
    return above


def changes(nodes: NDArray[np.integer]) -> Flags:
    """Return a mask of the columns at which a node begins: all leaves of one node are consecutive."""
    starts = np.ones(nodes.shape[1], dtype=bool)
    starts[1:] = (nodes[:, 1:] != nodes[:, :-1]).any(axis=0)
    return starts


_CHUNK = 1 << 20


def begin_levels(spine: Spine, leaf: NDArray[np.integer]) -> NDArray[np.int16]:
    """Return, for each leaf, the coarsest level at which it belongs to another node than the leaf before it."""
    begins = np.full(leaf.shape[1], len(spine.levels) + 1, np.int16)
    for start in range(0, leaf.shape[1], _CHUNK):
        some = leaf[:, max(start - 1, 0) : start + _CHUNK]
        own = begins[max(start - 1, 0) + 1 : start + _CHUNK]
        for level in reversed(spine.levels):
            for part in level.parts:
                node = spine.trees[part.attribute].ancestors(part.depth)[some[part.attribute]]
                np.copyto(own, level.index, where=node[1:] != node[:-1])
    begins[:1] = 0
    return begins


def spans(spine: Spine, left: Remainders) -> tuple[Ints, Ints]:
    """Return, by attribute (row) and remainder (column), the first leaf of its node and the one after its last."""
    start, stop = np.empty(left.nodes.shape, np.int64), np.empty(left.nodes.shape, np.int64)
    for index in np.unique(left.level).tolist():
        there = left.level == index
        start[:, there], stop[:, there] = spans_at(spine, index, left.nodes[:, there])
    return start, stop


def meeting(spine: Spine, left: Remainders, ranges: Mapping[int, tuple[int, int]]) -> tuple[Flags, Flags]:
    """Return which remainders' nodes have leaves within ranges, and which have no others."""
    starts, stops = spans(spine, left)
    meets, within = np.ones(len(left), dtype=bool), np.ones(len(left), dtype=bool)
    for attribute, (start, stop) in ranges.items():
        meets &= (starts[attribute] < stop) & (stops[attribute] > start) & (start < stop)
        within &= (starts[attribute] >= start) & (stops[attribute] <= stop)
    return meets, within


def spans_at(spine: Spine, index: int, nodes: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """Return the same for nodes of one level."""
    start, stop = np.zeros(nodes.shape, np.int64), np.empty(nodes.shape, np.int64)
    for attribute, (tree, depth) in enumerate(zip(spine.trees, spine.depths(index), strict=True)):
        if depth == 0:
            stop[attribute] = tree.sizes[-1]
        else:
            start[attribute], stop[attribute] = below(tree, depth, len(tree.levels), nodes[attribute])
    return start, stop


def codes_at(spine: Spine, index: int, nodes: NDArray[np.integer]) -> dict[str, pa.Array]:
    """Return one column for each attribute that is refined at a level, from the nodes of each attribute (row)."""
    about = zip(spine.attributes, spine.trees, spine.depths(index), nodes, strict=True)
    return {name: tree.codes[depth - 1].take(pa.array(own)) for name, tree, depth, own in about if depth > 0}


def nodes_at(spine: Spine, index: int, table: pa.Table) -> NDArray[np.int32]:
    """Return the nodes of every attribute (row); 0 while it is not refined, −1 if its hierarchy lacks the code."""
    nodes = np.zeros((len(spine.attributes), table.num_rows), np.int32)
    about = zip(spine.attributes, spine.trees, spine.depths(index), strict=True)
    for attribute, (name, tree, depth) in enumerate(about):
        if depth > 0:
            codes = pc.cast(table.column(name), pa.string())
            nodes[attribute] = pc.fill_null(pc.index_in(codes, value_set=tree.codes[depth - 1]), -1).to_numpy()
    return nodes


def whole_numbers(table: pa.Table, name: str) -> Ints:
    """Return a column of whole numbers, of which none is missing."""
    if name not in table.column_names:
        raise ReleaseError(f"there is no column {name!r}")
    column = table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise ReleaseError(f"the column {name!r} must hold whole numbers, and no blanks")
    return np.asarray(column.to_numpy(), np.int64)
