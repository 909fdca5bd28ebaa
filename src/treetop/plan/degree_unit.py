"""The protected unit of a release of degrees, and its sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from treetop._util.choices import check_choice, with_article
from treetop._util.lazy import set_fields
from treetop._util.numbers import Number, positive, whole
from treetop.domain.unit import Neighbours, Sensitivity, Unit
from treetop.errors import PlanError
from treetop.privacy.relation import EDGE, USER_OUT, GraphRules, check_entity, one_edge, one_weighted_edge

# How far one unit can move the numbers of people of each degree, by relation, kind of degree and form.

Form: TypeAlias = Literal["histogram", "cumulative"]
"""Measured form: the number of people of each degree, or of each degree and those below."""
Degree: TypeAlias = Literal["out", "in", "total"]
"""Counted edges of a person: outgoing, incoming, or all."""

_ENDS: dict[tuple[int, Form, Neighbours], Sensitivity] = {
    (2, "histogram", "add-remove"): Sensitivity(4, 8),
    (2, "cumulative", "add-remove"): Sensitivity(2, 4),
    (2, "histogram", "replace"): Sensitivity(8, 24),
    (2, "cumulative", "replace"): Sensitivity(4, 8),
    (1, "histogram", "add-remove"): Sensitivity(2, 2),
    (1, "cumulative", "add-remove"): Sensitivity(1, 1),
    (1, "histogram", "replace"): Sensitivity(4, 6),
    (1, "cumulative", "replace"): Sensitivity(2, 2),
}


def degree_sensitivity(
    relation: str, degree: Degree, form: Form, neighbours: Neighbours, largest: int, most: int = 1
) -> Sensitivity:
    """Return how far one unit can move the measured counts.

    `largest` is theta under "node"; `most` is the number of edges of a list that count, if they also count for others.

    >>> degree_sensitivity("node", "total", "histogram", "add-remove", 3)
    Sensitivity(l1=7, l2_squared=25)
    """
    if relation == "edge":
        return _ENDS[2 if degree == "total" else 1, form, neighbours]
    exchanged = neighbours == "replace"
    if relation == "user-out":
        return _of_list(degree, form, exchanged, largest, most)
    l1, squared = _of_node(degree, form, largest)
    return Sensitivity(2 * l1, 4 * squared) if exchanged else Sensitivity(l1, squared)


def listed_edge_sensitivities(degree: Degree, form: Form) -> tuple[Sensitivity, ...]:
    """Return how far one edge of a list can move the counts under "user-out": if added, or if it replaces another.

    >>> listed_edge_sensitivities("in", "histogram")
    (Sensitivity(l1=2, l2_squared=2), Sensitivity(l1=4, l2_squared=6))
    """
    added = _ENDS[2 if degree == "total" else 1, form, "add-remove"]
    return (added,) if degree == "out" else (added, _ENDS[1, form, "replace"])


def reaching_sensitivity(neighbours: Neighbours, theta: int) -> Sensitivity:
    """Return how far one person can move the number of people who reach theta after the projection, under "node".

    >>> reaching_sensitivity("add-remove", 3)
    Sensitivity(l1=4, l2_squared=16)
    """
    far = (theta + 1) * (2 if neighbours == "replace" else 1)
    return Sensitivity(far, far**2)


def _of_list(degree: Degree, form: Form, exchanged: bool, largest: int, m: int) -> Sensitivity:
    if degree == "out":
        if form == "cumulative":
            return Sensitivity(largest, largest)
        return Sensitivity(2, 2) if exchanged else Sensitivity(1, 1)
    own = degree == "total"
    if form == "histogram":
        if exchanged:
            return Sensitivity(4 * m, 6 * m**2 + 2 * own)
        return Sensitivity(2 * (m + own), 2 * (m + own) ** 2)
    if exchanged:
        return Sensitivity(2 * m, 2 * m**2 + 2 * own)
    return Sensitivity(2 * m, m**2 + 3 * m) if own else Sensitivity(m, m**2)


def _of_node(degree: Degree, form: Form, theta: int) -> Sensitivity:
    if degree == "total":
        if form == "histogram":
            return Sensitivity(2 * theta + 1, theta**2 + (theta + 1) ** 2)
        return Sensitivity(theta + 1, theta**2 + 1)
    if form == "histogram":
        return Sensitivity(4 * theta + 1, 6 * theta**2 + 2 * theta + 1)
    return Sensitivity(2 * theta + 1, 2 * theta**2 + 1)


# A private choice of theta, the largest degree under "node", among public candidates: it is measured and paid for.

THETA = "theta "
"""Prefix of the names of candidates' measurements."""
SHARE = Fraction(1, 5)
"""Default share of the loss for the choice, all candidates together."""
MOST = 32
"""Maximum number of candidates; with more, each measurement would be mostly noise."""
HELD = Fraction(1, 3)
"""Risk of the half width by which the rule weighs noise: about one standard deviation."""


def name_of(theta: int) -> str:
    """Return the name of a candidate's measurement.

    >>> name_of(30), theta_of("theta 30"), theta_of("degree")
    ('theta 30', 30, None)
    """
    return f"{THETA}{theta}"


def theta_of(name: str) -> int | None:
    """Return the candidate of a measurement; None if it is not about a candidate."""
    return int(name.removeprefix(THETA)) if name.startswith(THETA) else None


@dataclass(frozen=True)
class ThetaChoice:
    """The choice of theta: its candidates, its share of the loss, and the measurements once it is made."""

    candidates: tuple[int, ...]
    share: Fraction = SHARE
    """Share of the loss for the choice, divided evenly among candidates."""
    measured: tuple[int, ...] | None = None
    """Noisy number of people who reach each candidate; None before it is measured."""

    @staticmethod
    def of(candidates: Sequence[int], share: Number | None = None) -> ThetaChoice:
        """Return a choice that is not made yet.

        >>> ThetaChoice.of([100, 10, 30])
        ThetaChoice(candidates=(10, 30, 100), share=Fraction(1, 5), measured=None)
        """
        if not all(whole(one) is not None for one in candidates):
            raise PlanError(f"largest is {list(candidates)}: candidates are whole numbers, from 1 to a million")
        listed = tuple(sorted(candidates))
        if len(set(listed)) < len(listed) or not 2 <= len(listed) <= MOST:
            raise PlanError(
                f"largest is {list(candidates)}: to have theta chosen, give 2 to {MOST} different candidates, such as "
                "[10, 20, 50, 100, 200]"
            )
        part = SHARE if share is None else positive(share, "The share of the choice (choosing)")
        if part >= 1:
            raise PlanError(f"choosing is {share}: the choice takes a part of the loss, less than 1, such as 0.2")
        return ThetaChoice(listed, part)

    @property
    def left(self) -> Fraction:
        """Share of the loss that remains for the degrees."""
        return 1 - self.share

    def best(self, noise: Sequence[int], measured: Sequence[int]) -> int:
        """Return the candidate that the rule selects, given the noise of a release with each and the measurements.

        >>> ThetaChoice.of([10, 30, 100]).best([20, 60, 200], [900, 80, -50])
        30
        """
        cost = [max(0, people) + width for people, width in zip(measured, noise, strict=True)]
        return self.candidates[cost.index(min(cost))]


_PROTECTED: dict[str, str] = {
    "edge": EDGE.words,
    "user-out": 'The neighbour relation is "user-out": graphs that differ in the out-edges of one person, however '
    "many. Who is in the graph, and in which groups, is taken as public; and the edges that others have to a "
    "person are on their lists, not on that person's.",
    "node": 'The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It '
    "rests on no promise: edges are left out until nobody has more than the largest degree.",
}
"""Other releases of edges keep some of a list, or rest on a promise: this one counts whole lists, and projects."""
_MEANING: dict[str, str] = {"out": "edges that go out from", "in": "edges that come in to", "total": "all edges of"}
"""Meaning of a degree, by the counted edges."""


@dataclass(frozen=True)
class DegreeFacts(GraphRules):
    """The public rules of a graph for counting degrees; they need no promise about the data."""

    degree: Degree | None = None
    """Counted edges of a person; None for the relation's default."""

    def __post_init__(self) -> None:
        if self.kind.name not in _PROTECTED:
            known = ", ".join(_PROTECTED)
            raise PlanError(f"degrees are not released under the relation {self.relation!r}: choose one of {known}")
        if self.degree_bound is not None:
            raise PlanError("degrees need no promise of a degree bound: leave it out, and give the largest degree")
        if self.relation == "user-out" and not self.directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')
        if self.degree is not None:
            check_choice("degree", self.degree, _MEANING)
        if self.degree in ("in", "out") and not self.directed:
            raise PlanError(f'edges without direction neither come in nor go out: leave degree = "{self.degree}" out')
        if self.degree == self._usual:
            set_fields(self, degree=None)  # said or not, it is the same plan

    @property
    def _usual(self) -> Degree:
        return "out" if self.directed and self.relation != "node" else "total"

    @property
    def counted(self) -> Degree:
        """Counted edges of a person."""
        return self.degree or self._usual

    @property
    def cut(self) -> bool:
        """Whether lists are cut, because their edges are counted at other people."""
        return self.relation == "user-out" and self.counted != "out"

    @property
    def protected(self) -> str:
        """The protected unit, in words."""
        return USER_OUT.words if self.cut else _PROTECTED[self.relation]

    @property
    def meaning(self) -> str:
        """The meaning of a person's degree, in words."""
        return f"the number of {_MEANING[self.counted]} a person"

    def sentences(self) -> list[str]:
        """Say which graphs are neighbours, and what one edge is."""
        mutual = [self.kind.mutual] if self.kind.mutual and self.directed else []
        return [self.protected, (one_weighted_edge if self.policies.weighted else one_edge)(self.directed), *mutual]


@dataclass(frozen=True, init=False)
class DegreeUnit(Unit):
    """A unit of a graph, with its sensitivity for degrees."""

    counts: ClassVar[str] = "degrees"

    graph: DegreeFacts
    form: Form
    """Measured form: the number of people of each degree, or of each degree and those below."""
    largest: int
    """Largest degree told apart, which includes higher degrees; theta under "node"."""

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
        check_choice("form", form, get_args(Form))
        check_choice("neighbours", neighbours, get_args(Neighbours))
        if whole(largest) is None or largest > 10**6:
            raise PlanError(f"largest is {largest!r}: give the largest degree, a whole number from 1 to a million")
        most = _kept_of_a_list(graph, contributions)
        super().__init__(check_entity(graph.relation, entity), most, neighbours, population=population)
        set_fields(self, graph=graph, form=form, largest=largest)

    @property
    def binding(self) -> dict[str, Any]:
        """Properties that the noise of histograms by region is bound to: people are groups, and degrees sizes."""
        event = {"edge": "join-leave", "user-out": "group"}[self.graph.relation]
        return {"entity": self.graph.kind.entity, "event": event, "quantity": 1}

    moves_by_one = False

    def sensitivity(self, level: str) -> Sensitivity:
        """Return how far one unit can move the counts of a level or of the choice of theta."""
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
        """Description of one edge of a list under "user-out"; None under other relations."""
        if self.graph.relation != "user-out":
            return None
        return f"one edge of {with_article(self.entity)} (added, removed or with another end)"

    def piece_sensitivities(self, level: str) -> tuple[Sensitivity, ...]:
        """Return how far one edge of a list can move the counts, for each way in which it can."""
        return listed_edge_sensitivities(self.graph.counted, self.form)

    def total_is_exact(self, records_may_be_dropped: bool) -> bool:
        """Whether all neighbours have the same number of people; False if a person is added or removed."""
        return self.graph.relation != "node" or self.neighbours == "replace"

    @property
    def total_follows(self) -> bool:
        """Whether the number of people is the sum of the measured degrees."""
        return not self.total_is_exact(False)

    @property
    def enforced(self) -> bool:
        """Whether the limits behind the sensitivities are enforced; the uniqueness of an edge is declared."""
        return self.graph.relation != "edge"

    @property
    def displaces(self) -> bool:
        """Whether an additional edge can displace another counted edge of its list: if lists are cut."""
        return self.graph.cut

    @property
    def extent(self) -> str:
        """The extent of one unit, in words."""
        return {"edge": "one edge", "user-out": "all out-edges of a person", "node": "with all edges, in and out"}[
            self.graph.relation
        ]

    @property
    def limits(self) -> str:
        """Key that distinguishes units of the same name in a ledger; an edge is the same unit in edge tables."""
        if self.graph.relation == "edge":
            return f"{self.graph.edges}, {super().limits}"
        return f"{self.extent}, {self.neighbours}"

    def sentence(self) -> str:
        """Describe the protected unit in plain English.

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
    """Return the number of edges of a list that count; it only matters if edges are counted at other people."""
    if graph.cut:
        return graph.kind.edges(contributions, None)
    if contributions not in (None, 1):
        raise PlanError(
            f"contributions are {contributions!r}: how many edges of a list count is said of in-degrees and of all "
            'edges under "user-out" only; elsewhere all of them do, so leave it out'
        )
    return 1
