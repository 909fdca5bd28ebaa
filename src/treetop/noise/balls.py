"""Certain answers from ball arithmetic: precision is raised until the enclosing ball leaves no doubt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import RLock
from typing import TypeVar

from flint import arb, ctx, fmpq

from treetop.basics.exact import rounded_up

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
        """Whether U < number; what was drawn for one comparison also holds in the next."""
        while True:
            with precision(self._bits + _UNIFORM_GUARD_BITS):
                scaled = number(self._bits + _UNIFORM_GUARD_BITS) * 2**self._bits
                if scaled >= self._prefix + 1:
                    return True
                if scaled <= self._prefix:
                    return False
            self._prefix = (self._prefix << WORD_BITS) | next(self._more)
            self._bits += WORD_BITS
