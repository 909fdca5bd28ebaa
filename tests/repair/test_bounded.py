"""Repair within bounds of every child: optimal among all integer points, and without bounds what it always was."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from treetop.errors import NumberError
from treetop.repair import Order, chebyshev, euclidean

Ints = NDArray[np.int64]
ORDERS: tuple[Order, Order] = ("ascending", "descending")
REPAIRS = (chebyshev, euclidean)
BOXES = ((0, 9), (0, 0), (0, 1), (1, 2), (2, 9), (3, 3))


def every_point(lower: tuple[int, ...], upper: tuple[int, ...], count: int) -> Iterator[tuple[int, ...]]:
    """All integer points within bounds that sum to a count."""
    ranges = (range(low, min(high, count) + 1) for low, high in zip(lower, upper, strict=True))
    return (point for point in itertools.product(*ranges) if sum(point) == count)


def largest(point: tuple[int, ...] | list[int], x: tuple[int, ...]) -> int:
    return max(abs(a - b) for a, b in zip(point, x, strict=True))


def squared(point: tuple[int, ...] | list[int], x: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(point, x, strict=True))


def algorithm_2(x: list[int], lower: list[int], upper: list[int], count: int, visit: list[int]) -> list[int]:
    """InfTDA, Algorithm 2, with bounds: begin as low as the sum allows, and lower in the order `visit`, in passes."""
    rise = -((sum(x) - count) // len(x))

    def started(by: int) -> list[int]:
        return [min(max(value + by, low), high) for value, low, high in zip(x, lower, upper, strict=True)]

    while sum(started(rise)) < count:
        rise += 1
    y = started(rise)
    t = max(abs(rise), *(abs(a - b) for a, b in zip(y, x, strict=True)))
    if sum(y) == count:
        return y
    while True:
        for i in visit:
            y[i] -= max(min(sum(y) - count, y[i] - max(lower[i], min(x[i] - t, upper[i]))), 0)
        if sum(y) == count:
            return y
        t += 1


def test_no_other_integers_within_bounds_are_better_on_all_small_cases() -> None:
    orders = itertools.cycle(ORDERS)
    for boxes in itertools.combinations_with_replacement(BOXES, 3):
        lower, upper = zip(*boxes, strict=True)
        for count in range(sum(lower), min(sum(upper), 9) + 1, 2):
            points = list(every_point(lower, upper, count))
            for x in itertools.product((-3, 0, 1, 5), repeat=3):
                for repair, distance in ((chebyshev, largest), (euclidean, squared)):
                    y = repair(x, count, next(orders), 0, lower=lower, upper=upper).tolist()
                    assert tuple(y) in points, (x, boxes, count)
                    assert distance(y, x) == min(distance(point, x) for point in points), (x, boxes, count, y)


@pytest.mark.parametrize("order", ORDERS)
def test_chebyshev_is_algorithm_2_with_bounds(order: Order) -> None:
    rng = np.random.default_rng(3)
    sign = 1 if order == "ascending" else -1
    for _ in range(1_500):
        size = int(rng.integers(1, 30))
        scale = int(rng.choice([2, 10, 60]))
        x = rng.permutation(np.arange(-scale, 3 * scale + size))[:size]  # no ties: the order decides all
        lower = rng.integers(0, scale, size) * (rng.random(size) < 0.3)
        upper = lower + rng.integers(0, 2 * scale, size) + np.where(rng.random(size) < 0.4, 10**6, 0)
        count = int(rng.integers(lower.sum(), min(int(upper.sum()), int(lower.sum()) + 10 * scale) + 1))
        visit = sorted(range(size), key=lambda i: sign * int(x[i]))
        expected = algorithm_2(x.tolist(), lower.tolist(), upper.tolist(), count, visit)
        assert chebyshev(x, count, order, lower=lower, upper=upper, seed=1).tolist() == expected


@pytest.mark.parametrize("repair", REPAIRS)
@pytest.mark.parametrize("order", ORDERS)
def test_without_bounds_it_is_the_same_bit_for_bit(repair: Callable[..., Ints], order: Order) -> None:
    rng = np.random.default_rng(5)
    for seed in range(1_000):
        scale = int(rng.choice([1, 5, 300, 10**9]))
        x = rng.integers(-scale, scale + 1, int(rng.choice([1, 2, 7, 16, 17, 90])))
        count = int(rng.integers(0, 6 * scale))
        assert repair(x, count, order, seed, lower=0).tolist() == repair(x, count, order, seed).tolist()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_long_vectors_meet_the_conditions_of_optimality(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size, scale = data.draw(st.integers(1, 400)), data.draw(st.sampled_from([2, 50, 10**6, 10**12]))
    x = rng.integers(-scale, scale + 1, size)
    lower = rng.integers(0, scale, size) * (rng.random(size) < 0.5)
    upper = lower + rng.integers(0, scale, size) * (rng.random(size) < 0.8)
    count = data.draw(st.integers(int(lower.sum()), int(upper.sum())))
    order = data.draw(st.sampled_from(ORDERS))
    near = euclidean(x, count, order, 1, lower=lower, upper=upper)
    wide = chebyshev(x, count, order, 1, lower=lower, upper=upper)
    for y in (near, wide):
        assert y.sum() == count and (y >= lower).all() and (y <= upper).all()
    # Moving one unit from i to j changes the squared distance by 2(y_j − x_j) − 2(y_i − x_i) + 2: never below zero.
    change = near - x
    most = change[near > lower].max(initial=-(2**60))
    assert change[near < upper].min(initial=2**60) - most + 1 >= 0
    # With a largest change that is one smaller, some child has no place, or the sum is out of reach.
    t = int(np.abs(wide - x).max()) - 1
    least, furthest = np.maximum(lower, x - t), np.minimum(upper, x + t)
    assert t < 0 or (least > furthest).any() or least.sum() > count or furthest.sum() < count


def test_equals_with_the_same_bounds_fare_equally() -> None:
    runs = [chebyshev([2, 2, 2, 2], 5, "ascending", seed=seed, upper=[2, 2, 2, 1]) for seed in range(4_000)]
    outcomes = np.array(runs)
    assert (outcomes[:, 3] <= 1).all()
    means = outcomes[:, :3].mean(axis=0)
    assert np.abs(means - means.mean()).max() < 0.05


def test_bounds_that_leave_one_answer_are_that_answer() -> None:
    assert chebyshev([9, 9], 3, "ascending", lower=[1, 2], seed=1).tolist() == [1, 2]
    assert euclidean([-9, -9], 7, "ascending", upper=[3, 4], seed=1).tolist() == [3, 4]
    assert chebyshev([0, 50, 0], 10, "ascending", upper=[10**6, 0, 10**6], seed=1).tolist() == [5, 0, 5]


WRONG: dict[str, dict[str, Any]] = {
    "too little for the lower bounds": {"lower": [2, 2]},
    "too much for the upper bounds": {"upper": 1},
    "bounds that cross": {"lower": [0, 2], "upper": [3, 1]},
    "a negative lower bound": {"lower": [-1, 0]},
    "a fraction": {"upper": [2.5, 3]},
    "more bounds than children": {"upper": [2, 2, 2]},
    "bounds in two dimensions": {"lower": [[0, 0]]},
    "a bound in words": {"upper": "many"},
    "a bound that is not a number": {"upper": [float("nan"), 2]},
    "a bound far out": {"lower": [2**62, 0]},
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("repair", REPAIRS)
def test_bounds_that_cannot_be_kept_are_refused(repair: Callable[..., Ints], what: str) -> None:
    with pytest.raises(NumberError, match="bound"):
        repair([1, 2], 3, "ascending", 1, **WRONG[what])
