"""`treetop demo`: a release of the shipped data, with its accuracy per level and the truth beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import treetop as tt
from tests.commands import said


def test_the_demo_shows_the_plan_the_release_and_the_truth() -> None:
    run = said(["demo"])
    assert run.code == 0
    for shown in (
        "± one, 95%",
        "destination region × origin region",
        "Released: 3,000,000 flights",
        "origin=CA destination=TX",
    ):
        assert shown in run.out


def test_the_demo_draws_a_map_when_asked(tmp_path: Path) -> None:
    assert "treetop demo --map map.html" in said(["demo"]).out
    run = said(["demo", "--map", str(tmp_path / "map.html")])
    assert run.code == 0
    assert f"Open {tmp_path / 'map.html'} in a browser." in run.out
    assert "Flights between US airports" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_the_demo_for_machines_is_near_the_truth_and_can_be_kept(tmp_path: Path) -> None:
    run = said(["demo", "--json", "--out", str(tmp_path / "kept")])
    assert run.code == 0
    report = json.loads(run.out)
    assert report["total"] == 3_000_000
    noise = {row["name"]: row["noise"] for row in report["accuracy"]}
    for row in [*report["levels"], *report["margins"]]:
        assert row["largest"] <= 15 * noise[row["name"]]  # the noise is the same in every run
    assert {"origin"} in [set(query) & {"origin", "destination"} for query in report["queries"]]  # a total is asked
    for query in report["queries"]:
        assert query["released"] == pytest.approx(query["truth"], abs=15 * noise["origin.airport"])
    assert tt.Release.load(tmp_path / "kept").total == 3_000_000
