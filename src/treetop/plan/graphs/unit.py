"""What is protected in a release of degrees, of which edges of a person; how far it moves them is in `sensitivity`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from treetop.basics.exact import whole
from treetop.basics.nearest import nearest
from treetop.basics.wording import with_article
from treetop.domain.unit import Neighbours, Sensitivity, Unit
from treetop.errors import PlanError
from treetop.plan.graphs.sensitivity import (
    Degree,
    Form,
    degree_sensitivity,
    listed_edge_sensitivities,
    reaching_sensitivity,
)
from treetop.plan.graphs.theta import theta_of
from treetop.privacy.graph_unit import Facts
from treetop.privacy.relation import EDGE, USER_OUT, check_entity, one_edge

_PROTECTED: dict[str, str] = {
    "edge": EDGE.words,
    "user-out": 'The neighbour relation is "user-out": graphs that differ in the out-edges of one person, however '
    "many. Who is in the graph, and in which groups, is taken as public; and the edges that others have to a "
    "person are on their lists, not on that person's.",
    "node": 'The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It '
    "rests on no promise: edges are left out until nobody has more than the largest degree.",
}
"""Other releases of edges keep some of a list, or rest on a promise: this one counts whole lists, and projects."""
_MEANING: dict[str, str] = {
    "out": "edges that go out from",
    "in": "edges that come in to",
    "total": "all edges of",
}
"""What a degree is, by which edges are counted."""


@dataclass(frozen=True)
class DegreeFacts(Facts):
    """What is stated of a graph whose degrees are counted: no promise about them is needed."""

    degree: Degree | None = None
    """Which edges of a person are counted; None for those that are usual under the relation."""

    def __post_init__(self) -> None:
        if self.kind.name not in _PROTECTED:
            known = ", ".join(_PROTECTED)
            raise PlanError(f"degrees are not released under the relation {self.relation!r}: choose one of {known}")
        if self.degree_bound is not None:
            raise PlanError("degrees need no promise of a degree bound: leave it out, and give the largest degree")
        if self.relation == "user-out" and not self.directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')
        if self.degree is not None and self.degree not in _MEANING:
            raise PlanError(
                f"degree is {self.degree!r}{nearest(str(self.degree), _MEANING)}; choose one of: {', '.join(_MEANING)}"
            )
        if self.degree in ("in", "out") and not self.directed:
            raise PlanError(f'edges without direction neither come in nor go out: leave degree = "{self.degree}" out')
        if self.degree == self._usual:
            object.__setattr__(self, "degree", None)  # said or not, it is the same plan

    @property
    def _usual(self) -> Degree:
        return "out" if self.directed and self.relation != "node" else "total"

    @property
    def counted(self) -> Degree:
        """Which edges of a person are counted."""
        return self.degree or self._usual

    @property
    def cut(self) -> bool:
        """Whether lists are cut: the edges of one are then counted at other people."""
        return self.relation == "user-out" and self.counted != "out"

    @property
    def protected(self) -> str:
        """What is protected, in words."""
        return USER_OUT.words if self.cut else _PROTECTED[self.relation]

    @property
    def meaning(self) -> str:
        """What the degree of a person is, in words."""
        return f"the number of {_MEANING[self.counted]} a person"

    def card(self) -> dict[str, Any]:
        """Return it with what it means in words, for cards."""
        told = [self.protected, one_edge(self.directed)]
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
        contributions: int | None = None,
    ) -> None:
        for what, given, kinds in (("form", form, Form), ("neighbours", neighbours, Neighbours)):
            if given not in (names := get_args(kinds)):
                raise PlanError(f"{what} is {given!r}{nearest(str(given), names)}; choose one of: {', '.join(names)}")
        if whole(largest) is None or largest > 10**6:
            raise PlanError(f"largest is {largest!r}: give the largest degree, a whole number from 1 to a million")
        most = _kept_of_a_list(graph, contributions)
        super().__init__(check_entity(graph.relation, entity), most, neighbours, population=population)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "form", form)
        object.__setattr__(self, "largest", largest)

    @property
    def moves_by_one(self) -> bool:
        """No: what is counted is no record, and a unit may move one count by several."""
        return False

    def sensitivity(self, level: str) -> Sensitivity:
        """How far one unit can move the counts of a level, as far at each of them, or what theta is chosen by."""
        graph = self.graph
        if (theta := theta_of(level)) is not None:
            if graph.relation != "node":
                raise PlanError(f'{level} is measured under the relation "node" only, where theta may be chosen')
            return reaching_sensitivity(self.neighbours, theta)
        return degree_sensitivity(
            graph.relation, graph.counted, self.form, self.neighbours, self.largest, self.contributions
        )

    @property
    def piece(self) -> str | None:
        """One edge of a list, under "user-out"; elsewhere an edge is the unit, or nothing is told of it."""
        if self.graph.relation != "user-out":
            return None
        return f"one edge of {with_article(self.entity)} (added, removed or with another end)"

    def piece_sensitivities(self, level: str) -> tuple[Sensitivity, ...]:
        """How far one edge of a list can move the counts, for each way in which it can."""
        return listed_edge_sensitivities(self.graph.counted, self.form)

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
        """Whether one edge more of a list can take the place of another that was counted: where lists are cut."""
        return self.graph.cut

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
            return f"{self.graph.edges}, {super().limits}"
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
        told = self.graph.protected
        if self.neighbours == "add-remove":
            return f"{told} One {self.entity} is added or removed."
        public = " How many people there are is public." if self.graph.relation == "node" else ""
        return f"{told} One {self.entity} is exchanged for another.{public}"


def _kept_of_a_list(graph: DegreeFacts, contributions: int | None) -> int:
    """Return how many edges of a list count: stated where others have them, and of no meaning elsewhere."""
    if graph.cut:
        return graph.kind.edges(contributions, None)
    if contributions not in (None, 1):
        raise PlanError(
            f"contributions are {contributions!r}: how many edges of a list count is said of in-degrees and of all "
            'edges under "user-out" only; elsewhere all of them do, so leave it out'
        )
    return 1
