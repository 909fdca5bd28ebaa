"""The laws of noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx

from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.noise import law as gaussian_sums

from .oracles import Reference

SMALL: list[Law] = [
    DiscreteGaussian(Fraction(1, 100)),
    DiscreteGaussian(Fraction(1, 4)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(400)),
    DiscreteLaplace(Fraction(1, 10)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(22, 7)),
]
WIDE: list[Law] = [
    DiscreteGaussian(Fraction(2000)),
    DiscreteGaussian(Fraction(10**12)),
    DiscreteGaussian(Fraction(10**18)),
    DiscreteLaplace(Fraction(10**6)),
]
each_small = pytest.mark.parametrize("law", SMALL, ids=str)
each_wide = pytest.mark.parametrize("law", WIDE, ids=str)
each = pytest.mark.parametrize("law", SMALL + WIDE, ids=str)


@each_small
def test_mass_and_cumulative_are_the_floats_nearest_to_direct_sums(law: Law) -> None:
    reference = Reference(law)
    for k in [*range(-30, 31), -150, 150]:
        assert law.mass(k) == float(reference.weight(k) / reference.total())
        assert law.cumulative(k) == float(reference.cumulative(k))


@each_small
def test_the_standard_deviation_is_the_float_nearest_to_a_direct_sum(law: Law) -> None:
    assert law.standard_deviation == pytest.approx(float(Reference(law).variance().sqrt()), rel=2**-52, abs=0)


@each_small
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(5, 100), Fraction(1, 10**9), Fraction(1, 10**40)])
def test_the_margin_is_the_smallest_by_direct_sums(law: Law, alpha: Fraction) -> None:
    reference, m = Reference(law), law.margin(alpha)
    limit = Decimal(alpha.numerator) / alpha.denominator
    assert 2 * reference.upper(m + 1) / reference.total() <= limit
    assert m == 0 or 2 * reference.upper(m) / reference.total() > limit


@each_small
@pytest.mark.parametrize(
    "p", [Fraction(1, 10**30), Fraction(1, 3), Fraction(1, 2), Fraction(99, 100), 1 - Fraction(1, 10**30)]
)
def test_the_quantile_is_the_smallest_by_direct_sums(law: Law, p: Fraction) -> None:
    reference, k = Reference(law), law.quantile(p)
    assert Fraction(reference.cumulative(k)) >= p > Fraction(reference.cumulative(k - 1))


@each
def test_margin_and_quantile_agree(law: Law) -> None:
    for alpha in (Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**40)):
        assert law.quantile(1 - alpha / 2) == law.margin(alpha)
        assert law.quantile(alpha / 2) == -law.margin(alpha)


@each_wide
def test_cumulative_rises_with_mass_as_its_step(law: Law) -> None:
    deviation = int(law.standard_deviation)
    points = [multiple * deviation // 4 for multiple in range(-32, 33)]
    values = [law.cumulative(k) for k in points]
    assert values == sorted(set(values))
    for k in points:
        with ctx.workprec(200):
            step = law.enclose_cumulative(k, 150) - law.enclose_cumulative(k - 1, 150)
            assert step.overlaps(law.enclose_mass(k, 150))
            assert step.rel_accuracy_bits() > 80


@pytest.mark.parametrize("sigma", [100, 10**6])
def test_a_wide_gaussian_is_nearly_the_continuous_one(sigma: int) -> None:
    law = DiscreteGaussian(Fraction(sigma**2))
    for y in (-8, -3, -1, 0, 2):
        continuous = math.erfc(-(y * sigma + 0.5) / sigma / math.sqrt(2)) / 2
        assert law.cumulative(y * sigma) == pytest.approx(continuous, rel=30 / sigma**2)
    assert law.margin(Fraction(5, 100)) == pytest.approx(1.959964 * sigma, abs=1)
    assert law.standard_deviation == sigma


@pytest.mark.parametrize("variance", [Fraction(1001), Fraction(99_999, 7)])
@pytest.mark.parametrize("first", [0, 1, 50, 300, 2000])
@pytest.mark.parametrize("order", [2, 4, 10, 20])
def test_euler_maclaurin_sums_enclose_the_direct_sum(variance: Fraction, first: int, order: int) -> None:
    with ctx.workprec(400):
        direct = gaussian_sums._direct(variance, first, 300)
        enclosing = gaussian_sums._euler_maclaurin(variance, first, order)
        assert direct.rel_accuracy_bits() > 290
        assert enclosing.contains(direct)


def test_euler_maclaurin_sums_allow_for_the_zeros_of_their_derivatives() -> None:
    variance, first = Fraction(1200), 60  # the third derivative is zero at √3 deviations
    with ctx.workprec(400):
        direct = gaussian_sums._direct(variance, first, 300)
        assert gaussian_sums._euler_maclaurin(variance, first, 4).contains(direct)


@pytest.mark.parametrize("variance", [Fraction(1, 5), Fraction(6, 25), Fraction(1, 4), Fraction(1, 3)])
@pytest.mark.parametrize("enclose", [gaussian_sums.total, gaussian_sums.second_moment])
def test_coarse_enclosures_contain_fine_ones(variance: Fraction, enclose: Callable[[Fraction, int], arb]) -> None:
    coarse, fine = enclose(variance, 4), enclose(variance, 500)
    with ctx.workprec(600):
        assert coarse.contains(fine)
        assert fine.rel_accuracy_bits() > 490


def test_far_out_the_answers_are_zero_and_one() -> None:
    for law in SMALL + WIDE:
        assert law.mass(10**30) == law.cumulative(-(10**30)) == 0.0
        assert law.cumulative(10**30) == 1.0


def test_tails_keep_their_digits_down_to_the_least_float() -> None:
    law = DiscreteGaussian(Fraction(1))
    assert law.cumulative(-38) == float(Reference(law).cumulative(-38)) > 0


def test_threads_that_raise_the_precision_do_not_disturb_each_other() -> None:
    before = ctx.prec
    laws = [DiscreteGaussian(Fraction(n, 7)) for n in range(900, 960)]
    alone = [DiscreteGaussian(law.variance).cumulative(-20) for law in laws]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda law: law.cumulative(-20), laws))
    assert together == alone
    assert ctx.prec == before


def test_a_whole_number_is_an_exact_scale() -> None:
    whole: Any = 4
    assert DiscreteGaussian(whole) == DiscreteGaussian(Fraction(4))
    assert DiscreteLaplace(whole).rate == Fraction(1, 4)


@pytest.mark.parametrize("law", [DiscreteGaussian, DiscreteLaplace])
@pytest.mark.parametrize("scale", [0.1, 1.0, float("nan"), "1", None, Decimal(1)])
def test_scales_that_are_not_exact_are_refused(law: type[Any], scale: object) -> None:
    with pytest.raises(LossError, match="give a Fraction"):
        law(scale)


@pytest.mark.parametrize("law", [DiscreteGaussian, DiscreteLaplace])
@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 3)])
def test_scales_that_are_not_positive_are_refused(law: type[Any], scale: object) -> None:
    with pytest.raises(LossError, match="must be positive"):
        law(scale)


@pytest.mark.parametrize("p", [0, 1, Fraction(-1, 2), Fraction(3, 2)])
def test_probabilities_outside_the_open_unit_interval_are_refused(p: Any) -> None:
    law: Any = DiscreteGaussian(Fraction(1))
    for question in (law.margin, law.quantile):
        with pytest.raises(LossError, match="between 0 and 1"):
            question(p)
        with pytest.raises(LossError, match="give a Fraction"):
            question(0.05)
