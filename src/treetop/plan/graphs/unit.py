"""What is protected in a release of degrees, and how far it can move the counts.

Sensitivities, for degrees from 0 to a largest that stands for more as well:

- edge, without direction: both ends change by 1, at worst from and to the same degrees. Histogram 4 in L1 and 8 squared
  in L2, cumulative 2 and 4. Exchanging one edge for another adds changes of opposite direction, of which two overlap in
  one degree at most: 8 and 24, 4 and 8.
- edge, with direction: the out-degree of one end changes by 1: 2 and 2, cumulative 1 and 1; exchanged 4 and 6, 2 and 2.
- user-out: one out-degree becomes another. Who is in the graph is public, so their number is, and people without edges
  are what the others leave: of the degrees from 1 on, an added list changes one, an exchanged list two. Cumulative
  counts would change by as much as the largest degree.
- node, after the projection to at most theta edges each: x goes, with k ≤ theta kept edges, and the degrees of others
  change by k in all (see `treetop.read.graph.projection`). Each such step is e(a − 1) − e(a) or its opposite in the
  histogram, whose inner products are at most 2, and with −e(k), for x itself, at most 1: k² + (k + 1)² squared in L2
  and 2k + 1 in L1. In the cumulative counts it is e(a), with a < theta, and −1 from k on for x: at worst theta² + 1
  squared, and theta + 1. Exchanging x is taking it away and putting another in: twice as far.

By region, people who are in one change its degrees as they would change those of the whole graph, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from treetop.basics.exact import whole
from treetop.basics.nearest import nearest
from treetop.domain.graph_unit import Facts
from treetop.domain.relation import EDGE, check_entity, one_edge
from treetop.domain.unit import Neighbours, Sensitivity, Unit
from treetop.errors import PlanError

Form: TypeAlias = Literal["histogram", "cumulative"]

_EDGE: dict[tuple[bool, Form, Neighbours], Sensitivity] = {
    (False, "histogram", "add-remove"): Sensitivity(4, 8),
    (False, "cumulative", "add-remove"): Sensitivity(2, 4),
    (False, "histogram", "replace"): Sensitivity(8, 24),
    (False, "cumulative", "replace"): Sensitivity(4, 8),
    (True, "histogram", "add-remove"): Sensitivity(2, 2),
    (True, "cumulative", "add-remove"): Sensitivity(1, 1),
    (True, "histogram", "replace"): Sensitivity(4, 6),
    (True, "cumulative", "replace"): Sensitivity(2, 2),
}

_PROTECTED: dict[str, str] = {
    "edge": EDGE.words,
    "user-out": 'The neighbour relation is "user-out": graphs that differ in the out-edges of one person, however '
    "many. Who is in the graph, and in which groups, is taken as public; and the edges that others have to a "
    "person are on their lists, not on that person's.",
    "node": 'The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It '
    "rests on no promise: edges are left out until nobody has more than the largest degree.",
}
"""Other releases of edges keep some of a list, or rest on a promise: this one counts whole lists, and projects."""


def degree_sensitivity(relation: str, directed: bool, form: Form, neighbours: Neighbours, largest: int) -> Sensitivity:
    """How far one unit can move the measured counts; `largest` is theta under "node".

    >>> degree_sensitivity("node", False, "histogram", "add-remove", 3)
    Sensitivity(l1=7, l2_squared=25)
    """
    if relation == "edge":
        return _EDGE[directed, form, neighbours]
    exchanged = neighbours == "replace"
    if relation == "user-out":
        if form == "cumulative":
            return Sensitivity(largest, largest)
        return Sensitivity(2, 2) if exchanged else Sensitivity(1, 1)
    l1, squared = (
        (2 * largest + 1, largest**2 + (largest + 1) ** 2) if form == "histogram" else (largest + 1, largest**2 + 1)
    )
    return Sensitivity(2 * l1, 4 * squared) if exchanged else Sensitivity(l1, squared)


@dataclass(frozen=True)
class DegreeFacts(Facts):
    """What is stated of a graph whose degrees are counted: no promise about them is needed."""

    def __post_init__(self) -> None:
        if self.kind.name not in _PROTECTED:
            known = ", ".join(_PROTECTED)
            raise PlanError(f"degrees are not released under the relation {self.relation!r}: choose one of {known}")
        if self.degree_bound is not None:
            raise PlanError("degrees need no promise of a degree bound: leave it out, and give the largest degree")
        if self.relation == "user-out" and not self.directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')

    @property
    def degree(self) -> str:
        """What the degree of a person is, in words."""
        out = self.directed and self.relation != "node"
        return "the number of edges that go out from a person" if out else "the number of all edges of a person"

    def card(self) -> dict[str, Any]:
        """Return it with what it means in words, for cards."""
        told = [_PROTECTED[self.relation], one_edge(self.directed)]
        if self.kind.mutual and self.directed:
            told.append(self.kind.mutual)
        return {**self.describe(), "one_edge": one_edge(self.directed), "sentences": told}


@dataclass(frozen=True, init=False)
class DegreeUnit(Unit):
    """A unit of a graph, with what it can move of its degrees."""

    graph: DegreeFacts
    """The facts of the graph."""
    form: Form
    """What is measured: how many people have each degree, or each degree and those below."""
    largest: int
    """The largest degree that is told apart, which stands for more as well; under "node" it is theta."""

    def __init__(
        self,
        graph: DegreeFacts,
        neighbours: Neighbours,
        form: Form,
        largest: int,
        entity: str | None = None,
        population: int | None = None,
    ) -> None:
        for what, given, kinds in (("form", form, Form), ("neighbours", neighbours, Neighbours)):
            if given not in (names := get_args(kinds)):
                raise PlanError(f"{what} is {given!r}{nearest(str(given), names)}; choose one of: {', '.join(names)}")
        if whole(largest) is None or largest > 10**6:
            raise PlanError(f"largest is {largest!r}: give the largest degree, a whole number from 1 to a million")
        super().__init__(check_entity(graph.relation, entity), 1, neighbours, population=population)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "largest", largest)

    @property
    def moves_by_one(self) -> bool:
        """No: what is counted is no record, and a unit may move one count by several."""
        return False

    def sensitivity(self, level: str) -> Sensitivity:
        """How far one unit can move the counts of a level: as far at each of them."""
        graph = self.graph
        return degree_sensitivity(graph.relation, graph.directed, self.form, self.neighbours, self.largest)

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """Whether all neighbours have as many people: only a person who comes or goes changes that."""
        return self.graph.relation != "node" or self.neighbours == "replace"

    @property
    def total_follows(self) -> bool:
        """Whether the number of people is what the measured degrees sum to."""
        return not self.total_is_exact(False)

    @property
    def enforced(self) -> bool:
        """Whether the limits that the sensitivities rest on are enforced; that one edge is one is declared."""
        return self.graph.relation != "edge"

    @property
    def displaces(self) -> bool:
        """No: nothing of a unit takes the place of another part of it."""
        return False

    @property
    def extent(self) -> str:
        """How much one unit is."""
        return {"edge": "one edge", "user-out": "all out-edges of a person", "node": "with all edges, in and out"}[
            self.graph.relation
        ]

    @property
    def limits(self) -> str:
        """What tells units of one name apart, for a ledger: an edge is the same one in tables of edges."""
        if self.graph.relation == "edge":
            return super().limits
        return f"{self.extent}, {self.neighbours}"

    @property
    def exact_total(self) -> str:
        """What a release tells by its total."""
        why = "neighbours all have as many" if self.graph.relation == "node" else "who is in the graph is public"
        return f"the number of people: {why}, so it is released without noise, and the degrees add up to it"

    def sentence(self) -> str:
        """Say in plain English what is protected.

        >>> print(DegreeUnit(DegreeFacts("node", True), "add-remove", "histogram", 9).sentence())
        The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It rests on no \
promise: edges are left out until nobody has more than the largest degree. One person is added or removed.
        """
        told = _PROTECTED[self.graph.relation]
        if self.neighbours == "add-remove":
            return f"{told} One {self.entity} is added or removed."
        public = " How many people there are is public." if self.graph.relation == "node" else ""
        return f"{told} One {self.entity} is exchanged for another.{public}"
