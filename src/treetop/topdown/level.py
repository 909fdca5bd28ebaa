"""One level of the descent: measure the children of retained nodes, repair them, keep those above zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.counts import Counts, Digit
from treetop.kernel import kernel
from treetop.noise import Key, Keystream, Law, NoiseStream
from treetop.repair.sweep import DONE, HISTOGRAM_SIZE, PHASE, STATE_SIZE, advance, begin, repair, settle, sweep
from treetop.spine import Level
from treetop.topdown.frontier import Frontier
from treetop.topdown.measure import add_counts, run_end

CHUNK = 1 << 15
"""Children measured at a time, so that noise and measurements stay in the processor's cache."""


@dataclass(frozen=True)
class Step:
    """All that one level of a descent needs to know before it sees a count."""

    level: Level
    """How nodes are divided."""
    digit: Digit
    """Where the ranks of the level stand in the keys of the counts."""
    law: Law | None
    """The noise; None where no node has more than one child, so that nothing is measured."""
    kind: int
    """The repair."""
    order: int
    """The order in which the repair lowers."""


@dataclass(frozen=True, eq=False)
class _Kept:
    """Room for the children that a batch keeps, to be filled by a kernel."""

    parent: NDArray[np.int32]
    child: NDArray[np.int32]
    count: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @staticmethod
    def room(size: int) -> _Kept:
        return _Kept(*(np.empty(size, kind) for kind in (np.int32, np.int32, np.int64, np.int64, np.int64)))

    def below(self, batch: Frontier, level: Level, kept: int) -> Frontier:
        nodes = batch.nodes[:, self.parent[:kept]]
        nodes[level.attribute] = self.child[:kept]
        return Frontier(nodes, self.count[:kept].copy(), self.start[:kept].copy(), self.stop[:kept].copy())


def refine(step: Step, counts: Counts, above: Frontier, key: Key, chunk: int = CHUNK) -> Frontier:
    """Return the retained children of a frontier; a child's noise depends on the key and its position only."""
    first = step.level.first
    node = above.nodes[step.level.attribute]
    fanout = first[node + 1] - first[node]
    slots = np.where(fanout > 1, fanout, 0)  # an only child has its parent's count: no noise, no loss
    before = np.concatenate([[0], np.cumsum(slots)])
    noise = None if step.law is None else NoiseStream(step.law, key.derive("noise"))
    ties = Keystream(key.derive("ties"))
    parts = []
    for start, stop in _batches(before, chunk):
        batch = above[start:stop]
        seeds = np.empty(stop - start, np.uint64)
        ties.fill(seeds, start)
        if noise is not None and slots[start] > chunk:
            parts.append(_refine_wide(step, counts, batch, noise, int(before[start]), seeds[0], chunk))
            continue
        measured = np.empty(before[stop] - before[start], np.int64)
        if noise is not None:
            noise.fill(measured, int(before[start]))
        kept = _Kept.room(len(measured) + stop - start)
        number = _refine_batch(
            measured, seeds, node[start:stop], batch.count, batch.start, batch.stop, first,
            *_private(step, counts), step.kind, step.order,
            kept.parent, kept.child, kept.count, kept.start, kept.stop,
        )  # fmt: skip
        parts.append(kept.below(batch, step.level, number))
    return Frontier.concatenate(parts, len(above.nodes))


def _private(step: Step, counts: Counts) -> tuple[NDArray[np.uint64], int, np.uint64, NDArray[np.int64]]:
    return counts.keys[step.digit.word], step.digit.shift, np.uint64(2**step.digit.bits - 1), counts.before


def _batches(before: NDArray[np.int64], chunk: int) -> Iterator[tuple[int, int]]:
    """Cut nodes into runs of at most `chunk` nodes and children; a node with more children stands alone."""
    start, end = 0, len(before) - 1
    while start < end:
        fitting = int(np.searchsorted(before, before[start] + chunk, side="right")) - 1
        stop = min(max(fitting, start + 1), start + chunk, end)
        yield start, stop
        start = stop


@kernel
def _refine_batch(
    noise: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    node: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    first: NDArray[np.int64],
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    before: NDArray[np.int64],
    kind: int,
    order: int,
    parent: NDArray[np.int32],
    child: NDArray[np.int32],
    count: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> int:
    """Measure, repair and prune the children of many nodes; return how many were kept."""
    state, histogram = np.empty(STATE_SIZE, np.int64), np.empty(HISTOGRAM_SIZE, np.int64)
    kept = 0
    slot = 0
    for i in range(len(node)):
        eldest = first[node[i]]
        fanout = first[node[i] + 1] - eldest
        if fanout == 1:
            child[kept] = eldest
            count[kept] = counts[i]
            start[kept] = starts[i]
            stop[kept] = stops[i]
            after = kept + 1
        else:
            x = noise[slot : slot + fanout]
            slot += fanout
            add_counts(x, 0, keys, shift, mask, before, starts[i], stops[i])
            repair(state, histogram, x, counts[i], kind, order, seeds[i])
            after, _ = _keep(
                x, 0, eldest, keys, shift, mask, starts[i], stops[i], kept, child, count, start, stop
            )
        parent[kept:after] = i
        kept = after
    return kept


@kernel
def _keep(
    repaired: NDArray[np.int64],
    rank: int,
    eldest: int,
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    at: int,
    end: int,
    kept: int,
    child: NDArray[np.int32],
    count: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> tuple[int, int]:
    """Write down the children rank, rank + 1, … whose count is above zero, with the leaves that lie under them."""
    for i in range(len(repaired)):
        if repaired[i] <= 0:
            continue
        while at < end and np.int64((keys[at] >> np.uint64(shift)) & mask) < rank + i:
            at = run_end(keys, shift, at, end)
        child[kept] = eldest + rank + i
        count[kept] = repaired[i]
        start[kept] = at
        if at < end and np.int64((keys[at] >> np.uint64(shift)) & mask) == rank + i:
            at = run_end(keys, shift, at, end)
        stop[kept] = at
        kept += 1
    return kept, at


def _refine_wide(
    step: Step,
    counts: Counts,
    node: Frontier,
    noise: NoiseStream,
    slot: int,
    seed: np.uint64,
    chunk: int,
) -> Frontier:
    """Refine one node with very many children: they are drawn again for every sweep, and never all in memory."""
    first = step.level.first
    number = int(node.nodes[step.level.attribute, 0])
    eldest, fanout = int(first[number]), int(first[number + 1] - first[number])
    start, stop = int(node.start[0]), int(node.stop[0])
    private = _private(step, counts)

    def measurements() -> Iterator[tuple[int, NDArray[np.int64]]]:
        at = start
        for rank in range(0, fanout, chunk):
            x = np.empty(min(chunk, fanout - rank), np.int64)
            noise.fill(x, slot + rank)
            at = add_counts(x, rank, *private, at, stop)
            yield rank, x

    state, histogram = np.empty(STATE_SIZE, np.int64), np.empty(HISTOGRAM_SIZE, np.int64)
    begin(state, fanout, int(node.count[0]), step.kind, step.order, seed)
    while state[PHASE] != DONE:
        for _, x in measurements():
            sweep(state, histogram, x)
        advance(state, histogram)
    parts = []
    at = start
    for rank, x in measurements():
        settle(state, x)
        kept = _Kept.room(len(x))
        size, at = _keep(
            x, rank, eldest, *private[:3], at, stop, 0, kept.child, kept.count, kept.start, kept.stop
        )
        kept.parent[:size] = 0
        parts.append(kept.below(node, step.level, size))
    return Frontier.concatenate(parts, len(node.nodes))
