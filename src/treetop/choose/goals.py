"""What may be asked of a level: that most measurements are within a margin, or how far off they are on average."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias

from treetop.choose.error_laws import mean_absolute_of_count
from treetop.errors import LossError
from treetop.noise import Law
from treetop.noise.balls import at_most
from treetop.noise.sum_noise import sum_margin


@dataclass(frozen=True)
class Within:
    """A share of the counts of a level, such as 95 %, is within a margin of the truth, as the level measures them."""

    level: str
    """The level that it is about."""
    margin: int
    """How far off a count may be."""
    confidence: float = 0.95
    """How many of them may be no farther off: P(|noise| ≤ margin) ≥ confidence."""

    def __post_init__(self) -> None:
        if type(self.margin) is not int or self.margin < 0:
            raise LossError(f"the margin of {self.level} is {self.margin!r}: give a whole number, 0 or more")
        if not 0 < self.confidence < 1:
            raise LossError(f"the confidence of {self.level} is {self.confidence}: give a number between 0 and 1")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether counts of so many measurements with this noise meet the target; of one, exactly."""
        risk = 1 - Fraction(str(self.confidence))
        if terms > 1:
            return sum_margin(law, terms, risk / 2) <= self.margin
        return at_most(lambda bits: law.enclose_tail(self.margin, bits), risk / 2)

    def guess(self) -> float:
        """A standard deviation that may be right."""
        return (self.margin + 0.5) / NormalDist().inv_cdf((1 + self.confidence) / 2)

    def __str__(self) -> str:
        return f"{100 * self.confidence:g}% of {self.level} within ±{self.margin:,}"


@dataclass(frozen=True)
class Mean:
    """The counts of a level, as it measures them, are off by no more than a value on average: E|noise| ≤ value."""

    level: str
    """The level that it is about."""
    value: float
    """The mean absolute error that is allowed."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise LossError(f"the mean error of {self.level} is {self.value}: give a positive number")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether counts of so many measurements with this noise meet the target."""
        return mean_absolute_of_count(law, terms) <= self.value

    def guess(self) -> float:
        """A standard deviation that may be right."""
        return self.value * math.sqrt(math.pi / 2)

    def __str__(self) -> str:
        return f"{self.level} off by at most {self.value:g} on average"


Target: TypeAlias = Within | Mean


within, mean = Within, Mean
"""What reads well in a list of targets."""

_WRITTEN = re.compile(
    r"\s*(?P<level>[^=]+?)(?:(?:\s+within\s+|\s*=\s*)±?(?P<margin>\d+)(?:\s+at\s+(?P<percent>[\d.]+)\s*%)?"
    r"|\s+mean\s+(?P<value>[\d.]+))\s*",
    re.ASCII,
)


def read_target(text: str) -> Target:
    """Read a target as people write it.

    >>> read_target("place.town within 20"), read_target("place.town within 50 at 99%")
    (Within(level='place.town', margin=20, confidence=0.95), Within(level='place.town', margin=50, confidence=0.99))
    >>> read_target("place.town=20 at 90%")
    Within(level='place.town', margin=20, confidence=0.9)
    >>> read_target("place.county mean 3.5")
    Mean(level='place.county', value=3.5)
    """
    found = _WRITTEN.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        if found["value"] is not None:
            return Mean(found["level"], float(found["value"]))
        percent = Fraction(found["percent"] or "95")
        return Within(found["level"], int(found["margin"]), float(percent / 100))
    except ValueError:
        raise LossError(
            f"the target {text!r} cannot be read; write 'LEVEL=20' (95% of its counts within ±20), "
            "'LEVEL within 20 at 99%' or 'LEVEL mean 5'"
        ) from None
