"""Generalised least squares over measured tables: the best linear unbiased estimate of every table they tell about.

Give each node of a tree an equal share of its parent's mass. Under the product of these masses, functions of the cells
are orthogonal sums of residual components: the component of depths e holds what a table at e tells beyond all coarser
ones, and has mean 0 among siblings in every attribute. The counts are mass times function. In these coordinates the
normal equations need only sums to, and copies from, the cells of measured tables and coarser ones; no finer cell is
touched. In a balanced grid they are diagonal: a component is the weighted mean over all tables that tell it, with
inverse variances as weights. In an unbalanced one that diagonal preconditions conjugate gradients.

Tables of variance 0 are exact; several must agree with each other. Their components are known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from treetop.errors import NumberError
from treetop.fit.tables import Depths, Grid, NoisyTable, Reals, coarser, within

TOLERANCE = 1e-12
"""Conjugate gradients stop at this share of the first residual."""
_ACCEPTED = 1e-10
_MOST_STEPS = 2000

Components = dict[Depths, Reals]


@dataclass(frozen=True, eq=False)
class CombinedTables:
    """All measured tables after least squares: they agree with each other."""

    grid: Grid
    tables: tuple[NoisyTable, ...]
    values: Mapping[Depths, Reals] = field(repr=False)
    """The estimate of each measured table."""

    def tells(self, depths: Depths) -> bool:
        """Whether a table is a sum of a measured one."""
        return any(within(depths, table.depths) for table in self.tables)

    def value(self, depths: Depths) -> Reals:
        """Return the estimate of a table that is a sum of a measured one."""
        finer = [table.depths for table in self.tables if within(depths, table.depths)]
        if not finer:
            raise NumberError(f"no measured table tells the table at depths {depths}")
        source = min(finer, key=self.grid.cells)
        return self.grid.sum_to(self.values[source], source, depths)

    def variance(self, depths: Depths, weights: Reals) -> float:
        """Return the exact variance of a weighted sum of the cells of a table that is a sum of a measured one.

        `weights` has the shape of the table; for a single cell it is 1 there and 0 elsewhere.
        """
        weights = np.asarray(weights, np.float64)
        if weights.shape != self.grid.sizes(depths):
            raise NumberError(f"weights have shape {weights.shape}, and the table has {self.grid.sizes(depths)}")
        if not self.tells(depths):
            raise NumberError(f"no measured table tells the table at depths {depths}")
        asked = self._equations.components({depths: weights})
        return self._equations.inner(asked, self._equations.solve(asked))

    def cell_variance(self, depths: Depths, cell: Sequence[int] | None = None) -> float:
        """Return the variance of one cell of a table; without a cell of the first, as in balanced grids of every."""
        weights = np.zeros(self.grid.sizes(depths))
        weights[tuple(cell) if cell is not None else (0,) * len(depths)] = 1.0
        return self.variance(depths, weights)

    @cached_property
    def _equations(self) -> NormalEquations:
        return NormalEquations(self.grid, self.tables)


def combine(grid: Grid, tables: Sequence[NoisyTable]) -> CombinedTables:
    """Combine measured tables by generalised least squares."""
    checked = tuple(grid.checked(tables))
    equations = NormalEquations(grid, checked)
    known = equations.known({t.depths: t.value for t in checked if not t.variance})
    start = equations.tables(known)
    right = {t.depths: (t.value - start[t.depths]) / t.variance for t in checked if t.variance}
    change = equations.tables(equations.solve(equations.components(right)))
    values = {t.depths: start[t.depths] + change[t.depths] if t.variance else np.array(t.value) for t in checked}
    return CombinedTables(grid, checked, values)


class NormalEquations:
    """The normal equations of least squares, in residual components."""

    def __init__(self, grid: Grid, tables: Sequence[NoisyTable]) -> None:
        self.grid = grid
        self.weight = {table.depths: 1.0 / table.variance for table in tables if table.variance}
        every = {depths for table in tables for depths in coarser(table.depths)}
        self.mass = {depths: self._mass(depths) for depths in sorted(every)}
        """By component and table the share of all mass that lies in each cell."""
        exact = [table.depths for table in tables if not table.variance]
        self.fixed = {own: next((table for table in exact if within(own, table)), None) for own in self.mass}
        """By component an exact table that tells it; None if there is none."""
        self.free = [own for own, table in self.fixed.items() if table is None]
        self.finer = {own: [finer for finer in self.mass if within(own, finer)] for own in self.mass}
        """By component the tables that tell it."""
        self.diagonal = {
            own: sum(self.weight[finer] / grid.cells(finer) for finer in self.finer[own] if finer in self.weight)
            for own in self.free
        }

    def _mass(self, depths: Depths) -> Reals:
        mass = np.ones((1,) * len(depths))
        for axis, depth in enumerate(depths):
            own = np.ones(1)
            for level in range(depth):
                children = np.diff(self.grid.trees[axis].first[level])
                own = np.repeat(own / children, children)
            mass = mass * own.reshape([-1 if other == axis else 1 for other in range(len(depths))])
        return mass

    def components(self, tables: Mapping[Depths, Reals]) -> Components:
        """Return the free components of Σ_t A_tᵀ v_t, a function that is a sum of functions of tables' cells."""
        return self._components(tables, self.free)

    def fixed_components(self, tables: Mapping[Depths, Reals]) -> Components:
        """Return the other components of such a function."""
        return self._components(tables, [own for own, table in self.fixed.items() if table is not None])

    def known(self, exact: Mapping[Depths, Reals]) -> Components:
        """Return the components that the counts of exact tables tell."""
        return {
            own: self._components({table: exact[table] / self.mass[table]}, [own])[own]
            for own, table in self.fixed.items()
            if table is not None
        }

    def _components(self, tables: Mapping[Depths, Reals], which: Sequence[Depths]) -> Components:
        found: Components = {}
        for own in which:
            mean = np.zeros(self.grid.sizes(own))
            for finer in self.finer[own]:
                if finer in tables:
                    mean += self._mean(tables[finer], finer, own)
            for axis, depth in enumerate(own):
                if depth:
                    above = (*own[:axis], depth - 1, *own[axis + 1 :])
                    mean = mean - self.grid.copy_to(self._mean(mean, own, above), above, own)
            found[own] = mean
        return found

    def tables(self, components: Components) -> dict[Depths, Reals]:
        """Return the counts of every noisy table, for a function given by its components."""
        found = {finer: np.zeros(self.grid.sizes(finer)) for finer in self.weight}
        for own, component in components.items():
            for finer in self.finer[own]:
                if finer in found:
                    found[finer] += self.grid.copy_to(component, own, finer)
        return {finer: function * self.mass[finer] for finer, function in found.items()}

    def solve(self, right: Components) -> Components:
        """Return the function that solves the equations, by preconditioned conjugate gradients."""
        found = {own: np.zeros_like(right[own]) for own in self.free}
        residual = right
        scaled = {own: residual[own] / self.diagonal[own] for own in self.free}
        step = scaled
        square = first = self.inner(residual, scaled)
        for _ in range(_MOST_STEPS):
            if square <= TOLERANCE**2 * first:
                break
            tables = self.tables(step)
            image = self.components({own: weight * tables[own] for own, weight in self.weight.items()})
            length = square / self.inner(step, image)
            found = {own: found[own] + length * step[own] for own in self.free}
            residual = {own: residual[own] - length * image[own] for own in self.free}
            scaled = {own: residual[own] / self.diagonal[own] for own in self.free}
            before, square = square, self.inner(residual, scaled)
            step = {own: scaled[own] + (square / before) * step[own] for own in self.free}
        if square > _ACCEPTED**2 * first:
            raise NumberError("least squares over the measured tables did not converge")
        return found

    def inner(self, one: Components, other: Components) -> float:
        """Return the inner product of two functions, weighted by mass."""
        return math.fsum(float((one[own] * other[own] * self.mass[own]).sum()) for own in self.free)

    def _mean(self, value: Reals, fine: Depths, coarse: Depths) -> Reals:
        return self.grid.sum_to(value * self.mass[fine], fine, coarse) / self.mass[coarse]
