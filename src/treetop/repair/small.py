"""The repair of a node with few children: sort them once instead of sweeping them often.

It finds the same bounds and the same threshold as `sweep`, which explains them, and leaves them in the same state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.repair import state as at

MOST = 16
"""Up to this many children sorting is the faster way."""


@kernel
def find_threshold(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Set the bounds and the threshold for measurements that are all here."""
    size = len(x)
    values = scratch[MOST : MOST + size]
    _sort(scratch, x, values)
    count = state[at.COUNT]
    total = np.int64(0)
    for i in range(size):
        total += values[i]
    rise = -((total - count) // size)  # ⌈(c − Σx)/b⌉
    water = _water_level(values, count)
    up, down = 1 - water, water
    change = max(abs(rise), -values[0])
    if state[at.KIND] == at.CHEBYSHEV and water <= change:
        up, down = rise, change
    need = -count
    for i in range(size):
        need += max(values[i] + up, 0)
    state[at.UP], state[at.DOWN] = up, down
    step = state[at.ORDER]
    if need == 0:
        state[at.THRESHOLD] = at.LOWEST if step > 0 else at.HIGHEST
        return
    i = 0 if step > 0 else size - 1
    while True:
        value = values[i]
        room = max(value + up, 0) - max(value - down, 0)
        equal = 1
        while 0 <= i + step * equal < size and values[i + step * equal] == value:
            equal += 1
        if need <= equal * room:
            break
        need -= equal * room
        i += step * equal
    state[at.THRESHOLD] = value
    state[at.TIES] = equal
    state[at.FULL] = need // room
    state[at.PART] = need % room


@kernel
def _sort(scratch: NDArray[np.int64], x: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """Sort by counting, for each entry, those that come before it: no branches to mispredict."""
    keys = scratch[:MOST]
    padded = (len(x) + 7) & ~7
    for i in range(len(x)):
        keys[i] = (x[i] << 6) | i
    for i in range(len(x), padded):
        keys[i] = at.HIGHEST
    for i in range(len(x)):
        rank = np.int64(0)
        key = keys[i]
        for j in range(padded):
            rank += keys[j] < key
        out[rank] = x[i]


@kernel
def _water_level(values: NDArray[np.int64], count: int) -> int:
    """Return the least t with Σ max(x − t, 0) ≤ count, for ascending values."""
    above, k = 0, 0  # the entries above the level are the k largest
    for i in range(len(values) - 1, -1, -1):
        if above - k * values[i] > count:
            break
        above += values[i]
        k += 1
    return -((count - above) // k)  # ⌈(Σ of the k largest − c)/k⌉
