"""Numbers read exactly: text becomes a `Fraction`, and a `Fraction` becomes text again."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop._util.dtypes import Floats, Ints
from treetop.errors import LossError, NumberError

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


# Numbers that compiled code may take: finite, in range and of the right shape, or refused at its door.
# A kernel does not check its arguments: a number that is not one, or a sum that leaves 64 bits, could send it through
# memory that is not its own. So every function that calls one checks its arguments here.

MOST = 1 << 58
"""The largest magnitude of a whole number, or of a sum of them, that a kernel takes: there is room for a few more."""
NO_BOUND = 1 << 59
"""The upper bound of an unbounded cell: above all of these, and a sum of a few still fits 64 bits."""
LARGEST_REAL = 1e150
"""The largest magnitude of a real number: its square is finite."""


def whole_numbers(values: Any, what: str, ndim: int = 1, most: int = MOST) -> Ints:
    """Return an array of whole numbers with magnitudes of at most `most`.

    >>> whole_numbers([1.0, 2.0], "counts").tolist()
    [1, 2]
    """
    given = _numbers(values, what, "whole", ndim)
    if np.issubdtype(given.dtype, np.floating) and not (np.isfinite(given).all() and (given == np.rint(given)).all()):
        raise NumberError(f"{what}: whole numbers are wanted, and some are not finite or have a fraction")
    # Compared one way each: the magnitude of the least int64 is none, and of a large uint64 no int64 is.
    if given.size and (given.max() > most or given.min() < -most):
        raise NumberError(f"{what}: a number is beyond {most:,}, the largest magnitude that is taken")
    return np.asarray(given, np.int64, order="C")


def real_numbers(values: Any, what: str, ndim: int = 1, least: float = -LARGEST_REAL) -> Floats:
    """Return an array of finite real numbers, none below `least`."""
    reals = np.asarray(_numbers(values, what, "finite", ndim), np.float64, order="C")
    if not np.isfinite(reals).all() or (reals.size and (reals.max() > LARGEST_REAL or reals.min() < least)):
        raise NumberError(f"{what}: finite numbers are wanted, from {least:g} to {LARGEST_REAL:g}")
    return reals


def whole_number(value: Any, what: str, least: int = 0, most: int = MOST) -> int:
    """Return one whole number between two bounds.

    >>> whole_number(7, "a count")
    7
    """
    given = _array(value, what)
    kinds = (np.integer, np.floating)
    if given.ndim or not any(np.issubdtype(given.dtype, kind) for kind in kinds):
        raise NumberError(f"{what} is {value!r}: give a whole number, {least:,} or more")
    number = given.item()
    if number != number or number in (float("inf"), -float("inf")) or number != int(number):
        raise NumberError(f"{what} is {value!r}: give a whole number, {least:,} or more")
    if number < least:
        negative = "it cannot be negative" if least == 0 else f"it cannot be below {least:,}"
        raise NumberError(f"{what} is {int(number):,}: {negative}")
    if number > most:
        raise NumberError(f"{what} is {int(number):,}: it cannot be above {most:,}")
    return int(number)


def check_sum(values: Ints, more: int, what: str) -> None:
    """Refuse whole numbers whose magnitudes sum, with some more, to what could leave 64 bits."""
    if float(np.abs(values).sum(dtype=np.float64)) + float(more) + values.size > MOST:
        raise NumberError(f"{what}: they do not fit 64 bits when summed")


def _numbers(values: Any, what: str, wanted: str, ndim: int) -> NDArray[Any]:
    given = _array(values, what)
    if given.dtype == np.bool_ or not np.issubdtype(given.dtype, np.number) or np.iscomplexobj(given):
        raise NumberError(f"{what}: {wanted} numbers are wanted, not {given.dtype}")
    if given.ndim != ndim:
        raise NumberError(f"{what}: an array of {ndim} dimensions is wanted, not one of shape {given.shape}")
    return given


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, OverflowError) as problem:  # rows of different lengths
        raise NumberError(f"{what}: this is no array of numbers: {problem}") from problem
