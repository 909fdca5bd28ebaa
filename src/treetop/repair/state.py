"""What a repair remembers of a node: a few integers, so that kernels can hand it on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel_in_place

CHEBYSHEV, EUCLIDEAN = 0, 1
ASCENDING, DESCENDING = 1, -1

# The question.
KIND, ORDER, SIZE, COUNT = 0, 1, 2, 3
# The answer: the bounds, the threshold, and how the entries at the threshold are to be treated.
UP, DOWN, THRESHOLD, TIES, FULL, PART, SEED = 4, 5, 6, 7, 8, 9, 10
# Between sweeps.
PHASE, SUM, MIN, MAX, HIGHS, LOWS, ACTIVE, NEED, FLOOR, SHIFT, BUCKETS = range(11, 22)
# Where all measurements are there: the highest but one, which is as high where several are.
SECOND = 22
STATE_SIZE = 23

LOWEST, HIGHEST = np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)


@kernel_in_place
def room_of(state: NDArray[np.int64], value: int | np.int64) -> int:
    """Return by how much an entry can be lowered."""
    return max(value + state[UP], 0) - max(value - state[DOWN], 0)
