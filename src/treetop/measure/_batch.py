"""A batch of nodes: measure and repair their children, and move those above zero to the front of the memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop._util.arrays import U, copy_into
from treetop._util.kernel import kernel, kernel_in_place
from treetop.errors import NumberError
from treetop.measure.measure import NOTHING, add_counts
from treetop.repair import NodeRepair, RepairOrder
from treetop.repair.bounded import repair_bounded
from treetop.repair.state import SECOND, begin, least_kept, look, settled, solve_further, takes_all

Ints = NDArray[np.int64]


class Parents(NamedTuple):
    """The retained nodes of a batch, as arrays with one entry per node."""

    node: NDArray[np.int32]
    """Node of the refined attribute; if a step refines several attributes, the position of the node."""
    released: Ints
    """Released counts."""
    start: Ints
    """Start of each node's range of private leaves."""
    stop: Ints
    """End of that range."""
    first: Ints
    """The children of every node v are `first[v] : first[v + 1]`."""
    denied: NDArray[np.bool_]
    """Whether the node has an only child that is not named."""
    ties: Ints
    """Tie-breaking seed of each node."""


class Leaves(NamedTuple):
    """The private leaves, with the bits of their keys that hold the ranks of the level."""

    keys: NDArray[np.uint64]
    """The word of each leaf's path that holds the ranks of the level."""
    shift: int
    """Position of the ranks in the word, in bits."""
    mask: np.uint64
    """Mask of the ranks after the shift."""
    before: Ints
    """Cumulative counts: the sum of all counts before each leaf."""


class Children(NamedTuple):
    """Memory for the children of a batch.

    `value` starts with free space for the only children, which have no noise, followed by the noise of the others. So
    retained children can be moved to the front without overwriting unused noise.
    """

    value: Ints
    """Noise, then measurements; the front holds the released counts of retained children."""
    start: Ints
    """Of retained children: start of the range of private leaves. Empty if the children are leaves."""
    stop: Ints
    """End of that range."""
    parent: NDArray[np.int32]
    """Of retained children: position of the parent in the batch."""
    child: NDArray[np.int32]
    """Of retained children: the attribute's node, or the child's number."""
    measured: Ints
    """Of retained children: the measurement."""
    highest: Ints
    """By parent: highest measurement among children that are not retained."""
    left: Ints
    """By parent: count left at the parent because its children are not named."""
    slots: Ints
    """All measurements; empty if they are not kept."""
    begin: Ints
    """Start of the range of private leaves, for all children of one node. Empty if the children are leaves."""
    end: Ints
    """End of that range."""
    state: Ints
    """State of one node's repair."""
    scratch: Ints
    """Scratch memory of the repair."""


@kernel_in_place
def refine_batch(
    value: Ints, start: Ints, stop: Ints, parent: NDArray[np.int32], child: NDArray[np.int32], measured: Ints,
    highest: Ints, left: Ints, slots: Ints, begins: Ints, ends: Ints, state: Ints, scratch: Ints,
    node: NDArray[np.int32], released: Ints, starts: Ints, stops: Ints, first: Ints, denied: NDArray[np.bool_],
    ties: Ints,
    keys: NDArray[np.uint64], shift: int, mask: np.uint64, before: Ints,
    only: int, kind: int, order: int, named: int,
) -> int:  # fmt: skip
    """Measure, repair and prune the children of many nodes, of which `only` have one; return how many were kept.

    The arguments are the arrays of `Children`, `Parents` and `Leaves`: passing tuples would cost 1 % of the run time.
    The counts of children that measured less than `named` are left at their parents.
    """
    tracked = len(start) > 0
    kept, slot = 0, only
    for i in range(len(node)):
        eldest = first[node[i]]
        fanout = first[node[i] + 1] - eldest
        if denied[i]:
            highest[i] = NOTHING
            left[i] = released[i]
            continue
        if fanout == 1:
            value[kept] = released[i]
            if tracked:
                start[kept] = starts[i]
                stop[kept] = stops[i]
            parent[kept] = i
            child[kept] = eldest
            measured[kept] = NOTHING
            highest[i] = NOTHING
            left[i] = 0
            kept += 1
            continue
        end = slot + fanout
        x = value[slot:end]
        add_counts(x, begins[:fanout], ends[:fanout], 0, keys, shift, mask, before, starts[i], stops[i])
        if len(slots) > 0:
            copy_into(slots[slot - only :], x)
        begin(state, fanout, released[i], kind, order, np.uint64(ties[i]))
        own = look(state, x)
        if own >= 0 and takes_all(state) and x[own] >= named:
            value[kept], measured[kept], parent[kept], child[kept] = released[i], x[own], i, eldest + own
            if tracked:
                start[kept], stop[kept] = begins[own], ends[own]
            highest[i], left[i] = state[SECOND], 0
            kept += 1
        else:
            solve_further(state, scratch, x)
            kept, highest[i], left[i] = keep(
                state, value, start, stop, parent, child, measured, begins, ends, slot, end, i, eldest, kept, named
            )
        slot = end
    return kept


def refine_batch_custom(
    repair: NodeRepair, children: Children, parents: Parents, leaves: Leaves, only: int, order: RepairOrder, named: int,
) -> int:  # fmt: skip
    """Do the same as `refine_batch`, with a custom repair function."""
    kept, slot = 0, only
    for i, node in enumerate(parents.node.tolist()):
        eldest, after = int(parents.first[node]), int(parents.first[node + 1])
        if after - eldest == 1:
            x, y, chosen = np.array([NOTHING]), parents.released[i : i + 1], ~parents.denied[i : i + 1]
            start, stop = parents.start[i : i + 1], parents.stop[i : i + 1]
        else:
            end = slot + after - eldest
            start, stop = children.begin[: end - slot], children.end[: end - slot]
            add_counts(children.value[slot:end], start, stop, 0, *leaves, parents.start[i], parents.stop[i])
            x = children.value[slot:end].copy()
            if len(children.slots) > 0:
                children.slots[slot - only : end - only] = x
            y = repaired_by(repair, x.copy(), int(parents.released[i]), order, int(parents.ties[i]))
            chosen, slot = (y > 0) & (x >= named), end
        front = slice(kept, kept + int(np.count_nonzero(chosen)))
        children.value[front], children.measured[front] = y[chosen], x[chosen]
        if len(children.start) > 0:
            children.start[front], children.stop[front] = start[chosen], stop[chosen]
        children.parent[front], children.child[front] = i, eldest + np.flatnonzero(chosen)
        children.highest[i], children.left[i] = x[~chosen].max(initial=NOTHING), y[~chosen].sum()
        kept = front.stop
    return kept


def repaired_by(repair: NodeRepair, x: Ints, count: int, order: RepairOrder, seed: int) -> Ints:
    """Return the repaired counts of one node; refuse a result that does not add up."""
    y = np.asarray(repair.function(x, count, order.name, seed))
    if y.shape != x.shape or y.dtype.kind not in "iu" or (len(y) and y.min() < 0) or y.sum() != count:
        raise NumberError(f"the repair {repair.name!r} does not give non-negative whole numbers that sum to the parent")
    return y.astype(np.int64)


@kernel_in_place
def keep(
    state: Ints, values: Ints, start: Ints, stop: Ints, parents: NDArray[np.int32], children: NDArray[np.int32],
    measured: Ints, begins: Ints, ends: Ints, slot: int, end: int, parent: int, eldest: int, kept: int, named: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Repair the measurements of one node and move the children above zero, if named, to the front.

    Returns the number of children in front, the highest measurement of the others, and the count withheld from them.
    """
    tracked = len(start) > 0
    least = least_kept(state)
    highest, left, found = NOTHING, 0, U(kept)
    # First those that may be above zero, in a loop without branches: which they are is not to be foreseen.
    for rank in range(U(end - slot)):
        value = values[U(slot) + rank]
        measured[found], children[found] = value, rank
        found += U(value >= least)
        highest = max(highest, value if value < least else NOTHING)
    for i in range(U(kept), found):
        value, rank = measured[i], children[i]
        repaired = settled(state, value)
        if repaired > 0 and value >= named:
            values[kept], measured[kept], parents[kept], children[kept] = repaired, value, parent, eldest + rank
            if tracked:
                start[kept], stop[kept] = begins[rank], ends[rank]
            kept += 1
        else:
            highest = max(highest, value)
            left += repaired
    return kept, highest, left


# A batch of nodes with public bounds on their children: measured, repaired within the bounds, and moved to the front.


@kernel
def refine_batch_bounded(
    value: Ints, start: Ints, stop: Ints, parent: NDArray[np.int32], child: NDArray[np.int32], measured: Ints,
    highest: Ints, left: Ints, slots: Ints, begins: Ints, ends: Ints, state: Ints, scratch: Ints,
    node: NDArray[np.int32], released: Ints, starts: Ints, stops: Ints, first: Ints, denied: NDArray[np.bool_],
    ties: Ints,
    keys: NDArray[np.uint64], shift: int, mask: np.uint64, before: Ints,
    lower: Ints, upper: Ints, exact: bool,
    only: int, kind: int, order: int, named: int,
) -> int:  # fmt: skip
    """Do the same as `refine_batch`, within bounds for each child. The bounds have the layout of the noise.

    A child with a lower bound above zero is named regardless of its measurement.
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
