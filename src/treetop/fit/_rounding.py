"""Controlled rounding: whole counts from the top of the tree down, with whole totals of every attribute.

Refining an attribute divides the count of every cell among the node's children. The cells are rows with whole sums,
and the children are columns whose sums are the attribute's whole margin. Each row is rounded by largest remainder;
then single units move within rows from columns that have too much to columns that have too little, the cheapest first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.errors import NumberError
from treetop.fit.noisy_tables import Depths, Grid, Ints, Reals

_SCALINGS = 20


def whole_shares(target: Reals, total: int) -> Ints:
    """Return non-negative whole numbers with a sum, nearest to targets that may be negative."""
    kept = np.sort(target)[::-1]
    level = (np.cumsum(kept) - total) / np.arange(1, len(kept) + 1)
    shift = level[np.flatnonzero(kept > level)[-1]] if total > 0 else np.inf
    exact = np.maximum(target - shift, 0.0)
    found: Ints = largest_remainders(exact[np.newaxis], np.array([total]))[0]
    return found


def whole_margin(grid: Grid, attribute: int, depth: int, known: Ints, at: int, target: Reals) -> Ints:
    """Return whole totals of an attribute at a depth, which add up to those known at a coarser one."""
    counts = known
    for level in range(at, depth):
        goal = np.add.reduceat(target, grid.starts(attribute, level + 1, depth)[:-1])
        start = grid.trees[attribute].first[level]
        parts = [whole_shares(goal[a:b], int(n)) for a, b, n in zip(start, start[1:], counts, strict=False)]
        counts = np.concatenate(parts)
    return counts


def round_down(
    grid: Grid, trunk: Depths, fitted: Reals, margins: Sequence[Ints], stages: Sequence[int] | None = None
) -> Ints:
    """Round a fitted table to whole counts with given margins.

    Args:
        grid: The attributes.
        trunk: The depths of the table.
        fitted: The table.
        margins: The whole totals of every attribute at the depth of the trunk, with one common sum.
        stages: Which attribute each step refines by a level; attribute by attribute if not given.
    """
    depths, counts = grid.root, np.full((1,) * len(trunk), int(margins[0].sum()))
    for axis in [axis for axis, depth in enumerate(trunk) for _ in range(depth)] if stages is None else stages:
        finer = (*depths[:axis], depths[axis] + 1, *depths[axis + 1 :])
        target = np.moveaxis(grid.sum_to(fitted, trunk, finer), axis, -1)
        column = np.add.reduceat(margins[axis], grid.starts(axis, finer[axis], trunk[axis])[:-1])
        rows = np.moveaxis(counts, axis, -1)
        refined = _refined(
            rows.reshape(-1, rows.shape[-1]),
            target.reshape(-1, target.shape[-1]),
            column,
            grid.trees[axis].first[depths[axis]],
        )
        counts = np.ascontiguousarray(np.moveaxis(refined.reshape(target.shape), -1, axis))
        depths = finer
    return counts


def _refined(counts: Ints, target: Reals, column: Ints, first: Ints) -> Ints:
    """Divide the counts of every node of an attribute (column) among its children."""
    found = np.zeros(target.shape, np.int64)
    for node in range(len(first) - 1):
        start, stop = first[node], first[node + 1]
        rows = np.flatnonzero(counts[:, node])
        if stop - start == 1:
            found[rows, start] = counts[rows, node]
        elif len(rows):
            found[rows, start:stop] = two_sided(target[rows, start:stop], counts[rows, node], column[start:stop])
    return found


def two_sided(target: Reals, row: Ints, column: Ints) -> Ints:
    """Return whole numbers near non-negative targets, with given sums of rows and columns.

    A target of 0 stays 0.
    """
    for _ in range(_SCALINGS):
        target = target * _ratio(column, target.sum(axis=0))
        target = target * _ratio(row, target.sum(axis=1))[:, np.newaxis]
    found = largest_remainders(target, row)
    excess = found.sum(axis=0) - column
    while excess.any():
        off = found - target
        giving = np.where((excess > 0) & (found > 0), off, -np.inf)
        taking = np.where((excess < 0) & (target > 0), off, np.inf)
        giver, taker = giving.argmax(axis=1), taking.argmin(axis=1)
        every = np.arange(len(row))
        gain = giving[every, giver] - taking[every, taker]
        order = np.argsort(-gain, kind="stable")
        if not _move(found, excess, order[: np.count_nonzero(gain > -np.inf)], giver, taker):
            raise NumberError("no whole table has these totals: too many of its cells are structural zeros")
    return found


def _ratio(wanted: Ints, have: Reals) -> Reals:
    return np.where(have > 0, wanted / np.where(have > 0, have, 1.0), 0.0)


def largest_remainders(target: Reals, total: Ints) -> Ints:
    """Round every row of targets to whole numbers with a sum: floors, and units to the largest remainders."""
    scaled = target * _ratio(total, target.sum(axis=1))[:, np.newaxis]
    found = np.floor(scaled).astype(np.int64)
    left = total - found.sum(axis=1)
    rank = np.empty(target.shape, np.int64)
    order = np.argsort(found - scaled, axis=1, kind="stable")
    np.put_along_axis(rank, order, np.arange(target.shape[1])[np.newaxis], axis=1)
    found += rank < left[:, np.newaxis]
    for at in np.flatnonzero(left < 0):  # a sum of floats above its floor
        found[at, found[at].argmax()] += left[at]
    return found


@kernel
def _move(found: Ints, excess: Ints, order: Ints, giver: NDArray[np.intp], taker: NDArray[np.intp]) -> int:
    """Move a unit in each row, in order, while its columns need it; return how many moved."""
    moved = 0
    for row in order:
        a, b = giver[row], taker[row]
        if excess[a] > 0 and excess[b] < 0:
            found[row, a] -= 1
            found[row, b] += 1
            excess[a] -= 1
            excess[b] += 1
            moved += 1
    return moved
