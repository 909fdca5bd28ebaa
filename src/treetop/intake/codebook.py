"""A codebook: from codes to leaf numbers, by one hash table for all batches of a table.

Arrow's own lookup builds its table anew at each call, and is three to five times slower on what remains.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.buffers import U, buffers, short_word, word
from treetop.basics.kernel import kernel

_MULTIPLIER = U(0x9FB21C651E98DF25)
_OTHER = U(0xD6E8FEB86659FD93)
_INLINE = U(15)
"""A code of up to so many bytes is its own fingerprint; of a longer one it tells only where to look."""
_NONE = U(255) << U(56)
"""What no short code has as its second word."""
_TOGETHER = 256
"""So many rows are looked up together."""
_SLOT = U(3)
"""Words of a slot: the two of a fingerprint, and the leaf number plus one; with 0 there it is free."""


class Codebook:
    """Finds the leaf number of codes.

    >>> Codebook(pa.array(["01001", "01003"])).find(pa.array(["01003", "1003", None]))
    array([ 1, -1, -1])
    """

    def __init__(self, codes: pa.StringArray) -> None:
        self._start, self._letters = buffers(codes)
        self._has_long = bool((np.diff(self._start) > _INLINE).any())
        bits = max((len(codes) + len(codes) // 3).bit_length(), 4)
        self._shift = U(64 - bits)
        self._slots = np.zeros(int(_SLOT) << bits, np.uint64)
        _enter_all(self._start, self._letters, self._shift, self._slots)

    def find(self, codes: pa.StringArray) -> NDArray[np.int64]:
        """Return the leaf numbers of codes, -1 where one is missing or is not there."""
        texts, found = buffers(codes), np.empty(len(codes), np.int64)
        _find_short(*texts, self._shift, self._slots, found)
        if self._has_long:
            # One short loop after the other: so the processor waits for many places of memory at once.
            _guess_long(*texts, self._shift, self._slots, found)
            _verify_long(*texts, self._start, self._letters, self._shift, self._slots, found)
        if codes.null_count:
            found[codes.is_null().to_numpy(zero_copy_only=False)] = -1
        return found

    def find_coded(self, indices: pa.Array, codes: pa.StringArray) -> NDArray[np.int64]:
        """Return the leaf numbers of rows that point into a dictionary: each of its codes is looked up once."""
        found = np.append(self.find(codes), -1)  # the last is for missing values
        leaves: NDArray[np.int64] = found[indices.cast(pa.int64()).fill_null(len(codes)).to_numpy()]
        return leaves


@kernel
def _fingerprint(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64]:
    return _bytes(data, at, end) if end - at <= _INLINE else _hash(data, at, end)


@kernel
def _bytes(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the bytes of a short code and, highest, how many there are."""
    length = end - at
    if length < U(8):
        return short_word(data, at, end), length << U(56)
    return word(data, at), short_word(data, at + U(8), end) | length << U(56)


@kernel
def _hash(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return a hash of a long code, and its length, in a way that no short code has."""
    length = end - at
    mixed = length * _MULTIPLIER
    while at + U(8) < end:
        mixed = (mixed ^ word(data, at)) * _MULTIPLIER
        mixed ^= mixed >> U(29)
        at += U(8)
    return mixed ^ word(data, end - U(8)), length | (_INLINE + U(1)) << U(56)


@kernel
def _first_slot(one: np.uint64, two: np.uint64, shift: np.uint64) -> np.uint64:
    mixed = (one ^ (one >> U(32))) * _MULTIPLIER ^ two * _OTHER
    return (mixed ^ (mixed >> U(29))) * _MULTIPLIER >> shift


@kernel
def _probe(slots: NDArray[np.uint64], slot: np.uint64, last: np.uint64, one: np.uint64, two: np.uint64) -> np.uint64:
    """Return the leaf number plus one of the next slot with this fingerprint, or 0 before a free one."""
    at = slot * _SLOT
    while slots[at + U(2)] != U(0) and (slots[at] != one or slots[at + U(1)] != two):
        slot = (slot + U(1)) & last
        at = slot * _SLOT
    return U(slots[at + U(2)])


@kernel
def _last(slots: NDArray[np.uint64]) -> np.uint64:
    return U(len(slots)) // _SLOT - U(1)


@kernel
def _enter_all(
    start: NDArray[np.int32], letters: NDArray[np.uint8], shift: np.uint64, slots: NDArray[np.uint64]
) -> None:
    last = _last(slots)
    for leaf in range(len(start) - 1):
        one, two = _fingerprint(letters, U(start[leaf]), U(start[leaf + 1]))
        slot = _first_slot(one, two, shift)
        while slots[slot * _SLOT + U(2)] != U(0):
            slot = (slot + U(1)) & last
        at = slot * _SLOT
        slots[at], slots[at + U(1)], slots[at + U(2)] = one, two, U(leaf + 1)


@kernel
def _find_short(
    start: NDArray[np.int32],
    letters: NDArray[np.uint8],
    shift: np.uint64,
    slots: NDArray[np.uint64],
    found: NDArray[np.int64],
) -> np.uint64:
    """Find the leaf of each row that has a short code; -1 where there is none.

    The slots of a few hundred rows are read before any is looked at, so that the processor waits for many places of
    memory at once. What is returned means nothing: it keeps the compiler from leaving that out.
    """
    last, read = _last(slots), U(0)
    one, two, slot = np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64), np.empty(_TOGETHER, np.uint64)
    for begin in range(0, len(found), _TOGETHER):
        rows = min(_TOGETHER, len(found) - begin)
        for i in range(rows):
            at, end = U(start[begin + i]), U(start[begin + i + 1])
            one[i], two[i] = _bytes(letters, at, end) if end - at <= _INLINE else (U(0), _NONE)
            slot[i] = _first_slot(one[i], two[i], shift)
        for i in range(rows):
            read ^= slots[slot[i] * _SLOT + U(2)]
        for i in range(rows):
            found[begin + i] = np.int64(_probe(slots, slot[i], last, one[i], two[i])) - 1
    return read


@kernel
def _guess_long(
    start: NDArray[np.int32],
    letters: NDArray[np.uint8],
    shift: np.uint64,
    slots: NDArray[np.uint64],
    found: NDArray[np.int64],
) -> None:
    """Find the first leaf with the hash of each row that has a long code."""
    last = _last(slots)
    for row in range(len(found)):
        at, end = U(start[row]), U(start[row + 1])
        if end - at > _INLINE:
            one, two = _hash(letters, at, end)
            found[row] = np.int64(_probe(slots, _first_slot(one, two, shift), last, one, two)) - 1


@kernel
def _verify_long(
    start: NDArray[np.int32],
    letters: NDArray[np.uint8],
    code_start: NDArray[np.int32],
    code_letters: NDArray[np.uint8],
    shift: np.uint64,
    slots: NDArray[np.uint64],
    found: NDArray[np.int64],
) -> None:
    """Compare every letter of long codes; search on where a hash has misled."""
    last = _last(slots)
    for row in range(len(found)):
        at, end = U(start[row]), U(start[row + 1])
        if found[row] < 0 or end - at <= _INLINE or _is_code(U(found[row]), letters, at, end, code_start, code_letters):
            continue
        one, two = _hash(letters, at, end)
        slot = _first_slot(one, two, shift)
        found[row] = -1
        while slots[slot * _SLOT + U(2)] != U(0):
            leaf = slots[slot * _SLOT + U(2)] - U(1)
            if _is_code(leaf, letters, at, end, code_start, code_letters):
                found[row] = np.int64(leaf)
                break
            slot = (slot + U(1)) & last


@kernel
def _is_code(
    leaf: np.uint64,
    letters: NDArray[np.uint8],
    at: np.uint64,
    end: np.uint64,
    code_start: NDArray[np.int32],
    code_letters: NDArray[np.uint8],
) -> bool:
    """Tell whether a long code is that of a leaf: word by word, of which the last two may overlap."""
    there, its_end = U(code_start[leaf]), U(code_start[leaf + U(1)])
    if its_end - there != end - at:
        return False
    while at + U(8) < end:
        if word(letters, at) != word(code_letters, there):
            return False
        at += U(8)
        there += U(8)
    return bool(word(letters, end - U(8)) == word(code_letters, its_end - U(8)))
