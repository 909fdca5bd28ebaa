"""Estimates of every measured node, released or not, beside the released counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Level
from treetop.domain.unit import TOTAL
from treetop.release.estimates.again import all_measurements, root_of
from treetop.release.estimates.least_squares import LevelEstimates, least_squares
from treetop.release.estimates.measured_tree import TreeLevel, as_measured, measured_tree

if TYPE_CHECKING:
    import pyarrow as pa

    from treetop.release.release import Release

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EstimatedLevel:
    """The measured nodes of one level, and their only children down to the leaves, in spine order."""

    index: int
    """The position in the spine; the total is 0."""
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    value: Reals = field(repr=False)
    """The least-squares estimates."""
    variance: Reals = field(repr=False)
    """Their variances."""
    row: Ints = field(repr=False)
    """The row of each among the released nodes of the level; −1 where it is not released."""

    def __len__(self) -> int:
        return len(self.value)


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


def estimates_table(release: Release, index: int) -> pa.Table:
    """Return the estimates of a level by its position, with standard deviations and released counts."""
    import pyarrow as pa

    level = next(level for level in estimated_levels(release) if level.index == index)
    columns: dict[str, pa.Array] = {}
    pairs = zip(release.spine.attributes, release.spine.depths(index), strict=True)
    for attribute, (name, depth) in enumerate(pairs):
        if depth > 0:
            codes = release.spine.trees[attribute].codes[depth - 1]
            columns[name] = codes.take(pa.array(level.nodes[attribute]))
    columns["estimate"] = pa.array(level.value)
    columns["sd"] = pa.array(np.sqrt(level.variance))
    columns["count"] = pa.array(_counts(release, level))
    return pa.table(columns)


def level_differences(release: Release) -> list[LevelDifference]:
    """Return, from the total down, how estimates differ from released counts."""
    found = []
    for level in estimated_levels(release):
        name = TOTAL if level.index == 0 else release.spine.levels[level.index - 1].name
        sd = float(np.median(np.sqrt(level.variance))) if len(level) else 0.0
        gaps = np.abs(level.value - _counts(release, level))
        difference = float(gaps.mean()) if len(level) else 0.0
        found.append(LevelDifference(name, len(level), release.nodes_above_zero(level.index), sd, difference))
    return found


def estimated_levels(release: Release) -> Iterator[EstimatedLevel]:
    """Yield the estimates of the total and of every level below it."""
    measurements = all_measurements(release)
    tree = measured_tree(measurements, root_of(release, measurements))
    found = least_squares(as_measured(tree, measurements.laws))
    root = np.zeros(1, np.int64) if release.nodes_above_zero(0) else np.full(1, -1)
    above = EstimatedLevel(0, tree[0].nodes, found[0].value, found[0].variance, root)
    yield above
    place = np.zeros(1, np.int64)
    for level, measured, estimates in zip(release.spine.levels, tree[1:], found[1:], strict=True):
        above, place = _below(release, level, above, place[measured.parent], measured, estimates)
        yield above


def _below(
    release: Release, level: Level, above: EstimatedLevel, parent: Ints, measured: TreeLevel, found: LevelEstimates
) -> tuple[EstimatedLevel, Ints]:
    """Return the next level, and where its measured nodes stand in it: an only child has all that its parent has."""
    width = release.spine.trees[level.attribute].sizes[level.depth]
    node = above.nodes[level.attribute]
    only = np.flatnonzero(level.first[node + 1] - level.first[node] == 1)
    own = parent * width + measured.nodes[level.attribute]
    key, first = np.unique(np.concatenate([own, only * width + level.first[node[only]]]), return_index=True)
    parents = key // width
    nodes = above.nodes[:, parents]
    nodes[level.attribute] = key % width
    value = np.concatenate([found.value, above.value[only]])[first]
    variance = np.concatenate([found.variance, above.variance[only]])[first]
    row = release.tree.children(level.index, above.row[parents], nodes[level.attribute])
    return EstimatedLevel(level.index, nodes, value, variance, row), np.searchsorted(key, own)


def _counts(release: Release, level: EstimatedLevel) -> Ints:
    """Return the released counts, 0 where a node is not released."""
    count = np.append(release.tree.at(level.index).count, 0)
    found: Ints = count[level.row]
    return found
