"""The degree distribution: how many people have how many edges, measured once under a named relation, and repaired.

Sensitivities, for degrees from 0 to a largest that stands for more as well:

- edge, without direction: both ends change by 1, at worst from and to the same degrees. Histogram 4 in L1 and 8 squared
  in L2, cumulative 2 and 4. Exchanging one edge for another adds changes of opposite direction, of which two overlap in
  one degree at most: 8 and 24, 4 and 8.
- edge, with direction: the out-degree of one end changes by 1: 2 and 2, cumulative 1 and 1; exchanged 4 and 6, 2 and 2.
- user-out: one out-degree becomes another. Who is in the graph is public, so their number is, and people without edges
  are what the others leave: of the degrees from 1 on, an added list changes one, an exchanged list two. Cumulative
  counts would change by as much as the largest degree.
- node, after the projection to at most theta edges each: x goes, with k ≤ theta kept edges, and the degrees of others
  change by k in all (see `projection`). Each such step is e(a − 1) − e(a) or its opposite in the histogram, whose inner
  products are at most 2, and with −e(k), for x itself, at most 1: k² + (k + 1)² squared in L2 and 2k + 1 in L1. In
  the cumulative counts it is e(a), with a < theta, and −1 from k on for x: at worst theta² + 1 squared, and theta + 1.
  Exchanging x is taking it away and putting another in: twice as far.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.exact import whole
from treetop.basics.nearest import nearest
from treetop.domain.relation import EDGE, RELATIONS, check_relation
from treetop.errors import DataError, LossError, PlanError
from treetop.measure.workload import measuring
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key
from treetop.noise.gate import WARNING, Gate, digest
from treetop.plan.workload import Measured, Part, Workload
from treetop.privacy import Loss, Neighbours, Sensitivity
from treetop.privacy.mechanism import cost_of, noise_for
from treetop.read.dropping import may_drop
from treetop.read.graph.edges import Edges
from treetop.read.graph.graph import Graph
from treetop.read.graph.nodes import Nodes
from treetop.read.graph.projection import projected_degrees
from treetop.repair import euclidean, isotonic

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


def refuse_exact(loss: Loss) -> None:
    """Refuse a loss whose sentence would claim an accounting that degrees do not have: theirs is by rho."""
    if loss.accounting == "exact":
        raise PlanError('exact accounting is not for degrees: leave it out, or write accounting="zcdp"')


def refuse_other_relation(relation: str, graph: Graph) -> None:
    """Refuse a graph whose neighbours are others than those that a plan is made for."""
    if graph.relation != relation:
        raise PlanError(
            f"the plan is made for the relation {relation!r}, and the graph's is {graph.relation!r}: "
            "the noise of one does not protect the other"
        )


def protected(relation: str, neighbours: Neighbours) -> str:
    """Say in plain English what a release of degrees protects, and what not.

    Other releases of edges keep some of a list, or rest on a promise: this one counts whole lists, and projects.
    """
    told = {
        "edge": EDGE.words,
        "user-out": 'The neighbour relation is "user-out": graphs that differ in the out-edges of one person, however '
        "many. Who is in the graph, and in which groups, is taken as public; and the edges that others have to a "
        "person are on their lists, not on that person's.",
        "node": 'The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It '
        "rests on no promise: edges are left out until nobody has more than the largest degree.",
    }[relation]
    if neighbours == "add-remove":
        return f"{told} One {RELATIONS[relation].entity} is added or removed."
    public = " How many people there are is public." if relation == "node" else ""
    return f"{told} One {RELATIONS[relation].entity} is exchanged for another.{public}"


@dataclass(frozen=True)
class DegreePlan:
    """A release of the degree distribution of a graph, decided before it is read."""

    relation: str
    """Which graphs are neighbours."""
    neighbours: Neighbours
    """Whether a unit is added and removed, or exchanged."""
    loss: Loss
    """The privacy loss: pure epsilon gives Laplace noise, rho or epsilon with delta Gaussian noise."""
    largest: int
    """The largest degree that is told apart, which stands for more as well; public. Under "node" it is theta: edges are
    left out until nobody has more."""
    form: Form = "cumulative"
    """What is measured: how many people have each degree, or each degree and those below."""
    directed: bool = True
    """Whether edges have a direction: then out-degrees are counted; without, and under "node", all edges of a node."""

    def __post_init__(self) -> None:
        check_relation(self.relation)
        refuse_exact(self.loss)
        for what, given, kinds in (("form", self.form, Form), ("neighbours", self.neighbours, Neighbours)):
            if given not in (names := get_args(kinds)):
                raise PlanError(f"{what} is {given!r}{nearest(str(given), names)}; choose one of: {', '.join(names)}")
        if whole(self.largest) is None or self.largest > 10**6:
            raise PlanError(f"largest is {self.largest!r}: give the largest degree, a whole number from 1 to a million")
        if self.relation == "user-out" and not self.directed:
            raise PlanError('the relation "user-out" is about lists of out-edges: the graph must be directed')
        if self.law.margin(Fraction(1, 2**80)) * (self.largest + 1) ** 2 >= 2**61:
            raise LossError("the noise is too wide for 64-bit sums: give a larger loss, or a smaller largest degree")

    @property
    def people_are_public(self) -> bool:
        """Whether all neighbours have as many nodes: only a node that comes or goes changes that."""
        return self.relation != "node" or self.neighbours == "replace"

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far one unit can move what is measured."""
        return degree_sensitivity(self.relation, self.directed, self.form, self.neighbours, self.largest)

    @cached_property
    def law(self) -> DiscreteGaussian | DiscreteLaplace:
        """The noise of each count."""
        return noise_for(self.sensitivity, self.loss)

    @cached_property
    def workload(self) -> Workload:
        """What is measured: one table, with a cell for each degree."""
        spent = cost_of(self.sensitivity, self.law)
        return Workload((Part(0, "degrees", self.largest + 1, Fraction(1), Measured(self.law), spent),))

    @property
    def spent(self) -> Fraction:
        """What a run costs: epsilon if the loss is pure, otherwise rho."""
        return self.workload.spent

    def sentence(self) -> str:
        """Say in plain English what is protected and what is guaranteed.

        >>> print(DegreePlan("node", "add-remove", Loss(rho=1), largest=9).sentence())
        The neighbour relation is "node": graphs that differ in one person, with all edges, in and out. It rests on no \
promise: edges are left out until nobody has more than the largest degree. One person is added or removed. \
Zero-concentrated differential privacy with rho 1; Gaussian noise.
        """
        return f"{protected(self.relation, self.neighbours)} {self.loss.sentence()}"

    def describe(self) -> dict[str, Any]:
        """All that was decided, for binding the noise to it."""
        return {
            "degrees": self.relation,
            "neighbours": self.neighbours,
            "largest": self.largest,
            "form": self.form,
            "directed": self.directed,
            "noise": self.law.describe(),
        }

    def release(
        self, graph: Graph, *, before_measuring: Callable[[], object] | None = None, testing_key: bytes | None = None
    ) -> DegreeRelease:
        """Read a graph, measure its degrees once, and return what may be published.

        `before_measuring` is called when the graph has been read and nothing has been spent yet.
        """
        if graph.directed != self.directed:
            raise PlanError("the plan and the graph do not agree on whether edges have a direction")
        refuse_other_relation(self.relation, graph)
        self._refuse_selected(may_drop(graph.nodes))
        nodes = graph.read_nodes([])
        return self.measure(nodes, graph.read_edges(nodes), before_measuring, testing_key)

    def measure(
        self,
        nodes: Nodes,
        edges: Edges,
        before_measuring: Callable[[], object] | None = None,
        testing_key: bytes | None = None,
    ) -> DegreeRelease:
        """Measure a graph that has been read."""
        if edges.directed != self.directed:
            raise PlanError("the plan and the edges do not agree on whether edges have a direction")
        self._refuse_selected(nodes.may_drop)
        if len(nodes) == 0 and self.people_are_public:
            raise DataError("the graph has no nodes: there are no degrees to release")
        if self.people_are_public and self.relation != "edge":
            self.loss.refuse_large_delta(len(nodes), "the number of people, which is public")
        if (len(nodes) + self.law.margin(Fraction(1, 2**80))) * (self.largest + 1) ** 2 >= 2**62:
            raise PlanError(f"degrees up to {self.largest:,} of so many people do not fit 64-bit sums: lower largest")
        gate = Gate(testing_key)
        truth = self.truth(nodes, edges, gate.choice("order"))
        people = len(nodes) if self.people_are_public else None
        data = hashlib.sha256(truth.tobytes()).digest()
        with measuring(self.workload, gate, before_measuring, "degrees", digest(self.describe()), data) as run:
            measured = run.noisy(self.workload.parts[0], truth)
            return DegreeRelease(self, self._repaired(measured, people), people, gate.private)

    def _refuse_selected(self, reason: str | None) -> None:
        """Refuse to tell exactly how many people there are where an exchange may change that."""
        if reason is not None and self.relation == "node" and self.people_are_public:
            raise PlanError(
                f"the number of people would be released without noise, but neighbours may differ in it: {reason}, so "
                "that one person may be exchanged for one who is not counted. Choose neighbours = "
                '"add-remove", under which it is measured, or give a node table of which every row counts'
            )

    def truth(self, nodes: Nodes, edges: Edges, order: Key) -> NDArray[np.int64]:
        """Return the counts that are measured, without noise: private."""
        if self.relation == "node":
            degrees = projected_degrees(nodes, edges, self.largest, order)
        elif self.directed:
            degrees = edges.out_degrees(len(nodes))
        else:
            degrees = edges.degrees(len(nodes))
        number = np.bincount(np.minimum(degrees, self.largest), minlength=self.largest + 1).astype(np.int64)
        if self.form == "histogram":
            return number[1:] if self.relation == "user-out" else number
        total = number.cumsum()
        return total[:-1] if self.people_are_public else total  # the last is everyone, which is then known

    def _repaired(self, measured: NDArray[np.int64], people: int | None) -> NDArray[np.int64]:
        """Return the number of people of each degree, from measurements alone."""
        if self.form == "cumulative":
            high = max(0, int(measured.max())) if people is None else people
            rising = isotonic(measured[None, :], high)[0]
            ends = rising if people is None else np.append(rising, people)
            return np.diff(ends, prepend=0)
        if people is None:
            return np.maximum(measured, 0)
        if self.relation == "user-out":
            # What the others leave has no noise of its own: take from them only what is more than there are people.
            kept = np.maximum(measured, 0)
            kept = euclidean(kept, people) if kept.sum() > people else kept
            return np.append(people - kept.sum(), kept)
        return euclidean(measured, people)


@dataclass(frozen=True, eq=False)
class DegreeRelease:
    """The public degree distribution."""

    plan: DegreePlan
    """What was run."""
    number: NDArray[np.int64]
    """How many people have each degree, from 0 to the largest, which stands for more as well."""
    people: int | None
    """How many people there are, where that is public."""
    private: bool = True
    """False where somebody knows the key of the noise: such a release protects nobody."""

    @property
    def warning(self) -> str | None:
        """What must be said of a release that is not private; None for one that is."""
        return None if self.private else WARNING

    @property
    def cumulative(self) -> NDArray[np.int64]:
        """How many people have each degree or less."""
        return self.number.cumsum()

    def table(self) -> pa.Table:
        """Return degree, people and people of so many edges or fewer."""
        columns = {"degree": np.arange(len(self.number)), "people": self.number, "cumulative": self.cumulative}
        return pa.table(columns).replace_schema_metadata(None if self.private else {"warning": WARNING})
