"""A designed plan: its shares are the best, its spine fits what is cared for, and it says what to expect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import treetop as tt
from treetop.advice import Report, design
from treetop.advice._designs import Search, read_objectives
from treetop.advice.expected import LEAST_SHARE, ErrorModel, best_shares, expected_errors
from treetop.advice.public import Prior
from treetop.domain.marginal import exact_margins
from treetop.errors import PlanError

LOSS = tt.Loss(epsilon=1, delta=1e-8)
TRIP = tt.Unit("trip", neighbours="replace")
PLACES = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "ABC" for b in "1234" for c in "vwxyz"], widths=[1, 2], levels=["state", "county", "town"]
)
SEXES = tt.Hierarchy.flat(["f", "m"])
ENDS = tt.Spine.destination_first(PLACES, PLACES)
PEOPLE = tt.Spine(["place.state", "place.county", "place.town", "sex"], {"place": PLACES, "sex": SEXES})


def search(plan: tt.Plan, care: Sequence[str] = (), total: float | None = None) -> Search:
    objectives = read_objectives(plan.spine, care)
    return Search(plan, list(objectives), list(objectives.values()), total)


def reordered(found: Report) -> bool:
    return "The spine is another" in str(found)


@pytest.mark.parametrize("spine", [ENDS, PEOPLE], ids=["ends", "people"])
@pytest.mark.parametrize("top_down", [True, False])
def test_no_other_shares_are_better(spine: tt.Spine, top_down: bool) -> None:
    own = search(tt.Plan(spine, TRIP, LOSS, margins="each", prefer=None if top_down else "lower-error"))
    model = ErrorModel(own.tables(own.now()), own.wanted)
    scale = np.ones(len(model.tables.all))
    found = best_shares(model, own.weights, scale)
    assert found.sum() == pytest.approx(1) and found.min() >= LEAST_SHARE

    def objective(share: np.ndarray) -> tuple[float, np.ndarray]:
        value, pull = model.pulls(share, own.weights)
        return value, -pull / share

    best = minimize(
        objective,
        np.full(len(scale), 1 / len(scale)),
        jac=True,
        method="SLSQP",
        bounds=[(LEAST_SHARE, 1)] * len(scale),
        constraints={"type": "eq", "fun": lambda share: share.sum() - 1, "jac": np.ones_like},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert best.success
    assert model.pulls(found, own.weights)[0] == pytest.approx(best.fun, abs=1e-6)


def test_pulls_are_the_slope_and_sum_to_what_is_cared_for() -> None:
    own = search(tt.Plan(ENDS, TRIP, LOSS, margins="each"))
    model = ErrorModel(own.tables(own.now()), own.wanted)
    precision = np.random.default_rng(2).uniform(0.1, 1, len(model.tables.all))
    value, pull = model.pulls(precision, own.weights)
    assert value == pytest.approx(float(own.weights @ np.log(model.variances(precision))))
    assert pull.sum() == pytest.approx(own.weights.sum())
    step = precision.copy()
    step[3] *= 1 + 1e-6
    assert model.pulls(step, own.weights)[0] - value == pytest.approx(-1e-6 * pull[3], rel=1e-4)


def test_with_laplace_noise_no_small_change_of_shares_is_better() -> None:
    plan = tt.Plan(ENDS, TRIP, tt.Loss(epsilon=1), margins="each")
    own = search(plan)
    model = ErrorModel(own.tables(own.now()), own.wanted)
    scale = np.ones(len(model.tables.all))
    found = best_shares(model, own.weights, scale, power=2)
    value = model.pulls(found**2, own.weights)[0]
    rng = np.random.default_rng(3)
    for _ in range(200):
        other = np.maximum(found * np.exp(0.05 * rng.normal(size=len(found))), LEAST_SHARE)
        assert model.pulls((other / other.sum()) ** 2, own.weights)[0] > value - 1e-7
    assert design(plan)["gain"] > 1


def test_what_is_cared_for_more_gets_better() -> None:
    plan = tt.Plan(ENDS, TRIP, LOSS, margins="each")
    few, many = (design(plan, ["totals", f"leaves={weight}"]) for weight in (1, 10))
    assert many.rows[-1]["error"] < few.rows[-1]["error"] and many.rows[0]["error"] > few.rows[0]["error"]
    assert many["gain"] > 1 and few["gain"] > 1


def test_the_errors_that_it_tells_are_those_to_expect_of_the_plan_that_it_advises() -> None:
    plan = tt.Plan(ENDS, TRIP, LOSS, margins="none")
    found = design(plan)
    tables = list(read_objectives(ENDS))
    assert found.column("error_before") == [one.error for one in expected_errors(plan, tables)]
    assert found.column("error") == [one.error for one in expected_errors(found.plan, tables)]
    assert found.plan.margins == "each" and found.plan.spent <= found.plan.budget
    assert isinstance(found.plan, tt.Plan)


def test_no_table_that_is_measured_gets_less_than_a_percent() -> None:
    found = design(tt.Plan(ENDS, TRIP, LOSS, margins="each"), ["leaves=1000", "totals"])
    shares = [float(part.share) for part in found.plan.workload if part.is_measured]
    # Shares are rounded to a tenth of a percent, and then add up to a little more or less than all.
    assert min(shares) > 0.009 and math.fsum(shares) == pytest.approx(1)


def test_levels_that_nobody_cares_for_are_left_out_and_told() -> None:
    plan = tt.Plan(ENDS, TRIP, LOSS, margins="each")
    assert design(plan)["skipped"] == []
    found = design(plan, ["town pairs", "state totals"])
    assert set(found["skipped"]) == {"origin.county", "destination.county"}
    assert [tree.levels for tree in found.plan.spine.trees] == [("state", "town")] * 2
    assert "They are not released" in str(found) and "destination.county" in str(found)
    keep = design(plan, ["town pairs", "state totals", "county totals=0.01"])
    assert keep["skipped"] == []
    assert found.rows[0]["error"] < keep.rows[0]["error"]


def test_no_level_is_left_out_where_a_descent_would_become_too_long() -> None:
    codes = [f"{a:02}{b:03}" for a in range(60) for b in range(200)]
    wide = tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["county", "tract"])
    plan = tt.Plan(tt.Spine.origin_first(wide, wide), TRIP, LOSS, margins="each")
    for total, shorter in ((None, False), (5_000, True)):  # few records end most branches early
        own = search(plan, ["leaves"], total)
        assert any(len(draft.steps) < 4 for draft in own.neighbours(own.now())) == shorter


def test_the_order_changes_only_where_that_is_worth_something() -> None:
    plan = tt.Plan(ENDS, TRIP, LOSS, margins="each")
    advised = design(plan).plan.spine  # merged, but in the same order
    assert [split for step in advised.splits for split in step.split(" * ")] == list(ENDS.splits)
    late = tt.Plan(PEOPLE, TRIP, LOSS, margins="none")
    found = design(late, ["place.state * sex"])
    assert reordered(found) and found.plan.spine.levels[1].name == "sex"
    assert found.rows[0]["error"] < design(late, ["place.state * sex", "leaves=0.001"]).rows[0]["error"] * 1.5
    assert "The spine is another" in str(found)


def test_both_ends_are_refined_at_once_where_that_is_not_worse() -> None:
    found = design(tt.Plan(ENDS, TRIP, LOSS, margins="each"))
    assert found.plan.spine.splits[-1] == "destination.town * origin.town" and reordered(found)
    assert "at once" in str(found)
    shares = {part.name: part.share for part in found.plan.workload if part.is_measured}
    assert "destination.town * origin.town" in shares
    assert isinstance(found.plan, tt.Plan)
    own = search(found.plan)
    divided = [draft for draft in own.neighbours(own.now()) if all(len(step) == 1 for step in draft.steps[-2:])]
    assert divided and min(map(own.value, divided)) >= own.value(own.with_each_margin(own.now()))


def test_steps_are_not_merged_where_margins_of_several_attributes_may_cross_them() -> None:
    plan = tt.Plan(ENDS, TRIP, LOSS, margins=["origin.state * destination.town", "origin.town", "destination.town"])
    assert not any(level.is_merged for level in design(plan).plan.spine.levels)


def test_steps_are_not_merged_where_a_descent_would_become_too_long() -> None:
    codes = [f"{a:02}{b:03}" for a in range(60) for b in range(200)]
    wide = tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["county", "tract"])
    plan = tt.Plan(tt.Spine.origin_first(wide, wide), TRIP, LOSS, margins="each")
    for total, merged in ((None, False), (1_000, True)):  # 1,000 pairs of counties have 40 million pairs of tracts
        assert any(level.is_merged for level in design(plan, total=total).plan.spine.levels) == merged


def test_caps_belong_to_a_spine_and_keep_it() -> None:
    unit = tt.Unit("person", contributions=4, neighbours="add-remove", per_node={"place.town": 1})
    plan = tt.Plan(PEOPLE, unit, LOSS, margins="each")
    found = design(plan, ["place.state * sex", "leaves"])
    assert not reordered(found) and not found["skipped"] and found["gain"] > 1


def test_a_total_that_is_measured_gets_its_share() -> None:
    found = design(tt.Plan(ENDS, tt.Unit("trip", neighbours="add-remove"), LOSS, margins="each"))
    assert found.plan.levels[0].share >= Fraction(9, 1000)


def test_one_attribute_alone_has_shares_to_choose_and_nothing_else() -> None:
    spine = tt.Spine(["place.state", "place.county", "place.town"], {"place": PLACES})
    found = design(tt.Plan(spine, TRIP, LOSS), ["totals"])
    assert not reordered(found) and found.plan.margins == "none" and found["gain"] > 1


def test_many_attributes_of_one_level_are_designed_at_once() -> None:
    trees = {f"a{number}": tt.Hierarchy.flat([str(code) for code in range(number + 2)]) for number in range(8)}
    found = design(tt.Plan(tt.Spine(list(trees), trees), TRIP, LOSS, margins="none"), ["totals", "a6 * a7=3"])
    assert found["gain"] > 2


def test_a_plan_without_noise_has_nothing_to_design() -> None:
    place = tt.Hierarchy.from_prefixes(["AX"], widths=[1], levels=["state", "town"])
    plan = tt.Plan(tt.Spine(["place.state", "place.town"], {"place": place}), TRIP, LOSS)
    with pytest.raises(PlanError, match="measures nothing"):
        design(plan)
    one = tt.Hierarchy.from_prefixes(["AX", "AY"], widths=[1], levels=["state", "town"])
    plan = tt.Plan(tt.Spine(["place.state", "place.town"], {"place": one}), TRIP, LOSS)
    with pytest.raises(PlanError, match="known without noise"):
        design(plan, ["place.state totals"])


def test_both_plans_are_tried_on_a_twin_of_another_order_and_with_fewer_levels() -> None:
    rng = np.random.default_rng(4)
    codes = PLACES.codes[-1].to_pylist()
    ends = {name: rng.choice(codes, 400_000) for name in ("origin", "destination")}
    plan = tt.Plan(ENDS, TRIP, LOSS, margins="each")
    prior = Prior.from_public_table(pa.table(ends), ENDS, source="evenly")
    found = design(plan, ["leaves", "state totals"], twin=prior, runs=6)
    assert found["skipped"] and found["twin"] == "public table: evenly"
    for row in found.rows[:1]:  # 3,600 leaves with a hundred each
        assert row["tried_before"] == pytest.approx(row["error_before"], rel=0.1)
        assert row["tried"] == pytest.approx(row["error"], rel=0.1)
    assert found.to_dict()["tables"][0]["tried"] == found.rows[0]["tried"]


FLAT = {name: tt.Hierarchy.flat([f"{name}{code}" for code in range(6)]) for name in "wxyz"}


@pytest.mark.parametrize(("cared", "left"), [("x * z", "y * z"), ("y * z", "x * z")])
def test_a_margin_that_would_not_be_kept_is_not_proposed(cared: str, left: str) -> None:
    plan = tt.Plan(tt.Spine(list(FLAT), FLAT), TRIP, LOSS, margins=[*FLAT, "x * z", "y * z"])
    found = design(plan, [cared, "leaves"])
    names = [margin.name for margin in found.plan.margin_tables]
    assert left not in names and all(exact_margins(found.plan.spine, found.plan.margin_tables))
    if not reordered(found):
        assert cared in names and found["crossing"] == [left]
        assert f"would not be kept: {left}." in str(found) and found.to_dict()["crossing"] == [left]


def test_the_error_now_of_a_margin_that_is_not_kept_is_that_of_the_sums_of_other_tables() -> None:
    spine = tt.Spine(list(FLAT), FLAT)
    both = tt.Plan(spine, TRIP, LOSS, margins=[*FLAT, "x * z", "y * z"])
    (row,) = design(both, ["y * z"]).rows
    assert row["error_before"] == expected_errors(both, [(0, 0, 1, 1)])[0].error > 3 * row["error"]
