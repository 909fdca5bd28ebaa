"""Spark on several machines, as far as it can tell: one is lost, clocks are apart, and a task is done twice at once.

It takes minutes, and runs with TREETOP_AUDIT=deep.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.engines.clocks import HOURS, shifted
from tests.engines.descents import IN_TURN, KEY, PLACE, cut_small, descended
from tests.engines.nodes import Cluster, Node, cluster
from tests.engines.sparks import SOCKETS, Place, Through, assert_no_traces, leave_traces
from tests.engines.worker_tasks import Noted, Slow, Together, clock, die
from treetop.addons.clusters import spark as sparks
from treetop.addons.clusters import task_files
from treetop.errors import Unfinished
from treetop.noise.gate import Gate

DEEP = os.environ.get("TREETOP_AUDIT") == "deep"
pytestmark = [
    pytest.mark.skipif(not DEEP, reason="a cluster of several machines is tried with TREETOP_AUDIT=deep"),
    pytest.mark.filterwarnings(SOCKETS),
]

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
PLAN = tt.Plan(IN_TURN, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), margins="none")


@dataclass
class Machines:
    """The cluster, and the machines that it has for a test."""

    cluster: Cluster
    place: Place
    there: list[Node] = field(default_factory=list)

    def have(self, *hours: float) -> None:
        """Have a machine for each of some clocks, so many hours ahead."""
        hosts = [f"127.0.0.{number}" for number in range(1, 1 + len(hours))]
        clocks = [shifted(self.cluster.folder / "daemons", one) if one else {} for one in hours]
        self.there = [self.cluster.add(host, **own) for host, own in zip(hosts, clocks, strict=True)]
        self._wait_for(len(hours))

    def lose(self) -> None:
        """Have none any more."""
        for node in self.there:
            node.lose()
        self._wait_for(0)
        self.there = []

    def _wait_for(self, number: int) -> None:
        executors = self.place.running.sparkContext._jsc.sc().getExecutorMemoryStatus
        end = time.monotonic() + 120
        while executors().size() - 1 != number:
            assert time.monotonic() < end, f"there are {executors().size() - 1} executors, and not {number}"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """One session for all tests; when it has ended, what it left is searched once more."""
    with cluster(tmp_path_factory.mktemp("nodes"), **SPECULATION) as (made, place):
        yield Machines(made, place)
    assert_no_traces(place)


@pytest.fixture
def machines(running: Machines) -> Iterator[Machines]:
    yield running
    running.lose()


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@dataclass
class Release:
    """A release with a ledger, here or on the cluster, and what it leaves."""

    folder: Path
    staging: Path

    def __post_init__(self) -> None:
        rng, ends = np.random.default_rng(3), np.array(PLACE.codes[-1].to_pylist())
        trips = {name: ends[rng.integers(0, len(ends), 900)] for name in ("origin", "destination")}
        pq.write_table(pa.table(trips), self.folder / "trips.parquet", row_group_size=200)
        self.ledger = tt.Ledger.create(self.folder / "spent.ledger", loss=tt.Loss(rho=5))

    def __call__(self, name: str, engine: str = "spark") -> dict[str, bytes]:
        """Publish, and return the tables of the release."""
        out = self.folder / name
        where = tt.Engine(engine, self.staging if engine == "spark" else None, memory="256MB")
        tt.publish(PLAN, str(self.folder / "trips.parquet"), out, tt.RunOptions(ledger=self.ledger, engine=where))
        return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.parquet"))}

    @property
    def states(self) -> list[str]:
        return [entry.state for entry in self.ledger.entries()]


@pytest.fixture
def release(machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    monkeypatch.setattr(Gate, "_secret", KEY)  # releases with a testing key are not charged
    yield Release(tmp_path, machines.place.staging)
    assert list(machines.place.staging.iterdir()) == []
    assert not list(tmp_path.glob(".*")), "something half is beside the release"


def instead(monkeypatch: pytest.MonkeyPatch, wanted: str, other: Callable[[Any], Any]) -> None:
    """Have executors do something else than one of the steps of a release."""

    def pack(folder: Path, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Any:
        return task_files.pack(folder, other(function) if function.__name__ == wanted else function, tasks)

    monkeypatch.setattr(sparks, "pack", pack)


@pytest.mark.parametrize("step", ["_encode", "descend"])
def test_a_machine_that_is_lost_in_the_middle_changes_nothing(
    step: str, machines: Machines, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = release("here", "local")
    machines.have(0, 0)
    notes, done = tmp_path / "notes", threading.Event()
    notes.mkdir()
    instead(monkeypatch, step, lambda function: Noted(function, str(notes), 2.0))
    lost: set[int] = set()

    def lose() -> None:
        while not done.wait(0.02) and not lost:
            begun = {int(note.name) for note in notes.iterdir()}
            for node in machines.there:
                if not lost and (own := begun & set(node.processes)):
                    node.lose()
                    lost.update(own)

    killer = threading.Thread(target=lose)
    killer.start()
    try:
        assert release("there") == here
    finally:
        done.set()
        killer.join()
    assert lost, "no task was running on a machine that was lost"
    assert {int(note.name) for note in notes.iterdir()} - lost, "nobody did it again"
    assert release.states == ["complete", "complete"]


def test_a_release_that_cannot_be_finished_fails_with_one_message_and_leaves_nothing_but_the_charge(
    machines: Machines, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.have(0, 0)
    instead(monkeypatch, "descend", lambda _: die)
    with pytest.raises(Unfinished, match=r"^Spark gave up on a job: [^\n]*lack memory[^\n]*which stays spent\)$"):
        release("there")
    assert not (tmp_path / "there").exists()
    assert release.states == ["reserved, outcome unknown"]  # it may have been measured: what is charged stays so


@pytest.mark.parametrize("hours", [5.0, -5.0], ids=["ahead", "behind"])
def test_machines_whose_clocks_are_hours_apart_give_the_same(
    hours: float, machines: Machines, release: Release
) -> None:
    here = release("here", "local")
    machines.have(0, hours)
    told = [one - time.time() for one in machines.place.spark.map(Slow(clock, 1.0), range(8))]
    apart = [one for one in told if abs(one) > HOURS]
    assert len(apart) < len(told) and {round(one / HOURS) for one in apart} == {hours}, told
    assert release("there") == here
    assert release.states == ["complete", "complete"]


def test_a_task_that_is_done_twice_at_once_gives_the_same_and_leaves_nothing(
    machines: Machines, tmp_path: Path
) -> None:
    machines.have(0, 0)
    expected = descended("plain")
    assert descended("plain", Through(machines.place.spark, lambda one: Together(one, str(tmp_path)))) == expected
    assert len(list(tmp_path.glob("attempt-*"))) == 2, "Spark began no second attempt"
    assert list(machines.place.staging.iterdir()) == []


def test_nothing_private_is_left_on_machines(machines: Machines) -> None:
    machines.have(0, 0)
    leave_traces(machines.place.spark)
    assert_no_traces(machines.place)
