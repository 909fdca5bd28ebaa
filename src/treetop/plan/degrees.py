"""Plans for the degrees of a graph, of everybody together or by region: the people of each degree, measured once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from treetop._util.numbers import Number
from treetop.counts.group_reader import check_cells
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.unit import Policies
from treetop.errors import LossError, PlanError
from treetop.noise import Law
from treetop.plan.degree_unit import (
    HELD,
    Degree,
    DegreeFacts,
    DegreeUnit,
    Form,
    ThetaChoice,
    degree_sensitivity,
    name_of,
)
from treetop.plan.fields import DEGREES, decided
from treetop.plan.group_plan import spine_of_numbers
from treetop.plan.mechanism import Mechanism, Reader
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms
from treetop.plan.workload import CONFIDENCE, Measured, Part, Workload
from treetop.privacy import Loss, Neighbours, SplitLike
from treetop.privacy.accountant import cost, level_noise, noise_for
from treetop.privacy.relation import check_relation

DEGREE = "degree"
"""Name of the degree attribute and of its one level."""

NEIGHBOURS: Mapping[str, Neighbours] = {"edge": "add-remove", "user-out": "replace"}
"""Neighbours of each relation by region: an edge is added or removed, or one list is replaced by another."""


@dataclass(frozen=True)
class DegreeReader(Reader):
    """Counts of people by degree, read from the tables of a graph."""

    name: ClassVar[str] = "degrees"
    axis: ClassVar[str | None] = DEGREE
    what: ClassVar[str] = "people"
    not_top_down: ClassVar[str] = (
        'this plan is for degrees, which are measured all at once: `treetop plan` (under "node" also with `twin`, for '
        "advice on the largest degree) and `treetop release` take it, and its release `treetop check`, `treetop query` "
        "and `treetop export`. For anything else, count nodes or edges (counts under [graph])"
    )

    def check(self, plan: Plan) -> None:
        """Refuse exact accounting."""
        if plan.loss.accounting == "exact":
            raise PlanError('exact accounting is not for degrees: leave it out, or write accounting="zcdp"')

    def check_workload(self, plan: Plan) -> None:
        """Refuse noise that sums of degrees cannot hold."""
        widest = max(law.margin(Fraction(1, 2**80)) for _, law in plan.workload.measured)
        if widest * (DegreeUnit.of(plan.unit).largest + 1) ** 2 >= 2**61:
            raise LossError("the noise is too wide for 64-bit sums: give a larger loss, or a smaller largest degree")

    def describe(self, plan: Plan) -> dict[str, Any]:
        """Return the plan's decisions about degrees, as plain values for cards and digests."""
        stated = {"largest": DegreeUnit.of(plan.unit).largest, **decided(plan, DEGREES)["degrees"]}
        return {"order": "none", "degrees": plan.mechanism.describe(plan, stated)}


@dataclass(frozen=True)
class DegreeHistogram(Mechanism):
    """One histogram of the degrees of a whole graph, measured once and repaired.

    >>> plan = degree_plan("edge", "add-remove", Loss(rho=1), largest=9)
    >>> [(level.name, level.nodes) for level in plan.levels]
    [('total', 1), ('degree', 10)]
    """

    name: ClassVar[str] = "degree-histogram"
    counts: ClassVar[tuple[str, ...]] = ("degrees",)

    choice: ThetaChoice | None = None
    """How theta is chosen among candidates; None if it is fixed. Until then the largest candidate is used: no other
    needs as much noise."""

    def tables(self, plan: Plan) -> tuple[Fraction, Workload]:
        """Return the budget and the tables: the levels, and the people who reach each candidate if theta is chosen."""
        budget, workload = super().tables(plan)
        if self.choice is None:
            return budget, workload
        parts = [_with_share(plan, part, self.choice.left) if part.is_measured else part for part in workload]
        law = workload.measured[0][1]
        each = self.choice.share / len(self.choice.candidates)
        for theta in self.choice.candidates:
            parts.append(_with_share(plan, Part(len(parts), name_of(theta), 1, each, Measured(law)), each))
        workload = Workload(tuple(parts))
        if workload.spent > budget:  # exact arithmetic: a bug, not rounding
            raise PlanError(f"choosing theta and the degrees would cost {workload.spent}, more than {budget}")
        return budget, workload

    def choice_parts(self, plan: Plan) -> tuple[Part, ...]:
        """Return the counts for choosing theta: one for each candidate."""
        return plan.workload.parts[len(plan.levels) :]

    def settled(self, plan: Plan, measured: Sequence[int]) -> Plan:
        """Return the plan with the theta that the rule selects, given the measurements of the candidates."""
        assert self.choice is not None
        chosen = DegreeHistogram(replace(self.choice, measured=tuple(measured)))
        return chosen._with(plan, self.choice.best(self.widths(plan), measured))

    def as_released(self, plan: Plan, spine: Spine) -> Plan:
        """Return the plan with the theta of a release, if that was chosen among this plan's candidates."""
        theta = spine.trees[0].sizes[-1] - 1
        return self._with(plan, theta) if self.choice is not None and theta in self.choice.candidates else plan

    def _with(self, plan: Plan, theta: int) -> Plan:
        own = DegreeUnit.of(plan.unit)
        unit = DegreeUnit(own.graph, own.neighbours, own.form, theta, own.entity, own.population)
        return replace(plan, spine=spine_of_numbers(DEGREE, theta, None), unit=unit, mechanism=self)

    def candidate_laws(self, plan: Plan) -> list[Law]:
        """Return the noise of each count by candidate."""
        assert self.choice is not None
        own, graph = DegreeUnit.of(plan.unit), DegreeUnit.of(plan.unit).graph
        return [
            noise_for(
                degree_sensitivity(graph.relation, graph.counted, own.form, own.neighbours, theta),
                plan.loss,
                self.choice.left,
            )
            for theta in self.choice.candidates
        ]

    def widths(self, plan: Plan) -> list[int]:
        """Return half the width of the error of one count by candidate, at two-thirds confidence; for the rule."""
        return [law.margin(HELD) for law in self.candidate_laws(plan)]

    def law(self, plan: Plan) -> Law:
        """Return the noise of each count."""
        return plan.workload.measured[0][1]

    def rest(self, plan: Plan) -> bool:
        """Whether people without edges are not measured: under "user-out" they are the remainder."""
        unit = DegreeUnit.of(plan.unit)
        return unit.graph.relation == "user-out" and unit.graph.counted == "out" and not unit.cumulative

    def describe(self, plan: Plan, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Return the decisions of the reader, with the choice of theta if there is one."""
        if self.choice is None:
            return dict(stated)
        measured = None if self.choice.measured is None else list(self.choice.measured)
        choice = {"candidates": list(self.choice.candidates), "share": str(self.choice.share), "measured": measured}
        return {**stated, "choice": choice}

    def binding(self, plan: Plan) -> dict[str, Any]:
        """Return the decisions that the noise is bound to, beside the data."""
        unit = DegreeUnit.of(plan.unit)
        return {
            "degrees": unit.graph.relation,
            "neighbours": unit.neighbours,
            "largest": unit.largest,
            "form": unit.form,
            "directed": unit.graph.directed,
            "noise": self.law(plan).describe(),
            # What was the only choice once is not said, so that the same key still gives the same noise.
            **({} if unit.graph.degree is None else {"degree": unit.graph.degree}),
            **({"contributions": unit.contributions} if unit.graph.cut else {}),
            **({} if self.choice is None else {"candidates": self.choice.candidates, "choosing": self.choice.share}),
        }

    def bound(self, plan: Plan, index: int, risk: Fraction) -> int:
        """Return a bound on the error of all counts of a level, repairs included, that holds except with risk `risk`.

        Let all measurements be within m. The monotone fit of cumulative counts keeps them within m, so differences
        are within 2m. A histogram clamped at zero stays within m; one that is shifted to sum to the number of people is
        shifted by at most m, and rounded. Under "user-out" the people without edges are the remainder.
        """
        unit, rest = DegreeUnit.of(plan.unit), self.rest(plan)
        people_are_public = unit.total_is_exact(False)
        cells = unit.largest + (not rest)
        m = self.law(plan).margin(risk / cells)
        if index == 0 and people_are_public:
            return 0
        if unit.cumulative:
            return m if index == 0 else 2 * m
        if not people_are_public:
            return cells * m if index == 0 else m
        return max(2 * m + 1, cells * m) if rest else 2 * m + 1


def _with_share(plan: Plan, part: Part, share: Fraction) -> Part:
    """Return a table of the workload with another share of the loss and the corresponding noise."""
    law = level_noise(plan.unit, plan.loss, part.name, share)
    return replace(part, share=share, how=Measured(law), cost=cost(plan.unit, part.name, law))


def _plan(
    unit: DegreeUnit, loss: Loss, mechanism: Mechanism, regions: Hierarchy | None = None, place: str = "", **more: Any
) -> Plan:
    return Plan(
        spine=spine_of_numbers(DEGREE, unit.largest, regions, place),
        unit=unit,
        loss=loss,
        repair="euclidean",
        unknown="drop" if unit.graph.policies.unknown == "drop" else "error",
        reader=DegreeReader(),
        mechanism=mechanism,
        **more,
    )


def degree_plan(
    relation: str,
    neighbours: Neighbours,
    loss: Loss,
    largest: int | Sequence[int],
    form: Form = "cumulative",
    directed: bool = True,
    *,
    degree: Degree | None = None,
    contributions: int | None = None,
    choosing: Number | None = None,
    policies: Policies | None = None,
    entity: str | None = None,
    population: int | None = None,
    title: str = "",
    confidence: Number | None = CONFIDENCE,
) -> Plan:
    """Return a plan for the degrees of a whole graph; nothing private is read.

    Args:
        relation: Neighbour relation: "edge", "user-out" or "node".
        neighbours: "add-remove" or "replace".
        loss: Privacy loss of the release.
        largest: Largest degree told apart; higher degrees are counted with it. Under "node" this is theta, and edges
            are left out until nobody has more. Several candidates have it chosen privately.
        form: Measure the people of each degree ("histogram"), or of each degree and those below ("cumulative").
        directed: Whether edges have a direction.
        degree: Edges of a person that are counted, "out", "in" or "total". Default: "out" if edges have a direction,
            otherwise, and under "node", "total".
        contributions: Edges of a list that count if, under "user-out", its edges are counted at other people.
        choosing: Share of the loss for choosing among candidates of `largest`.
        policies: Policies of the graph; give `graph.policies`.

    >>> print(degree_plan("node", "add-remove", Loss(rho=1), largest=9).sentence())
    The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It rests on no \
promise: edges are left out until nobody has more than the largest degree. One person is added or removed. \
Zero-concentrated differential privacy with rho 1; Gaussian noise.
    """
    facts = DegreeFacts(relation, directed, policies=policies or Policies(), degree=degree)
    choice = choice_of(relation, largest, choosing)
    most = largest if choice is None else choice.candidates[-1]
    unit = DegreeUnit(facts, neighbours, form, most, entity, population, contributions)  # type: ignore[arg-type]
    return _plan(unit, loss, DegreeHistogram(choice), title=title, confidence=confidence)


def choice_of(relation: str, largest: int | Sequence[int], choosing: Number | None) -> ThetaChoice | None:
    """Return the choice among several candidates for the largest degree; None for a single number."""
    if not isinstance(largest, list | tuple):
        if choosing is not None:
            raise PlanError(
                "choosing is what a choice among several largest degrees costs: give a list, or leave it out"
            )
        return None
    if relation != "node":
        raise PlanError(
            f'largest is {list(largest)}: it is chosen under "node" only, where edges above it are left out; under '
            f'"{relation}" give one number, from public knowledge'
        )
    return ThetaChoice.of(largest, choosing)


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
    split: SplitLike = "uniform",
    place: str = "place",
    policies: Policies | None = None,
    population: int | None = None,
    title: str = "",
    confidence: Number | None = CONFIDENCE,
) -> Plan:
    """Return a plan for the degrees of every region, so that all levels add up; nothing private is read.

    Every person is in one leaf of `regions`, named by the column `place` of the node table; the region of each person
    is public. Under "edge" one edge is added or removed, under "user-out" one list is exchanged for another.

    >>> places = Hierarchy.flat(["east", "west"])
    >>> plan = regional_degree_plan(places, 9, "edge", Loss(rho=1), directed=False)
    >>> plan.spent, [level.law for level in plan.levels[1:]]
    (Fraction(1, 1), [DiscreteGaussian(variance=Fraction(4, 1)), DiscreteGaussian(variance=Fraction(4, 1))])
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
    mechanism = RegionHistograms("regions", "joint")
    return _plan(unit, loss, mechanism, regions, place, split=split, title=title, confidence=confidence)
