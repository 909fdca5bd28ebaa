"""Targets: the smallest loss that meets them, exactly, and the grid of errors over losses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from tests.everyday import TRIP
from treetop.advice import error_grid, loss_for, mean, read_target, split_for, within
from treetop.advice._error_laws import falling_root, mean_absolute, total_error
from treetop.advice._losses import PROMISE, Target, Within
from treetop.advice._splits import terms_of
from treetop.advice.public import Prior
from treetop.errors import LossError, PlanError
from treetop.noise import DiscreteGaussian
from treetop.plan.plan import Plan

WIDE = tt.Hierarchy.from_prefixes([f"{i:03d}" for i in range(300)], widths=[1], levels=["county", "town"])
SPINE = tt.Spine(["place.county", "sex", "place.town"], {"place": WIDE, "sex": tt.Hierarchy.flat(["f", "m"])})
PERSON = tt.Unit("person", neighbours="add-remove")


DELTA = tt.Loss(epsilon=1, delta=1e-8)
PURE = tt.Loss(epsilon=1)
RHO = tt.Loss(rho=1)


def planned(unit: tt.Unit = TRIP, loss: tt.Loss = DELTA, spine: tt.Spine = SPINE, **options: Any) -> tt.Plan:
    return tt.Plan(spine, unit, loss, **{"margins": "none", **options})


def law_of(plan: Plan, name: str) -> Any:
    return next(level.law for level in plan.levels if level.name == name)


@pytest.mark.parametrize("loss", [DELTA, PURE, RHO, tt.Loss(rho=1, delta=1e-6)])
@pytest.mark.parametrize("unit", [PERSON, TRIP, tt.Unit("person", contributions=3, neighbours="replace")])
def test_the_answer_is_a_plan_that_meets_every_target(unit: tt.Unit, loss: tt.Loss) -> None:
    targets: list[Target] = [within("place.town", 20), mean("place.county", 3.5), within("place.county", 40, 0.999)]
    plan = loss_for(planned(unit, loss), targets).plan
    assert plan.loss.definition == loss.definition and plan.loss.delta == loss.delta
    assert law_of(plan, "place.town").margin(Fraction(5, 100)) <= 20
    assert mean_absolute(law_of(plan, "place.county")) <= 3.5
    assert law_of(plan, "place.county").margin(Fraction(1, 1000)) <= 40


@settings(max_examples=25, deadline=None)
@given(
    margin=st.integers(0, 300),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
    level=st.sampled_from(["place.county", "sex", "place.town"]),
    pure=st.booleans(),
)
def test_a_slightly_smaller_loss_misses_the_target(margin: int, confidence: float, level: str, pure: bool) -> None:
    target = within(level, margin, confidence)
    found = loss_for(planned(loss=PURE if pure else RHO), [target]).plan
    less = found.loss.budget * (1 - Fraction(2, 1000))
    loss = tt.Loss(epsilon=less) if pure else tt.Loss(rho=less)
    assert target.met_by(law_of(found, level))
    assert not target.met_by(law_of(replace(found, loss=loss), level))


def test_the_epsilon_is_the_least_of_four_digits() -> None:
    plan = loss_for(planned(), [within("place.town", 20)]).plan
    assert plan.loss.epsilon is not None and isinstance(plan.split, Mapping)
    assert plan.loss.epsilon * 1000 == int(plan.loss.epsilon * 1000)
    less = tt.Loss(epsilon=plan.loss.epsilon - Fraction(1, 500), delta=1e-8)
    assert less.budget < sum(Fraction(weight) for weight in plan.split.values())


def test_a_coarser_level_without_a_target_has_the_noise_of_the_next_target() -> None:
    answer = loss_for(planned(PERSON), [within("sex", 50), within("place.town", 10)])
    laws = {level.name: level.law for level in answer.plan.levels}
    assert laws["total"] == laws["place.county"] == laws["sex"] != laws["place.town"]
    assert answer.column("why")[:2] == ["as sex", "as sex"]


def test_levels_finer_than_every_target_are_given_the_declared_share() -> None:
    answer = loss_for(planned(), [within("place.county", 50)], rest=0.05)
    assert [float(level.share) for level in answer.plan.levels] == pytest.approx([0, 0.9, 0.05, 0.05], rel=1e-5)
    with pytest.raises(LossError, match="leaves nothing"):
        loss_for(planned(), [within("place.county", 50)], rest=0.5)


def test_a_target_for_counts_that_are_not_measured_falls_on_those_above() -> None:
    single = tt.Hierarchy.from_table(
        pa.table({"state": ["A", "B"], "capital": ["a", "b"]}), levels=["state", "capital"]
    )
    spine = tt.Spine(["place.state", "place.capital"], {"place": single})
    answer = loss_for(planned(loss=PURE, spine=spine), [within("place.capital", 8)])
    assert list(answer["split"]) == ["place.state"]
    assert law_of(answer.plan, "place.state").margin(Fraction(5, 100)) <= 8
    with pytest.raises(PlanError, match="released exactly"):
        loss_for(planned(loss=PURE, spine=spine), [within("total", 8)])


def test_weights_and_loss_are_short_decimals() -> None:
    split = loss_for(planned(PERSON), [within("place.town", 17), mean("sex", 2)]).plan.split
    assert isinstance(split, Mapping)
    for weight in split.values():
        assert Fraction(repr(float(weight))) == weight and len(f"{float(weight):.6g}") <= 12


def test_the_answer_says_what_is_promised() -> None:
    text = str(loss_for(planned(), [within("place.town", 20)]))
    assert PROMISE in text and "95% of place.town within ±20" in text


def test_many_targets_of_a_deep_spine_are_solved_at_once() -> None:
    deep = tt.Hierarchy.from_prefixes([f"{i:05d}" for i in range(0, 100_000, 7)], widths=[1, 2, 3, 4])
    spine = tt.Spine.destination_first(deep, deep)
    targets = [within(level.name, 10 + 7 * level.index) for level in spine.levels]
    answer = loss_for(planned(PERSON, spine=spine), targets)
    assert len(answer["split"]) == 11
    assert answer.column("margin")[1:] == pytest.approx([t.margin for t in targets], abs=1)


def test_targets_that_make_no_sense_are_refused() -> None:
    for wrong in (
        lambda: within("sex", -1),
        lambda: Within("sex", 1.5),  # type: ignore[arg-type]
        lambda: within("sex", 1, 1.0),
        lambda: mean("sex", 0),
    ):
        with pytest.raises(LossError):
            wrong()
    with pytest.raises(PlanError, match="no target"):
        loss_for(planned(), [])
    with pytest.raises(tt.TreetopError, match="did you mean"):
        loss_for(planned(), [within("place.towns", 3)])
    with pytest.raises(LossError, match="no delta"):
        loss_for(planned(), [within("sex", 3)], pure=True, delta=1e-8)


def test_a_grid_has_the_errors_of_the_plans() -> None:
    split = {"place.county": 1, "sex": 1, "place.town": 2}
    grid = error_grid(planned(split=split), [0.5, 1, 2.0], confidence=0.9)
    assert len(grid.rows) == 3 * 4
    for row in grid.rows:
        accuracy = planned(loss=tt.Loss(epsilon=row["epsilon"], delta=1e-8), split=split).accuracy(0.9)
        expected = accuracy.levels[row["level"]]
        for name in ("name", "nodes", "noise", "margin"):
            assert row[name] == getattr(expected, name)
    assert grid.rows[0]["mean"] == 0 and grid.rows[1]["mean"] == pytest.approx(grid.rows[1]["noise"] * 0.798, rel=1e-2)
    noise = [row["noise"] for row in grid.rows if row["name"] == "sex"]
    assert noise == sorted(noise, reverse=True)
    assert error_grid(planned(), [1], pure=True).rows[1]["noise"] == pytest.approx(6 * 2**0.5, rel=0.01)
    with pytest.raises(LossError, match="no epsilon"):
        error_grid(planned(), [])


def test_a_grid_is_printed_with_a_column_for_each_epsilon() -> None:
    lines = str(error_grid(planned(), [0.5, 2])).splitlines()
    assert lines[0].split() == ["level", "name", "public", "nodes", "epsilon", "0.5", "epsilon", "2"]
    assert lines[-1].split()[-1] == str(planned(loss=tt.Loss(epsilon=2, delta=1e-8)).accuracy().levels[-1].margin)
    assert len(lines) == 2 + 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "town",
        "town within",
        "town within -3",
        "town within 2.5",
        "town mean x",
        "town within 3 at 95",
        "town mean 1.2.3",
    ],
)
def test_a_target_that_cannot_be_read_says_how_to_write_one(text: str) -> None:
    with pytest.raises(LossError, match="LEVEL within 20 at 99%"):
        read_target(text)


def test_an_answer_is_plain_values_for_programs() -> None:
    answer = loss_for(planned(), [read_target("place.town within 20 at 97.5%")]).to_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert set(answer["loss"]) == {"epsilon", "delta"} and len(answer["levels"]) == 3


def test_the_noise_of_a_target_is_the_largest() -> None:
    answer = loss_for(planned(loss=RHO), [within("place.county", 39)], rest=Fraction(1, 10**6), digits=9)
    law = law_of(answer.plan, "place.county")
    assert law.margin(Fraction(5, 100)) == 39
    assert DiscreteGaussian(law.variance * Fraction(10001, 10000)).margin(Fraction(5, 100)) == 40


@pytest.mark.parametrize("delta", [None, 1e-8])
def test_targets_of_several_levels_are_program_7_with_other_words(
    spine: tt.Spine, people: pa.Table, delta: float | None
) -> None:
    """What the cheapest division for a squared error gives each level, asked for as targets, takes the same loss.

    And targets with the same squared error in all take no less, however they are spread.
    """
    prior = Prior.from_public_table(people, spine, source="made up")
    unit = tt.Unit("person", neighbours="add-remove")
    plan = tt.Plan(spine, unit, tt.Loss(epsilon=1, delta=delta), margins="none")
    best = split_for(plan, prior, squared_error=20_000.0).parts["answer"].plan
    levels = [level for level in best.levels if level.is_measured]
    asked = [mean(level.name, 1.000001 * mean_absolute(level.law)) for level in levels]
    again = loss_for(plan, asked).plan
    assert float(again.loss.epsilon or 0) == pytest.approx(float(best.loss.epsilon or 0), rel=2e-3)
    shares = [float(level.share) for level in again.levels if level.is_measured]
    assert shares == pytest.approx([float(level.share) for level in levels], rel=1e-3)

    terms = [term for term in terms_of(unit, plan.loss, prior, {}, [level.name for level in levels]) if term]
    rng = np.random.default_rng(7)
    for _ in range(3):
        spread = rng.dirichlet(np.full(len(levels), 5.0))
        scale = falling_root(lambda budget, s=spread: total_error(terms, budget * s), 20_000.0, 0.1, 1.0)  # type: ignore[misc]
        split = {level.name: float(part) for level, part in zip(levels, spread, strict=True)}
        trial = replace(best, loss=tt.Loss(epsilon=scale) if delta is None else tt.Loss(rho=scale), split=split)
        noisy = [mean(level.name, mean_absolute(level.law)) for level in trial.levels if level.is_measured]
        other = loss_for(plan, noisy).plan
        assert float(other.loss.epsilon or 0) >= float(best.loss.epsilon or 0) * (1 - 2e-3)
