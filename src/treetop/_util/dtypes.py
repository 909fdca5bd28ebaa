"""Types of arrays, and the checks of arrays that compiled code takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.numbers import LARGEST_REAL, MOST
from treetop.errors import NumberError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

# Numbers that compiled code may take: finite, in range and of the right shape, or refused at its door.
# A kernel does not check its arguments: a number that is not one, or a sum that leaves 64 bits, could send it through
# memory that is not its own. So every function that calls one checks its arguments here.


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
