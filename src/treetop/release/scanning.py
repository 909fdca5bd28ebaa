"""Questions to a release in parts: answered from its small levels, or by reading what may matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.system import refuse_beyond_memory
from treetop.domain.spine import Spine
from treetop.release.codes import codes_at
from treetop.release.intervals.boxes import Range, condition_depths
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.parts import Leaves, Part, Parts
from treetop.release.tree import LevelNodes, spans_at

Ints = NDArray[np.int64]
Ranges = Mapping[int, Range]

_MANY = 1 << 21
"""Sums of so many rows are added up before more are read."""


def inside(nodes: NDArray[np.integer], ranges: Ranges) -> NDArray[np.bool_]:
    """Return which leaves are within ranges."""
    found = np.ones(nodes.shape[1], dtype=bool)
    for attribute, (start, stop) in ranges.items():
        found &= (nodes[attribute] >= start) & (nodes[attribute] < stop)
    return found


def leaves_within(parts: Parts, ranges: Ranges) -> Leaves:
    """Return the leaves within ranges, where there is room for them."""
    nodes, count, held = [np.empty((len(parts.spine.trees), 0), np.int32)], [np.empty(0, np.int64)], 0
    for own, number in _within(parts, ranges):
        nodes.append(own)
        count.append(number)
        held += own.nbytes + number.nbytes
        refuse_beyond_memory(held, "what was asked for", "ask for fewer codes, or for a coarser level (by)")
    return np.concatenate(nodes, axis=1), np.concatenate(count)


def sum_within(parts: Parts, ranges: Ranges) -> int:
    """Return the sum of the leaves within ranges."""
    if any(start >= stop for start, stop in ranges.values()):
        return 0
    if (top := _in_top(parts, ranges, condition_depths(parts.spine, ranges))) is not None:
        return int(top[1].sum())
    whole, some = parts.groups_within(ranges)
    return whole + sum(int(count[inside(nodes, ranges)].sum()) for nodes, count in some)


def summed_within(parts: Parts, ranges: Ranges, depths: Mapping[int, int]) -> tuple[NDArray[np.integer], Ints]:
    """Return sums of leaves within ranges, by the nodes of some attributes at a depth, and a leaf of each of them.

    Such a row may stand several times, with what is to be added up.
    """
    spine = parts.spine
    if any(start >= stop for start, stop in ranges.values()):
        return np.empty((len(spine.trees), 0), np.int64), np.empty(0, np.int64)
    needed = list(condition_depths(spine, ranges))
    for attribute, depth in depths.items():
        needed[attribute] = max(needed[attribute], depth + 1)
    if (top := _in_top(parts, ranges, needed)) is not None:
        return top
    found: list[Leaves] = []
    for nodes, count in _within(parts, ranges):
        found.append(_summed(spine, nodes, count, depths))
        if sum(len(one) for _, one in found) > _MANY:
            found = [_summed(spine, *_joined(found), depths)]
    return _joined(found) if found else (np.empty((len(spine.trees), 0), np.int64), np.empty(0, np.int64))


def _joined(found: list[Leaves]) -> Leaves:
    return np.concatenate([nodes for nodes, _ in found], axis=1), np.concatenate([count for _, count in found])


def _summed(spine: Spine, nodes: NDArray[np.int32], count: Ints, depths: Mapping[int, int]) -> Leaves:
    """Add up the rows that some levels do not tell apart."""
    key = np.zeros(len(count), np.int64)
    for attribute, depth in depths.items():
        own = spine.trees[attribute].ancestors(depth)[nodes[attribute]]
        _, key = np.unique(key * spine.trees[attribute].sizes[depth] + own, return_inverse=True)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), np.int64)
    np.add.at(sums, which, count)
    return nodes[:, first], sums


def _in_top(parts: Parts, ranges: Ranges, depths: list[int] | tuple[int, ...]) -> tuple[Ints, Ints] | None:
    """Return a leaf and the count of the nodes of a small level that lie within ranges; None where none tells."""
    spine, top = parts.spine, parts.top
    levels = (index for index in range(top.level + 1) if all(map(int.__ge__, spine.depths(index), depths)))
    if (index := next(levels, None)) is None:
        return None
    found = top.at(index)
    leaf = spans_at(spine, index, found.nodes)[0]
    there = inside(leaf, ranges)
    return leaf[:, there], found.count[there]


def _within(parts: Parts, ranges: Ranges) -> Iterator[Leaves]:
    for nodes, count in parts.groups_meeting(ranges):
        there = inside(nodes, ranges)
        yield (nodes, count) if there.all() else (nodes[:, there], count[there])


def table_of_parts(parts: Parts, index: int, confidence: float | None) -> pa.Table:
    """Return the nodes of a level as a table, where there is room for it."""
    if index <= parts.top.level:
        bounds = None if confidence is None else parts.measured.intervals(confidence)[index]
        return level_rows(parts.spine, index, parts.top.at(index), bounds)
    depths = zip(parts.spine.trees, parts.spine.depths(index), strict=True)
    width = 24 + sum(_width(tree.codes[depth - 1]) for tree, depth in depths if depth)
    remedy = "ask for some codes (where), for a coarser level, or row by row (batches)"
    refuse_beyond_memory(2 * parts.leaves * width, "a table of all leaves", remedy)
    return pa.concat_tables(part_rows(part, index, confidence) for part in parts).combine_chunks()


def _width(codes: pa.Array) -> int:
    return 4 + int(codes.nbytes) // max(len(codes), 1)


def part_rows(part: Part, index: int, confidence: float | None, *, numbered: bool = False) -> pa.Table:
    """Return the nodes of a part at a level below the top."""
    bounds = None if confidence is None else part.measured.intervals(confidence)[index]
    return level_rows(part.tree.spine, index, part.tree.at(index), bounds, numbered=numbered)


def level_rows(
    spine: Spine, index: int, found: LevelNodes, bounds: LevelIntervals | None, *, numbered: bool = False
) -> pa.Table:
    """Return nodes of a level as a table: codes, count and, if there are any, bounds.

    If `numbered`, as nodes.parquet has them: with the level first, and null where an attribute is not refined yet.
    """
    columns = codes_at(spine, index, found.nodes)
    if numbered:
        level, blank = pa.array(np.full(len(found), index, np.int32)), pa.nulls(len(found), pa.string())
        columns = {"level": level} | {name: columns.get(name, blank) for name in spine.attributes}
    columns["count"] = pa.array(found.count)
    if bounds is not None:
        columns |= {"lower": pa.array(bounds.lower), "upper": pa.array(bounds.upper)}
    return pa.table(columns)
