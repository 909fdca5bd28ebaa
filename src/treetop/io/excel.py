"""Workbooks (Excel, OpenDocument) and Parquet files, in batches. Cells become text, as in a CSV file.

A sheet ends with its last cell that is filled. So a record in which everything was emptied is not there if it was the
last, and the total of a sheet is never told exactly.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from treetop._util.choices import nearest
from treetop._util.distribution import install_extra
from treetop.errors import DataError
from treetop.io import header as headers
from treetop.io.row_batch import refuse_unreadable, require
from treetop.io.source import ReadRequest, Shared, Source, SourceFormat

_MAGIC = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_DIGITS = 10**15
_EXTRA = f"reading Excel needs python-calamine, which is not installed: {install_extra('excel')}, or save it as CSV"


def read_excel(part: ReadRequest) -> Shared:
    """Yield batches of text columns."""
    source, where = part.source, part.where
    sheet = _sheet(part)
    rows = _rows(sheet, where)
    names = _names(rows, source, where, sheet)
    if source.header is None:
        headers.refuse_look(part.columns or (), where)
    require(part.columns, names, where)
    wanted = part.wanted(names)
    at = [names.index(name) for name in wanted] if part.columns is not None else list(range(len(names)))
    everything, done = max(sheet.height, 1), 0
    while True:
        piece = list(islice(rows, part.rows))
        if not piece and done:
            return
        if source.blank_lines == "skip":
            piece = [row for row in piece if any(cell not in ("", None) for cell in row)]
        batch = _batch(piece, wanted, at, where, done)
        done += max(len(piece), 1)
        yield headers.as_unvouched(batch) if source.header is None else batch, min(done / everything, 1.0)


def _sheet(part: ReadRequest) -> Any:
    """Return the sheet that is named, or the only one that is shown."""
    assert part.stream is not None
    try:
        import python_calamine
    except ImportError:
        raise DataError(f"{part.where}: {_EXTRA}") from None
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(part.stream)  # by its content, whatever it is called
        kinds = (python_calamine.SheetTypeEnum.WorkSheet, python_calamine.SheetVisibleEnum.Visible)
        shown = [one.name for one in book.sheets_metadata if (one.typ, one.visible) == kinds]
        name = part.source.sheet
        if name is not None and name not in book.sheet_names:
            listed = ", ".join(map(repr, book.sheet_names))
            raise DataError(
                f"{part.where}: there is no sheet {name!r}{nearest(name, book.sheet_names)}; there are {listed}"
            )
        if name is None and len(shown) != 1:
            listed = ", ".join(map(repr, shown)) or "none that is shown"
            raise DataError(
                f"{part.where}: which sheet is the table? Name it with `sheet` (under [data] in a plan file); "
                f"there are {listed}"
            )
        return book.get_sheet_by_name(shown[0] if name is None else name)
    except DataError:
        raise
    except Exception as problem:  # the library has many kinds of its own, and none in common
        raise DataError(
            f"{part.where}: is a ZIP or Excel file, but no workbook that can be read ({problem}): save it as CSV"
        ) from None


def sheet_sizes(file: Path) -> dict[str, int]:
    """Return the rows of each sheet that is shown; none of a file that is no workbook."""
    try:
        import python_calamine

        with file.open("rb") as stream:
            if not stream.read(8).startswith(_MAGIC):
                return {}
            stream.seek(0)
            book = python_calamine.CalamineWorkbook.from_filelike(stream)
            kinds = (python_calamine.SheetTypeEnum.WorkSheet, python_calamine.SheetVisibleEnum.Visible)
            shown = [one.name for one in book.sheets_metadata if (one.typ, one.visible) == kinds]
            return {name: book.get_sheet_by_name(name).height for name in shown}
    except Exception:  # whoever reads it says what is wrong
        return {}


def _rows(sheet: Any, where: str) -> Iterator[list[Any]]:
    """Yield the rows from the first that is filled."""
    started = False
    try:
        for row in sheet.iter_rows():
            started = started or any(cell not in ("", None) for cell in row)
            if started:
                yield row
    except Exception as problem:
        raise DataError(f"{where}: the sheet {sheet.name!r} cannot be read ({problem}): save it as CSV") from None


def _names(rows: Iterator[list[Any]], source: Source, where: str, sheet: Any) -> list[str]:
    if source.header is False:
        width = sheet.width
        if source.names is not None and len(source.names) != width:
            raise DataError(
                f"{where}: the sheet has {width} columns, but {len(source.names)} names are given: name all columns in "
                "order"
            )
        return list(source.names or (f"column{number}" for number in range(1, width + 1)))
    first = next(rows, None)
    if first is None:
        raise DataError(f"{where}: the sheet {sheet.name!r} is empty; a first row with names of columns is expected")
    texts = [(_text(cell, "", where, 0) or "").strip() for cell in first]
    return [text or f"column{number}" for number, text in enumerate(texts, start=1)]


def _batch(rows: Sequence[list[Any]], names: Sequence[str], at: Sequence[int], where: str, before: int) -> Any:
    columns = [
        pa.array([_text(row[one], name, where, before + number) for number, row in enumerate(rows, 1)], pa.string())
        for name, one in zip(names, at, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _text(cell: Any, column: str, where: str, row: int) -> str | None:
    """Return a cell as text: a whole number without a point, a day as 2008-01-31, an empty one as missing."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int | float) and isfinite(cell):
        if abs(cell) >= _DIGITS:
            raise DataError(
                f"{where}, column {column!r}, row {row}: a number of more than 15 digits has lost its last ones in "
                "Excel: write such codes as text there"
            )
        return str(int(cell)) if cell == int(cell) else repr(cell)
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    return cell.isoformat() if isinstance(cell, datetime.date) else str(cell)


EXCEL = SourceFormat(
    "Excel",
    "a workbook of Excel",
    read_excel,
    recognises=lambda head, source: head.startswith(_MAGIC),
    endings=(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    leaves_out="a sheet of Excel ends with its last filled row, so that an empty record may not be there",
    has_header=True,
    has_sheets=True,
)


# Reading a Parquet file in batches, with codes left as the dictionary that the file stores.

_BYTES_PER_INDEX = 4
"""A column that takes more a value was not stored as a dictionary throughout: decoding it is then faster."""


def read_parquet(part: ReadRequest) -> Shared:
    """Yield batches, with the share of the file that is read."""
    with pq.ParquetFile(part.path) as file:
        schema = file.schema_arrow
        refuse_unreadable(schema)
        names = part.wanted(schema.names)
        require(names, schema.names, part.where)
        coded = _coded(file, names) if part.dictionaries else []
        everything = max(file.metadata.num_rows, 1)
    with pq.ParquetFile(part.path, read_dictionary=coded, pre_buffer=False, buffer_size=1 << 20) as file:
        done = 0
        alone = part.groups is None  # else others are read at the same time
        for batch in file.iter_batches(part.rows, row_groups=part.groups, columns=names, use_threads=alone):
            done += len(batch)
            yield batch.select(names), done / everything
    if not done:
        yield pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in names])), 1.0


def _coded(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Return the text columns that are worth reading as dictionaries, judged by the first group of rows."""
    metadata = file.metadata
    described = [(index, metadata.schema.column(index)) for index in range(metadata.num_columns)]
    texts = [
        (index, described_column.path)
        for index, described_column in described
        if described_column.path in names and described_column.physical_type == "BYTE_ARRAY"
    ]
    if not texts or not metadata.num_row_groups:
        return []
    # Arrow aborts the process where a damaged description of a column is looked at; read, it is an error.
    next(file.iter_batches(1, row_groups=[0], columns=[name for _, name in texts]), None)
    chunks = [(name, metadata.row_group(0).column(index)) for index, name in texts]
    return [name for name, chunk in chunks if chunk.total_uncompressed_size <= _BYTES_PER_INDEX * chunk.num_values]


PARQUET = SourceFormat(
    "Parquet",
    "a Parquet file",
    read_parquet,
    recognises=lambda head, source: head[:4] == b"PAR1",
    endings=(".parquet", ".pq"),
)
