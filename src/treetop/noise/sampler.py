"""Noise by slot: the exact noise of any slot of a keyed stream, however the slots are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, repeat
from math import ceil, floor, log2
from operator import index, mul
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from treetop._util.arrays import U
from treetop._util.dtypes import Ints, Words
from treetop._util.kernel import kernel
from treetop.errors import LossError, NumberError
from treetop.noise.keystream import Key, Keystream, WordSource
from treetop.noise.law import WORD_BITS, Law, Uniform, ball, certain_floors, decided, precision, smallest

# The inversion table of a law: one 64-bit word gives one exact sample, or asks for more bits.

UNDECIDED = np.iinfo(np.int64).min
"""Value in the slot of a sample that its words do not determine."""

LARGEST_WORD = 2**WORD_BITS - 1
_TABLE_GUARD_BITS = 64
_GUIDE_BITS = 16


@dataclass(frozen=True, eq=False)
class CumulativeTable:
    """The thresholds of consecutive values, and where to start looking for a word among them."""

    words_per_slot: ClassVar[int] = 1

    thresholds: Words
    """t_k for k = first, first + 1, …; the last is 2⁶⁴ − 1."""
    guide: NDArray[np.int32]
    """For each value of a word's top bits, the first threshold that is not below all such words."""
    shift: int
    """How many low bits of a word the guide does not see."""
    first: int
    cumulative: Callable[[int, int], arb]

    def draw(self, words: Words, out: Ints) -> int:
        """Write the sample of each word, and return how many are UNDECIDED; `out` may be words' memory."""
        check_words(words, out, self.words_per_slot)
        return lookup(words, self.thresholds, self.guide, self.shift, self.first, out)

    def draw_runs(self, pairs: Words, low: Words, size: Ints, out: Ints) -> int:
        """Write the samples of runs of words, which stand in pairs; return how many are UNDECIDED.

        A run that begins at an odd position has the second word of its first pair.
        """
        if out.ndim != 1 or out.dtype != np.int64 or len(out) != size.sum():
            raise NumberError(f"runs of {size.sum()} slots do not make {out.shape} samples as {out.dtype}")
        return _lookup_runs(pairs, low, size, self.thresholds, self.guide, self.shift, self.first, out)

    def resolve(self, words: Sequence[int], more: Iterator[int]) -> int:
        """The sample of a word, by exact comparisons."""
        uniform = Uniform(words[0], more)
        near = self.first + int(np.searchsorted(self.thresholds, np.uint64(words[0])))
        return smallest(lambda k: uniform.below(lambda bits: self.cumulative(k, bits)), near)


def check_words(words: Words, out: Ints, per_slot: int) -> None:
    """Refuse memory that is not of the kind and size that samples are made of and written to."""
    fits = words.ndim == out.ndim == 1 and len(words) == per_slot * len(out)
    if not fits or words.dtype != np.uint64 or out.dtype != np.int64:
        raise NumberError(f"{per_slot} words of 64 bits make a sample: {words.shape} do not make {out.shape}")


@kernel
def lookup(words: Words, thresholds: Words, guide: NDArray[np.int32], shift: int, first: int, out: Ints) -> int:
    """Write the value of each word's interval, or UNDECIDED on a threshold; return how many are undecided."""
    undecided = 0
    for i in range(words.size):
        out[i] = _value(words[i], thresholds, guide, shift, first)
        undecided += out[i] == UNDECIDED
    return undecided


@kernel
def _lookup_runs(
    pairs: Words, low: Words, size: Ints, thresholds: Words, guide: NDArray[np.int32], shift: int, first: int, out: Ints
) -> int:
    """Apply `lookup` to runs of words, each of which begins a pair of its own."""
    undecided, at, to = 0, U(0), U(0)
    for i in range(len(size)):
        if size[i] > 0:
            odd, number = low[i] & U(1), U(size[i])
            for k in range(number):
                out[to + U(k)] = _value(pairs[at + odd + U(k)], thresholds, guide, shift, first)
                undecided += out[to + U(k)] == UNDECIDED
            to += number
            at += (odd + number + U(1)) & ~U(1)
    return undecided


@kernel
def _value(word: np.uint64, thresholds: Words, guide: NDArray[np.int32], shift: int, first: int) -> np.int64:
    """Return the value of a word's interval, or UNDECIDED on a threshold."""
    k = U(guide[word >> U(shift)])
    while thresholds[k] < word:
        k += U(1)
    return np.int64(UNDECIDED) if thresholds[k] == word else first + np.int64(k)


@lru_cache(maxsize=16)
def two_sided(law: Law) -> CumulativeTable:
    """The table of a law."""

    def below_and_total(bits: int) -> tuple[arb, arb]:
        total = law.enclose_total(bits)
        return (total - 1) / 2, total

    upper = _thresholds(law, below_and_total)
    # F(−k−1) = 1 − F(k), and F(k)·2⁶⁴ is not whole, or its floor would not have been certain.
    return _table(np.concatenate((LARGEST_WORD - upper[::-1], upper)), -len(upper), law.enclose_cumulative)


@lru_cache(maxsize=16)
def one_sided(law: Law) -> CumulativeTable:
    """The table of a law under the condition that the sample is not negative."""

    def below_and_total(bits: int) -> tuple[arb, arb]:
        return arb(0), (law.enclose_total(bits) + 1) / 2

    def cumulative(k: int, bits: int) -> arb:
        if k < 0:
            return arb(0)
        with precision(bits + _TABLE_GUARD_BITS):
            return 1 - law.enclose_tail(k, bits) / law.enclose_tail(-1, bits)

    return _table(_thresholds(law, below_and_total), 0, cumulative)


def _thresholds(law: Law, below_and_total: Callable[[int], tuple[arb, arb]]) -> Words:
    """t_k for k = 0, 1, … up to 2⁶⁴ − 1, from the weight below 0 and the whole weight."""

    def attempt(bits: int) -> list[int] | None:
        with precision(bits + _TABLE_GUARD_BITS):
            below, total = below_and_total(bits + _TABLE_GUARD_BITS)
            scale = 2**WORD_BITS / total
            sums = accumulate((scale * weight for weight in law.weights()), initial=scale * below)
            next(sums)
            return certain_floors(sums, last=LARGEST_WORD)

    return np.array(decided(attempt), dtype=np.uint64)


def _table(thresholds: Words, first: int, cumulative: Callable[[int, int], arb]) -> CumulativeTable:
    bits = min(_GUIDE_BITS, len(thresholds).bit_length() + 4)
    shift = WORD_BITS - bits
    starts = np.arange(2**bits, dtype=np.uint64) << np.uint64(shift)
    guide = np.searchsorted(thresholds, starts).astype(np.int32)
    for shared in (thresholds, guide):
        shared.flags.writeable = False
    return CumulativeTable(thresholds, guide, shift, first, cumulative)


# Block rejection: exact samples of laws too wide for a table, at a fixed number of words a slot.

ATTEMPTS = 4
WORDS_PER_ATTEMPT = 3
_BLOCKS_PER_DEVIATION = 64
_DIGIT_BITS = 13
_GUARD_BITS = 64


@dataclass(frozen=True, eq=False)
class Block:
    """The sampler of one law with blocks of 2^`block_bits` values."""

    words_per_slot: ClassVar[int] = ATTEMPTS * WORDS_PER_ATTEMPT

    law: Law
    block_bits: int
    """The binary logarithm of the number of values in a block."""
    blocks: CumulativeTable
    """The law of the proposed block, counted from zero."""
    factors: Words
    """factors[i, d] = ⌊2⁶⁴ e^(−rate·d·bⁱ)⌋, at most 2⁶⁴ − 1, for the digits d of base b = 2^`digit_bits`."""
    digit_bits: int
    """The binary logarithm of the base in which exponents are written."""

    def draw(self, words: Words, out: Ints) -> int:
        """Write the sample of each twelve words, and return how many are UNDECIDED."""
        check_words(words, out, self.words_per_slot)
        proposal = (self.blocks.thresholds, self.blocks.guide, self.blocks.shift, self.block_bits)
        return reject(words, *proposal, self.factors, self.digit_bits, self.law.power, out)

    def resolve(self, words: Sequence[int], more: Iterator[int]) -> int:
        """The sample of a slot's words, by exact comparisons, with as many further attempts as it takes."""
        supply = chain(words, more)
        while True:
            proposal, place, chance = islice(supply, WORDS_PER_ATTEMPT)
            nearest = self.blocks.resolve([proposal], more) << self.block_bits
            magnitude = nearest + place % (1 << self.block_bits)
            negative = place >> (WORD_BITS - 1)
            if negative and magnitude == 0:
                continue
            exponent = self.law.rate * (magnitude**self.law.power - nearest**self.law.power)
            if Uniform(chance, more).below(partial(_exponential, exponent)):
                return -magnitude if negative else magnitude


def _exponential(exponent: Fraction, bits: int) -> arb:
    with precision(bits + _GUARD_BITS):
        return (-ball(exponent)).exp()


@kernel
def reject(
    words: Words,
    thresholds: Words,
    guide: NDArray[np.int32],
    shift: int,
    block_bits: int,
    factors: Words,
    digit_bits: int,
    power: int,
    out: Ints,
) -> int:
    """Write the first proposal of each slot that is kept, or UNDECIDED; return how many are undecided."""
    digits, base = factors.shape
    # A factor is less than one unit of 2⁻⁶⁴ too small, and a product less than two more than its factors are.
    gap = np.uint64(2 * digits)
    undecided = 0
    for i in range(out.size):
        out[i] = UNDECIDED
        for attempt in range(ATTEMPTS):
            at = (i * ATTEMPTS + attempt) * WORDS_PER_ATTEMPT
            proposal, place, chance = words[at], words[at + 1], words[at + 2]
            block = np.uint64(guide[proposal >> np.uint64(shift)])
            while thresholds[block] < proposal:
                block += np.uint64(1)
            if thresholds[block] == proposal:
                break
            nearest = np.int64(block) << block_bits
            offset = np.int64(place) & ((1 << block_bits) - 1)
            negative = np.int64(place) < 0
            if negative and nearest + offset == 0:
                continue
            exponent = offset
            if power == 2:
                exponent *= 2 * nearest + offset
            keeping = factors[0, exponent & (base - 1)]
            for digit in range(1, digits):
                exponent >>= digit_bits
                keeping = _high_product(keeping, factors[digit, exponent & (base - 1)])
            if chance < keeping:
                out[i] = -(nearest + offset) if negative else nearest + offset
                break
            if chance - keeping < gap:
                break
        undecided += out[i] == UNDECIDED
    return undecided


@kernel
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """⌊a·b / 2⁶⁴⌋ from products of 32-bit halves."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    cross = a_high * b_low + (a_low * b_low >> half)
    return a_high * b_high + (cross >> half) + ((a_low * b_high + (cross & low)) >> half)


@lru_cache(maxsize=16)
def block_rejection(law: Law, block_bits: int | None = None) -> Block:
    """The block sampler of a law, by default with 64 to 128 blocks a standard deviation."""
    if law.power not in (1, 2):
        raise LossError(f"{law} is too wide to be drawn from a table; spend more on it, or count in larger units")
    if block_bits is None:
        block_bits = max(0, floor(log2(law.standard_deviation / _BLOCKS_PER_DEVIATION)))
    blocks = one_sided(law.coarsened(2**block_bits))
    end = len(blocks.thresholds) << block_bits
    largest = end**law.power - (end - 2**block_bits) ** law.power
    if max(end, largest).bit_length() >= WORD_BITS:
        raise LossError(f"{law} is too wide for 64-bit noise; spend more on it, or count in larger units")
    digits = ceil(largest.bit_length() / _DIGIT_BITS)
    digit_bits = ceil(largest.bit_length() / digits)
    return Block(law, block_bits, blocks, _factors(law.rate, digits, digit_bits), digit_bits)


def _factors(rate: Fraction, digits: int, digit_bits: int) -> Words:
    base = 2**digit_bits

    def row(rate: Fraction) -> list[int]:
        def attempt(bits: int) -> list[int] | None:
            with precision(bits + _GUARD_BITS):
                ratio = (-ball(rate)).exp()
                return certain_floors(accumulate(repeat(ratio, base - 1), mul, initial=arb(2) ** WORD_BITS))

        return [min(floored, LARGEST_WORD) for floored in decided(attempt)]

    factors = np.array([row(rate * base**digit) for digit in range(digits)], dtype=np.uint64)
    factors.flags.writeable = False
    return factors


_CHUNK_WORDS = 32768  # 256 kB, which stays in a core's own cache
_RUN_WORDS = 4 * _CHUNK_WORDS  # runs are prepared apart, which costs more than what leaves the cache
_TABLE_ENTRIES = 2**18  # 2 MB; a larger table leaves the cache, and is no faster than block rejection


@lru_cache(maxsize=64)
def sampler(law: Law) -> CumulativeTable | Block:
    """The table of a law, or block rejection where the table would be too large."""
    entries = 2 * (law.margin(Fraction(2, 2**WORD_BITS)) + 1)
    return two_sided(law) if entries <= _TABLE_ENTRIES else block_rejection(law)


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

    def __init__(self, law: Law, key: Key, *, words: WordSource | None = None) -> None:
        self._sampler = sampler(law)
        self._key = key
        self._words = Keystream(key.derive("words")) if words is None else words

    def fill(self, out: Ints, slot: int) -> None:
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

    def fill_runs(self, out: Ints, place: Words, size: Ints) -> None:
        """Write the noise of runs of slots, one after the other: where each begins, and how many it has.

        A place is a number of two words. With a first word of 0, the second is the slot of `fill`.
        """
        width = self._sampler.words_per_slot
        chunk = _RUN_WORDS // width
        buffer = np.empty(0 if width == 1 else width * min(chunk, len(out)), dtype=np.uint64)
        done = 0
        for places, sizes in _pieces(place, size, chunk):
            piece = out[done : done + int(sizes.sum())]
            if isinstance(self._sampler, CumulativeTable):  # one word a slot, looked up where it is
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


def _pieces(place: Words, size: Ints, chunk: int) -> Iterator[tuple[Words, Ints]]:
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
