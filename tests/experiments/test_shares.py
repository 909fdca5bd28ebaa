"""Shares of a fixed sum: how they are dealt, how far they go astray, and what unevenness costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.loss_split.laplace import LaplaceErrors
from experiments.loss_split.shares import Weighting, deal, even, majorises, misallocation, skewed_bias
from treetop.advice._error_laws import Term, least_error

WEIGHTINGS: list[Weighting] = ["log", "linear", "quadratic"]


def test_shares_follow_the_weighting() -> None:
    counts = [10, 30, 60]
    assert deal(counts).tolist() == pytest.approx([0.1, 0.3, 0.6])
    assert deal(counts, "quadratic").tolist() == pytest.approx([1 / 46, 9 / 46, 36 / 46])
    logs = [math.log(1.1), math.log(1.3), math.log(1.6)]
    assert deal(counts, "log").tolist() == pytest.approx([one / sum(logs) for one in logs])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_groups_that_are_all_zero_are_dealt_the_same(weighting: Weighting) -> None:
    assert deal([0, 0, 0, 0], weighting).tolist() == [0.25] * 4
    result = misallocation([1, 1, 1, 1], [[0, 0, 0, 0], [1, 1, 1, 1]], weighting)
    assert result.mse == pytest.approx(0)


def test_misallocation_is_bias_and_variance_in_percent() -> None:
    result = misallocation([50, 50], [[60, 40], [40, 60], [60, 40], [60, 40]])
    # The first group is dealt 60, 40, 60, 60 percent instead of 50: 5 too much on average.
    assert result.bias == pytest.approx(2 * 5**2)
    assert result.variance == pytest.approx(2 * 75)
    assert result.mse == pytest.approx(2 * 10**2)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_bias_and_variance_make_up_the_squared_error(data: st.DataObject) -> None:
    groups, runs = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    counts = st.lists(st.integers(0, 1000), min_size=groups, max_size=groups)
    truth, estimates = data.draw(counts), data.draw(st.lists(counts, min_size=runs, max_size=runs))
    weighting = data.draw(st.sampled_from(WEIGHTINGS))
    result = misallocation(truth, estimates, weighting)
    error = 100 * (deal(estimates, weighting) - deal(truth, weighting))
    assert result.mse == pytest.approx((error**2).sum(axis=1).mean(), abs=1e-9)


def test_the_best_split_misallocates_less_than_an_even_one() -> None:
    rng = np.random.default_rng(0)
    blocks = rng.geometric(1 / 40, 60) * (rng.random(60) < 0.6)
    terms = [Term.of(LaplaceErrors(1.0), counts) for counts in ([blocks.sum()], blocks)]
    by_weighting = {}
    for name, epsilon in (("even", 0.25), ("best", least_error(terms, 0.5).budgets[1])):
        drawn = np.maximum(blocks + rng.laplace(0, 1 / epsilon, (4000, 60)), 0)
        by_weighting[name] = [misallocation(blocks, drawn, w) for w in WEIGHTINGS]
    for even_, best in zip(by_weighting["even"], by_weighting["best"], strict=True):
        assert best.bias < even_.bias and best.variance < even_.variance


def test_more_uneven_populations_have_more_bias() -> None:
    populations = [[34, 33, 33], [50, 30, 20], [80, 15, 5], [98, 1, 1], [100, 0, 0]]
    rows = [skewed_bias(LaplaceErrors(1.0), 0.1, population) for population in populations]
    assert [row.bias for row in rows] == sorted(row.bias for row in rows)
    assert rows[0].bias == pytest.approx(rows[0].least) and len({row.least for row in rows}) == 1


@settings(max_examples=80, deadline=None)
@given(counts=st.lists(st.integers(0, 200), min_size=2, max_size=8), budget=st.floats(0.01, 3), move=st.integers(1, 50))
def test_moving_people_from_a_small_group_to_a_large_one_adds_bias(counts: list[int], budget: float, move: int) -> None:
    counts.sort()
    moved = min(move, counts[0])
    uneven = [counts[0] - moved, *counts[1:-1], counts[-1] + moved]
    assert majorises(uneven, counts) and majorises(counts, even(counts))
    one, other = (skewed_bias(LaplaceErrors(1.0), budget, population) for population in (counts, uneven))
    assert other.bias >= one.bias * (1 - 1e-9) and one.bias >= one.least * (1 - 1e-9)
    if moved:
        assert not majorises(counts, uneven)


def test_even_populations_have_no_skewness() -> None:
    assert skewed_bias(LaplaceErrors(1.0), 1.0, [7, 7, 7]).skewness == 0
    assert even([5, 0, 0]).tolist() == [2, 2, 1]
    assert skewed_bias(LaplaceErrors(1.0), 1.0, [0, 0, 0, 9]).skewness == pytest.approx(2 / math.sqrt(3))
