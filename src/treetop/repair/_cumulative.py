"""The nearest real counts of all regions and sizes at once: regions add up, and every region's sizes are possible.

Cumulative counts may not decrease, from 0 on; direct ones may not be negative; and if a region's number of groups is
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop._util.dtypes import real_numbers, whole_number, whole_numbers
from treetop._util.kernel import kernel
from treetop._util.system import in_runs
from treetop.errors import NumberError
from treetop.repair._tree import Tree

# Isotonic repair: the nearest sequences that never decrease, by pooling adjacent violators.

Numbers = NDArray[np.int64] | NDArray[np.float64]


@kernel
def pool(values: Numbers, sums: Numbers, sizes: NDArray[np.int64]) -> int:
    """Write the sum and size of each block of the nearest sequence; return how many blocks there are.

    Values may be integers: means are compared by cross-multiplication, which is then exact.
    """
    blocks = 0
    for i in range(len(values)):
        sums[blocks] = values[i]
        sizes[blocks] = 1
        while blocks > 0 and sums[blocks - 1] * sizes[blocks] >= sums[blocks] * sizes[blocks - 1]:
            blocks -= 1
            sums[blocks] += sums[blocks + 1]
            sizes[blocks] += sizes[blocks + 1]
        blocks += 1
    return blocks


@kernel
def _whole_rows(values: NDArray[np.int64], high: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    sums, sizes = np.empty(values.shape[1], np.int64), np.empty(values.shape[1], np.int64)
    for r in range(len(values)):
        at = 0
        for b in range(pool(values[r], sums, sizes)):
            rounded = (2 * sums[b] + sizes[b]) // (2 * sizes[b])  # ⌊mean + ½⌋
            out[r, at : at + sizes[b]] = min(max(rounded, 0), high[r])
            at += sizes[b]


@kernel
def _real_rows(values: NDArray[np.float64], high: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    sums, sizes = np.empty(values.shape[1]), np.empty(values.shape[1], np.int64)
    for r in range(len(values)):
        at = 0
        for b in range(pool(values[r], sums, sizes)):
            out[r, at : at + sizes[b]] = min(max(sums[b] / sizes[b], 0.0), high[r])
            at += sizes[b]


def isotonic(values: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Return for each row the nearest non-decreasing whole numbers between 0 and `high`, a number or one a row.

    >>> isotonic([[3, 1, 4], [-2, 9, 5]], 6).tolist()
    [[2, 2, 4], [0, 6, 6]]
    """
    given = np.asarray(values)
    if given.ndim != 2 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
        raise NumberError(f"give rows of whole numbers, not {given.dtype} of shape {given.shape}")
    largest = max(int(given.max()), -int(given.min()))
    if largest * given.shape[1] ** 2 >= 2**62:
        raise NumberError(f"rows of {given.shape[1]} entries up to {largest} do not fit 64 bits when summed")
    rows = np.ascontiguousarray(given, np.int64)
    bound = whole_numbers(_one_a_row(high, rows), "the upper bounds", most=2**62)
    if bound.min() < 0:
        raise NumberError(f"the upper bound is {bound.min()}, below the lower one, 0")
    out = np.empty(rows.shape, np.int64)
    _whole_rows(rows, bound, out)
    return out


def relax_isotonic(values: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return for each row the nearest non-decreasing real numbers between 0 and `high`.

    >>> relax_isotonic([[3.0, 2.0, 4.0]], 9).tolist()
    [[2.5, 2.5, 4.0]]
    """
    rows = real_numbers(values, "the rows", ndim=2)
    if rows.size == 0:
        raise NumberError(f"give rows of finite numbers, not an array of shape {rows.shape}")
    bound = np.asarray(_one_a_row(high, rows), np.float64)
    if np.isnan(bound).any() or bound.min() < 0:
        raise NumberError("the upper bounds are numbers, 0 or more")
    out = np.empty(rows.shape)
    _real_rows(rows, np.ascontiguousarray(bound), out)
    return out


def _one_a_row(high: ArrayLike, rows: Numbers) -> NDArray[Any]:
    given = np.asarray(high)
    if given.shape not in ((), (len(rows),)) or given.dtype == object:
        raise NumberError(f"give one upper bound, or one for each of {len(rows)} rows, not an array of {given.shape}")
    return np.broadcast_to(given, len(rows))


# The nearest numbers that are not negative and have a given sum: all that is above zero is moved by one offset.

_MOST_NEWTON = 60


@kernel
def sum_offset(values: NDArray[np.float64], total: float) -> float:
    """Return the offset with which the values, none below zero, sum to the total: Newton's method, exact at its end."""
    offset = (total - values.sum()) / len(values)
    for _ in range(_MOST_NEWTON):
        reached, above, highest = 0.0, 0, -np.inf
        for i in range(len(values)):
            highest = max(highest, values[i])
            if values[i] + offset > 0.0:
                reached += values[i] + offset
                above += 1
        if above == 0:
            offset = total - highest
            continue
        offset += (total - reached) / above
        if abs(total - reached) <= 1e-9 * (1.0 + total):
            break
    return offset


MOST_STEPS = 5_000
TOLERANCE = 1e-4
"""Tolerance of rows, in counts: well below 1/2, so that rounding is unaffected."""
PULL = 3.0
"""Penalty parameter that couples the two variables; the solution does not depend on it."""
EASE = 1.6
"""Over-relaxation factor of the steps, for faster convergence."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class _Tree(NamedTuple):
    """A tree with weights, and precomputed precisions for projecting on it."""

    child: Integers
    """`child[v] : child[v + 1]` are the children of node v."""
    weights: Floats
    """Weight of every node's own measurement."""
    precision: Floats
    """Precision of the estimate from the node's own subtree."""
    variance: Floats
    """Variance of the sum of the children's estimates; 0 for a leaf."""

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
    """Write the nearest point on the tree to a mean of measurements and copies.

    A weighted mean on the way up, corrections on the way down. A `total` of 0 or more fixes the root's last count.
    """
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
    """Return the nearest real numbers, nodes by sizes, with children that sum to parents and rows that do not decrease.

    They are not negative. A number as `total` fixes the root's last entry, an array every node's. The result is within
    `tolerance`, unless `most_steps` are reached first.

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
    """Return the nearest non-negative real numbers, nodes by sizes, with children that sum to parents.

    A number as `total` fixes the sum of the root's row, an array that of every node's.

    >>> tree = Tree.from_levels([[0, 2]])
    >>> relax_direct(tree, [[4, 6], [3, 1], [2, 4]], [10, 5, 5]).round(2).tolist()
    [[4.33, 5.67], [3.17, 1.83], [1.17, 3.83]]
    """
    y, numbers = _given(tree, measurements, total)
    return _alternate(tree, y, weights, numbers, (_share, -1.0), most_steps, tolerance, threads)


def _given(tree: Tree, measurements: ArrayLike, total: ArrayLike) -> tuple[Floats, Integers]:
    """Return a copy of the measurements, and the number of every node, −1 if it is not known."""
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
    """Project each row's copy on rows that rise from 0, to its number if known; return the largest gap."""
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
    """Project each row's copy on non-negative counts, with its sum if known; return the largest gap."""
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
