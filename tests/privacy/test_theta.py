"""Audits of what theta is chosen by: how far one person moves the number of people who reach it, in all small graphs.

Everything goes through the code that projects and counts. Beside the bound stand the counts that have none.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.counts.graph_reader import Edges, Nodes
from treetop.measure import readers
from treetop.plan.degree_unit import Degree, reaching_sensitivity

from .engine import KEY
from .small_graphs import Pairs, all_graphs, graph_of

CANDIDATES = (1, 2, 3)


def choosing(directed: bool = False, degree: Degree | None = None) -> tt.Plan:
    return tt.degree_plan("node", "add-remove", tt.Loss(rho=1), CANDIDATES, directed=directed, degree=degree)


def reaching(plan: tt.Plan, graph: tuple[Nodes, Edges]) -> NDArray[np.int64]:
    return np.array(readers.degree_cells_by_theta(plan, *graph, KEY)[0])


def without(everyone: tuple[int, ...], pairs: Pairs, x: int) -> tuple[tuple[int, ...], Pairs]:
    return tuple(node for node in everyone if node != x), tuple(pair for pair in pairs if x not in pair)


def test_one_person_moves_the_number_who_reach_theta_by_what_was_promised_in_every_small_graph() -> None:
    plan, names, everyone = choosing(), {}, tuple(range(5))  # type: ignore[var-annotated]
    least, most = np.zeros(len(CANDIDATES), np.int64), np.zeros(len(CANDIDATES), np.int64)
    less: dict[tuple[tuple[int, ...], Pairs], NDArray[np.int64]] = {}
    for pairs in all_graphs(5):
        full = reaching(plan, graph_of(everyone, pairs, names))
        for x in everyone:
            rest = without(everyone, pairs, x)
            if rest not in less:
                less[rest] = reaching(plan, graph_of(*rest, names))
            least, most = np.minimum(least, full - less[rest]), np.maximum(most, full - less[rest])
    for theta, low, high in zip(CANDIDATES, least.tolist(), most.tolist(), strict=True):
        promised = reaching_sensitivity("add-remove", theta)
        assert max(-low, high) == promised.l1 == theta + 1 and promised.l2_squared == promised.l1**2
        # Who is exchanged goes from one graph to the common one, and from that to another.
        assert high - low <= reaching_sensitivity("replace", theta).l1


@pytest.mark.parametrize("degree", ["in", "out"])
def test_in_one_direction_it_is_no_further(degree: Degree) -> None:
    plan, names, everyone = choosing(True, degree), {}, tuple(range(4))  # type: ignore[var-annotated]
    possible = [(i, j) for i in everyone for j in everyone if i != j]

    def directed(kept: tuple[int, ...], pairs: Pairs) -> NDArray[np.int64]:
        nodes, edges = graph_of(kept, pairs, names)
        return reaching(plan, (nodes, Edges(edges.source, edges.target, directed=True)))

    found = np.zeros(len(CANDIDATES), np.int64)
    less: dict[Pairs, NDArray[np.int64]] = {}
    for mask in range(1 << len(possible)):
        pairs = tuple(pair for bit, pair in enumerate(possible) if mask >> bit & 1)
        kept, rest = without(everyone, pairs, 0)  # whoever goes: all graphs are tried
        if rest not in less:
            less[rest] = directed(kept, rest)
        found = np.maximum(found, np.abs(directed(everyone, pairs) - less[rest]))
    promised = [reaching_sensitivity("add-remove", theta).l1 for theta in CANDIDATES]
    assert (found <= promised).all() and found[0] == promised[0]


def test_how_many_have_more_edges_than_theta_would_have_no_bound() -> None:
    """The fault beside it: degrees before edges are left out, of which one person moves as many as there are."""
    for people in (10, 40):
        star = tuple((0, other) for other in range(1, people))
        ring = tuple((i, i + 1) for i in range(1, people - 1))
        nodes, edges = graph_of(tuple(range(people)), star + ring, {})
        less, fewer = graph_of(*without(tuple(range(people)), star + ring, 0), {})
        above = [int((one.degrees(len(who)) > 2).sum()) for who, one in ((nodes, edges), (less, fewer))]
        assert above[0] - above[1] == people - 2 > reaching_sensitivity("add-remove", 2).l1
        moved = reaching(choosing(), (nodes, edges)) - reaching(choosing(), (less, fewer))
        assert abs(int(moved[1])) <= reaching_sensitivity("add-remove", 2).l1


def test_a_clique_moves_as_many_as_any_graph() -> None:
    for theta in CANDIDATES:
        everyone = tuple(range(theta + 1))
        pairs = tuple(combinations(everyone, 2))
        whole = reaching(choosing(), graph_of(everyone, pairs, {}))
        less = reaching(choosing(), graph_of(*without(everyone, pairs, 0), {}))
        at = CANDIDATES.index(theta)
        assert whole[at] - less[at] == theta + 1
