"""Plans: what is measured, what it costs, and how accurate it will be, before any data is read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.everyday import TRIP
from treetop.errors import DataError, LossError, PlanError, UnitError
from treetop.noise import DiscreteGaussian, DiscreteLaplace

PLACE = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "AB" for b in "123"], widths=[1], levels=["state", "county"])
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
NAMES = ["destination.state", "origin.state", "destination.county", "origin.county"]


def test_a_replaced_single_record_leaves_the_total_public() -> None:
    plan = tt.Plan(SPINE, TRIP, tt.Loss(rho=Fraction(1, 2)), margins="none")
    assert [level.name for level in plan.levels] == ["total", *NAMES]
    assert plan.levels[0].is_exact
    assert [level.cost for level in plan.levels] == [0, *[Fraction(1, 8)] * 4]
    assert plan.levels[1].law == DiscreteGaussian(Fraction(8))  # Δ² = 2, so 2/(2·1/8)
    assert plan.spent == Fraction(1, 2)


@pytest.mark.parametrize(
    ("unit", "unknown"),
    [
        (tt.Unit("trip", neighbours="add-remove"), "error"),
        (tt.Unit("person", contributions=2, neighbours="replace"), "error"),
        (TRIP, "drop"),
    ],
)
def test_a_total_that_a_neighbour_can_change_is_measured(unit: tt.Unit, unknown: Any) -> None:
    plan = tt.Plan(SPINE, unit, tt.Loss(rho=1), unknown=unknown, margins="none")
    total = plan.levels[0]
    assert total.share == Fraction(1, 5)
    assert total.law == DiscreteGaussian(Fraction(unit.contributions**2 * 5, 2))
    assert plan.spent == 1


def test_a_pure_loss_takes_laplace_noise() -> None:
    plan = tt.Plan(SPINE, TRIP, tt.Loss(epsilon=2), margins="none")
    assert plan.levels[1].law == DiscreteLaplace(Fraction(4))  # Δ₁ = 2, ε = 1/2
    assert plan.spent == 2


@pytest.mark.parametrize(("accounting", "noise"), [("zcdp", 18.674), (None, 17.668)])
def test_the_published_scale_at_epsilon_one_and_six_levels_and_what_exact_accounting_leaves_of_it(
    accounting: Any, noise: float
) -> None:
    deep = tt.Hierarchy.from_prefixes(["AAA", "ABB", "BAA", "BBB", "ABA"], widths=[1, 2])
    loss = tt.Loss(epsilon=1, delta=1e-8, accounting=accounting)
    plan = tt.Plan(tt.Spine.destination_first(deep, deep), TRIP, loss, margins="none")
    assert plan.accuracy().levels[1].noise == pytest.approx(noise, abs=5e-4)


def test_weights_divide_the_loss_exactly() -> None:
    plan = tt.Plan(
        SPINE, TRIP, tt.Loss(rho=1), split=dict(zip(NAMES, [0.1, 0.2, 0.3, 0.4], strict=True)), margins="none"
    )
    assert [level.share for level in plan.levels[1:]] == [Fraction(k, 10) for k in (1, 2, 3, 4)]
    assert plan.spent == 1


def test_splits_that_do_not_sum_are_refused() -> None:
    with pytest.raises(LossError, match="sum to"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), split=tt.Split(dict.fromkeys(NAMES, 0.3)), margins="none")
    with pytest.raises(LossError, match="leaves out"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), split={NAMES[0]: 1}, margins="none")


def test_a_cap_on_records_per_node_lowers_the_noise_there() -> None:
    person = tt.Unit("person", contributions=4, neighbours="replace", per_node={"origin.county": 1})
    plan = tt.Plan(SPINE, person, tt.Loss(rho=1), margins="none")
    variances = [level.law.variance for level in plan.levels if isinstance(level.law, DiscreteGaussian)]
    assert variances == [40, 80, 80, 80, 20]
    with pytest.raises(PlanError, match="caps records per node of 'origin.conty'.*did you mean 'origin.county'"):
        tt.Plan(SPINE, tt.Unit("p", 4, "replace", per_node={"origin.conty": 1}), tt.Loss(rho=1), margins="none")


@pytest.mark.parametrize(("option", "value"), [("repair", "magic"), ("order", "sideways"), ("unknown", "ignore")])
def test_options_that_do_not_exist_are_refused(option: str, value: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(PlanError, match=f"{option} is '{value}'"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), **options, margins="none")


def test_a_person_must_say_who_is_protected() -> None:
    with pytest.raises(UnitError):
        tt.Unit("trip")


def test_the_digest_changes_with_every_decision() -> None:
    plans = [
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none"),
        tt.Plan(SPINE, TRIP, tt.Loss(rho=2), margins="none"),
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), repair="euclidean", margins="none"),
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), order="descending", margins="none"),
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), unknown={"origin": "A1", "destination": "A1"}, margins="none"),
        tt.Plan(SPINE, tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=1), margins="none"),
        tt.Plan(tt.Spine.origin_first(PLACE, PLACE), TRIP, tt.Loss(rho=1), margins="none"),
    ]
    assert len({plan.digest for plan in plans}) == len(plans)


def test_accuracy_has_one_row_a_level_and_grows_downwards() -> None:
    accuracy = tt.Plan(SPINE, TRIP, tt.Loss(epsilon=1, delta=1e-8), margins="none").accuracy()
    assert [row.name for row in accuracy.levels] == ["total", *NAMES]
    assert accuracy.levels[0].bound == 0
    bounds = [row.bound or 0 for row in accuracy.levels]
    assert bounds == sorted(bounds)
    assert "origin.county" in str(accuracy)
    assert "<td>origin.county</td>" in accuracy._repr_html_()
    assert accuracy.to_dicts()[1]["nodes"] == 2


def test_the_margin_is_the_exact_quantile_of_one_measurement() -> None:
    row = tt.Plan(SPINE, TRIP, tt.Loss(rho=Fraction(1, 2)), margins="none").accuracy(0.9).levels[1]
    law = DiscreteGaussian(Fraction(8))
    outside = [1 - sum(law.mass(k) for k in range(-m, m + 1)) for m in (row.margin - 1, row.margin)]
    assert outside[0] > 0.1 >= outside[1]


@pytest.mark.parametrize("repair", ["chebyshev", "euclidean"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_bound_for_all_nodes_holds_in_simulation(repair: Any, neighbours: Any) -> None:
    plan = tt.Plan(
        SPINE, tt.Unit("trip", neighbours=neighbours), tt.Loss(rho=Fraction(1, 20)), repair=repair, margins="none"
    )
    rng = np.random.default_rng(5)
    codes = np.array(PLACE.codes[-1].to_pylist())
    table = pa.table({name: codes[rng.integers(0, 6, 3_000)] for name in ("origin", "destination")})
    truth = {level: _by_codes(_release_exactly(table).level(level)) for level in NAMES}
    # With 1 % the union bound is broken far less often than that; with 100 runs, never in practice.
    bounds = {row.name: row.bound or 0 for row in plan.accuracy(0.99).levels}
    for _ in range(100):
        release = tt.make_release(plan, table)
        for level in NAMES:
            counts = _by_codes(release.level(level))
            error = max(abs(counts.get(k, 0) - truth[level].get(k, 0)) for k in counts.keys() | truth[level].keys())
            assert error <= bounds[level]


def _by_codes(table: pa.Table) -> dict[tuple[str, ...], int]:
    codes = [name for name in table.column_names if name not in ("count", "lower", "upper")]
    return {tuple(row[name] for name in codes): row["count"] for row in table.to_pylist()}


def _release_exactly(table: pa.Table) -> tt.Release:
    return tt.make_release(tt.Plan(SPINE, TRIP, tt.Loss(rho=10**6), margins="none"), table)


def test_confidence_must_be_a_probability() -> None:
    with pytest.raises(PlanError, match="confidence"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none").accuracy(95)


def test_a_bad_table_is_refused_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from treetop.noise import Key

    def drawn() -> Key:
        raise AssertionError("a key was drawn")

    monkeypatch.setattr(Key, "fresh", drawn)
    with pytest.raises(DataError, match="row 1"):
        tt.make_release(
            tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none"), pa.table({"origin": ["?"], "destination": ["A1"]})
        )


def test_a_testing_key_needs_32_bytes() -> None:
    with pytest.raises(PlanError, match="32 bytes"):
        tt.make_release(
            tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none"),
            pa.table({"origin": ["A1"], "destination": ["A1"]}),
            tt.RunOptions(testing_key=b"x"),
        )


def test_noise_too_wide_for_whole_numbers_is_refused_by_the_plan() -> None:
    with pytest.raises(LossError, match="too wide"):
        tt.Plan(SPINE, TRIP, tt.Loss(epsilon=Fraction(1, 10**17)), margins="none")


def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_spent() -> None:
    spent: list[bool] = []
    wide = tt.Plan(SPINE, TRIP, tt.Loss(rho=Fraction(1, 10**22)), margins="none")
    with pytest.raises(LossError, match="too wide"):
        tt.make_release(
            wide,
            pa.table({"origin": ["A1"], "destination": ["A1"]}),
            tt.RunOptions(before_measuring=lambda: spent.append(True)),
        )
    assert spent == []


def keys_of_a_run(monkeypatch: pytest.MonkeyPatch, plan: tt.Plan, codes: list[str]) -> Any:
    """The key that the engine is given, for one and the same secret."""
    from treetop.measure.descent import run_descent

    given: list[Any] = []

    def watched(planned: Any, counts: Any, key: Any, *rest: Any, **more: Any) -> Any:
        given.append(key)
        return run_descent(planned, counts, key, *rest, **more)

    monkeypatch.setattr("treetop.release.run.run_descent", watched)
    tt.make_release(plan, pa.table({"origin": codes, "destination": codes}), tt.RunOptions(testing_key=bytes(32)))
    return given[0]


def test_the_same_secret_gives_unrelated_noise_to_other_data_and_to_other_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, other = (
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none"),
        tt.Plan(SPINE, TRIP, tt.Loss(rho=2), margins="none"),
    )
    first = keys_of_a_run(monkeypatch, plan, ["A1", "B1"])
    assert keys_of_a_run(monkeypatch, plan, ["B1", "A1"]) == first  # the same table
    assert keys_of_a_run(monkeypatch, plan, ["A1", "B2"]) != first
    assert keys_of_a_run(monkeypatch, other, ["A1", "B1"]) != first


def test_parts_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(PlanError, match="give a treetop.Unit"):
        tt.Plan(SPINE, "trip", tt.Loss(rho=1), margins="none")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="not one of its leaves"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), unknown={"origin": "?", "destination": "A1"}, margins="none")


def test_a_plan_does_not_change_with_the_callers_split() -> None:
    weights: dict[str, Any] = dict.fromkeys(NAMES, 1)
    plan = tt.Plan(SPINE, TRIP, tt.Loss(rho=1), split=weights, margins="none")
    weights[NAMES[0]] = 99
    assert plan.split != weights


def test_a_preference_decides_repair_and_order_and_can_be_changed_again() -> None:
    lost = tt.Plan(SPINE, TRIP, tt.Loss(rho=1), prefer="fewer-lost", margins="none")
    assert (lost.repair, lost.order, lost.preference) == ("chebyshev", "descending", "fewer-lost")
    assert replace(lost, order="ascending").preference == "fewer-invented"
    assert replace(lost, repair="euclidean").preference is None
    assert replace(lost, order="ascending").digest == tt.Plan(SPINE, TRIP, tt.Loss(rho=1), margins="none").digest
    with pytest.raises(PlanError, match="decides repair and order"):
        tt.Plan(SPINE, TRIP, tt.Loss(rho=1), repair="euclidean", prefer="fewer-lost", margins="none")
