"""The nearest real counts of all regions and sizes at once: regions add up, and every region's sizes are possible.

Cumulative counts may not decrease, from 0 on; direct ones may not be negative; and where a region's number of groups is
known, they end there, or sum to it. The tree and the rows pull in two directions, so the nearest point is found by
alternating: the nearest on the tree, which is least squares in two passes, and the nearest possible row of every
region, which is isotonic, or a projection on a simplex (ADMM: Boyd, Parikh, Chu, Peleato and Eckstein 2011, chapter 3).

Every region has a copy of its row, though those of the leaves would do, and both distances have the same weights: on
the tree the two are then in proportion, and the number of steps does not grow with the tree. A step is linear in the
number of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.basics.checked import real_numbers, whole_number
from treetop.basics.kernel import kernel
from treetop.basics.threads import in_runs
from treetop.errors import NumberError
from treetop.repair.isotonic import pool
from treetop.repair.simplex import sum_offset
from treetop.repair.tree import Tree

MOST_STEPS = 5_000
TOLERANCE = 1e-4
"""How far rows may be from possible ones, in counts: well below the half that rounding looks at."""
PULL = 3.0
"""How strongly the two are pulled together; what is found does not depend on it."""
EASE = 1.6
"""Steps go so much further than they would, which takes fewer of them."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Family:
    """The inner nodes of one level, and their children."""

    parents: Integers
    """The inner nodes."""
    children: slice
    """All their children."""
    first: Integers
    """Where the children of each start among them."""
    owner: Integers
    """For each child, the position of its parent among the parents."""


class TreeLeastSquares:
    """The nearest point on a tree, in any real numbers: a weighted mean on the way up, corrections on the way down."""

    def __init__(self, tree: Tree, weights: Floats) -> None:
        self._tree = tree
        self._weights = weights
        self._families = [_family(tree, level) for level in tree.levels[:-1]]
        self._precision = weights.copy()  # of a subtree's own estimate of its count
        self._variance = np.zeros(tree.nodes)  # of the sum of the children's estimates
        for own in reversed(self._families):
            self._variance[own.parents] = np.add.reduceat(1 / self._precision[own.children], own.first)
            self._precision[own.parents] = weights[own.parents] + 1 / self._variance[own.parents]

    def nearest(self, y: Floats, total: float | None = None) -> Floats:
        """Return the nearest point to y, an array of nodes by sizes, whose root has a total at the largest size."""
        x = y.copy()
        sums = {}
        for k, own in reversed(list(enumerate(self._families))):
            sums[k] = np.add.reduceat(x[own.children], own.first)
            w, variance = self._weights[own.parents, None], self._variance[own.parents, None]
            x[own.parents] = (w * y[own.parents] + sums[k] / variance) / self._precision[own.parents, None]
        if total is not None:
            x[0, -1] = total
        for k, own in enumerate(self._families):
            part = 1 / (self._precision[own.children] * self._variance[own.parents][own.owner])
            x[own.children] += part[:, None] * (x[own.parents] - sums[k])[own.owner]
        return x


def _family(tree: Tree, level: slice) -> _Family:
    parents = np.arange(level.start, level.stop)[tree.inner[level] >= 0]
    start, stop = int(tree.child[parents[0]]), int(tree.child[parents[-1] + 1])
    sizes = tree.child[parents + 1] - tree.child[parents]
    return _Family(parents, slice(start, stop), tree.child[parents] - start, np.repeat(np.arange(len(parents)), sizes))


def relax_cumulative(
    tree: Tree,
    measurements: ArrayLike,
    total: ArrayLike,
    weights: ArrayLike | None = None,
    most_steps: int = MOST_STEPS,
    tolerance: float = TOLERANCE,
    threads: int = 1,
) -> Floats:
    """Return the real numbers nearest to an array of nodes by sizes whose sums agree and whose rows do not decrease.

    They are not negative, and the root's last is `total`; with an array, every node's last is its own. Up to the
    tolerance, or what is left of it after the most steps.

    >>> tree = Tree.from_levels([[0, 2]])
    >>> relax_cumulative(tree, [[4, 9], [3, 1], [2, 8]], 10).round(2).tolist()
    [[4.0, 10.0], [2.0, 2.0], [2.0, 8.0]]
    """
    y, numbers = _given(tree, measurements, total)
    y[numbers >= 0, -1] = numbers[numbers >= 0]
    root = float(numbers[0])
    return _alternate(tree, y, weights, numbers, (_rise, root), most_steps, tolerance, threads)


def relax_direct(
    tree: Tree,
    measurements: ArrayLike,
    total: ArrayLike,
    weights: ArrayLike | None = None,
    most_steps: int = MOST_STEPS,
    tolerance: float = TOLERANCE,
    threads: int = 1,
) -> Floats:
    """Return the real numbers, none negative, nearest to an array of nodes by sizes whose sums agree.

    Those of the root sum to `total`; with an array, those of every node to its own.

    >>> tree = Tree.from_levels([[0, 2]])
    >>> relax_direct(tree, [[4, 6], [3, 1], [2, 4]], [10, 5, 5]).round(2).tolist()
    [[4.67, 5.33], [3.33, 1.67], [1.33, 3.67]]
    """
    y, numbers = _given(tree, measurements, total)
    return _alternate(tree, y, weights, numbers, (_share, None), most_steps, tolerance, threads)


def _given(tree: Tree, measurements: ArrayLike, total: ArrayLike) -> tuple[Floats, Integers]:
    """Return a copy of the measurements, and the number of every node, −1 where it is not known."""
    y = real_numbers(measurements, "the measurements", ndim=2).copy()
    if len(y) != tree.nodes or y.shape[1] == 0:
        raise NumberError(f"give {tree.nodes} rows, one a node, with a column a size, not an array of {y.shape}")
    given = np.asarray(total)
    if given.ndim == 0:
        numbers = np.full(tree.nodes, -1, np.int64)
        numbers[0] = whole_number(total, "the total")
        return y, numbers
    if given.shape != (tree.nodes,) or not np.issubdtype(given.dtype, np.integer) or given.min() < 0:
        raise NumberError(f"give the total, or the number of each of {tree.nodes} nodes, whole and not negative")
    numbers = given.astype(np.int64)
    if (tree.sum_up(numbers[tree.inner < 0]) != numbers).any():
        raise NumberError("the numbers of nodes do not add up to those of their parents")
    return y, numbers


def _alternate(
    tree: Tree,
    y: Floats,
    weights: ArrayLike | None,
    numbers: Integers,
    rows: tuple[Callable[..., float], float | None],
    most_steps: int,
    tolerance: float,
    threads: int,
) -> Floats:
    make_possible, root = rows
    least_squares = TreeLeastSquares(tree, tree.weights(weights).astype(np.float64))
    z, debt = y.copy(), np.zeros_like(y)
    in_runs(threads, len(y), lambda own: make_possible(y[own], z[own], debt[own], numbers[own], 1.0), 1)
    debt[:] = 0.0
    x = y
    for _ in range(most_steps):
        x = least_squares.nearest((y + PULL * (z - debt)) / (1 + PULL), root)
        if max(in_runs(threads, len(y), partial(_step, make_possible, x, z, debt, numbers), 1)) <= tolerance:
            break
    return x


def _step(
    make_possible: Callable[..., float], x: Floats, z: Floats, debt: Floats, numbers: Integers, own: slice
) -> float:
    return make_possible(x[own], z[own], debt[own], numbers[own], EASE)


@kernel
def _rise(x: Floats, z: Floats, debt: Floats, numbers: Integers, ease: float) -> float:
    """Move each row's copy to the nearest that rises from 0, to its number where known; return the largest gap."""
    sizes = x.shape[1]
    aim, sums, lengths = np.empty(sizes), np.empty(sizes), np.empty(sizes, np.int64)
    gap = 0.0
    for r in range(len(x)):
        end = sizes - 1 if numbers[r] >= 0 else sizes
        high = float(numbers[r]) if numbers[r] >= 0 else np.inf
        for s in range(sizes):
            aim[s] = ease * x[r, s] + (1.0 - ease) * z[r, s] + debt[r, s]
        at = 0
        for b in range(pool(aim[:end], sums, lengths)):
            value = min(max(sums[b] / lengths[b], 0.0), high)
            for s in range(at, at + lengths[b]):
                gap = max(gap, abs(x[r, s] - value), abs(z[r, s] - value))
                debt[r, s] = aim[s] - value
                z[r, s] = value
            at += lengths[b]
        if end < sizes:
            debt[r, end], z[r, end] = 0.0, high
    return gap


@kernel
def _share(x: Floats, z: Floats, debt: Floats, numbers: Integers, ease: float) -> float:
    """Move each row's copy to the nearest without negative counts, with its sum where known; return the largest gap."""
    sizes = x.shape[1]
    aim = np.empty(sizes)
    gap = 0.0
    for r in range(len(x)):
        for s in range(sizes):
            aim[s] = ease * x[r, s] + (1.0 - ease) * z[r, s] + debt[r, s]
        offset = sum_offset(aim, float(numbers[r])) if numbers[r] >= 0 else 0.0
        for s in range(sizes):
            value = max(aim[s] + offset, 0.0)
            gap = max(gap, abs(x[r, s] - value), abs(z[r, s] - value))
            debt[r, s] = aim[s] - value
            z[r, s] = value
    return gap
