"""A level of a spine: how every node of the level above is divided, by one attribute or by several at once.

The children of a node that several attributes divide are the products of its children by each, in lexicographic order:
the rank of a child is a number whose digits are its ranks by attribute, with what the node itself has of each as bases.
So an ordinary level is a merged one with a single digit, and nothing is ever made for all of the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop._util.dtypes import Ints, Words
from treetop.errors import HierarchyError

Nodes = NDArray[np.integer]
"""For each attribute (row) and node (column), the attribute's node; 0 while it is not refined."""
N = TypeVar("N", bound=np.integer)


@dataclass(frozen=True, eq=False)
class AttributeStep:
    """The step of a level in one attribute."""

    attribute: int
    """Which one, by its position among the spine's attributes."""
    depth: int
    """How far it is refined: a level of that attribute's hierarchy."""
    first: Ints = field(repr=False)
    """The children of node i of the attribute's level above are `first[i] : first[i + 1]`."""

    @cached_property
    def widths(self) -> Ints:
        """How many children each node of the attribute's level above is divided into."""
        return np.diff(self.first)

    @cached_property
    def widest(self) -> int:
        """The largest number of children that a node of the attribute is divided into."""
        return int(self.widths.max())

    @cached_property
    def above(self) -> Ints:
        """For every node of the attribute, the one that it is a child of."""
        return np.repeat(np.arange(len(self.first) - 1), self.widths)

    def fanout(self, nodes: Nodes) -> Ints:
        """Return how many children each node of the level above has by this attribute."""
        fanout: Ints = self.widths.take(nodes[self.attribute])
        return fanout


@dataclass(frozen=True, eq=False)
class Level:
    """One step of a spine: nodes of the level above are divided by the next level of an attribute, or of several."""

    index: int
    """The position in the spine; the root is 0 and has no `Level`."""
    name: str
    """`attribute.level`, or just the attribute where it is refined once; several are joined by ` * `."""
    parts: tuple[AttributeStep, ...]
    nodes: int

    @property
    def is_merged(self) -> bool:
        """Whether it refines several attributes at once."""
        return len(self.parts) > 1

    @property
    def is_plain(self) -> bool:
        """Whether the children of a node are nodes of one attribute that follow each other."""
        return len(self.parts) == 1

    @property
    def widest(self) -> int:
        """The largest number of children that a node is divided into."""
        return math.prod(part.widest for part in self.parts)

    @property
    def divides(self) -> bool:
        """Whether any node has more than one child here; otherwise the level passes through unmeasured."""
        return self.widest > 1

    def fanout(self, nodes: Nodes) -> Ints:
        """Return how many children each node of the level above has."""
        first, *others = (part.fanout(nodes) for part in self.parts)
        for fanout in others:
            first = first * fanout
        return first

    def number_between(self, nodes: Nodes, start: Ints, stop: Ints) -> Ints:
        """Return how many children nodes of the level above have among nodes of the refined attribute."""
        number: Ints = np.maximum(stop - start, 0)
        return number

    def go_down(self, nodes: Nodes, rank: Nodes) -> None:
        """Turn nodes of the level above, in place, into their children of these ranks."""
        for part in self.parts[:0:-1]:
            rank, own = np.divmod(rank, part.fanout(nodes))
            nodes[part.attribute] = part.first[nodes[part.attribute]] + own
        part = self.parts[0]
        nodes[part.attribute] = part.first[nodes[part.attribute]] + rank

    def children(self, nodes: NDArray[N], number: Ints) -> NDArray[N]:
        """Return the first children of nodes of the level above, so many of each, one after the other."""
        listed = nodes.repeat(number, axis=1)
        self.go_down(listed, np.arange(listed.shape[1]) - np.repeat(np.cumsum(number) - number, number))
        return listed

    def go_up(self, nodes: Nodes) -> None:
        """Turn nodes of the level, in place, into those that they are children of."""
        for part in self.parts:
            nodes[part.attribute] = part.above[nodes[part.attribute]]

    def ranks(self, nodes: Nodes) -> Ints:
        """Return the rank of each node of the level among its siblings."""
        rank = np.zeros(nodes.shape[1], np.int64)
        for part in self.parts:
            node = nodes[part.attribute]
            above = part.above[node]
            eldest = part.first[above]
            rank = rank * (part.first[above + 1] - eldest) + (node - eldest)
        return rank

    def keys(self, parent: Ints, nodes: Nodes) -> Ints:
        """Return one number for each node of the level, ascending in spine order, from the rows of their parents."""
        keys: Ints = parent * self.widest + self.ranks(nodes)
        return keys

    def numbered(self, nodes: Nodes) -> tuple[NDArray[np.int32], Ints]:
        """Return nodes of the level above as numbers v, and where the children of each v start in a numbering of these.

        Where children follow each other, these are the attribute's nodes; else the nodes are numbered as they come, and
        so are their children.
        """
        if self.is_plain:
            return nodes[self.parts[0].attribute].astype(np.int32, copy=False), self.parts[0].first
        fanout = self.fanout(nodes)
        return np.arange(len(fanout), dtype=np.int32), np.concatenate([[0], np.cumsum(fanout)])

    def go_down_to(self, nodes: Nodes, parent: Nodes, child: Nodes, first: Ints) -> None:
        """Turn nodes, in place, into the children that have these numbers; `parent` is the number v of each node."""
        if self.is_plain:
            nodes[self.parts[0].attribute] = child
        else:
            self.go_down(nodes, child - first[parent])


# Places: a number for every child at a level of a spine, possible or not, in which siblings follow each other.

LARGEST_WORD = 1 << 60
"""Each of the two words of a place stays below this: a stream has several words a place."""


@dataclass(frozen=True, eq=False)
class PlaceNumbering:
    """The numbering of one level."""

    above: tuple[tuple[int, int], ...]
    """The attributes that stand in the first word, each with how many nodes it has."""
    beside: tuple[tuple[int, int], ...]
    """Those that stand in the second word, and are not refined here."""
    parts: tuple[AttributeStep, ...]
    """The refined attributes: the last digits of a place, so that siblings follow each other."""

    @staticmethod
    def of_level(level: Level, sizes: Sequence[int]) -> PlaceNumbering:
        """Return the numbering of a level, from its attributes' numbers of nodes at the level above."""
        refined = {part.attribute for part in level.parts}
        others = [(attribute, size) for attribute, size in enumerate(sizes) if attribute not in refined and size > 1]
        low = math.prod(len(part.above) for part in level.parts)
        beside: list[tuple[int, int]] = []
        while others and low * others[-1][1] <= LARGEST_WORD:
            low *= others[-1][1]
            beside.insert(0, others.pop())
        if low > LARGEST_WORD or math.prod(size for _, size in others) > LARGEST_WORD:
            raise HierarchyError(f"{level.name} has more than 2^120 nodes, too many to number: leave out an attribute")
        return PlaceNumbering(tuple(others), tuple(beside), level.parts)

    def first(self, nodes: Nodes) -> Words:
        """Return the places of the first children of nodes of the level above: a row for each of the two words."""
        place = np.empty((2, nodes.shape[1]), np.uint64)
        place[0] = _number(self.above, nodes)
        # From the last attribute on: nodes before this one by an attribute have all children of those after it.
        *others, last = self.parts
        low, width = last.first.take(nodes[last.attribute]), len(last.above)
        for part in reversed(others):
            low = part.first.take(nodes[part.attribute]) * width + part.fanout(nodes) * low
            width *= len(part.above)
        np.add(_number(self.beside, nodes) * width, low, out=place[1].view(np.int64))
        return place


def _number(digits: Sequence[tuple[int, int]], nodes: Nodes) -> Ints | int:
    """Return the numbers of nodes, with their nodes by some attributes as digits; 0 if there are no digits."""
    number: Ints | int = 0
    for attribute, size in digits:
        own = nodes[attribute].astype(np.int64)
        number = own if isinstance(number, int) else number * size + own
    return number
