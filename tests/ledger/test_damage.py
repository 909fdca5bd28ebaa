"""Files that are not a whole ledger: each is named for what it is, and never read as if less was spent."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from treetop import Ledger, Loss
from treetop.errors import LedgerError

PLAN = "a" * 64
UNIT = "trip, exactly 1 record (declared), replace"
NOBODY = 65534


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "spent.ledger", loss=Loss(epsilon=1, delta=1e-8))
    for n in range(1, 4):
        ledger.reserve("trips", Fraction(n, 1000), "zcdp", UNIT, f"Release {n}", PLAN).complete("b" * 64)
    return ledger


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions mean nothing to root: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def edit(ledger: Ledger, *statements: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_an_existing_file_is_refused_and_left_alone(tmp_path: Path, ledger: Ledger) -> None:
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, loss=Loss(rho=1))
    assert ledger.path.read_bytes() == before
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(tmp_path, loss=Loss(rho=1))


def test_a_ledger_in_a_folder_that_is_not_there_cannot_be_created(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be created: No such file or directory"):
        Ledger.create(tmp_path / "nowhere" / "spent.ledger", loss=Loss(rho=1))


@pytest.mark.parametrize("name", ["absent", "", "x" * 5000, "nul\0"])
def test_a_path_without_a_file_is_an_error_and_creates_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(LedgerError, match=r"no such file|cannot be opened"):
        Ledger.open(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a ledger?mode=memory#100%.db", "città.ledger", ":memory:", "file:x"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger.create(name, loss=Loss(rho=1)).reserve("trips", Fraction(1, 2), "zcdp", UNIT, "Commuting", PLAN)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert Ledger.open(name).spent("trips") == Fraction(1, 2)


@pytest.mark.parametrize("content", [b"", b"origin,destination\n1,2\n", bytes(4096), b"SQLite format 3\0"])
def test_a_file_that_is_not_a_ledger_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trips.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="is not a Treetop ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_not_a_ledger(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE log (content TEXT)")
    with pytest.raises(LedgerError, match="is not a Treetop ledger"):
        Ledger.open(tmp_path / "other.db")


@pytest.mark.parametrize(("version", "which"), [(1, "Treetop 0.3"), (2, "Treetop 0.3"), (4, "a newer Treetop")])
def test_a_ledger_of_another_version_names_the_treetop_that_reads_it(ledger: Ledger, version: int, which: str) -> None:
    edit(ledger, f"PRAGMA user_version = {version}")
    with pytest.raises(LedgerError, match=f"of version {version}, .* reads version 3 only. Use {which}"):
        Ledger.open(ledger.path)


@pytest.mark.parametrize(
    "statements",
    [
        ["UPDATE log SET content = replace(content, '3/1000', '1/1000') WHERE position = 5"],
        ["""UPDATE log SET content = replace(content, '"budget": "', '"budget": "9') WHERE position = 0"""],
        ["UPDATE log SET content = replace(content, 'trips', 'other') WHERE position = 1"],
        ["UPDATE log SET content = CAST(content AS BLOB) WHERE position = 1"],
        ["UPDATE log SET sha256 = '' WHERE position = 3"],
        ["DELETE FROM log WHERE position = 3"],
        ["DELETE FROM log WHERE position = 6"],
        ["DELETE FROM log WHERE position = 5", "UPDATE log SET position = 5 WHERE position = 6"],
        ["DELETE FROM log"],
        ["DELETE FROM log", f"UPDATE head SET records = 0, sha256 = '{'0' * 64}'"],
        ["DELETE FROM head"],
        ["INSERT INTO head SELECT * FROM head"],
        ["UPDATE head SET records = 6"],
        ["INSERT INTO log SELECT position + 1, content, sha256 FROM log WHERE position = 6"],
        ["CREATE TRIGGER undo AFTER INSERT ON log BEGIN DELETE FROM log; END"],
        ["CREATE TABLE other (a)"],
        ["DROP TABLE head"],
        ["ALTER TABLE log RENAME TO kept", "CREATE VIEW log AS SELECT * FROM kept WHERE position < 3"],
    ],
)
def test_an_edit_with_another_program_is_found_and_nothing_can_be_charged(
    ledger: Ledger, statements: list[str]
) -> None:
    edit(ledger, *statements)
    with pytest.raises(LedgerError, match="damaged or was edited"):
        Ledger.open(ledger.path)
    with pytest.raises(LedgerError, match="Restore a backup"):
        ledger.reserve("trips", Fraction(1, 1000), "zcdp", UNIT, "More", PLAN)


@pytest.mark.parametrize("content", ["nothing", "[]", "{}", '{"event": "reserved"}', '{"event": "completed"}'])
def test_a_record_forged_with_its_hash_is_an_error_when_it_makes_no_sense(ledger: Ledger, content: str) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        (head,) = connection.execute("SELECT sha256 FROM head").fetchone()
        link = sha256(f"{head}\n{content}".encode()).hexdigest()
        connection.execute("INSERT INTO log VALUES (7, ?, ?)", (content, link))
        connection.execute("UPDATE head SET records = 8, sha256 = ?", (link,))
    with pytest.raises(LedgerError, match="edited"):
        Ledger.open(ledger.path)


def test_a_file_cut_short_anywhere_is_an_error(ledger: Ledger) -> None:
    whole = ledger.path.read_bytes()
    for length in [*range(0, len(whole), 509), *range(0, len(whole), 4096), len(whole) - 1]:
        ledger.path.write_bytes(whole[:length])
        with pytest.raises(LedgerError):
            Ledger.open(ledger.path)


def test_no_flipped_bit_changes_what_was_spent(ledger: Ledger) -> None:
    whole = ledger.path.read_bytes()
    expected = (ledger.budget, ledger.datasets, ledger.entries())
    rng = random.Random(11)
    written = [position for position, byte in enumerate(whole) if byte]
    positions = sorted({*range(100), *rng.sample(written, 900), *rng.sample(range(len(whole)), 200)})
    found = 0
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.randrange(8)
        ledger.path.write_bytes(damaged)
        try:
            opened = Ledger.open(ledger.path)
            assert (opened.budget, opened.datasets, opened.entries()) == expected
        except LedgerError:
            found += 1
    assert found > 800


def test_a_whole_ledger_that_was_put_in_wal_mode_still_works(ledger: Ledger) -> None:
    edit(ledger, "PRAGMA journal_mode = WAL")
    ledger.reserve("trips", Fraction(1, 1000), "zcdp", UNIT, "More", PLAN)
    assert [path.name for path in ledger.path.parent.iterdir()] == ["spent.ledger"]
    assert len(Ledger.open(ledger.path).entries()) == 4


def test_the_file_says_whose_it_is(ledger: Ledger) -> None:
    header = ledger.path.read_bytes()[:100]
    assert header[68:72] == b"TREE"
    assert header[60:64] == (3).to_bytes(4, "big")


@pytest.mark.parametrize("mode", [0o444, 0o666], ids=["read-only", "in a read-only folder"])
def test_a_ledger_that_cannot_be_written_can_be_shown_but_not_charged(open_folder: Path, mode: int) -> None:
    path = open_folder / "spent.ledger"
    ledger = Ledger.create(path, loss=Loss(rho=1))
    ledger.reserve("trips", Fraction(1, 4), "zcdp", UNIT, "Commuting", PLAN)
    path.chmod(mode)
    open_folder.chmod(0o555)
    with unprivileged():
        assert Ledger.open(path).spent("trips") == Fraction(1, 4)
        with pytest.raises(LedgerError, match="make the file and its folder writable"):
            ledger.reserve("trips", Fraction(1, 4), "zcdp", UNIT, "Commuting", PLAN)
        with pytest.raises(LedgerError, match="cannot be created: Permission denied"):
            Ledger.create(open_folder / "another.ledger", loss=Loss(rho=1))
    open_folder.chmod(0o755)
    assert ledger.spent("trips") == Fraction(1, 4)


def test_an_unreadable_ledger_is_an_error(open_folder: Path) -> None:
    path = open_folder / "spent.ledger"
    Ledger.create(path, loss=Loss(rho=1))
    path.chmod(0o000)
    with unprivileged(), pytest.raises(LedgerError, match="make the file and its folder writable"):
        Ledger.open(path)


FULL = """
import resource, sys
from fractions import Fraction
from treetop.errors import LedgerError
from treetop.ledger import Ledger
from treetop.privacy import Loss
UNIT = "trip, exactly 1 record (declared), replace"
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    if limit:
        ledger = Ledger.open(sys.argv[1])
        while True:
            ledger.reserve("trips", Fraction(1, 10**6), "zcdp", UNIT, "Commuting", "a" * 64)
    Ledger.create(sys.argv[1], loss=Loss(rho=1))
except LedgerError as problem:
    print(problem)
"""


def test_a_disk_that_fills_up_is_an_error_and_the_ledger_stays_whole(ledger: Ledger) -> None:
    limit = str(ledger.path.stat().st_size + 4096)
    command = [sys.executable, "-c", FULL, str(ledger.path), limit]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert "make sure that the disk works and has room" in done.stdout
    assert len(Ledger.open(ledger.path).entries()) > 3


def test_a_ledger_that_does_not_fit_on_the_disk_is_not_left_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "new.ledger"), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert "make sure that the disk works and has room" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_copy_of_the_file_alone_is_a_whole_ledger(tmp_path: Path, ledger: Ledger) -> None:
    shutil.copy(ledger.path, tmp_path / "copy.ledger")
    assert Ledger.open(tmp_path / "copy.ledger").entries() == ledger.entries()


def test_a_commit_waits_for_the_disk_and_for_the_folder(ledger: Ledger) -> None:
    with ledger.log._transaction("IMMEDIATE") as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
