"""SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short texts that nobody without the key can foresee."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.buffers import U, short_word, word
from treetop.basics.kernel import kernel

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@kernel
def siphash(key0: np.uint64, key1: np.uint64, data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> np.uint64:
    """Return the hash of the bytes from `at` to `end`."""
    length = end - at
    state = _start(key0, key1)
    while at + U(8) <= end:
        state = _absorb(state, word(data, at))
        at += U(8)
    return _finish(_absorb(state, short_word(data, at, end) | (length << U(56))))


@kernel
def siphash_texts(
    key0: np.uint64, key1: np.uint64, start: NDArray[np.int32], letters: NDArray[np.uint8], hashes: NDArray[np.uint64]
) -> None:
    """Write the hash of each text, of which `buffers` tells where it starts."""
    for row in range(len(hashes)):
        hashes[row] = siphash(key0, key1, letters, U(start[row]), U(start[row + 1]))


@kernel
def siphash_word(key0: np.uint64, key1: np.uint64, message: np.uint64) -> np.uint64:
    """Return the hash of eight bytes, given as a word."""
    return _finish(_absorb(_absorb(_start(key0, key1), message), U(8) << U(56)))


@kernel
def _start(key0: np.uint64, key1: np.uint64) -> State:
    return (
        key0 ^ U(0x736F6D6570736575),
        key1 ^ U(0x646F72616E646F6D),
        key0 ^ U(0x6C7967656E657261),
        key1 ^ U(0x7465646279746573),
    )


@kernel
def _rotated(number: np.uint64, bits: int) -> np.uint64:
    return (number << U(bits)) | (number >> U(64 - bits))


@kernel
def _round(state: State) -> State:
    a, b, c, d = state
    a += b
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16) ^ c
    a += d
    d = _rotated(d, 21) ^ a
    c += b
    b = _rotated(b, 17) ^ c
    c = _rotated(c, 32)
    return a, b, c, d


@kernel
def _absorb(state: State, message: np.uint64) -> State:
    a, b, c, d = state
    a, b, c, d = _round(_round((a, b, c, d ^ message)))
    return a ^ message, b, c, d


@kernel
def _finish(state: State) -> np.uint64:
    a, b, c, d = state
    a, b, c, d = _round(_round(_round(_round((a, b, c ^ U(0xFF), d)))))
    return a ^ b ^ c ^ d
