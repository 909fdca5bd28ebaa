"""Noisy tables over products of hierarchies, and sums and copies between their levels.

A table names one depth per attribute: 0 sums the attribute out, 1 is its coarsest level. Its values are an array with
one axis per attribute, of length 1 at depth 0. Everything here is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.domain.hierarchy import Hierarchy
from treetop.errors import NumberError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Numbers = NDArray[Any]
Depths = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A measured table: values with independent noise of one variance."""

    depths: Depths
    value: Numbers = field(repr=False)
    """One axis per attribute."""
    variance: float
    """Variance of each cell's noise; 0 for an exact table."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of all products of levels of some hierarchies."""

    trees: Sequence[Hierarchy]
    _starts: dict[tuple[int, int, int], tuple[Ints, Ints]] = field(default_factory=dict, init=False, repr=False)

    def sizes(self, depths: Depths) -> Depths:
        """Return the shape of a table."""
        return tuple(tree.sizes[depth - 1] if depth else 1 for tree, depth in zip(self.trees, depths, strict=True))

    def cells(self, depths: Depths) -> int:
        """Return the number of cells of a table."""
        return math.prod(self.sizes(depths))

    def starts(self, attribute: int, coarse: int, fine: int) -> Ints:
        """Return where the descendants of each node of a coarse level start among those of a fine one, and the end."""
        return self._ranges(attribute, coarse, fine)[0]

    def _ranges(self, attribute: int, coarse: int, fine: int) -> tuple[Ints, Ints]:
        if (known := self._starts.get((attribute, coarse, fine))) is not None:
            return known
        tree = self.trees[attribute]
        start = np.arange((tree.sizes[coarse - 1] if coarse else 1) + 1)
        for depth in range(coarse, fine):
            start = tree.first[depth][start]
        self._starts[attribute, coarse, fine] = start, np.diff(start)
        return self._starts[attribute, coarse, fine]

    def ancestors(self, attribute: int, coarse: int, fine: int) -> Ints:
        """Return the ancestor at a coarse level of each node of a fine one."""
        _, size = self._ranges(attribute, coarse, fine)
        return np.repeat(np.arange(len(size)), size)

    def sum_to(self, value: Numbers, fine: Depths, coarse: Depths) -> Numbers:
        """Sum a table to coarser levels, attribute by attribute in a fixed order."""
        for axis in range(len(self.trees)):
            if coarse[axis] < fine[axis]:
                value = np.add.reduceat(value, self.starts(axis, coarse[axis], fine[axis])[:-1], axis=axis)
        return value

    def copy_to(self, value: Numbers, coarse: Depths, fine: Depths) -> Numbers:
        """Give every cell of a finer table the value of the coarse cell that it lies in."""
        for axis in range(len(self.trees)):
            if coarse[axis] < fine[axis]:
                value = np.repeat(value, self._ranges(axis, coarse[axis], fine[axis])[1], axis=axis)
        return value

    @cached_property
    def root(self) -> Depths:
        """The depths of the total."""
        return (0,) * len(self.trees)

    def checked(self, tables: Sequence[NoisyTable]) -> list[NoisyTable]:
        """Return the tables with real values; refuse wrong shapes, repeated tables and variances."""
        seen: set[Depths] = set()
        for table in tables:
            if np.shape(table.value) != self.sizes(table.depths):
                shape = self.sizes(table.depths)
                raise NumberError(f"a table at depths {table.depths} has shape {shape}, not {np.shape(table.value)}")
            if table.depths in seen:
                raise NumberError(f"there are two tables at depths {table.depths}: combine them first")
            if not np.isfinite(table.value).all() or not math.isfinite(table.variance):
                raise NumberError(f"the table at depths {table.depths} has values or a variance that are not finite")
            if table.variance < 0:
                raise NumberError(f"the table at depths {table.depths} has a negative variance")
            seen.add(table.depths)
        if not seen:
            raise NumberError("there is nothing to combine: give at least one measured table")
        return [NoisyTable(table.depths, np.asarray(table.value, np.float64), table.variance) for table in tables]


def within(coarse: Depths, fine: Depths) -> bool:
    """Whether a table is a sum of another."""
    return all(a <= b for a, b in zip(coarse, fine, strict=True))


def join(tables: Sequence[Depths]) -> Depths:
    """Return the coarsest table of which all are sums."""
    return tuple(map(max, *tables)) if len(tables) > 1 else tables[0]


def coarser(depths: Depths) -> list[Depths]:
    """Return all tables that are sums of one, itself included, coarse to fine."""
    found: list[Depths] = [()]
    for depth in depths:
        found = [(*before, own) for before in found for own in range(depth + 1)]
    return found
