"""Block rejection: exact samples of laws too wide for a table, at a fixed number of words a slot.

Magnitudes are cut in blocks of 2ˢ. A block is proposed in proportion to the weight at its end a nearest zero,
by a table of the coarsened law, and in it a magnitude a + r uniformly, with a uniform sign; they are kept
with probability e^(−rate·n), n = (a + r)^power − a^power. Zero is kept with one of its signs only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, repeat
from math import ceil, floor, log2
from operator import mul
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.errors import LossError
from treetop.noise.balls import WORD_BITS, Uniform, ball, certain_floors, decided, precision
from treetop.noise.law import Law
from treetop.noise.table import LARGEST_WORD, UNDECIDED, Table, check_words, one_sided

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
    """The law of the samples."""
    block_bits: int
    """The binary logarithm of the number of values in a block."""
    blocks: Table
    """The law of the proposed block, counted from zero."""
    factors: NDArray[np.uint64]
    """factors[i, d] = ⌊2⁶⁴ e^(−rate·d·bⁱ)⌋, at most 2⁶⁴ − 1, for the digits d of base b = 2^`digit_bits`."""
    digit_bits: int
    """The binary logarithm of the base in which exponents are written."""

    def draw(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
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
    words: NDArray[np.uint64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: int,
    block_bits: int,
    factors: NDArray[np.uint64],
    digit_bits: int,
    power: int,
    out: NDArray[np.int64],
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


def _factors(rate: Fraction, digits: int, digit_bits: int) -> NDArray[np.uint64]:
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
