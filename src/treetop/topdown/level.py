"""One level of the descent: measure the children of retained nodes, repair them, keep those above zero."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.counts import Counts, Digit
from treetop.kernel import kernel
from treetop.noise import Key, Law, NoiseStream
from treetop.repair.settle import begin, least_kept, settled, solve
from treetop.repair.state import PHASE, STATE_SIZE
from treetop.repair.sweep import DONE, SCRATCH_SIZE, advance, start_sweeping, sweep
from treetop.spine import Level
from treetop.topdown.frontier import Frontier
from treetop.topdown.measure import add_counts

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
    last: bool
    """Whether the children are leaves: then nobody asks which private leaves lie under them."""


_Arrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


class _Room(threading.local):
    """Memory for the children of one batch, which each thread uses again for the next."""

    def __init__(self) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        self.count, self._start, self._stop = (np.empty(size, np.int64) for _ in range(3))
        self.parent, self.child = np.empty(size, np.int32), np.empty(size, np.int32)

    def arrays(self, last: bool) -> _Arrays:
        """Return count, start, stop, parent and child."""
        room = 0 if last else len(self.count)
        return self.count, self._start[:room], self._stop[:room], self.parent, self.child

    def kept(self, batch: Frontier, step: Step, size: int) -> Frontier:
        """Return the children that a kernel has moved to the front."""
        nodes = batch.nodes.take(self.parent[:size], axis=1)  # several times faster than indexing
        nodes[step.level.attribute] = self.child[:size]
        count, start, stop, _, _ = self.arrays(step.last)
        return Frontier(nodes, count[:size].copy(), start[:size].copy(), stop[:size].copy())


_room = _Room()


def refine(step: Step, counts: Counts, above: Frontier, key: Key, chunk: int = CHUNK) -> Frontier:
    """Return the retained children of a frontier; a child's noise depends on the key and its position only."""
    first = step.level.first
    node = above.nodes[step.level.attribute]
    fanout = first[node + 1] - first[node]
    slots = np.where(fanout > 1, fanout, 0)  # an only child has its parent's count: no noise, no loss
    before = np.concatenate([[0], np.cumsum(slots)])
    noise = None if step.law is None else NoiseStream(step.law, key.derive("noise"))
    # Ties have a secret of their own: words that made noise would tell how large it was.
    ties = int.from_bytes(key.derive("ties").secret[:7], "little")
    if len(_room.count) < 2 * chunk:
        _room.resize(2 * chunk)
    parts: list[Frontier] = []
    for start, stop in _batches(before, chunk):
        batch = above[start:stop]
        if noise is not None and slots[start] > chunk:
            parts += _refine_wide(step, counts, batch, noise, int(before[start]), ties + start, chunk)
            continue
        only = int(np.count_nonzero(slots[start:stop] == 0))
        if noise is not None:
            noise.fill(_room.count[only : only + before[stop] - before[start]], int(before[start]))
        size = _refine_batch(
            *_room.arrays(step.last), only, ties + start, node[start:stop], batch.count, batch.start, batch.stop, first,
            *_private(step, counts), step.kind, step.order,
        )  # fmt: skip
        parts.append(_room.kept(batch, step, size))
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
    count: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    parent: NDArray[np.int32],
    child: NDArray[np.int32],
    only: int,
    ties: int,
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
) -> int:
    """Measure, repair and prune the children of many nodes; return how many were kept.

    `count` holds their noise, behind room for the `only` children that have none, so that what is kept can be moved to
    the front without overwriting noise that is still to be used.
    """
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    tracked = len(start) > 0
    kept = 0
    slot = only
    for i in range(len(node)):
        eldest = first[node[i]]
        fanout = first[node[i] + 1] - eldest
        if fanout == 1:
            count[kept] = counts[i]
            if tracked:
                start[kept] = starts[i]
                stop[kept] = stops[i]
            parent[kept] = i
            child[kept] = eldest
            kept += 1
            continue
        end = slot + fanout
        x = count[slot:end]
        add_counts(x, start[slot:end], stop[slot:end], 0, keys, shift, mask, before, starts[i], stops[i])
        begin(state, fanout, counts[i], kind, order, np.uint64(ties + i))
        solve(state, scratch, x)
        kept = _keep(state, count, start, stop, parent, child, slot, end, i, eldest, kept)
        slot = end
    return kept


@kernel
def _keep(
    state: NDArray[np.int64],
    count: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    parent: NDArray[np.int32],
    child: NDArray[np.int32],
    slot: int,
    end: int,
    node: int,
    eldest: int,
    kept: int,
) -> int:
    """Repair the measurements of one node and move the children above zero to the front; return how many there are."""
    tracked = len(start) > 0
    least = least_kept(state)
    for i in range(slot, end):
        if count[i] < least:
            continue
        repaired = settled(state, count[i])
        if repaired > 0:
            count[kept] = repaired
            if tracked:
                start[kept] = start[i]
                stop[kept] = stop[i]
            parent[kept] = node
            child[kept] = eldest + i - slot
            kept += 1
    return kept


def _refine_wide(
    step: Step,
    counts: Counts,
    node: Frontier,
    noise: NoiseStream,
    slot: int,
    tie: int,
    chunk: int,
) -> Iterator[Frontier]:
    """Refine one node with very many children: they are drawn again for every sweep, and never all in memory."""
    first = step.level.first
    number = int(node.nodes[step.level.attribute, 0])
    eldest, fanout = int(first[number]), int(first[number + 1] - first[number])

    def measurements() -> Iterator[tuple[int, NDArray[np.int64]]]:
        at = int(node.start[0])
        for rank in range(0, fanout, chunk):
            size = min(chunk, fanout - rank)
            x, start, stop = (array[:size] for array in _room.arrays(step.last)[:3])
            noise.fill(x, slot + rank)
            at = add_counts(x, start, stop, rank, *_private(step, counts), at, int(node.stop[0]))
            yield rank, x

    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    begin(state, fanout, int(node.count[0]), step.kind, step.order, np.uint64(tie))
    start_sweeping(state)
    while state[PHASE] != DONE:
        for _, x in measurements():
            sweep(state, scratch, x)
        advance(state, scratch)
    for rank, x in measurements():
        size = _keep(state, *_room.arrays(step.last), 0, len(x), 0, eldest + rank, 0)
        yield _room.kept(node, step, size)
