"""Resolved releases: what is left at coarser nodes is saved, checked, counted in queries, and has intervals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.forging import card_of, edit_table, findings
from treetop.card import in_words
from treetop.cli import main
from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING
from treetop.release.folder import UNRESOLVED
from treetop.release.measurements import remainder_intervals

PLACE = tt.Hierarchy.from_prefixes(
    ["Ax", "Ay", "Az", "Bx", "By", "Cx", "Dw", "Dx", "Dy", "Dz"], widths=[1], levels=["state", "county"]
)
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
CODES = np.array(PLACE.codes[-1].to_pylist())


def plan(spine: tt.Spine = SPINE, rho: Fraction = Fraction(1, 8), neighbours: str = "replace", **more: Any) -> tt.Plan:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return tt.Plan(spine, unit, tt.Loss(rho=rho), **{"resolve": {"sigmas": 3}, **more}, margins="none")


def trips() -> pa.Table:
    rng = np.random.default_rng(4)
    ends = [np.minimum(rng.geometric(0.25, 2500) - 1, 9) for _ in range(2)]
    return pa.table({"origin": CODES[ends[0]], "destination": CODES[ends[1]]})


def released(planned: tt.Plan | None = None, run: int = 0) -> tt.Release:
    return tt.make_release(planned or plan(), trips(), tt.RunOptions(testing_key=run.to_bytes(32, "big")))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resolved") / "out"
    released().save(folder, nodes=True)
    return folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "out"))


@pytest.mark.parametrize("resolve", [{"sigmas": 3}, {"fdr": 0.05}, {"fdr": Fraction(1, 3)}], ids=str)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_resolved_release_is_saved_loaded_and_verified(resolve: Any, neighbours: str, tmp_path: Path) -> None:
    release = released(plan(resolve=resolve, neighbours=neighbours))
    assert release.left is not None and len(release.left) > 1
    release.save(tmp_path / "out", nodes=True)
    assert findings(tmp_path / "out") == []
    loaded = tt.Release.load(tmp_path / "out")
    assert loaded.total == release.total
    assert loaded.unresolved().equals(release.unresolved())
    assert pq.read_table(tmp_path / "out" / UNRESOLVED).equals(release.unresolved())
    for level in ("total", *SPINE.splits):
        assert loaded.level(level).equals(release.level(level))


def test_without_intervals_a_resolved_release_has_no_bounds(tmp_path: Path) -> None:
    release = released(plan(confidence=None))
    assert release.unresolved().column_names == ["level", "destination", "origin", "count"]
    release.save(tmp_path / "out")
    assert findings(tmp_path / "out") == []
    assert tt.Release.load(tmp_path / "out").unresolved().equals(release.unresolved())


def test_where_nothing_is_named_the_whole_total_is_one_row(tmp_path: Path) -> None:
    release = released(plan(resolve={"sigmas": 10_000}))
    assert (release.total, release.unresolved_total, len(release.count)) == (2500, 2500, 0)
    assert release.query() == 2500
    assert release.query(origin="A") == 0
    (row,) = release.unresolved().to_pylist()
    assert row == {"level": 0, "origin": None, "destination": None, "count": 2500, "lower": 2500, "upper": 2500}
    release.save(tmp_path / "out", nodes=True)
    assert findings(tmp_path / "out") == []
    assert tt.Release.load(tmp_path / "out").total == 2500


def test_an_empty_table_has_no_remainder(tmp_path: Path) -> None:
    release = tt.make_release(plan(), trips().slice(0, 0), tt.RunOptions(testing_key=bytes(32)))
    assert (release.total, release.unresolved().num_rows) == (0, 0)
    release.save(tmp_path / "out")
    assert findings(tmp_path / "out") == []
    assert tt.Release.load(tmp_path / "out").unresolved().num_rows == 0


def test_a_full_release_has_nothing_unresolved(tmp_path: Path) -> None:
    release = released(plan(resolve="full"))
    assert (release.left, release.unresolved_total, release.unresolved().num_rows) == (None, 0, 0)
    release.save(tmp_path / "out")
    assert not (tmp_path / "out" / UNRESOLVED).exists()


def with_cell(column: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        assert values[row] != value
        values[row] = value
        return table.set_column(table.column_names.index(column), column, pa.array(values, table[column].type))

    return change


def add(column: str, row: int, by: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: with_cell(column, row, table[column][row].as_py() + by)(table)


def twice_at_the_end(table: pa.Table) -> pa.Table:
    """Let the last row be of the same node as the one before it."""
    last = table.num_rows - 1
    return pa.concat_tables([table.slice(0, last), table.slice(last - 1, 1)])


FORGERIES: list[tuple[str, Callable[[pa.Table], pa.Table], str]] = [
    ("a count", add("count", 0, 1), "counts.parquet with unresolved.parquet sums to 2,501, but the card says 2,500"),
    ("a count of zero", with_cell("count", 0, 0), "a remainder is a count above zero at a level above the leaves"),
    ("a lower bound", add("lower", 1, 1), "unresolved.parquet, row 2:"),
    ("an upper bound", add("upper", -1, -1), "stands where the measurements give"),
    ("a code of no hierarchy", with_cell("destination", -1, "?"), "a code is not in its hierarchy"),
    ("another node", with_cell("destination", -6, "Dz"), ""),
    ("a node that stands already", twice_at_the_end, "a node stands twice, or out of order"),
    ("a level", with_cell("level", -1, 4), "a count above zero at a level above the leaves"),
    ("a coarser level", with_cell("level", -1, 0), "has a code at a level where it is not refined"),
    ("the order", lambda table: table.take(list(range(table.num_rows))[::-1]), "a node stands twice, or out of order"),
    ("a row twice", lambda table: pa.concat_tables([table.slice(0, 1), table]), "a node stands twice, or out of order"),
    ("a row less", lambda table: table.slice(1), "but the card says 2,500"),
    ("a column", lambda table: table.drop_columns(["upper"]), "has the columns level, destination, origin, count, low"),
]


@pytest.mark.parametrize(("change", "message"), [one[1:] for one in FORGERIES], ids=[one[0] for one in FORGERIES])
def test_a_changed_remainder_is_found_even_if_the_forger_puts_the_hashes_right(
    change: Callable[[pa.Table], pa.Table], message: str, folder: Path
) -> None:
    assert tt.Release.load(folder).unresolved().num_rows > 3
    edit_table(folder, UNRESOLVED, change)
    found = findings(folder)
    assert any(message in finding for finding in found), found


def test_a_changed_byte_of_it_is_found(folder: Path) -> None:
    data = bytearray((folder / UNRESOLVED).read_bytes())
    for place in range(0, len(data), 97):
        damaged = data.copy()
        damaged[place] ^= 1
        (folder / UNRESOLVED).write_bytes(damaged)
        assert findings(folder)


def test_a_missing_table_of_remainders_is_found(folder: Path) -> None:
    (folder / UNRESOLVED).unlink()
    assert f"{UNRESOLVED} is missing" in findings(folder)


def test_remainders_that_the_plan_has_no_place_for_are_found(folder: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    released(plan(resolve="full", confidence=None)).save(full)
    left = pq.read_table(folder / UNRESOLVED, columns=["level", "destination", "origin", "count"])
    pq.write_table(left, full / UNRESOLVED, compression="zstd", store_schema=False)
    card = card_of(full)
    total = sum(left["count"].to_pylist())
    card["files"].append({"path": UNRESOLVED, "rows": left.num_rows, "bytes": 0, "sha256": ""})
    card["released"]["total"] += total
    card["released"]["unresolved"] = {"total": total, "nodes": left.num_rows}
    (full / "card.json").write_text(json.dumps(card), encoding="utf-8")
    edit_table(full, UNRESOLVED, lambda table: table)
    assert f"{UNRESOLVED} is there, or is missing, against the plan" in findings(full)


def test_a_damaged_table_of_remainders_is_one_message(folder: Path) -> None:
    (folder / UNRESOLVED).write_bytes(b"PAR1")
    with pytest.raises(ReleaseError, match="cannot be read"):
        tt.Release.load(folder)


def test_a_verdict_counts_what_is_unresolved(pristine: Path) -> None:
    release = tt.Release.load(pristine)
    said = [verdict.subject for verdict in tt.check(pristine)]
    told = f"{release.unresolved_total:,} at {release.unresolved().num_rows:,} nodes"
    assert f"5 levels add up with what is unresolved ({told}) to the same total, 2,500, node by node" in said


def inside(code: str | None, whole: str) -> bool:
    """Whether all leaves that a code stands for lie in another; no code stands for everything."""
    return all(leaf.startswith(whole) for leaf in CODES.tolist() if leaf.startswith(code or ""))


def boxes() -> Iterator[dict[str, str]]:
    codes = [None, "A", "C", "D", "Ax", "Cx", "Dz"]
    for origin, destination in product(codes, codes):
        yield {name: code for name, code in (("origin", origin), ("destination", destination)) if code is not None}


@pytest.mark.parametrize("run", [0, 1])
def test_a_query_counts_a_remainder_where_its_whole_node_is_asked_for(run: int) -> None:
    release = released(run=run)
    leaves, left = release.table().to_pylist(), release.unresolved().to_pylist()
    counted = 0
    for box in boxes():
        expected = sum(row["count"] for row in leaves if all(inside(row[name], code) for name, code in box.items()))
        extra = sum(row["count"] for row in left if all(inside(row[name], code) for name, code in box.items()))
        assert release.query(**box) == release.where(**box).total == expected + extra
        assert release.where(**box).unresolved_total == extra
        counted += bool(box) and extra > 0
    assert counted > 3
    assert release.query() == release.total == 2500


@pytest.mark.parametrize(
    "levels",
    [
        ["destination.state"],
        ["origin.state"],
        ["destination.county"],
        ["origin.county"],
        ["origin.county", "destination.state"],
        ["destination.county", "origin.county"],
        ["origin.county", "origin.state"],
    ],
)
def test_a_table_by_levels_counts_a_remainder_where_it_is_resolved_so_far(levels: list[str]) -> None:
    release = released()
    needed = max(SPINE.level(level).index for level in levels)
    counts: dict[tuple[str, ...], int] = {}
    for row in [*release.table().to_pylist(), *release.unresolved().to_pylist()]:
        if row.get("level", len(SPINE.levels)) >= needed:
            codes = [row[level.split(".")[0]] for level in levels]
            key = tuple(
                code[:1] if level.endswith("state") else code for code, level in zip(codes, levels, strict=True)
            )
            counts[key] = counts.get(key, 0) + row["count"]
    found = {tuple(row[level] for level in levels): row["count"] for row in release.table(levels).to_pylist()}
    assert found == counts
    assert sum(found.values()) < 2500 or needed <= 1


def test_records_are_of_the_leaves_only() -> None:
    release = released()
    assert release.unresolved_total > 0
    assert release.records().num_rows == release.total - release.unresolved_total


STATES = tt.Spine(["place.state", "place.county"], {"place": PLACE})
COUNTIES = [400, 200, 8, 300, 5, 250, 30, 20, 10, 6]


def by_state(run: int, neighbours: str = "replace", **more: Any) -> tt.Release:
    planned = plan(STATES, Fraction(1, 50), neighbours, confidence=0.9, **more)
    return tt.make_release(
        planned, pa.table({"place": np.repeat(CODES, COUNTIES)}), tt.RunOptions(testing_key=run.to_bytes(32, "big"))
    )


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_an_interval_is_the_measurement_less_those_of_the_named_children_and_all_their_margins(neighbours: str) -> None:
    risk = Fraction(1, 10)
    checked = 0
    for run in range(30):
        release = by_state(run, neighbours)
        evidence, left = release.evidence, release.left
        assert evidence is not None and left is not None
        states, counties = evidence.levels
        own, below = evidence.laws[1], evidence.laws[2]
        assert own is not None and below is not None
        for i in np.flatnonzero(left.level == 1).tolist():
            code = release.unresolved()["place"][i].as_py()
            row = release.level("place.state")["place"].to_pylist().index(code)
            named = pc.starts_with(release.table()["place"], code).to_numpy()
            children = sum(county.startswith(code) for county in CODES.tolist())
            margin, each = (law.margin(risk / (children + 1)) for law in (own, below))
            value = int(states.measured[row])
            middle = value - int(counties.measured[named].sum())
            slack = margin + int(named.sum()) * each
            unnamed = (children - int(named.sum())) * max(int(counties.highest[row]) + each, 0)
            lower, upper = (release.unresolved()[name][i].as_py() for name in ("lower", "upper"))
            assert lower == max(middle - slack, 0)
            assert upper == max(min(middle + slack, value + margin, unnamed), lower)
            checked += 1
    assert checked > 20


def misses(spine: tt.Spine, planned: tt.Plan, counts: list[int], runs: int) -> tuple[int, int]:
    """How many remainders' intervals miss the true count of the children that are not named, of how many."""
    true = dict(zip(spine.trees[0].codes[-1].to_pylist(), counts, strict=True))
    missed = number = 0
    for run in range(runs):
        table = pa.table({"place": list(true), "count": counts}).filter(pc.field("count") > 0)
        release = tt.make_release(planned, table, tt.RunOptions(count="count", testing_key=run.to_bytes(32, "big")))
        for row in release.unresolved().to_pylist():
            below = spine.levels[row["level"]].name
            inside = [county for county in true if row["place"] is None or county.startswith(row["place"])]
            named = release.level(below)["place"].to_pylist()
            unnamed = [county for county in inside if not any(county.startswith(code) for code in named)]
            missed += not row["lower"] <= sum(true[county] for county in unnamed) <= row["upper"]
            number += 1
    return missed, number


@pytest.mark.parametrize("resolve", [{"sigmas": 1}, {"sigmas": 3}, {"fdr": 0.2}], ids=str)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_of_remainders_hold_at_least_as_often_as_they_say(resolve: Any, neighbours: str) -> None:
    planned = plan(STATES, Fraction(1, 50), neighbours, resolve=resolve, confidence=0.9)
    missed, number = misses(STATES, planned, COUNTIES, 150)
    assert number > 100
    assert missed <= 0.1 * number


def test_intervals_hold_where_only_those_are_named_that_the_noise_raised() -> None:
    """All counts are alike and below the noise: who is named is decided by the noise alone."""
    flat = tt.Hierarchy.flat([f"{i:03d}" for i in range(300)])
    spine = tt.Spine(["place"], {"place": flat})
    planned = plan(spine, Fraction(1, 450), resolve={"fdr": 0.3}, confidence=0.9)
    missed, number = misses(spine, planned, [10] * 300, 100)
    named = [
        tt.make_release(planned, pa.table({"place": np.repeat(flat.codes[-1].to_pylist(), 10)})).count
        for _ in range(20)
    ]
    assert sum(map(len, named)) > 5
    assert number == 100
    assert missed <= 10


def test_an_only_child_takes_over_the_measurement_of_its_parent() -> None:
    """The remainder of a county below a state without other counties rests on the state's measurement."""
    tree = tt.Hierarchy.from_prefixes(["A1x", "A1y", "B1x", "B2x"], widths=[1, 2], levels=["a", "b", "c"])
    spine = tt.Spine(["place.a", "place.b", "place.c"], {"place": tree})
    planned = plan(spine, Fraction(1, 50), confidence=0.9)
    for run in range(40):
        table = pa.table({"place": np.repeat(["A1x", "A1y", "B1x"], [300, 12, 200])})
        release = tt.make_release(planned, table, tt.RunOptions(testing_key=run.to_bytes(32, "big")))
        evidence, left = release.evidence, release.left
        assert evidence is not None and left is not None
        if left.level.tolist() != [2] or release.unresolved()["place"][0].as_py() != "A1":
            continue
        assert evidence.levels[1].measured[0] == NOTHING
        own, below = evidence.laws[1], evidence.laws[3]
        assert own is not None and below is not None
        middle = int(evidence.levels[0].measured[0] - evidence.levels[2].measured[0])
        risk = Fraction(1, 10) / 3
        lower, _ = remainder_intervals(release.measured, 0.9)
        assert lower.tolist() == [max(middle - own.margin(risk) - below.margin(risk), 0)]
        return
    pytest.fail("no run left a remainder at A1 alone")


FILE = """
title = "Trips"
[attributes.place]
hierarchy = "places.csv"
levels = ["state", "county"]
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 0.02
[release]
resolve = { sigmas = 3 }
"""


def test_the_command_line_says_how_much_is_resolved_and_measures_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("places.csv").write_text("state,county\n" + "".join(f"{code[0]},{code}\n" for code in CODES))
    Path("plan.toml").write_text(FILE)
    rows = np.repeat(CODES, COUNTIES).tolist()
    Path("trips.csv").write_text("place\n" + "".join(f"{code}\n" for code in rows))
    main(["release", "plan.toml", "trips.csv", "--out", "out"])
    said = capsys.readouterr().out
    release = tt.Release.load("out")
    share = 1 - release.unresolved_total / release.total
    assert f"{len(rows):,}: {share:.1%} of it is resolved to {len(release.count)} leaves" in said
    assert f"{release.unresolved_total:,} stand at" in said and "unresolved.parquet" in said
    main(["release", "plan.toml", "trips.csv", "--out", "again", "--json"])
    left = json.loads(capsys.readouterr().out)["unresolved"]
    assert left == {"total": (again := tt.Release.load("again")).unresolved_total, "nodes": again.unresolved().num_rows}
    main(["check", "out", "--truth", "trips.csv", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["verified"]
    assert [level["resolved"] for level in report["errors"]["levels"]][-1] == pytest.approx(share)


def test_the_card_says_what_unresolved_means() -> None:
    def words(**more: Any) -> str:
        card = in_words(tt.make_release(plan(**more), trips(), tt.RunOptions(testing_key=bytes(32))).card)
        return " ".join([*card["post_processing"], *card["caveats"], card["accuracy"]["bound"]])

    rate, sigmas, full = words(resolve={"fdr": 0.05}), words(), words(resolve="full")
    assert "the proportion of truly empty ones among the named is at most 5 % in expectation" in rate
    assert "The rate of 5 % bounds the mean of one proportion: of the nodes that one release names at a level" in rate
    assert "from 3 standard deviations of its noise up" in sigmas
    for said in (rate, sigmas):
        assert "was left at their parent, as unresolved" in said
        assert "An only child, which is not measured, was tested with the measurement of its parent" in said
        assert "A leaf that is not listed is not a released zero" in said
        assert "All named counts of a level" in said
        assert "everything below them is released as zero" not in said
    assert "unresolved" not in full
    assert "A leaf that is not listed is released as zero" in full
