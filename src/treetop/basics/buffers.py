"""The bytes of Arrow text as 64-bit words, for compiled functions.

Indices are unsigned throughout: a signed index may count from the end, and asking whether it does costs more than
everything else that is done here with a byte.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

U = np.uint64

_LINE = 8
"""Words of a line of the processor's cache."""


def buffers(texts: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where each text starts, one longer than there are texts, and the bytes of all of them."""
    _, offsets, data = texts.buffers()
    start = np.zeros(1, np.int32) if offsets is None else np.frombuffer(offsets, np.int32)
    letters = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return start[texts.offset : texts.offset + len(texts) + 1], letters


def aligned(words: int) -> NDArray[np.uint64]:
    """Return room for so many words, which begins where a line of the processor's cache does."""
    room = np.empty(words + _LINE - 1, np.uint64)
    before = -(room.ctypes.data // 8) % _LINE
    return room[before : before + words]


@kernel
def word(data: NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Return the eight bytes from `at`, the first one lowest: a single load."""
    return (
        U(data[at])
        | U(data[at + U(1)]) << U(8)
        | U(data[at + U(2)]) << U(16)
        | U(data[at + U(3)]) << U(24)
        | U(data[at + U(4)]) << U(32)
        | U(data[at + U(5)]) << U(40)
        | U(data[at + U(6)]) << U(48)
        | U(data[at + U(7)]) << U(56)
    )


@kernel
def short_word(data: NDArray[np.uint8], at: np.uint64, end: np.uint64) -> np.uint64:
    """Return the fewer than eight bytes from `at` to `end`."""
    if end >= U(8):  # one load, and what came before falls out: in two steps, as a shift by 64 has no meaning
        return word(data, end - U(8)) >> U(8) >> (U(56) - (end - at) * U(8))
    found, shift = U(0), U(0)
    while at < end:
        found |= U(data[at]) << shift
        at += U(1)
        shift += U(8)
    return found
