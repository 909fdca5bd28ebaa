"""From measurements to group sizes: the ways to make them add up, none of which sees private data.

Differential Privacy of Hierarchical Census Data (CP 2019), sections 5 to 8: direct sizes (M_H) or cumulative ones
(M_c), and in each the exact nearest whole numbers (dp) or the nearest real numbers, rounded (r), which then may neither
add up nor keep the total. A third way is not in the paper (r+dp): the nearest real numbers, then whole numbers that
keep every sum, those of regions as well whose number of groups is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from treetop.basics.threads import in_runs
from treetop.noise import Key, Keystream
from treetop.repair import Tree, isotonic, project_tree, relax_cumulative, relax_tree
from treetop.repair.cumulative import relax_direct
from treetop.repair.families import divide_families, round_row

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_STEPS = 300
"""So many steps are taken towards the nearest real numbers; what is left is far below the noise."""
NEAR = 0.02
"""How near they must be, in standard deviations of the noise."""


@dataclass(frozen=True)
class Known:
    """What is public about the number of groups."""

    total: int
    """How many there are in all."""
    high: Integers
    """By node, a number of groups that it does not exceed."""
    ends: NDArray[np.bool_]
    """By node, whether that is the number of its groups."""
    spread: float = 1.0
    """The least standard deviation of the noise."""

    @property
    def numbers(self) -> Integers | int:
        """The number of groups of every node, where all are known; otherwise of all together."""
        return self.high if self.ends.all() else self.total

    @property
    def tolerance(self) -> float:
        """How near to the nearest is near enough: far below the noise, or below what rounding looks at."""
        return max(0.02, NEAR * self.spread)


def repair_direct(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return the nearest group sizes, by nodes and sizes, that are whole, add up and have the total."""
    return project_tree(tree, y.T, weights, known.total, key=key, threads=threads).T


def round_direct(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return the nearest real group sizes that add up, each rounded."""
    return _rounded(relax_tree(tree, y.T, weights, known.total, threads).T)


def repair_cumulative(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Make each node's cumulative sizes rise from 0 to its number of groups, and then their differences add up.

    Not the nearest to the measurements, since the two steps are apart, but exact in each.
    """
    rising = np.empty_like(y)
    # Where the number of groups is known, it is the last; the others are repaired without the noise of that.
    rising[known.ends, :-1] = isotonic(y[known.ends, :-1], known.high[known.ends])
    rising[known.ends, -1] = known.high[known.ends]
    if not known.ends.all():
        rising[~known.ends] = isotonic(y[~known.ends], known.high[~known.ends])
    return repair_direct(tree, np.diff(rising, axis=1, prepend=0), weights, known, key, threads)


def round_cumulative(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return the differences of the nearest real cumulative sizes that add up and do not decrease, each rounded."""
    return _rounded(_real_cumulative(tree, y, weights, known, threads))


def join_cumulative(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return whole numbers nearest to the differences of the nearest real cumulative sizes, family by family."""
    return whole_families(tree, _real_cumulative(tree, y, weights, known, threads), known, key, threads)


def join_direct(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return whole numbers nearest to the nearest real sizes, family by family."""
    real = relax_direct(tree, y, known.numbers, weights, MOST_STEPS, known.tolerance, threads)
    return whole_families(tree, real, known, key, threads)


def _real_cumulative(tree: Tree, y: Integers, weights: Integers, known: Known, threads: int) -> Floats:
    found = relax_cumulative(tree, y, known.numbers, weights, MOST_STEPS, known.tolerance, threads)
    return np.diff(found, axis=1, prepend=0.0)


def whole_families(tree: Tree, real: Floats, known: Known, key: Key, threads: int) -> Integers:
    """Return whole numbers near to real ones, from the root down: of each node's children at once, the nearest.

    They are not negative, sum to the node's size by size, and each child's sum to its number of groups. Where those
    are not known they are the nearest whole numbers to the real sums, found in the same way first.
    """
    words = np.empty(2 * tree.nodes, np.uint64)
    Keystream(key.derive("ties")).fill(words, 0)
    numbers = known.numbers
    if not isinstance(numbers, np.ndarray):
        sums = np.zeros((tree.nodes, 1), np.int64)
        sums[0] = known.total
        _divide_all(tree, real.sum(axis=1, keepdims=True), None, words[tree.nodes :], sums, threads)
        numbers = sums[:, 0]
    whole = np.zeros(real.shape, np.int64)
    round_row(real[0], int(numbers[0]), words[0], whole[0])
    _divide_all(tree, real, numbers, words[: tree.nodes], whole, threads)
    return whole


def _divide_all(
    tree: Tree, real: Floats, numbers: Integers | None, words: NDArray[np.uint64], out: Integers, threads: int
) -> None:
    """Fill in the counts of all nodes below the root, level by level."""
    free = np.full(tree.nodes, -1, np.int64) if numbers is None else numbers
    for level in tree.levels[:-1]:
        divide = partial(_divide_run, level.start, tree.child, real, free, words, out)
        in_runs(threads, level.stop - level.start, divide)


def _divide_run(
    start: int, child: Integers, real: Floats, numbers: Integers, words: NDArray[np.uint64], out: Integers, own: slice
) -> None:
    divide_families(child, real, numbers, start + own.start, start + own.stop, words, out)


def _rounded(x: NDArray[np.float64]) -> Integers:
    return np.floor(x + 0.5).astype(np.int64)
