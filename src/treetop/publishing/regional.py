"""Degree distributions by region, at every level of a hierarchy: people are the groups, and their edges the sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from treetop.domain.hierarchy import Hierarchy
from treetop.domain.relation import EDGE, USER_OUT, check_relation
from treetop.errors import DataError, PlanError
from treetop.measure.degrees import degree_sensitivity, protected, refuse_exact, refuse_other_relation
from treetop.noise import Key
from treetop.plan.groups.plan import GroupPlan
from treetop.plan.groups.unit import Form, GroupUnit
from treetop.privacy import Loss, Sensitivity
from treetop.publishing.groups import release_groups
from treetop.read.graph.graph import Graph
from treetop.read.groups.sizes import GroupSizes
from treetop.release.groups.release import GroupRelease
from treetop.tables.header import refuse_code


@dataclass(frozen=True, init=False)
class Friendship(GroupUnit):
    """One edge, where the groups are people and their sizes the edges that they have."""

    directed: bool
    """Whether it counts for one of its ends; without direction, it counts for both."""

    def __init__(self, directed: bool) -> None:
        super().__init__(EDGE.entity, event="join-leave")
        object.__setattr__(self, "directed", directed)

    def sensitivity(self, form: Form, largest: int) -> Sensitivity:
        """How far one edge can move the counts of a level: at worst both ends are in one region, of one degree."""
        measured = "histogram" if form == "direct" else form
        return degree_sensitivity("edge", self.directed, measured, "add-remove", largest)

    def sentence(self) -> str:
        """Say in plain English what is protected."""
        return protected("edge", "add-remove")


@dataclass(frozen=True, init=False)
class FriendList(GroupUnit):
    """All out-edges of one person: the list may come to any other, and with it the size of the group."""

    def __init__(self) -> None:
        super().__init__(USER_OUT.entity, event="group")

    def sentence(self) -> str:
        """Say in plain English what is protected."""
        return protected("user-out", "replace")


@dataclass(frozen=True, eq=False)
class RegionalPlan:
    """A release of the degrees of every region, decided before the graph is read; who is in which region is public.

    >>> plan = RegionalPlan(Hierarchy.flat(["east", "west"]), 9, "edge", Loss(rho=1), directed=False)
    >>> plan.spent, [level.law for level in plan.core.levels]
    (Fraction(1, 1), [DiscreteGaussian(variance=Fraction(4, 1)), DiscreteGaussian(variance=Fraction(4, 1))])
    """

    regions: Hierarchy
    """The public tree of regions; every person is in one leaf."""
    largest: int
    """The largest degree that is told apart, which stands for more as well; public."""
    relation: str
    """Which graphs are neighbours: "edge", of which one is added or removed, or "user-out"."""
    loss: Loss
    """The privacy loss: pure epsilon gives Laplace noise, rho or epsilon with delta Gaussian noise."""
    directed: bool = True
    """Whether edges have a direction: then out-degrees are counted; without, all edges of a person."""
    form: Form = "cumulative"
    """What is measured: how many people have each degree, or each degree and those below."""
    core: GroupPlan = field(init=False, repr=False)
    """The plan for group sizes that this comes to."""

    def __post_init__(self) -> None:
        check_relation(self.relation)
        refuse_exact(self.loss)
        if self.relation == "node":
            raise PlanError(
                'under "node" the region of a person is private, and here it must be public: choose "edge" or '
                '"user-out", or release the degrees of the whole graph'
            )
        if self.relation == "user-out" and not self.directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')
        unit = Friendship(self.directed) if self.relation == "edge" else FriendList()
        object.__setattr__(self, "core", GroupPlan(self.regions, self.largest, unit, self.loss, self.form))

    @property
    def spent(self) -> Fraction:
        """What a run costs: epsilon if the loss is pure, otherwise rho."""
        return self.core.spent

    def sentence(self) -> str:
        """Say in plain English what is protected and what is guaranteed."""
        return f"{self.core.unit.sentence()} {self.loss.sentence()}"

    def release(
        self,
        graph: Graph,
        column: str,
        key: Key | None = None,
        threads: int = 1,
        *,
        before_measuring: Callable[[], object] | None = None,
    ) -> GroupRelease:
        """Read a graph and release how many people of each region have each degree, so that all levels add up.

        `column` is the column of the node table with the leaf regions. `before_measuring` is called when the graph has
        been read and nothing has been spent yet: it charges a ledger. The key is fresh; with one that a test gives, the
        release says that it is not private.
        """
        if graph.directed != self.directed:
            raise PlanError("the plan and the graph do not agree on whether edges have a direction")
        refuse_other_relation(self.relation, graph)
        nodes = graph.read_nodes([column])
        if nodes.unvouched:
            refuse_code(column, self.regions.codes, "the node table")
        if self.relation == "user-out":
            self.loss.refuse_large_delta(len(nodes), "the number of people, which is public")
        edges = graph.read_edges(nodes)
        degrees = edges.out_degrees(len(nodes)) if edges.directed else edges.degrees(len(nodes))
        codes = nodes.columns[column]
        leaf = np.append(self.regions.encode(codes.codes), -1)[codes.index]
        if (leaf < 0).any():
            row = int((leaf < 0).argmax())
            code = None if codes.index[row] < 0 else codes.codes[int(codes.index[row])].as_py()
            raise DataError(
                f"the node table, column {column!r}, row {row + 1}: {code!r} is not a leaf region; clean it"
            )
        sizes = GroupSizes.from_rows(self.regions, leaf, degrees, largest=self.largest)
        return release_groups(self.core, sizes, key, threads, before_measuring=before_measuring)
