"""A public tree as integer arrays, for repairs of all its levels at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop._util.dtypes import whole_numbers
from treetop.errors import HierarchyError, NumberError

MOST_WEIGHT = 1 << 40
LARGEST_WHOLE = 1 << 22
"""The largest weight that `whole_weights` gives: times a hundred billion counts, it fits 64 bits."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree, numbered level by level; make one with `from_levels` or `from_parents`.

    >>> Tree.from_levels([[0, 2], [0, 1, 3]])
    Tree(1 > 2 > 3)
    """

    child: NDArray[np.int64] = field(repr=False)
    """`child[v] : child[v + 1]` are the children of node v; a leaf has none. The root is node 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "child", _offsets(self.child))
        if len(self.child) < 2 or self.child[0] != 1 or self.child[-1] != self.nodes:
            raise HierarchyError("the offsets of the children do not number every node but the root once")
        own = np.arange(self.nodes)
        has_children = self.child[1:] > self.child[:-1]
        if (np.diff(self.child) < 0).any() or (self.child[:-1][has_children] <= own[has_children]).any():
            raise HierarchyError("the nodes of a tree are numbered level by level, siblings together")

    @staticmethod
    def from_levels(first: Sequence[ArrayLike]) -> Tree:
        """Read the levels below the root, in the form of `Hierarchy.first`.

        The children of node i of one level are the nodes `first[k][i] : first[k][i + 1]` of the next.
        """
        offsets = [_offsets(level) for level in first]
        if not all(len(level) for level in offsets):
            raise HierarchyError("a level needs one offset more than the level above has nodes, and here are none")
        sizes = [1, *(int(level[-1]) for level in offsets)]
        for size, level in zip(sizes, offsets, strict=False):
            if len(level) != size + 1 or level[0] != 0:
                raise HierarchyError(f"a level of {size} nodes needs {size + 1} offsets that start at 0, not {level}")
        starts = np.cumsum(sizes)
        below = [start + level[:-1] for start, level in zip(starts, offsets, strict=False)]
        return Tree(np.concatenate([*below, np.full(sizes[-1] + 1, starts[-1])]))

    @staticmethod
    def from_parents(parents: ArrayLike) -> Tree:
        """Read the parent of every node; the root's is −1, and nodes are numbered level by level.

        >>> Tree.from_parents([-1, 0, 0, 1, 1])
        Tree(1 > 2 > 2)
        """
        above = _offsets(parents)
        if len(above) == 0 or above[0] != -1 or (np.diff(above) < 0).any() or (above[1:] < 0).any():
            raise HierarchyError("parents start with the root's, -1, and do not descend: number level by level")
        child = np.searchsorted(above, np.arange(len(above) + 1))
        return Tree(np.append(child[:-1], len(above)).astype(np.int64))

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.child) - 1

    @cached_property
    def levels(self) -> tuple[slice, ...]:
        """The nodes of each level, from the root down."""
        starts = [0, 1]
        while starts[-1] < self.nodes:
            starts.append(int(self.child[starts[-1]]))
        return tuple(slice(start, stop) for start, stop in pairwise(starts))

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """The parent of every node; −1 for the root."""
        return np.concatenate([[-1], np.repeat(np.arange(self.nodes), np.diff(self.child))])

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """Number of leaves under each node; 1 for a leaf."""
        under = (np.diff(self.child) == 0).astype(np.int64)
        for level in reversed(self.levels[1:]):
            np.add.at(under, self.parent[level], under[level])
        return under

    @cached_property
    def room(self) -> NDArray[np.int64]:
        """Start of each node's range in an array with one entry for each leaf under each inner node."""
        return np.concatenate([[0], np.cumsum(np.where(np.diff(self.child) > 0, self.leaves, 0))])

    @cached_property
    def inner(self) -> NDArray[np.int64]:
        """Index of each inner node among the inner nodes; −1 for a leaf."""
        has_children = np.diff(self.child) > 0
        return np.where(has_children, np.cumsum(has_children) - 1, -1)

    @property
    def widest(self) -> int:
        """The largest number of children of a node."""
        return int(np.diff(self.child).max())

    def weights(self, weights: ArrayLike | None) -> NDArray[np.int64]:
        """Return the weight of every node, given none (all are 1), one a level, or one a node.

        Weights are whole numbers, so that costs are compared exactly; `whole_weights` makes them of others. A node
        with children may have weight 0: it was not measured.
        """
        given = np.asarray(1 if weights is None else weights)
        if not np.issubdtype(given.dtype, np.integer):
            raise NumberError(f"weights are whole numbers, not {given.dtype}; make them with whole_weights")
        if given.ndim == 1 and len(given) == len(self.levels):
            given = np.repeat(given, [level.stop - level.start for level in self.levels])
        if given.ndim > 1 or (given.ndim == 1 and len(given) != self.nodes):
            raise NumberError(
                f"give {len(self.levels)} weights, one a level, or {self.nodes}, one a node: {given.shape}"
            )
        if given.min() < 0 or given.max() > MOST_WEIGHT:
            raise NumberError(f"weights are not negative, and at most {MOST_WEIGHT:,}")
        full: NDArray[np.int64] = np.broadcast_to(given, self.nodes).astype(np.int64)
        if (full[self.inner < 0] == 0).any():
            raise NumberError("weights are not negative, and those of leaves are positive")
        return full

    def sum_up(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the count of every node, given those of the leaves: the last axis, in the order of their numbers."""
        counts = np.zeros((*leaves.shape[:-1], self.nodes), np.int64)
        counts[..., self.inner < 0] = leaves
        for level in reversed(self.levels[:-1]):
            inner = np.arange(level.start, level.stop)[self.inner[level] >= 0]
            first, last = self.child[inner[0]], self.child[inner[-1] + 1]
            counts[..., inner] = np.add.reduceat(counts[..., first:last], self.child[inner] - first, axis=-1)
        return counts

    def __repr__(self) -> str:
        return f"Tree({' > '.join(f'{level.stop - level.start:,}' for level in self.levels)})"


def whole_weights(weights: Sequence[float]) -> NDArray[np.int64]:
    """Return whole numbers in proportion to positive weights.

    The proportions are kept to one part in two thousand, or less well if the weights differ by factors of thousands.

    >>> whole_weights([0.5, 0.5, 2.0]).tolist()
    [1, 1, 4]
    """
    given = np.asarray(weights, np.float64)
    if given.ndim != 1 or not len(given) or not (np.isfinite(given).all() and (given > 0).all()):
        raise NumberError(f"weights are positive and finite numbers, not {given.tolist()}")
    if given.max() / LARGEST_WHOLE**2 > given.min():  # so far apart that the smallest becomes 1 in any case
        given = np.maximum(given, given.max() / LARGEST_WHOLE**2)
    scaled = given / given.min() * min(1024.0, LARGEST_WHOLE * float(given.min() / given.max()))
    whole = np.maximum(np.rint(scaled).astype(np.int64), 1)
    return whole // np.gcd.reduce(whole)


def _offsets(values: ArrayLike) -> NDArray[np.int64]:
    try:
        return whole_numbers(values, "a tree")
    except NumberError as problem:
        raise HierarchyError(str(problem)) from problem
