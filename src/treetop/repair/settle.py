"""From the threshold to the answer: every measurement becomes its repaired count, equals are treated alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel_in_place
from treetop.repair import state as at
from treetop.repair.sweep import DONE, advance, start_sweeping, sweep
from treetop.repair.topmost import find_from_top, look


@kernel_in_place
def begin(state: NDArray[np.int64], size: int, count: int, kind: int, order: int, seed: np.uint64) -> None:
    """Start the repair of `size` measurements to the sum `count`; ties are broken by `seed`, any word."""
    if kind != at.CHEBYSHEV and kind != at.EUCLIDEAN:
        raise ValueError("no kernel has a repair of this kind")
    state[at.SIZE] = size
    state[at.COUNT] = count
    state[at.KIND] = kind
    state[at.ORDER] = order
    state[at.SEED] = np.int64(mix(seed))


@kernel_in_place
def solve(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Find bounds and threshold for measurements that are all in memory."""
    look(state, x)
    solve_further(state, scratch, x)


@kernel_in_place
def solve_further(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Find bounds and threshold for measurements that were looked at."""
    if find_from_top(state, scratch, x):
        return
    start_sweeping(state)
    while state[at.PHASE] != DONE:
        sweep(state, scratch, x)
        advance(state, scratch)


@kernel_in_place
def least_kept(state: NDArray[np.int64]) -> int:
    """Return a value below which every measurement becomes zero."""
    least = 1 - state[at.UP]
    if state[at.ORDER] == at.ASCENDING:
        least = max(least, min(state[at.THRESHOLD], state[at.DOWN] + 1))
    return least


@kernel_in_place
def settled(state: NDArray[np.int64], value: int) -> int:
    """Return the repaired count of the next measurement; they come in the order of the children."""
    threshold = state[at.THRESHOLD]
    if value == threshold:
        return _settle_tie(state, value)
    lowered = value < threshold if state[at.ORDER] > 0 else value > threshold
    return max(value - state[at.DOWN] if lowered else value + state[at.UP], 0)


@kernel_in_place
def _settle_tie(state: NDArray[np.int64], value: int) -> int:
    """Give one of the entries at the threshold its part, drawn without replacement."""
    high = max(value + state[at.UP], 0)
    drawn = below(state, state[at.TIES]) if state[at.TIES] > 1 else 0
    state[at.TIES] -= 1
    if drawn < state[at.FULL]:
        state[at.FULL] -= 1
        return max(value - state[at.DOWN], 0)
    if drawn == state[at.FULL]:
        part = state[at.PART]
        state[at.PART] = 0
        return high - part
    return high


@kernel_in_place
def below(state: NDArray[np.int64], bound: int) -> np.int64:
    """Return a pseudo-random integer in [0, bound) from the seed (splitmix64: Steele, Lea and Flood 2014).

    It decides who among equals is favoured, nothing else: it is independent of the noise, and the bias of the
    modulus is below bound/2^63.
    """
    state[at.SEED] += np.int64(-7046029254386353131)  # 2^64 divided by the golden ratio
    return np.int64((mix(np.uint64(state[at.SEED])) >> np.uint64(1)) % np.uint64(bound))


@kernel_in_place
def mix(word: np.uint64) -> np.uint64:
    """Return a word that looks unrelated to this one: a bijection."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
