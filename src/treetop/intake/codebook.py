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
_LOW = U(0xFFFFFFFF)


class Codebook:
    """Finds the leaf number of codes.

    >>> Codebook(pa.array(["01001", "01003"])).find(pa.array(["01003", "1003", None]))
    array([ 1, -1, -1])
    """

    def __init__(self, codes: pa.StringArray) -> None:
        self._start, self._letters = buffers(codes)
        bits = max((len(codes) + len(codes) // 3).bit_length(), 4)
        self._shift = U(64 - bits)
        self._slots = np.zeros(1 << bits, np.uint64)
        hashes = np.empty(len(codes), np.uint64)
        _hash_all(self._start, self._letters, hashes)
        _enter_all(hashes, self._shift, self._slots)

    def find(self, codes: pa.StringArray) -> NDArray[np.int64]:
        """Return the leaf numbers of codes, -1 where one is missing or is not there."""
        start, letters = buffers(codes)
        hashes = np.empty(len(codes), np.uint64)
        found = np.empty(len(codes), np.int64)
        # One short loop after the other: so the processor waits for many places of memory at once.
        _hash_all(start, letters, hashes)
        _guess_all(hashes, self._shift, self._slots, found)
        _verify_all(start, letters, self._start, self._letters, hashes, self._shift, self._slots, found)
        if codes.null_count:
            found[codes.is_null().to_numpy(zero_copy_only=False)] = -1
        return found


@kernel
def _hash(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> np.uint64:
    mixed = (end - at) * _MULTIPLIER
    while at + U(8) <= end:
        mixed = (mixed ^ word(data, at)) * _MULTIPLIER
        mixed ^= mixed >> U(29)
        at += U(8)
    mixed = (mixed ^ short_word(data, at, end)) * _MULTIPLIER
    return mixed ^ (mixed >> U(29))


@kernel
def _hash_all(start: NDArray[np.int32], letters: NDArray[np.uint8], hashes: NDArray[np.uint64]) -> None:
    for row in range(len(hashes)):
        hashes[row] = _hash(letters, U(start[row]), U(start[row + 1]))


@kernel
def _enter_all(hashes: NDArray[np.uint64], shift: np.uint64, slots: NDArray[np.uint64]) -> None:
    """Fill the slots: half of the hash above, the leaf number plus one below."""
    last = U(len(slots) - 1)
    for leaf in range(len(hashes)):
        slot = hashes[leaf] >> shift
        while slots[slot] != U(0):
            slot = (slot + U(1)) & last
        slots[slot] = (hashes[leaf] << U(32)) | U(leaf + 1)


@kernel
def _probe(slots: NDArray[np.uint64], slot: np.uint64, half: np.uint64) -> np.uint64:
    """Return the next slot with this half of a hash, or an empty one."""
    last = U(len(slots) - 1)
    while slots[slot] != U(0) and slots[slot] >> U(32) != half:
        slot = (slot + U(1)) & last
    return slot


@kernel
def _guess_all(
    hashes: NDArray[np.uint64], shift: np.uint64, slots: NDArray[np.uint64], found: NDArray[np.int64]
) -> None:
    """Find the first code with half of the hash in common; -1 where there is none."""
    for row in range(len(hashes)):
        slot = _probe(slots, hashes[row] >> shift, hashes[row] & _LOW)
        found[row] = np.int64(slots[slot] & _LOW) - 1


@kernel
def _verify_all(
    start: NDArray[np.int32],
    letters: NDArray[np.uint8],
    code_start: NDArray[np.int32],
    code_letters: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    shift: np.uint64,
    slots: NDArray[np.uint64],
    found: NDArray[np.int64],
) -> None:
    """Compare every letter; search on where half of a hash has misled."""
    for row in range(len(found)):
        at, end = U(start[row]), U(start[row + 1])
        if found[row] < 0 or _is_code(U(found[row]), letters, at, end, code_start, code_letters):
            continue
        slot = _probe(slots, hashes[row] >> shift, hashes[row] & _LOW)
        found[row] = -1
        while slots[slot] != U(0):
            leaf = (slots[slot] & _LOW) - U(1)
            if _is_code(leaf, letters, at, end, code_start, code_letters):
                found[row] = np.int64(leaf)
                break
            slot = _probe(slots, (slot + U(1)) & U(len(slots) - 1), hashes[row] & _LOW)


@kernel
def _is_code(
    leaf: np.uint64,
    letters: NDArray[np.uint8],
    at: np.uint64,
    end: np.uint64,
    code_start: NDArray[np.int32],
    code_letters: NDArray[np.uint8],
) -> bool:
    there = U(code_start[leaf])
    if U(code_start[leaf + U(1)]) - there != end - at:
        return False
    while at + U(8) <= end:
        if word(letters, at) != word(code_letters, there):
            return False
        at += U(8)
        there += U(8)
    while at < end:
        if letters[at] != code_letters[there]:
            return False
        at += U(1)
        there += U(1)
    return True
