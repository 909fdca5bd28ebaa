"""Reading a private table into memory: batches of rows are encoded, on all cores where its files allow, and counted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from treetop.basics.progress import Progress
from treetop.basics.threads import as_they_come
from treetop.domain.spine import Spine
from treetop.intake.bound import Bound, Bounder
from treetop.intake.counts import Counts
from treetop.intake.dropping import MadeTable
from treetop.intake.encode import Encoder, Rows, Unknown
from treetop.intake.gather import Gathered
from treetop.intake.ranges import count_rows
from treetop.intake.tally import Tally
from treetop.sources import table as tables

_PIECE = 1 << 20
"""About so many rows are read by one core before it goes on with others."""


def read_counts(
    table: tables.Table,
    spine: Spine,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    unknown: Unknown = "error",
    bound: Bound | None = None,
    progress: Progress | None = None,
    tally: Tally | None = None,
) -> Counts:
    """Read a private table of records, or of rows with a count, and count its leaves, batch by batch.

    `columns` names the column of each attribute where it differs from the attribute's own name. With a `bound`, at most
    so many records of each unit are counted. A table without rows is one like any other, and may be what its neighbour
    with one unit less looks like: it is counted, and the steward is warned by the log. A `tally` is told what had
    unknown codes and how many units there were.
    """
    tally = Tally() if tally is None else tally
    return read_encoded(table, Encoder(spine, columns, count, unknown, bound), progress, tally)


def read_encoded(table: tables.Table, encoder: Encoder, progress: Progress | None, tally: Tally) -> Counts:
    """Read a private table as an encoder does, and count its leaves."""
    tally.unknown, bound = encoder.unknown, encoder.bound
    bounder = None if bound is None else Bounder(bound, encoder.words)
    collected = Gathered() if bounder is None else bounder
    made = table if isinstance(table, MadeTable) else None
    rows, done = 0, 0.0
    for batch in _encoded(table if made is None else made.opened(tally), encoder):
        rows += batch.number
        done += batch.share
        collected.add(*batch.rows)
        tally.join(batch.tally)
        if progress is not None:
            progress("reading", done)
    if not rows:
        tables.warn_of_none(table)
    every = None if bounder is None or not tally.compares else count_rows(bounder.all())
    counts = collected.counts()
    if tally.compares:
        tally.every = (every or counts).digest
    if bounder is not None:
        tally.counted = counts.total
    if bounder is not None and (made is None or not made.one_row_each):
        tally.units, tally.unit_rows = bounder.units, bounder.rows
    if progress is not None:
        progress("reading", 1.0)
    return counts


class _Encoded(NamedTuple):
    """A batch of rows, encoded."""

    rows: Rows
    """What was encoded of them."""
    tally: Tally
    """What had unknown codes."""
    number: int
    """How many rows there were."""
    share: float
    """What part of the table they are, as far as it is known."""


def _encoded(table: tables.Table, encoder: Encoder) -> Iterator[_Encoded]:
    """Yield the rows of a table, encoded: in order, or as they come where each core reads groups of rows by itself.

    In which order rows are counted makes no difference. Of several that are refused, the first in the table is named.
    """
    pieces = tables.pieces(table, _PIECE)
    if pieces is None or len(pieces) == 1 or any(piece.groups is None for piece in pieces):
        yield from _encode(encoder, 1, table)
        return
    files = len({piece.path for piece in pieces})
    yield from as_they_come(os.cpu_count() or 1, partial(_encode, encoder, files), pieces)


def _encode(encoder: Encoder, files: int, table: tables.Table | tables.Piece) -> Iterator[_Encoded]:
    """Yield the rows of a table, or of a piece of one of so many files."""
    before = 0.0
    for batch in tables.batches(table, encoder.wanted):
        tally = Tally()
        yield _Encoded(encoder.rows(batch, tally), tally, len(batch.rows), (batch.done - before) / files)
        before = batch.done
