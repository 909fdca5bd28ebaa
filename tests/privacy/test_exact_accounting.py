"""Exact accounting: never below the true delta, close to it, and worth its noise; refused where it does not hold."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from treetop import Ledger, Loss, Unit
from treetop.errors import LossError, Overspent
from treetop.ledger import unit_text
from treetop.noise import DiscreteGaussian
from treetop.privacy import epsilon_from_rho, rho_from_epsilon
from treetop.privacy.accountant import exact_delta, exact_rho, level_cells

from .divergence import Shift, hockey_stick

Cells = list[tuple[Fraction, int]]

PLACE = tt.Hierarchy.from_prefixes(["A1", "A2", "B1", "B2"], widths=[1], levels=["state", "town"])
SPINE = tt.Spine(["place.state", "place.town"], {"place": PLACE})
TRIP = Unit("trip", neighbours="replace")
EXACT = Loss(epsilon=1, delta=1e-8, accounting="exact")


def even(levels: int) -> tuple[Fraction, ...]:
    return (Fraction(1, levels),) * levels


def in_proportion(weights: list[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def oracle(cells: Cells, epsilon: float, *, rounded_up: bool) -> float:
    """The delta that another library finds, rounded in one direction."""
    one, *others = (
        pld.from_discrete_gaussian_mechanism(
            math.sqrt(variance), value_discretization_interval=1e-4, pessimistic_estimate=rounded_up
        ).self_compose(count)
        for variance, count in cells
    )
    for other in others:
        one = one.compose(other)
    return float(one.get_delta_for_epsilon(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "levels", "sigma"),
    [(0.1, 6, 159.13), (0.1, 16, 259.86), (1, 6, 17.66895), (1, 16, 28.852), (10, 6, 2.13496), (10, 16, 3.48409)],
)
def test_the_noise_of_even_levels_is_the_known_one(epsilon: float, levels: int, sigma: float) -> None:
    rho = exact_rho(Fraction(str(epsilon)), Fraction(1, 10**8), even(levels), (2,) * levels)
    assert math.sqrt(levels / rho) == pytest.approx(sigma, rel=1e-4)


def test_noise_for_epsilon_one_over_six_levels_is_a_twentieth_narrower_than_through_rho() -> None:
    rho = exact_rho(Fraction(1), Fraction(1, 10**8), even(6), (2,) * 6)
    assert f"{math.sqrt(6 / rho):.2f}" == "17.67"
    assert f"{math.sqrt(6 / rho_from_epsilon(1, 1e-8)):.2f}" == "18.67"


@pytest.mark.parametrize(
    ("first", "second", "epsilon"), [("1/2", "1/2", 4), ("2", "3", 2), ("1/3", "5", 5), ("7", "13/10", "1/2")]
)
def test_delta_of_two_cells_is_the_sum_over_all_that_may_be_seen(first: str, second: str, epsilon: Any) -> None:
    laws = DiscreteGaussian(Fraction(first)), DiscreteGaussian(Fraction(second))
    one, other = ({x: law.mass(x) for x in range(-40, 41)} for law in laws)
    factor = math.exp(Fraction(epsilon))
    expected = math.fsum(
        max(one[x] * other[y] - factor * one[x - 1] * other[y + 1], 0.0) for x, y in product(range(-39, 40), repeat=2)
    )
    found = exact_delta(Fraction(epsilon), [(laws[0].variance, 1), (laws[1].variance, 1)])
    # A loss that falls on epsilon itself, as 9/2 + 1/2 does on 5, is the worst case of the grid.
    assert expected <= found <= expected * (1 + 2e-3)


@pytest.mark.parametrize(
    ("variance", "cells", "epsilon"),
    [(312, 2, 0.25), (312, 12, 1), (4, 3, 3), ("1/2", 4, 8), ("1/20", 2, 25), (50_000, 4, 0.05), (9, 40, 12)],
)
def test_delta_of_cells_with_the_same_noise_is_their_divergence_to_a_millionth(
    variance: Any, cells: int, epsilon: float
) -> None:
    law = DiscreteGaussian(Fraction(variance))
    expected = hockey_stick([Shift(law, 1 if i % 2 else -1) for i in range(cells)], epsilon)
    assert expected * (1 - 1e-12) <= exact_delta(epsilon, [(law.variance, cells)]) <= expected * (1 + 1e-6)


@pytest.mark.parametrize(
    ("cells", "epsilon"),
    [
        ([("20", 2), ("30", 2), ("77", 2), ("200", 2)], 2),
        ([("4", 2), ("9", 2), ("1", 1)], 8),
        ([("1/3", 2), ("5", 2)], 9),
        ([("40", 1), ("80", 12)], 2),
    ],
)
def test_delta_lies_between_what_another_library_finds_when_it_rounds_down_and_up(
    cells: list[tuple[str, int]], epsilon: float
) -> None:
    exact = [(Fraction(variance), count) for variance, count in cells]
    found = exact_delta(epsilon, exact)
    assert oracle(exact, epsilon, rounded_up=False) <= found <= oracle(exact, epsilon, rounded_up=True)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 2, 5]], ids=str)
def test_another_library_agrees_that_delta_is_kept_and_that_sigma_is_right_to_a_tenth_of_a_percent(
    neighbours: Any, weights: list[int]
) -> None:
    moved = 2 if neighbours == "replace" else 1
    shares = in_proportion(weights)
    rho = exact_rho(Fraction(2), Fraction(1, 10**6), shares, (moved,) * 3)
    cells = level_cells(rho, shares, (moved,) * 3)
    assert oracle(cells, 2, rounded_up=False) <= 1e-6
    narrower = [(variance * Fraction(999, 1000) ** 2, count) for variance, count in cells]
    assert oracle(narrower, 2, rounded_up=False) > 1e-6


@settings(max_examples=25, deadline=None)
@given(
    variances=st.lists(st.fractions(Fraction(1, 4), 200, max_denominator=20), min_size=2, max_size=5),
    epsilon=st.floats(0.05, 8),
)
def test_neighbours_that_move_fewer_cells_are_no_easier_to_tell_apart(
    variances: list[Fraction], epsilon: float
) -> None:
    every = exact_delta(epsilon, [(variance, 2) for variance in variances])
    slack = 1 + 2e-3  # both are rounded up
    assert exact_delta(epsilon, [(variance, 2) for variance in variances[1:]]) <= every * slack
    assert exact_delta(epsilon, [(variance, 1) for variance in variances]) <= every * slack


@settings(max_examples=20, deadline=None)
@given(
    epsilon=st.floats(-2, 1.3).map(lambda power: round(10.0**power, 6)),
    delta=st.integers(2, 30).map(lambda power: Fraction(1, 10**power)),
    weights=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    moved=st.sampled_from([1, 2]),
)
def test_delta_is_kept_and_no_rho_is_lost_against_the_conversion(
    epsilon: float, delta: Fraction, weights: list[int], moved: int
) -> None:
    stated, shares = Fraction(str(epsilon)), in_proportion(weights)
    rho = exact_rho(stated, delta, shares, (moved,) * len(weights))
    known = rho_from_epsilon(stated, delta)
    assert rho >= known
    if rho > known:
        assert exact_delta(stated, level_cells(rho, shares, (moved,) * len(weights))) <= delta


@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-15, 1e-30])
@pytest.mark.parametrize("epsilon", [0.01, 1, 8])
def test_a_thousandth_more_of_rho_would_break_any_delta(epsilon: float, delta: float) -> None:
    stated, chance, shares = Fraction(str(epsilon)), Fraction(repr(delta)), in_proportion([1, 2, 3, 4, 5, 6])
    rho = exact_rho(stated, chance, shares, (2,) * 6)
    assert exact_delta(stated, level_cells(rho, shares, (2,) * 6)) <= chance
    assert exact_delta(stated, level_cells(rho * Fraction(1001, 1000), shares, (2,) * 6)) > chance


def test_the_order_of_the_levels_does_not_matter() -> None:
    cells: Cells = [(Fraction(5), 2), (Fraction(9), 2), (Fraction(20), 1)]
    assert exact_delta(2, cells) == pytest.approx(exact_delta(2, cells[::-1]), rel=1e-9)
    assert exact_delta(2, [(Fraction(5), 1)] * 4) == exact_delta(2, [(Fraction(5), 4)])


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_plan_divides_the_rho_that_exact_accounting_leaves_it(neighbours: Any) -> None:
    plan = tt.Plan(SPINE, Unit("trip", neighbours=neighbours), EXACT, split="uniform")
    levels = [level for level in plan.levels if level.is_measured]
    moved = [2, 2] if neighbours == "replace" else [1, 1, 1]
    assert plan.budget == exact_rho(Fraction(1), Fraction(1, 10**8), even(len(levels)), tuple(moved))
    assert plan.spent == plan.budget > plan.loss.budget == Loss(epsilon=1, delta=1e-8).budget
    cells = [(level.law.variance, n) for level, n in zip(levels, moved, strict=True)]  # type: ignore[attr-defined]
    assert exact_delta(1, cells) <= 1e-8


def test_a_record_that_may_be_dropped_moves_the_total_as_well() -> None:
    plan = tt.Plan(SPINE, TRIP, EXACT, unknown="drop")
    assert plan.budget == exact_rho(Fraction(1), Fraction(1, 10**8), even(3), (1, 2, 2))


def test_exact_accounting_is_the_default_for_epsilon_and_delta_with_units_of_one_record() -> None:
    plan, same = (tt.Plan(SPINE, TRIP, loss) for loss in (Loss(epsilon=1, delta=1e-8), EXACT))
    assert plan.accounting == "exact" and plan.loss.accounting is None
    assert plan.digest == same.digest and plan.describe()["loss"]["accounting"] == "exact"
    assert plan.spent == plan.budget > plan.loss.budget


@pytest.mark.parametrize(
    ("unit", "loss"),
    [
        (Unit("person", 3, "replace"), Loss(epsilon=1, delta=1e-8)),
        (TRIP, Loss(epsilon=1, delta=1e-8, noise="discrete Gaussian")),
        (TRIP, Loss(rho=1, delta=1e-8)),
        (TRIP, Loss(epsilon=1)),
        (TRIP, Loss(epsilon=Fraction(1, 10**7), delta=1e-8)),  # which no grid is large enough for
    ],
    ids=["three records", "a law by name", "rho", "pure", "too extreme"],
)
def test_elsewhere_the_default_is_what_it_was(unit: Unit, loss: Loss) -> None:
    plan = tt.Plan(SPINE, unit, loss)
    assert plan.accounting == "zcdp" and plan.budget == loss.budget
    assert "accounting" not in plan.describe()["loss"]


def test_a_plan_that_names_the_conversion_has_it_and_says_nothing_of_exact_accounting() -> None:
    plan = tt.Plan(SPINE, TRIP, Loss(epsilon=1, delta=1e-8, accounting="zcdp"))
    assert plan.accounting == "zcdp" and plan.budget == plan.loss.budget
    assert "accounting" not in plan.describe()["loss"]
    assert "kept by rho" in plan.kept_loss.sentence()


def test_units_of_several_records_are_refused_with_the_reason() -> None:
    with pytest.raises(LossError, match=r"up to 3: they may fall into one cell or .*accounting=\"zcdp\""):
        tt.Plan(SPINE, Unit("person", 3, "replace"), EXACT)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**7), Fraction(1001), Fraction(10**6)])
def test_an_epsilon_that_would_need_too_large_a_grid_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(LossError, match=r"less extreme epsilon .*accounting=\"zcdp\""):
        exact_rho(epsilon, Fraction(1, 10**8), even(3), (2,) * 3)


def test_a_ledger_charges_the_rho_and_without_the_noise_nothing_else_counts(tmp_path: Any) -> None:
    plan = tt.Plan(SPINE, TRIP, EXACT)
    charge = plan.spent, "zcdp", unit_text(plan.unit)
    wide = Ledger.create(tmp_path / "wide", loss=Loss(rho=1))
    assert wide.reserve("trips", *charge, "Trips", plan.digest).charged == plan.spent  # type: ignore[arg-type]
    # Of a release with this rho and nothing else known, the loss is more than epsilon 1, which is all that there is.
    narrow = Ledger.create(tmp_path / "narrow", loss=Loss(epsilon=1, delta=1e-8))
    with pytest.raises(Overspent, match=r"asked rho 0\.0192\d+ \(epsilon 1\.0\d+ at delta 1e-08\)"):
        narrow.check("trips", *charge)  # type: ignore[arg-type]
    assert epsilon_from_rho(plan.spent, 1e-8) > 1
