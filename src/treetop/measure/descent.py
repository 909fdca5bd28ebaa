"""The descent: from the total down to the leaves, subtree by subtree, the same whoever runs the subtrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from treetop.basics.progress import Progress
from treetop.measure.blocks import Columns, leave_unnamed, refine_blocks
from treetop.measure.evidence import Evidence, LevelEvidence, Remainders
from treetop.measure.executor import Executor, Serial
from treetop.measure.frontier import Descended, Frontier
from treetop.measure.level import CHUNK, Step
from treetop.measure.margins import AttributeMargins, KeptMargins, measure_margins
from treetop.measure.measure import measure_total
from treetop.measure.task import Task, descend_all, least_named
from treetop.noise import Key
from treetop.plan.workload import How, Measured, noise_of
from treetop.read.counts import Counts

LARGEST_TRUNK = 1 << 14
"""The trunk ends at the deepest level with at most this many public nodes."""
MOST_SUBTREES = 64
"""Below the trunk the tree is cut into at most this many subtrees."""


@dataclass(frozen=True)
class Descent:
    """What a descent does, decided before private data is read."""

    attributes: int
    """The number of attributes."""
    total: How
    """How the total is measured, if it is."""
    steps: tuple[Step, ...]
    """The levels below the root."""
    margins: tuple[AttributeMargins, ...] = ()
    """The tables of attributes alone, which are measured before all else."""

    @property
    def trunk(self) -> int:
        """The level down to which the tree is descended in one piece: a function of the public tree only."""
        return max((step.level.index for step in self.steps if step.level.nodes <= LARGEST_TRUNK), default=0)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a descent gives: all of it is noisy, hence public."""

    leaves: Frontier
    """The retained leaves, in spine order."""
    evidence: Evidence | None = field(repr=False)
    """What was measured, as far as it was asked for."""
    left: Remainders = field(repr=False)
    """What was left at nodes, as unresolved; nothing where no evidence is asked for."""
    margins: tuple[KeptMargins, ...] = ()
    """What was measured of attributes alone, and what is kept of it."""


def run_descent(
    descent: Descent,
    counts: Counts,
    key: Key,
    executor: Executor | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
    every: int | None = None,
) -> Outcome:
    """Descend the trunk here and then, as tasks of an executor (one after the other by default), the subtrees.

    Where there are margins, they are measured first, and the descent goes level by level. Evidence is kept as
    `Task.every` says. The cut into tasks looks at public and released values only, and the noise of
    a task is a function of its own key: so the result does not depend on the executor, or on `chunk`.
    """
    total = measure_total(counts, descent.total, key.derive("total"))
    root = Frontier.root(descent.attributes, total, len(counts))
    run = _Run(descent, counts, key, executor or Serial(), progress, chunk, every)
    margins = measure_margins(descent.margins, counts, total, key.derive("margins"))
    reached = run.by_levels(root, margins) if margins else run.by_subtrees(root)
    evidence = None
    if every is not None:
        laws = tuple(noise_of(how) for how in (descent.total, *(step.how for step in descent.steps)))
        levels = tuple(LevelEvidence.join(parts) for parts in reached.levels)
        evidence = Evidence(None if laws[0] is None else total, levels, laws)
    return Outcome(reached.frontier, evidence, Remainders.join(reached.left, descent.attributes), tuple(margins))


@dataclass(frozen=True, eq=False)
class _Run:
    """One run of a descent: private, as counts and key are."""

    descent: Descent
    counts: Counts
    key: Key = field(repr=False)
    executor: Executor
    progress: Progress | None
    chunk: int
    every: int | None

    def by_subtrees(self, root: Frontier) -> Descended:
        """Descend the trunk in one piece, and then every subtree down to its leaves."""
        above, below = self.descent.steps[: self.descent.trunk], self.descent.steps[self.descent.trunk :]
        trunk = Task(above, root, self.counts, self.key.derive("trunk"), self.every, self.chunk)
        (reached,) = descend_all([trunk], Serial())
        if below:
            reached = reached.then(self._subtrees(reached.frontier, below, self.key, self.progress))
        elif self.progress is not None:
            self.progress("descending", 1.0)
        return reached

    def _subtrees(
        self, above: Frontier, below: Sequence[Step], key: Key, progress: Progress | None = None
    ) -> Descended:
        tasks = [
            Task.cut(below, part, self.counts, key.derive("subtree", number), self.every, self.chunk)
            for number, part in enumerate(_cut(above, below))
        ]
        parts = descend_all(tasks, self.executor, progress) if tasks else []
        if progress is not None and not tasks:
            progress("descending", 1.0)
        return Descended.join(parts, self.descent.attributes, 0 if self.every is None else len(below))

    def by_levels(self, root: Frontier, margins: Sequence[KeptMargins]) -> Descended:
        """Descend level by level: under a margin, children of far nodes depend on each other."""
        kept = {one.attribute: one for one in margins}
        reached = Descended(root)
        for step in self.descent.steps:
            own = kept.get(step.level.attribute)
            if own is None or step.level.depth >= len(own.counts):
                below = self._subtrees(reached.frontier, (step,), self.key)
            else:
                below = self._under(step, reached.frontier, own)
            reached = reached.then(below)
            if self.progress is not None:
                self.progress("descending", step.level.index / len(self.descent.steps))
        return reached

    def _under(self, step: Step, above: Frontier, kept: KeptMargins) -> Descended:
        """Refine a level so that it agrees with a margin, and name what is to be named."""
        depth, level = step.level.depth, step.level
        measured = kept.measured[depth] if kept.parts[depth] == level.index else None
        columns = Columns(kept.counts[depth][None, :], measured)
        groups, key = np.zeros(len(above), np.int64), self.key.derive("level", level.index)
        every = self.every if step.resolution is None or self.every is not None else 0
        found = refine_blocks(step, self.counts, above, groups, columns, key, self.executor, every)
        if step.resolution is None or not isinstance(step.how, Measured):
            return found
        named = least_named(step, above, found) if step.tests_together else step.least_named
        return leave_unnamed(step, above, found, named)


def _cut(trunk: Frontier, below: Sequence[Step]) -> list[Frontier]:
    """Cut below the trunk into parts with about the same released count, more of them if there is more to do.

    It looks at released values only, so that the same release is cut in the same way everywhere.
    """
    if len(trunk) == 0:
        return []
    level = below[0].level
    node = trunk.nodes[level.attribute]
    slots = int((level.first[node + 1] - level.first[node]).sum())
    parts = min(max(slots * len(below) // (2 * CHUNK), 1), MOST_SUBTREES)
    done = np.cumsum(trunk.count)
    bounds = np.searchsorted(done, done[-1] * np.arange(1, parts) // parts, side="right")
    return [trunk[start:stop] for start, stop in pairwise([0, *bounds.tolist(), len(trunk)]) if start < stop]
