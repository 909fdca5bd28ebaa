"""Estimates of every measured node, released or not, beside the released counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.domain.level import Level
from treetop.domain.margin import title_of
from treetop.domain.unit import TOTAL
from treetop.errors import QueryError
from treetop.release.codes import codes_at
from treetop.release.contents import Contents
from treetop.release.estimates.again import all_measurements
from treetop.release.estimates.joined import joined_estimates
from treetop.release.estimates.measured_tree import TreeLevel, measured_tree
from treetop.release.margins import codes_of
from treetop.release.tree import ReleasedTree
from treetop.repair.least_squares import LevelEstimates

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
    counts: str
    """What the level counts."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def estimates_table(release: Contents, index: int) -> pa.Table:
    """Return the estimates of a level by its position, with standard deviations and released counts."""
    level = next(level for at, level in enumerate(estimated_levels(release)) if at == index)
    numbers = {"estimate": level.value, "sd": np.sqrt(level.variance), "count": level.released}
    return pa.table(codes_at(release.spine, index, level.nodes) | numbers)


def margin_estimates_table(release: Contents, name: str) -> pa.Table:
    """Return the estimates of a margin by the name of its part, such as "margin origin.state"."""
    names = [table.margin.part for table in release.margins]
    if name not in names:
        raise QueryError(
            f"there is no {name!r}{nearest(name, names)}; the margins are {', '.join(names)}"
            if names
            else "this release has no margins"
        )
    table, own = release.margins[names.index(name)], _joined(release)[2][names.index(name)]
    numbers = {"estimate": own.value, "sd": np.sqrt(own.variance), "count": table.count}
    return pa.table(dict(reversed(codes_of(release.spine, table.margin, np.arange(len(own.value))).items())) | numbers)


def level_differences(release: Contents) -> list[LevelDifference]:
    """Return how estimates differ from released counts, from the total down and then margin by margin."""
    spine, joined = release.spine, _joined(release)
    names = [(TOTAL, TOTAL), *((level.name, title_of(spine, spine.depths(level.index))) for level in spine.levels)]
    found = []
    for index, (told, level) in enumerate(zip(names, _estimated_levels(release, joined), strict=True)):
        found.append(_difference(*told, level, level.released, release.tree.size(index)))
    for table, own in zip(release.margins, joined[2], strict=True):
        told = table.margin.part, title_of(spine, table.margin.depths)
        found.append(_difference(*told, own, table.count, int(np.count_nonzero(table.count))))
    return found


def _difference(name: str, counts: str, level: LevelEstimates, count: Ints, released: int) -> LevelDifference:
    size = len(level.value)
    sd = float(np.median(np.sqrt(level.variance))) if size else 0.0
    difference = float(np.abs(level.value - count).mean()) if size else 0.0
    return LevelDifference(name, size, released, sd, difference, counts)


_Joined = tuple[list[TreeLevel], list[LevelEstimates], list[LevelEstimates]]
"""The measured tree, the estimates of its levels, and those of the margins."""


def _joined(release: Contents) -> _Joined:
    tree = measured_tree(all_measurements(release), release.measured.root)
    levels, margins = joined_estimates(release.spine, tree, release.margins)
    return tree, levels, [_clipped(own, table.known) for own, table in zip(margins, release.margins, strict=True)]


def estimated_levels(release: Contents) -> Iterator[EstimatedNodes]:
    """Yield the estimates of the total and of every level below it."""
    yield from _estimated_levels(release, _joined(release))


def _estimated_levels(release: Contents, joined: _Joined) -> Iterator[EstimatedNodes]:
    released = release.tree
    tree, found, _ = joined
    root = np.zeros(1, np.int64) if len(released.at(0)) else np.full(1, -1)
    above = _estimated(released, 0, found[0], tree[0].nodes, root)
    yield _within_facts(release, 0, above)
    place = np.zeros(1, np.int64)
    for level, measured, estimates in zip(release.spine.levels, tree[1:], found[1:], strict=True):
        above, place = _below(released, level, above, place[measured.parent], measured, estimates)
        yield _within_facts(release, level.index, above)


def _within_facts(release: Contents, index: int, level: EstimatedNodes) -> EstimatedNodes:
    """Return estimates without what facts rule out. Each comes nearer to a truth that keeps them, or stays."""
    if release.facts is None:
        return level
    known = release.facts.around(release.spine.depths(index), level.nodes)
    own = _clipped(level, known)
    return replace(level, value=own.value, variance=own.variance)


def _clipped(level: LevelEstimates, known: tuple[Ints, Ints] | None) -> LevelEstimates:
    """Return estimates within bounds, and those without doubt that have only one number left."""
    if known is None:
        return level
    lower, upper = known
    return LevelEstimates(np.clip(level.value, lower, upper), np.where(lower == upper, 0.0, level.variance))


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
