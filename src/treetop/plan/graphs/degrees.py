"""A plan for the degrees of a graph: number of people by degree, measured once under a neighbour relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

from treetop._util.numbers import Number
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.unit import Policies
from treetop.errors import LossError, PlanError
from treetop.noise import Law
from treetop.plan.fields import DEGREES, decided
from treetop.plan.graphs.unit import (
    HELD,
    Degree,
    DegreeFacts,
    DegreeUnit,
    Form,
    ThetaChoice,
    degree_sensitivity,
    name_of,
)
from treetop.plan.groups.planned import spine_of_numbers
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE, Measured, Part, Workload
from treetop.privacy import Loss, Neighbours
from treetop.privacy.accountant import cost, level_noise, noise_for

DEGREE = "degree"
"""Name of the degree attribute and of its one level."""


@dataclass(frozen=True, eq=False)
class DegreeCounts(Plan):
    """Base class of degree plans, for a whole graph or by region."""

    def __post_init__(self) -> None:
        if not isinstance(self.unit, DegreeUnit):
            raise PlanError(f"unit is {self.unit!r}: a plan for degrees is made with degree_plan")
        if self.loss.accounting == "exact":
            raise PlanError('exact accounting is not for degrees: leave it out, or write accounting="zcdp"')
        object.__setattr__(self, "margins", "none")  # there is no second table of such counts
        super().__post_init__()
        object.__setattr__(self, "workload", self._all_measured())
        widest = max(law.margin(Fraction(1, 2**80)) for _, law in self.workload.measured)
        if widest * (self.degrees.largest + 1) ** 2 >= 2**61:
            raise LossError("the noise is too wide for 64-bit sums: give a larger loss, or a smaller largest degree")

    @property
    def degrees(self) -> DegreeUnit:
        """The unit, typed as a degree unit."""
        assert isinstance(self.unit, DegreeUnit)
        return self.unit

    @property
    def stated_largest(self) -> int | tuple[int, ...]:
        """The largest degree, or its candidates, as the plan states them."""
        return self.degrees.largest

    @property
    def choosing(self) -> Fraction | None:
        """Share of the loss for choosing the largest degree; None if it is not chosen."""
        return None

    def _all_measured(self) -> Workload:
        """The workload: the levels, and the counts for choosing theta if it is chosen."""
        return self.workload

    @property
    def relation(self) -> str:
        """Neighbour relation."""
        return self.degrees.graph.relation

    @property
    def people_are_public(self) -> bool:
        """Whether all neighbours have the same number of nodes."""
        return self.unit.total_is_exact(False)

    def sentence(self) -> str:
        """Describe the unit and the guarantee in plain English."""
        return f"{self.unit.sentence()} {self.kept_loss.sentence()}"

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        return super().describe() | {"order": "none", "degrees": decided(self, DEGREES)["degrees"]}

    def refuse_unless_top_down(self) -> None:
        """Refuse: degrees are not measured from the top down."""
        refuse()


@dataclass(frozen=True, eq=False)
class DegreePlan(DegreeCounts):
    """A plan for the degrees of a whole graph; made by `degree_plan`.

    >>> plan = degree_plan("edge", "add-remove", Loss(rho=1), largest=9)
    >>> [(level.name, level.nodes) for level in plan.levels]
    [('total', 1), ('degree', 10)]
    """

    choice: ThetaChoice | None = None
    """How theta is chosen among candidates; None if it is fixed. Until then the largest candidate is used: no other
    needs as much noise."""

    def settled(self, measured: Sequence[int]) -> DegreePlan:
        """Return the plan with the theta that the rule selects, given the measurements of the candidates."""
        assert self.choice is not None
        return self._with(replace(self.choice, measured=tuple(measured)), self.choice.best(self.widths, measured))

    def as_released(self, spine: Spine) -> Plan:
        """Return the plan with the theta of a release, if that was chosen among this plan's candidates."""
        theta = spine.trees[0].sizes[-1] - 1
        if self.choice is None or theta not in self.choice.candidates:
            return self
        return self._with(self.choice, theta)

    def _with(self, choice: ThetaChoice, theta: int) -> DegreePlan:
        own = self.degrees
        unit = DegreeUnit(own.graph, own.neighbours, own.form, theta, own.entity, own.population)
        told = degree_fields(unit, self.loss, None, title=self.title, confidence=self.confidence, choice=choice)
        return DegreePlan(**told)

    @property
    def widths(self) -> list[int]:
        """Half width of the error of one count by candidate, at two-thirds confidence; used by the rule."""
        return [law.margin(HELD) for law in self.candidate_laws]

    @property
    def candidate_laws(self) -> list[Law]:
        """Noise of each count by candidate."""
        assert self.choice is not None
        own, graph = self.degrees, self.degrees.graph
        return [
            noise_for(
                degree_sensitivity(graph.relation, graph.counted, own.form, own.neighbours, theta),
                self.loss,
                self.choice.left,
            )
            for theta in self.choice.candidates
        ]

    @property
    def stated_largest(self) -> int | tuple[int, ...]:
        """The largest degree, or its candidates, as the plan states them."""
        return self.degrees.largest if self.choice is None else self.choice.candidates

    @property
    def choosing(self) -> Fraction | None:
        """Share of the loss for choosing the largest degree; None if it is not chosen."""
        return None if self.choice is None else self.choice.share

    def _all_measured(self) -> Workload:
        """The workload: the levels, and the number of people who reach each candidate if theta is chosen."""
        if self.choice is None:
            return self.workload
        parts = [self._part(part, self.choice.left) if part.is_measured else part for part in self.workload]
        for theta in self.choice.candidates:
            asked = Part(len(parts), name_of(theta), 1, self.choice.share_of_each, Measured(self.law))
            parts.append(self._part(asked, asked.share))
        workload = Workload(tuple(parts))
        if workload.spent > self.budget:  # exact arithmetic: a bug, not rounding
            raise PlanError(f"choosing theta and the degrees would cost {workload.spent}, more than {self.budget}")
        return workload

    def _part(self, part: Part, share: Fraction) -> Part:
        """Return a table of the workload with another share of the loss and the corresponding noise."""
        law = level_noise(self.unit, self.loss, part.name, share)
        return replace(part, share=share, how=Measured(law), cost=cost(self.unit, part.name, law))

    @property
    def choice_parts(self) -> tuple[Part, ...]:
        """The counts for choosing theta: one for each candidate."""
        return self.workload.parts[len(self.levels) :]

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        told, choice = super().describe(), self.choice
        if choice is None:
            return told
        stated = {"candidates": list(choice.candidates), "share": str(choice.share)}
        measured = None if choice.measured is None else list(choice.measured)
        own = {name: entry for name, entry in told["degrees"].items() if name != "choosing"}
        return told | {
            "degrees": own | {"largest": self.degrees.largest, "choice": stated | {"measured": measured}},
        }

    @property
    def law(self) -> Law:
        """The noise of each count."""
        return self.workload.measured[0][1]

    def decisions(self) -> dict[str, Any]:
        """Decisions that the noise is bound to, beside the data."""
        unit = self.degrees
        return {
            "degrees": self.relation,
            "neighbours": unit.neighbours,
            "largest": unit.largest,
            "form": unit.form,
            "directed": unit.graph.directed,
            "noise": self.law.describe(),
            # What was the only choice once is not said, so that the same key still gives the same noise.
            **({} if unit.graph.degree is None else {"degree": unit.graph.degree}),
            **({"contributions": unit.contributions} if unit.graph.cut else {}),
            **({} if self.choice is None else {"candidates": self.choice.candidates, "choosing": self.choice.share}),
        }

    @property
    def rest(self) -> bool:
        """Whether people without edges are not measured: under "user-out" they are the remainder."""
        graph = self.degrees.graph
        return graph.relation == "user-out" and graph.counted == "out" and self.degrees.form == "histogram"

    def _bound(self, index: int, risk: Fraction) -> int:
        """Return a bound on the error of all counts of a level, repairs included, that holds except with risk `risk`.

        Let all measurements be within m. The monotone fit of cumulative counts keeps them within m, so differences
        are within 2m. A histogram clamped at zero stays within m; one that is shifted to sum to the number of people is
        shifted by at most m, and rounded. Under "user-out" the people without edges are the remainder.
        """
        cells = self.degrees.largest + (not self.rest)
        m = self.law.margin(risk / cells)
        if index == 0 and self.people_are_public:
            return 0
        if self.degrees.form == "cumulative":
            return m if index == 0 else 2 * m
        if not self.people_are_public:
            return cells * m if index == 0 else m
        return max(2 * m + 1, cells * m) if self.rest else 2 * m + 1


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
) -> DegreePlan:
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
    return DegreePlan(**degree_fields(unit, loss, None, title=title, confidence=confidence, choice=choice))


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


def degree_fields(unit: DegreeUnit, loss: Loss, regions: Hierarchy | None, place: str = "", **more: Any) -> Any:
    """Return the fields of a plan for degrees, of a whole graph or of its regions."""
    return {
        "spine": spine_of_numbers(DEGREE, unit.largest, regions, place),
        "unit": unit,
        "loss": loss,
        "repair": "euclidean",
        "unknown": unit.graph.policies.unknown,
        **more,
    }


def refuse() -> NoReturn:
    """Refuse operations that need counts measured from the top down."""
    raise PlanError(
        'this plan is for degrees, which are measured all at once: `treetop plan` (under "node" also with `twin`, for '
        "advice on the largest degree) and `treetop release` take it, and its release `treetop check`, `treetop query` "
        "and `treetop export`. For anything else, count nodes or edges (counts under [graph])"
    )
