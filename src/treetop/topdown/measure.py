"""The one door to private data: true counts are read here, and only to be added to noise that is already drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.kernel import kernel


@kernel
def add_counts(
    noise: NDArray[np.int64],
    rank: int,
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    before: NDArray[np.int64],
    at: int,
    end: int,
) -> int:
    """Turn the noise of children rank, rank + 1, … of one node into measurements.

    The node's leaves lie between `at` and `end`; returns where those of the next children start.
    """
    while at < end:
        child = np.int64((keys[at] >> np.uint64(shift)) & mask) - rank
        if child >= len(noise):
            break
        after = run_end(keys, shift, at, end)
        noise[child] += before[after] - before[at]
        at = after
    return at


@kernel
def run_end(keys: NDArray[np.uint64], shift: int, start: int, stop: int) -> int:
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
