"""One level of a descent under a margin: the children of all retained nodes agree with their parents and the margin.

Nodes whose children are counted by the same cells of the margin are the rows of one block. Blocks are independent of
each other, and the noise of a cell is a function of the level's key and of the cell's place in the public domain: a
level is the same whoever runs it, and however it is cut into tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import copy_into
from treetop._util.kernel import kernel, kernel_in_place
from treetop.counts.counts import Counts
from treetop.engine.executor import Executor
from treetop.measure.batch import repaired_by
from treetop.measure.level import Frontier, Step, seeds
from treetop.measure.measure import NOTHING, add_counts
from treetop.measure.regrouped import Blocks, Refined, RefinedLevel, cells_from
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured
from treetop.repair.state import EUCLIDEAN, SCRATCH_SIZE, STATE_SIZE, begin, settled, solve
from treetop.repair.streamed import repair_streamed
from treetop.repair.two_sided import MOST_ROUNDS, MOST_SWEEPS, TOLERANCE, repair_block

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

CELLS = 1 << 18
"""About so many cells are one task, unless a block has more."""
PIECE = 1 << 18
"""About so many cells of a large block are looked at together."""
LARGE = 1 << 22
"""A block with more cells is never in memory as a whole: its rows are measured again for every sweep."""
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
class SoftMarginal:
    """A table that the children agree with as nearly as their columns allow."""

    groups: Ints = field(repr=False)
    """Which row of the table each node is in, block by block."""
    kept: Ints = field(repr=False)
    """The cells of the table, as those of `Columns`."""
    variance: float
    """That of the noise of one cell."""


@dataclass(frozen=True, eq=False)
class TargetShift:
    """By how much measurements are moved before the fit, because of a table that they should nearly agree with."""

    groups: Ints = field(repr=False)
    """Which row of the moves each node is in."""
    by: Reals = field(repr=False)
    """By group and node of the refined attribute."""


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
    rows: int = 0
    """How many rows there are in the blocks before these."""
    moves: tuple[TargetShift, ...] = ()
    """What moves the measurements of these rows."""


def refine_blocks(
    blocks: Blocks, counts: Counts, columns: Columns, nearly: Sequence[SoftMarginal], key: Key, executor: Executor,
    every: int | None = None,
) -> RefinedLevel:  # fmt: skip
    """Return the retained children of a frontier, which agree with the columns, and nearly with other tables.

    Evidence is kept as `refine` keeps it.
    """
    tasks = block_tasks(blocks, columns, counts, key)
    for near in nearly:
        tasks = moved_tasks(tasks, near, executor)
    return RefinedLevel.of(blocks, every, _run_tasks(tasks, executor, blocks.step.keeps_all(every)))


def _run_tasks(tasks: Sequence[BlockTask], executor: Executor, keep_all: bool) -> Iterator[Refined]:
    """Yield what tasks give in their order: large blocks one after the other, and what is between them at once."""
    for large, some in groupby(tasks, _is_large):
        if large:
            yield from (_run_large(task, executor, keep_all) for task in some)
        else:
            yield from executor.map(_run_all if keep_all else _run, some)


def moved_tasks(tasks: Sequence[BlockTask], near: SoftMarginal, executor: Executor) -> list[BlockTask]:
    """Move measurements towards a table, each by its part of the gap between the table and what they sum to.

    That is the best linear update of independent measurements by a noisy sum of them.
    """
    own = [near.groups[task.rows : task.rows + len(task.above)] for task in tasks]
    total, number = np.zeros(near.kept.shape), np.zeros(near.kept.shape)
    pieces = [piece for task in tasks for piece in (_pieces(task) if _is_large(task) else [task])]
    asked = [(piece, near.groups[piece.rows : piece.rows + len(piece.above)], near.kept.shape) for piece in pieces]
    for summed, counted in executor.map(_sum_up, asked):
        total += summed
        number += counted
    how = tasks[0].step.how if tasks else None
    variance = how.law.standard_deviation**2 if isinstance(how, Measured) else 0.0
    by = (near.kept - total) * variance / np.maximum(number * variance + near.variance, 1e-9)
    return [replace(task, moves=(*task.moves, TargetShift(one, by))) for task, one in zip(tasks, own, strict=True)]


def _sum_up(asked: tuple[BlockTask, Ints, tuple[int, int]]) -> tuple[Reals, Reals]:
    """Return what the measurements of a task sum to in every cell of a table, and how many they are."""
    task, groups, shape = asked
    slots = task.step.fanout(task.above)
    value, _, _ = measure_cells(task, slots)
    cell = np.repeat(groups, slots) * shape[1] + _children(task, slots)
    size = shape[0] * shape[1]
    total, number = (np.zeros(size), np.zeros(size))
    total += np.bincount(cell, wanted_of(task, slots, value), minlength=size)
    number += np.bincount(cell, minlength=size)
    return total.reshape(shape), number.reshape(shape)


def block_tasks(blocks: Blocks, columns: Columns, counts: Counts, key: Key) -> list[BlockTask]:
    """Cut rows into tasks of whole blocks; a large block is a task of its own."""
    step, above, groups = blocks.step, blocks.above, blocks.groups
    return [BlockTask(step, above[a:b], groups[a:b], columns, counts, key, a) for a, b in cut_blocks(blocks)]


def cut_blocks(blocks: Blocks) -> Iterator[tuple[int, int]]:
    """Cut rows into runs of whole blocks; a large block is a run of its own."""
    if int(blocks.cells.sum()) < CELLS:
        return iter([(0, len(blocks))] if len(blocks) else [])
    bounds, cells, before = [0], 0, 0
    for first, size in zip((np.cumsum(blocks.rows) - blocks.rows).tolist(), blocks.cells.tolist(), strict=True):
        if cells >= CELLS or max(before, size) > LARGE:
            bounds.append(first)
            cells = 0
        cells, before = cells + size, size
    return ((a, b) for a, b in pairwise([*bounds, len(blocks)]) if a < b)


def _run_all(task: BlockTask) -> Refined:
    return _run(task, keep_all=True)


def _run(task: BlockTask, keep_all: bool = False) -> Refined:
    """Measure and repair the blocks of a task: a pure function."""
    step, above = task.step, task.above
    slots = step.fanout(above)
    value, start, stop = measure_cells(task, slots)
    wanted, ties, far = wanted_of(task, slots, value), ties_of(task), far_of(step)
    alone = value[:0] if step.repair.code is not None else repaired_rows(step, wanted, slots, above.count, ties)
    out, (refined,) = np.zeros(len(value), np.int64), step.level.parts
    node = np.ascontiguousarray(above.nodes[refined.attribute])  # for other strides it would be compiled again
    repair_blocks(
        wanted, alone, slots, above.count, node, task.groups, refined.first, task.columns.kept, far,
        step.repair.code or 0, step.order.code, ties, out,
    )  # fmt: skip
    return kept_cells(task, slots, value, out, start, stop, keep_all)


def wanted_of(task: BlockTask, slots: Ints, value: Ints) -> Ints:
    """Return the measurements of a task as they are fitted: moved towards tables that they nearly agree with."""
    return value + np.rint(_moves(task, slots)).astype(np.int64) if task.moves else value


def ties_of(task: BlockTask) -> Ints:
    """Return what breaks the ties of each row."""
    return seeds(task.key, task.step.places.first(task.above.nodes))


def far_of(step: Step) -> float:
    """Return how far below a measurement the target is of what a row's own repair sets to zero."""
    return FAR * step.how.law.standard_deviation if isinstance(step.how, Measured) else 0.0


def _is_large(task: BlockTask) -> bool:
    """Whether a task is one block that is not to be in memory as a whole."""
    if task.step.level.widest * len(task.above) <= LARGE:
        return False
    (refined,) = task.step.level.parts
    node, groups = task.above.nodes[refined.attribute], task.groups
    is_one = node[0] == node[-1] and groups[0] == groups[-1] and task.step.level.is_plain
    return bool(is_one) and int(task.step.fanout(task.above[:1])[0]) * len(node) > LARGE


def _pieces(task: BlockTask) -> list[BlockTask]:
    """Cut a large block into runs of rows."""
    width = int(task.step.fanout(task.above[:1])[0])
    height = max(PIECE // width, 1)
    return [
        replace(
            task,
            above=task.above[first : first + height],
            groups=task.groups[first : first + height],
            rows=task.rows + first,
            moves=tuple(replace(one, groups=one.groups[first : first + height]) for one in task.moves),
        )
        for first in range(0, len(task.above), height)
    ]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows of a large block, for the repair that asks for them again and again: private, as counts and key are."""

    task: BlockTask
    first: int

    @property
    def height(self) -> int:
        return len(self.task.above)

    def opened(self) -> tuple[Reals, NDArray[np.bool_]]:
        step, count, ties = self.task.step, self.task.above.count, ties_of(self.task)
        slots, wanted = self._wanted()
        alone = wanted[:0] if step.repair.code is not None else repaired_rows(step, wanted, slots, count, ties)
        target, likely = np.empty(len(wanted)), np.empty(len(wanted), np.bool_)
        set_targets(wanted, alone, count, far_of(step), step.repair.code or 0, step.order.code, ties, target, likely)
        return target, likely

    def targets(self) -> Reals:
        _, wanted = self._wanted()
        far = 0.0 if self.task.step.repair.code == EUCLIDEAN else far_of(self.task.step)
        return wanted.astype(np.float64) - far

    def _wanted(self) -> tuple[Ints, Ints]:
        slots = self.task.step.fanout(self.task.above)
        return slots, wanted_of(self.task, slots, measure_cells(self.task, slots)[0])


def _run_large(task: BlockTask, executor: Executor, keep_all: bool) -> Refined:
    """Measure and repair one large block, some rows at a time."""
    count, tasks = task.above.count, _pieces(task)
    (refined,) = task.step.level.parts
    eldest = int(refined.first[task.above.nodes[refined.attribute, 0]])
    width = int(task.step.fanout(task.above[:1])[0])
    columns = task.columns.kept[task.groups[0], eldest : eldest + width]
    spare = int(columns.sum() - count.sum())
    if len(count) == 1 and spare == 0:
        cell, whole = np.arange(width), columns
    else:
        pieces = [_Piece(one, one.rows - task.rows) for one in tasks]
        cell, whole = repair_streamed(pieces, count, columns, spare, scale_of(far_of(task.step)), executor.map)
    begins = [(one.rows - task.rows) * width for one in tasks]
    bounds = np.searchsorted(cell, [*begins, width * len(count)])
    asked = [
        (one, cell[a:b] - begin, whole[a:b], keep_all)
        for one, begin, (a, b) in zip(tasks, begins, pairwise(bounds.tolist()), strict=True)
    ]
    parts = list(executor.map(_keep_piece, asked))
    return Refined(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Refined)))


def _keep_piece(asked: tuple[BlockTask, Ints, Ints, bool]) -> Refined:
    task, cell, whole, keep_all = asked
    slots = task.step.fanout(task.above)
    value, start, stop = measure_cells(task, slots)
    out = np.zeros(len(value), np.int64)
    out[cell] = whole
    return kept_cells(task, slots, value, out, start, stop, keep_all)


def measure_cells(task: BlockTask, slots: Ints) -> tuple[Ints, Ints, Ints]:
    """Measure the cells of a task: the one place here that reads private counts. Also return where each one's are.

    Noise is found by its place, so that cells which are looked at twice are measured once: the same numbers come back.
    """
    step, above, before = task.step, task.above, task.columns.measured
    size = int(slots.sum())
    value = np.empty(size, np.int64)
    if before is not None:
        value[:] = before[_children(task, slots)]
    elif isinstance(step.how, Measured):
        NoiseStream(step.how.law, task.key.derive("noise")).fill_runs(value, step.places.first(above.nodes), slots)
    start, stop = (np.zeros(0 if step.last else size, np.int64) for _ in range(2))
    _count_cells(value, start, stop, slots, *step.leaves(task.counts, above), above.start, above.stop, before is None)
    return value, start, stop


def _children(task: BlockTask, slots: Ints) -> Ints:
    """Return the nodes that the cells of a task are of."""
    (refined,) = task.step.level.parts
    if not task.step.level.is_plain:
        listed: Ints = task.step.children(task.above)[refined.attribute].astype(np.int64)
        return listed
    before = np.cumsum(slots) - slots
    eldest = refined.first[task.above.nodes[refined.attribute]]
    children: Ints = np.arange(int(slots.sum())) + np.repeat(eldest - before, slots)
    return children


def _moves(task: BlockTask, slots: Ints) -> Reals:
    """Return by how much every measurement of a task is moved."""
    moved = np.zeros(int(slots.sum()))
    for one in task.moves:
        moved += one.by[np.repeat(one.groups, slots), _children(task, slots)]
    return moved


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


def repaired_rows(step: Step, value: Ints, slots: Ints, count: Ints, ties: Ints) -> Ints:
    """Return what every row would be were it repaired alone, by a repair of somebody's own."""
    alone, at = np.empty(len(value), np.int64), 0
    for i, size in enumerate(slots.tolist()):
        if size:
            x = value[at : at + size].copy()
            alone[at : at + size] = repaired_by(step.repair, x, int(count[i]), step.order, int(ties[i]))
        at += size
    return alone


@kernel
def repair_blocks(
    value: Ints, alone: Ints, slots: Ints, count: Ints, node: NDArray[np.int32], groups: Ints, first: Ints, kept: Ints,
    far: float, kind: int, order: int, ties: Ints, out: Ints,
) -> None:  # fmt: skip
    """Repair block after block; rows of one block follow each other."""
    i, at = 0, 0
    while i < len(slots):
        end = i + 1
        while end < len(slots) and groups[end] == groups[i] and node[end] == node[i]:
            end += 1
        width, height = slots[i], end - i
        columns = kept[groups[i], first[node[i]] : first[node[i]] + width]
        spare = columns.sum() - count[i:end].sum()
        if width > 0 and height == 1 and spare == 0:
            copy_into(out[at:], columns)  # nothing is left to decide
        elif width > 0:
            target, likely = np.empty(width * height), np.empty(width * height, np.bool_)
            own = slice(at, at + width * height)
            set_targets(value[own], alone[own], count[i:end], far, kind, order, ties[i:end], target, likely)
            repair_block(
                target, likely, count[i:end], columns, spare, scale_of(far), TOLERANCE, MOST_SWEEPS, MOST_ROUNDS,
                out[at : at + width * height],
            )  # fmt: skip
        at += width * height
        i = end


@kernel
def set_targets(
    value: Ints, alone: Ints, count: Ints, far: float, kind: int, order: int, ties: Ints, target: Reals,
    likely: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write the targets of some rows of one block, and which cells are likely to be above zero.

    A target is the measurement itself where the repair is by least squares; else what the row's own repair makes of
    it, and far below the measurement where that is zero. Rows that are repaired already are given as `alone`.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    width = len(value) // len(count)
    for i in range(len(count)):
        x = value[i * width : (i + 1) * width]
        if len(alone) == 0:
            begin(state, width, count[i], kind, order, np.uint64(ties[i]))
            solve(state, scratch, x)
        for j in range(width):
            k = i * width + j
            repaired = settled(state, x[j]) if len(alone) == 0 else alone[k]
            likely[k] = repaired > 0
            target[k] = x[j] if kind == EUCLIDEAN else repaired if repaired > 0 else x[j] - far


@kernel_in_place
def scale_of(far: float) -> float:
    """Return how far one step of a fit may go."""
    return 0.5 * far + 1.0


def kept_cells(
    task: BlockTask, slots: Ints, value: Ints, out: Ints, start: Ints, stop: Ints, keep_all: bool
) -> Refined:
    """Return the children above zero, and all only children."""
    step, above = task.step, task.above
    size = int(np.count_nonzero(out)) + int(np.count_nonzero(slots == 0))
    number, highest = np.zeros(len(slots), np.int64), np.full(len(slots), NOTHING, np.int64)
    count, measured = np.empty(size, np.int64), np.empty(size, np.int64)
    starts, stops = (np.empty(0 if step.last else size, np.int64) for _ in range(2))
    rank = np.empty(size, np.int64)
    _gather(
        value, out, start, stop, slots, above.count, above.start, above.stop, number, highest, rank, count, measured,
        starts, stops,
    )  # fmt: skip
    slots = value if keep_all else np.empty(0, np.int64)  # not a view of what would then stay in memory
    return Refined(number, rank, count, starts, stops, measured, highest, slots)


@kernel_in_place
def _gather(
    value: Ints, out: Ints, start: Ints, stop: Ints, slots: Ints, released: Ints, above_start: Ints, above_stop: Ints,
    number: Ints, highest: Ints, rank: Ints, count: Ints, measured: Ints, starts: Ints, stops: Ints,
) -> None:  # fmt: skip
    tracked = len(starts) > 0
    at, kept = 0, 0
    for i in range(len(slots)):
        if slots[i] == 0:
            rank[kept], count[kept], measured[kept], number[i] = 0, released[i], NOTHING, 1
            if tracked:
                starts[kept], stops[kept] = above_start[i], above_stop[i]
            kept += 1
            continue
        for k in range(at, at + slots[i]):
            if out[k] == 0:
                highest[i] = max(highest[i], value[k])
                continue
            rank[kept], count[kept], measured[kept] = k - at, out[k], value[k]
            if tracked:
                starts[kept], stops[kept] = start[k], stop[k]
            number[i] += 1
            kept += 1
        at += slots[i]


def cells_of_rows(number: Ints, rows: Ints) -> Ints:
    """Return where the values of some rows are, row by row, of values with so many a row."""
    return cells_from((np.cumsum(number) - number)[rows], number[rows])
