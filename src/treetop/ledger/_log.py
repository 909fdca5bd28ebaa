"""The ledger's file: records that are only ever appended, each chained to the one before by its SHA-256.

Every read walks the whole chain, so damage and casual edits are found. The hashes have no key: a forger who
recomputes them, or puts an older copy of the file back, is found only by a hash that was noted elsewhere. So the last
hash, the head, is told with every record, and a log can be opened with one that it must hold.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from treetop.errors import LedgerError, Refusal

APPLICATION_ID = 0x54524545
"""SQLite's mark of whose file it is: "TREE"."""
SCHEMA_VERSION = 3
"""Version of the file. Units of earlier versions did not name the conditions of their guarantee."""

Content: TypeAlias = dict[str, Any]

_SCHEMA = {
    "log": "CREATE TABLE log (position INTEGER PRIMARY KEY, content TEXT NOT NULL, sha256 TEXT NOT NULL)",
    "head": "CREATE TABLE head (records INTEGER NOT NULL, sha256 TEXT NOT NULL)",
}
_START = "0" * 64
_RESTORE = "Restore a backup of it, and make sure that every release made since is in it, before you go on"


class OldCopy(Refusal):
    """A ledger that lacks a record of which the hash was noted elsewhere: an older copy was put back."""


@dataclass(frozen=True)
class Record:
    """One link of the chain."""

    content: Content
    sha256: str
    """The hash of the record before it and of its content, in hexadecimal."""


@dataclass(frozen=True)
class Log:
    """A file of chained records. It holds no connection: each call opens, checks and closes the file."""

    path: Path
    """The file, absolute. Never read it in any other way: closing it would drop SQLite's locks on it."""
    timeout: float
    """How many seconds to wait while another process writes."""
    head: str | None = None
    """A hash that the chain must hold, whenever it is read: the head as it was noted elsewhere."""

    @classmethod
    def create(cls, path: Path, first: Content, timeout: float) -> Log:
        """Start a file with its first record; an existing file is refused."""
        log = cls(path, timeout)
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            raise LedgerError(
                f"{path}: exists already, and a ledger is never overwritten; choose another name"
            ) from None
        except (OSError, ValueError) as problem:
            raise LedgerError(f"{path}: cannot be created: {_reason(problem)}") from problem
        try:
            with log._transaction("IMMEDIATE") as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in _SCHEMA.values():
                    connection.execute(statement)
                connection.execute("INSERT INTO head VALUES (0, ?)", (_START,))
                _append(connection, [], first)
        except BaseException:
            path.unlink()
            raise
        return log

    def read(self) -> list[Record]:
        """Every record in order, after checking all of them."""
        with self._transaction("DEFERRED") as connection:
            return self._records(connection)

    def append(self, decide: Callable[[list[Record]], Content]) -> tuple[int, Record]:
        """Show all records to `decide` and append its result, in one transaction; on disk on return."""
        with self._transaction("IMMEDIATE") as connection:
            records = self._records(connection)
            return len(records), _append(connection, records, decide(records))

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        try:
            there = self.path.is_file()
        except (OSError, ValueError) as problem:
            raise LedgerError(f"{self.path}: cannot be opened: {_reason(problem)}") from problem
        if not there:
            raise LedgerError(f"{self.path}: there is no such file; make a ledger with `treetop ledger create`")
        try:
            uri = f"{self.path.as_uri()}?mode=rw"
            opened = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None)
            with closing(opened) as connection:
                # A rollback journal, not WAL: at rest the ledger is one file, so that a copy of it is never
                # short of a reservation left in a -wal file. EXTRA also syncs the folder after the journal is
                # deleted, without which a power cut could undo a commit. Locks are the file system's: keep
                # the ledger on a local disk, because many network file systems (NFS) do not honour them.
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")
                connection.execute(f"BEGIN {kind}")
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as problem:
            raise LedgerError(f"{self.path}: {self._explain(problem)}") from problem
        except UnicodeDecodeError as problem:  # from the damaged text that SQLite quotes in its own error
            raise LedgerError(f"{self.path}: the ledger is damaged. {_RESTORE}") from problem

    def _records(self, connection: sqlite3.Connection) -> list[Record]:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise LedgerError(
                f"{self.path}: is not a Treetop ledger, or its creation was interrupted; "
                "name the right file, or make a ledger with `treetop ledger create`"
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            which = "Treetop 0.3" if version < SCHEMA_VERSION else "a newer Treetop"
            raise LedgerError(
                f"{self.path}: is a ledger of version {version}, and this Treetop reads version {SCHEMA_VERSION} only. "
                f"Use {which}"
            )
        finding = _finding(connection)
        if isinstance(finding, str):
            raise LedgerError(f"{self.path}: the ledger is damaged or was edited ({finding}). {_RESTORE}")
        if self.head is not None and all(record.sha256 != self.head for record in finding):
            raise OldCopy(
                f"{self.path}: has no record {self.head}, the head that was noted elsewhere: it is an older copy, "
                f"another ledger, or was edited. {_RESTORE}"
            )
        return finding

    def _explain(self, problem: sqlite3.Error) -> str:
        name = getattr(problem, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return (
                f"another process has kept the ledger locked for {self.timeout:g} seconds; "
                "nothing was recorded, try again when it has finished"
            )
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            return f"cannot be opened for writing ({problem}); make the file and its folder writable"
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return f"cannot be read or written ({problem}); make sure that the disk works and has room"
        if name == "SQLITE_NOTADB":
            return "is not a Treetop ledger, or its first bytes are damaged; name the right file"
        return f"the ledger is damaged ({problem}). {_RESTORE}"


def _finding(connection: sqlite3.Connection) -> list[Record] | str:
    """Walk the chain: its records, or the first thing that is wrong."""
    (health,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if health != "ok":
        return str(health)
    # Nothing but the two tables: a trigger or a view could change what is read or written.
    schema = dict(connection.execute("SELECT name, sql FROM sqlite_schema"))
    if schema != _SCHEMA:
        return "its tables are not those of a ledger"
    records: list[Record] = []
    previous = _START
    for position, text, link in connection.execute("SELECT * FROM log ORDER BY position"):
        if position != len(records):
            return f"record {len(records)} is missing"
        if not isinstance(text, str) or link != _link(previous, text):
            return f"record {position} is not what was written"
        try:
            content = json.loads(text)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            return f"record {position} is not what a ledger writes"
        records.append(Record(content, link))
        previous = link
    if connection.execute("SELECT * FROM head").fetchall() != [(len(records), previous)]:
        return "its last records are missing, or were added by other means"
    if not records:
        return "its first record is missing"
    return records


def _append(connection: sqlite3.Connection, records: list[Record], content: Content) -> Record:
    text = json.dumps(content)
    record = Record(content, _link(records[-1].sha256 if records else _START, text))
    connection.execute("INSERT INTO log VALUES (?, ?, ?)", (len(records), text, record.sha256))
    connection.execute("UPDATE head SET records = ?, sha256 = ?", (len(records) + 1, record.sha256))
    return record


def _link(previous: str, text: str) -> str:
    return sha256(f"{previous}\n{text}".encode()).hexdigest()


def _reason(problem: OSError | ValueError) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)
