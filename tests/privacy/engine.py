"""The engine with its noise in our hands: which laws it draws from, which words it reads, what it makes of each draw.

Nothing of the engine is replaced but the draw itself. It is called through its modules, so that a fault put there
for a test is seen here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.domain.spine_level import PlaceNumbering
from treetop.measure.descent import descent_of
from treetop.measure.level import Frontier
from treetop.noise import Key, Keystream, Law, NoiseStream
from treetop.noise.sampler import Block, CumulativeTable
from treetop.plan.workload import Exact, Measured

from .divergence import Shift, masses
from .neighbours import Rows, counts_of

descents: Any = import_module("treetop.measure.descent")
tasks: Any = import_module("treetop.measure._task")
"""The modules of the descent, open to all that they use, for better and for worse."""

KEY = Key(bytes(range(32)))
Path = tuple[int, ...]
"""A node of the spine: the attribute's node at each level from the top."""


@contextmanager
def laws_drawn_from() -> Iterator[list[Law]]:
    """Note the law of every stream of noise that is opened."""
    opened: list[Law] = []
    original = NoiseStream.__init__

    def note(self: NoiseStream, law: Law, *arguments: Any, **options: Any) -> None:
        opened.append(law)
        original(self, law, *arguments, **options)

    with mock.patch.object(NoiseStream, "__init__", note):
        yield opened


@contextmanager
def words_read() -> Iterator[list[tuple[bytes, int, NDArray[np.uint64]]]]:
    """Note every read of random words: the secret, the position and the words."""
    reads: list[tuple[bytes, int, NDArray[np.uint64]]] = []
    secrets: dict[int, tuple[Keystream, bytes]] = {}
    start, fill, blocks = Keystream.__init__, Keystream.fill, Keystream.blocks

    def note_secret(self: Keystream, key: Key) -> None:
        secrets[id(self)] = (self, key.secret)  # the stream is kept alive, so that its id stays its own
        start(self, key)

    def note_words(self: Keystream, out: NDArray[np.uint64], word: int) -> None:
        fill(self, out, word)
        reads.append((secrets[id(self)][1], word, out.copy()))

    def note_blocks(
        self: Keystream, place: NDArray[np.uint64], size: NDArray[np.int64], width: int
    ) -> NDArray[np.uint64]:
        found, at = blocks(self, place, size, width), 0
        for high, low, number in zip(*place.tolist(), (size * width).tolist(), strict=True):
            begin = at + low * width % 2  # a block has two words
            reads.append((secrets[id(self)][1], (high << 65) + low * width, found[begin : begin + number].copy()))
            at += -(-(begin - at + number) // 2) * 2 if number else 0
        return found

    with (
        mock.patch.object(Keystream, "__init__", note_secret),
        mock.patch.object(Keystream, "fill", note_words),
        mock.patch.object(Keystream, "blocks", note_blocks),
    ):
        yield reads


@contextmanager
def noise_is(noise: NDArray[np.int64]) -> Iterator[None]:
    """Let slot i of every stream hold noise[i]; runs of slots follow each other, in the order of their first draws."""
    done: dict[NoiseStream, dict[int, int]] = defaultdict(dict)

    def fill(_: NoiseStream, out: NDArray[np.int64], slot: int) -> None:
        out[:] = noise[slot : slot + len(out)]

    def fill_runs(stream: NoiseStream, out: NDArray[np.int64], place: NDArray[np.uint64], size: object) -> None:
        own, first = done[stream], int(place[1, 0])
        fill(stream, out, own.setdefault(first, own.get(-1, 0)))
        own[-1] = max(own.get(-1, 0), own[first] + len(out))

    with mock.patch.object(NoiseStream, "fill", fill), mock.patch.object(NoiseStream, "fill_runs", fill_runs):
        yield


@contextmanager
def many_trees() -> Iterator[None]:
    """Let nodes have one attribute more, which says in which of many trees they are: each has places of its own."""
    original = PlaceNumbering.first

    def first(self: PlaceNumbering, nodes: NDArray[np.int32]) -> NDArray[np.uint64]:
        place = original(self, nodes[:-1])
        place[1] += nodes[-1].astype(np.uint64) << np.uint64(32)
        return place

    with mock.patch.object(PlaceNumbering, "first", first):
        yield


class Unexplained(Exception):
    """The engine did not do what can be accounted for."""


@dataclass
class Public:
    """What was found on the spine of one plan: the same for all tables."""

    children: dict[Path, range] = field(default_factory=dict)
    nodes: dict[Path, list[int]] = field(default_factory=dict)
    cells: dict[tuple[tuple[int, ...], Path], Path] = field(default_factory=dict)
    leaves: dict[str, Path | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Engine:
    """A plan with one private table, and the laws from which a run really draws."""

    plan: tt.Plan
    counts: Counts
    paths: list[tuple[Path, int]]
    """The leaves that are present in the order of the counts, with their counts."""
    total: Law | None
    """The law that the total was measured with, if it was."""
    laws: tuple[Law | None, ...]
    """The laws that the levels below were measured with."""
    margins: tuple[tuple[tuple[int, ...], Law], ...] = ()
    """The laws of tables beside the spine, by how many levels of each attribute they tell apart."""
    public: Public = field(default_factory=Public)
    """What the plan's own spine says, which engines of one plan ask again and again."""

    @staticmethod
    def of(plan: tt.Plan, rows: Rows) -> Engine:
        counts = counts_of(plan, rows)
        with laws_drawn_from() as drawn, noise_is(np.zeros(1 << 12, np.int64)):  # so that no level is without nodes
            descents.run_descent(descent_of(plan), counts, KEY)
        descent = descent_of(plan)
        tables = () if descent.margins is None else descent.margins.tables
        first = {table.part: index for index, table in enumerate(tables)}
        # A level that is a table beside the spine as well is measured there, and not again; one that facts decide is
        # not measured at all.
        measured = [
            step.level.divides and step.level.index not in first and not isinstance(step.how, Exact)
            for step in descent.steps
        ]
        # A merged step looks at its cells once for every attribute where there are margins: at the same noise.
        looks = [
            own * (len(step.level.parts) if tables else 1) for own, step in zip(measured, descent.steps, strict=True)
        ]
        expected = sum(looks) + len(tables)
        if len(drawn) not in (expected, expected + 1):
            raise Unexplained(f"{len(drawn)} streams of noise were opened for {expected} tables that are measured")
        total = drawn.pop(0) if len(drawn) > expected else None
        beside = [drawn.pop(0) for _ in tables]
        laws: list[Law | None] = []
        for number in looks:
            found = [drawn.pop(0) for _ in range(number)]
            if len(set(found)) > 1:
                raise Unexplained("a level is measured with several noises")
            laws.append(found[0] if found else None)
        for part, index in first.items():
            if part <= len(laws):
                laws[part - 1] = beside[index]
        margins = tuple(
            (table.depths, law) for table, law in zip(tables, beside, strict=True) if table.part > len(laws)
        )
        public = Public()
        return Engine(plan, counts, _paths(plan, rows, public), total, tuple(laws), margins, public)

    @staticmethod
    def without_laws(plan: tt.Plan, rows: Rows) -> Engine:
        """A plan and a table whose noise is not of interest."""
        public = Public()
        return Engine(plan, counts_of(plan, rows), _paths(plan, rows, public), None, (), public=public)

    def with_rows(self, rows: Rows) -> Engine:
        """The same plan and noise with another table."""
        return replace(self, counts=counts_of(self.plan, rows), paths=_paths(self.plan, rows, self.public))

    def true_count(self, path: Path) -> int:
        return self.true_counts[path]

    @cached_property
    def true_counts(self) -> Counter[Path]:
        """The true count of every node of the spine that has one."""
        found: Counter[Path] = Counter()
        for leaf, count in self.paths:
            for depth in range(len(leaf) + 1):
                found[leaf[:depth]] += count
        return found

    def margin_counts(self, depths: tuple[int, ...]) -> dict[Path, int]:
        """The true counts of the cells of a margin, by the nodes of its attributes."""
        found: dict[Path, int] = defaultdict(int)
        for leaf, count in self.paths:
            found[self.cell(depths, leaf)] += count
        return found

    def cell(self, depths: tuple[int, ...], leaf: Path) -> Path:
        """The cell of a margin that a leaf is counted in: its node at the last level told apart of each attribute."""
        if (known := self.public.cells.get((depths, leaf))) is None:
            about = zip(self.plan.spine.trees, self._node(leaf), depths, strict=True)
            known = tuple(int(tree.ancestors(depth - 1)[node]) for tree, node, depth in about if depth)
            self.public.cells[depths, leaf] = known
        return known

    def children(self, path: Path) -> range:
        if (known := self.public.children.get(path)) is None:
            level = self.plan.spine.levels[len(path)]
            known = range(int(level.fanout(np.array(self._node(path))[:, None])[0]))
            self.public.children[path] = known
        return known

    def _node(self, path: Path) -> list[int]:
        if (known := self.public.nodes.get(path)) is None:
            node = np.zeros((len(self.plan.spine.attributes), 1), np.int64)
            for level, rank in zip(self.plan.spine.levels, path, strict=False):
                level.go_down(node, np.array([rank]))
            known = self.public.nodes[path] = [int(one) for one in node[:, 0]]
        return known

    def outcomes(
        self, path: Path, counts: NDArray[np.int64], x: NDArray[np.int64], key: Key = KEY, chunk: int = descents.CHUNK
    ) -> NDArray[np.int64]:
        """Refine one node many times at once, and return a row of children's counts for each time.

        In time i the node's released count is counts[i], and its children are measured as x[i]. The node stands
        many times in one frontier, told apart by an attribute of its own that the engine carries along. The key gives
        the tie words only.
        """
        children = self.children(path)
        inside = [i for i, (leaf, _) in enumerate(self.paths) if leaf[: len(path)] == path]
        start, stop = (inside[0], inside[-1] + 1) if inside else (0, 0)
        times = len(counts)
        nodes = np.array([*self._node(path), 0], np.int32)[:, None].repeat(times, axis=1)
        nodes[-1] = np.arange(times)
        above = Frontier(nodes, counts, np.full(times, start, np.int64), np.full(times, stop, np.int64))
        noise = x - np.array([self.true_count((*path, child)) for child in children])
        step = descent_of(self.plan).steps[len(path)]
        with noise_is(noise.ravel()), many_trees():
            below = tasks.refine(step, self.counts, above, key, chunk).frontier
        result = np.zeros((times, len(children)), np.int64)
        result[below.nodes[-1], step.level.ranks(below.nodes)] = below.count
        return result

    def told(self) -> dict[str, Any]:
        """All that a run takes for public of the private table: the total, where it is exact, and what facts say."""
        descent = descent_of(self.plan).with_invariants(self.counts)
        exact = isinstance(descent.total, Exact)
        told: dict[str, Any] = {
            "the total": descents.measure_total(self.counts, descent.total, KEY, descent.facts) if exact else None
        }
        for about, facts in [("the plan", descent.facts), *((step.level.name, step.facts) for step in descent.steps)]:
            if facts is None:
                continue
            for depths in {*facts.bounded, *map(self._depths, descent.steps)}:
                boxes = facts.at(depths)
                bounds = zip(boxes.cells.tolist(), boxes.lower.tolist(), boxes.upper.tolist(), strict=True)
                told[f"{boxes.table.name} in the facts of {about}"] = list(bounds)
        return told

    def _depths(self, step: Any) -> tuple[int, ...]:
        return self.plan.spine.depths(step.level.index)

    def totals(self, measured: range) -> dict[int, float]:
        """The law of the released total, as far as it comes from these measurements of it."""
        if self.total is None:
            return {descents.measure_total(self.counts, descent_of(self.plan).total, KEY): 1.0}
        law: dict[int, float] = defaultdict(float)
        for value in measured:
            noise = value - self.counts.total
            with noise_is(np.array([noise])):
                law[descents.measure_total(self.counts, descent_of(self.plan).total, KEY)] += self.total.mass(noise)
        return law


def _paths(plan: tt.Plan, rows: Rows, public: Public) -> list[tuple[Path, int]]:
    found = []
    for leaf, count in rows.items():
        if leaf not in public.leaves:
            public.leaves[leaf] = _path(plan, leaf)
        path = public.leaves[leaf]
        if count and path is not None:
            found.append((path, count))
    return sorted(found)


def _path(plan: tt.Plan, leaf: str) -> Path | None:
    """The way down to a leaf; None for one that no hierarchy has, or that is impossible: it counts nowhere."""
    trees = list(plan.spine.attributes.values())
    known = [tree.codes[-1].to_pylist() for tree in trees]
    codes = leaf.split(">")
    if not all(code in known[i] for i, code in enumerate(codes)):
        return None
    at = [known[i].index(code) for i, code in enumerate(codes)]
    finest = plan.spine.depths(len(plan.spine.levels))
    if not plan.public_facts.possible.allows(finest, np.array(at)[:, None])[0]:
        return None
    path, node = [], np.zeros((len(trees), 1), np.int64)
    for level in plan.spine.levels:
        for part in level.parts:
            own = plan.spine.trees[part.attribute]
            node[part.attribute] = own.ancestors(part.depth)[at[part.attribute]]
        path.append(int(level.ranks(node)[0]))
    return tuple(path)


def shifts_between(one: Engine, other: Engine) -> list[Shift]:
    """Every measurement that the two tables could make differ, if no node were pruned."""
    if one.laws != other.laws or one.total != other.total or one.margins != other.margins:
        raise Unexplained("the noise depends on the private table")
    shifts = []
    change = one.counts.total - other.counts.total
    if change and one.total is not None:
        shifts.append(Shift(one.total, change))
    for (what, mine), theirs in zip(one.told().items(), other.told().values(), strict=True):
        if mine != theirs:
            raise Unexplained(f"{what} differs and is released without noise: {mine} and {theirs}")
    for depth, law in enumerate(one.laws, start=1):
        for path in sorted({leaf[:depth] for leaf, _ in one.paths + other.paths}):
            change = one.true_count(path) - other.true_count(path)
            if law is not None and change and len(one.children(path[:-1])) > 1:
                shifts.append(Shift(law, change))
    for depths, law in one.margins:
        mine, theirs = one.margin_counts(depths), other.margin_counts(depths)
        changes = (mine.get(cell, 0) - theirs.get(cell, 0) for cell in sorted(mine.keys() | theirs.keys()))
        shifts += [Shift(law, change) for change in changes if change]
    return shifts


@dataclass(frozen=True)
class Releases:
    """The laws of the release of two tables, and whether they were the same function of the measurements."""

    one: dict[Path, float]
    other: dict[Path, float]
    difference: str | None


def releases(pair: tuple[Engine, Engine], tail: float, ties: Key = KEY) -> Releases:
    """Compute the law of the release of two tables with the engine's own pruning and repair.

    Given its own released count, a node's children depend on their measurements only, and those are independent (no
    word is read twice): so the law is a product over nodes. About `tail` of the probability of each measurement lies
    off the grid. Both tables are carried through the same grid with the same tie words, as if these were public: what
    holds for every choice of them holds when they are drawn.
    """
    difference: list[str] = []
    reach = _reach(pair[0].total, tail)
    totals = [engine.counts.total for engine in pair]
    laws_of_total = [engine.totals(range(min(totals) - reach, max(totals) + reach + 1)) for engine in pair]
    most = max(map(max, laws_of_total))

    @cache
    def kernel(path: Path) -> tuple[dict[int, dict[Path, float]], ...]:
        fanout = len(pair[0].children(path))
        divides = fanout > 1
        law = pair[0].laws[len(path)]
        reach = _reach(law, tail)
        true = [[engine.true_count((*path, child)) for child in engine.children(path)] for engine in pair]
        top = max(map(max, true)) + reach
        values = range(-reach, top + 1) if divides else range(1)  # an only child is not measured
        grid = np.array(list(product(values, repeat=fanout)), np.int64)
        times = most
        counts = np.arange(1, times + 1, dtype=np.int64).repeat(len(grid))
        x = np.tile(grid, (times, 1))
        results = [engine.outcomes(path, counts, x, ties) for engine in pair]
        if not np.array_equal(results[0], results[1]):
            at = int(np.flatnonzero((results[0] != results[1]).any(axis=1))[0])
            made = " and ".join(str(result[at].tolist()) for result in results)
            difference.append(f"measurements {x[at].tolist()} under a count of {counts[at]} were made {made}")
        laws = []
        for result, true_counts in zip(results, true, strict=True):
            weight = np.ones(len(grid))
            if divides:
                assert law is not None
                known = masses(law, int(top + max(true_counts)) + reach)
                middle = len(known) // 2
                for i, q in enumerate(true_counts):
                    weight *= known[middle + grid[:, i] - q]
            laws.append(_gather(counts, result, np.tile(weight, times)))
        return tuple(laws)

    def law_below(which: int, path: Path, count: int) -> dict[Path, float]:
        if len(path) == len(pair[0].laws):
            return {(count,): 1.0}
        return remembered(which, path, count)

    @cache
    def remembered(which: int, path: Path, count: int) -> dict[Path, float]:
        children = [(*path, child) for child in pair[0].children(path)]
        if count == 0:
            return {(0,) * _leaves(pair[0], path): 1.0}
        law: dict[Path, float] = defaultdict(float)
        for shares, mass in kernel(path)[which].get(count, {}).items():
            outcomes: list[tuple[Path, float]] = [((), mass)]
            for child, share in zip(children, shares, strict=True):
                part = law_below(which, child, share).items()
                outcomes = [(before + after, p * q) for before, p in outcomes for after, q in part]
            for outcome, p in outcomes:
                law[outcome] += p
        return law

    laws: list[dict[Path, float]] = []
    for which, law_of_total in enumerate(laws_of_total):
        law: dict[Path, float] = defaultdict(float)
        for count, mass in law_of_total.items():
            for outcome, p in law_below(which, (), count).items():
                law[outcome] += mass * p
        laws.append(dict(law))
    return Releases(laws[0], laws[1], difference[0] if difference else None)


def _reach(law: Law | None, tail: float) -> int:
    if law is None:
        return 0
    reach = 0
    while 2 * (1 - law.cumulative(reach)) > tail:
        reach += 1
    return reach


def _leaves(engine: Engine, path: Path) -> int:
    if len(path) == len(engine.laws):
        return 1
    return sum(_leaves(engine, (*path, child)) for child in engine.children(path))


def _gather(
    counts: NDArray[np.int64], results: NDArray[np.int64], weight: NDArray[np.float64]
) -> dict[int, dict[Path, float]]:
    """Add up the weights of equal results, by the count of the parent."""
    laws: dict[int, dict[Path, float]] = defaultdict(lambda: defaultdict(float))
    table = np.column_stack([counts, results])
    number = np.ravel_multi_index(tuple(table.T), tuple(table.max(axis=0) + 1))  # sorted at a tenth of a row's cost
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    for row, mass in zip(table[first].tolist(), np.bincount(inverse, weights=weight).tolist(), strict=True):
        laws[row[0]][tuple(row[1:])] += mass
    return laws


def _totals(counts: Counts, how: Measured, times: int, key: Key) -> NDArray[np.int64]:
    """Measure the total many times, by the engine's own function with its own noise: of one stream, slot after slot."""
    noise, fill = np.empty(times, np.int64), NoiseStream.fill
    opened: list[CumulativeTable | Block] = []
    slots = iter(range(times))

    def next_slot(stream: NoiseStream, out: NDArray[np.int64], slot: int) -> None:
        if not opened:
            fill(stream, noise, slot)
            opened.append(stream._sampler)
        if len(out) != 1 or stream._sampler is not opened[0]:
            raise Unexplained("the total is not measured once, by one law")
        out[0] = noise[next(slots)]

    with mock.patch.object(NoiseStream, "fill", next_slot):
        return np.array([descents.measure_total(counts, how, key.derive("total")) for _ in range(times)])


def many_releases(plan: tt.Plan, counts: Counts, times: int, key: Key) -> NDArray[np.int64]:
    """Release one table many times, a row of leaves each time.

    The root stands many times in one frontier, so that one descent draws fresh words for each: a million releases a
    second instead of a few hundred. The total, where it is measured, is measured once a time.
    """
    descent = descent_of(plan)
    totals = np.full(times, counts.total)
    if isinstance(descent.total, Measured):
        totals = _totals(counts, descent.total, times, key)
    result = np.zeros((times, plan.spine.leaves), np.int64)
    alive = np.flatnonzero(totals > 0)
    nodes = np.zeros((descent.attributes + 1, len(alive)), np.int32)
    nodes[-1] = alive
    start, stop = np.zeros(len(alive), np.int64), np.full(len(alive), len(counts), np.int64)
    leaves = Frontier(nodes, totals[alive], start, stop)
    with many_trees():
        for step in descent.steps:
            leaves = tasks.refine(step, counts, leaves, key.derive("level", step.level.index)).frontier
    sizes = [tree.sizes[-1] for tree in plan.spine.trees]
    leaf = np.ravel_multi_index(tuple(leaves.nodes[:-1]), tuple(sizes))
    result[leaves.nodes[-1], leaf] = leaves.count
    return result
