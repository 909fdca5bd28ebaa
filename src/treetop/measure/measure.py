"""The one door to private data: true counts are read here, to be added to noise that is already drawn.

The one exception is a total that is public, because all neighbours have the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.checked import NO_BOUND
from treetop.basics.kernel import kernel_in_place
from treetop.domain.facts import PublicFacts
from treetop.errors import PlanError
from treetop.intake.counts import Counts
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Exact, How, Measured


def measure_total(counts: Counts, how: How, key: Key, facts: PublicFacts | None = None) -> int:
    """Return the total: measured and within what is public of it, or exact: as facts have it, or else the counts."""
    least, most = (0, NO_BOUND) if facts is None else facts.of_total
    if isinstance(how, Exact):
        return min(max(counts.total, least), most)  # the same for all neighbours, and so is what facts make of it
    if not isinstance(how, Measured):
        raise PlanError("a total that follows from other tables is not measured from the top down")
    noise = np.empty(1, np.int64)
    NoiseStream(how.law, key).fill(noise, 0)
    return min(max(counts.total + int(noise[0]), least), most)


@kernel_in_place
def add_counts(
    noise: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    rank: int,
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    before: NDArray[np.int64],
    at: int,
    end: int,
) -> int:
    """Turn the noise of children rank, rank + 1, … of one node into measurements.

    The node's leaves lie between `at` and `end`. Where those of each child start and stop is written down for the next
    level, unless they are leaves and there is no room for it; returns where those of the children after these start.
    """
    tracked = len(start) > 0
    start[:] = 0
    stop[:] = 0
    while at < end:
        child = np.int64((keys[at] >> np.uint64(shift)) & mask) - rank
        if child >= len(noise):
            break
        after = _run_end(keys, shift, at, end) if tracked else at + 1  # a leaf is one key
        noise[child] += before[after] - before[at]
        if tracked:
            start[child] = at
            stop[child] = after
        at = after
    return at


@kernel_in_place
def _run_end(keys: NDArray[np.uint64], shift: int, start: int, stop: int) -> int:
    """Return where the leaves under the same child as `start` end: by galloping, since runs differ in length."""
    path = keys[start] >> np.uint64(shift)
    low, high, stride = start, start + 1, 1
    while high < stop and keys[high] >> np.uint64(shift) == path:
        low = high
        stride *= 2
        high = min(high + stride, stop)
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] >> np.uint64(shift) == path:
            low = middle
        else:
            high = middle
    return high
