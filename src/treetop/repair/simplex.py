"""The nearest numbers that are not negative and have a given sum: all that is above zero is moved by one offset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

_MOST_NEWTON = 60


@kernel
def sum_offset(values: NDArray[np.float64], total: float) -> float:
    """Return the offset with which the values, none below zero, sum to the total: Newton's method, exact at its end."""
    offset = (total - values.sum()) / len(values)
    for _ in range(_MOST_NEWTON):
        reached, above, highest = 0.0, 0, -np.inf
        for i in range(len(values)):
            highest = max(highest, values[i])
            if values[i] + offset > 0.0:
                reached += values[i] + offset
                above += 1
        if above == 0:
            offset = total - highest
            continue
        offset += (total - reached) / above
        if abs(total - reached) <= 1e-9 * (1.0 + total):
            break
    return offset
