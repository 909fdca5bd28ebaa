"""Zeros: the public cells of a table that are not listed, each with its upper bound.

A zero is released like any other count, by being listed nowhere. If there are few, show them all; if there are more,
one bound serves for every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from treetop._util.dtypes import Floats, Ints
from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.domain.table_cells import CellNumbering, Depths, below
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.release import Release
from treetop.release.selection import Selection
from treetop.release.tree import LevelNodes


def number_of_cells(selection: Selection, depths: Depths) -> int:
    """Return the number of cells of a table given by its depths; impossible cells count."""
    trees = selection.spine.trees
    return math.prod(tree.sizes[depth - 1] for tree, depth in zip(trees, depths, strict=True) if depth)


def zeros(selection: Selection, depths: Depths, listed: Ints) -> tuple[Ints, Ints | None]:
    """Return the nodes of the cells that are not listed (a row per attribute), and the upper bound of each.

    All cells are looked at: ask for `number_of_cells` first. Cells that facts rule out are no released zeros, and are
    left out. A release without intervals has no bounds.
    """
    spine, facts = selection.spine, selection.whole.facts
    table = CellNumbering(spine, depths)
    numbers = np.setdiff1d(np.arange(table.number), table.numbers(listed, depths))
    nodes = table.nodes(numbers)
    chosen = np.ones(len(numbers), np.bool_)
    if facts is not None:
        chosen &= facts.possible.allows(depths, nodes)
    leaf = np.zeros_like(nodes)
    for attribute, (tree, depth) in enumerate(zip(spine.trees, depths, strict=True)):
        if depth == 0:
            continue
        start, stop = selection.ranges.get(attribute, (0, tree.sizes[-1]))
        first, last = below(tree, depth, len(tree.levels), nodes[attribute])
        chosen &= (first < stop) & (last > start)
        leaf[attribute] = np.maximum(first, start)
    nodes, leaf = nodes[:, chosen], leaf[:, chosen]
    if selection.confidence is None:
        return nodes, None
    parts = [one for level in spine.levels for one in level.parts if depths[one.attribute] == one.depth + 1]
    boxes = Boxes.of_rows(spine, selection.ranges, parts, leaf)
    return nodes, selection.intervals_of(boxes)[1]


def most_of_a_zero(selection: Selection, index: int) -> int | None:
    """Return an upper bound of every cell of a spine level that is not listed; None if none is known."""
    if selection.confidence is None or selection.total == 0:
        return None
    if selection.whole.all_measured is not None:
        return None  # a zero may be a node that was measured
    levels = selection.whole.shards.intervals(selection.confidence)[:index]
    return int(max(level.absent.max(initial=0) for level in levels))


@dataclass(frozen=True, eq=False)
class LevelSums:
    """The sums of one level that hold for any truth."""

    fanouts: Ints = field(repr=False)
    """Children of each released node of the level above; none for the root."""
    measured: int
    """Measured nodes: all children of released nodes that have several."""
    measured_bounds: float
    """Sum of the upper bounds of those measured and not released."""
    bounds: float
    """Sum of the upper bounds of all that are not released."""


def level_sums(release: Release, intervals: Sequence[LevelIntervals]) -> list[LevelSums]:
    """Return the sums of the total and of every level.

    A public node that is not released has the bound of the deepest released node v above it. So the sum over all of
    them counts, for every v, its descendants less those of its released children; by level, that is a sum over released
    nodes of descendants times the bound of the node less that of its parent.
    """
    spine, tree, facts = release.spine, release.tree, release.facts
    found = [LevelSums(np.zeros(0, np.int64), int(release.measured.evidence.laws[0] is not None), 0.0, 0.0)]
    nodes = tree.at(0)
    gains: list[tuple[LevelNodes, Floats]] = [(nodes, intervals[0].absent.astype(np.float64))]
    for level, above, own in zip(spine.levels, intervals[:-1], intervals[1:], strict=True):
        fanouts = tree.fanout(level.index)
        several = fanouts > 1
        nodes, parent = tree.at(level.index), tree.parents(level.index)
        inherited = above.absent[parent].astype(np.float64)
        bounds = sum(
            float(_descendants(spine, facts, at, level.index, one) @ gain) for at, (one, gain) in enumerate(gains)
        )
        shared = float(fanouts[several].astype(np.float64) @ above.absent[several].astype(np.float64))
        measured, of_measured = int(fanouts[several].sum()), shared - float(inherited[several[parent]].sum())
        found.append(LevelSums(fanouts, measured, of_measured, bounds - float(inherited.sum())))
        gains.append((nodes, own.absent - inherited))
    return found


def _descendants(spine: Spine, facts: PublicFacts | None, at: int, index: int, nodes: LevelNodes) -> Floats:
    """Return how many public nodes of a level are below each released node of one above it."""
    if facts is not None and facts.possible.rules:
        coarse, fine = CellNumbering(spine, spine.depths(at)), CellNumbering(spine, spine.depths(index))
        cells = coarse.numbers(nodes.nodes, coarse.depths)
        return facts.possible.number(fine, coarse.depths, cells).astype(np.float64)
    number = np.ones(len(nodes))
    for attribute, (start, stop) in enumerate(zip(spine.depths(at), spine.depths(index), strict=True)):
        if start == stop:
            continue
        first = spine.trees[attribute].first
        edge = np.arange(len(first[start]))
        for depth in range(start, stop):
            edge = first[depth][edge]
        number *= np.diff(edge)[nodes.nodes[attribute]]
    return number
