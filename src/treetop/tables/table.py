"""Reading a table in batches, from files, databases or Arrow streams; codes are never guessed to be numbers."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.errors import DataError
from treetop.tables.source import Source, as_source, file_kind

Table = str | Path | Source | Sequence[str | Path] | Any
"""A path, a list of paths, a `Source`, or an object with __arrow_c_stream__."""

ROWS = 1 << 18
"""The most rows that are dealt with at once."""

_LOG = logging.getLogger(__name__)
_SHOWN = 30
_Shared = Generator[tuple[pa.RecordBatch, float], None, None]


@dataclass(frozen=True)
class Batch:
    """Some rows of a table."""

    rows: pa.RecordBatch
    """The rows."""
    where: str
    """The file or database that they are from, as messages name it."""
    first: int
    """How many rows of it come before them."""
    done: float
    """The share of the whole table that is read with them, as far as it is known."""
    numbers: NDArray[np.int64] | None = None
    """Where some rows were left out: the number of each row, counted from `first`."""
    may_skip: bool = True
    """Whether the plan that reads them may pass blank lines over."""

    def place(self, column: str, row: int) -> str:
        """Say where a value stands."""
        number = row if self.numbers is None else int(self.numbers[row])
        return f"{self.where}, column {column!r}, row {self.first + number + 1}"

    def hint(self, row: int) -> str:
        """Say what to do about a row in which all that was read is missing, and nothing about another."""
        if any(column[row].as_py() not in (None, "") for column in self.rows.columns):
            return ""
        skip = ', or set blank_lines = "skip" under [data]' if self.may_skip else ""
        return f" Everything in that row is missing. An empty line is a record too: delete it if it is none{skip}."


def batches(table: Table, columns: Sequence[str] | None = None, dictionaries: bool = True) -> Iterator[Batch]:
    """Yield the rows of a table in order, at least one batch of each file; all columns when None.

    With `dictionaries`, text that a file stores as a dictionary is left so. Of a source with `keep`, only the rows
    that it asks for are there, and there may be none: what is kept is a table like any other.
    """
    source = as_source(table)
    if source is None:
        yield from _numbered(_from_memory(table, columns), "the table")
    elif source.keep:
        wanted = None if columns is None else list(dict.fromkeys([*columns, *source.keep]))
        yield from _only_kept(_all_batches(source, wanted, dictionaries), source, columns)
    else:
        yield from _all_batches(source, columns, dictionaries)


def _all_batches(source: Source, columns: Sequence[str] | None, dictionaries: bool) -> Iterator[Batch]:
    if source.scheme is not None or source.location == "-":
        yield from _numbered(_from_elsewhere(source, columns), str(source))
    else:
        files = source.files()
        for number, file in enumerate(files):
            with closing(_ahead(_from_file(file, columns, source, dictionaries))) as parts:
                shares = ((rows, (number + done) / len(files)) for rows, done in parts)
                yield from _numbered(shares, str(file))


def _only_kept(parts: Iterable[Batch], source: Source, columns: Sequence[str] | None) -> Iterator[Batch]:
    assert source.keep is not None
    asked = list(source.keep)
    for batch in parts:
        require(asked, batch.rows.schema.names, batch.where)
        mask = kept(batch.rows, source.keep)
        numbers = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        rows = batch.rows if len(numbers) == len(batch.rows) else batch.rows.filter(mask)
        rows = rows if columns is None else rows.select(list(columns))
        yield replace(batch, rows=rows, numbers=numbers)


def kept(rows: pa.RecordBatch, keep: Mapping[str, Sequence[str]]) -> pa.BooleanArray:
    """Tell which rows have the values that are asked for; a missing value is none of them."""
    mask: Any = None
    for name, values in keep.items():
        column, wanted = rows.column(name), pa.array(values, pa.string())
        if pa.types.is_dictionary(column.type):
            found = pc.is_in(text(column.dictionary, name), value_set=wanted)
            found = pc.fill_null(found.take(column.indices), False)
        else:
            found = pc.is_in(text(column, name), value_set=wanted)
        mask = found if mask is None else pc.and_(mask, found)
    return mask


def say_kept(keep: Mapping[str, Sequence[str]]) -> str:
    """Say which values rows must have.

    >>> say_kept({"record": ["S"], "year": ["2007", "2008"]})
    "record 'S' and year '2007' or '2008'"
    """
    return " and ".join(f"{name} {' or '.join(map(repr, values))}" for name, values in keep.items())


def warn_of_none(table: Table) -> None:
    """Tell the steward that a table has no rows, and nobody else: that is as private as how many there are."""
    source = as_source(table)
    with_values = "" if source is None or source.keep is None else f" with {say_kept(source.keep)}"
    check = "the spelling of the values" if with_values else "that it is the table that is meant"
    where = source or "the table"
    _LOG.warning("%s: there are no rows%s, so every true count is 0: check %s", where, with_values, check)


def read(table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `columns` of a table (all of them when None) as an Arrow table; CSV columns are text, always."""
    if isinstance(table, pa.Table):
        require(columns, table.column_names, "the table")
        wanted = table if columns is None else table.select(list(columns))
        _refuse_damage(wanted, "the table", 0)
        return wanted
    parts = [pa.Table.from_batches([batch.rows]) for batch in batches(table, columns, dictionaries=False)]
    try:
        return pa.concat_tables(parts)
    except pa.ArrowException as problem:
        raise DataError(f"{as_source(table)}: the files do not have the same columns: {problem}") from problem


def text(column: Any, name: str) -> Any:
    """Return a column of codes as strings: whole numbers are written out, days as 2008-01-31, the rest is refused."""
    column = plain(column)
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if (
        pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    ):
        return column.cast(pa.string())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _days(column, name)
    why = "read it as text"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        why += " (floating-point codes have lost their leading zeros and may have lost digits)"
    raise DataError(f"column {name!r} holds {kind}, not codes: {why}")


def _days(column: Any, name: str) -> Any:
    """Return dates, and times that are all midnight, as 2008-01-31."""
    try:
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = pc.local_timestamp(column)
        day = column.cast(pa.date32(), safe=False)
        row = (
            -1
            if pa.types.is_date32(column.type)
            else pc.index(pc.not_equal(day.cast(column.type), column), True).as_py()
        )
        shown = column.slice(max(row, 0), 1).cast(pa.string())
        days = day.cast(pa.string())
    except pa.ArrowException as problem:  # a time zone that is not known, or a year that no calendar has
        raise DataError(
            f"column {name!r} holds {column.type} that cannot be read as days: {problem}. Give the day as text"
        ) from problem
    if row >= 0:
        raise DataError(
            f"column {name!r} holds times of day, such as {shown[0].as_py()}, and a code can be a day at most: "
            "give a column with the day, or with the hour as text"
        )
    return days


def plain(column: Any) -> Any:
    """Return a column without a dictionary, and in a type that Arrow computes with, of those that hold the same."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column.type, pa.BaseExtensionType):  # a driver's name for a type that it stores as another
        column = column.cast(column.type.storage_type)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def first_missing(column: Any) -> int | None:
    """Return the row of the first missing or empty value of a text column, if there is one."""
    missing = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    row = int(pc.index(missing, True).as_py())
    return None if row < 0 else row


def refuse_unreadable(schema: pa.Schema) -> None:
    """Refuse names of columns or time zones that are not UTF-8, as an error of Unicode."""
    for field in schema:
        _ = field.name, field.type.tz if pa.types.is_timestamp(field.type) else None


def require(columns: Sequence[str] | None, present: Sequence[str], where: str) -> None:
    """Refuse columns that are not there, or there twice."""
    for name in columns or ():
        if name not in present:
            shown = ", ".join(one[:_SHOWN] for one in present[:_SHOWN])
            more = ", …" if len(present) > _SHOWN else ""
            raise DataError(
                f"{where}: there is no column {name!r}{nearest(name, present)}; the columns are {shown}{more}"
            )
        if list(present).count(name) > 1:
            raise DataError(f"{where}: two columns are called {name!r}: give each a name of its own")


def _numbered(parts: Iterable[tuple[pa.RecordBatch, float]], where: str) -> Iterator[Batch]:
    first = 0
    for rows, done in parts:
        _refuse_damage(rows, where, first)
        for start in range(0, max(len(rows), 1), ROWS):
            piece = rows.slice(start, ROWS)
            yield Batch(piece, where, first, done)
            first += len(piece)


def _refuse_damage(rows: pa.RecordBatch | pa.Table, where: str, first: int) -> None:
    """Refuse what no reader of Arrow expects, and what only some of them check: text that is not UTF-8, for example."""
    try:
        rows.validate(full=True)
    except pa.ArrowException as problem:
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            row = _damaged(column)
            if row is not None:
                raise DataError(
                    f"{where}, column {name!r}, row {first + row + 1}: the value is damaged, or its text is not UTF-8: "
                    "write the table again, with its text as UTF-8"
                ) from None
        raise DataError(f"{where}: the rows after row {first} are damaged: {problem}") from None


def _damaged(column: pa.Array | pa.ChunkedArray) -> int | None:
    """Return the first row whose value is not what its type says."""
    start, length = 0, len(column)
    if _is_valid(column):
        return None
    while length > 1:  # the first half holds it, or else the second
        half = length // 2
        if _is_valid(column.slice(start, half)):
            start, length = start + half, length - half
        else:
            length = half
    return start


def _is_valid(column: pa.Array | pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def _from_memory(table: Any, columns: Sequence[str] | None) -> _Shared:
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
        names = list(reader.schema.names if columns is None else columns)
        done = 0
        fields = [reader.schema.field(name) for name in names]
        yield pa.RecordBatch.from_pylist([], pa.schema(fields, reader.schema.metadata)), 0.0
        for rows in reader:
            done += len(rows)
            yield rows.select(names) if columns is not None else rows, done / everything if everything else 0.0


def _from_elsewhere(source: Source, columns: Sequence[str] | None) -> _Shared:
    """Read standard input or a database URL."""
    if source.scheme is None:
        _refuse_query(source)
        stream = sys.stdin.buffer
        buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
        with _explained(str(source)):
            yield from _reader(source)(buffered, str(source), columns, source, None)
        return
    _refuse_fields(source, str(source))
    from treetop.tables.database import read_database, sqlite_path

    if source.scheme != "sqlite":
        parts = read_database("postgresql", str(source.location), source, columns)
    else:
        path = sqlite_path(str(source.location))
        if not path.is_file():
            raise DataError(f"{source}: no such file")
        parts = read_database("sqlite", path, source, columns)
    for rows in parts:
        yield rows, 0.0


def _from_file(path: Path, columns: Sequence[str] | None, source: Source, dictionaries: bool) -> _Shared:
    with _explained(str(path)), path.open("rb") as file:
        kind = file_kind(file.peek(16))
        if kind != "csv":
            _refuse_fields(source, str(path))
        if kind in ("duckdb", "sqlite"):
            from treetop.tables.database import read_database

            for rows in read_database("duckdb" if kind == "duckdb" else "sqlite", path, source, columns):
                yield rows, 0.0
            return
        _refuse_query(source)
        if kind == "parquet":
            from treetop.tables.parquet import read_parquet

            yield from read_parquet(path, columns, ROWS, dictionaries)
        elif path.suffix.lower() in (".parquet", ".pq"):
            raise DataError(f"{path}: is not a Parquet file, whatever its name says: give it its true name")
        else:
            yield from _reader(source)(file, str(path), columns, source, path.stat().st_size)


def _reader(source: Source) -> Callable[..., Iterator[tuple[pa.RecordBatch, float]]]:
    if source.fields is None:
        from treetop.tables.csv_file import read_csv

        return read_csv
    from treetop.tables.fixed import read_fixed

    return read_fixed


def _refuse_fields(source: Source, where: str) -> None:
    if source.fields is not None:
        raise DataError(f"{where}: fields are positions in fixed-width text, and this is none: leave them out")
    if source.header is False:
        raise DataError(f"{where}: header and names are for CSV files, and this is none: leave them out")


def _refuse_query(source: Source) -> None:
    if source.query is not None:
        raise DataError(
            f"{source}: a query is for a database, and this is none: leave the query out. To read some of its rows "
            'only, say which in the plan file, as in keep = { year = "2008" } under [data]'
        )


def _ahead(parts: _Shared) -> _Shared:
    """Read the next part while the last one is dealt with."""
    pool = ThreadPoolExecutor(1)
    try:
        try:
            coming = pool.submit(next, parts, None)
        except RuntimeError:  # there is no thread to be had, for lack of memory: read in this one
            yield from parts
            return
        while (part := coming.result()) is not None:
            coming = pool.submit(next, parts, None)
            yield part
    finally:
        pool.shutdown()  # what is being read is waited for: nothing reads on when the interpreter ends
        parts.close()


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn what the system or Arrow says about a file into an error that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as problem:  # the last: a column's name
        if isinstance(problem, OSError) and problem.strerror:
            raise DataError(f"{where}: {problem.strerror}") from problem
        raise DataError(f"{where}: cannot be read as a table: {problem}") from problem
