"""Whole numbers with two sums each: as near as any, by brute force and by proof, and fair among equals."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from treetop.noise import Key
from treetop.repair import Tree
from treetop.repair.groups import (
    PARTS,
    KnownTotals,
    best_by_prices,
    divide_families,
    nearest_block,
    round_row,
    whole_families,
)

Ints = NDArray[np.int64]


def ways(total: int, most: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All whole numbers with a sum, none above its own bound."""
    if len(most) == 1:
        if total <= most[0]:
            yield (total,)
        return
    for first in range(min(total, most[0]) + 1):
        yield from ((first, *rest) for rest in ways(total - first, most[1:]))


def least_cost(fine: Ints, of_lines: Ints, of_nodes: Ints) -> int:
    """The least sum of squares of all blocks with these sums, by looking at every one."""

    @functools.cache
    def best(line: int, left: tuple[int, ...]) -> int:
        if line == len(fine):
            return 0
        found = []
        for way in ways(int(of_lines[line]), left):
            rest = tuple(have - take for have, take in zip(left, way, strict=True))
            own = sum((take * PARTS - int(target)) ** 2 for take, target in zip(way, fine[line], strict=True))
            if sum(rest) == int(of_lines[line + 1 :].sum()):
                found.append(own + best(line + 1, rest))
        return min(found, default=1 << 120)

    return best(0, tuple(of_nodes.tolist()))


def some_block(rng: np.random.Generator, spread: float) -> tuple[Ints, Ints, Ints]:
    truth = rng.integers(0, 3, rng.integers(1, 5, 2))
    fine = np.floor((truth + rng.normal(0, spread, truth.shape)) * PARTS).astype(np.int64)
    return fine, truth.sum(axis=1), truth.sum(axis=0)


@pytest.mark.parametrize("steps", [0, 3, 60])
def test_no_block_with_these_sums_is_nearer_whatever_prices_it_starts_from(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for _ in range(80):
        fine, of_lines, of_nodes = some_block(rng, spread=rng.choice([0.3, 2.0]))
        found = np.zeros(fine.shape, np.int64)
        nearest_block(fine, of_lines, of_nodes, steps, found)
        assert found.min() >= 0
        assert (found.sum(axis=1) == of_lines).all() and (found.sum(axis=0) == of_nodes).all()
        assert sum(
            (int(have) * PARTS - int(want)) ** 2 for have, want in zip(found.flat, fine.flat, strict=True)
        ) == least_cost(fine, of_lines, of_nodes)


def test_prices_prove_that_a_large_block_is_nearest_and_disprove_others() -> None:
    rng = np.random.default_rng(8)
    truth = rng.poisson(40 * 0.8 ** np.arange(60)[:, None] * rng.lognormal(0, 1, 12))
    fine = np.floor((truth + rng.normal(0, 4, truth.shape)) * PARTS).astype(np.int64)
    found = np.zeros(fine.shape, np.int64)
    prices = nearest_block(fine, truth.sum(axis=1), truth.sum(axis=0), 60, found)
    assert best_by_prices(fine, found, *prices)
    found[:2, :2] += [[1, -1], [-1, 1]]
    assert not best_by_prices(fine, found, *prices)


def test_sums_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match="do not agree"):
        nearest_block(np.zeros((2, 2), np.int64), np.array([1, 1]), np.array([1, 2]), 5, np.zeros((2, 2), np.int64))


@pytest.mark.parametrize("tree", [Tree.from_levels([[0, 3], [0, 1, 1, 4]]), Tree.from_levels([[0, 2], [0, 9, 12]])])
def test_all_levels_keep_both_sums(tree: Tree) -> None:
    rng = np.random.default_rng(2)
    leaves = rng.integers(0, 6, (7, int(tree.leaves[0])))
    truth = tree.sum_up(leaves).T
    numbers = truth.sum(axis=1)
    real = truth + rng.normal(0, 3, truth.shape)
    known = KnownTotals(int(numbers[0]), numbers, np.full(tree.nodes, True))
    found = whole_families(tree, real, known, Key(bytes(32)), 1)
    assert found.min() >= 0 and (found.sum(axis=1) == numbers).all()
    assert (found == tree.sum_up(found[tree.inner < 0].T).T).all()
    assert (whole_families(tree, real, known, Key(bytes(32)), 3) == found).all()


def test_without_known_numbers_the_real_sums_are_rounded_first() -> None:
    tree = Tree.from_levels([[0, 3]])
    real = np.array([[6.0, 6.0], [1.9, 2.0], [2.1, 2.9], [2.0, 1.1]])
    known = KnownTotals(12, np.full(4, 12), np.arange(4) == 0)
    found = whole_families(tree, real, known, Key(bytes(32)), 1)
    assert found.sum(axis=1).tolist() == [12, 4, 5, 3] and found[1:].sum(axis=0).tolist() == [6, 6]


def test_equals_are_favoured_at_random() -> None:
    """One group for three parts that are alike: the first gets it in a third of all cases."""
    tree = Tree.from_levels([[0, 3]])
    won = np.zeros(3, np.int64)
    out = np.zeros((4, 2), np.int64)
    for word in range(3_000):
        out[0] = [1, 0]
        numbers = np.full(4, -1)
        words = np.full(4, word * 7919, np.uint64)
        divide_families(tree.child, np.full((4, 2), 1 / 3), numbers, 0, 1, words, out)
        won += out[1:, 0]
    assert won.sum() == 3_000 and (np.abs(won - 1_000) < 200).all()  # eight standard deviations


def test_a_row_is_rounded_to_its_sum() -> None:
    out = np.zeros(4, np.int64)
    round_row(np.array([2.4, -1.0, 0.4, 3.3]), 6, np.uint64(5), out)
    assert out.tolist() == [2, 0, 1, 3] or out.tolist() == [3, 0, 0, 3]
    assert out.sum() == 6
