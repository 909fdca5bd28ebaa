"""Measurements, node by node. All of them are noisy, hence public.

Kept on request in full, and always at levels whose public nodes are few: sums over many nodes take their intervals from
them, and better estimates can be made of them at any time, at no cost in privacy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop._util.dtypes import Flags, Ints
from treetop.counts.counts import pack
from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.noise import Law
from treetop.plan.resolution import HighMeasurements, number_of_tests
from treetop.release.intervals.nodes import LevelIntervals, named_risks, nearest_measured, node_intervals, risk_of
from treetop.release.tree import ReleasedTree, ancestors, changes, nodes_at, spans_at, whole_numbers
from treetop.repair.least_squares import LEAST_VARIANCE, MeasuredLevel

FEW_NODES = 1 << 20
"""Every measurement is kept at levels with at most this many public nodes: a megabyte or so each."""


@dataclass(frozen=True, eq=False)
class LevelMeasurements:
    """The measurements of one level, in spine order: of all public children of retained nodes that have several."""

    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and measured node (column), the attribute's node; 0 while it is not refined."""
    value: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of a release, by level."""

    spine: Spine
    total: int | None
    """The measurement of the total; None if the total is public."""
    laws: tuple[Law | None, ...]
    """Noise of the total and of every level; None if nothing is measured."""
    levels: tuple[LevelMeasurements | None, ...] = field(repr=False)
    """By level below the root; None if it was not kept."""

    @property
    def complete(self) -> bool:
        """Whether every measurement was kept."""
        return all(level is not None for level in self.levels)

    @staticmethod
    def of(tree: ReleasedTree, evidence: Evidence, down_to: int | None = None) -> Measurements:
        """Match the measurements that a descent to this tree has kept with their nodes.

        If the tree ends at a level above the leaves, those of the children of its last nodes are there too.
        """
        levels: list[LevelMeasurements | None] = []
        for level, seen in zip(tree.spine.levels, evidence.levels, strict=down_to is None):
            nodes = tree.at(level.index - 1).nodes
            fanout = level.fanout(nodes)
            fanout[fanout == 1] = 0
            if int(fanout.sum()) != len(seen.slots):
                levels.append(None)
                continue
            levels.append(LevelMeasurements(level.children(nodes.astype(np.int32), fanout), seen.slots))
        levels += [None] * (len(tree.spine.levels) - len(levels))
        return Measurements(tree.spine, evidence.total, evidence.laws, tuple(levels))

    def table(self) -> pa.Table:
        """Return one row per measurement: the level, the node's codes (null while not refined), value and variance."""
        names = list(self.spine.attributes)
        codes = pa.dictionary(pa.int32(), pa.string())
        numbers = [("value", pa.int64()), ("variance", pa.float64())]
        schema = pa.schema([("level", pa.int32()), *((name, codes) for name in names), *numbers])
        parts = []
        if self.total is not None:
            parts.append(self._rows(schema, 0, np.zeros((len(names), 1), np.int32), np.array([self.total])))
        for level, seen in zip(self.spine.levels, self.levels, strict=True):
            if seen is not None:
                parts.append(self._rows(schema, level.index, seen.nodes, seen.value))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _rows(self, schema: pa.Schema, index: int, nodes: NDArray[np.int32], value: Ints) -> pa.Table:
        law = self.laws[index]
        variance = 0.0 if law is None else law.standard_deviation**2
        columns = []
        for tree, node, depth in zip(self.spine.trees, nodes, self.spine.depths(index), strict=True):
            codes = pa.array([], pa.string()) if depth == 0 else tree.codes[depth - 1]
            mask = np.full(len(value), depth == 0)
            columns.append(pa.DictionaryArray.from_arrays(pa.array(node, mask=mask), codes))
        arrays = [pa.array(np.full(len(value), index, np.int32)), *columns, pa.array(value)]
        return pa.Table.from_arrays([*arrays, pa.array(np.full(len(value), variance))], schema=schema)

    @staticmethod
    def from_table(table: pa.Table, spine: Spine, laws: Sequence[Law | None]) -> Measurements:
        """Read the measurements from such a table."""
        index = whole_numbers(table, "level")
        bounds = np.searchsorted(index, np.arange(len(spine.levels) + 2))
        if not (index[1:] >= index[:-1]).all() or bounds[0] != 0 or bounds[-1] != len(index) or bounds[1] > 1:
            raise ReleaseError("the measurements are not those of this spine, level by level")
        value = whole_numbers(table, "value")
        levels: list[LevelMeasurements | None] = []
        for level, start, stop in zip(spine.levels, bounds[1:], bounds[2:], strict=False):
            if start == stop and (laws[level.index] is not None or level.divides):  # not kept, exact ones neither
                levels.append(None)
                continue
            nodes = nodes_at(spine, level.index, table.slice(start, stop - start))
            if (nodes < 0).any():
                raise ReleaseError("a measurement has a code that is not in its hierarchy")
            if first_disorder(pack(spine, spans_at(spine, level.index, nodes)[0])) is not None:
                raise ReleaseError(f"a measurement of {level.name} stands twice, or out of order")
            levels.append(LevelMeasurements(nodes, value[start:stop]))
        total = int(value[0]) if bounds[1] else None
        return Measurements(spine, total, tuple(laws), tuple(levels))


@dataclass(frozen=True, eq=False)
class TreeLevel(MeasuredLevel):
    """The nodes of one level, in spine order: those measured, and only children on the way to others."""

    value: Ints
    """The measurement; 0 if there is none."""
    nodes: NDArray[np.int32]
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    measured: Flags


def measured_tree(measurements: Measurements, total: int) -> list[TreeLevel]:
    """Return the levels of the tree from the root down; `total` is the measured or the public total."""
    spine, laws = measurements.spine, measurements.laws
    if not measurements.complete:
        raise ReleaseError("not every measurement was kept: release with `keep_measurements=True`")
    levels = [level for level in measurements.levels if level is not None]
    above = [ancestors(spine, index, index + 1, seen.nodes) for index, seen in enumerate(levels)]
    on_the_way = [nodes[:, changes(nodes)] for nodes in above]
    root = np.zeros((len(spine.attributes), 1), np.int32)
    known = np.array([0.0 if laws[0] is None else _variance(laws[0])])  # a public total is exact
    tree = [TreeLevel(np.zeros(1, np.int64), np.array([total]), known, root, np.array([True]))]
    # The rows, in the last level made, of the ancestors of the nodes still to come.
    found = [np.zeros(nodes.shape[1], np.int64) for nodes in on_the_way]
    for index, (level, seen) in enumerate(zip(spine.levels, levels, strict=True)):
        later = on_the_way[index + 1 :]
        here = [ancestors(spine, level.index, index + 1 + step, nodes) for step, nodes in enumerate(later)]
        parent = found[index][np.cumsum(changes(above[index])) - 1]
        keys = [level.keys(parent, seen.nodes)]
        keys += [level.keys(found[index + 1 + i], nodes) for i, nodes in enumerate(here)]
        distinct, first = np.unique(np.concatenate(keys), return_index=True)
        nodes = np.concatenate([seen.nodes, *here], axis=1)[:, first]
        measured = first < len(seen)
        value = np.where(measured, np.append(seen.value, 0)[np.minimum(first, len(seen))], 0)
        variance = np.where(measured, _variance(laws[level.index]), np.inf)
        tree.append(TreeLevel(distinct // level.widest, value, variance, nodes, measured))
        for i, key in enumerate(keys[1:]):
            found[index + 1 + i] = np.searchsorted(distinct, key)
    return tree


def _variance(law: Law | None) -> float:
    return LEAST_VARIANCE if law is None else max(law.standard_deviation**2, LEAST_VARIANCE)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The measured nodes of one level below the root, as nodes of a released tree."""

    level: TreeLevel
    """The measured nodes, and only children on the way to others."""
    parent: Ints
    """Row of each one's parent among the released nodes of the level above; −1 if it is not released."""
    row: Ints
    """Row of each among the released nodes of its own level; −1 if it is not released."""


def released_rows(tree: ReleasedTree, measured: list[TreeLevel]) -> Iterator[Alignment]:
    """Yield, level by level from the top down, the rows of measured nodes in a released tree."""
    row = np.zeros(1, np.int64) if len(tree.at(0)) else np.full(1, -1)
    for level, split in zip(measured[1:], tree.spine.levels, strict=True):
        parent = row[level.parent]
        row = tree.children(split.index, parent, level.nodes)
        yield Alignment(level, parent, row)


def align(tree: ReleasedTree, measurements: Measurements) -> Evidence:
    """Return the measurements for the intervals of released nodes; all measurements must have been kept."""
    measured = measured_tree(measurements, measurements.total or 0)  # the root's value does not matter here
    levels = (_level(tree, index, found) for index, found in enumerate(released_rows(tree, measured), start=1))
    return Evidence(measurements.total, tuple(levels), measurements.laws)


def _level(tree: ReleasedTree, index: int, found: Alignment) -> LevelEvidence:
    parents = tree.parents(index)
    fanout = tree.fanout(index)
    own = np.full(len(parents), NOTHING)
    released = found.level.measured & (found.row >= 0)
    own[found.row[released]] = found.level.value[released]
    beside = found.level.measured & (found.parent >= 0)
    slots = found.level.value[beside]
    if (own[fanout[parents] > 1] == NOTHING).any() or int(fanout[fanout > 1].sum()) != len(slots):
        raise ReleaseError(f"a node of {tree.spine.levels[index - 1].name} is released, but was not measured")
    highest = np.full(len(fanout), NOTHING)
    dropped = beside & (found.row < 0)
    np.maximum.at(highest, found.parent[dropped], found.level.value[dropped])
    return LevelEvidence(own, highest, slots)


def descended(tree: ReleasedTree, measurements: Measurements) -> tuple[ReleasedTree, Evidence]:
    """Return a tree as the descent has left it: every node that has measured children, with zeros where needed.

    Below a node of which nothing is released any more one leaf stands, at zero; any leaf would do, since the
    measurements beside it are known.
    """
    measured = measured_tree(measurements, measurements.total or 0)
    rows = [np.zeros(1, np.int64), *(found.row for found in released_rows(tree, measured))]
    missing = [_missing(tree.spine, measured, rows, index) for index in range(len(measured) - 1)]
    nodes = np.concatenate([tree.nodes, *missing], axis=1).astype(np.int32)
    count = np.concatenate([tree.count, *(np.zeros(leaves.shape[1], np.int64) for leaves in missing)])
    order = np.lexsort(pack(tree.spine, nodes)[::-1])
    whole = replace(tree, nodes=nodes[:, order], count=count[order])
    return whole, align(whole, measurements)


def _missing(spine: Spine, measured: list[TreeLevel], rows: list[Ints], index: int) -> Ints:
    """Return a leaf for each node of a level that has measured children, none of which goes on or is released."""
    below = measured[index + 1]
    goes_on = rows[index + 1] >= 0
    if index + 2 < len(measured):
        goes_on[measured[index + 2].parent] = True
    divided, covered = np.zeros(len(measured[index]), dtype=bool), np.zeros(len(measured[index]), dtype=bool)
    divided[below.parent] = True
    covered[below.parent[goes_on]] = True
    start, stop = spans_at(spine, index + 1, below.nodes)
    single = np.flatnonzero((stop - start == 1).all(axis=0) & ~covered[below.parent])
    _, first = np.unique(below.parent[single], return_index=True)
    if len(first) != int((divided & ~covered).sum()):
        raise ReleaseError("the measurements are not those of one descent: below some node they end too early")
    return start[:, single[first]]


# The measurements beside the released counts: intervals and estimates come from them.


@dataclass(frozen=True, eq=False)
class KeptMeasurements:
    """The kept measurements of a release, and the released tree that they are about."""

    tree: ReleasedTree
    evidence: Evidence
    apart: Measurements | None = None
    """All measurements, if the released nodes are not those of the descent but were made from it later."""
    selective: bool = False
    """Whether intervals account for the choice of nodes by their measurements."""
    facts: PublicFacts | None = None
    down_to: int | None = None
    """The last level in `tree`, if that is not the leaves."""
    _intervals: dict[float, tuple[LevelIntervals, ...]] = field(default_factory=dict, init=False, repr=False)

    @property
    def root(self) -> int:
        """The measured or the public total."""
        return self.tree.total if self.evidence.total is None else self.evidence.total

    @cached_property
    def measurements(self) -> Measurements:
        """The measurements, node by node."""
        return Measurements.of(self.tree, self.evidence, self.down_to) if self.apart is None else self.apart

    @cached_property
    def descent(self) -> KeptMeasurements:
        """The source of the intervals of sums: the tree as it was measured."""
        return self if self.apart is None else KeptMeasurements(*descended(self.tree, self.apart))

    def named_margin(self, index: int, confidence: float) -> int | None:
        """Return the noise quantile of the measurements that named a level's nodes: its own or the last above."""
        level = max((at for at in range(index + 1) if self.evidence.laws[at] is not None), default=0)
        risk = named_risks(self.tree, risk_of(confidence))[index]
        return None if (law := self.evidence.laws[level]) is None else law.margin(risk)

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes, from the total down."""
        if confidence not in self._intervals:
            self._intervals.clear()  # one set of them is as large as the tree
            found = node_intervals(self.tree, self.evidence, confidence, self.selective, self.down_to)
            if self.facts is not None:  # narrowed by public facts, they hold no less often
                narrowed = []
                for index, own in enumerate(found):
                    known = self.facts.around(self.tree.spine.depths(index), self.tree.at(index).nodes)
                    bounds = {"lower": np.clip(own.lower, *known), "upper": np.clip(own.upper, *known)}
                    narrowed.append(replace(own, **bounds))
                found = tuple(narrowed)
            self._intervals[confidence] = found
        return self._intervals[confidence]


# The intervals of remainders: the true count of a node's children that are not named. That is the node's own count less
# those of its named children. Which children are named is decided by their own noise, so a margin that fits one of them
# would be too narrow for those that were chosen. Instead the node and all of its b public children, named or not, are
# taken at a risk of α/(b + 1) each: then all are within their margins at once with the stated confidence, whichever
# were chosen. The count cannot exceed the node's own either, nor the upper bounds of its unnamed children, each at most
# its margin above the highest measurement among them. An only child that is not named was not measured: there the
# node's own count is all that is known.


def remainder_intervals(seen: KeptMeasurements, confidence: float) -> tuple[Ints, Ints]:
    """Return the lower and upper bounds of a release's remainders, in their order."""
    evidence, tree, left = seen.evidence, seen.tree, seen.tree.left
    if left is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lower, upper = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    risk = risk_of(confidence)
    every = zip(tree.spine.levels, evidence.levels, nearest_measured(tree, evidence), strict=False)
    for refined, below, (value, level) in every:
        index = refined.index - 1
        there = np.flatnonzero(left.level == index)
        row = tree.rows(index)
        parent = tree.parents(index + 1)
        named = np.bincount(parent, minlength=len(value))[row]
        sums = np.zeros(len(value), np.int64)
        np.add.at(sums, parent, below.measured)
        children = refined.fanout(left.nodes[:, there])
        for own in np.unique(level[row]).tolist():
            chosen = level[row] == own
            about = row[chosen]
            margin = _margins(evidence.laws[own], children[chosen], risk)
            each = _margins(evidence.laws[index + 1], children[chosen], risk)
            middle, slack = value[about] - sums[about], margin + named[chosen] * each
            most = np.minimum(middle + slack, value[about] + margin)
            unnamed = (children - named)[chosen] * np.maximum(below.highest[about] + each, 0)
            most = np.where(children[chosen] == 1, most, np.minimum(most, unnamed))
            lower[there[chosen]] = np.maximum(middle - slack, 0)
            upper[there[chosen]] = np.maximum(most, lower[there[chosen]])
    return lower, upper


def _margins(law: Law | None, children: Ints, risk: Fraction) -> Ints:
    """Return how far a measurement may be off, by the number of the node's children."""
    if law is None:
        return np.zeros(len(children), np.int64)
    distinct, which = np.unique(children, return_inverse=True)
    return np.array([law.margin(risk / (number + 1)) for number in distinct.tolist()], np.int64)[which]


# Which released nodes survive a test over all nodes that could have been released: they stand out from the noise. A
# count that the noise invented is released like any other. If a plan does not leave such counts unresolved, a reader
# can still learn which ones to believe: by the same test, with the same statistics (`treetop.plan.resolution`), over
# the measurements that the release keeps. It reads nothing private, and costs nothing.

RATE = Fraction(1, 20)
"""Of the nodes that survive at a level, the share that may be truly empty, in expectation."""


def surviving(measured: KeptMeasurements, index: int, rate: Fraction = RATE) -> Flags:
    """Return which released nodes of a level survive the test of all measured nodes of the level."""
    descent = measured.descent
    survives = _surviving(descent, index, rate)
    if descent is measured:
        return survives
    # Released counts were made from the measurements later: a node survives if its measured node does.
    released, tested = measured.tree.at(index).nodes, descent.tree.at(index).nodes[:, survives]
    _, number = np.unique(np.concatenate([tested, released], axis=1), axis=1, return_inverse=True)
    number = number.ravel()
    return np.isin(number[tested.shape[1] :], number[: tested.shape[1]])


def _surviving(descent: KeptMeasurements, index: int, rate: Fraction) -> Flags:
    tree, laws = descent.tree, descent.evidence.laws
    seen, level = next(islice(nearest_measured(tree, descent.evidence), index, None))
    measured = [at for at in range(1, index + 1) if laws[at] is not None]
    survives = np.asarray([laws[at] is None for at in range(index + 1)], np.bool_)[level]  # public counts have no noise
    if not measured:
        return survives
    tests = sum(int(number_of_tests(tree.spine.levels, at, tree.at(at - 1).nodes)[index]) for at in measured)
    law = laws[measured[-1]]
    assert law is not None
    high = HighMeasurements(law, tests, rate)
    noisy = [(at, other) for at in np.unique(level).tolist() if (other := laws[at]) is not None]
    for at, other in noisy:
        high.add(seen[level == at], other)
    for at, other in noisy:
        survives |= (level == at) & (seen >= high.threshold(other))
    return survives
