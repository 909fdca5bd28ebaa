"""The coverage of noise intervals: counted node by node on small trees, and as large as it should be on larger ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import treetop as tt
from treetop import Counts
from treetop.advice.coverage import (
    GROUPS,
    Coverage,
    LevelCoverage,
    measure_coverage,
    measure_margin_coverage,
    pooled,
    release_on_trial,
    twin_coverage,
)
from treetop.counts.reading import read_counts
from treetop.errors import PlanError, PrivatePrior, ReleaseError
from treetop.measure.measure import NOTHING
from treetop.noise import Key
from treetop.release.errors import SIZES
from treetop.release.intervals.nodes import OWN

PLACE = tt.Hierarchy.from_table(
    pa.table(
        {
            "state": list("AAAABBCDD"),
            "county": ["a1", "a1", "a2", "a3", "b1", "b1", "c1", "d1", "d2"],
            "town": ["a11", "a12", "a21", "a31", "b11", "b12", "c11", "d11", "d21"],
        }
    ),
    levels=["state", "county", "town"],
)
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(["place.state", "sex", "place.county", "place.town"], {"place": PLACE, "sex": SEX})
FLAT = tt.Spine(["code"], {"code": tt.Hierarchy.flat([f"{i:03d}" for i in range(40)], level="code")})
BINARY = tt.Spine(
    [f"code.digits{width}" for width in range(1, 6)],
    {"code": tt.Hierarchy.from_prefixes([f"{i:05b}" for i in range(32)], widths=[1, 2, 3, 4])},
)
WIDE = [f"{i:05d}" for i in range(3000)]


def two_words() -> tt.Spine:
    """With six attributes of 3,000 codes the path of a leaf takes two words, and there are 7·10²⁰ leaves."""
    tree = tt.Hierarchy.from_prefixes(WIDE, widths=[2], levels=["group", "code"])
    names = [f"a{i}" for i in range(6)]
    return tt.Spine([f"{name}.{level}" for level in ("group", "code") for name in names], dict.fromkeys(names, tree))


def plan(spine: tt.Spine = SPINE, rho: float = 0.2, neighbours: str = "replace", **more: object) -> tt.Plan:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return tt.Plan(spine, unit, tt.Loss(rho=rho), **more, margins="none")  # type: ignore[arg-type]


def table(spine: tt.Spine, rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {}
    for name, tree in zip(spine.attributes, spine.trees, strict=True):
        codes = np.array(tree.codes[-1].to_pylist())
        columns[name] = codes[rng.zipf(1.3, rows) % len(codes)]
    return pa.table(columns)


Node = tuple[int, ...]


def ancestors(spine: tt.Spine, leaf: Node, index: int) -> Node:
    """The node of a level that a leaf is in; 0 for what is not refined yet."""
    depths = spine.depths(index)
    return tuple(
        int(tree.ancestors(depth - 1)[code]) if depth else 0
        for tree, depth, code in zip(spine.trees, depths, leaf, strict=True)
    )


def by_hand(release: tt.Release, true: dict[Node, int], index: int) -> dict[tuple[str, str], list[float]]:
    """By group and size, the nodes, covered ones and widths of a level: every public node, one after the other."""
    spine, intervals = release.spine, release.intervals
    leaves = list(product(*(range(tree.sizes[-1]) for tree in spine.trees)))
    rows: list[dict[Node, int]] = []
    for at in range(index + 1):
        nodes = release.tree.at(at).nodes
        rows.append({node: row for row, node in enumerate(zip(*nodes.tolist(), strict=True))})
    assert release.evidence is not None
    found: dict[tuple[str, str], list[float]] = {}
    for node in {ancestors(spine, leaf, index) for leaf in leaves}:
        (inside, *_) = members = [leaf for leaf in leaves if ancestors(spine, leaf, index) == node]
        truth = sum(true.get(leaf, 0) for leaf in members)
        path = [rows[at].get(ancestors(spine, inside, at)) for at in range(index + 1)]
        own = path[index]
        if own is not None:
            lower, upper = int(intervals[index].lower[own]), int(intervals[index].upper[own])
        else:
            lower, upper = 0, 0
            for at, row in enumerate(path):
                if row is not None:
                    upper = int(intervals[at].absent[row])
        if index == 0:
            measured = release.evidence.total is not None
        else:
            siblings = {
                ancestors(spine, leaf, index)
                for leaf in leaves
                if ancestors(spine, leaf, index - 1) == ancestors(spine, inside, index - 1)
            }
            measured = path[index - 1] is not None and len(siblings) > 1
            if own is not None:
                assert measured == (release.evidence.levels[index - 1].measured[own] != NOTHING)
        label = next(
            f"{low}+" if high is None else f"{low}–{high}" if high > low else str(low)
            for low, high in reversed(SIZES)
            if truth >= low
        )
        groups = ["every", "zeros" if own is None else "positives"] + ["measured"] * measured
        for group in groups:
            cell = found.setdefault((group, label), [0, 0, 0])
            for place, more in enumerate((1, lower <= truth <= upper, upper - lower)):
                cell[place] += more
    return found


def as_cells(row: LevelCoverage) -> dict[tuple[str, str], list[float]]:
    cells = {(group, size.size): getattr(size, group) for size in row.sizes for group in GROUPS}
    return {name: [cell.nodes, cell.covered, cell.widths] for name, cell in cells.items() if cell.nodes}


PLANS = {
    "replace": plan(),
    "add-remove": plan(neighbours="add-remove"),
    "resolved": plan(rho=0.4, resolve={"fdr": 0.1}),
    "resolved, add-remove, sigmas": plan(rho=0.4, neighbours="add-remove", resolve={"sigmas": 2}),
    "flat": plan(FLAT, confidence=0.6),
    "small noise": plan(rho=20),
}


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("rows", [3, 60, 700])
def test_coverage_is_that_of_a_count_node_by_node(kind: str, rows: int) -> None:
    planned = PLANS[kind]
    spine = planned.spine
    for seed in range(3):
        private = table(spine, rows, seed)
        release = tt.make_release(planned, private, tt.RunOptions(testing_key=bytes([seed]) * 32))
        true: dict[Node, int] = {}
        numbers = [{code: i for i, code in enumerate(tree.codes[-1].to_pylist())} for tree in spine.trees]
        for leaf in zip(*(private[name].to_pylist() for name in spine.attributes), strict=True):
            node = tuple(number[code] for number, code in zip(numbers, leaf, strict=True))
            true[node] = true.get(node, 0) + 1
        for row in measure_coverage(release, read_counts(private, spine)):
            expected = by_hand(release, true, row.level)
            found = as_cells(row)
            assert found.keys() == expected.keys()
            for name, cell in expected.items():
                assert found[name] == pytest.approx(cell), (row.name, name)


def test_something_was_left_unresolved_and_something_missed_in_those_tables() -> None:
    release = tt.make_release(PLANS["resolved"], table(SPINE, 60, 0), tt.RunOptions(testing_key=bytes(32)))
    assert release.left is not None and len(release.left) > 1
    rows = pooled(
        [
            measure_coverage(
                tt.make_release(PLANS["flat"], table(FLAT, 700, seed), tt.RunOptions(testing_key=bytes([seed]) * 32)),
                read_counts(table(FLAT, 700, seed), FLAT),
            )
            for seed in range(3)
        ]
    )
    assert rows[-1].all_sizes.every.covered < rows[-1].all_sizes.every.nodes


def test_a_domain_too_large_to_be_listed_is_counted_by_arithmetic() -> None:
    spine = two_words()
    private = table(spine, 400, 1)
    release = tt.make_release(plan(spine, rho=5), private, tt.RunOptions(testing_key=bytes(32)))
    rows = measure_coverage(release, read_counts(private, spine))
    leaves = rows[-1].all_sizes
    assert leaves.every.nodes == 3000**6 > 2**63
    assert leaves.every.nodes == leaves.positives.nodes + leaves.zeros.nodes
    assert leaves.positives.nodes == len(release.count)
    assert leaves.every.share is not None and 0 < leaves.every.share <= 1
    for row in rows:
        assert sum(size.every.nodes for size in row.sizes) == (spine.levels[row.level - 1].nodes if row.level else 1)
        assert row.all_sizes.zeros.widths >= 0


def test_a_release_of_nothing_covers_what_is_not_there() -> None:
    empty = table(SPINE, 0, 0)
    release = tt.make_release(plan(), empty, tt.RunOptions(testing_key=bytes(32)))
    for row in measure_coverage(release, read_counts(empty, SPINE)):
        assert row.all_sizes.every == row.all_sizes.zeros
        assert row.all_sizes.every.share == 1
        assert row.all_sizes.positives.share is None


def test_rows_add_up() -> None:
    private = table(SPINE, 200, 4)
    release = tt.make_release(plan(), private, tt.RunOptions(testing_key=bytes(32)))
    rows = measure_coverage(release, read_counts(private, SPINE))
    assert rows[-1].name == "place.town"
    assert [size.size for size in rows[-1].sizes] == ["0", "1–4", "5–10", "11–24", "25–99", "100+"]
    every = rows[-1].all_sizes.every
    assert every.share == every.covered / every.nodes
    twice = pooled([rows, rows])
    assert twice[-1].all_sizes.every == rows[-1].all_sizes.every + rows[-1].all_sizes.every
    assert Coverage(0, 0, 0.0).share is None


def test_a_release_without_intervals_has_no_coverage() -> None:
    private = table(SPINE, 50, 0)
    release = tt.make_release(plan(confidence=None), private, tt.RunOptions(testing_key=bytes(32)))
    with pytest.raises(ReleaseError, match="no intervals"):
        measure_coverage(release, read_counts(private, SPINE))


RUNS = 300
CONFIDENCE = 0.8
SIZES_OF_LEAVES = [0, 0, 0, 1, 1, 2, 3, 5, 8, 12, 20, 30, 60, 400, 500, 600, 700, 800]

Many = tuple[tt.Plan, tuple[LevelCoverage, ...]]


@pytest.fixture(scope="module", params=["replace", "resolved", "add-remove", "two children"])
def many(request: pytest.FixtureRequest) -> Many:
    """Many releases of a made-up table, put together."""
    resolve = {"fdr": 0.1} if request.param == "resolved" else "full"
    neighbours = "add-remove" if request.param == "add-remove" else "replace"
    sizes = np.random.default_rng(7).permutation(SIZES_OF_LEAVES)
    if request.param == "two children":
        # What is not retained is one of two, and its own measurement is the highest: the narrowest bound there can be.
        planned = plan(BINARY, rho=0.02, confidence=CONFIDENCE)
        counts = Counts.from_leaves(BINARY, [np.arange(len(sizes))], sizes)
    else:
        planned = plan(rho=0.02, neighbours=neighbours, confidence=CONFIDENCE, resolve=resolve)
        counts = Counts.from_leaves(SPINE, [np.repeat(np.arange(9), 2), np.tile(np.arange(2), 9)], sizes)
    releases = (release_on_trial(planned, counts, Key(run.to_bytes(32, "big"))) for run in range(RUNS))
    return planned, pooled([measure_coverage(release, counts, CONFIDENCE) for release in releases])


def slack(nodes: int, share: float) -> float:
    """How far the share of so many independent trials may be off, at 99.9 %."""
    low, high = binom.ppf([0.0005, 0.9995], nodes, share)
    return float(max(share * nodes - low, high - share * nodes) / nodes)


def test_measured_nodes_are_covered_at_least_as_often_as_stated(many: Many) -> None:
    planned, rows = many
    for row, level in zip(rows, planned.levels, strict=True):
        measured = row.all_sizes.measured
        assert (measured.nodes > 0) == level.is_measured
        if measured.share is not None:
            assert measured.share >= CONFIDENCE - slack(measured.nodes, CONFIDENCE), row.name


def test_so_are_public_nodes_of_every_size_measured_or_not(many: Many) -> None:
    for row in many[1]:
        for size in row.sizes:
            if size.every.share is not None:
                assert size.every.share >= CONFIDENCE - slack(size.every.nodes, CONFIDENCE), (row.name, size.size)


def test_intervals_of_large_nodes_are_no_wider_than_their_confidence_asks_for(many: Many) -> None:
    planned, rows = many
    for row, level in zip(rows, planned.levels, strict=True):
        if not level.is_measured:
            continue
        # Nine tenths of the risk of 20 % are a node's own: 82 %, rounded up to a whole margin.
        k = level.law.margin(OWN * (1 - Fraction(str(CONFIDENCE))))
        own = level.law.cumulative(k) - level.law.cumulative(-k - 1)
        assert 0.82 <= own < 0.84
        large = row.sizes[-1].measured
        assert large.nodes > RUNS / 2 and large.share is not None
        assert own - 0.02 - slack(large.nodes, own) <= large.share, row.name
        if planned.resolve == "full":  # otherwise they are wider, for being chosen
            assert large.share <= own + slack(large.nodes, own), row.name
            assert large.share <= CONFIDENCE + 0.06


def test_a_plan_is_tried_on_a_public_twin_with_the_same_result_every_time() -> None:
    planned, twin = plan(), table(SPINE, 300, 8)
    found = twin_coverage(planned, twin)
    assert found == twin_coverage(planned, twin)
    told = found.to_dict()
    assert (told["nominal"], told["runs"]) == (0.95, 5)
    assert [level["name"] for level in told["twin"]] == ["place.state", "sex", "place.county", "place.town"]
    assert told["twin"][0]["nodes"] == 5 * 4
    assert all(0.8 * level["nodes"] <= level["covered"] <= level["nodes"] for level in told["twin"])
    counted = pa.table({"home": ["a11", "b12"], "who": ["f", "m"], "n": [40, 50]})
    columns = {"place": "home", "sex": "who"}
    (total, *_) = twin_coverage(planned, counted, columns, "n", runs=2).levels
    assert total.sizes[4].every == Coverage(2, 2, 0.0)  # 90, exact, in both runs


def test_a_twin_is_neither_private_counts_nor_for_plans_without_intervals() -> None:
    twin = table(SPINE, 20, 8)
    with pytest.raises(PrivatePrior):
        twin_coverage(plan(), read_counts(twin, SPINE))
    with pytest.raises(PlanError, match="intervals off"):
        twin_coverage(plan(confidence=None), twin)
    with pytest.raises(PlanError, match="1 or more"):
        twin_coverage(plan(), twin, runs=0)


def test_margins_are_covered_as_often_as_stated_and_a_trial_tells_it() -> None:
    spine = tt.Spine(["place.state", "sex", "place.town"], {"place": PLACE, "sex": SEX})
    rng = np.random.default_rng(3)
    towns = PLACE.codes[-1].to_pylist()
    rows = {"place": rng.choice(towns, 4_000).tolist(), "sex": rng.choice(["f", "m"], 4_000).tolist()}
    twin, planned = pa.table(rows), tt.Plan(spine, tt.Unit("person", neighbours="replace"), tt.Loss(rho=0.01))
    counts = read_counts(twin, spine)
    runs = [release_on_trial(planned, counts, Key(run.to_bytes(32, "big"))) for run in range(150)]
    for name, row in zip(
        ("margin place.town", "margin sex"),
        pooled([measure_margin_coverage(release, counts, 0.9) for release in runs]),
        strict=True,
    ):
        found = row.all_sizes
        assert (row.name, found.every) == (name, found.measured)
        assert found.positives + found.zeros == found.every
        assert found.every.share is not None
        assert 0.9 - 4 * (0.09 / found.every.nodes) ** 0.5 <= found.every.share <= 0.95
    tried = twin_coverage(planned, twin, runs=2)
    assert [row["name"] for row in tried.to_dict()["twin"]][-2:] == ["margin place.town", "margin sex"]
    assert tried.to_dict()["twin"][-2]["nodes"] == 2 * len(towns)
