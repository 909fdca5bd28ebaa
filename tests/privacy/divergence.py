"""How far apart two laws are: computed from their probabilities, not estimated from samples.

Probabilities are the floats nearest to the exact ones and all sums are of non-negative terms, so that rounding is
below 1e-10 of each result; what is cut off the tails is added to the result. Both are allowed for by TOLERANCE.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Law

TOLERANCE = 1e-9
_CUT = Fraction(1, 2**70)

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Shift:
    """One measurement under two tables: the same noise around counts that differ by `by`."""

    law: Law
    by: int


@lru_cache(maxsize=4096)
def masses(law: Law, reach: int) -> NDArray[np.float64]:
    """P(X = k) for k = −reach, …, reach."""
    upper = [law.mass(k) for k in range(reach + 1)]
    return np.array(upper[:0:-1] + upper)


def _steps(shift: Shift, reach: int) -> NDArray[np.int64]:
    """The log of the ratio of the two probabilities at −reach, …, reach, in multiples of the law's rate."""
    x = np.arange(-reach, reach + 1, dtype=np.int64)
    steps: NDArray[np.int64] = np.abs(x - shift.by) ** shift.law.power - np.abs(x) ** shift.law.power
    return steps


def largest_loss(shifts: Sequence[Shift]) -> Fraction:
    """The largest log ratio of the probabilities of any measurements, for Laplace noise: exact."""
    assert all(shift.law.power == 1 for shift in shifts)
    return sum((shift.law.rate * abs(shift.by) for shift in shifts), Fraction(0))


def loss_of(changes: Iterable[tuple[Law, NDArray[np.int64]]]) -> Fraction:
    """What measurements that change by so much cost together: pure epsilon with Laplace noise, rho with Gaussian.

    Of the Gaussian it is the bound Δ²/(2σ²) of Canonne, Kamath and Steinke 2020, Theorem 14; levels add up.
    """
    spent = Fraction(0)
    for law, change in changes:
        size = int((np.abs(change) ** law.power).sum())
        spent += law.rate * size  # the rate of the Laplace is 1/scale, that of the Gaussian 1/(2σ²)
    return spent


def hockey_stick(shifts: Sequence[Shift], epsilon: float) -> float:
    """The least delta at epsilon of all measurements together, rounded up.

    The two directions are mirror images, since noise is symmetric and both tables have the same noise.
    """
    loss, total, cut = _law_of_loss(tuple(shifts))
    above = loss > epsilon
    return float(total[above] @ -np.expm1(epsilon - loss[above])) + cut


@lru_cache(maxsize=16)
def _law_of_loss(shifts: tuple[Shift, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The privacy loss of all measurements together, its probabilities, and what was cut off at most.

    It is asked for at several epsilons.
    """
    unit = _common([shift.law.rate for shift in shifts])
    in_order = sorted(shifts, key=lambda shift: (shift.law.rate, repr(shift.law), shift.by))
    low, total = _steps_together(tuple(in_order), unit)
    loss = float(unit) * (low + np.arange(len(total))).astype(np.float64)
    return loss, total, len(shifts) * float(_CUT)


@lru_cache(maxsize=128)
def _steps_together(shifts: tuple[Shift, ...], unit: Fraction) -> tuple[int, NDArray[np.float64]]:
    """The law of the loss in multiples of a unit: the least of them, and the probabilities from there on.

    Pairs of tables that differ in many cells have most of their shifts in common: those are convolved once.
    """
    if not shifts:
        return 0, np.ones(1)
    (*others, shift) = shifts
    low, total = _steps_together(tuple(others), unit)
    reach = shift.law.margin(_CUT)
    times = shift.law.rate / unit
    assert times.denominator == 1
    place = _steps(shift, reach) * times.numerator
    one = np.bincount(place - place.min(), weights=masses(shift.law, reach)).astype(np.float64)
    return low + int(place.min()), _convolved(total, one)


def _convolved(total: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convolve two laws; most of the second one are zeros where rates have a small common measure."""
    found = np.zeros(len(total) + len(one) - 1)
    for place in np.flatnonzero(one):
        found[place : place + len(total)] += one[place] * total
    return found


def renyi(shifts: Sequence[Shift], order: float) -> float:
    """The Rényi divergence of all measurements together; it adds up over independent ones."""
    total = 0.0
    for shift in shifts:
        reach = shift.law.margin(_CUT) + math.ceil(order) * abs(shift.by)
        loss = float(shift.law.rate) * _steps(shift, reach)
        total += math.log(float(masses(shift.law, reach) @ np.exp((order - 1) * loss))) / (order - 1)
    return total


def _common(rates: Sequence[Fraction]) -> Fraction:
    """The largest number of which all are whole multiples."""
    denominator = math.lcm(*(rate.denominator for rate in rates))
    return Fraction(math.gcd(*(int(rate * denominator) for rate in rates)), denominator)


def excess(one: Mapping[Outcome, float], other: Mapping[Outcome, float], epsilon: float) -> float:
    """The hockey-stick divergence of two laws of outcomes, without what was cut off."""
    factor = math.exp(epsilon)
    return sum(max(p - factor * other.get(outcome, 0.0), 0.0) for outcome, p in one.items())


def cut_off(law: Mapping[Outcome, float]) -> float:
    """The probability that a truncated law misses, at most."""
    return max(1 - math.fsum(law.values()), 0.0) + 1e-12


def largest_ratio(one: Mapping[Outcome, float], other: Mapping[Outcome, float]) -> float:
    """The largest log ratio of the probabilities of an outcome."""
    worst = -math.inf
    for outcome, p in one.items():
        if p > 0:
            q = other.get(outcome, 0.0)
            worst = max(worst, math.log(p / q) if q > 0 else math.inf)
    return worst
