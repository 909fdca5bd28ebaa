"""From the threshold to the answer: every measurement becomes its repaired count, equals are treated alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.kernel import kernel
from treetop.repair.small import MOST, find_threshold
from treetop.repair.state import (
    ASCENDING,
    COUNT,
    DOWN,
    FULL,
    KIND,
    ORDER,
    PART,
    PHASE,
    SEED,
    SIZE,
    THRESHOLD,
    TIES,
    UP,
)
from treetop.repair.sweep import DONE, advance, start_sweeping, sweep


@kernel
def begin(state: NDArray[np.int64], size: int, count: int, kind: int, order: int, seed: np.uint64) -> None:
    """Start the repair of `size` measurements to the sum `count`; ties are broken by `seed`."""
    state[SIZE] = size
    state[COUNT] = count
    state[KIND] = kind
    state[ORDER] = order
    state[SEED] = np.int64(seed)


@kernel
def repair(
    state: NDArray[np.int64],
    scratch: NDArray[np.int64],
    x: NDArray[np.int64],
    count: int,
    kind: int,
    order: int,
    seed: np.uint64,
) -> None:
    """Repair measurements that are in memory, in place."""
    begin(state, len(x), count, kind, order, seed)
    if len(x) <= MOST:
        find_threshold(state, scratch, x)
    else:
        start_sweeping(state)
        while state[PHASE] != DONE:
            sweep(state, scratch, x)
            advance(state, scratch)
    settle(state, x)


@kernel
def settle(state: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Turn a block of measurements into the repaired counts, in place; blocks come in order."""
    up, down, threshold = state[UP], state[DOWN], state[THRESHOLD]
    below, above = (down, -up) if state[ORDER] == ASCENDING else (-up, down)
    for i in range(len(x)):
        value = x[i]
        change = below if value < threshold else above
        x[i] = max(value - change, 0)
        if value == threshold:
            x[i] = _settle_tie(state, value)


@kernel
def _settle_tie(state: NDArray[np.int64], value: int) -> int:
    """Give one of the entries at the threshold its part, drawn without replacement."""
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
    """Return a pseudo-random integer in [0, bound) from the seed (splitmix64: Steele, Lea and Flood 2014).

    It decides who among equals is favoured, nothing else: it is independent of the noise, and the bias of the
    modulus is below bound/2^63.
    """
    state[SEED] += np.int64(-7046029254386353131)  # 2^64 divided by the golden ratio
    mixed = np.uint64(state[SEED])
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.int64((mixed >> np.uint64(1)) % np.uint64(bound))
