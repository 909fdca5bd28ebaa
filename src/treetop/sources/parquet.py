"""Reading a Parquet file in batches, with codes left as the dictionary that the file stores."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from treetop.sources.batch import refuse_unreadable, require
from treetop.sources.source import Format, Part, Shared

_BYTES_PER_INDEX = 4
"""A column that takes more a value was not stored as a dictionary throughout: decoding it is then faster."""


def read_parquet(part: Part) -> Shared:
    """Yield batches, with the share of the file that is read."""
    with pq.ParquetFile(part.path) as file:
        schema = file.schema_arrow
        refuse_unreadable(schema)
        require(part.columns, schema.names, part.where)
        names = part.wanted(schema.names)
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
    texts = [(index, one.path) for index, one in described if one.path in names and one.physical_type == "BYTE_ARRAY"]
    if not texts or not metadata.num_row_groups:
        return []
    # Arrow aborts the process where a damaged description of a column is looked at; read, it is an error.
    next(file.iter_batches(1, row_groups=[0], columns=[name for _, name in texts]), None)
    chunks = [(name, metadata.row_group(0).column(index)) for index, name in texts]
    return [name for name, chunk in chunks if chunk.total_uncompressed_size <= _BYTES_PER_INDEX * chunk.num_values]


PARQUET = Format(
    "Parquet",
    "a Parquet file",
    read_parquet,
    recognises=lambda head, source: head[:4] == b"PAR1",
    endings=(".parquet", ".pq"),
)
