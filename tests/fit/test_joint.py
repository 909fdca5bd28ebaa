"""The joint fit: the minimum, whole numbers with whole margins, and swaps that keep them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from tests.fit.test_combine import matrix_of, tree_of
from treetop import Hierarchy
from treetop.errors import NumberError
from treetop.fit import (
    Grid,
    JointFit,
    NoisyTable,
    fit,
    joint_fit,
    largest_remainders,
    round_down,
    swap,
    two_sided,
    whole_margin,
    whole_shares,
)
from treetop.fit._entropy import _exp, _log

OPTIONAL = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def flat(*sizes: int) -> Grid:
    return Grid([Hierarchy.flat([f"{code:03}" for code in range(size)]) for size in sizes])


def pairs_of(grid: Grid, truth: Ints, deviation: float, seed: int) -> list[NoisyTable]:
    """Measure the total exactly, and all tables of one and two attributes at their finest level with noise."""
    rng = np.random.default_rng(seed)
    finest = tuple(len(tree.levels) for tree in grid.trees)
    every = range(len(finest))
    found = [NoisyTable(grid.root, truth.sum(keepdims=True), 0.0)]
    for told in [*combinations(every, 1), *combinations(every, 2)]:
        depths = tuple(depth if axis in told else 0 for axis, depth in enumerate(finest))
        true = grid.sum_to(truth, finest, depths)
        found.append(NoisyTable(depths, true + rng.normal(0, deviation, true.shape).round(), deviation**2))
    return found


def skewed(shape: tuple[int, ...], seed: int, total: int = 20_000) -> Ints:
    rng = np.random.default_rng(seed)
    return rng.multinomial(total, rng.dirichlet(np.full(int(np.prod(shape)), 0.1))).reshape(shape).astype(np.int64)


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_is_the_minimum_of_its_objective(seed: int) -> None:
    grid = Grid([tree_of([2, 1]), tree_of([1, 2])])
    rng = np.random.default_rng(seed)
    total, strength = 40.0, 0.3
    soft = [
        NoisyTable(one, rng.normal(6, 6, grid.sizes(one)), variance)
        for one, variance in [((1, 1), 4.0), ((2, 0), 9.0), ((0, 2), 9.0)]
    ]
    exact = [NoisyTable(grid.root, np.full((1, 1), total), 0.0)]
    found = fit(grid, (2, 2), soft, exact, strength=strength, precision=1e-5)
    prior = np.full(9, total / 9)
    penalty = strength / 3.0

    def objective(logs: Reals) -> float:
        x = np.exp(logs - logs.max())
        x *= total / x.sum()
        miss = [((matrix_of(grid, t.depths) @ x - t.value.ravel()) ** 2).sum() / (2 * t.variance) for t in soft]
        return float(sum(miss) + penalty * (x * np.log(np.maximum(x, 1e-300) / prior)).sum())

    best = minimize(objective, np.zeros(9), method="BFGS", options={"gtol": 1e-9})
    assert found.value.sum() == pytest.approx(total)
    assert objective(np.log(np.maximum(found.value.ravel(), 1e-300))) <= best.fun + 1e-6


def test_structural_zeros_stay_empty_and_impossible_totals_are_refused() -> None:
    grid = flat(3, 4)
    prior = np.ones((3, 4))
    prior[0, 1:] = 0.0
    truth = skewed((3, 4), 1) * (prior > 0)
    tables = pairs_of(grid, truth, 5.0, 1)
    found = joint_fit(grid, tables, prior)
    assert not found.counts[prior == 0].any()
    needed = [NoisyTable((1, 0), np.array([[5.0], [3.0], [2.0]]), 0.0)]
    prior[0] = 0.0
    with pytest.raises(NumberError, match="no count may be"):
        fit(grid, (1, 1), [NoisyTable((0, 1), np.full((1, 4), 2.5), 1.0)], needed, prior)
    with pytest.raises(NumberError, match="structural zero"):
        fit(grid, (1, 1), [], needed, np.zeros((3, 4)))


def test_a_fit_that_does_not_reach_its_precision_is_an_error() -> None:
    grid = flat(5, 5)
    tables = pairs_of(grid, skewed((5, 5), 0), 3.0, 0)
    with pytest.raises(NumberError, match="did not reach its precision"):
        fit(grid, (1, 1), tables[1:], tables[:1], precision=0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 10_000), st.sampled_from([0.3, 2.0, 40.0]))
def test_two_sided_rounding_keeps_rows_and_columns(rows: int, columns: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(scale, (rows, columns))
    target = np.maximum(truth + rng.normal(0, 1, truth.shape), 0.01)
    found = two_sided(target, truth.sum(axis=1), truth.sum(axis=0))
    assert (found >= 0).all()
    assert (found.sum(axis=1) == truth.sum(axis=1)).all()
    assert (found.sum(axis=0) == truth.sum(axis=0)).all()


def test_two_sided_rounding_refuses_totals_that_zeros_make_impossible() -> None:
    target = np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(NumberError, match="structural zeros"):
        two_sided(target, np.array([1, 1]), np.array([1, 1]))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.integers(0, 100))
def test_whole_shares_have_their_sum(target: list[float], total: int) -> None:
    found = whole_shares(np.array(target), total)
    assert (found >= 0).all() and found.sum() == total


def test_remainders_go_to_the_largest() -> None:
    found = largest_remainders(np.array([[0.6, 1.7, 0.7], [0.0, 0.5, 0.5]]), np.array([3, 1]))
    assert found.tolist() == [[0, 2, 1], [0, 1, 0]]


def test_rounding_goes_down_unbalanced_trees_in_any_order() -> None:
    grid = Grid([tree_of([3, 1, 2]), tree_of([2, 4])])
    rng = np.random.default_rng(5)
    fitted = rng.gamma(0.5, 8.0, (6, 6))
    fitted *= 300 / fitted.sum()
    margins = []
    for axis in (0, 1):
        own = fitted.sum(axis=1 - axis)
        margins.append(whole_margin(grid, axis, 2, np.array([300]), 0, own))
    for stages in (None, [0, 1, 0, 1], [1, 0, 0, 1]):
        found = round_down(grid, (2, 2), fitted, margins, stages)
        assert (found.sum(axis=1) == margins[0]).all() and (found.sum(axis=0) == margins[1]).all()
        assert np.abs(found - fitted).max() < 6


def test_swaps_keep_the_margins_and_bring_the_tables_nearer() -> None:
    grid = flat(6, 5, 4)
    rng = np.random.default_rng(2)
    fitted = rng.gamma(0.3, 20.0, (6, 5, 4))
    fitted *= 2000 / fitted.sum()
    margins = [whole_margin(grid, axis, 1, np.array([2000]), 0, grid.sum_to(fitted, (1, 1, 1), own).ravel())
               for axis, own in enumerate([(1, 0, 0), (0, 1, 0), (0, 0, 1)])]  # fmt: skip
    counts = round_down(grid, (1, 1, 1), fitted, margins)
    tables = [NoisyTable(one, np.zeros(grid.sizes(one)), 1.0) for one in [(1, 1, 0), (1, 0, 1), (0, 1, 1)]]
    found, swaps = swap(grid, (1, 1, 1), counts, fitted, tables, 7)

    def miss(x: Ints) -> float:
        return sum(float((grid.sum_to(x - fitted, (1, 1, 1), t.depths) ** 2).sum()) for t in tables)

    assert swaps > 0 and miss(found) < 0.7 * miss(counts)
    assert (found >= 0).all()
    for axes in [(1, 2), (0, 2), (0, 1)]:
        assert (found.sum(axis=axes) == counts.sum(axis=axes)).all()
    again, _ = swap(grid, (1, 1, 1), counts, fitted, tables, 7)
    assert (again == found).all()


def released(deviation: float = 20.0) -> tuple[Grid, Ints, list[NoisyTable], JointFit]:
    shape = (5, 6, 4, 3)
    grid, truth = flat(*shape), skewed(shape, 3)
    tables = pairs_of(grid, truth, deviation, 4)
    return grid, truth, tables, joint_fit(grid, tables)


def test_the_joint_fit_is_whole_and_nearer_than_the_measurements() -> None:
    grid, truth, tables, found = released()
    finest = (1, 1, 1, 1)
    assert found.counts.dtype == np.int64 and (found.counts >= 0).all()
    assert found.counts.sum() == truth.sum()
    pairs = [table for table in tables if sum(table.depths) == 2]
    error = np.mean([np.abs(found.table(t.depths) - grid.sum_to(truth, finest, t.depths)).mean() for t in pairs])
    measured = np.mean([np.abs(t.value - grid.sum_to(truth, finest, t.depths)).mean() for t in pairs])
    assert error < 0.85 * measured
    for axis in range(4):
        depths = tuple(int(other == axis) for other in range(4))
        assert np.abs(found.table(depths) - found.combined.value(depths)).max() < 25


def test_the_same_measurements_give_the_same_counts() -> None:
    first, second = released()[-1], released()[-1]
    assert (first.counts == second.counts).all() and first.swaps == second.swaps


def test_a_measured_leaf_table_and_levels_of_an_unbalanced_tree_are_fitted() -> None:
    grid = Grid([tree_of([3, 1, 2]), tree_of([2, 2])])
    truth = skewed((6, 4), 9, 3000)
    rng = np.random.default_rng(1)
    depths = [(1, 0), (2, 0), (0, 2), (1, 1), (2, 2)]
    tables = [
        NoisyTable(one, grid.sum_to(truth, (2, 2), one) + rng.normal(0, 4, grid.sizes(one)), 16.0) for one in depths
    ]
    found = joint_fit(grid, tables)
    assert abs(int(found.counts.sum()) - 3000) < 20
    assert np.abs(found.counts - truth).mean() < 4.0


def test_nothing_is_fitted_to_nothing() -> None:
    grid = flat(3, 3)
    tables = [NoisyTable(grid.root, np.zeros((1, 1)), 0.0), NoisyTable((1, 1), np.ones((3, 3)), 4.0)]
    assert not joint_fit(grid, tables).counts.any()


BITS = """
import hashlib
from tests.fit.test_joint import released
found = released()[-1]
print(hashlib.sha256(found.fitted.value.tobytes() + found.counts.tobytes()).hexdigest())
"""


def test_every_processor_gives_the_same_bits() -> None:
    def bits(**more: str) -> str:
        command = [sys.executable, "-c", BITS]
        return subprocess.run(command, env=os.environ | more, capture_output=True, check=True, text=True).stdout

    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NPY_DISABLE_CPU_FEATURES": OPTIONAL}
    assert bits() == bits(**plain)


@given(st.floats(-700, 700))
def test_exponentials_and_logarithms_are_those_of_the_library(x: float) -> None:
    assert _exp(x) == pytest.approx(math.exp(x), rel=4e-16)
    assert _log(math.exp(x)) == pytest.approx(math.log(math.exp(x)), rel=4e-16, abs=1e-16)
