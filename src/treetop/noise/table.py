"""The inversion table of a law: one 64-bit word gives one exact sample, or asks for more bits.

With t_k = ⌊F(k)·2⁶⁴⌋ and a uniform real U = 0.u… of first word u, the sample is the k with F(k−1) ≤ U < F(k).
u < t_k proves U < F(k), u > t_k proves U ≥ F(k), and u = t_k for some k leaves the sample undecided. Beyond
the first and last k of the table t_k is 0 and 2⁶⁴ − 1 again, so that those two words stand for the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from treetop.basics.buffers import U
from treetop.basics.kernel import kernel
from treetop.errors import NumberError
from treetop.noise.balls import WORD_BITS, Uniform, certain_floors, decided, precision, smallest
from treetop.noise.law import Law

UNDECIDED = np.iinfo(np.int64).min
"""What stands in the slot of a sample that its words leave open."""

LARGEST_WORD = 2**WORD_BITS - 1
_GUARD_BITS = 64
_GUIDE_BITS = 16


@dataclass(frozen=True, eq=False)
class Table:
    """The thresholds of consecutive values, and where to start looking for a word among them."""

    words_per_slot: ClassVar[int] = 1

    thresholds: NDArray[np.uint64]
    """t_k for k = first, first + 1, …; the last is 2⁶⁴ − 1."""
    guide: NDArray[np.int32]
    """For each value of a word's top bits, the first threshold that is not below all such words."""
    shift: int
    """How many low bits of a word the guide does not see."""
    first: int
    """The value of the first threshold."""
    cumulative: Callable[[int, int], arb]
    """F(k), enclosed to a number of bits."""

    def draw(self, words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
        """Write the sample of each word, and return how many are UNDECIDED; `out` may be words' memory."""
        check_words(words, out, self.words_per_slot)
        return lookup(words, self.thresholds, self.guide, self.shift, self.first, out)

    def draw_runs(
        self, pairs: NDArray[np.uint64], low: NDArray[np.uint64], size: NDArray[np.int64], out: NDArray[np.int64]
    ) -> int:
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


def check_words(words: NDArray[np.uint64], out: NDArray[np.int64], per_slot: int) -> None:
    """Refuse memory that is not of the kind and size that samples are made of and written to."""
    fits = words.ndim == out.ndim == 1 and len(words) == per_slot * len(out)
    if not fits or words.dtype != np.uint64 or out.dtype != np.int64:
        raise NumberError(f"{per_slot} words of 64 bits make a sample: {words.shape} do not make {out.shape}")


@kernel
def lookup(
    words: NDArray[np.uint64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: int,
    first: int,
    out: NDArray[np.int64],
) -> int:
    """Write the value of each word's interval, or UNDECIDED on a threshold; return how many are undecided."""
    undecided = 0
    for i in range(words.size):
        out[i] = _value(words[i], thresholds, guide, shift, first)
        undecided += out[i] == UNDECIDED
    return undecided


@kernel
def _lookup_runs(
    pairs: NDArray[np.uint64],
    low: NDArray[np.uint64],
    size: NDArray[np.int64],
    thresholds: NDArray[np.uint64],
    guide: NDArray[np.int32],
    shift: int,
    first: int,
    out: NDArray[np.int64],
) -> int:
    """Do what `lookup` does with runs of words of which each begins a pair of its own."""
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
def _value(
    word: np.uint64, thresholds: NDArray[np.uint64], guide: NDArray[np.int32], shift: int, first: int
) -> np.int64:
    """Return the value of a word's interval, or UNDECIDED on a threshold."""
    k = U(guide[word >> U(shift)])
    while thresholds[k] < word:
        k += U(1)
    return np.int64(UNDECIDED) if thresholds[k] == word else first + np.int64(k)


@lru_cache(maxsize=16)
def two_sided(law: Law) -> Table:
    """The table of a law."""

    def below_and_total(bits: int) -> tuple[arb, arb]:
        total = law.enclose_total(bits)
        return (total - 1) / 2, total

    upper = _thresholds(law, below_and_total)
    # F(−k−1) = 1 − F(k), and F(k)·2⁶⁴ is not whole, or its floor would not have been certain.
    return _table(np.concatenate((LARGEST_WORD - upper[::-1], upper)), -len(upper), law.enclose_cumulative)


@lru_cache(maxsize=16)
def one_sided(law: Law) -> Table:
    """The table of a law under the condition that the sample is not negative."""

    def below_and_total(bits: int) -> tuple[arb, arb]:
        return arb(0), (law.enclose_total(bits) + 1) / 2

    def cumulative(k: int, bits: int) -> arb:
        if k < 0:
            return arb(0)
        with precision(bits + _GUARD_BITS):
            return 1 - law.enclose_tail(k, bits) / law.enclose_tail(-1, bits)

    return _table(_thresholds(law, below_and_total), 0, cumulative)


def _thresholds(law: Law, below_and_total: Callable[[int], tuple[arb, arb]]) -> NDArray[np.uint64]:
    """t_k for k = 0, 1, … up to 2⁶⁴ − 1, from the weight below 0 and the whole weight."""

    def attempt(bits: int) -> list[int] | None:
        with precision(bits + _GUARD_BITS):
            below, total = below_and_total(bits + _GUARD_BITS)
            scale = 2**WORD_BITS / total
            sums = accumulate((scale * weight for weight in law.weights()), initial=scale * below)
            next(sums)
            return certain_floors(sums, last=LARGEST_WORD)

    return np.array(decided(attempt), dtype=np.uint64)


def _table(thresholds: NDArray[np.uint64], first: int, cumulative: Callable[[int, int], arb]) -> Table:
    bits = min(_GUIDE_BITS, len(thresholds).bit_length() + 4)
    shift = WORD_BITS - bits
    starts = np.arange(2**bits, dtype=np.uint64) << np.uint64(shift)
    guide = np.searchsorted(thresholds, starts).astype(np.int32)
    for shared in (thresholds, guide):
        shared.flags.writeable = False
    return Table(thresholds, guide, shift, first, cumulative)
