"""Estimates of every measured node, released or not, beside the released counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.dtypes import Flags, Floats, Ints
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import cells_of, depths_alone, title_of
from treetop.domain.spine import Spine
from treetop.domain.spine_level import Level
from treetop.domain.table_cells import Depths
from treetop.domain.unit import TOTAL
from treetop.errors import QueryError
from treetop.measure.margin_tables import groups_of
from treetop.release.estimates.reestimate import all_measurements
from treetop.release.margins import MarginTable, codes_of
from treetop.release.measurements import TreeLevel, measured_tree
from treetop.release.tree import ReleasedTree, codes_at, spans_at
from treetop.repair.least_squares import LevelEstimates, MeasuredLevel, least_squares

if TYPE_CHECKING:
    from treetop.release.release import Release

# Least squares over a measured tree and the margins beside it, together.


MOST_LINKS = 256
"""Most equations that tie the trees."""
_WORK = 20_000_000
"""Most nodes times equations to pass over, if that leaves any equation."""
_NOTHING = 1e-9
"""Relative to the equations' largest variance: an equation that varies less than this follows from others."""


@dataclass(frozen=True, eq=False)
class _Tree:
    """One tree of measurements, with the equations of its nodes."""

    levels: Sequence[MeasuredLevel]
    depths: Depths = ()
    """Levels of every attribute in a margin's finest nodes."""
    links: dict[int, list[tuple[Ints, Ints, float]]] = field(default_factory=dict)
    """By level: nodes, their equations, and their sign in them."""

    def link(self, level: int, node: Ints, equation: Ints, sign: float) -> None:
        self.links.setdefault(level, []).append((node, equation, sign))

    def equations(self) -> list[int]:
        """Return the equations that it stands in."""
        entries = [equation for level in self.links.values() for _, equation, _ in level]
        return np.unique(np.concatenate(entries)).tolist() if entries else []

    def gaps(self, values: Sequence[Floats], size: int) -> Floats:
        """Return C z for values of all nodes."""
        found = np.zeros(size)
        for level, entries in self.links.items():
            for node, equation, sign in entries:
                found += np.bincount(equation, sign * values[level][node], minlength=size)
        return found

    def spread(self, weights: Floats) -> list[Floats]:
        """Return ΣCᵀ times weights of the equations, for all nodes."""
        given = [np.zeros(len(level)) for level in self.levels]
        for at, entries in self.links.items():
            for node, equation, sign in entries:
                given[at] += np.bincount(node, sign * weights[equation], minlength=len(given[at]))
        for at in range(len(self.levels) - 1, 0, -1):  # an only child that was not measured is its parent
            level = self.levels[at]
            only = np.bincount(level.parent, minlength=len(given[at - 1])) == 1
            blind = ~np.isfinite(level.variance) & only[level.parent]
            given[at - 1] += np.bincount(level.parent[blind], given[at][blind], minlength=len(given[at - 1]))
            given[at][blind] = 0.0
        for at, (above, below) in enumerate(pairwise(self.levels)):  # what was not measured is its children
            blind = ~np.isfinite(above.variance)
            given[at + 1] += np.where(blind, given[at], 0.0)[below.parent]
            given[at][blind] = 0.0
        # The estimate from measurements s²·g is Σg: weighted by 1/s² they are g.
        made = [
            MeasuredLevel(level.parent, own * np.where(own == 0.0, 0.0, level.variance), level.variance)
            for level, own in zip(self.levels, given, strict=True)
        ]
        return [level.value for level in least_squares(made)]


def joined_estimates(
    spine: Spine, tree: Sequence[TreeLevel], margins: Sequence[MarginTable]
) -> tuple[list[LevelEstimates], list[LevelEstimates]]:
    """Return the estimates of every level of the measured tree, and of every margin."""
    own, beside = _Tree(tree), _margin_trees(spine.trees, tree[0], margins)
    size = _tie(spine, own, tree, beside)
    found = _solved([own, *beside], size)
    by_depths = {}
    for one, levels in zip(beside, found[1:], strict=True):
        for depths, level in zip(_depths_of(one), levels[1:], strict=True):
            by_depths[depths] = level
    return found[0], [by_depths[table.margin.depths] for table in margins]


def _margin_trees(trees: Sequence[Hierarchy], root: TreeLevel, margins: Sequence[MarginTable]) -> list[_Tree]:
    """Return the tree of each attribute alone that has margins, and a tree of two levels for each other table."""
    known = root if root.variance[0] == 0.0 else MeasuredLevel(root.parent, np.zeros(1), np.full(1, np.inf))
    found = []
    for attribute, tree in enumerate(trees):
        alone = {table.margin.depths[attribute]: table for table in margins if table.margin.attributes == (attribute,)}
        levels: list[MeasuredLevel] = [known]
        for depth in range(1, max(alone, default=0) + 1):
            first = tree.first[depth - 1]
            parent = np.repeat(np.arange(len(first) - 1), np.diff(first))
            levels.append(_measured(parent, alone.get(depth)))
        if alone:
            found.append(_Tree(levels, depths_alone(len(trees), attribute, max(alone))))
    for table in margins:
        if len(table.margin.attributes) > 1:
            parent = np.zeros(table.margin.nodes, np.int64)
            found.append(_Tree([known, _measured(parent, table)], table.margin.depths))
    return found


def _measured(parent: Ints, table: MarginTable | None) -> MeasuredLevel:
    if table is None:
        return MeasuredLevel(parent, np.zeros(len(parent)), np.full(len(parent), np.inf))
    return MeasuredLevel(parent, table.measured, np.full(len(parent), table.law.standard_deviation**2))


def _depths_of(one: _Tree) -> list[Depths]:
    """Return the levels of every attribute in the nodes of each level below the root of a margin's tree."""
    attributes = np.flatnonzero(one.depths).tolist()
    if len(attributes) > 1:
        return [one.depths]
    return [depths_alone(len(one.depths), own, depth) for own in attributes for depth in range(1, one.depths[own] + 1)]


_Side = tuple[_Tree, list[tuple[int, Ints]]]
"""Nodes of a tree by level, each with the cell that it lies in, or −1."""
_Tie = tuple[Ints, _Side, _Side]
"""The cells that have an equation, and its two sides."""


def _tie(spine: Spine, own: _Tree, tree: Sequence[TreeLevel], beside: Sequence[_Tree]) -> int:
    """Write the equations, as many as there may be, and return how many there are."""
    nodes = sum(len(level) for one in (own, *beside) for level in one.levels)
    most = min(MOST_LINKS, max(_WORK // nodes, 16))
    cells = {depths: _Cells.of(spine, tree, depths) for one in beside for depths in _coarser_depths(one.depths)}
    largest = most
    while True:
        ties = [tie for one in beside for tie in _closed_ties(spine, own, one, cells, largest)]
        ties += [tie for i, one in enumerate(beside) for other in beside[:i] for tie in _shared(spine, one, other)]
        ties = [tie for tie in ties if len(tie[0]) <= largest]
        if sum(len(numbers) for numbers, *_ in ties) <= most:
            break
        largest //= 2
    size = 0
    for numbers, *sides in ties:
        for (one, labels), sign in zip(sides, (1.0, -1.0), strict=True):
            for level, label in labels:
                place = np.minimum(np.searchsorted(numbers, label), len(numbers) - 1)
                there = np.flatnonzero(numbers[place] == label)
                one.link(level, there, size + place[there], sign)
        size += len(numbers)
    return size


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one table, and the nodes of the measured tree in them."""

    labels: list[tuple[int, Ints]]
    """By level of the tree, each node's cell; −1 for nodes that others stand for."""
    closed: Flags
    """Cells made up of measured nodes."""

    @staticmethod
    def of(spine: Spine, tree: Sequence[TreeLevel], depths: Depths) -> _Cells:
        trees = spine.trees
        shape = tuple(one.sizes[depth - 1] for one, depth in zip(trees, depths, strict=True) if depth)
        told = [attribute for attribute, depth in enumerate(depths) if depth]
        last = next(
            index for index in range(len(tree)) if all(map(int.__ge__, spine.depths(index), depths))
        )  # from there on nodes lie in one cell each
        is_open = np.zeros(shape, np.bool_)
        labels = []
        for index in range(last):
            level = tree[index]
            ends = np.setdiff1d(np.arange(len(level)), tree[index + 1].parent)
            start, stop = spans_at(spine, index, level.nodes[:, ends])
            leaves = [len(one.levels) for one in trees]
            low, high = cells_of(trees, depths, leaves, start), cells_of(trees, depths, leaves, stop - 1)
            label = np.full(len(level), -1)
            label[ends[low == high]] = low[low == high]
            labels.append((index, label))
            apart = low != high
            between = [trees[one].ancestors(depths[one] - 1) for one in told]
            firsts = [own[start[one][apart]] for one, own in zip(told, between, strict=True)]
            lasts = [own[stop[one][apart] - 1] for one, own in zip(told, between, strict=True)]
            for row in np.unique(np.stack([*firsts, *lasts], axis=1), axis=0).tolist() if told else []:
                is_open[tuple(slice(a, b + 1) for a, b in zip(row[: len(told)], row[len(told) :], strict=True))] = True
        labels.append((last, cells_of(trees, depths, spine.depths(last), tree[last].nodes)))
        return _Cells(labels, ~is_open.ravel())


def _coarser_depths(depths: Depths) -> Iterator[Depths]:
    yield from product(*(range(depth + 1) for depth in depths))


def _closed_ties(spine: Spine, own: _Tree, one: _Tree, cells: Mapping[Depths, _Cells], largest: int) -> Iterator[_Tie]:
    """Yield the ties of a margin to the measured tree: its closed cells, except those of closed parts."""
    for depths in _coarser_depths(one.depths):
        found = cells[depths]
        wanted = found.closed.copy()
        for attribute, depth in enumerate(depths):
            if depth == one.depths[attribute]:
                continue
            finer = (*depths[:attribute], depth + 1, *depths[attribute + 1 :])
            below = cells[finer].closed
            if len(below) <= largest:
                wanted &= np.bincount(groups_of(spine.trees, finer, depths), ~below, minlength=len(wanted)) > 0
        # A public total is the root of every tree: an equation for it would say nothing.
        if wanted.any() and (any(depths) or own.levels[0].variance[0] > 0.0):
            yield np.flatnonzero(wanted), (own, found.labels), _side(spine, one, depths)


def _shared(spine: Spine, one: _Tree, other: _Tree) -> Iterator[_Tie]:
    """Yield the ties of two margins: the tables that are sums of both."""
    depths = tuple(map(min, one.depths, other.depths))
    if any(depths):
        sides = _side(spine, one, depths), _side(spine, other, depths)
        yield np.unique(sides[0][1][0][1]), *sides


def _side(spine: Spine, one: _Tree, depths: Depths) -> _Side:
    return one, [(len(one.levels) - 1, groups_of(spine.trees, one.depths, depths))]


def _solved(trees: Sequence[_Tree], size: int) -> list[list[LevelEstimates]]:
    """Return the estimates of all trees that fulfil the equations, with their variances."""
    alone = [least_squares(one.levels) for one in trees]
    if size == 0:
        return alone
    system, gaps = np.zeros((size, size)), np.zeros(size)
    for one, levels in zip(trees, alone, strict=True):
        gaps += one.gaps([level.value for level in levels], size)
        for equation in one.equations():
            system[:, equation] += one.gaps(one.spread(np.eye(1, size, equation)[0]), size)
    variance, direction = np.linalg.eigh((system + system.T) / 2)
    kept = variance > _NOTHING * variance[-1]
    roots = direction[:, kept] / np.sqrt(variance[kept])  # the pseudo-inverse is roots·rootsᵀ
    found = []
    for one, levels in zip(trees, alone, strict=True):
        moved = one.spread(roots @ (roots.T @ gaps))
        known = [np.zeros(len(level.value)) for level in levels]
        for root in roots.T:
            for at, part in enumerate(one.spread(root)):
                known[at] += part**2
        found.append(
            [
                LevelEstimates(level.value - away, np.maximum(level.variance - less, 0.0))
                for level, away, less in zip(levels, moved, known, strict=True)
            ]
        )
    return found


@dataclass(frozen=True, eq=False)
class EstimatedNodes(LevelEstimates):
    """The measured nodes of one level, and their only children down to the leaves, in spine order."""

    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
    row: Ints = field(repr=False)
    """Row of each among the released nodes of the level; −1 if it is not released."""
    released: Ints = field(repr=False)
    """Released counts; 0 if a node is not released."""


@dataclass(frozen=True)
class LevelDifference:
    """How the estimates of one level differ from the released counts."""

    name: str
    nodes: int
    released: int
    sd: float
    """Median standard deviation of the estimates."""
    difference: float
    """Mean of |estimate − released count|."""
    counts: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def estimates_table(release: Release, index: int) -> pa.Table:
    """Return the estimates of a level by its position, with standard deviations and released counts."""
    level = next(islice(_estimated_levels(release, _joined(release)), index, None))
    numbers = {"estimate": level.value, "sd": np.sqrt(level.variance), "count": level.released}
    return pa.table(codes_at(release.spine, index, level.nodes) | numbers)


def margin_estimates_table(release: Release, name: str) -> pa.Table:
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
    return pa.table(codes_of(release.spine, table.margin, np.arange(len(own.value))) | numbers)


def level_differences(release: Release) -> list[LevelDifference]:
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


def _joined(release: Release) -> _Joined:
    tree = measured_tree(all_measurements(release), release.measured.root)
    levels, margins = joined_estimates(release.spine, tree, release.margins)
    return tree, levels, [_clipped(own, table.known) for own, table in zip(margins, release.margins, strict=True)]


def _estimated_levels(release: Release, joined: _Joined) -> Iterator[EstimatedNodes]:
    """Yield the estimates of the total and of every level below it."""
    released = release.tree
    tree, found, _ = joined
    root = np.zeros(1, np.int64) if len(released.at(0)) else np.full(1, -1)
    above = _estimated(released, 0, found[0], tree[0].nodes, root)
    yield _within_facts(release, 0, above)
    place = np.zeros(1, np.int64)
    for level, measured, estimates in zip(release.spine.levels, tree[1:], found[1:], strict=True):
        above, place = _below(released, level, above, place[measured.parent], measured, estimates)
        yield _within_facts(release, level.index, above)


def _within_facts(release: Release, index: int, level: EstimatedNodes) -> EstimatedNodes:
    """Return estimates within public facts. Each comes nearer to a truth that keeps them, or stays."""
    if release.facts is None:
        return level
    own = _clipped(level, release.facts.around(release.spine.depths(index), level.nodes))
    return replace(level, value=own.value, variance=own.variance)


def _clipped(level: LevelEstimates, known: tuple[Ints, Ints] | None) -> LevelEstimates:
    """Return estimates within bounds; if the bounds meet, the variance is 0."""
    if known is None:
        return level
    lower, upper = known
    return LevelEstimates(np.clip(level.value, lower, upper), np.where(lower == upper, 0.0, level.variance))


def _below(
    released: ReleasedTree, level: Level, above: EstimatedNodes, parent: Ints, measured: TreeLevel, own: LevelEstimates
) -> tuple[EstimatedNodes, Ints]:
    """Return the next level, and the rows of its measured nodes: an only child has all that its parent has."""
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
    return EstimatedNodes(own.value, own.variance, nodes, row, np.append(released.at(index).count, 0)[row])
