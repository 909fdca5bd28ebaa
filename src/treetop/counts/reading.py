"""Gathering the rows of a table as counts: memory grows with the leaves that are there, not with the records.

Rows are collected until there are many. Then they are sorted, and equal ones become one leaf with its count. Sorted
blocks of about the same size are merged as they come, so that there are never more than a few.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from treetop._util.dtypes import Words
from treetop._util.system import Progress, as_they_come
from treetop.counts.contribution_cap import CappedRecords, ContributionCap, Paths, Weights, count_rows
from treetop.counts.counts import Counts
from treetop.counts.encode import EncodedRows, Encoder
from treetop.counts.graph_reader import open_table
from treetop.counts.tally import Tally
from treetop.domain.spine import Spine
from treetop.domain.unit import Unknown
from treetop.io import table as tables

MOST_ROWS = 1 << 25
"""So many rows are collected before they are sorted: as paths of one word, 256 MB."""
_MANY = 1 << 20
"""From so many on, plain paths stand in one place as they come: to join them at the end would take fresh memory."""


class Gathered:
    """The rows of a table, and the leaves that the first of them have become."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._rows: list[Paths] = []
        self._number = 0
        self._together = np.empty(0, np.uint64)
        self._filled = 0
        self._blocks: list[Counts] = []

    def add(self, keys: Sequence[Words], weights: Weights | None, ids: pa.StringArray | None) -> None:
        """Add rows: their packed paths, how many records each stands for (1 when None), and their units."""
        self._rows.append(Paths(keys, weights))
        self._number += len(keys[0])
        if self._number >= _MANY and len(keys) == 1 and weights is None:
            if len(self._together) < self._number:  # with room for those to come: untouched pages take no memory
                room = np.empty(max(self._most, self._number) + len(keys[0]), np.uint64)
                room[: self._filled] = self._together[: self._filled]
                self._together = room
            for (own,), _ in self._rows:
                self._together[self._filled : self._filled + len(own)] = own
                self._filled += len(own)
            self._rows = []
        if self._number >= self._most:
            self._absorb()

    def counts(self) -> Counts:
        """Return the counts of all leaves of the rows, which are at least one batch."""
        if self._rows or self._filled:
            self._absorb()
        while len(self._blocks) > 1:
            self._merge_last()
        return self._blocks.pop()

    def _absorb(self) -> None:
        """Sort rows to a block, and merge blocks until each is more than twice as large as the one after it."""
        if self._filled:
            self._together.resize(self._filled, refcheck=False)
            self._blocks.append(Counts.from_keys([self._together]))
        else:
            self._blocks.append(count_rows(self._rows))
        self._rows, self._number = [], 0
        self._together, self._filled = np.empty(0, np.uint64), 0
        while len(self._blocks) > 1 and len(self._blocks[-2]) <= 2 * len(self._blocks[-1]):
            self._merge_last()

    def _merge_last(self) -> None:
        later, earlier = self._blocks.pop(), self._blocks.pop()
        self._blocks.append(earlier.with_more(later))


# Reading a private table into memory: batches of rows are encoded, on all cores where its files allow, and counted.

_PIECE = 1 << 20
"""About so many rows are read by one core before it goes on with others."""


def read_counts(
    table: tables.Table,
    spine: Spine,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    unknown: Unknown = "error",
    cap: ContributionCap | None = None,
    progress: Progress | None = None,
    tally: Tally | None = None,
    pairs: tuple[int, int] | None = None,
) -> Counts:
    """Read a private table of records, or of rows with a count, and count its leaves, batch by batch.

    `columns` names the column of each attribute where it differs from the attribute's own name. With a `cap`, at most
    so many records of each unit are counted. A table without rows is one like any other, and may be what its neighbour
    with one unit less looks like: it is counted, and the steward is warned by the log. A `tally` counts unknown codes
    and units.
    """
    tally = Tally() if tally is None else tally
    return read_encoded(table, Encoder(spine, columns, count, unknown, cap, pairs), progress, tally)


def read_encoded(table: tables.Table, encoder: Encoder, progress: Progress | None, tally: Tally) -> Counts:
    """Read a private table as an encoder does, and count its leaves."""
    tally.unknown, cap = encoder.unknown, encoder.cap
    capped = None if cap is None else CappedRecords(cap, encoder.words)
    collected = Gathered() if capped is None else capped
    opened, tells_units = open_table(table, tally)
    rows, done = 0, 0.0
    for batch in _encoded(opened, encoder):
        rows += batch.number
        done += batch.share
        collected.add(*batch.rows)
        tally.join(batch.tally)
        if progress is not None:
            progress("reading", done)
    if not rows:
        tables.warn_of_none(table)
    every = None if capped is None or not tally.compares else count_rows(capped.all())
    counts = collected.counts()
    if tally.compares:
        tally.every = (every or counts).digest
    if capped is not None:
        tally.counted = counts.total
    if capped is not None and tells_units:
        tally.units, tally.unit_rows = capped.units, capped.rows
    if progress is not None:
        progress("reading", 1.0)
    return counts


class _Encoded(NamedTuple):
    """A batch of rows, encoded."""

    rows: EncodedRows
    tally: Tally
    number: int
    share: float


def _encoded(table: tables.Table, encoder: Encoder) -> Iterator[_Encoded]:
    """Yield the rows of a table, encoded, in order or as cores read them; the first refusal in the table is raised."""
    pieces = tables.pieces(table, _PIECE)
    if pieces is None or len(pieces) == 1 or any(piece.groups is None for piece in pieces):
        yield from _encode(encoder, 1, table)
    else:
        files = len({piece.path for piece in pieces})
        yield from as_they_come(os.cpu_count() or 1, partial(_encode, encoder, files), pieces)


def _encode(encoder: Encoder, files: int, table: tables.Table | tables.Piece) -> Iterator[_Encoded]:
    """Yield the rows of a table, or of a piece of one of so many files."""
    before = 0.0
    for batch in tables.batches(table, encoder.wanted):
        tally = Tally()
        yield _Encoded(encoder.rows(batch, tally), tally, len(batch.rows), (batch.done - before) / files)
        before = batch.done
