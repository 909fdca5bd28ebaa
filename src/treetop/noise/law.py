"""The laws of noise, by name: exact scales, certain answers, costs, and descriptions for cards."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import isqrt, lgamma, log, pi, sqrt
from threading import RLock
from typing import ClassVar, Literal, Self, TypeVar

from flint import arb, ctx, fmpq

from treetop._util.choices import Choices
from treetop._util.numbers import rounded_up
from treetop.errors import LossError

# Certain answers from ball arithmetic: precision is raised until the enclosing ball leaves no doubt.

T = TypeVar("T")
Enclosure = Callable[[int], arb]
"""A real number, as the function that gives a ball around it, about 2⁻ᵇⁱᵗˢ of its size."""

WORD_BITS = 64
_START_BITS = 96
_UNIFORM_GUARD_BITS = 32
_UNDERFLOW = arb(2) ** -1075  # half the least positive float

# Flint has one working precision for the whole process. Were it changed under a computation, that would only
# widen a ball, never make it miss its number; the lock keeps the precision that was asked for.
_PRECISION_LOCK = RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute balls with `bits` bits inside the block."""
    with _PRECISION_LOCK, ctx.workprec(bits):
        yield


def ball(value: Fraction | int) -> arb:
    """The ball around a rational, at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def decided(attempt: Callable[[int], T | None]) -> T:
    """The first answer of `attempt(bits)`, for doubling `bits`."""
    bits = _START_BITS
    while (answer := attempt(bits)) is None:
        bits *= 2
    return answer


def at_most(number: Enclosure, bound: Fraction) -> bool:
    """Whether number ≤ bound, for a number that is not itself rational."""

    def attempt(bits: int) -> bool | None:
        with precision(bits):
            enclosed, limit = number(bits), ball(bound)
            if enclosed <= limit:
                return True
            return False if enclosed > limit else None

    return decided(attempt)


def nearest_float(number: Enclosure) -> float:
    """The float nearest to a number ≥ 0."""

    def attempt(bits: int) -> float | None:
        with precision(bits):
            enclosed = number(bits)
            if enclosed < _UNDERFLOW:
                return 0.0
            low, high = _fraction(enclosed.lower()), _fraction(enclosed.upper())
        return float(low) if float(low) == float(high) else None

    return decided(attempt)


def float_above(enclosed: arb) -> float:
    """A float that is not below any number of a ball; infinite where the ball is."""
    return rounded_up(_fraction(enclosed.upper())) if enclosed.is_finite() else math.inf


def _fraction(exact: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in exact.man_exp())
    return Fraction(mantissa << max(exponent, 0), 1 << max(-exponent, 0))


def certain_floors(numbers: Iterable[arb], last: int | None = None) -> list[int] | None:
    """The floors of the numbers, up to the first that is `last`, or None if a ball leaves its floor open.

    Where a `last` is given, all numbers are below last + 1, though a ball around one may reach beyond.
    """
    floors = []
    for number in numbers:
        floor = last if last is not None and number >= last else number.floor().unique_fmpz()
        if floor is None:
            return None
        floors.append(int(floor))
        if floors[-1] == last:
            break
    return floors


def smallest(holds: Callable[[int], bool], start: int = 0) -> int:
    """The smallest integer where `holds`, which is false up to some integer and true from there on."""
    step = 1
    if holds(start):
        high, low = start, start - step
        while holds(low):
            step *= 2
            high, low = low, low - step
    else:
        low, high = start, start + step
        while not holds(high):
            step *= 2
            low, high = high, high + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


class Uniform:
    """A uniform real U = 0.word…; its later bits are the words of `more`, drawn when a comparison needs them."""

    def __init__(self, word: int, more: Iterator[int]) -> None:
        self._prefix = word
        self._bits = WORD_BITS
        self._more = more

    def below(self, number: Enclosure) -> bool:
        """Whether U < number; bits drawn for one comparison also hold in the next."""
        while True:
            with precision(self._bits + _UNIFORM_GUARD_BITS):
                scaled = number(self._bits + _UNIFORM_GUARD_BITS) * 2**self._bits
                if scaled >= self._prefix + 1:
                    return True
                if scaled <= self._prefix:
                    return False
            self._prefix = (self._prefix << WORD_BITS) | next(self._more)
            self._bits += WORD_BITS


# Sums of e^(−k²/2v) over integers k, enclosed: whole, one-sided from any k, and the second moment.

_SUM_GUARD_BITS = 64
_DIRECT_VARIANCE = 1000  # up to here the direct sum has a few hundred terms


@lru_cache(maxsize=256)
def total(variance: Fraction, bits: int) -> arb:
    """Z = Σ e^(−k²/2v) over all integers k."""
    with precision(bits + _SUM_GUARD_BITS):
        zeroth, _ = _theta(variance, bits)
        return zeroth if variance < Fraction(1, 4) else (2 * arb.pi() * ball(variance)).sqrt() * zeroth


def second_moment(variance: Fraction, bits: int) -> arb:
    """Σ k² e^(−k²/2v) / Z, the variance of the discrete Gaussian."""
    with precision(bits + _SUM_GUARD_BITS):
        zeroth, second = _theta(variance, bits)
        if variance < Fraction(1, 4):
            return second / zeroth
        v = ball(variance)
        return v - (2 * arb.pi() * v) ** 2 * second / zeroth


def _theta(variance: Fraction, bits: int) -> tuple[arb, arb]:
    """Σ q^(k²) and Σ k² q^(k²) over all integers, with q = e^(−1/2v), or q = e^(−2π²v) where that is smaller.

    The second follows from the first by Poisson summation: Z(v) = √(2πv) Σ e^(−2π²v k²).
    """
    exponent = ball(1 / (2 * variance)) if variance < Fraction(1, 4) else 2 * arb.pi() ** 2 * ball(variance)
    terms = isqrt(bits) + 1
    powers = [(-exponent * k * k).exp() for k in range(1, terms + 2)]
    # Since q ≤ e⁻², each term k² q^(k²) is less than half the one before: the rest is below twice its first.
    rest = (terms + 1) ** 2 * powers.pop() * arb(1, 1)
    zeroth = sum(powers, rest)
    second = sum((k * k * power for k, power in enumerate(powers, 1)), rest)
    return 1 + 2 * zeroth, 2 * second


def upper(variance: Fraction, first: int, bits: int) -> arb:
    """Σ e^(−k²/2v) over k ≥ first, for first ≥ 0."""
    with precision(bits + _SUM_GUARD_BITS):
        order = None if variance <= _DIRECT_VARIANCE else _order(variance, first, bits)
        if order is None:
            return _direct(variance, first, bits)
        return _euler_maclaurin(variance, first, order)


def _direct(variance: Fraction, first: int, bits: int) -> arb:
    rate = ball(1 / (2 * variance))
    term = (-rate * first * first).exp()
    ratio, step = (-rate * (2 * first + 1)).exp(), (-2 * rate).exp()
    result, negligible = arb(0), term * arb(2) ** -bits
    while term > negligible:
        result += term
        term *= ratio
        ratio *= step
    # The ratios go on falling, so a geometric series bounds the rest.
    return result + term / (1 - ratio) * arb(0.5, 0.5)


def _order(variance: Fraction, first: int, bits: int) -> int | None:
    """The least order n with a negligible Euler–Maclaurin remainder, if there is a moderate one.

    A float estimate: it sizes the work, and the remainder is enclosed afterwards.
    """
    sigma = sqrt(variance)
    y = first / sigma
    for n in range(2, 2 * bits, 2):
        growth = n * log(y) if y * y > 4 * n + 2 else lgamma(n + 1) / 2 + y * y / 4
        if growth - n * log(2 * pi * sigma) < -(bits + 8) * log(2):
            return n
    return None


def _euler_maclaurin(variance: Fraction, first: int, order: int) -> arb:
    """Euler–Maclaurin summation (DLMF 2.10.1) with an even order n, for f(x) = e^(−x²/2v) from x = first.

    f⁽ⁱ⁾(x) = (−1)ⁱ hᵢ(x) f(x) with hᵢ(x) = Heᵢ(x/√v) / v^(i/2), so h₀ = 1, h₁ = x/v and
    hᵢ₊₁ = (x/v) hᵢ − (i/v) hᵢ₋₁. The remainder is at most 2ζ(n)/(2π)ⁿ ∫|f⁽ⁿ⁾|, where 2ζ(n) < 4, and
    - beyond the last zero of Heₙ, which is below √(4n+2) (DLMF 18.16.16), f⁽ⁿ⁾ keeps its sign and the
      integral is |f⁽ⁿ⁻¹⁾(first)|;
    - else |Heₙ(y)| ≤ √n! e^(y²/4) (DLMF 18.14.9) makes it at most v^(−n/2) √n! √(πv) erfc(first/√4v).
    """
    v, x = ball(variance), arb(first)
    value = (-x * x / (2 * v)).exp()
    before, h = arb(1), x / v
    corrections, factorial = arb(fmpq(1, 2)), arb(1)
    for i in range(1, order, 2):
        factorial *= i * (i + 1)
        corrections += arb(fmpq.bernoulli(i + 1)) / factorial * h
        if i + 1 < order:
            for j in (i, i + 1):
                before, h = h, (x * h - j * before) / v
    if first * first > (4 * order + 2) * variance:
        integral = h * value
    else:
        integral = (factorial / v**order * arb.pi() * v).sqrt() * (x / (4 * v).sqrt()).erfc()
    remainder = 4 * integral / (2 * arb.pi()) ** order
    area = (arb.pi() * v / 2).sqrt() * (x / (2 * v).sqrt()).erfc()
    return area + value * corrections + remainder * arb(0, 1)


_GUARD_BITS = 64


class Law(ABC):
    """A symmetric law on the integers, P(k) ∝ e^(−rate·|k|^power).

    The `enclose_…` methods give balls of about 2⁻ᵇⁱᵗˢ relative size; the other answers are certain: each is
    the number itself, or the float nearest to it.
    """

    name: ClassVar[str]
    parameter: ClassVar[str]
    words: ClassVar[str]
    """Description in a card, and of the cost of a level that is measured with it."""
    power: ClassVar[int]
    """The power of |k| in the exponent, a whole number above 0."""
    currency: ClassVar[Literal["pure", "zcdp"]]
    """Definition of its cost: epsilon of pure differential privacy, or rho."""

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
        """Cost of counts with this noise, if one unit changes them by so much in sum and in squares."""

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
        values = [k**self.power for k in range(self.power + 1)]
        quotients = []
        while values:  # from the differences of k^power at k = 0: the value itself, the first one, the second, …
            quotients.append((-rate * values[0]).exp())
            values = [after - before for before, after in pairwise(values)]
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
        return total(self.variance, bits)

    def enclose_upper(self, first: int, bits: int) -> arb:
        """The sum of the weights at k ≥ first, for first ≥ 0."""
        return upper(self.variance, first, bits)

    def enclose_variance(self, bits: int) -> arb:
        """The variance of the law."""
        return second_moment(self.variance, bits)


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


def register_law(law: type[Law]) -> type[Law]:
    """Add a law of one's own, made of one exact `Fraction`. It is drawn from a table, so it must not be very wide."""
    return LAWS.register(law)


def described_law(described: Mapping[str, str]) -> Law:
    """Return the law that `Law.describe` described."""
    if described["law"] not in LAWS:
        raise LossError(f"there is no law {described['law']!r}")
    law: Callable[[Fraction], Law] = LAWS[described["law"]]
    return law(Fraction(described[LAWS[described["law"]].parameter]))
