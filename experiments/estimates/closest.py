"""A repair that is tried here only: of all with the least largest change, the one that is closest in squared distance.

Chebyshev's repair makes the largest change t as small as it can be, and then is free within t: small entries are
lowered first, by up to t each, whatever the others need. This one asks for Σ(y − x)² to be least among the same
outcomes. It is y = clip(x + λ, max(0, x − t), x + t), with λ such that the sum is right.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from treetop.noise import Key, Keystream

Ints = NDArray[np.int64]


def closest(x: Ints, first: Ints, count: Ints, ties: Key) -> Ints:
    """Repair all nodes of a level: a `LevelRepair` of the mechanisms, in whole numbers throughout."""
    words = np.empty(len(x), np.uint64)
    Keystream(ties).fill(words, 0)
    y = np.empty_like(x)
    _repair_all(x, first, count, words, y)
    return y


# Not kept on disk, as the package's own kernels are: those are recompiled when a file of the package changes.
@numba.njit(nogil=True)
def _repair_all(x: Ints, first: Ints, count: Ints, words: NDArray[np.uint64], y: Ints) -> None:
    for i in range(len(count)):
        part = slice(first[i], first[i + 1])
        _repair(x[part], count[i], words[part], y[part])


@numba.njit(nogil=True)
def _repair(x: Ints, count: int, words: NDArray[np.uint64], y: Ints) -> None:
    t = _least_change(x, count)
    low, high = -t, t + 1  # λ = −t gives a sum of at most the count, λ = t one of at least the count
    while high - low > 1:
        middle = (low + high) // 2
        if _sum(x, middle, t) <= count:
            low = middle
        else:
            high = middle
    left = count
    for j in range(len(x)):
        y[j] = _clip(x[j], low, t)
        left -= y[j]
    if left == 0:
        return
    # One more is the same to all that take it; the largest come first, so that fewer are invented.
    order = np.argsort(words)
    for j in order[np.argsort(-x[order], kind="mergesort")]:
        if left > 0 and _clip(x[j], low + 1, t) > y[j]:
            y[j] += 1
            left -= 1


@numba.njit(nogil=True)
def _clip(x: int, shift: int, t: int) -> int:
    return max(min(x + shift, x + t), 0, x - t)


@numba.njit(nogil=True)
def _sum(x: Ints, shift: int, t: int) -> int:
    total = 0
    for value in x:
        total += _clip(value, shift, t)
    return total


@numba.njit(nogil=True)
def _least_change(x: Ints, count: int) -> int:
    """Return the least t for which non-negative y with |y − x| ≤ t can have the sum."""
    low = max(0, -int(x.min())) - 1
    high = int(np.abs(x).max()) + count + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _sum(x, -middle, middle) <= count <= _sum(x, middle, middle):
            high = middle
        else:
            low = middle
    return high
