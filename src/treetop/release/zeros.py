"""Zeros: the public cells of a table that are not listed, each with the most that it may hide.

A zero is released like any other count, by being listed nowhere. Where there are few enough, a reader can be shown them
all; where there are more, one bound serves for every one of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from treetop.domain.table_cells import CellNumbering, Depths, below
from treetop.release.intervals.boxes import Boxes
from treetop.release.selection import Selection

Ints = NDArray[np.int64]


def number_of_cells(selection: Selection, depths: Depths) -> int:
    """Return how many cells a table has that tells so many levels of every attribute apart; impossible ones count."""
    trees = selection.spine.trees
    return math.prod(tree.sizes[depth - 1] for tree, depth in zip(trees, depths, strict=True) if depth)


def zeros(selection: Selection, depths: Depths, listed: Ints) -> tuple[Ints, Ints | None]:
    """Return the nodes of the cells that are not listed (a row an attribute), and the most of each.

    All cells are looked at: ask for `number_of_cells` first. What facts rule out is no released zero, and
    is left out. A release without intervals has no bounds.
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
    """Return a bound that each cell of a level of the spine keeps which is not listed; None where none is known."""
    if selection.confidence is None or selection.total == 0:
        return None
    if selection.whole.all_measured is not None:
        return None  # a zero may be a node that was measured
    levels = selection.whole.shards.intervals(selection.confidence)[:index]
    return int(max(level.absent.max(initial=0) for level in levels))
