"""One level of the descent: measure the children of retained nodes, repair them, keep those above zero."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from treetop._util.kernel import kernel
from treetop.counts.counts import Counts, Digit
from treetop.domain.constraints import PublicFacts
from treetop.domain.spine_level import Level, PlaceNumbering
from treetop.engine.staging import allocate
from treetop.measure._batch import (
    Children,
    Ints,
    Leaves,
    Parents,
    keep,
    refine_batch,
    refine_batch_bounded,
    refine_batch_custom,
)
from treetop.measure.measure import NOTHING, LevelEvidence, Remainders, add_counts
from treetop.noise import Key, NoiseStream
from treetop.plan.resolution import Resolution, fixed_threshold
from treetop.plan.workload import Exact, How, Measured
from treetop.repair import NodeRepair, RepairOrder
from treetop.repair.state import DONE, PHASE, SCRATCH_SIZE, STATE_SIZE, advance, begin, start_sweeping, sweep

# A frontier: the retained nodes of one level, in spine order, and their evidence.


def _nothing() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Frontier:
    """Nodes with a released count above zero. Counts and nodes are public; the ranges of leaves are private."""

    nodes: NDArray[np.int32]
    """For each attribute (row) and retained node (column), the attribute's node; 0 while it is not refined."""
    count: NDArray[np.int64]
    start: NDArray[np.int64] = field(repr=False)
    """Start of each node's range of private leaves; empty for leaves."""
    stop: NDArray[np.int64] = field(repr=False)
    """End of that range; equal to the start for a node that the noise invented."""
    seen: NDArray[np.int64] = field(default_factory=_nothing, repr=False)
    """Measurement of each node, or of the nearest ancestor with the same leaves; empty if only children are not tested
    with it."""
    seen_at: NDArray[np.int64] = field(default_factory=_nothing, repr=False)
    """Level of that measurement."""

    @staticmethod
    def root(attributes: int, total: int, leaves: int) -> Frontier:
        """Return the root alone, or nothing if the total is zero."""
        size = 1 if total > 0 else 0
        return Frontier(
            nodes=np.zeros((attributes, size), np.int32),
            count=np.full(size, total, np.int64),
            start=np.zeros(size, np.int64),
            stop=np.full(size, leaves, np.int64),
            seen=np.full(size, total, np.int64),
            seen_at=np.zeros(size, np.int64),
        )

    @staticmethod
    def join(parts: Sequence[Frontier], attributes: int) -> Frontier:
        """Join frontiers that follow each other."""
        if not parts:
            return Frontier.root(attributes, 0, 0)
        if len(parts) == 1:
            return parts[0]
        return Frontier(
            nodes=np.concatenate([part.nodes for part in parts], axis=1),
            count=np.concatenate([part.count for part in parts]),
            start=np.concatenate([part.start for part in parts]),
            stop=np.concatenate([part.stop for part in parts]),
            seen=np.concatenate([part.seen for part in parts]),
            seen_at=np.concatenate([part.seen_at for part in parts]),
        )

    def seen_below(
        self, kept: Frontier, parent: NDArray[np.integer], measured: NDArray[np.int64], index: int
    ) -> Frontier:
        """Return the children retained at level `index`, with their measurements or those of their parents."""
        if len(self.seen) < len(self):
            return kept
        only = measured == NOTHING
        seen, seen_at = np.where(only, self.seen[parent], measured), np.where(only, self.seen_at[parent], index)
        return replace(kept, seen=seen, seen_at=seen_at)

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, part: slice) -> Frontier:
        return Frontier(
            self.nodes[:, part],
            self.count[part],
            self.start[part],
            self.stop[part],
            self.seen[part],
            self.seen_at[part],
        )


@dataclass(frozen=True, eq=False)
class Descended:
    """The result of descending some nodes: noisy, hence public."""

    frontier: Frontier
    """The retained nodes of the deepest level reached."""
    levels: tuple[tuple[LevelEvidence, ...], ...] = field(default=(), repr=False)
    """Measurements level by level, as parts to be joined; empty without evidence."""
    left: tuple[Remainders, ...] = field(default=(), repr=False)
    """Counts left at nodes, as parts to be joined."""

    @staticmethod
    def join(parts: Sequence[Descended], attributes: int, levels: int) -> Descended:
        """Join the results from adjacent ranges of nodes, with evidence of `levels` levels each."""
        return Descended(
            Frontier.join([part.frontier for part in parts], attributes),
            tuple(tuple(seen for part in parts for seen in part.levels[index]) for index in range(levels)),
            tuple(left for part in parts for left in part.left),
        )

    def then(self, below: Descended) -> Descended:
        """Append the result of the levels below."""
        return Descended(below.frontier, self.levels + below.levels, self.left + below.left)


CHUNK = 1 << 17
"""Children measured at a time: few enough for the processor's cache, enough to hide Python's overhead per batch."""


@dataclass(frozen=True)
class Step:
    """The public decisions about one level of a descent."""

    level: Level
    """The level with its division of nodes."""
    digits: tuple[Digit, ...]
    """Positions, in the keys of the counts, of the ranks by each attribute."""
    places: PlaceNumbering
    """Places of the nodes in the domain, which determine their noise."""
    how: How
    """How the nodes are measured; not at all if no node has more than one child."""
    repair: NodeRepair
    """The repair of the children of a node."""
    order: RepairOrder
    """Which children are lowered first."""
    last: bool
    """Whether the children are leaves; their ranges of private leaves are then not needed."""
    resolution: Resolution | None = None
    """When a child is named; None names every child that is repaired to more than zero."""
    facts: PublicFacts | None = None
    """Facts about the level's nodes; None if there are none."""

    @property
    def tests_together(self) -> bool:
        """Whether naming depends on the whole level, so that no subtree can be descended alone."""
        measured = isinstance(self.how, Measured)
        return measured and self.resolution is not None and self.resolution.fdr is not None

    @property
    def tests_only_children(self) -> bool:
        """Whether an only child is tested with the measurement of its nearest measured ancestor.

        A threshold that is the same number of standard deviations at all levels needs no such test: the parent has
        passed it.
        """
        return self.resolution is not None and self.resolution.fdr is not None

    @property
    def least_named(self) -> int:
        """Least measurement of a named child, if it is fixed before measuring."""
        if not isinstance(self.how, Measured) or self.resolution is None:
            return NOTHING
        assert self.resolution.sigmas is not None, "what is tested together is decided by all of the level"
        return fixed_threshold(self.how.law, self.resolution.sigmas)

    def keeps_all(self, every: int | None) -> bool:
        """Whether all measurements of the level are kept, given `every` as in `Task.every`."""
        return every is not None and self.level.nodes <= every

    def leaves(self, counts: Counts, above: Frontier) -> Leaves:
        """Return the private leaves below some nodes, with the bits that hold the level's ranks.

        For one attribute, the keys contain the ranks of children. For several, the ranks are combined, and if some
        children are impossible they are renumbered; this takes an array as long as the leaves.
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
        """Replace the ranks of leaves among all children, in place, by the ranks among possible children."""
        (part,), size = self.level.parts, above.stop - above.start
        leaf = np.arange(int(size.sum())) + np.repeat(above.start - (np.cumsum(size) - size), size)
        parent, own = np.repeat(np.arange(len(above)), size), ranks[leaf]
        # Leaves of one child follow each other: it is looked up once.
        begins = np.flatnonzero(np.append(True, (parent[1:] != parent[:-1]) | (own[1:] != own[:-1]))[: len(leaf)])
        nodes = above.nodes[:, parent[begins]]
        nodes[part.attribute] = part.first[nodes[part.attribute]] + own[begins].astype(np.int64)
        ranks[leaf] = np.repeat(self.level.ranks(nodes).astype(np.uint64), np.diff(np.append(begins, len(leaf))))

    def fanout(self, above: Frontier) -> Ints:
        """Return the number of measured children of each node; an only child has its parent's count."""
        fanout = self.level.fanout(above.nodes)
        return fanout * (fanout > 1)

    def bounds(self, above: Frontier) -> tuple[Ints, Ints]:
        """Return the lower and upper bounds of these children, node by node."""
        assert self.facts is not None
        return self.facts.bounds(self.facts.spine.depths(self.level.index), self.children(above))

    def children(self, above: Frontier) -> NDArray[np.int32]:
        """Return the nodes of these children, by attribute, node by node."""
        return self.level.children(above.nodes, self.fanout(above))

    def must_be(self, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which nodes have a lower bound above zero; they are named regardless of their measurement."""
        if self.facts is None:
            return np.zeros(len(nodes[0]), np.bool_)
        least, _ = self.facts.bounds(self.facts.spine.depths(self.level.index), nodes)
        return np.asarray(least > 0)

    def first_children(self, above: Frontier) -> NDArray[np.int32]:
        """Return the first child of each node, by attribute; if it has only one, that one."""
        return self.level.children(above.nodes, np.ones(len(above), np.int64))

    @property
    def sees_all(self) -> bool:
        """Whether the repair needs all children of a node at once: a custom repair, or one with bounds."""
        return self.repair.code is None or self.facts is not None


@kernel
def _append(
    ranks: NDArray[np.uint64], keys: NDArray[np.uint64], shift: int, mask: np.uint64, starts: Ints, stops: Ints,
    fanout: Ints, begins: bool,
) -> None:  # fmt: skip
    """Extend the ranks of leaves by one more attribute that divides the nodes."""
    for i in range(len(starts)):
        width = np.uint64(fanout[i])
        for at in range(starts[i], stops[i]):
            own = (keys[at] >> np.uint64(shift)) & mask
            ranks[at] = own if begins else ranks[at] * width + own


class _ThreadScratch(threading.local):
    """Memory for the children of one batch, reused by a thread for the next."""

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
        """Return the memory without unused arrays: no ranges for leaves, and only `slots` measurements."""
        whole = self._whole._replace(slots=self._whole.slots[:slots])
        if not last:
            return whole
        nothing = whole.start[:0]
        return whole._replace(start=nothing, stop=nothing, begin=nothing, end=nothing)


_scratch = _ThreadScratch()


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

    Children that measured less than `named` are not retained; their counts are left at their parents. The same holds
    for only children if their nearest measured ancestor measured less than `inherited` at that ancestor's level.
    Evidence is kept unless `every` is None, including all measurements at levels with at most `every` public nodes.
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
    """Return the tie-breaking seeds of nodes, given the places of their first children.

    Ties have a key of their own: words that generated noise would reveal its size.
    """
    seed: Ints = place[1].view(np.int64) + int.from_bytes(key.derive("ties").secret[:7], "little")
    return seed


class _Measuring:
    """The measurements of one level under some nodes, batch by batch; can be iterated repeatedly."""

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
        if _scratch.size < (size := chunk + max(chunk, widest)):
            _scratch.resize(size)

    def batches(self) -> Iterator[tuple[int, int]]:
        """Cut nodes into ranges of at most `chunk` nodes and children; a node with more children stands alone."""
        start, end, before = 0, len(self.slots), self.before
        while start < end:
            fitting = int(np.searchsorted(before, before[start] + self.chunk, side="right")) - 1
            stop = min(max(fitting, start + 1), start + self.chunk, end)
            yield start, stop
            start = stop

    def is_wide(self, node: int) -> bool:
        """Whether a node has too many children for memory."""
        return not self.step.sees_all and bool(self.slots[node] > self.chunk)

    def draw(self, children: Children, start: int, stop: int) -> int:
        """Write the noise of a batch after one free place per only child; return the number of only children."""
        only = int(np.count_nonzero(self.slots[start:stop] == 0))
        if self.noise is not None:
            size = self.before[stop] - self.before[start]
            own = slice(start, stop)
            self.noise.fill_runs(children.value[only : only + size], self.place[:, own], self.slots[own])
        return only

    def wide(self, node: int) -> Iterator[tuple[int, Ints]]:
        """Yield, for a wide node, the rank of a child and the measurements from there on."""
        assert self.noise is not None
        at, end = int(self.above.start[node]), int(self.above.stop[node])
        children = _scratch.children(self.step.last, 0)
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
    children = _scratch.children(step.last, slots)
    node, first = step.level.numbered(above.nodes)
    denied, ties = measuring.denied[start:stop], measuring.ties[start:stop]
    parents = Parents(node, above.count, above.start, above.stop, first, denied, ties)
    only = measuring.draw(children, start, stop)
    if step.facts is not None:
        bounds, exact = step.bounds(above), isinstance(step.how, Exact)
        code, order = step.repair.code or 0, step.order.code
        size = refine_batch_bounded(
            *children, *parents, *measuring.leaves, *bounds, exact, only, code, order, named
        )  # fmt: skip
    elif step.repair.code is None:
        size = refine_batch_custom(step.repair, children, parents, measuring.leaves, only, step.order, named)
    else:
        code, order = step.repair.code, step.order.code
        size = refine_batch(*children, *parents, *measuring.leaves, only, code, order, named)
    return _seen(step, above, children, size, every, first)


def _refine_wide(measuring: _Measuring, node: int, every: int | None, named: int) -> Iterator[Descended]:
    """Refine one node with very many children: they are measured again for every sweep and never all in memory."""
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
        children = _scratch.children(step.last, len(x) if step.keeps_all(every) else 0)
        children.slots[:] = x[: len(children.slots)]
        size, zeroed, unnamed = keep(
            state, *children[:6], children.begin, children.end, 0, len(x), 0, eldest + rank, 0, named
        )
        highest, left = max(highest, zeroed), left + unnamed
        yield _seen(step, above, children, size, every, first, parents=0)
    children = _scratch.children(step.last, 0)
    children.highest[0], children.left[0] = highest, left
    yield _seen(step, above, children, 0, every, first)


def _seen(
    step: Step, above: Frontier, children: Children, size: int, every: int | None, first: Ints,
    parents: int | None = None,
) -> Descended:  # fmt: skip
    """Return a copy of the retained children that a kernel moved to the front, and the evidence of their parents."""
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


# Results of the tasks of a descent, gathered as they come: in memory, or in files if they may exceed memory.

IN_MEMORY = 1 << 23
"""Bytes of an array that are gathered in memory before they are written to a file."""
ROWS = 1 << 17
"""Rows that are processed at a time, of arrays that may be in files."""


@dataclass(frozen=True)
class SpillBuffer:
    """Storage for arrays as long as a level: in memory or in files."""

    folder: Path | None = None
    """A private folder for unnamed files; None for memory."""

    def array(self, shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
        """Return a writable array, for writes in any order."""
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        if self.folder is None or size <= IN_MEMORY:
            return np.empty(shape, kind)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            file.truncate(size)
            allocate(file.fileno(), size)
            return np.asarray(np.memmap(file, kind, "r+", shape=shape))

    def growing(self, kind: DTypeLike = np.int64, width: tuple[int, ...] = ()) -> Growing:
        """Return an empty array that rows can be appended to."""
        return Growing(self.folder, np.empty((0, *width), kind))


MEMORY = SpillBuffer()


class Growing:
    """An array that rows are appended to."""

    def __init__(self, folder: Path | None, empty: NDArray[Any]) -> None:
        self._folder, self._empty = folder, empty
        self._waiting: list[NDArray[Any]] = []
        self._bytes = 0
        self._file: Any = None

    def add(self, more: NDArray[Any]) -> None:
        """Append rows."""
        self._waiting.append(more)
        self._bytes += more.nbytes
        if self._folder is not None and self._bytes > IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - the map of it outlives it
        for one in self._waiting:
            self._file.write(np.ascontiguousarray(one).data)
        self._waiting, self._bytes = [], 0

    def array(self) -> NDArray[Any]:
        """Return all rows; rows in a file are memory-mapped."""
        if self._file is None:
            return self._waiting[0] if len(self._waiting) == 1 else np.concatenate([self._empty, *self._waiting])
        self._write()
        self._file.flush()
        kept = np.memmap(self._file, self._empty.dtype, "c").reshape(-1, *self._empty.shape[1:])
        self._file.close()
        return np.asarray(kept)


def runs(rows: int) -> Iterator[slice]:
    """Cut rows into slices of at most `ROWS`."""
    return (slice(start, min(start + ROWS, rows)) for start in range(0, rows, ROWS))


def gathered(parts: Iterable[Descended], attributes: int, levels: int, room: SpillBuffer) -> Descended:
    """Join the results from adjacent ranges of nodes, with evidence of `levels` levels each."""
    if room.folder is None:
        return Descended.join(list(parts), attributes, levels)
    nodes = room.growing(np.int32, (attributes,))
    names = ("count", "start", "stop", "seen", "seen_at")
    frontier, *seen = [[room.growing() for _ in range(5)] for _ in range(1 + levels)]
    left: list[Remainders] = []
    for part in parts:
        nodes.add(part.frontier.nodes.T)
        _add(frontier, [getattr(part.frontier, name) for name in names])
        for own, found in zip(seen, part.levels, strict=True):
            for more in found:
                _add(own, [more.measured, more.highest, more.slots])
        left += part.left
    evidence = tuple((LevelEvidence(*(column.array() for column in own[:3])),) for own in seen)
    joined = {name: one.array() for name, one in zip(names, frontier, strict=True)}
    return Descended(Frontier(nodes=_by_attribute(nodes.array(), room), **joined), evidence, tuple(left))


def _add(columns: Sequence[Growing], arrays: Sequence[NDArray[Any]]) -> None:
    for column, array in zip(columns, arrays, strict=False):
        column.add(array)


def _by_attribute(nodes: NDArray[np.int32], room: SpillBuffer) -> NDArray[np.int32]:
    """Return the nodes with one contiguous row per attribute, as kernels need them."""
    turned = room.array(nodes.shape[::-1], np.int32)
    for run in runs(len(nodes)):
        turned[:, run] = nodes[run].T
    return turned
