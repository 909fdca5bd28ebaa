"""One level of the descent: measure the children of retained nodes, repair them, keep those above zero."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.domain.facts import PublicFacts
from treetop.domain.level import Level
from treetop.domain.places import Places
from treetop.intake.counts import Counts, Digit
from treetop.measure.batch import Children, Ints, Leaves, Parents, keep, refine_batch, refine_batch_by
from treetop.measure.evidence import NOTHING, LevelEvidence, Remainders
from treetop.measure.frontier import Descended, Frontier
from treetop.measure.measure import add_counts
from treetop.measure.within import refine_batch_within
from treetop.noise import Key, NoiseStream
from treetop.plan.resolution import Resolution, fixed_threshold
from treetop.plan.workload import Exact, How, Measured
from treetop.repair import NodeRepair, RepairOrder
from treetop.repair.settle import begin
from treetop.repair.state import PHASE, STATE_SIZE
from treetop.repair.sweep import DONE, SCRATCH_SIZE, advance, start_sweeping, sweep

CHUNK = 1 << 17
"""Children measured at a time: so few that noise and measurements stay in the processor's cache, so many that what
Python does for each batch does not count."""


@dataclass(frozen=True)
class Step:
    """All that one level of a descent needs to know before it sees a count."""

    level: Level
    """How nodes are divided."""
    digits: tuple[Digit, ...]
    """Where its ranks by each attribute stand in the keys of the counts."""
    places: Places
    """Where its nodes stand in the domain, by which their noise is found."""
    how: How
    """How its nodes are measured: not at all where none has more than one child."""
    repair: NodeRepair
    """How the children of a node are made to add up."""
    order: RepairOrder
    """Which of them are lowered first."""
    last: bool
    """Whether the children are leaves: then nobody asks which private leaves lie under them."""
    resolution: Resolution | None = None
    """When a child is named; None where every one is that is repaired to more than zero."""
    facts: PublicFacts | None = None
    """What is public of the nodes of the level; None where that is nothing."""

    @property
    def tests_together(self) -> bool:
        """Whether which children are named depends on all of the level, so that no subtree can be descended alone."""
        measured = isinstance(self.how, Measured)
        return measured and self.resolution is not None and self.resolution.fdr is not None

    @property
    def tests_only_children(self) -> bool:
        """Whether an only child is tested with what was measured of its parent, or further up.

        Where a threshold is the same at all levels, in standard deviations, its parent has passed the same test.
        """
        return self.resolution is not None and self.resolution.fdr is not None

    @property
    def least_named(self) -> int:
        """The least measurement whose child is named, where that is decided before anything is measured."""
        if not isinstance(self.how, Measured) or self.resolution is None:
            return NOTHING
        assert self.resolution.sigmas is not None, "what is tested together is decided by all of the level"
        return fixed_threshold(self.how.law, self.resolution.sigmas)

    def keeps_all(self, every: int | None) -> bool:
        """Whether all measurements of the level are kept, where that is so at levels with so many public nodes."""
        return every is not None and self.level.nodes <= every

    def leaves(self, counts: Counts, above: Frontier) -> Leaves:
        """Return what of the private counts the level needs under some nodes.

        By one attribute, the ranks of children stand in the keys; by several they are put together, and where not all
        children are possible they are counted anew: as many as there are leaves.
        """
        if self.level.is_plain:
            (digit,) = self.digits
            return Leaves(counts.keys[digit.word], digit.shift, np.uint64(2**digit.bits - 1), counts.before)
        ranks = np.zeros(len(counts), np.uint64)
        for part, digit in zip(self.level.parts, self.digits, strict=True):
            keys, mask = counts.keys[digit.word], np.uint64(2**digit.bits - 1)
            begins = part is self.level.parts[0]
            _append(ranks, keys, digit.shift % 64, mask, above.start, above.stop, part.fanout(above.nodes), begins)
        if not self.level.is_merged:
            self._rank_possible(ranks, above)
        return Leaves(ranks, 0, np.uint64(2**64 - 1), counts.before)

    def _rank_possible(self, ranks: NDArray[np.uint64], above: Frontier) -> None:
        """Turn the ranks of leaves among all children of their nodes, in place, into those among possible ones."""
        (part,), size = self.level.parts, above.stop - above.start
        leaf = np.arange(int(size.sum())) + np.repeat(above.start - (np.cumsum(size) - size), size)
        parent, own = np.repeat(np.arange(len(above)), size), ranks[leaf]
        # Leaves of one child follow each other: it is looked up once.
        begins = np.flatnonzero(np.append(True, (parent[1:] != parent[:-1]) | (own[1:] != own[:-1]))[: len(leaf)])
        nodes = above.nodes[:, parent[begins]]
        nodes[part.attribute] = part.first[nodes[part.attribute]] + own[begins].astype(np.int64)
        ranks[leaf] = np.repeat(self.level.ranks(nodes).astype(np.uint64), np.diff(np.append(begins, len(leaf))))

    def fanout(self, above: Frontier) -> Ints:
        """Return how many children each node has that are measured: an only child has its parent's count."""
        fanout = self.level.fanout(above.nodes)
        return fanout * (fanout > 1)

    def bounds(self, above: Frontier) -> tuple[Ints, Ints]:
        """Return the least and the most that each of these children has, node by node."""
        assert self.facts is not None
        return self.facts.bounds(self.facts.spine.depths(self.level.index), self.children(above))

    def children(self, above: Frontier) -> NDArray[np.int32]:
        """Return the nodes of these children, by attribute, node by node."""
        return self.level.children(above.nodes, self.fanout(above))

    def must_be(self, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell which nodes of the level have something by what is public, and so are named whatever was measured."""
        if self.facts is None:
            return np.zeros(len(nodes[0]), np.bool_)
        least, _ = self.facts.bounds(self.facts.spine.depths(self.level.index), nodes)
        return np.asarray(least > 0)

    def first_children(self, above: Frontier) -> NDArray[np.int32]:
        """Return the first child of each node, by attribute: where it has one only, that."""
        return self.level.children(above.nodes, np.ones(len(above), np.int64))

    @property
    def sees_all(self) -> bool:
        """Whether the repair sees all children of a node at once, however many: one of somebody's own, or in bounds."""
        return self.repair.code is None or self.facts is not None


@kernel
def _append(
    ranks: NDArray[np.uint64], keys: NDArray[np.uint64], shift: int, mask: np.uint64, starts: Ints, stops: Ints,
    fanout: Ints, begins: bool,
) -> None:  # fmt: skip
    """Go on from the ranks of leaves below nodes by some attributes to those by one more, which divides a node so."""
    for i in range(len(starts)):
        width = np.uint64(fanout[i])
        for at in range(starts[i], stops[i]):
            own = (keys[at] >> np.uint64(shift)) & mask
            ranks[at] = own if begins else ranks[at] * width + own


class _Room(threading.local):
    """Memory for the children of one batch, which each thread uses again for the next."""

    def __init__(self) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        value, start, stop, measured, highest, left, slots, begin, end = (np.empty(size, np.int64) for _ in range(9))
        parent, child = np.empty(size, np.int32), np.empty(size, np.int32)
        state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
        self._whole = Children(
            value, start, stop, parent, child, measured, highest, left, slots, begin, end, state, scratch
        )
        self.size = size

    def children(self, last: bool, slots: int) -> Children:
        """Return it without what is not asked for: the ranges of leaves, and all but so many measurements."""
        whole = self._whole._replace(slots=self._whole.slots[:slots])
        if not last:
            return whole
        nothing = whole.start[:0]
        return whole._replace(start=nothing, stop=nothing, begin=nothing, end=nothing)


_room = _Room()


def refine(
    step: Step,
    counts: Counts,
    above: Frontier,
    key: Key,
    chunk: int = CHUNK,
    every: int | None = None,
    named: int = NOTHING,
    inherited: Ints | None = None,
) -> Descended:
    """Return the retained children of a frontier; a child's noise depends on the key and its place only.

    Children that measured less than `named` are not retained: what they would have had is left at their parents. So it
    is with only children whose nearest measured ancestor has less than is `inherited`, by the level of that.
    Evidence is kept unless `every` is None, and all measurements at levels with at most so many public nodes.
    """
    measuring = _Measuring(step, counts, above, key, chunk, inherited)
    parts: list[Descended] = []
    for start, stop in measuring.batches():
        if measuring.is_wide(start):
            parts += _refine_wide(measuring, start, every, named)
        else:
            parts.append(_refine_batch(measuring, start, stop, every, named))
    return Descended.join(parts, len(above.nodes), 0 if every is None else 1)


def seeds(key: Key, place: NDArray[np.uint64]) -> Ints:
    """Return what breaks the ties of nodes whose first children have these places.

    Ties have a secret of their own: words that made noise would tell how large it was.
    """
    seed: Ints = place[1].view(np.int64) + int.from_bytes(key.derive("ties").secret[:7], "little")
    return seed


class _Measuring:
    """The measurements of one level under some nodes, batch by batch, as often as they are asked for."""

    def __init__(
        self, step: Step, counts: Counts, above: Frontier, key: Key, chunk: int, inherited: Ints | None = None
    ) -> None:
        self.step, self.leaves, self.above, self.chunk = step, step.leaves(counts, above), above, chunk
        self.slots, self.place = step.fanout(above), step.places.first(above.nodes)
        self.ties = seeds(key, self.place)
        self.before = np.concatenate([[0], np.cumsum(self.slots)])
        self.denied = np.zeros(len(above), dtype=bool)
        if inherited is not None:
            self.denied = (self.slots == 0) & (above.seen < inherited[above.seen_at])
            if step.facts is not None:
                self.denied &= ~step.must_be(step.first_children(above))
        self.noise = NoiseStream(step.how.law, key.derive("noise")) if isinstance(step.how, Measured) else None
        widest = int(self.slots.max(initial=0)) if step.sees_all else 0
        if _room.size < (size := chunk + max(chunk, widest)):
            _room.resize(size)

    def batches(self) -> Iterator[tuple[int, int]]:
        """Cut nodes into runs of at most `chunk` nodes and children; a node with more children stands alone."""
        start, end, before = 0, len(self.slots), self.before
        while start < end:
            fitting = int(np.searchsorted(before, before[start] + self.chunk, side="right")) - 1
            stop = min(max(fitting, start + 1), start + self.chunk, end)
            yield start, stop
            start = stop

    def is_wide(self, node: int) -> bool:
        """Whether a node has so many children that they are never all in memory."""
        return not self.step.sees_all and bool(self.slots[node] > self.chunk)

    def draw(self, children: Children, start: int, stop: int) -> int:
        """Write the noise of a batch behind as many free places as there are only children; return how many."""
        only = int(np.count_nonzero(self.slots[start:stop] == 0))
        if self.noise is not None:
            size = self.before[stop] - self.before[start]
            own = slice(start, stop)
            self.noise.fill_runs(children.value[only : only + size], self.place[:, own], self.slots[own])
        return only

    def wide(self, node: int) -> Iterator[tuple[int, Ints]]:
        """Yield the rank of some children of a wide node, and the measurements from there on."""
        assert self.noise is not None
        at, end = int(self.above.start[node]), int(self.above.stop[node])
        children = _room.children(self.step.last, 0)
        for rank in range(0, int(self.slots[node]), self.chunk):
            size = min(self.chunk, int(self.slots[node]) - rank)
            x, place = children.value[:size], self.place[:, node : node + 1].copy()
            place[1] += np.uint64(rank)
            self.noise.fill_runs(x, place, np.array([size]))
            at = add_counts(x, children.begin[:size], children.end[:size], rank, *self.leaves, at, end)
            yield rank, x


def _refine_batch(measuring: _Measuring, start: int, stop: int, every: int | None, named: int) -> Descended:
    step, above = measuring.step, measuring.above[start:stop]
    slots = int(measuring.before[stop] - measuring.before[start]) if step.keeps_all(every) else 0
    children = _room.children(step.last, slots)
    node, first = step.level.numbered(above.nodes)
    denied, ties = measuring.denied[start:stop], measuring.ties[start:stop]
    parents = Parents(node, above.count, above.start, above.stop, first, denied, ties)
    only = measuring.draw(children, start, stop)
    if step.facts is not None:
        bounds, exact = step.bounds(above), isinstance(step.how, Exact)
        code, order = step.repair.code or 0, step.order.code
        size = refine_batch_within(
            *children, *parents, *measuring.leaves, *bounds, exact, only, code, order, named
        )  # fmt: skip
    elif step.repair.code is None:
        size = refine_batch_by(step.repair, children, parents, measuring.leaves, only, step.order, named)
    else:
        code, order = step.repair.code, step.order.code
        size = refine_batch(*children, *parents, *measuring.leaves, only, code, order, named)
    return _seen(step, above, children, size, every, first)


def _refine_wide(measuring: _Measuring, node: int, every: int | None, named: int) -> Iterator[Descended]:
    """Refine one node with very many children: they are drawn again for every sweep, and never all in memory."""
    step, above = measuring.step, measuring.above[node : node + 1]
    assert step.repair.code is not None
    (number,), first = step.level.numbered(above.nodes)
    eldest = int(first[number])
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    tie = np.uint64(measuring.ties[node])
    begin(state, int(measuring.slots[node]), int(above.count[0]), step.repair.code, step.order.code, tie)
    start_sweeping(state)
    while state[PHASE] != DONE:
        for _, x in measuring.wide(node):
            sweep(state, scratch, x)
        advance(state, scratch)
    highest, left = NOTHING, 0
    for rank, x in measuring.wide(node):
        children = _room.children(step.last, len(x) if step.keeps_all(every) else 0)
        children.slots[:] = x[: len(children.slots)]
        size, zeroed, unnamed = keep(
            state, *children[:6], children.begin, children.end, 0, len(x), 0, eldest + rank, 0, named
        )
        highest, left = max(highest, zeroed), left + unnamed
        yield _seen(step, above, children, size, every, first, parents=0)
    children = _room.children(step.last, 0)
    children.highest[0], children.left[0] = highest, left
    yield _seen(step, above, children, 0, every, first)


def _seen(
    step: Step, above: Frontier, children: Children, size: int, every: int | None, first: Ints,
    parents: int | None = None,
) -> Descended:  # fmt: skip
    """Return a copy of the children that a kernel has moved to the front, and what it has seen of so many parents."""
    nodes = above.nodes.take(children.parent[:size], axis=1)  # several times faster than indexing
    step.level.go_down_to(nodes, children.parent[:size], children.child[:size], first)
    kept = Frontier(nodes, *(array[:size].copy() for array in (children.value, children.start, children.stop)))
    if step.tests_only_children:
        kept = above.seen_below(kept, children.parent[:size], children.measured[:size], step.level.index)
    if every is None:
        return Descended(kept)
    parents = len(above) if parents is None else parents
    level = LevelEvidence(children.measured[:size].copy(), children.highest[:parents].copy(), children.slots.copy())
    there = np.flatnonzero(children.left[:parents]) if step.resolution is not None else ()
    if len(there) == 0:
        return Descended(kept, ((level,),))
    index = np.full(len(there), step.level.index - 1, np.int32)
    return Descended(kept, ((level,),), (Remainders(index, above.nodes[:, there], children.left[there]),))
