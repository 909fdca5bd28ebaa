"""Counts: the private table as sparse leaf counts, sorted so that the leaves under any node are one range.

A leaf is addressed by its path: at every level of the spine, the rank of the child among its siblings. The ranks are
packed level by level into 64-bit words, coarse levels in the high bits, so that sorting the words sorts the leaves in
spine order. Most spines fit one word; a longer path simply takes more. Where a level refines several attributes, it has
the ranks by each of them, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import sort_rows, sort_words
from treetop._util.dtypes import Flags, Ints, Words
from treetop._util.kernel import kernel
from treetop.domain.spine import LARGEST_TOTAL, Spine
from treetop.errors import DataError
from treetop.noise import Key
from treetop.noise.keystream import KEY_BYTES, digest_of, sum_of_hashes

KEPT_LEAVES = 1 << 16
"""Results for hierarchies with at most this many leaves are cached for the next run."""

TOO_MANY = "the counts add up to more than 2^53: check that the count column holds counts"
_WORD = 64
T = TypeVar("T", bound=np.generic)
_Keys = tuple[Words, ...]
_Parts = tuple[tuple[Words | None, ...], ...]


@dataclass(frozen=True)
class Digit:
    """Where the rank of one level stands in the packed path."""

    word: int
    shift: int
    bits: int


def layout(spine: Spine) -> tuple[Digit, ...]:
    """Return the place of every level: of its ranks, attribute by attribute where it refines several."""
    return tuple(
        Digit(digits[-1].word, digits[-1].shift, sum(digit.bits for digit in digits)) for digits in ranks_of(spine)
    )


def ranks_of(spine: Spine) -> tuple[tuple[Digit, ...], ...]:
    """Return, by level and attribute that it refines, the place of the rank; those of a level are in one word."""
    digits = []
    word, free = 0, _WORD
    for level in spine.levels:
        sizes = [(part.widest - 1).bit_length() for part in level.parts]
        if sum(sizes) > free:
            word, free = word + 1, _WORD
        own = []
        for bits in sizes:
            free -= bits
            own.append(Digit(word, free, bits))
        digits.append(tuple(own))
    return tuple(digits)


def packed_paths(spine: Spine) -> _Parts:
    """Return, per word and attribute, what each leaf of the attribute adds to the key (None: nothing)."""
    is_small = max(tree.sizes[-1] for tree in spine.trees) <= KEPT_LEAVES
    return _kept_paths(spine) if is_small else _packed_paths(spine)


def _packed_paths(spine: Spine) -> _Parts:
    words = layout(spine)[-1].word + 1
    parts: list[list[Words | None]] = [[None] * len(spine.attributes) for _ in range(words)]
    for level, digits in zip(spine.levels, ranks_of(spine), strict=True):
        for part, digit in zip(level.parts, digits, strict=True):
            if digit.bits == 0:
                continue
            tree = spine.trees[part.attribute]
            rank = np.arange(tree.sizes[part.depth]) - part.first[part.above]
            path = rank[tree.ancestors(part.depth)].astype(np.uint64) << np.uint64(digit.shift)
            already = parts[digit.word][part.attribute]
            parts[digit.word][part.attribute] = path if already is None else already | path
    return tuple(map(tuple, parts))


_kept_paths = lru_cache(maxsize=4)(_packed_paths)


def go_down(spine: Spine, index: int, counts: Counts, node: Sequence[Ints] | Ints) -> None:
    """Turn the nodes of leaves at the level above one, given by attribute and in place, into those at the level."""
    level = spine.levels[index - 1]
    for part, digit in zip(level.parts, ranks_of(spine)[index - 1], strict=True):
        # A shift by 64 has no meaning, and with no bits there is no rank to read.
        rank = (counts.keys[digit.word] >> np.uint64(digit.shift % _WORD)) & np.uint64(2**digit.bits - 1)
        node[part.attribute][:] = part.first[node[part.attribute]] + rank.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Counts:
    """Sparse leaf counts in spine order: private, and read by the measuring step only."""

    keys: tuple[Words, ...] = field(repr=False)
    """The packed paths of the leaves that are present, ascending and distinct: one array a word."""
    before: Ints = field(repr=False)
    """The sum of all counts before each leaf; one longer than the keys, so ranges are subtractions."""

    @staticmethod
    def from_leaves(spine: Spine, leaves: Sequence[NDArray[np.integer]], counts: Ints | None = None) -> Counts:
        """Count records given as one array of leaf numbers per attribute, each worth `counts` (1 when None)."""
        for leaf, tree, name in zip(leaves, spine.trees, spine.attributes, strict=True):
            if leaf.dtype.kind not in "iu" or (len(leaf) and not 0 <= leaf.min() <= leaf.max() < tree.sizes[-1]):
                raise DataError(f"the leaves of {name!r} must be whole numbers from 0 to {tree.sizes[-1] - 1}")
        if counts is not None and counts.dtype.kind not in "iu":
            raise DataError(f"counts are whole numbers, not {counts.dtype}")
        return Counts.from_keys(pack(spine, leaves), None if counts is None else counts.copy())

    @staticmethod
    def from_keys(keys: list[Words], counts: Ints | None = None) -> Counts:
        """Count packed paths (one array a word), each worth `counts`, default 1; the arrays may be overwritten."""
        if counts is None and len(keys) == 1:  # in their own memory and in as much again
            words = keys[0]
            room = np.empty(len(words) + 1, np.uint64)
            sort_words(words, room)
            leaves = _make_distinct((words,), room.view(np.int64))
            return Counts((_shortened(words, leaves),), _shortened(room, leaves + 1).view(np.int64))
        if counts is not None and len(counts):
            lowest = int(counts.argmin())
            if counts[lowest] < 0:
                raise DataError(f"row {lowest + 1} has the count {counts[lowest]}: counts cannot be negative")
            # In floating point first: there the sum cannot wrap around.
            if counts.sum(dtype=np.float64) > 2 * LARGEST_TOTAL or counts.sum() > LARGEST_TOTAL:
                raise DataError(TOO_MANY)
            if not counts.all():
                present = counts > 0
                keys, counts = [key[present] for key in keys], counts[present]
        keys, counts = sort_rows(keys, counts)
        bounds = np.empty(len(keys[0]) + 1, np.int64)
        leaves = _make_distinct(tuple(keys), bounds)
        bounds = _shortened(bounds, leaves + 1)
        before = bounds if counts is None else _before(counts)[bounds]
        return Counts(tuple(_shortened(key, leaves) for key in keys), before)

    def with_more(self, more: Counts) -> Counts:
        """Return the counts of two tables together."""
        if self.total + more.total > LARGEST_TOTAL:
            raise DataError(TOO_MANY)
        room = len(self) + len(more)
        keys, number = tuple(np.empty(room, np.uint64) for _ in self.keys), np.empty(room, np.int64)
        leaves = _merge_sorted(self.keys, np.diff(self.before), more.keys, np.diff(more.before), keys, number)
        return Counts(tuple(key[:leaves] for key in keys), _before(number[:leaves]))

    @staticmethod
    def join(parts: Sequence[Counts]) -> Counts:
        """Return the counts of tables, of which each has only leaves that come after those of the ones before."""
        totals = [part.total for part in parts]
        if sum(totals) > LARGEST_TOTAL:
            raise DataError(TOO_MANY)
        keys = tuple(np.concatenate(words) for words in zip(*(part.keys for part in parts), strict=True))
        before = np.empty(len(keys[0]) + 1, np.int64)
        before[0] = 0
        at, total = 1, 0
        for part, own in zip(parts, totals, strict=True):
            np.add(part.before[1:], total - part.before[0], out=before[at : at + len(part)])
            at, total = at + len(part), total + own
        return Counts(keys, before)

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.before[-1] - self.before[0])  # of a part, what comes before it does not count

    def __len__(self) -> int:
        return len(self.before) - 1

    def __repr__(self) -> str:
        return "Counts(private)"  # neither the total nor the number of leaves is public

    @cached_property
    def digest(self) -> bytes:
        """A hash of all counts, by which tables are compared. It never leaves the process."""
        return self.digest_under(Key(bytes(KEY_BYTES)))

    def digest_under(self, key: Key) -> bytes:
        """Return a keyed hash of all counts. It binds the noise to the data and never leaves those who measure."""
        return digest_of([self.hashes(key)])

    def hashes(self, key: Key) -> Words:
        """Return the sum of the hashes of all leaves: the hashes of parts add up to the hash of the whole, in any
        order."""
        return sum_of_hashes(key, self.keys, self.before)

    def part(self, begin: int, end: int) -> Counts:
        """Return the counts of some leaves that follow each other."""
        return Counts(tuple(word[begin:end] for word in self.keys), self.before[begin : end + 1])

    def only(self, there: Flags) -> Counts:
        """Return the counts of some leaves."""
        number = np.diff(self.before)[there]
        return Counts(tuple(key[there] for key in self.keys), _before(number))


def pack(spine: Spine, leaves: Sequence[NDArray[np.integer]] | NDArray[np.integer]) -> list[Words]:
    """Return the packed paths of leaves given as one array of leaf numbers per attribute: one array a word."""
    keys = []
    for parts in packed_paths(spine):
        key = np.zeros(len(leaves[0]), dtype=np.uint64)
        for part, leaf in zip(parts, leaves, strict=True):
            if part is not None:
                key |= part.take(leaf)  # several times faster than indexing
        keys.append(key)
    return keys


@kernel
def _is_before(one: _Keys, i: int, two: _Keys, j: int) -> bool:
    for word in range(len(one)):
        if one[word][i] != two[word][j]:
            return bool(one[word][i] < two[word][j])
    return False


@kernel
def _merge_sorted(one: _Keys, one_number: Ints, two: _Keys, two_number: Ints, keys: _Keys, number: Ints) -> int:
    """Write the leaves of two sorted tables in order, those of both once; return how many there are."""
    i, j, at = 0, 0, 0
    while i < len(one_number) or j < len(two_number):
        second = i == len(one_number) or (j < len(two_number) and _is_before(two, j, one, i))
        for word in range(len(keys)):
            keys[word][at] = two[word][j] if second else one[word][i]
        if second:
            number[at] = two_number[j]
            j += 1
        else:
            number[at] = one_number[i]
            if j < len(two_number) and not _is_before(one, i, two, j):
                number[at] += two_number[j]
                j += 1
            i += 1
        at += 1
    return at


def _shortened(values: NDArray[T], length: int) -> NDArray[T]:
    """Return the beginning of an array that is given away, without the rest; to copy it would need fresh memory."""
    if values.base is not None:
        return values[:length].copy()
    values.resize(length, refcheck=False)
    return values


@kernel
def _make_distinct(keys: _Keys, bounds: Ints) -> int:
    """Move the distinct ones of sorted keys to the front, and write where each begins, and all end; return how many."""
    rows, leaves = len(keys[0]), 0
    for row in range(rows):
        if row == 0 or _is_before(keys, leaves - 1, keys, row):
            for word in range(len(keys)):
                keys[word][leaves] = keys[word][row]
            bounds[leaves] = row
            leaves += 1
    bounds[leaves] = rows
    return leaves


def _before(number: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(number)])
