"""A workbook of Excel: rows on one sheet, what they are on another; every text stays a text, nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop.basics.distribution import install_extra
from treetop.errors import ReleaseError

LARGEST = 1_048_575
"""The most rows below a header that a sheet has room for."""
LONGEST = 32_767
"""The most characters of a cell."""
_EXACT = 1 << 53  # whole numbers beyond it are rounded by a spreadsheet
_SAMPLE = 1000
_OUTSIDE = "outside its range"


@dataclass(frozen=True, eq=False)
class Workbook:
    """One file to be written."""

    file: str
    """Its name in a folder."""
    table: pa.Table
    """The rows of its first sheet."""
    about: Sequence[tuple[object, ...]]
    """The lines of its second."""
    rows: int
    """How many rows there are."""
    total: int
    """The sum of their counts."""
    size: int = 0
    """About how long it is; it is packed, and hard to tell."""

    @staticmethod
    def of(file: str, table: pa.Table, about: Sequence[tuple[object, ...]]) -> Workbook:
        """Make a workbook of a table with a column `count`."""
        writer()  # now: that it is missing is said before anything else is done
        return Workbook(file, table, about, table.num_rows, int(pc.sum(table["count"]).as_py() or 0))

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
        packed = _Packed()
        try:
            with (
                TemporaryDirectory(dir=path.parent) as room,
                writer().Workbook(packed, options | {"tmpdir": room}) as book,
            ):
                book.set_properties({"created": datetime(2000, 1, 1)})  # the same bytes for the same release
                bold = book.add_format({"bold": True})
                wrapped = book.add_format({"text_wrap": True, "valign": "top"})
                self._rows(book.add_worksheet("counts"), bold)
                self._about(book.add_worksheet("read me"), bold, wrapped)
        except writer().exceptions.FileCreateError as problem:
            raise problem.args[0] from None  # the error of the system, such as a full disk
        except writer().exceptions.FileSizeError:
            raise ReleaseError("an Excel file has at most 4 GB: export --to csv") from None
        path.write_bytes(packed.getbuffer())

    def _rows(self, sheet: Any, bold: Any) -> None:
        sheet.freeze_panes(1, 0)
        for at, name in enumerate(self.table.column_names):
            sheet.set_column(at, at, _width(name, self.table[name]))
            sheet.write_string(0, at, name, bold)
        row = 0
        for batch in self.table.to_batches(max_chunksize=1 << 16):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                row += 1
                for at, cell in enumerate(cells):
                    _put(sheet, row, at, cell)
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
        """Stay open for the library, in whatever order the two are collected."""


def _put(sheet: Any, row: int, at: int, cell: Any) -> None:
    """Write one cell: a count as a number, everything else as a text that is never computed."""
    if isinstance(cell, bool):
        if cell:
            sheet.write_string(row, at, _OUTSIDE)
    elif isinstance(cell, int) and abs(cell) < _EXACT:
        sheet.write_number(row, at, cell)
    elif cell is not None:
        text = str(cell)
        if len(text) > LONGEST:
            raise ReleaseError(
                f"a code has {len(text):,} characters, and a cell of Excel at most {LONGEST:,}: export --to csv"
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
            f"an Excel file needs XlsxWriter, which is not installed: {install_extra('excel')}, or export --to csv"
        ) from None
    found: ModuleType = xlsxwriter
    return found
