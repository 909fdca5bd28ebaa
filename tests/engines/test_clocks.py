"""Clocks hours apart: no folder in use is swept, none of a dead process stays, and a ledger keeps its order."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.engines.clocks import HOURS, shifted
from treetop import Ledger, Loss
from treetop.engine.staging import staging
from treetop.errors import Overspent
from treetop.release.folder import claimed

APART = [-30 * 24, -5, 5, 30 * 24]
"""How many hours another machine is ahead."""

STAGED = """
import sys, time
from treetop.engine.staging import staging
with staging(sys.argv[1]) as folder:
    (folder / "counts").touch()
    print(time.time(), folder, flush=True)
    sys.stdin.read()
"""
CHARGED = """
import sys
from fractions import Fraction
from treetop.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
ledger.reserve("trips", Fraction(1, 4), "zcdp", "trip", sys.argv[2], "a" * 64).complete("b" * 64)
"""
PLACED = """
import sys, time
from pathlib import Path
from typing import Any
from treetop.release.folder import claimed
with claimed(Path(sys.argv[1]), force=False) as beside:
    print(time.time(), beside, flush=True)
    sys.stdin.read()
"""


SOME = pytest.mark.parametrize("clock", [APART[0], APART[2]], indirect=True, ids=lambda hours: f"{hours:+}h")
"""For what no limit of hours decides."""


@pytest.fixture(params=APART, ids=lambda hours: f"{hours:+}h")
def clock(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return shifted(tmp_path_factory.mktemp("clock"), request.param)


@contextmanager
def another(program: str, *words: str, clock: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a process with another clock, which has made a folder."""
    command = [sys.executable, "-c", program, *words]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, **clock}, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        when, made = process.stdout.readline().split(maxsplit=1)
        assert abs(float(when) - time.time()) > HOURS
        yield process, Path(made.strip())
        process.stdin.close()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def test_a_staging_folder_in_use_stays_and_that_of_a_dead_driver_goes(clock: dict[str, str], tmp_path: Path) -> None:
    with another(STAGED, str(tmp_path), clock=clock) as (process, made):
        _date(made, clock)
        with staging(tmp_path) as own:
            assert (made / "counts").exists() and own.is_dir()
            with another(STAGED, str(tmp_path), clock=clock) as (_, third):  # nor does one of theirs sweep ours
                assert own.is_dir() and made.is_dir() and third.is_dir()
        kill(process)
        _date(made, clock)
        assert (made / "counts").exists()
    with staging(tmp_path):
        assert not made.exists()
    assert list(tmp_path.iterdir()) == []


def _date(folder: Path, clock: dict[str, str]) -> None:
    """Date files as a file server does whose clock is that one."""
    there = time.time() + next(int(value) for name, value in clock.items() if name != "LD_PRELOAD")
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (there, there))


@SOME
def test_a_place_that_is_written_to_is_taken_and_that_of_a_dead_process_is_free(
    clock: dict[str, str], tmp_path: Path
) -> None:
    with another(PLACED, str(tmp_path / "release"), clock=clock) as (process, made):
        _date(made, clock)
        with claimed(tmp_path / "other", force=False):
            assert made.is_dir()
        kill(process)
        _date(made, clock)
    with claimed(tmp_path / "release", force=False):
        assert list(tmp_path.iterdir()) == [made]
    assert list(tmp_path.iterdir()) == []


@SOME
def test_a_ledger_keeps_the_order_in_which_it_was_charged_and_no_clock_gives_anything_back(
    clock: dict[str, str], tmp_path: Path
) -> None:
    ledger = Ledger.create(tmp_path / "spent.ledger", loss=Loss(rho=1))
    for turn in range(2):
        ledger.reserve("trips", Fraction(1, 4), "zcdp", "trip", f"here {turn}", "a" * 64).complete("b" * 64)
        command = [sys.executable, "-c", CHARGED, str(ledger.path), f"there {turn}"]
        subprocess.run(command, check=True, env={**os.environ, **clock})
    entries = Ledger.open(ledger.path).entries()
    assert [entry.title for entry in entries] == ["here 0", "there 0", "here 1", "there 1"]
    assert {entry.state for entry in entries} == {"complete"}
    assert [entry.time for entry in entries] != sorted(entry.time for entry in entries)
    with pytest.raises(Overspent):
        ledger.reserve("trips", Fraction(1, 1000), "zcdp", "trip", "more", "a" * 64)
