"""Unordered pairs: edges without direction between places, counted, asked for and checked in either order."""

from __future__ import annotations

import shutil
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest

import treetop as tt
from tests.true_leaves import leaves_of
from treetop.errors import FactError, PlanError, QueryError, ReleaseError, TreetopError

EXAMPLE = Path(__file__).parents[2] / "examples" / "graph"
PLAN = """
[graph]
nodes = "nodes.csv"
edges = "edges.csv"
relation = "edge"
directed = false
repeated = "drop"
[graph.clean.town]
missing = "missing"
[attributes.origin]
column = "source.town"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
column = "target.town"
same_as = "origin"
[spine]
order = "origin-first"
[unit]
neighbours = "add-remove"
[loss]
epsilon = 2
delta = 1e-8
[release]
keep_measurements = true
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("pairs.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def released(here: Path) -> tuple[tt.Plan, tt.Release, tt.Counts]:
    tt.publish("pairs.toml", out="out", options=tt.RunOptions(testing_key=bytes(32)))
    file = tt.read_plan("pairs.toml")
    assert file.source is not None
    return file.plan, tt.Release.load("out"), tt.read_true_counts(file.plan, file.table(file.source), file.columns)


def changed(old: str, new: str) -> Path:
    assert old in PLAN
    Path("changed.toml").write_text(PLAN.replace(old, new))
    return Path("changed.toml")


def number(counts: tt.Counts, spine: tt.Spine, one: tuple[int, int], other: tuple[int, int]) -> int:
    """Count the edges with one end in each of two ranges of leaves, in either order, from the leaves themselves."""
    (first, last), often = leaves_of(spine, counts)
    within = [[(end >= start) & (end < stop) for start, stop in (one, other)] for end in (first, last)]
    return int(often[(within[0][0] & within[1][1]) | (within[0][1] & within[1][0])].sum())


def test_half_of_the_domain_is_measured(here: Path) -> None:
    plan = tt.read_plan("pairs.toml").plan
    towns = len(plan.spine.trees[0].codes[-1])
    assert plan.spine.leaves == towns * (towns + 1) // 2
    assert plan.pairs == (0, 1) and not plan.margin_tables
    assert all(tuple(plan.unit.sensitivity(level.name)) == (1, 1) for level in plan.spine.levels)


def test_two_places_are_counted_in_either_order(released: tuple[tt.Plan, tt.Release, tt.Counts]) -> None:
    _, release, truth = released
    tree = release.spine.trees[0]
    regions = tree.codes[0].to_pylist()
    held = asked = 0
    for one, other in combinations_with_replacement(range(len(regions)), 2):
        codes = {"origin.region": regions[one], "destination.region": regions[other]}
        turned = {"origin.region": regions[other], "destination.region": regions[one]}
        assert release.query(**codes) == release.query(**turned)
        assert release.interval(**codes) == release.interval(**turned)
        true = number(truth, release.spine, tree.below(0, one), tree.below(0, other))
        lower, upper = release.interval(**codes)
        held, asked = held + (lower <= true <= upper), asked + 1
    assert held >= 0.9 * asked


@pytest.mark.parametrize("level", ["region", "town"])
def test_what_touches_a_place_is_counted_once(released: tuple[tt.Plan, tt.Release, tt.Counts], level: str) -> None:
    _, release, truth = released
    tree = release.spine.trees[0]
    depth, whole = tree.depth(level), (0, tree.sizes[-1])
    held = 0
    for node, code in enumerate(tree.codes[depth].to_pylist()):
        by_first, by_last = ({f"{end}.{level}": code} for end in ("origin", "destination"))
        assert release.query(**by_first) == release.query(**by_last) == int(release.where(**by_first).count.sum())
        lower, upper = release.interval(**by_first)
        held += lower <= number(truth, release.spine, tree.below(depth, node), whole) <= upper
    assert held >= tree.sizes[depth] - 1 - tree.sizes[depth] // 10


def test_a_town_and_its_region_are_counted_once(released: tuple[tt.Plan, tt.Release, tt.Counts]) -> None:
    _, release, truth = released
    tree = release.spine.trees[0]
    held = 0
    for town in range(tree.sizes[-1]):
        region = int(tree.ancestors(0)[town])
        codes = {"origin.town": tree.codes[1][town].as_py(), "destination.region": tree.codes[0][region].as_py()}
        lower, upper = release.interval(**codes)
        assert release.query(**codes) == int(release.where(**codes).count.sum())
        held += lower <= number(truth, release.spine, tree.below(1, town), tree.below(0, region)) <= upper
    assert held >= 0.9 * tree.sizes[-1]


def test_rows_name_both_ends(released: tuple[tt.Plan, tt.Release, tt.Counts]) -> None:
    _, release, _ = released
    rows = release.table("region")
    assert rows.column_names[:2] == ["origin.region", "destination.region"]
    assert sum(rows["count"].to_pylist()) == release.total
    for levels in (["origin.region"], ["origin.region", "destination.town"]):
        with pytest.raises(QueryError, match="name the same level of both ends"):
            release.table(levels)
    with pytest.raises(QueryError, match="stand in rows by either end"):
        release.where(**{"origin.region": "Nitra"}).table("region")


def test_exports_with_a_direction_are_refused(released: tuple[tt.Plan, tt.Release, tt.Counts]) -> None:
    _, release, _ = released
    for form in ("od", "map", "site"):
        with pytest.raises(ReleaseError, match="no direction"):
            tt.export(release, form, "there")
    assert tt.export(release, "csv", "there").total == release.total


def test_a_release_is_checked_and_its_plan_is_a_plan_again(released: tuple[tt.Plan, tt.Release, tt.Counts]) -> None:
    plan, release, _ = released
    assert not any(verdict.findings for verdict in tt.check(Path("out")))
    assert release.pairs == (0, 1)
    text = Path("out/plan.toml").read_text()
    Path("again.toml").write_text(text.replace("[graph]", '[graph]\nnodes = "nodes.csv"\nedges = "edges.csv"'))
    assert tt.read_plan("again.toml").plan.digest == plan.digest


def test_the_order_of_a_spine_without_a_level_is_that_of_its_own_places(here: Path) -> None:
    """Without the middle level, siblings stand in another order than in the file."""
    tree = tt.Hierarchy.from_prefixes(["AX2", "AX9", "AY1", "BX1"], widths=[1, 2], levels=["a", "b", "c"])
    ends = {"one": tree, "other": tree}
    spine = tt.Spine(["one.a", "other.a", "one.c", "other.c"], ends)
    codes = tree.codes[-1].to_pylist()
    people = {"id": codes, "place": codes}
    pairs = list(product(codes, codes))
    edges = {"source": [a for a, b in pairs if a != b], "target": [b for a, b in pairs if a != b]}
    import pyarrow as pa

    rules = tt.Policies(repeated="keep")
    graph = tt.Graph(pa.table(people), pa.table(edges), "edge", directed=False, policies=rules)
    plan = tt.Plan(
        spine, graph.unit("add-remove"), tt.Loss(rho=1), facts={"one.c * other.c": tt.Fact(possible="ordered")}
    )
    counts = tt.read_true_counts(plan, graph.table(), {"one": "source.place", "other": "target.place"})
    (first, last), often = leaves_of(plan.spine, counts)
    assert (first <= last).all() and np.all(often == 2) and len(often) == 6


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ('order = "origin-first"', 'order = "merged"', "one after the other"),
        ('order = "origin-first"', 'order = "origin-first"\nmargins = ["origin.region"]', "a margin would be that of"),
        ('order = "origin-first"', 'order = "origin-first"\nmargins = "each"', "leave margins out"),
        ("keep_measurements = true", "resolve = { fdr = 0.05 }", "would be left at one end"),
        ("[unit]", '[facts]\n"origin.region" = { at_most = "places.csv" }\n[unit]', "places.csv"),
        (
            "[unit]",
            '[facts]\n"origin.region * destination.region" = { possible = "same" }\n[unit]',
            "leave other facts",
        ),
    ],
)
def test_what_is_about_one_end_is_refused(here: Path, old: str, new: str, about: str) -> None:
    with pytest.raises(TreetopError, match=about):
        tt.read_plan(changed(old, new))


def test_ordered_is_about_two_like_ends_of_edges_without_direction(here: Path) -> None:
    tree = tt.Hierarchy.flat(["a", "b"])
    spine = tt.Spine(["one", "other"], {"one": tree, "other": tree})
    unit = tt.Unit("trip", 1, "replace")
    with pytest.raises(FactError, match="edges without direction"):
        tt.Plan(spine, unit, tt.Loss(rho=1), facts={"one * other": tt.Fact(possible="ordered")})
    with pytest.raises(FactError, match="two ends with one hierarchy"):
        tt.Plan(spine, unit, tt.Loss(rho=1), facts={"one": tt.Fact(possible="ordered")})


def test_questions_are_refused(here: Path) -> None:
    tt.Ledger.create("own.ledger", loss=tt.Loss(epsilon=2, delta=1e-8), datasets=("edges",))
    with pytest.raises(PlanError, match="release the plan, and query it"):
        tt.ask("pairs.toml", questions=["origin.region=Nitra"], ledger="own.ledger", dataset="edges")
