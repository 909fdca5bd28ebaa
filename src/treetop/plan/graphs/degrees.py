"""A plan for the degrees of a graph: how many people have how many edges, measured once under a named relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from treetop.basics.exact import Number
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.policies import Policies
from treetop.errors import LossError, PlanError
from treetop.noise import Key, Law
from treetop.plan.accuracy import CONFIDENCE
from treetop.plan.fields import DEGREES, decided
from treetop.plan.graphs.sensitivity import Degree, Form
from treetop.plan.graphs.unit import DegreeFacts, DegreeUnit
from treetop.plan.groups.planned import spine_of_numbers
from treetop.plan.plan import PurePlan
from treetop.privacy import Loss, Neighbours
from treetop.read.counts import Counts
from treetop.read.dropping import may_drop
from treetop.read.graph.edges import Edges
from treetop.read.graph.graph import Graph
from treetop.read.graph.nodes import Nodes
from treetop.read.graph.projection import projected_degrees
from treetop.read.graph.shortening import shortened
from treetop.read.tally import Tally
from treetop.tables.table import Table

DEGREE = "degree"
"""The attribute of the degrees, and its one level."""


@dataclass(frozen=True, eq=False)
class DegreeCounts(PurePlan):
    """What plans for degrees have in common: of a whole graph, and by region."""

    def __post_init__(self) -> None:
        if not isinstance(self.unit, DegreeUnit):
            raise PlanError(f"unit is {self.unit!r}: a plan for degrees is made with its method make")
        if self.loss.accounting == "exact":
            raise PlanError('exact accounting is not for degrees: leave it out, or write accounting="zcdp"')
        object.__setattr__(self, "margins", "none")  # there is no second table of such counts
        super().__post_init__()
        widest = max(law.margin(Fraction(1, 2**80)) for _, law in self.workload.measured)
        if widest * (self.degrees.largest + 1) ** 2 >= 2**61:
            raise LossError("the noise is too wide for 64-bit sums: give a larger loss, or a smaller largest degree")

    @property
    def degrees(self) -> DegreeUnit:
        """The unit, as one of degrees."""
        assert isinstance(self.unit, DegreeUnit)
        return self.unit

    @property
    def relation(self) -> str:
        """Which graphs are neighbours."""
        return self.degrees.graph.relation

    @property
    def people_are_public(self) -> bool:
        """Whether all neighbours have as many nodes."""
        return self.unit.total_is_exact(False)

    def sentence(self) -> str:
        """Say in plain English what is protected and what is guaranteed."""
        return f"{self.unit.sentence()} {self.kept_loss.sentence()}"

    def describe(self) -> dict[str, Any]:
        """Return the plan's decisions as plain values, for cards and digests."""
        return super().describe() | {"order": "none", "degrees": decided(self, DEGREES)["degrees"]}

    def check_table(self, table: Table) -> None:
        """Refuse a graph whose reading does not agree with the plan; nothing is read, and nothing spent."""
        self.of_table(table)

    def of_table(self, table: Table) -> Graph:
        """Return the graph whose degrees are counted, refusing one that does not agree with the plan."""
        if not isinstance(table, Graph):
            raise PlanError("degrees are those of a graph: give a treetop.Graph, which has people and edges")
        facts = self.degrees.graph
        if table.directed != facts.directed:
            raise PlanError("the plan and the graph do not agree on whether edges have a direction")
        if table.relation != self.relation:
            raise PlanError(
                f"the plan is made for the relation {self.relation!r}, and the graph's is {table.relation!r}: "
                "the noise of one does not protect the other"
            )
        if table.policies != facts.policies:
            raise PlanError(
                "the plan and the graph do not agree on which edges are dropped: make the plan with "
                "policies=graph.policies, so that its card says what was"
            )
        self.refuse_selected(may_drop(table.nodes))
        return table

    def refuse_selected(self, reason: str | None) -> None:
        """Refuse to tell exactly how many people there are where an exchange may change that."""
        if reason is not None and self.relation == "node" and self.people_are_public:
            raise PlanError(
                f"the number of people would be released without noise, but neighbours may differ in it: {reason}, so "
                "that one person may be exchanged for one who is not counted. Choose neighbours = "
                '"add-remove", under which it is measured, or give a node table of which every row counts'
            )

    def own_degrees(self, nodes: Nodes, edges: Edges) -> NDArray[np.int64]:
        """Return the degree of everybody, with no edge left out: private."""
        return edges.degrees(len(nodes), self.degrees.graph.counted)

    def bounded_degrees(self, nodes: Nodes, edges: Edges, key: Key) -> NDArray[np.int64]:
        """Return the degree of everybody, as far as one unit may move them: private.

        The key decides which edges are left out, where any are; what it comes to does not depend on others.
        """
        unit = self.degrees
        if self.relation == "node":
            return projected_degrees(nodes, edges, unit.largest, key, unit.graph.counted)
        if unit.graph.cut:
            edges = shortened(nodes, edges, unit.contributions, key)
        return self.own_degrees(nodes, edges)

    def refuse_unless_top_down(self) -> None:
        """Refuse: degrees are not measured from the top down."""
        refuse()


@dataclass(frozen=True, eq=False)
class PureDegreePlan(DegreeCounts):
    """What will be released of the degrees of a whole graph; make one with `make`. It is a plan like any other.

    >>> plan = PureDegreePlan.make("edge", "add-remove", Loss(rho=1), largest=9)
    >>> [(level.name, level.nodes) for level in plan.levels]
    [('total', 1), ('degree', 10)]
    """

    @classmethod
    def make(
        cls,
        relation: str,
        neighbours: Neighbours,
        loss: Loss,
        largest: int,
        form: Form = "cumulative",
        directed: bool = True,
        *,
        degree: Degree | None = None,
        contributions: int | None = None,
        policies: Policies | None = None,
        entity: str | None = None,
        population: int | None = None,
        title: str = "",
        confidence: Number | None = CONFIDENCE,
    ) -> Self:
        """Return a plan; nothing private is read."""
        facts = DegreeFacts(relation, directed, policies=policies or Policies(), degree=degree)
        unit = DegreeUnit(facts, neighbours, form, largest, entity, population, contributions)
        return cls(**degree_fields(unit, loss, None, title=title, confidence=confidence))

    @property
    def law(self) -> Law:
        """The noise of each count."""
        return self.workload.measured[0][1]

    def decisions(self) -> dict[str, Any]:
        """What the noise is bound to, beside the data."""
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
        }

    @property
    def rest(self) -> bool:
        """Whether people without edges are not measured: of lists they are what the others leave."""
        graph = self.degrees.graph
        return graph.relation == "user-out" and graph.counted == "out" and self.degrees.form == "histogram"

    def _bound(self, index: int, risk: Fraction) -> int:
        """How far all counts of a level are from the truth at most, repairs included.

        Say that no measurement is further than m. Making cumulative counts rise moves none further than the furthest
        was, so that their differences are within 2m. A histogram that is lowered to zero where it is below stays within
        m; one that is shifted to sum to the people is shifted by m at most, and rounded. Under "user-out" the people
        without edges are what the others leave.
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

    def check_people(self, people: int) -> None:
        """Refuse what does not fit so many people; nothing is told of how many there are unless that is public."""
        if self.people_are_public and self.relation != "edge":
            self.loss.refuse_large_delta(people, "the number of people, which is public")
        widest = self.law.margin(Fraction(1, 2**80))
        if (people + widest) * (self.degrees.largest + 1) ** 2 >= 2**62:
            raise PlanError(
                f"degrees up to {self.degrees.largest:,} of so many people do not fit 64-bit sums: lower largest"
            )

    def truth(self, nodes: Nodes, edges: Edges, order: Key) -> NDArray[np.int64]:
        """Return the counts that are measured, without noise: private."""
        number = self.histogram(self.bounded_degrees(nodes, edges, order))
        if self.degrees.form == "histogram":
            return number[1:] if self.rest else number
        total = number.cumsum()
        return total[:-1] if self.people_are_public else total  # the last is everyone, which is then known

    def histogram(self, degrees: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many have each degree from 0 to the largest, which stands for more as well."""
        largest = self.degrees.largest
        return np.bincount(np.minimum(degrees, largest), minlength=largest + 1).astype(np.int64)

    def counts(
        self,
        table: Table,
        columns: Mapping[str, str] | None = None,
        count: str | None = None,
        tally: Tally | None = None,
    ) -> Counts:
        """Read the private graph as true counts, with all edges, for comparing a release with them."""
        graph = self.of_table(table)
        nodes = graph.read_nodes([])
        number = self.histogram(self.own_degrees(nodes, graph.read_edges(nodes)))
        (there,) = np.nonzero(number)
        return Counts.from_leaves(self.spine, [there], number[there])


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
    """Refuse what is only for counts that are measured from the top down."""
    raise PlanError(
        "this plan is for degrees, which are measured all at once: `treetop plan`, `treetop release`, `treetop check` "
        "and `treetop query` take it, and nothing else does"
    )
