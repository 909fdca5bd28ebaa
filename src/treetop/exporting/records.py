"""Synthetic records, one row per unit of count: how large they become is told first, and refused where hardly meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.errors import Refusal, ReleaseError
from treetop.exporting.formats import Content, Format, Progress, Request
from treetop.exporting.levels import Depths, trees_of
from treetop.exporting.sheet import Sheet, say_bytes
from treetop.exporting.streamed import leaves_of
from treetop.release.selection import Selection

ROWS = 1 << 20
"""How many records are made at a time."""
MANY = 10_000_000
"""From so many records on, their number is told before they are written."""
MOST = 1_000_000_000
"""More records than this are written only when that is asked for: minutes become hours, and files become terabytes."""


@dataclass(frozen=True)
class Size:
    """What records come to."""

    records: int
    """How many there are."""
    bytes: int
    """About how long they are as CSV; Parquet, which packs rows that repeat, is far smaller."""

    @staticmethod
    def of(release: Selection, depths: Depths) -> Size:
        """Measure the records of a release: one line per unit of count, without writing any."""
        total = 0.0  # as an integer it may overflow
        for nodes, count in leaves_of(release):
            lengths = np.full(len(count), 3 * len(nodes), np.int64)  # quotes, and what comes after them
            for (name, tree), own in zip(trees_of(release).items(), nodes, strict=True):
                codes = np.asarray(pc.binary_length(tree.codes[depths[name]]), np.int64)
                lengths += codes[tree.ancestors(depths[name])[own]]
            total += float(np.dot(count.astype(np.float64), lengths.astype(np.float64)))
        # What is not resolved belongs to no leaf, and has no record.
        return Size(release.total - release.unresolved_total, int(total))

    def refuse_unless(self, large: bool, out: Path) -> None:
        """Refuse more records than are likely meant, and a CSV file that the disk does not hold."""
        if self.records > MOST and not large:
            raise Refusal(
                f"{out}: would hold {self}. Export counts instead (--to csv), or a coarser --level has fewer codes; if "
                "it is meant, say so with --large"
            )
        if out.suffix == ".csv" and self.bytes > (free := disk_usage(out.absolute().parent).free):
            raise ReleaseError(
                f"{out}: would hold {self}, and its disk has {say_bytes(free)} left: write .parquet instead"
            )

    def __str__(self) -> str:
        return f"{self.records:,} records, about {say_bytes(self.bytes)} as CSV"


def _make(request: Request) -> Content:
    release = request.release
    size = Size.of(release, request.depths)
    size.refuse_unless(request.options.get("large", False), request.out)
    announce = request.options.get("announce")
    if announce is not None and size.records >= MANY:
        announce(f"writing {size}")
    schema = pa.schema([(name, pa.string()) for name in release.spine.attributes])
    batches = _records(release, request.depths, schema, request.options.get("progress"))
    return Content([Sheet("records.parquet", schema, batches, size.records, size.records)])


def _records(
    release: Selection, depths: Depths, schema: pa.Schema, progress: Progress | None
) -> Iterator[pa.RecordBatch]:
    trees = [(tree.codes[depths[name]], tree.ancestors(depths[name])) for name, tree in trees_of(release).items()]
    for nodes, count in leaves_of(release):
        ends = np.cumsum(count)
        total = int(count.sum())
        for start in range(0, total, ROWS):
            leaf = np.searchsorted(ends, np.arange(start, min(start + ROWS, total)), side="right")
            columns = zip(trees, nodes, strict=True)
            arrays = [codes.take(pa.array(ancestor[own[leaf]])) for (codes, ancestor), own in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            if progress is not None:
                progress(len(leaf))


RECORDS = Format(
    "records",
    "synthetic records, one row per unit: .parquet or .csv",
    ("records.parquet",),
    _make,
    suffixes=(".parquet", ".csv"),
    told="records",
    long=True,
)
