"""Bounds of the cells of public tables: a least and a most for some of them, and what these say of coarser cells.

A coarser cell has at least what its cells have at least, summed up, and at most what they have at most, if all that are
possible have an upper bound. Exact counts are bounds that meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from treetop.basics.checked import NO_BOUND
from treetop.domain.cells import Cells, Depths, Ints
from treetop.domain.possible import Possible


@dataclass(frozen=True, eq=False)
class Boxes:
    """The bounds of some cells of a table; all others have none."""

    table: Cells
    """The table."""
    cells: Ints = field(repr=False)
    """Their numbers, ascending."""
    lower: Ints = field(repr=False)
    """The least that each has."""
    upper: Ints = field(repr=False)
    """The most; `NO_BOUND` where it has none."""

    @staticmethod
    def none(table: Cells) -> Boxes:
        """Return no bounds."""
        return Boxes(table, *(np.zeros(0, np.int64) for _ in range(3)))

    @staticmethod
    def joined(table: Cells, boxes: Sequence[Boxes]) -> Boxes:
        """Return the bounds that are all kept if these are: the highest lower and the lowest upper one."""
        if len(boxes) == 1:
            return boxes[0]
        cells = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.cells for one in boxes)]))
        lower, upper = np.zeros(len(cells), np.int64), np.full(len(cells), NO_BOUND, np.int64)
        for one in boxes:
            place = np.searchsorted(cells, one.cells)
            lower[place] = np.maximum(lower[place], one.lower)
            upper[place] = np.minimum(upper[place], one.upper)
        return Boxes(table, cells, lower, upper)

    def of(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return the lower and the upper bound of each of some cells."""
        if len(self.cells) == 0:
            return np.zeros(len(cells), np.int64), np.full(len(cells), NO_BOUND, np.int64)
        place = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        there = self.cells[place] == cells
        return np.where(there, self.lower[place], 0), np.where(there, self.upper[place], NO_BOUND)

    def possible(self, possible: Possible) -> Boxes:
        """Return the bounds of cells that can be there."""
        there = possible.allows(self.table.depths, self.table.nodes(self.cells))
        return self if there.all() else Boxes(self.table, self.cells[there], self.lower[there], self.upper[there])

    def summed(self, depths: Depths, possible: Possible) -> Boxes:
        """Return what the bounds say of a coarser table; the cells must be possible."""
        if depths == self.table.depths:
            return self
        table = Cells(self.table.spine, depths)
        cells, place = np.unique(self.table.coarser(depths, self.cells), return_inverse=True)
        lower, upper, bounded = (np.zeros(len(cells), np.int64) for _ in range(3))
        finite = self.upper < NO_BOUND
        np.add.at(lower, place, self.lower)
        np.add.at(upper, place, np.where(finite, self.upper, 0))
        np.add.at(bounded, place, finite)
        every = bounded == possible.number(self.table, depths, cells)
        return Boxes(table, cells, lower, np.where(every, np.minimum(upper, NO_BOUND), NO_BOUND))
