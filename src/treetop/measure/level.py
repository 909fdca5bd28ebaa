"""One level of the descent: measure the children of retained nodes, repair them, keep those above zero."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.domain.spine import Level
from treetop.measure.evidence import NOTHING, LevelEvidence, Remainders, Witness
from treetop.measure.frontier import Frontier
from treetop.measure.measure import add_counts
from treetop.noise import Key, Law, NoiseStream
from treetop.plan.resolution import HighMeasurements, Resolution, fixed_threshold
from treetop.read.counts import Counts, Digit
from treetop.repair.settle import begin, least_kept, settled, solve
from treetop.repair.state import PHASE, STATE_SIZE
from treetop.repair.sweep import DONE, SCRATCH_SIZE, advance, start_sweeping, sweep

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
    resolution: Resolution | None = None
    """When a child is named; None where every one is that is repaired to more than zero."""

    @property
    def tests_together(self) -> bool:
        """Whether which children are named depends on all of the level, so that no subtree can be descended alone."""
        return self.resolution is not None and self.resolution.fdr is not None


Ints = NDArray[np.int64]
_Arrays = tuple[Ints, Ints, Ints, NDArray[np.int32], NDArray[np.int32]]


class _Room(threading.local):
    """Memory for the children of one batch, which each thread uses again for the next."""

    def __init__(self) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        self.count, self._start, self._stop, self.measured, self.slots = (np.empty(size, np.int64) for _ in range(5))
        self.highest, self.left = np.empty(size, np.int64), np.empty(size, np.int64)
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

    def tell(self, witness: Witness, batch: Frontier, step: Step, size: int, slots: int) -> None:
        """Have a witness take down what a kernel has seen of a batch."""
        parents = len(batch)
        witness.note(
            LevelEvidence(self.measured[:size].copy(), self.highest[:parents].copy(), self.slots[:slots].copy())
        )
        if step.resolution is not None and (there := np.flatnonzero(self.left[:parents])).size:
            level = np.full(len(there), step.level.index - 1, np.int32)
            witness.left.append(Remainders(level, batch.nodes[:, there], self.left[there]))


_room = _Room()


def refine(
    step: Step,
    counts: Counts,
    above: Frontier,
    key: Key,
    chunk: int = CHUNK,
    witness: Witness | None = None,
    named: int = NOTHING,
) -> Frontier:
    """Return the retained children of a frontier; a child's noise depends on the key and its position only.

    Children that measured less than `named` are not retained: what they would have had is left at their parents.
    """
    measuring = _Measuring(step, counts, above, key, chunk)
    every = witness is not None and step.level.nodes <= witness.every
    # Ties have a secret of their own: words that made noise would tell how large it was.
    ties = int.from_bytes(key.derive("ties").secret[:7], "little")
    parts: list[Frontier] = []
    for start, stop in measuring.batches():
        batch = above[start:stop]
        if measuring.is_wide(start):
            parts += _refine_wide(step, measuring, batch, start, ties + start, named, witness)
            continue
        slots = int(measuring.before[stop] - measuring.before[start])
        size = _refine_batch(
            *_room.arrays(step.last), measuring.draw(start, stop), ties + start, *measuring.nodes(start, stop),
            *private_words(step, counts), step.kind, step.order,
            named, _room.measured, _room.highest, _room.left, _room.slots[: slots if every else 0],
        )  # fmt: skip
        parts.append(_room.kept(batch, step, size))
        if witness is not None:
            _room.tell(witness, batch, step, size, slots if every else 0)
    return Frontier.concatenate(parts, len(above.nodes))


class _Measuring:
    """The measurements of one level under some nodes, batch by batch, as often as they are asked for."""

    def __init__(self, step: Step, counts: Counts, above: Frontier, key: Key, chunk: int) -> None:
        self.step, self.counts, self.above, self.chunk = step, counts, above, chunk
        self.node = above.nodes[step.level.attribute]
        fanout = step.level.first[self.node + 1] - step.level.first[self.node]
        self.slots = np.where(fanout > 1, fanout, 0)  # an only child has its parent's count: no noise, no loss
        self.before = np.concatenate([[0], np.cumsum(self.slots)])
        self.noise = None if step.law is None else NoiseStream(step.law, key.derive("noise"))
        if len(_room.count) < 2 * chunk:
            _room.resize(2 * chunk)

    def batches(self) -> Iterator[tuple[int, int]]:
        """Yield runs of nodes."""
        return _batches(self.before, self.chunk)

    def is_wide(self, node: int) -> bool:
        """Whether a node has more children than fit in a batch, and stands alone."""
        return self.noise is not None and bool(self.slots[node] > self.chunk)

    def nodes(self, start: int, stop: int) -> tuple[NDArray[np.int32], Ints, Ints, Ints, NDArray[np.int64]]:
        """Return what a kernel needs to know of a run of nodes: which, their counts and ranges, and all children."""
        batch = self.above[start:stop]
        return self.node[start:stop], batch.count, batch.start, batch.stop, self.step.level.first

    def draw(self, start: int, stop: int) -> int:
        """Write the noise of a batch into the room for counts, behind as many free places as there are only children.

        Returns how many those are.
        """
        only = int(np.count_nonzero(self.slots[start:stop] == 0))
        if self.noise is not None:
            size = self.before[stop] - self.before[start]
            self.noise.fill(_room.count[only : only + size], int(self.before[start]))
        return only

    def wide(self, node: int) -> Iterator[tuple[int, Ints]]:
        """Yield the rank of some children of a wide node, and the measurements from there on."""
        assert self.noise is not None
        at, end = int(self.above.start[node]), int(self.above.stop[node])
        for rank in range(0, int(self.slots[node]), self.chunk):
            size = min(self.chunk, int(self.slots[node]) - rank)
            x, start, stop = (array[:size] for array in _room.arrays(self.step.last)[:3])
            self.noise.fill(x, int(self.before[node]) + rank)
            at = add_counts(x, start, stop, rank, *private_words(self.step, self.counts), at, end)
            yield rank, x


def least_named(
    step: Step,
    counts: Counts,
    parts: Sequence[Frontier],
    keys: Sequence[Key],
    chunk: int,
    run: Callable[..., Any] = map,
) -> int:
    """Return the least measurement whose child is named, by what all of a level together show.

    The level is refined in parts, each with its key; `run` is `map`, or does the same on several threads.
    """
    law, resolution = step.law, step.resolution
    if resolution is None or law is None:
        return NOTHING
    if resolution.sigmas is not None:
        return fixed_threshold(law, resolution.sigmas)
    assert resolution.fdr is not None
    first = step.level.first
    fanouts = (first[node + 1] - first[node] for node in (part.nodes[step.level.attribute] for part in parts))
    seen = HighMeasurements(law, sum(int(fanout[fanout > 1].sum()) for fanout in fanouts), resolution.fdr)
    for part in run(lambda above, key: _high(step, counts, above, key, chunk, seen.empty()), parts, keys):
        seen.join(part)
    return seen.threshold()


def _high(
    step: Step, counts: Counts, above: Frontier, key: Key, chunk: int, seen: HighMeasurements
) -> HighMeasurements:
    """Count the measurements of the children that would be retained, were all of them named.

    What the repair sets to zero is named by nobody: a rate that is to hold among those named must not count it.
    """
    trial = Witness()
    trial.begin_level()
    refine(step, counts, above, key, chunk, trial)
    for part in trial.levels[0]:
        seen.add(part.measured)
    return seen


def private_words(step: Step, counts: Counts) -> tuple[NDArray[np.uint64], int, np.uint64, NDArray[np.int64]]:
    """Return what of the private counts a level needs: the word of its ranks, where they stand in it, and the sums."""
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
    named: int,
    measured: NDArray[np.int64],
    highest: NDArray[np.int64],
    left: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> int:
    """Measure, repair and prune the children of many nodes; return how many were kept.

    `count` holds their noise, behind room for the `only` children that have none, so that what is kept can be moved to
    the front without overwriting noise that is still to be used. `measured` takes the measurements of what is kept and
    `highest`, per node, the highest of what is not; `left` what went to children below `named`; and `slots`, where
    there is room, all measurements.
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
            measured[kept] = NOTHING
            highest[i] = NOTHING
            left[i] = 0
            kept += 1
            continue
        end = slot + fanout
        x = count[slot:end]
        add_counts(x, start[slot:end], stop[slot:end], 0, keys, shift, mask, before, starts[i], stops[i])
        if len(slots) > 0:
            slots[slot - only : end - only] = x
        begin(state, fanout, counts[i], kind, order, np.uint64(ties + i))
        solve(state, scratch, x)
        kept, highest[i], left[i] = _keep(
            state, count, start, stop, parent, child, slot, end, i, eldest, kept, named, measured
        )
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
    named: int,
    measured: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Repair the measurements of one node and move the children above zero, if named, to the front.

    Returns how many there are, the highest measurement of the others, and what the others would have had.
    """
    tracked = len(start) > 0
    least = least_kept(state)
    highest, left = NOTHING, 0
    for i in range(slot, end):
        value = count[i]
        if value < least:
            highest = max(highest, value)
            continue
        repaired = settled(state, value)
        if repaired > 0 and value >= named:
            count[kept] = repaired
            measured[kept] = value
            if tracked:
                start[kept] = start[i]
                stop[kept] = stop[i]
            parent[kept] = node
            child[kept] = eldest + i - slot
            kept += 1
        else:
            highest = max(highest, value)
            left += repaired
    return kept, highest, left


def _refine_wide(
    step: Step, measuring: _Measuring, batch: Frontier, node: int, tie: int, named: int, witness: Witness | None
) -> Iterator[Frontier]:
    """Refine one node with very many children: they are drawn again for every sweep, and never all in memory."""
    eldest = int(step.level.first[measuring.node[node]])
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    begin(state, int(measuring.slots[node]), int(batch.count[0]), step.kind, step.order, np.uint64(tie))
    start_sweeping(state)
    while state[PHASE] != DONE:
        for _, x in measuring.wide(node):
            sweep(state, scratch, x)
        advance(state, scratch)
    highest, left = NOTHING, 0
    for rank, x in measuring.wide(node):
        every = len(x) if witness is not None and step.level.nodes <= witness.every else 0
        _room.slots[:every] = x[:every]
        size, zeroed, unnamed = _keep(
            state, *_room.arrays(step.last), 0, len(x), 0, eldest + rank, 0, named, _room.measured
        )
        highest, left = max(highest, zeroed), left + unnamed
        if witness is not None:
            _room.tell(witness, batch[:0], step, size, every)
        yield _room.kept(batch, step, size)
    if witness is not None:
        _room.highest[0], _room.left[0] = highest, left
        _room.tell(witness, batch, step, 0, 0)
