"""Numbers read exactly: text becomes a `Fraction`, and a `Fraction` becomes text again."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import TypeAlias

from treetop.errors import LossError

Number: TypeAlias = int | float | Fraction | Decimal

SMALLEST = Fraction(1, 10**100)
LARGEST = Fraction(10**100)


def positive(value: object, what: str) -> Fraction:
    """Read a positive number; a float is the decimal that it prints as.

    >>> positive(0.1, "epsilon")
    Fraction(1, 10)
    """
    number = _read(value, what)
    if number <= 0:
        raise LossError(f"{what} is {value}, but must be greater than zero; give a positive number.")
    if not SMALLEST <= number <= LARGEST:
        raise LossError(f"{what} is {value}; give a number between 1e-100 and 1e100.")
    return number


def delta_between_0_and_1(value: object) -> Fraction:
    """Read a delta: a chance, strictly between 0 and 1."""
    number = _read(value, "delta")
    if number == 0:
        raise LossError("delta is 0. For pure differential privacy give epsilon alone and leave delta out.")
    if number >= 1:
        raise LossError(f"delta is {value}, which protects nobody; give a small chance, such as 1e-8.")
    return positive(value, "delta")


def _read(value: object, what: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Rational | float | Decimal):
        raise LossError(f"{what} is {value!r}, which is not a number; write a plain number, without quotes.")
    if isinstance(value, Rational):
        # NumPy's integers are Rational, but overflow: copy them to Python's.
        return Fraction(int(value.numerator), int(value.denominator))
    decimal = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not decimal.is_finite():
        raise LossError(f"{what} is {value}; give a finite number.")
    return Fraction(decimal)


def rounded_up(value: Fraction | Decimal) -> float:
    """The least float that is not below the value: a loss is never understated."""
    nearest = float(value)
    return nearest if type(value)(nearest) >= value else math.nextafter(nearest, math.inf)


def whole(value: object) -> int | None:
    """Read a whole number, 1 or more; anything else is None."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        return None
    return int(value)


def plain(value: Fraction | float) -> str:
    """Write a number for people with at most six digits, rounded up: a loss is never understated.

    >>> plain(Fraction(1, 3)), plain(Fraction(1, 10**8))
    ('0.333334', '1e-08')
    """
    number = Fraction(value)
    upward = Context(prec=6, rounding=ROUND_CEILING)
    return f"{float(upward.divide(Decimal(number.numerator), Decimal(number.denominator))):.6g}"


MOST = 1 << 58
"""The largest magnitude of a whole number, or of a sum of them, that a kernel takes: there is room for a few more."""
NO_BOUND = 1 << 59
"""The upper bound of an unbounded cell: above all of these, and a sum of a few still fits 64 bits."""
LARGEST_REAL = 1e150
"""The largest magnitude of a real number: its square is finite."""
