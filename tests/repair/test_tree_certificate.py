"""The certificate of a projection: it holds for the least cost and for nothing else, and windows do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop.noise import Key
from treetop.repair import Tree, certified, project_tree, relax_tree
from treetop.repair import _projection as module
from treetop.repair._projection import Total

KEY = Key(bytes(32))
TREES = [
    Tree.from_parents([-1]),
    Tree.from_levels([[0, 3]]),
    Tree.from_levels([[0, 2], [0, 2, 4]]),
    Tree.from_parents([-1, 0, 0, 0, 2, 2]),
    Tree.from_levels([[0, 1], [0, 2], [0, 2, 3]]),
]


def all_leaves(leaves: int, most: int) -> NDArray[np.int64]:
    """Every way to count up to `most` in each leaf."""
    return np.stack(np.meshgrid(*[np.arange(most + 1)] * leaves, indexing="ij"), axis=-1).reshape(-1, leaves)


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("total", [5, np.array([5]), None], ids=["joint", "own", "free"])
def test_it_holds_for_exactly_the_points_of_least_cost(tree: Tree, total: Total) -> None:
    rng = np.random.default_rng(5)
    points = tree.sum_up(all_leaves(int(tree.leaves[0]), 8 if tree.leaves[0] < 4 else 5))
    if total is not None:
        points = points[points[:, 0] == 5]
    for _ in range(6):
        y = rng.integers(-3, 5, tree.nodes)
        w = rng.integers(1, 4, tree.nodes)
        costs = (w * (points - y) ** 2).sum(axis=1)
        for point, cost in zip(points, costs, strict=True):
            assert certified(tree, y, point, w, total) == (cost == costs.min())


def test_copies_under_one_total_may_not_be_improved_by_moving_a_unit_between_them() -> None:
    tree = Tree.from_parents([-1])
    assert certified(tree, [[4], [4]], [[3], [3]], total=6)
    assert not certified(tree, [[4], [4]], [[2], [4]], total=6)
    assert certified(tree, [[4], [4]], [[2], [4]], total=np.array([2, 4]))
    assert not certified(tree, [[4], [4]], [[3], [3]], total=7)


def test_counts_that_do_not_add_up_or_are_negative_are_not_certified() -> None:
    tree = Tree.from_levels([[0, 2]])
    assert certified(tree, [3, 1, 2], [3, 1, 2])
    assert not certified(tree, [3, 1, 1], [3, 1, 1])
    assert not certified(tree, [-1, -1, 0], [-1, -1, 0])


def test_a_window_too_narrow_is_widened_until_the_certificate_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anchors far from the optimum: the first windows do not hold it, and the answer is the same."""
    rng = np.random.default_rng(6)
    tree = Tree.from_levels([[0, 3], [0, 2, 5, 9]])
    solved = module._solve
    reaches: list[int] = []

    def watched(*arguments: object) -> bool:
        reaches.append(arguments[5])  # type: ignore[arg-type]
        return solved(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_solve", watched)
    for total in (100, None, np.array([90, 10])):
        y = rng.integers(-20, 60, (2, tree.nodes))
        right = project_tree(tree, y, total=total, key=KEY)
        assert reaches == [2]
        with monkeypatch.context() as patch:
            patch.setattr(module, "_relaxed", lambda tree, y, w, total, threads: np.zeros(y.shape))
            wrong_start = project_tree(tree, y, total=total, key=KEY)
        assert len(reaches) > 3 and reaches[1:] == [2 << step for step in range(len(reaches) - 1)]
        assert ((wrong_start - y) ** 2).sum() == ((right - y) ** 2).sum()
        assert certified(tree, y, wrong_start, total=total)
        reaches.clear()


def test_a_failed_certificate_widens_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree.from_levels([[0, 3]])
    held = module.certified
    verdicts: list[bool] = []

    def sceptical(*arguments: object) -> bool:
        verdicts.append(held(*arguments))  # type: ignore[arg-type]
        return len(verdicts) > 2

    monkeypatch.setattr(module, "certified", sceptical)
    assert project_tree(tree, [7, 5, 3, -4], total=8, key=KEY).tolist() == [8, 5, 3, 0]
    assert verdicts == [True, True, True]


def test_the_relaxation_is_nearest_among_real_numbers() -> None:
    """It is feasible, and the cost of one unit more is the same in all leaves above zero, and no less in the others."""
    rng = np.random.default_rng(7)
    for tree in TREES:
        for total in (40, 0, None):
            y = rng.integers(-20, 30, (3, tree.nodes))
            w = rng.integers(1, 9, tree.nodes)
            x = relax_tree(tree, y, w, total)
            sums = np.zeros_like(x)
            for v in range(1, tree.nodes):
                sums[:, tree.parent[v]] += x[:, v]
            assert np.allclose(sums[:, tree.inner >= 0], x[:, tree.inner >= 0], atol=1e-9)
            assert x.min() >= 0
            gradient = w * (x - y)  # half of it, summed along the path to each leaf
            for v in range(1, tree.nodes):
                gradient[:, v] += gradient[:, tree.parent[v]]
            leaves = tree.inner < 0
            held = gradient[:, leaves][x[:, leaves] > 1e-9]
            if total is None:
                assert np.allclose(held, 0, atol=1e-6) and gradient[:, leaves].min() > -1e-6
            elif total > 0:
                assert x[:, 0].sum() == pytest.approx(total)
                assert np.ptp(held) < 1e-6 and gradient[:, leaves].min() > held.min() - 1e-6


def test_the_relaxation_costs_no_more_than_the_projection() -> None:
    rng = np.random.default_rng(8)
    tree = Tree.from_levels([[0, 10], np.arange(0, 101, 10)])
    y = rng.integers(-30, 50, (40, tree.nodes))
    x, real = project_tree(tree, y, total=5_000, key=KEY), relax_tree(tree, y, total=5_000)
    assert ((real - y) ** 2).sum() <= ((x - y) ** 2).sum()
    assert np.abs(x - real).max() < 3
