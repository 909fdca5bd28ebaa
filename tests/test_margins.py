"""Margins in plans, releases and folders: names, shares, answers with a margin's own interval, and what check finds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.card import in_words
from treetop.domain.marginal import exact_margins, margins_of, title_of
from treetop.errors import LossError, ReleaseError, SpineError

PLACES = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "NSE" for b in "12345"], widths=[1], levels=["region", "town"])
SPINE = tt.Spine.destination_first(origin=PLACES, destination=PLACES)
TRIP = tt.Unit("trip", neighbours="replace")
LOSS = tt.Loss(epsilon=1, delta=1e-8)
KEY = b"k" * 32


def trips(size: int = 30_000) -> pa.Table:
    rng = np.random.default_rng(4)
    towns = np.array(PLACES.codes[-1].to_pylist())
    return pa.table({end: towns[rng.choice(15, size, p=rng.dirichlet(np.ones(15)))] for end in SPINE.attributes})


def released(**options: Any) -> tt.Release:
    return tt.make_release(tt.Plan(SPINE, TRIP, LOSS, **options), trips(), tt.RunOptions(testing_key=KEY))


def test_each_is_the_default_and_one_attribute_has_none() -> None:
    plan = tt.Plan(SPINE, TRIP, LOSS)
    assert [margin.name for margin in plan.margin_tables] == ["destination.town", "origin.region", "origin.town"]
    assert tt.Plan(tt.Spine(["place.region"], {"place": PLACES}), TRIP, LOSS).margins == "none"
    assert tt.Plan(SPINE, TRIP, LOSS, margins="none").describe().keys() == plan.describe().keys() - {"margins"}


def test_titles_say_what_is_counted() -> None:
    assert title_of(SPINE, SPINE.depths(3)) == "destination town × origin region"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("all", 'write "each", "pairs", "none", or a list'),
        (["origin.city"], "city"),
        (["home.town"], "there is no attribute 'home'"),
        (["origin"], "several levels"),
        (["origin.town * origin.region"], "twice"),
        (["origin.town", "origin.town"], "stands there twice"),
        ([""], "name a level"),
    ],
)
def test_a_margin_that_is_none_is_refused(given: Any, message: str) -> None:
    with pytest.raises(SpineError, match=message):
        tt.Plan(SPINE, TRIP, LOSS, margins=given)


def test_tables_that_cross_are_not_both_exact() -> None:
    margins = margins_of(SPINE, ["origin.town * destination.region", "origin.region", "origin.town"])
    assert exact_margins(SPINE, margins) == (True, True, True)
    trees = {name: tt.Hierarchy.flat(list("ab")) for name in ("x", "y", "z")}
    flat = tt.Spine(["x", "y", "z"], trees)
    assert exact_margins(flat, margins_of(flat, ["x * z", "y * z"])) == (True, False)


def test_shares_are_stated_for_all_margins_or_one_by_one() -> None:
    levels = {level.name: 1 for level in SPINE.levels}
    plan = tt.Plan(SPINE, TRIP, LOSS, split={**levels, "margin origin.town": 2, "margins": 4})
    shares = {part.name: part.share for part in plan.workload if part.is_measured}
    assert shares["margin origin.town"] == Fraction(2, 10) and shares["margin origin.region"] == Fraction(2, 10)
    assert sum(shares.values()) == 1 and plan.spent <= plan.budget
    default = tt.Plan(SPINE, TRIP, LOSS)
    assert sum(part.share for part in default.margin_parts) == Fraction(3, 10)
    with pytest.raises(LossError, match="margin origin.city"):
        tt.Plan(SPINE, TRIP, LOSS, split={**levels, "margin origin.city": 2, "margins": 4})


def test_a_total_is_answered_with_its_own_interval() -> None:
    release = released()
    (table,) = [one for one in release.margins if one.margin.name == "origin.town"]
    within = table.law.margin(Fraction(5, 100))
    for cell, code in enumerate(PLACES.codes[-1].to_pylist()):
        interval = release.interval(origin=code)
        assert interval == (max(table.measured[cell] - within, 0), table.measured[cell] + within)
        assert release.query(origin=code) == table.count[cell]
    rows = release.table("origin.town").to_pylist()
    assert [(row["lower"], row["upper"]) for row in rows] == [
        tuple(release.interval(origin=row["origin.town"])) for row in rows
    ]


@pytest.mark.parametrize(
    "how", [{}, {"prefer": "lower-error"}, {"resolve": {"fdr": 0.1}}, {"margins": ["origin.town"]}]
)
def test_a_folder_keeps_its_margins_and_check_finds_one_that_is_changed(how: dict[str, Any], tmp_path: Path) -> None:
    release, folder = released(**how), tmp_path / "out"
    release.save(folder)
    assert [finding for verdict in tt.check(folder) for finding in verdict.findings] == []
    again = tt.Release.load(folder)
    for one, other in zip(release.margins, again.margins, strict=True):
        assert one.margin == other.margin and np.array_equal(one.count, other.count)
        assert np.array_equal(one.measured, other.measured)
    path = folder / "margins.parquet"
    table = pq.read_table(path)
    table = table.set_column(table.column_names.index("count"), "count", pc.add(table["count"], 1))
    pq.write_table(table, path)
    findings = " ".join(finding for verdict in tt.check(folder) for finding in verdict.findings)
    assert "not to the total" in findings
    with pytest.raises(ReleaseError):
        tt.Release.load(folder)


def test_estimates_made_again_keep_the_margins() -> None:
    plan = tt.Plan(SPINE, TRIP, LOSS)
    release = tt.make_release(plan, trips(), tt.RunOptions(testing_key=KEY, keep_measurements=True))
    again = release.reestimated()
    for table in release.margins:
        assert np.array_equal(table.sums(release.tree), table.count)
        assert np.array_equal(table.sums(again.tree), table.count)


def crossing(loss: tt.Loss = LOSS, **how: Any) -> tt.Release:
    """A release with two tables that cross, over attributes that depend on each other."""
    rng = np.random.default_rng(0)
    trees = {name: tt.Hierarchy.flat([f"{name}{i}" for i in range(6)]) for name in "xyz"}
    first = rng.choice(6, 20_000, p=rng.dirichlet(np.ones(6)))
    rows = {name: (first * step + rng.choice(4, 20_000)) % 6 for step, name in enumerate("xyz", start=1)}
    table = pa.table({name: [f"{name}{code}" for code in codes] for name, codes in rows.items()})
    margins = ["x", "y", "z", "x * z", "y * z"]
    return tt.make_release(
        tt.Plan(tt.Spine(list("xyz"), trees), TRIP, loss, margins=margins, **how), table, tt.RunOptions(testing_key=KEY)
    )


CROSSING = [{}, {"prefer": "lower-error"}, {"resolve": {"fdr": 0.1}}, {"repair": "euclidean"}, {"order": "descending"}]


@pytest.mark.parametrize("how", CROSSING, ids=str)
def test_what_a_crossing_margin_leaves_over_is_on_the_card_and_in_check(how: dict[str, Any], tmp_path: Path) -> None:
    release = crossing(**how)
    exact = {table.margin.name: table.exact for table in release.margins}
    assert exact == {"y": True, "z": True, "x * z": True, "y * z": False}
    release.save(tmp_path / "out")
    verdicts = tt.check(tmp_path / "out")
    assert [finding for verdict in verdicts for finding in verdict.findings] == []
    table = release.margins[-1]
    off = np.abs(table.sums(release.tree) - table.measured)
    told = {"name": "margin y * z", "mean": float(off.mean()), "largest": int(off.max())}
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    assert card["released"]["margins"] == [told]
    assert any("y × z" in said and "cannot be kept exactly" in said for said in in_words(card["post_processing"]))
    said = f"margin y * z {off.mean():,.3g} on average, {off.max():,} at most"
    assert any(said in verdict.subject for verdict in verdicts)
    assert "margin y * z by " in (tmp_path / "out" / "card.html").read_text(encoding="utf-8")


def test_intervals_of_a_crossing_margin_hold_the_truth_and_the_card_says_that_released_counts_may_be_outside() -> None:
    release, without_noise = crossing(split={"margins": 0.8}), crossing(loss=tt.Loss(rho=10**9))
    table, true = release.margins[-1], without_noise.margins[-1].count
    lower, upper = table.intervals(0.95)
    assert np.mean((lower <= true) & (true <= upper)) > 0.85
    assert np.any((table.count < lower) | (table.count > upper))  # its counts are sums of leaves
    (said,) = [said for said in in_words(release.card["post_processing"]) if "y × z" in said]
    assert "a released count may lie outside its own" in said


@pytest.mark.parametrize("damage", ["card", "cell"])
def test_check_finds_a_crossing_margin_that_is_not_what_the_leaves_add_up_to(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    crossing().save(folder)
    if damage == "card":
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
        card["released"]["margins"][0]["largest"] += 1
        (folder / "card.json").write_text(json.dumps(card), encoding="utf-8")
        expected = "released.margins[0].largest"
    else:
        table = pq.read_table(folder / "margins.parquet")
        count = table["count"].to_pylist()
        count[-1] += 1  # the last cell of the crossing margin, which has no total to keep
        column = table.column_names.index("count")
        pq.write_table(table.set_column(column, "count", pa.array(count)), folder / "margins.parquet")
        expected = "y * z"
    findings = " ".join(finding for verdict in tt.check(folder) for finding in verdict.findings)
    assert expected in findings


@pytest.mark.parametrize("prefer", ["fewer-invented", "lower-error"])
def test_an_exact_margin_of_several_attributes_is_kept_cell_by_cell(prefer: str) -> None:
    table = next(one for one in crossing(prefer=prefer).margins if one.margin.name == "x * z")
    release = crossing(prefer=prefer)
    assert np.array_equal(table.sums(release.tree), table.count)


def test_shares_of_margins_alone_are_shares_of_the_loss() -> None:
    plan = tt.Plan(SPINE, TRIP, LOSS, split={"margins": 0.4})
    assert sum(part.share for part in plan.margin_parts) == Fraction(2, 5)
    assert [part.share for part in plan.levels if part.is_measured] == [Fraction(3, 25)] * 3 + [Fraction(6, 25)]
    one = tt.Plan(SPINE, TRIP, LOSS, split={"margin origin.town": 0.2, "margins": 0.1})
    assert {part.name: part.share for part in one.margin_parts} == {
        "margin destination.town": Fraction(1, 20),
        "margin origin.region": Fraction(1, 20),
        "margin origin.town": Fraction(1, 5),
    }


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({"margins": 1}, "take 1 of 1; leave the levels something"),
        ({"margin origin.town": 0.1}, "leaves out margin destination.town, margin origin.region"),
        ({"margin origin.city": 0.1, "margins": 0.1}, "did you mean 'margin origin.town'"),
        ({"margin origin.city": 0.1}, "did you mean 'margin origin.town'"),
    ],
)
def test_shares_of_margins_that_make_no_split_are_refused(split: dict[str, Any], message: str) -> None:
    with pytest.raises(LossError, match=message):
        tt.Plan(SPINE, TRIP, LOSS, split=split)


@pytest.mark.parametrize("condition", [{}, {"origin": "N"}])
def test_where_something_is_unresolved_totals_are_still_those_of_the_margin(condition: dict[str, str]) -> None:
    release = released(resolve={"fdr": 0.1})
    (table,) = [one for one in release.margins if one.margin.name == "origin.town"]
    codes = PLACES.codes[-1].to_pylist()
    assert table.sums(release.tree).sum() < table.count.sum()  # what is unresolved is in no leaf
    expected = {code: count for code, count in zip(codes, table.count.tolist(), strict=True) if count > 0}
    if condition:
        expected = {code: count for code, count in expected.items() if code.startswith("N")}
    rows = release.where(**condition).table("origin.town").to_pylist()
    assert {row["origin.town"]: row["count"] for row in rows} == expected
    assert {code: release.query(origin=code) for code in expected} == expected
    assert release.where(origin="N1").partly_unresolved == 0
