"""The cells of a public table: one node of each attribute that it tells apart, numbered, and found without listing all.

What is asked costs as much as the cells that it is asked about, never as much as the domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.domain.level import Ints
from treetop.domain.margin import margin_at
from treetop.domain.spine import Spine
from treetop.errors import FactError

Depths = tuple[int, ...]
"""By attribute of a spine, how many of its levels a table refines; 0 where it is summed over."""

_MOST = 1 << 62
"""Cells have numbers of 64 bits."""


def meet(one: Depths, other: Depths) -> Depths:
    """Return the finest table that both tables tell."""
    return tuple(map(min, one, other))


def is_coarser(one: Depths, other: Depths) -> bool:
    """Whether a table is told by another, or is the same."""
    return meet(one, other) == one


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
class Cells:
    """How the cells of a table are numbered: attribute by attribute, in the order of the spine."""

    spine: Spine
    """The spine, with the public trees."""
    depths: Depths
    """What the table tells apart."""

    def __post_init__(self) -> None:
        if self.number > _MOST:
            raise FactError(f"{self.name} has {self.number:.1e} cells, too many to be numbered: name coarser levels")

    @cached_property
    def name(self) -> str:
        """What the table is called: `attribute.level`, joined by ` * `; empty of the total."""
        return margin_at(self.spine, self.depths).name

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that it tells apart."""
        return tuple(attribute for attribute, depth in enumerate(self.depths) if depth)

    @cached_property
    def number(self) -> int:
        """How many cells there are."""
        sizes = (self.spine.trees[one].sizes[self.depths[one] - 1] for one in self.attributes)
        return math.prod(sizes)

    def codes(self, attribute: int) -> pa.StringArray:
        """Return the codes of an attribute at the table's level of it."""
        return self.spine.trees[attribute].codes[self.depths[attribute] - 1]

    def numbers(self, nodes: Sequence[Ints] | NDArray[np.integer], refined: Depths) -> Ints:
        """Return the cell of each node; nodes are given by attribute, each refined at least as far as the table."""
        number = np.zeros(len(nodes[0]), np.int64)
        for one in self.attributes:
            tree, depth = self.spine.trees[one], self.depths[one]
            own = above(tree, depth, refined[one], np.asarray(nodes[one], np.int64))
            number = number * tree.sizes[depth - 1] + own
        return number

    def counted(self, cells: Ints, nodes: Sequence[Ints] | NDArray[np.integer], refined: Depths, number: Ints) -> Ints:
        """Return what some cells, ascending, have together of nodes that count so much; the rest is left out."""
        if len(cells) == 0:
            return np.zeros(0, np.int64)
        own = self.numbers(nodes, refined)
        place = np.minimum(np.searchsorted(cells, own), len(cells) - 1)
        there = cells[place] == own
        count = np.zeros(len(cells), np.int64)
        np.add.at(count, place[there], number[there])
        return count

    def nodes(self, numbers: Ints) -> Ints:
        """Return the nodes of cells by attribute (row); 0 of an attribute that is summed over."""
        found = np.zeros((len(self.depths), len(numbers)), np.int64)
        for one in reversed(self.attributes):
            numbers, found[one] = np.divmod(numbers, self.spine.trees[one].sizes[self.depths[one] - 1])
        return found

    def coarser(self, depths: Depths, numbers: Ints) -> Ints:
        """Return the cells of a coarser table that cells of this one are in."""
        return Cells(self.spine, depths).numbers(self.nodes(numbers), self.depths)

    def words(self, number: int) -> str:
        """Say which cell it is, by its codes."""
        if not self.attributes:
            return "the total"
        nodes = self.nodes(np.array([number]))
        names = self.name.split(" * ")
        codes = (
            self.spine.trees[one].codes[self.depths[one] - 1][int(nodes[one, 0])].as_py() for one in self.attributes
        )
        return ", ".join(f"{name} {code!r}" for name, code in zip(names, codes, strict=True))
