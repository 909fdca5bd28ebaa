"""Isotonic repairs: the nearest sequences that never decrease, alone and on a tree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, isotonic_regression, minimize

from treetop.errors import NumberError
from treetop.repair import Tree, isotonic, relax_cumulative, relax_isotonic
from treetop.repair._cumulative import relax_direct


def test_no_other_whole_numbers_are_nearer() -> None:
    rng = np.random.default_rng(0)
    candidates = np.array(list(itertools.combinations_with_replacement(range(7), 4)))
    for _ in range(500):
        y = rng.integers(-4, 11, (1, 4))
        x = isotonic(y, 6)
        assert (np.diff(x) >= 0).all() and x.min() >= 0 and x.max() <= 6
        assert ((x - y) ** 2).sum() == ((candidates - y) ** 2).sum(axis=1).min()


def test_reals_agree_with_scipy_and_are_clipped() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(5, 4, (50, 80)) + np.arange(80) / 10
    high = rng.uniform(5, 9, 50)
    expected = [np.clip(isotonic_regression(row).x, 0, bound) for row, bound in zip(y, high, strict=True)]
    assert np.allclose(relax_isotonic(y, high), expected)


def test_whole_numbers_are_the_reals_rounded() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(-50, 50, (40, 200)) + np.arange(200)
    assert (isotonic(y, 180) == np.floor(relax_isotonic(y, 180) + 0.5)).all()


def test_rows_have_bounds_of_their_own() -> None:
    assert isotonic([[1, 5], [1, 5]], np.array([3, 9])).tolist() == [[1, 3], [1, 5]]


def test_what_cannot_be_repaired_is_refused() -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        isotonic([[1.5]], 3)
    with pytest.raises(ValueError, match="upper bound is -1"):
        isotonic([[1]], -1)
    with pytest.raises(ValueError, match="do not fit 64 bits"):
        isotonic([[2**60, 0, 0]], 1)
    with pytest.raises(ValueError, match="finite"):
        relax_isotonic([[np.nan]], 1)


@pytest.mark.parametrize("tree", [Tree.from_levels([[0, 2]]), Tree.from_levels([[0, 2], [0, 1, 3]])], ids=repr)
def test_cumulative_counts_agree_with_a_general_solver(tree: Tree) -> None:
    rng = np.random.default_rng(3)
    sizes, leaves = 3, int(tree.leaves[0])
    up = np.stack([tree.sum_up(unit) for unit in np.eye(leaves, dtype=np.int64)], axis=1)  # nodes × leaves
    for _ in range(6):
        y = rng.integers(-2, 12, (tree.nodes, sizes))
        w = rng.integers(1, 5, len(tree.levels))
        total = int(rng.integers(4, 15))
        x = relax_cumulative(tree, y, total, w)
        full = np.repeat(w, [level.stop - level.start for level in tree.levels])[:, None]

        def cost(steps, full=full, y=y):  # type: ignore[no-untyped-def]
            return (full * (up @ np.cumsum(steps.reshape(leaves, sizes), axis=1) - y) ** 2).sum()

        start = np.full(leaves * sizes, total / leaves / sizes)
        whole = LinearConstraint(np.ones((1, leaves * sizes)), total, total)
        found = minimize(cost, start, bounds=Bounds(0, np.inf), constraints=[whole], method="SLSQP",
                         options={"ftol": 1e-12, "maxiter": 500})  # fmt: skip
        assert (full * (x - y) ** 2).sum() == pytest.approx(found.fun, abs=2e-2)
        assert np.allclose(up @ x[tree.inner < 0], x, atol=1e-6)
        assert x[0, -1] == total and np.diff(x).min() > -1e-3 and x.min() > -1e-3


@pytest.mark.parametrize("form", ["cumulative", "direct"])
def test_known_numbers_of_every_node_are_kept_at_the_least_distance(form: str) -> None:
    """As a general solver has it: every row ends at its number, or sums to it."""
    tree, sizes = Tree.from_levels([[0, 2], [0, 1, 3]]), 3
    rng = np.random.default_rng(5)
    leaves = int(tree.leaves[0])
    up = np.stack([tree.sum_up(unit) for unit in np.eye(leaves, dtype=np.int64)], axis=1)
    for _ in range(6):
        truth = rng.integers(0, 5, (leaves, sizes))
        numbers = tree.sum_up(truth.sum(axis=1))
        y = rng.integers(-3, 9, (tree.nodes, sizes))
        w = rng.integers(1, 5, len(tree.levels))
        full = np.repeat(w, [level.stop - level.start for level in tree.levels])[:, None]
        y = np.column_stack([y[:, :-1], numbers]) if form == "cumulative" else y
        x = (relax_cumulative if form == "cumulative" else relax_direct)(tree, y, numbers, w)

        def cost(steps, full=full, y=y):  # type: ignore[no-untyped-def]
            found = steps.reshape(leaves, sizes)
            return (full * (up @ (np.cumsum(found, axis=1) if form == "cumulative" else found) - y) ** 2).sum()

        rows = LinearConstraint(np.kron(np.eye(leaves), np.ones((1, sizes))), truth.sum(axis=1), truth.sum(axis=1))
        found = minimize(cost, truth.ravel().astype(float), bounds=Bounds(0, np.inf), constraints=[rows],
                         method="SLSQP", options={"ftol": 1e-12, "maxiter": 500})  # fmt: skip
        assert (full * (x - y) ** 2).sum() == pytest.approx(found.fun, abs=2e-2)
        sums = x[:, -1] if form == "cumulative" else x.sum(axis=1)
        assert np.allclose(sums, numbers, atol=1e-3) and np.allclose(up @ x[tree.inner < 0], x, atol=1e-6)


def test_numbers_of_nodes_that_do_not_add_up_are_refused() -> None:
    tree = Tree.from_levels([[0, 2]])
    with pytest.raises(NumberError, match="do not add up"):
        relax_cumulative(tree, [[4, 9], [9, 1], [2, 8]], np.array([10, 5, 6]))
    with pytest.raises(NumberError, match="number of each of 3 nodes"):
        relax_direct(tree, [[4, 9], [9, 1], [2, 8]], np.array([10, 5]))
