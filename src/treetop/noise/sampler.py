"""Noise by slot: the exact noise of any slot of a keyed stream, however the slots are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import index
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treetop.errors import NumberError
from treetop.noise.balls import WORD_BITS
from treetop.noise.block import block_rejection
from treetop.noise.keystream import Key, Keystream, Words
from treetop.noise.law import Law
from treetop.noise.table import UNDECIDED, two_sided

_CHUNK_WORDS = 32768  # 256 kB, which stays in a core's own cache
_TABLE_ENTRIES = 2**18  # 2 MB; a larger table leaves the cache, and is no faster than block rejection


class Sampler(Protocol):
    """A way to turn a fixed number of words into one exact sample."""

    @property
    def words_per_slot(self) -> int:
        """How many words belong to a slot."""

    def draw(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
        """Write a sample for each slot's words, and return how many are UNDECIDED."""

    def resolve(self, words: Sequence[int], more: Iterator[int]) -> int:
        """The sample of one slot's words, with as many further words as it takes."""


@lru_cache(maxsize=64)
def sampler(law: Law) -> Sampler:
    """The table of a law, or block rejection where the table would be too large."""
    entries = 2 * (law.margin(Fraction(2, 2**WORD_BITS)) + 1)
    if entries <= _TABLE_ENTRIES:
        return two_sided(law)
    return block_rejection(law)


class NoiseStream:
    """An endless sequence of independent samples of a law; for one thread at a time.

    The sample in a slot depends on the law, the key and the slot only. A key must serve one law: two laws
    over the same words would give correlated noise.

    >>> from treetop.noise import DiscreteGaussian
    >>> stream = NoiseStream(DiscreteGaussian(Fraction(400)), Key(bytes(32)))
    >>> whole, part = np.empty(100, np.int64), np.empty(10, np.int64)
    >>> stream.fill(whole, slot=0)
    >>> stream.fill(part, slot=50)
    >>> (part == whole[50:60]).all()
    np.True_
    """

    def __init__(self, law: Law, key: Key, *, words: Words | None = None) -> None:
        self._sampler = sampler(law)
        self._key = key
        self._words = Keystream(key.derive("words")) if words is None else words

    def fill(self, out: NDArray[np.int64], slot: int) -> None:
        """Write the noise of the slots [slot, slot + len(out))."""
        if out.dtype != np.int64:
            raise TypeError(f"noise is written as int64, not {out.dtype}")
        if out.ndim != 1 or not out.flags.c_contiguous or not out.flags.writeable:
            raise NumberError(f"noise is written to one row of memory, not to an array of shape {out.shape} in pieces")
        slot = index(slot)
        if slot < 0:
            raise NumberError(f"slots are counted from 0, and this one is {slot}")
        width = self._sampler.words_per_slot
        chunk = _CHUNK_WORDS // width
        buffer = np.empty(0 if width == 1 else width * min(chunk, len(out)), dtype=np.uint64)
        for start in range(0, len(out), chunk):
            piece = out[start : start + chunk]
            words = piece.view(np.uint64) if width == 1 else buffer[: width * len(piece)]
            self._words.fill(words, width * (slot + start))
            if self._sampler.draw(words, piece):
                for i in np.flatnonzero(piece == UNDECIDED).tolist():
                    piece[i] = self._resolve(slot + start + i)

    def _resolve(self, slot: int) -> int:
        words = np.empty(self._sampler.words_per_slot, dtype=np.uint64)
        self._words.fill(words, slot * len(words))
        return self._sampler.resolve(words.tolist(), _endless(Keystream(self._key.derive("more", slot))))


def _endless(keystream: Keystream) -> Iterator[int]:
    word = np.empty(1, dtype=np.uint64)
    position = 0
    while True:
        keystream.fill(word, position)
        yield int(word[0])
        position += 1
