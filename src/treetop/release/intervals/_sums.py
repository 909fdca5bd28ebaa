"""The intervals of sums: of any box of nodes, from the measurements on the way to them.

A box that is one node has the interval of that node. Any other is settled at some level (`boxes`): there one child of
every partial node above lies inside it (if several attributes are refined at once, those that have one child of
theirs), and together these children are all of the box that is not below a node which was dropped on the way. With x =
q + N for true count, noise and measurement:

- *Inside.* The levels above decide which nodes of a level are measured, so their noise is independent of being there,
  whether or not they are released afterwards. The sum of the x differs from that of the q by n draws.
- *Dropped.* Of the C partial nodes that a level measures, those that are not retained, Z, were low by their own noise.
  Between none and all of each is in the box. Their q sum to at most Σ x + the bound of a sum over |Z| of C selected
  draws of −N (`treetop.noise.sum_noise`), which holds for any selection at all.
- *Stopping.* The whole box is also within the nodes dropped so far and the nodes that go on at any one level, all of
  them: these are a selection of their level's measured nodes, too. The least of such bounds serves. At a level where
  the box is still below a single node this is that node's upper bound.

Half of the risk α belongs to the lower end, which the inside alone decides. Of the upper end's half, nine tenths are
the inside's, and the measured levels above share one tenth evenly; one event a level covers every node that is dropped
or stopped at there, so the union bound gives α. How many levels those are is public, and does not depend on the noise.

At levels with so many public nodes that only released ones have their measurement kept, those inside are a selection as
well, for the lower end; for the upper end an unreleased child counts with the highest measurement of such children of
its parent. An unresolved node was not retained, like any other dropped node; if an only child was not named, the node
that was measured in its stead goes on no further, and is dropped from the nodes that its own level measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treetop.domain.constraints import PublicFacts
from treetop.measure.measure import NOTHING, LevelEvidence
from treetop.noise import Law
from treetop.noise.sum_noise import selected_margins, sum_margin, sum_margins
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import OWN, risk_of
from treetop.release.measurements import KeptMeasurements

if TYPE_CHECKING:
    from treetop.release.shards import Shards

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _BoxSums:
    """Some measured nodes of one level, for every box."""

    number: Ints
    value: Ints
    """Sum of their measurements, or an upper bound."""

    def __add__(self, other: _BoxSums) -> _BoxSums:
        return _BoxSums(self.number + other.number, self.value + other.value)

    def __getitem__(self, chosen: Ints) -> _BoxSums:
        return _BoxSums(self.number[chosen], self.value[chosen])


@dataclass(frozen=True, eq=False)
class _Met:
    """The nodes of one level that the boxes meet."""

    law: Law | None
    measured: Ints
    """Measured nodes by box."""
    retained: _BoxSums
    """Retained nodes; `dropped` has the others."""
    dropped: _BoxSums
    known: bool
    """Whether the value of the dropped nodes is known, rather than bounded."""
    going_on: Mapping[int, _BoxSums]
    """Retained nodes by the level at which they, or the ancestors with the same leaves, were measured."""
    ending: Mapping[int, _BoxSums] = field(default_factory=dict)
    """Those of the level above whose only child is not named, in the same way."""

    def __add__(self, other: _Met) -> _Met:
        """Join the nodes that boxes meet in parts of a level that have no node in common; none is unresolved."""
        going_on = dict(self.going_on)
        for level, more in other.going_on.items():
            going_on[level] = going_on[level] + more if level in going_on else more
        return replace(
            self,
            measured=self.measured + other.measured,
            retained=self.retained + other.retained,
            dropped=self.dropped + other.dropped,
            going_on=going_on,
        )


@dataclass(frozen=True, eq=False)
class _Front:
    """The released nodes of one level."""

    group: Ints
    """The group of boxes that meets each node; −1 for none."""
    value: Ints
    """Its measurement, or that of the nearest ancestor with the same leaves, from `level`."""
    level: Ints


def box_intervals(
    released: KeptMeasurements, boxes: Boxes, confidence: float, shards: Shards | None = None
) -> tuple[Ints, Ints]:
    """Return the lower and upper bounds of the true counts of boxes.

    Below the levels of `released`, go on in those of the shards that boxes meet.
    """
    seen, risk = released.descent, risk_of(confidence)
    if len(boxes) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if seen.tree.total == 0:  # nothing was measured below the total
        law, root = seen.evidence.laws[0], seen.evidence.total
        most = 0 if law is None or root is None else max(root + sum_margin(law, 1, risk), 0)
        return np.zeros(len(boxes), np.int64), np.full(len(boxes), most)
    walk = _Walk(seen, boxes, seen.down_to)
    last = int(boxes.settled.max())
    single: list[tuple[Ints, Ints, Ints]] = []
    if shards is not None and last in shards.below:
        level = shards.top.level
        nothing = [walk.nothing(index) for index in range(level + 1, last + 1)]
        for number in range(len(shards)):
            rows = slice(int(shards.starts[number]), int(shards.starts[number + 1]))
            if not walk.goes_on(rows):
                continue
            measured = shards.shard(number).measured
            assert isinstance(measured, KeptMeasurements)
            below = _Walk.below(measured, walk, rows, level)
            nothing = [sum_of + met for sum_of, met in zip(nothing, below.met, strict=True)]
            single.append(below.single_bounds(confidence, level))
        walk.met += nothing
    bounds = walk.sums(risk)
    for rows_, lower, upper in (walk.single_bounds(confidence, -1), *single):
        bounds[0][rows_], bounds[1][rows_] = lower, upper
    return bounds if released.facts is None else _within_facts(boxes, released.facts, *bounds)


def _within_facts(boxes: Boxes, facts: PublicFacts, lower: Ints, upper: Ints) -> tuple[Ints, Ints]:
    """Return the bounds of boxes, narrowed by public facts."""
    nodes = np.zeros_like(boxes.leaf)
    for attribute, (tree, depth) in enumerate(zip(boxes.spine.trees, boxes.depth, strict=True)):
        if depth:
            nodes[attribute] = tree.ancestors(depth - 1)[boxes.leaf[attribute]]
    known = facts.around(boxes.depth, nodes)
    return np.clip(lower, *known), np.clip(upper, *known)


class _Walk:
    """The way down to the boxes, with the nodes that they meet at every level."""

    def __init__(self, seen: KeptMeasurements, boxes: Boxes, down_to: int | None = None) -> None:
        self._seen, self._boxes = seen, boxes
        self.last_node, self.last_level = np.zeros(len(boxes), np.int64), np.zeros(len(boxes), np.int64)
        root = np.array([seen.root])
        self._front = _Front(np.zeros(1, np.int64), root, np.zeros(1, np.int64))
        self._group = np.zeros(len(boxes), np.int64)
        one, none = np.ones(len(boxes), np.int64), np.zeros(len(boxes), np.int64)
        total = _BoxSums(one, root[none])
        self.met = [_Met(seen.evidence.laws[0], one, total, _BoxSums(none, none), True, {0: total})]
        last = int(boxes.settled.max(initial=0))
        for index in range(1, (last if down_to is None else min(last, down_to)) + 1):
            self._descend(index)

    @staticmethod
    def below(seen: KeptMeasurements, above: _Walk, rows: slice, level: int) -> _Walk:
        """Go on from some nodes of a level, which are those of a part, down to the boxes."""
        walk: _Walk = object.__new__(_Walk)
        walk._seen, walk._boxes, walk._group = seen, above._boxes, above._group
        front = above._front
        walk._front = _Front(front.group[rows], front.value[rows], front.level[rows])
        walk.last_node, walk.last_level = np.full(len(above._boxes), -1), np.full(len(above._boxes), -1)
        walk.met = []
        for index in range(level + 1, int(above._boxes.settled.max()) + 1):
            walk._descend(index)
        return walk

    def goes_on(self, rows: slice) -> bool:
        """Whether boxes meet some nodes of the level that was reached."""
        return bool((self._front.group[rows] >= 0).any())

    def nothing(self, index: int) -> _Met:
        """Return an empty entry for a level at which the boxes meet no node."""
        law, kept = self._seen.evidence.laws[index], self._seen.measurements.levels[index - 1]
        zero = np.zeros(len(self._boxes), np.int64)
        return _Met(law, zero, _BoxSums(zero, zero), _BoxSums(zero, zero), kept is not None, {})

    def single_bounds(self, confidence: float, below: int) -> tuple[Ints, Ints, Ints]:
        """Return which single-node boxes were met last below a level, and their bounds."""
        single = np.flatnonzero(self._boxes.single & (self.last_level > below))
        lower, upper = np.zeros(len(single), np.int64), np.zeros(len(single), np.int64)
        for index in np.unique(self.last_level[single]).tolist():
            rows = np.flatnonzero(self.last_level[single] == index)
            node, found = self.last_node[single[rows]], self._seen.intervals(confidence)[index]
            there = self._boxes.settled[single[rows]] == index
            lower[rows] = np.where(there, found.lower[node], 0)
            upper[rows] = np.where(there, found.upper[node], found.absent[node])
        return single, lower, upper

    def _descend(self, index: int) -> None:
        tree, boxes, above, group_above = self._seen.tree, self._boxes, self._front, self._group
        seen, law = self._seen.evidence.levels[index - 1], self._seen.evidence.laws[index]
        parent = tree.parents(index)
        group, met = boxes.meet(index, tree.at(index).nodes)
        candidates = self._candidates(index)
        measured = _sums(above.group, candidates, group_above)
        only = seen.measured == NOTHING
        own = ~only & (met >= 0)
        retained = _part(met[own], seen.measured[own], group)
        slots = self._seen.measurements.levels[index - 1]
        if slots is not None:
            _, slot_group = boxes.meet(index, slots.nodes)
            value = _sums(slot_group, slots.value, group) - retained.value
        else:
            value = _at_most(seen, candidates, above.group, group_above, parent[own], met[own], group)
        self._front = _Front(
            met, np.where(only, above.value[parent], seen.measured), np.where(only, above.level[parent], index)
        )
        self._group = group
        going_on = _by_level(self._front, met >= 0, group)
        ending: dict[int, _BoxSums] = {}
        if tree.left is not None:
            ending = _by_level(above, (above.group >= 0) & tree.denied(index), group_above)
        dropped = _BoxSums(measured - retained.number, value)
        self.met.append(_Met(law, measured, retained, dropped, slots is not None, going_on, ending))
        self._note_last(index, met)

    def _candidates(self, index: int) -> Ints:
        """Return how many measured children of each released node above a box can meet: by attribute one, or all."""
        level, above = self._seen.tree.spine.levels[index - 1], self._seen.tree.at(index - 1).nodes
        depths = self._seen.tree.spine.depths(index - 1)
        return np.where(level.fanout(above) > 1, self._boxes.candidates(level, above, depths), 0)

    def _note_last(self, index: int, met: Ints) -> None:
        """Note the released node that a box is below, for boxes that are below a single one."""
        node = np.full(int(self._group.max(initial=0)) + 1, -1)
        there = np.flatnonzero(met >= 0)
        node[met[there]] = there
        found = (node[self._group] >= 0) & (self._boxes.settled >= index)
        self.last_node[found], self.last_level[found] = node[self._group][found], index

    def sums(self, risk: Fraction) -> tuple[Ints, Ints]:
        """Return the bounds of the boxes that are several nodes; 0 for the others."""
        lower, upper = np.zeros(len(self._boxes), np.int64), np.zeros(len(self._boxes), np.int64)
        several, settled = ~self._boxes.single, self._boxes.settled
        for index in np.unique(settled[several]).tolist():
            rows = np.flatnonzero(several & (settled == index))
            lower[rows] = self._lower(index, rows, risk / 2)
            upper[rows] = np.maximum(self._upper(index, rows, risk / 2), 0)
        return np.clip(lower, 0, upper), upper

    def _lower(self, index: int, rows: Ints, risk: Fraction) -> Ints:
        met = self.met[index]
        found = met.retained[rows]
        if met.law is None:
            return found.value
        if not met.known:
            return found.value - selected_margins(met.law, met.measured[rows], found.number, risk)
        return found.value + met.dropped.value[rows] - sum_margins(met.law, met.measured[rows], risk)

    def _upper(self, index: int, rows: Ints, risk: Fraction) -> Ints:
        above = self.met[:index]
        measured = sum(met.law is not None for met in above)
        share = (1 - OWN) * risk / max(measured, 1)
        dropped = [_bound(met, self._ended(at, index)[rows], rows, share) for at, met in enumerate(above)]
        met = self.met[index]
        inside = (met.retained + met.dropped)[rows].value
        if met.law is not None:
            inside = inside + sum_margins(met.law, met.measured[rows], OWN * risk if measured else risk)
        least = np.maximum(inside, 0)
        for bound in dropped:
            least = least + bound
        for stop, last in enumerate(above):
            stopped = np.zeros(len(rows), np.int64)
            for level in range(stop + 1):
                more = last.going_on.get(level)
                stopped += (
                    dropped[level]  # of what goes on from there nothing is left to end
                    if more is None
                    else _bound(above[level], (self._ended(level, stop) + more)[rows], rows, share)
                )
            least = np.minimum(least, stopped)
        return least

    def _ended(self, level: int, stop: int) -> _BoxSums:
        """Return the measured nodes of a level except those from which a level down to another goes on."""
        ended = self.met[level].dropped
        for met in self.met[level + 1 : stop + 1]:
            ended = ended + met.ending[level] if level in met.ending else ended
        return ended


def _bound(met: _Met, part: _BoxSums, rows: Ints, risk: Fraction) -> Ints:
    """Return the upper bound of the sum of the true counts of selected measured nodes of a level."""
    if met.law is None:
        return part.value
    margins = selected_margins(met.law, met.measured[rows], part.number, risk)
    bound: Ints = np.maximum(part.value + margins, 0)
    return bound


def _at_most(
    seen: LevelEvidence, candidates: Ints, above: Ints, group_above: Ints, parent: Ints, met: Ints, group: Ints
) -> Ints:
    """Return an upper bound of the sum of the dropped nodes' measurements: each counts as the highest beside it."""
    highest = np.where(seen.highest == NOTHING, 0, seen.highest)
    return _sums(above, candidates * highest, group_above) - _sums(met, highest[parent], group)


def _by_level(front: _Front, chosen: NDArray[np.bool_], group: Ints) -> dict[int, _BoxSums]:
    """Return some released nodes of a level, by the level at which they were measured."""
    return {
        level: _part(front.group[there], front.value[there], group)
        for level in np.unique(front.level[chosen]).tolist()
        for there in [chosen & (front.level == level)]
    }


def _part(met: Ints, value: Ints, group: Ints) -> _BoxSums:
    return _BoxSums(_sums(met, np.ones(len(met), np.int64), group), _sums(met, value, group))


def _sums(met: Ints, value: Ints, group: Ints) -> Ints:
    """Return, for every box, the sum over the nodes that its group has met."""
    found = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    there = met >= 0
    np.add.at(found, met[there], value[there])
    return found[group]
