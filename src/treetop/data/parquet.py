"""Reading a Parquet file in batches, with codes left as the dictionary that the file stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from treetop.data import table as tables

_BYTES_PER_INDEX = 4
"""A column that takes more a value was not stored as a dictionary throughout: decoding it is then faster."""


def read_parquet(
    path: Path, columns: Sequence[str] | None, rows: int, dictionaries: bool
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield batches of at most `rows` rows, with the share of the file that is read."""
    with pq.ParquetFile(path) as file:
        tables.require(columns, file.schema_arrow.names, str(path))
        coded = _coded(file.metadata) if dictionaries else []
        everything = max(file.metadata.num_rows, 1)
        schema = file.schema_arrow
    names = schema.names if columns is None else list(columns)
    with pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False, buffer_size=1 << 20) as file:
        done = 0
        for batch in file.iter_batches(rows, columns=names):
            done += len(batch)
            yield batch.select(names), done / everything
    if not done:
        yield pa.RecordBatch.from_pylist([], pa.schema([schema.field(name) for name in names])), 1.0


def _coded(metadata: pq.FileMetaData) -> list[str]:
    """Return the text columns that are worth reading as dictionaries."""
    columns = range(metadata.num_columns)
    values = dict.fromkeys(columns, 0)
    size = dict.fromkeys(columns, 0)
    for group in range(metadata.num_row_groups):
        for index in columns:
            chunk = metadata.row_group(group).column(index)
            values[index] += chunk.num_values
            size[index] += chunk.total_uncompressed_size
    described = (metadata.schema.column(index) for index in columns)
    return [
        column.path
        for index, column in enumerate(described)
        if column.physical_type == "BYTE_ARRAY" and size[index] <= _BYTES_PER_INDEX * values[index]
    ]
