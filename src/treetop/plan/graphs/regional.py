"""A plan for degrees by region at every level of a hierarchy: people are groups, and their degrees the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from treetop._util.numbers import Number
from treetop.counts.group_reader import check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.unit import Policies
from treetop.errors import PlanError
from treetop.plan.graphs.degrees import DEGREE, DegreeCounts, degree_fields
from treetop.plan.graphs.unit import Degree, DegreeFacts, DegreeUnit, Form
from treetop.plan.groups import unit as groups
from treetop.plan.groups.plan import GroupPlan
from treetop.plan.groups.planned import core_of
from treetop.plan.workload import CONFIDENCE
from treetop.privacy import Loss, Neighbours, Sensitivity, Split
from treetop.privacy.relation import check_relation

_FORMS: Mapping[Form, groups.Form] = {"histogram": "direct", "cumulative": "cumulative"}
NEIGHBOURS: Mapping[str, Neighbours] = {"edge": "add-remove", "user-out": "replace"}
"""Neighbours of each relation: an edge is added or removed, or one list is replaced by another."""
_EVENTS: Mapping[str, groups.Event] = {"edge": "join-leave", "user-out": "group"}


@dataclass(frozen=True, init=False)
class OfPeople(groups.GroupUnit):
    """The unit of a degree plan, as a unit of group sizes: people are groups, and degrees are sizes."""

    degrees: DegreeUnit

    def __init__(self, degrees: DegreeUnit) -> None:
        super().__init__(degrees.graph.kind.entity, event=_EVENTS[degrees.graph.relation])
        object.__setattr__(self, "degrees", degrees)

    def sensitivity(self, form: groups.Form, largest: int) -> Sensitivity:
        """Return how far one unit can move a level's counts; at worst both ends have the same region and degree."""
        return self.degrees.sensitivity(DEGREE)

    def sentence(self) -> str:
        """Describe the protected unit in plain English."""
        return self.degrees.sentence()


@dataclass(frozen=True, eq=False)
class RegionalPlan(DegreeCounts):
    """A plan for the degrees of every region; the region of each person is public.

    >>> places = Hierarchy.flat(["east", "west"])
    >>> plan = regional_degree_plan(places, 9, "edge", Loss(rho=1), directed=False)
    >>> plan.spent, [level.law for level in plan.core.levels]
    (Fraction(1, 1), [DiscreteGaussian(variance=Fraction(4, 1)), DiscreteGaussian(variance=Fraction(4, 1))])
    """

    @property
    def place(self) -> str:
        """Name of the region attribute."""
        return next(name for name in self.spine.attributes if name != DEGREE)

    @property
    def regions(self) -> Hierarchy:
        """Public tree of regions; every person is in one leaf."""
        return self.spine.attributes[self.place]

    @cached_property
    def core(self) -> GroupPlan:
        """The equivalent group size mechanism, with the noise of this plan."""
        unit = self.degrees
        return core_of(self, self.regions, unit.largest, OfPeople(unit), _FORMS[unit.form], "joint", "regions")

    @property
    def has_intervals(self) -> bool:
        """Whether released numbers have intervals."""
        return self.confidence is not None

    @property
    def keeps_regions(self) -> bool:
        """Whether the release keeps the number of people of every region, which is public."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        described = super().describe()
        return described | {"degrees": described["degrees"] | {"mechanism": self.core.name}}

    @property
    def terms(self) -> int:
        """Measurements per count: a number of people of one degree is the difference of two cumulative counts."""
        return 2 if self.degrees.form == "cumulative" else 1

    def _bound(self, index: int, risk: Fraction) -> int | None:
        """Return 0 for the exact total, and None for other levels: no simultaneous bound is proven."""
        return 0 if index == 0 else None


def regional_degree_plan(
    regions: Hierarchy,
    largest: int,
    relation: str,
    loss: Loss,
    directed: bool = True,
    form: Form = "cumulative",
    *,
    degree: Degree | None = None,
    contributions: int | None = None,
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform",
    place: str = "place",
    policies: Policies | None = None,
    population: int | None = None,
    title: str = "",
    confidence: Number | None = CONFIDENCE,
) -> RegionalPlan:
    """Return a plan for the degrees of every region, so that all levels add up; nothing private is read.

    Every person is in one leaf of `regions`, named by the column `place` of the node table; the region of each person
    is public. Under "edge" one edge is added or removed, under "user-out" one list is exchanged for another.
    """
    if check_relation(relation).name not in NEIGHBOURS:
        raise PlanError(
            f'under "{relation}" the region of a person is private, and here it must be public: choose "edge" or '
            '"user-out", or release the degrees of the whole graph'
        )
    if not isinstance(largest, int):
        raise PlanError(f"largest is {largest!r}: degrees by place have one largest degree, a whole number")
    check_cells(regions, largest)
    if place.casefold() == DEGREE:
        raise PlanError(f"the place cannot be called {place!r}, as the degrees are: rename it")
    facts = DegreeFacts(relation, directed, policies=policies or Policies(), degree=degree)
    unit = DegreeUnit(facts, NEIGHBOURS[relation], form, largest, population=population, contributions=contributions)
    return RegionalPlan(**degree_fields(unit, loss, regions, place, split=split, title=title, confidence=confidence))
