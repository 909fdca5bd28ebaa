"""Error laws of a released count: against exact sums over the noise, and against simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from experiments.loss_split.laplace import LaplaceErrors
from treetop.advice import _error_laws as error_laws
from treetop.advice._error_laws import (
    SUMMED_UP_TO,
    DiscreteGaussianErrors,
    DiscreteLaplaceErrors,
    ErrorLaw,
    GaussianErrors,
    error_law,
    mean_absolute,
    mse_correction,
)
from treetop.errors import LossError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream

COUNTS = np.array([0, 1, 2, 5, 20, 100, 1000])
KINDS = [LaplaceErrors, DiscreteLaplaceErrors, GaussianErrors, DiscreteGaussianErrors]


def by_sum(law: Law, n: int) -> float:
    """The mean squared error of max(0, n + noise), term by term from the exact mass."""
    reach = law.margin(Fraction(1, 10**18))
    terms = [(max(0, n + k) - n, law.mass(k)) for k in range(-reach, reach + 1)]
    return math.fsum(e * e * p for e, p in terms)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_discrete_laplace_errors_are_the_sums_over_the_law(epsilon: Fraction, sensitivity: int) -> None:
    law = DiscreteLaplace(sensitivity / epsilon)
    errors = DiscreteLaplaceErrors(sensitivity)
    for n in (0, 2, 17):
        assert errors.mse(float(epsilon), n) == pytest.approx(by_sum(law, n), rel=1e-9)
    assert 2 * errors.mse(float(epsilon), 0) == pytest.approx(law.standard_deviation**2, rel=1e-12)


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(49, 100), Fraction(4), Fraction(225), Fraction(400)])
@pytest.mark.parametrize("sensitivity_squared", [1, 2, 9])
def test_discrete_gaussian_errors_are_the_sums_over_the_law(variance: Fraction, sensitivity_squared: int) -> None:
    law = DiscreteGaussian(variance)
    rho = float(sensitivity_squared / (2 * variance))
    errors = DiscreteGaussianErrors(math.sqrt(sensitivity_squared))
    for n in (0, 1, 2, 5, 30):
        assert errors.mse(rho, n) == pytest.approx(by_sum(law, n), rel=1e-9)
    assert 2 * errors.mse(rho, 0) == pytest.approx(law.standard_deviation**2, rel=1e-12)


@pytest.mark.parametrize(("sigma", "off"), [("0.7", 7e-3), ("1", 3e-3), ("2", 3e-4), ("5", 1e-6)])
def test_the_correction_brings_the_continuous_form_to_the_discrete_law(sigma: str, off: float) -> None:
    variance = Fraction(sigma) ** 2
    plain = GaussianErrors(1.0)
    rho = float(1 / (2 * variance))
    for n in (1, 2, 5):
        mse = by_sum(DiscreteGaussian(variance), n)
        assert plain.mse(rho, n) + mse_correction(float(variance), n) == pytest.approx(mse, rel=off)
        assert abs(plain.mse(rho, n) / mse - 1) < 0.08


def test_summed_and_closed_forms_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, rho = DiscreteGaussianErrors(1.0), 1 / (2 * (SUMMED_UP_TO * 0.999) ** 2)
    kinds = (errors.mse, errors.slope)
    summed = [form(rho, np.arange(40)) for form in kinds]
    monkeypatch.setattr(error_laws, "SUMMED_UP_TO", 1.0)
    for one, other in zip(summed, [form(rho, np.arange(40)) for form in kinds], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_continuous_errors_are_those_of_a_simulation() -> None:
    rng = np.random.default_rng(1)
    draws = 400_000
    cases: tuple[tuple[ErrorLaw, float, np.ndarray], ...] = (
        (LaplaceErrors(2.0), 0.5, rng.laplace(0, 4, draws)),
        (GaussianErrors(math.sqrt(2)), 0.04, rng.normal(0, 5, draws)),
    )
    for errors, budget, noise in cases:
        for n in (0, 1, 4, 12):
            off = np.maximum(n + noise, 0) - n
            assert errors.mse(budget, n) == pytest.approx((off**2).mean(), abs=5 * (off**2).std() / math.sqrt(draws))
            if isinstance(errors, LaplaceErrors):
                assert errors.bias(budget, n) == pytest.approx(off.mean(), abs=5 * off.std() / math.sqrt(draws))
                assert errors.variance(budget, n) == pytest.approx(off.var(), rel=0.02)


def test_drawn_noise_has_the_errors_that_a_plan_expects() -> None:
    unit = tt.Unit("trip", neighbours="replace")
    for loss in (tt.Loss(rho=Fraction(1, 50)), tt.Loss(epsilon=Fraction(1, 2))):
        law = tt.Plan(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}), unit, loss).levels[1].law
        assert law is not None
        noise = np.empty(300_000, np.int64)
        NoiseStream(law, Key(bytes(range(32)))).fill(noise, 0)
        errors = error_law(unit, loss, "sex")
        for n in (0, 3, 10):
            off = (np.maximum(n + noise, 0) - n).astype(float)
            expected = errors.mse(float(loss.budget), n)
            assert expected == pytest.approx((off**2).mean(), abs=5 * (off**2).std() / math.sqrt(len(off)))


@pytest.mark.parametrize("loss", [tt.Loss(rho=Fraction(1, 50)), tt.Loss(epsilon=Fraction(1, 2))])
def test_the_error_law_of_a_level_has_the_noise_of_the_plan(loss: tt.Loss) -> None:
    unit = tt.Unit("person", contributions=5, neighbours="replace", per_node={"sex": 2})
    plan = tt.Plan(tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])}), unit, loss)
    for level in plan.levels:
        assert level.law is not None
        variance = 2 * error_law(unit, loss, level.name).mse(float(level.cost), 0)  # half of it is clipped off at zero
        assert variance == pytest.approx(level.law.standard_deviation**2, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    budget=st.floats(1e-4, 8),
    sensitivity=st.floats(0.5, 8),
    counts=st.lists(st.integers(0, 10**7), min_size=1, max_size=8),
)
def test_errors_lie_between_half_the_noise_and_the_noise(
    kind: type[ErrorLaw], budget: float, sensitivity: float, counts: list[int]
) -> None:
    errors, n = kind(sensitivity), np.sort(counts)
    low = float(errors.mse(budget, 0))
    high, mse = 2 * low, errors.mse(budget, n)
    assert (mse >= low * (1 - 1e-9)).all() and (mse <= high * (1 + 1e-9)).all()
    assert (np.diff(mse) >= -1e-9 * high).all()
    up, down = (2 * float(errors.mse(budget * (1 + step), 0)) for step in (1e-5, -1e-5))
    steep = (up - down) / (2e-5 * budget)
    slope = errors.slope(budget, n)
    assert (slope <= steep / 2 * (1 - 1e-3)).all() and (slope >= steep * (1 + 1e-3)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [0.001, 0.02, 0.3, 2.0])
def test_slopes_are_the_derivatives_of_the_errors(kind: type[ErrorLaw], budget: float) -> None:
    errors, step = kind(1.5), budget * 1e-5
    by_difference = (errors.mse(budget + step, COUNTS) - errors.mse(budget - step, COUNTS)) / (2 * step)
    np.testing.assert_allclose(errors.slope(budget, COUNTS), by_difference, rtol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_convex_in_the_budget(kind: type[ErrorLaw]) -> None:
    errors, budgets = kind(1.0), np.geomspace(1e-3, 12, 400)
    slopes = np.array([errors.slope(float(budget), COUNTS) for budget in budgets])
    assert (np.diff(slopes, axis=0) > 0).all()


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(v)) for v in ("0.2", "3", "250", "260", "90000")])
def test_the_mean_absolute_noise_of_a_gaussian_is_its_sum(law: DiscreteGaussian) -> None:
    reach = np.arange(0, 13 * math.isqrt(int(law.variance) + 1) + 20)
    weight = np.exp(-(reach**2) / (2 * float(law.variance)))
    assert mean_absolute(law) == pytest.approx(2 * (reach * weight).sum() / (2 * weight.sum() - 1), rel=1e-11)


def test_the_mean_absolute_noise_of_a_laplace_is_its_sum() -> None:
    law = DiscreteLaplace(Fraction(5, 2))
    assert mean_absolute(law) == pytest.approx(2 * math.fsum(k * law.mass(k) for k in range(1, 120)), rel=1e-12)


def test_a_sensitivity_or_a_count_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(LossError, match="sensitivity"):
        LaplaceErrors(0)
    with pytest.raises(LossError, match="not below zero"):
        LaplaceErrors(1).mse(1.0, [-1])
    with pytest.raises(LossError, match="whole counts"):
        DiscreteGaussianErrors(1).mse(1.0, [0.5])
