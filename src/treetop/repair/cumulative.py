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
from functools import partial
from typing import NamedTuple

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


class _Tree(NamedTuple):
    """A tree with weights, and what the nearest point on it needs to know of them."""

    child: Integers
    """`child[v] : child[v + 1]` are the children of node v."""
    weights: Floats
    """The weight of every node's own measurement."""
    precision: Floats
    """That of its subtree's own estimate."""
    variance: Floats
    """That of the sum of its children's estimates; 0 of a leaf."""

    @staticmethod
    def of(tree: Tree, weights: ArrayLike | None) -> _Tree:
        own = tree.weights(weights).astype(np.float64)
        precision, variance = own.copy(), np.zeros(tree.nodes)
        for v in range(tree.nodes - 1, -1, -1):
            first, last = tree.child[v], tree.child[v + 1]
            if first < last:
                variance[v] = (1 / precision[first:last]).sum()
                precision[v] = own[v] + 1 / variance[v]
        return _Tree(tree.child, own, precision, variance)


@kernel
def _nearest(
    child: Integers, weights: Floats, precision: Floats, variance: Floats, y: Floats, z: Floats, debt: Floats,
    pull: float, total: float, x: Floats,
) -> None:  # fmt: skip
    """Write the nearest point on the tree to a mean of measurements and copies: a weighted mean on the way up,
    corrections on the way down. A total of 0 or more is what the root's last count is."""
    nodes, sizes = y.shape
    both = 1.0 / (1.0 + pull)
    apart = np.empty(sizes)
    for v in range(nodes - 1, -1, -1):
        for s in range(sizes):
            x[v, s] = both * (y[v, s] + pull * (z[v, s] - debt[v, s]))
        if child[v] == child[v + 1]:
            continue
        apart[:] = 0.0
        for c in range(child[v], child[v + 1]):
            for s in range(sizes):
                apart[s] += x[c, s]
        for s in range(sizes):
            x[v, s] = (weights[v] * x[v, s] + apart[s] / variance[v]) / precision[v]
    if total >= 0.0:
        x[0, sizes - 1] = total
    for v in range(nodes):
        if child[v] == child[v + 1]:
            continue
        for s in range(sizes):
            apart[s] = x[v, s]
        for c in range(child[v], child[v + 1]):
            for s in range(sizes):
                apart[s] -= x[c, s]
        for c in range(child[v], child[v + 1]):
            part = 1.0 / (precision[c] * variance[v])
            for s in range(sizes):
                x[c, s] += part * apart[s]


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
    [[4.33, 5.67], [3.17, 1.83], [1.17, 3.83]]
    """
    y, numbers = _given(tree, measurements, total)
    return _alternate(tree, y, weights, numbers, (_share, -1.0), most_steps, tolerance, threads)


def _given(tree: Tree, measurements: ArrayLike, total: ArrayLike) -> tuple[Floats, Integers]:
    """Return a copy of the measurements, and the number of every node, −1 where it is not known."""
    y = real_numbers(measurements, "the measurements", ndim=2).copy()
    if len(y) != tree.nodes or y.shape[1] == 0:
        raise NumberError(f"give {tree.nodes} rows, one a node, with a column per size, not an array of {y.shape}")
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
    rows: tuple[Callable[..., float], float],
    most_steps: int,
    tolerance: float,
    threads: int,
) -> Floats:
    make_possible, root = rows
    known = _Tree.of(tree, weights)
    x, z, debt = y.copy(), y.copy(), np.zeros_like(y)

    def possible(ease: float, own: slice) -> float:
        return make_possible(x[own], z[own], debt[own], numbers[own], ease)

    in_runs(threads, len(y), partial(possible, 1.0), 1)
    debt[:] = 0.0
    for _ in range(most_steps):
        _nearest(*known, y, z, debt, PULL, root, x)
        if max(in_runs(threads, len(y), partial(possible, EASE), 1)) <= tolerance:
            break
    return x


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
