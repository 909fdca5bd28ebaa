"""Engines: the same plans give the same bytes on each; what fails is said in one sentence, and nothing is left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.engine.engine import ENGINES, Engine, Kind, Machine
from treetop.engine.executor import Executor, Serial
from treetop.engine.processes import Processes
from treetop.engine.staging import staging
from treetop.errors import DataError, EngineError
from treetop.intake import staged
from treetop.release.folder import HIERARCHIES

KEY = bytes(range(32))
ROWS = 6_000
TOWNS = [f"{a}{b:02d}" for a in range(6) for b in range(15)]
TREE = tt.Hierarchy.from_prefixes(TOWNS, widths=[1])
SPINE = tt.Spine.destination_first(origin=TREE, destination=TREE)


def trips() -> pa.Table:
    rng = np.random.default_rng(5)
    origin, destination = (rng.zipf(1.3, ROWS) % len(TOWNS) for _ in range(2))
    codes = np.array(TOWNS)
    return pa.table(
        {
            "origin": codes[origin],
            "destination": codes[destination],
            "n": rng.integers(1, 9, ROWS),
            "person": [f"p{i}" for i in rng.integers(0, ROWS // 3, ROWS)],
        }
    )


TRIPS = trips()


def plan(**options: Any) -> tt.Plan:
    unit = options.pop("unit", tt.Unit("trip", neighbours="replace"))
    return tt.Plan(options.pop("spine", SPINE), unit, options.pop("loss", tt.Loss(rho=2)), **options)


PERSON = tt.Unit("person", 3, "add-remove", id="person")
CASES: dict[str, tuple[Callable[[], tt.Plan], dict[str, Any]]] = {
    "spine alone": (partial(plan, margins="none"), {}),
    "margins": (plan, {"count": "n"}),
    "pairs of regions": (partial(plan, margins=["origin.digits1 * destination.digits1"]), {}),
    "bounded by id": (partial(plan, unit=PERSON), {}),
    "bounded, with counts": (partial(plan, unit=PERSON), {"count": "n"}),
    "fdr": (partial(plan, resolve={"fdr": 0.1}), {}),
    "fdr, spine alone": (partial(plan, resolve={"fdr": 0.1}, margins="none"), {}),
    "merged": (partial(plan, spine=tt.Spine.merged(origin=TREE, destination=TREE)), {}),
    "lower error": (partial(plan, prefer="lower-error"), {}),
    "no intervals": (partial(plan, confidence=None, margins="none"), {}),
    "measurements kept": (partial(plan, margins="none"), {"keep_measurements": True}),
}


@contextmanager
def _staged_here(engine: Engine) -> Iterator[Machine]:
    """The tasks of processes, one after the other in this one."""
    with staging(engine.staging) as folder:
        yield Machine(Serial(), folder, engine.bytes)


@pytest.fixture(autouse=True, scope="module")
def _here() -> Iterator[None]:
    ENGINES.register(Kind("here", "In this process, with counts in files.", _staged_here))
    yield
    del ENGINES._by_name["here"]


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a task hold so few rows that there are many runs and ranges."""
    monkeypatch.setattr(staged.Space, "rows", lambda *_: 700)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table in two Parquet files with several groups of rows."""
    folder = tmp_path_factory.mktemp("trips")
    for number in range(2):
        half = TRIPS.slice(number * ROWS // 2, ROWS // 2)
        pq.write_table(half, folder / f"part{number}.parquet", row_group_size=500)
    return folder


@pytest.fixture
def workers() -> Iterator[Executor]:
    own = Processes(2)
    yield own
    own.close()


def saved(release: tt.Release, folder: Path) -> dict[str, bytes]:
    """The bytes of all files of a release, but for what is different in every run."""
    release.save(folder)
    tables = sorted(file for file in folder.rglob("*.parquet") if HIERARCHIES not in file.parts)
    return {file.name: file.read_bytes() for file in tables}


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("name", CASES)
def test_a_release_out_of_core_is_the_one_in_memory(name: str, files: Path, tmp_path: Path) -> None:
    make, options = CASES[name]
    plan, here = make(), Engine("here", staging=tmp_path)
    local = saved(plan.release(files, engine="local", testing_key=KEY, **options), tmp_path / "local")
    assert saved(plan.release(files, engine=here, testing_key=KEY, **options), tmp_path / "here") == local
    assert local
    # In another order, in memory, as text: the same table is the same release.
    shuffled = TRIPS.take(np.random.default_rng(1).permutation(ROWS))
    assert saved(plan.release(shuffled, engine=here, testing_key=KEY, **options), tmp_path / "shuffled") == local
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_processes_give_the_same_bytes(
    files: Path, tmp_path: Path, workers: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def started(engine: Engine) -> Iterator[Machine]:
        with staging(engine.staging) as folder:
            yield Machine(workers, folder, engine.bytes)

    monkeypatch.setitem(ENGINES._by_name, "processes", Kind("processes", "Workers that are there.", started))
    for name in ("margins", "bounded by id", "fdr, spine alone", "merged"):
        make, options = CASES[name]
        release = partial(make().release, files, testing_key=KEY, **options)
        local = saved(release(engine="local"), tmp_path / f"{name}, local")
        assert saved(release(engine=Engine("processes", tmp_path)), tmp_path / f"{name}, processes") == local


def test_impossible_leaves_are_left_out_of_files_as_well(files: Path, tmp_path: Path) -> None:
    facts = {"origin.digits1 * destination.digits1": tt.Fact(impossible=[("0", "5"), ("1", "1")], unchecked=True)}
    known = plan(facts=facts, unit=tt.Unit("trip", neighbours="add-remove"))
    local = saved(known.release(files, testing_key=KEY, engine="local"), tmp_path / "local")
    assert saved(known.release(files, testing_key=KEY, engine=Engine("here", tmp_path)), tmp_path / "here") == local


def dies_once(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def always_dies(_: object) -> None:
    os._exit(3)


def refuses(_: object) -> None:
    raise DataError("row 3: a code is missing")


def double(number: int) -> int:
    sys.stdout.write("whatever a library says\n")
    sys.stdout.flush()
    return 2 * number


def test_a_worker_that_is_killed_is_replaced_and_its_task_done_again(tmp_path: Path, workers: Executor) -> None:
    assert list(workers.map(dies_once, [tmp_path / "one", tmp_path / "two"])) == [7, 7]
    assert list(workers.map(double, range(20))) == list(range(0, 40, 2))


def test_work_that_kills_every_worker_is_given_up(workers: Executor) -> None:
    with pytest.raises(EngineError, match="ended 3 times"):
        list(workers.map(always_dies, [None]))
    assert list(workers.map(double, [1])) == [2]


def test_what_a_worker_refuses_is_refused_here(workers: Executor) -> None:
    with pytest.raises(DataError, match="row 3"):
        list(workers.map(refuses, [None]))
