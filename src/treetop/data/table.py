"""Reading a table as text columns: a path, or anything with an Arrow stream; codes are never guessed to be numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.errors import DataError

Table = str | Path | Any  # a path, or an object with __arrow_c_stream__

_DELIMITERS = ",;\t|"


def read(table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Return `columns` of a table (all of them when None) as an Arrow table; CSV columns are text, always."""
    if isinstance(table, str | Path):
        return _read_file(Path(table), columns)
    if isinstance(table, pa.Table):
        return _select(table, columns, "the table")
    if hasattr(table, "__arrow_c_stream__"):
        return _select(pa.RecordBatchReader.from_stream(table).read_all(), columns, "the table")
    raise DataError(
        f"cannot read a table from {type(table).__name__}: give a path to a CSV or Parquet file, "
        "or an object with __arrow_c_stream__ (PyArrow, Polars, pandas, DuckDB)"
    )


def text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column of codes as strings; whole numbers are written out, anything else is refused."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string(kind):
        return column
    if (
        pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_null(kind)
    ):
        return column.cast(pa.string())
    raise DataError(
        f"column {name!r} holds {kind}, not codes: read it as text (floating-point codes have lost their leading "
        "zeros and may have lost digits)"
    )


def first_missing(column: pa.ChunkedArray) -> int | None:
    """Return the row of the first missing or empty value of a text column, if there is one."""
    missing = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    row = int(pc.index(missing, True).as_py())
    return None if row < 0 else row


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return " (did you mean …?)" for the choice that is closest to `name`, or nothing."""
    found = difflib.get_close_matches(name, list(choices), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def _read_file(path: Path, columns: Sequence[str] | None) -> pa.Table:
    if not path.exists():
        raise DataError(f"{path}: no such file")
    try:
        if _is_parquet(path):
            import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and not always needed

            file = pq.ParquetFile(path)
            _require(columns, file.schema_arrow.names, str(path))
            return file.read(columns=None if columns is None else list(columns))
        return _select(_read_csv(path), columns, str(path))
    except pa.ArrowException as problem:
        raise DataError(f"{path}: cannot be read as a table: {problem}") from problem
    except OSError as problem:
        raise DataError(f"{path}: {problem.strerror or problem}") from problem


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_csv(path: Path) -> pa.Table:
    import pyarrow.csv as csv  # noqa: PLC0415 - only for CSV files

    with pa.input_stream(str(path)) as stream:
        header = stream.read(1 << 16).split(b"\n", 1)[0].decode("utf-8-sig", "replace").rstrip("\r")
    if not header:
        raise DataError(f"{path}: the file is empty; a header line with column names is expected")
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().strip('"') for name in header.split(delimiter)]
    return csv.read_csv(
        path,
        parse_options=csv.ParseOptions(delimiter=delimiter),
        # Only an empty field is missing: a municipality is really called "None".
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
        ),
    )


def _select(table: pa.Table, columns: Sequence[str] | None, where: str) -> pa.Table:
    _require(columns, table.column_names, where)
    return table if columns is None else table.select(list(columns))


def _require(columns: Sequence[str] | None, present: Sequence[str], where: str) -> None:
    for name in columns or ():
        if name not in present:
            raise DataError(
                f"{where}: there is no column {name!r}{nearest(name, present)}; the columns are {', '.join(present)}"
            )
