"""`treetop release`, as a person runs it: what it writes, charges, refuses, and leaves behind when it dies."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from treetop import Loss, Release
from treetop.card import content
from treetop.card.checking import check_folder
from treetop.cli import main
from treetop.ledger import Ledger

PLAN = """
title = "Trips"
description = "Who goes where."
[attributes.origin]
column = "home"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
[data]
period = "2011"
"""
TREETOP = str(Path(sys.executable).with_name("treetop"))
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan, its hierarchy, a private table and a ledger for three releases; we are in it."""
    rng = random.Random(1)
    towns = ["n1", "n2", "s1", "s2", "s3"]
    rows = "\n".join(f"{rng.choice(towns)},{rng.choice(towns)}" for _ in range(600))
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{town[0].upper()},{town}\n" for town in towns))
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "trips.csv").write_text(f"home,work\n{rows}\n")
    Ledger.create(tmp_path / "ledger", loss=Loss(rho=0.06))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> None:
    main(["release", "plan.toml", "trips.csv", "--out", "out", *arguments])


def fail(capsys: Captured, *arguments: str) -> tuple[Any, str]:
    with pytest.raises(SystemExit) as leaving:
        main(["release", *arguments])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return leaving.value.code, captured.err


def card(folder: str = "out") -> Any:
    return json.loads(Path(folder, "card.json").read_text(encoding="utf-8"))


def is_whole(folder: Path) -> bool:
    return all(verdict.verified for verdict in check_folder(folder))


def test_a_release_is_written_and_summed_up(here: Path, capsys: Captured) -> None:
    run()
    captured = capsys.readouterr()
    assert captured.err == ""
    assert re.search("600 in [0-9]+ leaves", captured.out)
    assert "epsilon 1 and delta 1e-08" in captured.out
    assert captured.out.count("No ledger records") == 1
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
    code, message = fail(capsys, *arguments)
    assert code == 3
    assert "spent rho 0.051616, asked rho 0.0172054, remaining rho 0.00838404" in message
    assert not (here / "new").exists()


def test_another_unit_is_refused_before_the_table_is_read(here: Path, capsys: Captured) -> None:
    run("--ledger", "ledger", "--dataset", "trips")
    assert "one trip is protected" in card()["composition"]["sentence"]
    capsys.readouterr()
    (here / "plan.toml").write_text(PLAN.replace("contributions = 1", "contributions = 9"))
    arguments = ("plan.toml", "there-is-no-table.csv", "--out", "new", "--ledger", "ledger", "--dataset", "trips")
    code, message = fail(capsys, *arguments)
    assert code == 3
    assert "'trip, at most 1 record, replace', this one 'trip, at most 9 records, replace'" in message
    assert "under another name" in message
    assert len(Ledger.open("ledger").entries()) == 1


def test_a_card_that_lacks_a_field_stops_the_release_before_it_spends(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_unit", lambda plan, facts: {"entity": "trip"})
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger")
    assert code == 2
    assert "card.unit lacks 'contributions'" in message
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
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "x", "--ledger", "ledger", "--testing-key", key)
    assert (code, "drop --ledger" in message) == (2, True)


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
        (["plan.toml", "places.csv", "--out", "out"], "is the hierarchy of 'origin'"),
        (["plan.toml", "trips.csv", "--out", "out", "--dataset", "x"], "give --ledger FILE"),
        (["plan.toml", "trips.csv", "--out", "out", "--ledger", "absent"], "treetop ledger create"),
        (["plan.toml", "trips.csv", "--out", "out", "--testing-key", "zz"], "64 hexadecimal digits"),
        (["plan.toml", "trips.csv", "--out", "out", "--threads", "0"], "--threads"),
    ],
)
def test_a_mistake_in_the_call_is_one_message(arguments: list[str], message: str, here: Path, capsys: Captured) -> None:
    code, text = fail(capsys, *arguments)
    assert code == 2
    assert message in text
    assert not (here / "out").exists()


def test_an_existing_folder_is_refused_before_anything_is_spent(here: Path, capsys: Captured) -> None:
    run()
    before = (here / "out" / "card.json").read_bytes()
    capsys.readouterr()
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger")
    assert (code, "--force" in message) == (2, True)
    assert (here / "out" / "card.json").read_bytes() == before
    assert Ledger.open("ledger").entries() == ()


def test_a_disk_that_fills_up_is_one_message_and_the_loss_stays_spent(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger")
    assert code == 2
    assert "out: cannot be written: No space left on device" in message
    assert "the loss stays spent: entry 1 of ledger" in message
    assert sorted(path.name for path in here.iterdir()) == ["ledger", "places.csv", "plan.toml", "trips.csv"]


def test_a_full_disk_is_refused_before_anything_is_spent(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("treetop.folder.place.disk_usage", lambda path: Usage)
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger")
    assert (code, "is full" in message) == (2, True)
    assert Ledger.open("ledger").entries() == ()


# The process sends itself a signal when it enters or leaves a function.
SITE = """
import os, sys
module, function, event, number = os.environ["SIGNAL_AT"].split(":")
def watch(frame, what, argument):
    name = frame.f_globals.get("__name__")
    called = getattr(argument, "__name__", "") if what.startswith("c_") else frame.f_code.co_name
    if what == event and called == function and name == module:
        sys.setprofile(None)
        os.kill(os.getpid(), int(number))
sys.setprofile(watch)
"""
POINTS = [
    ("treetop.data.encode:read_counts:call", 0),
    ("treetop.ledger.log:_append:return", 0),
    ("treetop.ledger.book:reserve:return", 1),
    ("treetop.topdown.descent:descend:call", 1),
    ("treetop.topdown.descent:descend:return", 1),
    ("treetop.folder.write:_write:return", 1),
    ("treetop.folder.place:take_place:return", 1),
    ("treetop.ledger.book:complete:return", 1),
]


def start(here: Path, *arguments: str, point: str | None = None, number: int = 0) -> subprocess.Popen[str]:
    environment = dict(os.environ)
    if point is not None:
        (here.parent / "site").mkdir(exist_ok=True)
        (here.parent / "site" / "sitecustomize.py").write_text(SITE)
        paths = [str(here.parent / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment |= {"SIGNAL_AT": f"{point}:{number}", "PYTHONPATH": os.pathsep.join(paths)}
    command = [TREETOP, "release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger", *arguments]
    return subprocess.Popen(command, cwd=here, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, message = process.communicate(timeout=240)
    return process.returncode, message


@pytest.mark.parametrize(("point", "spent"), POINTS, ids=[point for point, _ in POINTS])
def test_a_killed_release_is_spent_if_it_measured_and_leaves_no_half_folder(point: str, spent: int, here: Path) -> None:
    assert finish(start(here, point=point, number=signal.SIGKILL))[0] == -signal.SIGKILL
    entries = Ledger.open(here / "ledger").entries()
    assert len(entries) == spent
    in_place = point.startswith("treetop.ledger.book:complete") or point.endswith("take_place:return")
    assert (here / "out").exists() == in_place
    if in_place:
        assert is_whole(here / "out")
        assert (entries[0].state == "complete") == (point == "treetop.ledger.book:complete:return")


def test_what_a_killed_release_left_beside_its_place_is_removed_by_the_next_one(here: Path) -> None:
    finish(start(here, point="treetop.folder.write:_write:return", number=signal.SIGKILL))
    (left,) = here.glob(".out.treetop-draft-*")
    (here / ".out.mine").mkdir()
    run("--quiet")
    assert not left.exists()
    assert sorted(path.name for path in here.glob(".*")) == [".out.mine"]


@pytest.mark.parametrize("point", ["take_place:call", "exchange:call", "exchange:return", "take_place:return"])
def test_a_replacement_that_is_killed_leaves_the_old_release_or_the_new_one(point: str, here: Path) -> None:
    run("--quiet")
    old = card()["id"]
    process = start(here, "--force", point=f"treetop.folder.place:{point}", number=signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL
    assert is_whole(here / "out")
    assert (card()["id"] == old) == point.endswith("call")
    assert len(Ledger.open(here / "ledger").entries()) == 1


def test_releases_killed_at_any_moment_never_measure_more_than_the_ledger_shows(here: Path) -> None:
    rng = random.Random(2)
    for _ in range(5):
        process = start(here, "--force", "--quiet")
        time.sleep(rng.uniform(0.3, 1.5))
        process.kill()
        finish(process)
        entries = Ledger.open(here / "ledger").entries()
        if (here / "out").exists():
            assert is_whole(here / "out")
            assert card(str(here / "out"))["composition"]["reservation"]["number"] in [one.number for one in entries]


INTERRUPTED = [
    "treetop.data.encode:read_counts:call",
    "treetop.topdown.descent:descend:call",
    "treetop.folder.write:_write:call",
    "treetop.folder.write:_write:return",
]


@pytest.mark.parametrize("point", INTERRUPTED)
def test_ctrl_c_ends_with_130_and_leaves_nothing_behind(point: str, here: Path) -> None:
    code, message = finish(start(here, point=point, number=signal.SIGINT))
    assert code == 130
    assert "treetop: interrupted" in message
    assert "Traceback" not in message
    entries = Ledger.open(here / "ledger").entries()
    assert ("the loss stays spent: entry 1" in message) == bool(entries)
    assert sorted(path.name for path in here.iterdir()) == ["ledger", "places.csv", "plan.toml", "trips.csv"]


def test_ctrl_c_while_the_folder_is_moved_waits_until_the_ledger_knows(here: Path) -> None:
    process = start(here, point="treetop.folder.place:take_place:call", number=signal.SIGINT)
    assert finish(process)[0] == 0
    assert is_whole(here / "out")
    (entry,) = Ledger.open(here / "ledger").entries()
    assert entry.state == "complete"


@pytest.fixture
def read_only(here: Path) -> Iterator[Path]:
    """A folder on a disk that cannot be written."""
    folder = here / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("a read-only disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_read_only_disk_is_one_message_before_anything_is_spent(read_only: Path, capsys: Captured) -> None:
    code, message = fail(capsys, "plan.toml", "trips.csv", "--out", "disk/out", "--ledger", "ledger")
    assert (code, "read-only" in message) == (2, True)
    assert Ledger.open("ledger").entries() == ()


def test_a_closed_pipe_is_no_traceback(here: Path) -> None:
    run("--quiet")
    command = f"set -o pipefail; {TREETOP} check out | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 141)
