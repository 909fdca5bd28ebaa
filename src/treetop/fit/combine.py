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
from treetop.fit.noisy_tables import Depths, Grid, NoisyTable, Reals, coarser, within

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


def component_variances(combined: CombinedTables, depths: Depths) -> Reals:
    """Return at least the variance of the estimate of every cell of a table; exactly that in a balanced grid.

    It is the variance of the estimate that takes each residual component as the mean over all tables that tell it, with
    the weights of the diagonal. What a cell of table t adds to a cell of the asked one is a sum over components e of
    a_te Π_i (u_i^e − u_i^(e−1)), where u^e averages over the nodes below the common ancestor at depth e. The product of
    two averages is the number of nodes that both cover, divided by both masses.
    """
    grid, equations = combined.grid, combined._equations
    found = np.zeros(grid.sizes(depths))
    for table in combined.tables:
        if not table.variance:
            continue
        told = [e for e in coarser(tuple(map(min, depths, table.depths))) if e in equations.diagonal]
        weight = {e: 1.0 / (table.variance * grid.cells(table.depths) * equations.diagonal[e]) for e in told}
        products = [
            _products(grid, axis, depth, at) for axis, (depth, at) in enumerate(zip(depths, table.depths, strict=True))
        ]
        for one, first in weight.items():
            for other, second in weight.items():
                if one <= other:
                    term = np.full((1,) * len(depths), (1 + (one < other)) * first * second * table.variance)
                    for axis, (a, b) in enumerate(zip(one, other, strict=True)):
                        term = term * np.expand_dims(products[axis][a, b], tuple(_others(axis, len(depths))))
                    found += term
    return found


def _products(grid: Grid, axis: int, depth: int, at: int) -> dict[tuple[int, int], Reals]:
    """Return, for two components of an attribute, the products of their weights for each node at a depth."""
    both = range(min(depth, at) + 1)
    mass = [np.repeat(_shares(grid, axis, one), np.diff(grid.starts(axis, one, depth))) for one in range(depth + 1)]
    nodes = [np.repeat(np.diff(grid.starts(axis, one, at)), np.diff(grid.starts(axis, one, depth))) for one in both]
    shared = {(a, b): mass[depth] ** 2 * nodes[max(a, b)] / (mass[a] * mass[b]) for a in both for b in both}
    shared |= {(a, b): np.zeros(1) for a in range(-1, len(both)) for b in range(-1, len(both)) if -1 in (a, b)}
    return {
        (a, b): shared[a, b] - shared[a - 1, b] - shared[a, b - 1] + shared[a - 1, b - 1] for a in both for b in both
    }


def _shares(grid: Grid, axis: int, depth: int) -> Reals:
    """Return the mass of every node of an attribute at a depth."""
    mass = np.ones(1)
    for level in range(depth):
        children = np.diff(grid.trees[axis].first[level])
        mass = np.asarray(np.repeat(mass / children, children), np.float64)
    return mass


def _others(axis: int, axes: int) -> list[int]:
    return [other for other in range(axes) if other != axis]


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
            mass = mass * np.expand_dims(_shares(self.grid, axis, depth), tuple(_others(axis, len(depths))))
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
