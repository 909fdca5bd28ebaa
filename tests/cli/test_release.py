"""`treetop release`, as a person runs it: what it writes, charges, refuses, and leaves behind when it dies."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import treetop as tt
from tests.commands import Command, refused
from tests.everyday import plan_file
from tests.processes import Running, Server
from treetop import Ledger, Loss, Release
from treetop.card import in_words
from treetop.cli import cli, main
from treetop.errors import LedgerError, Unfinished

PLAN = plan_file(('title = "Trips"', 'title = "Trips"\ndescription = "Who goes where."'), data='period = "2011"\n')
TREETOP = str(Path(sys.executable).with_name("treetop"))
Captured = pytest.CaptureFixture[str]
Start = Callable[..., Running]

TABLE = ("plan.toml", "trips.csv")
release = Command.of("release")
charged = Command.of("release", *TABLE, "--out", "out", "--ledger", "ledger")


@pytest.fixture
def here(trips: Path) -> Path:
    """A folder with a plan, its hierarchy, a private table and a ledger for three releases; we are in it."""
    (trips / "plan.toml").write_text(PLAN)
    Ledger.create(trips / "ledger", loss=Loss(rho=0.06))
    return trips


def run(*arguments: str) -> None:
    main(["release", "plan.toml", "trips.csv", "--out", "out", *arguments])


def test_a_release_says_before_it_spends_that_it_will_be_mostly_noise_and_ends_with_the_verdict(
    here: Path, capsys: Captured
) -> None:
    Path("plan.toml").write_text(f"{PLAN}records = 60\n")
    run()
    said, warned = capsys.readouterr()
    assert warned.startswith("Verdict, if there are about 60 records:") and "Mostly noise: " in warned
    assert "Verdict, if there are about 600 records\n" in said and "Mostly noise: " not in said
    assert "records = 60" in Path("out/plan.toml").read_text()
    Path("plan.toml").write_text(PLAN)
    run("--force")
    said, warned = capsys.readouterr()
    assert "Verdict, if there are about 600 records" in said and warned == ""


def card(folder: str = "out") -> Any:
    return json.loads(Path(folder, "card.json").read_text(encoding="utf-8"))


def is_whole(folder: Path) -> bool:
    return all(verdict.verified for verdict in tt.check(folder))


def test_a_release_is_written_and_summed_up(here: Path, capsys: Captured) -> None:
    run()
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search("600 in [0-9]+ leaves", captured.out)
    assert "epsilon 1 and delta 1e-08" in captured.out
    assert captured.out.count("No ledger recorded this loss") == 1
    assert captured.out.endswith("Next: treetop check out\n")
    assert is_whole(here / "out")
    assert sorted(path.name for path in here.iterdir()) == ["ledger", "out", "places.csv", "plan.toml", "trips.csv"]


def test_the_card_knows_the_data_but_not_where_it_is(here: Path) -> None:
    run("--nodes")
    text = "".join((here / "out" / name).read_text() for name in ("card.json", "card.html", "plan.toml"))
    assert "trips.csv" not in text
    assert str(here) not in text
    told = card()
    assert (told["data"]["period"], told["description"]) == ("2011", "Who goes where.")
    assert told["data"]["columns"] == {"destination": "work", "origin": "home"}
    assert (here / "out" / "nodes.parquet").exists()


def test_json_and_quiet(here: Path, capsys: Captured) -> None:
    run("--json")
    summary = json.loads(capsys.readouterr().out)
    assert (summary["total"], summary["leaves"], summary["private"]) == (600, len(Release.load("out").count), True)
    assert summary["ledger"] is None
    run("--quiet", "--force")
    assert capsys.readouterr() == ("", "")


def twin(here: Path, rows: int = 400) -> Path:
    rng = random.Random(9)
    towns = ["n1", "n2", "s1", "s2"]
    text = "\n".join(f"{rng.choice(towns)},{rng.choice(towns)}" for _ in range(rows))
    (here / "twin.csv").write_text(f"home,work\n{text}\n")
    return here / "twin.csv"


def test_a_plan_is_tried_on_a_public_twin_and_the_card_says_what_came_of_it(here: Path, capsys: Captured) -> None:
    run("--twin", str(twin(here)))
    assert "Tried 5 times on a public table of the same kind" in capsys.readouterr().out
    told = card()["accuracy"]["coverage"]
    assert (told["nominal"], told["runs"]) == (0.95, 5)
    assert [level["level"] for level in told["twin"]] == [1, 2, 3, 4, 5, 6, 7]  # four levels and three margins
    assert all(0 < level["covered"] <= level["nodes"] for level in told["twin"])
    assert is_whole(here / "out")
    run("--twin", str(twin(here)), "--force", "--json")
    again = json.loads(capsys.readouterr().out)
    assert again["coverage"]["twin"] == told["twin"]  # testing keys: nothing of it depends on the private table
    run("--quiet", "--force")
    assert "twin" not in card()["accuracy"]["coverage"]


def test_the_private_table_is_no_twin(here: Path) -> None:
    (here / "copy.csv").write_bytes((here / "trips.csv").read_bytes())
    for same in ("trips.csv", "copy.csv"):
        message = charged.fails("--twin", same, code=3)
        assert "the twin is the private table itself" in message
    header, *rows = (here / "trips.csv").read_text().splitlines()
    (here / "sorted.csv").write_text("\n".join([header, *sorted(rows, reverse=True)]) + "\n")
    assert "the same records as the private table" in charged.fails("--twin", "sorted.csv", code=3)
    assert Ledger.open("ledger").entries() == ()
    assert not (here / "out").exists()


def test_the_private_table_is_no_twin_where_contributions_are_bounded(here: Path) -> None:
    unit = 'contributions = 1\nneighbours = "replace"'
    (here / "plan.toml").write_text(PLAN.replace(unit, 'contributions = 2\nneighbours = "add-remove"\nid = "who"'))
    header, *rows = (here / "trips.csv").read_text().splitlines()
    named = [f"p{number % 90},{row}" for number, row in enumerate(rows)]
    (here / "trips.csv").write_text("\n".join([f"who,{header}", *named]) + "\n")
    table = csv.read_csv(here / "trips.csv")
    pq.write_table(table, "copy.parquet")
    pq.write_table(table.sort_by("work").set_column(0, "who", pa.array(range(len(rows)))), "other ids.parquet")
    for same in ("copy.parquet", "other ids.parquet"):
        assert "the same records as the private table" in charged.fails("--twin", same, code=3)
    assert Ledger.open("ledger").entries() == ()
    assert not (here / "out").exists()
    pq.write_table(table.slice(1), "other.parquet")
    run("--twin", "other.parquet")
    assert "twin" in card()["accuracy"]["coverage"]


def test_a_release_that_would_drop_much_asks_before_it_measures(here: Path, capsys: Captured) -> None:
    (here / "plan.toml").write_text(PLAN + 'unknown = "drop"\n')
    rows = (here / "trips.csv").read_text() + "n1 ,s1\n" * 67
    (here / "trips.csv").write_text(rows)
    call = ("plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger")
    message = release.fails(*call, code=3)
    assert "67 of 667 rows would be dropped (10.0%)." in message
    assert "67 of these 67 would be known without the blanks around them: trim column 'home'." in message
    assert "--allow-dropped" in message
    assert Ledger.open("ledger").entries() == ()
    assert not (here / "out").exists()
    main(["release", *call, "--allow-dropped"])
    captured = capsys.readouterr()
    assert "treetop: 67 of 667 rows were dropped (10.0%)." in captured.err
    assert "dropped" not in captured.out
    assert len(Ledger.open("ledger").entries()) == 1
    texts = [(here / "out" / name).read_text() for name in ("card.json", "card.html", "plan.toml")]
    assert not any(re.search(r"n1 \b|\b67\b|\b667\b", text) for text in texts)


def test_an_id_that_never_repeats_is_told_to_the_steward(here: Path, capsys: Captured) -> None:
    (here / "plan.toml").write_text(PLAN.replace('entity = "trip"', 'entity = "trip"\nid = "number"'))
    header, *rows = (here / "trips.csv").read_text().splitlines()
    named = [f"{number},{row}" for number, row in enumerate(rows)]
    (here / "trips.csv").write_text("\n".join([f"number,{header}", *named]) + "\n")
    run()
    captured = capsys.readouterr()
    assert "treetop: No id in column 'number' stands in more than one row" in captured.err
    assert "stands in more than one row" not in captured.out + (here / "out" / "card.json").read_text()


def test_a_twin_is_for_plans_with_intervals(here: Path) -> None:
    (here / "plan.toml").write_text(PLAN + "[release]\nintervals = false\n")
    assert "intervals off" in release.fails(*TABLE, "--out", "out", "--twin", str(twin(here)))


def test_the_source_may_stand_in_the_plan(here: Path) -> None:
    (here / "plan.toml").write_text(PLAN + 'source = "trips.csv"\n')
    main(["release", "plan.toml", "--out", "out"])
    assert Release.load("out").total == 600


def test_a_release_with_a_ledger_is_reserved_and_completed(here: Path, capsys: Captured) -> None:
    run("--ledger", "ledger", "--dataset", "trips")
    run("--ledger", "ledger", "--dataset", "trips", "--force")
    first, second = Ledger.open("ledger").entries("trips")
    assert (first.state, second.state) == ("complete", "complete")
    assert "No ledger" not in capsys.readouterr().out
    told = card()["composition"]
    assert (told["dataset"], told["reservation"]["number"]) == ("trips", second.number)
    assert [entry["card_sha256"] for entry in told["earlier"]] == [first.card_sha256]
    assert told["spent_after"]["exact"] == str(first.charged + second.charged)
    assert is_whole(here / "out")


def test_what_the_ledger_cannot_cover_is_refused_before_the_table_is_read(here: Path, capsys: Captured) -> None:
    for _ in range(3):
        run("--ledger", "ledger", "--force")
    capsys.readouterr()
    arguments = ("plan.toml", "there-is-no-table.csv", "--out", "new", "--ledger", "ledger")
    assert "spent rho 0.057663, asked rho 0.019221, remaining rho 0.002337" in release.fails(*arguments, code=3)
    assert not (here / "new").exists()


def test_another_unit_is_refused_before_the_table_is_read(here: Path, capsys: Captured) -> None:
    run("--ledger", "ledger", "--dataset", "trips")
    assert "one trip is protected" in in_words(card()["composition"]["sentence"])
    capsys.readouterr()
    (here / "plan.toml").write_text(PLAN.replace("contributions = 1", "contributions = 9"))
    arguments = ("plan.toml", "there-is-no-table.csv", "--out", "new", "--ledger", "ledger", "--dataset", "trips")
    code, message = refused("release", *arguments)
    assert code == 3
    assert (
        "'trip, exactly 1 record (declared), replace', this one 'trip, at most 9 records (declared), replace'"
        in message
    )
    assert "under another name" in message
    assert len(Ledger.open("ledger").entries()) == 1


def test_a_card_that_lacks_a_field_stops_the_release_before_it_spends(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treetop.card.content._unit", lambda plan, info: {"entity": "trip"})
    assert "card.unit lacks 'contributions'" in charged.fails()
    assert Ledger.open("ledger").entries() == ()
    assert not (here / "out").exists()


def test_a_testing_key_repeats_a_release_that_says_it_is_not_private(here: Path, capsys: Captured) -> None:
    key = "07" * 32
    for folder in ("one", "two"):
        main(["release", "plan.toml", "trips.csv", "--out", folder, "--testing-key", key])
        assert "NOT PRIVATE" in capsys.readouterr().out
    assert Path("one/counts.parquet").read_bytes() == Path("two/counts.parquet").read_bytes()
    assert card("one")["private"] is False
    assert key not in Path("one/card.json").read_text()
    assert "drop --ledger" in release.fails(*TABLE, "--out", "x", "--ledger", "ledger", "--testing-key", key)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan.toml", "--out", "out"], "name the private TABLE"),
        (["plan.toml", "trips.csv"], "--out"),
        (["plan.toml", "absent.csv", "--out", "out"], "absent.csv"),
        (["absent.toml", "trips.csv", "--out", "out"], "no such file"),
        (["plan.toml", "trips.csv", "--out", "no/out"], "is not a folder: create it first"),
        (["plan.toml", "trips.csv", "--out", "trips.csv"], "not a folder"),
        (["plan.toml", "trips.csv", "--out", "."], "is not the name of a new folder"),
        (["plan.toml", "places.csv", "--out", "out"], "[attributes.origin] hierarchy is the private table itself"),
        (["plan.toml", "trips.csv", "--out", "out", "--dataset", "x"], "give --ledger FILE"),
        (["plan.toml", "trips.csv", "--out", "out", "--ledger", "absent"], "treetop ledger create"),
        (["plan.toml", "trips.csv", "--out", "out", "--testing-key", "zz"], "64 hexadecimal digits"),
        (["plan.toml", "trips.csv", "--out", "out", "--threads", "0"], "--threads"),
    ],
)
def test_a_mistake_in_the_call_is_one_message(arguments: list[str], message: str, here: Path) -> None:
    text = release.fails(*arguments)
    assert message in text
    assert not (here / "out").exists()


@pytest.mark.parametrize("tables", [("-", "twin.csv"), ("trips.csv", "-")])
def test_standard_input_is_not_read_twice(here: Path, tables: tuple[str, str]) -> None:
    twin(here)
    assert "standard input or a pipe can be read once: name files for both" in release.fails(
        "plan.toml", tables[0], "--twin", tables[1], "--out", "out", "--ledger", "ledger"
    )
    assert Ledger.open("ledger").entries() == ()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_not_read_twice(here: Path) -> None:
    """Nothing would be left of it for the release, which would count nobody."""
    twin(here)
    os.mkfifo(here / "pipe")
    for tables in (("pipe", "twin.csv"), ("trips.csv", "pipe")):
        assert "a pipe can be read once: name files for both" in release.fails(
            "plan.toml", tables[0], "--twin", tables[1], "--out", "out"
        )


def test_what_fails_after_it_was_charged_is_an_error_of_its_own(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is written and a ledger that cannot record it: something was spent, and written."""

    def broken(*_: object) -> None:
        raise LedgerError("the disk is gone")

    monkeypatch.setattr("treetop.ledger._book.Reservation.complete", broken)
    call = ["release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger", "--quiet"]
    with pytest.raises(Exception, match="out is written, but the ledger could not record it") as failed:
        cli.main(call, standalone_mode=False)
    assert isinstance(failed.value.__cause__, Unfinished)
    assert Path("out").exists() and len(Ledger.open("ledger").entries()) == 1


def test_an_existing_folder_is_refused_before_anything_is_spent(here: Path, capsys: Captured) -> None:
    run()
    before = (here / "out" / "card.json").read_bytes()
    capsys.readouterr()
    assert "--force" in charged.fails()
    assert (here / "out" / "card.json").read_bytes() == before
    assert Ledger.open("ledger").entries() == ()


def test_a_disk_that_fills_up_is_one_message_and_the_loss_stays_spent(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter", full)
    message = charged.fails()
    assert "out: cannot be written: No space left on device" in message
    assert "the loss stays spent: entry 1 of ledger" in message
    assert sorted(path.name for path in here.iterdir()) == ["ledger", "places.csv", "plan.toml", "trips.csv"]


def test_a_full_disk_is_refused_before_anything_is_spent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("treetop.release.folder.place.disk_usage", lambda path: Usage)
    assert "is full" in charged.fails()
    assert Ledger.open("ledger").entries() == ()


# A release that sends itself a signal when it enters or leaves a function.
PROGRAM = """
import os, signal, sys
from treetop.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would have it ignored
module, function, event, number = sys.argv[1].split(":")
def watch(frame, what, argument):
    name = frame.f_globals.get("__name__")
    called = getattr(argument, "__name__", "") if what.startswith("c_") else frame.f_code.co_name
    if what == event and called == function and name == module:
        sys.setprofile(None)
        os.kill(os.getpid(), int(number))
sys.argv = ["treetop", "release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger", *sys.argv[2:]]
if module:
    sys.setprofile(watch)
main()
"""
POINTS = [
    ("treetop.counts.reading:read_encoded:call", 0),
    ("treetop.ledger._log:_append:return", 0),
    ("treetop.ledger._book:reserve:return", 1),
    ("treetop.measure.descent:run_descent:call", 1),
    ("treetop.measure.descent:run_descent:return", 1),
    ("treetop.release.folder._write:_write:return", 1),
    ("treetop.release.folder.place:take_place:return", 1),
    ("treetop.ledger._book:complete:return", 1),
]


@pytest.fixture
def start(here: Path, processes: Server) -> Start:
    """Start a release that is sent a signal at a point, or at none."""

    def started(*arguments: str, point: str = "::", number: int = 0) -> Running:
        return processes.start(PROGRAM, f"{point}:{number}", *arguments, folder=here)

    return started


@pytest.mark.parametrize(("point", "spent"), POINTS, ids=[point for point, _ in POINTS])
def test_a_killed_release_is_spent_if_it_measured_and_leaves_no_half_folder(
    point: str, spent: int, here: Path, start: Start
) -> None:
    assert start(point=point, number=signal.SIGKILL).wait().returncode == -signal.SIGKILL
    entries = Ledger.open(here / "ledger").entries()
    assert len(entries) == spent
    in_place = point.startswith("treetop.ledger._book:complete") or point.endswith("take_place:return")
    assert (here / "out").exists() == in_place
    if in_place:
        assert is_whole(here / "out")
        assert (entries[0].state == "complete") == (point == "treetop.ledger._book:complete:return")


def test_what_a_killed_release_left_beside_its_place_is_removed_by_the_next_one(here: Path, start: Start) -> None:
    start(point="treetop.release.folder._write:_write:return", number=signal.SIGKILL).wait()
    (left,) = here.glob(".out.treetop-draft-*")
    (here / ".out.mine").mkdir()
    run("--quiet")
    assert not left.exists()
    assert sorted(path.name for path in here.glob(".*")) == [".out.mine"]


@pytest.mark.parametrize("point", ["take_place:call", "exchange:call", "exchange:return", "take_place:return"])
def test_a_replacement_that_is_killed_leaves_the_old_release_or_the_new_one(
    point: str, here: Path, start: Start
) -> None:
    run("--quiet")
    old = card()["id"]
    process = start("--force", point=f"treetop.release.folder.place:{point}", number=signal.SIGKILL)
    assert process.wait().returncode == -signal.SIGKILL
    assert is_whole(here / "out")
    assert (card()["id"] == old) == point.endswith("call")
    assert len(Ledger.open(here / "ledger").entries()) == 1


def test_releases_killed_at_any_moment_never_measure_more_than_the_ledger_shows(here: Path, start: Start) -> None:
    rng = random.Random(2)
    for _ in range(5):
        process = start("--force", "--quiet")
        time.sleep(rng.uniform(0.0, 0.4))
        process.kill()
        process.wait()
        entries = Ledger.open(here / "ledger").entries()
        if (here / "out").exists():
            assert is_whole(here / "out")
            assert card(str(here / "out"))["composition"]["reservation"]["number"] in [one.number for one in entries]


# The process counts its own steps while it makes a release, and kills itself at one of them.
COUNTING = """
import os, sys
import treetop.checking.check
from treetop.cli import main
from treetop.publishing import publish as publishing
last, steps, run = int(sys.argv[1]), 0, publishing.publish
def watch(frame, what, argument):
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), 9)
def counted(*arguments, **options):
    sys.setprofile(watch)
    try:
        return run(*arguments, **options)
    finally:
        sys.setprofile(None)
publishing.publish = counted
main(["release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "wide", "--force", "--quiet"])
print("steps:", steps, file=sys.stderr)
"""


def test_releases_killed_at_random_steps_leave_whole_folders_and_their_loss_spent(
    here: Path, processes: Server
) -> None:
    ledger = Ledger.create(here / "wide", loss=Loss(rho=10))
    done = processes.run(COUNTING, 0, folder=here)
    assert done.returncode == 0
    steps = int(done.stderr.split("steps:")[1])
    times = 100 if os.environ.get("TREETOP_AUDIT") == "deep" else 5
    rng = random.Random(3)
    before, placed = ledger.entries(), card(str(here / "out"))["composition"]["reservation"]["number"]
    for i in range(times):
        done = processes.run(COUNTING, 1 + int(steps * (i + rng.random()) / times), folder=here)
        assert done.returncode == -signal.SIGKILL
        entries = Ledger.open(here / "wide").entries()
        assert entries[: len(before)] == before and len(entries) - len(before) in (0, 1)
        assert is_whole(here / "out")
        now = card(str(here / "out"))["composition"]["reservation"]["number"]
        assert now in {placed, *(entry.number for entry in entries[len(before) :])}
        digest = sha256((here / "out" / "card.json").read_bytes()).hexdigest()
        complete = [entry for entry in entries if entry.number == now and entry.state == "complete"]
        assert all(entry.card_sha256 == digest for entry in complete)
        before, placed = entries, now
    assert len(before) > 1


INTERRUPTED = [
    "treetop.counts.reading:read_encoded:call",
    "treetop.measure.descent:run_descent:call",
    "treetop.release.folder._write:_write:call",
    "treetop.release.folder._write:_write:return",
]


@pytest.mark.parametrize("point", INTERRUPTED)
def test_ctrl_c_ends_with_130_and_leaves_nothing_behind(point: str, here: Path, start: Start) -> None:
    done = start(point=point, number=signal.SIGINT).wait()
    assert done.returncode == 130
    assert "treetop: interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    entries = Ledger.open(here / "ledger").entries()
    assert ("the loss stays spent: entry 1" in done.stderr) == bool(entries)
    assert sorted(path.name for path in here.iterdir()) == ["ledger", "places.csv", "plan.toml", "trips.csv"]


def test_ctrl_c_while_the_folder_is_moved_waits_until_the_ledger_knows(here: Path, start: Start) -> None:
    process = start(point="treetop.release.folder.place:take_place:call", number=signal.SIGINT)
    assert process.wait().returncode == 0
    assert is_whole(here / "out")
    (entry,) = Ledger.open(here / "ledger").entries()
    assert entry.state == "complete"


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A disk of its own."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("a disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def read_only(here: Path) -> Iterator[Path]:
    """A folder on a disk that cannot be written."""
    with mounted(here / "disk", "ro") as folder:
        yield folder


@pytest.fixture
def small_disk(here: Path) -> Iterator[Path]:
    """A folder on a disk of four megabytes."""
    with mounted(here / "disk", "size=4m") as folder:
        yield folder


def fill(disk: Path, room: int) -> None:
    """Leave so many bytes of a disk free."""
    free = os.statvfs(disk)
    with (disk / "filler").open("wb") as file:
        file.write(bytes(free.f_bavail * free.f_frsize - room))


Wrapped = Callable[..., Any]


def around(
    monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], object], after: Callable[[], object]
) -> None:
    """Have something done before and after a function that is found by its module."""
    module, function = name.split(":")
    original: Wrapped = getattr(import_module(module), function)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        before()
        try:
            return original(*arguments, **options)
        finally:
            after()

    monkeypatch.setattr(f"{module}.{function}", wrapped)


def nothing() -> None:
    """Do nothing."""


def test_a_disk_that_fills_up_anywhere_leaves_no_half_folder_and_the_loss_spent_once(
    small_disk: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.create("wide", loss=Loss(rho=2))
    call = ("plan.toml", "trips.csv", "--out", "disk/out", "--ledger", "wide", "--nodes")
    main(["release", *call, "--quiet"])
    pages = sum(-(-path.stat().st_size // 4096) for path in (small_disk / "out").rglob("*") if path.is_file())
    shutil.rmtree(small_disk / "out")
    room = 0
    around(monkeypatch, "treetop.release.folder._write:_write", lambda: fill(small_disk, room), nothing)
    written = 0
    for attempt, room in enumerate(range(0, 4096 * (pages + 12), 4096), start=2):  # noqa: B007
        with contextlib.suppress(SystemExit):
            main(["release", *call, "--quiet"])
        message = capsys.readouterr().err
        entries = Ledger.open("wide").entries()
        assert len(entries) == attempt
        if (small_disk / "out").exists():
            assert (message, entries[-1].state, is_whole(small_disk / "out")) == ("", "complete", True)
            shutil.rmtree(small_disk / "out")
            written += 1
        else:
            assert "disk/out: cannot be written: " in message and "No space left on device" in message
            assert f"the loss stays spent: entry {entries[-1].number} of wide" in message
            assert len(message.splitlines()) <= 4 and "Traceback" not in message
            assert entries[-1].state == "reserved, outcome unknown"
        assert [path.name for path in small_disk.iterdir()] == ["filler"]
        (small_disk / "filler").unlink()
    assert 1 < written < pages


def test_files_that_may_not_grow_are_one_message_and_no_half_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = 0

    def limited(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))

    around(monkeypatch, "treetop.release.folder._write:_write", lambda: limited(limit), lambda: limited(most))
    for limit in (0, 10, 1000, 3000, 6000):  # noqa: B007
        message = release.fails(*TABLE, "--out", "out")
        assert "out: cannot be written: " in message and "File too large" in message
        assert sorted(path.name for path in here.iterdir()) == ["ledger", "places.csv", "plan.toml", "trips.csv"]


def test_a_ledger_on_a_full_disk_is_not_charged_and_nothing_is_measured(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.create("disk/ledger", loss=Loss(rho=1))
    around(monkeypatch, "treetop.publishing.releasing:read_encoded", nothing, lambda: fill(small_disk, 0))
    monkeypatch.setattr("treetop.release.run.run_descent", lambda *_, **__: pytest.fail("it was measured"))
    message = release.fails(*TABLE, "--out", "out", "--ledger", "disk/ledger")
    assert "make sure that the disk works and has room" in message
    assert "the loss stays spent" not in message
    (small_disk / "filler").unlink()
    assert Ledger.open("disk/ledger").entries() == ()
    assert not Path("out").exists()


def test_a_disk_that_is_full_when_the_ledger_would_complete_leaves_a_whole_release_and_the_loss_spent(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.create("disk/ledger", loss=Loss(rho=1))
    around(monkeypatch, "treetop.release.folder._write:take_place", nothing, lambda: fill(small_disk, 0))
    message = release.fails(*TABLE, "--out", "out", "--ledger", "disk/ledger")
    assert "out is written, but the ledger could not record it" in message
    assert "the loss stays spent: entry 1" in message
    (small_disk / "filler").unlink()
    (entry,) = Ledger.open("disk/ledger").entries()
    assert entry.state == "reserved, outcome unknown"
    assert is_whole(Path("out"))


def test_a_read_only_disk_is_one_message_before_anything_is_spent(read_only: Path) -> None:
    assert "read-only" in release.fails(*TABLE, "--out", "disk/out", "--ledger", "ledger")
    assert Ledger.open("ledger").entries() == ()


def test_a_closed_pipe_is_no_traceback(here: Path) -> None:
    run("--quiet")
    command = f"set -o pipefail; {TREETOP} check out | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 141)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('order = "destination-first"', 'order = "joint"'),
        ("[data]", "[release]\nresolve = { fdr = 0.1 }\n[data]"),
        ("[data]", '[release]\nprefer = "lower-error"\n[data]'),
    ],
)
def test_parts_are_refused_before_anything_is_read_if_all_is_measured_together(here: Path, old: str, new: str) -> None:
    Path("plan.toml").write_text(plan_file((old, new)))
    tt.read_plan("plan.toml")
    assert "is written as one part" in release.fails("plan.toml", "no such file", "--out", "out", "--part", 2)
    assert not Path("out").exists()
