"""Gathering the rows of a table as counts: memory grows with the leaves that are there, not with the records.

Rows are collected until there are many. Then they are sorted, and equal ones become one leaf with its count. Sorted
blocks of about the same size are merged as they come, so that there are never more than a few.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from treetop.intake.counts import Counts
from treetop.intake.ranges import Paths, Weights, Words, count_rows

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
            self._put_together()
        if self._number >= self._most:
            self._absorb()

    def counts(self) -> Counts:
        """Return the counts of all leaves of the rows, which are at least one batch."""
        if self._rows or self._filled:
            self._absorb()
        while len(self._blocks) > 1:
            self._merge_last()
        return self._blocks.pop()

    def _put_together(self) -> None:
        """Copy plain paths to one place, with room for those that may come: what is not written to takes no memory."""
        if len(self._together) < self._number:
            room = np.empty(max(self._most, self._number) + len(self._rows[-1]), np.uint64)
            room[: self._filled] = self._together[: self._filled]
            self._together = room
        for (own,), _ in self._rows:
            self._together[self._filled : self._filled + len(own)] = own
            self._filled += len(own)
        self._rows = []

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
