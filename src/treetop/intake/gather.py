"""Gathering the rows of a table as counts: memory grows with the leaves that are there, not with the records.

Rows are collected until there are many. Then they are sorted, and equal ones become one leaf with its count. Sorted
blocks of about the same size are merged as they come, so that there are never more than a few.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from treetop.intake.counts import Counts
from treetop.intake.ranges import Paths, Weights, Words, count_rows

MOST_ROWS = 1 << 25
"""So many rows are collected before they are sorted: as paths of one word, 256 MB."""


class Gathered:
    """The rows of a table, and the leaves that the first of them have become."""

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._rows: list[Paths] = []
        self._number = 0
        self._blocks: list[Counts] = []

    def add(self, keys: Sequence[Words], weights: Weights | None, ids: pa.StringArray | None) -> None:
        """Add rows: their packed paths, how many records each stands for (1 when None), and their units."""
        self._rows.append(Paths(keys, weights))
        self._number += len(keys[0])
        if self._number >= self._most:
            self._absorb()

    def counts(self) -> Counts:
        """Return the counts of all leaves of the rows, which are at least one batch."""
        if self._rows:
            self._absorb()
        while len(self._blocks) > 1:
            self._merge_last()
        return self._blocks.pop()

    def _absorb(self) -> None:
        """Sort rows to a block, and merge blocks until each is more than twice as large as the one after it."""
        self._blocks.append(count_rows(self._rows))
        self._rows, self._number = [], 0
        while len(self._blocks) > 1 and len(self._blocks[-2]) <= 2 * len(self._blocks[-1]):
            self._merge_last()

    def _merge_last(self) -> None:
        later, earlier = self._blocks.pop(), self._blocks.pop()
        self._blocks.append(earlier.with_more(later))
