"""From measurements to group sizes: the four ways of the paper to make them add up, none of which sees private data.

Differential Privacy of Hierarchical Census Data (CP 2019), sections 5 to 8: direct sizes (M_H) or cumulative ones
(M_c), and in each the exact nearest whole numbers (dp) or the nearest real numbers, rounded (r), which then may neither
add up nor keep the total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Key
from treetop.repair import Tree, isotonic, project_tree, relax_cumulative, relax_tree

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is public about the number of groups."""

    total: int
    """How many there are in all."""
    high: Integers
    """By node, a number of groups that it does not exceed."""
    ends: NDArray[np.bool_]
    """By node, whether that is the number of its groups."""


def repair_direct(tree: Tree, y: Integers, weights: Integers, known: Known, key: Key, threads: int) -> Integers:
    """Return the nearest group sizes, by nodes and sizes, that are whole, add up and have the total."""
    return project_tree(tree, y.T, weights, known.total, key, threads).T


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
    return _rounded(np.diff(relax_cumulative(tree, y, known.total, weights), axis=1, prepend=0.0))


def _rounded(x: NDArray[np.float64]) -> Integers:
    return np.floor(x + 0.5).astype(np.int64)
