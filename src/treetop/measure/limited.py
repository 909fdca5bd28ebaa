"""One level of a descent under a margin where not every cell may have just any count: impossible ones, and bounds.

Rows, the children of one node, are exact and within their bounds; columns agree with the margin as nearly as these
allow. What they are meant to have is first brought to what the rows have together, since a level above may have left an
attribute's nodes with other counts than the margin has.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from treetop.basics.checked import NO_BOUND
from treetop.basics.kernel import kernel
from treetop.domain.level import Refinement
from treetop.engine.executor import Executor
from treetop.intake.counts import Counts
from treetop.measure.blocks import (
    LARGE,
    BlockTask,
    Columns,
    Near,
    block_tasks,
    far_of,
    kept_cells,
    measure_cells,
    moved_tasks,
    scale_of,
    ties_of,
    wanted_of,
)
from treetop.measure.regrouped import Blocks, Found, Refined
from treetop.noise import Key
from treetop.repair.bounded import repair_bounded
from treetop.repair.bounded_blocks import repair_bounded_block
from treetop.repair.state import EUCLIDEAN, STATE_SIZE
from treetop.repair.sweep import SCRATCH_SIZE
from treetop.repair.two_sided import MOST_SWEEPS, TOLERANCE

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def refine_limited(
    blocks: Blocks, counts: Counts, columns: Columns, nearly: Sequence[Near], key: Key, executor: Executor,
    every: int | None = None,
) -> Found:  # fmt: skip
    """Return the retained children of a frontier, within their bounds and as near to the columns as these allow."""
    tasks = block_tasks(blocks, columns, counts, key)
    for near in nearly:
        tasks = moved_tasks(tasks, near, executor)
    run = _run_all if blocks.step.keeps_all(every) else _run
    return Found.of(blocks, every, executor.map(run, tasks))


def _run_all(task: BlockTask) -> Refined:
    return _run(task, keep_all=True)


def _run(task: BlockTask, keep_all: bool = False) -> Refined:
    """Measure and repair the blocks of a task: a pure function."""
    step, above = task.step, task.above
    slots = step.fanout(above)
    value, start, stop = measure_cells(task, slots)
    wanted, (refined,) = wanted_of(task, slots, value), step.level.parts
    lower, upper = step.bounds(above) if step.facts is not None else (np.zeros_like(value), _no_bounds(len(value)))
    node = np.ascontiguousarray(above.nodes[refined.attribute])
    child = step.children(above)[refined.attribute].astype(np.int64)
    target, alone = np.empty(len(value)), np.empty(len(value), np.int64)
    kind, order = step.repair.code or 0, step.order.code
    repair_rows(wanted, lower, upper, slots, above.count, far_of(step), kind, order, ties_of(task), target, alone)
    only = step.first_children(above)[refined.attribute].astype(np.int64)
    out = _blocks(target, alone, lower, upper, slots, above.count, node, task, child, only, scale_of(far_of(step)))
    return kept_cells(task, slots, value, out, start, stop, keep_all)


def _no_bounds(size: int) -> Ints:
    return np.full(size, NO_BOUND, np.int64)


@kernel
def repair_rows(
    value: Ints, lower: Ints, upper: Ints, slots: Ints, count: Ints, far: float, kind: int, order: int, ties: Ints,
    target: Reals, alone: Ints,
) -> None:  # fmt: skip
    """Write what every row is when it is repaired alone within its bounds, and the targets of its cells.

    Targets are those of blocks without bounds: the measurement where the repair is by least squares; else what the
    row's own repair makes of it, and far below the measurement where that is zero.
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
                target[k] = value[k] if kind == EUCLIDEAN else alone[k] if alone[k] > 0 else value[k] - far
        at = end


def _blocks(
    target: Reals, alone: Ints, lower: Ints, upper: Ints, slots: Ints, count: Ints, node: Ints, task: BlockTask,
    child: Ints, only: Ints, scale: float,
) -> Ints:  # fmt: skip
    """Return the whole numbers of all rows, block by block: rows of one block follow each other."""
    (refined,), out = task.step.level.parts, alone
    changes = np.flatnonzero((np.diff(task.groups) != 0) | (np.diff(node) != 0)) + 1
    bounds = [0, *changes.tolist(), len(slots)]
    before = np.concatenate([[0], np.cumsum(slots)])
    for first, last in pairwise(bounds):
        eldest, after = int(refined.first[node[first]]), int(refined.first[node[first] + 1])
        width, height = after - eldest, last - first
        if not slots[first:last].any() or width * height > LARGE:
            continue  # nothing to decide, or so many cells that rows stay as they are repaired alone
        own = slice(int(before[first]), int(before[last]))
        columns = brought_to(task.columns.kept[task.groups[first], eldest:after], int(count[first:last].sum()))
        place = np.repeat(np.arange(height), slots[first:last]) * width + child[own] - eldest
        cells = _Cells.open(width * height, place, target[own], lower[own], upper[own])
        for row in np.flatnonzero(slots[first:last] == 0).tolist():
            cells.fix(row * width + int(only[first + row]) - eldest, int(count[first + row]))
        out[own] = cells.repaired(count[first:last], columns, scale)[place]
    return out


class _Cells:
    """All cells of a block, of which those that are no slots can have nothing."""

    def __init__(self, size: int) -> None:
        self.target = np.zeros(size)
        self.lower, self.upper = np.zeros(size, np.int64), np.zeros(size, np.int64)

    @staticmethod
    def open(size: int, place: Ints, target: Reals, lower: Ints, upper: Ints) -> _Cells:
        """Return the cells of which some have targets and bounds."""
        cells = _Cells(size)
        cells.target[place], cells.lower[place], cells.upper[place] = target, lower, upper
        return cells

    def fix(self, place: int, count: int) -> None:
        """Say what an only child has."""
        self.lower[place] = self.upper[place] = count

    def repaired(self, rows: Ints, columns: Ints, scale: float) -> Ints:
        """Return whole numbers with these rows, and columns as nearly as bounds allow."""
        out = np.empty(len(self.target), np.int64)
        repair_bounded_block(
            self.target, self.lower, self.upper, rows, columns, 0, scale, TOLERANCE, MOST_SWEEPS, out
        )  # fmt: skip
        return out


def columns_of_rows(kept: Ints, blocks: Blocks, refined: Refinement) -> Ints:
    """Return the columns of a margin, block by block in proportion to what the rows of the block have together."""
    columns, total = kept.copy(), blocks.counts()
    group, parent = np.divmod(blocks.number, len(refined.first) - 1)
    for row, first, last, count in zip(group, refined.first[parent], refined.first[parent + 1], total, strict=True):
        columns[row, first:last] = brought_to(columns[row, first:last], int(count))
    return columns


def brought_to(columns: Ints, total: int) -> Ints:
    """Return whole numbers in proportion to columns that add up to a total: the largest remainders are rounded up.

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
