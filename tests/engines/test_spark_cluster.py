"""Spark on a cluster of several processes of this machine: executors are killed.

It takes minutes, and runs with TREETOP_AUDIT=deep. Spark begins a second attempt of a task on another machine only: see
`test_spark_nodes`, where there are two.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.descents import KINDS, cut_small, descended
from tests.engines.sparks import SOCKETS, Place, Through, assert_no_traces, leave_traces, started
from tests.engines.worker_tasks import Slow

DEEP = os.environ.get("TREETOP_AUDIT") == "deep"
pytestmark = [
    pytest.mark.skipif(not DEEP, reason="a cluster of several processes is tried with TREETOP_AUDIT=deep"),
    pytest.mark.filterwarnings(SOCKETS),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One session for all tests; when it has ended, what it left is searched once more."""
    with started(tmp_path_factory.mktemp("cluster"), "local-cluster[2,1,1024]") as made:
        yield made
    assert_no_traces(made)


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_gives_the_release_of_one_process(kind: str, place: Place) -> None:
    expected = descended(kind)
    assert descended(kind, place.spark) == expected


def executors() -> list[int]:
    """The processes of executors that these tests have started."""
    own = f"TREETOP_TESTS_RUN={os.environ['TREETOP_TESTS_RUN']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, words = (path / "cmdline").read_bytes(), (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if own in words and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(path.name))
    return found


def test_an_executor_that_is_killed_changes_nothing(place: Place) -> None:
    place.spark.prove()
    before = executors()
    assert len(before) == 2
    killer = threading.Timer(2, lambda: os.kill(before[0], signal.SIGKILL))
    killer.start()
    try:
        slow = Through(place.spark, lambda function: Slow(function, 4.0))
        assert descended("plain", slow) == descended("plain")
    finally:
        killer.join()
    assert before[0] not in executors()
    assert list(place.staging.iterdir()) == []


def test_nothing_private_is_left_on_a_cluster(place: Place) -> None:
    leave_traces(place.spark)
    assert_no_traces(place)
