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

from treetop.basics.kernel import kernel_in_place
from treetop.repair import state as at
from treetop.repair.state import room_of

# What the next sweep is for.
RANGE, BOUNDS, SEARCH, DONE = 0, 1, 2, 3

LARGEST_BITS = 8
SCRATCH_SIZE = (1 << LARGEST_BITS) + 4
"""Buckets of the threshold search, and some for what lies outside its window."""


@kernel_in_place
def start_sweeping(state: NDArray[np.int64]) -> None:
    """Prepare the first sweep."""
    state[at.PHASE] = RANGE
    state[at.SUM] = 0
    state[at.MIN] = at.HIGHEST
    state[at.MAX] = at.LOWEST
    state[at.HIGHS] = 0
    state[at.LOWS] = 0
    state[at.ACTIVE] = 0


@kernel_in_place
def sweep(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Add a block of measurements to the sums that the current phase needs."""
    phase = state[at.PHASE]
    if phase == RANGE:
        total, low, high = np.int64(0), state[at.MIN], state[at.MAX]
        for i in range(x.size):
            value = x[i]
            total += value
            low = min(low, value)
            high = max(high, value)
        state[at.SUM] += total
        state[at.MIN] = low
        state[at.MAX] = high
    elif phase == BOUNDS:
        up, down = state[at.UP], state[at.DOWN]
        highs, lows, active = np.int64(0), np.int64(0), np.int64(0)
        for i in range(x.size):
            value = x[i]
            highs += max(value + up, 0)
            lows += max(value - down, 0)
            active += value > down
        state[at.HIGHS] += highs
        state[at.LOWS] += lows
        state[at.ACTIVE] += active
    elif phase == SEARCH and state[at.SHIFT] == 0:
        floor, outside = state[at.FLOOR], np.uint64(state[at.BUCKETS])
        for i in range(x.size):
            # A value below the floor wraps around to a huge number, and so falls outside as well. There are several
            # buckets for what is outside, or each addition would wait for the one before.
            bucket = min(np.uint64(x[i] - floor), outside + np.uint64(i & 3))
            scratch[bucket] += 1
    elif phase == SEARCH:
        floor, outside, shift = state[at.FLOOR], np.uint64(state[at.BUCKETS]), np.uint64(state[at.SHIFT])
        for i in range(x.size):
            bucket = min(np.uint64(x[i] - floor) >> shift, outside + np.uint64(i & 3))
            scratch[bucket] += room_of(state, x[i])


@kernel_in_place
def advance(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Draw the conclusion of a finished sweep, and decide what the next one is for."""
    phase = state[at.PHASE]
    if phase == RANGE:
        rise = -((state[at.SUM] - state[at.COUNT]) // state[at.SIZE])  # ⌈(c − Σx)/b⌉
        state[at.PHASE] = BOUNDS
        if state[at.KIND] == at.CHEBYSHEV:
            state[at.UP] = rise
            state[at.DOWN] = max(abs(rise), -state[at.MIN])
        elif state[at.KIND] == at.EUCLIDEAN:
            state[at.DOWN] = -rise  # Σ max(x − down + 1, 0) ≥ Σx − b·(down − 1) > c: not above the water level
            state[at.UP] = 1 - state[at.DOWN]
    elif phase == BOUNDS:
        excess = state[at.LOWS] - state[at.COUNT]
        if excess > 0:
            # Towards the water level by Newton's method on a convex, piecewise linear function: never beyond it.
            state[at.DOWN] += -(-excess // state[at.ACTIVE])
            state[at.UP] = 1 - state[at.DOWN]
        else:
            state[at.NEED] = state[at.HIGHS] - state[at.COUNT]
            low, high = max(state[at.MIN], 1 - state[at.UP]), state[at.MAX]
            if state[at.ORDER] == at.ASCENDING and state[at.KIND] == at.CHEBYSHEV and low < state[at.DOWN]:
                # The threshold is mostly among the entries that can vanish: look there first.
                high = min(high, state[at.DOWN])
            _look_between(state, scratch, low, high)
        state[at.HIGHS] = 0
        state[at.LOWS] = 0
        state[at.ACTIVE] = 0
    elif phase == SEARCH:
        _narrow(state, scratch)


@kernel_in_place
def _look_between(state: NDArray[np.int64], scratch: NDArray[np.int64], low: int, high: int) -> None:
    """Look for the threshold between two values: by one bucket a value, or coarser if they are far apart."""
    if state[at.NEED] == 0:
        state[at.PHASE] = DONE
        state[at.THRESHOLD] = at.LOWEST if state[at.ORDER] > 0 else at.HIGHEST
        return
    bits = np.int64(3)
    while bits < LARGEST_BITS and (1 << bits) < state[at.SIZE]:
        bits += 1
    shift = np.int64(0)
    while (high - low) >> shift >= 1 << bits:
        shift += 1
    state[at.PHASE] = SEARCH
    state[at.FLOOR] = low
    state[at.SHIFT] = shift
    state[at.BUCKETS] = ((high - low) >> shift) + 1
    scratch[: state[at.BUCKETS]] = 0


@kernel_in_place
def _narrow(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Find the bucket in which the need is met; a bucket of one value is the threshold."""
    buckets, step = state[at.BUCKETS], state[at.ORDER]
    bucket = 0 if step > 0 else buckets - 1
    need, shift = state[at.NEED], state[at.SHIFT]
    value, room = state[at.FLOOR], 1
    while 0 <= bucket < buckets:
        value = state[at.FLOOR] + (bucket << shift)
        if shift == 0:
            room = room_of(state, value)  # buckets of one value count entries, wider ones sum their room
        if scratch[bucket] * room >= need:
            break
        need -= scratch[bucket] * room
        bucket += step
    state[at.NEED] = need
    if bucket == buckets:
        _look_between(state, scratch, state[at.FLOOR] + (buckets << shift), state[at.MAX])
    elif shift > 0:
        _look_between(state, scratch, value, value + (1 << shift) - 1)
    else:
        state[at.PHASE] = DONE
        state[at.THRESHOLD] = value
        state[at.TIES] = scratch[bucket]
        state[at.FULL] = need // room
        state[at.PART] = need % room
