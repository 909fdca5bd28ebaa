"""Registered laws: one from outside is drawn exactly and runs through a descent, and none is without words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import ClassVar, Self

import numpy as np
import pytest
from flint import arb

import treetop as tt
from treetop import Counts, register_law
from treetop.card import render
from treetop.card.distributions import statements_of
from treetop.errors import LossError, PlanError
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import LAWS, DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream
from treetop.noise.law import described_law
from treetop.plan.workload import Measured, noise_of
from treetop.privacy import Sensitivity
from treetop.privacy.accountant import cost_of, noise_for


@dataclass(frozen=True)
class TwoSidedGeometric(Law):
    """P(k) ∝ e^(−rate·|k|): the discrete Laplace law by its rate."""

    name: ClassVar[str] = "two-sided geometric"
    parameter: ClassVar[str] = "decay"
    words: ClassVar[str] = "Two-sided geometric noise; a level costs its L1 sensitivity times the rate."
    power: ClassVar[int] = 1

    decay: Fraction

    @property
    def rate(self) -> Fraction:
        return self.decay

    @classmethod
    def costing(cls, l1: int, l2_squared: int, cost: Fraction) -> Self:
        return cls(cost / l1)

    def cost(self, l1: int, l2_squared: int) -> Fraction:
        return l1 * self.decay

    def coarsened(self, width: int) -> Self:
        return type(self)(self.decay * width)

    def enclose_total(self, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_total(bits)

    def enclose_upper(self, first: int, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_upper(first, bits)

    def enclose_variance(self, bits: int) -> arb:
        return DiscreteLaplace(1 / self.decay).enclose_variance(bits)


register_law(TwoSidedGeometric)


class Cubic(TwoSidedGeometric):
    power: ClassVar[int] = 3


def test_a_law_from_outside_runs_through_a_descent() -> None:
    place = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in "ABC" for b in "wxyz"], widths=[1])
    spine = tt.Spine.destination_first(origin=place, destination=place)
    descent = descent_of(tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=2), margins="none"))
    counts = Counts.from_leaves(spine, [np.arange(12), np.arange(12)], np.full(12, 9))
    toys = []
    for step in descent.steps:
        assert isinstance(step.how, Measured) and isinstance(step.how.law, DiscreteLaplace)
        toy = TwoSidedGeometric.costing(2, 2, step.how.law.cost(2, 2))
        assert (toy.decay, toy.cost(2, 2)) == (1 / step.how.law.scale, Fraction(1, 2))
        toys.append(replace(step, how=Measured(toy)))
    one = run_descent(descent, counts, Key(bytes(32)), every=1 << 20)
    other = run_descent(replace(descent, steps=tuple(toys)), counts, Key(bytes(32)), every=1 << 20)
    assert np.array_equal(one.leaves.nodes, other.leaves.nodes) and np.array_equal(one.leaves.count, other.leaves.count)
    assert other.evidence is not None and other.evidence.laws[1] == noise_of(toys[0].how)


def test_a_law_from_outside_is_described_and_read_again() -> None:
    law = TwoSidedGeometric(Fraction(1, 30))
    assert law.describe() == {"law": "two-sided geometric", "decay": "1/30"}
    assert described_law(law.describe()) == law


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(9)), DiscreteLaplace(Fraction(7, 3))])
def test_a_law_of_our_own_is_described_and_read_again(law: Law) -> None:
    assert described_law(law.describe()) == law


def first_weights(law: Law) -> Iterator[arb]:
    return islice(law.weights(), 9)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(Fraction(9)),
        DiscreteLaplace(Fraction(7, 3)),
        TwoSidedGeometric(Fraction(1, 8)),
        Cubic(Fraction(1, 90)),
    ],
)
def test_weights_are_those_of_the_exponent(law: Law) -> None:
    for k, weight in enumerate(first_weights(law)):
        assert float(weight) == pytest.approx(float(np.exp(-float(law.rate) * k**law.power)), rel=1e-12)


def test_a_wide_law_that_only_a_table_could_draw_is_refused() -> None:
    with pytest.raises(LossError, match="too wide to be drawn from a table"):
        NoiseStream(Cubic(Fraction(1, 10**6)), Key(bytes(32)))


def test_a_law_without_words_is_refused() -> None:
    class Silent(TwoSidedGeometric):
        name: ClassVar[str] = "silent"
        words: ClassVar[str] = ""

    with pytest.raises(PlanError, match="'silent' has no words for the card"):
        register_law(Silent)
    with pytest.raises(PlanError, match="there is already a law of noise 'two-sided geometric'"):
        register_law(Cubic)
    assert "silent" not in LAWS


@pytest.mark.parametrize("loss", [tt.Loss(rho=Fraction(1, 3)), tt.Loss(epsilon=Fraction(1, 3))])
def test_costs_and_words_are_those_of_plan_and_card(loss: tt.Loss) -> None:
    change = Sensitivity(4, 8)
    law = noise_for(change, loss)
    assert type(law).costing(change.l1, change.l2_squared, Fraction(1, 3)) == law
    assert law.cost(change.l1, change.l2_squared) == cost_of(change, law) == Fraction(1, 3)
    spine = tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), loss, margins="none")
    assert render(statements_of(plan).noise(plan)) == law.words
