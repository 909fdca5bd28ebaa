"""Degree distributions by region, at every level of a hierarchy: people are the groups, and their edges the sizes."""

from __future__ import annotations

import numpy as np

from treetop.errors import DataError, PlanError
from treetop.graphs.graph import Graph
from treetop.graphs.relation import Relation
from treetop.groups import GroupPlan, GroupRelease, GroupSizes, GroupUnit
from treetop.groups.unit import Form
from treetop.hierarchy import Hierarchy
from treetop.noise import Key
from treetop.privacy import Loss


def regional_plan(
    regions: Hierarchy,
    largest: int,
    relation: Relation,
    loss: Loss,
    *,
    directed: bool = True,
    form: Form = "cumulative",
) -> GroupPlan:
    """Return the plan for group sizes that a relation comes to; who is in which region must be public.

    One directed edge changes the out-degree of one person by 1, as one person joins a group. One without direction
    changes two people, at worst in one region and from the same degree: twice as far in every norm, so it gets half the
    epsilon or a quarter of the rho (group privacy, which is tight here). A person's whole list may change the degree to
    any other.
    """
    if relation == "node":
        raise PlanError(
            'under "node" the region of a person is private, and here it must be public: choose "edge" or "user-out", '
            "or release the degrees of the whole graph"
        )
    if relation == "user-out":
        if not directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')
        return GroupPlan(regions, largest, GroupUnit("friend list", event="group"), loss, form)
    return GroupPlan(regions, largest, GroupUnit("friendship", event="join-leave"), _of_one(loss, directed), form)


def _of_one(loss: Loss, directed: bool) -> Loss:
    if directed:
        return loss
    return Loss(epsilon=loss.budget / 2) if loss.definition == "pure" else Loss(rho=loss.budget / 4)


def regional_degrees(
    graph: Graph, column: str, plan: GroupPlan, key: Key | None = None, threads: int = 1
) -> GroupRelease:
    """Read a graph and release how many people of each region have each degree, so that all levels add up.

    `column` is the column of the node table with the leaf regions. The plan comes from `regional_plan`.
    """
    nodes = graph.read_nodes([column])
    edges = graph.read_edges(nodes)
    degrees = edges.out_degrees(len(nodes)) if edges.directed else edges.degrees(len(nodes))
    codes = nodes.columns[column]
    leaf = np.append(plan.regions.encode(codes.codes), -1)[codes.index]
    if (leaf < 0).any():
        row = int((leaf < 0).argmax())
        code = None if codes.index[row] < 0 else codes.codes[int(codes.index[row])].as_py()
        raise DataError(f"the node table, column {column!r}, row {row + 1}: {code!r} is not a leaf region; clean it")
    return plan.release(GroupSizes.from_rows(plan.regions, leaf, degrees, largest=plan.largest), key, threads)
