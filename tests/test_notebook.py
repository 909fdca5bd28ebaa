"""What the command line has, a notebook has: the functions behind the commands, by their public names."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from tests.commands import said
from treetop.errors import LossError, PlanError, ReleaseError

PLAN = """
title = "Trips"
[attributes.place]
column = "home"
hierarchy = "places.csv"
levels = ["region", "town"]
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
[data]
source = "trips.csv"
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    towns = ["n1", "n2", "s1", "s2", "s3"]
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{town[0].upper()},{town}\n" for town in towns))
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "trips.csv").write_text("home\n" + "".join(f"{town}\n" * 60 for town in towns))
    (tmp_path / "last-year.csv").write_text("home\n" + "".join(f"{town}\n" * 50 for town in towns))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_advice_is_what_the_command_tells_and_can_be_published(desk: Path) -> None:
    answer = tt.loss_for("plan.toml", ["town=20"])
    told = json.loads(said(["plan", "plan.toml", "--target", "town=20", "--json"], desk).out)
    assert answer["loss"] == told["answer"]["loss"]
    trials = tt.try_out("plan.toml", "last-year.csv", runs=2)
    assert trials.table.column_names[:2] == ["level", "name"] and trials["runs"] == 2
    told = json.loads(said(["plan", "plan.toml", "--twin", "last-year.csv", "--runs", "2", "--json"], desk).out)
    assert told["trials"] == json.loads(json.dumps(trials.to_dict()))
    assert tt.outlook("plan.toml", 300)["total"] == 300
    done = tt.publish(answer.plan, "trips.csv", "out", tt.RunOptions(columns={"place": "home"}, testing_key=bytes(32)))
    assert done.release.total == 300


def test_advice_by_a_prior_weighs_every_level_of_a_short_name(desk: Path) -> None:
    heavy, even = (
        tt.split_for("plan.toml", "last-year.csv", prior_source="last year", weights=weights)
        for weights in ({"town": 9}, None)
    )
    assert heavy.column("share")[-1] > even.column("share")[-1]


def test_advice_that_makes_no_sense_is_refused(desk: Path) -> None:
    with pytest.raises(LossError, match="a pure loss has no delta"):
        tt.loss_for("plan.toml", ["town=20"], pure=True, delta=1e-8)
    with pytest.raises(PlanError, match="say where last-year.csv is from"):
        tt.split_for("plan.toml", "last-year.csv")
    with pytest.raises(PlanError, match="only a plan file says how"):
        tt.try_out(tt.read_plan("plan.toml").plan, "last-year.csv")


def test_a_plan_is_summed_up_as_the_command_does(desk: Path) -> None:
    told = said(["plan", "plan.toml", "--json"], desk).out
    assert json.loads(json.dumps(tt.plan_summary("plan.toml"))) == json.loads(told)


def test_a_release_is_compared_with_the_truth_and_estimated_again(desk: Path) -> None:
    tt.publish("plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out="out")
    errors = tt.compare_with_truth("out", "trips.csv")
    assert [row.name for row in errors.levels] == ["total", "place.region", "place.town"]
    assert errors.levels[0].largest == 0 and errors.tally.dropped == 0
    assert tt.compare_with_truth("out", "trips.csv", plan="plan.toml").levels == errors.levels
    with pytest.raises(ReleaseError, match="never write it into the release folder"):
        tt.compare_with_truth("out", "trips.csv", plot="out/errors.png")
    differences = tt.level_differences(tt.Release.load("out"))
    assert [one.name for one in differences] == ["total", "place.region", "place.town"]
    again = tt.reestimate("out", "again")
    assert tt.Release.load("again").card["id"] == again.card["id"]
    assert all(verdict.verified for verdict in tt.check("again"))
    with pytest.raises(ReleaseError, match="is the release itself"):
        tt.reestimate("out", "out", force=True)


def test_mechanisms_are_compared_in_memory_or_in_a_folder(desk: Path) -> None:
    found = tt.compare_mechanisms("plan.toml", mechanisms=["inftda", "sh"], repeat=1, jobs=1)
    assert found.files == () and [trial.setting.mechanism for trial in found.comparison.trials] == ["inftda", "sh"]
    written = tt.compare_mechanisms("plan.toml", out="compared", mechanisms=["sh"], repeat=1, jobs=1, plots=False)
    assert [file.name for file in written.files] == ["results.parquet", "summary.md"]
    with pytest.raises(PlanError, match="choose tight, paper, or both"):
        tt.compare_mechanisms("plan.toml", accounting=["loose"])


def test_a_table_is_inspected_and_a_plan_drafted(desk: Path) -> None:
    inspection = tt.inspect_table(tt.Source("trips.csv"), tt.Source("places.csv"))
    assert "[attributes.home]" in tt.draft_plan(inspection)


def test_a_release_in_memory_is_charged_and_recorded_when_it_is_saved(tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["town"], {"town": tt.Hierarchy.flat(["a", "b"], level="town")}),
        tt.Unit("person", neighbours="replace"),
        tt.Loss(rho=1),
        title="People",
    )
    book = tt.Ledger.create(tmp_path / "ledger", loss=tt.Loss(rho=2), datasets=("people",))
    table = pa.table({"town": ["a"] * 9 + ["b"]})
    release = tt.make_release(
        plan, table, tt.RunOptions(ledger=tmp_path / "ledger", dataset="people", description="A small town.")
    )
    assert release.card["composition"]["charged"]["exact"] == "1"
    assert release.card["description"] == "A small town."
    assert [entry.state for entry in book.entries()] == ["reserved, outcome unknown"]
    release.save(tmp_path / "first")
    release.save(tmp_path / "second", nodes=True)
    assert [entry.state for entry in book.entries()] == ["complete"]
    assert not any(one.findings for one in tt.check(tmp_path / "first"))
    tt.make_release(plan, table, tt.RunOptions(ledger=book, dataset="people"))
    with pytest.raises(tt.TreetopError, match="budget"):
        tt.make_release(plan, table, tt.RunOptions(ledger=book, dataset="people"))
    assert len(book.entries()) == 2
    with pytest.raises(tt.TreetopError, match="is about a ledger"):
        tt.make_release(plan, table, tt.RunOptions(dataset="people"))
    with pytest.raises(tt.TreetopError, match="older copy"):  # of a ledger that is open already, too
        tt.make_release(plan, table, tt.RunOptions(ledger=book, dataset="people", expect_head="0" * 64))


def test_what_is_estimated_again_is_not_recorded_as_what_was_charged_for(tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Spine(["town"], {"town": tt.Hierarchy.flat(["a", "b"], level="town")}),
        tt.Unit("person", neighbours="replace"),
        tt.Loss(rho=1),
    )
    book = tt.Ledger.create(tmp_path / "ledger", loss=tt.Loss(rho=2))
    release = tt.make_release(
        plan, pa.table({"town": ["a"] * 9 + ["b"]}), tt.RunOptions(ledger=book, keep_measurements=True)
    )
    release.reestimated().save(tmp_path / "again")
    assert [entry.state for entry in book.entries()] == ["reserved, outcome unknown"]
    release.save(tmp_path / "first")
    assert [entry.state for entry in book.entries()] == ["complete"]
