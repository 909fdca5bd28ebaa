"""Boxes: the cells of queries. Of every attribute a box has all leaves, or those under one node of its hierarchy.

Boxes of one table differ in which nodes these are, not in how deep they stand. At every level of the spine a box meets
some nodes: those that share, in every attribute, as much of the box's node as is refined by then. A node that it meets
is partial as long as some attribute has to be refined further, and all of it lies inside from one level on, the same
for all nodes that the box meets: there the box is *settled*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import Spine
from treetop.domain.spine_level import AttributeStep, Level

Ints = NDArray[np.int64]

Range = tuple[int, int]
"""The first leaf of a node, and the one after its last."""


def narrowed(ranges: Mapping[int, Range], more: Iterable[tuple[int, int, int]]) -> dict[int, Range]:
    """Add conditions (attribute, start, stop) to ranges by attribute."""
    found = dict(ranges)
    for attribute, start, stop in more:
        earlier = found.get(attribute, (start, stop))
        found[attribute] = (max(earlier[0], start), min(earlier[1], stop))
    return found


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of a table, one a row."""

    spine: Spine
    depth: tuple[int, ...]
    """Levels of each attribute down to the box's node; 0 if it has all leaves."""
    leaf: Ints = field(repr=False)
    """For each attribute (row) and box (column), a leaf under the box's node."""
    _groups: dict[int, tuple[Ints, list[tuple[int, Ints, int, Ints]]]] = field(
        default_factory=dict, init=False, repr=False
    )

    @staticmethod
    def one(spine: Spine, ranges: Mapping[int, Range]) -> Boxes:
        """Return the box of some conditions."""
        return Boxes.of_rows(spine, ranges, [], np.zeros((len(spine.trees), 1), np.int64))

    @staticmethod
    def of_rows(spine: Spine, ranges: Mapping[int, Range], parts: Sequence[AttributeStep], leaf: Ints) -> Boxes:
        """Return the boxes of a table by levels of some attributes under conditions, from a leaf of each row."""
        depths = list(condition_depths(spine, ranges))
        inside = leaf.copy()
        for attribute in range(len(depths)):
            inside[attribute] = ranges.get(attribute, (0, 0))[0]
        for part in parts:
            inside[part.attribute] = leaf[part.attribute]
            depths[part.attribute] = max(depths[part.attribute], part.depth + 1)
        return Boxes(spine, tuple(depths), inside)

    def __len__(self) -> int:
        return len(self.leaf[0])

    @cached_property
    def _widths(self) -> list[list[Ints]]:
        """For every attribute and number of its levels, how many leaves the node around each box's leaf has."""
        widths = []
        for tree, leaf in zip(self.spine.trees, self.leaf, strict=True):
            around = [np.full(len(leaf), tree.sizes[-1])]
            for depth in range(len(tree.levels)):
                ancestor = tree.ancestors(depth)
                around.append(np.bincount(ancestor)[ancestor[leaf]])
            widths.append(around)
        return widths

    @cached_property
    def settled(self) -> Ints:
        """The level from which on nodes that a box meets lie inside it; a step to an only child changes nothing."""
        settled = np.zeros(len(self), np.int64)
        met = [0] * len(self.spine.trees)
        for level in self.spine.levels:
            for attribute in (part.attribute for part in level.parts):
                met[attribute] += 1
                if met[attribute] <= self.depth[attribute]:
                    around = self._widths[attribute]
                    settled[around[met[attribute]] < around[met[attribute] - 1]] = level.index
        return settled

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Which boxes are one node of the spine."""
        single = np.ones(len(self), dtype=bool)
        for index in np.unique(self.settled).tolist():
            here = self.settled == index
            for around, depth, refined in zip(self._widths, self.depth, self.spine.depths(index), strict=True):
                single[here] &= around[max(refined, depth)][here] == around[depth][here]
        return single

    def candidates(self, level: Level, above: NDArray[np.integer], depths: Sequence[int]) -> Ints:
        """Return how many children of each node above a level a box can meet: by attribute one, or all.

        `depths` is how far the nodes above are refined.
        """
        candidates = np.ones(above.shape[1], np.int64)
        for part in level.parts:
            if self.depth[part.attribute] <= part.depth:
                candidates *= part.fanout(above)
        return candidates

    def meet(self, index: int, nodes: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return each box's group at a level, and that of each node (column): boxes meet those of their group.

        A node that no box meets has group −1.
        """
        group, told_apart = self._grouped(index)
        found = np.zeros(nodes.shape[1], np.int64)
        for attribute, ancestors, size, distinct in told_apart:
            keys = found * size + ancestors[nodes[attribute]]
            place = np.minimum(np.searchsorted(distinct, keys), len(distinct) - 1)
            found = np.where(distinct[place] == keys, place, -1)
        return group, found

    def _grouped(self, index: int) -> tuple[Ints, list[tuple[int, Ints, int, Ints]]]:
        """Return each box's group at a level, and the splits that separate groups: one attribute after the other.

        For each attribute: the part that its nodes at that level share with those of boxes, the number of such parts,
        and the groups so far with them.
        """
        if index not in self._groups:
            group = np.zeros(len(self), np.int64)
            told_apart = []
            for attribute, refined in enumerate(self.spine.depths(index)):
                shared = min(refined, self.depth[attribute])
                if shared == 0:
                    continue
                tree = self.spine.trees[attribute]
                size = tree.sizes[shared - 1]
                own = tree.ancestors(shared - 1)[self.leaf[attribute]]
                distinct, group = np.unique(group * size + own, return_inverse=True)
                told_apart.append((attribute, tree.ancestors(shared - 1, finer=refined - 1), size, distinct))
            self._groups[index] = group, told_apart
        return self._groups[index]


@dataclass(frozen=True, eq=False)
class PairBox(Boxes):
    """The unordered pairs with one end under a node and the other under a node; one box, of either order.

    One of the nodes is under the other, or is all places: else the pairs lie in one ordinary box.
    """

    ends: tuple[Range, Range] = ((0, 0), (0, 0))
    """The leaves of the smaller node, and of the larger one."""
    whole: tuple[Boxes, Boxes] = field(default=(), repr=False)  # type: ignore[assignment]
    """The boxes of both orders."""

    @staticmethod
    def of(boxes: Boxes, ranges: Mapping[int, Range]) -> Boxes:
        """Return the box of some conditions on the ends of pairs, in either order."""
        size = boxes.spine.trees[0].sizes[-1]
        one, other = (ranges.get(attribute, (0, size)) for attribute in (0, 1))
        if one == other:
            return boxes
        turned = Boxes.one(boxes.spine, {0: other, 1: one})
        if one[1] <= other[0]:
            return Boxes.one(boxes.spine, {0: one, 1: other})
        if other[1] <= one[0]:
            return turned
        small, large = sorted((one, other), key=lambda ends: ends[1] - ends[0])
        shared = min(boxes.depth)
        return PairBox(boxes.spine, (shared, shared), boxes.leaf, ends=(small, large), whole=(boxes, turned))

    @cached_property
    def settled(self) -> Ints:
        """The level from which on nodes lie inside in one order or the other."""
        return np.maximum(self.whole[0].settled, self.whole[1].settled)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """False: the pairs are a sum of nodes."""
        return np.zeros(1, dtype=bool)

    def meet(self, index: int, nodes: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return the group of the box, and that of each node: 0 if the box meets it, else −1."""
        met = [box.meet(index, nodes)[1] >= 0 for box in self.whole]
        return np.zeros(1, np.int64), np.where(met[0] | met[1], 0, -1)

    def candidates(self, level: Level, above: NDArray[np.integer], depths: Sequence[int]) -> Ints:
        """Return how many possible children of each node above a level the box can meet."""
        (part,) = level.parts
        other = 1 - part.attribute
        tree = self.spine.trees[other]
        found = np.zeros(above.shape[1], np.int64)
        start, stop = (part.first[above[part.attribute] + last] for last in (0, 1))
        for ends, beside in zip(self.ends, reversed(self.ends), strict=True):  # the smaller node counts last
            low, high = _nodes_around(self.spine.trees[part.attribute], part.depth, beside)
            there = np.ones(len(found), np.bool_)
            if depths[other]:
                first, last = _nodes_around(tree, depths[other] - 1, ends)
                there = (above[other] >= first) & (above[other] < last)
            number = level.number_between(above, np.maximum(start, low), np.minimum(stop, high))
            found = np.where(there, np.maximum(found, number), found)
        return found


def _nodes_around(tree: Hierarchy, depth: int, leaves: Range) -> Range:
    """Return the nodes of a depth that have some of the leaves, and the one after the last."""
    ancestor = tree.ancestors(depth)
    return int(ancestor[leaves[0]]), int(ancestor[leaves[1] - 1]) + 1


def condition_depths(spine: Spine, ranges: Mapping[int, Range]) -> tuple[int, ...]:
    """Return how many levels of each attribute the nodes of conditions are down."""
    depths = []
    for attribute, tree in enumerate(spine.trees):
        start, stop = ranges.get(attribute, (0, tree.sizes[-1]))
        ends = [(0, tree.sizes[-1])]
        ends += [tree.below(depth, int(tree.ancestors(depth)[start])) for depth in range(len(tree.levels))]
        depths.append(ends.index((start, stop)))
    return tuple(depths)
