"""Repairs: measurements become non-negative integers that sum to their parent. Pure functions on integers."""

from __future__ import annotations

import secrets
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop.basics.checked import check_sum, whole_number, whole_numbers
from treetop.errors import NumberError
from treetop.repair.cumulative import relax_cumulative
from treetop.repair.isotonic import isotonic, relax_isotonic
from treetop.repair.projection import certified, project_tree, relax_tree
from treetop.repair.settle import begin, settled, solve
from treetop.repair.state import ASCENDING, CHEBYSHEV, DESCENDING, EUCLIDEAN, STATE_SIZE
from treetop.repair.sweep import SCRATCH_SIZE
from treetop.repair.tree import Tree, whole_weights

__all__ = [
    "KINDS",
    "ORDERS",
    "Order",
    "Repair",
    "Tree",
    "certified",
    "chebyshev",
    "euclidean",
    "isotonic",
    "project_tree",
    "relax_cumulative",
    "relax_isotonic",
    "relax_tree",
    "whole_weights",
]

Order = Literal["ascending", "descending"]
Repair = Literal["chebyshev", "euclidean", "least-squares"]

KINDS: dict[str, int] = {"chebyshev": CHEBYSHEV, "euclidean": EUCLIDEAN, "least-squares": CHEBYSHEV}
"""The repair of one node on the way down; least squares come after it."""
ORDERS: dict[str, int] = {"ascending": ASCENDING, "descending": DESCENDING}


def chebyshev(
    measurements: ArrayLike, count: int, order: Order = "ascending", seed: int | None = None
) -> NDArray[np.int64]:
    """Return non-negative integers with sum `count` whose largest change is least (InfTDA, Algorithm 2).

    Among the least, `order="ascending"` lowers small measurements first, so that fewer entries are invented, and
    `order="descending"` large ones, so that fewer are lost. Equal measurements are treated alike, by `seed`.

    >>> chebyshev([5, 0, 0], 2).tolist()
    [2, 0, 0]
    """
    return _repair(measurements, count, CHEBYSHEV, order, seed)


def euclidean(
    measurements: ArrayLike, count: int, order: Order = "ascending", seed: int | None = None
) -> NDArray[np.int64]:
    """Return the non-negative integers with sum `count` that are nearest in squared distance.

    >>> euclidean([5, 3, -2], 6).tolist()
    [4, 2, 0]
    """
    return _repair(measurements, count, EUCLIDEAN, order, seed)


def _repair(measurements: ArrayLike, count: int, kind: int, order: Order, seed: int | None) -> NDArray[np.int64]:
    x = whole_numbers(np.atleast_1d(measurements), "the measurements")
    count = whole_number(count, "the parent's count")
    if len(x) == 0:
        raise NumberError("there is nothing to repair: a node has at least one child")
    check_sum(x, count, "the measurements and the parent's count")
    if order not in ORDERS:
        raise NumberError(f"order is {order!r}: choose one of {', '.join(ORDERS)}")
    word = np.uint64(secrets.randbits(64) if seed is None else whole_number(seed, "the seed", most=2**64 - 1))
    state, scratch = np.empty(STATE_SIZE, np.int64), np.empty(SCRATCH_SIZE, np.int64)
    begin(state, len(x), count, kind, ORDERS[order], word)
    solve(state, scratch, x)
    return np.array([settled(state, value) for value in x], dtype=np.int64)
