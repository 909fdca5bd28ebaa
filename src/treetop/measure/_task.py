"""A task: a part of the tree with all inputs of its descent, so that any worker can run it, repeatedly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from treetop._util.system import Progress
from treetop.counts.counts import Counts
from treetop.engine.engine import Executor
from treetop.measure._regrouped import RefinedLevel
from treetop.measure.level import CHUNK, Descended, Frontier, SpillBuffer, Step, gathered, refine, runs
from treetop.measure.measure import NOTHING
from treetop.noise import Key
from treetop.plan.resolution import HighMeasurements, number_of_tests
from treetop.plan.workload import Measured, noise_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """Some adjacent nodes, and the levels to descend below them. Private: contains counts and the key."""

    steps: tuple[Step, ...]
    """The levels (public)."""
    above: Frontier
    """The nodes, with ranges into the counts of the task."""
    counts: Counts
    """The leaves under these nodes, and no others."""
    key: Key = field(repr=False)
    """Key of the run's noise (secret)."""
    every: int | None = None
    """Every measurement is kept at levels with at most this many public nodes; other levels keep the measurements that
    intervals need. None keeps nothing."""
    chunk: int = CHUNK
    """Number of children that are measured at a time; affects speed only."""
    named: int | None = None
    """Least measurement of a named child, if all tasks of a level have decided it together."""
    inherited: Ints | None = None
    """Least measurement with which an only child is named, by the level of the measured ancestor."""
    begin: int = 0
    """Index of the task's first leaf among all private leaves."""

    @staticmethod
    def cut(steps: Sequence[Step], above: Frontier, counts: Counts, key: Key, every: int | None, chunk: int) -> Task:
        """Return the task of some nodes, with their own leaves of all counts."""
        there = above.start < above.stop  # what the noise invented has no leaves
        begin, end = (int(above.start[there][0]), int(above.stop[there][-1])) if there.any() else (0, 0)
        start, stop = (np.where(there, ends - begin, 0) for ends in (above.start, above.stop))
        own = counts.part(begin, end)
        return Task(tuple(steps), replace(above, start=start, stop=stop), own, key, every, chunk, begin=begin)


def descend(task: Task) -> Descended:
    """Descend the levels of a task (a pure function).

    The noise of a node is a function of the run's key, the level, and the node's place in the public domain.
    """
    reached = Descended(task.above)
    for step in task.steps:
        key = task.key.derive("level", step.level.index)
        named = step.least_named if task.named is None else task.named
        below = refine(step, task.counts, reached.frontier, key, task.chunk, task.every, named, task.inherited)
        reached = reached.then(below)
    return reached


def descend_all(
    tasks: Sequence[Task], executor: Executor, tests: Tests, room: SpillBuffer, progress: Progress | None = None
) -> Descended:
    """Descend tasks of adjacent nodes with the same levels, and join their results.

    They go level by level if all tasks together decide which children are named.
    """
    steps, attributes = tasks[0].steps, len(tasks[0].above.nodes)
    levels = 0 if tasks[0].every is None else 1
    if not any(step.tests_together for step in steps):
        parts = _told(_among_all(executor.map(descend, tasks), tasks), len(tasks), progress)
        return gathered(parts, attributes, levels * len(steps), room)
    reached = Descended(tasks[0].above)  # which is left for what is below all of them
    for done, step in enumerate(steps, start=1):
        level = [replace(task, steps=(step,)) for task in tasks]
        if step.tests_together:
            inherited = _least_named(step, level, executor, tests)
            level = [replace(task, named=int(inherited[-1]), inherited=inherited) for task in level]
        found, ends = executor.map(descend, level), [0]
        if done == len(steps):
            found = _among_all(found, level)
        below = gathered(_noted(found, ends), attributes, levels, room)
        reached = reached.then(below)
        tasks = [replace(task, above=below.frontier[a:b]) for task, (a, b) in zip(tasks, pairwise(ends), strict=True)]
        if progress is not None:
            progress("descending", done / len(steps))
    return reached


def _among_all(parts: Iterable[Descended], tasks: Sequence[Task]) -> Iterator[Descended]:
    """Yield the results of tasks, with ranges into all private leaves instead of the task's own."""
    for part, task in zip(parts, tasks, strict=True):
        start, stop = (ends + task.begin for ends in (part.frontier.start, part.frontier.stop))
        yield replace(part, frontier=replace(part.frontier, start=start, stop=stop))


def _told(parts: Iterable[Descended], number: int, progress: Progress | None) -> Iterator[Descended]:
    """Yield the results of tasks, and report the number of finished tasks."""
    for done, part in enumerate(parts, start=1):
        yield part
        if progress is not None:
            progress("descending", done / number)


def _noted(parts: Iterable[Descended], ends: list[int]) -> Iterator[Descended]:
    """Yield the results of tasks, and append the end of each one's nodes to `ends`."""
    for part in parts:
        ends.append(ends[-1] + len(part.frontier))
        yield part


class Tests:
    """The numbers of tests of a descent, for the levels reached so far."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._levels = [step.level for step in steps]
        self._number = np.zeros(len(steps) + 1, np.int64)
        # The total has no test: if it has an only child, the level is that child alone and is not measured.
        self._laws = [None, *(noise_of(step.how) for step in steps)]

    def reached(self, index: int, above: Sequence[Frontier]) -> int:
        """Add a measured level, and return its number of tests."""
        self._number += sum(number_of_tests(self._levels, index, part.nodes) for part in above)
        return int(self._number[index])

    def thresholds(self, step: Step, above: Sequence[Frontier], seen: HighMeasurements) -> Ints:
        """Return the least named measurement by level, from the measurements seen here; only children are added."""
        laws = self._laws[: step.level.index + 1]
        for part in above:
            only = step.fanout(part) == 0
            for level in np.unique(part.seen_at[only]).tolist():
                law = laws[level]
                if law is None:  # it is public that there is something
                    continue
                seen.add(part.seen[only & (part.seen_at == level)], law)
        return np.array([NOTHING if law is None else seen.threshold(law) for law in laws])


def _least_named(step: Step, tasks: Sequence[Task], executor: Executor, tests: Tests) -> Ints:
    """Return the least named measurement by level, from all tasks of a level together."""
    above = [task.above for task in tasks]
    seen = executor.map(partial(count_high, tests=tests.reached(step.level.index, above)), tasks)
    first = next(seen)
    for other in seen:
        first.join(other)
    return tests.thresholds(step, above, first)


def count_high(task: Task, tests: int) -> HighMeasurements:
    """Count the measurements of the children that would be retained if all were named, among `tests` tests.

    Children that the repair sets to zero are not named, so the rate among named children must not count them.
    """
    (step,) = task.steps
    assert isinstance(step.how, Measured) and step.resolution is not None and step.resolution.fdr is not None
    seen = HighMeasurements(step.how.law, tests, step.resolution.fdr)
    (parts,) = descend(replace(task, every=0, named=NOTHING)).levels
    for part in parts:
        seen.add(part.measured)
    return seen


def least_named(step: Step, found: RefinedLevel, tests: Tests) -> Ints:
    """Return the least named measurement by level, for a level that is repaired already."""
    assert isinstance(step.how, Measured) and step.resolution is not None and step.resolution.fdr is not None
    above = [found.blocks.spine[run] for run in runs(len(found.blocks.spine))]
    seen = HighMeasurements(step.how.law, tests.reached(step.level.index, above), step.resolution.fdr)
    for measured in found.measurements():
        seen.add(measured)
    return tests.thresholds(step, above, seen)
