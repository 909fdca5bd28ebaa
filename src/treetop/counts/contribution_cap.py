"""Count rows by leaf on all cores, and keep at most a capped number of records of each unit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import (
    MOST_RANGES,
    RANGE,
    U,
    buffers,
    copy_into,
    differing_bits,
    fences_of,
    find_ranges,
    move,
    siphash,
    siphash_texts,
    siphash_word,
    sort_rows,
)
from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel
from treetop.counts.counts import Counts
from treetop.domain.spine import LARGEST_TOTAL
from treetop.domain.unit import IdClean, Unit
from treetop.noise import Key

Weights = Ints

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

    start: Ints
    paths: Paths


def _put_in_ranges(fences: Words, parts: Sequence[Paths]) -> _Put:
    rows = Paths.join(parts)
    range_of, sizes = find_ranges(fences, rows.keys[0])
    start = np.concatenate([[0], np.cumsum(sizes)])

    def put(values: Words) -> Words:
        out = np.empty_like(values)
        move(values, range_of, start[:-1].copy(), out)
        return out

    weights = None if rows.weights is None else put(rows.weights.view(np.uint64)).view(np.int64)
    return _Put(start, Paths([put(word) for word in rows.keys], weights))


def _count_range(put: Iterable[_Put], index: int) -> Counts:
    parts = []
    for start, (keys, weights) in put:
        rows = slice(*start[index : index + 2])
        parts.append(Paths([word[rows] for word in keys], None if weights is None else weights[rows]))
    whole = Paths.join(parts)
    return Counts.from_keys(list(whole.keys), whole.weights)


# Contribution bounds: of every unit, a uniform random choice of at most m records is kept.

_BUCKET_BITS = 10
_BUCKETS = 1 << _BUCKET_BITS

_MORE_BITS = 4
"""As many bits as the number of rows has are compared first, and so many more."""

_FEW = 32
"""Up to so many records of a unit are sorted by insertion, in memory that is used again for the next unit."""


@dataclass(frozen=True)
class ContributionCap:
    """How contributions are bounded."""

    id: str
    most: int
    key: Key
    """Seed of the random choice: the same key keeps the same records of the same table."""
    clean: tuple[IdClean, ...] = ()
    """Which differences of spelling do not tell units apart."""
    distinct: bool = False
    """Whether the records of one unit in one leaf are one."""

    @staticmethod
    def of(unit: Unit, key: Key) -> ContributionCap | None:
        """Return the cap of a unit; None if it has no id column."""
        if unit.id is None:
            return None
        return ContributionCap(unit.id, unit.contributions, key, unit.id_clean, unit.distinct)

    def hashes(self, ids: pa.StringArray) -> Words:
        """Return the two halves of every unit's hash, each by a key of its own."""
        secret = np.frombuffer(self.key.secret, "<u8").astype(np.uint64)
        hashes, texts = np.empty((2, len(ids)), np.uint64), buffers(ids)
        siphash_texts(secret[0], secret[1], *texts, hashes[0])
        siphash_texts(secret[2], secret[3], *texts, hashes[1])
        return hashes


class CappedRecords:
    """Collects the records of a table, batch by batch, and keeps at most so many of each unit."""

    def __init__(self, cap: ContributionCap, words: int) -> None:
        self._cap = cap
        self._words = words
        self.rows = 0
        self.units = 0
        """How many units they are of; known when those that are kept are."""
        self._batches: list[tuple[Ints, list[Words], Weights | None]] = []

    def add(self, keys: Sequence[Words], weights: Weights | None, ids: pa.StringArray) -> None:
        """Add rows: their packed paths, how many records each stands for (1 when None), and their units."""
        self.rows += len(ids)
        hashes = self._cap.hashes(ids)
        # Sorted into buckets by their first bits, all rows of a unit are later found together, in little memory.
        bucket = (hashes[0] >> U(64 - _BUCKET_BITS)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        start = np.searchsorted(bucket[order], np.arange(_BUCKETS + 1))
        columns = [column[order] for column in (*hashes, *keys)]
        self._batches.append((start, columns, None if weights is None else weights[order]))

    def all(self) -> list[Paths]:
        """Return the packed paths of all records so far."""
        return [Paths(columns[2:], weights) for _, columns, weights in self._batches]

    def counts(self) -> Counts:
        """Return the counts of the records that are kept of the rows, which are at least one batch."""
        return count_rows(self.kept())

    def kept(self) -> list[Paths]:
        """Return the packed paths of the records that are kept."""
        rows = sum(np.diff(start) for start, *_ in self._batches)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            parts = list(pool.map(self._keep, np.flatnonzero(rows).tolist() or [0]))
        self._batches.clear()
        self.units = sum(units for _, units in parts)
        return [paths for paths, _ in parts]

    def _keep(self, bucket: int) -> tuple[Paths, int]:
        here = [(slice(*start[bucket : bucket + 2]), columns, w) for start, columns, w in self._batches]
        high, low, *words = (
            np.concatenate([np.empty(0, np.uint64), *(columns[index][rows] for rows, columns, _ in here)])
            for index in range(2 + self._words)
        )
        weights = [weight[rows] for rows, _, weight in here if weight is not None]
        number = np.concatenate(weights) if weights else None
        return keep_of_units(high, low, words, number, self._cap.most, self._cap.distinct)


def keep_of_units(
    high: Words, low: Words, words: Sequence[Words], weights: Weights | None, most: int, distinct: bool = False
) -> tuple[Paths, int]:
    """Return the kept paths of some units, known by hashes, with all their rows here; and how many units."""
    if distinct:
        once = _first_of_each(high, low, words, weights)
        high, low, words, weights = high[once], low[once], [word[once] for word in words], None
    paths = np.stack(words, axis=1)
    weight = np.ones(len(high), np.int64) if weights is None else weights
    kept = np.empty(len(high), np.int64)
    order, near = _in_order(high)
    letters = paths.view(np.uint8).ravel()
    units = _keep_some(order, near, high, low, letters, weight, min(most, LARGEST_TOTAL), kept)
    rows = np.flatnonzero(kept)
    return Paths([word[rows] for word in words], None if weights is None else kept[rows]), units


def _in_order(high: Words) -> tuple[Ints, Words]:
    """Return an order by the first bits of hashes, enough to tell most units apart, and these bits."""
    shift = U(max(differing_bits(high).bit_length() - len(high).bit_length() - _MORE_BITS, 0))
    (near,), order = sort_rows([high >> shift], np.arange(len(high)))
    assert order is not None
    return order, near


def _first_of_each(high: Words, low: Words, words: Sequence[Words], weights: Weights | None) -> Ints:
    """Return one row of every unit and leaf; rows that stand for no record are none."""
    rows = np.arange(len(high)) if weights is None else np.flatnonzero(weights > 0)
    columns = [column[rows] for column in (*words, low, high)]
    order = np.lexsort(columns)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    return rows[order[new]]


@kernel
def _keep_some(
    order: Ints,
    near: Words,
    high: Words,
    low: Words,
    letters: NDArray[np.uint8],
    weight: Weights,
    most: int,
    kept: Weights,
) -> int:
    """Write how many of each row's records are kept, and return the number of units; `near` rows may be of one unit."""
    ranks, positions = np.empty(_FEW, np.uint64), np.empty(_FEW, np.int64)
    start, units = 0, 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and near[stop] == near[start]:
            stop += 1
        while start < stop:
            end = _bring_together(order, start, stop, high, low)
            total = np.int64(0)  # a plain 0 would have `_choose` compiled for that too
            for at in range(start, end):
                total += weight[order[at]]
                kept[order[at]] = weight[order[at]]
            if total > most:
                _keep_of_unit(order[start:end], total, high, low, letters, weight, most, kept, ranks, positions)
            start = end
            units += 1
    return units


@kernel
def _bring_together(order: Ints, start: int, stop: int, high: Words, low: Words) -> int:
    """Move the rows of the first row's unit before all others; return where they end."""
    end = start + 1
    for at in range(start + 1, stop):
        if low[order[at]] == low[order[start]] and high[order[at]] == high[order[start]]:
            order[at], order[end] = order[end], order[at]
            end += 1
    return end


@kernel
def _keep_of_unit(
    rows: Ints,
    total: np.int64,
    high: Words,
    low: Words,
    letters: NDArray[np.uint8],
    weight: Weights,
    most: int,
    kept: Weights,
    ranks: Words,
    positions: Ints,
) -> None:
    """Write how many of each row's records are kept of a unit that has more in all."""
    # The unit's hash is the key for all that is random about it: one order for one set of records, then positions.
    key0, key1 = high[rows[0]], low[rows[0]]
    width = U(len(letters) // len(weight))
    rank = ranks[: len(rows)] if len(rows) <= _FEW else np.empty(len(rows), np.uint64)
    for i in range(len(rows)):
        at = U(rows[i]) * width
        rank[i] = siphash(key0, key1, letters, at, at + width)
    _order(rows, rank)
    keeping = most <= total - most  # else it is fewer to choose what to drop
    number = most if keeping else total - most
    chosen = positions[:number] if number <= _FEW else np.empty(number, np.int64)
    _choose(key1, key0, total, chosen)
    at_chosen, seen = 0, 0
    for row in rows:
        seen += weight[row]
        inside = 0
        while at_chosen < len(chosen) and chosen[at_chosen] < seen:
            at_chosen += 1
            inside += 1
        kept[row] = inside if keeping else weight[row] - inside


@kernel
def _order(rows: Ints, rank: Words) -> None:
    """Sort the rows by their rank; rows of one rank are alike."""
    if len(rows) > _FEW:
        copy_into(rows, rows[np.argsort(rank)])
        return
    for i in range(1, len(rows)):
        row, key, at = rows[i], rank[i], i
        while at > 0 and rank[at - 1] > key:
            rows[at], rank[at] = rows[at - 1], rank[at - 1]
            at -= 1
        rows[at], rank[at] = row, key


@kernel
def _choose(key0: np.uint64, key1: np.uint64, total: np.int64, chosen: Ints) -> None:
    """Fill in distinct positions from 0 … total - 1, all sets alike probable, in order."""
    mask = U(total - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> U(shift)
    found, drawn = 0, U(0)
    while found < len(chosen):
        for i in range(found, len(chosen)):
            position = U(total)
            while position >= U(total):
                position = siphash_word(key0, key1, drawn) & mask
                drawn += U(1)
            chosen[i] = np.int64(position)
        _sort(chosen)
        found = 1
        for i in range(1, len(chosen)):  # what was drawn twice is drawn again
            if chosen[i] != chosen[found - 1]:
                chosen[found] = chosen[i]
                found += 1


@kernel
def _sort(values: Ints) -> None:
    if len(values) > _FEW:
        values.sort()
        return
    for i in range(1, len(values)):
        value, at = values[i], i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
