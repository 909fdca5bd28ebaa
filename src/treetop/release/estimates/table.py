"""Estimates of every measured node, released or not, beside the released counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.domain.level import Level
from treetop.domain.unit import TOTAL
from treetop.release.codes import codes_at
from treetop.release.contents import Contents
from treetop.release.estimates.again import all_measurements
from treetop.release.estimates.measured_tree import TreeLevel, measured_tree
from treetop.release.tree import ReleasedTree
from treetop.repair.least_squares import LevelEstimates, least_squares

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EstimatedNodes(LevelEstimates):
    """The measured nodes of one level, and their only children down to the leaves, in spine order."""

    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    row: Ints = field(repr=False)
    """The row of each among the released nodes of the level; −1 where it is not released."""
    released: Ints = field(repr=False)
    """The released counts, 0 where a node is not released."""


@dataclass(frozen=True)
class LevelDifference:
    """How the estimates of one level differ from what was released."""

    name: str
    """The level."""
    nodes: int
    """How many nodes have an estimate."""
    released: int
    """How many are released above zero."""
    sd: float
    """The median of the standard deviations of the estimates."""
    difference: float
    """The mean of |estimate − released count|."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def estimates_table(release: Contents, index: int) -> pa.Table:
    """Return the estimates of a level by its position, with standard deviations and released counts."""
    level = next(level for at, level in enumerate(estimated_levels(release)) if at == index)
    numbers = {"estimate": level.value, "sd": np.sqrt(level.variance), "count": level.released}
    return pa.table(codes_at(release.spine, index, level.nodes) | numbers)


def level_differences(release: Contents) -> list[LevelDifference]:
    """Return, from the total down, how estimates differ from released counts."""
    names = [TOTAL, *(level.name for level in release.spine.levels)]
    found = []
    for index, (name, level) in enumerate(zip(names, estimated_levels(release), strict=True)):
        size = len(level.value)
        sd = float(np.median(np.sqrt(level.variance))) if size else 0.0
        difference = float(np.abs(level.value - level.released).mean()) if size else 0.0
        found.append(LevelDifference(name, size, len(release.tree.at(index)), sd, difference))
    return found


def estimated_levels(release: Contents) -> Iterator[EstimatedNodes]:
    """Yield the estimates of the total and of every level below it."""
    released = release.tree
    tree = measured_tree(all_measurements(release), release.measured.root)
    found = least_squares(tree)
    root = np.zeros(1, np.int64) if len(released.at(0)) else np.full(1, -1)
    above = _estimated(released, 0, found[0], tree[0].nodes, root)
    yield above
    place = np.zeros(1, np.int64)
    for level, measured, estimates in zip(release.spine.levels, tree[1:], found[1:], strict=True):
        above, place = _below(released, level, above, place[measured.parent], measured, estimates)
        yield above


def _below(
    released: ReleasedTree, level: Level, above: EstimatedNodes, parent: Ints, measured: TreeLevel, own: LevelEstimates
) -> tuple[EstimatedNodes, Ints]:
    """Return the next level, and where its measured nodes stand in it: an only child has all that its parent has."""
    only = np.flatnonzero(level.fanout(above.nodes) == 1)
    there = level.keys(parent, measured.nodes)
    key, first = np.unique(np.concatenate([there, only * level.widest]), return_index=True)
    parents, rank = np.divmod(key, level.widest)
    nodes = above.nodes[:, parents]
    level.go_down(nodes, rank)
    value = np.concatenate([own.value, above.value[only]])[first]
    variance = np.concatenate([own.variance, above.variance[only]])[first]
    row = released.children(level.index, above.row[parents], nodes)
    here = _estimated(released, level.index, LevelEstimates(value, variance), nodes, row)
    return here, np.searchsorted(key, there)


def _estimated(
    released: ReleasedTree, index: int, own: LevelEstimates, nodes: NDArray[np.int32], row: Ints
) -> EstimatedNodes:
    count: Ints = np.append(released.at(index).count, 0)[row]
    return EstimatedNodes(own.value, own.variance, nodes, row, count)
