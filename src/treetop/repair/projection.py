"""The projection on a tree: the nearest non-negative whole numbers whose children sum to their parents, exactly.

First the nearest real numbers (`multiplier`), then the whole numbers in a window around them (`windows`), then a proof
that there are none nearer (`certificate`). Where a window was too narrow or the proof fails, the window is widened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.basics.checked import whole_numbers
from treetop.basics.threads import in_runs
from treetop.errors import NumberError
from treetop.noise import Key, Keystream
from treetop.repair.certificate import NEVER, best_exchange, certify
from treetop.repair.multiplier import descend_multipliers, find_multiplier, find_multipliers, root_supplies
from treetop.repair.tree import Tree
from treetop.repair.windows import lower_windows, root_windows, spread, toss

REACH = 2
"""The first window is from K below the nearest real number to K + 2 above: enough in every large case so far."""

WIDEST = 1 << 14
"""A window this wide means that the relaxation is wrong, not that the window is narrow."""

Total = int | NDArray[np.int64] | None
"""Of all copies together; of each copy; or free."""
Integers = NDArray[np.int64]


def project_tree(
    tree: Tree,
    measurements: ArrayLike,
    weights: ArrayLike | None = None,
    total: Total = None,
    *,
    key: Key,
    threads: int = 1,
) -> Integers:
    """Return the whole numbers x ≥ 0 that minimise Σ w (x − y)² with children that sum to their parents.

    `measurements` y are one row of nodes or several, each a copy of the tree. `weights` are whole numbers, one a level
    or one a node. A `total` that is a number is what the roots of all copies sum to; with an array each root has its
    own; without one the roots are free. Among equally near answers one is drawn by words of the `key`: the same
    arguments give the same answer, on any number of `threads`.

    >>> tree = Tree.from_levels([[0, 3]])
    >>> project_tree(tree, [7, 5, 3, -4], total=8, key=Key(bytes(32))).tolist()
    [8, 5, 3, 0]
    """
    y, shape = _rows(tree, measurements)
    w = tree.weights(weights)
    totals = _total(total, len(y))
    anchor = _relaxed(tree, y, w, totals, threads)
    _refuse_overflow(tree, y, w, float(anchor.max(initial=0.0)))
    x = anchor.astype(np.int64)  # towards zero: they are not negative
    del anchor
    words = np.empty(len(y) + 1, np.uint64)
    Keystream(key.derive("ties")).fill(words, 0)
    reach = REACH
    while not (_solve(tree, y, w, totals, x, reach, words, threads) and certified(tree, y, x, w, totals, threads)):
        reach *= 2
        if reach > WIDEST:
            raise ArithmeticError("the projection of this tree was not found near its relaxation: this is a defect")
    return x.reshape(shape)


def relax_tree(
    tree: Tree, measurements: ArrayLike, weights: ArrayLike | None = None, total: Total = None, threads: int = 1
) -> NDArray[np.float64]:
    """Return the real numbers x ≥ 0 that minimise what `project_tree` minimises over whole ones."""
    y, shape = _rows(tree, measurements)
    return _relaxed(tree, y, tree.weights(weights), _total(total, len(y)), threads).reshape(shape)


def certified(
    tree: Tree,
    measurements: ArrayLike,
    counts: ArrayLike,
    weights: ArrayLike | None = None,
    total: Total = None,
    threads: int = 1,
) -> bool:
    """Return whether counts are a projection of the measurements, by looking at every exchange of one unit."""
    y, _ = _rows(tree, measurements)
    x, _ = _rows(tree, counts)
    if x.shape != y.shape:
        raise NumberError(f"there are counts of shape {x.shape} for measurements of shape {y.shape}")
    w = tree.weights(weights)
    totals = _total(total, len(y))
    _refuse_overflow(tree, y, w, float(np.abs(x).max(initial=0)))
    gain, add, remove = (np.empty(len(y), np.int64) for _ in range(3))
    in_runs(threads, len(y), lambda own: certify(tree.child, w, y[own], x[own], gain[own], add[own], remove[own]))
    if gain.min() < 0:
        return False
    if totals is None:
        return bool(add.min() >= 0 and remove.min() >= 0)
    if isinstance(totals, int):
        return bool(x[:, 0].sum() == totals and best_exchange(add, remove) >= 0)
    return bool((x[:, 0] == totals).all())


def _rows(tree: Tree, values: ArrayLike) -> tuple[Integers, tuple[int, ...]]:
    """Return the values as rows of whole numbers, and the shape in which they came."""
    given = np.asarray(values)
    if not np.issubdtype(given.dtype, np.integer):
        raise NumberError(f"a tree is projected from whole numbers, not {given.dtype}")
    if given.ndim not in (1, 2) or given.shape[-1] != tree.nodes or given.size == 0:
        raise NumberError(f"give rows of {tree.nodes} nodes, as the tree has, not an array of {given.shape}")
    return whole_numbers(np.atleast_2d(given), "the counts of a tree", ndim=2), given.shape


def _total(total: Total, copies: int) -> Total:
    if total is None:
        return None
    given = np.asarray(total)
    if not np.issubdtype(given.dtype, np.integer) or given.shape not in ((), (copies,)):
        raise NumberError(f"the total is a whole number, or one for each of {copies} copies, not {total!r}")
    if given.min() < 0:
        raise NumberError(f"the total is {given.min()}: counts that are not negative cannot sum to it")
    given = whole_numbers(given, "the total", ndim=given.ndim)
    return int(given) if given.ndim == 0 else given.astype(np.int64)


def _refuse_overflow(tree: Tree, y: Integers, w: Integers, largest: float) -> None:
    heaviest = sum(int(w[level].max()) for level in tree.levels)
    if heaviest * (2 * (float(np.abs(y).max()) + largest) + 1024) >= NEVER:
        raise NumberError("measurements times weights do not fit 64 bits; give smaller weights in the same proportion")


def _relaxed(tree: Tree, y: Integers, w: Integers, total: Total, threads: int) -> NDArray[np.float64]:
    child, room = tree.child, tree.room
    multipliers = np.zeros(len(y))
    if total is not None:
        at, supplied = (np.empty((len(y), int(tree.leaves[0]))) for _ in range(2))
        slope = np.empty(len(y))
        in_runs(threads, len(y), lambda own: root_supplies(child, room, w, y[own], at[own], supplied[own], slope[own]))
        if isinstance(total, int):
            multipliers[:] = find_multiplier(at, supplied, slope, float(total))
        else:
            find_multipliers(at, supplied, slope, total, multipliers)
        del at, supplied
    relaxed = np.empty(y.shape)
    in_runs(threads, len(y), lambda own: descend_multipliers(child, room, w, y[own], multipliers[own], relaxed[own]))
    return relaxed


def _solve(
    tree: Tree,
    y: Integers,
    w: Integers,
    total: Total,
    x: Integers,
    reach: int,
    words: NDArray[np.uint64],
    threads: int,
) -> bool:
    """Overwrite x by the best whole numbers in windows around it; return whether no window stood in the way."""
    public = (tree.child, tree.inner, max(tree.widest, 1), w)
    low, size = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    slopes = np.full((len(y), 2 * reach + 2), NEVER, np.int64)
    made = in_runs(
        threads,
        len(y),
        lambda own: root_windows(*public, y[own], x[own], reach, low[own], slopes[own], size[own]),
    )
    roots = _choose_roots(low, size, slopes, total, words[-1]) if all(made) else None
    if roots is None:
        return False
    lowered = in_runs(
        threads, len(y), lambda own: lower_windows(*public, y[own], x[own], reach, roots[own], words[:-1][own])
    )
    return all(lowered)


def _choose_roots(low: Integers, size: Integers, slopes: Integers, total: Total, word: np.uint64) -> Integers | None:
    """Return the count of each root, cheapest units first; None where the windows do not hold the total."""
    if isinstance(total, np.ndarray):
        return total if bool(((low <= total) & (total <= low + size)).all()) else None
    left = 0 if total is None else total - int(low.sum())
    if not 0 <= left <= size.sum():
        return None
    threshold = 0 if total is None else -NEVER
    if left > 0:
        threshold = int(np.partition(slopes, left - 1, axis=None)[left - 1])
    inside = np.arange(slopes.shape[1]) < size[:, None]
    below, ties = ((slopes < threshold) & inside).sum(axis=1), ((slopes == threshold) & inside).sum(axis=1)
    roots: Integers = low + below
    if total is None:
        toss(roots, ties, word)
    else:
        spread(roots, ties, left - int(below.sum()), word)
    return roots
