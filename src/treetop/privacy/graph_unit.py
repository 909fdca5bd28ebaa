"""The unit of a release of edges: a unit that says of which graphs it is, for the plan, its digest and the card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from treetop.domain.policies import Policies
from treetop.domain.unit import Unit
from treetop.errors import PlanError, UnitError
from treetop.privacy.relation import Relation, check_relation, one_edge


@dataclass(frozen=True)
class Facts:
    """What is stated of the edges of a graph; their table and the plan that counts them must agree in it."""

    relation: str
    """Which graphs are neighbours, by the name of the relation."""
    directed: bool
    """Whether edges have a direction."""
    degree_bound: int | None = None
    """The promise that some relations need: nobody has more edges, in and out together."""
    policies: Policies = field(default_factory=Policies)
    """What happens to self-loops, repeated edges and edges to unknown nodes."""

    def __post_init__(self) -> None:
        if (self.degree_bound is None) == self.kind.bounded:
            raise UnitError('A degree bound is for the relation "node", which needs one, and for no other.')
        if self.kind.undirected and not self.directed:
            raise PlanError(self.kind.undirected)

    @property
    def kind(self) -> Relation:
        """The relation."""
        return check_relation(self.relation)

    @property
    def edges(self) -> str:
        """What one edge is, in the words that a ledger keeps: it is not the same one by another rule.

        Two people who list each other are two edges with a direction, and one without. Of rows that name the same two,
        each is an edge if repeated ones are kept, and all are one if not.
        """
        return f"{'' if self.directed else 'un'}directed edges{', repeated' * (self.policies.repeated == 'keep')}"

    @property
    def may_drop(self) -> str | None:
        """Say why one unit may be exchanged for another with fewer edges that are counted; None where it cannot be."""
        if not self.kind.one_edge:
            return "a person may have no edge at all"
        return f"{self.policies.dropped} are dropped" if self.policies.drop else None

    def describe(self) -> dict[str, Any]:
        """Return it as plain values, for cards and digests."""
        bound = {} if self.degree_bound is None else {"degree_bound": self.degree_bound}
        return {"relation": self.relation, "directed": self.directed, **bound, **self.policies.describe()}

    def card(self) -> dict[str, Any]:
        """Return it with what it means in words, for cards."""
        told = self.kind.sentences(self.degree_bound, self.directed)
        return {**self.describe(), "one_edge": one_edge(self.directed), "sentences": told}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Facts:
        """Take the facts back out of what `describe` says."""
        rules = {name: told[name] for name in ("self_loops", "repeated", "unknown")}
        return Facts(told["relation"], told["directed"], told.get("degree_bound"), Policies(**rules))


@dataclass(frozen=True, init=False)
class GraphUnit(Unit):
    """A unit with the facts of its graph; `Graph.unit` makes it."""

    graph: Facts
    """The facts."""

    def __init__(self, unit: Unit, graph: Facts) -> None:
        if not _fits(unit, graph):
            raise UnitError(
                f"The relation {graph.relation!r} does not fit a unit of {unit.contributions} edges, told apart by "
                f"{unit.id!r}; take the unit from the graph."
            )
        if unit.distinct:
            raise UnitError("Edges are dealt with by the relation and the policies of their graph: leave distinct out.")
        # Where one list, person or edge may have no edge that is counted, the total is not the same for neighbours.
        missing = unit.may_be_missing or graph.may_drop is not None
        stated = {one.name: getattr(unit, one.name) for one in fields(Unit) if one.init}
        super().__init__(**stated | {"may_be_missing": missing})
        object.__setattr__(self, "graph", graph)

    @property
    def limits(self) -> str:
        """What tells units of one name apart, for a ledger."""
        return f"{self.graph.edges}, {super().limits}"


def _fits(unit: Unit, graph: Facts) -> bool:
    try:
        most = graph.kind.edges(unit.contributions, graph.degree_bound)
    except UnitError:
        return False
    return (unit.id, unit.contributions) == (graph.kind.id, most)
