"""The projection on a tree: exactly the nearest whole numbers, on any tree, for any weights, on any threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from treetop.errors import HierarchyError
from treetop.noise import Key
from treetop.repair import Tree, certified, euclidean, project_tree, whole_weights
from treetop.repair._projection import Total

Integers = NDArray[np.int64]
FAR = np.int64(1 << 60)
KEY = Key(bytes(32))


def a_tree(rng: np.random.Generator) -> Tree:
    """Up to four levels; branches end early now and then."""
    parents, level = [-1], [0]
    for _ in range(rng.integers(0, 4)):
        following: list[int] = []
        for node in level:
            if node == level[-1] or rng.random() < 0.85:
                following += range(len(parents), len(parents) + rng.integers(1, 4))
                parents += [node] * (following[-1] + 1 - len(parents))
        level = following
    return Tree.from_parents(parents)


def some_weights(rng: np.random.Generator, tree: Tree) -> Integers | None:
    kinds = [None, 2 ** rng.integers(0, 6, tree.nodes), rng.integers(1, 50, tree.nodes), rng.integers(0, 3, tree.nodes)]
    weights = kinds[rng.integers(len(kinds))]
    return None if weights is None else np.where(tree.inner < 0, np.maximum(weights, 1), weights)


def plus(a: Integers, b: Integers) -> Integers:
    """The least cost of every sum."""
    own = np.arange(len(a))
    other = np.append(b, FAR)[np.where(own[:, None] >= own, own[:, None] - own, -1)]
    sums: Integers = (a + other).min(axis=1)
    return sums


def cost_of_every_count(tree: Tree, y: Integers, w: Integers, most: int) -> Integers:
    """Dynamic programming over the whole domain 0 … most."""
    costs: list[Integers] = [w[v] * (np.arange(most + 1) - y[v]) ** 2 for v in range(tree.nodes)]
    for v in range(tree.nodes - 1, 0, -1):
        parent = tree.parent[v]
        if v + 1 == tree.child[parent + 1]:  # the last child comes first, and brings its sisters
            below = costs[v]
            for sister in range(tree.child[parent], v):
                below = plus(below, costs[sister])
            costs[parent] = costs[parent] + below
    return costs[0]


def least_cost(tree: Tree, y: Integers, w: Integers, total: Total) -> int:
    most = 100 if total is None else 40
    costs = [cost_of_every_count(tree, row, w, most) for row in y]
    if total is None:
        assert all(cost.argmin() < most for cost in costs)
        return sum(int(cost.min()) for cost in costs)
    if isinstance(total, int):
        together = costs[0]
        for cost in costs[1:]:
            together = plus(together, cost)
        return int(together[total])
    return sum(int(cost[own]) for cost, own in zip(costs, total, strict=True))


def assert_valid(tree: Tree, x: Integers, total: Total) -> None:
    assert x.dtype == np.int64 and x.min() >= 0
    assert (tree.sum_up(x[:, tree.inner < 0]) == x).all()
    if isinstance(total, int):
        assert x[:, 0].sum() == total
    elif total is not None:
        assert (x[:, 0] == total).all()


def a_total(rng: np.random.Generator, copies: int) -> Total:
    totals: list[Total] = [int(rng.integers(0, 40)), rng.integers(0, 40, copies), None]
    return totals[rng.integers(3)]


def test_it_costs_as_little_as_dynamic_programming_over_the_whole_domain() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        tree, copies, scale = a_tree(rng), int(rng.integers(1, 4)), int(rng.choice([2, 8, 30]))
        y = rng.integers(-scale, scale + 1, (copies, tree.nodes))
        weights, total = some_weights(rng, tree), a_total(rng, copies)
        x = project_tree(tree, y, weights, total, key=KEY)
        assert_valid(tree, x, total)
        w = tree.weights(weights)
        assert int((w * (x - y) ** 2).sum()) == least_cost(tree, y, w, total)


def milp_cost(tree: Tree, y: Integers, w: Integers, total: int) -> int:
    """A mixed-integer program with a variable for every unit of every node; slopes rise, so units fill in order."""
    copies, nodes = y.shape
    k = np.arange(total)
    slopes = w[:, None] * (2 * (k - y[..., None]) + 1)
    index = np.arange(copies * nodes * total).reshape(copies, nodes, total)
    rows = []
    for copy in range(copies):
        for v in range(nodes):
            row = sparse.lil_matrix((1, index.size))
            if tree.inner[v] >= 0:
                row[0, index[copy, v]] = -1
                row[0, index[copy, tree.child[v] : tree.child[v + 1]].ravel()] = 1
                rows.append(row)
    top = sparse.lil_matrix((1, index.size))
    top[0, index[:, 0].ravel()] = 1
    matrix = sparse.vstack([*rows, top]).tocsr()
    bound = np.append(np.zeros(len(rows)), total)
    ones = np.ones(index.size)
    found = milp(
        slopes.ravel(), integrality=ones, bounds=Bounds(0, 1), constraints=LinearConstraint(matrix, bound, bound)
    )
    assert found.status == 0
    return round(float(found.fun)) + int((w * y**2).sum())


def test_it_costs_as_little_as_a_mixed_integer_program() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        tree, copies, total = a_tree(rng), int(rng.integers(1, 4)), int(rng.integers(1, 15))
        y = rng.integers(-6, 9, (copies, tree.nodes))
        w = tree.weights(some_weights(rng, tree))
        x = project_tree(tree, y, w, total, key=KEY)
        assert int((w * (x - y) ** 2).sum()) == milp_cost(tree, y, w, total)


def test_one_level_is_the_euclidean_repair() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        y = rng.integers(-30, 60, rng.integers(2, 30))
        total = int(rng.integers(0, 500))
        tree = Tree.from_levels([[0, len(y)]])
        x = project_tree(tree, [0, *y], total=total, key=KEY)
        assert ((x[1:] - y) ** 2).sum() == ((euclidean(y, total, "ascending", seed=1) - y) ** 2).sum()


def test_measurements_that_agree_are_left_as_they_are() -> None:
    rng = np.random.default_rng(3)
    tree = Tree.from_levels([[0, 4], [0, 5, 6, 9, 20]])
    y = tree.sum_up(rng.integers(0, 50, (6, 20)))
    assert (project_tree(tree, y, key=KEY) == y).all()
    assert (project_tree(tree, y, total=int(y[:, 0].sum()), key=KEY) == y).all()
    assert (project_tree(tree, y, total=y[:, 0].copy(), key=KEY) == y).all()


def test_the_number_of_threads_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    tree = Tree.from_levels([[0, 5], [0, 4, 10, 11, 20, 30]])
    y = rng.integers(-3, 4, (101, tree.nodes))
    key = Key(bytes(32))
    for total in (50, None):
        answers = [project_tree(tree, y, total=total, key=key, threads=threads) for threads in (1, 2, 5)]
        assert (answers[0] == answers[1]).all() and (answers[0] == answers[2]).all()


def test_the_key_decides_among_equals_and_all_of_them_have_the_same_chance() -> None:
    tree = Tree.from_levels([[0, 2], [0, 3, 6]])
    y = np.zeros(tree.nodes, np.int64)
    chosen = np.zeros(tree.nodes, np.int64)
    for seed in range(3_000):
        chosen += project_tree(tree, y, total=1, key=Key(seed.to_bytes(32, "little")))
    assert chosen[0] == 3_000
    assert abs(chosen[1] - 1_500) < 5 * np.sqrt(3_000 / 4)
    assert np.abs(chosen[3:] - 500).max() < 5 * np.sqrt(3_000 * 5 / 36)


def test_copies_that_are_equal_have_the_same_chance_of_a_unit() -> None:
    tree = Tree.from_parents([-1])
    chosen = sum(project_tree(tree, np.zeros((5, 1), int), total=2, key=Key(bytes([i, j] * 16)))[:, 0]
                 for i in range(50) for j in range(40))  # fmt: skip
    assert np.abs(chosen - 800).max() < 5 * np.sqrt(2_000 * 0.24)


def test_a_free_root_that_gains_nothing_from_a_unit_takes_it_half_of_the_times() -> None:
    tree = Tree.from_levels([[0, 1]])
    # The cost of 3 and of 4 is the same: (3 − 3)² + (3 − 4)² = (4 − 3)² + (4 − 4)².
    x = project_tree(tree, np.tile([3, 4], (4_000, 1)), key=KEY)[:, 0]
    assert set(x.tolist()) == {3, 4}
    assert abs((x == 3).sum() - 2_000) < 5 * np.sqrt(1_000)


def test_large_counts_and_weights_are_projected_exactly() -> None:
    tree = Tree.from_levels([[0, 3]])
    # The children are worth far more than the parent, so they stay; without the total they would be 3·10¹².
    y = [10**12, 10**12, 10**12, 10**12]
    x = project_tree(tree, y, weights=[1, 1_000], key=KEY)
    w = tree.weights([1, 1_000])
    moved = x.copy()
    for leaf in (1, 2, 3):
        for step in (-1, 1):
            moved[[0, leaf]] += step
            assert (w * (moved - y) ** 2).sum() >= (w * (x - y) ** 2).sum()
            moved[[0, leaf]] -= step


def test_huge_counts_with_weights_far_apart_are_found_and_certified() -> None:
    """Breakpoints that differ by rounding only have no slope between them to go by."""
    rng = np.random.default_rng(5)
    tree = Tree.from_levels([np.arange(0, 3**depth + 1, 3) for depth in range(1, 7)])
    for total in (10**9, rng.integers(0, 10**9, 4), None):
        y = rng.integers(-(10**8), 10**8, (4, tree.nodes))
        w = 10 ** rng.integers(0, 6, tree.nodes)
        x = project_tree(tree, y, w, total, key=KEY)
        assert_valid(tree, x, total)
        assert certified(tree, y, x, w, total)


def test_what_does_not_fit_64_bits_is_refused() -> None:
    tree = Tree.from_levels([[0, 2]])
    with pytest.raises(ValueError, match="smaller weights"):
        project_tree(tree, [10**15, 1, 1], weights=[1, 10**6], key=KEY)


def test_wrong_shapes_and_values_are_refused() -> None:
    tree = Tree.from_levels([[0, 2]])
    for arguments, message in [
        (([1.5, 1.0, 1.0],), "whole numbers, not float64"),
        (([1, 1],), "rows of 3 nodes"),
        (([1, 1, 1], [0.5, 1.0]), "whole_weights"),
        (([1, 1, 1], [1, 0]), "those of leaves are positive"),
        (([1, 1, 1], [1, 1, 1, 1]), "one a level"),
        (([1, 1, 1], None, -1), "the total is -1"),
        (([1, 1, 1], None, np.array([1, 2])), "one for each of 1 copies"),
    ]:
        with pytest.raises(ValueError, match=message):
            project_tree(tree, *arguments, key=KEY)  # type: ignore[arg-type]


def test_what_is_not_a_tree_numbered_by_level_is_refused() -> None:
    for parents in ([], [0], [-1, -1], [-1, 0, 2, 1], [-1, 1, 2]):
        with pytest.raises(HierarchyError):
            Tree.from_parents(parents)
    with pytest.raises(HierarchyError, match="needs 3 offsets"):
        Tree.from_levels([[0, 2], [0, 4]])


def test_a_tree_is_the_same_by_levels_and_by_parents() -> None:
    tree = Tree.from_levels([[0, 2], [0, 3, 4]])
    assert tree.child.tolist() == Tree.from_parents([-1, 0, 0, 1, 1, 1, 2]).child.tolist()
    assert tree.leaves.tolist() == [4, 3, 1, 1, 1, 1, 1]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 1, 2]
    assert tree.sum_up(np.array([1, 2, 3, 4])).tolist() == [10, 6, 4, 1, 2, 3, 4]


def test_whole_weights_keep_their_proportions() -> None:
    assert whole_weights([1 / 3, 1 / 3]).tolist() == [1, 1]
    given = np.array([0.013, 1.7, 0.9])
    whole = whole_weights(given.tolist())
    assert np.abs(whole / whole.min() / (given / given.min()) - 1).max() < 1 / 2_000
    with pytest.raises(ValueError, match="positive and finite"):
        whole_weights([1.0, 0.0])
