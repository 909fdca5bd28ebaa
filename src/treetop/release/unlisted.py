"""Public nodes that are not released: how many there are, and their upper bounds, without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.domain.table_cells import CellNumbering
from treetop.release.contents import Contents
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.tree import LevelNodes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LevelSums:
    """What arithmetic says of one level, whatever the truth is."""

    fanouts: Ints = field(repr=False)
    """How many children each released node of the level above has; none for the root."""
    measured: int
    """How many nodes are measured: all children of released nodes that have several."""
    measured_bounds: float
    """The sum of the upper bounds of those that are measured and not released."""
    bounds: float
    """The sum of the upper bounds of all that are not released."""


def level_sums(release: Contents, intervals: Sequence[LevelIntervals]) -> list[LevelSums]:
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
        found.append(
            LevelSums(
                fanouts=fanouts,
                measured=int(fanouts[several].sum()),
                measured_bounds=shared - float(inherited[several[parent]].sum()),
                bounds=bounds - float(inherited.sum()),
            )
        )
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
