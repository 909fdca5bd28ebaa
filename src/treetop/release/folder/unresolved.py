"""unresolved.parquet: what was left at coarser nodes because no child could be named for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from treetop.basics.sorting import first_disorder
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.evidence import Remainders
from treetop.read.counts import pack
from treetop.release.tree import spans

if TYPE_CHECKING:
    from treetop.release.release import Release

UNRESOLVED = "unresolved.parquet"


def unresolved_table(release: Release) -> pa.Table:
    """Return one row a remainder: level, the node's codes (null where not refined), count and, if on, its interval."""
    spine, left = release.spine, release.left
    if left is None:
        left = Remainders.join([], len(spine.attributes))
    codes = []
    for attribute, tree in enumerate(spine.trees):
        depth = np.array([spine.depths(level)[attribute] for level in left.level.tolist()], np.int64)
        offset = np.concatenate([[0], np.cumsum(tree.sizes)])
        every = pa.concat_arrays(tree.codes)
        place = pa.array(offset[np.maximum(depth - 1, 0)] + left.nodes[attribute], mask=depth == 0)
        codes.append(every.take(place))
    columns = dict(zip(spine.attributes, codes, strict=True)) | {"count": pa.array(left.count)}
    if release.confidence is not None:
        from treetop.release.intervals.remainders import remainder_intervals

        lower, upper = remainder_intervals(release, release.confidence)
        columns |= {"lower": pa.array(lower), "upper": pa.array(upper)}
    return pa.table({"level": pa.array(left.level)} | columns)


def read_unresolved(path: Path, spine: Spine) -> Remainders:
    """Read what `unresolved_table` wrote."""
    table = pq.read_table(path)
    level = np.asarray(table.column("level").to_numpy(), np.int32)
    count = np.asarray(table.column("count").to_numpy(), np.int64)
    nodes = np.zeros((len(spine.attributes), len(level)), np.int32)
    if len(level) and (level.min() < 0 or level.max() >= len(spine.levels) or count.min() <= 0):
        raise ReleaseError(f"{path}: a remainder is a count above zero at a level above the leaves")
    for index in np.unique(level).tolist():
        there = np.flatnonzero(level == index)
        for attribute, (name, depth) in enumerate(zip(spine.attributes, spine.depths(index), strict=True)):
            stated = table.column(name).take(pa.array(there))
            if depth == 0:
                if stated.null_count != len(there):
                    raise ReleaseError(f"{path}: {name} has a code at a level where it is not refined")
                continue
            found = pc.fill_null(pc.index_in(stated, value_set=spine.trees[attribute].codes[depth - 1]), -1)
            nodes[attribute, there] = found.to_numpy()
    if (nodes < 0).any():
        raise ReleaseError(f"{path}: a code is not in its hierarchy")
    left = Remainders(level, nodes, count)
    _refuse_disorder(left, spine, path)
    return left


def _refuse_disorder(left: Remainders, spine: Spine, path: Path) -> None:
    """Refuse remainders that stand twice, or out of order: sums over them would be wrong."""
    found = first_disorder([left.level.astype(np.uint64), *pack(spine, spans(spine, left)[0])])
    if found is not None:
        raise ReleaseError(f"{path}, row {found[0] + 2}: a node stands twice, or out of order")
