"""Repair of one node with bounds on its children: exactly optimal whole numbers in a few sweeps.

With bounds lo ≤ y ≤ hi for each child a repair has the same shape as without (`sweep`): entries are lowered from
clamp(x + up) to clamp(x − down), clamped to their bounds, in the order of x until the sum is right. Let g(t) be the sum
of all clamp(x − t): it falls, and the water level w is the least t with g(t) ≤ c. Then

- Euclidean: down = w, up = 1 − w, as without bounds.
- Chebyshev: up = r = max(⌈(c − Σx)/b⌉, least r with g(−r) ≥ c): the second is above the first only if upper bounds
  leave too little. And down = t = max(|r|, lo − x, x − hi) or, if even g(t) > c, the water level with up = 1 − w.
  No answer changes less: with largest change t every entry is at most min(hi, x + t) and at least max(lo, x − t), so
  that t ≥ lo − x and t ≥ x − hi for each entry, and sums of these that hold c between them need t ≥ |r| and t ≥ w.

Without bounds (0 and infinity) the answer is the same, bit for bit. All children are in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import copy_into
from treetop._util.kernel import kernel
from treetop._util.numbers import NO_BOUND
from treetop.repair import state as at
from treetop.repair.state import begin, below

Ints = NDArray[np.int64]

_MOST_BITS = 8
_FULL = np.int64(1 << 61)
"""Partial sums stop at this value, to avoid overflow."""


@kernel
def repair_bounded(
    x: Ints, lower: Ints, upper: Ints, count: int, kind: int, order: int, seed: np.uint64, state: Ints, buckets: Ints,
    out: Ints,
) -> None:  # fmt: skip
    """Write whole numbers within bounds with sum `count`; the bounds must allow it. `state` and `buckets` are scratch.

    They have at least `STATE_SIZE` and `SCRATCH_SIZE` places.
    """
    begin(state, len(x), count, kind, order, seed)
    least, most = np.int64(0), np.int64(0)
    for i in range(len(x)):
        least += lower[i]
        most = min(most + upper[i], _FULL)
    if least > count or most < count:
        raise ValueError("the bounds of a node's children do not allow its count")
    if least == count:
        copy_into(out, lower)
    elif most == count:
        copy_into(out, upper)
    else:
        _set_changes(state, x, lower, upper)
        _find_threshold(state, buckets, x, lower, upper)
        _settle(state, x, lower, upper, out)


@kernel
def _clamped(value: Any, lower: Any, upper: Any) -> Any:
    return min(max(value, lower), upper)


@kernel
def _lowered(x: Ints, lower: Ints, upper: Ints, by: Any) -> tuple[Any, Any]:
    """Return g(by), and how many entries would follow it further down."""
    total, active = np.int64(0), np.int64(0)
    for i in range(len(x)):
        value = x[i] - by
        total += min(max(value, lower[i]), upper[i])
        active += lower[i] < value <= upper[i]
        if total > _FULL:
            break
    return total, active


@kernel
def _set_changes(state: Ints, x: Ints, lower: Ints, upper: Ints) -> None:
    """Set `up` and `down`, and the remaining amount to lower between them."""
    count = state[at.COUNT]
    total, furthest = np.int64(0), np.int64(0)
    top, bottom = x[0] - lower[0], x[0] - min(upper[0], count + 1)
    for i in range(len(x)):
        total += x[i]
        furthest = max(furthest, lower[i] - x[i], x[i] - upper[i])
        top = max(top, x[i] - lower[i])  # from here on every entry is at its lower bound
        bottom = min(bottom, x[i] - min(upper[i], count + 1))  # and here the sum is above the count
    rise = -((total - count) // len(x))  # ⌈(c − Σx)/b⌉
    water, there = _water_level(x, lower, upper, count, bottom, top, -rise)
    state[at.UP], state[at.DOWN] = 1 - water, water
    if state[at.KIND] == at.CHEBYSHEV:
        rise = max(rise, -water if there == count else 1 - water)
        change = max(abs(rise), furthest)
        if water <= change:
            state[at.UP], state[at.DOWN] = rise, change
    highs, _ = _lowered(x, lower, upper, -state[at.UP])
    state[at.NEED] = highs - count


@kernel
def _water_level(x: Ints, lower: Ints, upper: Ints, count: Any, low: Any, high: Any, level: Any) -> tuple[Any, Any]:
    """Return the least t with g(t) ≤ count, and g there; g(low) is above the count, and g(high) is not.

    Newton's method from a first guess, safeguarded by a bracket: g is piecewise linear, and every fourth step is a
    bisection.
    """
    there, step = np.int64(-1), 0
    while high - low > 1 or there < 0:
        if not low < level < high:
            level = low + (high - low) // 2 if high - low > 1 else high
        total, active = _lowered(x, lower, upper, level)
        if total > count:
            low = level
        else:
            high, there = level, total
        step += 1
        if active > 0 and step % 4 != 0:
            level -= (count - total) // active  # to ⌈t + (g − c)/active⌉
            if level == low:  # it is above the count here, and may not be next to it
                level = low + 1
            elif level == high:
                level = high - 1
        else:
            level = low + (high - low) // 2
    return high, there


@kernel
def _find_threshold(state: Ints, buckets: Ints, x: Ints, lower: Ints, upper: Ints) -> None:
    """Find the threshold value of x at which the required sum has been lowered, and the remainder for ties.

    Each bucket of values holds the total by which its entries can be lowered. The bucket that contains the threshold is
    subdivided.
    """
    up, down, step, need = state[at.UP], state[at.DOWN], state[at.ORDER], state[at.NEED]
    if need == 0:
        state[at.THRESHOLD] = at.LOWEST if step > 0 else at.HIGHEST
        return
    low, high = x.min(), x.max()
    bits = 3
    while bits < _MOST_BITS and (1 << bits) < len(x):
        bits += 1
    while low < high:
        shift = np.int64(0)
        while (high - low) >> shift >= 1 << bits:
            shift += 1
        size = ((high - low) >> shift) + 1
        buckets[:size] = 0
        for i in range(len(x)):
            if low <= x[i] <= high:
                room = _clamped(x[i] + up, lower[i], upper[i]) - _clamped(x[i] - down, lower[i], upper[i])
                buckets[(x[i] - low) >> shift] += room
        bucket = 0 if step > 0 else size - 1
        while buckets[bucket] < need:
            need -= buckets[bucket]
            bucket += step
        low += bucket << shift
        high = min(high, low + (1 << shift) - 1)
    state[at.THRESHOLD], state[at.NEED] = low, need


@kernel
def _settle(state: Ints, x: Ints, lower: Ints, upper: Ints, out: Ints) -> None:
    """Write the result: entries before the threshold are lowered, those after it are not."""
    up, down, threshold, ascending = state[at.UP], state[at.DOWN], state[at.THRESHOLD], state[at.ORDER] > 0
    ties, widest, narrowest = np.int64(0), np.int64(0), np.int64(NO_BOUND)
    for i in range(len(x)):
        if x[i] == threshold:
            room = _clamped(x[i] + up, lower[i], upper[i]) - _clamped(x[i] - down, lower[i], upper[i])
            widest, narrowest = max(widest, room), min(narrowest, room)
            ties += 1
        by = down if (x[i] < threshold if ascending else x[i] > threshold) else -up
        out[i] = _clamped(x[i] - by, lower[i], upper[i])
    if ties == 0:
        return
    state[at.TIES] = ties
    if widest == narrowest:
        _lower_equals(state, x, widest, out)
    else:
        _lower_unequals(state, x, lower, upper, out)


@kernel
def _lower_equals(state: Ints, x: Ints, room: Any, out: Ints) -> None:
    """Lower entries at the threshold that have the same room, drawn without replacement: as `settle` does."""
    full, part = state[at.NEED] // room, state[at.NEED] % room
    for i in range(len(x)):
        if x[i] != state[at.THRESHOLD]:
            continue
        drawn = below(state, state[at.TIES])
        state[at.TIES] -= 1
        if drawn < full:
            full -= 1
            out[i] -= room
        elif drawn == full:
            out[i] -= part
            part = 0


@kernel
def _lower_unequals(state: Ints, x: Ints, lower: Ints, upper: Ints, out: Ints) -> None:
    """Lower entries at the threshold that have different room, in an order that is drawn (Fisher and Yates)."""
    order = np.flatnonzero(x == state[at.THRESHOLD])
    need = state[at.NEED]
    for k in range(len(order)):
        other = k + below(state, len(order) - k)
        i = order[other]
        order[other] = order[k]
        room = min(out[i] - _clamped(x[i] - state[at.DOWN], lower[i], upper[i]), need)
        out[i] -= room
        need -= room
