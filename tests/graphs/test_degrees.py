"""Degree distributions: what is counted, how it is repaired, and what the plan refuses."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from experiments.graphs.rebalance import rebalance
from experiments.kit.pokec_like import SocialNetwork, pokec_like
from tests.everyday import measure_degrees
from treetop import Graph
from treetop.card import in_words
from treetop.counts.cleaning import Cleaning
from treetop.counts.graph_reader import Edges
from treetop.errors import DataError, LossError, Overspent, PlanError
from treetop.measure import measure as workload
from treetop.noise import NoiseStream
from treetop.plan.degree_unit import Form
from treetop.plan.workload import PassThrough

KEY = bytes(range(32))
EXACT = tt.Loss(rho=10**8)
STAR = Graph(
    pa.table({"id": range(6)}), pa.table({"source": [0, 0, 0, 0, 1], "target": [1, 2, 3, 4, 0]}), "edge", directed=True
)


def number_of(release: tt.Release) -> list[int]:
    """How many people have each degree, in all places."""
    number = np.zeros(release.spine.trees[0].sizes[-1], np.int64)
    np.add.at(number, release.nodes[0], release.count)
    return number.tolist()


@pytest.fixture(scope="module")
def network() -> SocialNetwork:
    return pokec_like(nodes=800, edges=6_000)


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("relation", ["edge", "user-out"])
def test_with_hardly_any_noise_the_out_degrees_are_those_of_the_graph(relation: Any, form: Form) -> None:
    star = replace(STAR, relation=relation, contributions=9 if relation == "user-out" else None)
    release = tt.make_release(
        tt.degree_plan(relation, "add-remove", EXACT, 3, form), star, tt.RunOptions(testing_key=KEY)
    )
    assert number_of(release) == [4, 1, 0, 1]
    assert (
        release.total == 6
        and "the number of people: who is in the graph is public" in in_words(release.card["exact"])[0]
    )
    assert release.table().column_names == ["degree", "count", "lower", "upper"]


@pytest.mark.parametrize("relation", ["edge", "user-out", "node"])
def test_in_out_and_total_degrees_are_those_of_the_graph(relation: Any) -> None:
    star = replace(STAR, relation=relation, contributions=9 if relation == "user-out" else None,
                   degree_bound=9 if relation == "node" else None)  # fmt: skip
    numbers = {}
    for degree in ("out", "in", "total"):
        cut = 9 if relation == "user-out" and degree != "out" else None
        plan = tt.degree_plan(relation, "add-remove", EXACT, 5, degree=degree, contributions=cut)
        release = tt.make_release(plan, star, tt.RunOptions(testing_key=KEY))
        numbers[degree] = number_of(release)
        assert {"out": "go out", "in": "come in", "total": "all edges"}[degree] in in_words(
            release.card["mechanism"]["name"]
        )
    assert numbers == {"out": [4, 1, 0, 0, 1, 0], "in": [1, 5, 0, 0, 0, 0], "total": [1, 3, 1, 0, 0, 1]}


def test_a_degree_that_is_said_though_it_is_usual_makes_no_other_plan() -> None:
    said = tt.degree_plan("edge", "add-remove", EXACT, 3, degree="out")
    assert said.digest == tt.degree_plan("edge", "add-remove", EXACT, 3).digest
    assert said.digest != tt.degree_plan("edge", "add-remove", EXACT, 3, degree="in").digest


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_under_node_degrees_are_those_that_the_projection_leaves(form: Form) -> None:
    path = pa.table({"source": [0, 0, 0, 0], "target": [1, 2, 3, 4]})
    graph = Graph(pa.table({"id": range(6)}), path, "node", directed=False, degree_bound=9)
    release = tt.make_release(
        tt.degree_plan("node", "add-remove", EXACT, 2, form, directed=False), graph, tt.RunOptions(testing_key=KEY)
    )
    assert number_of(release) == [3, 2, 1]
    assert not any("number of people" in told for told in in_words(release.card["exact"]))


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("relation", ["edge", "user-out", "node"])
def test_released_numbers_are_whole_not_negative_and_of_all_people_where_those_are_public(
    network: SocialNetwork, relation: Any, form: Form
) -> None:
    graph = Graph(network.nodes, network.edges, relation, contributions=20 if relation == "user-out" else None,
                  degree_bound=10_000 if relation == "node" else None)  # fmt: skip
    plan = tt.degree_plan(relation, "add-remove", tt.Loss(rho=0.01), 30, form)
    release = tt.make_release(plan, graph)
    assert release.count.dtype == np.int64 and release.count.min() > 0
    if relation != "node":
        assert release.total == 800
    assert plan.spent == plan.loss.budget


def test_noise_is_fresh_unless_a_test_fixes_it(network: SocialNetwork) -> None:
    graph = Graph(network.nodes, network.edges, "edge")
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(rho=0.001), 30)
    fixed = [number_of(tt.make_release(plan, graph, tt.RunOptions(testing_key=KEY))) for _ in range(2)]
    fresh = [number_of(tt.make_release(plan, graph)) for _ in range(2)]
    assert fixed[0] == fixed[1] and fresh[0] != fresh[1]


def test_no_noise_is_drawn_before_the_loss_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Stream(NoiseStream):
        def fill(self, out: Any, slot: int) -> None:
            seen.append("noise")
            super().fill(out, slot)

    def refuse() -> None:
        raise LossError("spent")

    monkeypatch.setattr(workload, "NoiseStream", Stream)
    plan = tt.degree_plan("edge", "add-remove", EXACT, 3)
    with pytest.raises(LossError, match="spent"):
        tt.make_release(plan, STAR, tt.RunOptions(before_measuring=refuse))
    assert seen == []
    tt.make_release(plan, STAR, tt.RunOptions(before_measuring=lambda: seen.append("charged")))
    assert seen == ["charged", "noise"]


@pytest.mark.parametrize(
    ("relation", "neighbours", "about"),
    [
        ("edge", "add-remove", "neither is a person with several edges"),
        ("user-out", "replace", "One friend list is exchanged for another"),
        ("node", "replace", "How many people there are is public"),
    ],
)
def test_a_plan_says_what_it_protects_and_at_what_loss(relation: Any, neighbours: Any, about: str) -> None:
    told = tt.degree_plan(relation, neighbours, tt.Loss(epsilon=0.5), 3).sentence()
    assert f'The neighbour relation is "{relation}"' in told and about in told
    assert told.endswith("Pure differential privacy with epsilon 0.5; Laplace noise.")


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"largest": 0}, "the largest degree"),
        ({"form": "hist"}, "did you mean 'histogram'"),
        ({"neighbours": "swap"}, "choose one of replace, add-remove"),
        ({"relation": "user-out", "directed": False}, "the graph must be directed"),
        ({"loss": tt.Loss(epsilon=1, delta=1e-8, accounting="exact")}, "exact accounting is not for degrees"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(options: dict[str, Any], about: str) -> None:
    given: dict[str, Any] = {"relation": "edge", "neighbours": "add-remove", "loss": EXACT, "largest": 3}
    with pytest.raises(PlanError, match=about):
        tt.degree_plan(**{**given, **options})


def test_a_graph_of_the_other_kind_and_one_without_nodes_are_refused() -> None:
    plan = tt.degree_plan("edge", "add-remove", EXACT, 3, directed=False)
    with pytest.raises(PlanError, match="do not agree"):
        tt.make_release(plan, STAR)
    nodes = STAR.read_nodes([])
    with pytest.raises(PlanError, match="do not agree"):
        measure_degrees(plan, nodes, STAR.read_edges(nodes))
    promised = replace(STAR, relation="node", degree_bound=9)
    with pytest.raises(PlanError, match="made for the relation 'edge', and the graph's is 'node'"):
        tt.make_release(tt.degree_plan("edge", "add-remove", EXACT, 3), promised)
    nobody = Graph(pa.table({"id": pa.array([], pa.string())}), pa.table({"source": pa.array([], pa.string()),
                   "target": pa.array([], pa.string())}), "edge")  # fmt: skip
    with pytest.raises(DataError, match="no nodes"):
        tt.make_release(tt.degree_plan("edge", "add-remove", EXACT, 3), nobody)


@pytest.mark.parametrize(
    "select",
    [
        lambda file: tt.Source(file, keep={"year": "2008"}),
        lambda file: tt.Source(file, blank_lines="skip"),
        lambda file: tt.Source(f"sqlite:///{file}.db", "select id from n where year = 2008"),
    ],
)
def test_the_number_of_people_is_not_told_exactly_where_an_exchange_may_change_it(
    tmp_path: Path, select: Callable[[Path], tt.Source]
) -> None:
    file = tmp_path / "n.csv"
    file.write_text("id,year\na,2008\nb,2008\nc,2009\n")
    database = sqlite3.connect(f"{file}.db")
    with database:
        database.execute("create table n (id text, year int)")
        database.executemany("insert into n values (?, ?)", [("a", 2008), ("b", 2008), ("c", 2009)])
    database.close()
    edges = pa.table({"source": ["a"], "target": ["b"]})
    graph = Graph(select(file), edges, "node", degree_bound=3)
    plan = tt.degree_plan("node", "replace", EXACT, 3)
    spent: list[str] = []
    with pytest.raises(PlanError, match=r"number of people would be released without noise.*add-remove"):
        tt.make_release(plan, graph, tt.RunOptions(before_measuring=lambda: spent.append("charged")))
    nodes = graph.read_nodes([])
    with pytest.raises(PlanError, match="neighbours may differ in it"):
        measure_degrees(plan, nodes, graph.read_edges(nodes), lambda: spent.append("charged"))
    assert not spent
    loose = tt.degree_plan("node", "add-remove", EXACT, 3)
    assert isinstance(loose.levels[0].how, PassThrough) and tt.make_release(
        loose, graph, tt.RunOptions(testing_key=KEY)
    ).total in (2, 3)
    assert tt.make_release(plan, replace(graph, nodes=file), tt.RunOptions(testing_key=KEY)).total == 3


@pytest.mark.parametrize("relation", ["edge", "user-out"])
def test_degrees_by_region_add_up_at_every_level(network: SocialNetwork, relation: Any) -> None:
    places = tt.Hierarchy.from_table(SocialNetwork.places(), ["region", "town"])
    graph = Graph(network.nodes, network.edges, relation, contributions=20 if relation == "user-out" else None,
                  cleaning={"town": Cleaning()})  # fmt: skip
    plan = tt.regional_degree_plan(places, 20, relation, tt.Loss(epsilon=1, delta=1e-8), form="histogram")
    release = tt.make_release(plan, graph, tt.RunOptions(columns={"place": "town"}, testing_key=KEY))
    assert release.total == 800 == sum(release.table("place.region", intervals=False)["count"].to_pylist())
    degrees = release.table("degree", intervals=False).to_pydict()
    for degree, count in zip(degrees["degree"], degrees["count"], strict=True):
        by_region = release.where(degree=degree).table("place.region", intervals=False)
        assert sum(by_region["count"].to_pylist()) == count


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("loss", [tt.Loss(rho=1), tt.Loss(epsilon=1)])
def test_an_edge_of_a_region_has_the_noise_for_both_its_ends_and_costs_the_whole_loss(
    form: Any, directed: bool, loss: tt.Loss
) -> None:
    places = tt.Hierarchy.flat(["east", "west"])
    plan = tt.regional_degree_plan(places, 9, "edge", loss, directed, form)
    alone = tt.degree_plan("edge", "add-remove", loss, 9, form, directed)
    noise = [level.law for level in plan.levels[1:]]
    # Two levels share the loss, so each has what the whole graph would have for half of it.
    half = tt.Loss(rho=Fraction(1, 2)) if loss.rho else tt.Loss(epsilon=Fraction(1, 2))
    assert noise == [tt.degree_plan("edge", "add-remove", half, 9, form, directed).levels[1].law] * 2
    assert plan.spent == alone.spent == 1
    assert plan.loss == loss
    assert plan.sentence() == alone.sentence()


def test_what_a_region_is_said_to_cost_is_what_two_ends_in_it_make_of_the_noise() -> None:
    places = tt.Hierarchy.flat(["east", "west"])
    people = pa.table({"id": range(4), "place": ["east"] * 4})
    plan = tt.regional_degree_plan(places, 3, "edge", EXACT, directed=False, form="histogram")
    counts = []
    for edges in ([(0, 1)], [(0, 1), (2, 3)]):
        table = pa.table({"source": [a for a, _ in edges], "target": [b for _, b in edges]})
        counts.append(
            number_of(
                tt.make_release(plan, Graph(people, table, "edge", directed=False), tt.RunOptions(testing_key=KEY))
            )
        )
    change = np.array(counts[1]) - np.array(counts[0])
    assert (np.abs(change).sum(), (change**2).sum()) == plan.unit.sensitivity("place")


@pytest.mark.parametrize("directed", [True, False])
def test_a_graph_that_a_regional_plan_was_not_made_for_is_refused_before_it_is_read(directed: bool) -> None:
    places = tt.Hierarchy.flat(["east", "west"])
    plan = tt.regional_degree_plan(places, 9, "edge", tt.Loss(rho=1), directed=directed)
    with pytest.raises(PlanError, match="do not agree on whether edges have a direction"):
        tt.make_release(plan, Graph("nowhere.csv", "nowhere.csv", "edge", directed=not directed))
    for relation in ("node", None):
        graph = Graph("nowhere.csv", "nowhere.csv", relation, directed=directed)
        with pytest.raises(PlanError, match="made for the relation 'edge', and the graph's is"):
            tt.make_release(plan, graph)


def test_regions_are_not_public_under_node_and_what_does_not_fit_is_refused(network: SocialNetwork) -> None:
    places = tt.Hierarchy.from_table(SocialNetwork.places(), ["region", "town"])
    with pytest.raises(PlanError, match="the region of a person is private"):
        tt.regional_degree_plan(places, 9, "node", EXACT)
    with pytest.raises(PlanError, match="exact accounting is not for degrees"):
        tt.regional_degree_plan(places, 9, "edge", tt.Loss(epsilon=1, delta=1e-8, accounting="exact"))
    plan = tt.regional_degree_plan(places, 9, "edge", EXACT)
    with pytest.raises(DataError, match="None is not a leaf region"):
        tt.make_release(plan, Graph(network.nodes, network.edges, "edge"), tt.RunOptions(columns={"place": "town"}))


def test_rebalancing_keeps_the_parent_and_reads_nothing_but_noisy_values() -> None:
    rng = np.random.default_rng(1)
    measured = 100 + np.rint(rng.normal(0, 20, 50)).astype(np.int64)
    even = rebalance(measured, 5_000, 400, seed=1)
    assert even.count.sum() == 5_000 and even.count.min() >= 0
    assert even.weight < 0.6
    # Equal counts and much noise: pulling them together helps.
    assert np.abs(even.count - 100).mean() < np.abs(measured - 100).mean()


def test_rebalancing_leaves_what_differs_far_more_than_its_noise() -> None:
    measured = [10, 990, 3_000]
    moved = rebalance(measured, 4_000, 4, seed=1)
    assert moved.weight > 0.999
    assert np.abs(moved.count - measured).max() <= 2
    assert rebalance([5, 5], 20, 0, seed=1).weight == 1


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (([1, 2], 3, 1, [0.5]), "one share a child"),
        (([1, 2], 3, 1, [0.5, 0.6]), "sum to 1"),
        (([1, 2], -3, 1), "cannot be negative"),
    ],
)
def test_rebalancing_with_shares_that_are_none_is_refused(arguments: tuple[Any, ...], about: str) -> None:
    with pytest.raises(ValueError, match=about):
        rebalance(*arguments, seed=1)


def test_degrees_are_charged_first_and_marked_where_somebody_knows_the_key() -> None:
    plan = tt.degree_plan("edge", "add-remove", EXACT, 3)
    spent: list[str] = []
    fixed = tt.make_release(
        plan, STAR, tt.RunOptions(before_measuring=lambda: spent.append("charged"), testing_key=KEY)
    )
    assert spent == ["charged"] and not fixed.card["private"] and "NOT PRIVATE" in repr(fixed)
    fresh = tt.make_release(plan, STAR)
    assert fresh.card["private"] and fresh.card["warning"] is None
    with pytest.raises(PlanError, match="32 bytes"):
        tt.make_release(plan, STAR, tt.RunOptions(testing_key=b"short"))


def test_degrees_by_region_can_be_charged_to_a_ledger_and_are_marked() -> None:
    places = tt.Hierarchy.flat(["n", "s"])
    people = pa.table({"id": ["a", "b"], "place": ["n", "s"]})
    graph = Graph(people, pa.table({"source": ["a"], "target": ["b"]}), "edge")
    plan = tt.regional_degree_plan(places, 3, "edge", EXACT)
    spent: list[str] = []
    fixed = tt.make_release(
        plan, graph, tt.RunOptions(before_measuring=lambda: spent.append("charged"), testing_key=KEY)
    )
    assert spent == ["charged"] and not fixed.card["private"]
    assert tt.make_release(plan, graph).card["private"]

    def overspent() -> None:
        raise Overspent("there is nothing left")

    with pytest.raises(Overspent):
        tt.make_release(plan, graph, tt.RunOptions(before_measuring=overspent))


def test_more_people_than_64_bits_sum_are_refused_before_they_are_charged() -> None:
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(rho=1), 10**6)
    spent: list[str] = []
    crowd: Any = type("Crowd", (), {"__len__": lambda _: 2**31, "may_drop": None})()
    none = np.empty(0, np.int32)
    with pytest.raises(PlanError, match="do not fit 64-bit sums"):
        measure_degrees(plan, crowd, Edges(none, none, True), lambda: spent.append("charged"))
    assert not spent
