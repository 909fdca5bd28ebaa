"""The noise of sums against exact convolutions, selected or not."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law, sum_noise
from treetop.noise.sum_noise import EXCEEDING, selected_margins, sum_margin

LAWS: list[Law] = [
    DiscreteGaussian(Fraction(1, 10)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(9, 2)),
    DiscreteGaussian(Fraction(40)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(5)),
]
RISKS = [Fraction(1, 4), Fraction(1, 40), Fraction(1, 5000)]


def masses(law: Law, reach: int) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.array([law.mass(k) for k in range(-reach, reach + 1)])
    return found


def convolved(law: Law, number: int) -> tuple[NDArray[np.float64], int]:
    """The masses of a sum of draws, and where 0 stands among them."""
    reach = 150 if law.power == 1 else 60
    one = masses(law, reach)
    found = one
    for _ in range(number - 1):
        found = np.convolve(found, one)
    return found, number * reach


@pytest.mark.parametrize("number", [1, 2, 3, 7])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_margin_of_a_sum_is_the_quantile_of_the_exact_convolution(law: Law, number: int) -> None:
    exact, zero = convolved(law, number)
    for risk in RISKS:
        margin = sum_margin(law, number, risk)
        assert exact[zero + margin + 1 :].sum() <= float(risk) * (1 + 1e-9)
        assert margin == 0 or exact[zero + margin :].sum() > float(risk) * (1 - 1e-9)


def test_a_sum_of_no_measurements_has_no_noise() -> None:
    assert sum_margin(LAWS[0], 0, RISKS[0]) == 0


@pytest.mark.parametrize("number", [2, 7])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sums_that_are_too_wide_to_convolve_get_a_valid_bound_that_is_not_far_off(law: Law, number: int) -> None:
    exact, zero = convolved(law, number)
    for risk in RISKS:
        margin = sum_noise._chernoff(law, number, float(risk))
        assert exact[zero + margin + 1 :].sum() <= float(risk)
        assert risk > Fraction(1, 40) or margin <= 1.6 * sum_margin(law, number, risk) + 3


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("number", [2, 5])
def test_a_sum_of_discrete_gaussians_is_as_near_to_one_as_the_theorem_says(variance: Fraction, number: int) -> None:
    exact, zero = convolved(DiscreteGaussian(variance), number)
    together = DiscreteGaussian(number * variance)
    factor = 5 * sum(math.exp(-2 * math.pi**2 * float(variance) * k / (k + 1)) for k in range(1, number))
    ratios = [abs(math.log(exact[zero + k] / together.mass(k))) for k in range(-8, 9)]
    assert max(ratios) <= factor + 1e-12


@pytest.mark.parametrize("number", [1, 2, 6])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_excesses_are_bounded_as_their_exact_convolution_says(law: Law, number: int) -> None:
    part = 1e-3
    thresholds, step, rates, logs = sum_noise._excesses(law)
    assert step == 1
    reach = 150
    one = masses(law, reach)
    for threshold, row in zip(thresholds.tolist(), logs, strict=True):
        excess = np.bincount(np.maximum(np.arange(-reach, reach + 1) - threshold, 0), one)
        exact = excess
        for _ in range(number - 1):
            exact = np.convolve(exact, excess)
        bound = math.floor(((number * row - math.log(part)) / rates).min())
        assert exact[bound + 1 :].sum() <= part
        assert np.allclose(np.exp(row[:30]), np.exp(np.outer(rates[:30], np.arange(len(excess)))) @ excess)


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(4)), DiscreteLaplace(Fraction(2))], ids=str)
def test_no_selection_exceeds_its_margin_more_often_than_said(law: Law) -> None:
    number, reach = 3, 30
    one = masses(law, reach)
    draws = np.array(list(itertools.product(range(-reach, reach + 1), repeat=number)))
    chance = one[draws + reach].prod(axis=1)
    largest = np.cumsum(np.sort(draws, axis=1)[:, ::-1], axis=1)  # the worst selection of every size
    for risk in (Fraction(1, 4), Fraction(1, 20)):
        margins = selected_margins(law, np.full(number, number), np.arange(1, number + 1), risk)
        assert chance[(largest > margins).any(axis=1)].sum() <= risk


def test_nothing_selected_adds_nothing_and_few_selected_add_less_than_all() -> None:
    law = DiscreteGaussian(Fraction(100))
    selected = np.arange(0, 101, 10)
    margins = selected_margins(law, np.full(len(selected), 100), selected, Fraction(1, 100))
    assert margins[0] == 0
    assert (np.diff(margins[:5]) > 0).all()
    every = sum_margin(law, 100, Fraction(1, 100) / (len(EXCEEDING) + 1))
    assert margins[-1] == every  # all of them: no selection
    assert margins.max() > 2 * every
    single = law.quantile(1 - Fraction(1, 100) / 100)
    assert margins[1] < 10 * single  # better than a margin for each


@pytest.mark.parametrize("number", [1, 30, 1000])
def test_large_noise_is_bounded_on_a_coarser_grid_at_little_more(number: int) -> None:
    numbers = np.full(3, number)
    selected = np.array([1, (number + 1) // 2, number])
    fine = selected_margins(DiscreteGaussian(Fraction(10**6)), numbers, selected, Fraction(1, 100))
    coarse = selected_margins(DiscreteGaussian(Fraction(10**12)), numbers, selected, Fraction(1, 100))
    assert (coarse >= 999 * fine).all()
    assert (coarse <= 1010 * fine).all()


SCALES = st.fractions(Fraction(1, 10), 50, max_denominator=20)


@settings(max_examples=60, deadline=None)
@given(scale=SCALES, pure=st.booleans(), number=st.integers(1, 40), data=st.data())
def test_twice_the_epsilon_never_widens_a_margin(scale: Fraction, pure: bool, number: int, data: st.DataObject) -> None:
    def law(epsilon: int) -> Law:
        return DiscreteLaplace(scale / epsilon) if pure else DiscreteGaussian((scale / epsilon) ** 2)

    selected = data.draw(st.integers(0, number))
    for risk in RISKS:
        assert sum_margin(law(2), number, risk) <= sum_margin(law(1), number, risk)
        half, one = (
            selected_margins(law(epsilon), np.array([number]), np.array([selected]), risk) for epsilon in (1, 2)
        )
        assert one[0] <= half[0]
