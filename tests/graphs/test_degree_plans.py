"""Degrees as plans like others: plan file, command, card, check, ledger, queries and intervals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.commands import printed as run
from tests.forging import findings
from treetop import Graph, Policies
from treetop.card import content, in_words
from treetop.errors import IncompletePlan, PlanError, PlanFileError, QueryError, ReleaseError
from treetop.ledger import unit_text
from treetop.noise.sum_noise import sum_margins
from treetop.plan.degree_unit import DegreeUnit
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.file import describe_plan, read_plan
from treetop.plan.region_histograms import RegionHistograms
from treetop.plan.workload import Exact, PassThrough
from treetop.privacy.relation import GraphRules, GraphUnit, unit_of
from treetop.release.derived import DegreeTables
from treetop.release.intervals import cells

GRAPH = Path(__file__).parents[2] / "examples" / "graph"
KEY = bytes(range(32))

WHOLE = """
title = "Friends"
[graph]
counts = "degrees"
nodes = "nodes.csv"
edges = "edges.csv"
relation = "edge"
largest = 20
[unit]
neighbours = "add-remove"
[loss]
epsilon = 1
delta = 1e-8
"""
PLACE = """
[attributes.place]
column = "town"
hierarchy = "places.csv"
levels = ["region", "town"]
[graph.clean.town]
missing = "missing"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    for name in ("nodes.csv", "edges.csv", "places.csv"):
        shutil.copy(GRAPH / name, tmp_path)

    def write(text: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


Write = Callable[[str], Path]
SPLIT = '{ degree = 1, "place.region" = 2, "place.town" = 3 }'
VARIANTS = {
    "edge": WHOLE,
    "edge, histogram": WHOLE.replace("largest = 20", 'largest = 20\nform = "histogram"'),
    "edge, replace": WHOLE.replace("add-remove", "replace"),
    "undirected": WHOLE.replace("largest = 20", 'largest = 20\ndirected = false\nrepeated = "drop"'),
    "lists": WHOLE.replace('"edge"', '"user-out"'),
    "lists, histogram": WHOLE.replace('"edge"', '"user-out"\nform = "histogram"'),
    "node": WHOLE.replace('"edge"', '"node"'),
    "node, histogram, pure": WHOLE.replace('"edge"', '"node"\nform = "histogram"').replace("delta = 1e-8", ""),
    "node, replace": WHOLE.replace('"edge"', '"node"').replace("add-remove", "replace"),
    "in": WHOLE.replace('"edge"', '"edge"\ndegree = "in"'),
    "total, histogram": WHOLE.replace('"edge"', '"edge"\ndegree = "total"\nform = "histogram"'),
    "lists, in": WHOLE.replace('"edge"', '"user-out"\ndegree = "in"').replace("[unit]", "[unit]\ncontributions = 9"),
    "node, in": WHOLE.replace('"edge"', '"node"\ndegree = "in"'),
    "no intervals": WHOLE + "[release]\nintervals = false\n",
    "confidence": WHOLE + "[release]\nconfidence = 0.8\n",
    "places": WHOLE + PLACE,
    "places, split": WHOLE.replace("delta", f"split = {SPLIT}\ndelta") + PLACE,
    "places, in": WHOLE.replace('"edge"', '"edge"\ndegree = "in"') + PLACE,
    "lists of places, total": (
        WHOLE.replace('"edge"', '"user-out"\ndegree = "total"').replace('"add-remove"', '"replace"\ncontributions = 9')
        + PLACE
    ),
    "lists of places": WHOLE.replace('"edge"', '"user-out"').replace("add-remove", "replace") + PLACE,
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_release_by_plan_file_checks_loads_and_is_described_by_its_own_plan(
    write: Write, tmp_path: Path, name: str
) -> None:
    path, out = write(VARIANTS[name]), tmp_path / "release"
    run("release", path, "--out", out, "--nodes", "--quiet")
    assert findings(out) == []
    file, release = read_plan(path), tt.Release.load(out)
    assert release.card["plan_sha256"] == file.plan.digest
    again = read_plan(write(add_tables((out / "plan.toml").read_text(encoding="utf-8"))))
    assert again.plan.digest == file.plan.digest
    intervals = name != "no intervals"
    assert ("lower" in release.table().column_names) == intervals == (out / "measurements.parquet").exists()
    assert (release.confidence == 0.8) == (name == "confidence")
    exact = "node" not in name or "replace" in name
    assert isinstance(file.plan.levels[0].how, Exact if exact else PassThrough)
    assert any("the number of people:" in told for told in in_words(release.card["exact"])) == exact
    if exact:
        assert release.total == 1_200
    if exact and intervals:
        assert release.interval() == (1_200, 1_200)


def add_tables(text: str) -> str:
    """Name the tables again, which are the steward's own, and the rules of cleaning, which are written as a comment."""
    named = text.replace('counts = "degrees"', 'counts = "degrees"\nnodes = "nodes.csv"\nedges = "edges.csv"')
    return named.replace("# clean =", "clean =")


def test_a_plan_is_the_same_from_a_file_and_in_python_and_so_are_its_numbers(write: Write) -> None:
    graph = Graph(GRAPH / "nodes.csv", GRAPH / "edges.csv", "edge")
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(epsilon=1, delta=1e-8), 20, title="Friends")
    file = tt.read_plan(write(WHOLE))
    assert file.plan.digest == plan.digest
    one, other = (tt.make_release(made, graph, tt.RunOptions(testing_key=KEY)) for made in (plan, file.plan))
    assert one.table().equals(other.table())
    assert DegreeHistogram.runs(read_plan(write(WHOLE)).plan)
    regional = tt.read_plan(write(WHOLE + PLACE)).plan
    assert RegionHistograms.runs(regional)
    assert [level.name for level in regional.levels] == ["total", "degree", "place.region", "place.town"]


def test_the_commands_take_it(write: Write, tmp_path: Path) -> None:
    path, out, ledger = write(WHOLE + PLACE), tmp_path / "release", tmp_path / "network.ledger"
    told = run("plan", path)
    assert "In every region" not in told and "A degree is the number of edges that go out from a person." in told
    assert "as below" in run("plan", write(VARIANTS["node"])) and "as below" not in told
    run("ledger", "create", ledger, "--epsilon", "1", "--delta", "1e-8", "--dataset", "friends")
    write(WHOLE + PLACE)
    assert "Charged to the data set 'friends'" in run(
        "release", path, "--out", out, "--ledger", ledger, "--dataset", "friends"
    )
    assert "matches its card" in run("check", out)
    (entry,) = tt.Ledger.open(ledger).entries("friends")
    assert entry.state == "complete" and entry.plan_sha256 == read_plan(path).plan.digest
    # Tables of edges under "edge" protect the same unit: in one data set, losses add up.
    edges = GraphUnit(unit_of("edge", "add-remove"), GraphRules("edge", directed=True))
    assert unit_text(read_plan(path).plan.unit) == unit_text(edges)
    with pytest.raises(tt.errors.Refusal):
        tt.publish(path, options=tt.RunOptions(ledger=ledger, dataset="friends"), out=tmp_path / "second")
    rows = json.loads(run("query", out, "--by", "place.region", "--json"))
    assert "lower" in json.dumps(rows)
    assert int(run("query", out, "degree=03", "region=Zilina").strip()) >= 0
    run("export", out, "--to", "records", "--out", tmp_path / "degrees.parquet")
    assert pq.read_table(tmp_path / "degrees.parquet").num_rows == 1_200


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("largest = 20", "", "largest: Which is the largest degree"),
        ('relation = "edge"', "", "graph.relation: Which graphs must be hard to tell apart"),
        ('neighbours = "add-remove"', "", "unit.neighbours"),
        ('relation = "edge"', 'relation = "node"\ndegree_bound = 9', "degree_bound is not a field"),
        ("largest = 20", "largest = 20\nform = 'direct'", "form must be"),
        ("largest = 20", "largest = 20\ndegree = 'up'", "degree must be"),
        ("largest = 20", "largest = 20\ndegree = 'in'\ndirected = false", "neither come in nor go out"),
        ('relation = "edge"', 'relation = "user-out"\ndegree = "in"', "How many edges of one list count"),
        ("[unit]", "[unit]\ncontributions = 9", "is said of in-degrees and of all edges"),
        ('neighbours = "add-remove"', 'neighbours = "add-remove"\nentity = "person"', "protects one edge and no more"),
        ('relation = "edge"', 'relation = "user-out"\ndirected = false', "an edge without direction is on two"),
        ("delta = 1e-8", 'delta = 1e-8\naccounting = "exact"', "exact accounting is not for degrees"),
        ("[loss]", "[data]\ncount = 'n'\n[loss]", "is said by weight under"),
        ("[loss]", "[data]\nunknown = { place = 'x' }\n[loss]", "for edges to people who are not in the table"),
        ("[loss]", "[release]\nintervals = false\nconfidence = 0.9\n[loss]", "intervals are off"),
        ("[loss]", "[spine]\norder = ['degree']\n[loss]", "spine is not a field"),
    ],
)
def test_a_plan_file_that_makes_no_sense_is_refused(write: Write, old: str, new: str, about: str) -> None:
    with pytest.raises((PlanFileError, IncompletePlan, PlanError, tt.errors.UnitError), match=about):
        read_plan(write(WHOLE.replace(old, new)))


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (WHOLE.replace("add-remove", "replace"), "degrees by place under .edge. are for 'add-remove'"),
        (WHOLE.replace('"edge"', '"user-out"'), "are for 'replace'"),
        (WHOLE.replace('"edge"', '"node"'), "the region of a person is private"),
    ],
)
def test_degrees_by_place_are_for_some_neighbours_only(write: Write, text: str, about: str) -> None:
    with pytest.raises((PlanFileError, PlanError), match=about):
        read_plan(write(text + PLACE))


def test_one_place_and_no_other_attribute(write: Write) -> None:
    second = PLACE.replace("attributes.place", "attributes.home").partition("[graph.clean")[0]
    with pytest.raises(PlanFileError, match="degrees have at most one"):
        read_plan(write(WHOLE + PLACE + second))
    with pytest.raises(PlanFileError, match="is called as the degrees are"):
        read_plan(write(WHOLE + PLACE.replace("attributes.place", "attributes.degree")))


def test_what_is_only_for_the_top_down_refuses_it(write: Write, tmp_path: Path) -> None:
    path = write(WHOLE)
    tt.publish(path, out=tmp_path / "release")
    with pytest.raises(PlanError, match="measured all at once"):
        tt.ask(path, questions=["degree=03"], ledger=tmp_path / "none", loss=tt.Loss(rho=1))
    with pytest.raises(PlanError, match="measured all at once"):
        tt.Release.load(tmp_path / "release").estimates()
    with pytest.raises(PlanError, match="degrees are those of a graph"):
        tt.make_release(tt.read_plan(path).plan, pa.table({"degree": ["01"]}))
    dropping = Graph(GRAPH / "nodes.csv", GRAPH / "edges.csv", "edge", policies=Policies("drop"))
    with pytest.raises(PlanError, match="which edges are dropped"):
        tt.make_release(tt.read_plan(path).plan, dropping)


def forge(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table and put its hash right everywhere."""
    path = folder / name
    pq.write_table(change(pq.read_table(path)), path, compression="zstd", store_schema=False)


def raised(column: str) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(column).to_numpy().copy()
        values[1] += 1
        return table.set_column(table.column_names.index(column), column, pa.array(values))

    return change


@pytest.mark.parametrize(
    ("name", "change", "about"),
    [
        ("counts.parquet", raised("upper"), "stands where the measurements give"),
        ("counts.parquet", raised("count"), "but the measurements give"),
        ("measurements.parquet", raised("value"), "but the measurements give"),
        ("measurements.parquet", lambda table: table.slice(1), "are not those of its cells"),
    ],
)
def test_whoever_changes_a_number_is_found(
    write: Write, tmp_path: Path, name: str, change: Callable[[pa.Table], pa.Table], about: str
) -> None:
    folder = tmp_path / "release"
    tt.publish(write(WHOLE), out=folder)
    forge(folder, name, change)
    assert any(about in finding for finding in findings(folder))
    with pytest.raises(ReleaseError, match="SHA-256"):
        tt.Release.load(folder)


def test_a_total_that_is_called_exact_is_found(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: the number of people is told, where a person who comes or goes changes it."""
    with monkeypatch.context() as patch:
        patch.setattr(DegreeUnit, "total_is_exact", lambda *_: True)
        content.of_plan.cache_clear()
        published = tt.publish(write(VARIANTS["node"]), out=tmp_path / "release")
        assert published.release.total == 1_200 and findings(tmp_path / "release") == []
    content.of_plan.cache_clear()
    found = findings(tmp_path / "release")
    assert any("exact" in finding for finding in found)
    assert any("caveats" in finding for finding in found)


def misses(plan: tt.Plan, graph: Graph, runs: int = 300) -> NDArray[np.bool_]:
    """Whether the interval of each degree (column) misses the truth, run by run (row)."""
    found = []
    for seed in range(runs):
        release = tt.make_release(plan, graph, tt.RunOptions(testing_key=seed.to_bytes(32, "big")))
        bounds = [release.interval(degree=str(degree)) for degree in range(len(TRUTH))]
        found.append([not lower <= true <= upper for true, (lower, upper) in zip(TRUTH, bounds, strict=True)])
    return np.array(found)


PEOPLE = pa.table({"id": range(60)})
PAIRS = [(i, (i + k + 1) % 60) for i in range(60) for k in range(i % 5)]
EDGES = pa.table({"source": [one for one, _ in PAIRS], "target": [other for _, other in PAIRS]})
TRUTH = [12, 12, 12, 12, 12, 0]


@pytest.mark.parametrize("loss", [tt.Loss(rho=0.5), tt.Loss(epsilon=1)])
@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize("relation", ["edge", "user-out"])
def test_intervals_hold_the_truth_as_often_as_they_say(relation: Any, form: Any, loss: tt.Loss) -> None:
    """Of 300 intervals of a degree at 80 %, 20 % miss, with a standard deviation of 2.3 %: four of those are allowed.

    Noise is whole, so that intervals hold a little more often than stated, and those that end at zero more often still.
    """
    graph = Graph(PEOPLE, EDGES, relation, contributions=9 if relation == "user-out" else None)
    plan = tt.degree_plan(relation, "add-remove", loss, 5, form, confidence=0.8)
    missed = misses(plan, graph).mean(axis=0)
    assert missed.max() < 0.2 + 4 * 0.023 and missed[1:5].min() > 0.02


def test_intervals_with_too_little_risk_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: bounds of one draw where a count is the difference of two."""
    right = sum_margins
    monkeypatch.setattr(cells, "sum_margins", lambda law, draws, risk: right(law, np.minimum(draws, 1), risk))
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(rho=0.05), 5, confidence=0.8)
    missed = misses(plan, Graph(PEOPLE, EDGES, "edge")).mean(axis=0)
    assert missed[1:5].mean() > 0.2 + 4 * 0.012  # of 1,200


def test_intervals_of_regions_sums_and_other_confidences(write: Write) -> None:
    file = tt.read_plan(write(WHOLE + PLACE))
    graph = file.table(str(GRAPH / "edges.csv"))
    truth = tt.read_true_counts(file.plan, graph, file.columns)
    release = tt.make_release(file.plan, graph, tt.RunOptions(columns=file.columns, testing_key=KEY))
    loud = tt.regional_degree_plan(file.plan.spine.attributes["place"], 20, "edge", tt.Loss(rho=10**8))
    known = tt.make_release(loud, graph, tt.RunOptions(columns=file.columns, testing_key=KEY))
    for region in release.spine.trees[1].codes[0].to_pylist():
        within = [release.interval(p, **{"place.region": region, "degree": "03"}) for p in (0.5, 0.95, 0.999)]
        assert all(one.lower >= two.lower and one.upper <= two.upper for one, two in pairwise(within))
        table = release.where(**{"place.region": region}).table("degree").to_pydict()
        assert all(0 <= low <= high <= 1_200 for low, high in zip(table["lower"], table["upper"], strict=True))
        lower, upper = release.interval(0.999, **{"place.region": region})
        assert lower <= known.query(**{"place.region": region}) <= upper
    assert truth.total == 1_200
    with pytest.raises(QueryError, match="confidence"):
        release.interval(2.0, degree="03")


def test_what_is_written_of_a_plan_without_a_file_is_a_plan(write: Write) -> None:
    plan = tt.degree_plan("node", "replace", tt.Loss(rho=1), 9, "histogram", False, title="From Python")
    text = add_tables(describe_plan(plan))
    assert read_plan(write(text)).plan.digest == plan.digest


def test_cumulative_degrees_their_intervals_means_and_quantiles(write: Write, tmp_path: Path) -> None:
    path, out = write(WHOLE + PLACE), tmp_path / "release"
    release = tt.publish(path, options=tt.RunOptions(testing_key=KEY), out=out).release
    tables = DegreeTables.of(release)
    at_most = tables.cumulative().to_pydict()
    assert at_most["people"][-1] == at_most["lower"][-1] == at_most["upper"][-1] == 1_200
    assert at_most["people"] == np.cumsum([release.query(degree=code) for code in at_most["degree"]]).tolist()
    # A cumulative count has one draw of noise, and the count of a degree two.
    first, third = (release.interval(degree=code) for code in ("00", "03"))
    assert (at_most["lower"][0], at_most["upper"][0]) == first
    assert at_most["upper"][3] - at_most["lower"][3] < third.upper - third.lower
    by_region = tables.cumulative("place.region").to_pylist()
    assert len(by_region) == 21 * 9 and all(row["lower"] <= row["upper"] <= 1_200 for row in by_region)
    assert at_most["degree"][-1] == "20 or more"
    mean = sum(at * release.query(degree=code) for at, code in enumerate(at_most["degree"])) / 1_200
    means = tables.mean_degree().to_pydict()
    assert means["mean_degree"] == [pytest.approx(mean)] and means["lower"] <= means["mean_degree"]
    assert means["upper"] == [None]
    median = tables.quantiles("place.region").to_pylist()[2]
    assert median["share"] == 0.5 and 0 <= median["degree"] <= 20
    assert "mean_degree" in run("query", out, "--derived", "mean-degree", "--by", "place.region")
    assert run("query", out, "--derived", "cumulative").split()[:4] == ["degree", "people", "lower", "upper"]
    with pytest.raises(QueryError, match="not derived from degrees"):
        tables.table("people")
    with pytest.raises(QueryError, match="the degree itself"):
        tables.mean_degree("degree")
    with pytest.raises(QueryError, match="of all of them"):
        DegreeTables.of(release.where(degree="03"))
