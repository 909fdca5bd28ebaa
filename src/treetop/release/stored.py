"""Reading the files of a release folder: regular files only, since a folder may come from anyone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from treetop._util.files import read_regular, refuse_irregular
from treetop.errors import ReleaseError

LARGEST_TEXT = 1 << 28
"""Most bytes of card.json, card.html and plan.toml."""


def read_bytes(path: Path) -> bytes:
    """Return the content of card.json, card.html or plan.toml."""
    return read_regular(path, LARGEST_TEXT)


def read_text(path: Path) -> str:
    """Return the text of card.json, card.html or plan.toml."""
    return read_bytes(path).decode("utf-8")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a table, or some of its columns."""
    refuse_irregular(path)
    return pq.read_table(path, columns=None if columns is None else list(columns))


def read_schema(path: Path) -> pa.Schema:
    """Return the columns of a table."""
    refuse_irregular(path)
    return pq.read_schema(path)


def parquet_file(path: Path, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a table."""
    refuse_irregular(path)
    return pq.ParquetFile(path, read_dictionary=list(read_dictionary))


def whole_numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return a column of whole numbers, of which none is missing."""
    if name not in table.column_names:
        raise ReleaseError(f"there is no column {name!r}")
    column = table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise ReleaseError(f"the column {name!r} must hold whole numbers, and no blanks")
    return np.asarray(column.to_numpy(), np.int64)
