"""Gathering the rows of a table as counts: memory grows with the leaves that are there, not with the records.

Rows are collected until there are many. Then they are sorted, and equal ones become one leaf with its count, in a
thread of their own while the next rows are decoded. Sorted blocks of about the same size are merged as they come, so
that there are never more than a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.intake.counts import Counts

MOST_ROWS = 1 << 24
"""So many rows are collected before they are sorted: as paths of one word, 128 MB."""

Words = NDArray[np.uint64]
Weights = NDArray[np.int64]


class Gathered:
    """The rows of a table, and the leaves that the first of them have become."""

    def __init__(self, words: int, most: int = MOST_ROWS) -> None:
        self._words, self._most = words, most
        self._rows = 0
        self._keys: list[list[Words]] = self._none()
        self._weights: list[Weights] = []
        self._sorting: Future[None] | None = None
        self._blocks: list[Counts] = []

    def _none(self) -> list[list[Words]]:
        return [[] for _ in range(self._words)]

    def add(self, keys: Sequence[Words], weights: Weights | None, ids: pa.StringArray | None) -> None:
        """Add rows: their packed paths, how many records each stands for (1 when None), and their units."""
        for word, key in zip(self._keys, keys, strict=True):
            word.append(key)
        if weights is not None:
            self._weights.append(weights)
        self._rows += len(keys[0])
        if self._rows >= self._most:
            self._sort_ahead()

    def counts(self) -> Counts:
        """Return the counts of all leaves."""
        if self._sorting is None:
            return Counts.from_keys(*self._taken())
        self._wait()
        self._absorb(*self._taken())
        while len(self._blocks) > 1:
            self._merge_last()
        return self._blocks.pop()

    def _taken(self) -> tuple[list[Words], Weights | None]:
        """Return the rows that are collected, and begin anew."""
        weights = np.concatenate(self._weights) if self._weights else None
        keys = []
        while self._keys:
            keys.append(np.concatenate([np.empty(0, np.uint64), *self._keys.pop(0)]))
        self._rows, self._keys, self._weights = 0, self._none(), []
        return keys, weights

    def _sort_ahead(self) -> None:
        """Let what is collected be sorted while more is read; at most one block is being sorted."""
        self._wait()
        pool = ThreadPoolExecutor(1)
        self._sorting = pool.submit(self._absorb, *self._taken())
        pool.shutdown(wait=False)  # the thread ends with this block, whatever becomes of the table

    def _wait(self) -> None:
        if self._sorting is not None:
            self._sorting.result()

    def _absorb(self, keys: list[Words], weights: Weights | None) -> None:
        """Sort rows to a block, and merge blocks until each is more than twice as large as the one after it."""
        self._blocks.append(Counts.from_keys(keys, weights))
        while len(self._blocks) > 1 and len(self._blocks[-2]) <= 2 * len(self._blocks[-1]):
            self._merge_last()

    def _merge_last(self) -> None:
        later, earlier = self._blocks.pop(), self._blocks.pop()
        self._blocks.append(earlier.with_more(later))
