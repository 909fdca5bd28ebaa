"""The tables of a graph are read like any other: by the options of [data], and `nodes_…` of the people's table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from treetop import Graph, Policies, Source, read_plan
from treetop.cli import main
from treetop.errors import PlanError, PlanFileError, TreetopError

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph"
EDGE = 'relation = "edge"'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(graph: str = "", data: str = "", name: str = "friendships.toml", neighbours: str = "add-remove") -> Path:
    text = Path(name).read_text(encoding="utf-8").replace('relation = "user-out"', EDGE)
    text = text.replace("contributions = 10                   # of longer lists, ten at random\n", "")
    text = text.replace("[graph]\n", f"[graph]\n{graph}\n", 1).replace('"add-remove"', f'"{neighbours}"')
    Path("changed.toml").write_text(f"{text}\n[data]\n{data}\n" if data else text, encoding="utf-8")
    return Path("changed.toml")


def total(file: Path) -> int:
    read = read_plan(file)
    assert read.source is not None
    return tt.read_true_counts(read.plan, read.table(read.source), read.columns).total


def test_edges_with_comments_blanks_an_encoding_and_rows_of_others(here: Path) -> None:
    expected = total(plan())
    rows = Path("edges.csv").read_text().splitlines()[1:]
    lines = [
        "# Directed graph: it is the café's",
        "# from to kind",
        *(f"{row} a".replace(",", " ") for row in rows),
        "0 1 b",
    ]
    Path("edges.csv").write_text("\n".join(lines), encoding="latin-1")
    data = (
        'comment = "#"\ndelimiter = " "\nheader = false\nnames = ["source", "target", "kind"]\nencoding = "latin-1"\n'
    )
    assert total(plan(data=data + 'keep = { kind = "a" }')) == expected
    assert total(plan(data=data + 'drop = { kind = "b" }')) == expected


def test_people_are_read_by_options_of_their_own(here: Path) -> None:
    expected = total(plan())
    text = Path("nodes.csv").read_text()
    Path("nodes.csv").write_text("% people\n" + text.replace("\n", "\n ").rstrip(" ").replace(",", ";"), "latin-1")
    graph = 'nodes_comment = "%"\nnodes_delimiter = ";"\nnodes_encoding = "latin-1"\nnodes_trim = ["id"]'
    assert total(plan(graph)) == expected
    main(["release", "changed.toml", "--out", "out", "--testing-key", "00" * 32])
    card = json.loads(Path("out/card.json").read_text())
    assert "blanks at the ends of id do not count" in card["description"]
    assert 'nodes_trim = ["id"]' in Path("out/plan.toml").read_text()
    assert not any(verdict.findings for verdict in tt.check(Path("out")))


def test_people_may_be_chosen_by_a_column(here: Path) -> None:
    file = read_plan(plan('nodes_keep = { gender = "1" }', 'unknown = "drop"'))
    assert file.source is not None and file.graph is not None
    assert 0 < tt.read_true_counts(file.plan, file.table(file.source), file.columns).total < total(plan())
    assert any("The people are the rows with" in line for line in file.graph.sentences())


@pytest.mark.parametrize(
    "data", ['keep = { source = "0" }', 'drop = { source = "0" }', 'comment = "#"', 'blank_lines = "skip"']
)
def test_a_total_of_edges_of_which_some_may_vanish_is_measured(here: Path, data: str) -> None:
    assert read_plan(plan(neighbours="replace")).plan.reads_total
    assert not read_plan(plan(data=data, neighbours="replace")).plan.reads_total


def test_a_table_that_may_lose_edges_does_not_pass_for_one_with_an_exact_total(here: Path) -> None:
    file = read_plan(plan(neighbours="replace"))
    graph = Graph("nodes.csv", Source("edges.csv", comment="#"), "edge")
    with pytest.raises(PlanError, match="would be released without noise"):
        tt.make_release(file.plan, graph.table(columns=["town"]), tt.RunOptions(columns=file.columns))


def test_a_weight_is_a_number_of_edges(here: Path) -> None:
    people = pa.table({"id": ["a", "b", "c"], "town": ["x", "y", "y"]})
    edges = pa.table({"source": ["a", "a", "b"], "target": ["b", "c", "c"], "calls": [3, 0, 2]})
    graph = Graph(people, edges, "edge", directed=False, policies=Policies(repeated="keep"), weight="calls")
    read = graph.read_edges(graph.read_nodes())
    assert sorted(zip(read.source.tolist(), read.target.tolist(), strict=True)) == [(0, 1)] * 3 + [(1, 2)] * 2
    assert graph.policies.weighted and "as many edges as its weight says" in " ".join(graph.sentences())
    with pytest.raises(PlanError, match='set repeated to "keep"'):
        Graph(people, edges, "edge", weight="calls")
    wrong = edges.set_column(2, "calls", pa.array([1, -1, 2]))
    with pytest.raises(TreetopError, match="the weight -1 is negative"):
        Graph(people, wrong, "edge", policies=Policies(repeated="keep"), weight="calls").read_edges(graph.read_nodes())


def test_weighted_edges_are_released_with_a_card_that_says_so(here: Path) -> None:
    rows = Path("edges.csv").read_text().splitlines()
    Path("edges.csv").write_text("\n".join(["source,target,calls", *(f"{row},2" for row in rows[1:])]))
    file = plan('weight = "calls"')
    Path(file).write_text(file.read_text().replace('repeated = "error"', 'repeated = "keep"'))
    assert total(file) == 2 * (len(rows) - 1)
    main(["release", str(file), "--out", "out", "--testing-key", "00" * 32])
    assert "as many edges as its weight says" in Path("out/card.html").read_text()
    assert not any(verdict.findings for verdict in tt.check(Path("out")))


def test_what_is_stated_elsewhere_is_refused(here: Path) -> None:
    with pytest.raises(PlanFileError, match=r"source: the tables of a graph are named under \[graph\]"):
        read_plan(plan(data='source = "edges.csv"'))
    text = Path("users.toml").read_text().replace("[graph]\n", '[graph]\nnodes_delimiter = ";"\n', 1)
    Path("changed.toml").write_text(text)
    with pytest.raises(PlanFileError, match="the people are counted"):
        read_plan("changed.toml")
