"""The laws of noise, by name: exact scales, certain answers, what each costs, and the words that a card has for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, Self

from flint import arb

from treetop.basics.choices import Choices
from treetop.errors import LossError
from treetop.noise import gaussian_sums
from treetop.noise.balls import at_most, ball, nearest_float, precision, smallest

_GUARD_BITS = 64


class Law(ABC):
    """A symmetric law on the integers, P(k) ∝ e^(−rate·|k|^power).

    The `enclose_…` methods give balls of about 2⁻ᵇⁱᵗˢ relative size; the other answers are certain: each is
    the number itself, or the float nearest to it.
    """

    name: ClassVar[str]
    """What cards call it."""
    parameter: ClassVar[str]
    """The field that has its exact scale."""
    words: ClassVar[str]
    """What a card says about it, and about what a level costs that is measured with it."""
    power: ClassVar[int]
    """The power of |k| in the exponent, a whole number above 0."""
    currency: ClassVar[Literal["pure", "zcdp"]]
    """What its cost is stated in: epsilon of pure differential privacy, or rho."""

    @property
    @abstractmethod
    def rate(self) -> Fraction:
        """The factor of |k|^power in the exponent."""

    @abstractmethod
    def coarsened(self, width: int) -> Self:
        """The law whose weight at k is this law's weight at width·k."""

    @classmethod
    @abstractmethod
    def costing(cls, l1: int, l2_squared: int, cost: Fraction) -> Self:
        """The law with which counts cost so much, which one unit changes by so much in sum and in squares."""

    @abstractmethod
    def cost(self, l1: int, l2_squared: int) -> Fraction:
        """What counts with this noise cost, which one unit changes by so much in sum and in squares."""

    @abstractmethod
    def enclose_total(self, bits: int) -> arb:
        """The sum of all weights."""

    @abstractmethod
    def enclose_upper(self, first: int, bits: int) -> arb:
        """The sum of the weights at k ≥ first, for first ≥ 0."""

    @abstractmethod
    def enclose_variance(self, bits: int) -> arb:
        """The variance of the law."""

    def describe(self) -> dict[str, str]:
        """The law's name and its exact parameter, for cards."""
        return {"law": self.name, self.parameter: str(getattr(self, self.parameter))}

    def weights(self) -> Iterator[arb]:
        """The weights at 0, 1, 2, … at the working precision, each from the one before."""
        rate = ball(self.rate)
        # The weight, its quotient with the next one, the quotient of quotients, and so on; the last is constant.
        quotients = [(-rate * difference).exp() for difference in _differences(self.power)]
        while True:
            yield quotients[0]
            for order in range(self.power):
                quotients[order] *= quotients[order + 1]

    def enclose_mass(self, k: int, bits: int) -> arb:
        """P(X = k)."""
        with precision(bits + _GUARD_BITS):
            return (-ball(self.rate * abs(k) ** self.power)).exp() / self.enclose_total(bits)

    def enclose_tail(self, k: int, bits: int) -> arb:
        """P(X > k)."""
        with precision(bits + _GUARD_BITS):
            upper = self.enclose_upper(k + 1 if k >= 0 else -k, bits) / self.enclose_total(bits)
            return upper if k >= 0 else 1 - upper

    def enclose_cumulative(self, k: int, bits: int) -> arb:
        """P(X ≤ k)."""
        return self.enclose_tail(-k - 1, bits)

    def mass(self, k: int) -> float:
        """P(X = k)."""
        return nearest_float(lambda bits: self.enclose_mass(k, bits))

    def cumulative(self, k: int) -> float:
        """P(X ≤ k)."""
        return nearest_float(lambda bits: self.enclose_cumulative(k, bits))

    def margin(self, alpha: Fraction) -> int:
        """The smallest m with P(|X| > m) ≤ alpha.

        >>> DiscreteGaussian(Fraction(400)).margin(Fraction(5, 100))
        39
        """
        return _margin(self, _probability(alpha))

    def quantile(self, p: Fraction) -> int:
        """The smallest k with P(X ≤ k) ≥ p."""
        return _quantile(self, _probability(p))

    @property
    def standard_deviation(self) -> float:
        """The law's own standard deviation, which for small scales is not its parameter."""
        return _standard_deviation(self)


def _differences(power: int) -> list[int]:
    """The differences of k^power at k = 0: the value itself, the first difference, the second, … the last constant."""
    values = [k**power for k in range(power + 1)]
    differences = []
    while values:
        differences.append(values[0])
        values = [after - before for before, after in pairwise(values)]
    return differences


@lru_cache(maxsize=1024)
def _margin(law: Law, alpha: Fraction) -> int:
    return smallest(lambda m: at_most(lambda bits: law.enclose_tail(m, bits), alpha / 2))


@lru_cache(maxsize=1024)
def _quantile(law: Law, p: Fraction) -> int:
    # P(X ≤ k) ≥ p where P(X > k) ≤ 1 − p.
    return smallest(lambda k: at_most(lambda bits: law.enclose_tail(k, bits), 1 - p))


@lru_cache(maxsize=1024)
def _standard_deviation(law: Law) -> float:
    def enclose(bits: int) -> arb:
        with precision(bits + _GUARD_BITS):
            return law.enclose_variance(bits).sqrt()

    return nearest_float(enclose)


def _rational(value: Fraction, name: str) -> Fraction:
    if not isinstance(value, int | Fraction):
        raise LossError(f"{name} {value!r} is not exact: give a Fraction")
    return Fraction(value)


def _positive(value: Fraction, name: str) -> Fraction:
    exact = _rational(value, name)
    if exact <= 0:
        raise LossError(f"{name} must be positive, not {exact}")
    return exact


def _probability(value: Fraction) -> Fraction:
    exact = _rational(value, "a probability")
    if not 0 < exact < 1:
        raise LossError(f"a probability here is between 0 and 1 and neither of them, not {exact}")
    return exact


@dataclass(frozen=True)
class DiscreteGaussian(Law):
    """P(k) ∝ e^(−k²/2·variance) (Canonne, Kamath and Steinke 2020, Definition 1)."""

    name: ClassVar[str] = "discrete Gaussian"
    parameter: ClassVar[str] = "variance"
    words: ClassVar[str] = (
        "Discrete Gaussian noise; a level costs its squared L2 sensitivity divided by twice the variance, as rho of "
        "zero-concentrated differential privacy, and levels add up."
    )
    power: ClassVar[int] = 2
    currency: ClassVar[Literal["pure", "zcdp"]] = "zcdp"

    variance: Fraction
    """The parameter σ²; the variance itself is a little smaller."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _positive(self.variance, "variance"))

    @property
    def rate(self) -> Fraction:
        """1/(2·variance)."""
        return 1 / (2 * self.variance)

    @classmethod
    def costing(cls, l1: int, l2_squared: int, cost: Fraction) -> Self:
        """Variance Δ₂²/(2·rho) (Canonne, Kamath and Steinke 2020, Theorem 14)."""
        return cls(l2_squared / (2 * cost))

    def cost(self, l1: int, l2_squared: int) -> Fraction:
        """Δ₂²/(2·variance): rho, which adds up (Bun and Steinke 2016, Lemma 1.7)."""
        return l2_squared / (2 * self.variance)

    def coarsened(self, width: int) -> Self:
        """The law whose weight at k is this law's weight at width·k."""
        return type(self)(self.variance / width**2)

    def enclose_total(self, bits: int) -> arb:
        """The sum of all weights."""
        return gaussian_sums.total(self.variance, bits)

    def enclose_upper(self, first: int, bits: int) -> arb:
        """The sum of the weights at k ≥ first, for first ≥ 0."""
        return gaussian_sums.upper(self.variance, first, bits)

    def enclose_variance(self, bits: int) -> arb:
        """The variance of the law."""
        return gaussian_sums.second_moment(self.variance, bits)


@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """P(k) ∝ e^(−|k|/scale), the two-sided geometric law (Ghosh, Roughgarden and Sundararajan 2009)."""

    name: ClassVar[str] = "discrete Laplace"
    parameter: ClassVar[str] = "scale"
    words: ClassVar[str] = (
        "Discrete Laplace noise; a level costs its L1 sensitivity divided by the scale, and levels add up."
    )
    power: ClassVar[int] = 1
    currency: ClassVar[Literal["pure", "zcdp"]] = "pure"

    scale: Fraction
    """The distance over which the probability falls by a factor e."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _positive(self.scale, "scale"))

    @property
    def rate(self) -> Fraction:
        """1/scale."""
        return 1 / self.scale

    @classmethod
    def costing(cls, l1: int, l2_squared: int, cost: Fraction) -> Self:
        """Scale Δ₁/epsilon."""
        return cls(l1 / cost)

    def cost(self, l1: int, l2_squared: int) -> Fraction:
        """Δ₁/scale: pure epsilon, which adds up."""
        return l1 / self.scale

    def coarsened(self, width: int) -> Self:
        """The law whose weight at k is this law's weight at width·k."""
        return type(self)(self.scale / width)

    def enclose_total(self, bits: int) -> arb:
        """(1 + q)/(1 − q) with q = e^(−1/scale)."""
        with precision(bits + _GUARD_BITS):
            rate = ball(self.rate)
            return (1 + (-rate).exp()) / -(-rate).expm1()

    def enclose_upper(self, first: int, bits: int) -> arb:
        """q^first/(1 − q)."""
        with precision(bits + _GUARD_BITS):
            rate = ball(self.rate)
            return (-rate * first).exp() / -(-rate).expm1()

    def enclose_variance(self, bits: int) -> arb:
        """2q/(1 − q)²."""
        with precision(bits + _GUARD_BITS):
            rate = ball(self.rate)
            return 2 * (-rate).exp() / (-rate).expm1() ** 2


LAWS: Choices[type[Law]] = Choices("law of noise", DiscreteGaussian, DiscreteLaplace)
"""The laws that cards and folders can name."""


def register_law(law: type[Law]) -> type[Law]:
    """Add a law of one's own, made of one exact `Fraction`. It is drawn from a table, so it must not be very wide."""
    return LAWS.register(law)


def described_law(described: Mapping[str, str]) -> Law:
    """Return the law that `Law.describe` described."""
    if described["law"] not in LAWS:
        raise LossError(f"there is no law {described['law']!r}")
    law: Callable[[Fraction], Law] = LAWS[described["law"]]
    return law(Fraction(described[LAWS[described["law"]].parameter]))
