"""The sampler, seen as a statistician would: laws, tails, signs and independence, with keys that are drawn afresh.

Each question has one p-value. One below 1e-4 is asked again with another key, and twice in a row is a failure: of a
right sampler with a chance of 1e-8 a question, 3e-7 in all with those of `POWER`. The key is printed with every
p-value, and TREETOP_SEED, 64 hexadecimal digits, repeats it. What needs no chance is at the end: words that no 64 bits
decide, by rational arithmetic.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2, chi2_contingency

from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Keystream, Law, NoiseStream
from treetop.noise.sampler import Block, CumulativeTable, sampler, two_sided

from .audits import DEEP
from .divergence import masses

SIGNIFICANCE = 1e-4
TWICE = SIGNIFICANCE**2
POWER = 1e-8
"""More than the chance that 2¹⁸ draws let a wrong scale of 3 % pass, up or down: 6.2e-9 for the Laplace laws of a
hundred bins (chi-square with 99 degrees of freedom, noncentral by 219 and 230, below 160), 1e-16 for the others."""
DRAWS = 2**22 if DEEP else 2**18
LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1, 2)),
    DiscreteGaussian(Fraction(400)),
    DiscreteLaplace(Fraction(3)),
    DiscreteLaplace(Fraction(200)),
]
WIDE: list[Law] = [DiscreteGaussian(Fraction(10**12)), DiscreteLaplace(Fraction(10**6))]

Integers = NDArray[np.int64]
Question = Callable[[Key], float]


def holds(question: Question) -> None:
    """Ask for a p-value, and once more with another key where it is too small."""
    seed = bytes.fromhex(os.environ["TREETOP_SEED"]) if "TREETOP_SEED" in os.environ else Key.fresh().secret
    for attempt in range(2):
        p = question(Key(seed).derive("attempt", attempt))
        print(f"TREETOP_SEED={seed.hex()}, attempt {attempt}: p = {p:.3g}")  # noqa: T201
        if p >= SIGNIFICANCE:
            return
    pytest.fail(f"twice in a row below {SIGNIFICANCE}, with TREETOP_SEED={seed.hex()}")


def drawn(law: Law, key: Key, size: int = DRAWS) -> Integers:
    out = np.empty(size, np.int64)
    NoiseStream(law, key).fill(out, 0)
    return out


def scaled(law: Law, factor: Fraction) -> Law:
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.variance * factor**2)
    return DiscreteLaplace(factor / law.rate)


def chi_square(x: Integers, law: Law) -> float:
    """The p-value of draws under a law, in about a hundred bins of equal probability."""
    edges = np.unique([law.quantile(Fraction(i, 100)) for i in range(1, 100)])
    upto = np.array([law.cumulative(int(edge)) for edge in edges])
    expected = np.diff(upto, prepend=0, append=1) * len(x)
    seen = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(edges)))


def least(values: list[float]) -> float:
    """One p-value for several, each of which may be the one that is too small."""
    return min(1.0, len(values) * min(values))


@pytest.mark.fresh_noise(TWICE + POWER)
@pytest.mark.parametrize("law", LAWS + WIDE, ids=str)
def test_draws_follow_their_law_and_none_that_is_three_percent_wider_or_narrower(law: Law) -> None:
    def question(key: Key) -> float:
        x = drawn(law, key)
        for factor in (Fraction(103, 100), Fraction(100, 103)):
            assert chi_square(x, scaled(law, factor)) < SIGNIFICANCE, f"a scale wrong by {factor} passes"
        return chi_square(x, law)

    holds(question)


@pytest.mark.fresh_noise(TWICE)
@pytest.mark.parametrize("law", LAWS + WIDE, ids=str)
def test_tails_are_as_heavy_as_the_law_says(law: Law) -> None:
    def question(key: Key) -> float:
        size = np.abs(drawn(law, key))
        reaches = [law.margin(Fraction(1, 10**power)) + 1 for power in (2, 3, 4)]
        chances = [2 * law.cumulative(-reach) for reach in reaches]
        counts = [int(np.count_nonzero(size >= reach)) for reach in reaches]
        return least([binomtest(n, DRAWS, p).pvalue for n, p in zip(counts, chances, strict=True)])

    holds(question)


@pytest.mark.fresh_noise(TWICE)
@pytest.mark.parametrize("law", LAWS + WIDE, ids=str)
def test_both_signs_are_alike(law: Law) -> None:
    def question(key: Key) -> float:
        x = drawn(law, key)
        above, below = x[x > 0], -x[x < 0]
        bins = np.unique(np.quantile(np.concatenate([above, below]), np.linspace(0, 1, 40)[1:-1]).astype(np.int64))
        table = [np.bincount(np.searchsorted(bins, side), minlength=len(bins) + 1) for side in (above, below)]
        filled = np.array(table)[:, np.sum(table, axis=0) > 20]
        alike = chi2_contingency(filled).pvalue if filled.shape[1] > 1 else 1.0
        return least([binomtest(len(above), len(above) + len(below)).pvalue, float(alike)])

    holds(question)


def places(key: Key) -> list[Key]:
    """The keys of the noise and of the ties at several levels of several trees."""
    trees = [key] + [key.derive("run", number) for number in range(4)]
    levels = [tree.derive("level", level) for tree in trees for level in (1, 2, 3)]
    return [level.derive(purpose) for level in [key.derive("total"), *levels] for purpose in ("noise", "ties")]


@pytest.mark.fresh_noise(TWICE)
def test_words_of_levels_and_subtrees_are_independent() -> None:
    def question(key: Key) -> float:
        words = np.empty((len(places(key)), 1 << 11), np.uint64)
        for row, place in zip(words, places(key), strict=True):
            Keystream(place.derive("words")).fill(row, 0)
        bits = words.shape[1] * 64
        pairs = list(combinations(words, 2))
        agreeing = np.array([int(np.bitwise_count(one ^ other).sum()) for one, other in pairs])
        z = (agreeing - bits / 2) / math.sqrt(bits / 4)  # of different pairs they are uncorrelated
        return least([float(chi2.sf((z**2).sum(), len(z))), float(len(z) * chi2.sf((z**2).max(), 1))])

    holds(question)


def contingency(one: Integers, other: Integers, law: Law) -> float:
    """The statistic of two streams in eighths; under independence it is chi-square with 49 degrees of freedom."""
    edges = np.unique([law.quantile(Fraction(i, 8)) for i in range(1, 8)])
    table = np.zeros((len(edges) + 1, len(edges) + 1))
    np.add.at(table, (np.searchsorted(edges, one), np.searchsorted(edges, other)), 1)
    return float(chi2_contingency(table).statistic)


@pytest.mark.fresh_noise(TWICE)
@pytest.mark.parametrize("law", [LAWS[1], WIDE[0]], ids=str)
def test_noise_of_levels_subtrees_and_chunks_is_independent(law: Law) -> None:
    def question(key: Key) -> float:
        streams = [drawn(law, place, 1 << 13) for place in places(key)[::2]]
        between = [contingency(one, other, law) for one, other in combinations(streams, 2)]
        long = drawn(law, key.derive("long"), 1 << 17)
        lags = [contingency(long[:-lag], long[lag:], law) for lag in (1, 2, 64, 1 << 15)]
        return least([float(chi2.sf(sum(found), 49 * len(found))) for found in (between, lags)])

    holds(question)


@pytest.mark.parametrize("law", [LAWS[1], WIDE[0]], ids=str)
@pytest.mark.parametrize("chunk", [1 << 9, 1 << 12, 40_000])
def test_threads_and_chunks_draw_the_same_noise(law: Law, chunk: int) -> None:
    key, pieces = Key.fresh(), np.empty(1 << 16, np.int64)

    def fill(start: int) -> None:
        NoiseStream(law, key).fill(pieces[start : start + chunk], start)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, reversed(range(0, len(pieces), chunk))))
    assert np.array_equal(pieces, drawn(law, key, len(pieces)))


def test_a_sampler_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    law = LAWS[1]
    draw = CumulativeTable.draw
    x = drawn(law, Key(bytes(32)))
    assert chi_square(np.where(np.abs(x) > 70, np.sign(x) * 70, x), law) > SIGNIFICANCE  # only its tail is wrong
    with monkeypatch.context() as patch:  # tails cut off

        def without_tails(self: CumulativeTable, words: NDArray[np.uint64], out: Integers) -> int:
            undecided: int = draw(self, words, out)
            out[:] = np.clip(out, -60, 60)
            return undecided

        patch.setattr(CumulativeTable, "draw", without_tails)
        with pytest.raises(pytest.fail.Exception, match="twice in a row"):
            test_tails_are_as_heavy_as_the_law_says(law)
    with monkeypatch.context() as patch:  # one sign in fifty lost

        def one_sided(self: CumulativeTable, words: NDArray[np.uint64], out: Integers) -> int:
            undecided: int = draw(self, words, out)
            out[::50] = np.abs(out[::50])
            return undecided

        patch.setattr(CumulativeTable, "draw", one_sided)
        with pytest.raises(pytest.fail.Exception, match="twice in a row"):
            test_both_signs_are_alike(law)
    with monkeypatch.context() as patch:  # two levels, or subtrees, that share their words
        derive = Key.derive
        patch.setattr(
            Key, "derive", lambda self, purpose, *parts: derive(self, purpose, *(parts if parts != (3,) else (2,)))
        )
        with pytest.raises(pytest.fail.Exception, match="twice in a row"):
            test_words_of_levels_and_subtrees_are_independent()
        with pytest.raises(pytest.fail.Exception, match="twice in a row"):
            test_noise_of_levels_subtrees_and_chunks_is_independent(law)


Bounds = tuple[Fraction, Fraction]
DIGITS = 2**340


def outward(low: Fraction, high: Fraction) -> Bounds:
    """Round an interval to fewer digits, never inward."""
    return Fraction(math.floor(low * DIGITS), DIGITS), Fraction(math.ceil(high * DIGITS), DIGITS)


def power_of_e(x: Fraction) -> Bounds:
    """Bounds of e^(−x) for x ≥ 0: the alternating series below one half, then squares."""
    halvings = max(0, math.ceil(math.log2(2 * x))) if x else 0
    small, term, low, high = x / 2**halvings, Fraction(1), Fraction(0), Fraction(1)
    for n in range(1, 65):
        term = term * small / n
        low, high = (high - term, high) if n % 2 else (low, low + term)
    low, high = outward(low, high)
    for _ in range(halvings):
        low, high = outward(low**2, high**2)
    return low, high


def cumulative(law: Law, reach: int) -> dict[int, Bounds]:
    """Bounds of P(X ≤ k) for −reach ≤ k ≤ reach, by sums of rational bounds."""
    weights = [power_of_e(law.rate * k**law.power) for k in range(reach + 1)]
    # Beyond, every weight is at most e^(−rate) of the one before.
    beyond = weights[-1][1] / (1 - power_of_e(law.rate)[1])
    low, high = Fraction(0), beyond
    upto = {}
    for k in range(-reach, reach + 1):
        low, high = low + weights[abs(k)][0], high + weights[abs(k)][1]
        upto[k] = low, high
    total = low, high + beyond
    return {k: outward(one / total[1], other / total[0]) for k, (one, other) in upto.items()}


class Words:
    """Words that are given."""

    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, np.uint64)

    def fill(self, out: NDArray[np.uint64], word: int) -> None:
        out[:] = self._words[word : word + len(out)]

    def fill_runs(
        self, out: NDArray[np.uint64], place: NDArray[np.uint64], size: NDArray[np.int64], width: int
    ) -> None:
        assert len(size) == 1
        self.fill(out, int(place[1, 0]) * width)

    def blocks(self, place: NDArray[np.uint64], size: NDArray[np.int64], width: int) -> NDArray[np.uint64]:
        raise AssertionError("these words are read one after the other")


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(1)), DiscreteLaplace(Fraction(3, 2))], ids=str)
def test_words_that_64_bits_do_not_decide_are_decided_as_by_rational_arithmetic(law: Law) -> None:
    table, key = two_sided(law), Key(bytes(range(32)))
    thresholds = table.thresholds.tolist()
    exact = cumulative(law, law.margin(Fraction(1, 2**300)))
    for k, threshold in enumerate(thresholds, table.first):
        assert [math.floor(bound * 2**64) for bound in exact[k]] == [threshold, threshold]
    words = thresholds[1:-1] * 4
    out = np.empty(len(words), np.int64)
    NoiseStream(law, key, words=Words(words)).fill(out, 0)
    sides = set()
    for slot, (word, sample) in enumerate(zip(words, out.tolist(), strict=True)):
        more = np.empty(3, np.uint64)
        Keystream(key.derive("more", slot)).fill(more, 0)
        uniform = Fraction(word, 2**64) + sum(Fraction(int(bits), 2 ** (64 * (i + 2))) for i, bits in enumerate(more))
        assert exact[sample - 1][1] <= uniform and uniform + Fraction(1, 2**256) <= exact[sample][0]
        sides.add(sample - table.first - thresholds.index(word))
    assert sides == {0, 1}


def test_the_laws_above_are_drawn_in_both_ways() -> None:
    assert all(isinstance(sampler(law), CumulativeTable) for law in LAWS)
    assert all(isinstance(sampler(law), Block) for law in WIDE)


def test_the_rational_bounds_are_the_masses_that_other_audits_use() -> None:
    law = DiscreteGaussian(Fraction(1))
    known, exact = masses(law, 4), cumulative(law, 30)
    for k in range(-4, 5):
        assert float(exact[k][0] - exact[k - 1][1]) == pytest.approx(known[k + 4], rel=1e-12)
