"""Neighbour relations of graphs: their protection, their public part, and their unit.

One edge that is added or removed changes one cell of every level by 1. A person's own list of out-edges, truncated to
m by a rule that reads that list only, changes the cells of a level by at most m in all: two edges to different towns
fall in one region, so the L2 sensitivity is m at every level above the leaves, and not √m. A node that goes takes its
in-edges with it, which are on other people's lists, so no truncation of lists bounds it: dropping one end of a path and
keeping every node's degree at 1 may change all edges that are kept. Only a public bound on the degree does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from treetop._util.choices import Choices, nearest
from treetop._util.lazy import set_fields
from treetop._util.numbers import whole
from treetop.domain.unit import Neighbours, Policies, Unit
from treetop.errors import PlanError, UnitError


@dataclass(frozen=True)
class Relation:
    """Which graphs are neighbours, with the words for it."""

    name: str
    entity: str
    """Name of one unit: a ledger tells the relations apart by it."""
    hides: str
    """What it hides, after its name: for whoever has to choose."""
    protects: str
    """What it protects and no more, for whoever calls the unit something larger; empty for a person with all edges,
    who may have another name."""
    words: str
    """What it protects, as the card says it, where {degree_bound} stands for that bound."""
    edges: Callable[[int | None, int | None], int]
    """How many edges one unit has at most, of the contributions and the degree bound that are stated, if they are;
    it refuses what is not fully stated."""
    id: str | None = None
    """The column of the edge table that tells units apart, of which everybody in the graph is then publicly one."""
    bounded: bool = False
    """Whether it rests on a public bound on the degree of everybody."""
    one_edge: bool = False
    """Whether a unit is exactly one edge; otherwise somebody may have none."""
    undirected: str = ""
    """Why edges need a direction, where they do."""
    mutual: str = ""
    """What is to be known of an edge in both directions, where they are two and only one of them is protected."""

    def sentences(self, degree_bound: int | None, directed: bool, weighted: bool = False) -> list[str]:
        """Describe its protection, the limits of it, and the counting of edges, for the plan and the card."""
        lines = [self.words.format(degree_bound=degree_bound), (one_weighted_edge if weighted else one_edge)(directed)]
        if self.mutual and directed:
            lines.append(self.mutual)
        if not directed:
            lines.append(
                "Each edge is counted once, from the end whose group comes first in a fixed order: the edges between "
                "two groups are the sum of the two cells that name them."
            )
        return lines


def check_relation(name: object) -> Relation:
    """Return a relation by its name; there is no default for it."""
    if isinstance(name, str) and name in RELATIONS:
        return RELATIONS[name]
    hint = nearest(name, RELATIONS) if isinstance(name, str) else ""
    choices = "; ".join(f'"{relation.name}" {relation.hides}' for relation in RELATIONS.values())
    raise UnitError(f"The relation is {name!r}{hint}; there is no default for it, so choose one. {choices}.")


def check_entity(relation: str, entity: str | None) -> str:
    """Return the name of one unit, refusing that of something larger than the relation protects."""
    stated = check_relation(relation)
    if entity is None or entity == stated.entity or not stated.protects:
        return entity or stated.entity
    raise UnitError(
        f"The unit's entity is {entity!r}, but the relation {relation!r} protects {stated.protects} and no more; leave "
        f'the entity out, or write "{stated.entity}". To protect a person with all edges, choose the relation "node".'
    )


def unit_of(
    relation: str,
    neighbours: Neighbours | None = None,
    *,
    contributions: int | None = None,
    degree_bound: int | None = None,
    entity: str | None = None,
) -> Unit:
    """Return the protected unit of a relation, for a release of edges between groups.

    `contributions` is how many out-edges of a person count under "user-out"; `degree_bound` is the promise that "node"
    needs: in all, in and out, nobody has more edges.

    >>> unit_of("user-out", "add-remove", contributions=20).sensitivity("origin.region")
    Sensitivity(l1=20, l2_squared=400)
    """
    stated = check_relation(relation)
    if degree_bound is not None and not stated.bounded:
        bounded = " or ".join(f'"{known.name}"' for known in RELATIONS.values() if known.bounded)
        raise UnitError(f"A degree bound is for the relation {bounded}, and this is {relation!r}; leave it out.")
    name = check_entity(relation, entity)
    return Unit(name, stated.edges(contributions, degree_bound), neighbours, id=stated.id)


def one_edge(directed: bool) -> str:
    """Describe one edge.

    >>> one_edge(directed=False)
    'Edges have no direction: one edge is two people, whichever of them the table names first.'
    """
    if directed:
        return "Edges have a direction: one edge is one row of the edge table, from one person to another."
    return "Edges have no direction: one edge is two people, whichever of them the table names first."


def one_weighted_edge(directed: bool) -> str:
    """Describe one edge of a table whose rows stand for several."""
    end = "from one person to another" if directed else "between two people, whichever of them the table names first"
    return f"A row of the edge table stands for as many edges as its weight says. One edge is one of them, {end}."


def _one(contributions: int | None, degree_bound: int | None) -> int:
    if contributions not in (None, 1):
        raise UnitError(f"Under the relation 'edge' a unit is one edge, not {contributions}; leave that out.")
    return 1


def _listed(contributions: int | None, degree_bound: int | None) -> int:
    if contributions is None:
        raise UnitError(
            "Under the relation 'user-out' it must be said how many out-edges of a person count; longer lists are "
            "truncated to so many, at random. Give contributions, from public knowledge and not from the data."
        )
    return contributions


def _promised(contributions: int | None, degree_bound: int | None) -> int:
    if (most := whole(degree_bound)) is None:
        raise UnitError(
            "The relation 'node' needs a public bound on how many edges a person has, in and out together: no way is "
            'known to enforce one here. Declare degree_bound, which is a promise, or choose "edge" or "user-out".'
        )
    if contributions not in (None, degree_bound):
        raise UnitError("Under the relation 'node' contributions are the degree bound; leave contributions out.")
    return most


EDGE = Relation(
    "edge",
    entity="friendship",
    hides="hides one friendship",
    protects="one edge",
    words='The neighbour relation is "edge": graphs that differ in one edge. Who is in the graph, and in which '
    "groups, is not protected, and neither is a person with several edges: those are protected one by one.",
    edges=_one,
    one_edge=True,
    mutual="Where two people list each other, theirs are two edges, and only one of them is protected: hiding both "
    "costs twice the epsilon of a pure loss, and four times the rho of another. If friendship is mutual in "
    "these data, say that edges have no direction.",
)
USER_OUT = Relation(
    "user-out",
    entity="friend list",
    hides="hides all out-edges of one person, as far as the person lists them",
    protects="one person's own list of out-edges",
    words='The neighbour relation is "user-out": graphs that differ in the out-edges of one person, of which at '
    "most as many as stated are counted, chosen at random from that person's own list. Who is in the graph, and in "
    "which groups, is taken as public, for the ends of other people's edges too; and the edges that others "
    "have to a person are on their lists, not on that person's.",
    edges=_listed,
    id="source",
    undirected='the relation "user-out" protects one person\'s own list, and an edge without direction is on two: '
    'choose "edge" or "node", or list each edge in both directions and set directed = true',
)
NODE = Relation(
    "node",
    entity="person",
    hides="hides a person with all edges, in and out, and needs a public bound on the degree",
    protects="",
    words='The neighbour relation is "node": graphs that differ in one person, with the groups and all edges, '
    "in and out. It rests on a promise, which is public and was not measured: nobody has more than {degree_bound} "
    "edges in all.",
    edges=_promised,
    bounded=True,
)

RELATIONS = Choices("relation", EDGE, USER_OUT, NODE)


def register_relation(relation: Relation) -> Relation:
    """Add a relation. Its entity must be its own, because a ledger tells the relations apart by it."""
    if not relation.entity.strip() or any(relation.entity == other.entity for other in RELATIONS.values()):
        raise UnitError(f"The relation {relation.name!r} is about one {relation.entity!r}; give it a name of its own.")
    return RELATIONS.register(relation)


# The unit of a release of edges: a unit that says of which graphs it is, for the plan, its digest and the card.


@dataclass(frozen=True)
class GraphRules:
    """Declarations about the edges of a graph; their table and the plan that counts them must agree."""

    relation: str
    """Which graphs are neighbours, by the name of the relation."""
    directed: bool
    degree_bound: int | None = None
    """The promise that some relations need: nobody has more edges, in and out together."""
    policies: Policies = field(default_factory=Policies)
    """Policies for self-loops, repeated edges and edges to unknown nodes."""

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
        """One edge, in the words that a ledger keeps: it is not the same one by another rule.

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

    def sentences(self) -> list[str]:
        """Say which graphs are neighbours, what one edge is, and how edges are counted."""
        return self.kind.sentences(self.degree_bound, self.directed, self.policies.weighted)

    @staticmethod
    def of(described: Mapping[str, Any]) -> GraphRules:
        """Restore the rules from a `describe` mapping."""
        bound, policies = described.get("degree_bound"), Policies.of(described)
        return GraphRules(described["relation"], described["directed"], bound, policies)


@dataclass(frozen=True, init=False)
class GraphUnit(Unit):
    """A unit with the facts of its graph; `Graph.unit` makes it."""

    graph: GraphRules

    def __init__(self, unit: Unit, graph: GraphRules) -> None:
        try:
            fits = (unit.id, unit.contributions) == (
                graph.kind.id,
                graph.kind.edges(unit.contributions, graph.degree_bound),
            )
        except UnitError:
            fits = False
        if not fits:
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
        set_fields(self, graph=graph)

    @property
    def limits(self) -> str:
        """Properties that distinguish units of one name, for a ledger."""
        return f"{self.graph.edges}, {super().limits}"
