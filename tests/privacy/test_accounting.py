"""Conversions between rho and epsilon: published values, other accountants, and the safe side of rounding."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from treetop.errors import LossError
from treetop.privacy import epsilon_from_rho, rho_from_epsilon, rho_from_epsilon_loose

CENSUS = Fraction(293764, 114921)

epsilons = st.floats(-6, 4).map(lambda power: 10.0**power)
deltas = st.floats(-30, math.log10(0.5)).map(lambda power: 10.0**power)


def at_order(a: float, rho: float, delta: float) -> float:
    return a * rho + (math.log(1 / delta) - math.log(a)) / (a - 1) + math.log1p(-1 / a)


@pytest.mark.parametrize(("rho", "epsilon"), [(CENSUS, "17.1436"), (Fraction(11417641, 152349649), "2.4747")])
def test_the_published_census_losses_convert_as_published(rho: Fraction, epsilon: str) -> None:
    assert f"{epsilon_from_rho(rho, 1e-10):.4f}" == epsilon


@pytest.mark.parametrize(("epsilon", "rho"), [(0.1, "0.00020882"), (1, "0.0172053"), (10, "1.20837")])
def test_rho_at_the_usual_epsilons_is_the_known_one(epsilon: float, rho: str) -> None:
    assert round(rho_from_epsilon(epsilon, 1e-8), len(rho) - 2) == Fraction(rho)


def test_the_loose_conversion_reproduces_the_papers() -> None:
    for epsilon, rho in [(0.1, "0.00013535"), (1, "0.0132154"), (10, "1.07988")]:
        assert round(rho_from_epsilon_loose(epsilon, 1e-8), len(rho) - 2) == Fraction(rho)


@settings(max_examples=100, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_the_loose_inverse_inverts_and_is_never_above_the_tight_one(epsilon: float, delta: float) -> None:
    rho = rho_from_epsilon_loose(epsilon, delta)
    assert float(rho) + 2 * math.sqrt(rho * -math.log(delta)) == pytest.approx(epsilon, rel=1e-11)
    assert rho <= rho_from_epsilon(epsilon, delta)


@settings(max_examples=200, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_rho_from_epsilon_never_costs_more_than_epsilon_and_wastes_almost_nothing(epsilon: float, delta: float) -> None:
    rho = rho_from_epsilon(epsilon, delta)
    assert rho > 0
    assert Fraction(epsilon_from_rho(rho, delta)) <= Fraction(repr(epsilon))
    assert epsilon_from_rho(rho * (1 + Fraction(1, 10**10)), delta) > epsilon


@pytest.mark.parametrize("rho", [Fraction(digits, 997) for digits in range(1, 10)])
def test_an_epsilon_that_falls_between_two_floats_is_not_exceeded_either(rho: Fraction) -> None:
    twelve_digits = Fraction(f"{float(rho):.11e}")
    above = epsilon_from_rho(twelve_digits, 1e-8)
    epsilon = Fraction(above) - Fraction(math.ulp(above)) / 1000
    assert Fraction(epsilon_from_rho(rho_from_epsilon(epsilon, 1e-8), 1e-8)) <= epsilon


@settings(max_examples=100, deadline=None)
@given(rho=st.floats(-14, 4).map(lambda power: 10.0**power), delta=deltas)
def test_rho_survives_the_round_trip_through_epsilon(rho: float, delta: float) -> None:
    epsilon = epsilon_from_rho(rho, delta)
    assume(epsilon > 1e-30)
    assert float(rho_from_epsilon(epsilon, delta)) == pytest.approx(rho, rel=1e-11)


@settings(max_examples=200, deadline=None)
@given(epsilon=epsilons, delta=deltas, shift=st.floats(-3, 3))
def test_no_order_gives_a_smaller_epsilon(epsilon: float, delta: float, shift: float) -> None:
    rho = float(rho_from_epsilon(epsilon, delta))
    order = 1 + math.sqrt(math.log(1 / delta) / rho) * math.exp(shift)
    assert epsilon_from_rho(rho, delta) <= max(0.0, at_order(order, rho, delta)) + 1e-12 * (1 + order * rho)


@settings(max_examples=50, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_rho_has_at_most_twelve_digits(epsilon: float, delta: float) -> None:
    rho = rho_from_epsilon(epsilon, delta)
    digits = (Decimal(rho.numerator) / Decimal(rho.denominator)).normalize().as_tuple().digits
    assert len(digits) <= 12


def test_a_large_delta_absorbs_a_small_loss_and_epsilon_is_never_negative() -> None:
    assert epsilon_from_rho(1e-6, 0.5) == 0.0
    assert epsilon_from_rho(Fraction(1, 10**90), 1e-8) == 0.0


def test_the_caller_s_decimal_settings_change_nothing() -> None:
    expected = rho_from_epsilon(1, 1e-8), epsilon_from_rho(0.5, 1e-8)
    with localcontext() as context:
        context.prec = 3
        context.rounding = ROUND_CEILING
        assert (rho_from_epsilon(1, 1e-8), epsilon_from_rho(0.5, 1e-8)) == expected


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1.0, float(CENSUS), 30.0])
@pytest.mark.parametrize("delta", [1e-20, 1e-10, 1e-5])
def test_a_dense_grid_of_renyi_orders_comes_close_from_above(rho: float, delta: float) -> None:
    best = math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + best * math.exp(step / 500) for step in range(-1000, 500)]
    epsilon, _ = rdp.compute_epsilon(orders, [order * rho for order in orders], delta)
    ours = epsilon_from_rho(rho, delta)
    assert ours <= epsilon * (1 + 1e-13)
    assert ours == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize(("variance", "levels"), [(4.0, 3), (40.0, 6), (400.0, 10)])
@pytest.mark.parametrize("delta", [1e-8, 1e-5])
def test_the_composed_gaussians_of_the_levels_never_exceed_our_epsilon(
    variance: float, levels: int, delta: float
) -> None:
    ours = epsilon_from_rho(levels / (2 * variance), delta)
    for one_level in (
        pld.from_gaussian_mechanism(math.sqrt(variance), value_discretization_interval=1e-3),
        pld.from_discrete_gaussian_mechanism(math.sqrt(variance), value_discretization_interval=1e-3),
    ):
        exact = one_level.self_compose(levels).get_epsilon_for_delta(delta)
        # Converting through zCDP gives away up to about a tenth at these losses.
        assert 0.8 * ours < exact <= ours


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e-200, 1e200])
def test_losses_that_are_not_positive_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(LossError, match="rho is"):
        epsilon_from_rho(bad, 1e-8)
    for invert in (rho_from_epsilon, rho_from_epsilon_loose):
        with pytest.raises(LossError, match="epsilon is"):
            invert(bad, 1e-8)


@pytest.mark.parametrize("bad", [0, 1, 1.5, -1e-8, math.nan, math.inf, False, "1e-8", None, 1e-200])
def test_deltas_that_are_not_chances_are_refused(bad: Any) -> None:
    for convert in (epsilon_from_rho, rho_from_epsilon, rho_from_epsilon_loose):
        with pytest.raises(LossError, match="delta is"):
            convert(1, bad)


def test_an_epsilon_too_small_for_any_rho_is_refused() -> None:
    with pytest.raises(LossError, match="larger epsilon"):
        rho_from_epsilon(1e-90, 1e-90)
