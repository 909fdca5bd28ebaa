"""The repair of one node: measurements become non-negative integers that sum to the parent, in a few linear sweeps.

Every repair here has the same shape. A high bound max(x + up, 0) and a low bound max(x − down, 0) are set for each
measurement x such that the high bounds sum to at least the parent's count and the low ones to at most that. Then
entries are lowered from high to low in the order of x until the sum is right. Only one value of x can be left half
way, so no sorting is needed: find that threshold, and the answer for any x follows.

Chebyshev (InfTDA, Algorithm 2) and Euclidean repair differ in `up` and `down` only:

- Chebyshev: up = r = ⌈(c − Σx)/b⌉ and down = t = max(|r|, −min x), the largest change that the start needs; if
  even the low bounds then exceed c, t is raised to the water level: the least t with Σ max(x − t, 0) ≤ c.
- Euclidean: down is the water level (of any sign) and up = 1 − down. All entries above it have then the same
  marginal cost (x integer), so every order is optimal.

The measurements are swept as often as needed, and between sweeps only the few numbers of `state` are kept. So the same
code repairs ten children in cache and ten million that are drawn again for every sweep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.repair.state import (
    ACTIVE,
    ASCENDING,
    BUCKETS,
    CHEBYSHEV,
    COUNT,
    DESCENDING,
    DOWN,
    FLOOR,
    FULL,
    HIGHEST,
    HIGHS,
    KIND,
    LOWEST,
    LOWS,
    MAX,
    MIN,
    NEED,
    ORDER,
    PART,
    PHASE,
    SHIFT,
    SIZE,
    SUM,
    THRESHOLD,
    TIES,
    UP,
)

# What the next sweep is for.
RANGE, BOUNDS, SEARCH, DONE = 0, 1, 2, 3

LARGEST_BITS = 8
SCRATCH_SIZE = (1 << LARGEST_BITS) + 4
"""Buckets of the threshold search, and some for what lies outside its window."""


@kernel
def start_sweeping(state: NDArray[np.int64]) -> None:
    """Prepare the first sweep."""
    state[PHASE] = RANGE
    state[SUM] = 0
    state[MIN] = HIGHEST
    state[MAX] = LOWEST
    state[HIGHS] = 0
    state[LOWS] = 0
    state[ACTIVE] = 0


@kernel
def sweep(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Add a block of measurements to the sums that the current phase needs."""
    phase = state[PHASE]
    if phase == RANGE:
        total, low, high = np.int64(0), state[MIN], state[MAX]
        for i in range(x.size):
            value = x[i]
            total += value
            low = min(low, value)
            high = max(high, value)
        state[SUM] += total
        state[MIN] = low
        state[MAX] = high
    elif phase == BOUNDS:
        up, down = state[UP], state[DOWN]
        highs, lows, active = np.int64(0), np.int64(0), np.int64(0)
        for i in range(x.size):
            value = x[i]
            highs += max(value + up, 0)
            lows += max(value - down, 0)
            active += value > down
        state[HIGHS] += highs
        state[LOWS] += lows
        state[ACTIVE] += active
    elif state[SHIFT] == 0:
        floor, outside = state[FLOOR], np.uint64(state[BUCKETS])
        for i in range(x.size):
            # A value below the floor wraps around to a huge number, and so falls outside as well. There are several
            # buckets for what is outside, or each addition would wait for the one before.
            bucket = min(np.uint64(x[i] - floor), outside + np.uint64(i & 3))
            scratch[bucket] += 1
    else:
        floor, outside, shift = state[FLOOR], np.uint64(state[BUCKETS]), np.uint64(state[SHIFT])
        for i in range(x.size):
            bucket = min(np.uint64(x[i] - floor) >> shift, outside + np.uint64(i & 3))
            scratch[bucket] += _room(state, x[i])


@kernel
def _room(state: NDArray[np.int64], value: int) -> int:
    """Return by how much an entry can be lowered."""
    return max(value + state[UP], 0) - max(value - state[DOWN], 0)


@kernel
def advance(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Draw the conclusion of a finished sweep, and decide what the next one is for."""
    phase = state[PHASE]
    if phase == RANGE:
        rise = -((state[SUM] - state[COUNT]) // state[SIZE])  # ⌈(c − Σx)/b⌉
        state[PHASE] = BOUNDS
        if state[KIND] == CHEBYSHEV:
            state[UP] = rise
            state[DOWN] = max(abs(rise), -state[MIN])
        else:
            state[DOWN] = -rise  # Σ max(x − down + 1, 0) ≥ Σx − b·(down − 1) > c: not above the water level
            state[UP] = 1 - state[DOWN]
    elif phase == BOUNDS:
        excess = state[LOWS] - state[COUNT]
        if excess > 0:
            # Towards the water level by Newton's method on a convex, piecewise linear function: never beyond it.
            state[DOWN] += -(-excess // state[ACTIVE])
            state[UP] = 1 - state[DOWN]
        else:
            state[NEED] = state[HIGHS] - state[COUNT]
            low, high = max(state[MIN], 1 - state[UP]), state[MAX]
            if state[ORDER] == ASCENDING and state[KIND] == CHEBYSHEV and low < state[DOWN]:
                # The threshold is mostly among the entries that can vanish: look there first.
                high = min(high, state[DOWN])
            _look_between(state, scratch, low, high)
        state[HIGHS] = 0
        state[LOWS] = 0
        state[ACTIVE] = 0
    else:
        _narrow(state, scratch)


@kernel
def _look_between(state: NDArray[np.int64], scratch: NDArray[np.int64], low: int, high: int) -> None:
    """Look for the threshold between two values: by one bucket a value, or coarser if they are far apart."""
    if state[NEED] == 0:
        state[PHASE] = DONE
        state[THRESHOLD] = LOWEST if state[ORDER] == ASCENDING else HIGHEST
        return
    bits = np.int64(3)
    while bits < LARGEST_BITS and (1 << bits) < state[SIZE]:
        bits += 1
    shift = np.int64(0)
    while (high - low) >> shift >= 1 << bits:
        shift += 1
    state[PHASE] = SEARCH
    state[FLOOR] = low
    state[SHIFT] = shift
    state[BUCKETS] = ((high - low) >> shift) + 1
    scratch[: state[BUCKETS]] = 0


@kernel
def _narrow(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Find the bucket in which the need is met; a bucket of one value is the threshold."""
    buckets, step = state[BUCKETS], 1
    bucket = 0
    if state[ORDER] == DESCENDING:
        bucket, step = buckets - 1, -1
    need, shift = state[NEED], state[SHIFT]
    value, room = state[FLOOR], 1
    while 0 <= bucket < buckets:
        value = state[FLOOR] + (bucket << shift)
        if shift == 0:
            room = _room(state, value)  # buckets of one value count entries, wider ones sum their room
        if scratch[bucket] * room >= need:
            break
        need -= scratch[bucket] * room
        bucket += step
    state[NEED] = need
    if bucket == buckets:
        _look_between(state, scratch, state[FLOOR] + (buckets << shift), state[MAX])
    elif shift > 0:
        _look_between(state, scratch, value, value + (1 << shift) - 1)
    else:
        state[PHASE] = DONE
        state[THRESHOLD] = value
        state[TIES] = scratch[bucket]
        state[FULL] = need // room
        state[PART] = need % room
