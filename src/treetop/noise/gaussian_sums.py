"""Sums of e^(−k²/2v) over integers k, enclosed: whole, one-sided from any k, and the second moment."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt, lgamma, log, pi, sqrt

from flint import arb, fmpq

from treetop.noise.balls import ball, precision

_GUARD_BITS = 64
_DIRECT_VARIANCE = 1000  # up to here the direct sum has a few hundred terms


@lru_cache(maxsize=256)
def total(variance: Fraction, bits: int) -> arb:
    """Z = Σ e^(−k²/2v) over all integers k."""
    with precision(bits + _GUARD_BITS):
        zeroth, _ = _theta(variance, bits)
        return zeroth if variance < Fraction(1, 4) else (2 * arb.pi() * ball(variance)).sqrt() * zeroth


def second_moment(variance: Fraction, bits: int) -> arb:
    """Σ k² e^(−k²/2v) / Z, the variance of the discrete Gaussian."""
    with precision(bits + _GUARD_BITS):
        zeroth, second = _theta(variance, bits)
        if variance < Fraction(1, 4):
            return second / zeroth
        v = ball(variance)
        return v - (2 * arb.pi() * v) ** 2 * second / zeroth


def _theta(variance: Fraction, bits: int) -> tuple[arb, arb]:
    """Σ q^(k²) and Σ k² q^(k²) over all integers, with q = e^(−1/2v), or q = e^(−2π²v) where that is smaller.

    The second is what Poisson summation turns the first into: Z(v) = √(2πv) Σ e^(−2π²v k²).
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
    with precision(bits + _GUARD_BITS):
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
    """The least order n whose Euler–Maclaurin remainder is negligible, if there is a moderate one.

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
