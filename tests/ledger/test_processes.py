"""Many processes at one ledger, and processes that die: nothing is overspent, and nothing is forgotten."""

from __future__ import annotations

import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.processes import Server, Talking
from treetop import Ledger, Loss
from treetop.errors import LedgerError, Overspent

PLAN = "a" * 64
UNIT = "trip, exactly 1 record (declared), replace"

START = """
import sys
from fractions import Fraction
from treetop.errors import Overspent
from treetop.ledger import Ledger
UNIT = "trip, exactly 1 record (declared), replace"
ledger = Ledger.open(sys.argv[1], timeout=240)  # the machine may be busy
"""


def run(processes: Server, script: str, ledger: Ledger, *arguments: str) -> Talking:
    return processes.talk(START + script, ledger.path, *arguments, folder=ledger.path.parent)


def ended(process: Talking) -> str:
    """Wait for the end of a process, and return all that it said."""
    code, said = process.end()
    assert code == 0
    return said


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "spent.ledger", loss=Loss(rho=1))


@pytest.mark.parametrize(("number", "threads"), [(8, 1), (2, 4)], ids=["eight processes", "threads of two processes"])
def test_processes_together_make_exactly_the_reservations_that_fit(
    number: int, threads: int, ledger: Ledger, processes: Server
) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
def reserve(who):
    made = 0
    for n in range(25):
        title = f"{sys.argv[2]}.{who}.{n}"
        try:
            ledger.reserve("trips", Fraction(1, 77), "zcdp", UNIT, title, "a" * 64).complete("b" * 64)
            made += 1
        except Overspent:
            pass
    return made
input()
with ThreadPoolExecutor(int(sys.argv[3])) as pool:
    print(sum(pool.map(reserve, range(int(sys.argv[3])))))
"""
    together = [run(processes, script, ledger, str(n), str(threads)) for n in range(number)]
    for process in together:  # all are told to start before any is waited for
        process.tell("start")
    assert sum(int(ended(process)) for process in together) == 77
    assert ledger.spent("trips") == 1
    assert len({entry.title for entry in ledger.entries()}) == 77
    assert {entry.state for entry in ledger.entries()} == {"complete"}


def reserve_often(ledger: Ledger, who: int, times: int = 25) -> int:
    """Try to reserve a 77th of the budget; return how often there was enough left."""
    made = 0
    for n in range(times):
        try:
            ledger.reserve("trips", Fraction(1, 77), "zcdp", UNIT, f"{who}.{n}", PLAN).complete("b" * 64)
            made += 1
        except Overspent:
            pass
    return made


@pytest.mark.parametrize("shared", [False, True], ids=["each its own ledger", "one ledger"])
def test_eight_threads_together_make_exactly_the_reservations_that_fit(shared: bool, ledger: Ledger) -> None:
    patient = Ledger.open(ledger.path, timeout=240)
    ledgers = [patient if shared else Ledger.open(ledger.path, timeout=240) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(reserve_often, ledgers, range(8)))
    assert sum(made) == 77
    assert ledger.spent("trips") == 1
    assert len({entry.title for entry in ledger.entries()}) == 77


def test_a_process_killed_right_after_it_reserved_leaves_the_loss_spent(ledger: Ledger, processes: Server) -> None:
    script = """
ledger.reserve("trips", Fraction(2, 3), "zcdp", UNIT, "Commuting", "a" * 64)
print("reserved", flush=True)
input()
"""
    process = run(processes, script, ledger)
    assert process.line() == "reserved"
    process.kill()
    (entry,) = Ledger.open(ledger.path).entries()
    assert (entry.charged, entry.state) == (Fraction(2, 3), "reserved, outcome unknown")
    assert [path.name for path in ledger.path.parent.iterdir()] == ["spent.ledger"]


def test_a_process_killed_before_it_commits_has_spent_nothing_and_frees_the_lock(
    ledger: Ledger, processes: Server
) -> None:
    script = """
def decide(records):
    print("inside", flush=True)
    input()
ledger.log.append(decide)
"""
    process = run(processes, script, ledger)
    assert process.line() == "inside"
    with pytest.raises(LedgerError, match=r"locked for 0\.1 seconds"):
        Ledger.open(ledger.path, timeout=0.1).reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)
    process.kill()
    assert ledger.entries() == ()
    ledger.reserve("trips", Fraction(1), "zcdp", UNIT, "Commuting", PLAN)


def test_pages_half_written_by_a_killed_process_are_rolled_back(ledger: Ledger, processes: Server) -> None:
    ledger.reserve("trips", Fraction(1, 3), "zcdp", UNIT, "Commuting", PLAN)
    before = ledger.entries()
    # A tiny cache makes SQLite write to the file before it commits.
    script = """
import sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE log SET content = ''")
connection.executemany("INSERT INTO log VALUES (?, ?, '')", [(n, "x" * 5000) for n in range(2, 100)])
print("written", flush=True)
input()
"""
    size = ledger.path.stat().st_size
    process = run(processes, script, ledger)
    assert process.line() == "written"
    process.kill()
    assert ledger.path.stat().st_size > size
    assert Path(f"{ledger.path}-journal").exists()
    assert Ledger.open(ledger.path).entries() == before


def test_processes_killed_at_any_moment_leave_every_announced_reservation_spent(
    ledger: Ledger, processes: Server
) -> None:
    script = """
while True:
    ledger.reserve("trips", Fraction(1, 10**9), "zcdp", UNIT, sys.argv[2], "a" * 64)
    print("reserved", flush=True)
"""
    rng = random.Random(7)
    together = [run(processes, script, ledger, f"process {n}") for n in range(6)]
    announced = {}
    for n, process in enumerate(together):
        assert process.line() == "reserved"
        time.sleep(rng.uniform(0.05, 0.15))
        announced[f"process {n}"] = 1 + process.kill().count("reserved\n")
    titles = [entry.title for entry in Ledger.open(ledger.path).entries()]
    for title, count in announced.items():
        assert titles.count(title) in (count, count + 1)
    assert ledger.spent("trips") == Fraction(len(titles), 10**9)


def test_a_ledger_that_stays_locked_is_an_error_that_says_so(ledger: Ledger) -> None:
    patient = Ledger.open(ledger.path, timeout=0.2)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        with pytest.raises(LedgerError, match="another process has kept the ledger locked"):
            patient.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
        with pytest.raises(LedgerError, match="nothing was recorded, try again"):
            patient.spent("trips")
        assert time.monotonic() - started < 30  # as long as a ledger waits where nothing is said
    assert patient.reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN).charged == Fraction(1, 2)


def test_a_writer_waits_for_another_that_is_about_to_finish(ledger: Ledger, processes: Server) -> None:
    script = """
def decide(records):
    print("inside", flush=True)
    input()
    raise Overspent
ledger.log.append(decide)
"""
    waiting = "ledger.reserve('trips', Fraction(1, 2), 'zcdp', UNIT, 'Waited', 'a' * 64)"
    first = run(processes, script, ledger)
    assert first.line() == "inside"
    second = run(processes, waiting, ledger)
    assert second.is_silent(1)
    first.kill()
    assert ended(second) == ""
    assert [entry.title for entry in ledger.entries()] == ["Waited"]
