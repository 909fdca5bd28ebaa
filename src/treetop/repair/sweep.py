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

from treetop.kernel import kernel

CHEBYSHEV, EUCLIDEAN = 0, 1
ASCENDING, DESCENDING = 0, 1

# What `state` holds.
PHASE, KIND, ORDER, SIZE, COUNT = 0, 1, 2, 3, 4
SUM, MIN, MAX = 5, 6, 7
UP, DOWN, HIGHS, LOWS, ACTIVE = 8, 9, 10, 11, 12
NEED, FLOOR, SHIFT, BUCKETS = 13, 14, 15, 16
THRESHOLD, TIES, FULL, PART, SEED = 17, 18, 19, 20, 21
STATE_SIZE = 22

# What the next sweep is for.
RANGE, BOUNDS, WATER, SEARCH, DONE = 0, 1, 2, 3, 4

LARGEST_BITS = 8
HISTOGRAM_SIZE = (1 << LARGEST_BITS) + 1
"""Buckets of the threshold search, and one for what lies outside its window."""

_EVERYTHING = np.int64(np.iinfo(np.int64).max)


@kernel
def begin(state: NDArray[np.int64], size: int, count: int, kind: int, order: int, seed: np.uint64) -> None:
    """Start the repair of `size` measurements to the sum `count`; ties are broken by `seed`."""
    state[:] = 0
    state[SIZE] = size
    state[COUNT] = count
    state[KIND] = kind
    state[ORDER] = order
    state[SEED] = np.int64(seed)
    state[PHASE] = RANGE
    state[MIN] = _EVERYTHING
    state[MAX] = -_EVERYTHING


@kernel
def sweep(state: NDArray[np.int64], histogram: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Add a block of measurements to the sums that the current phase needs."""
    phase = state[PHASE]
    if phase == RANGE:
        total, low, high = np.int64(0), state[MIN], state[MAX]
        for value in x:
            total += value
            low = min(low, value)
            high = max(high, value)
        state[SUM] += total
        state[MIN] = low
        state[MAX] = high
    elif phase == BOUNDS:
        up, down = state[UP], state[DOWN]
        highs, lows = np.int64(0), np.int64(0)
        for value in x:
            highs += max(value + up, 0)
            lows += max(value - down, 0)
        state[HIGHS] += highs
        state[LOWS] += lows
    elif phase == WATER:
        down = state[DOWN]
        lows, active = np.int64(0), np.int64(0)
        for value in x:
            lows += max(value - down, 0)
            active += value > down
        state[LOWS] += lows
        state[ACTIVE] += active
    else:
        up, down, floor, shift = state[UP], state[DOWN], state[FLOOR], np.uint64(state[SHIFT])
        outside = np.uint64(state[BUCKETS])
        for value in x:
            # A value below the floor wraps around to a huge number, and so falls outside as well.
            bucket = min(np.uint64(value - floor) >> shift, outside)
            histogram[bucket] += max(value + up, 0) - max(value - down, 0)


@kernel
def advance(state: NDArray[np.int64], histogram: NDArray[np.int64]) -> None:
    """Draw the conclusion of a finished sweep, and decide what the next one is for."""
    phase = state[PHASE]
    if phase == RANGE:
        rise = -((state[SUM] - state[COUNT]) // state[SIZE])  # ⌈(c − Σx)/b⌉
        if state[KIND] == CHEBYSHEV:
            state[UP] = rise
            state[DOWN] = max(abs(rise), -state[MIN])
            state[PHASE] = BOUNDS
        else:
            state[DOWN] = -rise - 1  # Σ max(x − down, 0) ≥ Σx − b·down > c: below the water level
            state[PHASE] = WATER
    elif phase == BOUNDS:
        if state[LOWS] > state[COUNT]:
            state[PHASE] = WATER
        else:
            state[NEED] = state[HIGHS] - state[COUNT]
            _look_between(state, histogram, max(state[MIN], 1 - state[UP]), state[MAX])
        state[LOWS] = 0
    elif phase == WATER:
        excess = state[LOWS] - state[COUNT]
        if excess > 0:
            # Newton from below on a convex, piecewise linear function: never beyond the level, and soon at it.
            state[DOWN] += -(-excess // state[ACTIVE])
        else:
            state[UP] = 1 - state[DOWN]
            state[HIGHS] = 0
            state[PHASE] = BOUNDS
        state[LOWS] = 0
        state[ACTIVE] = 0
    else:
        _narrow(state, histogram)


@kernel
def _look_between(state: NDArray[np.int64], histogram: NDArray[np.int64], low: int, high: int) -> None:
    """Look for the threshold between two values: by one bucket a value, or coarser if they are far apart."""
    if state[NEED] == 0:
        state[PHASE] = DONE
        state[THRESHOLD] = -_EVERYTHING if state[ORDER] == ASCENDING else _EVERYTHING
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
    histogram[: state[BUCKETS] + 1] = 0


@kernel
def _narrow(state: NDArray[np.int64], histogram: NDArray[np.int64]) -> None:
    """Find the bucket in which the need is met; a bucket of one value is the threshold."""
    need = state[NEED]
    if state[ORDER] == ASCENDING:
        bucket = np.int64(0)
        while histogram[bucket] < need:
            need -= histogram[bucket]
            bucket += 1
    else:
        bucket = state[BUCKETS] - 1
        while histogram[bucket] < need:
            need -= histogram[bucket]
            bucket -= 1
    state[NEED] = need
    low = state[FLOOR] + (bucket << state[SHIFT])
    if state[SHIFT] > 0:
        _look_between(state, histogram, low, low + (1 << state[SHIFT]) - 1)
        return
    room = max(low + state[UP], 0) - max(low - state[DOWN], 0)
    state[PHASE] = DONE
    state[THRESHOLD] = low
    state[TIES] = histogram[bucket] // room
    state[FULL] = need // room
    state[PART] = need % room


@kernel
def settle(state: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Turn a block of measurements into the repaired counts, in place; blocks come in order."""
    up, down, threshold = state[UP], state[DOWN], state[THRESHOLD]
    below, above = (down, -up) if state[ORDER] == ASCENDING else (-up, down)
    for i in range(len(x)):
        value = x[i]
        if value < threshold:
            x[i] = max(value - below, 0)
        elif value > threshold:
            x[i] = max(value - above, 0)
        else:
            x[i] = _settle_tie(state, value)


@kernel
def _settle_tie(state: NDArray[np.int64], value: int) -> int:
    """Give one of the entries at the threshold its part, drawn without replacement: all are treated alike."""
    high = max(value + state[UP], 0)
    drawn = _below(state, state[TIES])
    state[TIES] -= 1
    if drawn < state[FULL]:
        state[FULL] -= 1
        return max(value - state[DOWN], 0)
    if drawn == state[FULL]:
        part = state[PART]
        state[PART] = 0
        return high - part
    return high


@kernel
def _below(state: NDArray[np.int64], bound: int) -> int:
    """Return a pseudo-random integer in [0, bound) from the seed (splitmix64, by Steele, Lea and Flood 2014).

    It decides who among equals is favoured, nothing else: it is independent of the noise, and the bias of the
    modulus is below bound/2^63.
    """
    state[SEED] += np.int64(-7046029254386353131)  # 2^64 divided by the golden ratio
    mixed = np.uint64(state[SEED])
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.int64((mixed >> np.uint64(1)) % np.uint64(bound))


@kernel
def repair(
    state: NDArray[np.int64],
    histogram: NDArray[np.int64],
    x: NDArray[np.int64],
    count: int,
    kind: int,
    order: int,
    seed: np.uint64,
) -> None:
    """Repair measurements that are in memory, in place."""
    begin(state, len(x), count, kind, order, seed)
    while state[PHASE] != DONE:
        sweep(state, histogram, x)
        advance(state, histogram)
    settle(state, x)
