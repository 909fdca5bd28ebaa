"""Swaps: two records exchange their values of one attribute if that brings the measured tables nearer to the fit.

A swap keeps the total and the totals of every attribute. In a table that tells the attribute and others it moves two
cells down and two up. Proposals start from cells that have too many records, and are drawn from a keyed sequence, so
that the result is a function of the measurements.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.fit.noisy_tables import Depths, Grid, Ints, NoisyTable, Reals

LEAF_WEIGHT = 4.0
"""Weight of the distance to the fit in single cells, beside the largest weight of a table, or this if it is less."""
_MOST_WEIGHT = 0.1
_ROUNDS = 12
_TRIES = 24
"""How many partners are proposed to each surplus record in a round."""
_NEAR = 0.05
"""A cell that is nearer to the fit than this share of its noise is left alone."""
_NEARBY = 4
"""How many pairs of records are looked at for one pair of cells."""

_Words = NDArray[np.uint64]


def seed_of(tables: Sequence[NoisyTable]) -> int:
    """Return 64 bits that follow from the measurements alone."""
    digest = hashlib.blake2b(digest_size=8, person=b"treetop-swaps")
    for table in tables:
        digest.update(repr((table.depths, table.variance)).encode())
        digest.update(np.ascontiguousarray(table.value, "<f8").tobytes())
    return int.from_bytes(digest.digest(), "little")


def swap(
    grid: Grid, trunk: Depths, counts: Ints, fitted: Reals, tables: Sequence[NoisyTable], seed: int
) -> tuple[Ints, int]:
    """Return whole counts whose tables are nearer to those of a fitted table, and how many swaps were made.

    Args:
        grid: The attributes.
        trunk: The depths of the counts.
        counts: Whole counts, positive only where the fitted table is.
        fitted: The fitted table.
        tables: The tables to come nearer to, weighted by their inverse variances; their values are not used.
        seed: Decides on the proposals.
    """
    crossing = [table for table in tables if np.count_nonzero(table.depths) > 1]
    if not crossing or counts.sum() < 2:
        return counts, 0
    shape = counts.shape
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    start = np.cumsum([0, *(grid.cells(table.depths) for table in crossing)])
    off = np.concatenate([(grid.sum_to(counts - fitted, trunk, table.depths)).ravel() for table in crossing])
    steps = np.zeros((len(crossing), len(shape), max(shape)), np.int64)
    for at, table in enumerate(crossing):
        for axis, code_step in enumerate(_codes(grid, trunk, table.depths)):
            steps[at, axis, : len(code_step)] = code_step
    weight = np.array([1.0 / table.variance for table in crossing])
    leaf = LEAF_WEIGHT * min(float(weight.max()), _MOST_WEIGHT)
    found, excess = counts.ravel().copy(), (counts - fitted).ravel()
    support = fitted.ravel() > 0
    words = np.array([seed], np.uint64)
    made = 0
    for _ in range(_ROUNDS):
        before = made
        filled = np.flatnonzero(found)
        codes = np.unravel_index(filled, shape)
        for at, table in enumerate(crossing):
            cell_of = np.add.reduce([steps[at, axis][code] for axis, code in enumerate(codes)])
            order = np.argsort(cell_of, kind="stable")
            bounds = np.searchsorted(cell_of[order], np.arange(grid.cells(table.depths) + 1))
            own = off[start[at] : start[at + 1]]
            hot = np.flatnonzero(own > max(0.5, _NEAR * math.sqrt(table.variance)))
            hot = hot[np.argsort(-own[hot], kind="stable")]
            axes = np.flatnonzero(table.depths)
            made += _improve(
                found, excess, support, off, start, steps, weight, leaf, strides, np.array(shape), at, axes,
                hot, filled[order], bounds, words,
            )  # fmt: skip
        if made - before <= max(made // 200, 1):
            break
    return found.reshape(shape), made


def _codes(grid: Grid, trunk: Depths, depths: Depths) -> list[Ints]:
    """Return what each code of each attribute adds to the number of a table's cell."""
    sizes = grid.sizes(depths)
    return [
        grid.ancestors(axis, depth, trunk[axis]) * (math.prod(sizes[axis + 1 :]) if depth else 0)
        for axis, depth in enumerate(depths)
    ]


@kernel
def _improve(
    found: Ints, excess: Reals, support: NDArray[np.bool_], off: Reals, start: Ints, steps: Ints, weight: Reals,
    leaf: float, strides: Ints, shape: Ints, table: int, axes: Ints, hot: Ints, filled: Ints, bounds: Ints,
    words: _Words,
) -> int:  # fmt: skip
    """Propose swaps that lower the cells of one table with too many records; return how many were made."""
    made = 0
    for cell in hot:
        failed = 0
        while off[start[table] + cell] > 0.5 and failed < _TRIES and bounds[cell] < bounds[cell + 1]:
            failed += 1
            axis = axes[_draw(words, len(axes))]
            # A partner in any filled cell, and a record of this one.
            other = filled[_draw(words, len(filled))]
            for _ in range(_NEARBY):
                one = filled[bounds[cell] + _draw(words, bounds[cell + 1] - bounds[cell])]
                if found[one] == 0 or found[other] == 0:
                    continue
                if _swapped(found, excess, support, off, start, steps, weight, leaf, strides, shape, one, other, axis):
                    made += 1
                    failed = 0
                    break
    return made


@kernel
def _swapped(
    found: Ints, excess: Reals, support: NDArray[np.bool_], off: Reals, start: Ints, steps: Ints, weight: Reals,
    leaf: float, strides: Ints, shape: Ints, one: int, other: int, axis: int,
) -> bool:  # fmt: skip
    """Swap two records' values of an attribute if that lowers the weighted squares; return whether it did."""
    a, b = one // strides[axis] % shape[axis], other // strides[axis] % shape[axis]
    new_one, new_other = one + (b - a) * strides[axis], other + (a - b) * strides[axis]
    if a == b or new_one == other or not (support[new_one] and support[new_other]):
        return False
    loss = leaf * (4.0 + 2.0 * (excess[new_one] + excess[new_other] - excess[one] - excess[other]))
    for table in range(len(weight)):
        loss += weight[table] * _change(off, start[table], steps[table], strides, shape, one, other, axis, 0.0)
    if loss >= 0.0:
        return False
    for table in range(len(weight)):
        _change(off, start[table], steps[table], strides, shape, one, other, axis, 1.0)
    found[one] -= 1
    found[other] -= 1
    found[new_one] += 1
    found[new_other] += 1
    excess[one] -= 1.0
    excess[other] -= 1.0
    excess[new_one] += 1.0
    excess[new_other] += 1.0
    return True


@kernel
def _change(
    off: Reals, start: int, steps: Ints, strides: Ints, shape: Ints, one: int, other: int, axis: int, done: float
) -> float:
    """Return by how much a swap raises the squares of one table; with `done` 1, change the table."""
    a, b = one // strides[axis] % shape[axis], other // strides[axis] % shape[axis]
    across = steps[axis, b] - steps[axis, a]
    if across == 0:
        return 0.0
    first, second = start, start
    for own in range(len(shape)):
        first += steps[own, one // strides[own] % shape[own]]
        second += steps[own, other // strides[own] % shape[own]]
    if first + across == second:  # they differ in nothing else that the table tells
        return 0.0
    if done > 0.0:
        off[first] -= 1.0
        off[second] -= 1.0
        off[first + across] += 1.0
        off[second - across] += 1.0
    change: float = 4.0 + 2.0 * (off[first + across] + off[second - across] - off[first] - off[second])
    return change


@kernel
def _draw(words: _Words, size: int) -> int:
    """Return the next number below a size (SplitMix64)."""
    words[0] += np.uint64(0x9E3779B97F4A7C15)
    word = words[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return int((word >> np.uint64(11)) % np.uint64(size))
