"""Least squares over measured tables against a dense solution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from treetop import Hierarchy
from treetop.errors import NumberError
from treetop.fit import CombinedTables, Depths, Grid, NoisyTable, combine, component_variances

Reals = NDArray[np.float64]


def tree_of(fan_outs: Sequence[int]) -> Hierarchy:
    """Make a tree of two levels whose first-level nodes have so many children."""
    codes = [f"{node}{child}" for node, children in enumerate(fan_outs) for child in range(children)]
    return Hierarchy.from_prefixes(codes, widths=[1], levels=["coarse", "fine"])


def matrix_of(grid: Grid, depths: Depths) -> Reals:
    """Return the matrix that sums leaves into the cells of a table."""
    found: Reals = np.ones((1, 1))
    for attribute, (tree, depth) in enumerate(zip(grid.trees, depths, strict=True)):
        above = grid.ancestors(attribute, depth, len(tree.levels))
        own = np.zeros((grid.sizes(depths)[attribute], len(above)))
        own[above, np.arange(len(above))] = 1.0
        found = np.asarray(np.kron(found, own), np.float64)
    return found


def dense(grid: Grid, tables: Sequence[NoisyTable]) -> tuple[Reals, Reals]:
    """Return the estimate of all leaves (of least norm) and their covariance, by dense linear algebra."""
    noisy = [table for table in tables if table.variance]
    matrix = np.concatenate([matrix_of(grid, table.depths) / np.sqrt(table.variance) for table in noisy])
    value = np.concatenate([np.ravel(table.value) / np.sqrt(table.variance) for table in noisy])
    leaves = matrix.shape[1]
    free, fixed = np.eye(leaves), np.zeros(leaves)
    for table in tables:
        if not table.variance:
            free, fixed = free - 1.0 / leaves, np.full(leaves, float(np.sum(table.value)) / leaves)
    gram = free @ matrix.T @ matrix @ free
    gram[np.abs(gram) < 1e-13] = 0.0
    inverse = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
    return fixed + inverse @ (matrix.T @ (value - matrix @ fixed)), inverse


@st.composite
def cases(draw: st.DrawFn) -> tuple[Grid, list[NoisyTable]]:
    attributes = draw(st.integers(1, 3))
    balanced = draw(st.booleans())
    trees = []
    for _ in range(attributes):
        nodes = draw(st.integers(1, 3))
        fan_outs = [draw(st.integers(1, 3))] * nodes if balanced else [draw(st.integers(1, 4)) for _ in range(nodes)]
        trees.append(tree_of(fan_outs))
    grid = Grid(trees)
    every = [depths for depths in product(range(3), repeat=attributes) if any(depths)]
    picked = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    tables = [
        NoisyTable(depths, rng.normal(50, 20, grid.sizes(depths)), float(rng.uniform(0.5, 9.0))) for depths in picked
    ]
    if draw(st.booleans()):
        variance = draw(st.sampled_from([0.0, 2.0]))
        tables.append(NoisyTable(grid.root, np.full(grid.sizes(grid.root), 400.0), variance))
    return grid, tables


@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(0, 1000))
def test_combined_tables_and_variances_are_those_of_dense_least_squares(
    case: tuple[Grid, list[NoisyTable]], seed: int
) -> None:
    grid, tables = case
    found = combine(grid, tables)
    leaves, covariance = dense(grid, tables)
    rng = np.random.default_rng(seed)
    for table in tables:
        expected = (matrix_of(grid, table.depths) @ leaves).reshape(grid.sizes(table.depths))
        np.testing.assert_allclose(found.value(table.depths), expected, rtol=1e-9, atol=1e-7)
        weights = rng.normal(size=grid.sizes(table.depths))
        query = matrix_of(grid, table.depths).T @ weights.ravel()
        true = float(query @ covariance @ query)
        assert found.variance(table.depths, weights) == pytest.approx(true, rel=1e-8, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_variances_by_components_bound_those_of_least_squares(case: tuple[Grid, list[NoisyTable]]) -> None:
    grid, tables = case
    found = combine(grid, tables)
    balanced = all(len(set(np.diff(first))) <= 1 for tree in grid.trees for first in tree.first)
    _, covariance = dense(grid, tables)
    for table in tables:
        sums = matrix_of(grid, table.depths)
        true = np.einsum("ij,jk,ik->i", sums, covariance, sums)
        bound = component_variances(found, table.depths).ravel()
        assert (bound >= true * (1 - 1e-8) - 1e-9).all()
        assert not balanced or bound == pytest.approx(true, rel=1e-7, abs=1e-9)


def test_variances_by_components_are_near_to_those_of_least_squares() -> None:
    grid = Grid([tree_of([2, 5, 3]), tree_of([1, 3])])
    tables = [NoisyTable(one, np.ones(grid.sizes(one)), 4.0) for one in [(1, 0), (2, 0), (0, 2), (1, 1), (2, 2)]]
    found = combine(grid, tables)
    for table in tables:
        bound = np.sqrt(component_variances(found, table.depths))
        true = [np.sqrt(found.cell_variance(table.depths, cell)) for cell in np.ndindex(bound.shape)]
        assert (bound.ravel() / true).mean() < 1.1


def test_combining_never_makes_a_cell_worse() -> None:
    grid = Grid([tree_of([2, 5]), tree_of([1, 3])])
    tables = [NoisyTable(one, np.ones(grid.sizes(one)), 4.0) for one in [(2, 0), (0, 2), (1, 1), (2, 2)]]
    found: CombinedTables = combine(grid, tables)
    assert all(found.cell_variance(table.depths) < 4.0 for table in tables)


def test_what_no_table_tells_is_refused() -> None:
    grid = Grid([tree_of([2, 2]), tree_of([2, 2])])
    tables = [NoisyTable((1, 0), np.ones((2, 1)), 1.0), NoisyTable((0, 1), np.ones((1, 2)), 1.0)]
    with pytest.raises(NumberError, match="no measured table tells"):
        combine(grid, tables).value((1, 1))
    with pytest.raises(NumberError, match="negative variance"):
        combine(grid, [NoisyTable((1, 0), np.ones((2, 1)), -1.0)])
    with pytest.raises(NumberError, match="two tables"):
        combine(grid, [tables[0], tables[0]])
    with pytest.raises(NumberError, match="shape"):
        combine(grid, [NoisyTable((1, 1), np.ones(4), 1.0)])
    with pytest.raises(NumberError, match="not finite"):
        combine(grid, [NoisyTable((1, 0), np.full((2, 1), np.nan), 1.0)])
    with pytest.raises(NumberError, match="nothing to combine"):
        combine(grid, [])
