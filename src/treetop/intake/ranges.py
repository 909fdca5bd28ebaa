"""Counting many rows, by all cores at once.

Where something moves along with their paths, they are put into ranges first, and each range is sorted by itself. It is
small enough for a core's own cache, where that takes half the time. Where one range ends and the next begins is chosen
from the rows, so that all have about as many.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.basics.buffers import U
from treetop.basics.kernel import kernel
from treetop.intake.counts import Counts

Words = NDArray[np.uint64]
Weights = NDArray[np.int64]

_MANY = 1 << 18
"""Fewer rows are sorted in one piece; so many at least are put into ranges at a time."""
_RANGE = 1 << 16
"""About how many rows a range has: half a megabyte."""
_MOST_RANGES = 1 << 10
_TOGETHER = 256
"""Rows whose range is looked for at the same time."""
_SAMPLED = 16
"""Rows that are looked at for each range."""


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
    ranges = min(sum(map(len, parts)) // _RANGE, _MOST_RANGES)
    is_plain = len(parts[0].keys) == 1 and parts[0].weights is None  # such are sorted at once, and in place
    if is_plain or ranges < _MANY // _RANGE:
        whole = Paths.join(parts)
        parts.clear()
        return Counts.from_keys(list(whole.keys), whole.weights)
    fences = _fences(parts, 1 << ranges.bit_length())
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        put = list(pool.map(partial(_put_in_ranges, fences), _taken(parts)))
        counted = list(pool.map(partial(_count_range, put), range(len(fences) + 1)))
    put.clear()
    return Counts.join(counted)


def _fences(parts: Sequence[Paths], ranges: int) -> Words:
    """Return the least first word of each range but the first: one fewer than ranges, which are a power of two."""
    every = max(sum(map(len, parts)) // (_SAMPLED * ranges), 1)
    sample = np.sort(np.concatenate([part.keys[0][::every] for part in parts]))
    return sample[np.arange(1, ranges) * len(sample) // ranges]


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
    found, sizes = np.empty(len(rows), np.uint16), np.zeros(len(fences) + 1, np.int64)
    _find_ranges(rows.keys[0], fences, found, sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    keys = [_put(word, found, start) for word in rows.keys]
    weights = None if rows.weights is None else _put(rows.weights.view(np.uint64), found, start).view(np.int64)
    return _Put(start, Paths(keys, weights))


def _put(values: Words, found: NDArray[np.uint16], start: NDArray[np.int64]) -> Words:
    out = np.empty_like(values)
    _move(values, found, start[:-1].copy(), out)
    return out


@kernel
def _find_ranges(keys: Words, fences: Words, found: NDArray[np.uint16], sizes: NDArray[np.int64]) -> None:
    """Write the range of each row, and how many rows each has.

    It is found by halving, a few hundred rows together: so no step waits for the one before, and none is mispredicted.
    """
    at = np.empty(_TOGETHER, np.uint64)
    for begin in range(0, len(keys), _TOGETHER):
        rows = min(_TOGETHER, len(keys) - begin)
        for i in range(rows):
            at[i] = U(0)
        step = U((len(fences) + 1) >> 1)
        while step > U(0):
            for i in range(rows):
                above = at[i] + step
                at[i] = above if fences[above - U(1)] <= keys[begin + i] else at[i]
            step >>= U(1)
        for i in range(rows):
            found[begin + i] = at[i]
            sizes[at[i]] += 1


@kernel
def _move(values: Words, found: NDArray[np.uint16], place: NDArray[np.int64], out: Words) -> None:
    """Write the values out range by range, from the place on where each begins."""
    for i in range(len(values)):
        at = place[found[i]]
        out[at] = values[i]
        place[found[i]] = at + 1


def _count_range(put: Iterable[_Put], index: int) -> Counts:
    whole = Paths.join([_slice(paths, int(start[index]), int(start[index + 1])) for start, paths in put])
    return Counts.from_keys(list(whole.keys), whole.weights)


def _slice(paths: Paths, start: int, stop: int) -> Paths:
    weights = None if paths.weights is None else paths.weights[start:stop]
    return Paths([word[start:stop] for word in paths.keys], weights)
