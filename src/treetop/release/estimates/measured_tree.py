"""The measured tree: which node every measurement belongs under, from the measurements alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.noise import Law
from treetop.release.estimates.least_squares import LEAST_VARIANCE, MeasuredLevel
from treetop.release.measurements import LevelMeasurements, Measurements

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """The nodes of one level, in spine order: those measured, and only children on the way to others."""

    nodes: Nodes
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    parent: Ints
    """Which node of the level above each belongs to."""
    value: Ints
    """What was measured; 0 where nothing was."""
    measured: NDArray[np.bool_]
    """Whether it was measured."""

    def __len__(self) -> int:
        return len(self.value)


def measured_tree(measurements: Measurements, total: int) -> list[TreeLevel]:
    """Return the levels of the tree from the root down; `total` is what was measured of it, or the public one."""
    spine = measurements.spine
    if not measurements.complete:
        raise ReleaseError("not every measurement was kept: release with keep_measurements (--keep-measurements)")
    kept = [level for level in measurements.levels if level is not None]
    on_the_way = [_parents(spine, index, seen) for index, seen in enumerate(kept, start=1)]
    root = np.zeros((len(spine.attributes), 1), np.int32)
    tree = [TreeLevel(root, np.zeros(1, np.int64), np.array([total]), np.array([True]))]
    # Where the ancestors of what is still to come stand in the level that was made last.
    found = [np.zeros(nodes.shape[1], np.int64) for nodes in on_the_way]
    for index, (level, seen) in enumerate(zip(spine.levels, kept, strict=True)):
        later = on_the_way[index + 1 :]
        here = [_ancestors(spine, level.index, index + 1 + step, nodes) for step, nodes in enumerate(later)]
        starts = _changes(_ancestors(spine, index, index + 1, seen.nodes))
        parent = found[index][np.cumsum(starts) - 1]
        width = spine.trees[level.attribute].sizes[level.depth]
        keys = [parent * width + seen.nodes[level.attribute]]
        keys += [found[index + 1 + i] * width + nodes[level.attribute] for i, nodes in enumerate(here)]
        distinct, first = np.unique(np.concatenate(keys), return_index=True)
        nodes = np.concatenate([seen.nodes, *here], axis=1)[:, first]
        value = np.concatenate([seen.value, np.zeros(len(first), np.int64)])
        measured = first < len(seen)
        tree.append(
            TreeLevel(nodes, distinct // width, np.where(measured, value[np.minimum(first, len(seen))], 0), measured)
        )
        for i, key in enumerate(keys[1:]):
            found[index + 1 + i] = np.searchsorted(distinct, key)
    return tree


def as_measured(tree: list[TreeLevel], laws: tuple[Law | None, ...]) -> list[MeasuredLevel]:
    """Return the levels with the variances of their measurements; a public total is exact."""
    levels: list[MeasuredLevel] = []
    for level, law in zip(tree, laws, strict=True):
        exact = 0.0 if len(levels) == 0 else np.inf
        own = exact if law is None else max(law.standard_deviation**2, LEAST_VARIANCE)
        levels.append(
            MeasuredLevel(level.parent, level.value.astype(np.float64), np.where(level.measured, own, np.inf))
        )
    return levels


def _parents(spine: Spine, index: int, seen: LevelMeasurements) -> Nodes:
    """Return the distinct nodes above the measurements of a level, as they are at the level above."""
    above = _ancestors(spine, index - 1, index, seen.nodes)
    return above[:, _changes(above)]


def _changes(nodes: Nodes) -> NDArray[np.bool_]:
    starts = np.ones(nodes.shape[1], dtype=bool)
    starts[1:] = (nodes[:, 1:] != nodes[:, :-1]).any(axis=0)
    return starts


def _ancestors(spine: Spine, coarse: int, fine: int, nodes: Nodes) -> Nodes:
    """Return nodes of one level as they are at a coarser one."""
    above = nodes.copy()
    pairs = zip(spine.depths(coarse), spine.depths(fine), strict=True)
    for attribute, (depth, finer) in enumerate(pairs):
        if depth == 0:
            above[attribute] = 0
        elif depth < finer:
            above[attribute] = spine.trees[attribute].ancestors(depth - 1, finer - 1)[nodes[attribute]]
    return above
