"""Parts: a release that is too large for memory, as whole subtrees, one at a time.

The levels that are small, from the total down, are the *top*, and always in memory. Below it the leaves are cut into
parts that have all leaves of some nodes of the top's last level. So a part with the nodes above it is a small release:
whatever goes from the top down, such as intervals, is computed for one part as for a whole.

Where parts begin follows from the released leaves alone. It does not depend on who computed them, nor on private data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.release.intervals.boxes import Range
from treetop.release.measured import Measured
from treetop.release.measurements import FEW_NODES
from treetop.release.tree import LevelNodes, ReleasedTree, coarser, node_starts, spans_at

if TYPE_CHECKING:
    from treetop.release.contents import Contents

Ints = NDArray[np.int64]
Leaves = tuple[NDArray[np.int32], Ints]
"""For each attribute (row) and leaf (column), the attribute's node; and the counts."""

ONE_FILE = 1 << 22
"""A release with at most so many leaves is held, and written, as one."""
PART = 1 << 20
"""About how many leaves a part has, where nobody says."""
ROW_GROUPS = 8
"""A part of the usual size has so many groups of rows."""
_CHUNK = 1 << 20
"""So many leaves are looked at at a time."""


@dataclass(frozen=True, eq=False)
class Top:
    """The released nodes of the small levels, from the total down."""

    spine: Spine
    """The public order of refinement."""
    level: int
    """The last level that is there."""
    tree: ReleasedTree = field(repr=False)
    """The nodes of that level as if they were leaves, so that those above are sums of them."""

    @staticmethod
    def of(spine: Spine, level: int, nodes: NDArray[np.integer], count: Ints) -> Top:
        """Make it of the nodes of its last level, in spine order."""
        return Top(spine, level, ReleasedTree(spine, spans_at(spine, level, nodes)[0].astype(np.int32), count))

    def at(self, index: int) -> LevelNodes:
        """Return the nodes of one of its levels."""
        return self.tree.at(index)

    def parents(self, index: int) -> Ints:
        """Return which node of the level above each node of a level belongs to."""
        return self.tree.parents(index)

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self.tree.total

    def rows(self, begin: int, end: int) -> list[slice]:
        """Return, for each of its levels, the nodes above some that follow each other at the last."""
        found = [slice(begin, end)]
        for index in range(self.level, 0, -1):
            parents = self.parents(index)
            found.append(slice(int(parents[found[-1].start]), int(parents[found[-1].stop - 1]) + 1))
        return found[::-1]


@dataclass(frozen=True, eq=False)
class PartTree(ReleasedTree):
    """The released nodes of a part, and those of the top that are above them."""

    above: tuple[LevelNodes, ...] = field(kw_only=True, repr=False)
    """The nodes of the top, level by level; their counts are those of the whole release."""
    above_parents: tuple[Ints, ...] = field(kw_only=True, repr=False)
    """Which node of the level above each belongs to."""

    @property
    def total(self) -> int:
        """The sum of all counts of the whole release."""
        return int(self.above[0].count.sum())

    def at(self, index: int) -> LevelNodes:
        """Return the nodes above zero at a level of the spine, by its position; the total is 0."""
        return self.above[index] if index < len(self.above) else super().at(index)

    def parents(self, index: int) -> Ints:
        """Return, for every released node of a level below the root, which one of the level above it belongs to."""
        return self.above_parents[index] if index < len(self.above) else super().parents(index)

    def first_leaves(self, index: int) -> Ints:
        """Return the first leaf of every node of a level."""
        return node_starts(self.spine, index, self.nodes)


@dataclass(frozen=True, eq=False)
class Part:
    """Some leaves, which are all leaves of some nodes of the top."""

    tree: PartTree
    """Its nodes."""
    evidence: Evidence | None = field(repr=False)
    """What was measured of them; None where that was not kept."""
    rows: slice
    """Which nodes of the last level of the top it has."""
    facts: PublicFacts | None = None
    """What is public of them."""

    @cached_property
    def measured(self) -> Measured:
        """What was measured of the part."""
        assert self.evidence is not None
        return Measured(self.tree, self.evidence, facts=self.facts)


@dataclass(frozen=True, eq=False)
class Parts(ABC):
    """The leaves of a release, part by part."""

    top: Top
    """The small levels."""
    starts: Ints = field(repr=False)
    """Which node of the last level of the top each part begins with; one longer than there are parts."""
    evidence: Evidence | None = field(repr=False)
    """What was measured down to the level below the top: of that one, what there was beside released nodes."""
    facts: PublicFacts | None = None
    """What is public."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def spine(self) -> Spine:
        """The public order of refinement."""
        return self.top.spine

    @property
    @abstractmethod
    def leaves(self) -> int:
        """How many leaves there are."""

    @property
    @abstractmethod
    def group(self) -> int:
        """How many rows are written, and read again, at a time."""

    @abstractmethod
    def leaves_of(self, number: int) -> Leaves:
        """Return the leaves of a part."""

    @abstractmethod
    def evidence_of(self, number: int, tree: PartTree) -> Sequence[tuple[Ints, Ints]]:
        """Return what was measured of the nodes of a part below the top, level by level, and the highest of their
        children that were not released."""

    def groups_meeting(self, ranges: Mapping[int, Range]) -> Iterator[Leaves]:
        """Yield leaves, some at a time: at least those within ranges."""
        return (self.leaves_of(number) for number in range(len(self)))

    def groups_within(self, ranges: Mapping[int, Range]) -> tuple[int, Iterator[Leaves]]:
        """Return the sum of some leaves that are within ranges, and leaves with the others that are."""
        return 0, self.groups_meeting(ranges)

    def __iter__(self) -> Iterator[Part]:
        return (self.part(number) for number in range(len(self)))

    def part(self, number: int) -> Part:
        """Return a part with what is above it."""
        return self.made(number, self.leaves_of(number))

    def made(self, number: int, leaves: Leaves, *, measured: bool = True) -> Part:
        """Return a part of its leaves."""
        top, rows = self.top, slice(int(self.starts[number]), int(self.starts[number + 1]))
        there = top.rows(rows.start, rows.stop)
        above = [top.at(index) for index in range(top.level + 1)]
        parents = [np.empty(0, np.int64)]
        parents += [
            top.parents(index)[there[index]] - there[index - 1].start for index in range(1, top.level + 1)
        ]  # fmt: skip
        tree = PartTree(
            self.spine,
            *leaves,
            above=tuple(
                LevelNodes(one.nodes[:, own], one.count[own]) for one, own in zip(above, there, strict=True)
            ),
            above_parents=tuple(parents),
        )  # fmt: skip
        evidence = None
        if measured and self.evidence is not None:
            evidence = self._evidence(there, self.evidence, self.evidence_of(number, tree))
        return Part(tree, evidence, rows, self.facts)

    def _evidence(self, there: list[slice], known: Evidence, own: Sequence[tuple[Ints, Ints]]) -> Evidence:
        """Join what is known of nodes of the top and of those below them."""
        levels = []
        for index, (above, here) in enumerate(pairwise(there), start=1):
            seen = known.levels[index - 1]
            slots = seen.slots[self._slots(index, above)]
            levels.append(LevelEvidence(seen.measured[here], seen.highest[above], slots))
        beside = known.levels[self.top.level]
        highest, slots = beside.highest[there[-1]], beside.slots[self._slots(self.top.level + 1, there[-1])]
        for measured, below in own:
            levels.append(LevelEvidence(measured, highest, slots))
            highest, slots = below, slots[:0]
        return Evidence(known.total, tuple(levels), known.laws)

    def _slots(self, index: int, above: slice) -> slice:
        """Return which measurements of a level are those of the children of some nodes of the one above."""
        if index not in self._begin:
            assert self.evidence is not None
            fanout = self.spine.levels[index - 1].fanout(self.top.at(index - 1).nodes)
            ends = np.concatenate([[0], np.cumsum(np.where(fanout == 1, 0, fanout))])
            kept = len(self.evidence.levels[index - 1].slots) == ends[-1]
            self._begin[index] = ends if kept else np.zeros(len(ends), np.int64)
        return slice(int(self._begin[index][above.start]), int(self._begin[index][above.stop]))

    @cached_property
    def _begin(self) -> dict[int, Ints]:
        """By level, where the measurements of the children of each node of the one above begin."""
        return {}

    @cached_property
    def measured(self) -> Measured:
        """What was measured of the top."""
        assert self.evidence is not None
        return Measured(self.top.tree, self.evidence, facts=self.facts, down_to=self.top.level)


@dataclass(frozen=True, eq=False)
class PartsInMemory(Parts):
    """Leaves in arrays, which may lie in files of their own."""

    nodes: NDArray[np.int32] = field(kw_only=True, repr=False)
    """For each attribute (row) and leaf (column), the attribute's node."""
    count: Ints = field(kw_only=True, repr=False)
    """The count of each leaf."""
    cuts: Ints = field(kw_only=True, repr=False)
    """The first leaf of each part; one longer than there are parts."""
    below: tuple[LevelEvidence, ...] = field(kw_only=True, repr=False)
    """What was measured of the nodes below the top."""
    size: int = field(kw_only=True)
    """About how many leaves a part has."""

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return len(self.count)

    @property
    def group(self) -> int:
        """How many rows are written, and read again, at a time."""
        return max(self.size // ROW_GROUPS, 1)

    def leaves_of(self, number: int) -> Leaves:
        """Return the leaves of a part."""
        own = slice(int(self.cuts[number]), int(self.cuts[number + 1]))
        return np.ascontiguousarray(self.nodes[:, own]), np.asarray(self.count[own])

    def evidence_of(self, number: int, tree: PartTree) -> Sequence[tuple[Ints, Ints]]:
        """Return what was measured of the nodes of a part below the top, level by level, and beside them."""
        for earlier in range(max(self._before), number):
            self._count(earlier, self.made(earlier, self.leaves_of(earlier), measured=False).tree)
        self._count(number, tree)
        found = []
        for at, (first, last) in enumerate(zip(self._before[number], self._before[number + 1], strict=True)):
            measured = np.asarray(self.below[at].measured[first:last])
            leaves = at + 1 == len(self.below)
            highest = np.full(last - first, NOTHING) if leaves else np.asarray(self.below[at + 1].highest[first:last])
            found.append((measured, highest))
        return found

    def _count(self, number: int, tree: PartTree) -> None:
        """Note how many nodes come before the part after one."""
        nodes = (tree.size(index) for index in range(self.top.level + 1, len(self.spine.levels) + 1))
        self._before[number + 1] = [first + more for first, more in zip(self._before[number], nodes, strict=True)]

    @cached_property
    def _before(self) -> dict[int, list[int]]:
        """How many nodes of each level below the top come before a part, as far as that is known."""
        return {0: [0] * (len(self.spine.levels) - self.top.level)}


def is_whole(release: Contents) -> bool:
    """Whether a release is always written as one: of group sizes, of counts made from all measurements, or with counts
    that are unresolved, whose intervals depend on all that was named."""
    plan = release.card["plan"]
    return release.left is not None or release.all_measured is not None or "groups" in plan or "degrees" in plan


def cut(release: Contents, part: int | None) -> Parts | None:
    """Cut a release into parts of about so many leaves; None where it is written as one."""
    if release.parts is not None and part is None:
        return release.parts
    size = PART if part is None else part
    if is_whole(release) or len(release.count) <= (ONE_FILE if part is None else size):
        return None
    spine, nodes, count, evidence = release.spine, release.nodes, release.count, release.evidence
    kept = 0 if evidence is None else max((at for at, seen in enumerate(evidence.levels) if len(seen.slots)), default=0)
    if kept == len(spine.levels) - 1 and spine.levels[-1].nodes > FEW_NODES:
        return None  # all that was measured was kept, also of leaves
    level, first = _last_of_top(spine, nodes, size, kept)
    above = np.zeros((len(nodes), len(first)), np.int64)
    for attribute, column in coarser(spine, level, len(spine.levels), nodes[:, first]).items():
        above[attribute] = column
    top = Top.of(spine, level, above, np.add.reduceat(count, first))
    wanted = np.searchsorted(first, np.arange(0, len(count), size))
    starts = np.append(np.unique(wanted[wanted < len(first)]), len(first))
    cuts = np.append(first, len(count))[starts]
    known: Evidence | None = None
    below: tuple[LevelEvidence, ...] = ()
    if evidence is not None:
        beside = evidence.levels[level]
        known = Evidence(
            evidence.total,
            (*evidence.levels[:level], LevelEvidence(np.empty(0, np.int64), beside.highest, beside.slots)),
            evidence.laws,
        )
        below = tuple(evidence.levels[level:])
    return PartsInMemory(top, starts, known, release.facts, nodes=nodes, count=count, cuts=cuts, below=below, size=size)


def _starts(
    spine: Spine, nodes: NDArray[np.int32], levels: Sequence[int]
) -> Iterator[tuple[int, dict[int, NDArray[np.bool_]]]]:
    """Yield, chunk by chunk, its first leaf and where a node of each of some levels begins."""
    size = nodes.shape[1]
    for begin in range(0, size, _CHUNK):
        end = min(begin + _CHUNK, size)
        some = nodes[:, max(begin - 1, 0) : end]
        found = {}
        for index in levels:
            starts = np.zeros(some.shape[1], dtype=bool)
            for column in coarser(spine, index, len(spine.levels), some).values():
                starts[1:] |= column[1:] != column[:-1]
            found[index] = starts[1:] if begin else starts
            if not begin:
                found[index][:1] = True
        yield begin, found


def _last_of_top(spine: Spine, nodes: NDArray[np.int32], size: int, least: int) -> tuple[int, Ints]:
    """Return the last level of the top, and the first leaf of each of its nodes.

    It is the last with few nodes, against the size of a part, but no coarser than one that must be there. Where one of
    its nodes has more leaves than a part should, which has whole nodes, it goes further down if that is not too many.
    """
    sizes, leaves = _level_sizes(spine, nodes), nodes.shape[1]
    level = next((index - 1 for index in range(1, len(sizes)) if sizes[index] > max(size // 4, 1)), len(sizes) - 1)
    level = min(max(level, least), len(spine.levels) - 1)
    first = _first_leaves(spine, level, nodes)
    while level + 1 < len(spine.levels) and sizes[level + 1] <= 4 * size and _widest(first, leaves) > size:
        level += 1
        first = _first_leaves(spine, level, nodes)
    return level, first


def _first_leaves(spine: Spine, level: int, nodes: NDArray[np.int32]) -> Ints:
    """Return the first leaf of every node of a level."""
    return np.concatenate([begin + np.flatnonzero(starts[level]) for begin, starts in _starts(spine, nodes, [level])])


def _widest(first: Ints, leaves: int) -> int:
    return int(np.diff(np.append(first, leaves)).max())


def _level_sizes(spine: Spine, nodes: NDArray[np.int32]) -> list[int]:
    levels = range(len(spine.levels) + 1)
    sizes = np.zeros(len(levels), np.int64)
    for _, starts in _starts(spine, nodes, levels):
        sizes += [int(starts[index].sum()) for index in levels]
    return [int(size) for size in sizes]
