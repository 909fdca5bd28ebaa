"""How far one unit can move the numbers of people of each degree, by relation, kind of degree and form.

Degrees go from 0 to a largest that stands for more as well. One that rises or falls by 1 is a step, e(a + 1) − e(a) or
its opposite, in the histogram, and ±e(a) in the cumulative counts; one that changes by more is as many steps. The inner
product of two steps of the histogram is at most 2 in the same direction and at most 1 in opposite ones (a − 1 to a and
a + 1 to a meet in one degree); of the cumulative counts it is at most 1, and at most 0 in opposite directions. The
sum of the distances of all steps bounds L1, and that of their inner products L2 squared.

- edge, one end: in- or out-degrees of a graph whose edges have a direction make one step. Histogram 2 in L1 and 2
  squared in L2, cumulative 1 and 1; an edge that is exchanged makes two opposite ones, 4 and 6, 2 and 2.
- edge, both ends: all edges of a person make two steps in the same direction: 4 and 8, 2 and 4; exchanged 8 and 24, 4
  and 8.
- user-out, out-degrees: one degree becomes another, and no other changes. Who is in the graph is public, so their
  number is, and people without edges are what the others leave: of the degrees from 1 on, an added list changes one, an
  exchanged list two. Cumulative counts would change by as much as the largest degree.
- user-out, in-degrees: of a list m edges are kept, by a rule that reads that list only. They make m steps in one
  direction: 2m and 2m², m and m²; exchanged, m in either: 4m and 6m², 2m and 2m².
- user-out, all edges: the list's own person moves as well, by as much as the list has edges. Where that is from the
  last degree but one to the largest, it is one step more in the histogram: 2(m + 1) and 2(m + 1)². In the cumulative
  counts it moves m of them by 1: 2m and (m + 1)² + m − 1. Exchanged for one of j edges, m fall, j rise, and the person
  moves by m − j: 2(m + 1 + j) and 2(m + 1)² + 2j² + 2j(m + 1) where j < m, at most 4m and 6m² + 2; in cumulative counts
  2m and (m + 1)² + (m − j − 1) + j² where j < m, at most 2m² + 2.
- user-out, one edge of a list: it makes a step at its other end and, of all edges, one in the same direction at the
  list's own person. Where lists are cut, it may take the place of another instead: two opposite steps at other people,
  while the list's own person has as many edges as before. An edge that gets another end does the same. Which edges are
  kept is random, and the loss of a mixture is at most the largest of its pairs.
- node, all edges, after the projection to at most theta edges each: x goes, with k ≤ theta kept edges, and the degrees
  of others make k steps in all (see `treetop.intake.graph.projection`). The inner product of a step with −e(k), for x
  itself, is at most 1: k² + (k + 1)² squared in L2 and 2k + 1 in L1. In the cumulative counts x is −1 from k on, and
  steps are below theta: at worst theta² + 1 squared, and theta + 1.
- node, in-degrees, after the projection to at most theta in-edges and theta out-edges each: x goes, of which k ≤ theta
  in-edges are kept. Its out-edges take up to theta steps down of in-degrees, and then its in-edges b ≤ k steps up, to
  at most theta. If b is theta, so is k, and no step up begins where −e(k) is: 4·theta + 1, and 6·theta² + 2·theta + 1
  squared; fewer make less. In the cumulative counts x is −1 from k on: at worst 2·theta + 1, and 2·theta² + 1 squared.
  Out-degrees are the same, with edges turned around.

- node, how many people reach theta after the projection, by which theta may be chosen: the degrees of others make k
  steps in all, each of which takes one of them to theta or away from it; of in-degrees up to theta steps in either
  direction, of which those in one take back what those in the other did. x itself reaches theta where k is theta. So
  one count moves by theta + 1 at most, as in a clique of theta + 1 people. How many people have more than theta edges
  before the projection would have no bound: x may be a neighbour of all.

Under "node" exchanging x is taking it away and putting another in: twice as far. By region, people who are in one
change its degrees as they would change those of the whole graph, and no others: steps in two regions have the inner
product 0.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from treetop.domain.unit import Neighbours, Sensitivity

Form: TypeAlias = Literal["histogram", "cumulative"]
"""What is measured: how many people have each degree, or each degree and those below."""
Degree: TypeAlias = Literal["out", "in", "total"]
"""Which edges of a person are counted: those that go out, those that come in, or all."""

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
    """How far one unit can move the measured counts.

    `largest` is theta under "node"; `most` is how many edges of a list count where they are those of others, too.

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
    """How far one edge of a list can move the measured counts under "user-out": as one more, or in another's place.

    >>> listed_edge_sensitivities("in", "histogram")
    (Sensitivity(l1=2, l2_squared=2), Sensitivity(l1=4, l2_squared=6))
    """
    added = _ENDS[2 if degree == "total" else 1, form, "add-remove"]
    return (added,) if degree == "out" else (added, _ENDS[1, form, "replace"])


def reaching_sensitivity(neighbours: Neighbours, theta: int) -> Sensitivity:
    """How far one person can move the number of people who reach theta after the projection, under "node".

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
