"""A workload: what is measured, as an ordered set of tables, each with its public cells and with how it is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from treetop.domain.unit import Unit
from treetop.errors import PlanError
from treetop.noise import DiscreteGaussian, Law
from treetop.noise.sum_noise import sum_margin
from treetop.privacy.composition import Cells


@dataclass(frozen=True)
class Exact:
    """Told as it is: all neighbours have the same."""


@dataclass(frozen=True)
class PassThrough:
    """Not measured, since it follows from another table: an only child from its parent, a sum from its parts."""


@dataclass(frozen=True)
class Measured:
    """Measured, with noise on every cell."""

    law: Law
    """The noise of one cell."""


How: TypeAlias = Exact | PassThrough | Measured


def noise_of(how: How) -> Law | None:
    """Return the noise of what was measured; None of what was not."""
    return how.law if isinstance(how, Measured) else None


@dataclass(frozen=True)
class Part:
    """One table of a workload: of a spine, a level."""

    index: int
    """The position in the workload; of a spine the total is 0."""
    name: str
    """Its name: that of the level."""
    nodes: int
    """How many cells the public domain has there."""
    share: Fraction
    """Its share of the loss."""
    how: How
    """How it is measured, if it is."""
    cost: Fraction = Fraction(0)
    """What it spends: rho, or epsilon for a pure loss."""

    @property
    def is_exact(self) -> bool:
        """Whether it is told as it is."""
        return isinstance(self.how, Exact)

    @property
    def is_measured(self) -> bool:
        """Whether noise is added to it."""
        return isinstance(self.how, Measured)

    @property
    def law(self) -> Law:
        """The noise of one cell of what is measured."""
        if not isinstance(self.how, Measured):
            raise PlanError(f"{self.name} is not measured, and has no noise")
        return self.how.law

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of one cell: 0 where there is none."""
        return self.law.standard_deviation if self.is_measured else 0.0

    def margin(self, risk: Fraction, terms: int = 1) -> int:
        """How far off a count of so many measurements may be, but for this risk; 0 where there is no noise.

        Of one measurement it is the exact quantile.
        """
        if not self.is_measured:
            return 0
        return self.law.margin(risk) if terms == 1 else sum_margin(self.law, terms, risk / 2)

    def describe(self) -> dict[str, Any]:
        """Return it as plain values, for cards and digests."""
        return {
            "level": self.index,
            "name": self.name,
            "nodes": self.nodes,
            "share": str(self.share),
            "cost": str(self.cost),
            "noise": self.law.describe() if self.is_measured else None,
        }


@dataclass(frozen=True)
class Workload:
    """All that one run measures of private counts, and nothing else may be."""

    parts: tuple[Part, ...]
    """The tables, in the order in which they are measured."""

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def measured(self) -> list[tuple[Part, Law]]:
        """The tables that are measured, each with its noise."""
        return [(part, part.how.law) for part in self.parts if isinstance(part.how, Measured)]

    @property
    def spent(self) -> Fraction:
        """What a run costs: its tables add up (Bun and Steinke 2016, Lemma 1.7)."""
        return sum((part.cost for part in self.parts), Fraction(0))


def cells_of(unit: Unit, workload: Workload) -> Cells | None:
    """Return how many cells one unit moves by one in each measured table, with the variance of their noise, in order.

    None where it may move one by more, or where some noise is not the discrete Gaussian. What a table costs is half of
    what the unit moves, squared and summed up, over the variance: so many cells it moves.
    """
    cells = []
    for part, law in workload.measured:
        if not unit.moves_by_one or type(law) is not DiscreteGaussian:
            return None
        number = 2 * part.cost * law.variance
        if number.denominator != 1:
            raise PlanError(f"{part.name} costs {part.cost}, which no number of cells with its noise does")
        cells.append((law.variance, int(number)))
    return tuple(cells) or None
