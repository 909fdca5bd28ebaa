"""What Spark shows on its web pages and tells by its REST interface: nothing private, while it runs and afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.engines.descents import IN_TURN, KEY, PLACE, cut_small
from tests.engines.pages import SETTINGS, pages, showing
from tests.engines.sparks import OTHER, SOCKETS, Place, assert_no_traces, leave_traces, started, written
from tests.engines.worker_tasks import PRIVATE, Slow, echo
from treetop.addons.clusters import spark as sparks
from treetop.addons.clusters import task_files
from treetop.errors import DataError
from treetop.noise import Key

pytestmark = pytest.mark.filterwarnings(SOCKETS)

PLANTED = "the-ferry-of-the-seven-lanterns"
"""What is put where it can be seen, so that the search is seen to find something."""
PLAN = tt.Plan(IN_TURN, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with started(tmp_path_factory.mktemp("pages"), "local[2]", **SETTINGS) as made:
        yield made
    assert_no_traces(made)


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """The keys that go to executors, seals among them: each run derives its own."""
    keys: list[Key] = []

    def pack(folder: Path, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Any:
        context, number = task_files.pack(folder, function, tasks)
        keys.extend([context.seal, *context.keys])
        return context, number

    monkeypatch.setattr(sparks, "pack", pack)
    return keys


@pytest.fixture(params=["file", "DataFrame"])
def table(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Callable[[str], Any]:
    """Make a table of trips, one of which goes to a code."""

    def make(code: str) -> Any:
        rng, ends = np.random.default_rng(3), np.array(PLACE.codes[-1].to_pylist())
        origin, destination = (ends[rng.integers(0, len(ends), 200)].tolist() for _ in range(2))
        rows = pa.table({"origin": [*origin, ends[0]], "destination": [*destination, code]})
        pq.write_table(rows, tmp_path / "trips.parquet")
        path = str(tmp_path / "trips.parquet")
        return path if request.param == "file" else place.running.read.parquet(path)

    return make


def assert_nothing_shown(found: dict[str, bytes], keys: Iterable[Key] = ()) -> None:
    assert any("/stages/stage/" in address for address in found) and any("/SQL/execution/" in one for one in found)
    shown = showing(found, PRIVATE.encode(), *(form for key in (KEY, OTHER, *keys) for form in written(key)))
    assert not shown, f"something private is on {shown}"


def test_pages_show_nothing_of_a_release(place: Place, table: Callable[[str], Any], sent: list[Key]) -> None:
    engine = tt.Engine("spark", place.staging)
    release = tt.make_release(
        PLAN, table(PLACE.codes[-1][0].as_py()), tt.RunOptions(engine=engine, testing_key=KEY.secret)
    )
    assert release.total == 201
    assert len(set(sent)) > 3
    assert_nothing_shown(pages(place.running), sent)


def test_pages_show_nothing_of_a_private_code_for_which_a_release_is_refused(
    place: Place, table: Callable[[str], Any], sent: list[Key]
) -> None:
    with pytest.raises(DataError, match=PRIVATE):  # the steward is told of it
        tt.make_release(
            PLAN, table(PRIVATE), tt.RunOptions(engine=tt.Engine("spark", place.staging), testing_key=KEY.secret)
        )
    assert_nothing_shown(pages(place.running), sent)
    assert_no_traces(place)


def test_pages_show_nothing_while_tasks_run_with_keys_and_codes_and_when_they_have_failed(
    place: Place, sent: list[Key]
) -> None:
    tasks = [(KEY, PRIVATE), (OTHER, PRIVATE)]
    running = threading.Thread(target=lambda: list(place.spark.map(Slow(echo, 6.0), tasks)))
    running.start()
    while not (active := place.running.sparkContext.statusTracker().getActiveStageIds()):
        running.join(0.05)
    assert_nothing_shown(found := pages(place.running), sent)
    assert any(f"/stages/stage/?id={active[0]}&" in address for address in found)
    running.join()
    leave_traces(place.spark)
    assert_nothing_shown(pages(place.running), sent)
    assert_no_traces(place)


def test_the_search_finds_what_a_query_says_and_what_a_worker_raises(place: Place) -> None:
    """So Spark shows it where a program is less careful, and the search of its pages sees that."""

    def fail(_: Iterable[Any]) -> Iterator[Any]:
        raise ValueError(f"{PLANTED} is unknown")

    place.running.range(5).filter(f"concat(id, '{PLANTED}') = 'x'").collect()
    shown = showing(pages(place.running), PLANTED.encode())
    assert {"/SQL/execution/" in one for one in shown if "/api/" not in one} == {True}
    assert any("/sql?" in one for one in shown)
    with pytest.raises(Exception, match=PLANTED):
        place.running.range(1).mapInArrow(fail, "id long").collect()
    shown = showing(pages(place.running), PLANTED.encode())
    assert all(any(where in one for one in shown) for where in ("/stages/", "/stages?", "/taskList", "/jobs/job/"))
    assert place.holding(PLANTED.encode()), "nor is it in the log of events"
