"""The error of a repair: never more than the parent's error plus twice the largest noise, on all small cases."""

from __future__ import annotations

import itertools

from treetop.repair import Order, chebyshev, euclidean


def test_an_error_grows_by_at_most_twice_the_largest_noise() -> None:
    worst: dict[str, int] = {}
    orders: tuple[Order, Order] = ("ascending", "descending")
    for size, noise in ((2, 1), (2, 2), (3, 1)):
        for truth in itertools.product(range(4), repeat=size):
            for errors in itertools.product(range(-noise, noise + 1), repeat=size):
                x = [q + error for q, error in zip(truth, errors, strict=True)]
                for count in range(sum(truth) + 3):
                    for repair, order in itertools.product((chebyshev, euclidean), orders):
                        repaired = repair(x, count, order, seed=0)
                        error = max(abs(int(y) - q) for y, q in zip(repaired, truth, strict=True))
                        excess = error - abs(count - sum(truth)) - 2 * noise
                        worst[repair.__name__] = max(worst.get(repair.__name__, -99), excess)
    assert worst == {"chebyshev": 0, "euclidean": 0}  # never above, and reached: the bound cannot be smaller
