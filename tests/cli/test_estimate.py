"""`treetop estimate`: differences by level, tables of estimates, and a new release from kept measurements."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.commands import Command

TOWNS = ["A\x1b", "Ab", "Ac", "Ba", "Bb", "Ca"]
PLACE = tt.Hierarchy.from_prefixes(TOWNS, widths=[1], levels=["region", "town"])
SPINE = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"])})

run = Command.of("estimate", warning="Not private")  # every one here has a testing key


def released(**more: object) -> tt.Release:
    rng = np.random.default_rng(1)
    table = pa.table({"place": rng.choice(TOWNS[:4], 400), "sex": rng.choice(["f", "m"], 400)})
    unit = tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(SPINE, unit, tt.Loss(rho=0.1), title="Trips", **more)  # type: ignore[arg-type]
    return tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32), keep_measurements=True))


@pytest.fixture(scope="module")
def release() -> tt.Release:
    return released()


@pytest.fixture(scope="module")
def folder(release: tt.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("estimate") / "release"
    release.save(folder, nodes=True)
    return folder


def test_without_options_it_shows_differences_by_level_and_what_to_do_next(folder: Path, release: tt.Release) -> None:
    shown = run(folder)
    for level in ("total", "place region × sex", "place town × sex", "place town ", "typical sd", "mean difference"):
        assert level in shown
    assert f"Next: treetop estimate {folder} --level place.town" in shown
    assert f"Next: treetop estimate {folder} --out {folder}-estimated" in shown
    told = json.loads(run(folder, "--json"))
    levels, margins = ["total", "place.region", "sex", "place.town"], [one.margin.part for one in release.margins]
    assert [level["name"] for level in told["levels"]] == [*levels, *margins]
    towns = release.estimates("place.town")
    gaps = np.abs(np.subtract(towns["estimate"], towns["count"]))
    assert told["levels"][3] == {
        "name": "place.town",
        "counts": "place town × sex",
        "nodes": towns.num_rows,
        "released": release.table().num_rows,
        "sd": pytest.approx(float(np.median(towns["sd"]))),
        "difference": pytest.approx(float(gaps.mean())),
    }
    assert told["levels"][0]["sd"] == told["levels"][0]["difference"] == 0  # the total is public


def test_a_level_is_a_table_for_people_and_for_machines(folder: Path, release: tt.Release) -> None:
    expected = release.estimates("place.town")
    lines = run(folder, "--level", "place.town").splitlines()
    assert lines[0].split() == ["place", "sex", "estimate", "sd", "count"]
    assert len(lines) == expected.num_rows + 1
    rows = list(csv.DictReader(io.StringIO(run(folder, "--level", "place.town", "--csv"))))
    assert [float(row["estimate"]) for row in rows] == pytest.approx(expected["estimate"].to_pylist())
    assert [int(row["count"]) for row in rows] == expected["count"].to_pylist()
    told = json.loads(run(folder, "--level", "place.town", "--json"))
    assert told["rows"] == expected.to_pylist()
    assert told["left_out"] == 0


def test_a_limit_shows_the_largest_estimates(folder: Path) -> None:
    every = json.loads(run(folder, "--level", "place.town", "--json"))["rows"]
    told = json.loads(run(folder, "--level", "place.town", "--json", "--limit", "2"))
    assert told["rows"] == sorted(every, key=lambda row: -row["estimate"])[:2]
    assert told["left_out"] == len(every) - 2


def test_codes_that_drive_a_terminal_are_shown_harmless(folder: Path) -> None:
    shown = run(folder, "--level", "place.town")
    assert "\x1b" not in shown
    assert "A\N{REPLACEMENT CHARACTER}" in shown


def test_out_writes_a_release_of_lower_error_that_passes_its_check(
    folder: Path, release: tt.Release, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    told = json.loads(run(folder, "--out", out, "--json"))
    assert told["source"] == release.card["id"]
    assert told["next"] == f"treetop check {out}"
    assert not [finding for verdict in tt.check(out) for finding in verdict.findings]
    again = tt.Release.load(out)
    expected = release.reestimated()
    assert np.array_equal(again.nodes, expected.nodes)
    assert np.array_equal(again.count, expected.count)
    assert (told["total"], told["leaves"], told["id"]) == (again.total, len(again.count), again.card["id"])
    assert (out / "nodes.parquet").is_file()
    assert f"estimated again from release {release.card['id']}" in run(folder, "--out", out, "--force")
    assert "already" in run.fails(out, "--out", tmp_path / "third")
    assert "--out" not in run(out)  # there is nothing more to do


def test_coordinates_go_with_the_release(release: tt.Release, tmp_path: Path) -> None:
    from treetop.release.folder import drafted

    digest = SPINE.trees[0].digest
    places = pa.table({"code": TOWNS, "name": TOWNS, "latitude": [1.0] * 6, "longitude": [2.0] * 6})
    with drafted(release, tmp_path / "one", places={digest: places}) as draft:
        draft.place()
    run(tmp_path / "one", "--out", tmp_path / "two")
    assert pq.read_table(tmp_path / "two" / "places" / f"{digest}.parquet").equals(places)
    assert not [finding for verdict in tt.check(tmp_path / "two") for finding in verdict.findings]


def test_a_release_that_has_not_kept_its_measurements_says_what_to_do(tmp_path: Path) -> None:
    table = pa.table({"place": TOWNS, "sex": ["f"] * 6})
    unit = tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(SPINE, unit, tt.Loss(rho=1), confidence=None)
    tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32))).save(tmp_path / "release")
    for arguments in ((), ("--level", "sex"), ("--out", tmp_path / "again")):
        assert "`keep_measurements=True`" in run.fails(tmp_path / "release", *arguments)
    assert not (tmp_path / "again").exists()


def test_what_is_unresolved_is_estimated_but_not_released_again(tmp_path: Path) -> None:
    released(resolve={"sigmas": 3}).save(tmp_path / "release")
    assert "--out" not in run(tmp_path / "release")
    message = run.fails(tmp_path / "release", "--out", tmp_path / "again")
    assert "no place in a second estimate" in message


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--level", "sex", "--out", "x"], "choose one"),
        (["--level", "sex", "--csv", "--json"], "choose one"),
        (["--limit", "3"], "add --level"),
        (["--csv"], "add --level"),
        (["--force"], "--out NEW"),
        (["--level", "county"], "there is no level 'county'"),
    ],
)
def test_mistakes_in_the_call_say_what_to_do(folder: Path, arguments: list[str], told: str) -> None:
    assert told in run.fails(folder, *arguments)


def test_an_existing_folder_is_not_replaced_unless_forced(folder: Path) -> None:
    other = folder.with_name("other")
    other.mkdir()
    assert "exists already" in run.fails(folder, "--out", other)
    assert "is the release itself" in run.fails(folder, "--out", folder, "--force")
