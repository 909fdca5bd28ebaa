"""The measured tree: which node every measurement belongs under, from the measurements alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.noise import Law
from treetop.release.measurements import Measurements
from treetop.release.tree import ancestors, changes
from treetop.repair.least_squares import LEAST_VARIANCE, MeasuredLevel

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TreeLevel(MeasuredLevel):
    """The nodes of one level, in spine order: those measured, and only children on the way to others."""

    value: Ints
    """What was measured; 0 where nothing was."""
    nodes: NDArray[np.int32]
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    measured: NDArray[np.bool_]
    """Whether it was measured."""


def measured_tree(measurements: Measurements, total: int) -> list[TreeLevel]:
    """Return the levels of the tree from the root down; `total` is what was measured of it, or the public one."""
    spine, laws = measurements.spine, measurements.laws
    if not measurements.complete:
        raise ReleaseError("not every measurement was kept: release with keep_measurements (--keep-measurements)")
    levels = [level for level in measurements.levels if level is not None]
    above = [ancestors(spine, index, index + 1, seen.nodes) for index, seen in enumerate(levels)]
    on_the_way = [nodes[:, changes(nodes)] for nodes in above]
    root = np.zeros((len(spine.attributes), 1), np.int32)
    known = np.array([0.0 if laws[0] is None else _variance(laws[0])])  # a public total is exact
    tree = [TreeLevel(np.zeros(1, np.int64), np.array([total]), known, root, np.array([True]))]
    # Where the ancestors of what is still to come stand in the level that was made last.
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
