"""The nearest cumulative counts of a tree, in real numbers: children sum to parents and no sequence decreases.

A node has a sequence of counts, one a size, that may not decrease. The tree and the sequences pull in two directions,
so the nearest point is found by alternating: the nearest on the tree, which is least squares in two passes, and the
nearest non-decreasing leaves, which is isotonic (ADMM: Boyd, Parikh, Chu, Peleato and Eckstein 2011, chapter 3). It is
a yardstick for small cases: the number of steps grows with the leaves and the sizes, and each step sees every cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.basics.checked import real_numbers, whole_number
from treetop.errors import NumberError, TreetopError
from treetop.repair.isotonic import relax_isotonic
from treetop.repair.tree import Tree

MOST_STEPS = 20_000
TOLERANCE = 1e-4
"""How far the leaves may be from not decreasing, in counts: well below the half that rounding looks at."""

Floats = NDArray[np.float64]


class NotConverged(TreetopError):
    """A search for the nearest point that did not end within its steps."""


@dataclass(frozen=True)
class _Family:
    """The inner nodes of one level, and their children."""

    parents: NDArray[np.int64]
    """The inner nodes."""
    children: slice
    """All their children."""
    first: NDArray[np.int64]
    """Where the children of each start among them."""
    owner: NDArray[np.int64]
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

    def nearest(self, y: Floats, total: float) -> Floats:
        """Return the nearest point to y, an array of nodes by sizes, whose root has this total at the largest size."""
        x = y.copy()
        sums = {}
        for k, own in reversed(list(enumerate(self._families))):
            sums[k] = np.add.reduceat(x[own.children], own.first)
            w, variance = self._weights[own.parents, None], self._variance[own.parents, None]
            x[own.parents] = (w * y[own.parents] + sums[k] / variance) / self._precision[own.parents, None]
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
    tree: Tree, measurements: ArrayLike, total: int, weights: ArrayLike | None = None, most_steps: int = MOST_STEPS
) -> Floats:
    """Return the real numbers nearest to an array of nodes by sizes whose sums agree and whose rows do not decrease.

    They are not negative, and the root's last is `total`; up to a small tolerance.

    >>> tree = Tree.from_levels([[0, 2]])
    >>> relax_cumulative(tree, [[4, 9], [3, 1], [2, 8]], 10).round(2).tolist()
    [[4.0, 10.0], [2.0, 2.0], [2.0, 8.0]]
    """
    y = real_numbers(measurements, "the measurements", ndim=2)
    total = whole_number(total, "the total")
    if len(y) != tree.nodes or y.shape[1] == 0:
        raise NumberError(f"give {tree.nodes} rows, one a node, with a column a size, not an array of {y.shape}")
    w = tree.weights(weights).astype(np.float64)
    leaves = tree.inner < 0
    # Between the least and the largest curvature as the leaves see it: of one leaf, and of all together.
    pull = float(np.sqrt(w[leaves].min() * (w * tree.leaves).max()))
    pulled = np.where(leaves, w + pull, w)
    least_squares = TreeLeastSquares(tree, pulled)
    aim = y.copy()
    z = relax_isotonic(y[leaves], np.inf)
    debt = np.zeros_like(z)
    own = (w[leaves, None] * y[leaves], pulled[leaves, None])
    for _ in range(most_steps):
        aim[leaves] = (own[0] + pull * (z - debt)) / own[1]
        x = least_squares.nearest(aim, total)
        eased = 1.6 * x[leaves] - 0.6 * z
        before = z
        z = relax_isotonic(eased + debt, np.inf)
        debt += eased - z
        if max(np.abs(x[leaves] - z).max(), np.abs(z - before).max()) <= TOLERANCE:
            return x
    raise NotConverged(
        f"the nearest cumulative counts in real numbers were not found in {most_steps:,} steps; "
        "take the exact repair, or fewer sizes"
    )
