"""Neighbour relations of graphs, by name: what each protects, what it leaves public, and the unit that it comes to.

One edge that is added or removed changes one cell of every level by 1. A person's own list of out-edges, truncated to
m by a rule that reads that list only, changes the cells of a level by at most m in all: two edges to different towns
fall in one region, so the L2 sensitivity is m at every level above the leaves, and not √m. A node that goes takes its
in-edges with it, which are on other people's lists, so no truncation of lists bounds it: dropping one end of a path and
keeping every node's degree at 1 may change all edges that are kept. Only a public bound on the degree does.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from treetop.basics.exact import whole
from treetop.basics.nearest import nearest
from treetop.domain.unit import Neighbours, Unit
from treetop.errors import UnitError

Relation: TypeAlias = Literal["edge", "user-out", "node"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)

ENTITIES: dict[Relation, str] = {"edge": "friendship", "user-out": "friend list", "node": "person"}
"""What one unit is called: a ledger tells the relations apart by it, so only under "node" may it have another name."""

_CHOICES = (
    '"edge" hides one friendship; "user-out" hides all out-edges of one person, as far as the person lists them; '
    '"node" hides a person with all edges, in and out, and needs a public bound on the degree.'
)


def check_relation(relation: object) -> Relation:
    """Return a relation by its name; there is no default for it."""
    for known in RELATIONS:
        if relation == known:
            return known
    hint = nearest(relation, RELATIONS) if isinstance(relation, str) else ""
    raise UnitError(f"The relation is {relation!r}{hint}; there is no default for it, so choose one. {_CHOICES}")


def check_entity(relation: Relation, entity: str | None) -> str:
    """Return what one unit is called, refusing the name of something larger than what the relation protects."""
    own = ENTITIES[relation]
    if entity is None or entity == own or relation == "node":
        return entity or own
    hidden = "one edge" if relation == "edge" else "one person's own list of out-edges"
    raise UnitError(
        f"The unit's entity is {entity!r}, but the relation {relation!r} protects {hidden} and no more; leave the "
        f'entity out, or write "{own}". To protect a person with all edges, choose the relation "node".'
    )


def unit_of(
    relation: Relation,
    neighbours: Neighbours | None = None,
    *,
    contributions: int | None = None,
    degree_bound: int | None = None,
    entity: str | None = None,
    id: str = "source",
) -> Unit:
    """Return the protected unit of a relation, for a release of edges between groups.

    `contributions` is how many out-edges of a person count under "user-out"; `degree_bound` is the promise that "node"
    needs: in all, in and out, nobody has more edges.

    >>> unit_of("user-out", "add-remove", contributions=20).sensitivity("origin.region")
    Sensitivity(l1=20, l2_squared=400)
    """
    check_relation(relation)
    if degree_bound is not None and relation != "node":
        raise UnitError(f'A degree bound is for the relation "node", and this is {relation!r}; leave it out.')
    name = check_entity(relation, entity)
    if relation == "edge":
        if contributions not in (None, 1):
            raise UnitError(f"Under the relation 'edge' a unit is one edge, not {contributions}; leave that out.")
        return Unit(name, 1, neighbours)
    if relation == "user-out":
        if contributions is None:
            raise UnitError(
                "Under the relation 'user-out' it must be said how many out-edges of a person count; longer lists are "
                "truncated to so many, at random. Give contributions, from public knowledge and not from the data."
            )
        return Unit(name, contributions, neighbours, id=id)
    if whole(degree_bound) is None:
        raise UnitError(
            "The relation 'node' needs a public bound on how many edges a person has, in and out together: no way is "
            'known to enforce one here. Declare degree_bound, which is a promise, or choose "edge" or "user-out".'
        )
    if contributions not in (None, degree_bound):
        raise UnitError("Under the relation 'node' contributions are the degree bound; leave contributions out.")
    return Unit(name, degree_bound or 1, neighbours)


def sentences(relation: Relation, degree_bound: int | None, directed: bool) -> list[str]:
    """Say what a relation protects, what it does not, and how edges are counted, for the plan and the card."""
    told = {
        "edge": [
            'The neighbour relation is "edge": graphs that differ in one edge. Who is in the graph, and in which '
            "groups, is not protected, and neither is a person with several edges: those are protected one by one.",
        ],
        "user-out": [
            'The neighbour relation is "user-out": graphs that differ in the out-edges of one person, of which at most '
            "as many as stated are counted, chosen at random from that person's own list. Who is in the graph, and in "
            "which groups, is taken as public, for the ends of other people's edges too; and the edges that others "
            "have to a person are on their lists, not on that person's.",
        ],
        "node": [
            'The neighbour relation is "node": graphs that differ in one person, with the groups and all edges, in and '
            f"out. It rests on a promise, which is public and was not measured: nobody has more than {degree_bound} "
            "edges in all.",
        ],
    }[relation]
    told.append(one_edge(directed))
    if relation == "edge" and directed:
        told.append(
            "Where two people list each other, theirs are two edges, and only one of them is protected: hiding both "
            "costs twice the epsilon of a pure loss, and four times the rho of another. If friendship is mutual in "
            "these data, say that edges have no direction."
        )
    if not directed:
        told.append(
            "Each edge is counted once, from the end whose group comes first in the order of the codes: the edges "
            "between two groups are the sum of the two cells that name them."
        )
    return told


def one_edge(directed: bool) -> str:
    """Say what one edge is.

    >>> one_edge(directed=False)
    'Edges have no direction: one edge is two people, whichever of them the table names first.'
    """
    if directed:
        return "Edges have a direction: one edge is one row of the edge table, from one person to another."
    return "Edges have no direction: one edge is two people, whichever of them the table names first."
