"""Reorder the nodes of a level from spine order into blocks, and the refined nodes back.

Under a margin, nodes that are far apart in the tree depend on each other: nodes with children in the same cells of the
margin are the rows of one block. Here all rows are ordered block by block, for tasks of whole blocks, and the results
of the tasks are brought back into spine order.

Arrays as long as the level are held in a `SpillBuffer` only. Rows are taken in spine order, some at a time; within each
block they are consecutive. So a file is written and read at as many positions as there are blocks, each of which moves
from front to back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.domain.spine_level import AttributeStep
from treetop.measure.level import Descended, Frontier, SpillBuffer, Step, runs
from treetop.measure.measure import LevelEvidence

Ints = NDArray[np.int64]
Groups = Callable[[NDArray[np.int32]], Ints]
"""Maps nodes to groups of a margin's cells."""

CHILDREN = 1 << 20
"""Number of children that are brought back into spine order at a time."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a level, block by block: by group of the margin, by node of an attribute, and then in spine order."""

    step: Step
    spine: Frontier
    """The rows in spine order."""
    place: Ints = field(repr=False)
    """Position of each of these, block by block."""
    above: Frontier
    """The rows, block by block."""
    groups: Ints = field(repr=False)
    """Group of each row."""
    number: Ints = field(repr=False)
    """Number of each non-empty block: group times the attribute's nodes, plus node."""
    rows: Ints = field(repr=False)
    """Rows of each non-empty block."""
    cells: Ints = field(repr=False)
    """Cells of each non-empty block, only children included."""
    room: SpillBuffer

    @staticmethod
    def of(step: Step, spine: Frontier, by: AttributeStep, groups: Groups, most: int, room: SpillBuffer) -> Blocks:
        """Order rows into blocks by group (at most `most` groups) and by an attribute's node."""
        size, nodes = len(spine), len(by.first) - 1
        place = room.array((size,), np.int64)
        rows, cells = np.zeros(most * nodes, np.int64), np.zeros(most * nodes, np.int64)
        for run in runs(size):
            some = spine[run]
            place[run] = groups(some.nodes) * nodes + some.nodes[by.attribute]
            _tally(place[run], step.fanout(some), rows, cells)
        above, own = _empty(spine, room), room.array((size,), np.int64)
        after = np.cumsum(rows) - rows
        for run in runs(size):
            group = place[run] // nodes
            _place(place[run], after)
            own[place[run]] = group
            _put(above, place[run], spine[run])
        number = np.flatnonzero(rows)
        return Blocks(step, spine, place, above, own, number, rows[number], cells[number], room)

    def __len__(self) -> int:
        return len(self.spine)

    def counts(self) -> Ints:
        """Return the total count of every block."""
        return np.add.reduceat(self.above.count, np.cumsum(self.rows) - self.rows)


def _empty(like: Frontier, room: SpillBuffer) -> Frontier:
    count, start, stop = (room.array((len(like),), np.int64) for _ in range(3))
    return Frontier(room.array(like.nodes.shape, np.int32), count, start, stop)


def _put(rows: Frontier, place: Ints, some: Frontier) -> None:
    for to, own in zip(rows.nodes, some.nodes, strict=True):
        to[place] = own
    rows.count[place], rows.start[place], rows.stop[place] = some.count, some.start, some.stop


@kernel
def _tally(block: Ints, slots: Ints, rows: Ints, cells: Ints) -> None:
    for i in range(len(block)):
        rows[block[i]] += 1
        cells[block[i]] += max(slots[i], 1)


@kernel
def _place(block: Ints, after: Ints) -> None:
    """Replace the blocks of some rows, in place, by the next free positions in these blocks."""
    for i in range(len(block)):
        own = block[i]
        block[i] = after[own]
        after[own] += 1


@dataclass(frozen=True, eq=False)
class Refined:
    """The retained children of some rows, in the order of the rows."""

    number: Ints
    """Number of retained children by row."""
    rank: Ints
    """Rank of each child among its row's children."""
    count: Ints
    start: Ints
    stop: Ints
    measured: Ints
    """Measurement of each; `NOTHING` for an only child."""
    highest: Ints
    """By row, the highest measurement among children that are not retained."""
    slots: Ints
    """All measurements, row by row; empty if not requested."""


@dataclass(frozen=True, eq=False)
class RefinedLevel:
    """The refined rows of a level; can be iterated repeatedly in spine order."""

    blocks: Blocks
    every: int | None
    """Which evidence is kept, as in `Task.every`."""
    refined: Refined
    """The retained children of all rows, block by block."""
    first: Ints = field(repr=False)
    """Index of each row's first child; rows block by block."""
    first_slot: Ints = field(repr=False)
    """Index of each row's first measurement; empty unless all measurements are kept."""

    @staticmethod
    def of(blocks: Blocks, every: int | None, parts: Iterable[Refined]) -> RefinedLevel:
        """Collect the results of tasks, in the order of the blocks."""
        step, room = blocks.step, blocks.room
        columns = {one.name: room.growing() for one in fields(Refined)}
        first, first_slot = room.growing(), room.growing()
        rows = children = slots = 0
        for part in parts:
            for name, column in columns.items():
                column.add(getattr(part, name))
            first.add(children + np.cumsum(part.number) - part.number)
            if step.keeps_all(every):
                fanout = step.fanout(blocks.above[rows : rows + len(part.number)])
                first_slot.add(slots + np.cumsum(fanout) - fanout)
            rows, children, slots = rows + len(part.number), children + len(part.rank), slots + len(part.slots)
        refined = Refined(**{name: column.array() for name, column in columns.items()})
        return RefinedLevel(blocks, every, refined, first.array(), first_slot.array())

    def __iter__(self) -> Iterator[tuple[Frontier, Descended]]:
        """Yield some rows that are adjacent in spine order, and their refinement."""
        for run in runs(len(self.blocks)):
            after = np.cumsum(self.refined.number[self.blocks.place[run]])
            cuts = np.searchsorted(after, np.arange(CHILDREN, after[-1], CHILDREN))
            for start, stop in pairwise([run.start, *(run.start + np.unique(cuts + 1)).tolist(), run.stop]):
                if start < stop:
                    yield self._of(slice(start, stop))

    def _of(self, rows: slice) -> tuple[Frontier, Descended]:
        step, refined = self.blocks.step, self.refined
        above, place = self.blocks.spine[rows], self.blocks.place[rows]
        number = refined.number[place]
        row, child = np.repeat(np.arange(len(place)), number), cells_from(self.first[place], number)
        nodes, measured = above.nodes.take(row, axis=1), refined.measured[child]
        step.level.go_down(nodes, refined.rank[child])
        ranges = (ends if step.last else ends[child] for ends in (refined.start, refined.stop))
        frontier = Frontier(nodes, refined.count[child], *ranges)
        if step.tests_only_children:
            frontier = above.seen_below(frontier, row, measured, step.level.index)
        if self.every is None:
            return above, Descended(frontier)
        slots = refined.slots
        if step.keeps_all(self.every):
            slots = slots[cells_from(self.first_slot[place], step.fanout(above))]
        return above, Descended(frontier, ((LevelEvidence(measured, refined.highest[place], slots),),))

    def measurements(self) -> Iterator[Ints]:
        """Yield the measurements of all retained children, in no particular order."""
        return (self.refined.measured[run] for run in runs(len(self.refined.measured)))


def cells_from(start: Ints, number: Ints) -> Ints:
    """Return the positions of the values of some rows, given each row's start and number of values."""
    places: Ints = np.arange(int(number.sum())) + np.repeat(start - (np.cumsum(number) - number), number)
    return places
