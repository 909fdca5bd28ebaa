"""Oracles that share nothing with the code under test: decimals for exact answers, scipy for statistics."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, count

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Keystream, Law

DIGITS = 120


class Reference:
    """A law by direct summation of decimals with 120 digits."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def weight(self, k: int) -> Decimal:
        return _exponential(self.law.rate * abs(k) ** self.law.power)

    def upper(self, first: int) -> Decimal:
        """The sum of the weights at k ≥ first, for first ≥ 0."""
        return _upper_sums(self, 1 << (first + 64).bit_length())[first]

    def total(self) -> Decimal:
        with localcontext(prec=DIGITS):
            return self.weight(0) + 2 * self.upper(1)

    def cumulative(self, k: int) -> Decimal:
        with localcontext(prec=DIGITS):
            upper = self.upper(max(k + 1, -k)) / self.total()
            return upper if k < 0 else 1 - upper

    def variance(self) -> Decimal:
        with localcontext(prec=DIGITS):
            terms = (k * k * self.weight(k) for k in count(1))
            return 2 * _sum(terms) / self.total()

    def __hash__(self) -> int:
        return hash(self.law)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self.law == other.law


def _exponential(exponent: Fraction) -> Decimal:
    with localcontext(prec=DIGITS):
        return (-Decimal(exponent.numerator) / exponent.denominator).exp()


def _sum(terms: Iterator[Decimal]) -> Decimal:
    result = Decimal(0)
    for term in terms:
        result += term
        if term <= result.scaleb(-DIGITS):
            return result
    raise AssertionError("the sum has no end")


@cache
def _upper_sums(reference: Reference, size: int) -> list[Decimal]:
    """The upper sums from 0, 1, …, size − 1: of positive terms, so that no digits cancel."""
    with localcontext(prec=DIGITS):
        beyond = _sum(reference.weight(k) for k in count(size))
        return list(accumulate((reference.weight(k) for k in reversed(range(size))), initial=beyond))[:0:-1]


class Given:
    """Words that a test has written down."""

    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def fill(self, out: NDArray[np.uint64], word: int) -> None:
        out[:] = self._words[word : word + len(out)]

    def fill_runs(
        self, out: NDArray[np.uint64], place: NDArray[np.uint64], size: NDArray[np.int64], width: int
    ) -> None:
        begins = (place[1].astype(np.int64) * width).tolist()
        runs = zip(begins, (size * width).tolist(), strict=True)
        out[:] = np.concatenate([self._words[begin : begin + number] for begin, number in runs])

    def blocks(self, place: NDArray[np.uint64], size: NDArray[np.int64], width: int) -> NDArray[np.uint64]:
        begins = (place[1].astype(np.int64) * width).tolist()
        runs = [
            (begin, begin + number) for begin, number in zip(begins, (size * width).tolist(), strict=True) if number
        ]
        return np.concatenate([self._words[begin - begin % 2 : end + end % 2] for begin, end in runs])


def below(word: int, number: Decimal, more: Iterator[int]) -> bool:
    """Whether the real 0.word… is below the number, with more words of it only when they are needed."""
    with localcontext(prec=DIGITS):
        scaled = number * 2**64
        while int(scaled) == word:
            word = (word << 64) | next(more)
            scaled *= 2**64
        return word < int(scaled)


def further_words(key: Key, slot: int) -> Iterator[int]:
    words = np.empty(400, dtype=np.uint64)
    Keystream(key.derive("more", slot)).fill(words, 0)
    return iter(words.tolist())


def random_words(key: Key, count: int) -> NDArray[np.uint64]:
    words = np.empty(count, dtype=np.uint64)
    Keystream(key).fill(words, 0)
    return words


def scaled_by(law: Law, factor: Fraction) -> Law:
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.variance * factor**2)
    return DiscreteLaplace(factor / law.rate)


def p_value(samples: NDArray[np.int64], law: Law) -> float:
    """The chi-square p-value of the samples under a law, in at most 200 bins."""
    deviation = float(samples.std())
    edges = np.unique(np.append(np.round(deviation * np.linspace(-3.5, 3.5, 200)), [-1, 0])).astype(np.int64)
    probabilities = np.diff(_float_cumulative(law, edges), prepend=0, append=1)
    observed = np.bincount(np.searchsorted(edges, samples), minlength=len(edges) + 1)
    rare = probabilities * len(samples) < 10
    expected = np.append(probabilities[~rare], probabilities[rare].sum()) * len(samples)
    counted = np.append(observed[~rare], observed[rare].sum())
    if not rare.any():
        expected, counted = expected[:-1], counted[:-1]
    return float(chi2.sf(((counted - expected) ** 2 / expected).sum(), len(expected) - 1))


def _float_cumulative(law: Law, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    result: NDArray[np.float64]
    rate = float(law.rate)
    if law.power == 1:
        outside = np.exp(-rate * np.where(edges < 0, -edges, edges + 1)) / (1 + np.exp(-rate))
        result = np.where(edges < 0, outside, 1 - outside)
    elif rate < 1e-7:
        result = norm.cdf((edges + 0.5) * (2 * rate) ** 0.5)
    else:
        grid = np.arange(-30_000, 30_001)
        mass = np.exp(-rate * grid**2.0)
        result = (np.cumsum(mass) / mass.sum())[edges + 30_000]
    return result
