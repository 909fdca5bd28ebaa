"""Whether two locations name the same table: compared by file, content or database, without reading a row."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from treetop._util.files import resolved
from treetop.errors import DataError
from treetop.io.database import sqlite_path
from treetop.io.source import Source, as_source, reads_once, without_password

_PIECE = 1 << 20


def same_table(table: Any, other: Any) -> str | None:
    """Return the property in which two tables are the same; None if they are not known to be.

    Finds symbolic and hard links, relative paths, folders and patterns that hold the file, copies of its bytes (also
    inside gzip), redirected standard input, and database URLs.
    """
    if table is other and not isinstance(table, str | Path):
        return "the same object"
    here, there = as_source(table), as_source(other)
    if here is None or there is None:
        tables = isinstance(table, pa.Table) and isinstance(other, pa.Table)
        return "the same rows in memory" if tables and table.equals(other) else None
    # Without a query, the only table of a database is read.
    ours, theirs = (" ".join((source.query or "").split()).rstrip("; ").lower() for source in (here, there))
    if ours and theirs and ours != theirs:
        return None
    if _server(here) or _server(there):
        return f"the same query to {there}" if _server(here) == _server(there) else None
    if reads_once(here.location) and here.location == there.location:
        return f"both are {there}"
    for file in _files(here):
        for private in _files(there):
            if file == private:
                return f"the file {private}"
            if file.is_file() and private.is_file():
                if file.samefile(private):
                    return f"{file} is another name of {private}"
                if _same_bytes(file, private):
                    return f"{file} has the content of {private}"
    return None


def _server(source: Source) -> str | None:
    """Return the address of a database that is no file."""
    if source.scheme is None or source.scheme == "sqlite":
        return None
    return without_password(str(source.location))


def _files(source: Source) -> list[Path]:
    """Return the files that a source reads; none of a pipe."""
    if source.scheme == "sqlite":
        return [resolved(sqlite_path(str(source.location)))]
    if source.location == "-":
        return _redirected()
    try:
        return [resolved(file) for file in source.files()]
    except (DataError, OSError):  # not there, or not yet: its name can still be compared
        location = source.location
        return [resolved(one) for one in (location if isinstance(location, tuple) else (location,))]


def _redirected() -> list[Path]:
    """Return the file that standard input was redirected from, if it was."""
    try:
        number = sys.stdin.fileno()
        return [resolved(f"/dev/fd/{number}")] if stat.S_ISREG(os.fstat(number).st_mode) else []
    except (OSError, ValueError, AttributeError):  # closed, or replaced by an object without a descriptor
        return []


def _same_bytes(one: Path, other: Path) -> bool:
    """Tell whether two files hold the same bytes, of gzip files those inside."""
    if any(file.parent == Path("/dev/fd") for file in (one, other)):  # to read a descriptor would move it
        return False
    if not (_is_gzip(one) or _is_gzip(other)) and one.stat().st_size != other.stat().st_size:
        return False
    with _opened(one) as ours, _opened(other) as theirs:
        try:
            while (piece := ours.read(_PIECE)) == theirs.read(_PIECE):
                if not piece:
                    return True
        except (EOFError, gzip.BadGzipFile, zlib.error):  # damaged: reading it as a table will say so
            pass
    return False


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _opened(file: Path) -> io.BufferedIOBase:
    return gzip.open(file, "rb") if _is_gzip(file) else file.open("rb")
