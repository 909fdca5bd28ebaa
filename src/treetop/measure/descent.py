"""The descent: from the total down to the leaves, subtree by subtree, the same whoever runs the subtrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from treetop.basics.progress import Progress
from treetop.measure.evidence import Evidence, LevelEvidence, Remainders
from treetop.measure.executor import Executor, Serial
from treetop.measure.frontier import Descended, Frontier
from treetop.measure.level import CHUNK, Step
from treetop.measure.measure import measure_total
from treetop.measure.task import Task, Tests, descend_all
from treetop.noise import Key
from treetop.plan.workload import How, noise_of
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

    Evidence is kept as `Task.every` says. The cut into tasks looks at public and released values only, and the noise of
    a task is a function of its own key: so the result does not depend on the executor, or on `chunk`.
    """
    total = measure_total(counts, descent.total, key.derive("total"))
    root = Frontier.root(descent.attributes, total, len(counts))
    above, below = descent.steps[: descent.trunk], descent.steps[descent.trunk :]
    trunk = Task(above, root, counts, key.derive("trunk"), every, chunk)
    tests = Tests(descent.steps)
    (reached,) = descend_all([trunk], Serial(), tests)
    subtrees = _cut(reached.frontier, below) if below else []
    tasks = [
        Task.cut(below, part, counts, key.derive("subtree", number), every, chunk)
        for number, part in enumerate(subtrees)
    ]
    if below:
        parts = descend_all(tasks, executor or Serial(), tests, progress) if tasks else []
        reached = reached.then(Descended.join(parts, descent.attributes, 0 if every is None else len(below)))
    if progress is not None and not tasks:
        progress("descending", 1.0)
    evidence = None
    if every is not None:
        laws = tuple(noise_of(how) for how in (descent.total, *(step.how for step in descent.steps)))
        levels = tuple(LevelEvidence.join(parts) for parts in reached.levels)
        evidence = Evidence(None if laws[0] is None else total, levels, laws)
    return Outcome(reached.frontier, evidence, Remainders.join(reached.left, descent.attributes))


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
