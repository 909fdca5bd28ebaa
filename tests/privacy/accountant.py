"""An accountant that shares nothing with the package: privacy losses on a grid, rounded down or up, and convolved.

What is rounded up is at least the true delta and what is rounded down at most it, so that the truth lies between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

_CUT = 1e-14
"""What is cut off at either end of a law: of the losses below nothing is lost, and those above are counted in full."""


@dataclass(frozen=True)
class Losses:
    """The law of a privacy loss: probabilities of multiples of a step, and of what is above all of them."""

    step: float
    lowest: int
    chance: NDArray[np.float64]
    above: float

    @classmethod
    def of(cls, one: Sequence[float], other: Sequence[float], step: float, *, up: bool) -> Losses:
        """What is learnt from outcomes with these probabilities under the two tables."""
        here, there = np.array(one), np.array(other)
        loss = np.log(here / there) / step
        place = (np.ceil(loss) if up else np.floor(loss)).astype(np.int64)
        missed = max(1 - math.fsum(one), 0.0)
        return cls(
            step, int(place.min()), np.bincount(place - place.min(), here).astype(np.float64), missed if up else 0.0
        )

    def beside(self, other: Losses) -> Losses:
        """What is learnt from both."""
        chance = np.convolve(self.chance, other.chance)
        together = Losses(self.step, self.lowest + other.lowest, chance, self.above + other.above)
        return together._short()

    def times(self, number: int) -> Losses:
        """What is learnt from so many like it."""
        found = self
        for _ in range(number - 1):
            found = found.beside(self)
        return found

    def delta(self, epsilon: float) -> float:
        """The delta at epsilon."""
        loss = self.step * (self.lowest + np.arange(len(self.chance)))
        over = loss > epsilon
        return float(self.chance[over] @ -np.expm1(epsilon - loss[over])) + self.above

    def _short(self) -> Losses:
        """Leave out what is hardly there: at the lower end it is moved up, or away where that is the other rounding."""
        below, up_to = np.cumsum(self.chance), np.cumsum(self.chance[::-1])
        start = int(np.searchsorted(below, _CUT**2))
        stop = len(self.chance) - int(np.searchsorted(up_to, _CUT**2))
        kept = self.chance[start:stop].copy()
        kept[0] += self.chance[:start].sum() if self.above else 0.0
        more = float(self.chance[stop:].sum()) if self.above else 0.0
        return Losses(self.step, self.lowest + start, kept, self.above + more)


def gaussian(variance: Fraction, step: float, *, up: bool) -> Losses:
    """Discrete Gaussian noise on a cell that moves by one."""
    v = float(variance)
    reach = math.ceil(9 * math.sqrt(v)) + 2
    weight = [math.exp(-x * x / (2 * v)) for x in range(-reach - 40, reach + 41)]
    total = math.fsum(weight)
    chance = [one / total for one in weight]
    return Losses.of(chance[40:-40], chance[39:-41], step, up=up)


def coin(epsilon: float, step: float, *, up: bool) -> Losses:
    """A coin that falls on the true side with e^epsilon times the chance of the other."""
    right = 1 / (1 + math.exp(-epsilon))
    return Losses.of([right, 1 - right], [1 - right, right], step, up=up)


def together(parts: Iterable[Losses]) -> Losses:
    """What is learnt from all."""
    first, *others = parts
    for one in others:
        first = first.beside(one)
    return first
