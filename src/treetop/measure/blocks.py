"""One level of a descent under a margin: the children of all retained nodes agree with their parents and the margin.

Nodes whose children are counted by the same cells of the margin are the rows of one block. Blocks are independent of
each other: they are cut into tasks by their sizes alone, which are public or released, so that a level is the same
whoever runs it. The noise of a cell is a function of the level's key and of the cell's place among all blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.measure.batch import repaired_by
from treetop.measure.evidence import NOTHING, LevelEvidence, Remainders
from treetop.measure.executor import Executor
from treetop.measure.frontier import Descended, Frontier
from treetop.measure.level import Step
from treetop.measure.measure import add_counts
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured
from treetop.read.counts import Counts
from treetop.repair.settle import begin, settled, solve
from treetop.repair.state import STATE_SIZE
from treetop.repair.sweep import SCRATCH_SIZE
from treetop.repair.two_sided import MOST_ROUNDS, MOST_SWEEPS, TOLERANCE, repair_block

Ints = NDArray[np.int64]

CELLS = 1 << 18
"""About so many cells are one task, unless a block has more."""
FAR = 6.0
"""So many standard deviations lower is what a row's own repair sets to zero, as a target of the block."""


@dataclass(frozen=True, eq=False)
class Columns:
    """What the children of all retained nodes have to add up to."""

    kept: Ints = field(repr=False)
    """The cells of the margin: by group of nodes (row) and node of the refined attribute (column)."""
    measured: Ints | None = field(default=None, repr=False)
    """What was measured of the nodes themselves, where the margin is the level: they are not measured again."""


@dataclass(frozen=True, eq=False)
class BlockTask:
    """Some blocks with all that their repair needs: private, as counts and key are."""

    step: Step
    """The level, which is public."""
    above: Frontier
    """The rows, block by block; their ranges point into the counts."""
    groups: Ints
    """Which group of the margin each row is in."""
    columns: Columns
    """The margin."""
    counts: Counts
    """The private leaves."""
    key: Key = field(repr=False)
    """The secret of the level's noise."""
    cells: int = 0
    """How many cells the blocks before these have."""
    rows: int = 0
    """How many rows there are in them."""


@dataclass(frozen=True, eq=False)
class Refined:
    """The children of some rows that are kept, in the order of the rows."""

    number: Ints
    """By row, how many children are kept."""
    child: NDArray[np.int32]
    """The attribute's node."""
    count: Ints
    start: Ints
    stop: Ints
    measured: Ints
    """What was measured of each; `NOTHING` for an only child."""
    highest: Ints
    """By row, the highest measurement of what is not kept."""
    slots: Ints
    """All measurements, row by row; empty where nobody asks."""


def refine_blocks(
    step: Step, counts: Counts, above: Frontier, groups: Ints, columns: Columns, key: Key, executor: Executor,
    every: int | None = None,
) -> Descended:  # fmt: skip
    """Return the retained children of a frontier, which agree with the columns.

    Evidence is kept as `refine` keeps it.
    """
    attribute = step.level.attribute
    order = np.lexsort((above.nodes[attribute], groups))
    ordered = Frontier(above.nodes[:, order], above.count[order], above.start[order], above.stop[order])
    tasks = _cut(step, ordered, groups[order], columns, counts, key)
    keep_all = every is not None and step.level.nodes <= every
    parts = list(executor.map(_run_all if keep_all else _run, tasks))
    return _in_spine_order(step, above, order, parts, every)


def _cut(step: Step, above: Frontier, groups: Ints, columns: Columns, counts: Counts, key: Key) -> list[BlockTask]:
    """Cut rows into tasks of whole blocks."""
    node = above.nodes[step.level.attribute]
    slots = step.fanout(above)
    changes = (groups[1:] != groups[:-1]) | (node[1:] != node[:-1])
    before = np.concatenate([[0], np.cumsum(slots)])
    bounds = [0]
    for begins in (np.flatnonzero(changes) + 1).tolist():
        if before[begins] - before[bounds[-1]] >= CELLS:
            bounds.append(begins)
    bounds.append(len(node))
    return [
        BlockTask(step, above[a:b], groups[a:b], columns, counts, key, int(before[a]), a)
        for a, b in pairwise(bounds)
        if a < b
    ]


def _run_all(task: BlockTask) -> Refined:
    return _run(task, keep_all=True)


def _run(task: BlockTask, keep_all: bool = False) -> Refined:
    """Measure and repair the blocks of a task: a pure function."""
    step, above = task.step, task.above
    first, node = step.level.first, above.nodes[step.level.attribute]
    slots = step.fanout(above)
    size = int(slots.sum())
    value = np.empty(size, np.int64)
    if task.columns.measured is not None:
        value[:] = task.columns.measured[_children(first, node[slots > 0])]
    elif isinstance(step.how, Measured):
        NoiseStream(step.how.law, task.key.derive("noise")).fill(value, task.cells)
    start, stop = (np.zeros(0 if step.last else size, np.int64) for _ in range(2))
    there = slots > 0
    _count_cells(
        value, start, stop, slots, *step.leaves(task.counts), above.start, above.stop, task.columns.measured is None
    )
    ties = int.from_bytes(task.key.derive("ties").secret[:6], "little") + task.rows
    far = FAR * step.how.law.standard_deviation if isinstance(step.how, Measured) else 0.0
    alone = _repaired_rows(step, value, slots, above.count, ties)
    out = np.zeros(size, np.int64)
    repair_blocks(
        value, alone, slots, above.count, node, task.groups, first, task.columns.kept, far, step.repair.is_nearest, out
    )
    return _kept(step, above, there, slots, value, out, start, stop, keep_all)


def _children(first: Ints, node: NDArray[np.integer]) -> Ints:
    """Return all children of some nodes."""
    size = first[node + 1] - first[node]
    before = np.cumsum(size) - size
    children: Ints = np.arange(int(size.sum())) + np.repeat(first[node] - before, size)
    return children


@kernel
def _count_cells(
    value: Ints, start: Ints, stop: Ints, slots: Ints, keys: NDArray[np.uint64], shift: int, mask: np.uint64,
    before: Ints, starts: Ints, stops: Ints, measures: bool,
) -> None:  # fmt: skip
    """Turn noise into measurements, and write down where the private leaves of every child are.

    What was measured before is not measured again: the true counts are then added to numbers that nobody reads.
    """
    at = 0
    for i in range(len(slots)):
        end = at + slots[i]
        if slots[i] > 0:
            x = value[at:end] if measures else np.zeros(slots[i], np.int64)
            if measures or len(start) > 0:
                add_counts(x, start[at:end], stop[at:end], 0, keys, shift, mask, before, starts[i], stops[i])
        at = end


def _repaired_rows(step: Step, value: Ints, slots: Ints, count: Ints, ties: int) -> Ints:
    """Return what every row would be were it repaired alone."""
    alone = np.empty(len(value), np.int64)
    if step.repair.code is not None:
        _repair_rows(value, slots, count, step.repair.code, step.order.code, ties, alone)
        return alone
    at = 0
    for i, size in enumerate(slots.tolist()):
        if size:
            x = value[at : at + size].copy()
            alone[at : at + size] = repaired_by(step.repair, x, int(count[i]), step.order, ties + i)
        at += size
    return alone


@kernel
def _repair_rows(value: Ints, slots: Ints, count: Ints, kind: int, order: int, ties: int, out: Ints) -> None:
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    at = 0
    for i in range(len(slots)):
        end = at + slots[i]
        if slots[i] > 0:
            begin(state, slots[i], count[i], kind, order, np.uint64(ties + i))
            solve(state, scratch, value[at:end])
            for k in range(at, end):
                out[k] = settled(state, value[k])
        at = end


@kernel
def repair_blocks(
    value: Ints, alone: Ints, slots: Ints, count: Ints, node: NDArray[np.int32], groups: Ints, first: Ints, kept: Ints,
    far: float, nearest: bool, out: Ints,
) -> None:  # fmt: skip
    """Repair block after block; rows of one block follow each other.

    A target is the measurement itself where the repair is by least squares; else what the row's own repair makes of
    it, and far below the measurement where that is zero.
    """
    i, at = 0, 0
    while i < len(slots):
        end = i + 1
        while end < len(slots) and groups[end] == groups[i] and node[end] == node[i]:
            end += 1
        width = slots[i]
        if width > 0:
            stop = at + width * (end - i)
            target = np.empty(stop - at)
            likely = np.empty(stop - at, np.bool_)
            for k in range(at, stop):
                likely[k - at] = alone[k] > 0
                lowered = np.float64(alone[k]) if alone[k] > 0 else value[k] - far
                target[k - at] = value[k] if nearest else lowered
            columns = kept[groups[i], first[node[i]] : first[node[i]] + width]
            spare = columns.sum() - count[i:end].sum()
            repair_block(
                target, likely, count[i:end], columns, spare, 0.5 * far + 1.0, TOLERANCE, MOST_SWEEPS, MOST_ROUNDS,
                out[at:stop],
            )  # fmt: skip
            at = stop
        i = end


def _kept(
    step: Step, above: Frontier, there: NDArray[np.bool_], slots: Ints, value: Ints, out: Ints, start: Ints, stop: Ints,
    keep_all: bool,
) -> Refined:  # fmt: skip
    """Return the children above zero, and all only children."""
    rows = np.arange(len(slots))
    parent = np.repeat(rows, slots)
    above_zero = np.flatnonzero(out > 0)
    only = np.flatnonzero(~there)
    first, node = step.level.first, above.nodes[step.level.attribute]
    child = _children(first, node[there])[above_zero] if len(above_zero) else above_zero
    row = np.concatenate([parent[above_zero], only])
    order = np.argsort(row, kind="stable")
    start, stop = (
        own if step.last else np.concatenate([own[above_zero], whole[only]])[order]
        for own, whole in ((start, above.start), (stop, above.stop))
    )
    highest = np.full(len(rows), NOTHING, np.int64)
    zeroed = out == 0
    np.maximum.at(highest, parent[zeroed], value[zeroed])
    return Refined(
        np.bincount(row, minlength=len(rows)),
        np.concatenate([child, first[node[only]]])[order].astype(np.int32),
        np.concatenate([out[above_zero], above.count[only]])[order],
        start,
        stop,
        np.concatenate([value[above_zero], np.full(len(only), NOTHING)])[order],
        highest,
        value if keep_all else value[:0],
    )


def _in_spine_order(step: Step, above: Frontier, order: Ints, parts: Sequence[Refined], every: int | None) -> Descended:
    """Join what was found block by block to a frontier, and its evidence, in spine order."""
    number = np.concatenate([np.empty(0, np.int64), *(part.number for part in parts)])
    moved = _regroup(order, number)
    row = np.repeat(np.arange(len(order)), number[np.argsort(order)])
    nodes = above.nodes.take(row, axis=1)

    def joined(name: str) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])

    nodes[step.level.attribute] = joined("child")[moved]
    ranges = (joined(name) if step.last else joined(name)[moved] for name in ("start", "stop"))
    frontier = Frontier(nodes, joined("count")[moved], *ranges)
    if every is None:
        return Descended(frontier)
    highest = np.empty(len(order), np.int64)
    highest[order] = joined("highest")
    slots = joined("slots")
    if len(slots):
        slots = slots[_regroup(order, step.fanout(above)[order])]
    return Descended(frontier, ((LevelEvidence(joined("measured")[moved], highest, slots),),))


def _regroup(order: Ints, number: Ints) -> Ints:
    """Return where the values are now that, with so many a row, stand in the order of other rows.

    Row k of the values is row `order[k]` of those that are wanted.
    """
    back = np.argsort(order)
    start = (np.cumsum(number) - number)[back]
    size = number[back]
    before = np.cumsum(size) - size
    places: Ints = np.arange(int(size.sum())) + np.repeat(start - before, size)
    return places


def leave_unnamed(step: Step, above: Frontier, found: Descended, named: int) -> Descended:
    """Leave what children that measured less than `named` have at their parents."""
    ((seen,),) = found.levels
    low = (seen.measured < named) & (seen.measured > NOTHING)
    if not low.any():
        return found
    parent = _parents(above, found.frontier, step)
    left = np.bincount(parent[low], found.frontier.count[low], minlength=len(above)).astype(np.int64)
    highest = seen.highest.copy()
    np.maximum.at(highest, parent[low], seen.measured[low])
    whole = found.frontier
    ranges = (whole.start, whole.stop) if step.last else (whole.start[~low], whole.stop[~low])
    there = np.flatnonzero(left)
    index = np.full(len(there), step.level.index - 1, np.int32)
    return replace(
        found,
        frontier=Frontier(whole.nodes[:, ~low], whole.count[~low], *ranges),
        levels=((LevelEvidence(seen.measured[~low], highest, seen.slots),),),
        left=(Remainders(index, above.nodes[:, there], left[there]),),
    )


def _parents(above: Frontier, below: Frontier, step: Step) -> Ints:
    """Return which node of a frontier each child belongs to: both are in spine order."""
    level = step.level
    nodes = below.nodes.copy()
    nodes[level.attribute] = np.searchsorted(level.first, nodes[level.attribute], side="right") - 1
    starts = np.append(True, (nodes[:, 1:] != nodes[:, :-1]).any(axis=0))
    parents: Ints = np.cumsum(starts) - 1
    return parents
