"""Euclidean repair: the exact integer optimum in squared distance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from treetop.repair import Order, euclidean


def brute_force(x: list[int], count: int) -> int:
    best = None
    for head in itertools.product(range(count + 1), repeat=len(x) - 1):
        last = count - sum(head)
        if last >= 0:
            distance = sum((a - b) ** 2 for a, b in zip(x, (*head, last), strict=True))
            best = distance if best is None else min(best, distance)
    assert best is not None
    return best


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_no_other_integers_are_nearer_on_all_small_vectors(order: Order) -> None:
    for size in (1, 2, 3):
        for x in itertools.product(range(-3, 5), repeat=size):
            for count in range(8):
                y = euclidean(x, count, order, seed=1)
                assert y.sum() == count
                assert y.min() >= 0
                assert int(((y - np.array(x)) ** 2).sum()) == brute_force(list(x), count), (x, count)


def test_long_vectors_meet_the_condition_of_optimality() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        scale = int(rng.choice([3, 100, 10**6]))
        x = rng.integers(-scale, scale, rng.integers(2, 400))
        count = int(rng.integers(0, 10 * scale))
        y = euclidean(x, count, "ascending", seed=1)
        assert y.sum() == count
        # Moving one unit from i to j changes the distance by 2(y_j − x_j) − 2(y_i − x_i) + 2: never below zero.
        change = y - x
        assert change.min() - change[y > 0].max(initial=-(10**18)) + 1 >= 0


def test_ascending_zeroes_small_entries_first() -> None:
    assert euclidean([9, 5, 1], 14, "ascending", seed=1).tolist() == [9, 5, 0]
    assert euclidean([9, 5, 1], 14, "descending", seed=1).tolist() == [8, 5, 1]
