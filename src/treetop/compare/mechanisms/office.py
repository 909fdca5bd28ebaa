"""What offices do today, for comparison: small counts are left out, or all counts are rounded. Neither protects anyone.

Every level is published by itself, from the true counts: so a suppressed count can be found by subtraction where its
siblings and their sum are there, and rounded counts of two tables that differ in one person can tell which is which.
No epsilon describes either.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from treetop.compare.mechanisms.estimate import ROOT, Estimate, LevelEstimate, Words
from treetop.compare.mechanisms.mechanism import bound_key, check_parts
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import PlanError
from treetop.intake.counts import Counts, Digit, layout
from treetop.noise import Key, Keystream
from treetop.plan.workload import Part, PassThrough
from treetop.privacy import Loss, Unit
from treetop.release.errors import starts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Practice:
    """A way to publish that gives no guarantee; the loss is not asked."""

    name: ClassVar[str]
    about: ClassVar[str]
    definition: ClassVar[str] = "None: what is published depends on each record, and no epsilon bounds how much."

    spine: Spine
    """The public order of refinement."""
    unit: Unit
    """What is not protected."""
    loss: Loss
    """What others spend."""

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)

    @property
    def levels(self) -> tuple[Part, ...]:
        """The total and every level of the spine, none of which has noise."""
        nodes = [(TOTAL, 1), *((level.name, level.nodes) for level in self.spine.levels)]
        return tuple(Part(i, name, size, Fraction(0), PassThrough()) for i, (name, size) in enumerate(nodes))

    @property
    def spent(self) -> Fraction:
        """Nothing is spent where nothing is protected."""
        return Fraction(0)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Publish every level by itself."""
        levels = []
        for index, digit in enumerate((ROOT, *layout(self.spine))):
            keys, value = _summed(counts, digit)
            published = self._published(value, bound_key(key, counts, self.name, self.spine, {"level": index}))
            there = published != 0
            levels.append(LevelEstimate(tuple(word[there] for word in keys), published[there]))
        return Estimate(self.spine, levels[-1].keys, levels[-1].value, tuple(levels))

    def _published(self, value: Ints, key: Key) -> Ints:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Suppression(Practice):
    """Counts below a threshold are left out, and the others published as they are."""

    name: ClassVar[str] = "suppression"
    about: ClassVar[str] = "True counts of every level, without those below 5. No guarantee."

    least: int = 5
    """The least count that is published."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least < 1:
            raise PlanError(f"least is {self.least}: give 1 or more")

    def _published(self, value: Ints, key: Key) -> Ints:
        return np.where(value < self.least, 0, value)


@dataclass(frozen=True, eq=False)
class Rounding(Practice):
    """Every count is rounded to a multiple of a base, up or down at random so that the mean is right."""

    name: ClassVar[str] = "rounding"
    about: ClassVar[str] = "Counts of every level, each rounded at random to a multiple of 5. No guarantee."

    base: int = 5
    """What counts are multiples of."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base < 2:
            raise PlanError(f"base is {self.base}: give 2 or more")

    def _published(self, value: Ints, key: Key) -> Ints:
        words = np.empty(len(value), np.uint64)
        Keystream(key.derive("rounding")).fill(words, 0)
        over = value % self.base
        up = (words % np.uint64(self.base)).astype(np.int64) < over
        rounded: Ints = value - over + np.where(up, self.base, 0)
        return rounded


def _summed(counts: Counts, digit: Digit) -> tuple[Words, Ints]:
    """Return the nodes of a level with their true counts: the path of each has zeros for all finer ranks."""
    first = np.flatnonzero(starts(counts.keys, digit))
    value = np.diff(counts.before)
    keys = []
    for number, word in enumerate(counts.keys):
        finer = 0 if number < digit.word else digit.shift if number == digit.word else 64
        mask = 0 if finer >= 64 else (2**64 - 1) >> finer << finer
        keys.append(word[first] & np.uint64(mask))
    return tuple(keys), np.add.reduceat(value, first) if len(first) else value[:0]
