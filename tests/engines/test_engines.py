"""Engines: the same plans give the same bytes on each; what fails is said in one sentence, and nothing is left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests import everyday
from tests.commands import said
from tests.engines.deeds import always_dies, dies_once, double, finds_no_room, refuses, whose
from treetop.counts import spill as frozen
from treetop.counts import spill as staged
from treetop.engine import staging as stagings
from treetop.engine.engine import AHEAD, ENGINES, Engine, EngineKind, Executor, Machine, Processes, Threads
from treetop.engine.staging import staging
from treetop.errors import DataError, EngineError, PlanError, TreetopError
from treetop.io.table import batches, pieces, rows_at_most
from treetop.measure.level import SpillBuffer
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
TRIP = tt.Unit("trip", neighbours="replace")


def plan(**options: Any) -> tt.Plan:
    unit = options.pop("unit", TRIP)
    return tt.Plan(options.pop("spine", SPINE), unit, options.pop("loss", tt.Loss(rho=2)), **options)


def joint_plan(unit: tt.Unit = TRIP) -> tt.Plan:
    return tt.joint_plan({"origin": TREE, "destination": TREE}, unit, tt.Loss(rho=2))


PERSON = tt.Unit("person", 3, "add-remove", id="person")
DISTINCT = tt.Unit("person", 3, "add-remove", id="person", distinct=True)
CASES: dict[str, tuple[Callable[[], tt.Plan], dict[str, Any]]] = {
    "spine alone": (partial(plan, margins="none"), {}),
    "margins": (plan, {"count": "n"}),
    "pairs of regions": (partial(plan, margins=["origin.digits1 * destination.digits1"]), {}),
    "bounded by id": (partial(plan, unit=PERSON), {}),
    "bounded, with counts": (partial(plan, unit=PERSON), {"count": "n"}),
    "bounded, distinct": (partial(plan, unit=DISTINCT), {"count": "n"}),
    "fdr": (partial(plan, resolve={"fdr": 0.1}), {}),
    "fdr, spine alone": (partial(plan, resolve={"fdr": 0.1}, margins="none"), {}),
    "merged": (partial(plan, spine=tt.Spine.merged(origin=TREE, destination=TREE)), {}),
    "lower error": (partial(plan, prefer="lower-error"), {}),
    "no intervals": (partial(plan, confidence=None, margins="none"), {}),
    "measurements kept": (partial(plan, margins="none"), {"keep_measurements": True}),
    "joint": (joint_plan, {"count": "n"}),
    "joint, bounded by id": (partial(joint_plan, PERSON), {}),
}


@contextmanager
def _staged_here(engine: Engine) -> Iterator[Machine]:
    """The tasks of processes, one after the other in this one."""
    with staging(engine.staging) as folder:
        yield Machine(Threads(), folder, engine.bytes)


@pytest.fixture(autouse=True, scope="module")
def _here() -> Iterator[None]:
    ENGINES.register(EngineKind("here", "In this process, with counts in files.", _staged_here))
    yield
    del ENGINES["here"]


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
    local = saved(
        tt.make_release(plan, files, tt.RunOptions(engine="local", testing_key=KEY, **options)), tmp_path / "local"
    )
    assert (
        saved(tt.make_release(plan, files, tt.RunOptions(engine=here, testing_key=KEY, **options)), tmp_path / "here")
        == local
    )
    assert local
    # In another order, in memory, as text: the same table is the same release.
    shuffled = TRIPS.take(np.random.default_rng(1).permutation(ROWS))
    assert (
        saved(
            tt.make_release(plan, shuffled, tt.RunOptions(engine=here, testing_key=KEY, **options)),
            tmp_path / "shuffled",
        )
        == local
    )
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_processes_give_the_same_bytes(
    files: Path, tmp_path: Path, workers: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def started(engine: Engine) -> Iterator[Machine]:
        with staging(engine.staging) as folder:
            yield Machine(workers, folder, engine.bytes)

    monkeypatch.setitem(ENGINES, "processes", EngineKind("processes", "Workers that are there.", started))
    for name in ("margins", "bounded by id", "fdr, spine alone", "merged", "joint"):
        make, options = CASES[name]
        run = tt.RunOptions(testing_key=KEY, **options)
        local, other = (
            tt.make_release(make(), files, replace(run, engine=engine))
            for engine in ("local", Engine("processes", tmp_path))
        )
        assert saved(other, tmp_path / f"{name}, processes") == saved(local, tmp_path / f"{name}, local")


def test_impossible_leaves_are_left_out_of_files_as_well(files: Path, tmp_path: Path) -> None:
    facts = {"origin.digits1 * destination.digits1": tt.Fact(impossible=[("0", "5"), ("1", "1")], unchecked=True)}
    known = plan(facts=facts, unit=tt.Unit("trip", neighbours="add-remove"))
    local = saved(tt.make_release(known, files, tt.RunOptions(testing_key=KEY, engine="local")), tmp_path / "local")
    assert (
        saved(
            tt.make_release(known, files, tt.RunOptions(testing_key=KEY, engine=Engine("here", tmp_path))),
            tmp_path / "here",
        )
        == local
    )


def test_a_worker_that_is_killed_is_replaced_and_its_task_done_again(tmp_path: Path, workers: Executor) -> None:
    assert list(workers.map(dies_once, [tmp_path / "one", tmp_path / "two"])) == [7, 7]
    assert list(workers.map(double, range(20))) == list(range(0, 40, 2))


def test_workers_stay_for_who_takes_all_answers_and_does_not_ask_for_more() -> None:
    own = Processes(1)
    found = []
    for _ in range(2):
        answers = own.map(whose, [None])
        found.append(next(answers))
        del answers
    own.close()
    assert found[0] == found[1] != os.getpid()


def test_tasks_are_taken_and_answers_held_only_a_few_ahead(workers: Executor) -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    answers = workers.map(double, tasks())
    for number in range(100):
        assert next(answers) == 2 * number
        assert len(taken) <= number + 1 + 2 * AHEAD
    assert list(answers) == []


def test_work_that_kills_every_worker_is_given_up(workers: Executor) -> None:
    with pytest.raises(EngineError, match="ended 3 times"):
        list(workers.map(always_dies, [None]))
    assert list(workers.map(double, [1])) == [2]


def test_what_a_worker_refuses_is_refused_here_and_not_tried_again(workers: Executor, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        list(workers.map(finds_no_room, [tmp_path / "marker"]))
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(DataError, match="row 3"):
        list(workers.map(refuses, [None]))


def refusal(engine: Engine | str, table: Any, **options: Any) -> str:
    with pytest.raises(TreetopError) as refused:
        tt.make_release(plan(**options), table, tt.RunOptions(testing_key=KEY, engine=engine))
    return f"{type(refused.value).__name__}: {refused.value}"


@pytest.mark.parametrize("options", [{}, {"unknown": "drop", "unit": tt.Unit("trip", neighbours="add-remove")}])
def test_what_is_refused_in_memory_is_refused_in_the_same_words_out_of_core(
    options: dict[str, Any], tmp_path: Path
) -> None:
    strange = TRIPS.set_column(0, "origin", pa.array(["elsewhere"] * 400 + TRIPS["origin"].to_pylist()[400:]))
    pq.write_table(strange, tmp_path / "strange.parquet", row_group_size=500)
    (tmp_path / "scratch").mkdir()
    here = Engine("here", tmp_path / "scratch")
    local = refusal("local", tmp_path / "strange.parquet", **options)
    assert "elsewhere" in local
    assert refusal(here, tmp_path / "strange.parquet", **options) == local
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_full_disk_is_said_in_one_sentence_and_nothing_is_charged(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(staged, "save", full)
    charged: list[None] = []
    with pytest.raises(EngineError, match=r"the disk of the staging folder .* is full: name one with more room"):
        tt.make_release(
            plan(), files, tt.RunOptions(engine=Engine("here", tmp_path), before_measuring=lambda: charged.append(None))
        )
    assert (charged, list(tmp_path.iterdir())) == ([], [])


def test_an_array_that_a_full_disk_cannot_hold_is_said_to_be_too_large_for_it(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")
    (tmp_path / "word0.npy").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as problem:
        frozen.save(tmp_path, "word0", np.arange(1 << 17))
    assert problem.value.errno == errno.ENOSPC


def test_room_on_a_disk_is_taken_before_it_is_written_as_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen.room(tmp_path, "word0", np.uint64, 1 << 20)
    with (tmp_path / "word0.npy").open("rb") as file:
        assert os.fstat(file.fileno()).st_blocks * 512 >= 8 << 20  # and not a file with holes

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        frozen.room(tmp_path, "word1", np.uint64, 1 << 20)
    with pytest.raises(OSError, match="No space left"):
        SpillBuffer(tmp_path).array((1 << 21,), np.int64)


def test_a_file_that_changes_while_it_is_read_is_refused(files: Path, tmp_path: Path) -> None:
    path = tmp_path / "trips.parquet"
    path.write_bytes((files / "part0.parquet").read_bytes())
    found = pieces(path, 1_000)
    assert found is not None and len(found) > 1
    pq.write_table(TRIPS, path)
    with pytest.raises(DataError, match="has changed while it was read: nothing was measured"):
        list(batches(found[0], ["origin"]))


def test_pieces_of_a_table_are_all_of_it_and_know_their_rows(files: Path) -> None:
    found = pieces(files, 1_100)
    assert found is not None and [len(one.groups or ()) for one in found] == [2, 2, 2] * 2
    read = [batch for piece in found for batch in batches(piece, ["origin"])]
    assert pa.Table.from_batches([batch.rows for batch in read])["origin"].to_pylist() == TRIPS["origin"].to_pylist()
    assert [batch.first for batch in read] == list(range(0, ROWS // 2, 500)) * 2
    assert pieces(TRIPS, 5) is None and pieces("-", 5) is None


STAGED = """
import sys, time
from treetop.engine.staging import staging
with staging(sys.argv[1]) as folder:
    (folder / "counts").write_text("private")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_swept_and_what_another_uses_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STAGED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        with staging(tmp_path) as own:
            assert left.is_dir() and own != left
            assert own.stat().st_mode & 0o077 == 0
        other.kill()
        other.wait()
        assert (left / "counts").exists()
    with staging(tmp_path):
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_that_is_broken_off_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".treetop-staging-left"
    left.mkdir()
    (left / "lock").touch()
    (left / "run0").mkdir()

    def broken_off(path: Path, ignore_errors: bool) -> None:
        (path / "lock").unlink(missing_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stagings, "rmtree", broken_off)
        with pytest.raises(KeyboardInterrupt), staging(tmp_path):
            pass
    assert (tmp_path / f"{left.name}-gone" / "run0").exists()
    with staging(tmp_path) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_a_folder_is_not_swept_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = vars(stagings)["flock"]

    def swept_first(*how: int) -> None:
        monkeypatch.setattr(stagings, "flock", lock)
        stagings._sweep(tmp_path)  # as another process may, just then
        lock(*how)

    monkeypatch.setattr(stagings, "flock", swept_first)
    with staging(tmp_path) as own:
        assert own.is_dir()


def test_a_place_for_staging_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineError, match="cannot be used for staging: No such file or directory"),
        staging(tmp_path / "no"),
    ):
        pass


def test_a_table_that_would_not_fit_is_counted_out_of_core(caplog: pytest.LogCaptureFixture) -> None:
    assert Engine().settled(None, 1_000).name == "local" and Engine().settled(None, None).name == "local"
    assert Engine(memory="500MB").settled(None, 1 << 60) == Engine("processes", memory=500 << 20)
    assert "counted out of core" in caplog.text
    assert Engine("local").settled(None, 1 << 60).name == "local"


def test_how_large_a_table_is_at_most_is_told_by_its_files(files: Path, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("origin,destination\n" + "000,001\n" * 50)
    assert rows_at_most(files) == rows_at_most(TRIPS) == ROWS
    assert 40 <= (rows_at_most(tmp_path / "trips.csv") or 0) <= 100
    assert rows_at_most("-") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "proceses"}, "there is no engine 'proceses' .did you mean 'processes'"),
        ({"memory": "a lot"}, "is not an amount of memory"),
        ({"memory": "-2GB"}, "is not an amount of memory"),
        ({"workers": 0}, "give one at least"),
    ],
)
def test_an_engine_that_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TreetopError, match=message):
        Engine(**given)


def test_group_sizes_are_refused_by_other_engines_before_anything_is_read() -> None:
    unit = tt.GroupUnit("person", "join-leave")
    groups = tt.group_plan(TREE, 3, unit, tt.Loss(rho=1), rows="histogram", number=5)
    with pytest.raises(PlanError, match="group sizes are counted in memory"):
        tt.make_release(groups, "nowhere.csv", tt.RunOptions(engine="processes"))


def test_the_command_takes_an_engine(tmp_path: Path) -> None:
    everyday.write(tmp_path)
    (tmp_path / "scratch").mkdir()
    words = ["release", "plan.toml", "trips.csv", "--testing-key", KEY.hex(), "--quiet"]
    assert said([*words, "--out", "local"], tmp_path).code == 0
    out_of_core = ["--engine", "processes", "--staging", "scratch", "--memory", "300MB", "--threads", "1"]
    done = said([*words, "--out", "processes", *out_of_core], tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    one, other = ((tmp_path / name / "counts.parquet").read_bytes() for name in ("local", "processes"))
    assert one == other and list((tmp_path / "scratch").iterdir()) == []
    wrong = said([*words, "--out", "wrong", "--engine", "hadoop"], tmp_path)
    assert wrong.code == 2 and "there is no engine 'hadoop'; known: local, processes" in wrong.err


def test_ctrl_c_ends_workers_and_leaves_nothing_behind(tmp_path: Path) -> None:
    everyday.write(tmp_path, trips=20_000)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["release", "plan.toml", "trips.csv", "--out", "out", "--engine", "processes", "--staging", "scratch"]
    # A background job would have Ctrl-C ignored.
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from treetop.cli import main; main()"
    )
    command = [sys.executable, "-c", start, *words, "--quiet"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as release:
        deadline = time.monotonic() + 60
        while not list(scratch.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # workers are starting, or at work
        os.killpg(release.pid, signal.SIGINT)
        _, message = release.communicate(timeout=60)
    assert release.returncode == 130 and "Traceback" not in message
    assert list(scratch.iterdir()) == [] and not (tmp_path / "out").exists()
