"""Chebyshev repair: the paper's Algorithm 2 up to the order of ties, optimal, and fair among equals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from treetop.repair import Order, chebyshev

ORDERS: tuple[Order, Order] = ("ascending", "descending")


def algorithm_2(x: list[int], count: int, visit: list[int]) -> list[int]:
    """InfTDA, Algorithm 2, as it is printed, lowering entries in the order `visit`."""
    gap = count - sum(x)
    z = [max(-(-gap // len(x)), -value) for value in x]
    t = max(abs(change) for change in z)
    j = 0
    excess = sum(z) - gap
    while excess > 0:
        i = visit[j]
        lowered = max(z[i] - excess, -x[i], -t)
        excess += lowered - z[i]
        z[i] = lowered
        j = (j + 1) % len(x)
        if j == 0:
            t += 1
    return [value + change for value, change in zip(x, z, strict=True)]


def assert_is_algorithm_2(x: list[int], count: int, order: Order) -> None:
    """The tie-breaking of the repair is read from its answer, and Algorithm 2 must then give the same answer."""
    y = chebyshev(x, count, order, seed=1)
    sign = 1 if order == "ascending" else -1
    # Among equals, those that were lowered furthest came first.
    visit = sorted(range(len(x)), key=lambda i: (sign * x[i], int(y[i])))
    assert y.tolist() == algorithm_2(x, count, visit), (x, count, order)


@pytest.mark.parametrize("order", ORDERS)
def test_it_is_algorithm_2_on_all_small_vectors(order: Order) -> None:
    for size in (1, 2, 3):
        for x in itertools.product(range(-4, 6), repeat=size):
            for count in range(10):
                assert_is_algorithm_2(list(x), count, order)


@pytest.mark.parametrize("order", ORDERS)
def test_it_is_algorithm_2_on_random_vectors(order: Order) -> None:
    rng = np.random.default_rng(7)
    for _ in range(1_500):
        scale = int(rng.choice([1, 5, 30]))
        x = rng.integers(-scale, scale + 1, rng.integers(1, 40))
        present = rng.random(len(x)) < 0.2
        x[present] += rng.integers(0, 20 * scale, int(present.sum()))
        assert_is_algorithm_2(x.tolist(), int(rng.integers(0, 40 * scale)), order)


def least_largest_change(x: NDArray[np.int64], count: int) -> float:
    """The optimum by mixed-integer programming: minimise t with |y − x| ≤ t, y whole, ≥ 0, with sum count."""
    size = len(x)
    one = np.ones((size, 1))
    within = np.block([[np.eye(size), -one], [-np.eye(size), -one]])
    result = milp(
        np.append(np.zeros(size), 1.0),
        integrality=np.append(np.ones(size), 0),
        bounds=Bounds(0, np.inf),
        constraints=[
            LinearConstraint(within, ub=np.concatenate([x, -x]).astype(float)),
            LinearConstraint(np.append(np.ones(size), 0.0), count, count),
        ],
    )
    return float(result.fun)


@pytest.mark.parametrize("order", ORDERS)
def test_no_other_answer_has_a_smaller_largest_change(order: Order) -> None:
    rng = np.random.default_rng(11)
    for _ in range(150):
        x = rng.integers(-12, 13, rng.integers(2, 9))
        count = int(rng.integers(0, 40))
        change = np.abs(chebyshev(x, count, order, seed=1) - x).max()
        assert change == pytest.approx(least_largest_change(x, count), abs=1e-6)


def test_values_far_apart_are_repaired_in_several_narrowing_searches() -> None:
    rng = np.random.default_rng(13)
    for order in ORDERS:
        x = np.concatenate([rng.integers(-(10**6), 10**6, 300), [10**12, -(10**9)]])
        for count in (1, 10**7, 10**12, 2 * 10**12):
            y = chebyshev(x, count, order, seed=1)
            assert y.sum() == count
            assert y.min() >= 0
            rise = -((int(x.sum()) - count) // len(x))
            water = _water_level(x, count)
            assert np.abs(y - x).max() == max(0, -int(x.min()), rise, water)


def _water_level(x: NDArray[np.int64], count: int) -> int:
    """The least t ≥ 0 with Σ max(x − t, 0) ≤ count, by its closed form over the k largest."""
    largest = np.sort(x)[::-1]
    excess = np.cumsum(largest) - count
    return max(0, int(np.max(-(-excess // np.arange(1, len(x) + 1)))))


def test_ascending_invents_fewer_and_descending_loses_fewer() -> None:
    assert chebyshev([9, 8, 3, 2, 1], 15, "ascending", seed=1).tolist() == [8, 6, 1, 0, 0]
    assert chebyshev([9, 8, 3, 2, 1], 15, "descending", seed=1).tolist() == [7, 6, 1, 1, 0]


@pytest.mark.parametrize("order", ORDERS)
def test_equal_siblings_fare_equally(order: Order) -> None:
    # One of three twos must become one smaller, and another must vanish or not: roles go round evenly.
    x = [2, 2, 2, -1]
    runs = 30_000
    outcomes = np.array([chebyshev(x, 3, order, seed=seed) for seed in range(runs)])[:, :3]
    values, counts = zip(*(np.unique(column, return_counts=True) for column in outcomes.T), strict=True)
    assert all(value.tolist() == values[0].tolist() for value in values)
    expected = sum(counts) / 3
    statistic = float(sum(((count - expected) ** 2 / expected).sum() for count in counts))
    assert statistic < 30, counts  # about chi-square with few degrees of freedom; 30 is far in its tail


def test_pairs_of_equals_are_chosen_evenly() -> None:
    outcomes = [tuple(chebyshev([1] * 5, 2, "ascending", seed=seed).tolist()) for seed in range(20_000)]
    chosen = {outcome: outcomes.count(outcome) for outcome in set(outcomes)}
    assert len(chosen) == 10
    assert all(abs(times - 2_000) < 200 for times in chosen.values()), chosen


def test_the_same_seed_gives_the_same_answer() -> None:
    assert chebyshev([1] * 9, 4, "ascending", seed=5).tolist() == chebyshev([1] * 9, 4, "ascending", seed=5).tolist()


def test_a_parent_of_zero_has_children_of_zero() -> None:
    assert chebyshev([5, -3, 0], 0, "ascending", seed=1).tolist() == [0, 0, 0]
    assert chebyshev([1, 2], 0, "ascending", seed=1).tolist() == [0, 0]  # Algorithm 4 divides by zero here


def test_what_cannot_be_repaired_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        chebyshev([1], -1, "ascending", seed=1)
    with pytest.raises(ValueError, match="nothing to repair"):
        chebyshev([], 1, "ascending", seed=1)
