"""unresolved.parquet: what was left at coarser nodes because no child could be named for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from treetop._util.arrays import first_disorder
from treetop.counts.counts import pack
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.measure import Remainders
from treetop.release.codes import nodes_at
from treetop.release.contents import Contents
from treetop.release.intervals.remainders import remainder_intervals
from treetop.release.stored import read_table, whole_numbers
from treetop.release.tree import spans

UNRESOLVED = "unresolved.parquet"


def unresolved_table(release: Contents) -> pa.Table:
    """Return one row per remainder: level, the node's codes (null where not refined), count and, if on, interval."""
    spine, left = release.spine, release.left
    if left is None:
        left = Remainders.join([], len(spine.attributes))
    columns = {"level": pa.array(left.level)}
    for attribute, (name, tree) in enumerate(zip(spine.attributes, spine.trees, strict=True)):
        depth = np.array([spine.depths(level)[attribute] for level in left.level.tolist()], np.int64)
        offset = np.concatenate([[0], np.cumsum(tree.sizes)])
        place = pa.array(offset[np.maximum(depth - 1, 0)] + left.nodes[attribute], mask=depth == 0)
        columns[name] = pa.concat_arrays(tree.codes).take(place)
    columns["count"] = pa.array(left.count)
    if release.confidence is not None:
        lower, upper = remainder_intervals(release.measured, release.confidence)
        columns |= {"lower": pa.array(lower), "upper": pa.array(upper)}
    return pa.table(columns)


def read_unresolved(path: Path, spine: Spine) -> Remainders:
    """Read what `unresolved_table` wrote; refuse remainders that stand twice or out of order: sums would be wrong."""
    table = read_table(path)
    level = whole_numbers(table, "level").astype(np.int32)
    count = whole_numbers(table, "count")
    nodes = np.zeros((len(spine.attributes), len(level)), np.int32)
    if len(level) and (level.min() < 0 or level.max() >= len(spine.levels) or count.min() <= 0):
        raise ReleaseError(f"{path}: a remainder is a count above zero at a level above the leaves")
    for index in np.unique(level).tolist():
        there = np.flatnonzero(level == index)
        stated = table.take(pa.array(there))
        for name, depth in zip(spine.attributes, spine.depths(index), strict=True):
            if depth == 0 and stated.column(name).null_count != len(there):
                raise ReleaseError(f"{path}: {name} has a code at a level where it is not refined")
        nodes[:, there] = nodes_at(spine, index, stated)
    if (nodes < 0).any():
        raise ReleaseError(f"{path}: a code is not in its hierarchy")
    left = Remainders(level, nodes, count)
    found = first_disorder([level.astype(np.uint64), *pack(spine, spans(spine, left)[0])])
    if found is not None:
        raise ReleaseError(f"{path}, row {found[0] + 2}: a node stands twice, or out of order")
    return left
