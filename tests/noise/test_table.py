"""The inversion table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop.errors import NumberError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream
from treetop.noise.sampler import UNDECIDED, CumulativeTable, one_sided, two_sided

from .oracles import DIGITS, Given, Reference, below, further_words, random_words

LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1, 100)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(400)),
    DiscreteLaplace(Fraction(1, 10)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(22, 7)),
]
each = pytest.mark.parametrize("law", LAWS, ids=str)
LARGEST = 2**64 - 1


def assert_floors(table: CumulativeTable, exact: list[Decimal]) -> None:
    with localcontext(prec=DIGITS):
        for threshold, cumulative in zip(table.thresholds.tolist(), exact, strict=True):
            scaled = cumulative * 2**64
            assert threshold < scaled < threshold + 1
            # Further from a whole number than the oracle's own rounding.
            assert min(scaled - threshold, threshold + 1 - scaled) > Decimal(10) ** -90


@each
def test_thresholds_are_the_floors_of_direct_sums(law: Law) -> None:
    table, reference = two_sided(law), Reference(law)
    last = table.first + len(table.thresholds) - 1
    assert_floors(table, [reference.cumulative(k) for k in range(table.first, last + 1)])
    assert table.thresholds[0] == 0
    assert table.thresholds[-1] == LARGEST
    assert (table.thresholds[1:-1] > 0).all()
    assert (table.thresholds[1:-1] < LARGEST).all()


@each
def test_one_sided_thresholds_are_the_floors_of_direct_sums(law: Law) -> None:
    table, reference = one_sided(law), Reference(law)
    with localcontext(prec=DIGITS):
        exact = [1 - reference.upper(k + 1) / reference.upper(0) for k in range(len(table.thresholds))]
    assert_floors(table, exact)
    assert table.first == 0
    assert table.thresholds[-1] == LARGEST


@each
@pytest.mark.parametrize("build", [two_sided, one_sided])
def test_lookup_finds_what_bisection_finds(law: Law, build: Callable[[Law], CumulativeTable], key: Key) -> None:
    table = build(law)
    thresholds = table.thresholds.tolist()
    words = random_words(key, 20_000)
    words[:10_000] >>= np.arange(10_000, dtype=np.uint64) % np.uint64(64)  # the lower tail
    words[:5_000] = ~words[:5_000]  # and the upper
    near = [t + d for t in thresholds for d in (-1, 0, 1) if 0 <= t + d <= LARGEST]
    words = np.append(words, np.array(near, dtype=np.uint64))
    out = np.empty(len(words), dtype=np.int64)
    undecided = table.draw(words, out)
    on_threshold = 0
    for word, sample in zip(words.tolist(), out.tolist(), strict=True):
        position = bisect_left(thresholds, word)
        if thresholds[position] == word:
            assert sample == UNDECIDED
            on_threshold += 1
        else:
            assert sample == table.first + position
    assert undecided == on_threshold >= len(thresholds)


def test_lookup_can_write_over_its_words(key: Key) -> None:
    table = two_sided(DiscreteGaussian(Fraction(400)))
    words = random_words(key, 1000)
    apart = np.empty(1000, dtype=np.int64)
    table.draw(words, apart)
    table.draw(words, words.view(np.int64))
    assert (words.view(np.int64) == apart).all()


@each
@pytest.mark.parametrize("build", [two_sided, one_sided])
def test_exact_comparisons_agree_with_lookup(law: Law, build: Callable[[Law], CumulativeTable], key: Key) -> None:
    table, words = build(law), random_words(key, 200)
    out = np.empty(200, dtype=np.int64)
    assert table.draw(words, out) == 0
    assert [table.resolve([word], iter(())) for word in words.tolist()] == out.tolist()


@each
def test_a_word_on_a_threshold_is_decided_by_further_bits(law: Law, key: Key) -> None:
    thresholds = two_sided(law).thresholds.tolist()
    words = [0, LARGEST, *thresholds[1:-1], 1, LARGEST - 1] * 3
    out = np.empty(len(words), dtype=np.int64)
    NoiseStream(law, key, words=Given(words)).fill(out, 0)
    reference = Reference(law)
    for slot, (word, sample) in enumerate(zip(words, out.tolist(), strict=True)):
        more = further_words(key, slot)
        bits = [word, next(more), next(more), next(more)]
        with localcontext(prec=DIGITS):
            uniform = sum((Decimal(part) / 2 ** (64 * i) for i, part in enumerate(bits, 1)), Decimal(0))
            assert reference.cumulative(sample - 1) <= uniform < reference.cumulative(sample)


def test_further_bits_decide_both_ways(key: Key) -> None:
    law = DiscreteGaussian(Fraction(400))
    word = int(two_sided(law).thresholds[180])
    out = np.empty(200, dtype=np.int64)
    NoiseStream(law, key, words=Given([word] * 200)).fill(out, 0)
    below_it = two_sided(law).first + 180
    assert set(out.tolist()) == {below_it, below_it + 1}
    exact = float(Reference(law).cumulative(below_it) * 2**64 - word)
    assert np.mean(out == below_it) == pytest.approx(exact, abs=0.12)


@pytest.mark.parametrize("word", [0, LARGEST])
def test_the_outermost_words_reach_beyond_the_table(word: int) -> None:
    law = DiscreteLaplace(Fraction(1))
    table = two_sided(law)
    deeper = word  # 128 equal bits
    sample = table.resolve([word], iter([deeper, 12345]))
    beyond = -sample if word == 0 else sample
    assert beyond > -table.first + 40
    reference = Reference(law)
    assert below(word, reference.cumulative(sample), iter([deeper, 12345]))
    assert not below(word, reference.cumulative(sample - 1), iter([deeper, 12345]))


def test_a_built_table_is_kept_and_cannot_be_changed() -> None:
    table = two_sided(DiscreteGaussian(Fraction(9)))
    assert two_sided(DiscreteGaussian(Fraction(9))) is table
    with pytest.raises(ValueError, match="read-only"):
        table.thresholds[0] = 1


@each
def test_runs_have_the_noise_of_their_slots_also_on_thresholds(law: Law, key: Key) -> None:
    thresholds = two_sided(law).thresholds.tolist()
    words = [0, LARGEST, *thresholds[1:-1], 1, LARGEST - 1] * 4
    whole = np.empty(len(words) // 2 * 2, dtype=np.int64)
    NoiseStream(law, key, words=Given(words)).fill(whole, 0)
    rng = np.random.default_rng(len(words))
    first = rng.integers(0, len(whole) - 8, 300)
    size = rng.integers(0, 9, 300)
    place = np.array([np.zeros(300), first]).astype(np.uint64)
    out = np.empty(int(size.sum()), np.int64)
    NoiseStream(law, key, words=Given(words)).fill_runs(out, place, size)
    assert (out == np.concatenate([whole[a : a + n] for a, n in zip(first, size, strict=True)])).all()


@pytest.mark.parametrize("law", [*LAWS, DiscreteGaussian(Fraction(10**12))], ids=str)
def test_runs_of_a_keyed_stream_have_the_noise_of_their_slots(law: Law, key: Key) -> None:
    rng = np.random.default_rng(5)
    first, size = rng.integers(0, 2**40, 200), rng.integers(0, 30, 200)
    out = np.empty(int(size.sum()), np.int64)
    NoiseStream(law, key).fill_runs(out, np.array([np.zeros(200), first]).astype(np.uint64), size)
    at = 0
    for begin, number in zip(first.tolist(), size.tolist(), strict=True):
        alone = np.empty(number, np.int64)
        NoiseStream(law, key).fill(alone, begin)
        assert (out[at : at + number] == alone).all()
        at += number


@pytest.mark.parametrize("out", [np.empty(3, np.int64), np.empty(5, np.int64), np.empty(4), np.empty((2, 2), np.int64)])
def test_runs_are_written_only_to_memory_of_their_size_and_kind(out: NDArray[np.int64]) -> None:
    place, size = np.zeros((2, 2), np.uint64), np.array([1, 3])
    with pytest.raises(NumberError):
        two_sided(LAWS[1]).draw_runs(Given(list(range(8))).blocks(place, size, 1), place[1], size, out)
