"""DataFrames of Spark as private tables: executors write the columns that a plan reads into the staging folder.

They go through no shuffle, no result and no log. An attempt writes a file with a name of its own, and only files of
attempts that Spark counts are read: one that failed, or that another has overtaken, leaves a file that is swept with
the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from treetop.basics.nearest import nearest
from treetop.errors import DataError, EngineError

GROUP = 1 << 18
"""So many rows are written together: Spark hands out a few thousand at a time."""

_ROW = "file string, problem string"


def is_frame(table: Any) -> bool:
    """Tell whether a table is a DataFrame of Spark, classic or through Connect."""
    return type(table).__module__.startswith("pyspark.sql.") and hasattr(table, "mapInArrow")


def refuse_missing(frame: Any, columns: Sequence[str]) -> None:
    """Refuse a DataFrame that lacks a column."""
    for name in columns:
        if name not in frame.columns:
            raise DataError(f"the DataFrame has no column {name!r}{nearest(name, frame.columns)}")


def written(frame: Any, columns: Sequence[str], folder: Path) -> list[Path]:
    """Have executors write columns of a DataFrame as Parquet files into a private folder; return those that count."""
    folder.mkdir(mode=0o700)
    # Spark takes a name with a dot for a path into a structure, here and there even where it is quoted.
    quoted = (name.replace("`", "``") for name in columns)
    plain = frame.selectExpr(*(f"`{name}` AS column{number}" for number, name in enumerate(quoted)))
    rows = plain.mapInArrow(_Write(str(folder), tuple(columns)), _ROW).collect()
    for row in rows:
        if row.problem:
            raise EngineError(f"a worker could not write to the staging folder: {row.problem}")
    return sorted(folder / row.file for row in rows)


@dataclass(frozen=True)
class _Write:
    """What Spark runs on each executor."""

    folder: str
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of one partition, and yield the name of their file; none where there are no rows."""
        name, problem = f"{uuid4().hex}.parquet", None
        try:
            if not _write(Path(self.folder) / name, (batch.rename_columns(self.columns) for batch in batches)):
                return
        except OSError as found:  # its text is about the disk; that of others may be about a value
            problem = found.strerror or type(found).__name__
        except pa.ArrowException as found:
            problem = type(found).__name__
        yield pa.RecordBatch.from_pydict(
            {"file": pa.array([name], pa.string()), "problem": pa.array([problem], pa.string())}
        )


def _write(path: Path, batches: Iterable[pa.RecordBatch]) -> bool:
    """Write batches as one file that nobody else may read; tell whether there was a row."""
    groups = _together(batches)
    first = next(groups, None)
    if first is None:
        return False
    with (
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream,
        closing(pq.ParquetWriter(stream, first.schema, use_dictionary=True)) as file,
    ):
        file.write_table(first)
        for group in groups:
            file.write_table(group)
    return True


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if len(batch):
            waiting.append(batch)
        if sum(map(len, waiting)) >= GROUP:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)
