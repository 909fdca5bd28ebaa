"""Unordered pairs: how far one unit moves the counts of a level, in all small graphs."""

from __future__ import annotations

from functools import cache, partial
from itertools import combinations

import numpy as np

import treetop as tt
from treetop import Graph
from treetop.domain.constraints import ORDERED
from treetop.measure import questions
from treetop.privacy import Neighbours

from .audits import Audit, audit
from .small_graphs import COLUMNS, PLACES, Pairs, all_graphs, distances, people, table

PEOPLE = tuple(range(4))
LEAVES = "origin.town * destination.town"
MOST = 3
Levels = tuple[dict[tuple[int, ...], int], ...]


def plan_of(graph: Graph, neighbours: Neighbours) -> tt.Plan:
    spine = tt.Spine.origin_first(origin=PLACES, destination=PLACES)
    return tt.Plan(spine, graph.unit(neighbours), tt.Loss(rho=1), facts={LEAVES: tt.Fact(possible=ORDERED)})


def levels_of(kept: tuple[int, ...], pairs: Pairs, relation: str, neighbours: Neighbours) -> tuple[tt.Plan, Levels]:
    """Count unordered pairs at every level, by the way that a release counts them."""
    bound = MOST if relation == "node" else None
    graph = Graph(people(kept), table(pairs), relation, directed=False, degree_bound=bound)
    plan = plan_of(graph, neighbours)
    leaves, number = questions.leaves_of(plan.spine, tt.read_true_counts(plan, graph.table(), COLUMNS))
    found = []
    for index in range(len(plan.spine.levels) + 1):
        depths = plan.spine.depths(index)
        trees = zip(plan.spine.trees, leaves, depths, strict=True)
        nodes = [tree.ancestors(depth - 1)[leaf] for tree, leaf, depth in trees if depth]
        level: dict[tuple[int, ...], int] = {}
        for *place, count in zip(*nodes, number, strict=True):
            level[tuple(map(int, place))] = level.get(tuple(map(int, place)), 0) + int(count)
        found.append(level)
    return plan, tuple(found)


def neighbours_of(pairs: Pairs, relation: str, neighbours: Neighbours) -> list[tuple[tuple[int, ...], Pairs]]:
    if relation == "node":
        return [
            (tuple(one for one in PEOPLE if one != gone), tuple(edge for edge in pairs if gone not in edge))
            for gone in PEOPLE
        ]
    less = [tuple(edge for edge in pairs if edge != gone) for gone in pairs]
    if neighbours == "add-remove":
        return [(PEOPLE, one) for one in less]
    others = [edge for edge in combinations(PEOPLE, 2) if edge not in pairs]
    return [(PEOPLE, (*one, other)) for one in less for other in others]


@audit
def the_pairs_that_one_unit_moves(relation: str, neighbours: Neighbours) -> str | None:
    """Compare the largest change of every level with the sensitivity that its noise is for."""
    found: dict[str, tuple[int, int]] = {}
    counted = cache(partial(levels_of, relation=relation, neighbours=neighbours))
    for pairs in all_graphs(len(PEOPLE)):
        plan, here = counted(PEOPLE, pairs)
        if levels_of(PEOPLE, tuple(edge[::-1] for edge in pairs), relation, neighbours)[1] != here:
            return "the order in which the ends of an edge are listed is counted"
        last = np.array([*here[-1]] or np.zeros((0, 2)), np.int64)
        if (last[:, 0] > last[:, 1]).any():
            return "an edge stands in a cell that is not there"
        for kept, other in neighbours_of(pairs, relation, neighbours):
            apart = distances(here, counted(kept, other)[1])
            for name, change in zip(("total", *(level.name for level in plan.spine.levels)), apart, strict=True):
                before = found.get(name, (0, 0))
                found[name] = (max(before[0], change[0]), max(before[1], change[1]))
    for name, (l1, squared) in found.items():
        bound = plan.unit.sensitivity(name)
        if l1 > bound.l1 or squared > bound.l2_squared:
            return f"{name} moves by {l1} and {squared} squared, and the noise is for {tuple(bound)}"
    if relation == "edge" and found[plan.spine.levels[-1].name] != tuple(plan.unit.sensitivity("origin.town")):
        return "the sensitivity is not reached, so that the audit looks at too little"
    return None


def pair_audits() -> dict[str, Audit]:
    """The audits of unordered pairs."""
    return {
        "pairs, an edge more": partial(the_pairs_that_one_unit_moves, "edge", "add-remove"),
        "pairs, an edge for another": partial(the_pairs_that_one_unit_moves, "edge", "replace"),
        "pairs, a person": partial(the_pairs_that_one_unit_moves, "node", "add-remove"),
    }
