"""Drivers that are killed at any moment: their workers end with them, and the next release leaves nothing of theirs.

`TREETOP_KILLS=200 pytest tests/engines/test_kills.py -s` kills more often, and prints what it found.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import everyday
from tests.processes import ROOT, Server
from treetop.engine import staging as stagings
from treetop.engine.staging import drafted, staging

KILLS = int(os.environ.get("TREETOP_KILLS", "6"))
PATIENCE = 60.0
ROWS = 100_000
MARK = "TREETOP_TESTS_KILLED"
COMMAND = """
from treetop.cli import main
from treetop.counts import spill
spill.Space.rows = lambda *_: 20_000  # so that there are several runs and ranges
main()
"""
PERSON = ('entity = "trip"\ncontributions = 1', 'entity = "person"\nid = "person"\ncontributions = 2')


def marked(mark: str) -> list[int]:
    """The processes that come from one trial, whoever their parent is by now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


def waited_for(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)
    return done()


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A plan that bounds contributions, and a table in pieces, so that workers write rows and counts."""
    everyday.write(tmp_path, everyday.plan_file(PERSON))
    chance = np.random.default_rng(1)
    towns = [np.array(everyday.TOWNS)[chance.integers(0, 5, ROWS)] for _ in range(2)]
    person = pa.array(chance.integers(0, ROWS // 4, ROWS)).cast(pa.string())
    table = pa.table({"home": towns[0], "work": towns[1], "person": person})
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=10_000)
    (tmp_path / "scratch").mkdir()
    return tmp_path


def words(out: str) -> list[str]:
    release = ["release", "plan.toml", "trips.parquet", "--out", out, "--quiet", "--engine", "processes"]
    return [*release, "--staging", "scratch", "--memory", "256MB", "--threads", "2"]


def stage(scratch: Path) -> str:
    """How far a run has come, by the names of what it has written."""
    names = {path.name.rstrip("0123456789-") for path in scratch.glob(".treetop-staging-*/*")}
    for name in ("counts", "merged", "kept", "run", "lock"):
        if name in names:
            return name
    return "half made" if names or list(scratch.iterdir()) else "nothing"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_a_driver_that_is_killed_takes_its_workers_along_and_leaves_nothing(desk: Path, processes: Server) -> None:
    scratch, chance, seen, swept = desk / "scratch", random.Random(KILLS), Counter[str](), Counter[str]()
    lasts = PATIENCE
    for turn in range(2):  # the first may compile kernels
        begun = time.monotonic()
        whole = processes.run(COMMAND, *words(f"whole{turn}"), folder=desk)
        assert (whole.returncode, list(scratch.iterdir())) == (0, []), whole.stderr
        assert "Traceback" not in whole.stderr, whole.stderr
        lasts = min(lasts, time.monotonic() - begun)
    for trial in range(KILLS):
        mark = f"{os.getpid()}.{trial}"
        driver = processes.start(COMMAND, *words(f"out{trial}"), folder=desk, also={MARK: mark})
        time.sleep(chance.random() * lasts)
        seen[stage(scratch)] += 1
        driver.kill()
        orphans = len(marked(mark))  # the driver itself is forked, and has the environment of its parent
        ended = driver.wait()
        with staging(scratch) as own:  # as the next release does, whatever the orphans are doing
            assert {path.name for path in scratch.iterdir()} == {own.name}
        assert waited_for(lambda mark=mark: not marked(mark)), f"trial {trial}: {orphans} workers live on"  # type: ignore[misc]
        assert list(scratch.iterdir()) == [], f"trial {trial}: made again after it was swept"
        assert "Traceback" not in ended.stderr, ended.stderr
        swept["with workers" if orphans > 0 else "without workers"] += 1
    last = processes.run(COMMAND, *words("last"), folder=desk)
    assert (last.returncode, list(scratch.iterdir())) == (0, [])
    sys.stdout.write(f"{KILLS} kills of a run of {lasts:.1f} s; it had come to: {dict(seen)}; {dict(swept)}\n")


WORKS = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tests.engines.deeds import sleeps
from treetop.engine.engine import Processes
from treetop.engine.staging import staging
with staging(sys.argv[1]) as folder:
    list(Processes(1).map(sleeps, [(folder, Path(sys.argv[2]))]))
"""


def killed_at_work(scratch: Path, told: Path) -> tuple[int, str]:
    """Kill a driver whose worker is in the middle of a task; return the worker, and what both said."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKS, str(scratch), str(told)], stderr=subprocess.PIPE, text=True
    ) as driver:
        assert waited_for(told.exists)
        worker = int(told.read_text())
        driver.kill()
        _, said = driver.communicate(timeout=PATIENCE)
    return worker, said


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_worker_ends_with_its_parent_in_the_middle_of_a_task(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    worker, said = killed_at_work(scratch, tmp_path / "told")
    assert waited_for(lambda: is_gone(worker))
    assert said == ""
    with staging(scratch):
        pass
    assert list(scratch.iterdir()) == []


def test_a_folder_that_was_swept_is_not_made_again(tmp_path: Path) -> None:
    with staging(tmp_path) as folder:
        pass
    with pytest.raises(FileNotFoundError), drafted(folder / "merged0"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_lock_is_swept(tmp_path: Path) -> None:
    left = tmp_path / ".treetop-staging-left"
    (left / "merged0").mkdir(parents=True)
    (left / "merged0" / "word0.npy").write_bytes(b"private")
    with staging(tmp_path) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_a_sweep_follows_no_link_and_leaves_what_another_user_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, scratch = tmp_path / "elsewhere", tmp_path / "scratch"
    for folder in (elsewhere, scratch):
        folder.mkdir()
    (elsewhere / "mine").touch()
    (scratch / ".treetop-staging-link").symlink_to(elsewhere)
    (scratch / ".treetop-staging-file").touch()
    with staging(scratch):
        pass
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]
    (scratch / ".treetop-staging-theirs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with staging(scratch):
        assert (scratch / ".treetop-staging-theirs").is_dir()


def test_a_worker_that_lives_on_finds_the_folder_neither_during_the_sweep_nor_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / ".treetop-staging-left"
    (left / "run0").mkdir(parents=True)
    remove = shutil.rmtree

    def written_meanwhile(path: Path, ignore_errors: bool) -> None:
        with pytest.raises(FileNotFoundError), drafted(left / "merged0"):
            pass
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(stagings, "rmtree", written_meanwhile)
    with staging(tmp_path):
        monkeypatch.setattr(stagings, "rmtree", remove)
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []
