"""Block rejection."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import localcontext
from fractions import Fraction
from itertools import chain, islice

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream
from treetop.noise.sampler import UNDECIDED, Block, _high_product, block_rejection, sampler

from .oracles import DIGITS, Given, Reference, below, further_words, p_value, random_words, scaled_by

LARGEST = 2**64 - 1
WIDE = DiscreteGaussian(Fraction(10**12))
SMALL: list[Law] = [DiscreteGaussian(Fraction(1600)), DiscreteLaplace(Fraction(40))]
each_small = pytest.mark.parametrize("law", SMALL, ids=str)


def drawn(block: Block, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], int]:
    out = np.empty(len(words) // block.words_per_slot, dtype=np.int64)
    return out, block.draw(words, out)


def reference_sample(law: Law, block_bits: int, words: list[int], more: Iterator[int]) -> int:
    """Block rejection by decimals, one comparison at a time."""
    width, target = 1 << block_bits, Reference(law)
    coarse = Reference(law.coarsened(width))
    supply = chain(words, more)
    while True:
        proposal, place, chance = islice(supply, 3)
        block = 0
        with localcontext(prec=DIGITS):
            while True:
                cumulative = 1 - coarse.upper(block + 1) / coarse.upper(0)
                if proposal < int(cumulative * 2**64) or below(proposal, cumulative, more):
                    break
                block += 1
            magnitude = block * width + place % width
            if place >= 2**63 and magnitude == 0:
                continue
            if below(chance, target.weight(magnitude) / target.weight(block * width), more):
                return -magnitude if place >= 2**63 else magnitude


def test_high_products_are_those_of_whole_numbers(key: Key) -> None:
    numbers = [0, 1, 2**32 - 1, 2**32, 2**63, LARGEST - 1, LARGEST, *random_words(key, 60).tolist()]
    for a in numbers:
        for b in numbers:
            assert int(_high_product(np.uint64(a), np.uint64(b))) == a * b >> 64


@pytest.mark.parametrize("law", [WIDE, DiscreteGaussian(Fraction(10**18)), DiscreteLaplace(Fraction(10**6))], ids=str)
def test_the_product_of_factors_encloses_the_chance_of_keeping(law: Law, key: Key) -> None:
    block = block_rejection(law)
    digits, base = block.factors.shape
    exponents = [0, 1, base - 1, base, base**digits - 1]
    exponents += [word % base**digits for word in random_words(key, 500).tolist()]
    shortfalls = []
    for exponent in exponents:
        product, rest = LARGEST + 1, exponent
        for row in block.factors.tolist():
            product = product * row[rest % base] >> 64
            rest //= base
        exact = Reference(DiscreteLaplace(1 / law.rate)).weight(exponent)
        with localcontext(prec=DIGITS):
            shortfalls.append(exact * 2**64 - product)
    assert min(shortfalls) > 0
    assert 1 < max(shortfalls) < 2 * digits


@each_small
@pytest.mark.parametrize("block_bits", [0, 2, 5])
def test_a_forced_small_instance_follows_its_law(law: Law, block_bits: int, key: Key) -> None:
    block = block_rejection(law, block_bits)
    words = random_words(key, 12 * 2**18)
    out, undecided = drawn(block, words)
    for slot in np.flatnonzero(out == UNDECIDED).tolist():
        slot_words = words[12 * slot : 12 * slot + 12].tolist()
        out[slot] = block.resolve(slot_words, further_words(key, slot))
        undecided -= 1
    assert undecided == 0
    assert p_value(out, law) > 1e-3
    assert p_value(out, scaled_by(law, Fraction(103, 100))) < 1e-9


@each_small
@pytest.mark.parametrize("block_bits", [2, 5])
def test_exact_comparisons_agree_with_the_kernel(law: Law, block_bits: int, key: Key) -> None:
    block = block_rejection(law, block_bits)
    words = random_words(key, 12 * 100)
    out, undecided = drawn(block, words)
    assert undecided < 5
    for slot, sample in enumerate(out.tolist()):
        if sample == UNDECIDED:
            continue
        slot_words = words[12 * slot : 12 * slot + 12].tolist()
        assert block.resolve(slot_words, iter(())) == sample
        assert reference_sample(law, block_bits, slot_words, iter(())) == sample


@pytest.mark.parametrize("scale", [2 * 10**5, 10**6])
@pytest.mark.parametrize("power", [1, 2])
def test_wide_laws_are_sampled_in_blocks_and_follow_their_law(scale: int, power: int, key: Key) -> None:
    law = DiscreteGaussian(Fraction(scale**2)) if power == 2 else DiscreteLaplace(Fraction(scale))
    assert isinstance(sampler(law), Block)
    out = np.empty(2**20, dtype=np.int64)
    NoiseStream(law, key).fill(out, 0)
    assert p_value(out, law) > 1e-3
    assert p_value(out, scaled_by(law, Fraction(103, 100))) < 1e-9
    assert abs(out.mean()) < 4 * law.standard_deviation / 2**10
    assert out.std() == pytest.approx(law.standard_deviation, rel=0.005)
    low_bits = np.bincount(out % 64, minlength=64)
    assert chisquare(low_bits).pvalue > 1e-3


class Attempt:
    """Three words that mean a chosen proposal under the law WIDE."""

    block = block_rejection(WIDE)
    width = 2**block.block_bits

    @classmethod
    def words(cls, value: int, chance: int, *, negative: bool = False) -> list[int]:
        block, offset = divmod(value, cls.width)
        inside = int(cls.block.blocks.thresholds[block]) - 1
        return [inside, offset | (negative << 63), chance]

    @staticmethod
    def keeping(value: int) -> int:
        """⌊2⁶⁴ · the chance of keeping a value⌋."""
        reference, nearest = Reference(WIDE), value - value % Attempt.width
        with localcontext(prec=DIGITS):
            return int(reference.weight(value) / reference.weight(nearest) * 2**64)


def sample_of(words: list[int], key: Key, slot: int = 0) -> int:
    """What the stream makes of a slot's words, which the kernel must leave undecided."""
    filler = Attempt.words(7, 0) * 4
    slot_words = (words + filler)[:12]
    _, undecided = drawn(Attempt.block, np.array(slot_words, dtype=np.uint64))
    assert undecided == 1
    out = np.empty(1, dtype=np.int64)
    NoiseStream(WIDE, key, words=Given(filler * slot + slot_words)).fill(out, slot)
    expected = reference_sample(WIDE, Attempt.block.block_bits, slot_words, further_words(key, slot))
    assert out[0] == expected
    return expected


@pytest.mark.parametrize("block", [0, 5, 100])
def test_a_proposal_on_a_threshold_is_decided_by_further_bits(block: int, key: Key) -> None:
    word = int(Attempt.block.blocks.thresholds[block])
    samples = {sample_of([word, 1, 0], key, slot) for slot in range(12)}
    assert samples == {block * Attempt.width + 1, (block + 1) * Attempt.width + 1}


def test_a_chance_too_close_to_call_is_decided_by_further_bits(key: Key) -> None:
    kept = set()
    for slot, value in enumerate(range(1_234_560, 1_234_570)):
        sample = sample_of(Attempt.words(value, Attempt.keeping(value)), key, slot)
        assert sample in (value, 7)
        kept.add(sample == value)
    assert kept == {True, False}


def test_a_chance_just_outside_the_gap_is_decided_by_the_kernel() -> None:
    value, gap = 1_234_567, 2 * len(Attempt.block.factors)
    for chance, expected in [(Attempt.keeping(value) - gap, -value), (Attempt.keeping(value) + gap, 7)]:
        words = Attempt.words(value, chance, negative=True) + Attempt.words(7, 0) * 3
        out, undecided = drawn(Attempt.block, np.array(words, dtype=np.uint64))
        assert (out.tolist(), undecided) == ([expected], 0)


def test_the_near_end_of_a_block_is_always_kept(key: Key) -> None:
    assert sample_of(Attempt.words(20 * Attempt.width, LARGEST), key) == 20 * Attempt.width


def test_after_four_rejections_further_attempts_are_made(key: Key) -> None:
    rejected = Attempt.words(1_234_567, LARGEST)
    assert len({sample_of(rejected * 4, key, slot) for slot in range(5)}) == 5


def test_zero_is_kept_with_one_sign_only() -> None:
    words = Attempt.words(0, 0, negative=True) + Attempt.words(7, 0) * 3
    assert drawn(Attempt.block, np.array(words, dtype=np.uint64))[0].tolist() == [7]
    words = Attempt.words(0, 0) * 4
    assert drawn(Attempt.block, np.array(words, dtype=np.uint64))[0].tolist() == [0]


@pytest.mark.parametrize("sigma", [10**8, 10**9])
def test_very_wide_laws_still_have_room(sigma: int, key: Key) -> None:
    law = DiscreteGaussian(Fraction(sigma**2))
    out = np.empty(2**16, dtype=np.int64)
    NoiseStream(law, key).fill(out, 0)
    assert p_value(out, law) > 1e-3


def test_laws_too_wide_for_64_bits_are_refused(key: Key) -> None:
    for law in (DiscreteGaussian(Fraction(10**24)), DiscreteLaplace(Fraction(10**20))):
        with pytest.raises(LossError, match="too wide"):
            NoiseStream(law, key)
