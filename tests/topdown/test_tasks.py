"""Tasks: pure functions that can be sent elsewhere, carry their own leaves only, and give one release everywhere."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.engine.engine import Executor, Threads
from treetop.measure import descent as descents
from treetop.measure._task import Task, descend
from treetop.measure.descent import Outcome, descent_of, run_descent
from treetop.measure.level import Descended
from treetop.noise import Key

T = TypeVar("T")
R = TypeVar("R")
KEY = Key(bytes(range(32)))
PLACE = tt.Hierarchy.from_prefixes([f"{a}{b}{c}" for a in "ABCD" for b in "123" for c in "wxyz"], widths=[1, 2])
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
OPTIONS: dict[str, dict[str, Any]] = {
    "full": {},
    "some standard deviations": {"resolve": {"sigmas": 2}},
    "false discoveries": {"resolve": {"fdr": 0.2}},
    "euclidean": {"repair": "euclidean", "order": "descending"},
}


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    monkeypatch.setattr(descents, "CHUNK", 16)


@dataclass
class Processes:
    """An executor of somebody's own: every task is pickled, run in another process, and its result pickled back."""

    pool: ProcessPoolExecutor
    sent: int = 0

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        for result in self.pool.map(function, tasks):
            self.sent += 1
            yield result


@dataclass
class Twice:
    """An executor whose workers fail: it does everything twice, backwards, and on copies."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        copies = [pickle.loads(pickle.dumps(task)) for task in tasks]
        for _ in range(2):
            results = [function(copy) for copy in reversed(copies)]
        yield from reversed(results)


def plan(**options: Any) -> tt.Plan:
    return tt.Plan(SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 2)), **options, margins="none")


def counts() -> Counts:
    rng = np.random.default_rng(0)
    leaves = [rng.integers(0, tree.sizes[-1], 300) for tree in SPINE.trees]
    return Counts.from_leaves(SPINE, leaves, rng.integers(1, 30, 300))


def arrays(result: Descended) -> list[Any]:
    frontier = result.frontier
    found: list[Any] = [frontier.nodes, frontier.count, frontier.start, frontier.stop]
    for parts in result.levels:
        found += [array for part in parts for array in (part.measured, part.highest, part.slots)]
    for left in result.left:
        found += [left.level, left.nodes, left.count]
    return [array.tolist() for array in found]


def published(measured: Outcome) -> list[Any]:
    assert measured.evidence is not None
    return arrays(Descended(measured.leaves, (measured.evidence.levels,), (measured.left,)))


@dataclass
class Watching:
    """Notes the tasks."""

    seen: list[Task] = field(default_factory=list)

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        given = list(tasks)
        self.seen.extend(task for task in given if isinstance(task, Task))
        return map(function, given)


def tasks_of(planned: tt.Plan) -> list[Task]:
    watching = Watching()
    run_descent(descent_of(planned), counts(), KEY, watching, every=1 << 20)
    assert len(watching.seen) > 4
    return watching.seen


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("heavy", [False, True], ids=["even", "one heavy node"])
def test_out_of_core_no_task_has_more_leaves_than_fit(
    options: str, heavy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descents, "MOST_SUBTREES", 2)
    monkeypatch.setattr(descents, "LEAVES_A_TASK", 20)
    leaves = [np.repeat(np.arange(48), 48), np.tile(np.arange(48), 48)]
    weight = np.where((leaves[0] < 12) & (leaves[1] < 12), 500, 1 if heavy else 500)
    given, whole, cut = Counts.from_leaves(SPINE, leaves, weight), Watching(), Watching()
    here = run_descent(descent_of(plan(**OPTIONS[options])), given, KEY, whole, every=1 << 20)
    there = run_descent(descent_of(plan(**OPTIONS[options])), given, KEY, cut, every=1 << 20, scratch=tmp_path)
    assert published(there) == published(here)
    assert all(len(task.counts) <= 40 for task in cut.seen)
    assert max(len(task.counts) for task in whole.seen) > 400
    assert len(cut.seen) > 10 * len(whole.seen)


@pytest.mark.parametrize("options", ["full", "some standard deviations", "euclidean"])
def test_a_task_gives_the_same_twice_and_after_a_journey(options: str) -> None:
    for task in tasks_of(plan(**OPTIONS[options])):
        once = arrays(descend(task))
        assert arrays(descend(task)) == once
        assert arrays(descend(pickle.loads(pickle.dumps(task)))) == once
        assert arrays(pickle.loads(pickle.dumps(descend(task)))) == once


def test_a_task_carries_its_own_leaves_and_no_others() -> None:
    tasks, whole = tasks_of(plan()), counts()
    assert sum(len(task.counts) for task in tasks) <= len(whole)
    assert sum(task.counts.total for task in tasks) <= whole.total
    for task in tasks:
        there = task.above.start < task.above.stop
        under = task.above.stop[there] - task.above.start[there]
        assert under.sum() == len(task.counts)
        assert len(pickle.dumps(task.counts)) < len(pickle.dumps(whole)) / 2
        assert task.counts.total == sum(
            int(task.counts.before[stop] - task.counts.before[start])
            for start, stop in zip(task.above.start, task.above.stop, strict=True)
        )


def test_a_task_does_not_show_its_secrets() -> None:
    task = tasks_of(plan())[0]
    assert task.key.secret.hex() not in repr(task) and str(task.key.secret) not in repr(task)
    assert "Counts(private)" in repr(task)


def executors() -> list[Executor]:
    return [Threads(1), Threads(2), Threads(5), Twice()]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("executor", executors(), ids=str)
def test_every_executor_gives_the_same(executor: Executor, options: str) -> None:
    planned = descent_of(plan(**OPTIONS[options]))
    expected = published(run_descent(planned, counts(), KEY, Threads(), every=1 << 20))
    assert published(run_descent(planned, counts(), KEY, executor, every=1 << 20)) == expected


def test_other_processes_give_the_same() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for options in ("full", "false discoveries"):
            planned = descent_of(plan(**OPTIONS[options]))
            expected = published(run_descent(planned, counts(), KEY, every=1 << 20))
            processes = Processes(pool)
            assert published(run_descent(planned, counts(), KEY, processes, every=1 << 20)) == expected
            assert processes.sent > 4


def test_the_cut_into_tasks_does_not_depend_on_the_executor() -> None:
    cuts = []
    for threads in (1, 2, 7):
        seen: list[list[int]] = []

        class Noting(Threads):
            def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
                given = list(tasks)
                seen.extend(task.above.count.tolist() for task in given if isinstance(task, Task))  # noqa: B023
                return super().map(function, given)

        run_descent(descent_of(plan()), counts(), KEY, Noting(threads))
        cuts.append(seen)
    assert cuts[0] == cuts[1] == cuts[2]
