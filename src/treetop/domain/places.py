"""Places: a number for every child at a level of a spine, possible or not, in which siblings follow each other.

The noise of a child is found by its place. It is public, and has nothing to do with which other nodes are retained, in
which order they are dealt with, or by whom: so a release is the same however its work is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.domain.level import Ints, Level, Nodes, Refinement
from treetop.errors import HierarchyError

LARGEST_WORD = 1 << 60
"""Each of the two words of a place stays below this: a stream has several words a place."""


@dataclass(frozen=True, eq=False)
class Places:
    """The numbering of one level."""

    above: tuple[tuple[int, int], ...]
    """The attributes that stand in the first word, each with how many nodes it has."""
    beside: tuple[tuple[int, int], ...]
    """Those that stand in the second word, and are not refined here."""
    parts: tuple[Refinement, ...]
    """What is refined: the last digits of a place, so that siblings follow each other."""

    @staticmethod
    def of_level(level: Level, sizes: Sequence[int]) -> Places:
        """Return the numbering of a level whose attributes have so many nodes at the level above."""
        refined = {part.attribute for part in level.parts}
        others = [(attribute, size) for attribute, size in enumerate(sizes) if attribute not in refined and size > 1]
        low = math.prod(len(part.above) for part in level.parts)
        beside: list[tuple[int, int]] = []
        while others and low * others[-1][1] <= LARGEST_WORD:
            low *= others[-1][1]
            beside.insert(0, others.pop())
        if low > LARGEST_WORD or math.prod(size for _, size in others) > LARGEST_WORD:
            raise HierarchyError(f"{level.name} has more than 2^120 nodes, too many to number: leave out an attribute")
        return Places(tuple(others), tuple(beside), level.parts)

    def first(self, nodes: Nodes) -> NDArray[np.uint64]:
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
    """Return the numbers of nodes whose digits are their nodes by some attributes; 0 where there are no digits."""
    number: Ints | int = 0
    for attribute, size in digits:
        own = nodes[attribute].astype(np.int64)
        number = own if isinstance(number, int) else number * size + own
    return number
