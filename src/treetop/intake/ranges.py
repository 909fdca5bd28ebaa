"""Counting many rows, by all cores at once: they are put into ranges of their paths, and each is counted by itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.basics.sorting import MOST_RANGES, RANGE, fences_of, find_ranges, move
from treetop.intake.counts import Counts

Words = NDArray[np.uint64]
Weights = NDArray[np.int64]

_MANY = 1 << 18
"""Fewer rows are sorted in one piece; so many at least are put into ranges at a time."""


class Paths(NamedTuple):
    """The packed paths of some rows."""

    keys: Sequence[Words]
    """One array a word."""
    weights: Weights | None
    """How many records each stands for; 1 when None."""

    def __len__(self) -> int:
        return len(self.keys[0])

    @staticmethod
    def join(parts: Sequence[Paths]) -> Paths:
        """Return those of all parts, of which there is at least one, in memory of their own."""
        keys = [np.concatenate(words) for words in zip(*(part.keys for part in parts), strict=True)]
        weights = [part.weights for part in parts if part.weights is not None]
        return Paths(keys, np.concatenate(weights) if weights else None)


def count_rows(parts: list[Paths]) -> Counts:
    """Return the counts of all rows. The parts, of which there is at least one, are given away."""
    ranges = min(sum(map(len, parts)) // RANGE, MOST_RANGES)
    is_plain = len(parts[0].keys) == 1 and parts[0].weights is None  # such are sorted at once, and in place
    if is_plain or ranges < _MANY // RANGE:
        whole = Paths.join(parts)
        parts.clear()
        return Counts.from_keys(list(whole.keys), whole.weights)
    fences = fences_of([part.keys[0] for part in parts], ranges)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        put = list(pool.map(partial(_put_in_ranges, fences), _taken(parts)))
        counted = list(pool.map(partial(_count_range, put), range(len(fences) + 1)))
    put.clear()
    return Counts.join(counted)


def _taken(parts: list[Paths]) -> Iterator[list[Paths]]:
    """Yield parts that have many rows together, from the last one on, and forget them."""
    while parts:
        some = [parts.pop()]
        while parts and sum(map(len, some)) < _MANY:
            some.append(parts.pop())
        yield some


class _Put(NamedTuple):
    """Paths that stand range by range."""

    start: NDArray[np.int64]
    """Where each range starts, and where the last one ends."""
    paths: Paths


def _put_in_ranges(fences: Words, parts: Sequence[Paths]) -> _Put:
    rows = Paths.join(parts)
    found, sizes = find_ranges(fences, rows.keys[0])
    start = np.concatenate([[0], np.cumsum(sizes)])
    keys = [_put(word, found, start) for word in rows.keys]
    weights = None if rows.weights is None else _put(rows.weights.view(np.uint64), found, start).view(np.int64)
    return _Put(start, Paths(keys, weights))


def _put(values: Words, found: NDArray[np.uint16], start: NDArray[np.int64]) -> Words:
    out = np.empty_like(values)
    move(values, found, start[:-1].copy(), out)
    return out


def _count_range(put: Iterable[_Put], index: int) -> Counts:
    whole = Paths.join([_slice(paths, int(start[index]), int(start[index + 1])) for start, paths in put])
    return Counts.from_keys(list(whole.keys), whole.weights)


def _slice(paths: Paths, start: int, stop: int) -> Paths:
    weights = None if paths.weights is None else paths.weights[start:stop]
    return Paths([word[start:stop] for word in paths.keys], weights)
