"""`treetop plan --advise`: which tables to measure, and `--total`: what a release would be worth."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.commands import Command
from tests.everyday import plan_file, write
from treetop import read_plan
from treetop.advice import design

NONE = ('order = "destination-first"', 'order = "destination-first"  # by the board\nmargins = "none"')
DATA = 'source = "trips.csv"\n'

run = Command.of("plan")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    folder = write(tmp_path, plan_file(NONE, ("[unit]", "# who\n[unit]"), data=DATA))
    (folder / "twin.csv").write_text((folder / "trips.csv").read_text() + "n1,s1\nn2,s1\n")
    return folder / "plan.toml"


def test_the_advice_is_what_the_library_gives(plan: Path) -> None:
    told = run.json(plan, "--advise", "--care", "origin totals", "--care", "leaves=3")
    found = design(read_plan(plan).plan, ["origin totals", "leaves=3"])
    assert told["design"] == json.loads(json.dumps(found.to_dict()))
    assert [row["counts"] for row in told["design"]["tables"]] == [
        "origin region", "origin town", "destination town × origin town",
    ]  # fmt: skip
    assert told["outlook"] is None
    shown = run(plan, "--advise", "--care", "origin totals", "--care", "leaves=3")
    for row in told["design"]["tables"]:
        assert f"{row['error_before']:,.4g}" in shown and f"{row['error']:,.4g}" in shown
    assert told["toml"] in shown and "No private data was read." in shown


def test_the_advice_can_be_written_and_all_else_stays(plan: Path) -> None:
    out = plan.parent / "advised.toml"
    told = run.json(plan, "--advise", "--write", out)
    before, after = tomllib.loads(plan.read_text()), tomllib.loads(out.read_text())
    merged = ["destination.region", "origin.region", "destination.town * origin.town"]
    assert after["spine"] == {"order": merged, "margins": "each"}
    assert {**after, "spine": before["spine"], "loss": before["loss"]} == before
    assert {name: after["loss"][name] for name in ("epsilon", "delta")} == before["loss"]
    assert "# who\n[unit]" in out.read_text()
    advised = read_plan(out).plan
    shares = {part.name: float(part.share) for part in advised.workload if part.is_measured}
    assert shares == pytest.approx(told["design"]["split"])
    # What was written is as good as it gets: to ask again changes next to nothing.
    assert run.json(out, "--advise")["design"]["gain"] == pytest.approx(1, abs=0.01)
    assert out.read_text().startswith(plan.read_text().partition("[spine]")[0])


def test_an_order_that_is_another_is_written_in_place_of_a_list_over_several_lines(plan: Path) -> None:
    splits = ["origin.region", "origin.town", "destination.region", "destination.town"]
    listed = "order = [  # coarse\n" + "".join(f'    "{split}",  # ]\n' for split in splits) + "]"
    plan.write_text(plan_file((NONE[0], listed), data=DATA))
    out = plan.parent / "advised.toml"
    told = run.json(plan, "--advise", "--care", "region pairs", "--care", "leaves", "--write", out)
    after = tomllib.loads(out.read_text())
    assert after["spine"]["order"] == told["design"]["spine"] != splits
    assert list(read_plan(out).plan.spine.splits) == told["design"]["spine"]


def test_a_twin_shows_what_released_counts_would_gain(plan: Path) -> None:
    told = run.json(plan, "--advise", "--twin", plan.parent / "twin.csv", "--runs", "3")
    assert told["design"]["twin"].startswith("public table")
    assert all(row["tried"] > 0 and row["tried_before"] > 0 for row in told["design"]["tables"])
    assert told["outlook"]["total"] == 602
    shown = run(plan, "--advise", "--twin", plan.parent / "twin.csv", "--runs", "3")
    assert "twin: now" in shown and "whether the public table is the private one" in shown
    prior = ("--prior", plan.parent / "twin.csv", "--prior-source", "made up", "--runs", "3")
    assert run.json(plan, "--advise", *prior)["design"]["tables"] == told["design"]["tables"]


def test_the_private_table_is_no_twin(plan: Path) -> None:
    assert "the private table itself" in run.fails(plan, "--advise", "--twin", plan.parent / "trips.csv", code=3)


def test_a_plan_with_exact_accounting_is_designed_too(plan: Path) -> None:
    plan.write_text(plan.read_text().replace("delta = 1e-8", 'delta = 1e-8\naccounting = "exact"'))
    out = plan.parent / "advised.toml"
    assert run.json(plan, "--advise", "--write", out)["design"]["gain"] > 1
    assert tomllib.loads(out.read_text())["loss"]["accounting"] == "exact"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--care", "leaves"], "--care needs --advise"),
        (["--advise", "--target", "town=20"], "give --advise or --target, not both"),
        (["--advise", "--epsilon-grid", "1,2"], "give --advise or --epsilon-grid, not both"),
        (
            ["--advise", "--prior", "a.csv", "--prior-source", "b", "--weight", "town=2"],
            "give --advise or --weight, not both",
        ),
        (["--advise", "--prior", "a.csv", "--twin", "b.csv"], "give --twin or --prior"),
        (["--advise", "--care", "villages"], "there is no attribute 'villages'"),
        (["--advise", "--total", "0"], "about how many records there are"),
        (["--total", "-5"], "about how many records there are"),
    ],
)
def test_a_mistake_is_told_in_one_message(plan: Path, arguments: list[str], message: str) -> None:
    told = run.fails(plan, *arguments)
    assert message in " ".join(told.split())


def test_a_total_shows_what_would_be_mostly_noise(plan: Path) -> None:
    told = run.json(plan, "--total", "2e2")["outlook"]
    assert told["total"] == 200 and told["verdict"] != "better than zeros"
    assert [one["name"] for one in told["tables"] if one["mostly_noise"]] == ["origin.town"]
    shown = run(plan, "--total", "2e2")
    for sentence in told["sentences"]:
        assert sentence in shown
    assert "Verdict, if there are about 200 records" in shown
    assert run.json(plan)["outlook"] is None and "Verdict" not in run(plan)


def test_a_plan_without_a_number_says_in_one_line_how_to_get_a_verdict(plan: Path) -> None:
    last = run(plan).strip().splitlines()[-1]
    assert last.startswith("No verdict") and "--total" in last and "records = 10000 under [data]" in last


def test_the_number_is_asked_once_and_kept_in_the_plan(plan: Path) -> None:
    plan.write_text(f"{plan.read_text()}records = 200\n")
    assert run.json(plan)["outlook"]["total"] == 200 and "Verdict, if there are about 200 records" in run(plan)
    assert run.json(plan, "--total", "300")["outlook"]["total"] == 300


def test_units_that_are_public_need_no_total(plan: Path) -> None:
    plan.write_text(plan.read_text().replace("contributions = 1", "contributions = 1\npopulation = 2000"))
    assert run.json(plan)["outlook"]["total"] == 2000
    assert run.json(plan, "--advise", "--total", "3000")["outlook"]["total"] == 3000
