"""A codebook: from codes to leaf numbers, by one table for all batches, in which every code has a slot of its own.

Codes fall into small groups by a hash. Each group has a displacement, found once, that sends all its codes to slots
that no other code takes (Belazzougui, Botelho and Dietzfelbinger, "Hash, displace, and compress", 2009). So a code
that is there is found in the first slot: no branch is mispredicted, which would take longer than all else. Where there
is no such displacement, it is found in one of the next slots. Arrow's own lookup builds its table anew at each call,
and is several times slower on what remains.
"""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import U, aligned, buffers, short_word, siphash, word
from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel

_MULTIPLIER = U(0x9FB21C651E98DF25)
_OTHER = U(0xD6E8FEB86659FD93)
_INLINE = U(15)
"""A code of up to so many bytes is its own fingerprint. A longer one has a hash of 120 bits, under a key of its book:
that one of 10^12 codes is taken for one of 10^7 has a chance of 2^-57, whatever the codes are."""
_FREE = U(255) << U(56)
"""A value that no code has as the second word of its fingerprint."""
_TOGETHER = 256
_SLOT = U(4)
"""Words of a slot: two of a fingerprint, the leaf number, and one more, so that no slot lies across two cache lines."""
_MANY = 1 << 20
"""More codes than that have no displacements: to find them would take longer than it saves."""
_MOST_TRIES = 1 << 12

_Words = Words
_Ints = Ints


class Codebook:
    """Finds the leaf number of codes; of a code that is there twice, the first.

    >>> Codebook(pa.array(["01001", "01003"])).find(pa.array(["01003", "1003", None]))
    array([ 1, -1, -1])
    """

    def __init__(self, codes: pa.StringArray) -> None:
        self._seed = np.frombuffer(os.urandom(16), np.uint64).copy()
        self._slots = aligned(int(_SLOT) * (len(codes) + len(codes) // 3 + 1))
        one, two, mixed = (np.empty(len(codes), np.uint64) for _ in range(3))
        _fingerprints(*buffers(codes), 0, self._seed, one, two)
        _mix_all(one, two, self._seed[0], mixed)
        self._shift = U(64 - max((min(len(codes), _MANY) // 4).bit_length(), 1))
        self._displacement = np.zeros(1 << (64 - int(self._shift)), np.uint16)
        if len(codes) <= _MANY:
            _displace(mixed, self._shift, self._displacement, len(self._slots) // int(_SLOT))
        _enter_all(one, two, mixed, self._shift, self._displacement, self._slots)

    def find(self, codes: pa.StringArray) -> _Ints:
        """Return the leaf numbers of codes, -1 where one is missing or is not there."""
        found = np.empty(len(codes), np.int64)
        _find(*buffers(codes), self._seed, self._shift, self._displacement, self._slots, found)
        if codes.null_count:
            found[codes.is_null().to_numpy(zero_copy_only=False)] = -1
        return found

    def find_coded(self, indices: pa.Array, codes: pa.StringArray) -> _Ints:
        """Return the leaf numbers of rows that point into a dictionary: each of its codes is looked up once."""
        found = np.append(self.find(codes), -1)  # the last is for missing values
        leaves: _Ints = found[indices.cast(pa.int64()).fill_null(len(codes)).to_numpy()]
        return leaves


@kernel
def _fingerprints(
    start: NDArray[np.int32], letters: NDArray[np.uint8], begin: int, seed: _Words, one: _Words, two: _Words
) -> None:
    """Write the fingerprints of texts from `begin` on: of a short one its bytes and, highest, how many there are."""
    long = False
    for i in range(len(one)):
        at, end = U(start[begin + i]), U(start[begin + i + 1])
        length = end - at
        if length < U(8):
            one[i], two[i] = short_word(letters, at, end), length << U(56)
        elif length <= _INLINE:
            one[i], two[i] = word(letters, at), short_word(letters, at + U(8), end) | length << U(56)
        else:
            one[i], two[i], long = U(0), _FREE, True
    if long:
        _hash_long(start, letters, begin, seed, one, two)


@kernel
def _hash_long(
    start: NDArray[np.int32], letters: NDArray[np.uint8], begin: int, seed: _Words, one: _Words, two: _Words
) -> None:
    """Write the hashes of long texts: not where the short ones are dealt with, whose loop it would slow down."""
    for i in range(len(one)):
        if two[i] == _FREE:
            at, end = U(start[begin + i]), U(start[begin + i + 1])
            one[i] = siphash(seed[0], seed[1], letters, at, end)
            two[i] = siphash(seed[1], seed[0], letters, at, end) >> U(8) | (_INLINE + U(1)) << U(56)


@kernel
def _mix(one: np.uint64, two: np.uint64, seed: np.uint64) -> np.uint64:
    mixed = (one ^ (one >> U(32)) ^ seed) * _MULTIPLIER ^ two * _OTHER
    return (mixed ^ (mixed >> U(29))) * _MULTIPLIER


@kernel
def _slot(mixed: np.uint64, displacement: np.uint64, slots: np.uint64) -> np.uint64:
    """Return the number of the slot to which a displacement sends a code."""
    moved = (mixed ^ displacement * _OTHER) * _MULTIPLIER
    return (moved >> U(32)) * slots >> U(32)


def _displace(mixed: _Words, shift: np.uint64, displacement: NDArray[np.uint16], slots: int) -> None:
    """Find a displacement for every group of codes, which are given by their hashes."""
    mixed = np.sort(mixed)
    first = np.searchsorted(mixed >> shift, np.arange(len(displacement) + 1, dtype=np.uint64))
    groups = np.argsort(first[:-1] - first[1:], kind="stable")  # the largest first: later there is less room
    _displace_all(groups, first, mixed, displacement, np.zeros(slots, np.uint8))


@kernel
def _displace_all(
    groups: _Ints, first: _Ints, mixed: _Words, displacement: NDArray[np.uint16], taken: NDArray[np.uint8]
) -> None:
    """Find for each group the first displacement that sends all its codes to free slots; 0 if none of many does."""
    for group in groups:
        begin, end = first[group], first[group + 1]
        tried, at = 0, begin
        while at < end and tried < _MOST_TRIES:
            slot = _slot(mixed[at], U(tried), U(len(taken)))
            if not taken[slot]:
                taken[slot] = 1
                at += 1
                continue
            for own in range(begin, at):
                taken[_slot(mixed[own], U(tried), U(len(taken)))] = 0
            tried, at = tried + 1, begin
        if at == end:
            displacement[group] = tried


@kernel
def _enter_all(
    one: _Words, two: _Words, mixed: _Words, shift: np.uint64, displacement: NDArray[np.uint16], slots: _Words
) -> None:
    """Write every code into its slot, or into the next that is free."""
    number = U(len(slots)) // _SLOT
    for at in range(1, len(slots), int(_SLOT)):
        slots[at] = _FREE
    for leaf in range(len(one)):
        slot = _slot(mixed[leaf], U(displacement[mixed[leaf] >> shift]), number)
        while slots[slot * _SLOT + U(1)] != _FREE:
            slot = slot + U(1) if slot + U(1) < number else U(0)
        first = slot * _SLOT
        slots[first], slots[first + U(1)], slots[first + U(2)] = one[leaf], two[leaf], U(leaf)


@kernel
def _mix_all(one: _Words, two: _Words, seed: np.uint64, mixed: _Words) -> None:
    for i in range(len(mixed)):
        mixed[i] = _mix(one[i], two[i], seed)


@kernel
def _find(
    start: NDArray[np.int32],
    letters: NDArray[np.uint8],
    seed: _Words,
    shift: np.uint64,
    displacement: NDArray[np.uint16],
    slots: _Words,
    found: _Ints,
) -> np.uint64:
    """Find the leaf of each row; -1 where there is none.

    The slots of a few hundred rows are read before any is looked at, so that the processor waits for many places of
    memory at once. The returned value has no meaning: it keeps the compiler from leaving that out.
    """
    one, two, place = np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64)
    number, read = U(len(slots)) // _SLOT, U(0)
    for begin in range(0, len(found), _TOGETHER):
        rows = min(_TOGETHER, len(found) - begin)
        _fingerprints(start, letters, begin, seed, one[:rows], two[:rows])
        for i in range(rows):
            mixed = _mix(one[i], two[i], seed[0])
            place[i] = _slot(mixed, U(displacement[mixed >> shift]), number) * _SLOT
        for i in range(rows):
            read ^= slots[place[i]]
        for i in range(rows):
            at = place[i]
            while (slots[at] != one[i] or slots[at + U(1)] != two[i]) and slots[at + U(1)] != _FREE:
                at = at + _SLOT if at + _SLOT < U(len(slots)) else U(0)
            found[begin + i] = np.int64(slots[at + U(2)]) if slots[at + U(1)] == two[i] else -1
    return read
