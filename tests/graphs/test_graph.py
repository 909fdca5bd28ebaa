"""Graphs as tables: nodes and edges read, cleaned and joined, and what is no proper graph refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import treetop as tt
from experiments.kit.pokec_like import SocialNetwork, pokec_like
from treetop import Graph, Policies
from treetop.card import in_words
from treetop.counts.cleaning import Cleaning
from treetop.counts.graph_reader import Nodes
from treetop.counts.tally import Tally
from treetop.errors import DataError, ManyDropped, PlanError, UnitError
from treetop.privacy.relation import unit_of
from treetop.release.errors import measure_errors

NODES = pa.table({"id": ["a", "b", "c", "d"], "town": ["n1", "n2", "s1", None], "age": ["30", "", "900", "x"]})
EDGES = pa.table({"source": ["a", "a", "b", "c"], "target": ["b", "c", "a", "d"]})
KEY = bytes(range(32))
PLACES = tt.Hierarchy.from_table(
    pa.table({"region": ["N", "N", "S", "missing"], "town": ["n1", "n2", "s1", "missing"]}), ["region", "town"]
)
GAPS = {"town": Cleaning()}


def rows(graph: Graph) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(graph.table(columns=["town"])).read_all().to_pylist()
    return found


def test_edges_carry_the_attributes_of_both_ends() -> None:
    found = rows(Graph(NODES, EDGES, "edge", cleaning=GAPS))
    assert [(row["source.town"], row["target.town"]) for row in found] == [
        ("n1", "n2"),
        ("n1", "s1"),
        ("n2", "n1"),
        ("s1", "missing"),
    ]


def test_a_table_can_be_read_twice() -> None:
    table = Graph(NODES, EDGES, "edge").table()
    one, other = (pa.RecordBatchReader.from_stream(table).read_all() for _ in range(2))
    assert one.equals(other)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_tables_are_read_from_files_of_every_kind(tmp_path: Path, kind: str) -> None:
    tables: list[Any] = []
    for name, table in (("nodes", NODES), ("edges", EDGES)):
        file = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(table, file)
            tables.append(file)
        elif kind == "parquet":
            pq.write_table(table, file)
            tables.append(file)
        else:
            feather.write_feather(table, file)
            tables.append(feather.read_table(file))
    assert rows(Graph(tables[0], tables[1], "edge", cleaning=GAPS)) == rows(Graph(NODES, EDGES, "edge", cleaning=GAPS))


def test_ids_may_be_numbers_in_one_table_and_text_in_the_other() -> None:
    nodes = pa.table({"id": [7, 8], "town": ["n1", "n2"]})
    assert len(rows(Graph(nodes, pa.table({"source": ["7"], "target": ["8"]}), "edge"))) == 1


def test_a_missing_value_becomes_a_category_and_never_another_row_s_value() -> None:
    plan = tt.Plan(tt.Spine(["town"], {"town": PLACES.select(["town"])}), unit_of("edge", "replace"), tt.Loss(rho=1e6))
    alone = pa.table({"id": ["z"], "town": pa.array([None], pa.string())})
    release = tt.make_release(plan, Graph(alone, cleaning=GAPS).node_table(), tt.RunOptions(testing_key=KEY))
    assert release.table().select(["town", "count"]).to_pylist() == [{"town": "missing", "count": 1}]


def test_cleaning_is_a_function_of_one_value_and_its_changes_are_counted_apart() -> None:
    rule = Cleaning(least=0, most=119, width=20)
    nodes = Nodes.read(NODES, columns=["age"], cleaning={"age": rule})
    column = nodes.columns["age"]
    assert column.codes.take(pa.array(column.index)).to_pylist() == ["20-39", "missing", "missing", "missing"]
    changes = nodes.changes["age"]
    assert (changes.missing, changes.implausible, changes.unread) == (1, 2, 0)
    assert rule.codes == ["0-19", "20-39", "40-59", "60-79", "80-99", "100-119", "missing"]


def test_free_text_is_read_by_the_first_keyword_of_a_public_vocabulary() -> None:
    rule = Cleaning.read(pa.table({"keyword": ["live music", "music", "art"], "code": ["concerts", "music", "art"]}))
    texts = ["I love  Live MUSIC!", "music", "musical", "party", "art-house", None, "  "]
    assert [rule.code(text) for text in texts] == ["concerts", "music", "other", "other", "art", "missing", "missing"]
    nodes = Nodes.read(pa.table({"id": range(7), "hobby": texts}), cleaning={"hobby": rule})
    assert (nodes.changes["hobby"].missing, nodes.changes["hobby"].unread) == (2, 2)


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"vocabulary": {"a": "b"}, "least": 1, "most": 2}, "one of them"),
        ({"vocabulary": {}}, "at least one keyword"),
        ({"least": 5}, "the least and the most"),
        ({"least": 5, "most": 4}, "the least and the most"),
        ({"width": 3}, "for numbers only"),
        ({"least": 5, "most": 9, "width": 0}, "1 or more"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(options: dict[str, Any], about: str) -> None:
    with pytest.raises(PlanError, match=about):
        Cleaning(**options)


def test_an_edge_to_an_unknown_node_is_refused_by_its_row_or_dropped(caplog: pytest.LogCaptureFixture) -> None:
    edges = pa.table({"source": ["a", "a"], "target": ["b", "nobody"]})
    with pytest.raises(DataError, match=r"column 'target', row 2: 'nobody' is not in the node table"):
        rows(Graph(NODES, edges, "edge"))
    graph = Graph(NODES, edges, "edge", policies=Policies(unknown="drop"))
    assert len(graph.read_edges(graph.read_nodes([]))) == 1
    assert "1 of 2 edges were dropped" in caplog.text


def test_an_edge_without_an_end_is_refused() -> None:
    edges = pa.table({"source": ["a", None], "target": ["b", "a"]})
    with pytest.raises(DataError, match=r"column 'source', row 2: the id is missing"):
        rows(Graph(NODES, edges, "edge"))


def test_self_loops_are_refused_or_dropped() -> None:
    edges = pa.table({"source": ["a", "b"], "target": ["b", "b"]})
    with pytest.raises(DataError, match=r"row 2: the edge goes from a node to itself"):
        rows(Graph(NODES, edges, "edge"))
    assert len(rows(Graph(NODES, edges, "edge", policies=Policies(self_loops="drop")))) == 1


@pytest.mark.parametrize(("directed", "different"), [(True, 3), (False, 2)])
def test_repeated_edges_are_refused_dropped_or_kept(directed: bool, different: int) -> None:
    edges = pa.table({"source": ["a", "a", "b", "c"], "target": ["b", "b", "a", "d"]})
    with pytest.raises(DataError, match="more than once"):
        rows(Graph(NODES, edges, "edge", directed=directed))
    for repeated, number in (("drop", different), ("keep", 4)):
        graph = Graph(NODES, edges, "edge", directed=directed, policies=Policies(repeated=repeated))  # type: ignore[arg-type]
        assert len(rows(graph)) == number


def test_a_node_twice_and_a_node_without_id_are_refused() -> None:
    with pytest.raises(DataError, match="'a' is there more than once"):
        Nodes.read(pa.table({"id": ["b", "a", "a"]}))
    with pytest.raises(DataError, match=r"row 2: the id is missing"):
        Nodes.read(pa.table({"id": ["b", None]}))


def test_a_node_without_attributes_stops_a_release_unless_a_rule_says_what_it_is() -> None:
    spine = tt.Spine.origin_first(origin=PLACES, destination=PLACES)
    plan = tt.Plan(spine, Graph(NODES, EDGES, "edge").unit("add-remove"), tt.Loss(rho=1))
    columns = {"origin": "source.town", "destination": "target.town"}
    spent: list[bool] = []
    with pytest.raises(DataError, match="the code is missing"):
        tt.make_release(
            plan,
            Graph(NODES, EDGES, "edge").table(),
            tt.RunOptions(columns=columns, before_measuring=lambda: spent.append(True)),
        )
    assert not spent
    tt.make_release(plan, Graph(NODES, EDGES, "edge", cleaning=GAPS).table(), tt.RunOptions(columns=columns))


def test_an_edge_without_direction_is_counted_once_from_the_group_that_comes_first() -> None:
    edges = pa.table({"source": ["c", "b", "d"], "target": ["a", "a", "a"]})
    found = rows(Graph(NODES, edges, "edge", directed=False, cleaning=GAPS))
    assert sorted((row["source.town"], row["target.town"]) for row in found) == [
        ("missing", "n1"),
        ("n1", "n2"),
        ("n1", "s1"),
    ]


def test_under_user_out_a_list_is_truncated_by_itself() -> None:
    people = pa.table({"id": range(60), "town": ["n1"] * 20 + ["n2"] * 20 + ["s1"] * 20})
    ends = [(0, other) for other in range(1, 60)]
    graph = Graph(people, pa.table({"source": [0] * 59, "target": [end for _, end in ends]}), "user-out",
                  contributions=5)  # fmt: skip
    spine = tt.Spine.origin_first(origin=PLACES, destination=PLACES)
    plan = tt.Plan(spine, graph.unit("add-remove"), tt.Loss(rho=1e8))
    columns = {"origin": "source.town", "destination": "target.town"}
    alone = tt.make_release(plan, graph.table(), tt.RunOptions(columns=columns, testing_key=KEY))
    assert alone.total == 5
    more = pa.table({"source": [0] * 59 + [1, 2], "target": [*(end for _, end in ends), 0, 0]})
    beside = tt.make_release(plan, graph.table(more), tt.RunOptions(columns=columns, testing_key=KEY))
    assert beside.total == 7
    assert alone.query(origin="n1") == 5


def test_under_node_a_broken_promise_is_found_before_anything_is_spent() -> None:
    graph = Graph(NODES, EDGES, "node", degree_bound=2, cleaning=GAPS)
    with pytest.raises(DataError, match="a node has 3 edges, and the promise is that none has more than 2"):
        rows(graph)
    assert len(rows(Graph(NODES, EDGES, "node", degree_bound=3, cleaning=GAPS))) == 4


def test_relations_come_to_units() -> None:
    assert unit_of("edge", "add-remove").sensitivity("x") == (1, 1)
    assert unit_of("edge", "replace").sensitivity("x") == (2, 2)
    assert unit_of("user-out", "replace", contributions=7).sensitivity("x") == (14, 98)
    assert unit_of("user-out", "add-remove", contributions=7).id == "source"
    assert unit_of("node", "add-remove", degree_bound=9).sensitivity("x") == (9, 81)
    assert unit_of("node", "add-remove", degree_bound=9, entity="patient").entity == "patient"


@pytest.mark.parametrize(
    ("relation", "options", "about"),
    [
        ("edges", {}, "did you mean 'edge'"),
        ("edge", {"contributions": 3}, "one edge"),
        ("edge", {"degree_bound": 3}, 'is for the relation "node"'),
        ("edge", {"entity": "person"}, 'protects one edge and no more; leave the entity out, or write "friendship"'),
        ("user-out", {"contributions": 3, "entity": "person"}, "protects one person's own list of out-edges"),
        ("user-out", {}, "how many out-edges"),
        ("node", {}, "needs a public bound"),
        ("node", {"degree_bound": 3, "contributions": 2}, "are the degree bound"),
    ],
)
def test_a_relation_that_is_not_fully_stated_is_refused(relation: Any, options: dict[str, Any], about: str) -> None:
    with pytest.raises(UnitError, match=about):
        unit_of(relation, "add-remove", **options)


def test_lists_of_edges_without_direction_are_refused() -> None:
    with pytest.raises(PlanError, match="is on two"):
        Graph(NODES, EDGES, "user-out", directed=False)


DROPPING = (
    Graph(NODES, EDGES, "edge", policies=Policies(repeated="drop"), cleaning=GAPS),
    Graph(NODES, EDGES, "edge", policies=Policies(unknown="drop"), cleaning=GAPS),
    Graph(NODES, EDGES, "edge", policies=Policies(self_loops="drop"), cleaning=GAPS),
    Graph(NODES, EDGES, "user-out", contributions=1, cleaning=GAPS),
    Graph(NODES, EDGES, "node", degree_bound=1, cleaning=GAPS),
    Graph(NODES, tt.Source("edges.csv", keep={"year": "2008"}), "edge", cleaning=GAPS),
)
COLUMNS = {"origin": "source.town", "destination": "target.town"}
SPINE = tt.Spine.origin_first(origin=PLACES, destination=PLACES)


@pytest.mark.parametrize("graph", DROPPING[:-1])
def test_a_total_that_neighbours_may_differ_in_is_measured(graph: Graph) -> None:
    plan = tt.Plan(SPINE, graph.unit("replace"), tt.Loss(rho=1))
    assert plan.unknown == "error" and plan.levels[0].law is not None
    assert "exactly one record" not in plan.unit.sentence()
    assert "may_be_missing" in plan.describe()["unit"]


def test_a_total_that_all_neighbours_have_is_exact() -> None:
    plan = tt.Plan(SPINE, Graph(NODES, EDGES, "edge", cleaning=GAPS).unit("replace"), tt.Loss(rho=1))
    assert plan.levels[0].is_exact
    assert tt.make_release(plan, plan_table(), tt.RunOptions(columns=COLUMNS, testing_key=KEY)).total == EDGES.num_rows


def plan_table() -> Any:
    return Graph(NODES, EDGES, "edge", cleaning=GAPS).table()


@pytest.mark.parametrize("graph", DROPPING)
def test_a_plan_for_another_reading_of_the_graph_is_refused_before_anything_is_spent(graph: Graph) -> None:
    """A plan with an exact total, made for a graph that drops nothing, cannot read one that does."""
    plan = tt.Plan(SPINE, Graph(NODES, EDGES, "edge").unit("replace"), tt.Loss(rho=1))
    spent: list[bool] = []
    with pytest.raises(PlanError, match="do not state the same graph|neighbours may differ in it"):
        tt.make_release(
            plan, graph.table(), tt.RunOptions(columns=COLUMNS, before_measuring=lambda: spent.append(True))
        )
    assert not spent


def test_the_advice_of_the_refusal_leads_out_of_it(tmp_path: Path) -> None:
    file = tmp_path / "trips.csv"
    file.write_text("town,year\nn1,2008\nn1,2007\n", encoding="utf-8")
    kept = tt.Source(file, keep={"year": "2008"})
    spine = tt.Spine(["town"], {"town": PLACES.select(["town"])})
    with pytest.raises(PlanError, match=r"only rows with certain values of year are kept.*may_be_missing=True"):
        tt.make_release(tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1)), kept)
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace", may_be_missing=True), tt.Loss(rho=1))
    assert plan.levels[0].law is not None
    assert tt.make_release(plan, kept, tt.RunOptions(testing_key=KEY)).card["levels"][0]["measured"]


def test_a_release_of_edges_made_in_python_names_its_relation(tmp_path: Path) -> None:
    graph = Graph(NODES, EDGES, "user-out", contributions=2, cleaning=GAPS)
    plan = tt.Plan(SPINE, graph.unit("add-remove"), tt.Loss(rho=1))
    release = tt.make_release(plan, graph.table(), tt.RunOptions(columns=COLUMNS, testing_key=KEY))
    told = release.card["graph"]
    assert (told["relation"], told["directed"]) == ("user-out", True) and "degree_bound" not in told
    assert any('The neighbour relation is "user-out"' in sentence for sentence in in_words(told["sentences"]))
    assert release.card["plan"]["graph"]["relation"] == "user-out"
    assert plan.digest != tt.Plan(SPINE, unit_of("user-out", "add-remove", contributions=2), tt.Loss(rho=1)).digest


def test_a_plan_that_names_no_relation_does_not_read_a_graph() -> None:
    plan = tt.Plan(SPINE, unit_of("edge", "add-remove"), tt.Loss(rho=1))
    with pytest.raises(PlanError, match=r"Take the unit of the plan from the graph"):
        tt.make_release(plan, Graph(NODES, EDGES, "edge", cleaning=GAPS).table(), tt.RunOptions(columns=COLUMNS))


@pytest.mark.parametrize(("directed", "remarked"), [(True, True), (False, False)])
def test_a_list_of_mutual_friends_read_with_direction_is_remarked_on(
    directed: bool, remarked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    both = pa.table({"source": ["a", "b", "a", "c"], "target": ["b", "a", "c", "a"]})
    graph = Graph(NODES, both, "edge", directed=directed, policies=Policies(repeated="drop"), cleaning=GAPS)
    rows(graph)
    assert ("half a friendship" in caplog.text) == remarked
    assert ("only one of them is protected" in " ".join(graph.sentences())) == directed
    rows(Graph(NODES, EDGES, "edge", cleaning=GAPS))


def test_a_list_of_followers_is_not_remarked_on(caplog: pytest.LogCaptureFixture) -> None:
    rows(Graph(NODES, pa.table({"source": ["a", "a", "c"], "target": ["b", "c", "d"]}), "edge", cleaning=GAPS))
    assert not caplog.text


def test_nothing_private_is_in_what_a_graph_prints() -> None:
    graph = Graph(NODES, EDGES, "edge")
    nodes = graph.read_nodes()
    text = f"{graph} {graph.table()} {graph.node_table()} {nodes} {graph.read_edges(nodes)}"
    assert "n1" not in text and "'a'" not in text


def test_a_made_up_network_has_what_was_asked_for_and_is_the_same_for_the_same_seed() -> None:
    network = pokec_like(nodes=500, edges=4_000, seed=3)
    assert network.nodes.num_rows == 500 and network.edges.num_rows == 4_000
    assert network.edges.equals(pokec_like(nodes=500, edges=4_000, seed=3).edges)
    assert not network.edges.equals(pokec_like(nodes=500, edges=4_000, seed=4).edges)
    ends = np.stack([network.edges["source"], network.edges["target"]])
    assert len(np.unique(ends, axis=1).T) == 4_000 and (ends[0] != ends[1]).all()
    places = tt.Hierarchy.from_table(SocialNetwork.places(), ["region", "town"])
    assert places.sizes == (9, 80)
    assert set(network.nodes["town"].to_pylist()) - {None} <= set(places.codes[-1].to_pylist())


def _padded() -> Graph:
    nodes = pa.table({"id": [str(k) for k in range(20)], "town": ["n1"] * 20})
    edges = pa.table({"source": ["0"] * 19 + ["5", "1"], "target": [f"{k:03}" for k in range(1, 20)] + ["5", "2"]})
    return Graph(nodes, edges, "edge", policies=Policies(self_loops="drop", repeated="drop", unknown="drop"))


@pytest.mark.parametrize("unknown", ["error", "drop"])
def test_edges_to_unknown_nodes_count_as_dropped_and_many_are_refused(
    unknown: Any, caplog: pytest.LogCaptureFixture
) -> None:
    graph = _padded()
    spine = tt.Spine(["source.town"], {"source": PLACES})
    plan = tt.Plan(spine, graph.unit("add-remove"), tt.Loss(rho=10**6), unknown=unknown)
    spent: list[str] = []
    given: dict[str, Any] = {"columns": {"source": "source.town"}, "before_measuring": lambda: spent.append("charged")}
    with pytest.raises(ManyDropped, match=r"19 of 21 edges would be dropped \(90.5%\)") as error:
        tt.make_release(plan, graph.table(), tt.RunOptions(**given))
    assert "19 of these 19 would be known without their leading zeros" in str(error.value) and not spent
    release = tt.make_release(plan, graph.table(), tt.RunOptions(allow_dropped=True, **given))
    assert release.total == 1 and spent == ["charged"]
    assert "1 of 21 edges were dropped, because they go from a node to itself" in caplog.text
    tally = Tally()
    counts = tt.read_true_counts(plan, graph.table(), {"source": "source.town"}, tally=tally)
    assert (tally.lost, counts.total) == (19, 1)
    assert measure_errors(release, counts, tally.lost)[0].largest == 19


def test_repeated_edges_that_are_dropped_are_told_and_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    edges = pa.table({"source": ["a", "b", "a"], "target": ["b", "a", "c"]})
    graph = Graph(NODES, edges, "edge", directed=False, cleaning=GAPS, policies=Policies(repeated="drop"))
    plan = tt.Plan(tt.Spine(["source.town"], {"source": PLACES}), graph.unit("add-remove"), tt.Loss(rho=10**6))
    assert tt.make_release(plan, graph.table(), tt.RunOptions(columns={"source": "source.town"})).total == 2
    assert "1 of 3 edges were dropped, because they repeat another one." in caplog.text


def test_the_card_says_by_which_values_edges_or_nodes_are_kept(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target,year\na,b,2008\nb,a,2009\n")
    edges = tt.Source(tmp_path / "e.csv", keep={"year": "2008"})
    graph = Graph(NODES, edges, "edge", cleaning=GAPS)
    plan = tt.Plan(tt.Spine(["source.town"], {"source": PLACES}), graph.unit("add-remove"), tt.Loss(rho=10**6))
    release = tt.make_release(plan, graph.table(), tt.RunOptions(columns={"source": "source.town"}))
    assert release.total == 1 and release.card["data"]["keep"] == {"year": ["2008"]}
    release.save(tmp_path / "out")
    assert all(verdict.verified for verdict in tt.check(tmp_path / "out"))
