"""The repair of a node by its highest measurements: mostly few are kept, and those are found without sorting.

It finds the same bounds and the same threshold as `sweep`, which explains them, and leaves them in the same state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel_in_place
from treetop.repair import state as at
from treetop.repair.state import room_of

MOST = 16
"""Up to this many different measurements looking from the top is the faster way."""
_FEW = 32
"""So few measurements are looked at in one pass; with more, two passes that take several at a time are faster."""

Ints = NDArray[np.int64]


@kernel_in_place
def look(state: Ints, x: Ints) -> int:
    """Take in measurements that are all here, and the bounds to start from; return which is highest, -1 if several."""
    total, low, high, second, which = np.int64(0), at.HIGHEST, at.LOWEST, at.LOWEST, 0
    if len(x) <= _FEW:
        for i in range(len(x)):
            total += x[i]
            low = min(low, x[i])
            second = max(second, min(high, x[i]))
            which = i if x[i] > high else which
            high = max(high, x[i])
    else:
        for i in range(len(x)):
            total += x[i]
            low = min(low, x[i])
            high = max(high, x[i])
        for i in range(len(x)):
            second = max(second, x[i] if x[i] < high else at.LOWEST)
        if _number_of(x, high) > 1:
            second = high
        while x[which] < high:
            which += 1
    rise = -((total - state[at.COUNT]) // len(x))  # ⌈(c − Σx)/b⌉
    state[at.MAX], state[at.SECOND] = high, second
    state[at.UP], state[at.DOWN] = rise, max(abs(rise), -low)
    return which if second < high else -1


@kernel_in_place
def takes_all(state: Ints) -> bool:
    """Whether the highest of measurements that were looked at, if it is one, gets the whole count: often it does.

    Where no other is above the largest change of the start, they can all vanish, and are lowered first: then the high
    bound of the highest must be enough. Else it must be ahead of the second by the count c, or, in ascending order, by
    c − 1: the low bounds exceed c then, and the water level is not below the second.
    """
    count, high, second = state[at.COUNT], state[at.MAX], state[at.SECOND]
    ascending = state[at.ORDER] == at.ASCENDING
    if state[at.KIND] == at.CHEBYSHEV and second <= state[at.DOWN]:
        return bool(ascending and high + state[at.UP] >= count)
    if state[at.KIND] == at.EUCLIDEAN or ascending:
        return bool(high - second >= (count - 1 if ascending else count))
    return False


@kernel_in_place
def find_from_top(state: Ints, scratch: Ints, x: Ints) -> bool:
    """Set bounds and threshold for measurements that were looked at; False where that asks for too many of them."""
    count, high = state[at.COUNT], state[at.MAX]
    up, down = state[at.UP], state[at.DOWN]
    _begin_list(scratch, x, high, state[at.SECOND])
    lows = _sum_above(x, high, down, count)
    if lows > count or state[at.KIND] == at.EUCLIDEAN:
        down = _water_level(scratch, x, count)
        if down == at.HIGHEST:
            return False
        up, lows = 1 - down, _sum_above(x, high, down, count)
    state[at.UP], state[at.DOWN] = up, down
    if state[at.ORDER] == at.ASCENDING:
        return _find_above(state, scratch, x, count - lows)
    need = -count
    for i in range(len(x)):
        need += max(x[i] + up, 0)
    return _find_below(state, scratch, x, need)


@kernel_in_place
def _find_above(state: Ints, scratch: Ints, x: Ints, spare: int | np.int64) -> bool:
    """Set the threshold below those that are not lowered, where `spare` is the room that entries keep in all."""
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        if equal == 0:  # nothing is lowered
            state[at.THRESHOLD] = at.LOWEST
            return True
        room = equal * room_of(state, value)
        if room > spare:
            _set_threshold(state, value, equal, room - spare)
            return True
        spare -= room
    return False


@kernel_in_place
def _find_below(state: Ints, scratch: Ints, x: Ints, need: int | np.int64) -> bool:
    """Set the threshold above those that are not lowered, where entries are to be lowered by `need` in all."""
    if need == 0:
        state[at.THRESHOLD] = at.HIGHEST
        return True
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        room = equal * room_of(state, value)
        if need <= room:
            _set_threshold(state, value, equal, need)
            return True
        need -= room
    return False


@kernel_in_place
def _set_threshold(state: Ints, value: np.int64, equal: np.int64, lowered: int | np.int64) -> None:
    """Set the threshold, at which entries are lowered by so much in all."""
    room = room_of(state, value)
    state[at.THRESHOLD] = value
    state[at.TIES] = equal
    state[at.FULL] = lowered // room
    state[at.PART] = lowered % room


@kernel_in_place
def _sum_above(x: Ints, high: np.int64, level: int | np.int64, count: int) -> np.int64:
    """Return Σ max(x − level, 0), or anything above `count` where it is."""
    if high <= level:
        return np.int64(0)
    if high - level > count:
        return high - level
    total = np.int64(0)
    for i in range(len(x)):
        total += max(x[i] - level, 0)
    return total


@kernel_in_place
def _water_level(scratch: Ints, x: Ints, count: int) -> np.int64:
    """Return the least t with Σ max(x − t, 0) ≤ count; the highest number where that asks for too many."""
    above, k = np.int64(0), np.int64(0)  # the entries above the level are the k largest
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        if equal == 0 or above - k * value > count:
            return -((count - above) // k)  # ⌈(Σ of the k largest − c)/k⌉
        above += equal * value
        k += equal
    return at.HIGHEST


# The list of the highest values stands in the scratch memory: how many are known, the values, and how often each comes.


@kernel_in_place
def _begin_list(scratch: Ints, x: Ints, high: np.int64, second: np.int64) -> None:
    scratch[0] = 1
    scratch[1] = high
    scratch[1 + MOST] = 1 if second < high else _number_of(x, high)


@kernel_in_place
def _listed(scratch: Ints, x: Ints, rank: int) -> tuple[np.int64, np.int64]:
    """Return the highest value but so many, and how often it comes: 0 times where there are no more values."""
    if rank == scratch[0]:
        last, value = scratch[rank], at.LOWEST
        for i in range(len(x)):
            value = max(value, x[i] if x[i] < last else at.LOWEST)
        scratch[0] += 1
        scratch[1 + rank] = value
        scratch[1 + MOST + rank] = _number_of(x, value)
    return scratch[1 + rank], scratch[1 + MOST + rank]


@kernel_in_place
def _number_of(x: Ints, value: np.int64) -> np.int64:
    number = np.int64(0)
    for i in range(len(x)):
        number += x[i] == value
    return number
