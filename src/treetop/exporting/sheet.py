"""The files of an export: rows that are made as they are written, or a text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from treetop.exporting.formulas import guard_rows, guard_schema


@dataclass(frozen=True, eq=False)
class Sheet:
    """One file to be written, in pieces."""

    file: str
    """Its name in a folder; what it ends in is how it is written."""
    schema: pa.Schema
    """Its columns."""
    batches: Iterable[pa.RecordBatch]
    """Its rows."""
    rows: int
    """How many there are."""
    total: int
    """The sum of its counts."""
    size: int = 0
    """About how many bytes it has as CSV; 0 where that is not known, or told elsewhere."""

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
        """Write the file, as Parquet or CSV by what its name ends in."""
        if path.suffix == ".parquet":
            self._write_parquet(path)
        elif path.suffix == ".csvt":
            self._write_types(path)
        else:
            self._write_csv(path)

    def _write_parquet(self, path: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, self.schema, compression="zstd", store_schema=False) as writer:
            for batch in self.batches:
                writer.write_batch(batch)

    def _write_csv(self, path: Path) -> None:
        with path.open("wb") as file:
            file.write(csv_header(self.schema.names))
            write_csv(self.schema, self.batches, file)

    def _write_types(self, path: Path) -> None:
        kinds = (_kind(field, self.total) for field in self.schema)
        path.write_text(",".join(f'"{kind}"' for kind in kinds) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Page:
    """One text to be written, such as a page in HTML."""

    file: str
    """Its name in a folder."""
    text: str
    """Its content."""
    rows: int
    """The counts above zero that it shows, at its finest level."""
    total: int
    """Their sum."""
    size: int = 0
    """How long it is, where it is worth telling."""

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
    """Return about how many characters a column has as CSV, with what stands between."""
    if pa.types.is_string(column.type):
        return int(pc.sum(pc.binary_length(column)).as_py() or 0) + 3 * len(column)
    return int(pc.sum(pc.binary_length(column.cast(pa.string()))).as_py() or 0) + len(column)


def csv_header(names: Iterable[str]) -> bytes:
    """Return a header line, quoted where a name needs it."""
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
