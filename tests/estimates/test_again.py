"""Releases of lower error: made at once or from kept measurements, saved, checked, and asked for estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import treetop as tt
from tests.forging import findings
from treetop.release.estimates._whole_numbers import lower_error
from treetop.release.measurements import measured_tree
from treetop.repair.least_squares import least_squares

TOWNS = [f"{region}{town}" for region in "ABCDEFGH" for town in "abcdef"] + ["Zz"]  # Z has one town
PLACE = tt.Hierarchy.from_prefixes(TOWNS, widths=[1], levels=["region", "town"])
KIND = tt.Hierarchy.flat(["p", "q", "r"])
SPINE = tt.Spine(["place.region", "place.town", "kind"], {"place": PLACE, "kind": KIND})
LEVELS = ["total", "place.region", "place.town", "kind"]


def table() -> pa.Table:
    rng = np.random.default_rng(7)
    share = rng.pareto(0.8, len(TOWNS))
    places = rng.choice(np.array(TOWNS), 900, p=share / share.sum())
    return pa.table({"place": places, "kind": rng.choice(["p", "q"], 900, p=[0.8, 0.2])})


TABLE = table()


def planned(neighbours: str = "replace", rho: float = 0.2, **more: object) -> tt.Plan:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    return tt.Plan(SPINE, unit, tt.Loss(rho=rho), title="Trips", **more, margins="none")  # type: ignore[arg-type]


def released(plan: tt.Plan, run: int = 0, keep: bool = True) -> tt.Release:
    return tt.make_release(plan, TABLE, tt.RunOptions(testing_key=run.to_bytes(32, "big"), keep_measurements=keep))


SUBJECT = "the counts, by least squares from the measurements that were kept"


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_plan_for_lower_error_releases_what_all_its_measurements_give(neighbours: str, keep: bool) -> None:
    release = released(planned(neighbours, prefer="lower-error"), keep=keep)
    kept = release.measurements
    assert kept.complete
    assert (kept.total is None) == (neighbours == "replace")
    nodes, count = lower_error(kept, len(TABLE) if kept.total is None else kept.total)
    assert np.array_equal(release.nodes, nodes)
    assert np.array_equal(release.count, count)
    assert release.card["plan"]["repair"] == "least-squares"


def test_without_intervals_and_unless_asked_nothing_is_kept() -> None:
    release = released(planned(prefer="lower-error", confidence=None), keep=False)
    assert release.evidence is None
    assert release.all_measured is None
    assert release.total == len(TABLE)
    again = released(planned(prefer="lower-error", confidence=None))
    assert np.array_equal(again.count, release.count)
    assert again.measurements.complete


@pytest.mark.parametrize("prefer", [None, "lower-error"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_saving_and_loading_keeps_every_file_as_it_is(tmp_path: Path, neighbours: str, prefer: str | None) -> None:
    release = released(planned(neighbours, prefer=prefer))
    release.save(tmp_path / "one", nodes=True)
    loaded = tt.Release.load(tmp_path / "one")
    loaded.save(tmp_path / "two", nodes=True)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*.*"))
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert loaded.measurements.complete
    assert loaded.measurements.table().equals(release.measurements.table())
    for level in LEVELS:
        assert loaded.level(level).equals(release.level(level))
        assert loaded.estimates(level).equals(release.estimates(level))
    assert loaded.table("kind").equals(release.table("kind"))
    assert loaded.interval(kind="r") == release.interval(kind="r")


def test_a_release_with_gone_nodes_keeps_more_than_what_lies_under_released_ones(tmp_path: Path) -> None:
    release = released(planned(prefer="lower-error", rho=0.02))
    release.save(tmp_path / "release")
    loaded = tt.Release.load(tmp_path / "release")
    assert loaded.all_measured is not None
    assert loaded.evidence is not None
    assert sum(len(level) for level in loaded.all_measured.levels if level is not None) > sum(
        len(level.slots) for level in loaded.evidence.levels
    )
    assert findings(tmp_path / "release") == []


@pytest.mark.parametrize("prefer", [None, "lower-error"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_check_passes_and_says_if_it_has_estimated_again(tmp_path: Path, neighbours: str, prefer: str | None) -> None:
    released(planned(neighbours, prefer=prefer)).save(tmp_path / "release")
    verdicts = {verdict.subject: verdict.findings for verdict in tt.check(tmp_path / "release")}
    assert (SUBJECT in verdicts) == (prefer is not None)
    assert not any(verdicts.values())


def test_check_finds_counts_that_the_measurements_do_not_give(tmp_path: Path) -> None:
    release = released(planned(prefer="lower-error"))
    count = release.count.copy()
    largest, other = np.argsort(count)[[-1, -2]]
    count[largest], count[other] = count[largest] + 1, count[other] - 1  # the same nodes and the same total
    replace(release, count=count).save(tmp_path / "release")
    wrong = {verdict.subject for verdict in tt.check(tmp_path / "release") if verdict.findings}
    assert wrong == {SUBJECT}


def change(path: Path, column: str, row: int, by: int) -> None:
    found = pq.read_table(path)
    values = found.column(column).to_pylist()
    values[row] += by
    at = found.column_names.index(column)
    pq.write_table(found.set_column(at, column, pa.array(values, pa.int64())), path, store_schema=False)


def test_check_finds_a_measurement_that_was_changed(tmp_path: Path) -> None:
    released(planned(prefer="lower-error")).save(tmp_path / "release")
    change(tmp_path / "release" / "measurements.parquet", "value", 3, 40)
    assert any("measurements.parquet has SHA-256" in finding for finding in findings(tmp_path / "release"))


def test_estimating_again_gives_the_counts_of_lower_error(tmp_path: Path) -> None:
    for neighbours in ("replace", "add-remove"):
        release = released(planned(neighbours))
        again = release.reestimated()
        kept = release.measurements
        nodes, count = lower_error(kept, release.total if kept.total is None else kept.total)
        assert np.array_equal(again.nodes, nodes)
        assert np.array_equal(again.count, count)
        assert not np.array_equal(again.table()["count"], release.table()["count"])
        assert again.measurements.table().equals(kept.table())


def test_estimating_again_from_a_folder_is_the_same_and_passes_its_check(tmp_path: Path) -> None:
    release = released(
        planned("add-remove", prefer="fewer-lost", split={"total": 1, "place.region": 2, "place.town": 3, "kind": 1})
    )
    release.save(tmp_path / "one")
    again = tt.Release.load(tmp_path / "one").reestimated()
    again.save(tmp_path / "two")
    assert findings(tmp_path / "two") == []
    assert again.table().equals(release.reestimated().table())
    loaded = tt.Release.load(tmp_path / "two")
    assert loaded.table().equals(again.table())
    assert loaded.card["plan"]["repair"] == "least-squares"


def test_the_card_says_where_the_measurements_come_from_and_that_nothing_was_spent() -> None:
    release = released(planned())
    again = release.reestimated()
    assert again.card["id"] != release.card["id"]
    assert again.card["description"] == (
        f"Estimated again from the measurements of release {release.card['id']}: nothing was spent."
    )
    assert again.card["loss"] == release.card["loss"]
    assert again.card["private"] is release.card["private"] is False
    assert again.card["plan"]["levels"] == release.card["plan"]["levels"]


def test_what_was_released_with_a_euclidean_repair_can_be_estimated_again() -> None:
    again = released(planned(repair="euclidean")).reestimated()
    assert again.card["plan"]["order"] == "ascending"
    assert again.total == len(TABLE)


@pytest.mark.parametrize("level", LEVELS)
def test_estimates_are_those_of_least_squares_with_the_released_counts_beside_them(level: str) -> None:
    release = released(planned("add-remove"))
    kept = release.measurements
    assert kept.total is not None
    tree = measured_tree(kept, kept.total)
    index = LEVELS.index(level)
    best = least_squares(tree)[index]
    found = release.estimates(level)
    codes = found.column_names[:-3]
    assert found.column_names == [*codes, "estimate", "sd", "count"]
    expected = {}
    for column, value, variance in zip(tree[index].nodes.T, best.value, best.variance, strict=True):
        pairs = zip(column, SPINE.trees, SPINE.depths(index), strict=True)
        key = tuple(tree.codes[depth - 1][int(node)].as_py() for node, tree, depth in pairs if depth)
        expected[key] = (value, np.sqrt(variance))
    counts = {tuple(row[name] for name in codes): row["count"] for row in release.level(level).to_pylist()}
    seen = set()
    for row in found.to_pylist():
        key = tuple(row[name] for name in codes)
        seen.add(key)
        assert row["count"] == counts.get(key, 0)
        if key in expected:
            assert (row["estimate"], row["sd"]) == pytest.approx(expected[key])
        else:
            assert key == ("Zz",)  # an only child, of which nothing was measured
    assert seen >= expected.keys() | counts.keys()


def test_estimates_of_only_children_are_those_of_their_parents() -> None:
    release = released(planned())
    region = {row["place"]: row for row in release.estimates("place.region").to_pylist()}["Z"]
    town = {row["place"]: row for row in release.estimates("place.town").to_pylist()}["Zz"]
    assert {**region, "place": "Zz"} == town


def test_estimates_without_a_level_are_of_the_leaves() -> None:
    release = released(planned())
    assert release.estimates().equals(release.estimates("kind"))
    assert release.estimates().num_rows > release.table().num_rows


def test_estimates_of_what_is_not_resolved_are_there_as_well() -> None:
    release = released(planned(resolve={"sigmas": 3}))
    for level in LEVELS:
        counts = release.level(level)["count"].to_pylist()
        assert sum(release.estimates(level)["count"].to_pylist()) == sum(counts)


def test_of_nothing_there_is_little_to_estimate(tmp_path: Path) -> None:
    plan = planned("add-remove", prefer="lower-error", rho=50.0)
    release = tt.make_release(plan, TABLE.slice(0, 0), tt.RunOptions(testing_key=bytes(32)))
    assert release.total == 0
    assert release.estimates("total").num_rows == 1
    assert release.estimates().num_rows == 0
    release.save(tmp_path / "release")
    assert findings(tmp_path / "release") == []


CODES = [{"kind": "r"}, {"kind": "q"}, {"place.town": "Aa"}, {"place": "Z"}, {"place.region": "B", "kind": "p"}]


def true_count(codes: dict[str, str]) -> int:
    asked = {name.partition(".")[0]: code for name, code in codes.items()}
    rows = zip(TABLE["place"].to_pylist(), TABLE["kind"].to_pylist(), strict=True)
    return sum(place.startswith(asked.get("place", "")) and kind == asked.get("kind", kind) for place, kind in rows)


def test_intervals_of_lower_error_miss_no_more_often_than_they_say() -> None:
    plan = planned(prefer="lower-error", rho=0.1, confidence=0.8)
    truth = [true_count(codes) for codes in CODES]
    runs, missed = 80, np.zeros(len(CODES), np.int64)
    for run in range(runs):
        release = released(plan, run)
        bounds = [release.interval(**codes) for codes in CODES]
        missed += [not lower <= count <= upper for (lower, upper), count in zip(bounds, truth, strict=True)]
    assert missed.max() <= stats.binom.ppf(1 - 1e-5, runs, 0.2)


def test_a_node_has_the_same_interval_in_its_table_and_by_its_codes() -> None:
    release = released(planned(prefer="lower-error", rho=0.05))
    for level in ("place.region", "place.town"):
        for row in release.level(level).to_pylist():
            assert release.interval(**{level: row["place"]}) == (row["lower"], row["upper"])


def test_sums_over_nodes_that_were_kept_for_their_noise_are_not_thought_too_large() -> None:
    # All towns are alike and near the noise, so that those with high children stay; their sums are too high.
    towns = [f"{town:04d}" for town in range(1000)]
    spine = tt.Spine(["place", "kind"], {"place": tt.Hierarchy.flat(towns), "kind": tt.Hierarchy.flat(list("pqrs"))})
    unit = tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(spine, unit, tt.Loss(rho=0.1), prefer="lower-error", confidence=0.9, margins="none")
    trips = pa.table({"place": np.repeat(towns, 3), "kind": ["p"] * 3000})
    runs, missed, selected = 25, 0, 0
    for run in range(runs):
        release = tt.make_release(plan, trips, tt.RunOptions(testing_key=run.to_bytes(32, "big")))
        for empty in "qrs":
            missed += release.interval(kind=empty).lower > 0
            selected += replace(release, all_measured=None).interval(kind=empty).lower > 0
    limit = stats.binom.ppf(1 - 1e-5, 3 * runs, 0.05)
    assert missed <= limit < selected  # released nodes alone are a selection, and would miss far too often


def test_unnamed_children_have_no_place_in_a_second_estimate() -> None:
    with pytest.raises(tt.TreetopError, match=r"no place in a second estimate: leave resolve out"):
        planned(prefer="lower-error", resolve={"fdr": 0.05})
    with pytest.raises(tt.TreetopError, match="no place in a second estimate"):
        released(planned(resolve={"fdr": 0.05})).reestimated()


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_without_all_measurements_there_are_no_estimates(
    confidence: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treetop.release.run.FEW_NODES", 10)
    release = released(planned(confidence=confidence), keep=False)
    for ask in (release.estimates, release.reestimated):
        with pytest.raises(tt.TreetopError, match="`keep_measurements=True`"):
            ask()


def test_a_release_of_lower_error_and_a_part_of_a_release_are_not_estimated_again() -> None:
    release = released(planned(prefer="lower-error"))
    with pytest.raises(tt.TreetopError, match="already"):
        release.reestimated()
    with pytest.raises(tt.TreetopError, match="whole release"):
        release.where(kind="p").estimates()
