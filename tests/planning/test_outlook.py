"""What a release will be worth, from public sizes and the number of records."""

from __future__ import annotations

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.advice import Report, known_outlook, outlook
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.release.errors import measure_errors
from treetop.release.run import run_plan

PLACES = tt.Hierarchy.from_prefixes(
    [f"{a}{b:02}" for a in "ABCDEF" for b in range(20)], widths=[1], levels=["state", "town"]
)
ENDS = tt.Spine.destination_first(PLACES, PLACES)
TRIP = tt.Unit("trip", neighbours="replace")


def plan(epsilon: float = 1, **options: object) -> tt.Plan:
    return tt.Plan(ENDS, TRIP, tt.Loss(epsilon=epsilon, delta=1e-8), **{"margins": "each", **options})  # type: ignore[arg-type]


def noisy(found: Report) -> list[str]:
    return [row["name"] for row in found.rows if row["mostly_noise"]]


def test_a_table_whose_average_is_below_its_noise_is_mostly_noise() -> None:
    found = outlook(plan(), 100_000)
    assert noisy(found) == ["origin.town"]
    for row in found.rows:
        assert row["average"] == 100_000 / row["nodes"] and row["mostly_noise"] == (row["average"] < row["noise"])
    assert len(found.rows) == 4 + 3 and found.rows[-1]["counts"] == "origin town"
    assert not noisy(outlook(plan(), 10**9)) and outlook(plan(), 10**9)["changes"] == []


def test_every_change_says_what_it_leaves_and_makes_the_finest_table_readable() -> None:
    coarser, named, more = outlook(plan(), 100_000)["changes"]
    assert coarser["words"] == "Stop origin at state" and coarser["fields"] == {
        "spine.order": ["destination.state", "origin.state", "destination.town"]
    }
    shorter = tt.Spine(coarser["fields"]["spine.order"], ENDS.attributes)
    found = outlook(tt.Plan(shorter, TRIP, tt.Loss(epsilon=1, delta=1e-8), margins="each"), 100_000).rows[2]
    assert found["state"] == "readable" and found["noise"] == pytest.approx(coarser["noise"])
    assert coarser["leaves"] == 720 and f"{coarser['leaves']} counts" in coarser["sentence"]
    assert named["fields"] == {"release.resolve": {"fdr": 0.05}}
    enough = outlook(plan(more["fields"]["loss.epsilon"]), 100_000).rows[3]
    assert enough["state"] == "readable" and enough["noise"] == pytest.approx(more["noise"])
    assert outlook(plan(0.8 * more["fields"]["loss.epsilon"]), 100_000).rows[3]["state"] == "rough"
    kinds = [one["kind"] for one in outlook(plan(resolve={"fdr": 0.05}), 100_000)["changes"]]
    assert kinds == ["coarser", "loss"]


def test_a_loss_in_rho_is_told_in_rho_and_one_that_protects_nobody_is_not_told() -> None:
    lean = tt.Plan(ENDS, TRIP, tt.Loss(rho=0.01), margins="each")
    needed = outlook(lean, 100_000)["changes"][-1]["fields"]["loss.rho"]
    assert outlook(tt.Plan(ENDS, TRIP, tt.Loss(rho=needed), margins="each"), 100_000).rows[3]["state"] == "readable"
    assert "loss" not in [one["kind"] for one in outlook(plan(), 1_000)["changes"]]


def test_columns_are_left_out_if_coarser_levels_do_not_suffice() -> None:
    sex, age = tt.Hierarchy.flat(["f", "m"]), tt.Hierarchy.flat([str(year) for year in range(100)])
    spine = tt.Spine(["sex", "place.state", "place.town", "age"], {"place": PLACES, "sex": sex, "age": age})
    own = tt.Plan(spine, TRIP, tt.Loss(epsilon=1, delta=1e-8), margins=["place.town", "place.state * age"])
    change = outlook(own, 40_000)["changes"][0]
    assert change["words"] == "Stop place at state and leave out sex" and change["leaves"] == 600
    assert change["fields"] == {"spine.order": ["place.state", "age.value"], "attributes.sex": None}
    few = outlook(own, 20_000)["changes"][0]
    assert few["words"] == "Leave out place" and few["leaves"] == 200


def test_facts_are_about_the_tables_as_they_are_and_no_coarser_ones_are_proposed() -> None:
    known = plan(facts={"destination.state": tt.Fact(exact=dict.fromkeys("ABCDEF", 1000))})
    found = outlook(known, 6_000)
    assert found["sentences"][0].startswith("Exact: destination state")
    assert "coarser" not in [one["kind"] for one in found["changes"]]


def test_a_table_that_is_readable_holds_the_truth_within_half_of_its_average() -> None:
    """The verdict is kept by a release: 95 % of the counts of a readable table are off by at most half the average."""
    rng = np.random.default_rng(8)
    counts = Counts.from_leaves(ENDS, [rng.integers(0, 120, 100_000) for _ in range(2)])
    released = run_plan(plan(confidence=None), counts, Key(bytes(32)), {})
    errors = {row.name: row.mean_of_all for row in measure_errors(released, counts)}
    for row in outlook(plan(), 100_000).rows[:4]:
        if row["state"] == "readable":
            assert errors[row["name"]] < row["average"] / 2
        else:
            assert errors[row["name"]] > row["average"] / 2


def test_limits_of_records_are_compared_by_noise_and_by_what_they_keep() -> None:
    limited = tt.Unit("person", contributions=4, id="person", neighbours="replace")
    own = tt.Plan(ENDS, limited, tt.Loss(epsilon=1, delta=1e-8))
    limits = outlook(own, 100_000).parts["limits"]
    assert limits.column("limit") == [1, 2, 3, 4, 5, 10] and set(limits.column("kept")) == {None}
    assert limits.column("noise") == sorted(limits.column("noise"))
    kept = outlook(own, 100_000, prior={1: 70, 10: 3}).parts["limits"].column("kept")
    assert kept[0] == 0.73 and kept[3] == 0.82 and kept[-1] == 1
    assert not outlook(plan(), 100_000).parts


def released_error(counts: Counts, epsilon: float) -> float:
    """The mean absolute error of a leaf, in mean counts: 1 is as bad as zeros."""
    tried = plan(epsilon, confidence=None)
    found = run_plan(tried, counts, Key(bytes(32)), {})
    return measure_errors(found, counts)[-1].mean_of_all * ENDS.leaves / counts.total


def test_the_verdict_is_true_of_records_that_are_spread_evenly_and_of_crowded_ones() -> None:
    rng = np.random.default_rng(5)
    even = [rng.integers(0, 120, 20_000) for _ in range(2)]
    crowded = [even[0], even[0]]  # everybody stays where they are
    assert outlook(plan(), 20_000)["verdict"] == "better than zeros if crowded"
    assert released_error(Counts.from_leaves(ENDS, even), 1) > 1.2
    assert released_error(Counts.from_leaves(ENDS, crowded), 1) < 0.6
    assert outlook(plan(0.05), 20_000)["verdict"] == "worse than zeros"
    assert released_error(Counts.from_leaves(ENDS, crowded), 0.05) > 1
    assert outlook(plan(), 3_000_000)["verdict"] == "better than zeros"
    large = [np.repeat(one, 150) for one in even]
    assert released_error(Counts.from_leaves(ENDS, large), 1) < 0.2


def test_the_number_of_units_stands_in_for_that_of_records() -> None:
    assert known_outlook(plan()) is None
    many = tt.Unit("trip", neighbours="replace", population=1_000)
    known = known_outlook(tt.Plan(ENDS, many, tt.Loss(epsilon=1, delta=1e-8), margins="each"))
    assert known is not None and known["total"] == 1_000
    declared = known_outlook(tt.Plan(ENDS, many, tt.Loss(epsilon=1, delta=1e-8), margins="each"), 5_000)
    assert declared is not None and declared["total"] == 5_000


def test_without_a_number_it_is_said_how_to_get_a_verdict() -> None:
    with pytest.raises(PlanError, match=r"records = 10000 under \[data\]"):
        outlook(plan())


@pytest.mark.parametrize("total", [0, -1, float("nan"), float("inf")])
def test_a_total_that_is_none_is_refused(total: float) -> None:
    with pytest.raises(PlanError, match="about how many records"):
        outlook(plan(), total)
