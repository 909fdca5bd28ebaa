"""The descent from the total to the leaves, subtree by subtree. The engine does not affect the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treetop._util.system import Progress
from treetop.counts.counts import Counts, Digit, ranks_of
from treetop.domain.constraints import NarrowLevel, PublicFacts
from treetop.domain.marginal import decided_at, exact_margins, margin_at, stages_of
from treetop.domain.spine_level import PlaceNumbering
from treetop.domain.table_cells import Depths
from treetop.engine.engine import Executor, Threads
from treetop.measure._regrouped import Blocks, RefinedLevel
from treetop.measure._task import Task, Tests, descend_all, least_named
from treetop.measure.blocks import Columns, columns_of_rows, refine_blocks
from treetop.measure.facts import possible_counts, with_invariants
from treetop.measure.level import CHUNK, MEMORY, Descended, Frontier, SpillBuffer, Step, gathered, runs
from treetop.measure.margin_tables import (
    ConsistentMarginals,
    MarginalConstraint,
    Margins,
    Table,
    by_group,
    groups_under,
    measure_margins,
)
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence, Remainders, measure_total
from treetop.measure.merged import refine_merged
from treetop.noise import Key
from treetop.noise.sampler import sampler
from treetop.plan.constraints_kept import exact_beside, is_limited, limited_levels
from treetop.plan.plan import Plan
from treetop.plan.resolution import Resolution
from treetop.plan.workload import Exact, How, Measured, noise_of
from treetop.repair import ORDERS, REPAIRS

# Naming after a level is repaired: the counts of unnamed children stay at their parents.

Ints = NDArray[np.int64]


def leave_unnamed(
    step: Step, above: Frontier, found: Descended, named: int, inherited: Ints | None = None
) -> Descended:
    """Leave the counts of children that measured less than `named` at their parents.

    Only children are treated in the same way if their nearest measured ancestor measured less than `inherited` at that
    ancestor's level.
    """
    ((seen,),) = found.levels
    whole, only = found.frontier, seen.measured == NOTHING
    low = (seen.measured < named) & ~only
    if inherited is not None:
        low |= only & (whole.seen < inherited[whole.seen_at])
    low &= ~step.must_be(whole.nodes)
    if not low.any():
        return found
    parent = _parents(above, whole, step)
    left = np.bincount(parent[low], found.frontier.count[low], minlength=len(above)).astype(np.int64)
    highest = seen.highest.copy()
    np.maximum.at(highest, parent[low], seen.measured[low])
    ranges = (whole.start, whole.stop) if step.last else (whole.start[~low], whole.stop[~low])
    carried = (whole.seen, whole.seen_at) if step.tests_only_children else ()
    there = np.flatnonzero(left)
    index = np.full(len(there), step.level.index - 1, np.int32)
    return replace(
        found,
        frontier=Frontier(whole.nodes[:, ~low], whole.count[~low], *ranges, *(seen[~low] for seen in carried)),
        levels=((LevelEvidence(seen.measured[~low], highest, seen.slots),),),
        left=(Remainders(index, above.nodes[:, there], left[there]),),
    )


def _parents(above: Frontier, below: Frontier, step: Step) -> Ints:
    """Return the parent of each child; both frontiers are in spine order."""
    nodes = below.nodes.copy()
    step.level.go_up(nodes)
    starts = np.append(True, (nodes[:, 1:] != nodes[:, :-1]).any(axis=0))
    parents: Ints = np.cumsum(starts) - 1
    return parents


LARGEST_TRUNK = 1 << 14
"""The trunk ends at the deepest level with at most this many public nodes."""
MOST_SUBTREES = 64
"""Maximum number of subtrees below the trunk, if counts are in memory."""
LEAVES_A_TASK = 1 << 21
"""Maximum number of leaves of a subtree, if counts are not in memory; a leaf takes some 200 bytes."""
WIDEST_TRUNK = 1 << 20
"""Maximum number of children for which the trunk continues below nodes with more leaves than that."""


@dataclass(frozen=True)
class Descent:
    """The decisions of a descent, made before private data is read."""

    attributes: int
    """Number of attributes."""
    total: How
    """How the total is measured, if it is."""
    steps: tuple[Step, ...]
    """The levels below the root."""
    margins: Margins | None = None
    """The tables that are measured first; None without margins."""
    under: tuple[tuple[MarginalConstraint | None, ...], ...] = ()
    """Constraint by level and refined attribute; empty without margins."""
    facts: PublicFacts | None = None

    @property
    def trunk(self) -> int:
        """The level down to which the tree is descended in one piece. Depends on the public tree only."""
        return max((step.level.index for step in self.steps if step.level.nodes <= LARGEST_TRUNK), default=0)

    def with_invariants(self, counts: Counts) -> Descent:
        """Return the descent with the private table's invariants."""
        if self.facts is None or not self.facts.invariants:
            return self
        facts = with_invariants(self.facts, counts)
        steps = (step if step.facts is None else replace(step, facts=facts) for step in self.steps)
        return replace(self, facts=facts, steps=tuple(steps))


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a descent: noisy, hence public."""

    leaves: Frontier
    """The retained leaves, in spine order."""
    evidence: Evidence | None = field(repr=False)
    """The measurements that were kept; None if none were requested."""
    left: Remainders = field(repr=False)
    """Unresolved counts left at nodes; empty without evidence."""
    margins: ConsistentMarginals | None = None
    """The consistent margins; None without margins."""
    facts: PublicFacts | None = None
    """The facts, including invariants."""


def run_descent(
    descent: Descent,
    counts: Counts,
    key: Key,
    executor: Executor | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    every: int | None = None,
    scratch: Path | None = None,
) -> Outcome:
    """Descend the trunk, then the subtrees as tasks of an executor (by default one after the other).

    Margins, if any, are measured first, and the descent then goes level by level. Evidence is kept as in `Task.every`.
    The noise of a node is determined by its place in the public domain, so the result depends neither on the executor,
    nor on the division into tasks, nor on `chunk`. With a `scratch` folder, large arrays of leaves and evidence are
    unnamed files there.
    """
    descent = descent.with_invariants(counts)
    total = measure_total(counts, descent.total, key.derive("total"), descent.facts)
    if descent.facts is not None:
        counts = possible_counts(descent.facts, counts)
    root = Frontier.root(descent.attributes, total, len(counts))
    room = SpillBuffer(scratch)
    run = _Run(descent, counts, key, executor or Threads(), progress, chunk, every, Tests(descent.steps), room)
    kept = None
    if descent.margins is not None:
        kept = measure_margins(descent.margins, counts, total, key.derive("margins"), descent.facts)
    reached = run.by_subtrees(root) if kept is None else run.by_levels(root, kept)
    evidence = None
    if every is not None:
        laws = tuple(noise_of(how) for how in (descent.total, *(step.how for step in descent.steps)))
        levels = tuple(LevelEvidence.join(parts) for parts in reached.levels)
        evidence = Evidence(None if laws[0] is None else total, levels, laws)
    left = Remainders.join(reached.left, descent.attributes)
    return Outcome(reached.frontier, evidence, left, kept, descent.facts)


@dataclass(frozen=True, eq=False)
class _Run:
    """One run of a descent. Private: contains counts and the key."""

    descent: Descent
    counts: Counts
    key: Key = field(repr=False)
    executor: Executor
    progress: Progress | None
    chunk: int
    every: int | None
    tests: Tests
    room: SpillBuffer

    def by_subtrees(self, root: Frontier) -> Descended:
        """Descend the trunk in one piece, and then every subtree down to its leaves."""
        reached, below = self._trunk(root)
        if below:
            reached = reached.then(self._subtrees(reached.frontier, below, self.progress))
        elif self.progress is not None:
            self.progress("descending", 1.0)
        return reached

    def _trunk(self, root: Frontier) -> tuple[Descended, Sequence[Step]]:
        """Descend the trunk and return the steps below it. If memory is short, no node below has too many leaves for a
        task.
        """
        end = self.descent.trunk
        reached, below = self._here(root, self.descent.steps[:end]), self.descent.steps[end:]
        while self.room.folder is not None and _has_heavy(reached.frontier, below):
            reached, below = reached.then(self._here(reached.frontier, below[:1])), below[1:]
        return reached, below

    def _here(self, above: Frontier, steps: Sequence[Step]) -> Descended:
        task = Task(tuple(steps), above, self.counts, self.key, self.every, self.chunk)
        return descend_all([task], Threads(), self.tests, MEMORY)

    def _subtrees(self, above: Frontier, below: Sequence[Step], progress: Progress | None = None) -> Descended:
        cut = _cut(above, below, self.room)
        tasks = [Task.cut(below, part, self.counts, self.key, self.every, self.chunk) for part in cut]
        if tasks:
            return descend_all(tasks, self.executor, self.tests, self.room, progress)
        if progress is not None:
            progress("descending", 1.0)
        return Descended.join([], self.descent.attributes, 0 if self.every is None else len(below))

    def by_levels(self, root: Frontier, kept: ConsistentMarginals) -> Descended:
        """Descend level by level: under a margin, children of distant nodes depend on each other."""
        reached = Descended(root)
        for step, under in zip(self.descent.steps, self.descent.under, strict=True):
            if not any(under) or isinstance(step.how, Exact):
                below = self._subtrees(reached.frontier, (step,))
            else:
                below = self._under(step, reached.frontier, under, kept)
            reached = reached.then(below)
            if self.progress is not None:
                self.progress("descending", step.level.index / len(self.descent.steps))
        return reached

    def _under(
        self, step: Step, above: Frontier, under: Sequence[MarginalConstraint | None], kept: ConsistentMarginals
    ) -> Descended:
        """Refine a level so that it agrees with margins, and name its children."""
        key = self.key.derive("level", step.level.index)
        every = self.every if step.resolution is None or self.every is not None else 0
        if step.level.is_merged:
            found = refine_merged(step, self.counts, above, under, kept, key, self.executor, self.room, every)
        else:
            found = self._by_one(step, above, under[0], kept, key, every)
        return gathered(self._named(step, found), self.descent.attributes, 0 if every is None else 1, self.room)

    def _named(self, step: Step, found: RefinedLevel) -> Iterator[Descended]:
        """Yield the refined nodes in spine order, without those that are not named."""
        if step.resolution is None or not isinstance(step.how, Measured):
            return (below for _, below in found)
        inherited = least_named(step, found, self.tests) if step.tests_together else None
        named = step.least_named if inherited is None else int(inherited[-1])
        return (leave_unnamed(step, above, below, named, inherited) for above, below in found)

    def _by_one(
        self,
        step: Step,
        above: Frontier,
        under: MarginalConstraint | None,
        kept: ConsistentMarginals,
        key: Key,
        every: int | None,
    ) -> RefinedLevel:
        """Refine one attribute under a margin."""
        assert under is not None
        (part,) = step.level.parts

        def groups(nodes: NDArray[np.int32]) -> Ints:
            return groups_under(kept.trees, nodes, under.refined, under.decided, part.attribute)

        cells = by_group(kept.at(under.decided), under.decided, part.attribute)
        blocks = Blocks.of(step, above, part, groups, len(cells), self.room)
        if under.after:
            cells = columns_of_rows(cells, blocks, part)
        columns = Columns(cells, kept.measured[under.decided] if under.is_measured else None)
        return refine_blocks(blocks, self.counts, columns, key, self.executor, every, under.limited)


def _cut(trunk: Frontier, below: Sequence[Step], room: SpillBuffer = MEMORY) -> list[Frontier]:
    """Cut below the trunk into parts with a similar number of leaves, and into more parts for more work.

    If memory is short, each part fits into memory unless it is a single node.
    """
    if len(trunk) == 0:
        return []
    slots = sum(int(below[0].level.fanout(trunk.nodes[:, run]).sum()) for run in runs(len(trunk)))
    parts = min(max(2 * slots * len(below) // CHUNK, 1), MOST_SUBTREES)
    if parts == 1 and room.folder is None:
        return [trunk]
    done = room.array((len(trunk),), np.int64)
    for run in runs(len(trunk)):
        done[run] = _most_leaves(trunk[run], below)
    np.cumsum(done, out=done)
    total = int(done[-1])
    parts = parts if room.folder is None else max(parts, -(-total // LEAVES_A_TASK))
    bounds = np.searchsorted(done, [total * part // parts for part in range(1, parts)], side="right")
    return [trunk[start:stop] for start, stop in pairwise([0, *bounds.tolist(), len(trunk)]) if start < stop]


def _has_heavy(trunk: Frontier, below: Sequence[Step]) -> bool:
    """Whether a node has too many leaves for a task and one level deeper is affordable."""
    if len(below) < 2 or len(trunk) == 0 or _most_leaves(trunk, below).max() <= LEAVES_A_TASK:
        return False
    return int(below[0].level.fanout(trunk.nodes).sum()) <= WIDEST_TRUNK


def _most_leaves(above: Frontier, below: Sequence[Step]) -> NDArray[np.int64]:
    """Return the most leaves that may be released below each node: its count or, if less, its public leaves.

    True counts are not used: an observer of a cluster can see how the work is cut.
    """
    begin, end = above.nodes.astype(np.int64), above.nodes.astype(np.int64) + 1
    for part in (part for step in below for part in step.level.parts):
        for ends in (begin, end):
            ends[part.attribute] = part.first[ends[part.attribute]]
    public = np.prod((end - begin).astype(float), axis=0)
    most: NDArray[np.int64] = np.minimum(above.count, public).astype(np.int64)
    return most


# A plan in the engine's terms.


@lru_cache(maxsize=32)
def descent_of(plan: Plan) -> Descent:
    """Return the descent of a plan; refuse noise that cannot be drawn, before data is read."""
    plan.refuse_unless_top_down()
    resolve = plan.resolve if isinstance(plan.resolve, Resolution) else None
    for _, law in plan.workload.measured:
        sampler(law)
    total, *below = plan.levels
    leaf = len(plan.spine.levels)
    steps = (
        Step(
            level,
            digits,
            PlaceNumbering.of_level(level, plan.spine.sizes(level.index - 1)),
            planned.how,
            REPAIRS[plan.repair],
            ORDERS[plan.order],
            last=level.index == leaf,
            resolution=resolve,
            facts=plan.public_facts if _has_bounds(plan, level.index) else None,
        )
        for level, digits, planned in zip(plan.spine.levels, ranks_of(plan.spine), below, strict=True)
    )
    facts, beside = plan.public_facts, exact_beside(plan.spine, plan.public_facts)
    margins, under = _margins(plan, beside) if plan.margin_tables or beside else (None, ())
    return Descent(len(plan.spine.attributes), total.how, tuple(steps), margins, under, facts or None)


def _has_bounds(plan: Plan, index: int) -> bool:
    """Whether facts bound or fix the nodes of a level."""
    facts, depths = plan.public_facts, plan.spine.depths(index)
    return bool(facts) and (facts.says_something(depths) or facts.decides(depths))


def _margins(
    plan: Plan, beside: tuple[Depths, ...]
) -> tuple[Margins, tuple[tuple[MarginalConstraint | None, ...], ...]]:
    """Return the tables that are known before the descent, and the constraints of each level."""
    spine, digits = plan.spine, ranks_of(plan.spine)
    limited = {level.index for level in limited_levels(spine, plan.public_facts)}
    exact = exact_margins(spine, plan.margin_tables)
    about = zip(plan.margin_tables, plan.margin_parts, exact, strict=True)
    tables = [Table(margin.depths, Measured(part.law), part.index, kept) for margin, part, kept in about]
    known = [margin_at(spine, depths) for depths in beside]
    told = {attribute for margin in (*plan.margin_tables, *known) for attribute in margin.attributes}
    # Levels at which nothing else is refined yet are tables of an attribute alone as well, and measured once.
    for part in plan.levels[1:]:
        depths = spine.depths(part.index)
        (*_, attribute) = (one for one, depth in enumerate(depths) if depth)
        if np.count_nonzero(depths) == 1 and attribute in told and isinstance(part.how, Measured):
            tables.append(Table(depths, part.how, part.index))
    own: list[list[Digit]] = [[] for _ in spine.trees]
    for level, ranks in zip(spine.levels, digits, strict=True):
        for refined, digit in zip(level.parts, ranks, strict=True):
            own[refined.attribute].append(digit)
    parts = {table.part for table in tables}
    agreed = [margin for margin, kept in zip(plan.margin_tables, exact, strict=True) if kept]
    agreed += [margin_at(spine, table.depths) for table in tables if table.part < len(plan.levels)] + known
    under = []
    for level in spine.levels:
        stages = []
        for stage in stages_of(spine, level):
            decided = decided_at(stage, agreed)
            limits = isinstance(level, NarrowLevel) or is_limited(spine, plan.public_facts, level)
            after = level.index in limited and not limits
            under_one = MarginalConstraint(decided or (), stage.depths, level.index in parts, limits, after)
            stages.append(None if decided is None else under_one)
        under.append(tuple(stages))
    return Margins(spine.trees, tuple(map(tuple, own)), tuple(tables), beside), tuple(under)
