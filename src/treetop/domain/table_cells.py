"""The cells of a public table: one node of each attribute that it tells apart, numbered, and found without listing all.

A query costs as much as the cells that it names, never as much as the domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.dtypes import Flags, Ints
from treetop._util.numbers import NO_BOUND
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import margin_at
from treetop.domain.spine import Spine
from treetop.errors import FactError

Depths = tuple[int, ...]
"""By attribute of a spine, how many of its levels a table refines; 0 where it is summed over."""

_MOST = 1 << 62
"""Cells have numbers of 64 bits."""


def find_cells(cells: Ints, asked: Ints) -> tuple[Ints, Flags]:
    """Return the place of each asked cell among some that ascend, and whether it is one of them."""
    place = np.minimum(np.searchsorted(cells, asked), max(len(cells) - 1, 0))
    return place, np.asarray(cells[place] == asked) if len(cells) else np.zeros(len(asked), np.bool_)


def meet(one: Depths, other: Depths) -> Depths:
    """Return the finest table that both tables tell."""
    return tuple(map(min, one, other))


def above(tree: Hierarchy, depth: int, refined: int, nodes: Ints) -> Ints:
    """Return the ancestors at a depth of nodes that are refined so many levels; at depth 0 that is the root."""
    if depth == 0:
        return np.zeros(len(nodes), np.int64)
    if depth < refined and len(nodes) > tree.sizes[refined - 1]:  # then one table of them all is the quicker way
        return np.asarray(tree.ancestors(depth - 1, refined - 1)[nodes], np.int64)
    for level in range(refined - 1, depth - 1, -1):
        nodes = np.searchsorted(tree.first[level], nodes, side="right") - 1
    return np.asarray(nodes, np.int64)


def below(tree: Hierarchy, depth: int, refined: int, nodes: Ints) -> tuple[Ints, Ints]:
    """Return where the nodes of a finer depth that are under each node start, and where they stop."""
    start, stop = nodes, nodes + 1
    for level in range(depth, refined):
        start, stop = tree.first[level][start], tree.first[level][stop]
    return np.asarray(start, np.int64), np.asarray(stop, np.int64)


@dataclass(frozen=True, eq=False)
class CellNumbering:
    """How the cells of a table are numbered: attribute by attribute, in the order of the spine."""

    spine: Spine
    depths: Depths

    def __post_init__(self) -> None:
        if self.number > _MOST:
            raise FactError(f"{self.name} has {self.number:.1e} cells, too many to be numbered: name coarser levels")

    @cached_property
    def name(self) -> str:
        """Name of the table: `attribute.level`, joined by ` * `; empty of the total."""
        return margin_at(self.spine, self.depths).name

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that it tells apart."""
        return tuple(attribute for attribute, depth in enumerate(self.depths) if depth)

    @cached_property
    def number(self) -> int:
        """How many cells there are."""
        sizes = (self.spine.trees[attribute].sizes[self.depths[attribute] - 1] for attribute in self.attributes)
        return math.prod(sizes)

    def codes(self, attribute: int) -> pa.StringArray:
        """Return the codes of an attribute at the table's level of it."""
        return self.spine.trees[attribute].codes[self.depths[attribute] - 1]

    def numbers(self, nodes: Sequence[Ints] | NDArray[np.integer], refined: Depths) -> Ints:
        """Return the cell of each node; nodes are given by attribute, each refined at least as far as the table."""
        number = np.zeros(len(nodes[0]), np.int64)
        for attribute in self.attributes:
            tree, depth = self.spine.trees[attribute], self.depths[attribute]
            own = above(tree, depth, refined[attribute], np.asarray(nodes[attribute], np.int64))
            number = number * tree.sizes[depth - 1] + own
        return number

    def counted(self, cells: Ints, nodes: Sequence[Ints] | NDArray[np.integer], refined: Depths, number: Ints) -> Ints:
        """Return the sums over the given cells, ascending, of so many records per node; other nodes are left out."""
        place, there = find_cells(cells, self.numbers(nodes, refined))
        count = np.zeros(len(cells), np.int64)
        np.add.at(count, place[there], number[there])
        return count

    def nodes(self, numbers: Ints) -> Ints:
        """Return the nodes of cells by attribute (row); 0 of an attribute that is summed over."""
        found = np.zeros((len(self.depths), len(numbers)), np.int64)
        for attribute in reversed(self.attributes):
            numbers, found[attribute] = np.divmod(
                numbers, self.spine.trees[attribute].sizes[self.depths[attribute] - 1]
            )
        return found

    def coarser(self, depths: Depths, numbers: Ints) -> Ints:
        """Return the cells of a coarser table that cells of this one are in."""
        return CellNumbering(self.spine, depths).numbers(self.nodes(numbers), self.depths)

    def words(self, number: int) -> str:
        """Say which cell it is, by its codes."""
        if not self.attributes:
            return "the total"
        nodes = self.nodes(np.array([number]))
        names = self.name.split(" * ")
        codes = (self.codes(attribute)[int(nodes[attribute, 0])].as_py() for attribute in self.attributes)
        return ", ".join(f"{name} {code!r}" for name, code in zip(names, codes, strict=True))


# Structural zeros: which combinations of codes there can be at all, by all rules of a plan together.

MOST_ROWS = 1 << 24
"""A table of possible combinations has at most so many rows."""


@dataclass(frozen=True, eq=False)
class PossibleCells:
    """The possible cells of one table."""

    table: CellNumbering
    cells: Ints = field(repr=False)
    """Their numbers, ascending, each once."""
    _projected: dict[Depths, Ints] = field(default_factory=dict, init=False, repr=False)
    _families: dict[tuple[Depths, int], Ints] = field(default_factory=dict, init=False, repr=False)

    @property
    def depths(self) -> Depths:
        """Depth of each attribute in the table."""
        return self.table.depths

    def at(self, depths: Depths) -> tuple[CellNumbering, Ints]:
        """Return the part of a table that the rule is about, and its possible cells, ascending."""
        coarse = meet(depths, self.depths)
        table = self.table if coarse == self.depths else CellNumbering(self.table.spine, coarse)
        if coarse not in self._projected:
            same = coarse == self.depths
            self._projected[coarse] = self.cells if same else np.unique(self.table.coarser(coarse, self.cells))
        return table, self._projected[coarse]

    def allows(self, depths: Depths, nodes: NDArray[np.integer]) -> Flags:
        """Tell which nodes, by attribute, are possible."""
        table, cells = self.at(depths)
        return find_cells(cells, table.numbers(nodes, depths))[1]

    def families(self, depths: Depths, attribute: int) -> tuple[CellNumbering, int, Ints]:
        """Return the possible cells of a table, grouped by their other attributes and sorted by the nodes of this one.

        A family is what stands beside it, times how many nodes the attribute has; the nodes are added to that.
        """
        table, cells = self.at(depths)
        beside = CellNumbering(
            table.spine, tuple(0 if one == attribute else depth for one, depth in enumerate(table.depths))
        )
        width = table.spine.trees[attribute].sizes[table.depths[attribute] - 1]
        if (key := (table.depths, attribute)) not in self._families:
            nodes = table.nodes(cells)
            self._families[key] = np.sort(beside.numbers(nodes, table.depths) * width + nodes[attribute])
        return beside, width, self._families[key]

    def joined(self, other: PossibleCells) -> PossibleCells:
        """Return the cells that both rules allow."""
        spine = self.table.spine
        shared = meet(self.depths, other.depths)
        mine, theirs = (one.table.coarser(shared, one.cells) for one in (self, other))
        order = np.argsort(theirs, kind="stable")
        start, stop = (np.searchsorted(theirs[order], mine, side=side) for side in ("left", "right"))
        size = stop - start
        refuse_many(int(size.sum()), f"{self.table.name} and {other.table.name} together allow")
        left = np.repeat(np.arange(len(mine)), size)
        right = order[np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size) + np.repeat(start, size)]
        one, two = self.table.nodes(self.cells[left]), other.table.nodes(other.cells[right])
        finer = np.array(self.depths) >= np.array(other.depths)
        depths = tuple(map(max, self.depths, other.depths))
        both = CellNumbering(spine, depths)
        return PossibleCells(both, np.unique(both.numbers(np.where(finer[:, None], one, two), depths)))


@dataclass(frozen=True, eq=False)
class Possible:
    """The cells that all rules of a plan allow; all cells if there is no rule."""

    spine: Spine
    rules: tuple[PossibleCells, ...] = ()
    """Joined, so that no two are about the same attribute."""

    @staticmethod
    def of(spine: Spine, rules: Sequence[PossibleCells]) -> Possible:
        """Join rules, small ones first, so that intermediate results stay small."""
        joined: list[PossibleCells] = []
        for rule in sorted(rules, key=lambda rule: len(rule.cells)):
            meeting = [one for one in joined if any(meet(one.depths, rule.depths))]
            joined = [one for one in joined if one not in meeting]
            joined.append(reduce(lambda one, other: one.joined(other), meeting, rule))
        return Possible(spine, tuple(joined))

    def allows(self, depths: Depths, nodes: NDArray[np.integer]) -> Flags:
        """Tell which nodes, by attribute and refined to these depths, are possible."""
        there = np.ones(len(nodes[0]), np.bool_)
        for rule in self.rules:
            there &= rule.allows(depths, nodes)
        return there

    def number(self, table: CellNumbering, depths: Depths, cells: Ints) -> Ints:
        """Return how many possible cells of a table lie in each of some cells of a coarser one."""
        inside = CellNumbering(self.spine, depths).nodes(cells)
        number = np.ones(len(cells), np.int64)
        about: set[int] = set()
        for rule in self.rules:
            about.update(rule.table.attributes)
            number *= _number(rule, table.depths, depths, inside)
        for attribute in table.attributes:
            if attribute not in about:
                start, stop = below(
                    self.spine.trees[attribute], depths[attribute], table.depths[attribute], inside[attribute]
                )
                number *= stop - start
        return number


def refuse_many(size: int, what: str) -> None:
    """Refuse a table of combinations that has too many."""
    if size > MOST_ROWS:
        raise FactError(
            f"{what} {size:,} combinations, and at most {MOST_ROWS:,} are kept: state the rule at coarser levels, or "
            "as fewer rules that share attributes"
        )


def _number(rule: PossibleCells, fine: Depths, coarse: Depths, inside: Ints) -> Ints:
    """Return how many possible cells of a table lie in cells of a coarser one, as far as a rule's attributes go."""
    spine = rule.table.spine
    table, cells = rule.at(fine)
    nodes = table.nodes(cells)
    weight = np.ones(len(cells), np.int64)
    outside = np.ones(inside.shape[1], np.int64)
    for attribute in rule.table.attributes:
        tree = spine.trees[attribute]
        if coarse[attribute] > rule.depths[attribute]:
            start, stop = below(tree, coarse[attribute], fine[attribute], inside[attribute])
            outside *= stop - start
        else:
            start, stop = below(tree, table.depths[attribute], fine[attribute], nodes[attribute])
            weight *= stop - start
    summed = CellNumbering(spine, meet(coarse, rule.depths))
    group, place = np.unique(summed.numbers(nodes, table.depths), return_inverse=True)
    total = np.bincount(place, weight, len(group)).astype(np.int64) if len(group) else np.zeros(0, np.int64)
    at, there = find_cells(group, summed.numbers(inside, coarse))
    return np.where(there, total[at] if len(group) else 0, 0) * outside


def complement(table: CellNumbering, cells: Ints) -> Ints:
    """Return all other cells of a table."""
    refuse_many(table.number, f"{table.name}, of which some cells are impossible, has")
    there = np.ones(table.number, np.bool_)
    there[cells] = False
    return np.flatnonzero(there)


def equal_codes(table: CellNumbering) -> Ints:
    """Return the cells of a table with equal codes in all attributes."""
    listed = (table.codes(attribute).to_pylist() for attribute in table.attributes)
    places = [{code: node for node, code in enumerate(codes)} for codes in listed]
    shared = [code for code in places[0] if all(code in place for place in places[1:])]
    nodes = np.zeros((len(table.depths), len(shared)), np.int64)
    for one, place in zip(table.attributes, places, strict=True):
        nodes[one] = [place[code] for code in shared]
    return np.sort(table.numbers(nodes, table.depths))


def ordered_cells(table: CellNumbering) -> Ints | None:
    """Return the cells whose first end does not come after the second, at any level; None if its ends differ."""
    trees = [table.spine.trees[attribute] for attribute in table.attributes]
    depths = [table.depths[attribute] for attribute in table.attributes]
    if len(trees) != len(("first", "second")) or trees[0].digest != trees[1].digest or depths[0] != depths[1]:
        return None
    size = trees[0].sizes[depths[0] - 1]
    refuse_many(size * (size + 1) // 2, f"{table.name} of unordered pairs has")
    first, second = np.triu_indices(size)
    return np.asarray(first * size + second, np.int64)


# Bounds of the cells of public tables: a least and a most for some of them, and what these say of coarser cells.


@dataclass(frozen=True, eq=False)
class CellBounds:
    """The bounds of some cells of a table; all others have none."""

    table: CellNumbering
    cells: Ints = field(repr=False)
    lower: Ints = field(repr=False)
    upper: Ints = field(repr=False)
    """The most; `NO_BOUND` where it has none."""

    @staticmethod
    def joined(table: CellNumbering, boxes: Sequence[CellBounds]) -> CellBounds:
        """Return the bounds that are all kept if these are: the highest lower and the lowest upper one, if any."""
        if len(boxes) == 1:
            return boxes[0]
        cells = np.unique(np.concatenate([np.zeros(0, np.int64), *(box.cells for box in boxes)]))
        lower, upper = np.zeros(len(cells), np.int64), np.full(len(cells), NO_BOUND, np.int64)
        for box in boxes:
            place = np.searchsorted(cells, box.cells)
            lower[place] = np.maximum(lower[place], box.lower)
            upper[place] = np.minimum(upper[place], box.upper)
        return CellBounds(table, cells, lower, upper)

    def of(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return the lower and the upper bound of each of some cells."""
        if len(self.cells) == 0:
            return np.zeros(len(cells), np.int64), np.full(len(cells), NO_BOUND, np.int64)
        place, there = find_cells(self.cells, cells)
        return np.where(there, self.lower[place], 0), np.where(there, self.upper[place], NO_BOUND)

    def possible(self, possible: Possible) -> CellBounds:
        """Return the bounds of cells that can be there."""
        there = possible.allows(self.table.depths, self.table.nodes(self.cells))
        return self if there.all() else CellBounds(self.table, self.cells[there], self.lower[there], self.upper[there])

    def summed(self, depths: Depths, possible: Possible) -> CellBounds:
        """Return the bounds of a coarser table that follow from these; the cells must be possible."""
        if depths == self.table.depths:
            return self
        table = CellNumbering(self.table.spine, depths)
        cells, place = np.unique(self.table.coarser(depths, self.cells), return_inverse=True)
        lower, upper, bounded = (np.zeros(len(cells), np.int64) for _ in range(3))
        finite = self.upper < NO_BOUND
        np.add.at(lower, place, self.lower)
        np.add.at(upper, place, np.where(finite, self.upper, 0))
        np.add.at(bounded, place, finite)
        every = bounded == possible.number(self.table, depths, cells)
        return CellBounds(table, cells, lower, np.where(every, np.minimum(upper, NO_BOUND), NO_BOUND))
