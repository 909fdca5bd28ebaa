"""The place of a release: claimed before its loss is charged, so that no loss is spent and no folder written."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from platform import node
from typing import Any

import pytest

import treetop as tt
from tests.commands import Command
from tests.processes import Server
from treetop import Ledger
from treetop.cli import main
from treetop.release.folder import place
from treetop.release.folder.place import _beside, scratch

Captured = pytest.CaptureFixture[str]
RELEASE = ["release", "plan.toml", "trips.csv", "--ledger", "ledger", "--quiet"]

release = Command.of(*RELEASE)


def entries() -> list[str]:
    return [entry.state for entry in Ledger.open("ledger").entries()]


def test_a_disk_without_room_for_the_owner_keeps_no_draft(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def full(path: Path, text: str, **options: Any) -> int:
        if path.name == "owner":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    before = sorted(path.name for path in desk.iterdir())
    assert "out: cannot be written: No space left on device" in release.fails("--out", "out")
    assert sorted(path.name for path in desk.iterdir()) == before and entries() == []


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["new", "replacing"])
def test_a_second_release_to_the_same_place_is_refused_before_it_is_charged(
    force: list[str], desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if force:
        main([*RELEASE, "--out", "out"])
    before = len(entries())
    from treetop.counts import reading
    from treetop.publishing import releasing

    read = reading.read_encoded
    messages: list[str] = []

    def while_another_starts(*arguments: Any, **options: Any) -> Any:
        if not messages:
            messages.append("")
            messages.append(release.fails("--out", "out", *force))
        return read(*arguments, **options)

    monkeypatch.setattr(releasing, "read_encoded", while_another_starts)
    main([*RELEASE, "--out", "out", *force])
    assert "another process is writing there now" in messages[1]
    assert entries()[before:] == ["complete"]
    assert all(verdict.verified for verdict in tt.check(desk / "out"))
    assert not list(desk.glob(".*"))


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["new", "replacing"])
def test_of_processes_that_release_to_one_place_at_once_only_those_that_write_it_pay(
    force: list[str], desk: Path, processes: Server
) -> None:
    program = "from treetop.cli import main; main()"
    started = [processes.start(program, *RELEASE, "--out", "out", *force, folder=desk) for _ in range(3)]
    ended = [process.wait() for process in started]
    codes = [process.returncode for process in ended]
    assert set(codes) <= {0, 2} and codes.count(0) >= 1, ended
    assert entries() == ["complete"] * codes.count(0)
    assert codes.count(0) == 1 or force
    assert all(verdict.verified for verdict in tt.check(desk / "out"))
    assert not list(desk.glob(".*"))


@pytest.mark.parametrize("name", ["o" * 231, "o" * 232, "o" * 255, "é" * 127], ids=["231", "232", "255", "254 bytes"])
def test_a_folder_may_have_any_name_that_the_disk_allows(name: str, desk: Path) -> None:
    main([*RELEASE, "--out", name])
    assert (desk / name / "card.json").is_file()
    assert entries() == ["complete"]


@pytest.mark.parametrize("name", ["o" * 256, "é" * 128, "\U0001f333" * 200])
def test_a_name_that_the_disk_does_not_allow_is_refused_before_anything_is_spent(name: str, desk: Path) -> None:
    assert "cannot be written: File name too long" in release.fails("--out", name)
    assert entries() == []


def test_a_path_in_which_no_draft_fits_is_refused_before_anything_is_spent(desk: Path) -> None:
    longest = os.pathconf(desk, "PC_PATH_MAX") - 1
    parent = desk
    while (left := longest - len(str(parent)) - len("/o/hierarchies/.parquet") - 64 - 20) > 1:
        parent = parent / ("p" * min(left - 1, 250))
    parent.mkdir(parents=True)
    assert "cannot be written: File name too long" in release.fails("--out", str(parent / "o"))
    assert entries() == []
    assert list(parent.iterdir()) == []


def test_too_little_memory_after_the_charge_says_that_the_loss_stays_spent(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("treetop.release.run.run_descent", full)
    message = release.fails("--out", "out")
    assert "the loss stays spent: entry 1 of ledger" in message
    assert "not enough memory" in message
    assert entries() == ["reserved, outcome unknown"]
    assert not list(desk.glob("*out*"))


def left_by_a_killed_process(beside: Path, owner: str | None) -> None:
    (beside / "release").mkdir(parents=True)
    (beside / "release" / "counts.parquet").write_bytes(b"half")
    if owner is not None:
        (beside / "owner").write_text(owner)


def test_what_killed_runs_left_in_a_folder_goes_with_the_next_one_whatever_its_name(desk: Path) -> None:
    left_by_a_killed_process(_beside(desk / "elsewhere"), node())
    left_by_a_killed_process(desk / ".out.treetop-draft-abcd1234", None)  # as version 0.2.0 called it
    left_by_a_killed_process(_beside(desk / "out"), node())
    (desk / ".mine").mkdir()
    main([*RELEASE, "--out", "out"])
    assert [path.name for path in desk.glob(".*")] == [".mine"]


def test_what_a_living_process_or_another_machine_writes_is_left_alone(desk: Path) -> None:
    far = _beside(desk / "far")
    left_by_a_killed_process(far, "another machine")
    with scratch(desk / "near") as near:
        (near / "half").touch()
        main([*RELEASE, "--out", "out"])
        assert (near / "half").exists()
    assert not near.exists()
    assert (far / "release" / "counts.parquet").exists()
    assert f"on any machine, remove {far}" in release.fails("--out", "far")
    assert entries() == ["complete"]


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treetop.release.folder import place

    lock = place._lock
    swept: list[Path] = []

    def after_a_sweep(folder: Path) -> int | None:
        handle = lock(folder) if not swept else None
        if handle is not None:  # it was opened, and then another process removes it
            swept.append(folder)
            shutil.rmtree(folder)
            return handle
        return lock(folder)

    monkeypatch.setattr(place, "_lock", after_a_sweep)
    with scratch(desk / "out") as beside:
        assert swept == [beside]
        (beside / "here").touch()
        with contextlib.ExitStack() as other, pytest.raises(Exception, match="another process"):
            other.enter_context(scratch(desk / "out"))
    assert not beside.exists()


def test_where_there_are_no_locks_the_folder_itself_is_the_claim(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treetop.release.folder.place._lock", lambda folder: None)
    with scratch(desk / "out") as beside:
        with contextlib.ExitStack() as other, pytest.raises(Exception, match="another process"):
            other.enter_context(scratch(desk / "out"))
        assert beside.is_dir()
    assert not beside.exists()


def test_where_folders_cannot_be_opened_files_alone_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    monkeypatch.setattr(place, "_ON_WINDOWS", True)
    monkeypatch.setattr(os, "fsync", lambda handle: opened.append(os.fstat(handle).st_mode))
    file = tmp_path / "file"
    file.touch()
    place.sync(tmp_path)
    place.sync(file)
    assert [stat.S_ISREG(mode) for mode in opened] == [True]
