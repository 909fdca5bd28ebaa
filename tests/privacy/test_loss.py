"""The privacy loss: its three forms, numbers read exactly, group privacy, and every refusal."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop import Loss
from treetop._util.numbers import plain
from treetop.errors import LossError
from treetop.privacy import epsilon_from_rho, rho_from_epsilon


def test_epsilon_with_delta_is_approximate_and_keeps_a_rho() -> None:
    loss = Loss(epsilon=1.0, delta=1e-8)
    assert loss.definition == "approximate"
    assert loss.budget == rho_from_epsilon(1, Fraction(1, 10**8))
    assert 1 - 1e-10 < loss.epsilon_at(1e-8) <= 1


def test_rho_is_zero_concentrated_and_its_delta_only_reports() -> None:
    assert Loss(rho=0.5).definition == Loss(rho=0.5, delta=1e-8).definition == "zcdp"
    assert Loss(rho=0.5).budget == Loss(rho=0.5, delta=1e-8).budget == Fraction(1, 2)
    assert Loss(rho=0.5).epsilon_at(1e-6) == epsilon_from_rho(0.5, 1e-6)


def test_epsilon_alone_is_pure_at_every_delta() -> None:
    loss = Loss(epsilon=0.1)
    assert loss.definition == "pure"
    assert loss.budget == Fraction(1, 10)
    assert loss.epsilon_at(1e-3) == loss.epsilon_at(1e-30) == 0.1


@pytest.mark.parametrize("written", [0.1, Fraction(1, 10), Decimal("0.1"), Decimal("0.10"), np.float64(0.1)], ids=repr)
def test_a_number_is_read_as_what_was_written(written: Any) -> None:
    assert Loss(epsilon=written).epsilon == Fraction(1, 10)


def test_an_integer_from_numpy_does_not_overflow() -> None:
    loss = Loss(rho=np.int64(2**29))  # type: ignore[arg-type]
    assert loss.budget * 2**51 == 2**80


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "is empty; give epsilon and delta, or rho, or epsilon alone"),
        ({"delta": 1e-8}, "only a delta"),
        ({"epsilon": 1, "rho": 1}, "both epsilon and rho"),
        ({"epsilon": 1, "rho": 1, "delta": 1e-8}, "both epsilon and rho"),
        ({"epsilon": 1, "delta": 0}, "leave delta out"),
        ({"rho": 1, "delta": 0.0}, "leave delta out"),
        ({"epsilon": 1, "delta": 1}, "protects nobody"),
        ({"epsilon": 1, "delta": 2.0}, "protects nobody"),
        ({"epsilon": 1, "delta": -1e-8}, "greater than zero"),
        ({"epsilon": 1, "delta": math.nan}, "finite"),
        ({"epsilon": 1, "delta": "1e-8"}, "without quotes"),
        ({"epsilon": 1e-99, "delta": 1e-99}, "larger epsilon"),
        ({"epsilon": 1, "accounting": "exact"}, "stated as epsilon alone.*exact accounting is for epsilon with delta"),
        ({"rho": 1, "accounting": "exact"}, "stated as rho.*exact accounting is for epsilon with delta"),
        ({"rho": 1, "delta": 1e-8, "accounting": "exact"}, "stated as rho"),
        ({"epsilon": 1, "delta": 1e-8, "accounting": "exakt"}, "'exakt' .did you mean 'exact'.*\"zcdp\" or"),
        ({"epsilon": 1, "delta": 1e-8, "accounting": 1}, "accounting is 1"),
    ],
)
def test_a_loss_that_is_not_one_of_the_three_forms_is_refused(parts: Any, message: str) -> None:
    with pytest.raises(LossError, match=message):
        Loss(**parts)


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "greater than zero"),
        (0.0, "greater than zero"),
        (-1, "greater than zero"),
        (Decimal("-0.1"), "greater than zero"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        (-math.inf, "finite"),
        (Decimal("NaN"), "finite"),
        (Decimal("sNaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        (True, "not a number"),
        (False, "not a number"),
        (np.True_, "not a number"),
        ("1", "without quotes"),
        (1j, "not a number"),
        ([1], "not a number"),
        (1e9 + 1, "at most 1e.09 is accepted.*Give a smaller one"),
        (1e23, "at most"),
        (1e60, "at most"),
        (1e-101, "between"),
        (10**101, "between"),
    ],
)
def test_an_amount_that_is_not_a_positive_number_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(LossError, match=f"{name} is .*{message}"):
        Loss(**{name: value})


def test_a_loss_takes_keywords_only() -> None:
    with pytest.raises(TypeError):
        Loss(1.0, 1e-8)  # type: ignore[call-arg]


@pytest.mark.parametrize("bad", [0, 1, -1.0, math.nan])
@pytest.mark.parametrize("loss", [Loss(epsilon=1), Loss(rho=1), Loss(epsilon=1, delta=1e-8)], ids=repr)
def test_asking_for_epsilon_at_a_senseless_delta_is_refused(loss: Loss, bad: float) -> None:
    with pytest.raises(LossError, match="delta is"):
        loss.epsilon_at(bad)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (Loss(epsilon=1), "Pure differential privacy with epsilon 1; Laplace noise."),
        (Loss(rho=0.5), "Zero-concentrated differential privacy with rho 0.5; Gaussian noise."),
        (
            Loss(rho=Fraction(293764, 114921), delta=1e-10),
            "Zero-concentrated differential privacy with rho 2.55623, so epsilon 17.1436 at delta 1e-10; "
            "Gaussian noise.",
        ),
        (
            Loss(epsilon=1, delta=1e-8, accounting="zcdp"),
            "Approximate differential privacy with epsilon 1 and delta 1e-08, kept by rho 0.0172054 "
            "(zero-concentrated); Gaussian noise.",
        ),
        (
            Loss(epsilon=1, delta=1e-8),
            "Approximate differential privacy with epsilon 1 and delta 1e-08, kept by exact accounting of all levels "
            "together where a unit has one record, and by rho 0.0172054 (zero-concentrated) elsewhere; Gaussian noise.",
        ),
        (
            Loss(epsilon=1, delta=1e-8, accounting="exact"),
            "Approximate differential privacy with epsilon 1 and delta 1e-08, by exact accounting of all levels "
            "together, for this release alone; Gaussian noise.",
        ),
    ],
    ids=repr,
)
def test_the_sentence_states_the_guarantee(loss: Loss, sentence: str) -> None:
    assert loss.sentence() == sentence


@given(value=st.fractions(Fraction(1, 10**12), Fraction(10**12)))
@settings(max_examples=100)
def test_a_number_written_for_people_is_close_and_never_understated(value: Fraction) -> None:
    assert value <= Fraction(plain(value)) <= value * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize("accounting", ["exact", None])
def test_what_follows_from_the_rho_of_a_plan_is_not_guessed_by_a_loss_with_exact_accounting(accounting: Any) -> None:
    loss = Loss(epsilon=1, delta=1e-8, accounting=accounting)
    assert loss.epsilon_at(1e-8) == 1
    with pytest.raises(LossError, match=r"Loss\(rho=plan\.spent\)"):
        loss.epsilon_at(1e-6)
    assert loss != Loss(epsilon=1, delta=1e-8, accounting="zcdp")
    assert eval(repr(loss)) == loss


def test_losses_are_frozen_values() -> None:
    loss = Loss(epsilon=1.0, delta=1e-8)
    assert {loss: "a"}[Loss(epsilon=Fraction(1), delta=Decimal("1e-8"))] == "a"
    assert eval(repr(loss)) == loss
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.epsilon = Fraction(2)  # type: ignore[misc]
