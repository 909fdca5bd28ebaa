"""Refine one level under a margin: children agree with their parents and with the margin.

Nodes with children in the same cells of the margin are the rows of one block. Blocks are independent of each other. The
noise of a cell is a function of the level's key and of the cell's place in the public domain, so the result does not
depend on the engine or on the division into tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import copy_into
from treetop._util.kernel import kernel, kernel_in_place
from treetop._util.numbers import NO_BOUND
from treetop.counts.counts import Counts
from treetop.domain.spine_level import AttributeStep
from treetop.engine.engine import Executor
from treetop.measure._batch import repaired_by
from treetop.measure._regrouped import Blocks, Refined, RefinedLevel, cells_from
from treetop.measure.level import Frontier, Step, seeds
from treetop.measure.measure import NOTHING, add_counts
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured
from treetop.repair.bounded import repair_bounded
from treetop.repair.state import EUCLIDEAN, SCRATCH_SIZE, STATE_SIZE, begin, settled, solve
from treetop.repair.streamed import repair_streamed
from treetop.repair.two_sided import CLEAR, MOST_ROUNDS, MOST_SWEEPS, TOLERANCE, repair_block, repair_bounded_block

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

CELLS = 1 << 18
"""Target size of one task, in cells; a larger block is a task of its own."""
PIECE = 1 << 18
"""Cells of a large block that are processed at a time."""
LARGE = 1 << 22
"""A block with more cells is never in memory as a whole: its rows are measured again for every sweep."""
FAR = 6.0
"""Targets of cells that the row's own repair sets to zero are this many standard deviations lower."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The column sums that the children of all retained nodes must have."""

    kept: Ints = field(repr=False)
    """Cells of the margin: by group of nodes (row) and node of the refined attribute (column)."""
    measured: Ints | None = field(default=None, repr=False)
    """Measurements of the nodes themselves, if the margin is the level: they are not measured again. None otherwise."""


@dataclass(frozen=True, eq=False)
class BlockTask:
    """Some blocks with everything that their repair needs. Private: contains counts and the key."""

    step: Step
    """The level (public)."""
    above: Frontier
    """The rows, block by block, with ranges into the counts."""
    groups: Ints
    """Group of the margin for each row."""
    columns: Columns
    counts: Counts
    key: Key = field(repr=False)
    """Key of the level's noise (secret)."""
    rows: int = 0
    """Number of rows in the blocks before these."""
    limited: bool = False
    """Whether some cells are impossible or bounded."""


def refine_blocks(
    blocks: Blocks, counts: Counts, columns: Columns, key: Key, executor: Executor, every: int | None = None,
    limited: bool = False,
) -> RefinedLevel:  # fmt: skip
    """Return the retained children of a frontier; they agree with the columns.

    If some are impossible or bounded, they agree as nearly as the bounds allow. `every` selects the evidence, as in
    `refine`.
    """
    tasks = block_tasks(blocks, columns, counts, key, limited)
    return RefinedLevel.of(blocks, every, _run_tasks(tasks, executor, blocks.step.keeps_all(every)))


def _run_tasks(tasks: Sequence[BlockTask], executor: Executor, keep_all: bool) -> Iterator[Refined]:
    """Yield the results of tasks in order: large blocks one after the other, all tasks between them in parallel."""
    for large, some in groupby(tasks, _is_large):
        if large:
            yield from (_run_large(task, executor, keep_all) for task in some)
        else:
            yield from executor.map(_run_all if keep_all else _run, some)


def block_tasks(blocks: Blocks, columns: Columns, counts: Counts, key: Key, limited: bool = False) -> list[BlockTask]:
    """Cut rows into tasks of whole blocks; a large block is a task of its own."""
    step, above, groups = blocks.step, blocks.above, blocks.groups
    return [BlockTask(step, above[a:b], groups[a:b], columns, counts, key, a, limited) for a, b in cut_blocks(blocks)]


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
    """Measure and repair the blocks of a task (a pure function)."""
    step, above = task.step, task.above
    slots = step.fanout(above)
    value, start, stop = measure_cells(task, slots)
    ties, sigma, code, order = ties_of(task), sigma_of(step), step.repair.code or 0, step.order.code
    if task.limited:
        out = _within_bounds(task, slots, value, ties, sigma)
        return kept_cells(task, slots, value, out, start, stop, keep_all)
    alone = value[:0] if step.repair.code is not None else repaired_rows(step, value, slots, above.count, ties)
    out, (refined,) = np.zeros(len(value), np.int64), step.level.parts
    node = np.ascontiguousarray(above.nodes[refined.attribute])  # for other strides it would be compiled again
    repair_blocks(
        value, alone, slots, above.count, node, task.groups, refined.first, task.columns.kept, sigma, code, order, ties,
        out,
    )  # fmt: skip
    return kept_cells(task, slots, value, out, start, stop, keep_all)


def ties_of(task: BlockTask) -> Ints:
    """Return the tie-breaking seed of each row."""
    return seeds(task.key, task.step.places.first(task.above.nodes))


def sigma_of(step: Step) -> float:
    """Return the standard deviation of the noise of a cell."""
    return step.how.law.standard_deviation if isinstance(step.how, Measured) else 0.0


def _is_large(task: BlockTask) -> bool:
    """Whether a task is one block that is too large for memory."""
    if task.limited or task.step.level.widest * len(task.above) <= LARGE:
        return False
    (refined,) = task.step.level.parts
    node, groups = task.above.nodes[refined.attribute], task.groups
    is_one = node[0] == node[-1] and groups[0] == groups[-1] and task.step.level.is_plain
    return bool(is_one) and int(task.step.fanout(task.above[:1])[0]) * len(node) > LARGE


def _pieces(task: BlockTask) -> list[BlockTask]:
    """Cut a large block into ranges of rows."""
    width = int(task.step.fanout(task.above[:1])[0])
    height = max(PIECE // width, 1)
    return [
        replace(
            task,
            above=task.above[first : first + height],
            groups=task.groups[first : first + height],
            rows=task.rows + first,
        )
        for first in range(0, len(task.above), height)
    ]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows of a large block, for repeated reading by the repair. Private: contains counts and the key."""

    task: BlockTask
    first: int

    @property
    def height(self) -> int:
        return len(self.task.above)

    def opened(self) -> tuple[Reals, NDArray[np.bool_]]:
        step, count, ties = self.task.step, self.task.above.count, ties_of(self.task)
        slots, value = self._measured()
        alone = value[:0] if step.repair.code is not None else repaired_rows(step, value, slots, count, ties)
        target, likely = np.empty(len(value)), np.empty(len(value), np.bool_)
        set_targets(value, alone, count, sigma_of(step), step.repair.code or 0, step.order.code, ties, target, likely)
        return target, likely

    def targets(self) -> Reals:
        far = 0.0 if self.task.step.repair.code == EUCLIDEAN else FAR * sigma_of(self.task.step)
        return self._measured()[1].astype(np.float64) - far

    def _measured(self) -> tuple[Ints, Ints]:
        slots = self.task.step.fanout(self.task.above)
        return slots, measure_cells(self.task, slots)[0]


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
        cell, whole = repair_streamed(pieces, count, columns, spare, sigma_of(task.step), executor.map)
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
    """Measure the cells of a task; also return the ranges of their leaves. The only function here that reads counts.

    Noise is determined by the place of a cell, so a cell that is read twice has the same measurement: it is measured
    once.
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
    """Return the nodes of a task's cells."""
    (refined,) = task.step.level.parts
    if not task.step.level.is_plain:
        listed: Ints = task.step.children(task.above)[refined.attribute].astype(np.int64)
        return listed
    before = np.cumsum(slots) - slots
    eldest = refined.first[task.above.nodes[refined.attribute]]
    children: Ints = np.arange(int(slots.sum())) + np.repeat(eldest - before, slots)
    return children


@kernel
def _count_cells(
    value: Ints, start: Ints, stop: Ints, slots: Ints, keys: NDArray[np.uint64], shift: int, mask: np.uint64,
    before: Ints, starts: Ints, stops: Ints, measures: bool,
) -> None:  # fmt: skip
    """Add true counts to noise, and write the range of private leaves of every child.

    If `measures` is false, `value` holds measurements already and stays unchanged; only the ranges are written.
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
    """Return every row as repaired alone, by a custom repair."""
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
    sigma: float, kind: int, order: int, ties: Ints, out: Ints,
) -> None:  # fmt: skip
    """Repair block after block; the rows of one block are adjacent."""
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
            set_targets(value[own], alone[own], count[i:end], sigma, kind, order, ties[i:end], target, likely)
            repair_block(
                target, likely, count[i:end], columns, spare, sigma, TOLERANCE, MOST_SWEEPS, MOST_ROUNDS,
                out[at : at + width * height],
            )  # fmt: skip
        at += width * height
        i = end


@kernel
def set_targets(
    value: Ints, alone: Ints, count: Ints, sigma: float, kind: int, order: int, ties: Ints, target: Reals,
    likely: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Write the targets of some rows of one block, and which cells are likely to be above zero.

    With least squares, or if it is clear, a target is the measurement. Otherwise it is the value after the row's own
    repair, or far below the measurement if that value is zero. Rows that are repaired already are given as `alone`.
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
            if kind == EUCLIDEAN or x[j] > CLEAR * sigma:
                target[k] = x[j]
            else:
                target[k] = repaired if repaired > 0 else x[j] - FAR * sigma


# Levels with impossible or bounded cells: rows are exact and within their bounds, columns as near as these allow.


def _within_bounds(task: BlockTask, slots: Ints, value: Ints, ties: Ints, sigma: float) -> Ints:
    """Return the whole numbers of a task's cells, repaired within their bounds block by block.

    The columns are first scaled to the total of the rows: a level above may have left an attribute's nodes with other
    counts than the margin has. Cells of a block without a slot are zero. A block with very many cells keeps its rows as
    they are repaired alone.
    """
    step, above, count, (refined,) = task.step, task.above, task.above.count, task.step.level.parts
    lower, upper = np.zeros_like(value), np.full(len(value), NO_BOUND, np.int64)
    if step.facts is not None:
        lower, upper = step.bounds(above)
    target, out = np.empty(len(value)), np.empty(len(value), np.int64)
    repair_rows(value, lower, upper, slots, count, sigma, step.repair.code or 0, step.order.code, ties, target, out)
    node, child = above.nodes[refined.attribute], _children(task, slots)
    only = step.first_children(above)[refined.attribute].astype(np.int64)
    changes = np.flatnonzero((np.diff(task.groups) != 0) | (np.diff(node) != 0)) + 1
    before = np.concatenate([[0], np.cumsum(slots)])
    for first, last in pairwise([0, *changes.tolist(), len(slots)]):
        eldest, after = int(refined.first[node[first]]), int(refined.first[node[first] + 1])
        width, height, rows = after - eldest, last - first, count[first:last]
        if not slots[first:last].any() or width * height > LARGE:
            continue
        own = slice(int(before[first]), int(before[last]))
        place = np.repeat(np.arange(height), slots[first:last]) * width + child[own] - eldest
        targets, (least, most, whole) = np.zeros(width * height), np.zeros((3, width * height), np.int64)
        targets[place], least[place], most[place] = target[own], lower[own], upper[own]
        alone = np.flatnonzero(slots[first:last] == 0)
        fixed = alone * width + only[first:last][alone] - eldest
        least[fixed] = most[fixed] = rows[alone]
        columns = brought_to(task.columns.kept[task.groups[first], eldest:after], int(rows.sum()))
        repair_bounded_block(targets, least, most, rows, columns, 0, sigma, TOLERANCE, MOST_SWEEPS, whole)
        out[own] = whole[place]
    return out


@kernel
def repair_rows(
    value: Ints, lower: Ints, upper: Ints, slots: Ints, count: Ints, sigma: float, kind: int, order: int, ties: Ints,
    target: Reals, alone: Ints,
) -> None:  # fmt: skip
    """Write every row as repaired alone within its bounds, and the targets of its cells.

    Targets are those of `set_targets`.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    at = 0
    for i in range(len(slots)):
        end = at + slots[i]
        if slots[i] > 0:
            x, own = value[at:end], alone[at:end]
            repair_bounded(
                x, lower[at:end], upper[at:end], count[i], kind, order, np.uint64(ties[i]), state, scratch, own
            )
            for k in range(at, end):
                if kind == EUCLIDEAN or value[k] > CLEAR * sigma:
                    target[k] = value[k]
                else:
                    target[k] = alone[k] if alone[k] > 0 else value[k] - FAR * sigma
        at = end


def columns_of_rows(kept: Ints, blocks: Blocks, refined: AttributeStep) -> Ints:
    """Return the columns of a margin, block by block, in proportion to the total of the block's rows."""
    columns, total = kept.copy(), blocks.counts()
    group, parent = np.divmod(blocks.number, len(refined.first) - 1)
    for row, first, last, count in zip(group, refined.first[parent], refined.first[parent + 1], total, strict=True):
        columns[row, first:last] = brought_to(columns[row, first:last], int(count))
    return columns


def brought_to(columns: Ints, total: int) -> Ints:
    """Return whole numbers in proportion to `columns` that add up to `total`, by largest remainders.

    >>> brought_to(np.array([3, 1, 0]), 6).tolist()
    [5, 1, 0]
    """
    known = int(columns.sum())
    if known == total:
        return columns
    if known == 0:
        columns, known = np.ones_like(columns), len(columns)
    share = columns * (total / known)
    whole: Ints = np.floor(share).astype(np.int64)
    most = np.argsort(whole - share, kind="stable")[: max(total - int(whole.sum()), 0)]
    whole[most] += 1
    whole[int(np.argmax(whole))] += total - int(whole.sum())  # rounding of very large numbers
    return whole


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
    """Return the positions of the values of some rows, given the number of values per row."""
    return cells_from((np.cumsum(number) - number)[rows], number[rows])
