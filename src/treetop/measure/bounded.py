"""Refine one level under a margin if some cells are impossible or bounded.

Rows, the children of one node, are exact and within their bounds. Columns agree with the margin as nearly as these
allow. Their targets are first scaled to the total of the rows, since a level above may have left an attribute's nodes
with other counts than the margin has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop._util.numbers import NO_BOUND
from treetop.counts.counts import Counts, go_down
from treetop.domain.constraints import INVARIANT, PublicFacts, TableFact
from treetop.domain.spine import Spine
from treetop.domain.spine_level import AttributeStep
from treetop.domain.table_cells import CellNumbering
from treetop.engine.engine import Executor
from treetop.errors import FactError
from treetop.measure.blocks import (
    FAR,
    LARGE,
    BlockTask,
    Columns,
    SoftMarginal,
    block_tasks,
    kept_cells,
    measure_cells,
    moved_tasks,
    sigma_of,
    ties_of,
    wanted_of,
)
from treetop.measure.regrouped import Blocks, Refined, RefinedLevel
from treetop.noise import Key
from treetop.repair.bounded import repair_bounded
from treetop.repair.bounded_blocks import repair_bounded_block
from treetop.repair.state import EUCLIDEAN, SCRATCH_SIZE, STATE_SIZE
from treetop.repair.two_sided import MOST_SWEEPS, TOLERANCE

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def refine_bounded(
    blocks: Blocks, counts: Counts, columns: Columns, nearly: Sequence[SoftMarginal], key: Key, executor: Executor,
    every: int | None = None,
) -> RefinedLevel:  # fmt: skip
    """Return the retained children of a frontier, within their bounds and as near to the columns as these allow."""
    tasks = block_tasks(blocks, columns, counts, key)
    for near in nearly:
        tasks = moved_tasks(tasks, near, executor)
    run = _run_all if blocks.step.keeps_all(every) else _run
    return RefinedLevel.of(blocks, every, executor.map(run, tasks))


def _run_all(task: BlockTask) -> Refined:
    return _run(task, keep_all=True)


def _run(task: BlockTask, keep_all: bool = False) -> Refined:
    """Measure and repair the blocks of a task (a pure function)."""
    step, above = task.step, task.above
    slots = step.fanout(above)
    value, start, stop = measure_cells(task, slots)
    wanted, (refined,) = wanted_of(task, slots, value), step.level.parts
    lower, upper = step.bounds(above) if step.facts is not None else (np.zeros_like(value), _no_bounds(len(value)))
    node = np.ascontiguousarray(above.nodes[refined.attribute])
    child = step.children(above)[refined.attribute].astype(np.int64)
    target, alone = np.empty(len(value)), np.empty(len(value), np.int64)
    kind, order = step.repair.code or 0, step.order.code
    repair_rows(
        wanted, lower, upper, slots, above.count, FAR * sigma_of(step), kind, order, ties_of(task), target, alone
    )
    only = step.first_children(above)[refined.attribute].astype(np.int64)
    out = _blocks(target, alone, lower, upper, slots, above.count, node, task, child, only, 3.0 * sigma_of(step) + 1.0)
    return kept_cells(task, slots, value, out, start, stop, keep_all)


def _no_bounds(size: int) -> Ints:
    return np.full(size, NO_BOUND, np.int64)


@kernel
def repair_rows(
    value: Ints, lower: Ints, upper: Ints, slots: Ints, count: Ints, far: float, kind: int, order: int, ties: Ints,
    target: Reals, alone: Ints,
) -> None:  # fmt: skip
    """Write every row as repaired alone within its bounds, and the targets of its cells.

    With least squares, a target is the measurement. Otherwise it is the value after the row's own repair, or far below
    the measurement if that value is zero.
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
    """Return the whole numbers of all rows, block by block; the rows of one block are adjacent."""
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
    """All cells of a block; cells without a slot are zero."""

    def __init__(self, size: int) -> None:
        self.target = np.zeros(size)
        self.lower, self.upper = np.zeros(size, np.int64), np.zeros(size, np.int64)

    @staticmethod
    def open(size: int, place: Ints, target: Reals, lower: Ints, upper: Ints) -> _Cells:
        """Return the cells, some of which have targets and bounds."""
        cells = _Cells(size)
        cells.target[place], cells.lower[place], cells.upper[place] = target, lower, upper
        return cells

    def fix(self, place: int, count: int) -> None:
        """Fix the count of an only child."""
        self.lower[place] = self.upper[place] = count

    def repaired(self, rows: Ints, columns: Ints, scale: float) -> Ints:
        """Return whole numbers with these row sums, and columns as near as bounds allow."""
        out = np.empty(len(self.target), np.int64)
        repair_bounded_block(
            self.target, self.lower, self.upper, rows, columns, 0, scale, TOLERANCE, MOST_SWEEPS, out
        )  # fmt: skip
        return out


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


# Public facts and private counts: invariants that a run reads exactly, and facts that it may not contradict.

_SHOWN = 3
PIECE = 1 << 20
"""Number of leaves that are compared at a time."""


def leaf_nodes(spine: Spine, counts: Counts) -> Ints:
    """Return the non-empty leaves, by attribute (row). Private."""
    nodes = np.zeros((len(spine.trees), len(counts)), np.int64)
    for level in spine.levels:
        go_down(spine, level.index, counts, nodes)
    return nodes


def _pieces(spine: Spine, counts: Counts) -> Iterator[tuple[Ints, Ints]]:
    """Yield the non-empty leaves and their counts, some at a time. Private, and possibly larger than memory."""
    for begin in range(0, len(counts), PIECE):
        piece = counts.part(begin, min(begin + PIECE, len(counts)))
        yield leaf_nodes(spine, piece), np.diff(piece.before)


def with_invariants(facts: PublicFacts, counts: Counts) -> PublicFacts:
    """Return the facts with the private table's invariants added."""
    if not facts.invariants:
        return facts
    tables = [CellNumbering(facts.spine, depths) for depths in facts.invariants]
    every = {one.depths: np.zeros(one.number, np.int64) for one in tables}
    for nodes, number in _pieces(facts.spine, counts):
        for one in tables:
            every[one.depths] += one.counted(np.arange(one.number), nodes, facts.spine.finest, number)
    return facts.with_exact(every)


def possible_counts(facts: PublicFacts, counts: Counts) -> Counts:
    """Return the counts of possible leaves only; records in impossible leaves that a plan admits are not counted."""
    if not facts.possible.rules:
        return counts
    spine = facts.spine
    pieces = (facts.possible.allows(spine.finest, nodes) for nodes, _ in _pieces(spine, counts))
    there = np.concatenate([np.empty(0, np.bool_), *pieces])
    return counts if there.all() else counts.only(there)


def refuse_contradiction(facts: PublicFacts, counts: Counts) -> None:
    """Refuse private counts that contradict a compared fact; nothing is spent yet."""
    _refuse_other_invariants(facts, counts)
    if (found := contradiction(facts, counts)) is not None:
        fact, why = found
        raise FactError(
            f"the private table contradicts {fact.words}: {why}. Nothing was measured or charged; but who learns of "
            "this refusal learns that they disagree. Correct the fact or the table, or write unchecked = true with the "
            "fact: it is then kept whatever the table says"
        )


def contradiction(facts: PublicFacts, counts: Counts) -> tuple[TableFact, str] | None:
    """Return the first fact that the counts contradict, and how; None if they agree with all compared facts."""
    checked = [fact for fact in facts if not fact.unchecked and INVARIANT not in fact.kinds]
    if not checked:
        return None
    compared = [FactCounts(fact) for fact in checked]
    for nodes, number in _pieces(facts.spine, counts):
        for one in compared:
            one.add(nodes, number)
    return next(((one.fact, why) for one in compared if (why := one.impossible() or one.beyond()) is not None), None)


def _refuse_other_invariants(facts: PublicFacts, counts: Counts) -> None:
    """Refuse invariants that contradict a fact, even one that is not compared: a release cannot keep both.

    All protected neighbours have the same invariants, so the refusal reveals nothing about any unit.
    """
    try:
        if facts.invariants:
            with_invariants(facts, counts).check()
    except FactError as problem:
        raise FactError(
            f"the private table's own counts, which the plan publishes as they are, contradict what is public: "
            f"{problem}. Nothing was measured or charged"
        ) from problem


@dataclass
class FactCounts:
    """A fact, and the counts so far in its cells: of private leaves, or of released ones."""

    fact: TableFact
    count: Ints = field(init=False)
    """Counts of bounded cells."""
    records: int = 0
    """Records in impossible cells."""
    cells: list[int] = field(default_factory=list)
    """First impossible cells with records."""

    def __post_init__(self) -> None:
        self.count = np.zeros(0 if self.fact.boxes is None else len(self.fact.boxes.cells), np.int64)

    def add(self, nodes: Ints, number: Ints) -> None:
        """Add some leaves."""
        fact, finest = self.fact, self.fact.table.spine.finest
        if fact.rule is not None:
            wrong = np.flatnonzero(~fact.rule.allows(finest, nodes))
            cells = np.unique(fact.table.numbers(nodes[:, wrong], finest)).tolist()
            self.records += int(number[wrong].sum())
            self.cells = sorted({*self.cells, *cells})[:_SHOWN]
        if fact.boxes is not None:
            self.count += fact.table.counted(fact.boxes.cells, nodes, finest, number)

    def impossible(self) -> str | None:
        """Describe records in impossible cells; None if there are none."""
        if not self.cells:
            return None
        return f"{self.records:,} records are in cells that are impossible, such as {_named(self.fact, self.cells)}"

    def beyond(self) -> str | None:
        """Describe counts outside the bounds of a fact; None if there are none."""
        boxes, count = self.fact.boxes, self.count
        if boxes is None:
            return None
        wrong = np.flatnonzero((count < boxes.lower) | (count > boxes.upper))
        if len(wrong) == 0:
            return None
        first = int(wrong[0])
        low, high, own = boxes.lower[first], boxes.upper[first], count[first]
        told = f"{low:,}" if low == high else f"at least {low:,}" if own < low else f"at most {high:,}"
        more = f", and so for {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        return f"{self.fact.table.words(int(boxes.cells[first]))} has {own:,} records where the fact says {told}{more}"


def _named(fact: TableFact, cells: Sequence[int]) -> str:
    return "; ".join(fact.table.words(int(cell)) for cell in cells)
