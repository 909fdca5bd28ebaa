"""Sharing a node's count among its children, as whole numbers, by what Bayes' rule says of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.release.estimates.prior import Posterior
from treetop.repair.settle import begin, mix, settled, solve
from treetop.repair.state import ASCENDING, EUCLIDEAN, STATE_SIZE
from treetop.repair.sweep import SCRATCH_SIZE

Ints = NDArray[np.int64]


@kernel
def share_by_probability(
    first: Ints, measured: Ints, kind: Ints, learned: Posterior, count: Ints, seed: int, out: Ints
) -> None:
    """Share counts among children so that the expected sum of absolute errors is least.

    A unit more for a child that has y changes its expected error by 1 − 2·P(count > y), which grows with y. So it is
    best to give unit by unit to the child for which the next one is likeliest (exactly, up to the distance between two
    steps): all units above one threshold, which is found by bisection, then what is left to those right below it.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    steps = len(learned.shift)
    for i in range(len(count)):
        a, b = first[i], first[i + 1]
        if count[i] <= 0 or b - a <= 1:
            out[a:b] = count[i]
            continue
        low, high = -1, steps
        while high - low > 1:
            middle = (low + high) // 2
            total = np.int64(0)
            for j in range(a, b):
                total += due(learned, kind[j], measured[j], middle)
            if total <= count[i]:
                low = middle
            else:
                high = middle
        left = count[i]
        for j in range(a, b):
            out[j] = due(learned, kind[j], measured[j], max(low, 0))
            left -= out[j]
        if left == 0:
            continue
        if low < 0 or high == steps:  # beyond the steps: all children give, or take, alike
            begin(state, b - a, count[i], EUCLIDEAN, ASCENDING, np.uint64(seed + a))
            solve(state, scratch, out[a:b])
            for j in range(a, b):
                out[j] = settled(state, out[j])
            continue
        room = np.empty(b - a, np.int64)
        for j in range(a, b):
            room[j - a] = max(due(learned, kind[j], measured[j], high) - out[j], 0)
        give(room, measured[a:b], left, seed + a, out[a:b])


@kernel
def due(learned: Posterior, kind: int, measured: int, step: int) -> np.int64:
    """Return how many units a child has at a step."""
    at = max((measured - learned.lowest) // learned.cell, 0)
    if at < learned.units.shape[2]:
        return np.int64(learned.units[kind, step, at])
    return np.int64(max(measured + learned.shift[step], 0))


@kernel
def give(room: Ints, measured: Ints, left: int, seed: int, out: Ints) -> None:
    """Give what is left to the children that have room at the next step, in proportion to it; equals at random."""
    order = np.empty(len(out), np.int64)
    total = 0
    for j in range(len(out)):
        total += room[j]
        order[j] = (measured[j] << 20) | np.int64(mix(np.uint64(seed + j)) >> np.uint64(44))
    passed, given = np.int64(0), np.int64(0)
    for j in np.argsort(-order):
        passed += room[j]
        # In floats, since the product may leave 64 bits; whatever that rounds, the sum is exact.
        due_ = np.int64(left)
        if passed < total:
            due_ = np.int64(min(due_, np.ceil(float(left) * float(passed) / total)))
        part = due_ - given
        out[j] += part
        given += part
