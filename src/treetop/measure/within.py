"""A batch of nodes whose children public facts bound: measured, repaired within the bounds, and moved to the front.

Where facts say exactly what the children have, that is what is measured of them, without noise: nothing private is
told, and nothing is paid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.measure.evidence import NOTHING
from treetop.measure.measure import add_counts
from treetop.repair.bounded import repair_bounded

Ints = NDArray[np.int64]


@kernel
def refine_batch_within(
    value: Ints, start: Ints, stop: Ints, parent: NDArray[np.int32], child: NDArray[np.int32], measured: Ints,
    highest: Ints, left: Ints, slots: Ints, begins: Ints, ends: Ints, state: Ints, scratch: Ints,
    node: NDArray[np.int32], released: Ints, starts: Ints, stops: Ints, first: Ints, denied: NDArray[np.bool_],
    ties: Ints,
    keys: NDArray[np.uint64], shift: int, mask: np.uint64, before: Ints,
    lower: Ints, upper: Ints, exact: bool,
    only: int, kind: int, order: int, named: int,
) -> int:  # fmt: skip
    """Do what `refine_batch` does, within the bounds of children, which stand as their noise does.

    A child that has something by its bounds is named whatever it measured.
    """
    tracked = len(start) > 0
    kept, slot = 0, only
    for i in range(len(node)):
        eldest = first[node[i]]
        fanout = first[node[i] + 1] - eldest
        highest[i], left[i] = NOTHING, 0
        if denied[i]:
            left[i] = released[i]
            continue
        if fanout == 1:
            value[kept], parent[kept], child[kept], measured[kept] = released[i], i, eldest, NOTHING
            if tracked:
                start[kept], stop[kept] = starts[i], stops[i]
            kept += 1
            continue
        end, low = slot + fanout, lower[slot - only : slot - only + fanout]
        x = value[slot:end]
        add_counts(x, begins[:fanout], ends[:fanout], 0, keys, shift, mask, before, starts[i], stops[i])
        repaired = np.empty(fanout, np.int64)
        if exact:
            x[:] = low  # where the private leaves are has been found, and what they count is not told
            repaired[:] = low
        else:
            high = upper[slot - only : slot - only + fanout]
            repair_bounded(x, low, high, released[i], kind, order, np.uint64(ties[i]), state, scratch, repaired)
        if len(slots) > 0:
            slots[slot - only : end - only] = x
        for k in range(fanout):
            seen = value[slot + k]
            if repaired[k] > 0 and (seen >= named or low[k] > 0):
                if tracked:
                    start[kept], stop[kept] = begins[k], ends[k]
                value[kept], parent[kept], child[kept], measured[kept] = repaired[k], i, eldest + k, seen
                kept += 1
            else:
                highest[i] = max(highest[i], seen)
                left[i] += repaired[k]
        slot = end
    return kept
