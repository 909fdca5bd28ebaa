"""Bottom-up: leaves alone are measured, with the whole loss, and all else is sums of them; released like any plan."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop import cli
from treetop.card import in_words
from treetop.errors import PlanError, SpineError

CODES = [f"{region}{town}" for region, towns in (("A", 4), ("B", 2), ("C", 1)) for town in range(towns)]
PLACES = tt.Hierarchy.from_prefixes(CODES, widths=[1], levels=["region", "town"])
SPINE = tt.Spine.bottom_up({"destination": PLACES, "origin": PLACES})
TRIP = tt.Unit("trip", neighbours="replace")
LOSS = tt.Loss(epsilon=1, delta=1e-8)


def trips(number: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(5)
    weight = 1 / np.arange(1, len(CODES) + 1)
    ends = rng.choice(CODES, (2, number), p=weight / weight.sum())
    return pa.table({"origin": ends[0], "destination": ends[1]})


def released(**options: Any) -> tt.Release:
    return tt.make_release(
        tt.Plan(SPINE, TRIP, LOSS, margins="none"), trips(), tt.RunOptions(testing_key=bytes(32), **options)
    )


def test_leaves_alone_are_measured_and_have_the_noise_of_the_whole_loss() -> None:
    plan = tt.Plan(SPINE, TRIP, LOSS, margins="none")
    assert [level.name for level in plan.levels] == ["total", "destination.town * origin.town"]
    assert [float(level.share) for level in plan.levels if level.is_measured] == [1.0]
    levels = tt.Plan(tt.Spine.destination_first(origin=PLACES, destination=PLACES), TRIP, LOSS, margins="none")
    ratio = levels.levels[-1].law.standard_deviation / plan.levels[-1].law.standard_deviation
    assert ratio == pytest.approx(2, rel=0.02)  # four levels would have a quarter of it each
    assert SPINE.goes_past == ["destination.region", "origin.region"] and SPINE.depths(1) == (2, 2)


def test_all_above_is_the_sum_of_the_leaves_and_has_intervals() -> None:
    release = released()
    assert release.total == 3_000
    leaves = release.table(["origin.town", "destination.town"]).to_pylist()
    regions = release.table(["origin.region", "destination.region"]).to_pylist()
    for row in regions:
        own = [leaf["count"] for leaf in leaves if leaf["origin.town"][0] == row["origin.region"]
               and leaf["destination.town"][0] == row["destination.region"]]  # fmt: skip
        assert row["count"] == sum(own) and row["lower"] <= row["count"] <= row["upper"]
    assert sum(row["count"] for row in release.table("origin.region").to_pylist()) == release.total
    assert release.query(origin="A", destination="B") == next(
        row["count"] for row in regions if (row["origin.region"], row["destination.region"]) == ("A", "B")
    )


def test_intervals_of_sums_hold_the_truth() -> None:
    true = Counter(code[0] for code in trips()["origin"].to_pylist())
    held, seen = 0, 0
    for seed in range(40):
        release = tt.make_release(
            tt.Plan(SPINE, TRIP, LOSS, margins="none"), trips(), tt.RunOptions(testing_key=bytes([seed] * 32))
        )
        for row in release.table("origin.region").to_pylist():
            seen += 1
            held += row["lower"] <= true[row["origin.region"]] <= row["upper"]
    assert held / seen >= 0.95


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_it_is_saved_checked_and_read_again(neighbours: str, tmp_path: Path) -> None:
    unit = tt.Unit("trip", neighbours=neighbours)  # type: ignore[arg-type]
    release = tt.make_release(tt.Plan(SPINE, unit, LOSS, margins="none"), trips(), tt.RunOptions(testing_key=bytes(32)))
    release.save(tmp_path / "out")
    assert not [verdict for verdict in tt.check(tmp_path / "out") if verdict.findings]
    again = tt.Release.load(tmp_path / "out")
    assert again.spine.splits == SPINE.splits
    assert again.table("origin.region").equals(release.table("origin.region"))


def test_a_plan_file_asks_for_it_by_name_for_any_attributes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "places.csv").write_text("region,town\n" + "".join(f"{code[0]},{code}\n" for code in CODES))
    (tmp_path / "sexes.csv").write_text("sex\nf\nm\n")
    text = """
[attributes.place]
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.sex]
hierarchy = "sexes.csv"
levels = ["sex"]
[spine]
order = "bottom-up"
[unit]
entity = "person"
contributions = 1
neighbours = "add-remove"
[loss]
epsilon = 1
delta = 1e-8
split = "by-nodes"
"""
    (tmp_path / "plan.toml").write_text(text)
    plan = tt.read_plan(tmp_path / "plan.toml").plan
    assert plan.spine.splits == ("place.region > place.town * sex.sex",)
    assert plan.margins == "none" and plan.levels[-1].share > 0.75
    cli.main(["plan", str(tmp_path / "plan.toml"), "--total", "100000"])
    assert "place.town * sex" in capsys.readouterr().out
    (tmp_path / "table.csv").write_text("place,sex\n" + "A0,f\n" * 500 + "B1,m\n" * 300)
    tt.publish(tmp_path / "plan.toml", tmp_path / "table.csv", options=tt.RunOptions(ledger=None), out=tmp_path / "out")
    assert not [verdict for verdict in tt.check(tmp_path / "out") if verdict.findings]
    card = tt.Release.load(tmp_path / "out").card
    assert card["plan"]["spine"] == ["place.region > place.town * sex.sex"]
    assert "Not measured, and sums of what is measured below them: place.region." in str(in_words(card["mechanism"]))
    tt.export(tmp_path / "out", to="csv", out=tmp_path / "csv")
    with pytest.raises(SystemExit):
        cli.main(["plan", str(tmp_path / "plan.toml"), "--advise"])
    assert "the plan is bottom-up" in capsys.readouterr().err


def test_what_is_too_large_is_refused_with_its_number() -> None:
    codes = [f"{region:02d}{town:03d}" for region in range(5) for town in range(1000)]
    wide = tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["region", "town"])
    with pytest.raises(SpineError, match="noise is put on each of up to 25,000,000 counts, more than 16,777,216"):
        tt.Spine.bottom_up({"destination": wide, "origin": wide})


def test_margins_and_facts_of_sums_are_refused() -> None:
    with pytest.raises(PlanError, match="goes past destination.region, origin.region.*set margins to none"):
        tt.Plan(SPINE, TRIP, LOSS, margins="each")
    with pytest.raises(PlanError, match="leave the facts out"):
        tt.Plan(SPINE, TRIP, LOSS, margins="none", facts={"origin.region": {"A": 1, "B": 1, "C": 1}})


def test_levels_of_several_attributes_are_not_below_each_other() -> None:
    with pytest.raises(SpineError, match="join levels of one by >, and attributes by"):
        tt.Spine(["origin.region > destination.town"], {"destination": PLACES, "origin": PLACES})
    mixed = tt.Spine(["origin.region", "origin.town * destination.region > destination.town"],
                     {"destination": PLACES, "origin": PLACES})  # fmt: skip
    assert mixed.goes_past == ["destination.region"] and mixed.leaves == 49
    plan = tt.Plan(mixed, TRIP, LOSS, margins="none")
    release = tt.make_release(plan, trips(), tt.RunOptions(testing_key=bytes(32)))
    assert sum(row["count"] for row in release.table("destination.region").to_pylist()) == 3_000
