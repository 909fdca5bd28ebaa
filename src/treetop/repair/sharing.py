"""Share a node's count among its children as whole numbers, by least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.repair.bounded import repair_bounded
from treetop.repair.state import ASCENDING, CHEBYSHEV, EUCLIDEAN, SCRATCH_SIZE, STATE_SIZE, begin, settled, solve

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@kernel
def share_by_least_squares(
    first: Ints, value: Reals, variance: Reals, open_: NDArray[np.bool_], count: Ints, seed: int, out: Ints
) -> None:
    """Share counts among the open children by their estimates; the other children get none.

    The gap between the count and the sum of the estimates is divided in proportion to variance (least squares). The
    rounded estimates of all children are repaired by the least largest change, small ones lowered first. Counts of
    children that are not open are then divided evenly among the others.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    for i in range(len(count)):
        a, b = first[i], first[i + 1]
        if count[i] <= 0 or b - a <= 1:
            out[a:b] = count[i]
            continue
        gap, together = count[i] - value[a:b].sum(), variance[a:b].sum()
        for j in range(a, b):
            out[j] = np.int64(np.rint(value[j] + gap * variance[j] / together))
        begin(state, b - a, count[i], CHEBYSHEV, ASCENDING, np.uint64(seed + a))
        solve(state, scratch, out[a:b])
        among = np.empty(b - a, np.int64)
        size, total = 0, 0
        for j in range(a, b):
            out[j] = settled(state, out[j])
            if open_[j]:
                among[size] = out[j]
                total += out[j]
                size += 1
            else:
                out[j] = 0
        if total == count[i]:
            continue
        begin(state, size, count[i], EUCLIDEAN, ASCENDING, np.uint64(seed + a))
        solve(state, scratch, among[:size])
        size = 0
        for j in range(a, b):
            if open_[j]:
                out[j] = settled(state, among[size])
                size += 1


@kernel
def share_within(first: Ints, value: Reals, variance: Reals, lower: Ints, upper: Ints, count: Ints, out: Ints) -> None:
    """Share counts among children by their estimates, each within its bounds, which must allow it."""
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    for i in range(len(count)):
        a, b = first[i], first[i + 1]
        gap, together = count[i] - value[a:b].sum(), variance[a:b].sum()
        wanted = np.empty(b - a, np.int64)
        for j in range(a, b):
            wanted[j - a] = np.int64(np.rint(value[j] + gap * variance[j] / together))
        repair_bounded(
            wanted, lower[a:b], upper[a:b], count[i], CHEBYSHEV, ASCENDING, np.uint64(a), state, scratch, out[a:b]
        )
