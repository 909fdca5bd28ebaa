"""Refine several attributes in one step under margins.

Parents and two margins are three families of sums, and no simple fit keeps all three in whole numbers. So a merged step
is measured once and repaired in stages, one attribute after the other, each of which is exact (`blocks`). In every
stage but the last, the cells of a row are repaired alone. The totals of the row's children by the stage's attribute are
then the targets of a block, with the margin's columns. The last stage is that of an ordinary level; its rows are the
nodes of the stages before it.

Tasks are cut by the last attribute, so that no block of the last stage is in two of them. Their cells are read once a
stage, and not kept in between. The noise of a cell depends only on its place, so reading it again is no second
measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import writable
from treetop._util.kernel import kernel
from treetop.counts.counts import Counts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine_level import AttributeStep
from treetop.engine.engine import Executor
from treetop.measure._regrouped import Blocks, Refined, RefinedLevel
from treetop.measure.blocks import (
    BlockTask,
    Columns,
    block_tasks,
    cells_of_rows,
    kept_cells,
    measure_cells,
    repair_blocks,
    repaired_rows,
    sigma_of,
)
from treetop.measure.level import Frontier, SpillBuffer, Step
from treetop.measure.margin_tables import ConsistentMarginals, MarginalConstraint, by_group, groups_under
from treetop.noise import Key
from treetop.repair.state import CHEBYSHEV, SCRATCH_SIZE, STATE_SIZE, begin, settled, solve

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The nodes that the stages so far have made of a task's parents, parent by parent in lexicographic order."""

    nodes: NDArray[np.int32]
    """For each attribute (row) and node (column), the attribute's node."""
    count: Ints
    """Count of each node, zeros included."""
    cells: Ints
    """Number of cells into which the remaining stages divide each node."""
    place: Ints
    """Place of the node's first cell in the domain; breaks ties."""

    def refined(self, part: AttributeStep, count: Ints) -> Rows:
        """Return the rows' children by an attribute, with the given counts."""
        fanout = part.fanout(self.nodes)
        row = np.repeat(np.arange(len(fanout)), fanout)
        nodes = self.nodes.take(row, axis=1)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(fanout) - fanout, fanout)
        nodes[part.attribute] = part.first[nodes[part.attribute]] + rank
        cells = (self.cells // fanout)[row]
        return Rows(nodes, count, cells, self.place[row] + rank * cells)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One attribute of a merged step, with its margin."""

    secret: Key = field(repr=False)
    """Key for breaking ties; it has generated no noise."""
    refined: AttributeStep
    """The attribute's step."""
    under: MarginalConstraint | None
    """The margin that it agrees with; None if only the rows' counts matter."""
    columns: Ints = field(repr=False)
    """Cells of the margin: by group of nodes (row) and node of the attribute (column)."""
    trees: tuple[Hierarchy, ...] = field(repr=False)

    @staticmethod
    def of(ties: Key, refined: AttributeStep, under: MarginalConstraint | None, kept: ConsistentMarginals) -> _Stage:
        """Return a stage with the cells of its margin."""
        columns = np.zeros((0, 0), np.int64)
        if under is not None:
            columns = by_group(kept.at(under.decided), under.decided, refined.attribute)
        return _Stage(ties, refined, under, columns, kept.trees)

    @property
    def ties(self) -> int:
        """The seed of the row with a first cell at place 0."""
        return int.from_bytes(self.secret.secret[:7], "little")

    def groups(self, rows: Rows) -> Ints:
        """Return the group of the margin for each row."""
        assert self.under is not None
        return groups_under(self.trees, rows.nodes, self.under.refined, self.under.decided, self.refined.attribute)


def fit_rows(
    rows: Rows, refined: AttributeStep, groups: Ints, columns: Ints, value: Ints, alone: Ints | None, sigma: float,
    order: int, kind: int = CHEBYSHEV, ties: int = 0,
) -> Ints:  # fmt: skip
    """Return the counts of rows' children by an attribute, with exact sums of rows and of columns by group.

    `value` has one target per child; `alone` has the rows as repaired alone, if that is done already.
    """
    there, node = np.flatnonzero(rows.count > 0), rows.nodes[refined.attribute]
    by_block = there[np.lexsort((groups[there], node[there]))]
    fanout = refined.fanout(rows.nodes)
    cells = cells_of_rows(fanout, by_block)
    found, out = np.zeros(len(cells), np.int64), np.zeros(len(value), np.int64)
    repair_blocks(
        value[cells], value[:0] if alone is None else alone[cells], fanout[by_block], rows.count[by_block],
        node[by_block], groups[by_block], refined.first, writable(columns), sigma, kind, order,
        rows.place[by_block] + ties, found,
    )  # fmt: skip
    out[cells] = found
    return out


@dataclass(frozen=True, eq=False)
class _Job:
    """A task in one stage. Private, as the task is."""

    task: BlockTask
    stage: _Stage
    rows: Rows
    keep_all: bool = False


def refine_merged(
    step: Step, counts: Counts, above: Frontier, under: Sequence[MarginalConstraint | None], kept: ConsistentMarginals,
    key: Key, executor: Executor, room: SpillBuffer, every: int | None = None,
) -> RefinedLevel:  # fmt: skip
    """Return the retained children of a frontier; they agree with margins of the refined attributes.

    `every` selects the evidence, as in `refine`.
    """
    parts = enumerate(zip(step.level.parts, under, strict=True))
    *before, last = (_Stage.of(key.derive("ties", number), part, one, kept) for number, (part, one) in parts)
    blocks = Blocks.of(step, above, last.refined, _no_groups, 1, room)
    tasks = block_tasks(blocks, Columns(np.zeros((0, 0), np.int64)), counts, key)
    rows = [_divided(task) for task in tasks]
    for stage in before:
        rows = _after(step, stage, rows, list(executor.map(_targets, _jobs(tasks, stage, rows))))
    jobs = _jobs(tasks, last, rows, step.keeps_all(every))
    return RefinedLevel.of(blocks, every, executor.map(_last, jobs))


def _no_groups(nodes: NDArray[np.int32]) -> Ints:
    """Group parents by their node of the last attribute only."""
    return np.zeros(nodes.shape[1], np.int64)


def _divided(task: BlockTask) -> Rows:
    """Return the parents with several children: an only child has its parent's count."""
    slots = task.step.fanout(task.above)
    there = slots > 0
    place = task.step.places.first(task.above.nodes)[1].astype(np.int64)
    return Rows(task.above.nodes[:, there], task.above.count[there], slots[there], place[there])


def _jobs(tasks: Sequence[BlockTask], stage: _Stage, rows: Sequence[Rows], keep_all: bool = False) -> list[_Job]:
    return [_Job(task, stage, own, keep_all) for task, own in zip(tasks, rows, strict=True)]


def _targets(job: _Job) -> tuple[Ints, Ints]:
    """Return the count of each of the rows' children by the stage's attribute, if rows are repaired alone.

    Also return the highest measurement among its cells. A pure function.
    """
    rows = job.rows
    value, _, _ = measure_cells(job.task, job.task.step.fanout(job.task.above))
    fanout = job.stage.refined.fanout(rows.nodes)
    inner = np.repeat(rows.cells // fanout, fanout)
    start = np.cumsum(inner) - inner
    if len(start) == 0:
        return start, start
    return np.add.reduceat(_alone(job, value), start), np.maximum.reduceat(value, start)


def _alone(job: _Job, value: Ints) -> Ints:
    """Repair the cells of every row to its count, regardless of the margins."""
    step, rows = job.task.step, job.rows
    out, there = np.zeros(len(value), np.int64), np.flatnonzero(rows.count)
    cells, slots, count = cells_of_rows(rows.cells, there), rows.cells[there], rows.count[there]
    ties = rows.place[there] + job.stage.ties
    if step.repair.code is None:
        out[cells] = repaired_rows(step, value[cells], slots, count, ties)
    else:
        out[cells] = _repair_alone(value[cells], slots, count, step.repair.code, step.order.code, ties)
    return out


@kernel
def _repair_alone(value: Ints, cells: Ints, count: Ints, kind: int, order: int, ties: Ints) -> Ints:
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    out = np.zeros(len(value), np.int64)
    at = 0
    for i in range(len(cells)):
        end = at + cells[i]
        begin(state, cells[i], count[i], kind, order, np.uint64(ties[i]))
        solve(state, scratch, value[at:end])
        for k in range(at, end):
            out[k] = settled(state, value[k])
        at = end
    return out


def _after(step: Step, stage: _Stage, rows: Sequence[Rows], targets: Sequence[tuple[Ints, Ints]]) -> list[Rows]:
    """Return the rows of all tasks as divided by a stage, in agreement with its margin."""
    if not rows:
        return []
    sums, highest = (np.concatenate(own) for own in zip(*targets, strict=True))
    if stage.under is not None:
        every = Rows(
            np.concatenate([own.nodes for own in rows], axis=1),
            np.concatenate([own.count for own in rows]),
            np.concatenate([own.cells for own in rows]),
            np.concatenate([own.place for own in rows]),
        )
        sigma, groups, ties = sigma_of(step), stage.groups(every), stage.ties
        value = np.where(sums > 0, sums, highest)
        sums = fit_rows(every, stage.refined, groups, stage.columns, value, sums, sigma, step.order.code, ties=ties)
    parts = np.split(sums, np.cumsum([len(own) for own, _ in targets])[:-1])
    return [own.refined(stage.refined, count) for own, count in zip(rows, parts, strict=True)]


def _last(job: _Job) -> Refined:
    """Repair the cells of a task (a pure function)."""
    task, step, rows = job.task, job.task.step, job.rows
    slots = step.fanout(task.above)
    value, start, stop = measure_cells(task, slots)
    if job.stage.under is None:
        out = _alone(job, value)
    else:
        alone = None if step.repair.code is not None else _alone(job, value)
        out = fit_rows(
            rows, job.stage.refined, job.stage.groups(rows), job.stage.columns, value, alone, sigma_of(step),
            step.order.code, step.repair.code or CHEBYSHEV, job.stage.ties,
        )  # fmt: skip
    return kept_cells(task, slots, value, out, start, stop, job.keep_all)
