"""The files of an export: workbooks and texts, written row by row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.distribution import install_extra
from treetop.errors import ReleaseError
from treetop.exporting.language import Language


class ExportedFile(Protocol):
    """One file of an export."""

    @property
    def file(self) -> str:
        """Its name in a folder."""

    @property
    def rows(self) -> int:
        """The counts that it has."""

    @property
    def total(self) -> int:
        """Their sum."""

    @property
    def size(self) -> int:
        """Approximate bytes; 0 if unknown."""

    def guarded(self) -> ExportedFile:
        """Return the file with texts that no spreadsheet computes."""

    def write(self, path: Path) -> None:
        """Write the file."""


# A workbook of Excel: rows on one sheet, their description on another; every text stays a text, without formulas.

LARGEST = 1_048_575
"""Most rows of a sheet below its header."""
LONGEST = 32_767
"""The most characters of a cell."""
_EXACT = 1 << 53  # whole numbers beyond it are rounded by a spreadsheet
_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class Workbook:
    """One file to be written."""

    file: str
    table: pa.Table
    about: Sequence[tuple[object, ...]]
    language: Language
    rows: int
    total: int
    size: int = 0
    """Approximate size; 0 if not estimated, since a workbook is packed."""

    @staticmethod
    def of(file: str, table: pa.Table, about: Iterable[tuple[object, ...]], own: Language) -> Workbook:
        """Make a workbook of a table with a column `count`."""
        writer()  # now: that it is missing is said before anything else is done
        return Workbook(file, table, tuple(about), own, table.num_rows, int(pc.sum(table["count"]).as_py() or 0))

    def guarded(self) -> Workbook:
        """Return it as it is: a text in it is stored as a text."""
        return self

    def write(self, path: Path) -> None:
        """Write the file."""
        options = {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        packed, words = _Packed(), self.language.words["files"]
        try:
            with (
                TemporaryDirectory(dir=path.parent) as room,
                writer().Workbook(packed, options | {"tmpdir": room}) as book,
            ):
                book.set_properties({"created": datetime(2000, 1, 1)})  # the same bytes for the same release
                bold = book.add_format({"bold": True})
                wrapped = book.add_format({"text_wrap": True, "valign": "top"})
                self._rows(book.add_worksheet(words["sheet"]), bold)
                self._about(book.add_worksheet(words["about"]), bold, wrapped)
        except writer().exceptions.FileCreateError as problem:
            raise problem.args[0] from None  # the error of the system, such as a full disk
        except writer().exceptions.FileSizeError:
            raise ReleaseError("an Excel file has at most 4 GB: export `to=csv`") from None
        path.write_bytes(packed.getbuffer())

    def _rows(self, sheet: Any, bold: Any) -> None:
        sheet.freeze_panes(1, 0)
        for at, name in enumerate(self.table.column_names):
            sheet.set_column(at, at, _width(name, self.table[name]))
            sheet.write_string(0, at, name, bold)
        row, outside = 0, self.language.words["table"]["outside"]
        for batch in self.table.to_batches(max_chunksize=1 << 16):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                row += 1
                for at, cell in enumerate(cells):
                    _put(sheet, row, at, outside if cell is True else None if cell is False else cell)
        sheet.autofilter(0, 0, max(row, 1), len(self.table.column_names) - 1)

    def _about(self, sheet: Any, bold: Any, wrapped: Any) -> None:
        sheet.set_column(0, 0, 28)
        sheet.set_column(1, 1, 90, wrapped)
        sheet.set_column(2, 2, 28)
        for row, cells in enumerate(self.about):
            for at, cell in enumerate(cells):
                head = bold if len(cells) == 1 or at == 0 else wrapped if at == 1 else None
                sheet.write_string(row, at, str(cell)[:LONGEST], head)


class _Packed(BytesIO):
    """The packed workbook, in memory: a file that the library could not finish would fail once more when collected."""

    def close(self) -> None:
        """Stay open for the library: the order in which the two are collected is not known."""


def _put(sheet: Any, row: int, at: int, cell: Any) -> None:
    """Write one cell: a count as a number, everything else as a text that is never computed."""
    if isinstance(cell, int) and abs(cell) < _EXACT:
        sheet.write_number(row, at, cell)
    elif cell is not None:
        text = str(cell)
        if len(text) > LONGEST:
            raise ReleaseError(
                f"a code has {len(text):,} characters, and a cell of Excel at most {LONGEST:,}: export `to=csv`"
            )
        sheet.write_string(row, at, text)


def _width(name: str, column: pa.ChunkedArray) -> int:
    if not pa.types.is_string(column.type):
        return max(12, len(name) + 2)
    longest = pc.max(pc.utf8_length(column.slice(0, _SAMPLE))).as_py() or 0
    return int(min(max(longest, len(name), 8) + 2, 60))


def writer() -> ModuleType:
    """Return the library that writes workbooks."""
    try:
        import xlsxwriter
    except ImportError:
        raise ReleaseError(
            f"an Excel file needs XlsxWriter, which is not installed: {install_extra('excel')}, or export `to=csv`"
        ) from None
    found: ModuleType = xlsxwriter
    return found


# Codes that a spreadsheet would compute: a CSV carries them with an apostrophe before, which can be taken off again.

_FORMULA = r"^'*[=+\-@\t\r\n＝＋－＠]"


def guard(text: str) -> str:
    """Return a text that no spreadsheet computes.

    >>> guard("=1+1"), guard("'=1+1"), guard("'s-Hertogenbosch")
    ("'=1+1", "''=1+1", "'s-Hertogenbosch")
    """
    return f"'{text}" if re.match(_FORMULA, text) else text


def guard_schema(schema: pa.Schema) -> pa.Schema:
    """Guard the names of columns."""
    return pa.schema([field.with_name(guard(field.name)) for field in schema])


def guard_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Guard the texts of a table."""
    columns = [_guarded(column) if pa.types.is_string(column.type) else column for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=guard_schema(rows.schema))


def count_guarded(codes: pa.StringArray) -> int:
    """Return how many codes are changed."""
    return int(pc.sum(pc.match_substring_regex(codes, _FORMULA)).as_py() or 0)


def _guarded(column: pa.StringArray) -> pa.StringArray:
    return pc.replace_substring_regex(column, f"({_FORMULA})", r"'\1") if count_guarded(column) else column


@dataclass(frozen=True, eq=False)
class Sheet:
    """One file to be written, in pieces."""

    file: str
    """Its name in a folder; the ending selects the file format."""
    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    rows: int
    total: int
    size: int = 0
    """Approximate bytes as CSV; 0 if unknown, or announced elsewhere."""

    @staticmethod
    def of(file: str, table: pa.Table, count: str | None = None) -> Sheet:
        """Make a sheet of a table."""
        total = 0 if count is None else int(pc.sum(table[count]).as_py() or 0)
        size = sum(_bytes(column) for column in table.columns)
        return Sheet(file, table.schema, table.to_batches(), table.num_rows, total, size)

    def guarded(self) -> Sheet:
        """Return the sheet with texts that no spreadsheet computes."""
        return replace(self, schema=guard_schema(self.schema), batches=map(guard_rows, self.batches))

    def write(self, path: Path) -> None:
        """Write the file, as Parquet or CSV by the ending of its name."""
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(path, self.schema, compression="zstd", store_schema=False) as writer:
                for batch in self.batches:
                    writer.write_batch(batch)
        elif path.suffix == ".csvt":
            kinds = (_kind(field, self.total) for field in self.schema)
            path.write_text(",".join(f'"{kind}"' for kind in kinds) + "\n", encoding="utf-8")
        else:
            with path.open("wb") as file:
                file.write(csv_header(self.schema.names))
                write_csv(self.schema, self.batches, file)


@dataclass(frozen=True)
class Page:
    """One text to be written, such as a page in HTML."""

    file: str
    text: str
    rows: int
    """The counts above zero that it shows, at its finest level."""
    total: int
    size: int = 0
    """Approximate size; 0 if not worth announcing."""

    def guarded(self) -> Page:
        """Return the text as it is: no spreadsheet opens it."""
        return self

    def write(self, path: Path) -> None:
        """Write the file."""
        path.write_text(self.text, encoding="utf-8")


def say_bytes(number: int) -> str:
    """Say how long a file is.

    >>> say_bytes(2_500_000)
    '2 MB'
    """
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(max(len(str(number)) - 1, 0) // 3, len(units) - 1)
    return f"{number / 1000**power:,.0f} {units[power]}"


def _bytes(column: pa.ChunkedArray) -> int:
    """Return about how many characters a column has as CSV, separators included."""
    if pa.types.is_string(column.type):
        return int(pc.sum(pc.binary_length(column)).as_py() or 0) + 3 * len(column)
    return int(pc.sum(pc.binary_length(column.cast(pa.string()))).as_py() or 0) + len(column)


def csv_header(names: Iterable[str]) -> bytes:
    """Return a header line, with quotes around a name that needs them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: object) -> None:
    """Write rows as CSV: text in quotes, so that no reader takes "" or a line break for anything else."""
    import pyarrow.csv as arrow_csv

    options = arrow_csv.WriteOptions(include_header=False)
    with arrow_csv.CSVWriter(file, schema, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _kind(field: pa.Field, total: int) -> str:
    """Return the type that a .csvt states; `Integer` has 32 bits, and `Integer64` is not known everywhere."""
    if pa.types.is_integer(field.type):
        return "Integer" if total < 1 << 31 else "Integer64"
    return "WKT" if field.name == "WKT" else "String"
