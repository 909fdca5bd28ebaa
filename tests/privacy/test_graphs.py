"""Audits of graphs: sensitivities by enumeration of small graphs, and releases and answers seen from outside.

Every relation is tried on all small graphs, through the code that reads, truncates, projects and counts. Then, with
fresh keys, on the pairs that are worst: an outsider must not tell them apart better than was promised, and must when
the noise is made too small. There are nine such audits, of two bounds each, which are wrong with a chance of 2e-7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.everyday import measure_degrees
from treetop import Graph, Policies
from treetop.counts.degree_projection import projected_degrees
from treetop.counts.graph_reader import Edges, Nodes
from treetop.measure import questions, readers
from treetop.noise import DiscreteLaplace
from treetop.plan.degree_unit import Form, degree_sensitivity
from treetop.plan.workload import Measured, Workload
from treetop.privacy import Neighbours
from treetop.privacy.relation import unit_of

from .audits import DEEP
from .engine import KEY
from .events import PROOF_RISK, epsilon_at_least
from .small_graphs import COLUMNS, NAMES, PLACES, SPINE, Pairs, all_graphs, cells, graph_of, norms, people, table, worst


def test_one_edge_more_moves_one_cell_of_every_level_by_one() -> None:
    everyone = tuple(range(4))
    possible = list(permutations(everyone, 2))

    def pairs() -> Iterator[tuple[Any, Any]]:
        for graph in combinations(possible, 3):
            for gone in graph:
                less = tuple(edge for edge in graph if edge != gone)
                yield cells(everyone, graph, "edge", 1), cells(everyone, less, "edge", 1)

    unit = unit_of("edge", "add-remove")
    assert worst(pairs()) == [unit.sensitivity(name) for name in NAMES]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("most", [1, 2])
def test_one_list_moves_every_level_by_what_was_promised_and_no_more(neighbours: Neighbours, most: int) -> None:
    everyone = tuple(range(5))
    lists = [tuple((0, v) for v in chosen) for size in range(5) for chosen in combinations(range(1, 5), size)]
    others: Pairs = ((1, 0), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1), (4, 2))

    def pairs() -> Iterator[tuple[Any, Any]]:
        for one, other in product(lists, lists if neighbours == "replace" else [()]):
            yield tuple(cells(everyone, (*own, *others), "user-out", most) for own in (one, other))  # type: ignore[misc]

    unit = unit_of("user-out", neighbours, contributions=most)
    promised = [unit.sensitivity(name) for name in NAMES]
    found = worst(pairs())
    for name, (l1, squared), bound in zip(NAMES, found, promised, strict=True):
        assert l1 <= bound.l1 and squared <= bound.l2_squared, name
    # Person 0 is always in one town, so lists differ in their ends: where those can be apart, the bound is reached.
    assert found[2] == promised[2]


def test_what_is_kept_of_a_list_does_not_depend_on_other_people() -> None:
    everyone = tuple(range(5))
    own: Pairs = ((0, 1), (0, 2), (0, 3), (0, 4))
    alone = cells(everyone, own, "user-out", 2)
    for others in combinations([(1, 0), (2, 0), (3, 4), (4, 0)], 2):
        beside, only = (cells(everyone, pairs, "user-out", 2) for pairs in ((*own, *others), others))
        expected = {cell: beside[-1].get(cell, 0) - only[-1].get(cell, 0) for cell in {*beside[-1], *only[-1]}}
        assert {cell: n for cell, n in expected.items() if n} == alone[-1]


def test_one_person_with_all_edges_moves_every_level_by_at_most_the_promised_degree() -> None:
    everyone, most = tuple(range(4)), 3
    possible = list(combinations(everyone, 2))

    def pairs() -> Iterator[tuple[Any, Any]]:
        for chosen in product([None, 0, 1], repeat=len(possible)):
            graph = tuple(edge[::way] if way else edge for edge, turn in zip(possible, chosen, strict=True)
                          if (way := {None: 0, 0: 1, 1: -1}[turn]))  # fmt: skip
            for x in everyone:
                rest = tuple(edge for edge in graph if x not in edge)
                kept = tuple(node for node in everyone if node != x)
                yield cells(everyone, graph, "node", most), cells(kept, rest, "node", most)

    unit = unit_of("node", "add-remove", degree_bound=most)
    found = worst(pairs())
    assert found[0] == (most, most**2) == tuple(unit.sensitivity("total"))
    for name, (l1, squared) in zip(NAMES, found, strict=True):
        assert l1 <= unit.sensitivity(name).l1 and squared <= unit.sensitivity(name).l2_squared
    assert found[1] == tuple(unit.sensitivity("origin.region"))


def test_keeping_few_edges_of_each_node_does_not_bound_what_a_node_does_to_edges() -> None:
    # Why "node" needs a promise: along a path, taking an end away exchanges all the edges that are kept.
    for length in (10, 50):
        path = [(i, i + 1) for i in range(length)]

        def keep(edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
            full: set[int] = set()
            kept = set()
            for one, other in edges:
                if one not in full and other not in full:
                    full |= {one, other}
                    kept.add((one, other))
            return kept

        assert len(keep(path) ^ keep(path[1:])) == length


def measured(degrees: NDArray[np.int64], form: Form, largest: int) -> NDArray[np.int64]:
    number = np.bincount(np.minimum(degrees, largest), minlength=largest + 1)
    return number if form == "histogram" else number.cumsum()[:-1]


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("largest", [2, 5])
def test_an_edge_without_direction_moves_degrees_by_what_was_promised(form: Form, largest: int) -> None:
    nodes = 6 if largest == 5 else 5
    added: dict[Neighbours, tuple[int, int]] = {"add-remove": (0, 0), "replace": (0, 0)}
    graphs = all_graphs(nodes) if nodes == 5 else _some_graphs(nodes)
    for graph in graphs:
        full = np.bincount([end for edge in graph for end in edge], minlength=nodes)
        missing = [edge for edge in combinations(range(nodes), 2) if edge not in graph]
        if not missing:
            continue
        changed = []
        for one, other in missing:
            degrees = full.copy()
            degrees[[one, other]] += 1
            changed.append(measured(degrees, form, largest))
        more = np.array(changed)
        added["add-remove"] = _larger(added["add-remove"], norms(more - measured(full, form, largest)))
        added["replace"] = _larger(added["replace"], norms(more[:, None] - more))
    for neighbours, found in added.items():
        promised = degree_sensitivity("edge", "total", form, neighbours, largest)
        assert found <= promised and found[1] <= promised.l2_squared
        if largest == 5:
            assert found == promised, neighbours


def _some_graphs(nodes: int) -> Iterator[Pairs]:
    """Graphs on few nodes with up to five edges: enough for two pairs of nodes of any small degrees."""
    possible = list(combinations(range(nodes), 2))
    for size in range(6):
        yield from combinations(possible, size)


def _larger(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), max(one[1], other[1])


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("relation", ["edge", "user-out"])
def test_out_degrees_move_by_what_was_promised(relation: Any, form: Form) -> None:
    largest, nodes = 3, 4
    found: dict[Neighbours, tuple[int, int]] = {"add-remove": (0, 0), "replace": (0, 0)}
    degrees = [np.array(one) for one in product(range(5), repeat=nodes)]

    def counts(one: NDArray[np.int64]) -> NDArray[np.int64]:
        number = measured(one, form, largest)
        return number[1:] if relation == "user-out" and form == "histogram" else number

    for one in degrees:
        own = counts(one)
        changes = [(i, d) for i in range(nodes) for d in ((one[i] - 1,) if relation == "edge" else range(5)) if d >= 0]
        for i, d in changes:
            other = one.copy()
            other[i] = d
            kind: Neighbours = "add-remove" if relation == "edge" or 0 in (d, one[i]) else "replace"
            found[kind] = _larger(found[kind], norms(counts(other) - own))
            if relation == "edge":  # an edge goes at one person and comes at another
                for k in range(nodes):
                    if k != i:
                        exchanged = other.copy()
                        exchanged[k] += 1
                        found["replace"] = _larger(found["replace"], norms(counts(exchanged) - own))
    for neighbours, largest_change in found.items():
        promised = degree_sensitivity(relation, "out", form, neighbours, largest)
        if relation == "user-out" and form == "cumulative" and neighbours == "replace":
            assert largest_change <= promised  # from no edge on it is reached, which is add-remove
        else:
            assert largest_change == promised


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_a_node_moves_projected_degrees_by_what_was_promised_in_every_small_graph(form: Form) -> None:
    nodes = 5
    names: dict[tuple[int, ...], Nodes] = {}
    everyone = tuple(range(nodes))
    for theta in (1, 2, 3):
        plan = tt.degree_plan("node", "add-remove", tt.Loss(rho=1), theta, form, directed=False)
        found = (0, 0)
        for graph in all_graphs(nodes):
            full = readers.degree_cells(plan, *graph_of(everyone, graph, names), KEY)
            for x in everyone:
                kept = tuple(node for node in everyone if node != x)
                rest = tuple(edge for edge in graph if x not in edge)
                less = readers.degree_cells(plan, *graph_of(kept, rest, names), KEY)
                found = _larger(found, norms(full - less))
        assert found[0] <= plan.unit.sensitivity("degree").l1 and found[1] <= plan.unit.sensitivity("degree").l2_squared
        assert found == plan.unit.sensitivity("degree")


def test_no_projected_degree_is_above_theta_and_the_order_does_not_depend_on_others() -> None:
    rng = np.random.default_rng(5)
    nodes = Nodes.read(pa.table({"id": [f"p{i}" for i in range(40)]}))
    pairs = np.array([(i, j) for i, j in combinations(range(40), 2) if rng.random() < 0.3], np.int32)
    edges = Edges(pairs[:, 0], pairs[:, 1], directed=False)
    degrees = projected_degrees(nodes, edges, 4, KEY)
    assert degrees.max() == 4 and degrees.sum() % 2 == 0
    assert (projected_degrees(nodes, edges, 1000, KEY) == edges.degrees(40)).all()
    turned = Edges(pairs[::-1, 1].copy(), pairs[::-1, 0].copy(), directed=False)
    assert (projected_degrees(nodes, turned, 4, KEY) == degrees).all()


Look = Callable[[], NDArray[np.int64]]


def proven(one: Look, other: Look, runs: int) -> float:
    samples = [np.array([look() for _ in range(runs)]) for look in (one, other)]
    return epsilon_at_least(samples[0], samples[1], 0.0)[0]


def released(relation: Any, kept: tuple[int, ...], pairs: Pairs, most: int, epsilon: int) -> Look:
    graph = Graph(people(kept), table(pairs), relation, contributions=most if relation == "user-out" else None,
                  degree_bound=most if relation == "node" else None, policies=Policies(repeated="keep"))  # fmt: skip
    plan = tt.Plan(SPINE, graph.unit("add-remove"), tt.Loss(epsilon=epsilon))

    def look() -> NDArray[np.int64]:
        release = tt.make_release(plan, graph.table(), tt.RunOptions(columns=COLUMNS, threads=1))
        regions = {(row["origin"], row["destination"]): row["count"] for row in
                   release.level("destination.region").to_pylist()}  # fmt: skip
        return np.array([release.total, regions.get(("A", "A"), 0), regions.get(("A", "B"), 0)])

    return look


WORST: dict[str, tuple[Any, Any, int]] = {
    "edge": ((tuple(range(4)), ((0, 1), (2, 3), (3, 2))), (tuple(range(4)), ((2, 3), (3, 2))), 1),
    "user-out": ((tuple(range(5)), ((0, 1), (0, 2), (0, 3), (0, 4), (2, 3))), (tuple(range(5)), ((2, 3),)), 2),
    "node": ((tuple(range(5)), ((0, 1), (0, 4), (1, 0), (2, 3))), (tuple(range(1, 5)), ((2, 3),)), 3),
}


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.parametrize("relation", WORST)
def test_no_event_of_many_releases_tells_neighbours_apart(relation: str) -> None:
    one, other, most = WORST[relation]
    looks = [released(relation, kept, pairs, most, 1) for kept, pairs in (one, other)]
    assert proven(looks[0], looks[1], 1_500 if DEEP else 100) <= 1


def degrees_of(plan: tt.Plan, pairs: Pairs, nodes: int) -> Look:
    graph = graph_of(tuple(range(nodes)), pairs, {})

    def look() -> NDArray[np.int64]:
        release = measure_degrees(plan, *graph)
        return np.concatenate([release.number, release.cumulative])

    return look


def stars(nodes: int, lost: bool) -> Pairs:
    """Twelve chains of three: enough people of every degree that repairs change little. One edge may be lost."""
    pairs = tuple((3 * i + k, 3 * i + k + 1) for i in range(nodes // 3) for k in (0, 1))
    return pairs[:-1] if lost else pairs


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_no_event_of_many_degree_distributions_tells_an_edge_apart(form: Form) -> None:
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(epsilon=1), 2, form, directed=False)
    looks = [degrees_of(plan, stars(36, lost), 36) for lost in (False, True)]
    assert proven(looks[0], looks[1], 20_000 if DEEP else 3_000) <= 1


@pytest.mark.fresh_noise(PROOF_RISK)
def test_no_event_of_many_degree_distributions_tells_a_list_apart() -> None:
    plan = tt.degree_plan("user-out", "add-remove", tt.Loss(epsilon=1), 3, "histogram")
    names: dict[tuple[int, ...], Nodes] = {}
    others = tuple((i, (i + k) % 30) for i in range(1, 30) for k in range(1, 1 + i % 4))
    looks = []
    for own in ((), ((0, 1), (0, 2), (0, 3))):
        nodes, edges = graph_of(tuple(range(30)), (*own, *others), names)
        graph = nodes, Edges(edges.source, edges.target, directed=True)
        looks.append(lambda graph=graph: measure_degrees(plan, *graph).number)
    assert proven(looks[0], looks[1], 20_000 if DEEP else 3_000) <= 1


@pytest.mark.fresh_noise(PROOF_RISK)
def test_no_event_of_many_degree_distributions_tells_a_node_apart() -> None:
    plan = tt.degree_plan("node", "add-remove", tt.Loss(epsilon=1), 2, "histogram", directed=False)
    names: dict[tuple[int, ...], Nodes] = {}
    # A node between chains: without it, two others have one edge less.
    pairs: Pairs = (*stars(36, lost=False), (36, 0), (36, 3))
    whole = graph_of(tuple(range(37)), pairs, names)
    less = graph_of(tuple(range(36)), pairs[:-2], names)
    looks = [lambda graph=graph: measure_degrees(plan, *graph).number for graph in (whole, less)]
    assert proven(looks[0], looks[1], 20_000 if DEEP else 3_000) <= 1


def test_degrees_with_too_little_noise_are_told_apart() -> None:
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(epsilon=1), 2, "cumulative", directed=False)
    total, level = plan.workload.parts
    careless = replace(level, how=Measured(DiscreteLaplace(Fraction(1, 4))))
    object.__setattr__(plan, "workload", Workload((total, careless)))
    looks = [degrees_of(plan, stars(36, lost), 36) for lost in (False, True)]
    assert proven(looks[0], looks[1], 400) > 1


def asked(records: dict[str, int], neighbours: Neighbours, loss: tt.Loss, careless: bool = False) -> Look:
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACES})
    plan = tt.Plan(spine, tt.Unit("person", neighbours=neighbours), tt.Loss(rho=1))
    rows = pa.table({"place": [town for town, count in records.items() for _ in range(count)]})
    texts = ["place=A", "place=A1", "place=B"]
    batch = questions.Batch(spine, tuple(questions.parse(t, spine) for t in texts), plan.unit, loss)
    if careless:  # as if the questions did not overlap, and twice too sure besides
        batch.__dict__["law"] = DiscreteLaplace(Fraction(1, 4))

    def look() -> NDArray[np.int64]:
        found = questions.measure(batch, plan, rows, before_measuring=lambda: None)
        return np.array([*found, sum(found[:2]), found[0] + found[1] - found[2]])

    return look


@pytest.mark.fresh_noise(PROOF_RISK)
@pytest.mark.parametrize(("neighbours", "other"), [("add-remove", {"A1": 4, "B1": 5}), ("replace", {"A1": 4, "B1": 6})])
def test_no_event_of_many_answers_tells_neighbours_apart(neighbours: Neighbours, other: dict[str, int]) -> None:
    looks = [asked(rows, neighbours, tt.Loss(epsilon=1)) for rows in ({"A1": 5, "B1": 5}, other)]
    assert proven(looks[0], looks[1], 10_000 if DEEP else 800) <= 1


def test_answers_with_too_little_noise_are_told_apart() -> None:
    looks = [
        asked(rows, "replace", tt.Loss(epsilon=1), careless=True) for rows in ({"A1": 5, "B1": 5}, {"A1": 4, "B1": 6})
    ]
    assert proven(looks[0], looks[1], 400) > 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_answers_move_by_what_was_promised_for_every_pair_of_records(neighbours: Neighbours) -> None:
    spine = tt.Spine(["place.region", "place.town", "sex"], {"place": PLACES, "sex": tt.Hierarchy.flat(["f", "m"])})
    listed = ["place=A", "place=A1", "place=B", "sex=f", "place=A sex=m", "place=B sex=f"]
    leaves = list(product(range(3), range(2)))
    for size in (1, 2, 3):
        for texts in combinations(listed, size):
            batch_of = [questions.parse(text, spine) for text in texts]

            def counts(leaf: tuple[int, int] | None, batch: Any = batch_of) -> list[int]:
                return [
                    leaf is not None and all(a <= x < b for x, (a, b) in zip(leaf, question.ranges, strict=True))
                    for question in batch
                ]

            unit = tt.Unit("person", 2, neighbours)
            batch = questions.Batch(spine, tuple(batch_of), unit, tt.Loss(rho=1))
            record = np.array([counts(leaf) for leaf in [*leaves, None]], np.int64)
            # Two records each: all ways in which they may be added, or exchanged for two others.
            two = (record[:, None] + record).reshape(-1, size)
            gone = two if neighbours == "replace" else np.zeros((1, size), np.int64)
            assert norms(two[:, None] - gone) == batch.sensitivity
