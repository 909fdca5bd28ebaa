"""Shards: the released leaves as whole subtrees below coarse levels that stay in memory.

The *top* holds the levels from the total down that stay in memory. A small release holds all levels there and has one
shard. In a large one each shard has all leaves under some nodes of the top's last level and is read when it is needed.
A shard with the nodes above it is a small release: intervals and all else that goes from the top down is computed for
one shard as for a whole.

The released leaves alone decide where shards begin, not the engine that computed them, nor private data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.dtypes import Flags, Ints
from treetop._util.system import refuse_beyond_memory
from treetop.card.rebuild import OF_CELLS
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.release.intervals._sums import box_intervals
from treetop.release.intervals.boxes import Boxes, Range, condition_depths
from treetop.release.intervals.cells import MeasuredCells
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.intervals.table_evidence import MeasuredTables
from treetop.release.measurements import FEW_NODES, KeptMeasurements, Measurements
from treetop.release.tree import LevelNodes, ReleasedTree, ancestors, begin_levels, codes_at, meeting, spans_at

if TYPE_CHECKING:
    from treetop.release.release import Release

Ranges: TypeAlias = Mapping[int, Range]
Leaves: TypeAlias = tuple[NDArray[np.int32], Ints]
"""For each attribute (row) and leaf (column), the attribute's node; and the counts."""

ONE_FILE = 1 << 22
"""Most leaves of a release with one shard."""
PART = 1 << 20
"""Default number of leaves per shard."""
ROW_GROUPS = 8
"""Row groups of a shard of the default size."""
_MANY = 1 << 21
"""Rows of partial sums held before they are added up."""
NO_MEASUREMENTS = (
    "this release has no intervals and no measurements: its plan has intervals off, or it is not from the top down"
)


AnyMeasurements: TypeAlias = KeptMeasurements | MeasuredCells | MeasuredTables
"""Kept measurements: from the top down, of all cells along an axis, or of several tables together."""


@dataclass(frozen=True, eq=False)
class Top:
    """The released nodes of the levels that stay in memory, from the total down to `level`."""

    spine: Spine
    level: int
    tree: ReleasedTree = field(repr=False)
    """The nodes of the last level as if they were leaves, so that those above are sums of them."""

    @staticmethod
    def of(spine: Spine, level: int, nodes: NDArray[np.integer], count: Ints) -> Top:
        """Make it of the nodes of its last level, in spine order."""
        return Top(spine, level, ReleasedTree(spine, spans_at(spine, level, nodes)[0].astype(np.int32), count))

    def rows(self, begin: int, end: int) -> list[slice]:
        """Return, for each of its levels, the ancestors of consecutive nodes of the last."""
        found = [slice(begin, end)]
        for index in range(self.level, 0, -1):
            parents = self.tree.parents(index)
            found.append(slice(int(parents[found[-1].start]), int(parents[found[-1].stop - 1]) + 1))
        return found[::-1]


@dataclass(frozen=True, eq=False)
class Shard:
    """All leaves under some nodes of the top, with their kept measurements."""

    tree: ReleasedTree
    rows: slice
    """Its nodes of the last level of the top."""
    measured: AnyMeasurements | None

    @property
    def evidence(self) -> Evidence:
        """The measurements of its nodes, from the top down."""
        assert isinstance(self.measured, KeptMeasurements)
        return self.measured.evidence

    def intervals(self, index: int, confidence: float | None) -> LevelIntervals | None:
        """Return the intervals of its nodes of a level; None without a confidence."""
        if confidence is None:
            return None
        assert self.measured is not None
        return self.measured.intervals(confidence)[index]

    def table(self, index: int, confidence: float | None, *, numbered: bool = False) -> pa.Table:
        """Return its nodes of a level below the top."""
        bounds = self.intervals(index, confidence)
        return level_rows(self.tree.spine, index, self.tree.at(index), bounds, numbered=numbered)


@dataclass(frozen=True, eq=False)
class Shards:
    """The leaves of a release, shard by shard, below the levels that stay in memory.

    If all levels stay in memory there is one shard, which may have remainders above its leaves; subclasses have more.
    """

    top: Top
    starts: Ints = field(repr=False)
    """The first node of each shard in the last level of the top; one longer than there are shards."""
    known: AnyMeasurements | None = field(repr=False)
    """Measurements down to the level below the top; for that level, only those beside released nodes."""

    @staticmethod
    def in_memory(tree: ReleasedTree, known: AnyMeasurements | None) -> Shards:
        """Return all leaves as one shard."""
        return Shards(Top(tree.spine, len(tree.spine.levels), tree), np.array([0, len(tree.count)]), known)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def spine(self) -> Spine:
        """The public order of refinement."""
        return self.top.spine

    @property
    def below(self) -> range:
        """The levels below the top, which are read shard by shard; none if all levels are in memory."""
        return range(self.top.level + 1, len(self.spine.levels) + 1)

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.top.tree.count)

    @property
    def group(self) -> int | None:
        """Rows that are written, and read again, at a time; None for the usual number."""
        return None

    def leaves_of(self, number: int) -> Leaves:
        """Return the leaves of a shard."""
        return self.top.tree.nodes, self.top.tree.count

    def evidence_of(self, number: int, tree: ReleasedTree) -> Sequence[tuple[Ints, Ints]]:
        """Return the measurements of a shard's nodes below the top, by level, and their highest dropped children."""
        raise NotImplementedError

    def groups_meeting(self, ranges: Ranges) -> Iterator[Leaves]:
        """Yield leaves, some at a time: at least those within ranges."""
        return (self.leaves_of(number) for number in range(len(self)))

    def groups_within(self, ranges: Ranges) -> tuple[int, Iterator[Leaves]]:
        """Return the sum of some leaves within ranges, and leaves that include all others within them."""
        return 0, self.groups_meeting(ranges)

    def __iter__(self) -> Iterator[Shard]:
        return (self.shard(number) for number in range(len(self)))

    def shard(self, number: int) -> Shard:
        """Read a shard."""
        return self.made(number, self.leaves_of(number))

    def made(self, number: int, leaves: Leaves) -> Shard:
        """Return a shard of its leaves."""
        if not self.below:
            return Shard(self.top.tree, slice(0, self.leaves), self.known)
        top, rows = self.top, slice(int(self.starts[number]), int(self.starts[number + 1]))
        there = top.rows(rows.start, rows.stop)
        above = [top.tree.at(index) for index in range(top.level + 1)]
        parents = [np.empty(0, np.int64)]
        for index in range(1, top.level + 1):
            parents.append(top.tree.parents(index)[there[index]] - there[index - 1].start)
        nodes = [LevelNodes(one.nodes[:, own], one.count[own]) for one, own in zip(above, there, strict=True)]
        tree = ReleasedTree(self.spine, *leaves).under(nodes, parents)
        if not isinstance(self.known, KeptMeasurements):
            return Shard(tree, rows, None)
        known = self.known.evidence
        # The evidence of nodes of the top, and of those below them.
        levels = []
        for index, (over, here) in enumerate(pairwise(there), start=1):
            seen = known.levels[index - 1]
            levels.append(LevelEvidence(seen.measured[here], seen.highest[over], seen.slots[self._slots(index, over)]))
        beside = known.levels[top.level]
        highest, slots = beside.highest[there[-1]], beside.slots[self._slots(top.level + 1, there[-1])]
        for measured, below in self.evidence_of(number, tree):
            levels.append(LevelEvidence(measured, highest, slots))
            highest, slots = below, slots[:0]
        evidence = Evidence(known.total, tuple(levels), known.laws)
        return Shard(tree, rows, KeptMeasurements(tree, evidence, facts=self.known.facts))

    def _slots(self, index: int, above: slice) -> slice:
        """Return which measurements of a level are those of the children of some nodes of the level above."""
        begin = self._begin[index - 1]
        return slice(int(begin[above.start]), int(begin[above.stop]))

    @cached_property
    def _begin(self) -> list[Ints]:
        """By level, the first measurement of the children of each node of the level above; 0 if they were not kept."""
        assert self.evidence is not None
        found = []
        for level, seen in zip(self.spine.levels, self.evidence.levels, strict=False):
            fanout = level.fanout(self.top.tree.at(level.index - 1).nodes)
            ends = np.concatenate([[0], np.cumsum(np.where(fanout == 1, 0, fanout))])
            found.append(ends if len(seen.slots) == ends[-1] else np.zeros_like(ends))
        return found

    @property
    def measured(self) -> AnyMeasurements:
        """The measurements of the top; refused if none were kept."""
        if self.known is None:
            raise ReleaseError(NO_MEASUREMENTS)
        return self.known

    @property
    def evidence(self) -> Evidence | None:
        """The measurements beside released nodes of the top; None if none were kept, or those of cells."""
        return self.known.evidence if isinstance(self.known, KeptMeasurements) else None

    @property
    def measurements(self) -> Measurements:
        """The measurements that were kept, node by node."""
        return self.measured.measurements

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of all released nodes, from the total down."""
        top = self.measured.intervals(confidence)[: self.top.level + 1]
        if not self.below:
            return top
        found = [[shard.intervals(index, confidence) for index in self.below] for shard in self]
        return (*top, *map(LevelIntervals.join, zip(*found, strict=True)))

    def intervals_of(self, boxes: Boxes, confidence: float) -> tuple[Ints, Ints]:
        """Return the lower and upper bounds of the true counts of boxes; only shards that a box meets are read."""
        if isinstance(self.measured, KeptMeasurements):
            return box_intervals(self.measured, boxes, confidence, self)
        return self.measured.of_boxes(boxes, confidence)

    def within(self, ranges: Ranges) -> ReleasedTree:
        """Return the leaves within ranges, and the remainders of nodes that lie within them.

        Leaves that are read from a folder are refused if memory has no room.
        """
        found, held = [(np.empty((len(self.spine.trees), 0), np.int32), np.empty(0, np.int64))], 0
        for nodes, count in self._within(ranges):
            found.append((nodes, count))
            held += nodes.nbytes + count.nbytes
            if self.below:
                refuse_beyond_memory(held, "what was asked for", "ask for fewer codes, or for a coarser level (by)")
        left = self.top.tree.left
        remaining = None if left is None else left[meeting(self.spine, left, ranges)[1]]
        return ReleasedTree(self.spine, *_joined(found), remaining)

    def total_within(self, ranges: Ranges) -> int:
        """Return the sum within ranges, with the remainders of nodes that lie within them."""
        if not self.below:
            return self.within(ranges).total if ranges else self.top.tree.total
        if any(start >= stop for start, stop in ranges.values()):
            return 0
        if (top := self._in_top(ranges, condition_depths(self.spine, ranges))) is not None:
            return int(top[1].sum())
        whole, some = self.groups_within(ranges)
        return whole + sum(int(count[inside(nodes, ranges)].sum()) for nodes, count in some)

    def sums_within(self, ranges: Ranges, depths: Mapping[int, int]) -> tuple[NDArray[np.integer], Ints]:
        """Return sums of leaves within ranges, by the nodes of some attributes at a depth, and a leaf of each.

        A combination may have several rows, which add up; remainders are there if they are refined so far.
        """
        if not self.below:
            return (self.within(ranges) if ranges else self.top.tree).resolved(depths)
        nothing = np.empty((len(self.spine.trees), 0), np.int64), np.empty(0, np.int64)
        if any(start >= stop for start, stop in ranges.values()):
            return nothing
        needed = list(condition_depths(self.spine, ranges))
        for attribute, depth in depths.items():
            needed[attribute] = max(needed[attribute], depth + 1)
        if (top := self._in_top(ranges, needed)) is not None:
            return top
        found: list[Leaves] = []
        for nodes, count in self._within(ranges):
            found.append(_summed(self.spine, nodes, count, depths))
            if sum(len(sums) for _, sums in found) > _MANY:
                found = [_summed(self.spine, *_joined(found), depths)]
        return _joined(found) if found else nothing

    def _in_top(self, ranges: Ranges, depths: Sequence[int]) -> tuple[Ints, Ints] | None:
        """Return a leaf and the count of each node of a top level within ranges; None if no level has them."""
        levels = range(self.top.level + 1)
        index = next((at for at in levels if all(map(int.__ge__, self.spine.depths(at), depths))), None)
        if index is None:
            return None
        found = self.top.tree.at(index)
        leaf = spans_at(self.spine, index, found.nodes)[0]
        there = inside(leaf, ranges)
        return leaf[:, there], found.count[there]

    def _within(self, ranges: Ranges) -> Iterator[Leaves]:
        for nodes, count in self.groups_meeting(ranges):
            there = inside(nodes, ranges)
            yield (nodes, count) if there.all() else (nodes[:, there], count[there])

    def level_nodes(self, index: int, confidence: float | None) -> Iterator[tuple[LevelNodes, LevelIntervals | None]]:
        """Yield the nodes of a level and their bounds: at once for a level of the top, else shard by shard."""
        if index in self.below:
            yield from ((shard.tree.at(index), shard.intervals(index, confidence)) for shard in self)
        else:
            yield self.top.tree.at(index), None if confidence is None else self.measured.intervals(confidence)[index]

    def tables(self, index: int, confidence: float | None, *, numbered: bool = False) -> Iterator[pa.Table]:
        """Yield the nodes of a level as tables: one for a level of the top, else one for each shard."""
        for nodes, bounds in self.level_nodes(index, confidence):
            yield level_rows(self.spine, index, nodes, bounds, numbered=numbered)

    def table(self, index: int, confidence: float | None) -> pa.Table:
        """Return the nodes of a level as one table; refuse it if memory has no room."""
        if index in self.below:
            depths = zip(self.spine.trees, self.spine.depths(index), strict=True)
            width = 24 + sum(_width(tree.codes[depth - 1]) for tree, depth in depths if depth)
            remedy = "ask for some codes (where), for a coarser level, or row by row (batches)"
            refuse_beyond_memory(2 * self.leaves * width, "a table of all leaves", remedy)
        tables = list(self.tables(index, confidence))
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def inside(nodes: NDArray[np.integer], ranges: Ranges) -> Flags:
    """Return which leaves are within ranges."""
    found = np.ones(nodes.shape[1], dtype=bool)
    for attribute, (start, stop) in ranges.items():
        found &= (nodes[attribute] >= start) & (nodes[attribute] < stop)
    return found


def _joined(found: list[Leaves]) -> Leaves:
    return np.concatenate([nodes for nodes, _ in found], axis=1), np.concatenate([count for _, count in found])


def _summed(spine: Spine, nodes: NDArray[np.int32], count: Ints, depths: Mapping[int, int]) -> Leaves:
    """Add up the rows that some levels do not tell apart."""
    key = np.zeros(len(count), np.int64)
    for attribute, depth in depths.items():
        own = spine.trees[attribute].ancestors(depth)[nodes[attribute]]
        _, key = np.unique(key * spine.trees[attribute].sizes[depth] + own, return_inverse=True)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, which, count)
    return nodes[:, first], sums


def _width(codes: pa.Array) -> int:
    return 4 + int(codes.nbytes) // max(len(codes), 1)


def level_rows(
    spine: Spine, index: int, found: LevelNodes, bounds: LevelIntervals | None, *, numbered: bool = False
) -> pa.Table:
    """Return nodes of a level as a table: codes, count and, if there are any, bounds.

    If `numbered`, as nodes.parquet has them: the level first, and null if an attribute is not refined yet.
    """
    columns = codes_at(spine, index, found.nodes)
    if numbered:
        level, blank = pa.array(np.full(len(found), index, np.int32)), pa.nulls(len(found), pa.string())
        columns = {"level": level} | {name: columns.get(name, blank) for name in spine.attributes}
    columns["count"] = pa.array(found.count)
    if bounds is not None:
        columns |= {"lower": pa.array(bounds.lower), "upper": pa.array(bounds.upper)}
    return pa.table(columns)


@dataclass(frozen=True, eq=False)
class CutShards(Shards):
    """Shards of leaves in arrays, which may be mapped from files."""

    nodes: NDArray[np.int32] = field(kw_only=True, repr=False)
    """For each attribute (row) and leaf (column), the attribute's node."""
    count: Ints = field(kw_only=True, repr=False)
    cuts: Ints = field(kw_only=True, repr=False)
    """The first leaf of each shard; one longer than there are shards."""
    begins: NDArray[np.int16] = field(kw_only=True, repr=False)
    """For each leaf, the coarsest level at which it belongs to another node than the leaf before it."""
    below_top: tuple[LevelEvidence, ...] = field(kw_only=True, repr=False)
    size: int = field(kw_only=True)
    """About how many leaves a shard has."""

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.count)

    @property
    def group(self) -> int:
        """Rows that are written, and read again, at a time."""
        return max(self.size // ROW_GROUPS, 1)

    def leaves_of(self, number: int) -> Leaves:
        """Return the leaves of a shard."""
        own = slice(int(self.cuts[number]), int(self.cuts[number + 1]))
        return np.ascontiguousarray(self.nodes[:, own]), np.asarray(self.count[own])

    def evidence_of(self, number: int, tree: ReleasedTree) -> Sequence[tuple[Ints, Ints]]:
        """Return the measurements of a shard's nodes below the top, by level, and their highest dropped children."""
        found = []
        for at, (first, last) in enumerate(zip(self._before[number], self._before[number + 1], strict=True)):
            measured = np.asarray(self.below_top[at].measured[first:last])
            leaves = at + 1 == len(self.below_top)
            highest = np.full(last - first, NOTHING)
            found.append((measured, highest if leaves else np.asarray(self.below_top[at + 1].highest[first:last])))
        return found

    @cached_property
    def _before(self) -> Ints:
        """How many nodes of each level below the top (column) come before a shard (row)."""
        number = [_level_sizes(self.spine, self.begins[first:last]) for first, last in pairwise(self.cuts)]
        return np.cumsum([np.zeros_like(number[0]), *number], axis=0)[:, self.below.start :]


def _has_one_shard(release: Release) -> bool:
    """Whether a release always has one shard: of cells, estimated from all measurements, or with remainders.

    The intervals of remainders depend on all nodes that were named.
    """
    of_cells = not OF_CELLS.keys().isdisjoint(release.card["plan"])
    return release.left is not None or release.all_measured is not None or of_cells


def cut(release: Release, part: int | None) -> Shards:
    """Cut a release into shards of about `part` leaves; a small one has one shard."""
    if release.stored is not None and part is None:
        return release.stored
    size = PART if part is None else part
    if _has_one_shard(release) or len(release.count) <= (ONE_FILE if part is None else size):
        return release.in_memory
    spine, nodes, count, evidence = release.spine, release.nodes, release.count, release.evidence
    kept = 0 if evidence is None else max((at for at, seen in enumerate(evidence.levels) if len(seen.slots)), default=0)
    if kept == len(spine.levels) - 1 and spine.levels[-1].nodes > FEW_NODES:
        return release.in_memory  # all that was measured was kept, also of leaves
    begins = begin_levels(spine, nodes)
    level, first = _last_of_top(spine, begins, size, kept)
    top = Top.of(
        spine, level, ancestors(spine, level, len(spine.levels), nodes[:, first]), np.add.reduceat(count, first)
    )
    wanted = np.searchsorted(first, np.arange(0, len(count), size))
    starts = np.append(np.unique(wanted[wanted < len(first)]), len(first))
    cuts = np.append(first, len(count))[starts]
    known: KeptMeasurements | None = None
    below: tuple[LevelEvidence, ...] = ()
    if evidence is not None:
        beside, below = evidence.levels[level], tuple(evidence.levels[level:])
        last = LevelEvidence(np.empty(0, np.int64), beside.highest, beside.slots)
        kept_above = Evidence(evidence.total, (*evidence.levels[:level], last), evidence.laws)
        known = KeptMeasurements(top.tree, kept_above, facts=release.facts, down_to=level)
    return CutShards(top, starts, known, nodes=nodes, count=count, cuts=cuts, begins=begins, below_top=below, size=size)


def _last_of_top(spine: Spine, begins: NDArray[np.int16], size: int, least: int) -> tuple[int, Ints]:
    """Return the last level of the top, and the first leaf of each of its nodes.

    It is the last with few nodes, against the size of a part, but no coarser than one that must be there. A part has
    whole nodes: if one node has more leaves than a part should, the top goes further down unless that makes too many
    nodes.
    """
    sizes = _level_sizes(spine, begins)
    level = next((index - 1 for index in range(1, len(sizes)) if sizes[index] > max(size // 4, 1)), len(sizes) - 1)
    level = min(max(level, least), len(spine.levels) - 1)
    first = np.flatnonzero(begins <= level)
    while (
        level + 1 < len(spine.levels)
        and sizes[level + 1] <= 4 * size
        and np.diff(np.append(first, len(begins))).max() > size
    ):
        level += 1
        first = np.flatnonzero(begins <= level)
    return level, first


def _level_sizes(spine: Spine, begins: NDArray[np.int16]) -> Ints:
    """Return how many nodes each level has."""
    return np.cumsum(np.bincount(begins, minlength=len(spine.levels) + 1)[: len(spine.levels) + 1])
