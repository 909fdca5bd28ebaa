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
from treetop.noise.table import UNDECIDED, Table, two_sided

_CHUNK_WORDS = 32768  # 256 kB, which stays in a core's own cache
_RUN_WORDS = 4 * _CHUNK_WORDS  # runs are prepared apart, which costs more than what leaves the cache
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

    def fill_runs(self, out: NDArray[np.int64], place: NDArray[np.uint64], size: NDArray[np.int64]) -> None:
        """Write the noise of runs of slots, one after the other: where each begins, and how many it has.

        A place is a number of two words. With a first word of 0, the second is the slot of `fill`.
        """
        width = self._sampler.words_per_slot
        chunk = _RUN_WORDS // width
        buffer = np.empty(0 if width == 1 else width * min(chunk, len(out)), dtype=np.uint64)
        done = 0
        for places, sizes in _pieces(place, size, chunk):
            piece = out[done : done + int(sizes.sum())]
            if isinstance(self._sampler, Table):  # one word a slot, looked up where it is
                undecided = self._sampler.draw_runs(self._words.blocks(places, sizes, 1), places[1], sizes, piece)
            else:
                words = buffer[: width * len(piece)]
                self._words.fill_runs(words, places, sizes, width)
                undecided = self._sampler.draw(words, piece)
            if undecided:
                before = np.cumsum(sizes) - sizes
                for i in np.flatnonzero(piece == UNDECIDED).tolist():
                    run = int(np.searchsorted(before, i, side="right")) - 1
                    slot = (int(places[0, run]) << WORD_BITS) + int(places[1, run]) + i - int(before[run])
                    piece[i] = self._resolve(slot)
            done += len(piece)

    def _resolve(self, slot: int) -> int:
        words = np.empty(self._sampler.words_per_slot, dtype=np.uint64)
        place = np.array(divmod(slot, 1 << WORD_BITS), np.uint64).reshape(2, 1)
        self._words.fill_runs(words, place, np.ones(1, np.int64), len(words))
        return self._sampler.resolve(words.tolist(), _endless(Keystream(self._key.derive("more", slot))))


def _pieces(
    place: NDArray[np.uint64], size: NDArray[np.int64], chunk: int
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Cut runs of slots into pieces of at most so many slots."""
    after = np.cumsum(size)
    total = int(after[-1]) if len(after) else 0
    if total <= chunk:
        yield place, size
        return
    for start in range(0, total, chunk):
        stop = min(start + chunk, total)
        first, last = np.searchsorted(after, [start, stop - 1], side="right").tolist()
        places, sizes = place[:, first : last + 1].copy(), size[first : last + 1].copy()
        skipped = start - int(after[first] - size[first])
        places[1, 0] += np.uint64(skipped)
        sizes[0] -= skipped
        sizes[-1] -= int(after[last]) - stop
        yield places, sizes


def _endless(keystream: Keystream) -> Iterator[int]:
    word = np.empty(1, dtype=np.uint64)
    position = 0
    while True:
        keystream.fill(word, position)
        yield int(word[0])
        position += 1
