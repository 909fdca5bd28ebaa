"""The nodes of a level, brought from spine order into blocks; and what was found of these, brought back.

Under a margin, nodes that are far apart in the tree depend on each other: those whose children are counted by the same
cells are the rows of one block. Here all rows are brought block by block, for tasks of whole blocks, and what these
give is brought back into spine order.

Arrays as long as the level are held in a `SpillBuffer` only. Rows are taken in spine order, some at a time; of each
block these are the next ones. So a file is written, and read again, at as many places as there are blocks, each of
which moves on from front to back.
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
"""Tells which group of a margin's cells each of some nodes is in."""

CHILDREN = 1 << 20
"""About so many children are brought back into spine order together."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of a level, block by block: by group of the margin, by node of an attribute, and then in spine order."""

    step: Step
    """The level."""
    spine: Frontier
    """The rows as they come, in spine order."""
    place: Ints = field(repr=False)
    """Where each of these stands, block by block."""
    above: Frontier
    """The rows, block by block."""
    groups: Ints = field(repr=False)
    """Which group each of these is in."""
    number: Ints = field(repr=False)
    """Of the blocks that have rows: the group, times the attribute's nodes, plus the node;"""
    rows: Ints = field(repr=False)
    """how many rows it has;"""
    cells: Ints = field(repr=False)
    """and how many cells, only children among them."""
    room: SpillBuffer
    """Where all of them are."""

    @staticmethod
    def of(step: Step, spine: Frontier, by: AttributeStep, groups: Groups, most: int, room: SpillBuffer) -> Blocks:
        """Bring rows into blocks by their groups, of which there are so many at most, and an attribute's nodes."""
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

    def told(self, groups: Groups) -> Ints:
        """Return the groups of another table that the rows are in, block by block."""
        found = self.room.array((len(self),), np.int64)
        for run in runs(len(self)):
            found[run] = groups(self.above.nodes[:, run])
        return found

    def counts(self) -> Ints:
        """Return what the rows of every block have together."""
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
    """Turn the blocks of some rows, in place, into the places after those that are taken."""
    for i in range(len(block)):
        own = block[i]
        block[i] = after[own]
        after[own] += 1


@dataclass(frozen=True, eq=False)
class Refined:
    """The children of some rows that are kept, in the order of the rows."""

    number: Ints
    """By row, how many children are kept."""
    rank: Ints
    """Which of its row's children each is."""
    count: Ints
    start: Ints
    stop: Ints
    measured: Ints
    """What was measured of each; `NOTHING` for an only child."""
    highest: Ints
    """By row, the highest measurement of what is not kept."""
    slots: Ints
    """All measurements, row by row; empty where nobody asks."""


@dataclass(frozen=True, eq=False)
class RefinedLevel:
    """What was found of all rows of a level: it can be had in spine order, as often as it is asked for."""

    blocks: Blocks
    """The rows."""
    every: int | None
    """Whether evidence is kept, as `Task.every` has it."""
    refined: Refined
    """What is kept of all rows, block by block."""
    first: Ints = field(repr=False)
    """By row, block by block, the first of its children,"""
    first_slot: Ints = field(repr=False)
    """and of its measurements; empty where not all of these are kept."""

    @staticmethod
    def of(blocks: Blocks, every: int | None, parts: Iterable[Refined]) -> RefinedLevel:
        """Take in what tasks give, in the order of the blocks."""
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
        """Yield some rows that follow each other in spine order, and what they are refined to."""
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
        """Yield what was measured of all children that are kept, in no order that matters."""
        return (self.refined.measured[run] for run in runs(len(self.refined.measured)))


def cells_from(start: Ints, number: Ints) -> Ints:
    """Return where the values of some rows are, row by row, which start there and are so many."""
    places: Ints = np.arange(int(number.sum())) + np.repeat(start - (np.cumsum(number) - number), number)
    return places
