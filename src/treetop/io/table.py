"""Reading a table in batches, wherever it is: files, databases, standard input, or an Arrow stream in memory."""

from __future__ import annotations

import gzip
import io
import logging
import os
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from treetop._util.files import resolved
from treetop._util.system import as_they_come
from treetop.errors import DataError
from treetop.io.database import sqlite_path
from treetop.io.row_batch import RowBatch, is_kept, refuse_damage, refuse_unreadable, require, say_kept
from treetop.io.source import (
    HEAD,
    ReadRequest,
    Shared,
    Source,
    SourceFormat,
    as_source,
    claimed_format,
    format_of,
    reads_once,
    without_password,
)

Table = str | Path | Source | Sequence[str | Path] | Any
"""A path, a list of paths, a `Source`, or an object with __arrow_c_stream__."""

_LEAST_TEXT = 10
"""Bytes of a row of text, at the least that is usual."""

ROWS = 1 << 18

_LOG = logging.getLogger(__name__)
_Rows = Generator[tuple[pa.RecordBatch, float], None, None]
_Batches = Generator[RowBatch, None, None]


@dataclass(frozen=True)
class Piece:
    """A part of a table that can be read by itself: a file, or some groups of rows of a Parquet file."""

    source: Source
    path: Path
    stamp: tuple[int, int]
    """Its size and the time of its last change, when the table was cut."""
    groups: tuple[int, ...] | None = None
    first: int = 0
    rows: int | None = None
    """How many it has; None where only reading it would tell."""

    def refuse_change(self) -> None:
        """Refuse a file that has changed since the table was cut."""
        if _stamp(self.path) != self.stamp:
            raise DataError(f"{self.path} has changed while it was read: nothing was measured; read it again")


def pieces(table: Table, rows: int) -> list[Piece] | None:
    """Cut a table of files into pieces of at most about so many rows; None if its source is read in order."""
    source = as_source(table)
    if source is None or source.scheme is not None or reads_once(source.location):
        return None
    found: list[Piece] = []
    for path, format in zip(source.files(), source.formats(), strict=True):
        whole = Piece(source, path, _stamp(path))
        found += [whole] if format.name != "Parquet" else _by_groups(whole, rows)
    return found


def rows_at_most(table: Table) -> int | None:
    """Estimate the number of rows of a table from its files, of text by short rows; None if that is impossible."""
    cut = pieces(table, 1 << 62) if not isinstance(table, pa.Table) else None
    if cut is None:
        return len(table) if isinstance(table, pa.Table) else None
    return sum(piece.stamp[0] // _LEAST_TEXT if piece.rows is None else piece.rows for piece in cut)


def _by_groups(whole: Piece, rows: int) -> Iterator[Piece]:
    """Yield the groups of rows of a Parquet file, so many together as have about so many rows."""
    with _explained(str(whole.path)), pq.ParquetFile(whole.path) as file:
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    groups: list[int] = []
    first, number = 0, 0
    for group, size in enumerate(sizes):
        if groups and number + size > rows:
            yield replace(whole, groups=tuple(groups), first=first, rows=number)
            groups, first, number = [], first + number, 0
        groups.append(group)
        number += size
    yield replace(whole, groups=tuple(groups), first=first, rows=number)


def _stamp(path: Path) -> tuple[int, int]:
    with _explained(str(path)):
        status = path.stat()
    return status.st_size, status.st_mtime_ns


def batches(table: Table, columns: Sequence[str] | None = None, dictionaries: bool = True) -> Iterator[RowBatch]:
    """Yield the rows of a table in order, at least one batch of each file; all columns when None.

    With `dictionaries`, text that a file stores as a dictionary is left so. Of a source with `keep` or `drop`, only
    the rows that it asks for are there, and there may be none: what is kept is a table like any other.
    """
    piece = table if isinstance(table, Piece) else None
    source = as_source(table) if piece is None else piece.source
    if source is None:
        yield from _numbered(_from_memory(table, columns), "the table")
        return
    asked = (*(source.keep or ()), *(source.drop or ()))
    wanted = None if columns is None else list(dict.fromkeys([*columns, *asked]))
    read = _all_batches(source, wanted, dictionaries) if piece is None else _of_piece(piece, wanted, dictionaries)
    prepared = _prepared(read, source, wanted) if source.prepare else read
    yield from _only_kept(prepared, source, columns) if asked else prepared


def _prepared(read: Iterator[RowBatch], source: Source, columns: Sequence[str] | None) -> Iterator[RowBatch]:
    """Yield the rows with their columns as the source says that they are meant."""
    assert source.prepare is not None
    for batch in read:
        if columns is None:
            require(source.prepare.named, batch.rows.schema.names, batch.where)
        yield replace(batch, rows=source.prepare.rows(batch.rows))


def _only_kept(parts: Iterable[RowBatch], source: Source, columns: Sequence[str] | None) -> Iterator[RowBatch]:
    asked = [*(source.keep or ()), *(source.drop or ())]
    for batch in parts:
        require(asked, batch.rows.schema.names, batch.where)
        mask = is_kept(batch.rows, source.keep, source.drop)
        numbers = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        rows = batch.rows if len(numbers) == len(batch.rows) else batch.rows.filter(mask)
        rows = rows if columns is None else rows.select(list(columns))
        yield replace(batch, rows=rows, numbers=numbers)


def read(
    table: Table, columns: Sequence[str] | None = None, progress: Callable[[float], None] | None = None
) -> pa.Table:
    """Return `columns` of a table (all of them when None) as an Arrow table; CSV columns are text, always.

    `progress` is called with the share that is read.
    """
    if isinstance(table, pa.Table):
        require(columns, table.column_names, "the table")
        wanted = table if columns is None else table.select(list(columns))
        refuse_damage(wanted, "the table", 0)
        return wanted
    parts = []
    for batch in batches(table, columns, dictionaries=False):
        parts.append(pa.Table.from_batches([batch.rows]))
        if progress is not None:
            progress(batch.done)
    try:
        return pa.concat_tables(parts)
    except pa.ArrowException as problem:
        raise DataError(f"{as_source(table)}: the files do not have the same columns: {problem}") from problem


def warn_of_none(table: Table) -> None:
    """Tell the steward that a table has no rows, and nobody else: that is as private as how many there are."""
    source = as_source(table)
    keep, drop = (None, None) if source is None else (source.keep, source.drop)
    with_values = "" if keep is None else f" with {say_kept(keep)}"
    with_values += "" if drop is None else f" without {say_kept(drop)}"
    check = "the spelling of the values" if with_values else "that it is the table that is meant"
    where = source or "the table"
    _LOG.warning("%s: there are no rows%s, so every true count is 0: check %s", where, with_values, check)


def _all_batches(source: Source, columns: Sequence[str] | None, dictionaries: bool) -> Iterator[RowBatch]:
    part = ReadRequest(source, str(source), columns, dictionaries, ROWS)
    if source.scheme is not None:
        yield from _numbered(_read(next(source.formats()), part), part.where)
    elif source.location == "-":
        given = sys.stdin.buffer
        stream = given if isinstance(given, io.BufferedReader) else io.BufferedReader(given)  # type: ignore[type-var]
        with _explained(part.where):
            yield from _numbered(_read(next(source.formats()), replace(part, stream=stream)), part.where)
    else:
        files = source.files()
        for number, path in enumerate(files):
            rows = _from_file(replace(part, where=str(path), path=path), path)
            with closing(_ahead(_numbered(rows, str(path)))) as parts:
                for batch in parts:
                    yield replace(batch, done=(number + batch.done) / len(files))


def _of_piece(piece: Piece, columns: Sequence[str] | None, dictionaries: bool) -> Iterator[RowBatch]:
    part = ReadRequest(piece.source, str(piece.path), columns, dictionaries, ROWS, piece.path, groups=piece.groups)
    piece.refuse_change()
    rows = _numbered(_from_file(part, piece.path), part.where)
    # Groups of rows are read by one core each, which is then busy with them.
    with closing(_ahead(rows) if piece.groups is None else rows) as parts:
        for batch in parts:
            yield replace(batch, first=batch.first + piece.first)
    piece.refuse_change()


def _numbered(parts: Shared, where: str) -> _Batches:
    """Cut rows into batches that know where they come from, after a look at whether they are damaged."""
    first = 0
    for rows, done in parts:
        refuse_damage(rows, where, first)
        for start in range(0, max(len(rows), 1), ROWS):
            piece = rows.slice(start, ROWS)
            yield RowBatch(piece, where, first, done)
            first += len(piece)


def _from_memory(table: Any, columns: Sequence[str] | None) -> Shared:
    if not hasattr(table, "__arrow_c_stream__"):
        raise DataError(
            f"cannot read a table from {type(table).__name__}: give a path to a CSV or Parquet file, a Source, "
            "or an object with __arrow_c_stream__ (PyArrow, Polars, pandas, DuckDB)"
        )
    everything = len(table) if isinstance(table, pa.Table) else 0
    with _explained("the table"):
        reader = pa.RecordBatchReader.from_stream(table)
        refuse_unreadable(reader.schema)
        require(columns, reader.schema.names, "the table")
        done, rows = 0, None
        for rows in reader:
            done += len(rows)
            yield rows if columns is None else rows.select(list(columns)), done / everything if everything else 0.0
        if rows is None:  # a table without rows has columns all the same
            rows = pa.RecordBatch.from_pylist([], reader.schema)
            yield rows if columns is None else rows.select(list(columns)), 0.0


def _from_file(part: ReadRequest, path: Path) -> _Rows:
    with _explained(part.where), path.open("rb") as stream:
        recognised = format_of(stream.peek(HEAD), part.source)
        claimed = claimed_format(path)
        if recognised.is_text and part.source.query is None and claimed is not None:
            raise DataError(f"{path}: is not {claimed.words}, whatever its name says: give it its true name")
        yield from _read(recognised, replace(part, stream=stream))


def _read(format: SourceFormat, part: ReadRequest) -> Shared:
    source = part.source
    if source.fields is not None and not format.is_text:
        raise DataError(f"{part.where}: fields are positions in fixed-width text, and this is none: leave them out")
    if source.header is False and not (format.is_text or format.has_header):
        raise DataError(f"{part.where}: header and names are for CSV files, and this is none: leave them out")
    if source.sheet is not None and not format.has_sheets:
        raise DataError(f"{part.where}: a sheet is of a workbook of Excel, and this is none: leave it out")
    if source.query is not None and not format.is_database:
        raise DataError(
            f"{source}: a query is for a database, and this is none: leave the query out. To read some of its rows "
            'only, say which in the plan file, as in keep = { year = "2008" } under [data]'
        )
    return format.read(part)


def _ahead(parts: _Batches) -> _Batches:
    """Read the next batches while the last one is dealt with."""
    return as_they_come(1, iter, [parts])


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn an error of the system or of Arrow about a file into one that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as problem:  # the last: a column's name
        if isinstance(problem, OSError) and problem.strerror:
            raise DataError(f"{where}: {problem.strerror}") from problem
        raise DataError(f"{where}: cannot be read as a table: {problem}") from problem


# Whether two locations name the same table: compared by file, content or database, without reading a row.

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
    if source.scheme is None or source.scheme == "sqlite":
        return None
    return without_password(str(source.location))


def _files(source: Source) -> list[Path]:
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
