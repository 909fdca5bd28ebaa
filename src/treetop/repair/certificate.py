"""The certificate of a projection: no unit can be moved to lower the cost, so nothing can.

The cost is a sum of convex functions over nested sets of leaves, hence M♮-convex, and a point is the least if no single
exchange improves it: a unit from one leaf to another or, where the sum is free, one unit more or less (Murota,
Discrete Convex Analysis, 2003, chapter 6). It looks at measurements, weights and counts only, not at how they were
found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

Integers = NDArray[np.int64]

NEVER = 1 << 61
"""More than any cost: of a unit that cannot be taken because there is none."""
MOST = 2 * NEVER - 1


@kernel
def best_exchange(add: Integers, remove: Integers) -> int:
    """Return the least add[i] + remove[j] with i ≠ j: what it costs to move a unit between two siblings."""
    cheapest, least, second = -1, MOST, MOST
    for i in range(len(add)):
        if add[i] < least:
            cheapest, least, second = i, add[i], least
        elif add[i] < second:
            second = add[i]
    best = MOST
    for j in range(len(remove)):
        other = second if j == cheapest else least
        if remove[j] < NEVER and other < NEVER:
            best = min(best, other + remove[j])
    return best


@kernel
def certify(
    child: Integers, weights: Integers, y: Integers, x: Integers, out_gain: Integers, out_add: Integers,
    out_remove: Integers,
) -> None:  # fmt: skip
    """Write for each copy what its best inner exchange costs, and what one unit more, or less, under its root costs.

    A copy that is not made of non-negative counts with children summing to their parents has gain −1, so it fails.
    """
    nodes = y.shape[1]
    add, remove = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for s in range(len(y)):
        gain = MOST
        for v in range(nodes - 1, -1, -1):
            change = x[s, v] - y[s, v]
            add[v] = weights[v] * (2 * change + 1)
            remove[v] = weights[v] * (1 - 2 * change)
            first, last = child[v], child[v + 1]
            if x[s, v] < 0:
                gain = min(gain, -1)
            if first == last:
                if x[s, v] == 0:
                    remove[v] = NEVER
                continue
            total = np.int64(0)
            for c in range(first, last):
                total += x[s, c]
            if total != x[s, v]:
                gain = min(gain, -1)
            gain = min(gain, best_exchange(add[first:last], remove[first:last]))
            add[v] += add[first:last].min()
            least = remove[first:last].min()
            remove[v] = NEVER if least == NEVER else remove[v] + least
        out_gain[s], out_add[s], out_remove[s] = gain, add[0], remove[0]
